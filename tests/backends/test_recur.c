/* SPDX-License-Identifier: MIT
 *
 * Linear recurrences of every backend against the reference: all members, both sides of one chunk
 * and of several, keys in front, a state in and out, shared heads, strong decays. The reference
 * itself is pinned by golden files. The rule is that of golden
 * files: the largest error against the largest value of the tensor. */
#include "harness/check/guarded.h"
#include "tests/support/every_backend.h"
#include "tests/support/in_double.h"
#include "tests/support/open_engine.h"
#include "tests/support/sanitized.h"
#include "variants/backends/recur.h"

TestSuite(recur, .timeout = 120);

enum decay { NO_DECAY, BY_HEAD, BY_CHANNEL };
enum erase { NO_ERASE, BY_OWN_KEY, FREE_RANK_ONE };

static const struct member {
    const char *name;
    enum decay decay;
    enum erase erase;
    bool bonus, gate;
    enum recur_norm norm;
    int q_heads, k_heads; /* that share one: 0 = none shares */
    float strength;       /* of the decays: mean of -g */
    bool resets;          /* some gates forget all: any g at which e^g is 0 or next to it */
} members[] = {
    {"linear", NO_DECAY, NO_ERASE, false, false, RECUR_SUM, 0, 0, 0, false},
    {"retention", BY_HEAD, NO_ERASE, false, false, RECUR_PLAIN, 0, 0, 0.1f, false},
    {"state space", BY_HEAD, NO_ERASE, false, false, RECUR_PLAIN, 2, 2, 0.5f, false},
    {"one row for all", BY_CHANNEL, NO_ERASE, false, false, RECUR_PLAIN, 1, 1, 0.3f, false},
    {"gated", BY_CHANNEL, NO_ERASE, false, false, RECUR_PLAIN, 0, 0, 0.2f, false},
    {"gated strongly", BY_CHANNEL, NO_ERASE, false, false, RECUR_PLAIN, 0, 0, 20, false},
    {"head strongly", BY_HEAD, NO_ERASE, false, false, RECUR_PLAIN, 0, 0, 30, false},
    {"plain", NO_DECAY, NO_ERASE, false, false, RECUR_PLAIN, 0, 0, 0, false},
    {"bonus", BY_CHANNEL, NO_ERASE, true, false, RECUR_PLAIN, 0, 0, 0.3f, false},
    {"delta", NO_DECAY, BY_OWN_KEY, false, false, RECUR_PLAIN, 0, 0, 0, false},
    {"gated delta", BY_HEAD, BY_OWN_KEY, false, false, RECUR_PLAIN, 0, 0, 0.2f, false},
    {"channel delta", BY_CHANNEL, BY_OWN_KEY, false, false, RECUR_PLAIN, 0, 0, 0.2f, false},
    {"rank one", BY_CHANNEL, FREE_RANK_ONE, false, false, RECUR_PLAIN, 0, 0, 0.3f, false},
    {"rank one without decay", NO_DECAY, FREE_RANK_ONE, false, false, RECUR_PLAIN, 0, 0, 0, false},
    {"matrix LSTM", BY_HEAD, NO_ERASE, false, true, RECUR_MLSTM, 0, 0, 0.2f, false},
    {"resets by head", BY_HEAD, NO_ERASE, false, false, RECUR_SUM, 0, 0, 0.2f, true},
    {"resets by channel", BY_CHANNEL, NO_ERASE, false, false, RECUR_PLAIN, 0, 0, 0.2f, true},
    {"resets and a bonus", BY_CHANNEL, NO_ERASE, true, false, RECUR_PLAIN, 0, 0, 0.2f, true},
    {"resets and delta", BY_HEAD, BY_OWN_KEY, false, false, RECUR_PLAIN, 0, 0, 0.2f, true},
    {"resets, channel delta", BY_CHANNEL, BY_OWN_KEY, false, false, RECUR_PLAIN, 0, 0, 0.2f, true},
    {"resets, rank one", BY_CHANNEL, FREE_RANK_ONE, false, false, RECUR_PLAIN, 0, 0, 0.2f, true},
    {"resets, matrix LSTM", BY_HEAD, NO_ERASE, false, true, RECUR_MLSTM, 0, 0, 0.2f, true},
    {"gate without decay", NO_DECAY, NO_ERASE, false, true, RECUR_SUM, 0, 0, 0, false},
};

static const struct shape {
    int B, H, Hs, L, M, dk, dv;
    bool state;
} shapes[] = {
    {1, 2, 2, 1, 0, 5, 4, true},      {2, 4, 2, 7, 0, 8, 3, true},
    {1, 4, 4, 16, 1, 7, 9, false},    {1, 4, 2, 17, 0, 16, 16, true},
    {2, 2, 2, 64, 5, 6, 17, true},    {1, 4, 4, 65, 64, 9, 8, true},
    {1, 2, 2, 150, 70, 24, 20, true}, {1, 2, 2, 0, 40, 6, 5, true},
    {1, 4, 2, 1, 0, 130, 300, true},  {1, 2, 2, 40, 0, 20, 200, true},
    {2, 46, 46, 21, 5, 1, 1, true},   {1, 200, 200, 60, 0, 1, 1, false},
    {2, 4, 2, 3, 0, 19, 33, true},    {1, 2, 1, 4, 0, 8, 150, true},
    {2, 70, 70, 37, 3, 16, 1, true},  {1, 18, 18, 21, 0, 21, 1, false},
    {2, 10, 10, 3, 2, 5, 1, true},    {1, 200, 200, 1, 0, 16, 1, true},
};

/* ---- problems ----------------------------------------------------------------------------- */

enum { Q, K, V, G, BETA, A, B, BONUS, GATE, S0, Z0, D_O, D_S1, INPUTS };
enum { O, DEN, S1, Z1, M1, OUTPUTS };
enum { D_Q, D_K, D_V, D_G, D_BETA, D_A, D_B, D_BONUS, D_GATE, D_S0, D_Z0, GRADS };
static const char *const output_name[OUTPUTS] = {"o", "den", "s", "z", "m"};
static const char *const grad_name[GRADS] = {"q", "k", "v", "g",  "beta", "a",
                                             "b", "u", "i", "s0", "z0"};

struct problem {
    struct recur r;
    float *in[INPUTS], *m0;
    size_t n[INPUTS];
};

/* Unit rows: what an erase reads must not grow. */
static void normalise(float *x, size_t rows, int n)
{
    for (size_t i = 0; i < rows; i++) {
        float sum = 1e-6f;
        for (int e = 0; e < n; e++)
            sum += x[i * (size_t)n + (size_t)e] * x[i * (size_t)n + (size_t)e];
        for (int e = 0; e < n; e++)
            x[i * (size_t)n + (size_t)e] /= sqrtf(sum);
    }
}

static struct recur_rows rows(const float *at, int T, int heads, int width, int per)
{
    return (struct recur_rows){at, (ptrdiff_t)T * heads * width, (ptrdiff_t)heads * width, width,
                               per};
}

static struct problem make(const struct member *m, const struct shape *s)
{
    const int T = s->M + s->L, gw = m->decay == NO_DECAY ? 0 : m->decay == BY_HEAD ? 1 : s->dk;
    const int q_heads = m->q_heads ? m->q_heads : s->H, k_heads = m->k_heads ? m->k_heads : s->Hs;
    const size_t keys = (size_t)(s->B * T), states = (size_t)(s->B * s->Hs), dk = (size_t)s->dk;
    struct problem p = {.n = {(size_t)(s->B * s->L * q_heads) * dk, keys * (size_t)k_heads * dk,
                              keys * (size_t)(s->Hs * s->dv), keys * (size_t)(s->Hs * gw),
                              m->erase == BY_OWN_KEY ? keys * (size_t)s->Hs : 0,
                              m->erase == FREE_RANK_ONE ? keys * (size_t)s->Hs * dk : 0,
                              m->erase == FREE_RANK_ONE ? keys * (size_t)s->Hs * dk : 0,
                              m->bonus ? (size_t)s->H * dk : 0, m->gate ? keys * (size_t)s->Hs : 0,
                              s->state ? states * dk * (size_t)s->dv : 0,
                              s->state && m->norm ? states * dk : 0,
                              (size_t)(s->B * s->L * s->H * s->dv), states * dk * (size_t)s->dv}};

    for (int i = 0; i < INPUTS; i++) {
        const char *const name = kept_text("in%d", i);
        const bool kept_positive = m->norm == RECUR_SUM && (i == Q || i == K || i == Z0);
        if (p.n[i])
            p.in[i] = kept_positive ? positive(p.n[i], name) : normal(p.n[i], name, 0, 1);
    }
    for (size_t i = 0; i < p.n[G]; i++)
        p.in[G][i] = -m->strength * p.in[G][i] * p.in[G][i];
    for (size_t i = 0; m->resets && i < p.n[G]; i++) {
        static const float logs[] = {0, -INFINITY, 0, -88, -1e-3f, -1000, -INFINITY, -3e38f, 0};
        const size_t at = rng_u32(7, 7, i) % (2 * ARRAY_LEN(logs)); /* others as they are */
        p.in[G][i] = at < ARRAY_LEN(logs) ? logs[at] : p.in[G][i];
    }
    for (size_t i = 0; i < p.n[BETA]; i++)
        p.in[BETA][i] = 2 / (1 + expf(-p.in[BETA][i]));
    if (m->erase == BY_OWN_KEY)
        normalise(p.in[K], p.n[K] / dk, s->dk);
    if (m->erase == FREE_RANK_ONE) {
        normalise(p.in[A], p.n[A] / dk, s->dk);
        for (size_t i = 0; i < p.n[B]; i++)
            p.in[B][i] = -p.in[A][i] * 0.7f;
    }
    p.m0 = calloc(states, sizeof(*p.m0));
    p.r = (struct recur){
        MEMBERS(s->, B, L, M, H, Hs, dk, dv),
        .scale = 0.5f,
        .q = rows(p.in[Q], s->L, q_heads, s->dk, s->H / q_heads),
        .k = rows(p.in[K], T, k_heads, s->dk, s->Hs / k_heads),
        .v = rows(p.in[V], T, s->Hs, s->dv, 1),
        .g = rows(p.in[G], T, s->Hs, gw, 1),
        .g_width = gw,
        .beta = rows(p.in[BETA], T, s->Hs, 1, 1),
        .a = rows(p.in[A], T, s->Hs, s->dk, 1),
        .b = rows(p.in[B], T, s->Hs, s->dk, 1),
        .u = p.in[BONUS],
        .i = rows(p.in[GATE], T, s->Hs, 1, 1),
        .norm = m->norm,
        .eps = 0.25f,
        .s0 = p.in[S0],
        .z0 = p.in[Z0],
        .m0 = m->gate && s->state ? p.m0 : NULL,
    };
    return p;
}

static void drop(struct problem *p)
{
    for (int i = 0; i < INPUTS; i++)
        if (p->in[i])
            release(p->in[i]);
    free(p->m0);
}

/* What one implementation gives. */
struct result {
    float *out[OUTPUTS], *grad[GRADS];
    size_t n_out[OUTPUTS], n_grad[GRADS];
};

static struct result run(const struct engine *g, const struct problem *p, bool backward,
                         bool in_place)
{
    struct recur r = p->r;
    const size_t rows_of_o = (size_t)(r.B * r.L * r.H), states = (size_t)(r.B * r.Hs);
    struct result t = {.n_out = {rows_of_o * (size_t)r.dv, rows_of_o,
                                 states * (size_t)(r.dk * r.dv), r.norm ? states * (size_t)r.dk : 0,
                                 r.i.at ? states : 0}};

    for (int i = 0; i < OUTPUTS; i++)
        t.out[i] = guarded(t.n_out[i]);
    r.o = t.out[O];
    r.den = t.out[DEN];
    r.s1 = t.out[S1];
    r.z1 = r.norm ? t.out[Z1] : NULL;
    r.m1 = r.i.at ? t.out[M1] : NULL;
    if (in_place && r.s0)
        r.s0 = memcpy(r.s1, r.s0, t.n_out[S1] * sizeof(float));
    if (in_place && r.z0)
        r.z0 = memcpy(r.z1, r.z0, t.n_out[Z1] * sizeof(float));
    if (in_place && r.m0)
        r.m0 = memcpy(r.m1, r.m0, t.n_out[M1] * sizeof(float));
    const struct recur_impl *const impl = engine_recur(g, &r, backward); /* by the states, too */
    cr_assert_not_null(impl);
    const size_t bytes = round_up(impl->need(&r, g->threads, backward), 64) + 64;
    void *const scratch = aligned_alloc(64, bytes);
    cr_assert_not_null(scratch);
    memset(scratch, r.L % 2 ? 0xff : 0x7b, bytes);
    impl->forward(g, &r, scratch);
    if (backward) {
        float *d[GRADS];
        for (int i = 0; i < GRADS; i++) {
            t.n_grad[i] = p->n[i];
            t.grad[i] = p->n[i] ? guarded(p->n[i]) : NULL;
            d[i] = t.grad[i];
        }
        for (size_t i = 0; i < p->n[BONUS]; i++)
            d[D_BONUS][i] = 0;
        const struct recur_grad grad = {.d_o = p->in[D_O],
                                        .d_s1 = p->in[D_S1],
                                        .d_q = d[D_Q],
                                        .d_k = d[D_K],
                                        .d_v = d[D_V],
                                        .d_g = d[D_G],
                                        .d_beta = d[D_BETA],
                                        .d_a = d[D_A],
                                        .d_b = d[D_B],
                                        .d_u = d[D_BONUS],
                                        .d_i = d[D_GATE],
                                        .d_s0 = d[D_S0],
                                        .d_z0 = d[D_Z0]};
        memset(scratch, r.L % 2 ? 0x7b : 0xff, bytes);
        impl->backward(g, &r, &grad, scratch);
    }
    free(scratch);
    for (int i = 0; i < OUTPUTS; i++)
        cr_expect(guards_intact(t.out[i], t.n_out[i]));
    for (int i = 0; i < GRADS; i++)
        cr_expect(!t.grad[i] || guards_intact(t.grad[i], t.n_grad[i]));
    return t;
}

static void drop_result(struct result *t)
{
    for (int i = 0; i < OUTPUTS; i++)
        release(t->out[i]);
    for (int i = 0; i < GRADS; i++)
        if (t->grad[i])
            release(t->grad[i]);
}

/* The largest error, in units of `limit` times the largest value, and `floor`. */
static double error(const float *got, const float *want, size_t n, double limit, double floor)
{
    const double bound = limit * fmax(1e-3, largest(want, n)) + floor;
    double worst = 0;

    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, in_bounds((double)got[i], (double)want[i], bound));
    return worst;
}

/* In chunks the gradient of a decay is a difference of sums of x dx over readers and writers, with
 * dk terms each and all keys of a chunk behind each other: with strong decays both are far larger
 * than their difference. */
static double decay_floor(const struct problem *p, const struct result *want)
{
    const double terms = p->r.dk * (double)(p->r.M + p->r.L);

    return U * terms *
           (largest(p->in[Q], p->n[Q]) * largest(want->grad[D_Q], p->n[Q]) +
            largest(p->in[K], p->n[K]) * largest(want->grad[D_K], p->n[K]));
}

static const double FORWARD = 3e-5, BACKWARD = 1e-4;

static void compare_outputs(const char *who, const char *member, size_t shape,
                            const struct result *got, const struct result *want)
{
    for (int o = 0; o < OUTPUTS; o++) {
        const double worst = error(got->out[o], want->out[o], want->n_out[o], FORWARD, 0);
        cr_expect_leq(worst, 1, "%s, %s, shape %zu: %s %.2f x its bound", who, member, shape,
                      output_name[o], worst);
    }
}

/* Members of a share, each on every backend: one run of the reference does for all. */
enum { SHARES = 4 };
static struct criterion_test_params every_share(void) { return every_number(SHARES); }

/* The first shape of a member: under sanitizers each has half of them. */
static size_t of_shape(size_t member) { return SANITIZED ? member / SHARES % 2 : 0; }

static bool takes_part(const struct backend *b)
{
    return b->adds == ELEM_F32 && backend_usable(b, NULL) == OK;
}

static void expect_gradients_of(const struct engine *g, const struct problem *p, size_t i, size_t k,
                                const struct result *want)
{
    struct result got = run(g, p, true, false);

    compare_outputs(g->backend->name, members[i].name, k, &got, want);
    for (int d = 0; d < GRADS; d++) {
        const double floor = d == D_G && p->n[G] ? decay_floor(p, want) : 0;
        const double worst = error(got.grad[d], want->grad[d], want->n_grad[d], BACKWARD, floor);
        cr_expect_leq(worst, 1, "%s, %s, shape %zu: gradient of %s %.2f x its bound",
                      g->backend->name, members[i].name, k, grad_name[d], worst);
    }
    drop_result(&got);
}

TEST_EACH(int *share, recur, every_backend_as_the_reference, every_share(), .timeout = 120)
{
    const struct engine ref = open_engine("ref", 1);

    for (size_t i = (size_t)*share; i < ARRAY_LEN(members); i += SHARES)
        for (size_t k = of_shape(i); k < ARRAY_LEN(shapes); k += SANITIZED ? 2 : 1) {
            struct problem p = make(&members[i], &shapes[k]);
            struct result want = run(&ref, &p, true, false);
            for (int n = 0; backends[n / 2]; n++) {
                if (!takes_part(backends[n / 2]) || !sampled(i + k / 2 + (size_t)n, 2))
                    continue;
                const struct engine g = open_engine(backends[n / 2]->name, 1 + n % 2);
                expect_gradients_of(&g, &p, i, k, &want);
            }
            drop_result(&want);
            drop(&p);
        }
}

/* As in decoding: what runs may be another implementation, and states may be replaced. Threads and
 * that change nothing, except where a library adds products in an order of its own. */
static void expect_forward(const struct backend *b, const struct problem *p, size_t i, size_t k,
                           const struct result *want)
{
    const struct engine one = open_engine(b->name, 1);
    struct result alone = run(&one, p, false, false);
    const struct engine g = open_engine(b->name, 3);
    struct result got = run(&g, p, false, true);

    compare_outputs(b->name, members[i].name, k, &alone, want);
    compare_outputs(b->name, members[i].name, k, &got, want);
    for (int o = 0; one.recur != recur_composed && o < OUTPUTS; o++)
        cr_expect_eq(memcmp(got.out[o], alone.out[o], got.n_out[o] * sizeof(float)), 0,
                     "%s, %s, shape %zu: %s depends on the number of threads", b->name,
                     members[i].name, k, output_name[o]);
    drop_result(&alone);
    drop_result(&got);
}

static void expect_forward_everywhere(int share, bool bf16)
{
    const struct engine ref = open_engine("ref", 1);

    for (size_t i = (size_t)share; i < ARRAY_LEN(members); i += SHARES)
        for (size_t k = of_shape(i); k < ARRAY_LEN(shapes); k += SANITIZED ? 2 : 1) {
            struct problem p = make(&members[i], &shapes[k]);
            p.r.bf16 = bf16;
            if (bf16 && p.r.dk == 1) /* ones */
                p.r.q.at = p.r.k.at = NULL;
            struct result want = run(&ref, &p, false, false);
            for (int b = 0; backends[b]; b++)
                if (takes_part(backends[b]))
                    expect_forward(backends[b], &p, i, k, &want);
            drop_result(&want);
            drop(&p);
        }
}

TEST_EACH(int *share, recur, states_in_place_without_gradients, every_share(), .timeout = 120)
{
    expect_forward_everywhere(*share, false);
}

/* Both sides multiply the same numbers: the bounds are those of floats. */
TEST_EACH(int *share, recur, of_rounded_operands, every_share(), .timeout = 120)
{
    expect_forward_everywhere(*share, true);
}

/* ---- not a number ------------------------------------------------------------------------- */

/* A decay that is none makes what follows none: no clamp takes it for a number. */
TEST_EACH(int *b, recur, decays_of_nan, every_backend(), .timeout = 120)
{
    const struct engine g = open_engine(backends[*b]->name, 1);

    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
            const int ahead = members[i].bonus; /* the decay is that of the next token's state */
            if (members[i].decay == NO_DECAY || shapes[k].L == 0 ||
                shapes[k].M + shapes[k].L <= ahead)
                continue;
            struct problem p = make(&members[i], &shapes[k]);
            p.in[G][0] = NAN;
            struct result t = run(&g, &p, false, false);
            bool none = false;
            for (int v = 0; v < p.r.dv; v++)
                none = none || isnan(t.out[O][(p.r.L - 1) * p.r.H * p.r.dv + v]);
            cr_expect(none, "%s, %s, shape %zu", g.backend->name, members[i].name, k);
            drop_result(&t);
            drop(&p);
        }
}

/* ---- rounding ------------------------------------------------------------------------------ */

/* Below a tie of two numbers of bf16, at it and above, and subnormal numbers. */
static void put_corners(float *x, size_t n)
{
    static const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};

    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        bits = (i % 17 ? bits & 0xffff0000 : 0x10000) | lower[i % ARRAY_LEN(lower)];
        memcpy(&x[i], &bits, sizeof(bits));
    }
}

/* Exactly q, k, v, a and b are rounded, as elem.h does it, and nothing twice: the bits of a call
 * with the rounded numbers. */
TEST_EACH(int *b, recur, operands_are_rounded, every_backend(), .timeout = 120)
{
    static const int rounded[] = {Q, K, V, A, B};
    const struct engine g = open_engine(backends[*b]->name, 1);

    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
            if (shapes[k].dk == 1 && shapes[k].dv == 1)
                continue; /* floats have a kernel of their own */
            struct problem p = make(&members[i], &shapes[k]);
            for (size_t x = 0; x < ARRAY_LEN(rounded); x++)
                put_corners(p.in[rounded[x]], p.n[rounded[x]]);
            p.r.bf16 = true;
            struct result got = run(&g, &p, false, false);
            for (size_t x = 0; x < ARRAY_LEN(rounded); x++)
                bf16_round(p.in[rounded[x]], p.n[rounded[x]]);
            p.r.bf16 = false;
            struct result want = run(&g, &p, false, false);
            for (int o = 0; o < OUTPUTS; o++)
                cr_expect_eq(memcmp(got.out[o], want.out[o], want.n_out[o] * sizeof(float)), 0,
                             "%s, %s, shape %zu: %s is not that of rounded operands",
                             g.backend->name, members[i].name, k, output_name[o]);
            drop_result(&got);
            drop_result(&want);
            drop(&p);
        }
}
