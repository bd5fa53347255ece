/* SPDX-License-Identifier: MIT
 *
 * The parts around the core of attention, one after the other. */
#include "around.h"

static const struct around_part *const parts[SLOT_COUNT] = {
#define X(name) [SLOT_##name] = &name,
    AROUND_PARTS(X)
#undef X
};

/* ---- what a config has -------------------------------------------------------------------- */

const struct around_part *around_of(enum part_slot slot) { return parts[slot]; }

bool around_has(const struct config *c, enum part_slot slot)
{
    const struct around_part *const part = parts[slot];

    if (part->on)
        return part->on(c);
    const struct choice *const first = part->numbers->choices;
    const void *const at = (const char *)config_numbers(c, slot) + first->at;
    return first->codec == CODEC_FLAG ? *(const bool *)at : *(const int *)at != 0;
}

void around_switch_on(struct config *c, enum part_slot slot)
{
    const struct part_numbers *const numbers = parts[slot]->numbers;
    union part_values usual = {0};
    char text[CHOICE_TEXT];

    numbers_usual(numbers, c, usual.bytes);
    choice_print(text, numbers->choices, usual.bytes);
    CHECK(choice_parse(numbers->choices, c->numbers[slot].bytes, text, NULL) == OK);
}

/* The part that adds to scores; NULL = none. */
static const struct score_term *term_of(const struct config *c)
{
    for (enum part_slot i = SLOT_AROUND; i < SLOT_COUNT; i++)
        if (parts[i]->term.added && around_has(c, i))
            return &parts[i]->term;
    return NULL;
}

static enum added added_of(const struct config *c)
{
    const struct score_term *const term = term_of(c);

    return term ? term->added : ADDS_NOTHING;
}

bool around_adds(const struct config *c)
{
    return added_of(c) == ADDS_TO_PAIRS || added_of(c) == ADDS_TO_PAIRS_OF_ALL;
}

bool around_hands_on(const struct config *c)
{
    const struct score_term *const term = term_of(c);

    return term && term->core;
}

float around_gain(const struct sublayer *s)
{
    return around_hands_on(s->c) ? term_of(s->c)->core->gain(s) : 0;
}

int around_task_width(const struct config *c)
{
    const struct score_term *const term = term_of(c);

    return term && term->task ? term->task(c) : 0;
}

int around_cached(const struct config *c)
{
    const struct score_term *const term = term_of(c);

    return term && term->cached ? term->cached(c) : 0;
}

/* Has the model a part with this member? */
#define ANY_WITH(member)                                                                           \
    for (enum part_slot i = SLOT_AROUND; i < SLOT_COUNT; i++)                                      \
        if (parts[i]->member && around_has(c, i))                                                  \
            return true;                                                                           \
    return false

bool around_reads_cache(const struct config *c) { ANY_WITH(reads_cache); }
bool around_clips(const struct config *c) { ANY_WITH(clips); }
bool around_shares(const struct config *c) { ANY_WITH(map.shared); }
bool around_unprojects(const struct config *c) { ANY_WITH(map.unproject); }
bool around_guides(const struct config *c) { ANY_WITH(map.scores_grad); }

size_t around_add_floats(const struct config *c, struct around_call n)
{
    const size_t pairs = (size_t)n.B * (size_t)n.all * (size_t)n.L;

    if (added_of(c) == ADDS_TO_PAIRS_OF_ALL)
        return pairs;
    return around_adds(c) ? (size_t)c->H * pairs : 0;
}

struct dense around_dense(const struct config *c, struct around_call n, const float *at)
{
    const ptrdiff_t row = n.all, head = row * n.L;

    if (added_of(c) == ADDS_TO_PAIRS_OF_ALL)
        return (struct dense){.at = at, .batch = head, .row = row};
    return (struct dense){.at = at, .batch = c->H * head, .head = head, .row = row};
}

size_t around_sums_count(const struct config *c, struct around_call n)
{
    return added_of(c) == ADDS_SUMS ? (size_t)n.B * (size_t)c->H * (size_t)n.all : 0;
}

struct fade around_sums(const struct config *c, struct around_call n, const double *at)
{
    return (struct fade){.at = at, .batch = (ptrdiff_t)c->H * n.all, .head = n.all};
}

void around_placeholder(const struct config *c, struct attn *a)
{
    static const float something = 0;
    static const double sum = 0;

    if (around_adds(c))
        a->add.at = &something;
    if (added_of(c) == ADDS_SUMS)
        a->fade.at = &sum;
}

/* ---- declaration and work space ----------------------------------------------------------- */

void around_params(struct sublayer *s, const char *prefix, struct params *p)
{
    s->at[OWN_around] = p->n;
    s->n_parts = 0;
    for (enum part_slot i = SLOT_AROUND; i < SLOT_COUNT; i++)
        if (around_has(s->c, i)) {
            s->parts[s->n_parts].part = parts[i];
            s->parts[s->n_parts++].param = p->n - s->at[OWN_around];
            if (parts[i]->params)
                parts[i]->params(s, prefix, p);
        }
}

bool around_complete(const struct sublayer *s)
{
    int n = 0;

    for (enum part_slot i = SLOT_AROUND; i < SLOT_COUNT; i++)
        n += around_has(s->c, i);
    return n == s->n_parts;
}

/* Where the arrays of the i-th part begin in `base`, NULL = count; returns floats up to their end.
 * What is added to scores comes before all of them, hence aligned. */
static size_t place(const struct sublayer *s, int i, struct around_call n, bool backward,
                    float *base, float *at[AROUND_ARRAYS])
{
    size_t end = around_add_floats(s->c, n) + 2 * around_sums_count(s->c, n);

    n.backward = backward;
    for (int part = 0; part <= i; part++) {
        size_t floats[AROUND_ARRAYS] = {0};
        if (s->parts[part].part->arrays)
            s->parts[part].part->arrays(s, n, floats);
        for (int k = 0; k < AROUND_ARRAYS; k++) {
            at[k] = base && floats[k] ? base + end : NULL;
            end += floats[k];
        }
    }
    return end;
}

struct part_call around_part_call(const struct part_call *all, int i)
{
    const struct sublayer *const s = all->s;
    float *const base = all->w->array[AT_AROUND], *const d_base = all->w->d_array[AT_AROUND];
    struct part_call t = *all;

    t.part = s->parts[i].part;
    t.param = s->around + s->parts[i].param;
    if (t.part->term.added) {
        t.add = base;
        t.d_add = d_base;
        t.sums = (double *)(void *)base;
        t.d_sums = (double *)(void *)d_base;
    }
    place(s, i, t.n, false, base, t.at);
    place(s, i, t.n, true, d_base, t.d_at);
    return t;
}

bool around_one(const struct part_call *all, size_t hook, struct part_call *t)
{
    for (int i = 0; i < all->s->n_parts; i++)
        if (*(void *const *)((const char *)all->s->parts[i].part + hook)) {
            *t = around_part_call(all, i);
            return true;
        }
    return false;
}

struct array around_array(const struct sublayer *s, struct extent max, bool backward)
{
    const struct around_call n = {.B = max.B,
                                  .L = max.L,
                                  .K = s->mem == MEM_KV ? max.L : max.M + max.L,
                                  .all = max.M + max.L};
    float *at[AROUND_ARRAYS];
    const size_t floats = s->n_parts ? place(s, s->n_parts - 1, n, backward, NULL, at) : 0;

    return (struct array){backward ? 0 : floats, floats, backward, PART_ACTIVATIONS};
}

struct array around_shared(const struct sublayer *s, struct extent max, bool backward)
{
    for (int i = 0; i < s->n_parts; i++)
        if (s->parts[i].part->map.shared)
            return s->parts[i].part->map.shared(s, max, backward);
    return (struct array){0};
}

/* ---- forward ------------------------------------------------------------------------------ */

void around_scores(const struct part_call *all, struct attn *a)
{
    for (int i = 0; i < all->s->n_parts; i++) {
        const struct part_call t = around_part_call(all, i);
        const struct score_term *const term = &t.part->term;
        if (term->core)
            term->core->scores(&t, a);
        else if (term->added == ADDS_SUMS)
            a->fade = around_sums(t.s->c, t.n, t.sums);
        else if (term->added)
            a->add = around_dense(t.s->c, t.n, t.add);
    }
}

struct attn around_softmax(const struct part_call *all, const struct attn *a, int map)
{
    struct part_call t;

    return AROUND_ONE(map.softmax, all, &t) ? t.part->map.softmax(&t, a, map) : *a;
}

/* ---- cost --------------------------------------------------------------------------------- */

double around_pairs(const struct attn *a)
{
    double pairs = 0;

    for (int h = 0; h < a->H; h++)
        pairs += attn_pairs(a, h);
    return pairs;
}

double around_flop(const struct sublayer *s, const struct attn *a, double rows, double projected)
{
    const struct part_cost t = {s, a, rows, projected};
    double flop = 0;

    for (int i = 0; i < s->n_parts; i++)
        if (s->parts[i].part->flop)
            flop += s->parts[i].part->flop(&t);
    return flop;
}
