/* SPDX-License-Identifier: MIT
 *
 * Losses of intermediate layers and of further targets: auxiliary.h. */
#include "auxiliary.h"
#include "lm.h"
#include "variants/parts/linear.h"
#include "variants/parts/norm.h"

static bool has_losses(const struct config *c) { return c->aux_layers || c->aux_targets > 1; }

/* ---- classifiers ---------------------------------------------------------------------------- */

/* Does layer l, from 1, have a classifier of its own for the k-th token after the next? */
static bool predicts(const struct config *c, int l, int k)
{
    return l == c->N ? k > 0 : c->aux_layers;
}

/* Those of the last layer are the last ones. */
static const struct param *classifier(const struct lm *m, int l, int k)
{
    const int before = m->c.aux_layers ? (l - 1) * m->c.aux_targets : 0;

    return &m->params.v[m->at_drive + before + k - (l == m->c.N)];
}

static void add_params(struct lm *m)
{
    const struct config *const c = &m->c;

    for (int l = 1; l <= c->N; l++)
        for (int k = 0; k < c->aux_targets; k++) {
            char prefix[32];
            snprintf(prefix, sizeof(prefix), "aux.%d.%d.", l - 1, k);
            if (predicts(c, l, k))
                params_map(&m->params, c->V, c->D, prefix, "weight");
        }
}

/* ---- binding -------------------------------------------------------------------------------- */

static enum status bind(struct lm *m, const struct engine *g, struct arena *a, struct err *e)
{
    *(struct auxiliary *)m->drive_data = (struct auxiliary){.loss = NAN};
    return OK;
}

static enum status bind_grad(struct lm *m, const struct engine *g, struct arena *a, struct err *e)
{
    struct auxiliary *const t = m->drive_data;
    const size_t rows = (size_t)m->max.B * (size_t)m->max.L;

    TAKE(a, PART_ACTIVATIONS, rows * (size_t)m->c.D, &t->normed, &t->d, &t->rows, &t->d_rows);
    t->states = arena_f32(a, PART_ACTIVATIONS,
                          (m->c.aux_layers ? (size_t)m->c.N : 1) * rows * (size_t)m->c.D);
    t->logits = arena_f32(a, PART_ACTIVATIONS, rows * (size_t)m->c.V);
    t->nll = arena_f32(a, PART_ACTIVATIONS, rows);
    t->targets = arena_take(a, PART_ACTIVATIONS, rows * sizeof(*t->targets));
    return OK;
}

/* ---- forward and backward ------------------------------------------------------------------- */

/* The state after layer l, from 1. */
static float *state(const struct lm *m, int l)
{
    const struct auxiliary *const t = m->drive_data;
    const size_t n = (size_t)m->max.B * (size_t)m->max.L * (size_t)m->c.D;

    return t->states + (m->c.aux_layers ? (size_t)(l - 1) * n : 0);
}

static void forward(struct lm *m, const struct engine *g, float *out, int B, int L)
{
    struct auxiliary *const t = m->drive_data;
    struct sublayers *const s = &m->sublayers;
    float *x = plain_input(m, out);

    t->loss = NAN;
    if (!t->states) {
        sublayers_forward(s, g, out, x, B, L);
        return;
    }
    for (int l = 1; l <= m->c.N; l++) {
        float *const next = layer_state(s, l, out);
        layer_forward(s, g, l - 1, next, x, B, L);
        memcpy(state(m, l), next, (size_t)(B * L) * (size_t)m->c.D * sizeof(*next));
        x = next;
    }
}

/* The loss of one classifier, of the rows with a k-th target after the next, and its gradient, added
 * to t->d. */
static void one_loss(struct lm *m, const struct engine *g, const int32_t *target, int l, int k,
                     double weight, int B, int L)
{
    struct auxiliary *const t = m->drive_data;
    const struct param *const W = classifier(m, l, k);
    const ptrdiff_t all = (ptrdiff_t)L * m->c.D, some = (ptrdiff_t)(L - k) * m->c.D;
    const int n = B * (L - k);

    rows_copy((struct seq_rows){t->rows, some}, (struct seq_rows){t->normed, all}, B, (size_t)some);
    for (int i = 0; i < n; i++)
        t->targets[i] = target[i / (L - k) * L + i % (L - k) + k];
    linear_forward(g, W, NULL, t->logits, t->rows, n, (struct act){.y = t->logits});
    nll_of_rows(g, t->nll, t->logits, t->targets, n, m->c.V);
    for (int i = 0; i < n; i++)
        t->loss += weight * (double)t->nll[i] / n;
    nll_of_rows_grad(g, t->logits, t->targets, n, m->c.V, (float)(weight / n), 0);
    linear_backward(g, W, NULL, t->d_rows, t->logits, t->rows, n, 0);
    for (int b = 0; b < B; b++)
        add_times(t->d + b * all, t->d_rows + b * some, 1, (size_t)some, 1);
}

/* Does layer l still have losses of its own? */
static bool is_on(const struct lm *m, int l)
{
    return l == m->c.N || (m->c.aux_layers && m->progress < l / (2.0 * m->c.N));
}

/* Before layer l goes backward: m->d_h has the gradient of its state from above. */
static void add_losses(struct lm *m, const struct engine *g, const int32_t *target, int l, int B,
                       int L)
{
    struct auxiliary *const t = m->drive_data;
    const struct config *const c = &m->c;
    const size_t n = (size_t)(B * L) * (size_t)c->D;
    const float *const h = state(m, l);
    bool any = false;

    if (!is_on(m, l))
        return;
    memset(t->d, 0, n * sizeof(*t->d));
    if (c->final_ln)
        norm_apply(g, c, &m->params.v[m->at_final_ln], t->normed, h, NULL, B * L);
    else
        memcpy(t->normed, h, n * sizeof(*h));
    lm_scale(m, g, t->normed, B * L);
    for (int k = 0; k < c->aux_targets && k < L; k++)
        if (predicts(c, l, k)) {
            one_loss(m, g, target, l, k, k ? (double)c->aux_weight : 1, B, L);
            any = true;
        }
    if (any)
        lm_scale(m, g, t->d, B * L);
    if (any && c->final_ln)
        norm_backward(g, c, &m->params.v[m->at_final_ln], t->d, t->d, h, m->sublayers.work[0].stats,
                      B * L, B * L);
    if (any)
        rows_add(g, m->d_h, t->d, B * L, c->D);
}

static void backward(struct lm *m, const struct engine *g, const int32_t *target, int B, int L)
{
    struct auxiliary *const t = m->drive_data;

    t->loss = 0;
    layers_backward(m, g, add_losses, target, B, L);
}

/* ---- cost ----------------------------------------------------------------------------------- */

/* Logits forward and both ways backward. */
static double grad_flop(const struct lm *m, int B, int L, int M)
{
    double flop = plain_grad_flop(m, B, L, M);

    for (int l = 1; l <= m->c.N; l++)
        for (int k = 0; k < m->c.aux_targets && k < L; k++)
            if (is_on(m, l) && predicts(&m->c, l, k))
                flop += 6.0 * B * (L - k) * m->c.D * m->c.V;
    return flop;
}

static double unread(const struct lm *m)
{
    double bytes = 0;

    for (int l = 1; l <= m->c.N; l++)
        for (int k = 0; k < m->c.aux_targets; k++)
            if (predicts(&m->c, l, k))
                bytes += (double)m->c.V * (double)elem_row_bytes(classifier(m, l, k)->elem, m->c.D);
    return bytes;
}

static bool result(const struct lm *m, int i, struct drive_result *out)
{
    const struct auxiliary *const t = m->drive_data;

    *out = (struct drive_result){.name = "aux_loss", .number = (float)t->loss, .n = 1};
    return i < !isnan(t->loss);
}

const struct drive drive_auxiliary = {
    .has = has_losses,
    .size = sizeof(struct auxiliary),
    .predicts = true,
    .params = add_params,
    .bind = bind,
    .bind_grad = bind_grad,
    .input = plain_input,
    .forward = forward,
    .backward = backward,
    .flop = plain_flop,
    .grad_flop = grad_flop,
    .unread = unread,
    .result = result,
};
