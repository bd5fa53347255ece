/* SPDX-License-Identifier: MIT
 *
 * Feed-forward as a kind of sub-layer: the model's `struct ffn` on each row separately. */
#include "sublayer.h"

enum { WORK };

static void ffn_params(const struct sublayer *s, const char *prefix, const char *ff,
                       struct params *p)
{
    const struct config *const c = s->c;

    c->ffn->params(c, ff, p);
}

static void ffn_arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const struct config *c = s->c;

    out[WORK] = (struct array){c->ffn->work(c, max.B * max.L, false),
                               c->ffn->work(c, max.B * max.L, true), false, PART_ACTIVATIONS};
}

static void ffn_arrays_grad(const struct sublayer *s, struct extent max,
                            struct array out[SUB_ARRAYS])
{
    out[WORK] =
        (struct array){0, s->c->ffn->work_grad(s->c, max.B * max.L), true, PART_ACTIVATIONS};
}

static void ffn_forward(const struct engine *g, struct sublayer *s, struct work *w,
                        struct sublayer_input from, struct act epilogue)
{
    const int rows = from.B * from.L;

    if (s->c->ffn->read_tokens)
        s->c->ffn->read_tokens(s->c, s->weights, w->tokens, rows, w->array[WORK]);
    s->c->ffn->forward(g, s->c, s->weights, w->y, from.at.at, rows, w->array[WORK], w->x != NULL,
                       epilogue, &w->drop);
}

static void ffn_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                         struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    s->c->ffn->backward(g, s->c, s->weights, d_in, d_y, from.at.at, from.B * from.L, w->array[WORK],
                        w->d_array[WORK], &w->drop);
}

static double ffn_aux(const struct sublayer *s, const struct work *w, int rows)
{
    return s->c->ffn->aux ? s->c->ffn->aux(s->c, rows, w->array[WORK]) : 0;
}

static struct sublayer_cost ffn_cost(const struct sublayer *s, int B, int L, int M)
{
    return (struct sublayer_cost){.maps = s->c->ffn->flop(s->c, B * L)};
}

const struct sublayer_kind sublayer_ffn = {
    .name = "ffn",
    .ffn = true,
    .place = DROP_FFN,
    .params = ffn_params,
    .arrays = ffn_arrays,
    .arrays_grad = ffn_arrays_grad,
    .forward = ffn_forward,
    .backward = ffn_backward,
    .aux = ffn_aux,
    .cost = ffn_cost,
};
