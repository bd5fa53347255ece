/* SPDX-License-Identifier: MIT
 *
 * The mixture of experts: routing, capacity and auxiliary loss against a plain program in double,
 * gradients of the reference against finite differences, every backend against the reference,
 * routes equal. */
#include "tests/support/kernel/ffn_case.h"

enum { D = 6, F = 9, ROWS = 14, MAX_E = 8 };

static struct config moe(int experts, int k, int capacity, bool bias)
{
    struct config c = ffn_config(&ffn_moe, D, F);

    set_number(&c, "experts", experts);
    set_number(&c, "moe_k", k);
    set_number(&c, "capacity", capacity);
    set_number(&c, "aux_coef", 0.5);
    c.ffn_bias = bias;
    return c;
}

/* experts, k, capacity */
static const int forms[][3] = {{1, 1, 0}, {4, 1, 0}, {4, 2, 0}, {4, 1, 2}, {4, 2, 4},
                               {3, 3, 0}, {3, 3, 6}, {8, 2, 1}, {2, 2, 5}};

static struct config form_of(size_t i, bool bias)
{
    return moe(forms[i][0], forms[i][1], forms[i][2], bias);
}

/* ---- the plain program -------------------------------------------------------------------- */

struct by_hand {
    double y[ROWS][D], aux;
    int route[ROWS][MAX_E];
};

static void expert(const struct ffn_case *t, int e, const double x[D], double y[D])
{
    double hidden[F];

    for (int f = 0; f < F; f++)
        hidden[f] = fmax(ffn_map(t, "ff.e.1", e * F + f, x, D), 0);
    for (int d = 0; d < D; d++)
        y[d] = ffn_map(t, "ff.e.2", e * D + d, hidden, F);
}

/* Row i of the input, and its probabilities. */
static void router(const struct ffn_case *t, int i, double x[D], double p[MAX_E])
{
    const int E = moe_of(t->c)->experts;
    double sum = 0;

    to_doubles(x, t->x + i * D, D);
    for (int e = 0; e < E; e++)
        sum += p[e] = exp(ffn_map(t, "ff.router", e, x, D));
    for (int e = 0; e < E; e++)
        p[e] /= sum;
}

/* How many experts row t prefers to e; ties do not occur. */
static int rank_of(const double p[MAX_E], int E, int e)
{
    int better = 0;

    for (int other = 0; other < E; other++)
        better += p[other] > p[e];
    return better;
}

static struct by_hand by_hand(const struct ffn_case *t)
{
    const struct config *c = t->c;
    double p[ROWS][MAX_E], x[ROWS][D];
    int used[MAX_E] = {0}, firsts[MAX_E] = {0};
    struct by_hand out = {0};

    for (int i = 0; i < ROWS; i++)
        router(t, i, x[i], p[i]);
    for (int k = 0; k < moe_of(c)->k; k++)
        for (int i = 0; i < ROWS; i++)
            for (int e = 0; e < moe_of(c)->experts; e++) {
                if (rank_of(p[i], moe_of(c)->experts, e) != k)
                    continue;
                const bool served = !moe_of(c)->capacity || used[e] < moe_of(c)->capacity;
                double gate = p[i][e], chosen = 0, y[D];
                for (int other = 0; other < moe_of(c)->experts; other++)
                    chosen +=
                        rank_of(p[i], moe_of(c)->experts, other) < moe_of(c)->k ? p[i][other] : 0;
                gate = moe_of(c)->k == 1 ? gate : gate / chosen;
                used[e] += served, firsts[e] += k == 0;
                out.route[i][k] = served ? e : -1;
                expert(t, e, x[i], y);
                for (int d = 0; served && d < D; d++)
                    out.y[i][d] += gate * y[d];
            }
    for (int e = 0; e < moe_of(c)->experts; e++)
        for (int i = 0; i < ROWS; i++)
            out.aux += moe_of(c)->experts * ((double)firsts[e] / ROWS) * p[i][e] / ROWS;
    return out;
}

static void expect_by_hand(struct ffn_case *t, const char *backend)
{
    const struct by_hand want = by_hand(t);
    const struct moe_work w = moe_work_of(t->c, ROWS, t->work);
    float y[ROWS * D];

    to_floats(y, *want.y, ROWS * D);
    ffn_forward(t, false);
    cr_expect_lt(case_error(t->y, y, ROWS * D), 1, "%s: %d of %d, capacity %d", backend,
                 moe_of(t->c)->k, moe_of(t->c)->experts, moe_of(t->c)->capacity);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < moe_of(t->c)->k; k++)
            cr_expect_eq(w.route[i * moe_of(t->c)->k + k], want.route[i][k], "row %d choice %d", i,
                         k);
    /* probabilities are sums of D products, then exp: 2 (D + 8) U of their size, 1 */
    cr_expect_leq(fabs(ffn_moe.aux(t->c, ROWS, t->work) - want.aux),
                  moe_of(t->c)->experts * 2 * (D + 8) * 4 * U);
}

TEST_EACH(int *b, moe, is_its_equation, every_backend())
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        for (int bias = 0; bias < 2; bias++) {
            const struct config c = form_of(i, bias);
            struct ffn_case t;
            ffn_open(&t, &c, backends[*b]->name, 1 + bias, ROWS, false);
            expect_by_hand(&t, backends[*b]->name);
        }
}

/* ---- groups and tokens -------------------------------------------------------------------- */

static struct config proto(int experts, int groups, bool bias)
{
    struct config c = ffn_config(&ffn_proto, D, F);

    set_number(&c, "experts", experts);
    set_number(&c, "moe_groups", groups);
    c.ffn_bias = bias;
    return c;
}

static struct config hashed(int experts, bool bias)
{
    struct config c = ffn_config(&ffn_hash, D, F);

    set_number(&c, "experts", experts);
    c.ffn_bias = bias;
    return c;
}

/* Experts, groups; 0 = tokens choose. */
static const int other_forms[][2] = {{4, 2}, {6, 3}, {6, 2}, {3, 1},
                                     {3, 3}, {4, 0}, {1, 0}, {7, 0}};

static struct config other_form(size_t i, bool bias)
{
    return other_forms[i][1] ? proto(other_forms[i][0], other_forms[i][1], bias)
                             : hashed(other_forms[i][0], bias);
}

static void add_expert(const struct ffn_case *t, int e, double gate, const double x[D], double *to)
{
    double y[D];

    expert(t, e, x, y);
    for (int d = 0; d < D; d++)
        to[d] += gate * y[d];
}

/* Row i of a form: experts in `route`, their sum in y. */
static void row_by_hand(const struct ffn_case *t, int i, int route[MAX_E], double y[D])
{
    const int E = moe_of(t->c)->experts, groups = moe_groups(t->c), n = E / groups;
    double p[MAX_E], x[D];

    memset(y, 0, sizeof(double) * D);
    router(t, i, x, p);
    if (moe_by_token(t->c)) {
        route[0] = ffn_token(t, i) % E;
        add_expert(t, route[0], 1, x, y);
        return;
    }
    for (int k = 0; k < groups; k++) {
        double sum = 0;
        route[k] = k * n;
        for (int e = k * n; e < (k + 1) * n; e++) {
            sum += p[e];
            route[k] = p[e] > p[route[k]] ? e : route[k];
        }
        add_expert(t, route[k], p[route[k]] / sum, x, y);
    }
}

TEST_EACH(int *b, moe, groups_and_tokens_choose, every_backend())
{
    for (size_t i = 0; i < ARRAY_LEN(other_forms); i++)
        for (int bias = 0; bias < 2; bias++) {
            const struct config c = other_form(i, bias);
            struct ffn_case t;
            float want[ROWS * D];
            ffn_open(&t, &c, backends[*b]->name, 1 + bias, ROWS, false);
            ffn_forward(&t, false);
            const struct moe_work w = moe_work_of(&c, ROWS, t.work);
            for (int row = 0; row < ROWS; row++) {
                int route[MAX_E];
                double y[D];
                row_by_hand(&t, row, route, y);
                for (int k = 0; k < moe_k(&c); k++)
                    cr_expect_eq(w.route[row * moe_k(&c) + k], route[k], "row %d choice %d", row,
                                 k);
                to_floats(want + row * D, y, D);
            }
            cr_expect_lt(case_error(t.y, want, ROWS * D), 1, "%s, form %zu", backends[*b]->name, i);
        }
}

/* Rows of no text count as tokens in turn, with a table or without. */
Test(moe, rows_of_no_text_take_experts_in_turn)
{
    for (int V = 0; V < 20; V += 9) {
        struct config c = hashed(4, true);
        struct ffn_case t;
        c.V = V;
        ffn_open(&t, &c, "ref", 1, ROWS, false);
        ffn_hash.read_tokens(&c, t.p.v, NULL, ROWS, t.work);
        for (int i = 0; i < ROWS; i++)
            cr_expect_eq(moe_work_of(&c, ROWS, t.work).choice[i], i % 4);
    }
}

/* ---- capacity ----------------------------------------------------------------------------- */

/* Capacity is assigned in the order of rows: later rows do not affect earlier ones. */
Test(moe, capacity_is_first_come_first_served)
{
    const struct config c = moe(4, 1, 2, true);
    struct ffn_case t;
    int served[4] = {0}, dropped = 0;

    ffn_open(&t, &c, "ref", 1, ROWS, false);
    ffn_forward(&t, false);
    const struct moe_work w = moe_work_of(&c, ROWS, t.work);
    for (int i = 0; i < ROWS; i++) {
        const int e = w.choice[i];
        cr_expect_eq(w.route[i], served[e] < 2 ? e : -1);
        served[e] += w.route[i] >= 0;
        dropped += w.route[i] < 0;
        for (int d = 0; d < D && w.route[i] < 0; d++)
            cr_expect_eq(t.y[i * D + d], 0);
    }
    cr_expect_geq(dropped, ROWS - 8);
    cr_expect_eq(w.first[4], ROWS - dropped);
}

/* A row that no expert takes keeps the residual unchanged. */
Test(moe, a_dropped_row_keeps_its_residual)
{
    const struct config c = moe(1, 1, 3, true);
    struct ffn_case t;
    float *add = normals(ROWS * D, "add", 0, 1), *z = fenced(ROWS * D);

    ffn_open(&t, &c, "ref", 1, ROWS, false);
    ffn_moe.forward(&t.g, &c, t.p.v, t.y, t.x, ROWS, t.work, false,
                    (struct act){.y = z, .add = add}, &t.drop);
    cr_expect_arr_eq(z + 3 * D, add + 3 * D, sizeof(float[(ROWS - 3) * D]));
    cr_expect_arr_neq(z, add, sizeof(float[3 * D]));
}

/* ---- gradients ---------------------------------------------------------------------------- */

enum { ALL_FORMS = ARRAY_LEN(forms) + ARRAY_LEN(other_forms) };

static struct config any_form(size_t i, bool bias)
{
    return i < ARRAY_LEN(forms) ? form_of(i, bias) : other_form(i - ARRAY_LEN(forms), bias);
}

Test(moe, reference_is_the_derivative)
{
    for (size_t i = 0; i < ALL_FORMS; i++) {
        const struct config c = any_form(i, true);
        struct ffn_case t;
        ffn_open(&t, &c, "ref", 1, ROWS, true);
        ffn_differentiate(&t, kept_text("form %zu", i), 0x1p-11);
    }
}

TEST_EACH(int *b, moe, backward_as_the_reference, every_backend())
{
    for (size_t i = 0; i < ALL_FORMS; i++)
        for (int bias = 0; bias < 2; bias++) {
            struct config c = any_form(i, bias);
            ffn_compare(&c, backends[*b]->name, 1 + bias, ROWS, bias ? 0.25f : 0);
            c.D = 33, c.F = 40;
            ffn_compare(&c, backends[*b]->name, 1 + bias, 150, 0);
        }
}

/* ---- costs and configurations ------------------------------------------------------------- */

Test(moe, flop_counts_what_can_be_served)
{
    struct config c = moe(4, 2, 0, true);

    cr_expect_eq(ffn_moe.flop(&c, 10), 2.0 * 10 * D * 4 + 20 * 4.0 * D * F);
    set_number(&c, "capacity", 3); /* 12 places for 20 choices */
    cr_expect_eq(ffn_moe.flop(&c, 10), 2.0 * 10 * D * 4 + 12 * 4.0 * D * F);
    c = proto(6, 3, true);
    cr_expect_eq(ffn_proto.flop(&c, 10), 2.0 * 10 * D * 6 + 30 * 4.0 * D * F);
    c = hashed(6, true);
    cr_expect_eq(ffn_hash.flop(&c, 10), 10 * 4.0 * D * F);
}
