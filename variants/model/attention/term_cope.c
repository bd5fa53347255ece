/* SPDX-License-Identifier: MIT
 *
 * Contextual positions (Golovneva et al. 2024, "Contextual Position Encoding", arXiv:2405.18719).
 * For query i of a head and the keys j that it sees, with n trained vectors e:
 *
 *   g_ij  = sigma(scale q_i . k_j)
 *   p_ij  = min(n - 1, sum over the keys t from j to i: g_it)
 *   s_ij += scale q_i . e[p_ij]                    between two vectors linearly
 *
 * The product with all keys stands beside attention's own and costs as much; what it yields is
 * added to the scores per pair. */
#include "around.h"

enum { X, BY_VECTOR, D_BY_VECTOR }; /* [L,all] and [L,n] of one head; of backward */

struct cope {
    int n; /* positions told apart; 0 = none */
};

static bool on(const struct config *c)
{
    return ((const struct cope *)config_numbers(c, SLOT_term_cope))->n > 0;
}

static const struct choice choices[] = {
    ROW_INT(struct cope, n, "cope", 0, 1 << 16, "vectors that positions lie between", .absent = "0",
            .applies = on, SETTING),
    {0},
};

static const struct part_numbers numbers = {choices, PRESET(struct cope, 64)};

static int vectors(const struct sublayer *s)
{
    return ((const struct cope *)config_numbers(s->c, SLOT_term_cope))->n;
}

static void declare(const struct sublayer *s, const char *prefix, struct params *p)
{
    params_add(p, INIT_OFF, 0, 2, (const int[]){vectors(s), s->c->dh}, "%sattn.cope.weight",
               prefix);
}

static void arrays(const struct sublayer *s, struct around_call n, size_t floats[AROUND_ARRAYS])
{
    const size_t L = (size_t)n.L;

    floats[X] = L * (size_t)n.all;
    floats[BY_VECTOR] = L * (size_t)vectors(s);
    floats[D_BY_VECTOR] = n.backward ? floats[BY_VECTOR] : 0;
}

/* One head of one sequence: its operands, and [L,all] products, [L,n] those with the vectors. */
struct head {
    const struct attn *a;
    const float *q, *k, *e;
    float *x, *by_vector;
    int n, h;
};

static struct head head_of(const struct part_call *t, float *const *at, const struct attn *a, int b,
                           int h)
{
    return (struct head){.a = a,
                         .q = a->q + b * a->q_at.batch + (ptrdiff_t)h * a->dh,
                         .k = a->k + b * a->k_at.batch + (ptrdiff_t)(h / (a->H / a->Hkv)) * a->dh,
                         .e = t->param->data,
                         .x = at[X],
                         .by_vector = at[BY_VECTOR],
                         .n = vectors(t->s),
                         .h = h};
}

/* x = scale q k^T, by_vector = q e^T */
static void products(const struct engine *g, const struct head *t)
{
    const struct attn *a = t->a;
    const int all = attn_keys(a);

    mm(g, NT, a->L, all, a->dh, a->scale, t->q, a->q_at.row, t->k, a->k_at.row, 0, t->x, all);
    mm(g, NT, a->L, t->n, a->dh, 1, t->q, a->q_at.row, t->e, a->dh, 0, t->by_vector, t->n);
}

static double sigma(double x) { return 1 / (1 + exp(-x)); }

/* Position p lies between vectors lo and hi, `part` of the way. */
struct place {
    int lo, hi;
    double part;
};

static struct place place_of(double p, int n)
{
    const double at = fmin(p, n - 1);
    const int lo = (int)at;

    return (struct place){lo, min_int(lo + 1, n - 1), at - lo};
}

static void add_row(const struct head *t, int i, float *add)
{
    const struct sight sight = attn_sight(t->a, t->h);
    const int all = t->a->M + t->a->L;
    const float *const x = t->x + (ptrdiff_t)i * all, *const y = t->by_vector + (ptrdiff_t)i * t->n;
    double p = 0;

    for (int j = all - 1; j >= 0; j--) {
        add[j] = 0;
        if (!sight_visible(&sight, i, j))
            continue;
        p += sigma((double)x[j]);
        const struct place at = place_of(p, t->n);
        add[j] = (float)((double)t->a->scale *
                         ((double)y[at.lo] * (1 - at.part) + (double)y[at.hi] * at.part));
    }
}

static void add(const struct part_call *t, const struct attn *a, struct seq_rows rows)
{
    const int all = t->n.all;

    for (int x = 0; x < a->B * a->H; x++) {
        const struct head head = head_of(t, t->at, a, x / a->H, x % a->H);
        float *const to = t->add + (ptrdiff_t)x * a->L * all;
        products(t->g, &head);
#pragma omp parallel for num_threads(t->g->threads)
        for (int i = 0; i < a->L; i++)
            add_row(&head, i, to + (ptrdiff_t)i * all);
    }
}

/* ---- backward ----------------------------------------------------------------------------- */

/* d [all] from the gradients of what was added to those of positions; t->x from products to their
 * gradients; d_by_vector [n]. */
static void row_grad(const struct head *t, int i, float *d, float *d_by_vector)
{
    const struct sight sight = attn_sight(t->a, t->h);
    const int all = t->a->M + t->a->L;
    const double scale = (double)t->a->scale;
    float *const x = t->x + (ptrdiff_t)i * all;
    const float *const y = t->by_vector + (ptrdiff_t)i * t->n;
    double p = 0, sum = 0;

    memset(d_by_vector, 0, sizeof(float) * (size_t)t->n);
    for (int j = all - 1; j >= 0; j--) {
        if (!sight_visible(&sight, i, j))
            continue;
        p += sigma((double)x[j]);
        const struct place at = place_of(p, t->n);
        const double own = scale * (double)d[j];
        d_by_vector[at.lo] += (float)(own * (1 - at.part));
        d_by_vector[at.hi] += (float)(own * at.part);
        d[j] = p < t->n - 1 ? (float)(own * ((double)y[at.hi] - (double)y[at.lo])) : 0;
    }
    for (int j = 0; j < all; j++) {
        const double gate = sigma((double)x[j]);
        if (sight_visible(&sight, i, j))
            sum += (double)d[j];
        x[j] = sight_visible(&sight, i, j) ? (float)(sum * gate * (1 - gate)) : 0;
    }
}

/* From dX and the gradient of the products with vectors to those of queries, keys and vectors. */
static void operands_grad(const struct engine *g, const struct head *t, const float *d_by_vector,
                          float *d_e, float *d_q, float *d_k)
{
    const struct attn *a = t->a;
    const int all = attn_keys(a);

    mm(g, NN, a->L, a->dh, all, a->scale, t->x, all, t->k, a->k_at.row, 1, d_q, a->q_at.row);
    mm(g, TN, all, a->dh, a->L, a->scale, t->x, all, t->q, a->q_at.row, 1, d_k, a->k_at.row);
    mm(g, NN, a->L, a->dh, t->n, 1, d_by_vector, t->n, t->e, a->dh, 1, d_q, a->q_at.row);
    mm(g, TN, t->n, a->dh, a->L, 1, d_by_vector, t->n, t->q, a->q_at.row, 1, d_e, a->dh);
}

static void add_grad(const struct part_call *t, const struct attn *a, const struct attn_grad *d)
{
    float *const d_by_vector = t->d_at[D_BY_VECTOR];

    for (int x = 0; x < a->B * a->H; x++) {
        const int b = x / a->H, h = x % a->H, kv = h / (a->H / a->Hkv);
        const struct head head = head_of(t, t->d_at, a, b, h);
        float *const d_add = d->d_add + (ptrdiff_t)x * a->L * t->n.all;
        products(t->g, &head);
#pragma omp parallel for num_threads(t->g->threads)
        for (int i = 0; i < a->L; i++)
            row_grad(&head, i, d_add + (ptrdiff_t)i * t->n.all,
                     d_by_vector + (ptrdiff_t)i * head.n);
        operands_grad(t->g, &head, d_by_vector, t->param->grad,
                      d->d_q + b * a->q_at.batch + (ptrdiff_t)h * a->dh,
                      d->d_k + b * a->k_at.batch + (ptrdiff_t)kv * a->dh);
    }
}

static double flop(const struct part_cost *t)
{
    return 2.0 * t->a->B * t->a->dh *
           (around_pairs(t->a) + (double)t->a->H * t->a->L * vectors(t->s));
}

const struct around_part term_cope = {
    .said = "contextual positions",
    .numbers = &numbers,
    /* they count towards the past, and scores have one set of positions */
    .excludes = EXCLUDES(HAS_FUTURE, HAS_TABLES, HAS_ROTATED, HAS_EXTRA),
    .reads_cache = true,
    .params = declare,
    .arrays = arrays,
    .flop = flop,
    .term = {.added = ADDS_TO_PAIRS, .add = add, .add_grad = add_grad},
};
