/* SPDX-License-Identifier: MIT
 *
 * Which features exclude each other: every pair of changes to the model of every variant. What is
 * taken stands in tests/model/exclusions.txt, a line a variant; scripts/screens.sh writes it anew.
 * A line that changes says that more or less runs than before: that is intended, or a mistake. */
#include "tests/support/failure.h"
#include "variants/model/config/exclusions.h"
#include "variants/model/config/settings.h"
#include "variants/model/lm/drive.h"
#include "variants/parts/masks.h"
#include "variants/parts/mem.h"

#include <inttypes.h>

/* ---- changes to models, as options and files make them --------------------------------------- */

/* The n-th entry of a registry, of a kind of part that models have one of. */
#define PART(kind, all, field)                                                                     \
    static bool kind##_at(struct config *c, int n)                                                 \
    {                                                                                              \
        c->field = all[n];                                                                         \
        return all[n];                                                                             \
    }
PART(pos, positions, pos)
PART(ffn, ffns, ffn)
PART(mixer, mixers, mixer)
PART(gate, gates, gate)
#undef PART

/* The change whose turn it is, of several in a row: n counts down to it. */
#define CHANGE(...)                                                                                \
    do {                                                                                           \
        if (n-- == 0) {                                                                            \
            __VA_ARGS__;                                                                           \
            return true;                                                                           \
        }                                                                                          \
    } while (0)

static bool extra_at(struct config *c, int n)
{
#define X(name) CHANGE(c->attn_extra = &extra_##name);
    EXTRAS(X)
#undef X
    return false;
}

static bool map_at(struct config *c, int n)
{
    CHANGE(c->qkv_map = &qkv_map_dextra);
    return false;
}

static bool words(struct config *c, int n)
{
    for (int k = 0; k < WIRING_COUNT; k++)
        CHANGE(c->wiring = (enum wiring)k);
    for (int k = 0; k < NORM_KIND_COUNT; k++)
        CHANGE(c->norm_kind = (enum norm_kind)k);
    for (int k = 0; k < OUT_GATE_COUNT; k++)
        CHANGE(c->out_gate = (enum out_gate)k);
    return false;
}

static void set_masks(struct config *c, const char *masks)
{
    CHECK(masks_parse(&c->masks, masks, "", NULL) == OK);
}

static bool sees(struct config *c, int n)
{
    CHANGE(c->causal = DIRECTION_BOTH, c->rel_rows = 2 * c->clip + 1);
    CHANGE(c->causal = DIRECTION_CAUSAL, c->rel_rows = c->clip + 1);
    CHANGE(c->same_length = true, c->window = c->mem_len = 4);
    CHANGE(set_masks(c, "window=4"));
    CHANGE(set_masks(c, "window=4;block=4"));
    CHANGE(set_masks(c, "window=4"), c->layer_masks = (struct layer_list){1, {0}});
    CHANGE(c->window = 4);
    CHANGE(c->layer_windows = (struct layer_list){2, {4, 0}});
    CHANGE(CHECK(head_windows_parse(&c->head_windows, "4,0", NULL) == OK));
    CHANGE(c->mem_len = 4);
    CHANGE(c->clamp_len = 4);
    CHANGE(c->layer_rope_base = (struct layer_list){2, {1e4, 0}});
    CHANGE(c->rope_scaling = ROPE_LINEAR, c->rope_factor = 2);
    CHANGE(c->stream_sinks = 4, c->window = 16);
    return false;
}

static void set_text(char *to, size_t size, const char *text) { snprintf(to, size, "%s", text); }

static bool sublayers(struct config *c, int n)
{
    static const char *const subs[] = {"sf", "csf", "wsf", "ssf", "dsf", "dwsf"};

    EACH_TEXT (one, "", "sfsf", "ssff", "sfpsfusf", "hsh", "rsf", "ssss")
        CHANGE(set_text(c->order, sizeof(c->order), one));
    for (size_t k = 0; k < ARRAY_LEN(subs); k++)
        CHANGE(set_text(c->subs, sizeof(c->subs), subs[k]));
    CHANGE(c->lsra = (struct lsra){24, 4, 3, false, false},
           set_text(c->subs, sizeof(c->subs), "lf"));
    CHANGE(c->slots.n = 4, set_text(c->subs, sizeof(c->subs), "sxf"));
    CHANGE(c->rnn_layers = 1);
    CHANGE(c->stack = (struct stack){2, {false, true}});
    CHANGE(c->stack = (struct stack){2, {true, true}});
    return false;
}

static bool depth(struct config *c, int n)
{
    for (int k = 0; k < HALT_KINDS; k++)
        CHANGE(c->steps = 2, c->halt = (enum halt_kind)k);
    for (int k = 0; k < EXIT_KINDS; k++)
        CHANGE(c->exit = (enum exit_kind)k);
    for (int k = 0; k < COND_KINDS; k++)
        CHANGE(c->cond = (enum cond_kind)k);
    CHANGE(c->transparent = TRANSPARENT_TOP);
    CHANGE(c->recur = RECUR_SAME);
    CHANGE(c->feedback.on = true);
    CHANGE(c->lazy_group = 1);
    CHANGE(c->lazy_group = 2);
    CHANGE(c->halt = HALT_GRAVES);
    CHANGE(c->score_residual = SCORE_RESIDUAL_SUM);
    CHANGE(c->score_residual = SCORE_RESIDUAL_MEAN);
    return false;
}

static void set_parts(struct config *c, const char *const keys[][2])
{
    for (int i = 0; keys[i][0]; i++)
        CHECK(config_set(c, keys[i][0], keys[i][1], NULL) == OK);
}

static bool scores(struct config *c, int n)
{
#define PREDICTED                                                                                  \
    {"pred_alpha", "0.5"}, {"pred_beta", "0.5"}, {"pred_rows", "3"}, { "pred_cols", "3" }
    static const char *const parts[][6][2] = {
        {{"qk_norm", "1"}},
        {{"forget", "1"}},
        {{"cope", "4"}},
        {{"gauss_form", "relative"}, {"gauss_span", "4"}},
        {{"gauss_form", "published"}, {"gauss_span", "4"}},
        {{"dman", "1"}},
        {{"value_residual", "1"}},
        {{"agg", "dynamic"}, {"capsules", "2"}, {"agg_iters", "2"}},
        {{"pred_form", "convex"}, PREDICTED},
        {{"pred_form", "evolving"}, PREDICTED},
        {{"camtl", "1"}, {"camtl_m", "0"}, {"camtl_n", "4"}, {"task_dim", "3"}},
        {{"diff", "1"}}};
#undef PREDICTED

    for (size_t k = 0; k < ARRAY_LEN(parts); k++)
        CHANGE(set_parts(c, parts[k]));
    CHANGE(c->soft_cap = 10);
    CHANGE(c->attn_bias = ATTN_BIASED);
    CHANGE(c->attn_bias = ATTN_BIASED_QKV);
    CHANGE(c->depth_scale = true);
    CHANGE(c->share_qk = true);
    CHANGE(c->kv_heads = 2);
    return false;
}

static bool text(struct config *c, int n)
{
    CHANGE(c->logit_cap = 10);
    CHANGE(c->tied = false);
    CHANGE(c->adaptive.cut[0] = 20, c->adaptive.n = 1);
    CHANGE(c->V = 0);
    return false;
}

/* Compressed rows: the only number of a part that decides what it goes with. */
static bool compresses(struct config *c, int n)
{
    if (n == 0 && variant_mem(c->variant)->compressed) {
        ((struct compressive *)(void *)c->numbers[SLOT_MEM].bytes)->rows = 2;
        c->mem_len = 4;
    }
    return n == 0;
}

/* Every change: the kind of it, and its number there. Those of parts come before the others. */
enum { MOST_CHANGES = 512, PART_KINDS = 6 };
struct change {
    bool (*make)(struct config *c, int n);
    int n;
    bool part;
};

static int pairs_changes(struct change all[MOST_CHANGES])
{
    static bool (*const kinds[])(struct config *, int) = {
        pos_at, ffn_at,    mixer_at, gate_at, extra_at, map_at,    words,
        sees,   sublayers, depth,    scores,  text,     compresses};
    const struct config plain = config_default(variants[0], 48, 4, 12, 96, 2, 256);
    int many = 0;

    for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
        for (int n = 0;; n++) {
            struct config c = plain;
            if (!kinds[k](&c, n))
                break;
            CHECK(many < MOST_CHANGES);
            all[many++] = (struct change){kinds[k], n, k < PART_KINDS};
        }
    return many;
}

/* A part comes with the numbers that are usual for it, and everything else is changed after it. */
static bool pairs_taken(const struct config *of, const struct change *x, const struct change *y)
{
    struct config c = *of;

    if (x->part)
        x->make(&c, x->n);
    if (y->part)
        y->make(&c, y->n);
    config_numbers_reset(&c);
    if (!x->part)
        x->make(&c, x->n);
    if (!y->part)
        y->make(&c, y->n);
    return config_check(&c, NULL) == OK;
}

/* "NAME: changes taken, pairs taken, hash of all answers". */
enum { PAIRS_TEXT = 256 };
static void pairs_line(char line[PAIRS_TEXT], const struct variant *v)
{
    struct config c = config_default(v, 48, 4, 12, 96, 2, 256);
    struct change change[MOST_CHANGES];
    const int n = pairs_changes(change);
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    int single = 0, both = 0;

    c.max_seq = 8;
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++) {
            const bool taken = pairs_taken(&c, &change[i], &change[j]);
            *(i == j ? &single : &both) += taken;
            hash = (hash ^ taken) * UINT64_C(1099511628211);
        }
    snprintf(line, PAIRS_TEXT, "%s: %d of %d changes, %d pairs, %016" PRIx64 "\n", v->name, single,
             n, both, hash);
}

/* ---- which pairs of them are taken ------------------------------------------------------------ */

static const char tracked[] = "tests/model/exclusions.txt";

static const char rewrites[] = "REWRITE_SCREENS";

Test(exclusions, what_is_taken_stays, .timeout = 300)
{
    FILE *const f = fopen(tracked, getenv(rewrites) ? "w" : "r");
    char want[PAIRS_TEXT] = "", line[PAIRS_TEXT];

    cr_assert_not_null(f, "%s", tracked);
    for (int v = 0; variants[v]; v++) {
        pairs_line(line, variants[v]);
        if (getenv(rewrites))
            fputs(line, f);
        else
            cr_expect(fgets(want, sizeof(want), f) && strcmp(want, line) == 0,
                      "%s has %s, and now it is %s", tracked, want, line);
    }
    cr_expect(getenv(rewrites) || !fgets(want, sizeof(want), f), "%s", want);
    fclose(f);
}

/* A list names features by their places: each says something of its own. */
Test(exclusions, features_have_names)
{
    char name[FEATURE_TEXT], other[FEATURE_TEXT];

    for (int i = 0; exclusions_name(name, i); i++) {
        bool any = false;
        for (int j = 0; exclusions_name(other, j); j++) {
            cr_expect(i == j || strcmp(name, other) != 0, "%s twice", name);
            cr_expect_eq(exclusions_between(i, j), exclusions_between(j, i));
            any = any || exclusions_between(i, j);
        }
        cr_expect(any && !exclusions_between(i, i), "%s", name);
    }
}

static const struct drive *const drives[] = {&drive_depth, &drive_blend, &drive_exit,
                                             &drive_feedback, &drive_slots};

/* What gives a model the n-th of them. */
static bool drive_at(struct config *c, int n)
{
    CHANGE(c->steps = 2);
    CHANGE(c->transparent = TRANSPARENT_TOP);
    CHANGE(c->exit = EXIT_ENTROPY);
    CHANGE(c->feedback.on = true);
    CHANGE(c->slots.n = 4, set_text(c->subs, sizeof(c->subs), "sxf"));
    return false;
}

/* drive_of returns the first that a model has: one that has two is refused. */
Test(exclusions, a_model_has_one_drive)
{
    struct config none = config_default(variant_find("vanilla"), 48, 4, 12, 96, 2, 256), one = none;

    none.pos = pos_find("none");
    cr_expect_eq(drive_of(&none), &drive_plain);
    for (int i = 0; one = none, drive_at(&one, i); i++) {
        cr_expect_eq(drive_of(&one), drives[i]);
        cr_expect_eq(config_check(&one, &failure), OK, "%s", failure.msg);
        for (int k = 0; k < i; k++) {
            struct config two = one;
            drive_at(&two, k);
            cr_expect_eq(config_check(&two, NULL), E_USAGE, "%d and %d", i, k);
        }
    }
}
