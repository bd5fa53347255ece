/* SPDX-License-Identifier: MIT
 *
 * DeBERTa's disentangled positions (He et al. 2021): a table of keys and one of queries for
 * distances, W_pk E[d(n)] and W_pq E[d(-n)] with d(n) = clip(n + c, 0, 2c-1). Rows that share an
 * embedding are repeated, so that distances to c in the past, and to c in the future where attention
 * sees it, have one each in both. */
#include "variants/parts/parts.h"

enum { EMBED, POS_K, POS_Q, POS_Q_BIAS };

enum { P2C_PAPER, P2C_CODE };
static const char *const p2c_name[] = {[P2C_PAPER] = "paper", [P2C_CODE] = "code", NULL};

struct deberta {
    int p2c; /* embeddings of the last term: as published, or as in the authors' program */
    bool q_bias;
};

static const struct choice deberta_choices[] = {
    ROW_WORD(struct deberta, p2c, "p2c", p2c_name, "embeddings of the last term", .absent = "paper",
             SETTING, .tiny = "paper|paper|code|code"),
    ROW_FLAG(struct deberta, q_bias, "pos_q_bias", "1: the map of positional queries has a bias",
             .absent = "0", SETTING, .tiny = "0|1"),
    {0},
};

static const struct part_numbers deberta_numbers = {deberta_choices,
                                                    .size = NUMBERS_SIZE(struct deberta)};

static const struct deberta *deberta_of(const struct config *c)
{
    return config_numbers(c, SLOT_POS);
}

static int reach(const struct config *c) { return max_int(1, c->clip); }

static int distances(const struct config *c, int K) { return min_int(K, reach(c) + 1); }

/* Those of the future. */
static int ahead(const struct config *c, int K) { return c->causal ? 0 : min_int(K - 1, reach(c)); }

/* The embedding of distance n in term `which`. */
static int row_of(const struct config *c, int which, int n)
{
    const int at = which == POS_Q && deberta_of(c)->p2c == P2C_PAPER ? -n : n;

    return clamp_int(at + reach(c), 0, 2 * reach(c) - 1);
}

static void deberta_params(const struct config *c, const char *prefix, struct params *p)
{
    params_add(p, INIT_TABLE, 0, 2, (const int[]){2 * reach(c), c->D}, "%sattn.rel_embed.weight",
               prefix);
    params_wide(p, params_matrix(p, c->H * c->dh, c->D, prefix, "attn.pos_k.weight"));
    params_wide(p, params_matrix(p, c->H * c->dh, c->D, prefix, "attn.pos_q.weight"));
    if (deberta_of(c)->q_bias)
        params_vector(p, INIT_ZERO, 0, c->H * c->dh, prefix, "attn.pos_q.bias");
}

static size_t table_floats(const struct config *c, int rows)
{
    return (size_t)c->H * (size_t)rows * (size_t)c->dh;
}

/* The tables are followed by the embeddings of their rows, [R+Rf,D]. */
static void deberta_reserve(const struct pos_call *t)
{
    const struct config *const c = t->c;
    struct attn *const a = t->a;

    a->R = distances(c, t->K);
    a->Rf = ahead(c, t->K);
    const int rows = a->R + a->Rf;
    a->rel_head = (ptrdiff_t)rows * c->dh;
    const size_t n = table_floats(c, rows);
    float *const at = arena_f32(t->arena, PART_REL_POS, 2 * n + (size_t)rows * (size_t)c->D);
    a->rel_k = at;
    a->rel_q = at + n;
}

/* x [R+Rf,D]: the embeddings of distances R-1 .. -Rf. */
static void gather(const struct config *c, const struct param *layer, int which,
                   const struct attn *a, float *x)
{
    for (int n = -a->Rf; n < a->R; n++)
        memcpy(x + (ptrdiff_t)(a->R - 1 - n) * c->D,
               layer[EMBED].data + (ptrdiff_t)row_of(c, which, n) * c->D,
               sizeof(float) * (size_t)c->D);
}

/* The rows of W that give head h's part of a table. */
static const float *head_of(const struct config *c, const float *W, int h)
{
    return W + (ptrdiff_t)h * c->dh * c->D;
}

static void build_table(const struct engine *g, const struct config *c, const struct param *layer,
                        int which, const struct attn *a, float *table, float *x)
{
    const int rows = a->R + a->Rf;

    gather(c, layer, which, a, x);
    for (int h = 0; h < c->H; h++) {
        float *const to = table + (ptrdiff_t)h * rows * c->dh;
        mm(g, NT, rows, c->dh, c->D, 1, x, c->D, head_of(c, layer[which].data, h), c->D, 0, to,
           c->dh);
        for (int i = 0; which == POS_Q && deberta_of(c)->q_bias && i < rows * c->dh; i++)
            to[i] += layer[POS_Q_BIAS].data[h * c->dh + i % c->dh];
    }
}

static void deberta_build_tables(const struct pos_call *t)
{
    const struct config *const c = t->c;
    struct attn *const a = t->a;
    float *const at = (float *)a->rel_k;
    const size_t n = table_floats(c, a->R + a->Rf);

    build_table(t->g, c, t->layer, POS_K, a, at, at + 2 * n);
    build_table(t->g, c, t->layer, POS_Q, a, at + n, at + 2 * n);
}

static double deberta_build_tables_flop(const struct config *c, int K)
{
    return 4.0 * (distances(c, K) + ahead(c, K)) * c->D * c->H * c->dh;
}

/* ---- backward ----------------------------------------------------------------------------- */

/* Gradients of the tables, then embeddings of their rows and their gradient. */
static size_t deberta_n_tables_grad(const struct config *c, int K)
{
    const int rows = distances(c, K) + ahead(c, K);

    return 2 * table_floats(c, rows) + 2 * (size_t)rows * (size_t)c->D;
}

static void deberta_terms_grad(const struct pos_call *t)
{
    float *const tables = t->tables;
    const size_t n = (size_t)t->c->H * (size_t)t->a->rel_head;

    memset(tables, 0, sizeof(float) * 2 * n);
    t->d->d_rel_k = tables;
    t->d->d_rel_q = tables + n;
}

/* Backward of one map: d_table holds R+Rf rows per head, a->rel_head floats between heads. */
static void map_grad(const struct engine *g, const struct config *c, const struct param *layer,
                     int which, const struct attn *a, const float *d_table, float *x)
{
    const int rows = a->R + a->Rf;
    float *const d_x = x + (ptrdiff_t)rows * c->D;

    gather(c, layer, which, a, x);
    for (int h = 0; h < c->H; h++) {
        const float *const d = d_table + h * a->rel_head;
        mm(g, TN, c->dh, c->D, rows, 1, d, c->dh, x, c->D, 1,
           (float *)head_of(c, layer[which].grad, h), c->D);
        mm(g, NN, rows, c->D, c->dh, 1, d, c->dh, head_of(c, layer[which].data, h), c->D, h ? 1 : 0,
           d_x, c->D);
        for (int i = 0; which == POS_Q && deberta_of(c)->q_bias && i < rows * c->dh; i++)
            layer[POS_Q_BIAS].grad[h * c->dh + i % c->dh] += d[i];
    }
    for (int n = -a->Rf; n < a->R; n++)
        for (int e = 0; e < c->D; e++)
            layer[EMBED].grad[(ptrdiff_t)row_of(c, which, n) * c->D + e] +=
                d_x[(ptrdiff_t)(a->R - 1 - n) * c->D + e];
}

static void deberta_build_tables_grad(const struct pos_call *t)
{
    const struct config *const c = t->c;
    struct attn *const a = t->a;
    struct attn_grad *const d = t->d;
    float *const x = d->d_rel_k + 2 * (ptrdiff_t)c->H * a->rel_head;

    map_grad(t->g, c, t->layer, POS_K, a, d->d_rel_k, x);
    map_grad(t->g, c, t->layer, POS_Q, a, d->d_rel_q, x);
}

const struct pos pos_deberta = {
    .name = "deberta",
    .numbers = &deberta_numbers,
    .clips = true,
    .layer_params = deberta_params,
    .reserve = deberta_reserve,
    .build_tables = deberta_build_tables,
    .build_tables_flop = deberta_build_tables_flop,
    .n_tables_grad = deberta_n_tables_grad,
    .terms_grad = deberta_terms_grad,
    .build_tables_grad = deberta_build_tables_grad,
};
