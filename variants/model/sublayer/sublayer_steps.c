/* SPDX-License-Identifier: MIT
 *
 * A list of steps as a kind of sub-layer, in place of attention or of the feed-forward network or
 * beside them: its steps, then its last map. What it carries: sublayer_steps_states.c. */
#include "sublayer_steps.h"
#include "sublayer_inner.h"
#include "variants/parts/linear.h"
#include "variants/parts/masks.h"

/* Its arrays; the second is one for all layers. Where rows of memory stand in front of each
 * sequence, ROWS are all of them without gaps, and RESULT those of the result that are new. */
enum { VALUES, FIRST, ROWS, RESULT, PAIRS };

static const struct param *last_map(const struct sublayer *s)
{
    return &s->weights[s->state.steps.steps.o];
}

static const struct param *last_bias(const struct sublayer *s)
{
    const struct steps *const t = &s->state.steps.steps;

    return t->o_bias >= 0 ? &s->weights[t->o_bias] : NULL;
}

static void steps_params(const struct sublayer *s, const char *prefix, const char *inner,
                         struct params *p)
{
    const struct mixer *const mixer = s->c->mixer;
    struct steps t;
    char names[64];

    snprintf(names, sizeof(names), "%s%s", inner,
             !mixer || s->build != mixer->build ? ""
             : mixer->prefix                    ? mixer->prefix
                                                : "attn.");
    steps_make(&t, s->build, s->c, s->layer, s->bare, names, p);
}

/* ---- binding ------------------------------------------------------------------------------ */

/* Rows before a row that its convolution depends on. */
static int taps_before(const struct sublayer *s)
{
    return s->kind == &sublayer_cpe   ? s->c->cpe_kernel - 1
           : s->kind == &sublayer_sep ? s->c->sep_kernel - 1
                                      : conv_branches_reach();
}

static int taps_keep(const struct sublayer *s, enum mem_kind mem, int M)
{
    return mem == MEM_HIDDEN || mem == MEM_KV ? taps_before(s) : -1;
}

/* The rows of a call that remembers M tokens, as its steps count them. */
static struct extent extent_of(const struct sublayer *s, int B, int L, int M)
{
    const bool attends = s->kind->caches && sublayer_remembers(s);

    return (struct extent){B, L + steps_rerun(s, M), attends ? steps_kept(s, M) : 0};
}

static struct extent largest_extent(const struct sublayer *s)
{
    const struct extent max = s->state.steps.max;

    return extent_of(s, max.B, max.L, max.M);
}

/* Choose the core of the steps that attend. */
static enum status bind_core(struct sublayer *s, const struct engine *g, struct arena *arena,
                             struct err *e)
{
    struct attention *const t = &s->state.steps.attention;

    if (!steps_core(&s->state.steps.steps, largest_extent(s), &t->prepared))
        return OK;
    if (!s->kind->masked)
        return engine_attn(g, &t->prepared, &t->impl, e);
    t->prepared.window = config_window(s->c, s->layer);
    const struct masks masks = config_masks(s->c, s->layer);
    masks_reserve(&masks, s->state.steps.max.L, arena, &t->prepared);
    const struct attn one = masks_placeholder(&t->prepared);
    return engine_attn(g, &one, &t->impl, e);
}

static enum status steps_bind(struct sublayer *s, const struct engine *g, struct extent max,
                              struct arena *a, struct err *e)
{
    struct steps_memory *const m = &s->state.steps;
    const struct config *const c = s->c;

    *m = (struct steps_memory){.max = max};
    steps_make(&m->steps, s->build, s->c, s->layer, s->bare, "", NULL);
    if (m->steps.no_past && sublayer_remembers(s))
        return fail(e, E_UNSUPPORTED, "%s: %s", c->variant->name, m->steps.no_past);
    if (m->steps.longest && max.L > m->steps.longest)
        return fail(e, E_UNSUPPORTED, "%s: a text of %d, maps of %d tokens  -> use a shorter one",
                    c->variant->name, max.L, m->steps.longest);
    if (!steps_go_on(s) && !s->keeps && !s->kind->caches && sublayer_remembers(s))
        return fail(e, E_UNSUPPORTED, "%s keeps no past rows, only states  -> use --mem-kind state",
                    c->variant->name);
    /* The bare operator has no parameters that layers share: the first in its list is its own. */
    m->shared = m->steps.model && strcmp(s->model->name, m->steps.model) == 0 ? s->model : NULL;
    if (!m->steps.last && !s->bare && m->steps.value[m->steps.result].width != c->D)
        return fail(e, E_UNSUPPORTED, "%s: heads of width %d in a stream of %d  -> use --d-head %d",
                    c->variant->name, config_q_width(c), c->D, c->D / c->H);
    steps_caches_bind(s, a);
    TRY(bind_core(s, g, a, e));
    m->impl = steps_impl(&m->steps, g, max.B, largest_extent(s).L, false);
    m->impl_grad = steps_impl(&m->steps, g, max.B, largest_extent(s).L, true);
    steps_states_bind(s, a);
    return OK;
}

static void steps_build_tables(const struct engine *g, struct sublayer *s,
                               const float *pos_encoding)
{
    struct steps_memory *const m = &s->state.steps;

    m->attention.pos_encoding = pos_encoding;
    if (m->steps.tables)
        m->steps.tables(&m->steps, m->shared, m->before);
}

static void steps_arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const struct steps *const t = &s->state.steps.steps;
    const struct extent most = extent_of(s, max.B, max.L, max.M);
    const size_t copied = steps_keep_rows(s) ? (size_t)max.B * (size_t)most.L : 0;

    out[VALUES] = (struct array){steps_floats(t, most, false), steps_floats(t, most, true), false,
                                 PART_ACTIVATIONS};
    out[PAIRS] =
        (struct array){steps_pairs(t, most, false), steps_pairs(t, most, true), false, PART_SCORES};
    out[FIRST] = (struct array){steps_first_floats(s, max), 0, true, PART_ACTIVATIONS};
    out[ROWS] = (struct array){copied * (size_t)s->c->D, 0, true, PART_ACTIVATIONS};
    out[RESULT] =
        (struct array){copied * (size_t)t->value[t->result].width, 0, true, PART_ACTIVATIONS};
}

static void steps_arrays_grad(const struct sublayer *s, struct extent max,
                              struct array out[SUB_ARRAYS])
{
    steps_arrays(s, max, out);
    out[VALUES] = (struct array){0, out[VALUES].n, true, PART_ACTIVATIONS};
    out[FIRST] = (struct array){0, steps_first_floats(s, max), true, PART_ACTIVATIONS};
    for (int i = ROWS; i <= PAIRS; i++)
        out[i] = (struct array){0, out[i].n, true, out[i].part};
}

static struct attn_need scratch_of(const struct sublayer *s, const struct engine *g, bool backward)
{
    const struct steps_memory *const m = &s->state.steps;
    const struct extent most = largest_extent(s);
    const struct attn_need need = {.scratch_bytes = steps_scratch(&m->steps, g, most, backward)};
    const struct attn sight = masks_placeholder(&m->attention.prepared);

    return larger_need(steps_core_need(&m->steps, m->attention.impl, g, most,
                                       s->kind->masked ? &sight : NULL, backward),
                       need);
}

/* ---- running ------------------------------------------------------------------------------ */

static struct steps_run run_of(const struct engine *g, struct sublayer *s, const struct work *w,
                               struct sublayer_input from)
{
    struct steps_memory *const m = &s->state.steps;
    const bool attends = s->kind->caches, new_rows = m->steps.reads_front || attends;
    const int K = from.M + from.L;
    const ptrdiff_t D = s->c->D, row = K * D;
    struct steps_run r = {.g = g,
                          .params = s->weights,
                          .model = m->shared,
                          .B = from.B,
                          .L = new_rows ? from.L : K,
                          .M = !attends          ? 0
                               : m->steps.cached ? steps_cached_rows(s)
                                                 : from.M,
                          .far = m->steps.cached ? steps_cached_far(s) : 0,
                          .position = steps_position(s),
                          .x = from.at.at,
                          .x_batch = attends ? from.at.stride : 0,
                          .result = w->y,
                          .values = w->array[VALUES],
                          .pairs = w->array[PAIRS],
                          .kept = w->x != NULL,
                          .first = m->first ? m->first : w->array[FIRST],
                          .scratch = w->scratch,
                          .core = m->attention.impl,
                          .encoding = m->attention.pos_encoding,
                          .sight = s->kind->masked ? &m->attention.prepared : NULL,
                          .place = {.weights = s->weights,
                                    .kind = s->kind,
                                    .nth = s->nth,
                                    .layer = s->layer,
                                    .tokens = 1 << s->level}};

    CHECK(s->keeps || (from.M == 0 && (from.B == 1 || from.at.stride == row)));
    if (m->steps.reads_front) {
        r.front = (struct rows_in_front){from.M, from.at.stride};
        r.x += from.M * D;
    }
    if (steps_keep_rows(s)) {
        rows_copy((struct seq_rows){w->array[ROWS], row}, from.at, from.B, (size_t)row);
        r.x = w->array[ROWS];
    }
    steps_caches_reserve(s, from.L, r.cache);
    for (int i = 0; i < m->steps.n_states; i++)
        r.before[i] = steps_keep_rows(s) && steps_advance(s, i) ? NULL : m->before[i];
    memcpy(r.after, m->after, sizeof(r.after));
    return r;
}

/* The result's rows without those of memory. */
static const float *new_results(const struct sublayer *s, const struct work *w,
                                const struct steps_run *r, struct sublayer_input from)
{
    const struct steps *const t = &s->state.steps.steps;
    float *const all = steps_matrix(t, r, t->result).at;
    const ptrdiff_t n = t->value[t->result].width;

    if (!steps_keep_rows(s))
        return all;
    rows_copy((struct seq_rows){w->array[RESULT], from.L * n},
              (struct seq_rows){all + from.M * n, r->L * n}, from.B, (size_t)(from.L * n));
    return w->array[RESULT];
}

/* Into the result's gradient from that of its new rows; those of memory have none. */
static void put_new_grads(const struct sublayer *s, const struct steps_run *r,
                          struct sublayer_input from, float *d_new)
{
    const struct steps *const t = &s->state.steps.steps;
    const ptrdiff_t n = t->value[t->result].width;
    float *const all = steps_gradient(t, r, t->result).at;

    memset(all, 0, sizeof(float) * (size_t)(from.B * r->L * n));
    rows_copy((struct seq_rows){all + from.M * n, r->L * n}, (struct seq_rows){d_new, from.L * n},
              from.B, (size_t)(from.L * n));
}

static void steps_sublayer_forward(const struct engine *g, struct sublayer *s, struct work *w,
                                   struct sublayer_input from, struct act epilogue)
{
    const struct steps *const t = &s->state.steps.steps;
    const struct steps_run r = run_of(g, s, w, from);

    steps_forward(t, &r);
    const float *const result = new_results(s, w, &r, from);
    if (t->last)
        linear_forward(g, last_map(s), last_bias(s), w->y, result, from.B * from.L, epilogue);
    else
        linear_epilogue(g, epilogue, result, from.B * from.L, t->value[t->result].width);
}

static void steps_sublayer_backward(const struct engine *g, struct sublayer *s,
                                    const struct work *w, struct sublayer_input from, float *d_in,
                                    const float *d_y, int skip)
{
    const struct steps *const t = &s->state.steps.steps;
    const int rows = from.B * from.L;
    struct steps_run r = run_of(g, s, w, from);

    r.d_x = steps_keep_rows(s) ? w->d_array[ROWS] : d_in;
    r.skip = s->kind->caches ? skip : 0;
    if (t->reads_front) {
        const int n = from.M - skip;
        r.d_front = (struct rows_in_front){n, (ptrdiff_t)(n + from.L) * s->c->D};
        r.d_x += (ptrdiff_t)n * s->c->D;
    }
    r.d_result = d_y;
    r.d_values = w->d_array[VALUES];
    r.d_pairs = w->d_array[PAIRS];
    r.d_first = w->d_array[FIRST];
    r.scratch = w->d_scratch;
    if (r.d_first && !w->above) /* the last layer, which is the first one here */
        memset(r.d_first, 0, steps_first_floats(s, s->state.steps.max) * sizeof(float));
    float *const d = steps_keep_rows(s) ? w->d_array[RESULT] : steps_gradient(t, &r, t->result).at;
    if (t->last) {
        linear_backward(g, last_map(s), last_bias(s), d, d_y, new_results(s, w, &r, from), rows, 0);
    } else if (!t->outside)
        memcpy(d, d_y, sizeof(float) * (size_t)rows * (size_t)t->value[t->result].width);
    if (steps_keep_rows(s))
        put_new_grads(s, &r, from, d);
    steps_backward(t, &r);
    if (steps_keep_rows(s)) {
        const ptrdiff_t n = (ptrdiff_t)(r.L - skip) * s->c->D, first = (ptrdiff_t)skip * s->c->D;
        rows_copy((struct seq_rows){d_in, n}, (struct seq_rows){r.d_x + first, n + first}, from.B,
                  (size_t)n);
    }
}

/* ---- what golden files show ----------------------------------------------------------------- */

static bool steps_show(const struct sublayer *s, const struct work *w, struct extent now, int i,
                       struct shown *out)
{
    const struct steps *const t = &s->state.steps.steps;
    const struct steps_run r = {
        .B = now.B, .L = now.L, .M = now.M, .values = w->array[VALUES], .kept = w->x != NULL};

    CHECK(s->mem != MEM_KV);
    for (int k = 0; k < t->n_values; k++) {
        if (!t->value[k].shown || i--)
            continue;
        *out = (struct shown){.name = t->value[k].shown, .to = out->to};
        out->n = (size_t)now.B * (size_t)steps_rows(t, k, now) * (size_t)t->value[k].width;
        if (out->to)
            memcpy(out->to, steps_matrix(t, &r, k).at, out->n * sizeof(float));
        return true;
    }
    return false;
}

/* ---- memory ------------------------------------------------------------------------------- */

static void steps_sublayer_remember(const struct engine *g, struct sublayer *s, struct work *w,
                                    struct sublayer_input from)
{
    const struct steps_run r = run_of(g, s, w, from);

    steps_remember(&s->state.steps.steps, &r);
}

/* ---- cost --------------------------------------------------------------------------------- */

static void steps_impl_names(const struct sublayer *s, const char **forward, const char **backward)
{
    const struct steps_memory *const m = &s->state.steps;

    *forward = m->impl;
    *backward = strcmp(m->impl, m->impl_grad) == 0 ? NULL : m->impl_grad;
}

/* A state has all past rows already. Without a norm before them rows of memory are constants, and
 * have no gradient. */
static struct sublayer_cost steps_cost(const struct sublayer *s, int B, int L, int M)
{
    const struct steps *const t = &s->state.steps.steps;
    const struct attn *const sight = s->kind->masked ? &s->state.attention.prepared : NULL;
    const double last = t->last ? 2.0 * B * L * s->c->D * t->value[t->result].width : 0;
    const struct extent keys = extent_of(s, B, L, M);
    const struct extent now = {B, L + min_int(M, steps_rerun(s, M)), keys.M};
    struct sublayer_cost sum = {.maps = steps_flop(t, now) + last};

    for (const struct step *step = t->step; step < t->step + t->n; step++) {
        const int constants = steps_rows(t, step->out[0], now) - L;
        if (s->kind->masked && step->in[0] == STEPS_INPUT && !wiring_norms_first(s->wiring))
            sum.backward -= step->kind->flop(step, B, constants);
        if (step->kind->cost) {
            const struct sublayer_cost own = step->kind->cost(t, step, (struct extent){B, L, M});
            sum.forward += own.forward;
            sum.backward += own.backward;
            sum.maps += own.maps;
        }
        if (!step->core || step->kind->cost)
            continue;
        struct attn a = step_attention(t, step, (struct extent){B, L, now.M}, sight);
        masks_draw(&s->c->masks, s->nth, &a);
        sum.forward += attn_flop(&a);
        sum.backward += attn_grad_flop(&a);
    }
    return sum;
}

/* A query and the keys before it may be nearly at right angles, then the output of a head is small
 * beside the terms that it sums. Its norm divides it, and gradients, by its size: sqrt(head_eps) at
 * least. (With an eps of zero, what is left may be rounding alone.) */
double mixer_amplifies(const struct config *c)
{
    if (c->mixer->amplifies)
        return c->mixer->amplifies(c);
    return c->mixer->kind->recurs && mix_norms(c) ? 1 / sqrt(fmax((double)c->head_eps, 0x1p-48))
                                                  : 0;
}

#define STEPS                                                                                      \
    .mixes = true, .params = steps_params, .bind = steps_bind, .arrays = steps_arrays,             \
    .arrays_grad = steps_arrays_grad, .scratch = scratch_of, .forward = steps_sublayer_forward,    \
    .backward = steps_sublayer_backward, .cost = steps_cost
/* Mixers and feed-forward networks do not share arrays: what one layer gives the next is theirs. */
#define STEPS_WITH_STATES                                                                          \
    STEPS, .build_tables = steps_build_tables, .remember = steps_sublayer_remember,                \
           .commit = steps_states_commit, .forget = steps_states_forget,                           \
           .carries = steps_states_carried, .impl = steps_impl_names

const struct sublayer_kind sublayer_steps = {
    .name = "steps", .recurs = true, .place = DROP_ATTENTION, STEPS_WITH_STATES};
const struct sublayer_kind sublayer_steps_ffn = {
    .name = "steps_ffn", .place = DROP_FFN, STEPS_WITH_STATES};
const struct sublayer_kind sublayer_sums = {.name = "sums",
                                            .sums = true,
                                            .place = DROP_ATTENTION,
                                            .keeps = sublayer_keeps_rows,
                                            STEPS_WITH_STATES};
#define STEPS_ATTEND STEPS, .attends = true, .place = DROP_ATTENTION
#define STEPS_REMEMBER                                                                             \
    .memory = "mem", .keeps = steps_keep, .caches = steps_caches,                                  \
    .remember = steps_sublayer_remember, .commit = steps_caches_commit,                            \
    .forget = steps_caches_forget, STEPS_ATTEND
const struct sublayer_kind sublayer_attending = {.name = "attending", STEPS_ATTEND};
const struct sublayer_kind sublayer_remembering = {.name = "remembering",
                                                   .masked = true,
                                                   .build_tables = steps_build_tables,
                                                   .shows = steps_show,
                                                   STEPS_REMEMBER};
const struct sublayer_kind sublayer_condensed = {.name = "condensed", STEPS_REMEMBER};
/* They remember rows of their input, however many attention remembers. */
#define STEPS_CONVOLVE .place = DROP_CONV, .keeps = taps_keep, STEPS
const struct sublayer_kind sublayer_cpe = {.name = "cpe", .memory = "tail", STEPS_CONVOLVE};
const struct sublayer_kind sublayer_sep = {.name = "sep", .memory = "tail2", STEPS_CONVOLVE};
const struct sublayer_kind sublayer_branches = {
    .name = "branches", .memory = "tail3", STEPS_CONVOLVE};
