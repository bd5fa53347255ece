/* SPDX-License-Identifier: MIT
 *
 * Product-key memory (Lample et al. 2019, "Large Memory Layers with Product Keys",
 * arXiv:1907.05242). Each head asks n^2 values with a query of two halves, whose keys are pairs of
 * n keys each:
 *
 *   q   = W x + b -> [heads, 2, half]
 *   s_1 = keys_1 q_1
 *   s_2 = keys_2 q_2
 *   y   = sum over heads and the `top` best of s_1[i] + s_2[j]:  p values[i n + j]
 *
 * With pkm_ln each half of q is normed (the paper's norm is over the batch and would look at other
 * rows). i and j are the `top` best of s_1 and of s_2. p is a softmax over the pairs that were
 * chosen. Of equal scores the one with the lower index is taken. The choice is a constant in
 * backward; only rows of values that were chosen have a gradient. */
#include "variants/parts/dropout.h"
#include "variants/parts/linear.h"
#include "variants/parts/norm.h"
#include "variants/parts/parts.h"

struct pkm {
    int heads, keys, half, top;
    bool ln;
};
enum { MOST_TOP = 1 << 10 };
static const float LN_EPS = 1e-5f;

static const struct choice pkm_choices[] = {
    ROW_INT(struct pkm, heads, "pkm_heads", 1, 1 << 10, "heads of the product-key memory",
            .scope = SCOPE_LAYER, .setting = true, .tiny = "2"),
    ROW_INT(struct pkm, keys, "pkm_keys", 1, 1 << 12,
            "keys of each half; the memory has their square of values", .scope = SCOPE_LAYER,
            .setting = true, .tiny = "4"),
    ROW_INT(struct pkm, half, "pkm_half", 1, 1 << 14, "width of half a query", .scope = SCOPE_LAYER,
            .setting = true),
    ROW_INT(struct pkm, top, "pkm_top", 1, MOST_TOP, "values that a head takes",
            .scope = SCOPE_LAYER, .setting = true, .tiny = "2|3"),
    ROW_FLAG(struct pkm, ln, "pkm_ln", "1: halves of queries are normed", .scope = SCOPE_LAYER,
             .setting = true, .absent = "0", .tiny = "0|0|1|1"),
    {0},
};

static const struct pkm *pkm_of(const struct config *c) { return config_numbers(c, SLOT_FFN); }

static void pkm_usual(const struct config *c, void *numbers)
{
    *(struct pkm *)numbers =
        (struct pkm){.heads = 4, .keys = 128, .half = max_int(1, c->D / 4), .top = 32};
}

static enum status pkm_check(const struct config *c, const void *numbers, struct err *e)
{
    const struct pkm *const k = numbers;

    if (k->top > k->keys)
        return fail(e, E_USAGE, "%s: pkm_top %d of %d keys  -> use at most %d", c->variant->name,
                    k->top, k->keys, k->keys);
    return OK;
}

static const struct part_numbers pkm_numbers = {pkm_choices, .size = NUMBERS_SIZE(struct pkm),
                                                .check = pkm_check, .usual = pkm_usual};

/* ---- parameters and work space ------------------------------------------------------------ */

struct tensors {
    const struct param *query, *bias, *ln, *keys, *values; /* bias, ln may be NULL */
};

static struct tensors tensors_of(const struct config *c, const struct param *w)
{
    struct tensors t = {.query = w++};

    t.bias = c->ffn_bias ? w++ : NULL;
    t.ln = pkm_of(c)->ln ? w : NULL;
    w += pkm_of(c)->ln ? 2 : 0;
    t.keys = w++;
    t.values = w;
    return t;
}

/* Halves of queries in a row. */
static int halves(const struct config *c) { return 2 * pkm_of(c)->heads; }
static int query_width(const struct config *c) { return halves(c) * pkm_of(c)->half; }

static void pkm_params(const struct config *c, const char *prefix, struct params *p)
{
    const struct pkm *const k = pkm_of(c);

    params_map(p, query_width(c), c->D, prefix, "pkm.query.weight");
    if (c->ffn_bias)
        params_vector(p, INIT_ZERO, 0, query_width(c), prefix, "pkm.query.bias");
    if (k->ln) {
        params_vector(p, INIT_ONE, 0, k->half, prefix, "pkm.ln.weight");
        params_vector(p, INIT_ZERO, 0, k->half, prefix, "pkm.ln.bias");
    }
    params_chooses(p, params_add(p, INIT_EMBED, 0, 4, (const int[]){k->heads, 2, k->keys, k->half},
                                 "%spkm.keys", prefix));
    params_residual(
        p, params_narrows(p, params_add(p, INIT_EMBED, 0, 2, (const int[]){k->keys * k->keys, c->D},
                                        "%spkm.values", prefix)));
}

/* For backward: q before and after its norm (the same without one), scores of all keys, and of the
 * chosen values their row, their softmax, and that after dropout. */
struct pkm_work {
    float *raw, *q;   /* [rows, heads, 2, half] */
    float *s;         /* [rows, heads, 2, keys] */
    int32_t *index;   /* [rows, heads, top] best first */
    float *p, *taken; /* [rows, heads, top] */
    size_t n;         /* floats in all */
};

static struct pkm_work work_at(const struct config *c, int rows, const float *work)
{
    const struct pkm *const k = pkm_of(c);
    const size_t n = (size_t)rows, picks = n * (size_t)k->heads * (size_t)k->top;
    const size_t queries = n * (size_t)query_width(c);
    const size_t s = 2 * queries, index = s + n * (size_t)(halves(c) * k->keys);
    float *const at = (float *)work;

    return (struct pkm_work){.raw = at,
                             .q = k->ln ? at + queries : at,
                             .s = at + s,
                             .index = (int32_t *)(at + index),
                             .p = at + index + picks,
                             .taken = at + index + 2 * picks,
                             .n = index + 3 * picks};
}

static size_t pkm_work(const struct config *c, int rows, bool keep)
{
    static const float nothing;

    return work_at(c, rows, &nothing).n;
}

static size_t pkm_work_grad(const struct config *c, int rows)
{
    const struct pkm *const k = pkm_of(c);
    const size_t row = (size_t)query_width(c) + (size_t)halves(c) * (size_t)k->keys +
                       (size_t)k->heads * (size_t)k->top;

    return (size_t)rows * (row + (k->ln ? NORM_STATS * (size_t)halves(c) : 0));
}

/* Products, and each chosen value once. */
static double pkm_flop(const struct config *c, int rows)
{
    const struct pkm *const k = pkm_of(c);

    return 2.0 * rows *
           ((double)c->D * query_width(c) + (double)query_width(c) * k->keys +
            (double)k->heads * k->top * c->D);
}

/* ---- the choice --------------------------------------------------------------------------- */

struct best {
    int n, most;
    float score[MOST_TOP];
    int32_t at[MOST_TOP];
};

/* Candidates come in the order of their indices. */
static void offer(struct best *b, float score, int32_t at)
{
    int i = b->n < b->most ? b->n++ : score > b->score[b->n - 1] ? b->n - 1 : -1;

    if (i < 0)
        return;
    for (; i > 0 && score > b->score[i - 1]; i--) {
        b->score[i] = b->score[i - 1];
        b->at[i] = b->at[i - 1];
    }
    b->score[i] = score;
    b->at[i] = at;
}

/* Of the pairs of the best of both halves, the a-th and b-th, (a+1) (b+1) - 1 are no worse and come
 * before: the rest of the pairs need not be looked at. */
static void choose(const struct pkm *k, const float *s, int32_t *index, float *score)
{
    struct best half[2] = {{.most = k->top}, {.most = k->top}}, both = {.most = k->top};

    for (int h = 0; h < 2; h++)
        for (int j = 0; j < k->keys; j++)
            offer(&half[h], s[h * k->keys + j], j);
    for (int a = 0; a < k->top; a++)
        for (int b = 0; (a + 1) * (b + 1) <= k->top; b++)
            offer(&both, half[0].score[a] + half[1].score[b],
                  half[0].at[a] * k->keys + half[1].at[b]);
    memcpy(index, both.at, sizeof(*index) * (size_t)k->top);
    memcpy(score, both.score, sizeof(*score) * (size_t)k->top);
}

static int team(const struct engine *g, const struct config *c, int rows)
{
    enum { PARALLEL_MIN = 1 << 12 }; /* chosen values */

    return (ptrdiff_t)rows * pkm_of(c)->heads * pkm_of(c)->top > PARALLEL_MIN ? g->threads : 1;
}

/* ---- forward ------------------------------------------------------------------------------ */

/* Half a query of all rows by its keys, and the two backward products of that. */
static struct gemm key_product(const struct engine *g, const struct config *c,
                               const struct tensors *t, const struct pkm_work *w, int half,
                               int rows)
{
    const struct pkm *const k = pkm_of(c);
    NEED(t->keys);
    const struct param keys = param_rows(t->keys, (ptrdiff_t)half * k->keys, k->keys);
    struct gemm p = mm_of(g, NT, rows, k->keys, k->half, 1, w->q + (ptrdiff_t)half * k->half,
                          query_width(c), keys.data, k->half, 0, w->s + (ptrdiff_t)half * k->keys,
                          (ptrdiff_t)halves(c) * k->keys);

    linear_narrow(&p, &keys);
    return p;
}

static void ask(const struct engine *g, const struct config *c, const struct tensors *t,
                const struct pkm_work *w, const float *x, int rows)
{
    linear_forward(g, t->query, t->bias, w->raw, x, rows, (struct act){.y = w->raw});
    if (t->ln)
        layer_norm(g, t->ln, w->q, w->raw, rows * halves(c), pkm_of(c)->half, LN_EPS);
    for (int half = 0; half < halves(c); half++) {
        const struct gemm product = key_product(g, c, t, w, half, rows);
        g->ops.gemm(&product);
    }
}

/* to += by * row `row` of the values, widened a part at a time. */
static void add_value(float *to, float by, const struct param *values, ptrdiff_t row)
{
    enum { PART = 2 * Q8_BLOCK }; /* widened at a time */
    const int n = values->shape[1];
    const size_t bytes = elem_row_bytes(values->elem, n);
    float part[PART];

    for (int first = 0; first < n; first += PART) {
        const int end = min_int(PART, n - first);
        const float *value = part;
        if (values->elem == ELEM_F32)
            value = values->data + row * n + first;
        else
            elem_widen(values->elem, part, (const char *)values->narrow + (size_t)row * bytes,
                       first, end);
        add_in_lanes(to + first, by, value, end);
    }
}

static void read_values(const struct engine *g, const struct config *c, const struct tensors *t,
                        const struct pkm_work *w, float *y, int rows)
{
    const ptrdiff_t picks = (ptrdiff_t)pkm_of(c)->heads * pkm_of(c)->top, D = c->D;

#pragma omp parallel for num_threads(team(g, c, rows))
    for (int i = 0; i < rows; i++) {
        float *const to = y + i * D;
        memset(to, 0, sizeof(*to) * (size_t)D);
        for (ptrdiff_t at = i * picks; at < (i + 1) * picks; at++)
            add_value(to, w->taken[at], t->values, w->index[at]);
    }
}

static void pkm_forward(const struct engine *g, const struct config *c, const struct param *param,
                        float *y, const float *x, int rows, float *work, bool keep,
                        struct act epilogue, const struct dropout *drop)
{
    const struct pkm *const k = pkm_of(c);
    const struct tensors t = tensors_of(c, param);
    const struct pkm_work w = work_at(c, rows, work);
    const size_t picks = (size_t)rows * (size_t)(k->heads * k->top);

    ask(g, c, &t, &w, x, rows);
#pragma omp parallel for num_threads(team(g, c, rows))
    for (int i = 0; i < rows * k->heads; i++)
        choose(k, w.s + (ptrdiff_t)i * 2 * k->keys, w.index + (ptrdiff_t)i * k->top,
               w.p + (ptrdiff_t)i * k->top);
    rows_softmax(g, w.p, rows * k->heads, k->top);
    memcpy(w.taken, w.p, picks * sizeof(float));
    dropout(drop, DROP_HIDDEN, w.taken, picks, g->threads);
    read_values(g, c, &t, &w, y, rows);
    linear_epilogue(g, epilogue, y, rows, c->D);
}

/* ---- backward ----------------------------------------------------------------------------- */

/* d_p = d_y . value, and the gradient of the values: by columns, so that its sums do not depend on
 * the number of threads. */
static void values_grad(const struct engine *g, const struct config *c, const struct tensors *t,
                        const struct pkm_work *w, float *d_p, const float *d_y, int rows)
{
    enum { COLUMNS = 64 };
    const ptrdiff_t picks = (ptrdiff_t)pkm_of(c)->heads * pkm_of(c)->top, D = c->D;

#pragma omp parallel for num_threads(team(g, c, rows))
    for (int i = 0; i < rows; i++)
        for (ptrdiff_t at = i * picks; at < (i + 1) * picks; at++) {
            const float *const value = t->values->data + w->index[at] * D;
            d_p[at] = dot_in_lanes(d_y + i * D, value, c->D);
        }
#pragma omp parallel for num_threads(team(g, c, rows))
    for (int first = 0; first < c->D; first += COLUMNS)
        for (ptrdiff_t at = 0; at < rows * picks; at++) {
            const float *const from = d_y + at / picks * D;
            float *const to = t->values->grad + w->index[at] * D;
            add_in_lanes(to + first, w->taken[at], from + first, min_int(COLUMNS, c->D - first));
        }
}

/* d_s [rows, heads, 2, keys] from the gradients of the sums. */
static void scores_grad(const struct engine *g, const struct config *c, const struct pkm_work *w,
                        float *d_s, const float *d_p, int rows)
{
    const struct pkm *const k = pkm_of(c);

#pragma omp parallel for num_threads(team(g, c, rows))
    for (int i = 0; i < rows * k->heads; i++) {
        float *const to = d_s + (ptrdiff_t)i * 2 * k->keys;
        memset(to, 0, sizeof(*to) * (size_t)(2 * k->keys));
        for (ptrdiff_t at = (ptrdiff_t)i * k->top; at < (ptrdiff_t)(i + 1) * k->top; at++) {
            to[w->index[at] / k->keys] += d_p[at];
            to[k->keys + w->index[at] % k->keys] += d_p[at];
        }
    }
}

/* From d_s to d_q and the gradient of the keys. */
static void keys_grad(const struct engine *g, const struct config *c, const struct tensors *t,
                      const struct pkm_work *w, float *d_q, float *d_s, int rows)
{
    const struct pkm *const k = pkm_of(c);

    for (int half = 0; half < halves(c); half++) {
        const struct gemm of = key_product(g, c, t, w, half, rows);
        struct gemm d = of;
        d.tb = false;
        d.n = k->half;
        d.k = k->keys;
        d.a = d_s + (ptrdiff_t)half * k->keys;
        d.lda = of.ldc;
        d.c = d_q + (ptrdiff_t)half * k->half;
        d.ldc = of.lda;
        g->ops.gemm(&d);
        mm(g, TN, k->keys, k->half, rows, 1, d_s + (ptrdiff_t)half * k->keys, of.ldc, of.a, of.lda,
           1, t->keys->grad + (ptrdiff_t)half * k->keys * k->half, k->half);
    }
}

static void pkm_backward(const struct engine *g, const struct config *c, const struct param *param,
                         float *d_x, const float *d_y, const float *x, int rows, const float *work,
                         float *grad_work, const struct dropout *drop)
{
    const struct pkm *const k = pkm_of(c);
    const struct tensors t = tensors_of(c, param);
    const struct pkm_work w = work_at(c, rows, work);
    float *const d_q = grad_work, *const d_s = d_q + (ptrdiff_t)rows * query_width(c);
    float *const d_p = d_s + (ptrdiff_t)rows * halves(c) * k->keys;
    float *const stats = d_p + (ptrdiff_t)rows * k->heads * k->top;

    values_grad(g, c, &t, &w, d_p, d_y, rows);
    dropout(drop, DROP_HIDDEN, d_p, (size_t)rows * (size_t)(k->heads * k->top), g->threads);
    rows_softmax_grad(g, d_p, w.p, rows * k->heads, k->top);
    scores_grad(g, c, &w, d_s, d_p, rows);
    keys_grad(g, c, &t, &w, d_q, d_s, rows);
    if (t.ln)
        layer_norm_grad(g, t.ln, d_q, d_q, w.raw, stats, rows * halves(c), k->half, LN_EPS);
    linear_backward(g, t.query, t.bias, d_x, d_q, x, rows, 0);
}

static struct ffn_choice pkm_chose(const struct config *c, int rows, const float *work)
{
    return (struct ffn_choice){"out.index", work_at(c, rows, work).index,
                               (size_t)rows * (size_t)(pkm_of(c)->heads * pkm_of(c)->top)};
}

const struct ffn ffn_pkm = {
    .name = "pkm",
    .numbers = &pkm_numbers,
    .no_hidden = true,
    .params = pkm_params,
    .flop = pkm_flop,
    .work = pkm_work,
    .work_grad = pkm_work_grad,
    .forward = pkm_forward,
    .backward = pkm_backward,
    .chose = pkm_chose,
};
