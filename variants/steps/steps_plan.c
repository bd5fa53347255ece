/* SPDX-License-Identifier: MIT
 *
 * What is decided once a list of steps is complete: which steps become parts of others, where values
 * lie, which steps are run for states alone. */
#include "steps.h"

static bool overlap(const struct steps *t, int a, int b)
{
    const struct value *const x = &t->value[a], *const y = &t->value[b];

    return x->of == y->of && x->at < y->at + y->width && y->at < x->at + x->width;
}

/* ---- steps that become parts of others --------------------------------------------------- */

/* The one step that reads a value, and the whole of it; NULL = none or several do. */
static struct step *only_reader(struct steps *t, int value)
{
    struct step *only = NULL;

    for (struct step *s = t->step; s < t->step + t->n; s++)
        for (int in = 0; in < STEP_IN; in++) {
            if (s->in[in] < 0 || !overlap(t, s->in[in], value))
                continue;
            if (only || s->in[in] != value)
                return NULL;
            only = s;
        }
    return only;
}

static void join_steps(struct steps *t)
{
    for (int i = 0; i < t->n; i++) {
        struct step *const s = &t->step[i];
        const int out = s->out[0];
        if (!s->kind->joins || t->value[out].of != out || out == t->first || out == t->result)
            continue;
        struct step *const next = only_reader(t, out);
        if (!next || !s->kind->joins(t, s, next))
            continue;
        memmove(next, next + 1, (size_t)(t->step + t->n - next - 1) * sizeof(*next));
        t->n--;
    }
}

/* ---- gradients that are overwritten ---------------------------------------------------------- */

/* Does a step after the i-th read this value? */
static bool read_later(const struct steps *t, int i, int value)
{
    for (int k = i + 1; k < t->n; k++)
        for (int in = 0; in < STEP_IN; in++)
            if (t->step[k].in[in] >= 0 && overlap(t, t->step[k].in[in], value))
                return true;
    return t->result == value;
}

static void check_overwritten(const struct steps *t)
{
    for (int i = 0; i < t->n; i++)
        for (int in = 0; t->step[i].kind->overwrites && in < STEP_IN; in++)
            CHECK(t->step[i].in[in] < 0 || !read_later(t, i, t->step[i].in[in]));
}

/* ---- what lies outside ----------------------------------------------------------------------- */

static bool reads(const struct steps *t, const struct step *s, int value)
{
    for (int in = 0; in < STEP_IN; in++)
        if (s->in[in] >= 0 && overlap(t, s->in[in], value))
            return true;
    return false;
}

static void check_front(struct steps *t)
{
    for (const struct step *s = t->step; s < t->step + t->n; s++)
        t->reads_front = t->reads_front || s->kind->reads_front;
    for (const struct step *s = t->step; s < t->step + t->n; s++)
        CHECK(!t->reads_front || reads(t, s, STEPS_INPUT) == s->kind->reads_front);
}

/* A result that is the output needs no room here, if backward leaves it alone. */
static void find_outside(struct steps *t)
{
    const struct value of = t->value[t->result];
    bool outside = !t->last;

    for (const struct step *s = t->step; s < t->step + t->n; s++) {
        const bool writes = s->out[0] >= 0 && overlap(t, s->out[0], t->result);
        outside = outside && !reads(t, s, t->result) && (!writes || s->kind->pure);
    }
    if (!outside)
        return;
    t->outside = true;
    t->width -= of.width;
    for (int i = 0; i < t->n_values; i++)
        t->value[i].before -= t->value[i].before > of.before ? of.width : 0;
}

/* ---- where values lie that are not kept, and gradients -------------------------------------- */

/* The first and the last step that has to do with a value. */
static void find_life(struct steps *t, int value)
{
    struct value *const v = &t->value[value];

    v->from = t->n, v->to = -1;
    for (int i = 0; i < t->n; i++) {
        const struct step *const s = &t->step[i];
        for (int k = 0; k < STEP_IN + STEP_OUT; k++) {
            const int of = k < STEP_IN ? s->in[k] : s->out[k - STEP_IN];
            if (of < 0 || !overlap(t, of, value))
                continue;
            v->from = i < v->from ? i : v->from;
            v->to = i;
        }
    }
    if (value == t->result)
        v->to = t->n;
}

bool value_lies_here(const struct steps *t, int value)
{
    const struct value *const v = &t->value[value];

    return v->of == value && value != STEPS_INPUT && value != t->first &&
           !(t->outside && value == t->result) && !v->of_backward && v->width > 0;
}

/* The least place from `at` on where `value` lies on no placed one that lives with it. */
static int free_place(const struct steps *t, const bool *placed, int value, int at)
{
    const struct value *const x = &t->value[value];

    for (int i = 0; i < t->n_values; i++) {
        const struct value *const v = &t->value[i];
        if (placed[i] && v->from <= x->to && x->from <= v->to && v->live_before < at + x->width &&
            at < v->live_before + v->width) {
            at = v->live_before + v->width;
            i = -1; /* all others again */
        }
    }
    return at;
}

static int widest(const struct steps *t, const bool *placed)
{
    int most = -1;

    for (int i = 0; i < t->n_values; i++)
        if (value_lies_here(t, i) && !t->value[i].rows && !placed[i] &&
            (most < 0 || t->value[i].width > t->value[most].width))
            most = i;
    return most;
}

/* Wide ones first, which leaves the least room between them. */
static void place_values(struct steps *t)
{
    bool placed[MAX_VALUES] = {false};

    for (int i = 0; i < t->n_values; i++)
        find_life(t, i);
    for (int i; (i = widest(t, placed)) >= 0;) {
        struct value *const v = &t->value[i];
        v->live_before = free_place(t, placed, i, 0);
        placed[i] = true;
        t->live_width = max_int(t->live_width, v->live_before + v->width);
    }
}

/* ---- what states need ----------------------------------------------------------------------- */

static bool carries(const struct steps *t, const struct step *s)
{
    for (int i = 0; i < STEP_STATES; i++)
        if (s->state[i] >= 0 && !t->state[s->state[i]].given)
            return true;
    for (int i = 0; i < STEP_OUT; i++)
        if (s->out[i] >= 0 &&
            (t->value[s->out[i]].of == t->first || t->value[t->value[s->out[i]].of].cache))
            return true;
    return false;
}

/* Does a later step that states depend on read what this one writes? */
static bool feeds_states(const struct steps *t, const struct step *s)
{
    for (const struct step *to = s + 1; to < t->step + t->n; to++)
        for (int in = 0; to->to_states && in < STEP_IN; in++)
            for (int out = 0; to->in[in] >= 0 && out < STEP_OUT; out++)
                if (s->out[out] >= 0 && overlap(t, s->out[out], to->in[in]))
                    return true;
    return false;
}

static void find_states(struct steps *t)
{
    for (struct step *s = t->step + t->n - 1; s >= t->step; s--)
        s->to_states = carries(t, s) || feeds_states(t, s);
}

void steps_plan(struct steps *t)
{
    join_steps(t);
    check_overwritten(t);
    check_front(t);
    find_outside(t);
    place_values(t);
    find_states(t);
}
