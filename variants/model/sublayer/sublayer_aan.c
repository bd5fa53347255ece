/* SPDX-License-Identifier: MIT
 *
 * Average attention as a kind of sub-layer: the mean of all rows so far, a feed-forward network of
 * it, and a gate between that and the row itself:
 *
 *   mu_t   = (sum + x_0 + .. + x_t) / (count + t + 1)
 *   g      = W_2 relu(W_1 mu + b_1) + b_2
 *   [i; f] = sigma(W [x; g] + b)
 *   f(x)   = i (.) x + f (.) g
 *
 * Its memory is the sum and the number of committed rows. */
#include "sublayer_aan.h"
#include "variants/base/loops.h"
#include "variants/parts/linear.h"

#include <string.h>

static void aan_params(const struct sublayer *s, const char *prefix, const char *ff,
                       struct params *p)
{
    const struct config *const c = s->c;

    (void)ff;
    params_matrix(p, c->F, c->D, prefix, "aan.ff.1.weight");
    params_vector(p, INIT_ZERO, 0, c->F, prefix, "aan.ff.1.bias");
    params_residual(p, params_matrix(p, c->D, c->F, prefix, "aan.ff.2.weight"));
    params_vector(p, INIT_ZERO, 0, c->D, prefix, "aan.ff.2.bias");
    params_matrix(p, 2 * c->D, 2 * c->D, prefix, "aan.gate.weight");
    params_vector(p, INIT_ZERO, 0, 2 * c->D, prefix, "aan.gate.bias");
}

static int aan_keeps(const struct config *c, enum mem_kind mem, int M)
{
    (void)c, (void)mem, (void)M;
    return -1;
}

/* ---- binding ------------------------------------------------------------------------------ */

static size_t sum_floats(const struct sublayer *s)
{
    return (size_t)s->of.average.B * (size_t)s->c->D;
}

static void aan_forget(struct sublayer *s)
{
    if (!aan_goes_on(s))
        return;
    memset(s->of.average.sum, 0, sum_floats(s) * sizeof(float));
    s->of.average.count[0] = s->of.average.count[1] = 0;
}

static enum status aan_bind(struct sublayer *s, const struct engine *g, struct extent max,
                            struct arena *a, struct err *e)
{
    struct average_memory *t = &s->of.average;

    if (s->mem == MEM_HIDDEN || s->mem == MEM_KV)
        return fail(e, E_UNSUPPORTED, "%s keeps no past rows, only their sum  -> --mem-kind state",
                    g->backend->name);
    *t = (struct average_memory){.B = max.B};
    if (aan_goes_on(s)) {
        t->sum = arena_f32(a, PART_MEMORY, sum_floats(s));
        t->count = arena_f32(a, PART_MEMORY, 2);
        t->sum_next = arena_f32(a, PART_SCRATCH, sum_floats(s));
    }
    if (a->base)
        aan_forget(s);
    return OK;
}

static void aan_arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const size_t rows = (size_t)max.B * (size_t)max.L, D = (size_t)s->c->D;
    const size_t n[AAN_ARRAYS] = {[AAN_MU] = rows * D,
                                  [AAN_HIDDEN] = rows * (size_t)s->c->F,
                                  [AAN_G] = rows * D,
                                  [AAN_GATES] = rows * 2 * D};

    for (int i = 0; i < AAN_ARRAYS; i++)
        out[i] = (struct array){n[i], n[i], false, PART_ACTIVATIONS};
}

static void aan_arrays_grad(const struct sublayer *s, struct extent max,
                            struct array out[SUB_ARRAYS])
{
    aan_arrays(s, max, out);
    for (int i = 0; i < AAN_ARRAYS; i++) {
        out[i].n = 0;
        out[i].shared = true;
    }
}

/* ---- means -------------------------------------------------------------------------------- */

enum { COLUMNS = 64, COUNT_LOW = 1 << 20 }; /* columns summed together, in double */

/* The count as two floats, because one would round from 2^24 on. */
double aan_counted(const struct sublayer *s)
{
    const float *count = s->of.average.count;

    return aan_goes_on(s) ? (double)count[0] * COUNT_LOW + (double)count[1] : 0;
}

void aan_count_from(struct sublayer *s, int64_t n)
{
    s->of.average.count[0] = (float)(n / COUNT_LOW);
    s->of.average.count[1] = (float)(n % COUNT_LOW);
}

/* Sums of columns [e, e+n) of sequence b and, if mu is given, the means of its rows. */
static void sum_columns(const struct sublayer *s, float *mu, struct sublayer_input from, int b,
                        int e, int n)
{
    const struct average_memory *t = &s->of.average;
    const ptrdiff_t D = s->c->D;
    const double count = aan_counted(s);
    double sum[COLUMNS];

    for (int k = 0; k < n; k++)
        sum[k] = aan_goes_on(s) ? (double)t->sum[b * D + e + k] : 0;
    for (int i = 0; i < from.L; i++) {
        const float *x = from.at.at + b * from.at.stride + i * D + e;
        const double share = 1 / (count + i + 1);
        for (int k = 0; k < n; k++)
            sum[k] += (double)x[k];
        for (int k = 0; mu && k < n; k++)
            mu[((ptrdiff_t)b * from.L + i) * D + e + k] = (float)(sum[k] * share);
    }
    for (int k = 0; aan_goes_on(s) && k < n; k++)
        t->sum_next[b * D + e + k] = (float)sum[k];
}

static int team(const struct engine *g, const struct sublayer *s, struct sublayer_input from)
{
    return team_for(g->threads, (double)from.B * from.L * s->c->D);
}

static void sum_rows(const struct engine *g, const struct sublayer *s, float *mu,
                     struct sublayer_input from)
{
    const int strips = (s->c->D + COLUMNS - 1) / COLUMNS;

#pragma omp parallel for collapse(2) num_threads(team(g, s, from))
    for (int b = 0; b < from.B; b++)
        for (int strip = 0; strip < strips; strip++)
            sum_columns(s, mu, from, b, strip * COLUMNS,
                        min_int(COLUMNS, s->c->D - strip * COLUMNS));
}

/* ---- gates -------------------------------------------------------------------------------- */

/* The product of the gate's left or right half with rows of width D. */
static struct gemm half_product(const struct engine *g, const struct sublayer *s, float *sides,
                                const float *x, int rows, int half)
{
    const int D = s->c->D;

    return mm_of(g, NT, rows, 2 * D, D, 1, x, D, s->own[AAN_GATE].data + half * D, 2 * D,
                 half ? 1 : 0, sides, 2 * D);
}

static void gates_forward(const struct engine *g, const struct sublayer *s, const struct work *w,
                          const float *x, int rows)
{
    float *const sides = w->own[AAN_GATES];

    for (int half = 0; half < 2; half++) {
        const struct gemm p = half_product(g, s, sides, half ? w->own[AAN_G] : x, rows, half);
        g->ops.gemm(&p);
    }
    g->ops.act(&(struct act){.kind = ACT_SIGMOID,
                             .y = sides,
                             .x = sides,
                             .bias = s->own[AAN_GATE_BIAS].data,
                             .rows = rows,
                             .n = 2 * s->c->D,
                             .threads = g->threads});
}

/* y = i (.) x + f (.) g */
static void blend(float *y, const float *sides, const float *x, const float *of_mean, int D)
{
#pragma omp simd
    for (int e = 0; e < D; e++)
        y[e] = sides[e] * x[e] + sides[D + e] * of_mean[e];
}

static void aan_forward(const struct engine *g, struct sublayer *s, struct work *w,
                        struct sublayer_input from, struct act epilogue)
{
    const ptrdiff_t D = s->c->D;
    const int rows = from.B * from.L;
    const struct param *const p = s->own;
    float *const hidden = w->own[AAN_HIDDEN], *const of_mean = w->own[AAN_G];
    const float *x = from.at.at;

    sum_rows(g, s, w->own[AAN_MU], from);
    linear_forward(g, &p[AAN_W1], &p[AAN_B1], hidden, w->own[AAN_MU], rows,
                   (struct act){.kind = ACT_RELU, .y = hidden});
    linear_forward(g, &p[AAN_W2], &p[AAN_B2], of_mean, hidden, rows, (struct act){.y = of_mean});
    gates_forward(g, s, w, x, rows);
    for (ptrdiff_t r = 0; r < rows; r++)
        blend(w->y + r * D, w->own[AAN_GATES] + 2 * r * D, x + r * D, of_mean + r * D, (int)D);
    epilogue.x = w->y;
    epilogue.rows = rows;
    epilogue.n = (int)D;
    epilogue.threads = g->threads;
    if (epilogue.kind != ACT_NONE || epilogue.add || epilogue.y != w->y)
        g->ops.act(&epilogue);
}

/* ---- memory and cost ---------------------------------------------------------------------- */

static void aan_remember(const struct engine *g, struct sublayer *s, struct work *w,
                         struct sublayer_input from)
{
    CHECK(w && aan_goes_on(s));
    sum_rows(g, s, NULL, from);
}

static void aan_commit(struct sublayer *s, int L)
{
    struct average_memory *t = &s->of.average;
    float *const old = t->sum;

    if (!aan_goes_on(s))
        return;
    t->sum = t->sum_next;
    t->sum_next = old;
    aan_count_from(s, (int64_t)aan_counted(s) + L);
}

static bool aan_carries(const struct sublayer *s, int i, struct carried *out)
{
    const struct carried all[] = {
        {"sum", s->of.average.sum, aan_goes_on(s) ? sum_floats(s) : 0, false, false},
        {"count", s->of.average.count, aan_goes_on(s) ? 2 : 0, false, true},
    };

    if (i >= (int)ARRAY_LEN(all))
        return false;
    *out = all[i];
    return true;
}

static double aan_flop(const struct sublayer *s, int B, int L, int M)
{
    const double rows = (double)B * L, D = s->c->D;

    (void)M;
    return 4 * rows * D * s->c->F + 8 * rows * D * D;
}

static double aan_grad_flop(const struct sublayer *s, int B, int L, int M)
{
    return 2 * aan_flop(s, B, L, M);
}

static void aan_impl(const struct sublayer *s, const char **forward, const char **backward)
{
    (void)s;
    *forward = "average"; /* the only one; it calls no attention */
    *backward = NULL;
}

const struct sublayer_kind sublayer_aan = {
    .name = "aan",
    .mixes = true,
    .place = DROP_ATTENTION,
    .params = aan_params,
    .keeps = aan_keeps,
    .bind = aan_bind,
    .arrays = aan_arrays,
    .arrays_grad = aan_arrays_grad,
    .forward = aan_forward,
    .backward = aan_backward,
    .remember = aan_remember,
    .commit = aan_commit,
    .forget = aan_forget,
    .carries = aan_carries,
    .flop = aan_flop,
    .grad_flop = aan_grad_flop,
    .impl = aan_impl,
};
