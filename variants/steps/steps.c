/* SPDX-License-Identifier: MIT
 *
 * Lists of steps: built, then run forwards and backwards. What is decided between: steps_plan.c. */
#include "steps.h"

/* ---- building ----------------------------------------------------------------------------- */

int steps_value_of(struct steps *t, int width, value_rows *rows, bool pairs)
{
    CHECK(t->n_values < MAX_VALUES && width > 0);
    t->value[t->n_values] = (struct value){.of = t->n_values,
                                           .width = width,
                                           .before = rows ? -1 : t->width,
                                           .rows = rows,
                                           .pairs = pairs};
    t->width += rows ? 0 : width;
    return t->n_values++;
}

int steps_value(struct steps *t, int width) { return steps_value_of(t, width, NULL, false); }

int steps_rows(const struct steps *t, int value, struct extent now)
{
    value_rows *const rows = t->value[t->value[value].of].rows;

    return rows ? rows(t, now) : now.L;
}

/* Rows of memory among those that the layer is given. */
static int in_front(const struct steps *t, int M) { return t->cached ? 0 : M; }

int steps_given_rows(const struct steps *t, struct extent now)
{
    return in_front(t, now.M) + now.L;
}

int steps_all_rows(const struct steps *t, struct extent now) { return now.M + now.L; }

int grouping_lead(struct grouping of, int64_t first)
{
    return (int)((of.size - first % of.size) % of.size);
}

int grouping_whole(struct grouping of, int64_t first, int rows)
{
    return max_int(0, rows - grouping_lead(of, first)) / of.size;
}

int steps_far_rows(const struct steps *t, struct extent now)
{
    const struct grouping of = t->groups;

    return of.size ? (now.M + now.L) / of.size * of.rows + of.beside : of.rows;
}

static int cached(struct steps *t, int width, value_rows *rows)
{
    const int value = steps_value_of(t, width, rows, false);

    CHECK(t->n_caches < STEP_CACHES);
    t->value[value].cache = ++t->n_caches;
    return value;
}

int steps_remembered(struct steps *t, int width, const char *shown)
{
    const int value = cached(t, width, steps_given_rows);

    t->value[value].shown = shown;
    return value;
}

int steps_far(struct steps *t, int width) { return cached(t, width, steps_far_rows); }

int steps_first(struct steps *t, int width)
{
    t->first = steps_value(t, width);
    t->width -= width; /* it lies outside */
    return t->first;
}

int steps_columns(struct steps *t, int value, int first, int n)
{
    const struct value *const of = &t->value[value];

    const bool has = first >= 0 && n > 0 && first + n <= of->width;

    CHECK(t->n_values < MAX_VALUES);
    steps_need(t, has, "columns that a value does not have  -> see its width");
    if (!has)
        return value;
    t->value[t->n_values] = (struct value){.of = of->of, .at = of->at + first, .width = n};
    return t->n_values++;
}

void steps_drop(struct steps *t, int value)
{
    const struct value of = t->value[value];

    CHECK(of.of == value && value != t->first);
    t->value[value].width = 0;
    if (of.rows)
        return;
    t->width -= of.width;
    for (int i = 0; i < t->n_values; i++)
        if (t->value[i].before > of.before)
            t->value[i].before -= of.width;
}

struct step *steps_add(struct steps *t, const struct step_kind *kind)
{
    CHECK(t->n < MAX_STEPS);
    struct step *const s = &t->step[t->n++];
    *s = (struct step){.kind = kind, .c = t->c};
    for (int i = 0; i < STEP_IN; i++)
        s->in[i] = NO_VALUE;
    for (int i = 0; i < STEP_OUT; i++)
        s->out[i] = NO_VALUE;
    for (int i = 0; i < STEP_PARAMS; i++)
        s->param[i] = -1;
    for (int i = 0; i < STEP_STATES; i++)
        s->state[i] = -1;
    return s;
}

/* The first free place of a list. */
static int *place(int *list, int n)
{
    for (int i = 0; i < n; i++)
        if (list[i] == -1)
            return &list[i];
    CHECK(!"room for it");
    return list;
}

void step_reads(struct steps *t, struct step *s, int value)
{
    enum { PASSED = -2 }; /* an input that the step does without */
    int *const at = place(s->in, STEP_IN);

    *at = value == NO_VALUE ? PASSED : value;
    if (value != NO_VALUE)
        s->width[at - s->in] = t->value[value].width;
}

struct step *steps_reading(struct steps *t, const struct step_kind *kind, const int *value,
                           size_t n)
{
    struct step *const s = steps_add(t, kind);

    for (size_t i = 0; i < n; i++)
        step_reads(t, s, value[i]);
    return s;
}

int step_writes_to(struct steps *t, struct step *s, int value)
{
    int *const at = place(s->out, STEP_OUT);

    *at = value;
    if (at == s->out)
        s->result = t->value[value].width;
    return value;
}

int step_writes(struct steps *t, struct step *s, int width)
{
    value_rows *const rows = s->in[0] < 0 ? NULL : t->value[t->value[s->in[0]].of].rows;

    return step_writes_to(t, s, steps_value_of(t, width, rows, false));
}

void step_state(struct steps *t, struct step *s, const char *name, int n, float start)
{
    CHECK(t->n_states < MAX_STATES);
    *place(s->state, STEP_STATES) = t->n_states;
    t->state[t->n_states++] =
        (struct state){.name = name, .n = n, .start = start, .in_files = true};
}

int steps_state(const struct steps *t, const char *name)
{
    for (int i = 0; i < t->n_states; i++)
        if (strcmp(t->state[i].name, name) == 0)
            return i;
    return -1;
}

struct state *step_given(struct steps *t, struct step *s, const char *name, int n)
{
    const int there = steps_state(t, name);

    if (there < 0) {
        step_state(t, s, name, n, 0);
        t->state[t->n_states - 1].given = true;
        return &t->state[t->n_states - 1];
    }
    CHECK(t->state[there].given && t->state[there].n == n);
    *place(s->state, STEP_STATES) = there;
    return &t->state[there];
}

void step_shares(struct step *s, int param) { *place(s->param, STEP_PARAMS) = param; }

int steps_tensor(struct steps *t, enum init init, float arg, int rank, const int *shape,
                 const char *name)
{
    if (t->declares)
        params_add(t->declares, init, arg, rank, shape, "%s%s", t->prefix, name);
    return t->n_params++;
}

void step_tensor(struct steps *t, struct step *s, enum init init, float arg, int rank,
                 const int *shape, const char *name)
{
    step_shares(s, steps_tensor(t, init, arg, rank, shape, name));
}

void steps_residual(struct steps *t)
{
    int last = t->declares ? t->declares->n - 1 : -1;

    while (last >= 0 && t->declares->v[last].rank != 2)
        last--;
    if (last >= 0)
        params_residual(t->declares, last);
}

void steps_ramp(struct steps *t, struct ramp ramp)
{
    if (t->declares)
        params_ramp(t->declares, t->declares->n - 1, ramp);
}

int steps_map(struct steps *t, int out, int in, const char *name)
{
    const int map = steps_tensor(t, INIT_LINEAR, 0, 2, (const int[]){out, in}, name);

    if (t->declares)
        params_narrows(t->declares, t->declares->n - 1);
    return map;
}

void step_matrix(struct steps *t, struct step *s, int out, int in, const char *name)
{
    step_shares(s, steps_map(t, out, in, name));
}

void step_vector(struct steps *t, struct step *s, enum init init, float arg, int n,
                 const char *name)
{
    step_tensor(t, s, init, arg, 1, &n, name);
}

void steps_need(struct steps *t, bool has, const char *lacks)
{
    if (!has && !t->lacks)
        t->lacks = lacks;
}

/* The list as its function says it. */
static void add_all(struct steps *t, steps_build *build, const struct config *c, int layer,
                    bool alone, const char *prefix, struct params *p)
{
    *t = (struct steps){.c = c,
                        .layer = layer,
                        .alone = alone,
                        .prefix = prefix,
                        .declares = p,
                        .first = -1,
                        .last = "o.weight",
                        .o = -1,
                        .o_bias = -1,
                        .result = -1};
    steps_value(t, c->D);
    t->width = 0; /* the input lies outside */
    build(t);
    steps_need(
        t, t->result > STEPS_INPUT,
        "build() names no result  -> end it with mix_output(t, value), or t->result = value");
    steps_need(t,
               t->result <= STEPS_INPUT ||
                   (t->value[t->result].of == t->result && t->result != t->first),
               "the result is a part of another value  -> step_copy(t, value)");
}

const char *steps_lack(steps_build *build, const struct config *c)
{
    struct steps t;

    add_all(&t, build, c, 0, false, "", NULL);
    return t.lacks;
}

void steps_make(struct steps *t, steps_build *build, const struct config *c, int layer, bool alone,
                const char *prefix, struct params *p)
{
    add_all(t, build, c, layer, alone, prefix, p);
    if (t->lacks)
        check_failed(t->lacks, __FILE__, __LINE__);
    if (t->last && t->o < 0) {
        t->o = t->n_params;
        t->o_bias = t->last_bias ? t->o + 1 : -1;
        if (p)
            params_residual(p, params_map(p, c->D, t->value[t->result].width, prefix, t->last));
        if (p && t->last_bias)
            params_vector(p, INIT_ZERO, 0, c->D, prefix, t->last_bias);
    }
    steps_plan(t);
    t->prefix = NULL; /* the caller's */
    t->declares = NULL;
}

void step_add_gradient(const struct step_call *c, int input)
{
    const int rows = c->B * c->L, n = c->out->n;

#pragma omp parallel for num_threads(team_for(c->g->threads, (ptrdiff_t)rows *n))
    for (int i = 0; i < rows; i++) {
        const float *const d = matrix_row(&c->d_out[0], i);
        float *const d_in = matrix_row(&c->d_in[input], i);
#pragma omp simd
        for (int e = 0; e < n; e++)
            d_in[e] += d[e];
    }
}

void matrix_add_columns(const struct matrix *m, int rows, float *sums)
{
    for (int i = 0; i < rows; i++) {
        const float *const row = matrix_row(m, i);
#pragma omp simd
        for (int e = 0; e < m->n; e++)
            sums[e] += row[e];
    }
}

/* ---- costs -------------------------------------------------------------------------------- */

/* Of the first `n` values, those that have rows of their own. */
static size_t own_floats(const struct steps *t, struct extent now, bool kept, bool pairs, int n)
{
    size_t floats = 0;

    for (int i = 0; i < n; i++) {
        const struct value *const v = &t->value[i];
        if (v->rows && v->of == i && v->pairs == pairs && (kept || !v->of_backward) &&
            !(v->cache && t->cached))
            floats += (size_t)now.B * (size_t)v->rows(t, now) * (size_t)v->width;
    }
    return floats;
}

size_t steps_floats(const struct steps *t, struct extent max, bool kept)
{
    return (size_t)max.B * (size_t)max.L * (size_t)(kept ? t->width : t->live_width) +
           own_floats(t, max, kept, false, t->n_values);
}

size_t steps_pairs(const struct steps *t, struct extent max, bool kept)
{
    return own_floats(t, max, kept, true, t->n_values);
}

size_t steps_scratch(const struct steps *t, const struct engine *g, struct extent max,
                     bool backward)
{
    size_t most = 0;

    for (const struct step *s = t->step; s < t->step + t->n; s++) {
        const struct extent now = {max.B, steps_rows(t, s->out[0], max), max.M};
        const size_t own = s->kind->scratch ? s->kind->scratch(g, s, now, backward) : 0;
        most = own > most ? own : most;
    }
    return most;
}

double steps_flop(const struct steps *t, struct extent now)
{
    double flop = 0;

    for (const struct step *s = t->step; s < t->step + t->n; s++)
        flop += s->kind->flop ? s->kind->flop(s, now.B, steps_rows(t, s->out[0], now)) : 0;
    return flop;
}

const char *steps_impl(const struct steps *t, const struct engine *g, int B, int L, bool backward)
{
    for (const struct step *s = t->step; s < t->step + t->n; s++)
        if (s->kind->impl)
            return s->kind->impl(g, s, B, L, backward);
    return "steps";
}

/* ---- running ------------------------------------------------------------------------------ */

static struct extent extent_of(const struct steps_run *r)
{
    return (struct extent){r->B, r->L, r->M};
}

/* Where a value lies that has rows of its own. */
static float *own_place(const struct steps *t, const struct steps_run *r, int value, bool gradient,
                        bool kept)
{
    const bool pairs = t->value[value].pairs;
    float *const values = gradient ? r->d_values : r->values;
    float *const base = !pairs ? values + (ptrdiff_t)(kept ? t->width : t->live_width) * r->B * r->L
                        : gradient ? r->d_pairs
                                   : r->pairs;

    return base + own_floats(t, extent_of(r), kept, pairs, value);
}

/* Each value lies whole; if all are kept, one after the other. */
static struct matrix matrix_in(const struct steps *t, const struct steps_run *r, int value,
                               bool gradient)
{
    const bool kept = r->kept && !gradient;

    if (!kept && t->value[value].of_backward)
        return (struct matrix){0};
    const struct value *const v = &t->value[value], *const of = &t->value[v->of];
    float *at = gradient ? r->d_values : r->values;
    struct matrix m = {.row = of->width, .n = v->width};
    m.batch = steps_rows(t, value, extent_of(r)) * m.row;
    if (v->of == STEPS_INPUT && gradient) {
        m.skip = r->skip;
        m.batch += (in_front(t, r->M) - r->skip) * m.row;
        at = r->d_x - r->skip * m.row;
    } else if (v->of == STEPS_INPUT) {
        m.batch = r->x_batch ? r->x_batch : m.batch;
        at = (float *)r->x;
    } else if (of->cache && t->cached) {
        struct cache *const cache = r->cache[of->cache - 1];
        m.batch = cache_stride(cache);
        at = cache_rows(cache, 0) + (ptrdiff_t)cache->M * cache->n;
    } else if (v->of == t->first)
        at = gradient ? r->d_first : r->first;
    else if (t->outside && v->of == t->result)
        at = gradient ? (float *)r->d_result : r->result;
    else if (of->rows)
        at = own_place(t, r, v->of, gradient, kept);
    else
        at += (ptrdiff_t)(kept ? of->before : of->live_before) * r->B * r->L;
    m.at = at + v->at;
    return m;
}

struct matrix steps_matrix(const struct steps *t, const struct steps_run *r, int value)
{
    return matrix_in(t, r, value, false);
}

struct matrix steps_gradient(const struct steps *t, const struct steps_run *r, int value)
{
    return matrix_in(t, r, value, true);
}

/* The i-th input. Of given rows a step of new ones reads the last, and others, of those that a cache
 * has, all. */
static struct matrix input_of(const struct steps *t, const struct steps_run *r,
                              const struct step *s, int i, const struct matrix at[MAX_VALUES])
{
    if (s->in[i] < 0)
        return (struct matrix){0};
    const struct value *const in = &t->value[t->value[s->in[i]].of];
    value_rows *const rows = t->value[t->value[s->out[0]].of].rows;
    struct matrix m = at[s->in[i]];
    int by = 0;

    if (in->of != STEPS_INPUT && in->rows != steps_given_rows)
        return m;
    if (!s->core && !rows)
        by = in_front(t, r->M);
    else if (in->cache && t->cached && rows != steps_given_rows)
        by = -r->M;
    m.at += by * m.row;
    m.skip = max_int(0, m.skip - by);
    return m;
}

/* What all steps of a run are told. */
static struct step_call calls_of(const struct steps *t, const struct steps_run *r)
{
    return (struct step_call){.g = r->g,
                              .B = r->B,
                              .length = r->L,
                              .M = r->M,
                              .far = r->far,
                              .front = r->front,
                              .d_front = r->d_front,
                              .steps = t,
                              .core = r->core,
                              .place = &r->place,
                              .encoding = r->encoding,
                              .sight = r->sight,
                              .model = r->model,
                              .scratch = r->scratch};
}

/* All values of a run, or their gradients. */
static void find_values(const struct steps *t, const struct steps_run *r, bool gradient,
                        struct matrix at[MAX_VALUES])
{
    for (int i = 0; i < t->n_values; i++)
        at[i] = matrix_in(t, r, i, gradient);
}

/* Run one step with these; backward if there are gradients. */
static void call_step(struct step_call *c, const struct steps_run *r, const struct step *s,
                      const struct matrix at[MAX_VALUES], const struct matrix d_at[MAX_VALUES])
{
    const struct steps *const t = c->steps;
    const bool given = t->value[t->value[s->out[0]].of].rows == steps_given_rows;

    c->s = s;
    c->L = steps_rows(t, s->out[0], extent_of(r));
    c->position = r->position - (given ? in_front(t, r->M) : 0);
    for (int i = 0; i < STEP_IN; i++) {
        c->in[i] = input_of(t, r, s, i, at);
        if (d_at)
            c->d_in[i] = input_of(t, r, s, i, d_at);
    }
    for (int i = 0; i < STEP_OUT; i++) {
        const int out = s->out[i];
        c->out[i] = out < 0 ? (struct matrix){0} : at[out];
        if (d_at)
            c->d_out[i] = out < 0 ? (struct matrix){0} : d_at[out];
    }
    for (int i = 0; i < STEP_PARAMS; i++)
        c->param[i] = s->param[i] < 0 ? NULL : r->params + s->param[i];
    for (int i = 0; i < STEP_STATES; i++) {
        c->before[i] = s->state[i] < 0 ? NULL : r->before[s->state[i]];
        c->after[i] = s->state[i] < 0 ? NULL : r->after[s->state[i]];
    }
    (d_at ? s->kind->backward : s->kind->forward)(c);
}

/* All steps, or those that lead to states alone. */
static void call_steps(const struct steps *t, const struct steps_run *r, bool to_states)
{
    struct matrix at[MAX_VALUES];
    struct step_call c = calls_of(t, r);

    find_values(t, r, false, at);
    for (int i = 0; i < t->n; i++)
        if (!to_states || t->step[i].to_states)
            call_step(&c, r, &t->step[i], at, NULL);
}

void steps_forward(const struct steps *t, const struct steps_run *r) { call_steps(t, r, false); }
void steps_remember(const struct steps *t, const struct steps_run *r) { call_steps(t, r, true); }

/* Does a step write the whole of this value's gradient, to which others add later? */
static bool is_overwritten(const struct steps *t, int value)
{
    for (const struct step *s = t->step; s < t->step + t->n; s++)
        for (int in = 0; s->kind->overwrites && in < STEP_IN; in++)
            if (s->in[in] == value)
                return true;
    return false;
}

/* Zero the gradients that the i-th step is the first to add to. */
static void clear(const struct steps *t, const struct steps_run *r, int i,
                  const struct matrix d_at[MAX_VALUES])
{
    for (int k = STEPS_INPUT + 1; k < t->n_values; k++) {
        const struct value *const v = &t->value[k];
        const size_t rows = (size_t)r->B * (size_t)steps_rows(t, k, extent_of(r));
        float *const at = d_at[k].at;
        if (at && value_lies_here(t, k) && v->to == i && !is_overwritten(t, k))
            memset(at, 0, rows * (size_t)v->width * sizeof(float));
    }
}

void steps_backward(const struct steps *t, const struct steps_run *r)
{
    const int all = r->d_front.n + r->M - r->skip + r->L;
    const size_t rows = (size_t)r->B * (size_t)all, D = (size_t)t->c->D;

    struct matrix at[MAX_VALUES], d_at[MAX_VALUES];
    struct step_call c = calls_of(t, r);

    CHECK(r->kept);
    find_values(t, r, false, at);
    find_values(t, r, true, d_at);
    memset(r->d_x - (size_t)r->d_front.n * D, 0, rows * D * sizeof(float));
    for (int i = t->n - 1; i >= 0; i--) {
        clear(t, r, i, d_at);
        if (t->step[i].kind->backward)
            call_step(&c, r, &t->step[i], at, d_at);
    }
}
