/* SPDX-License-Identifier: MIT
 *
 * For tests of feed-forward networks: one with its parameters and work space in an arena that
 * starts as NaN, run forward and backward by any backend, and its sum of y (.) d_y plus the
 * weighted auxiliary loss as a number to differentiate. */
#pragma once

#include "attn_case.h"
#include "tests/support/every_backend.h"
#include "tests/support/gradients.h"
#include "tests/support/in_double.h"
#include "tests/support/model.h"
#include "variants/parts/ffn/moe.h"

struct ffn_case {
    struct engine g;
    const struct config *c;
    int rows;
    struct params p;
    struct arena a;
    float *x, *d_y, *y, *d_x; /* [rows,D] */
    float *work, *more;
    struct dropout drop;
    int32_t *
        chosen; /* what each row chose, which no step of a difference may change; NULL = anything */
};

static inline struct config ffn_config(const struct ffn *ffn, int D, int F)
{
    struct config c = config_default(variants[0], D, 1, D, F, 1, 9);

    c.ffn = ffn;
    config_numbers_reset(&c);
    return c;
}

static inline void ffn_bind(struct ffn_case *t)
{
    const size_t n = (size_t)t->rows * (size_t)t->c->D;

    params_place(&t->p, &t->a);
    params_place_grad(&t->p, &t->a);
    t->x = arena_f32(&t->a, PART_ACTIVATIONS, n), t->d_y = arena_f32(&t->a, PART_ACTIVATIONS, n);
    t->y = arena_f32(&t->a, PART_ACTIVATIONS, n), t->d_x = arena_f32(&t->a, PART_ACTIVATIONS, n);
    t->work = arena_f32(&t->a, PART_ACTIVATIONS, t->c->ffn->work(t->c, t->rows, true));
    t->more = arena_f32(&t->a, PART_SCRATCH, t->c->ffn->work_grad(t->c, t->rows));
    params_place_packed(&t->p, &t->g, t->rows, &t->a);
}

/* Weights from the seed, then adapted to finite differences: on a grid, and where `corners` is set
 * the arguments of the activation stay near biases of +1 and -1, half of them off. */
static inline void ffn_open(struct ffn_case *t, const struct config *c, const char *backend,
                            int threads, int rows, bool corners)
{
    const size_t n = (size_t)rows * (size_t)c->D;

    *t = (struct ffn_case){.g = open_engine(backend, threads), .c = c, .rows = rows};
    c->ffn->params(c, "ff.", &t->p);
    ffn_bind(t);
    cr_assert_eq(arena_place(&t->a, HUGE_NEVER, NULL, NULL, NULL), OK);
    memset(t->a.base, 0xff, t->a.size);
    ffn_bind(t);
    params_init(&t->p, SEED, 1);
    kept_copy(t, sizeof(*t));
    for (struct param *w = t->p.v; w < t->p.v + t->p.n; w++) {
        const bool first = strstr(w->name, "1.weight") || strstr(w->name, "g.weight");
        for (size_t e = 0; corners && e < w->n; e++) {
            if (first)
                w->data[e] *= 0.1f;
            else if (strstr(w->name, "1.bias") || strstr(w->name, "g.bias"))
                w->data[e] = e % 2 ? 1 : -1;
        }
        if (w->buffer)
            continue;
        if (strstr(w->name, "router"))
            for (size_t e = 0; e < w->n; e++)
                w->data[e] *= 3; /* clear preferences */
        quantise(w->data, w->n);
    }
    params_pack(&t->p, &t->g);
    rng_normal(t->x, n, SEED, rng_stream("x"), 0, 1);
    rng_normal(t->d_y, n, SEED, rng_stream("d_y"), 0, 1);
    quantise(t->x, n);
}

/* The token of row i, where these matter. */
static inline int32_t ffn_token(const struct ffn_case *t, int i)
{
    return (int32_t)((i * 5 + 2) % t->c->V);
}

static inline void ffn_read_tokens(struct ffn_case *t)
{
    int32_t *const tokens = kept(need_room((size_t)t->rows, sizeof(*tokens)));

    for (int i = 0; i < t->rows; i++)
        tokens[i] = ffn_token(t, i);
    if (t->c->ffn->read_tokens)
        t->c->ffn->read_tokens(t->c, t->p.v, tokens, t->rows, t->work);
}

static inline void ffn_forward(struct ffn_case *t, bool keep)
{
    ffn_read_tokens(t);
    t->c->ffn->forward(&t->g, t->c, t->p.v, t->y, t->x, t->rows, t->work, keep,
                       (struct act){.y = t->y}, &t->drop);
}

static inline void ffn_backward(struct ffn_case *t)
{
    params_zero_grad(&t->p);
    t->c->ffn->backward(&t->g, t->c, t->p.v, t->d_x, t->d_y, t->x, t->rows, t->work, t->more,
                        &t->drop);
}

static inline int ffn_ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

/* What the last forward pass chose, row by row; their order within a row does not matter. */
static inline int32_t *ffn_chosen(const struct ffn_case *t, size_t *n)
{
    const struct ffn_choice chose = t->c->ffn->chose(t->c, t->rows, t->work);
    const size_t rows = (size_t)t->rows, each = chose.n / rows;
    int32_t *const all = kept(need_room(chose.n, sizeof(*all)));

    memcpy(all, chose.at, chose.n * sizeof(*all));
    for (size_t i = 0; i < rows; i++)
        qsort(all + i * each, each, sizeof(*all), ffn_ascending);
    *n = chose.n;
    return all;
}

static inline double ffn_value(void *ctx)
{
    struct ffn_case *t = ctx;
    double sum = 0;
    size_t n;

    ffn_forward(t, true);
    if (t->chosen) {
        int32_t *const now = ffn_chosen(t, &n);
        cr_assert_arr_eq(now, t->chosen, n * sizeof(*now), "a step changes a choice");
    }
    for (int i = 0; i < t->rows * t->c->D; i++)
        sum += (double)t->y[i] * (double)t->d_y[i];
    if (t->c->ffn->aux)
        sum += (double)moe_of(t->c)->aux_coef * t->c->ffn->aux(t->c, t->rows, t->work);
    return sum;
}

/* Every gradient of the reference. The value is a sum of rows D products, some 2 in size, whose
 * factors went through two products and an activation: their errors, 8 U of it, are not of one
 * sign. A gradient goes through as many steps and is a sum over rows. */
static inline void ffn_differentiate(struct ffn_case *t, const char *what, double step)
{
    const size_t n = (size_t)t->rows * (size_t)t->c->D;
    const struct scalar f = {ffn_value, t, 8 * U * 2 * sqrt((double)n), step};
    size_t n_chosen;

    ffn_forward(t, true);
    t->chosen = t->c->ffn->chose ? ffn_chosen(t, &n_chosen) : NULL;
    ffn_backward(t);
    expect_gradient(&f, what, t->x, copied(t->d_x, n), n, 64 * U, 2 * f.noise / f.step);
    expect_gradients(&f, what, &t->p, 64 * U, 2 * f.noise / f.step);
    t->chosen = NULL;
}

/* The rule of a case, where zeros must match zeros. */
static inline double ffn_error(const float *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (want[i] != 0)
            return case_error(got, want, n);
    for (size_t i = 0; i < n; i++)
        if (got[i] != 0)
            return INFINITY;
    return 0;
}

/* y and every gradient of `backend` against the reference's, by the rule of a case. */
static inline void ffn_compare(const struct config *c, const char *backend, int threads, int rows,
                               float drop)
{
    struct ffn_case got, want;

    ffn_open(&got, c, backend, threads, rows, false);
    ffn_open(&want, c, "ref", 1, rows, false);
    got.drop = want.drop = (struct dropout){.p = drop, .seed = SEED, .step = 3};
    ffn_forward(&got, true), ffn_backward(&got);
    ffn_forward(&want, true), ffn_backward(&want);
    const size_t n = (size_t)(rows * c->D);
    cr_expect_lt(ffn_error(got.y, want.y, n), 1, "%s, %s: y", backend, c->ffn->name);
    cr_expect_lt(ffn_error(got.d_x, want.d_x, n), 1, "%s, %s: d_x %g", backend, c->ffn->name,
                 ffn_error(got.d_x, want.d_x, n));
    for (int i = 0; i < got.p.n; i++)
        cr_expect_lt(ffn_error(got.p.v[i].grad, want.p.v[i].grad, got.p.v[i].n), 1, "%s, %s: %s",
                     backend, c->ffn->name, got.p.v[i].name);
}

/* The parameter of this name in double; 0 if the model has none. */
static inline double ffn_at(const struct ffn_case *t, const char *name, size_t i)
{
    const struct param *w = params_find(&t->p, name);

    return w ? (double)w->data[i] : 0;
}

/* Row `row` of the map of this name times x, and its bias. */
static inline double ffn_map(const struct ffn_case *t, const char *map, int row, const double *x,
                             int n)
{
    double sum;

    sum = ffn_at(t, kept_text("%s.bias", map), (size_t)row);
    const char *const name = kept_text("%s.weight", map);
    for (int e = 0; e < n; e++)
        sum += ffn_at(t, name, (size_t)(row * n + e)) * x[e];
    return sum;
}

/* The curve of an activation, or of a network of this name. */
static inline double ffn_curve(const char *kind, double x, double beta)
{
    if (strcmp(kind, "relu") == 0 || strcmp(kind, "reglu") == 0)
        return x > 0 ? x : 0;
    if (strcmp(kind, "gelu") == 0 || strcmp(kind, "geglu") == 0)
        return x * (1 + erf(x / sqrt(2))) / 2;
    if (strcmp(kind, "gelu_tanh") == 0 || strcmp(kind, "geglu_tanh") == 0)
        return x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) / 2;
    if (strncmp(kind, "swi", 3) == 0)
        return x * sigma(beta * x);
    return strcmp(kind, "glu") == 0 ? sigma(x) : x;
}
