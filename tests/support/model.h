/* SPDX-License-Identifier: MIT
 *
 * For tests of whole models: every wiring of a layer, a model bound in an arena of its own, and
 * random text streamed through it. */
#pragma once

#include "each.h"
#include "open_engine.h"
#include "sanitized.h"
#include "set_choice.h"
#include "tests/support/kernel/fenced.h"
#include "variants/model/attention/around.h"
#include "variants/model/config/keys.h"
#include "variants/model/lm/depth.h"
#include "variants/model/lm/lm.h"

static inline bool ends_in(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);

    return n >= m && strcmp(name + n - m, end) == 0;
}

/* A variant with one of its residual wirings; plain values, for Criterion. */
struct form {
    int variant, gate, wiring; /* indexes; gate -1 = none */
};
enum { WIRINGS = 1024 };

/* What the row's `tiny` says of this turn. */
static inline void set_tiny(const struct choice *row, void *base, int turn)
{
    const char *values[8];
    char text[CHOICE_TEXT], *rest = text;
    int n = 0;

    snprintf(text, sizeof(text), "%s", row->tiny);
    while ((values[n] = strsep(&rest, "|")))
        cr_assert_lt(++n, (int)ARRAY_LEN(values));
    cr_assert_eq(choice_parse(row, base, values[turn % n], NULL), OK, "%s", row->name);
}

/* A small model whose sizes all differ, H*dh from D too; with every second `turn` of each option.
 */
static inline struct config wired(const struct form *w, int turn)
{
    struct config c = config_default(variants[w->variant], 12, 3, 5, 17, 2, 11);
    const struct choice *row;

    c.gate = w->gate < 0 ? NULL : gates[w->gate];
    c.wiring = (enum wiring)w->wiring;
    c.uv_per_layer = c.rel_per_head = turn >> 1 & 1;
    c.tied = !(turn >> 2 & 1) && !c.pos->from_tokens;
    c.clip = 3;
    c.rel_rows = turn & 1 ? 7 : 4;
    c.final_ln = turn >> 1 & 1;
    c.max_seq = 64;       /* rows of learned tables */
    c.aux_layers = false; /* they would be in the gradient only */
    c.aux_targets = 1;
    c.exit_window = 0;            /* windows end where calls do */
    if (c.mixer == &mixer_isab) { /* whose heads are as wide as the stream */
        c.H = c.kv_heads = 2;
        c.dh = 6;
        c.scale = (float)(1 / sqrt(6));
    }
    if (c.mixer == &mixer_routing)
        c.share_qk = !(turn & 2);
    for (int i = 0; (row = model_key(i)); i++)
        if (row->tiny && choice_applies(row, &c, SCOPE_MODEL))
            set_tiny(row, &c, turn);
    for (enum part_slot s = 0; s < SLOT_COUNT; s++)
        for (row = config_numbers_of(&c, s) ? config_numbers_of(&c, s)->choices : NULL;
             row && row->name; row++)
            if (row->tiny && (s < SLOT_AROUND || around_has(&c, s)))
                set_tiny(row, c.numbers[s].bytes, turn);
    if (c.mixer == &mixer_linformer && !c.causal)
        set_number(&c, "lin_block", 0);   /* blocks are of the past */
    for (int k = 0; k < c.masks.n; k++) { /* patterns that short texts are hidden from */
        struct mask *const m = &c.masks.at[k];
        m->window = min_int(m->window, 4);
        m->block = min_int(m->block, 3);
        m->stride = min_int(m->stride, 4);
        m->fixed = min_int(m->fixed, 4);
        m->summary = min_int(m->summary, 1 + (turn & 1));
        m->global = min_int(m->global, 2);
    }
    return c;
}

/* Set one of the fields of `c` if the model accepts the value; else leave it. */
static inline void choose_where_it_can(struct config *c, int *field, int value)
{
    const int before = *field;

    *field = value;
    if (config_check(c, NULL) != OK)
        *field = before;
}

/* Variants whose sub-layers join the stream by the same code, ignoring the inside of attention and
 * defaults. */
static inline bool same_form(const struct form *a, const struct form *b)
{
    const struct variant *const v = variants[a->variant], *const w = variants[b->variant];

    return variant_mem(v) == variant_mem(w) && v->ffn == w->ffn && v->order == w->order &&
           v->mixer == w->mixer && v->rnn_layers == w->rnn_layers && v->loops == w->loops &&
           a->gate == b->gate && a->wiring == b->wiring;
}

/* A variant as it is by default. */
static inline struct form default_form(int v)
{
    int gate = -1;

    for (int i = 0; variants[v]->gate && gates[i]; i++)
        gate = gates[i] == variants[v]->gate ? i : gate;
    return (struct form){v, gate, (int)variants[v]->wiring};
}

static inline bool own_form(const struct form *f)
{
    const struct form own = default_form(f->variant);

    return f->gate == own.gate && f->wiring == own.wiring;
}

/* Every variant in its own form, and every valid form (each wiring without a gate, reorder with
 * each gate) once for all variants that join the stream alike. `recurrent_only` leaves out those
 * without a memory of rows in every layer. Returns their number. */
static inline size_t all_wirings(struct form list[WIRINGS], bool recurrent_only)
{
    size_t n = 0;

    for (int v = 0; variants[v]; v++)
        for (int wiring = 0; wiring < WIRING_COUNT; wiring++)
            for (int gate = -1; gate < 0 || gates[gate]; gate++) {
                const struct form form = {v, gate, wiring};
                const struct config c = wired(&form, 0);
                bool again = false;
                for (size_t i = 0; i < n; i++)
                    again = again || same_form(&list[i], &form);
                const struct mem *const mem = variant_mem(variants[v]);
                if ((recurrent_only && (!mem->recurrent || mem->state)) ||
                    config_check(&c, &failure) != OK)
                    continue;
                if (again && !own_form(&form))
                    continue;
                cr_assert_lt(n, WIRINGS);
                list[n++] = form;
            }
    return n;
}

/* Forms share processes: to start one takes longer than most forms. Part p of a test has each
 * PARTS-th form from p on. */
enum { PARTS = 8 };

static inline struct criterion_test_params every_part(void) { return every_number(PARTS); }

/* Which form is being tested, for failed assertions. */
static char form_now[96];

static inline void name_form(const struct form *f)
{
    snprintf(form_now, sizeof(form_now), "%s, norm %s, gate %s", variants[f->variant]->name,
             wiring_name[f->wiring], f->gate < 0 ? "none" : gates[f->gate]->name);
}

/* Under sanitizers every third form, which depends on the test's line. */
static inline void each_form(int part, bool recurrent_only, int line,
                             void (*test)(const struct form *))
{
    struct form list[WIRINGS];
    const size_t n = all_wirings(list, recurrent_only);

    for (size_t i = (size_t)part; i < n; i += PARTS) {
        if (!sampled(i / PARTS + (size_t)line, 3))
            continue;
        name_form(&list[i]);
        test(&list[i]);
    }
}

/* The head of a test of one form `w`, run for all of them or for those with memory. */
#define EACH_FORM(suite, test, recurrent_only)                                                     \
    static void test(const struct form *w);                                                        \
    TEST_EACH(int *part, suite, test, every_part(), .timeout = 240)                                \
    {                                                                                              \
        each_form(*part, recurrent_only, __LINE__, test);                                          \
    }                                                                                              \
    static void test(const struct form *w)

struct model {
    struct engine g;
    struct lm lm;
    struct arena arena;
    float *nll;
};

static inline enum status model_bind(struct model *m, enum mem_kind kind, struct extent max,
                                     bool trains, struct err *e)
{
    TRY(lm_bind(&m->lm, &m->g, kind, max, &m->arena, e));
    return trains ? lm_bind_grad(&m->lm, &m->g, &m->arena, e) : OK;
}

/* Weights come from the seed, and tables from these: whoever changes weights builds tables anew.
 * Everything else starts as NaN. Weights are of type `elem`, or float. Kept until the test ends. */
static inline void model_open_as(struct model *m, const struct config *c, const char *backend,
                                 int threads, enum mem_kind kind, struct extent max, enum elem elem,
                                 bool trains)
{
    *m = (struct model){.g = open_engine(backend, threads)};
    MUST(lm_init(&m->lm, c, &failure));
    m->lm.all_logits = !trains;
    MUST(params_hold(&m->lm.params, elem, c->act_dtype, &m->g, &failure));
    MUST(model_bind(m, kind, max, trains, &failure));
    const size_t counted = m->arena.used;
    MUST(arena_place(&m->arena, HUGE_NEVER, NULL, NULL, &failure));
    memset(m->arena.base, 0xff, m->arena.size);
    MUST(model_bind(m, kind, max, trains, &failure));
    cr_assert_eq(m->arena.used, counted);
    params_init(&m->lm.params, SEED, 1);
    lm_build_tables(&m->lm, &m->g);
    m->nll = fenced((size_t)(max.B * max.L));
    kept_copy(m, sizeof(*m));
}

static inline void model_open_in(struct model *m, const struct config *c, const char *backend,
                                 int threads, enum mem_kind kind, struct extent max, enum elem elem)
{
    model_open_as(m, c, backend, threads, kind, max, elem, false);
}

static inline void model_open_trained(struct model *m, const struct config *c, const char *backend,
                                      int threads, enum mem_kind kind, struct extent max)
{
    model_open_as(m, c, backend, threads, kind, max, ELEM_F32, true);
}

static inline void model_open(struct model *m, const struct config *c, const char *backend,
                              int threads, enum mem_kind kind, struct extent max)
{
    model_open_in(m, c, backend, threads, kind, max, ELEM_F32);
}

/* Token t of sequence b of an endless random text. */
static inline int32_t token_of(const struct model *m, int b, int t)
{
    return (int32_t)(rng_u32(SEED, rng_stream("text"), (uint64_t)(b * 4096 + t)) %
                     (uint32_t)m->lm.c.V);
}

/* Tokens [first, first+L) of sequences [b0, b0+B); the last `scored` of each are scored against the
 * tokens after them. Does not commit. */
static inline void model_segment(struct model *m, int b0, int B, int first, int L, int scored)
{
    int32_t *tokens = room((size_t)(2 * B * L), sizeof(*tokens)), *targets = tokens + B * L;

    for (int b = 0; b < B; b++) {
        for (int t = 0; t < L; t++)
            tokens[b * L + t] = token_of(m, b0 + b, first + t);
        for (int t = 0; t < scored; t++)
            targets[b * scored + t] = token_of(m, b0 + b, first + L - scored + t + 1);
    }
    lm_forward(&m->lm, &m->g, tokens, B, L, scored, targets, m->nll);
}

/* The logits [B,T,V] of tokens [0, T) in segments of L with memory carried from one to the next;
 * the last segment may be shorter. Kept until the test ends. */
static inline float *model_stream(struct model *m, int b0, int B, int T, int L)
{
    const int V = m->lm.c.V;
    float *const all = room((size_t)(B * T * V), sizeof(*all));

    lm_build_tables(&m->lm, &m->g);
    lm_forget(&m->lm);
    for (int t = 0; t < T; t += L) {
        const int n = min_int(L, T - t);
        model_segment(m, b0, B, t, n, n);
        lm_commit(&m->lm, n);
        for (int b = 0; b < B; b++)
            memcpy(all + (b * T + t) * V, m->lm.logits + b * n * V,
                   sizeof(float) * (size_t)(n * V));
    }
    return all;
}

/* Those of tokens [0, T) of max.B sequences by a model of its own, in segments of L. */
static inline float *model_logits(const struct config *c, const char *backend, int threads,
                                  enum mem_kind kind, struct extent max, int T, int L)
{
    struct model m;

    model_open(&m, c, backend, threads, kind, max);
    return model_stream(&m, 0, max.B, T, L);
}

/* Floats that all layers remember of one sequence, if memory has M rows and segments L. */
static inline size_t floats_remembered(const struct config *c, enum mem_kind kind, int L, int M)
{
    enum { B = 2 };
    struct model m;

    model_open(&m, c, "ref", 1, kind, (struct extent){B, L, M});
    return m.arena.part[PART_MEMORY] / sizeof(float) / B;
}

/* What lm_backward differentiates besides the mean nll: the cost of pondering. */
static inline double pondering(const struct lm *m)
{
    const struct depth *const d = m->drive == &drive_depth ? m->drive_data : NULL;

    return d && d->halt ? (double)m->c.ponder_tau * d->ponder : 0;
}

/* The rule of a whole case as a number: below 1 it holds. Largest difference against 1e-4 of the
 * largest magnitude, mean square against 1e-10. */
static inline double case_error(const float *got, const float *want, size_t n)
{
    double worst = 0, largest = 0, off = 0, all = 0;

    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)got[i] - (double)want[i]);
        if (!(d <= worst))
            worst = d;
        largest = fmax(largest, fabs((double)want[i]));
        off += d * d;
        all += (double)want[i] * (double)want[i];
    }
    const double error = worst / (1e-4 * largest), square = off / (1e-10 * all);
    return error >= square ? error : square >= error ? square : INFINITY;
}

/* The logits `want` of one pass over T tokens are also those of segments of max.L. */
static inline void expect_segments(const struct config *c, const char *backend, enum mem_kind kind,
                                   struct extent max, int T, const float *want, const char *what)
{
    float *const got = model_logits(c, backend, 2, kind, max, T, max.L);
    const double error = case_error(got, want, (size_t)(max.B * T * c->V));

    cr_expect_lt(error, 1, "%s, %s, %s, segments of %d, memory %d: %.3g", what, backend,
                 mem_kind_name[kind], max.L, max.M, error);
}
