/* SPDX-License-Identifier: MIT
 *
 * What must hold for every variant of the registry, whatever it computes: later tokens change
 * nothing before them, a text can be cut anywhere, decoding is the same as reading, positions go on
 * beyond any table, seeds make a difference. Lengths are those that nothing divides. Where a
 * property does not hold by design, the variant's own description says so. */
#include "tests/support/kernel/simd.h"
#include "tests/support/model.h"
#include "tests/support/property.h"

enum { LONGEST = 131, V = 11 };

/* Which of its options it has, see wired(). */
enum { TURNS = SANITIZED ? 1 : 4 };
static int turn;

/* In its own form, at sizes that all differ. */
static struct config own_config(int v)
{
    const struct form form = default_form(v);
    struct config c = wired(&form, turn);

    c.max_seq = LONGEST;
    snprintf(form_now, sizeof(form_now), "%s, turn %d", variants[v]->name, turn);
    return c;
}

/* Parts of a test share the variants. */
static void each_variant(int part, void (*test)(int v))
{
    for (int v = part; variants[v]; v++)
        for (turn = 0; turn < TURNS && v % PARTS == part; turn++)
            test(v);
}

#define EACH_VARIANT(suite, name)                                                                  \
    static void name(int v);                                                                       \
    TEST_EACH(int *part, suite, name, every_part(), .timeout = 240) { each_variant(*part, name); } \
    static void name(int v)

/* The reference, and the fastest of our own kernels that runs here. */
static const char *other_backend(void)
{
    static const char *const names[] = {SIMD_LEVELS};

    for (size_t i = ARRAY_LEN(names); i-- > 0;)
        if (backend_find(names[i]) && backend_usable(backend_find(names[i]), NULL) == OK)
            return names[i];
    return NULL;
}

/* ---- later tokens ---------------------------------------------------------------------------- */

/* The logits of L tokens, of which those from `from` on are others than usual. */
static float *logits_changed(struct model *m, int L, int from)
{
    int32_t tokens[LONGEST];

    for (int t = 0; t < L; t++)
        tokens[t] = t < from ? token_of(m, 0, t) : (token_of(m, 0, t) + 1 + t % 3) % V;
    lm_forget(&m->lm);
    lm_forward(&m->lm, &m->g, tokens, 1, L, L, NULL, NULL);
    return copied(m->lm.logits, (size_t)(L * V));
}

/* Rows of the reference do not depend on their neighbours, so they keep their bits; but for what
 * forgetting adds to the scores of a key, which is relative to the segment's end. */
static void expect_causal(const struct config *c, const char *backend, int L)
{
    const int cuts[] = {1, L / 2, L - 1};
    struct model m;

    model_open(&m, c, backend, 1, MEM_NONE, (struct extent){1, L, 0});
    float *const want = logits_changed(&m, L, L);
    for (size_t i = 0; i < ARRAY_LEN(cuts) && L > 1; i++) {
        const int from = max_int(1, cuts[i]);
        float *const got = logits_changed(&m, L, from);
        const size_t before = (size_t)(from * V);
        const bool exact = strcmp(backend, "ref") == 0 && !around_has(c, SLOT_term_forget);
        if (c->causal)
            cr_assert(exact ? memcmp(got, want, sizeof(float) * before) == 0
                            : case_error(got, want, before) < 0.1,
                      "%s, %s: token %d of %d changes a row before it", form_now, backend, from, L);
        cr_expect_neq(memcmp(got + before, want + before, sizeof(float) * V), 0,
                      "%s: token %d of %d changes nothing", form_now, from, L);
    }
}

EACH_VARIANT(properties, later_tokens_change_nothing)
{
    static const int lengths[] = {1, 2, 3, 7, 37, 61, LONGEST};
    const struct config c = own_config(v);

    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        expect_causal(&c, "ref", lengths[i]);
        if (other_backend())
            expect_causal(&c, other_backend(), lengths[i]);
    }
    property(variants[v], "causal", c.causal ? "yes" : "bidirectional");
}

/* ---- narrow weights -------------------------------------------------------------------------- */

/* A model in q8 is the model whose maps and embeddings are the numbers that q8 stands for, to the
 * bit: the reference multiplies the same floats. */
EACH_VARIANT(properties, narrow_weights_are_rounded_ones)
{
    enum { L = 9, LONGEST_ROW = 512 };
    const struct config c = own_config(v);
    const struct extent max = {1, L, 0};
    struct model wide, narrow;
    int n_narrow = 0;

    if (c.qkv_map) /* refused: its transforms read parts of rows of their weights */
        return;
    model_open(&wide, &c, "ref", 1, MEM_NONE, max);
    model_open_in(&narrow, &c, "ref", 1, MEM_NONE, max, ELEM_Q8);
    for (int i = 0; i < wide.lm.params.n; i++) {
        const struct param *const w = &wide.lm.params.v[i], *const q = &narrow.lm.params.v[i];
        const int n = w->shape[w->rank - 1];
        cr_assert_leq(n, LONGEST_ROW);
        n_narrow += q->elem == ELEM_Q8;
        for (ptrdiff_t row = 0; q->elem == ELEM_Q8 && row < (ptrdiff_t)w->n / n; row++) {
            struct q8_block blocks[LONGEST_ROW / Q8_BLOCK];
            elem_narrow(ELEM_Q8, blocks, w->data + row * n, n);
            elem_widen(ELEM_Q8, w->data + row * n, blocks, 0, n);
        }
    }
    cr_expect_gt(n_narrow, 2, "%s", variants[v]->name);
    lm_build_tables(&wide.lm, &wide.g);
    float *const want = logits_changed(&wide, L, L), *const got = logits_changed(&narrow, L, L);
    cr_expect_arr_eq(got, want, sizeof(float) * L * V, "%s", variants[v]->name);
}

/* ---- cuts ------------------------------------------------------------------------------------ */

enum { CUT_TEXT = 37 };

/* Why a text must not be cut where its past is carried so; NULL = it may be cut anywhere. */
static const char *why_not_cut(const struct config *c)
{
    if (c->recur == RECUR_SAME)
        return "what left a layer is remembered at each cut";
    if (c->slots.n)
        return "slots are written at each cut";
    return NULL;
}

/* Length of segment i of a way to cut: drawn, or a long one and then one token at a time. */
static int piece(int way, int i)
{
    if (way == 0)
        return i == 0 ? 11 : 1;
    return 1 + (int)(rng_u32(SEED + (uint64_t)way, rng_stream("cuts"), (uint64_t)i) % 9);
}

static float *logits_cut(const struct config *c, const char *backend, enum mem_kind kind, int way)
{
    const struct extent max = {2, 11, kind == MEM_STATE ? 0 : CUT_TEXT};
    float *const all = room(2 * CUT_TEXT * V, sizeof(*all));
    struct model m;

    model_open(&m, c, backend, 1, kind, max);
    for (int t = 0, i = 0, n; t < CUT_TEXT; t += n, i++) {
        n = min_int(piece(way, i), CUT_TEXT - t);
        model_segment(&m, 0, 2, t, n, n);
        lm_commit(&m.lm, n);
        for (int b = 0; b < 2; b++)
            memcpy(all + (b * CUT_TEXT + t) * V, m.lm.logits + b * n * V,
                   sizeof(float) * (size_t)(n * V));
    }
    return all;
}

/* A hundredth of what two backends may differ by. */
static void expect_cut(const struct config *c, const char *backend, const float *want)
{
    for (enum mem_kind kind = MEM_HIDDEN; kind < MEM_KIND_COUNT; kind++) {
        if (kind == MEM_RECOMPUTE || !mem_can(config_mem(c), kind))
            continue;
        for (int way = 0; way < 4; way++) {
            float *const got = logits_cut(c, backend, kind, way);
            const double error = case_error(got, want, 2 * CUT_TEXT * V);
            cr_assert_lt(error, strcmp(backend, "ref") == 0 ? 0.01 : 1, "%s, %s, %s, way %d: %.3g",
                         form_now, backend, mem_kind_name[kind], way, error);
        }
    }
}

static bool carries_past(const struct config *c)
{
    return mem_can(config_mem(c), MEM_HIDDEN) || mem_can(config_mem(c), MEM_KV) ||
           mem_can(config_mem(c), MEM_STATE);
}

EACH_VARIANT(properties, a_text_can_be_cut_anywhere)
{
    const struct config c = own_config(v);
    const char *why = carries_past(&c) ? why_not_cut(&c) : "no past is carried";

    if (!why) {
        float *const want = model_logits(&c, "ref", 1, MEM_NONE, (struct extent){2, CUT_TEXT, 0},
                                         CUT_TEXT, CUT_TEXT);
        expect_cut(&c, "ref", want);
        if (other_backend())
            expect_cut(&c, other_backend(), want);
    }
    property(variants[v], "cut anywhere, decode = prefill", why ? why : "yes");
}

/* ---- far positions --------------------------------------------------------------------------- */

enum { FAR_TEXT = 17 };
static const int64_t starts[] = {132, 4104, 65544, 6291456}; /* all blocks of masks divide them */

static void start_at(struct model *m, int64_t position)
{
    lm_forget(&m->lm);
    lm_seek(&m->lm, position);
    for (int i = 0; i < m->lm.sublayers.n; i++) {
        struct sublayer *const s = &m->lm.sublayers.at[i];
        s->memory.seen = position;
        if (s->kind == &sublayer_attention || s->kind == &sublayer_remembering)
            s->state.attention.keys.seen = s->state.attention.values.seen =
                s->state.attention.beside.seen = position;
        if (s->kind == &sublayer_steps)
            sublayer_steps_seek(s, position);
    }
}

static float *logits_from(const struct config *c, enum mem_kind kind, int64_t position)
{
    const struct extent max = {1, 3, kind == MEM_STATE ? 0 : FAR_TEXT};
    float *const all = room(FAR_TEXT * V, sizeof(*all));
    struct model m;

    model_open(&m, c, "ref", 1, kind, max);
    start_at(&m, position);
    for (int t = 0, n; t < FAR_TEXT; t += n) {
        n = min_int(3, FAR_TEXT - t);
        model_segment(&m, 0, 1, t, n, n);
        lm_commit(&m.lm, n);
        memcpy(all + t * V, m.lm.logits, sizeof(float) * (size_t)(n * V));
    }
    return all;
}

static const char absolute[] = "absolute positions";

/* Does a token know where it is, and not only how far others are? */
static const char *why_not_moved(const struct config *c)
{
    if (c->pos->embed || c->pos->enter || c->pos->from_tokens)
        return absolute;
    for (int i = 0; i < c->masks.n; i++)
        if (c->masks.at[i].n_random || c->masks.at[i].global)
            return "some tokens are seen by all";
    return NULL;
}

/* A text that begins far from 0 reads as one that begins there, unless positions are absolute: then
 * it reads differently, but it reads. */
EACH_VARIANT(properties, positions_go_on)
{
    const struct config c = own_config(v);
    const bool ends = config_mem(&c)->cached;
    const char *const why = !carries_past(&c) ? "no past is carried"
                            : ends            ? "positions begin at 0"
                                              : why_not_moved(&c);

    for (enum mem_kind kind = MEM_HIDDEN; kind < MEM_KIND_COUNT && !ends; kind++) {
        if (kind == MEM_RECOMPUTE || !mem_can(config_mem(&c), kind))
            continue;
        float *const want = logits_from(&c, kind, 0);
        for (size_t k = 0; k < ARRAY_LEN(starts); k++) {
            float *const got = logits_from(&c, kind, starts[k]);
            const double error = case_error(got, want, FAR_TEXT * V);
            for (int i = 0; i < FAR_TEXT * V; i++)
                cr_assert(isfinite(got[i]), "%s from %d", form_now, (int)starts[k]);
            cr_assert(why ? why != absolute || error > 1 : error < 1, "%s, %s, from %d: %.3g",
                      form_now, mem_kind_name[kind], (int)starts[k], error);
        }
    }
    property(variants[v], "moves to 65536 and beyond", why ? why : "yes");
}

/* ---- seeds ----------------------------------------------------------------------------------- */

static bool is_drawn(const struct param *p)
{
    return p->group == PARAM_MATRICES || p->group == PARAM_OUTPUT || p->group == PARAM_EMBEDDINGS;
}

EACH_VARIANT(properties, seeds_make_other_weights)
{
    const struct config c = own_config(v);
    struct model m[3];
    int drawn = 0;

    for (int i = 0; i < 3; i++) {
        model_open(&m[i], &c, "ref", 1, MEM_NONE, (struct extent){1, 3, 0});
        params_init(&m[i].lm.params, i < 2 ? 5 : 6, 1 + i);
    }
    for (int k = 0; k < m[0].lm.params.n; k++) {
        const struct param *const p = &m[0].lm.params.v[k];
        const size_t bytes = p->n * sizeof(float);
        cr_expect_eq(memcmp(p->data, m[1].lm.params.v[k].data, bytes), 0, "%s: %s of one seed",
                     form_now, p->name);
        if (is_drawn(p))
            cr_expect_neq(memcmp(p->data, m[2].lm.params.v[k].data, bytes), 0,
                          "%s: %s of another seed", form_now, p->name);
        drawn += is_drawn(p);
    }
    cr_expect_gt(drawn, 0, "%s", form_now);
    property(variants[v], "seeds", "yes");
}
