/* SPDX-License-Identifier: MIT
 *
 * TUPE's positions (Ke et al. 2021): the scores of position i against position j, a matrix [K,K]
 * per head, depend on the weights only; they are computed when these change and added to every
 * sequence's scores. Optionally with T5's bias (TUPE-R). */
#include "pos_t5.h"
#include "variants/parts/norm.h"
#include "variants/parts/parts.h"

enum { POS, LN_WEIGHT, LN_BIAS, UQ, UK, REL_BIAS };

struct tupe {
    struct t5 t5; /* of the bias; pos_t5 reads it */
    bool bias;    /* each layer has T5's bias, too */
};

static bool has_bias(const struct config *c)
{
    return ((const struct tupe *)config_numbers(c, SLOT_POS))->bias;
}

static const struct choice tupe_choices[] = {
    /* First: it says whether the others apply. */
    ROW_FLAG(struct tupe, bias, "tupe_bias", "1: T5's bias in each layer",
             .tensor = "attn.rel_bias", SETTING, .tiny = "0|1"),
    ROW_FLAG(struct tupe, t5.shared, "tupe_share", NULL, .key = "share_attn_bias", .absent = "0",
             .tiny = "1|0"),
    T5_CHOICES(struct tupe, t5., "tupe", has_bias){0},
};

static const struct part_numbers tupe_numbers = {tupe_choices,
                                                 PRESET(struct tupe, .t5 = {T5_USUAL})};

static const struct tupe *tupe_of(const struct config *c) { return config_numbers(c, SLOT_POS); }

static int tupe_positions(const struct config *c)
{
    return c->max_pos ? c->max_pos : c->max_seq + c->mem_len;
}

static enum status tupe_check(const struct config *c, struct err *e)
{
    if (tupe_positions(c) < c->max_seq)
        return fail(e, E_USAGE,
                    "tupe: a table of %d positions, windows of up to %d  -> use shorter ones",
                    tupe_positions(c), c->max_seq);
    if (tupe_of(c)->bias && tupe_of(c)->t5.shared)
        return fail(e, E_USAGE, "%s: tupe_bias is of each layer  -> use share_attn_bias 0",
                    c->variant->name);
    return tupe_of(c)->bias ? pos_t5.check(c, e) : OK;
}

static void tupe_params(const struct config *c, const char *prefix, struct params *p)
{
    const int HD = c->H * c->dh;

    params_add(p, INIT_TABLE, 0, 2, (const int[]){max_int(1, tupe_positions(c)), c->D},
               "%sattn.tupe.pos.weight", prefix);
    params_vector(p, INIT_ONE, 0, c->D, prefix, "attn.tupe.ln.weight");
    params_vector(p, INIT_ZERO, 0, c->D, prefix, "attn.tupe.ln.bias");
    params_wide(p, params_matrix(p, HD, c->D, prefix, "attn.tupe.q.weight"));
    params_wide(p, params_matrix(p, HD, c->D, prefix, "attn.tupe.k.weight"));
    if (tupe_of(c)->bias)
        pos_t5.layer_params(c, prefix, p);
}

/* What build_tables stores for its backward: T [H,K,K] the scores, p [K,D], and its two maps
 * [K,H*dh]. */
struct table {
    int K, HD;
    float *T, *p, *q, *k;
};

static size_t table_floats(const struct config *c, int K)
{
    const size_t k = (size_t)K, HD = (size_t)c->H * (size_t)c->dh;

    return (size_t)c->H * k * k + k * (size_t)c->D + 2 * k * HD;
}

static struct table table_at(const struct config *c, float *at, int K)
{
    const ptrdiff_t k = K, HD = (ptrdiff_t)c->H * c->dh;
    float *const p = at + c->H * k * k;

    return (struct table){K, (int)HD, at, p, p + k * c->D, p + k * c->D + k * HD};
}

/* The window's queries are its last positions. */
static struct table table_of(const struct config *c, const struct attn *a)
{
    return table_at(c, (float *)a->add.at - a->M * a->add.row, (int)a->add.row);
}

/* Run a hook of T5's bias, if there is one; its parameters follow. */
static void with_bias(const struct pos_call *call, void (*hook)(const struct pos_call *))
{
    struct pos_call bias = *call;

    bias.layer += REL_BIAS;
    if (tupe_of(call->c)->bias)
        hook(&bias);
}

static void tupe_reserve(const struct pos_call *call)
{
    const struct config *const c = call->c;
    struct attn *const a = call->a;
    const int window = attn_keys(a); /* window positions only: memory is not used */
    float *const at = arena_f32(call->arena, PART_REL_POS, table_floats(c, window));

    CHECK(window <= call->layer[POS].shape[0]);
    a->add = (struct dense){at + (ptrdiff_t)a->M * window, 0, (ptrdiff_t)window * window, window};
    with_bias(call, pos_t5.reserve);
}

/* y [K,H*dh] = p W^T */
static void map(const struct engine *g, const struct config *c, const struct table *t,
                const struct param *W, float *y)
{
    mm(g, NT, t->K, t->HD, c->D, 1, t->p, c->D, W->data, c->D, 0, y, t->HD);
}

static void tupe_build_tables(const struct pos_call *call)
{
    const struct config *const c = call->c;
    const struct param *const layer = call->layer;
    const struct engine *const g = call->g;
    struct attn *const a = call->a;
    const struct table t = table_of(c, a);

    layer_norm(g, &layer[LN_WEIGHT], t.p, layer[POS].data, t.K, c->D, c->ln_eps);
    map(g, c, &t, &layer[UQ], t.q);
    map(g, c, &t, &layer[UK], t.k);
    for (int h = 0; h < c->H; h++)
        mm(g, NT, t.K, t.K, c->dh, c->scale, t.q + (ptrdiff_t)h * c->dh, t.HD,
           t.k + (ptrdiff_t)h * c->dh, t.HD, 0, t.T + h * a->add.head, t.K);
    with_bias(call, pos_t5.build_tables);
}

static double tupe_build_tables_flop(const struct config *c, int K)
{
    return 2.0 * K * c->H * c->dh * (2.0 * c->D + K);
}

/* ---- backward ----------------------------------------------------------------------------- */

/* Gradients of a table's parts, the norm's work space, T5's. */
static size_t own_grad_floats(const struct config *c, int K)
{
    return table_floats(c, K) + (size_t)NORM_STATS * (size_t)K;
}

static size_t tupe_n_tables_grad(const struct config *c, int K)
{
    return own_grad_floats(c, K) + (tupe_of(c)->bias ? pos_t5.n_tables_grad(c, K) : 0);
}

static void tupe_terms_grad(const struct pos_call *call)
{
    const struct config *const c = call->c;
    struct attn *const a = call->a;
    float *const tables = call->tables;
    const int K = (int)a->add.row;
    struct pos_call bias = *call;

    memset(tables, 0, sizeof(float) * (size_t)c->H * (size_t)a->add.head);
    call->d->d_add = tables + a->M * a->add.row;
    bias.tables += own_grad_floats(c, K);
    with_bias(&bias, pos_t5.terms_grad);
}

/* From the scores' gradient to those of the mapped positions:
 *   dq = scale dT k
 *   dk = scale dT^T q */
static void scores_grad(const struct engine *g, const struct config *c, const struct table *t,
                        const struct table *d)
{
    for (int h = 0; h < c->H; h++)
        for (int key = 0; key < 2; key++)
            mm(g, key ? TN : NN, t->K, c->dh, t->K, c->scale, d->T + (ptrdiff_t)h * t->K * t->K,
               t->K, (key ? t->q : t->k) + (ptrdiff_t)h * c->dh, t->HD, 0,
               (key ? d->k : d->q) + (ptrdiff_t)h * c->dh, t->HD);
}

/* dW += dy^T p;  dp = dy W, or dp += dy W. */
static void map_grad(const struct engine *g, const struct config *c, const struct table *t,
                     const struct table *d, const struct param *W, const float *d_y, bool add)
{
    mm(g, TN, t->HD, c->D, t->K, 1, d_y, t->HD, t->p, c->D, 1, W->grad, c->D);
    mm(g, NN, t->K, c->D, t->HD, 1, d_y, t->HD, W->data, c->D, add, d->p, c->D);
}

static void tupe_build_tables_grad(const struct pos_call *call)
{
    const struct config *const c = call->c;
    const struct param *const layer = call->layer;
    const struct engine *const g = call->g;
    struct attn *const a = call->a;
    const struct table t = table_of(c, a);
    const struct table of = table_at(c, call->d->d_add - a->M * a->add.row, t.K);

    scores_grad(g, c, &t, &of);
    map_grad(g, c, &t, &of, &layer[UQ], of.q, false);
    map_grad(g, c, &t, &of, &layer[UK], of.k, true);
    layer_norm_grad(g, &layer[LN_WEIGHT], of.p, of.p, layer[POS].data, of.T + table_floats(c, t.K),
                    t.K, c->D, c->ln_eps);
    for (ptrdiff_t e = 0; e < (ptrdiff_t)t.K * c->D; e++)
        layer[POS].grad[e] += of.p[e];
    with_bias(call, pos_t5.build_tables_grad);
}

const struct pos pos_tupe = {
    .name = "tupe",
    .numbers = &tupe_numbers,
    .past_only = true,
    .excludes = EXCLUDES(HAS_CACHED), /* it knows one window */
    .check = tupe_check,
    .positions = tupe_positions,
    .layer_params = tupe_params,
    .reserve = tupe_reserve,
    .build_tables = tupe_build_tables,
    .build_tables_flop = tupe_build_tables_flop,
    .n_tables_grad = tupe_n_tables_grad,
    .terms_grad = tupe_terms_grad,
    .build_tables_grad = tupe_build_tables_grad,
};
