/* SPDX-License-Identifier: MIT
 *
 * See control.h. */
#include "control.h"

#include "choices.h"
#include "keys.h"

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

/* The variant of the control; NULL = none. */
static const struct variant *control_variant(const struct variant *v)
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

static void add(struct differences *d, const char *name, bool idea)
{
    int i = 0;

    d->idea = d->idea || idea;
    for (; i < d->n; i++) {
        CHECK(d->name[i]);
        if (strcmp(d->name[i], name) == 0)
            break;
    }
    CHECK(i < DIFFERENCES_MOST);
    d->name[i] = name;
    d->n = max_int(d->n, i + 1);
}

/* A row whose values differ, as far as both show in that scope. */
static void add_row(struct differences *d, const struct choice *row, const void *a, const void *b,
                    const struct config *of_a, const struct config *of_b, enum scope scope)
{
    const bool shows = choice_applies(row, of_a, scope) || choice_applies(row, of_b, scope);

    if (shows && !choice_equal(row, a, b))
        add(d, row->name, !row->skeleton);
}

/* Those of other parts follow from the parts. */
static void add_numbers(struct differences *d, const struct config *a, const struct config *b,
                        enum part_slot slot, enum scope scope)
{
    const struct part_numbers *const of_a = config_numbers_of(a, slot);
    const bool same = of_a == config_numbers_of(b, slot);

    d->idea = d->idea || !same;
    for (const struct choice *row = of_a && same ? of_a->choices : NULL; row && row->name; row++)
        add_row(d, row, config_numbers(a, slot), config_numbers(b, slot), a, b, scope);
}

/* Do positions act in layers, not on the embedding alone? Recurrent layers of a stack have none. */
static bool in_layers(const struct config *c)
{
    const struct pos *const p = c->pos;

    return (c->N > 1 || !c->stack.n || config_attends(c, 0)) &&
           (p->layer_params || p->enter || p->rotate || p->reserve || p->no_content);
}

bool control_embeds_positions(const struct config *c)
{
    const struct config control = control_config(c, c->N);

    return c->pos != control.pos && (c->pos->embed || c->pos->from_tokens) && !in_layers(c) &&
           !in_layers(&control);
}

/* The name of a part that one of them has and the other not, or has another of. */
static void add_part(struct differences *d, const void *a, const void *b, const char *name)
{
    if (a != b)
        add(d, name, true);
}

struct differences control_differences(const struct config *a, const struct config *b,
                                       enum scope scope)
{
    const bool placed = a->pos != b->pos && (in_layers(a) || in_layers(b));
    const struct pos *const extra = a->attn_extra ? a->attn_extra : b->attn_extra;
    struct differences d = {.n = 0};
    const struct choice *row;

    if (a->pos != b->pos)
        add(&d, "pos", placed);
    if (config_mem(a) != config_mem(b))
        add(&d, "memory", false);
    add_part(&d, a->mixer, b->mixer, "mixer");
    add_part(&d, a->gate, b->gate, "gate");
    add_part(&d, a->qkv_map, b->qkv_map, "map before queries, keys and values");
    add_part(&d, a->attn_extra, b->attn_extra, extra ? extra->name : "");
    if (a->dh != b->dh)
        add(&d, "d_head", true);
    for (int i = MODEL_SIZES; (row = model_key(i)); i++)
        add_row(&d, row, a, b, a, b, scope);
    /* The first layer of a stack is recurrent: parts of attention show in the model only. */
    for (enum part_slot s = 0; s < SLOT_COUNT; s++)
        if (s != SLOT_FFN && s != SLOT_NORM && (s != SLOT_POS || placed) &&
            (s < SLOT_AROUND || scope == SCOPE_MODEL || !a->stack.n))
            add_numbers(&d, a, b, s, scope);
    return d;
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
        same[whole] = !control_differences(&a, &b, whole ? SCOPE_MODEL : SCOPE_LAYER).idea;
    }
    return same[0] && !same[1];
}

bool control_hides(const struct variant *v, int layers)
{
    const struct config c = config_default(v, 64, 4, 16, 64, layers, 0);
    bool attends = !c.stack.n;

    for (int l = 0; l < layers; l++)
        attends = attends || config_attends(&c, l);
    return (layers == 1 || !attends) && control_acts_between_layers(v);
}
