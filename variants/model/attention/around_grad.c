/* SPDX-License-Identifier: MIT
 *
 * The parts around the core of attention, backward: around.c in reverse. */
#include "around.h"

#include <string.h>

bool around_unproject_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                           struct around_call n, float *d_o, const float *d_y, const float *o)
{
    for (int i = 0; i < s->n_parts; i++)
        if (s->parts[i].part->map.unproject_grad) {
            const struct part_call t = around_part_call(g, s, w, n, i);
            s->parts[i].part->map.unproject_grad(&t, d_o, d_y, o);
            return true;
        }
    return false;
}

void around_output_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                        struct around_call n, float *d_o)
{
    AROUND_EACH(map.output_grad, g, s, w, n, d_o);
    AROUND_EACH(map.join_grad, g, s, w, n, d_o);
}

void around_scores_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                        struct around_call n, const struct attn *a, struct attn_grad *d)
{
    for (int i = 0; i < s->n_parts; i++) {
        const struct score_term *const term = &s->parts[i].part->term;
        const struct part_call t = around_part_call(g, s, w, n, i);
        if (term->core)
            term->core->scores_grad(&t, a, d);
        else if (term->added == ADDS_SUMS)
            d->d_fade = memset(t.d_sums, 0, sizeof(double) * around_sums_count(s->c, n));
        else if (term->added)
            d->d_add = around_add_zeros(&t);
    }
    AROUND_EACH(map.scores_grad, g, s, w, n, a, d);
}

float *around_add_zeros(const struct part_call *t)
{
    memset(t->d_add, 0, sizeof(float) * around_add_floats(t->s->c, t->n));
    return t->d_add;
}

bool around_core_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                      struct around_call n, const struct attn *a, const struct attn_grad *d)
{
    for (int i = 0; i < s->n_parts; i++)
        if (s->parts[i].part->term.core) {
            const struct part_call t = around_part_call(g, s, w, n, i);
            s->parts[i].part->term.core->run_grad(&t, a, d);
            return true;
        }
    return false;
}

struct attn_grad around_softmax_grad(const struct sublayer *s, const struct work *w,
                                     struct around_call n, const struct attn_grad *d, int map)
{
    for (int i = 0; i < s->n_parts; i++)
        if (s->parts[i].part->map.softmax_grad) {
            const struct part_call t = around_part_call(NULL, s, w, n, i);
            return s->parts[i].part->map.softmax_grad(&t, d, map);
        }
    return *d;
}

void around_add_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                     struct around_call n, const struct attn *a, const struct attn_grad *d)
{
    AROUND_EACH(term.add_grad, g, s, w, n, a, d);
}

/* The last part comes first: what it reads is what the others have left. */
void around_operands_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                          struct around_call n, struct attn_grad *d)
{
    AROUND_EACH(map.softmaxes_grad, g, s, w, n, d);
    for (int i = s->n_parts - 1; i >= 0; i--)
        if (s->parts[i].part->map.operands_grad) {
            const struct part_call t = around_part_call(g, s, w, n, i);
            s->parts[i].part->map.operands_grad(&t, d);
        }
}

void around_input_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                       struct around_call n, struct sublayer_input from, float *d_in, int skip)
{
    AROUND_EACH(term.input_grad, g, s, w, n, from, d_in, skip);
    AROUND_EACH(map.input_grad, g, s, w, n, from, d_in, skip);
}

/* ---- for parts ---------------------------------------------------------------------------- */

void around_map_grad(const struct part_call *t, const struct param *W, struct sublayer_input from,
                     const float *d_y, float *d_in, int rows, int skip)
{
    const int in = W->shape[1], out = W->shape[0], K = t->n.K, past = K - rows;
    const struct seq_rows d = {(float *)d_y, (ptrdiff_t)rows * out};
    const struct seq_rows x = {from.at.at + (ptrdiff_t)past * in, from.at.stride};
    const int left = past < skip ? skip - past : 0; /* rows whose gradient is not wanted */
    const int row = past < skip ? 0 : past - skip;

    project_weight_grad(t->g, W, d, x, t->n.B, rows);
    project_input_grad(
        t->g, W, (struct seq_rows){d_in + (ptrdiff_t)row * in, (ptrdiff_t)(K - skip) * in},
        (struct seq_rows){d.at + (ptrdiff_t)left * out, d.stride}, t->n.B, rows - left, 1);
}

void around_norm_grad(const struct part_call *t, const struct param *weight, float *d,
                      const float *raw, float *stats, int rows)
{
    t->g->ops.norm_grad(&(struct norm_grad){.kind = NORM_RMS,
                                            .d_x = d,
                                            .d_weight = weight->grad,
                                            .d_y = d,
                                            .x = raw,
                                            .weight = weight->data,
                                            .stats = stats,
                                            .rows = rows,
                                            .n = weight->shape[0],
                                            .eps = t->s->c->head_eps,
                                            .threads = t->g->threads});
}
