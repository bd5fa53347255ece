/* SPDX-License-Identifier: MIT
 *
 * What a list of steps carries from call to call: the states of its steps, which include all past
 * rows, and its position in the stream. Of sums it may be rows before the segment instead, run again
 * in front of each; of convolutions it is the few rows that they reach back to. */
#include "sublayer_inner.h"
#include "sublayer_steps.h"

/* In a stack the kind of memory is that of attention. */
bool steps_go_on(const struct sublayer *s)
{
    return s->mem == MEM_STATE || (s->c->stack.n && sublayer_remembers(s));
}

bool steps_keep_rows(const struct sublayer *s)
{
    return (s->kind->sums && s->mem == MEM_HIDDEN) || (s->kind == &sublayer_branches && s->keeps);
}

int steps_rerun(const struct sublayer *s, int M)
{
    return !steps_keep_rows(s) ? 0 : s->kind == &sublayer_branches ? conv_branches_reach() : M;
}

static size_t state_floats(const struct sublayer *s, int i)
{
    const struct state *const state = &s->state.steps.steps.state[i];

    return (state->given ? 1 : (size_t)s->state.steps.max.B) * (size_t)state->n;
}

/* Is the i-th state there, and does each call change it? It begins where the call before has ended,
 * or at the first row of memory. */
static bool is_kept(const struct sublayer *s, int i)
{
    return steps_go_on(s) || steps_keep_rows(s) || s->state.steps.steps.state[i].given;
}

bool steps_advance(const struct sublayer *s, int i)
{
    return is_kept(s, i) && !s->state.steps.steps.state[i].given;
}

static void begin_state(struct sublayer *s, int i)
{
    const struct state *const state = &s->state.steps.steps.state[i];

    if (state->draw)
        state->draw(s->c, s->state.steps.before[i]);
    for (size_t e = 0; !state->draw && e < state_floats(s, i); e++)
        s->state.steps.before[i][e] = state->start;
}

/* As two floats, because one would round from 2^24 on. */
enum { POSITION_LOW = 1 << 20 };

int64_t steps_position(const struct sublayer *s)
{
    const float *const at = s->state.steps.position;

    if (s->kind->caches)
        return s->mem == MEM_KV ? s->state.attention.keys.seen : s->memory.seen;
    return at ? (int64_t)at[0] * POSITION_LOW + (int64_t)at[1] : 0;
}

void sublayer_steps_seek(struct sublayer *s, int64_t position)
{
    const int64_t high = position / POSITION_LOW, low = position % POSITION_LOW;
    float *const at = s->state.steps.position;

    if (!at)
        return;
    at[0] = (float)high;
    at[1] = (float)low;
}

void steps_states_forget(struct sublayer *s)
{
    sublayer_steps_seek(s, 0);
    for (int i = 0; i < s->state.steps.steps.n_states; i++)
        if (steps_advance(s, i))
            begin_state(s, i);
}

size_t steps_first_floats(const struct sublayer *s, struct extent max)
{
    const struct steps *const t = &s->state.steps.steps;

    return t->first < 0 ? 0 : (size_t)(max.B * max.L) * (size_t)t->value[t->first].width;
}

void steps_states_bind(struct sublayer *s, struct arena *a)
{
    struct steps_memory *const m = &s->state.steps;

    for (int i = 0; i < m->steps.n_states; i++) {
        const bool given = m->steps.state[i].given;
        const enum part memory = steps_keep_rows(s) ? PART_SCRATCH : PART_MEMORY;
        if (is_kept(s, i))
            m->before[i] = arena_f32(a, given ? PART_REL_POS : memory, state_floats(s, i));
        if (steps_advance(s, i))
            m->after[i] = arena_f32(a, PART_SCRATCH, state_floats(s, i));
        if (a->base && is_kept(s, i))
            begin_state(s, i);
    }
    if (steps_go_on(s) && m->steps.positions) {
        m->position = arena_f32(a, PART_MEMORY, 2);
        if (a->base)
            sublayer_steps_seek(s, 0);
    }
    if (s->bare && m->steps.first >= 0) /* it is given what the first layer shares */
        m->first = arena_f32(a, PART_ACTIVATIONS, steps_first_floats(s, m->max));
}

void steps_states_commit(struct sublayer *s, int L)
{
    struct steps_memory *const m = &s->state.steps;

    sublayer_steps_seek(s, steps_position(s) + L);
    for (int i = 0; i < m->steps.n_states; i++) {
        if (!steps_advance(s, i))
            continue;
        float *const old = m->before[i];
        m->before[i] = m->after[i];
        m->after[i] = old;
    }
}

bool steps_states_carried(const struct sublayer *s, int i, struct carried *out)
{
    const struct steps_memory *const m = &s->state.steps;

    if (i == m->steps.n_states && m->first)
        *out = (struct carried){"v_first", m->first, steps_first_floats(s, m->max), true, false};
    else if (i == m->steps.n_states && m->position)
        *out = (struct carried){m->steps.positions, m->position, 2, false, true};
    else if (i < m->steps.n_states)
        *out =
            (struct carried){m->steps.state[i].name, m->before[i],
                             is_kept(s, i) && m->steps.state[i].in_files ? state_floats(s, i) : 0,
                             m->steps.state[i].given, false};
    else
        return false;
    return true;
}

/* ---- rows that steps attend to ------------------------------------------------------------ */

int steps_kept(const struct sublayer *s, int M)
{
    return s->bare ? M : config_kept(s->c, s->layer, M);
}

int steps_keep(const struct sublayer *s, enum mem_kind mem, int M)
{
    return mem == MEM_HIDDEN ? steps_kept(s, M) : -1;
}

static struct cache *cache_of(struct sublayer *s, int i)
{
    struct attention *const t = &s->state.steps.attention;

    return i == 0 ? &t->keys : i == 1 ? &t->values : &t->beside;
}

/* Of the i-th value that is cached. */
static int cache_width(const struct steps *t, int i)
{
    const struct value *v = t->value;

    while (v->cache != i + 1)
        v++;
    return v->width;
}

size_t steps_caches(const struct sublayer *s, int M)
{
    const struct steps *const t = &s->state.steps.steps;
    size_t width = 0;

    for (int i = 0; i < t->n_caches; i++)
        width += (size_t)cache_width(t, i);
    return (size_t)steps_kept(s, M) * width;
}

void steps_caches_bind(struct sublayer *s, struct arena *a)
{
    struct steps_memory *const m = &s->state.steps;
    const struct extent max = m->max;

    m->steps.cached = s->kind->caches && s->mem == MEM_KV;
    for (int i = 0; i < m->steps.n_caches && m->steps.cached; i++)
        cache_bind(cache_of(s, i), max.B, max.L, steps_kept(s, max.M), cache_width(&m->steps, i),
                   a);
}

void steps_caches_commit(struct sublayer *s, int L)
{
    for (int i = 0; i < s->state.steps.steps.n_caches && s->state.steps.steps.cached; i++)
        cache_commit(cache_of(s, i), L);
}

void steps_caches_forget(struct sublayer *s)
{
    for (int i = 0; i < s->state.steps.steps.n_caches; i++)
        cache_clear(cache_of(s, i));
}
