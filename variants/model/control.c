/* SPDX-License-Identifier: MIT
 *
 * See control.h. */
#include "control.h"

#include "choices.h"
#include "keys.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 64 };

/* The next word of a control, or "" after the last. */
static const char *next_word(char word[WORD], const char *text)
{
    size_t n;

    text += strspn(text, " ");
    n = strcspn(text, " ");
    CHECK(n < WORD);
    memcpy(word, text, n);
    word[n] = '\0';
    return text + n;
}

const struct variant *control_variant(const struct variant *v)
{
    char word[WORD];

    if (!v->control)
        return NULL;
    next_word(word, v->control);
    const struct variant *const control = variant_find(word);
    CHECK(control);
    return control;
}

static void choose(struct config *c, const char *option, const char *value)
{
    if (strcmp(option, "kv-heads") == 0) {
        c->kv_heads = atoi(value);
        return;
    }
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        if (model_choices[i].option && strcmp(model_choices[i].option, option) == 0) {
            CHECK(choice_parse(&model_choices[i], c, value, NULL) == OK);
            return;
        }
    CHECK(!"an option of models");
}

struct config control_config(const struct config *c, int N)
{
    const struct variant *const v = control_variant(c->variant);
    char option[WORD], value[WORD];
    int dh, F;

    variant_sizes(v, c->D, c->H, &dh, &F);
    struct config control = config_default(v, c->D, c->H, dh, F, N, c->V);
    control.mem_len = c->mem_len;
    control.max_seq = c->max_seq;
    const char *at = next_word(option, c->variant->control);
    while (at = next_word(option, at), *option) {
        at = next_word(value, at);
        choose(&control, option + strspn(option, "-"), value);
    }
    config_numbers_reset(&control);
    model_choices_settle(&control);
    return control;
}

/* ---- what they differ in ------------------------------------------------------------------ */

/* Do a row's values differ, as far as both show in that scope? */
static bool row_differs(const struct choice *row, const void *a, const void *b,
                        const struct config *of_a, const struct config *of_b, enum scope scope)
{
    const bool shows = choice_applies(row, of_a, scope) || choice_applies(row, of_b, scope);

    return shows && !row->skeleton && !choice_equal(row, a, b);
}

static bool numbers_differ(const struct config *a, const struct config *b, enum part_slot slot,
                           enum scope scope)
{
    const struct part_numbers *const of_a = config_numbers_of(a, slot);

    if (of_a != config_numbers_of(b, slot))
        return true;
    for (const struct choice *row = of_a ? of_a->choices : NULL; row && row->name; row++)
        if (row_differs(row, config_numbers(a, slot), config_numbers(b, slot), a, b, scope))
            return true;
    return false;
}

/* Do positions act in layers, not on the embedding alone? Recurrent layers of a stack have none. */
static bool in_layers(const struct config *c)
{
    const struct pos *const p = c->pos;

    return (c->N > 1 || !c->stack.n || config_attends(c, 0)) &&
           (p->layer_params || p->enter || p->rotate || p->reserve || p->no_content);
}

/* Do they differ in what shows in this scope, in more than norms, feed-forward networks, biases, and
 * what is added to the embedding? */
static bool differ(const struct config *a, const struct config *b, enum scope scope)
{
    const bool placed = a->pos != b->pos && (in_layers(a) || in_layers(b));
    const struct choice *row;

    if (placed || a->gate != b->gate || a->mixer != b->mixer || a->qkv_map != b->qkv_map ||
        a->attn_extra != b->attn_extra || a->dh != b->dh)
        return true;
    for (int i = MODEL_SIZES; (row = model_key(i)); i++)
        if (row_differs(row, a, b, a, b, scope))
            return true;
    for (enum part_slot s = 0; s < SLOT_COUNT; s++)
        if (s != SLOT_FFN && s != SLOT_NORM && (s != SLOT_POS || placed) &&
            numbers_differ(a, b, s, scope))
            return true;
    return false;
}

bool control_acts_between_layers(const struct variant *v)
{
    enum { D = 64, H = 4, LAYERS = 6, V = 256, MEM = 64 };
    bool same[2];
    int dh, F;

    if (!v->control)
        return false;
    variant_sizes(v, D, H, &dh, &F);
    for (int whole = 0; whole < 2; whole++) {
        const int N = whole ? LAYERS : 1;
        struct config c = config_default(v, D, H, dh, F, N, V);
        c.mem_len = c.max_seq = MEM;
        config_numbers_reset(&c);
        model_choices_settle(&c);
        const struct config control = control_config(&c, N), a = config_of_layers(&c, false),
                            b = config_of_layers(&control, false);
        same[whole] = !differ(&a, &b, whole ? SCOPE_MODEL : SCOPE_LAYER);
    }
    return same[0] && !same[1];
}
