/* SPDX-License-Identifier: MIT
 *
 * The recurrence itself as a step, executed by the engine's implementation (backends/recur.h). */
#include "steps.h"
#include "variants/backends/recur.h"

enum { IN_Q, IN_K, IN_V, IN_G, IN_BETA, IN_A, IN_B, IN_I };
enum { OUT_O, OUT_DEN };
enum { STATE_S, STATE_Z, STATE_M };
enum { HEADS, DK, DV, NORM, Q_HEADS, K_HEADS, STATES, BF16 }; /* numbers */
enum { SCALE, EPS };

/* Rows of `heads` heads, which `states` heads share in groups, `rows` of them in each of m. */
static struct recur_rows rows_of(const struct matrix *m, int L, int rows, int heads, int states)
{
    CHECK(rows == 1 || m->row == m->n);
    return (struct recur_rows){.at = m->at,
                               .batch = m->row * L,
                               .row = m->row / rows,
                               .head = heads ? m->n / rows / heads : 0,
                               .per = heads ? states / heads : 0};
}

/* Of the recurrence, in each of the list's. */
static int rows_in(const struct step *s) { return s->width[IN_V] / (s->n[STATES] * s->n[DV]); }

static struct recur shape_of(const struct step *s, int B, int L)
{
    const int Hs = s->n[STATES];

    return (struct recur){.B = B,
                          .L = L * rows_in(s),
                          .H = s->n[HEADS],
                          .Hs = Hs,
                          .dk = s->n[DK],
                          .dv = s->n[DV],
                          .scale = s->x[SCALE],
                          .g_width = s->in[IN_G] < 0 ? 0 : s->width[IN_G] / Hs / rows_in(s),
                          .norm = (enum recur_norm)s->n[NORM],
                          .eps = s->x[EPS]};
}

/* The call's operands: `in` are its inputs, of which step_recur says how many heads they have. */
static struct recur operands_of(const struct step *s, int B, int L, const struct matrix *in)
{
    const int Hs = s->n[STATES], rows = rows_in(s);
    struct recur r = shape_of(s, B, L);

    r.q = rows_of(&in[IN_Q], L, rows, s->n[Q_HEADS], s->n[HEADS]);
    r.k = rows_of(&in[IN_K], L, rows, s->n[K_HEADS], Hs);
    r.v = rows_of(&in[IN_V], L, rows, Hs, Hs);
    r.g = rows_of(&in[IN_G], L, rows, Hs, Hs);
    r.beta = rows_of(&in[IN_BETA], L, rows, Hs, Hs);
    r.a = rows_of(&in[IN_A], L, rows, Hs, Hs);
    r.b = rows_of(&in[IN_B], L, rows, Hs, Hs);
    r.i = rows_of(&in[IN_I], L, rows, Hs, Hs);
    return r;
}

/* Does it multiply numbers of bf16? It is trained in f32. */
static bool multiplies_bf16(const struct engine *g, const struct step *s)
{
    return s->n[BF16] && !g->rounds;
}

static struct recur recur_of(const struct step_call *c)
{
    struct recur r = operands_of(c->s, c->B, c->L, c->in);

    r.bf16 = multiplies_bf16(c->g, c->s);
    r.u = c->param[0] ? c->param[0]->data : NULL;
    r.s0 = c->before[STATE_S];
    r.z0 = c->before[STATE_Z];
    r.m0 = c->before[STATE_M];
    r.s1 = c->after[STATE_S];
    r.z1 = c->after[STATE_Z];
    r.m1 = c->after[STATE_M];
    r.o = c->out[OUT_O].at;
    r.den = c->out[OUT_DEN].at;
    return r;
}

static void forward(const struct step_call *c)
{
    const struct recur r = recur_of(c);

    engine_recur(c->g, &r, false)->forward(c->g, &r, c->scratch);
}

static void backward(const struct step_call *c)
{
    struct recur r = recur_of(c);
    const struct recur_grad d = {.d_o = c->d_out[OUT_O].at,
                                 .d_q = c->d_in[IN_Q].at,
                                 .d_k = c->d_in[IN_K].at,
                                 .d_v = c->d_in[IN_V].at,
                                 .d_g = c->d_in[IN_G].at,
                                 .d_beta = c->d_in[IN_BETA].at,
                                 .d_a = c->d_in[IN_A].at,
                                 .d_b = c->d_in[IN_B].at,
                                 .d_i = c->d_in[IN_I].at,
                                 .d_u = c->param[0] ? c->param[0]->grad : NULL};

    r.s1 = r.z1 = r.m1 = NULL; /* the forward pass has written them */
    engine_recur(c->g, &r, true)->backward(c->g, &r, &d, c->scratch);
}

/* Which operands there are, and which rows are shared, decides which implementation accepts and
 * what it needs; their addresses do not matter. */
static struct recur like(const struct step *s, int B, int L, bool states)
{
    static float there[1];
    struct matrix in[STEP_IN];

    for (int i = 0; i < STEP_IN; i++)
        in[i] = (struct matrix){
            .at = s->in[i] < 0 ? NULL : there, .row = s->width[i], .n = s->width[i]};
    struct recur r = operands_of(s, B, L, in);
    r.u = s->param[0] < 0 ? NULL : there;
    r.s0 = r.s1 = states ? there : NULL;
    return r;
}

/* A check runs the reference in the same work space, whatever the engine it is for. */
static size_t scratch(const struct engine *g, const struct step *s, struct extent max,
                      bool backward)
{
    size_t most = 0;

    for (int turn = 0; turn < 4; turn++) { /* one row may run elsewhere, and so with states */
        struct recur r = like(s, max.B, turn & 1 ? 1 : max.L, turn & 2);
        r.bf16 = !backward && multiplies_bf16(g, s);
        const struct recur_impl *const impls[] = {engine_recur(g, &r, backward), &recur_ref};
        for (size_t i = 0; i < ARRAY_LEN(impls); i++) {
            const size_t bytes = impls[i]->need(&r, g->threads, backward);
            most = bytes > most ? bytes : most;
        }
    }
    return most;
}

static const char *impl(const struct engine *g, const struct step *s, int B, int L, bool backward)
{
    struct recur r = like(s, B, L, true);

    r.bf16 = !backward && multiplies_bf16(g, s);
    return engine_recur(g, &r, backward)->name;
}

static double flop(const struct step *s, int B, int L)
{
    const struct recur r = like(s, B, L, true);

    return recur_flop(&r);
}

/* Is the value so wide, or absent? The layer's input, number 0, is what a field has that was
 * forgotten. */
static bool is_wide(const struct steps *t, int value, int n)
{
    return value == NO_VALUE || (value != STEPS_INPUT && t->value[value].width == n);
}

static void need_operands(struct steps *t, const struct recurrence *r, int states)
{
    const bool counts = r->heads > 0 && r->dk > 0 && r->dv > 0 && states > 0;
    const int rows = max_int(1, r->rows), all = rows * states;
    const int per_q = rows * (r->q_heads ? r->q_heads : r->heads);
    const int per_k = rows * (r->k_heads ? r->k_heads : states);

    steps_need(t, counts && r->heads % states == 0,
               "a recurrence has no heads, dk or dv  -> begin with mix_recurrence()");
    steps_need(t, r->scale != 0, "a recurrence has no scale  -> .scale = t->c->scale");
    steps_need(t, r->v != NO_VALUE && is_wide(t, r->v, all * r->dv),
               "a recurrence has no .v of H dv columns  -> mix_qkv(t, true).v");
    steps_need(t, is_wide(t, r->q, per_q * r->dk) && (r->q != NO_VALUE || r->dk == 1),
               "a recurrence has no .q of H dk columns  -> mix_qkv(t, true).q");
    steps_need(t, is_wide(t, r->k, per_k * r->dk) && (r->k != NO_VALUE || r->dk == 1),
               "a recurrence has no .k of H dk columns  -> mix_qkv(t, true).k");
    steps_need(t, is_wide(t, r->g, all) || is_wide(t, r->g, all * r->dk),
               "a recurrence has a .g of neither H nor H dk columns  -> such a value, or NO_VALUE");
    steps_need(t, is_wide(t, r->beta, all),
               "a recurrence has a .beta of other than H columns  -> such a value, or NO_VALUE");
    steps_need(
        t, is_wide(t, r->a, all * r->dk) && is_wide(t, r->b, all * r->dk),
        "a recurrence has an .a or .b of other than H dk columns  -> such a value, or NO_VALUE");
    steps_need(t, (r->a == NO_VALUE) == (r->b == NO_VALUE),
               "a recurrence has one of .a and .b  -> both, or NO_VALUE");
    steps_need(
        t, is_wide(t, r->i, all) && (r->i == NO_VALUE || r->g == NO_VALUE || is_wide(t, r->g, all)),
        "a recurrence has an .i of other than H columns, or a .g of more beside it  -> such "
        "values, or NO_VALUE");
}

int step_recur(struct steps *t, struct recurrence r)
{
    static const struct step_kind kind = {
        "recur",      forward,     backward, .overwrites = true, .scratch = scratch,
        .impl = impl, .flop = flop};
    const int states = r.states ? r.states : r.heads, rows = max_int(1, r.rows);
    struct step *const s = STEP_READING(t, &kind, r.q, r.k, r.v, r.g, r.beta, r.a, r.b, r.i);

    need_operands(t, &r, states);
    s->n[HEADS] = r.heads;
    s->n[DK] = r.dk;
    s->n[DV] = r.dv;
    s->n[NORM] = r.norm;
    s->n[Q_HEADS] = r.q_heads ? r.q_heads : r.heads;
    s->n[K_HEADS] = r.k_heads ? r.k_heads : states;
    s->n[STATES] = states;
    /* A state of one number adds values times numbers: no product of vectors is rounded for. */
    s->n[BF16] = t->c->dtype == ELEM_BF16 && (r.dk > 1 || r.dv > 1);
    s->x[SCALE] = r.scale;
    s->x[EPS] = r.eps;
    if (r.bonus)
        step_tensor(t, s, INIT_TABLE, 0, 2, (const int[]){r.heads, r.dk}, r.bonus);
    step_state(t, s, r.state ? r.state : "state_s", states * r.dk * r.dv, 0);
    if (r.norm != RECUR_PLAIN) {
        step_state(t, s, "state_z", states * r.dk, 0);
        if (r.i != NO_VALUE)
            step_state(t, s, "state_m", states, -INFINITY);
    }
    const int o = step_writes(t, s, max_int(t->lacks != NULL, rows * r.heads * r.dv));
    if (r.norm != RECUR_PLAIN)
        step_writes(t, s, rows * r.heads);
    return o;
}
