/* SPDX-License-Identifier: MIT
 *
 * The parts around the core of attention, backward: around.c in reverse. */
#include "around.h"

void around_scores_grad(const struct part_call *all, const struct attn *a, struct attn_grad *d)
{
    for (int i = 0; i < all->s->n_parts; i++) {
        const struct part_call t = around_part_call(all, i);
        const struct score_term *const term = &t.part->term;
        if (term->core)
            term->core->scores_grad(&t, a, d);
        else if (term->added == ADDS_SUMS)
            d->d_fade = memset(t.d_sums, 0, sizeof(double) * around_sums_count(t.s->c, t.n));
        else if (term->added)
            d->d_add = around_add_zeros(&t);
    }
    AROUND_EACH(map.scores_grad, all, a, d);
}

float *around_add_zeros(const struct part_call *t)
{
    memset(t->d_add, 0, sizeof(float) * around_add_floats(t->s->c, t->n));
    return t->d_add;
}

struct attn_grad around_softmax_grad(const struct part_call *all, const struct attn_grad *d,
                                     int map)
{
    struct part_call t;

    return AROUND_ONE(map.softmax_grad, all, &t) ? t.part->map.softmax_grad(&t, d, map) : *d;
}

/* The last part comes first: what it reads is what the others have left. */
void around_operands_grad(const struct part_call *all, struct attn_grad *d)
{
    AROUND_EACH(map.softmaxes_grad, all, d);
    for (int i = all->s->n_parts - 1; i >= 0; i--) {
        const struct part_call t = around_part_call(all, i);
        if (t.part->map.operands_grad)
            t.part->map.operands_grad(&t, d);
    }
}

/* ---- for parts ---------------------------------------------------------------------------- */

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
