/* SPDX-License-Identifier: MIT
 *
 * Transformer-XL's relative positions: the key table of head h holds rho_h[n] = rows h*dh.. of W_r
 * times R[n], the sinusoidal encoding of distance n. With clamp_len c the distances beyond c share
 * R[c], so the table ends there: the clipping of `struct attn`. */
#include "variants/parts/parts.h"

/* Layer parameters; u and v come last because a model may share one pair instead, and one or both
 * may be off: terms (c) and (d) of the paper's equation. */
enum { WR, UV };

static void add_uv(const struct config *c, const char *prefix, struct params *p)
{
    const int sizes[] = {c->H, c->dh};

    if (!c->u_off)
        params_add(p, INIT_TABLE, 0, 2, sizes, "%sbias_u", prefix);
    if (!c->v_off)
        params_add(p, INIT_TABLE, 0, 2, sizes, "%sbias_v", prefix);
}

/* NULL = off. */
static const struct param *u_of(const struct pos_call *t)
{
    return t->c->u_off ? NULL : t->c->uv_per_layer ? t->layer + UV : t->model;
}

static const struct param *v_of(const struct pos_call *t)
{
    const struct param *const first = t->c->uv_per_layer ? t->layer + UV : t->model;

    return t->c->v_off ? NULL : first + !t->c->u_off;
}

static void xl_model_params(const struct config *c, struct params *p)
{
    if (!c->uv_per_layer)
        add_uv(c, "", p);
}

static void xl_layer_params(const struct config *c, const char *prefix, struct params *p)
{
    char attn[64];

    params_wide(p, params_matrix(p, c->H * c->dh, c->D, prefix, "attn.r.weight"));
    CHECK(snprintf(attn, sizeof(attn), "%sattn.", prefix) < (int)sizeof(attn));
    if (c->uv_per_layer)
        add_uv(c, attn, p);
}

static int distances(const struct config *c, int K)
{
    return c->clamp_len > 0 ? min_int(K, c->clamp_len + 1) : K;
}

/* Keys of the future are at negative distances, as many without the 0. */
static int future(const struct config *c, int K) { return c->causal ? 0 : distances(c, K) - 1; }
static int rows(const struct config *c, int K) { return distances(c, K) + future(c, K); }

static void xl_reserve(const struct pos_call *t)
{
    const struct config *const c = t->c;
    struct attn *const a = t->a;
    const int K = t->K;
    const struct param *const u = u_of(t), *const v = v_of(t);

    a->R = distances(c, K);
    a->Rf = future(c, K);
    a->rel_head = (ptrdiff_t)rows(c, K) * c->dh;
    a->rel_k = arena_f32(t->arena, PART_REL_POS, (size_t)c->H * (size_t)a->rel_head);
    a->u = u ? u->data : NULL;
    a->w = v ? v->data : NULL;
}

static size_t xl_n_pos_encoding(const struct config *c, int K)
{
    return (size_t)rows(c, K) * (size_t)c->D;
}

static void xl_pos_encoding(const struct config *c, int64_t first, int K, float *pos_encoding)
{
    const int R = distances(c, K), n = rows(c, K);

    for (int r = 0; r < n; r++) /* farthest past first */
        sinusoid_row(pos_encoding + (ptrdiff_t)r * c->D, c->D, R - 1 - r, c->sinusoid);
}

static void xl_build_tables(const struct pos_call *t)
{
    const struct config *const c = t->c;
    struct attn *const a = t->a;

    for (int h = 0; h < c->H; h++)
        mm(t->g, NT, a->R + a->Rf, c->dh, c->D, 1, t->pos_encoding, c->D,
           t->layer[WR].data + (ptrdiff_t)h * c->dh * c->D, c->D, 0,
           (float *)a->rel_k + h * a->rel_head, c->dh);
}

static double xl_build_tables_flop(const struct config *c, int K)
{
    return 2.0 * rows(c, K) * c->D * c->H * c->dh; /* W_r R */
}

/* ---- backward ----------------------------------------------------------------------------- */

static size_t xl_n_tables_grad(const struct config *c, int K)
{
    return (size_t)c->H * (size_t)rows(c, K) * (size_t)c->dh;
}

/* Heads are as far apart as in the key table, so that `a` describes both. */
static void xl_terms_grad(const struct pos_call *t)
{
    struct attn_grad *const d = t->d;
    const struct param *const u = u_of(t), *const v = v_of(t);

    memset(t->tables, 0, sizeof(float) * (size_t)t->c->H * (size_t)t->a->rel_head);
    d->d_rel_k = t->tables;
    d->d_u = u ? u->grad : NULL;
    d->d_w = v ? v->grad : NULL;
}

/* dW_r of head h [dh,D] += drho_h^T R, over the distances that `a` has. */
static void xl_build_tables_grad(const struct pos_call *t)
{
    const struct config *const c = t->c;
    struct attn *const a = t->a;
    const int n = a->R + a->Rf;
    const ptrdiff_t cut = a->rel_head / c->dh - n; /* distances too far for `a` */

    for (int h = 0; h < c->H; h++)
        mm(t->g, TN, c->dh, c->D, n, 1, t->d->d_rel_k + h * a->rel_head, c->dh,
           t->pos_encoding + cut * c->D, c->D, 1, t->layer[WR].grad + (ptrdiff_t)h * c->dh * c->D,
           c->D);
}

const struct pos pos_xl = {
    .name = "xl",
    .sinusoids = true,
    .clamps = true,
    .by_distance = true,
    .model_params = xl_model_params,
    .layer_params = xl_layer_params,
    .reserve = xl_reserve,
    .n_pos_encoding = xl_n_pos_encoding,
    .pos_encoding = xl_pos_encoding,
    .build_tables = xl_build_tables,
    .build_tables_flop = xl_build_tables_flop,
    .n_tables_grad = xl_n_tables_grad,
    .terms_grad = xl_terms_grad,
    .build_tables_grad = xl_build_tables_grad,
};
