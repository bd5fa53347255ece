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
    return s->bare || !s->kind->masked ? M : config_kept(s->c, s->layer, M);
}

int steps_keep(const struct sublayer *s, enum mem_kind mem, int M)
{
    return mem == MEM_HIDDEN ? steps_kept(s, M) : -1;
}

static struct cache *cache_of(struct sublayer *s, int i)
{
    struct steps_memory *const m = &s->state.steps;
    struct cache *const all[STEP_CACHES] = {&m->attention.keys, &m->attention.values,
                                            &m->attention.beside, &m->last};

    return all[i];
}

/* The i-th value that is cached. */
static const struct value *cached(const struct steps *t, int i)
{
    const struct value *v = t->value;

    while (v->cache != i + 1)
        v++;
    return v;
}

static bool is_far(const struct steps *t, int i) { return cached(t, i)->rows == steps_far_rows; }

/* Rows that it keeps of M tokens: where there are groups, those of one that is not complete. */
static int kept_rows(const struct sublayer *s, int i, int M)
{
    const struct steps *const t = &s->state.steps.steps;
    const int kept = steps_kept(s, M), size = t->groups.size;

    if (is_far(t, i))
        return kept / size * t->groups.rows;
    return size ? min_int(kept, size - 1) : kept;
}

/* Room for what L new tokens and `waiting` ones before them become. */
static int new_rows(const struct steps *t, int i, int waiting, int L)
{
    return is_far(t, i) ? steps_far_rows(t, (struct extent){.L = waiting + L}) : L;
}

size_t steps_caches(const struct sublayer *s, int M)
{
    const struct steps *const t = &s->state.steps.steps;
    size_t floats = 0;

    for (int i = 0; i < t->n_caches; i++)
        floats += (size_t)kept_rows(s, i, M) * (size_t)cached(t, i)->width;
    return floats;
}

void steps_caches_bind(struct sublayer *s, struct arena *a)
{
    struct steps *const t = &s->state.steps.steps;
    const struct extent max = s->state.steps.max;

    t->cached = s->kind->caches && s->mem == MEM_KV;
    for (int i = 0; i < t->n_caches && t->cached; i++)
        cache_bind(cache_of(s, i), max.B, new_rows(t, i, kept_rows(s, 0, max.M), max.L),
                   kept_rows(s, i, max.M), cached(t, i)->width, a);
}

/* Rows before those of a group that is not complete belong to far rows. */
int steps_cached_rows(const struct sublayer *s)
{
    const struct cache *const rows = &s->state.steps.attention.keys;
    const int size = s->state.steps.steps.groups.size;

    return size ? min_int(rows->M, (int)(rows->seen % size)) : rows->M;
}

/* Without those of groups that have been forgotten in part. */
int steps_cached_far(const struct sublayer *s)
{
    const struct steps_memory *const m = &s->state.steps;
    const int size = m->steps.groups.size, rows = m->steps.groups.rows;

    if (!size)
        return 0;
    const int64_t seen = m->attention.keys.seen, oldest = max_wide(0, seen - m->max.M);
    const int64_t whole = seen / size - (oldest + size - 1) / size; /* remembered */
    return min_int(m->attention.beside.M, (int)max_wide(0, whole) * rows);
}

void steps_caches_reserve(struct sublayer *s, int L, struct cache *cache[STEP_CACHES])
{
    const struct steps *const t = &s->state.steps.steps;

    for (int i = 0; i < t->n_caches && t->cached; i++) {
        cache[i] = cache_of(s, i);
        cache_reserve(cache[i], new_rows(t, i, steps_cached_rows(s), L));
    }
}

void steps_caches_commit(struct sublayer *s, int L)
{
    const struct steps *const t = &s->state.steps.steps;
    const struct grouping of = t->groups;
    const int rows = t->cached ? steps_cached_rows(s) + L : 0;
    const int64_t first = s->state.steps.attention.keys.seen - (rows - L);
    const int far = of.size ? grouping_whole(of, first, rows) * of.rows : 0;

    for (int i = 0; i < t->n_caches && t->cached; i++)
        cache_commit(cache_of(s, i), is_far(t, i) ? far : L);
}

void steps_caches_forget(struct sublayer *s)
{
    for (int i = 0; i < s->state.steps.steps.n_caches; i++)
        cache_clear(cache_of(s, i));
}
