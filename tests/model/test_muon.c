/* SPDX-License-Identifier: MIT
 *
 * Muon against its equations, computed here in double by plain loops: wide, high and square
 * matrices, several maps in one tensor, both scales, and any number of threads to the same bits. */
#include "variants/base/rng.h"

#include "tests/support/bound_optimizer.h"
#include "tests/support/every_backend.h"
#include "tests/support/kernel/simd.h"
#include "tests/support/open_engine.h"

/* y [m,n] = a [m,k] b [k,n], or b [n,k] turned. */
static void product(double *y, const double *a, const double *b, int m, int k, int n, bool turned)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += a[i * k + l] * (turned ? b[j * k + l] : b[l * n + j]);
            y[i * n + j] = sum;
        }
}

/* x [r,c] of any shape: (A, B of the equations are [r,r] there, on the side that is shorter). */
static void orthogonal(double *x, int r, int c)
{
    double norm = 0;

    for (int e = 0; e < r * c; e++)
        norm += x[e] * x[e];
    for (int e = 0; e < r * c; e++)
        x[e] /= sqrt(norm) + 1e-7;
    double *const a = room((size_t)(r * r), sizeof(*a)),
                  *const b = room((size_t)(r * r), sizeof(*b)),
                  *const y = room((size_t)(r * c), sizeof(*y));
    for (int step = 0; step < 5; step++) {
        product(a, x, x, r, c, r, true);
        product(b, a, a, r, r, r, false);
        for (int e = 0; e < r * r; e++)
            b[e] = -4.7750 * a[e] + 2.0315 * b[e];
        product(y, b, x, r, r, c, false);
        for (int e = 0; e < r * c; e++)
            x[e] = 3.4445 * x[e] + y[e];
    }
}

/* One map w [rows,columns] with momentum m after a gradient g. */
static void exact_step(double *w, double *m, const double *g, int rows, int columns,
                       enum muon_scale by, double lr, double decay)
{
    const int n = rows * columns;
    const bool high = rows > columns;
    double *const x = room((size_t)n, sizeof(*x));

    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            const int e = i * columns + j;
            m[e] = 0.95 * m[e] + 0.05 * g[e];
            x[high ? j * rows + i : e] = 0.95 * m[e] + 0.05 * g[e];
        }
    orthogonal(x, high ? columns : rows, high ? rows : columns);
    const double s = by == MUON_ADAMW ? 0.2 * sqrt(rows > columns ? rows : columns)
                                      : sqrt(high ? (double)rows / columns : 1);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            w[i * columns + j] = w[i * columns + j] * (1 - lr * decay) -
                                 lr * s * x[high ? j * rows + i : i * columns + j];
}

static void declare(struct params *p)
{
    params_matrix(p, 12, 30, "", "wide");
    params_matrix(p, 33, 9, "", "high");
    params_matrix(p, 17, 17, "", "square");
    params_matrix(p, 1, 8, "", "row");
    params_add(p, INIT_LINEAR, 0, 3, (const int[]){3, 11, 6}, "%s", "maps");
    params_add(p, INIT_LINEAR, 0, 4, (const int[]){2, 2, 3, 5}, "%s", "more");
    /* one map [7, 5 * 4] */
    p->v[params_add(p, INIT_LINEAR, 0, 3, (const int[]){7, 5, 4}, "%s", "convolution")].maps = 1;
}

/* The shape of one map of parameter i, and how many there are. */
static const int shapes[][3] = {{12, 30, 1}, {33, 9, 1}, {17, 17, 1}, {1, 8, 1},
                                {11, 6, 3},  {3, 5, 4},  {7, 20, 1}};

/* Three steps. The largest singular value passes 5 times through a polynomial of slope at most
 * 3.4445 at 0, so an error of U grows to 3.4445^5 U = 485 U of values below 1.2, and directions of
 * small singular values, which the gradients have not, would add theirs; products add r U each. */
static void expect_steps(struct bound *b, const struct engine *g, enum muon_scale by)
{
    const double lr = 0.05, decay = 0.1, scale = 0.5;

    b->o.kind = OPTIMIZER_MUON;
    b->o.scale = by;
    b->o.weight_decay = decay;
    b->o.decays = 1u << PARAM_MATRICES;
    declare(&b->p);
    bind(b);
    params_init(&b->p, 3, 1);
    double *w[ARRAY_LEN(shapes)], *m[ARRAY_LEN(shapes)], *d[ARRAY_LEN(shapes)];
    for (int i = 0; i < b->p.n; i++) {
        const struct param *const p = &b->p.v[i];
        w[i] = room(p->n, sizeof(double)), m[i] = room(p->n, sizeof(double));
        d[i] = room(p->n, sizeof(double));
        for (size_t e = 0; e < p->n; e++)
            w[i][e] = (double)p->data[e];
    }
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < b->p.n; i++) {
            struct param *const p = &b->p.v[i];
            const int n = shapes[i][0] * shapes[i][1];
            rng_normal(p->grad, p->n, 11, (uint64_t)(10 * step + i), 0, 0.1f);
            for (size_t e = 0; e < p->n; e++)
                d[i][e] = scale * (double)p->grad[e];
            for (int k = 0; k < shapes[i][2]; k++)
                exact_step(w[i] + k * n, m[i] + k * n, d[i] + k * n, shapes[i][0], shapes[i][1], by,
                           lr, decay);
        }
        optimizer_step(&b->o, &b->p, g, lr, scale);
    }
    for (int i = 0; i < b->p.n; i++) {
        const struct param *const p = &b->p.v[i];
        double off = 0;
        cr_expect_null(b->o.v[i], "%s has a second moment", p->name);
        for (size_t e = 0; e < p->n; e++)
            off = fmax(off, fabs((double)p->data[e] - w[i][e]));
        /* 1e-4 of a step of lr s, and the weights' own rounding */
        cr_expect_lt(off, 1e-4 * lr * 2 + 1e-6, "%s, scale %d: off by %g", p->name, (int)by, off);
    }
}

TEST_EACH(const int *which, muon, takes_the_steps_of_its_equations, every_backend())
{
    const struct engine g = open_engine(backends[*which]->name, 2);

    for (int by = MUON_ADAMW; by <= MUON_SHAPE; by++) {
        struct bound b = {0};
        expect_steps(&b, &g, (enum muon_scale)by);
    }
}

/* What one step of a matrix [rows,columns] without momentum and decay subtracts, in units of lr. */
static double *step_of(const char *backend, bool rounds, int rows, int columns)
{
    struct engine g = open_engine(backend, 2);
    struct bound b = {.o.kind = OPTIMIZER_MUON, .o.scale = MUON_SHAPE};
    const size_t n = (size_t)rows * (size_t)columns;

    if (rounds && engine_train_in(&g, ELEM_BF16, &failure) != OK)
        cr_skip_test("%s", failure.msg);
    double *const x = room(n, sizeof(*x));
    params_matrix(&b.p, rows, columns, "", "w");
    bind(&b);
    params_init(&b.p, 3, 1);
    memset(b.p.v[0].data, 0, n * sizeof(float));
    rng_normal(b.p.v[0].grad, n, 7, 0, 0, 1);
    optimizer_step(&b.o, &b.p, &g, 1, 1);
    for (size_t i = 0; i < n; i++)
        x[i] = -(double)b.p.v[0].data[i];
    return x;
}

static double distance(const double *x, const double *y, int n)
{
    double of = 0, square = 0;

    for (int i = 0; i < n; i++) {
        of += (x[i] - y[i]) * (x[i] - y[i]);
        square += y[i] * y[i];
    }
    return sqrt(of / square);
}

/* In mixed precision a backend does what the reference does that rounds, not what it does without.
 * Rounded to 2^-9 of themselves, the 2 x 3 operands of each of 5 steps move X by about
 * 2^-9 sqrt(6) a step, which the slopes of the polynomial where values have settled (1.1 at most)
 * add up to 5 x 1.1^5 x that = 0.04; an operand whose sums differ in the last bit is seldom rounded
 * the other way: one in 2^24-9, times the 64 terms of a sum. */
TEST_EACH(const int *which, muon, rounds_in_mixed_precision, every_narrow_backend())
{
    enum { ROWS = 24, COLUMNS = 64, N = ROWS * COLUMNS };
    double *const got = step_of(backends[*which]->name, true, ROWS, COLUMNS);
    double *const rounded = step_of("ref", true, ROWS, COLUMNS);
    double *const exact = step_of("ref", false, ROWS, COLUMNS);

    cr_expect_lt(distance(got, exact, N), 0.04);
    cr_expect_gt(distance(rounded, exact, N), 0.001, "nothing is rounded");
    cr_expect_lt(distance(got, rounded, N), 0.1 * distance(rounded, exact, N));
}

/* Matrices between layers are Muon's; of all else the bits are those of AdamW. */
Test(muon, leaves_the_rest_to_adamw)
{
    const struct engine g = open_engine("ref", 1);
    struct bound both[2] = {{.o.kind = OPTIMIZER_MUON}, {.o.kind = OPTIMIZER_ADAMW}};

    for (int i = 0; i < 2; i++) {
        struct bound *const b = &both[i];
        params_matrix(&b->p, 6, 5, "", "matrix");
        b->p.v[params_matrix(&b->p, 6, 5, "", "output")].group = PARAM_OUTPUT;
        params_add(&b->p, INIT_EMBED, 0, 2, (const int[]){7, 5}, "%s", "embedding");
        params_vector(&b->p, INIT_ONE, 0, 5, "", "norm");
        params_vector(&b->p, INIT_ZERO, 0, 5, "", "bias");
        params_add(&b->p, INIT_TABLE, 0, 2, (const int[]){7, 5}, "%s", "table");
        bind(b);
        params_init(&b->p, 3, 1);
        for (int p = 0; p < b->p.n; p++)
            rng_normal(b->p.v[p].grad, b->p.v[p].n, 2, (uint64_t)p, 0, 1);
        optimizer_step(&b->o, &b->p, &g, 0.01, 1);
    }
    const struct params *const p = &both[0].p, *const q = &both[1].p;
    cr_expect_neq(memcmp(p->v[0].data, q->v[0].data, p->v[0].n * sizeof(float)), 0);
    for (int i = 1; i < p->n; i++)
        cr_expect_arr_eq(p->v[i].data, q->v[i].data, p->v[i].n * sizeof(float), "%s", p->v[i].name);
    /* One momentum instead of two moments, and work space: two matrices [5,6], two [5,5]. */
    NUMBERS({both[1].a.part[PART_OPTIMIZER] - both[0].a.part[PART_OPTIMIZER], 30 * sizeof(float)},
            {both[0].a.part[PART_SCRATCH], (2 * 30 + 2 * 25) * sizeof(float)});
}

/* Sizes that threads share. */
Test(muon, threads_change_nothing)
{
    EACH_TEXT (name, "ref", SIMD_LEVELS) {
        struct bound b[2] = {{.o.kind = OPTIMIZER_MUON}, {.o.kind = OPTIMIZER_MUON}};
        for (int t = 0; t < 2; t++) {
            struct engine g;
            if (engine_open(&g, name, 1 + 2 * t, NULL, &failure) != OK)
                break;
            give_room(&g);
            params_matrix(&b[t].p, 150, 131, "", "high");
            bind(&b[t]);
            params_init(&b[t].p, 3, 1);
            for (int step = 0; step < 2; step++) {
                rng_normal(b[t].p.v[0].grad, b[t].p.v[0].n, 4, (uint64_t)step, 0, 1);
                optimizer_step(&b[t].o, &b[t].p, &g, 0.02, 1);
            }
        }
        if (b[1].p.n)
            cr_expect_arr_eq(b[0].p.v[0].data, b[1].p.v[0].data, b[0].p.v[0].n * sizeof(float),
                             "%s", name);
    }
}

/* Nothing to follow: no NaN. */
Test(muon, a_gradient_of_zero)
{
    const struct engine g = open_engine("ref", 1);
    struct bound b = {.o.kind = OPTIMIZER_MUON};
    float before[12];

    params_matrix(&b.p, 3, 4, "", "w");
    bind(&b);
    params_init(&b.p, 3, 1);
    memset(b.p.v[0].grad, 0, sizeof(before));
    memcpy(before, b.p.v[0].data, sizeof(before));
    optimizer_step(&b.o, &b.p, &g, 0.1, 1);
    cr_expect_arr_eq(b.p.v[0].data, before, sizeof(before));
}
