/* SPDX-License-Identifier: MIT
 *
 * For tests of every member of the library's structs: numbers to pass, a table in which no member may
 * lack a row, and gradients as differences of what the judge (library_judge.h) computes. */
#pragma once

#include "harness/check/guarded.h"
#include "library.h"
#include "library_judge.h"

/* Bytes of a struct that have a row; it must have no padding. */
struct rows_of_struct {
    bool has[512];
};

static inline void row_of(struct rows_of_struct *r, size_t at, size_t bytes)
{
    memset(r->has + at, 1, bytes);
}

/* A member that is added to the header needs a row. */
static inline void expect_rows(const struct rows_of_struct *r, size_t bytes, const char *name)
{
    for (size_t i = 0; i < bytes; i++)
        cr_assert(r->has[i], "no row tests the member of struct %s at byte %zu", name, i);
}

enum { OUT = 4096, PARTS = 5 };

/* What a call wrote, in arrays that are GUARD_VALUE where it wrote nothing. */
struct written {
    float at[PARTS][OUT];
};

static inline void nothing_written(struct written *w)
{
    for (int p = 0; p < PARTS; p++)
        for (int i = 0; i < OUT; i++)
            w->at[p][i] = GUARD_VALUE;
}

/* Operands are at most 1, and no result sums more than 400 of their products: 400 U = 2.4e-5 of its
 * size, four times that with exp and tanh. */
#define MEMBER_BOUND 1e-4

static inline double difference(const struct written *x, const struct written *y)
{
    double most = 0;

    for (int p = 0; p < PARTS; p++)
        for (int i = 0; i < OUT; i++)
            if (x->at[p][i] != y->at[p][i])
                most = fmax(most, fabs((double)x->at[p][i] - (double)y->at[p][i]) /
                                      (1 + fabs((double)x->at[p][i])));
    return most;
}

/* `want` is NAN where nothing may be written. */
static inline void expect_written(const float *got, const double *want, const char *what)
{
    for (int i = 0; i < OUT; i++)
        if (isnan(want[i]))
            cr_assert_eq(got[i], GUARD_VALUE, "%s: %d is written", what, i);
        else
            cr_assert(got[i] == want[i] ||
                          fabs((double)got[i] - want[i]) <= MEMBER_BOUND * (1 + fabs(want[i])),
                      "%s: %d is %g, not %g", what, i, (double)got[i], want[i]);
}

/* An operand and its gradient, of doubles where `wide`. What is added to began with `start`; where
 * what is overwritten has GUARD_VALUE, no number of the operand lies. */
struct differed {
    const char *name;
    void *x;
    const void *d;
    int n;
    bool wide, added;
};
#define START 0.25

typedef double loss_fn(const void *call);

static inline double nudged(const struct differed *o, int i, double by, loss_fn *loss,
                            const void *call, double *at)
{
    float *const x = o->x;
    double *const y = o->x, wide = o->wide ? y[i] : 0;
    const float narrow = o->wide ? 0 : x[i];

    if (o->wide)
        *at = y[i] = wide + by;
    else
        *at = (double)(x[i] = narrow + (float)by);
    const double l = loss(call);
    if (o->wide)
        y[i] = wide;
    else
        x[i] = narrow;
    return l;
}

/* A few numbers of each gradient are differences of the loss. With a step of 2^-7 the third
 * derivative, below 50 for sums of products of such numbers and their softmax, adds 50 2^-14 / 6. */
static inline void expect_gradient(const struct differed *o, loss_fn *loss, const void *call,
                                   const char *what)
{
    enum { TRIES = 4 };
    int known = 0;

    for (int t = 0; t < 50 * TRIES && known < TRIES; t++) {
        const int i = (int)(rng_u32(11, t, (uint64_t)o->n) % (uint32_t)o->n);
        const double got = o->wide ? ((const double *)o->d)[i] : (double)((const float *)o->d)[i];
        double up, down;
        const double l = nudged(o, i, 0x1p-7, loss, call, &up);
        const double m = nudged(o, i, -0x1p-7, loss, call, &down), want = (l - m) / (up - down);
        if (!o->added && got == (double)GUARD_VALUE) {
            cr_assert_eq(l, m, "%s: %s[%d] is not written", what, o->name, i);
            continue;
        }
        cr_assert_leq(fabs(got - (o->added ? START : 0) - want), 1e-3 * (1 + fabs(want)),
                      "%s: %s[%d] is %g, not %g", what, o->name, i, got, want);
        known++;
    }
    cr_assert_eq(known, TRIES, "%s: %s", what, o->name);
}
