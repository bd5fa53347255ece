/* SPDX-License-Identifier: MIT
 *
 * Early exit, forward: rules in exit.h. */
#include "exit.h"
#include "variants/model/sublayer/sublayer_inner.h"

#include <math.h>
#include <string.h>

static size_t stream(const struct early_exit *t)
{
    return (size_t)t->sublayers->max.B * (size_t)t->sublayers->max.L * (size_t)t->c->D;
}

void exit_bind(struct early_exit *t, const struct config *c, struct sublayers *sublayers,
               struct arena *a)
{
    const size_t rows = (size_t)sublayers->max.B * (size_t)sublayers->max.L * sizeof(int32_t);

    *t = (struct early_exit){.sublayers = sublayers, .c = c};
    t->h = arena_f32(a, PART_ACTIVATIONS, stream(t));
    t->before = arena_f32(a, PART_ACTIVATIONS, stream(t));
    t->rows = arena_f32(a, PART_ACTIVATIONS, stream(t));
    t->steps = arena_take(a, PART_SCRATCH, rows);
    t->at = arena_take(a, PART_SCRATCH, rows);
    t->last = arena_take(a, PART_SCRATCH, rows);
    t->same = arena_take(a, PART_SCRATCH, rows);
}

float *exit_input(const struct early_exit *t) { return sublayers_input(t->sublayers, t->h); }

float *exit_state(const struct early_exit *t, int l)
{
    return t->sublayers->kept && l < t->c->N
               ? t->sublayers->work[sublayers_first(t->sublayers, l)].x
               : t->h;
}

/* ---- who stops ---------------------------------------------------------------------------- */

static double entropy(const float *logits, int n)
{
    double most = -INFINITY, sum = 0, mean = 0;

    for (int v = 0; v < n; v++)
        most = fmax(most, (double)logits[v]);
    for (int v = 0; v < n; v++) {
        const double p = exp((double)logits[v] - most);
        sum += p;
        mean += p * ((double)logits[v] - most);
    }
    return log(sum) - mean / sum;
}

static bool is_patient(struct early_exit *t, int row, const float *logits)
{
    int best = 0;

    for (int v = 1; v < t->c->V; v++)
        best = logits[v] > logits[best] ? v : best;
    t->same[row] = best == t->last[row] ? t->same[row] + 1 : 0;
    t->last[row] = best;
    return t->same[row] >= t->c->exit_patience;
}

static bool stops(struct early_exit *t, int row, const float *logits)
{
    if (t->c->exit == EXIT_PATIENCE)
        return is_patient(t, row, logits);
    return t->c->V > 1 && entropy(logits, t->c->V) / log(t->c->V) < (double)t->c->exit_tau;
}

/* After layer l, from 1, of those that run. */
static void look(struct early_exit *t, const struct engine *g, struct exit_head head)
{
    const ptrdiff_t D = t->c->D, V = t->c->V;
    int n = 0;

    for (int i = 0; i < t->n; i++)
        memcpy(t->rows + i * D, t->h + t->at[i] * D, sizeof(float) * (size_t)D);
    const float *const logits = head.logits(head.model, g, t->rows, t->n);
    t->heads += t->n;
    for (int i = 0; i < t->n; i++)
        if (!stops(t, t->at[i], logits + i * V))
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
        if (!s->keeps && s->mem == MEM_KV)
            s->kind->remember(g, s, w, from);
    }
}

/* Rows that stopped before layer l stay as they were. */
static void keep_stopped(struct early_exit *t, int l)
{
    const ptrdiff_t D = t->c->D;

    for (int i = 0; i < t->n_rows; i++)
        if (t->steps[i] < l)
            memcpy(t->h + i * D, t->before + i * D, sizeof(float) * (size_t)D);
}

static bool stopping(const struct early_exit *t)
{
    return t->c->exit != EXIT_TRAIN && !t->sublayers->kept;
}

void exit_forward(struct early_exit *t, const struct engine *g, struct exit_head head, float *out,
                  int B, int L)
{
    const size_t n = (size_t)(B * L) * (size_t)t->c->D * sizeof(float);
    struct sublayers *const s = t->sublayers;
    float *x = exit_input(t);

    t->n = t->n_rows = B * L;
    t->heads = 0;
    for (int i = 0; i < B * L; i++) {
        t->at[i] = i;
        t->last[i] = -1;
        t->steps[i] = t->same[i] = 0;
    }
    for (int l = 1; l <= t->c->N; l++) {
        const int first = sublayers_first(s, l - 1), end = sublayers_first(s, l);
        if (t->n == 0) {
            only_remember(t, g, first, end, B, L);
            continue;
        }
        for (int i = 0; i < t->n; i++)
            t->steps[t->at[i]] = l;
        if (stopping(t))
            memcpy(t->before, x, n);
        sublayers_part_forward(s, g, first, end - first, exit_state(t, l), x, B, L);
        x = exit_state(t, l);
        if (!stopping(t))
            continue;
        keep_stopped(t, l);
        if (l < t->c->N)
            look(t, g, head);
    }
    memcpy(out, t->h, n);
}

/* ---- cost --------------------------------------------------------------------------------- */

double exit_flop(const struct early_exit *t, int B, int L, int M)
{
    const double all = sublayers_flop(t->sublayers, B, L, M), N = t->c->N;
    const double kv = 4.0 * t->c->D * config_kv_width(t->c); /* of one row in one layer */
    double ran = 0;

    for (int i = 0; i < t->n_rows; i++)
        ran += t->steps[i];
    if (!t->n_rows)
        return all;
    return all * ran / (t->n_rows * N) + kv * (t->n_rows * N - ran) +
           2 * t->heads * t->c->D * t->c->V;
}
