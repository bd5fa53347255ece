/* SPDX-License-Identifier: MIT
 *
 * Skeletons as tables. */
#include "skeleton.h"

#include "control.h"
#include "settings.h"

const char *const skeleton_name[SKELETON_COUNT + 1] = {"own", "post", "llama", NULL};

/* Keys of files, and values. `widths`: a feed-forward network of so many times the model's width. */
enum { ROWS = 8 };
static const struct skeleton_rows {
    int widths;
    struct skeleton_row {
        const char *key, *value;
    } row[ROWS];
} skeletons[SKELETON_COUNT] = {
    /* Vaswani et al. 2017, as vanilla has it here */
    [SKELETON_POST] = {4,
                       {{"norm", "post"},
                        {"norm_kind", "layer"},
                        {"ffn", "relu"},
                        {"ln_eps", "1e-5"},
                        {"ff_bias", "1"},
                        {"attn_bias", "0"},
                        {"tied", "1"},
                        {"out_bias", "1"}}},
    /* Touvron et al. 2023 */
    [SKELETON_LLAMA] = {4,
                        {{"norm", "pre"},
                         {"norm_kind", "rms"},
                         {"ffn", "swiglu"},
                         {"ln_eps", "1e-5"},
                         {"ff_bias", "0"},
                         {"attn_bias", "0"},
                         {"tied", "0"},
                         {"out_bias", "0"}}},
};

/* What a variant differs in from its control is its idea. */
struct idea {
    struct config own, control;
    bool has_control;
};

static void idea_of(struct idea *idea, const struct config *c)
{
    const int N = c->steps ? c->steps : c->N;
    int dh, F;

    variant_sizes(c->variant, c->D, c->H, &dh, &F);
    idea->has_control = c->variant->control;
    idea->own = config_default(c->variant, c->D, c->H, dh, F, N, c->V);
    idea->control = idea->has_control ? control_config(&idea->own, N) : idea->own;
}

/* The number of a choice; -1: it is none. */
static int choice_index(const struct choice *row)
{
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        if (row == &model_choices[i])
            return i;
    return -1;
}

/* Biases, tying and the like are no idea of any variant: only options show one. */
static bool is_idea(const struct idea *idea, const struct choice *row)
{
    return choice_index(row) >= 0 && !choice_equal(row, &idea->own, &idea->control);
}

/* Take a change unless it makes a model that cannot be. */
static void take(struct config *c, struct config *changed)
{
    struct err e;

    config_numbers_reset(changed);
    if (config_check(changed, &e) == OK || config_check(c, &e) != OK)
        *c = *changed;
}

void skeleton_apply(struct config *c, enum skeleton kind, const bool typed[MODEL_CHOICE_COUNT],
                    bool width_typed)
{
    const struct skeleton_rows *const s = &skeletons[kind];

    if (kind == SKELETON_OWN)
        return;
    struct config changed;
    struct idea idea;

    idea_of(&idea, c);
    config_numbers_reset(c);
    for (int i = 0; i < ROWS && s->row[i].key; i++) {
        const struct choice *const row = row_of_key(s->row[i].key);
        const int choice = choice_index(row);
        if ((choice >= 0 && typed[choice]) || is_idea(&idea, row) ||
            !choice_applies(row, c, SCOPE_MODEL))
            continue;
        changed = *c;
        CHECK(choice_parse(row, &changed, s->row[i].value, NULL) == OK);
        take(c, &changed);
    }
    if (!width_typed && idea.own.F == idea.control.F) {
        changed = *c;
        changed.F = s->widths * c->D;
        take(c, &changed);
    }
}

void skeleton_rest(char text[SKELETON_TEXT], const struct config *c, enum skeleton kind)
{
    const struct skeleton_rows *const s = &skeletons[kind];
    struct config like = *c;
    size_t n = 0;

    *text = '\0';
    for (int i = 0; i < ROWS && s->row[i].key; i++) {
        const struct choice *const row = row_of_key(s->row[i].key);
        char value[CHOICE_TEXT];
        CHECK(choice_parse(row, &like, s->row[i].value, NULL) == OK);
        if (!choice_applies(row, c, SCOPE_MODEL) || choice_equal(row, c, &like))
            continue;
        choice_print(value, row, c);
        n += (size_t)snprintf(text + n, SKELETON_TEXT - n, "%s%s=%.20s", n ? " " : "", row->name,
                              value);
        CHECK(n < SKELETON_TEXT);
    }
    if (kind != SKELETON_OWN && c->F != s->widths * c->D)
        snprintf(text + n, SKELETON_TEXT - n, "%sd_inner=%d", n ? " " : "", c->F);
}
