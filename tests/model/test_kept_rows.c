/* SPDX-License-Identifier: MIT
 *
 * How many rows a layer remembers: all that a later query may see by its windows and masks, no more
 * where these are of distances, and with them the same numbers as with the whole text. */
#include "tests/support/model.h"
#include "variants/parts/masks.h"
#include "variants/parts/mem.h"

/* ---- by the rule of each pair --------------------------------------------------------------- */

struct sight_of {
    const char *mask, *heads; /* windows of heads */
    int window;
    bool loose, spread; /* an upper bound; needed is one, too */
};

static bool sees(const struct config *c, int layer, int h, int64_t query, int64_t key)
{
    const struct masks m = config_masks(c, layer);
    const int window = config_head_window(c, layer, h);

    return (!window || query - key < window) &&
           (!m.n || mask_visible(&m.at[m.head[h % m.n_heads]], query, key));
}

static bool seen_later(const struct config *c, int layer, int64_t from, int64_t key)
{
    enum { AHEAD = 130 };
    bool any = false;

    for (int h = 0; h < c->H && !any; h++)
        for (int64_t query = from; query < from + AHEAD && !any; query++)
            any = sees(c, layer, h, query, key);
    return any;
}

/* The farthest of M rows that is seen, from any place; how many are, of a stream of M tokens. */
static void by_pairs(const struct config *c, int layer, int M, int *farthest, int *number)
{
    enum { PLACES = 33 };

    *farthest = *number = 0;
    for (int64_t from = M; from < M + PLACES; from++)
        for (int back = M; back > *farthest; back--)
            if (seen_later(c, layer, from, from - back))
                *farthest = back;
    for (int key = 0; key < M; key++)
        *number += seen_later(c, layer, M, key);
}

Test(kept_rows, are_those_that_are_seen, .timeout = 240)
{
    static const struct sight_of all[] = {
        {"", "", 0, false, false},
        {"", "", 1, false, false},
        {"", "", 7, false, false},
        {"window=1", "", 0, false, false},
        {"window=6", "", 0, false, false},
        {"window=6", "", 4, false, false},
        {"window=4,dilation=3", "", 0, false, false},
        {"block=4", "", 0, false, true},
        {"block=4,back=2", "", 0, false, true},
        {"block=4,memory=5", "", 0, false, true},
        {"block=3,memory=2", "", 5, true, true},
        {"window=3,global=2", "", 0, false, false},
        {"window=3,global=2", "", 9, true, true},
        {"stride=4", "", 0, false, false},
        {"stride=4", "", 6, true, true},
        {"block=4,fixed=4,summary=1", "", 0, false, true},
        {"window=2,stride=3", "", 0, false, false},
        {"rect=2x3,row=6,margin=1x2", "", 0, true, true},
        {"rect=2x2,row=4,margin=3x0", "", 0, true, true},
        {"window=2;window=9", "", 0, false, false},
        {"window=2;window=3,global=1", "", 0, false, false},
        {"", "3,8", 0, false, false},
        {"", "3,0", 0, false, false},
        {"", "3,8", 5, false, false},
    };
    static const int M[] = {0, 1, 2, 3, 5, 6, 7, 8, 9, 16, 21, 40};

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        struct config c = config_default(variant_find("rope"), 12, 2, 6, 16, 2, 11);
        cr_assert_eq(config_set_masks(&c, c.variant, all[i].mask, "", NULL), OK);
        cr_assert_eq(head_windows_parse(&c.head_windows, all[i].heads, NULL), OK);
        c.window = all[i].window;
        for (size_t k = 0; k < ARRAY_LEN(M); k++) {
            const int kept = config_kept(&c, 0, M[k]), needed = config_needed(&c, 0, M[k]);
            int farthest, number;
            by_pairs(&c, 0, M[k], &farthest, &number);
            const bool exact = !all[i].loose;
            cr_expect(kept <= M[k] && (exact ? kept == farthest : kept >= farthest),
                      "%s %s %d, M %d: keeps %d, sees %d", all[i].mask, all[i].heads, all[i].window,
                      M[k], kept, farthest);
            cr_expect(needed <= kept && (all[i].spread ? needed >= number : needed == number),
                      "%s %s %d, M %d: needs %d, sees %d", all[i].mask, all[i].heads, all[i].window,
                      M[k], needed, number);
        }
    }
}

/* Alternating layers each by itself; slots have their own rule. */
Test(kept_rows, of_each_layer)
{
    struct config c = config_default(variant_find("gemma"), 12, 2, 6, 16, 3, 11);

    c.layer_windows = (struct layer_list){3, {5, 0, 9}};
    cr_expect(config_kept(&c, 0, 40) == 4 && config_kept(&c, 1, 40) == 40 &&
              config_kept(&c, 2, 40) == 8 && config_kept(&c, 3, 40) == 4);
    c.window = 7;
    cr_expect(config_kept(&c, 0, 40) == 4 && config_kept(&c, 1, 40) == 6 &&
              config_kept(&c, 2, 40) == 6 && config_kept(&c, 2, 3) == 3);
    c = config_default(variant_find("streaming"), 12, 2, 6, 16, 2, 11);
    cr_expect(config_kept(&c, 0, 4096) == 1023 && config_kept(&c, 1, 9) == 9 &&
              config_needed(&c, 0, 4096) == 1023);
    c = config_default(variant_find("bigbird"), 12, 2, 6, 16, 2,
                       11); /* random blocks are anywhere */
    cr_expect(config_kept(&c, 0, 4096) == 4096 && config_needed(&c, 0, 4096) == 4096);
}

/* ---- the same numbers ----------------------------------------------------------------------- */

enum { TEXT = 26, FAR = 40 };

/* Like the whole text at once; what forgetting adds is rounded elsewhere. */
static void expect_whole(const struct config *c, const float *want, enum mem_kind kind, int M,
                         int T, int L, const char *what)
{
    float *const got = model_logits(c, "ref", 1, kind, (struct extent){1, L, M}, T, L);
    const size_t n = (size_t)(T * c->V);
    size_t differ = 0;

    for (size_t i = 0; i < n; i++)
        differ += got[i] != want[i];
    cr_expect(differ == 0 || around_has(c, SLOT_term_forget), "%s, %s: M %d, segments of %d: %zu",
              c->variant->name, what, M, L, differ);
    cr_expect_lt(case_error(got, want, n), 1.0, "%s, %s: M %d, segments of %d", c->variant->name,
                 what, M, L);
}

static void try_sight(struct config c, int reach, const char *what, int *tried)
{
    static const int L[] = {1, 7};
    const int M[] = {reach, reach + 1, FAR};

    if (config_check(&c, NULL) != OK)
        return;
    ++*tried;
    float *const whole =
        model_logits(&c, "ref", 1, MEM_NONE, (struct extent){1, TEXT, 0}, TEXT, TEXT);
    for (enum mem_kind kind = MEM_HIDDEN; kind <= MEM_KV; kind++)
        for (size_t m = 0; m < ARRAY_LEN(M); m++)
            for (size_t l = 0; l < ARRAY_LEN(L); l++)
                if (mem_can(config_mem(&c), kind))
                    expect_whole(&c, whole, kind, M[m], TEXT, L[l], what);
}

/* Every variant with rows of memory, with each pattern that it takes: rows that are dropped are those
 * that are not seen, wherever they stand. */
TEST_EACH(int *part, kept_rows, same_numbers, every_part(), .timeout = 240)
{
    static const struct {
        const char *mask;
        int reach;
    } patterns[] = {
        {"window=1", 0},       {"window=5", 4},          {"window=3,dilation=2", 4},
        {"block=4,back=1", 7}, {"window=3;window=6", 5}, {"window=3,global=1", FAR},
    };
    int tried = 0;

    for (int v = 0; variants[v]; v++) {
        if (v % PARTS != *part)
            continue;
        const struct form own = {v, -1, (int)variants[v]->wiring};
        struct config c = wired(&own, v);
        if (!variant_mem(variants[v])->recurrent || variant_mem(variants[v])->state ||
            c.recur == RECUR_SAME || c.stream_sinks || compressive_of(&c)->rows)
            continue;
        for (int i = 0; variants[v]->gate && gates[i]; i++)
            c.gate = gates[i] == variants[v]->gate ? gates[i] : c.gate;
        for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
            struct config masked = c;
            masked.head_windows.n = masked.layer_windows.n = 0;
            masked.layer_masks.n = 0;
            cr_assert_eq(config_set_masks(&masked, masked.variant, patterns[i].mask, "", NULL), OK);
            if (sampled((size_t)(v / PARTS) + i, 2))
                try_sight(masked, patterns[i].reach, patterns[i].mask, &tried);
        }
        if (c.mixer)
            continue;
        struct config layers = c;
        cr_assert_eq(config_set_masks(&layers, layers.variant, "window=3;window=6", "", NULL), OK);
        layers.head_windows.n = layers.layer_windows.n = 0;
        layers.layer_masks = (struct layer_list){2, {0, 1}};
        try_sight(layers, 5, "layer masks", &tried);
        layers.masks.n = layers.layer_masks.n = layers.head_windows.n = 0;
        layers.layer_windows = (struct layer_list){2, {3, 6}};
        try_sight(layers, 5, "layer windows", &tried);
        layers.layer_windows = (struct layer_list){2, {1, 0}};
        try_sight(layers, FAR, "layer windows, one of all", &tried);
    }
    cr_expect(tried >= (SANITIZED ? 10 : 20), "%d", tried);
}

/* Until rows have moved to the front of their buffer, several times as far as a query sees. */
Test(kept_rows, long_decoding, .timeout = 240)
{
    enum { LONG = 330 };

    EACH_TEXT (all, "rope", "alibi", "xl", "t5", "longformer", "mla", "image2d") {
        struct config c = config_default(variant_find(all), 12, 2, 6, 16, 2, 11);
        if (!c.masks.n)
            c.window = 5;
        c.max_seq = LONG;
        for (int k = 0; k < c.masks.n; k++)
            if (c.masks.at[k].rect) {
                struct mask *const m = &c.masks.at[k];
                m->rect_rows = m->rect = m->margin_rows = m->margin = 2;
                m->row = 4;
            }
        cr_assert_eq(config_check(&c, NULL), OK);
        float *const whole =
            model_logits(&c, "ref", 1, MEM_NONE, (struct extent){1, LONG, 0}, LONG, LONG);
        for (enum mem_kind kind = MEM_HIDDEN; kind <= MEM_KV; kind++)
            expect_whole(&c, whole, kind, LONG, LONG, 1, "long");
    }
}
