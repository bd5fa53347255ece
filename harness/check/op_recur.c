/* SPDX-License-Identifier: MIT
 *
 * Cases of linear recurrences: every form, with one chunk of keys and with several, states replaced
 * in place, operands as they are and rounded. All members, strong decays and odd shapes are in
 * tests/backends/test_recur.c. */
#include "op_inner.h"

static const struct form {
    const char *name;
    int decay; /* 0, 1 per head, 2 per channel */
    bool own_key, rank_one, bonus, gate;
    enum recur_norm norm;
} forms[] = {
    {.name = "head decay", .decay = 1},
    {.name = "channel decay", .decay = 2},
    {.name = "own-key erase", .decay = 1, .own_key = true},
    {.name = "rank one", .decay = 2, .rank_one = true},
    {.name = "bonus", .decay = 2, .bonus = true},
    {.name = "own-key erase, channels", .decay = 2, .own_key = true},
    {.name = "write gate", .decay = 1, .gate = true, .norm = RECUR_MLSTM},
    {.name = "sum", .norm = RECUR_SUM},
};
static const struct size {
    int B, H, Hs, L, dk, dv;
} sizes[] = {{1, 4, 2, 1, 17, 20},
             {2, 4, 2, 21, 8, 33},
             {1, 2, 2, 70, 16, 16},
             {2, 20, 20, 21, 16, 1}},
  large = {1, 8, 8, 256, 64, 64}, step = {8, 8, 8, 1, 64, 64};
enum {
    FORMS = ARRAY_LEN(forms),
    CASES = 2 * FORMS * ARRAY_LEN(sizes),
    GRAD_CASES = FORMS * ARRAY_LEN(sizes)
};

static struct recur_rows rows(const float *at, const struct size *s, int heads, int width)
{
    return (struct recur_rows){at, (ptrdiff_t)s->L * heads * width, (ptrdiff_t)heads * width, width,
                               1};
}

/* Keys, erasers and their partners are short, so that no state grows. */
static void make_recur(struct trial *t, const struct form *f, const struct size *s)
{
    const int gw = f->decay == 2 ? s->dk : f->decay;
    const size_t keys = (size_t)s->B * (size_t)s->L * (size_t)s->Hs, dk = (size_t)s->dk;
    const size_t queries = (size_t)s->B * (size_t)s->L * (size_t)s->H;
    const size_t states = (size_t)s->B * (size_t)s->Hs;
    const float sd = 0.5f / sqrtf((float)s->dk);
    float *const g = gw ? operand_positive(t, keys * (size_t)gw, "g") : NULL;
    float *const beta = f->own_key ? constant(t, keys, 0.75f) : NULL;
    float *const a = f->rank_one ? operand(t, keys * dk, "a", 0, sd) : NULL;
    float *const b = f->rank_one ? operand(t, keys * dk, "b", 0, sd) : NULL;

    for (size_t i = 0; g && i < keys * (size_t)gw; i++)
        g[i] *= -0.2f;
    t->a.recur = (struct recur){
        .B = s->B,
        .L = s->L,
        .H = s->H,
        .Hs = s->Hs,
        .dk = s->dk,
        .dv = s->dv,
        .scale = 0.5f,
        .q = rows(operand_positive(t, queries * dk, "q"), s, s->H, s->dk),
        .k = rows(f->norm == RECUR_SUM ? operand_positive(t, keys * dk, "k")
                                       : operand(t, keys * dk, "k", 0, sd),
                  s, s->Hs, s->dk),
        .v = rows(operand(t, keys * (size_t)s->dv, "v", 0, 1), s, s->Hs, s->dv),
        .g = rows(g, s, s->Hs, gw),
        .g_width = gw,
        .beta = rows(beta, s, s->Hs, 1),
        .a = rows(a, s, s->Hs, s->dk),
        .b = rows(b, s, s->Hs, s->dk),
        .u = f->bonus ? operand(t, (size_t)s->H * dk, "u", 0, 1) : NULL,
        .i = rows(f->gate ? operand(t, keys, "i", 0, 1) : NULL, s, s->Hs, 1),
        .norm = f->norm,
        .eps = 0.5f,
        .s0 = operand(t, states * dk * (size_t)s->dv, "s", 0, 1),
        .z0 = f->norm ? operand_positive(t, states * dk, "z") : NULL,
        .m0 = f->gate ? constant(t, states, 0.25f) : NULL,
    };
    snprintf(t->name, sizeof(t->name), "%s, B %d H %d Hs %d L %d dk %d dv %d%s", f->name, s->B,
             s->H, s->Hs, s->L, s->dk, s->dv, t->over ? ", in place" : "");
}

static size_t states_of(const struct recur *r) { return (size_t)r->B * (size_t)r->Hs; }

static size_t outputs_of(const struct recur *r)
{
    return (size_t)r->B * (size_t)r->L * (size_t)r->H * (size_t)r->dv;
}

/* ---- forward ------------------------------------------------------------------------------ */

enum { O, S1, Z1, M1 };

static void put_outputs(struct trial *t)
{
    const struct recur *r = &t->a.recur;
    const size_t dk = (size_t)r->dk;

    output(t, "o", outputs_of(r), NULL);
    output(t, "s", states_of(r) * dk * (size_t)r->dv, r->s0);
    output(t, "z", r->z0 ? states_of(r) * dk : 0, r->z0);
    output(t, "m", r->m0 ? states_of(r) : 0, r->m0);
}

static void forward_make(struct trial *t, int at)
{
    const bool timed = at >= CASES;

    t->over = timed || pick(&at, 2);
    const int form = timed ? at - CASES : pick(&at, FORMS);
    make_recur(t, &forms[form], timed ? &large : &sizes[at]);
    put_outputs(t);
}

static void step_make(struct trial *t, int at)
{
    t->over = true;
    make_recur(t, &forms[at < (int)FORMS ? at : at - (int)FORMS],
               at < (int)FORMS ? &sizes[0] : &step);
    put_outputs(t);
}

/* Of operands that are rounded: the same numbers for both, so the bounds are those of floats. Two
 * of the shapes to time are steps. */
static void bf16_make(struct trial *t, int at)
{
    enum { OF_CHUNKS = CASES + 2 };

    if (at < OF_CHUNKS)
        forward_make(t, at);
    else
        step_make(t, FORMS + at - OF_CHUNKS);
    t->a.recur.bf16 = true;
}

static const struct recur_impl *implementation(const struct engine *g, struct trial *t,
                                               const struct recur *r, bool backward)
{
    const struct recur_impl *const impl = engine_recur(g, r, backward);

    if (!impl)
        (void)fail(&t->refusal, E_UNSUPPORTED, "%s has no such recurrence", g->backend->name);
    return impl;
}

static void forward_run(const struct engine *g, struct trial *t, float *const *out)
{
    struct recur r = t->a.recur;

    r.o = out[O];
    r.s1 = out[S1];
    r.z1 = r.z0 ? out[Z1] : NULL;
    r.m1 = r.m0 ? out[M1] : NULL;
    if (t->in_place) {
        r.s0 = r.s1;
        r.z0 = r.z1;
        r.m0 = r.m1;
    }
    const struct recur_impl *const impl = implementation(g, t, &r, false);
    if (impl)
        impl->forward(g, &r, workspace(t, impl->need(&r, g->threads, false)));
}

/* Sums of up to a few hundred terms, each a product of decays: the rule of golden files. */
static void bounds(struct trial *t, double limit)
{
    for (int k = 0; k < t->n_out; k++) {
        const double most = fmax(1e-3, largest(t->out[k].want, t->out[k].n));
        for (size_t i = 0; i < t->out[k].n; i++)
            t->out[k].bound[i] = limit * most;
    }
}

static void forward_bounds(struct trial *t) { bounds(t, 3e-5); }

/* ---- backward ----------------------------------------------------------------------------- */

static void backward_make(struct trial *t, int at)
{
    const bool timed = at >= GRAD_CASES;
    const int form = timed ? at - GRAD_CASES : pick(&at, FORMS);
    make_recur(t, &forms[form], timed ? &large : &sizes[at]);
    const struct recur *r = &t->a.recur;
    const size_t dk = (size_t)r->dk, keys = states_of(r) * (size_t)r->L;

    t->a.recur.o = scratch(t, outputs_of(r));
    t->a.recur.den = scratch(t, outputs_of(r) / (size_t)r->dv);
    t->a.recur_grad =
        (struct recur_grad){.d_o = operand(t, outputs_of(r), "do", 0, 1),
                            .d_s1 = operand(t, states_of(r) * dk * (size_t)r->dv, "ds", 0, 1)};
    output(t, "dq", outputs_of(r) / (size_t)r->dv * dk, NULL);
    output(t, "dk", keys * dk, NULL);
    output(t, "dv", keys * (size_t)r->dv, NULL);
    output(t, "dg", r->g.at ? keys * (size_t)r->g_width : 0, NULL);
    output(t, "dbeta", r->beta.at ? keys : 0, NULL);
    output(t, "da", r->a.at ? keys * dk : 0, NULL);
    output(t, "db", r->b.at ? keys * dk : 0, NULL);
    output(t, "di", r->i.at ? keys : 0, NULL);
    output(t, "ds0", states_of(r) * dk * (size_t)r->dv, NULL);
}

static void backward_run(const struct engine *g, struct trial *t, float *const *out)
{
    const struct recur *const r = &t->a.recur;
    struct recur_grad d = t->a.recur_grad;
    const struct recur_impl *const impl = implementation(g, t, r, true);

    if (!impl)
        return;
    float **const of[] = {&d.d_q, &d.d_k, &d.d_v, &d.d_g, &d.d_beta,
                          &d.d_a, &d.d_b, &d.d_i, &d.d_s0};
    for (int k = 0; k < t->n_out; k++)
        *of[k] = t->out[k].n > 0 ? out[k] : NULL;
    const size_t ahead = impl->need(r, g->threads, false), back = impl->need(r, g->threads, true);
    void *const room = workspace(t, ahead > back ? ahead : back);
    impl->forward(g, r, room);
    impl->backward(g, r, &d, room);
}

static void backward_bounds(struct trial *t) { bounds(t, 1e-4); }

/* ---- the rows ----------------------------------------------------------------------------- */

static bool has_recur(const struct engine *g) { return g->backend->recur != NULL; }

/* Useful work in chunks of 16 keys, whatever the backend's; bytes of a state read and written. */
#define LARGE (8 * 256.0 * 64 * 64)
#define PAIRS (8 * 256.0 * 16 * 2 * 64)
#define STEP_BYTES (8 * 8 * 64 * 64 * 8.0)
#define PLAIN_TIMING(by)                                                                           \
    {"256 keys, head decay", "GFLOP/s", (by)*1e-9 * (4 * LARGE + PAIRS)},                          \
    {                                                                                              \
        "256 keys, channels", "GFLOP/s", (by)*1e-9 * (4 * LARGE + PAIRS)                           \
    }
#define ERASE_TIMING(by)                                                                           \
    {"256 keys, own erase", "GFLOP/s", (by)*1e-9 * (6 * LARGE + 2 * PAIRS)},                       \
    {                                                                                              \
        "256 keys, rank one", "GFLOP/s", (by)*1e-9 * (8 * LARGE + 4 * PAIRS)                       \
    }
#define STEP_TIMING(of)                                                                            \
    {                                                                                              \
        "8x8 states, " of, "GB/s", 1e-9 * STEP_BYTES                                               \
    }

const struct op_row op_recurs[RECUR_ROWS] = {
    {"recur", -1, CASES, forward_make, forward_run, forward_bounds, .same_bits = true,
     .has = has_recur, .timing = {PLAIN_TIMING(1), ERASE_TIMING(1)}},
    {"recur_bf16", -1, CASES, bf16_make, forward_run, forward_bounds, .same_bits = true,
     .has = has_recur,
     .timing = {PLAIN_TIMING(1), STEP_TIMING("head decay"), STEP_TIMING("channels")}},
    /* with forward */
    {"recur_grad", -1, GRAD_CASES, backward_make, backward_run, backward_bounds, .same_bits = true,
     .has = has_recur, .timing = {PLAIN_TIMING(3), ERASE_TIMING(3)}},
    {"recur_step", -1, FORMS, step_make, forward_run, forward_bounds, .same_bits = true,
     .has = has_recur,
     .timing = {STEP_TIMING("head decay"), STEP_TIMING("channels"), STEP_TIMING("own erase"),
                STEP_TIMING("rank one")}},
};
