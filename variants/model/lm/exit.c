/* SPDX-License-Identifier: MIT
 *
 * Early exit: rules in exit.h. */
#include "exit.h"
#include "lm.h"
#include "variants/model/sublayer/sublayer_inner.h"
#include "variants/parts/linear.h"

static size_t stream(const struct early_exit *t)
{
    return (size_t)t->sublayers->max.B * (size_t)t->sublayers->max.L * (size_t)t->c->D;
}

static bool stops_early(const struct config *c) { return c->exit; }
static bool by_entropy(const struct config *c)
{
    return c->exit == EXIT_ENTROPY || c->exit == EXIT_WINDOW;
}

static enum status bind(struct lm *m, const struct engine *g, struct arena *a, struct err *e)
{
    struct early_exit *const t = m->drive_data;
    const struct config *const c = &m->c;
    const size_t n = (size_t)m->max.B * (size_t)m->max.L;
    const size_t rows = n * sizeof(int32_t);

    *t = (struct early_exit){.sublayers = &m->sublayers, .c = c};
    TAKE(a, PART_ACTIVATIONS, stream(t), &t->h, &t->before, &t->rows, &t->after);
    t->prediction = by_entropy(c) ? arena_f32(a, PART_ACTIVATIONS, n * (size_t)c->V) : NULL;
    t->votes = c->exit == EXIT_VOTES ? arena_take(a, PART_SCRATCH, (size_t)c->N * rows) : NULL;
    t->unsure = c->exit == EXIT_WINDOW ? arena_take(a, PART_SCRATCH, rows) : NULL;
    t->lse = arena_f32(a, PART_SCRATCH, n);
    t->tokens = arena_take(a, PART_SCRATCH, rows);
    t->steps = arena_take(a, PART_SCRATCH, rows);
    t->at = arena_take(a, PART_SCRATCH, rows);
    t->last = arena_take(a, PART_SCRATCH, rows);
    t->same = arena_take(a, PART_SCRATCH, rows);
    return OK;
}

static enum status bind_grad(struct lm *m, const struct engine *g, struct arena *a, struct err *e)
{
    struct early_exit *const t = m->drive_data;

    t->d = arena_f32(a, PART_ACTIVATIONS, stream(t));
    t->nll = arena_f32(a, PART_ACTIVATIONS, (size_t)m->max.B * (size_t)m->max.L);
    return OK;
}

static float *input(const struct lm *m, float *out)
{
    const struct early_exit *const t = m->drive_data;

    return sublayers_input(t->sublayers, t->h);
}

static float *state(const struct early_exit *t, int l)
{
    return layer_state(t->sublayers, l, t->h);
}

/* ---- who stops ---------------------------------------------------------------------------- */

/* log sum e^x - sum p x of each row, in place of lse: the logits x [n,V] to their softmax p. */
static void entropies(struct early_exit *t, const struct engine *g, const float *logits)
{
    const ptrdiff_t V = t->c->V;

    memcpy(t->prediction, logits, sizeof(float) * (size_t)(t->n * V));
    g->ops.softmax(&(struct softmax){.s = t->prediction,
                                     .ld = V,
                                     .rows = t->n,
                                     .cols = t->c->V,
                                     .hi = t->c->V,
                                     .lse = t->lse,
                                     .threads = g->threads});
#pragma omp parallel for num_threads(team_for(g->threads, t->n *V))
    for (int i = 0; i < t->n; i++) {
        const float *const p = t->prediction + i * V, *const x = logits + i * V;
        double mean = 0;
        for (int v = 0; v < t->c->V; v++)
            mean += (double)p[v] * (double)x[v];
        t->lse[i] = (float)((double)t->lse[i] - mean);
    }
}

static bool is_patient(struct early_exit *t, int row, const float *logits)
{
    const int best = largest_at(logits, t->c->V);

    t->same[row] = best == t->last[row] ? t->same[row] + 1 : 0;
    t->last[row] = best;
    return t->same[row] >= t->c->exit_patience;
}

/* After layer l, from 1. */
static bool is_elected(struct early_exit *t, int row, const float *logits, int l)
{
    const double enough = (double)t->c->exit_patience * pow(l, (double)t->c->exit_power);
    int most = 0;

    t->votes[(l - 1) * t->n_rows + row] = largest_at(logits, t->c->V);
    for (int i = 0; i < l; i++) {
        int same = 0;
        for (int k = 0; k < l; k++)
            same += t->votes[k * t->n_rows + row] == t->votes[i * t->n_rows + row];
        most = max_int(most, same);
    }
    return most >= enough;
}

static bool is_certain(const struct early_exit *t, int i)
{
    return t->c->V > 1 && (double)t->lse[i] / log(t->c->V) < (double)t->c->exit_tau;
}

/* Is each position of the window certain? It ends at `row`, in sequences of L. */
static bool window_is_certain(const struct early_exit *t, int row, int L)
{
    const int first = max_int(row - t->c->exit_window, row / L * L);

    CHECK(t->unsure);
    for (int i = first; i <= row; i++)
        if (t->unsure[i])
            return false;
    return true;
}

static bool stops(struct early_exit *t, int i, const float *logits, int l, int L)
{
    switch (t->c->exit) {
    case EXIT_ENTROPY:
        return is_certain(t, i);
    case EXIT_VOTES:
        return is_elected(t, t->at[i], logits, l);
    case EXIT_WINDOW:
        return window_is_certain(t, t->at[i], L);
    default:
        return is_patient(t, t->at[i], logits);
    }
}

/* The rows of x [B,L,D] that run, without gaps. */
static void gather(struct early_exit *t, const float *x)
{
    const ptrdiff_t D = t->c->D;

    for (int i = 0; i < t->n; i++)
        memcpy(t->rows + i * D, x + t->at[i] * D, sizeof(float) * (size_t)D);
}

/* After layer l, from 1, of those that run. */
static void look(struct lm *m, const struct engine *g, int l, int L)
{
    struct early_exit *const t = m->drive_data;
    const ptrdiff_t V = t->c->V;
    int n = 0;

    gather(t, t->h);
    lm_output(m, g, t->rows, t->n);
    const float *const logits = m->logits;
    t->heads += t->n;
    if (by_entropy(t->c))
        entropies(t, g, logits);
    for (int i = 0; i < t->n && t->unsure; i++)
        t->unsure[t->at[i]] = !is_certain(t, i);
    for (int i = 0; i < t->n; i++)
        if (!stops(t, i, logits + i * V, l, L))
            t->at[n++] = t->at[i];
    t->n = n;
}

/* ---- layers ------------------------------------------------------------------------------- */

/* The new rows become keys and values of later calls, and nothing else. */
static void only_remember(struct early_exit *t, const struct engine *g, int first, int end, int B,
                          int L)
{
    for (int i = first; i < end; i++) {
        struct sublayer *const s = &t->sublayers->at[i];
        struct work *const w = &t->sublayers->work[i];
        if (!s->keeps && !s->kind->remember)
            continue;
        const struct sublayer_input from = sublayer_source(g, s, w, t->h, B, L);
        if (s->kind->remember && s->mem == MEM_KV)
            s->kind->remember(g, s, w, from);
    }
}

/* Rows that have stopped stay as they were `before`. */
static void keep_stopped(struct early_exit *t, int l)
{
    const ptrdiff_t D = t->c->D;

    for (int i = 0; i < t->n_rows; i++)
        if (t->steps[i] < l)
            memcpy(t->h + i * D, t->before + i * D, sizeof(float) * (size_t)D);
}

/* A sub-layer of layer l on the stream x, of which some positions have stopped; ends in t->h. */
static void run_some(struct early_exit *t, const struct engine *g, int i, int l, float *x, int B,
                     int L)
{
    struct sublayers *const s = t->sublayers;
    const ptrdiff_t D = t->c->D;
    const size_t bytes = (size_t)(B * L) * (size_t)D * sizeof(float);

    if (sublayer_mixes(&s->at[i])) {
        memcpy(t->before, x, bytes);
        if (s->mid && x == t->h)
            x = memcpy(s->mid, x, bytes);
        sublayers_part_forward(s, g, i, 1, t->h, x, B, L);
        keep_stopped(t, l);
        return;
    }
    const int32_t *const tokens = s->tokens;
    gather(t, x);
    for (int k = 0; tokens && k < t->n; k++)
        t->tokens[k] = tokens[t->at[k]];
    s->tokens = tokens ? t->tokens : NULL;
    sublayers_part_forward(s, g, i, 1, t->after, t->rows, 1, t->n);
    s->tokens = tokens;
    if (x != t->h)
        memcpy(t->h, x, bytes);
    for (int k = 0; k < t->n; k++)
        memcpy(t->h + t->at[k] * D, t->after + k * D, sizeof(float) * (size_t)D);
}

static bool stopping(const struct early_exit *t)
{
    return t->c->exit != EXIT_TRAIN && !t->sublayers->kept;
}

/* Layer l, from 1, of those that run. Parallel sub-layers read what entered the layer: they run
 * together, for all. */
static void run_layer(struct early_exit *t, const struct engine *g, int l, int B, int L)
{
    struct sublayers *const s = t->sublayers;
    const int first = sublayers_first(s, l - 1), end = sublayers_first(s, l);
    float *const x = l == 1 ? sublayers_input(s, t->h) : state(t, l - 1);

    if (t->n == 0) {
        only_remember(t, g, first, end, B, L);
        return;
    }
    for (int i = 0; i < t->n; i++)
        t->steps[t->at[i]] = l;
    const bool some = t->n < t->n_rows;
    if (some && t->c->wiring != WIRING_PARALLEL) {
        for (int i = first; i < end; i++)
            run_some(t, g, i, l, i == first ? x : t->h, B, L);
        return;
    }
    if (some)
        memcpy(t->before, x, (size_t)(B * L) * (size_t)t->c->D * sizeof(float));
    sublayers_part_forward(s, g, first, end - first, state(t, l), x, B, L);
    if (some)
        keep_stopped(t, l);
}

static void forward(struct lm *m, const struct engine *g, float *out, int B, int L)
{
    struct early_exit *const t = m->drive_data;

    t->n = t->n_rows = B * L;
    t->heads = 0;
    t->loss = NAN;
    for (int i = 0; i < B * L; i++) {
        t->at[i] = i;
        t->last[i] = -1;
        t->steps[i] = t->same[i] = 0;
    }
    for (int l = 1; l <= t->c->N; l++) {
        run_layer(t, g, l, B, L);
        if (stopping(t) && l < t->c->N && t->n > 0)
            look(m, g, l, L);
    }
    memcpy(out, t->h, (size_t)(B * L) * (size_t)t->c->D * sizeof(float));
}

/* ---- backward ----------------------------------------------------------------------------- */

/* Every layer has a loss: layer l of N counts l / (1 + .. + N). */
static void backward(struct lm *m, const struct engine *g, const int32_t *target, int B, int L)
{
    struct early_exit *const t = m->drive_data;
    const int N = m->c.N, rows = lm_rows(m, B, L);

    t->loss = 0;
    for (int l = N; l >= 1; l--) {
        const double share = 2.0 * l / (N * (N + 1.0));
        float *const d = l == N ? m->d_h : t->d;
        const float *const in = lm_pick(m, t->rows, state(t, l), B, L);
        lm_score(m, g, in, target, t->nll, rows);
        for (int i = 0; i < rows; i++)
            t->loss += share * (double)t->nll[i] / rows;
        lm_output_backward(m, g, target, in, d, share, rows);
        lm_unpick(m, d, B, L);
        if (l < N)
            rows_add(g, m->d_h, d, B * L, m->c.D);
        layer_backward(&m->sublayers, g, l - 1, m->d_h, B, L);
    }
}

/* ---- cost --------------------------------------------------------------------------------- */

static struct layers_run layers_run(const struct lm *m)
{
    const struct early_exit *const t = m->drive_data;

    return (struct layers_run){t->steps, t->n_rows, 1, 0};
}

/* As of the last forward: keys and values of copied rows count, nothing else of them, and the
 * logits that were looked at. */
static double flop(const struct lm *m, int B, int L, int M)
{
    const struct early_exit *const t = m->drive_data;
    const double all = plain_flop(m, B, L, M), N = t->c->N;
    const double kv = 4.0 * t->c->D * config_kv_width(t->c); /* of one row in one layer */
    double ran = 0;

    if (!t->n_rows)
        return all;
    for (int i = 0; i < t->n_rows; i++)
        ran += t->steps[i];
    return all * ran / (t->n_rows * N) + kv * (t->n_rows * N - ran) + t->heads * lm_row_flop(m);
}

static double grad_flop(const struct lm *m, int B, int L, int M)
{
    return plain_grad_flop(m, B, L, M) + 3.0 * (m->c.N - 1) * B * L * lm_row_flop(m);
}

static bool result(const struct lm *m, int i, struct drive_result *out)
{
    const struct early_exit *const t = m->drive_data;

    if (i == 0)
        *out = (struct drive_result){.name = "steps", .whole = t->steps, .n = (size_t)t->n_rows};
    else
        *out = (struct drive_result){.name = "exit_loss", .number = (float)t->loss, .n = 1};
    return i < 1 + !isnan(t->loss);
}

const struct drive drive_exit = {
    .has = stops_early,
    .size = sizeof(struct early_exit),
    .heads = true,
    .bind = bind,
    .bind_grad = bind_grad,
    .input = input,
    .forward = forward,
    .backward = backward,
    .flop = flop,
    .grad_flop = grad_flop,
    .layers_run = layers_run,
    .result = result,
};
