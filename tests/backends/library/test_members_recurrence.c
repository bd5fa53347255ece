/* SPDX-License-Identifier: MIT
 *
 * Every member of the structs of recurrences: its default is what the header names, and any other
 * value changes what a loop from the header's text says that it changes, or is refused. A member
 * without a row fails. Two sequences, rows and heads with gaps. */
#include "tests/support/kernel/library_members.h"

TestSuite(library_members_recurrence, .timeout = 240);

enum { B = 2, L = 6, M = 3, T = L + M, H = 4, HS = 2, DK = 3, DV = 5, INPUTS = 20, SIZE = 4096 };
enum { D_O = 18, D_S1 = 19 };

static float in[INPUTS][SIZE], zeros[SIZE], ones[SIZE], none[SIZE], grads[INPUTS][SIZE];
static struct written out;

static void fill(void)
{
    for (int i = 0; i < INPUTS; i++)
        for (int x = 0; x < SIZE; x++)
            in[i][x] = (float)(rng_u32(6, i, (uint64_t)x) % 128) / 128 - (i > 2 && i < 15 ? 1 : 0);
    for (int x = 0; x < SIZE; x++)
        ones[x] = 1, none[x] = -INFINITY;
}

static struct ba_rows gaps(const float *at, int n, int heads, int width)
{
    const ptrdiff_t head = width + 1, row = heads * head + 2;

    return (struct ba_rows){at, n * row + 3, row, head, 0};
}

static struct ba_recurrence fresh(void)
{
    return (struct ba_recurrence){.size = sizeof(struct ba_recurrence),
                                  MEMBERS(, B, L, M, H),
                                  .Hs = HS,
                                  .dk = DK,
                                  .dv = DV,
                                  .q = gaps(in[0], L, H, DK),
                                  .k = gaps(in[1], T, H, DK),
                                  .v = gaps(in[2], T, H, DV),
                                  .s1 = out.at[1],
                                  .o = out.at[0]};
}

/* ---- outputs ------------------------------------------------------------------------------ */

static double want[PARTS][OUT];

static void judge(const struct ba_recurrence *r)
{
    for (int p = 0; p < PARTS; p++)
        for (int i = 0; i < OUT; i++)
            want[p][i] = NAN;
    judge_recurrence(r,
                     &(struct judged_recurrence){want[0], r->den ? want[4] : NULL, want[1],
                                                 r->z1 ? want[2] : NULL, r->m1 ? want[3] : NULL});
}

static void recur(struct ba_engine *engine, const struct ba_recurrence *r, struct written *w,
                  const char *what)
{
    nothing_written(&out);
    ANSWERS(BA_OK, what, ba_recurrence_forward, engine, r);
    judge(r);
    for (int i = 0; i < OUT && !r->s1; i++)
        want[1][i] = NAN;
    for (int p = 0; p < PARTS; p++)
        expect_written(out.at[p], want[p], what);
    *w = out;
}

/* ---- gradients ---------------------------------------------------------------------------- */

/* m has no gradient, so that a gated state is not read. */
static double loss(const void *call)
{
    const struct ba_recurrence *const r = call;
    double sum = 0;

    judge(r);
    for (int i = 0; i < OUT; i++) {
        sum += isnan(want[0][i]) ? 0 : want[0][i] * (double)in[D_O][i];
        sum += isnan(want[1][i]) || r->i.at ? 0 : want[1][i] * (double)in[D_S1][i];
    }
    return sum;
}

static struct ba_recurrence_grad grads_of(const struct ba_recurrence *r)
{
    const void *const operands[] = {r->q.at, r->k.at, r->v.at, r->g.at, r->beta.at, r->a.at,
                                    r->b.at, r->u,    r->i.at, r->s0,   r->z0};
    struct ba_recurrence_grad g = {
        .size = sizeof(g), .d_o = in[D_O], .d_s1 = r->i.at ? NULL : in[D_S1]};

    float *at[ARRAY_LEN(operands)];

    _Static_assert(sizeof(g) == offsetof(struct ba_recurrence_grad, d_q) + sizeof(at),
                   "a gradient that is not judged");
    for (size_t n = 0; n < ARRAY_LEN(at); n++)
        at[n] = operands[n] ? grads[n] : NULL;
    memcpy(&g.d_q, at, sizeof(at));
    return g;
}

static void expect_gradients(struct ba_engine *engine, const struct ba_recurrence *r,
                             const char *what)
{
    enum { OPERANDS = 11 };
#define ROWS(x)                                                                                    \
    {                                                                                              \
#x, (void *)r->x.at, NULL, (int)(r->x.batch ? r->x.batch : 12) * B, .added = false         \
    }
    struct differed all[OPERANDS] = {
        ROWS(q),
        ROWS(k),
        ROWS(v),
        ROWS(g),
        ROWS(beta),
        ROWS(a),
        ROWS(b),
        {"u", (void *)r->u, NULL, H * DK, .added = true},
        ROWS(i),
        {"s0", (void *)r->s0, NULL, B * HS * DK * DV, .added = false},
        {"z0", (void *)r->z0, NULL, B * HS * DK, .added = false},
    };
#undef ROWS
    const struct ba_recurrence_grad g = grads_of(r);

    for (int n = 0; n < OPERANDS; n++) {
        all[n].d = all[n].x ? grads[n] : NULL;
        for (int x = 0; x < SIZE; x++)
            grads[n][x] = all[n].added ? (float)START : GUARD_VALUE;
    }
    ANSWERS(BA_OK, what, ba_recurrence_backward, engine, r, &g);
    for (int n = 0; n < OPERANDS; n++)
        if (all[n].x)
            expect_gradient(&all[n], loss, r, what);
}

/* ---- rows --------------------------------------------------------------------------------- */

#define ROW(member, with, said, ...)                                                               \
    do {                                                                                           \
        static struct written usual, same, other;                                                  \
        struct ba_recurrence r = fresh();                                                          \
        with;                                                                                      \
        recur(engine, &r, &usual, #member);                                                        \
        said;                                                                                      \
        recur(engine, &r, &same, #member " said");                                                 \
        cr_assert_leq(difference(&usual, &same), 2 * MEMBER_BOUND, "default of " #member);         \
        r = fresh();                                                                               \
        with;                                                                                      \
        __VA_ARGS__;                                                                               \
        recur(engine, &r, &other, #member " changed");                                             \
        cr_assert_geq(difference(&usual, &other), 100 * MEMBER_BOUND, #member " changes nothing"); \
        if (!r.norm || r.den)                                                                      \
            expect_gradients(engine, &r, #member " changed");                                      \
        row_of(&rows, offsetof(struct ba_recurrence, member), sizeof(r.member));                   \
    } while (0)

#define REFUSED(member, ...)                                                                       \
    do {                                                                                           \
        struct ba_recurrence r = fresh();                                                          \
        __VA_ARGS__;                                                                               \
        ANSWERS(BA_ARGUMENT, #member, ba_recurrence_forward, engine, &r);                          \
        row_of(&rows, offsetof(struct ba_recurrence, member), sizeof(r.member));                   \
    } while (0)

/* Where the numbers of an operand are: stride 0 repeats, per 0 counts as 1. */
#define ROWS(x, with)                                                                              \
    ROW(x.at, with, , r.x.at = in[15]);                                                            \
    ROW(x.batch, with, , r.x.batch = 0);                                                           \
    ROW(x.row, with, , r.x.row = 0);                                                               \
    ROW(x.head, with, , r.x.head = 0);                                                             \
    ROW(x.per, with, r.x.per = 1, r.x.per = 2)

#define PACKED                                                                                     \
    r.B = 1;                                                                                       \
    r.M = 0
#define DECAYS                                                                                     \
    r.g = gaps(in[3], T, H, DK);                                                                   \
    r.g_width = DK
#define ERASES                                                                                     \
    r.a = gaps(in[4], T, H, DK);                                                                   \
    r.b = gaps(in[5], T, H, DK)
#define SUMS                                                                                       \
    r.norm = BA_NORM_SUM;                                                                          \
    r.den = out.at[4];                                                                             \
    r.z1 = out.at[2]
#define GATED                                                                                      \
    SUMS;                                                                                          \
    r.i = gaps(in[6], T, H, 1);                                                                    \
    r.m1 = out.at[3]

static void numbers(struct ba_engine *engine, struct rows_of_struct *all)
{
    struct rows_of_struct rows = *all;

    REFUSED(size, r.size = 8);
    ROW(B, , , r.B = 1);
    ROW(L, , , r.L = 5);
    ROW(M, , , r.M = 2);
    ROW(H, r.Hs = 0, , r.H = 2);
    ROW(Hs, r.Hs = 0, r.Hs = H, r.Hs = HS);
    ROW(dk, , , r.dk = 2);
    ROW(dv, , , r.dv = 4);
    ROW(g_width, DECAYS, , r.g_width = 1);
    ROW(scale, , r.scale = 1, r.scale = 0.5f);
    ROW(eps, SUMS, , r.eps = 0.25f);
    ROW(norm, r.den = NULL, , SUMS);
    ROW(norm, r.den = NULL, , SUMS; r.norm = BA_NORM_MLSTM);
    *all = rows;
}

static void operands(struct ba_engine *engine, struct rows_of_struct *all)
{
    struct rows_of_struct rows = *all;

    ROWS(q, );
    ROWS(k, );
    ROWS(v, );
    ROWS(g, DECAYS);
    ROWS(beta, r.beta = gaps(in[7], T, H, 1));
    ROWS(a, ERASES);
    ROWS(b, ERASES);
    ROWS(i, GATED);
    ROW(q.at, r.dk = 1; r.q.at = NULL, r.q.at = ones, r.q = gaps(in[16], L, H, 1));
    ROW(k.at, r.dk = 1; r.k.at = NULL, r.k.at = ones, r.k = gaps(in[16], T, H, 1));
    ROW(u, r.u = in[8], , r.u = in[9]);
    *all = rows;
}

static void states(struct ba_engine *engine, struct rows_of_struct *all)
{
    static const int32_t whole[] = {0, L}, cut[] = {0, 1, 4, L, 0, 3, L}, empty[] = {0, 2, 2, L};
    struct rows_of_struct rows = *all;

    ROW(s0, , r.s0 = zeros, r.s0 = in[10]);
    ROW(z0, SUMS, r.z0 = zeros, r.z0 = in[17]);
    ROW(m0, GATED; r.g = gaps(in[3], T, H, 1); r.g_width = 1, r.m0 = none, r.m0 = zeros;
        r.s0 = in[10]; r.z0 = in[17]);
    ROW(m0, GATED; r.s0 = in[10]; r.z0 = in[17]; r.m0 = zeros, , r.m0 = ones);
    ROW(s1, , , r.s1 = NULL);
    ROW(M, r.L = 0; r.q.at = NULL; r.o = NULL, , r.M = 2); /* keys without queries */
    ROW(z1, SUMS, , r.z1 = NULL);
    ROW(m1, GATED, , r.m1 = NULL);
    ROW(den, SUMS, , r.den = NULL);
    REFUSED(o, r.o = NULL);
    ROW(cu_seqlens, PACKED, r.texts = 1; r.cu_seqlens = whole, r.texts = 3; r.cu_seqlens = cut);
    ROW(cu_seqlens, PACKED; DECAYS; ERASES; r.b = gaps(in[5], T, H, DK + 1);
        r.s0 = in[10], , r.texts = 3; r.cu_seqlens = cut);
    ROW(cu_seqlens, PACKED; r.beta = gaps(in[7], T, H, 1); r.u = in[8];
        r.s0 = in[10], , r.texts = 3; r.cu_seqlens = cut);
    ROW(texts, PACKED; GATED; r.s0 = in[10]; r.z0 = in[17]; r.m0 = in[11]; r.texts = 3;
        r.cu_seqlens = cut, , r.texts = 2; r.cu_seqlens = cut + 4);
    REFUSED(texts, PACKED; r.texts = 2; r.cu_seqlens = cut);
    REFUSED(texts, PACKED; r.texts = 1);
    REFUSED(texts, r.B = 1; r.texts = 3; r.cu_seqlens = cut);
    REFUSED(texts, r.M = 0; r.texts = 3; r.cu_seqlens = cut);
    REFUSED(cu_seqlens, PACKED; r.texts = 3; r.cu_seqlens = empty);
    *all = rows;
}

/* ---- what has no meaning ------------------------------------------------------------------ */

#define WRONG(with, says, ...)                                                                     \
    do {                                                                                           \
        struct ba_recurrence r = fresh();                                                          \
        char why[256] = "?";                                                                       \
        with;                                                                                      \
        struct ba_recurrence_grad d = grads_of(&r);                                                \
        __VA_ARGS__;                                                                               \
        expect_status(ba_recurrence_backward(engine, &r, &d, why, sizeof(why)), BA_ARGUMENT, why,  \
                      #__VA_ARGS__);                                                               \
        cr_expect(strstr(why, says), "%s: %s", #__VA_ARGS__, why);                                 \
    } while (0)

static void wrong_alone(struct ba_engine *engine)
{
    WRONG(, "B is 0", r.B = 0);
    WRONG(, "L is -1", r.L = -1);
    WRONG(, "M is", r.M = INT_MAX);
    WRONG(, "Hs 3 does not divide", r.Hs = 3);
    WRONG(, "dv is", r.dv = INT_MAX);
    WRONG(, "g is NULL", r.g_width = 1);
    WRONG(, "g, by g_width", r.g.at = in[3]);
    WRONG(, "v is NULL", r.v.at = NULL);
    WRONG(, "k is NULL", r.k.at = NULL);
    WRONG(, "norm is 3", r.norm = 3);
    WRONG(, "eps without a sum", r.eps = 1);
    WRONG(, "z0 without", r.z0 = in[17]);
    WRONG(, "m1 without", r.m1 = out.at[3]);
    WRONG(, "per of k is -1", r.k.per = -1);
    WRONG(, "rows of k overlap", r.k.row = 1);
    WRONG(, "a stride of v", r.v.batch = -1);
    WRONG(, "d_o is NULL", d.d_o = NULL);
    WRONG(, "ba_recurrence_grad", d.size = 0);
    WRONG(, "d_u without", d.d_u = grads[0]);
    WRONG(, "d_beta without", d.d_beta = grads[0]);
}

static void wrong_together(struct ba_engine *engine)
{
    WRONG(DECAYS, "g_width is 2", r.g_width = 2);
    WRONG(SUMS, "norm beside an erase", r.beta = gaps(in[7], T, H, 1));
    WRONG(SUMS, "den is NULL", r.den = NULL);
    WRONG(SUMS, "not finite", r.eps = NAN);
    WRONG(r.beta = gaps(in[7], T, H, 1), "beta beside a and b", r.a = r.b = r.k);
    WRONG(DECAYS; ERASES, "b is NULL", r.b.at = NULL);
    WRONG(DECAYS; r.u = in[8], "norm beside a bonus", r.norm = BA_NORM_SUM);
    WRONG(DECAYS; r.u = in[8], "u beside a write gate", r.i = gaps(in[6], T, H, 1));
    WRONG(GATED, "i without a normaliser", r.norm = BA_NORM_NONE);
    WRONG(GATED, "eps beside a write gate", r.eps = 1);
    WRONG(GATED, "i beside decays per channel", DECAYS);
    WRONG(r.s0 = in[10], "s1, which is s0", r.s1 = in[10]);
}

Test(library_members_recurrence, of_recurrences)
{
    for (int b = 0; ba_backend_name(b); b++) {
        struct ba_engine *const engine = library_engine(ba_backend_name(b), 1);
        struct rows_of_struct all = {{false}};
        fill();
        numbers(engine, &all);
        operands(engine, &all);
        states(engine, &all);
        wrong_alone(engine);
        wrong_together(engine);
        expect_rows(&all, sizeof(struct ba_recurrence), "ba_recurrence");
    }
}
