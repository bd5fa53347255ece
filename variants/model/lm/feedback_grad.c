/* SPDX-License-Identifier: MIT
 *
 * The Feedback Transformer, backward: from the last token to the first. When a token's turn comes,
 * all that has attended to its row of memory is done. */
#include "feedback.h"
#include "lm.h"
#include "variants/model/sublayer/sublayer_project.h"
#include "variants/parts/norm.h"

static size_t store_floats(const struct feedback *t)
{
    return (size_t)t->max.B * (size_t)t->keys->cap * (size_t)t->keys->n;
}

enum status feedback_bind_grad(struct lm *m, const struct engine *g, struct arena *a, struct err *e)
{
    struct feedback *const t = m->drive_data;
    const size_t stores = (size_t)feedback_stores(t->c), D = (size_t)t->c->D;
    const size_t step = (size_t)t->max.B * D;
    const int rows = max_int(t->max.B, t->reach);

    TAKE(a, PART_ACTIVATIONS, stores * store_floats(t), &t->d_keys, &t->d_values);
    TAKE(a, PART_ACTIVATIONS, step, &t->d, &t->d_mixed);
    t->d_rows = arena_f32(a, PART_ACTIVATIONS, step * (size_t)t->reach);
    t->stats = arena_f32(a, PART_SCRATCH, (size_t)NORM_STATS * (size_t)rows);
    t->d_share = arena_take(a, PART_SCRATCH, ((size_t)t->c->N + 1) * sizeof(double));
    return OK;
}

/* Gradients of the keys or values of store i, from row `first` on. */
static struct seq_rows d_store(const struct feedback *t, int i, bool values, int first)
{
    float *const base = values ? t->d_values : t->d_keys;

    return (struct seq_rows){base + (size_t)i * store_floats(t) + (ptrdiff_t)first * t->keys->n,
                             cache_stride(t->keys)};
}

/* d [B,n,D], the gradient of n rows of memory, of store i; accumulates that of the norm's weights.
 */
static void d_of_rows(struct feedback *t, const struct engine *g, int i, int first, int n, int B,
                      struct seq_rows d)
{
    const struct param *const norm = feedback_norm(t, i);
    const ptrdiff_t D = t->c->D, stride = (ptrdiff_t)t->reach * D;

    for (int values = 0; values < 2; values++)
        project_input_grad(g, feedback_weight(t, i, values), d, d_store(t, i, values, first), B, n,
                           values ? 1 : 0);
    for (int b = 0; norm && b < B; b++)
        norm_backward(g, t->c, norm, d.at + b * d.stride, d.at + b * d.stride,
                      t->rows + b * stride + first * D, t->stats, n, n);
}

/* The mixture of one step, whose gradient is complete. */
static void d_of_step(struct feedback *t, const struct engine *g, int row, int B)
{
    const size_t n = (size_t)B * (size_t)t->c->D;

    memset(t->d_mixed, 0, n * sizeof(float));
    for (int i = 0; i < feedback_stores(t->c); i++) {
        d_of_rows(t, g, i, row, 1, B, (struct seq_rows){t->d, t->c->D});
        add_times(t->d_mixed, t->d, 1, n, 1);
    }
}

/* d += share_l d_mixed, and the gradient of share_l. */
static void through_mixture(struct feedback *t, int l, size_t n)
{
    t->d_share[l] += dot_in_order(t->d_mixed, feedback_state(t, l), n);
    add_times(t->d, t->d_mixed, t->share[l], n, 1);
}

static void step_backward(struct feedback *t, const struct engine *g, int step, float *d, int B,
                          int L)
{
    struct sublayers *const s = t->sublayers;
    const size_t n = (size_t)B * (size_t)t->c->D;
    const uint64_t drop_step = s->drop.step;

    d_of_step(t, g, t->past + step, B);
    feedback_run(t, g, step, B, L, true);
    feedback_step(t, t->d, d, step, B, L, false);
    s->drop.step = drop_step << 24 | (uint64_t)step;
    for (int i = 0; i < s->n; i++)
        s->work[i].drop.step = s->drop.step;
    for (int l = t->c->N; l >= 0; l--) {
        through_mixture(t, l, n);
        if (l > 0)
            layer_backward(s, g, l - 1, t->d, B, 1);
    }
    s->drop.step = drop_step;
    feedback_step(t, t->d, d, step, B, L, true);
}

/* Of W_k and W_v, by all rows at once; of the norm before them, by rows of earlier segments, which
 * are constants. */
static void store_grad(struct feedback *t, const struct engine *g, int i, int B, int L)
{
    const struct param *const norm = feedback_norm(t, i);
    const ptrdiff_t D = t->c->D;
    const struct seq_rows from = {t->normed, (ptrdiff_t)t->reach * D};

    for (int b = 0; norm && b < B; b++)
        norm_apply(g, t->c, norm, t->normed + b * from.stride, t->rows + b * from.stride, NULL,
                   t->past + L);
    for (int values = 0; values < 2; values++)
        project_weight_grad(g, feedback_weight(t, i, values), d_store(t, i, values, 0), from, B,
                            t->past + L);
    if (norm && t->past)
        d_of_rows(t, g, i, 0, t->past, B, (struct seq_rows){t->d_rows, t->past * D});
}

void feedback_backward(struct lm *m, const struct engine *g, const int32_t *target, int B, int L)
{
    struct feedback *const t = m->drive_data;
    const size_t all = (size_t)feedback_stores(t->c) * store_floats(t);

    CHECK(t->mem != MEM_KV);
    memset(t->d_keys, 0, all * sizeof(float));
    memset(t->d_values, 0, all * sizeof(float));
    memset(t->d_share, 0, ((size_t)t->c->N + 1) * sizeof(double));
    for (int step = L - 1; step >= 0; step--)
        step_backward(t, g, step, m->d_h, B, L);
    for (int i = 0; i < feedback_stores(t->c); i++)
        store_grad(t, g, i, B, L);
    shares_grad(t->share, t->d_share, t->c->N + 1, t->weight->grad);
}
