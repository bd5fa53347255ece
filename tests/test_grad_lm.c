/* SPDX-License-Identifier: MIT
 *
 * Whole models backward. On the reference every parameter of every wiring, gate and position scheme
 * is held against finite differences of the loss, with memory from an earlier segment where there
 * is one; every other backend is held against the reference. Whatever is not a weight starts as
 * NaN. */
#include "../variants/parts/parts.h"
#include "finite.h"
#include "model.h"

#include <criterion/parameterized.h>

enum { B = 2, L = 5, MEM = 4, FIRST = 3 }; /* FIRST tokens become memory before the segment */

struct trained {
    struct model m;
    int32_t tokens[B * L], targets[B * L];
    float nll[B * L];
    enum mem_kind kind;
};

/* Bound for longer segments and more memory than are run, so that tables have rows to spare. */
static const struct extent bound = {B, L + 2, MEM + 1};

static enum status bind_both(struct model *m, enum mem_kind kind, struct err *e)
{
    const enum status st = lm_bind(&m->lm, &m->g, kind, bound, &m->arena, e);

    return st == OK ? lm_bind_grad(&m->lm, &m->g, &m->arena, e) : st;
}

static void open_trained(struct trained *t, const struct config *config, const char *backend,
                         int threads)
{
    struct model *m = &t->m;
    struct config c = *config;
    struct err e = {""};

    *t = (struct trained){.kind = c.variant->mem->recurrent ? MEM_HIDDEN : MEM_NONE};
    c.max_seq = bound.L;
    if (engine_open(&m->g, backend, threads, NULL, &e) != OK)
        cr_skip_test("%s", e.msg);
    cr_assert_eq(lm_init(&m->lm, &c, &e), OK, "%s", e.msg);
    cr_assert_eq(bind_both(m, t->kind, &e), OK, "%s", e.msg);
    cr_assert_eq(arena_place(&m->arena, HUGE_NEVER, NULL, NULL, &e), OK, "%s", e.msg);
    memset(m->arena.base, 0xff, m->arena.size);
    cr_assert_eq(bind_both(m, t->kind, &e), OK, "%s", e.msg);
    params_init(&m->lm.params, SEED);
    for (int i = 0; i < B * L; i++) {
        t->tokens[i] = token_of(m, i / L, FIRST + i % L);
        t->targets[i] = token_of(m, i / L, FIRST + i % L + 1);
    }
}

static void close_trained(struct trained *t)
{
    lm_free(&t->m.lm);
    arena_release(&t->m.arena);
}

/* The tables follow the weights; memory, from the weights as they were, stays. */
static double loss(void *ctx)
{
    struct trained *t = ctx;
    double sum = 0;

    lm_lower(&t->m.lm, &t->m.g);
    lm_forward(&t->m.lm, &t->m.g, t->tokens, B, L, L, t->targets, t->nll);
    for (int i = 0; i < B * L; i++)
        sum += (double)t->nll[i];
    return sum / (B * L) + lm_extra_loss(&t->m.lm) +
           (double)t->m.lm.c.aux_coef * lm_aux(&t->m.lm, B, L);
}

static void remember(struct trained *t)
{
    int32_t tokens[B * FIRST];

    if (t->kind != MEM_HIDDEN)
        return;
    for (int i = 0; i < B * FIRST; i++)
        tokens[i] = token_of(&t->m, i / FIRST, i % FIRST);
    lm_lower(&t->m.lm, &t->m.g);
    lm_forward(&t->m.lm, &t->m.g, tokens, B, FIRST, FIRST, NULL, NULL);
    lm_commit(&t->m.lm, FIRST);
}

static void run_backward(struct trained *t)
{
    params_zero_grad(&t->m.lm.params);
    loss(t);
    lm_backward(&t->m.lm, &t->m.g, t->tokens, t->targets, B, L);
}

/* ---- finite differences ------------------------------------------------------------------- */

static bool ends_in(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);

    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Spans between two distances: at either a key appears or is whole. */
static void between_distances(const struct params *p)
{
    for (int i = 0; i < p->n; i++)
        for (size_t h = 0; strstr(p->v[i].name, "attn.span") && h < p->v[i].n; h++)
            p->v[i].data[h] = 0.4f + 0.1f * (float)h;
}

/* Small maps with biases of +1 and -1 in front of every ReLU: half of it is off, and no step comes
 * near its corner. */
static void avoid_corners(struct params *p)
{
    static const char *const maps[] = {"ff.1.weight",  "ff.2.weight",   "ff0.1.weight",
                                       "ff0.2.weight", "attn.o.weight", "halt.weight",
                                       "w_ih",         "w_hh"};
    static const char *const biases[] = {"ff.1.bias",  "ff.2.bias",   "ff0.1.bias",
                                         "ff0.2.bias", "attn.o.bias", "b_ih"};

    /* sinusoids at every step make a long stream */
    const float small = params_find(p, "halt.weight") ? 0.0625f : 0.25f;

    for (int i = 0; i < p->n; i++) {
        struct param *w = &p->v[i];
        if (ends_in(w->name, ".alpha")) /* begins near 0, where little of f would be seen */
            *w->data = 0.25f;
        for (size_t k = 0; k < ARRAY_LEN(maps); k++)
            for (size_t e = 0; e < w->n; e++) {
                if (ends_in(w->name, maps[k]))
                    w->data[e] *= small;
                if (k < ARRAY_LEN(biases) && ends_in(w->name, biases[k]))
                    w->data[e] = e % 2 ? -1 : 1;
            }
        quantise(w->data, w->n);
    }
}

/* The loss is a mean of B L numbers near ln V = 2.4, each stored once after some ten steps that
 * round to floats; their errors are not of one sign: 4 U of it. The gradient passes as many steps
 * of float, 64 U of its length. Where the true gradient is 0 (a key bias: softmax does not see what
 * is the same for all keys) the noise is all there is. */
static void expect_derivatives(struct trained *t)
{
    struct params *p = &t->m.lm.params;
    const struct scalar f = {loss, t, 4 * U * log(t->m.lm.c.V), 0x1p-6};
    float *grad = NULL;

    run_backward(t);
    for (int i = 0; i < p->n; i++) {
        const struct param *w = &p->v[i];
        grad = realloc(grad, w->n * sizeof(*grad));
        cr_assert_not_null(grad);
        memcpy(grad, w->grad, w->n * sizeof(*grad));
        expect_gradient(&f, w->name, w->data, grad, w->n, 64 * U, 2 * f.noise / f.step);
    }
    free(grad);
}

struct variation {
    struct form w;
    int turn;
};
ParameterizedTestParameters(grad_lm, is_the_derivative)
{
    static struct form wirings[WIRINGS];
    static struct variation list[2 * WIRINGS];
    const size_t n = all_wirings(wirings, false);
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        for (int half = 0; half < 2; half++) /* gated wirings with biases only: corners */
            list[k++] = (struct variation){
                wirings[i], (int)((i * 2 + (size_t)half * 5) | (wirings[i].gate >= 0)) % 8};
    return cr_make_param_array(struct variation, list, k);
}

ParameterizedTest(const struct variation *v, grad_lm, is_the_derivative)
{
    struct config c = wired(&v->w, v->turn);
    struct trained t;

    c.clamp_len = v->turn & 2 ? 3 : 0; /* of distances 0..7 */
    if (config_check(&c, NULL) != OK)  /* who tells all distances apart */
        c.clamp_len = 0;
    c.window = v->turn & 4 && !c.mixer ? 4 : 0;
    if (v->turn & 4) { /* more rows than there are distances */
        c.clip = 20;
        c.rel_rows = v->turn & 1 ? 41 : 21;
    }
    if (c.pos == &pos_sinusoid && v->turn & 1 && !c.mixer)
        c.pos = c.mixer ? c.pos : &pos_learned_layer;
    open_trained(&t, &c, "ref", 1);
    avoid_corners(&t.m.lm.params);
    between_distances(&t.m.lm.params);
    remember(&t);
    expect_derivatives(&t);
    close_trained(&t);
}

/* The same with a fixed mask everywhere that something is dropped; one under which no ReLU meets
 * its corner. */
ParameterizedTestParameters(grad_lm, is_the_derivative_with_dropout)
{
    static struct form wirings[WIRINGS];

    return cr_make_param_array(struct form, wirings, all_wirings(wirings, false));
}

ParameterizedTest(const struct form *w, grad_lm, is_the_derivative_with_dropout)
{
    struct config c = wired(w, w->gate >= 0);
    struct trained t;

    open_trained(&t, &c, "ref", 1);
    avoid_corners(&t.m.lm.params);
    between_distances(&t.m.lm.params);
    remember(&t);
    const double plain = loss(&t);
    t.m.lm.drop = (struct dropout){.p = 0.125f, .seed = SEED, .step = 8};
    cr_expect(fabs(loss(&t) - plain) > 1e-4, "nothing was dropped");
    expect_derivatives(&t);
    close_trained(&t);
}

/* ---- backends as the reference ------------------------------------------------------------ */

struct who {
    int backend;
};
static struct criterion_test_params all_but_ref(void)
{
    static struct who list[16];
    size_t n = 0;

    for (int i = 0; backends[i] && n < ARRAY_LEN(list); i++)
        if (backends[i] != &backend_ref)
            list[n++] = (struct who){i};
    return cr_make_param_array(struct who, list, n);
}

/* The training loss of a cell may be off by 1e-4; so may a gradient, of its largest
 * entry or, where it cancels to nothing, of the model's typical one. */
static void expect_like(const struct trained *got, const struct trained *want)
{
    const struct params *p = &got->m.lm.params, *q = &want->m.lm.params;
    double typical = 0;

    for (int i = 0; i < q->n; i++)
        for (size_t e = 0; e < q->v[i].n; e++)
            typical = fmax(typical, fabs((double)q->v[i].grad[e]));
    typical *= 1e-3;
    for (int i = 0; i < p->n; i++) {
        double largest = typical, worst = 0;
        for (size_t e = 0; e < p->v[i].n; e++)
            largest = fmax(largest, fabs((double)q->v[i].grad[e]));
        for (size_t e = 0; e < p->v[i].n; e++)
            worst = fmax(
                worst, in_bounds((double)p->v[i].grad[e], (double)q->v[i].grad[e], 1e-4 * largest));
        cr_expect(worst <= 1, "%s: %.3f of the bound", p->v[i].name, worst);
    }
}

static float *copy_gradients(const struct params *p, size_t *n)
{
    float *all = NULL;

    *n = 0;
    for (int i = 0; i < p->n; i++) {
        all = realloc(all, (*n + p->v[i].n) * sizeof(*all));
        cr_assert_not_null(all);
        memcpy(all + *n, p->v[i].grad, p->v[i].n * sizeof(*all));
        *n += p->v[i].n;
    }
    return all;
}

/* And the same backend twice, to the last bit. */
static void as_reference(const struct config *c, const char *backend)
{
    struct trained got, want;
    size_t n;

    open_trained(&want, c, "ref", 2);
    open_trained(&got, c, backend, 2);
    avoid_corners(&want.m.lm.params), avoid_corners(&got.m.lm.params);
    remember(&want), remember(&got);
    run_backward(&want), run_backward(&got);
    expect_like(&got, &want);

    float *first = copy_gradients(&got.m.lm.params, &n);
    run_backward(&got);
    float *second = copy_gradients(&got.m.lm.params, &n);
    cr_expect(memcmp(first, second, n * sizeof(*first)) == 0);
    free(first), free(second);
    close_trained(&got), close_trained(&want);
}

ParameterizedTestParameters(grad_lm, as_the_reference) { return all_but_ref(); }
ParameterizedTest(const struct who *w, grad_lm, as_the_reference)
{
    struct form wirings[WIRINGS];
    const size_t n = all_wirings(wirings, false);

    for (size_t i = 0; i < n; i++) {
        const struct config c = wired(&wirings[i], (int)(i % 8) | (wirings[i].gate >= 0));
        as_reference(&c, backends[w->backend]->name);
    }
}

/* ---- what training changes and what it does not ------------------------------------------- */

/* Keeping what backward needs does not change a bit of forward. */
Test(grad_lm, keeping_changes_nothing)
{
    struct form wirings[WIRINGS];
    const size_t n = all_wirings(wirings, false);

    for (int b = 0; backends[b]; b++)
        for (size_t i = 0; i < n && backends[b]->needs <= cpu_isa(); i++) {
            struct config c = wired(&wirings[i], (int)(i % 8));
            struct trained t;
            struct model plain;
            c.max_seq = bound.L;
            open_trained(&t, &c, backends[b]->name, 1);
            model_open(&plain, &c, backends[b]->name, 1, t.kind, bound);
            lm_lower(&t.m.lm, &t.m.g), lm_lower(&plain.lm, &plain.g);
            lm_forward(&t.m.lm, &t.m.g, t.tokens, B, L, L, t.targets, t.nll);
            lm_forward(&plain.lm, &plain.g, t.tokens, B, L, L, t.targets, plain.nll);
            cr_expect(memcmp(t.nll, plain.nll, sizeof(t.nll)) == 0, "%s", backends[b]->name);
            model_close(&plain), close_trained(&t);
        }
}

Test(grad_lm, gradients_are_added)
{
    const struct form w = {0, -1, WIRING_PRE};
    struct config c = wired(&w, 0);
    struct trained t;

    open_trained(&t, &c, "ref", 1);
    run_backward(&t);
    const struct param *E = &t.m.lm.params.v[t.m.lm.at_embed];
    float *once = malloc(E->n * sizeof(*once));
    cr_assert_not_null(once);
    memcpy(once, E->grad, E->n * sizeof(*once));
    loss(&t);
    lm_backward(&t.m.lm, &t.m.g, t.tokens, t.targets, B, L);
    for (size_t e = 0; e < E->n; e++)
        cr_expect_float_eq(E->grad[e], 2 * once[e], 1e-5f);
    free(once);
    close_trained(&t);
}

Test(grad_lm, ledger_has_one_gradient_per_weight)
{
    const struct form w = {2, -1, WIRING_POST};
    struct config c = wired(&w, 0);
    struct trained t;

    open_trained(&t, &c, "ref", 1);
    cr_expect_eq(t.m.arena.part[PART_GRADIENTS], t.m.arena.part[PART_WEIGHTS]);
    close_trained(&t);
}

Test(grad_lm, projected_memory_is_refused)
{
    const struct form w = {2, -1, WIRING_POST};
    struct config c = wired(&w, 0);
    struct model m = {0};
    struct err e = {""};

    cr_assert_eq(engine_open(&m.g, "ref", 1, NULL, &e), OK);
    cr_assert_eq(lm_init(&m.lm, &c, &e), OK);
    cr_expect_eq(bind_both(&m, MEM_KV, &e), E_UNSUPPORTED);
    cr_expect_not_null(strstr(e.msg, "  -> --mem-kind hidden"), "%s", e.msg);
    lm_free(&m.lm);
}

/* A backend whose attention has no backward pass says so by name. */
Test(grad_lm, missing_backward_is_refused)
{
    static const struct attn_impl forward_only = {.name = "forward_only"};
    struct engine g;
    struct err e = {""};

    cr_assert_eq(engine_open(&g, "ref", 1, NULL, &e), OK);
    cr_expect_eq(engine_attn_backward(&g, &forward_only, &e), E_UNSUPPORTED);
    cr_expect_not_null(strstr(e.msg, "backend ref has no backward pass"), "%s", e.msg);
    cr_expect_not_null(strstr(e.msg, "forward_only"), "%s", e.msg);
}
