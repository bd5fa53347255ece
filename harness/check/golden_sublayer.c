/* SPDX-License-Identifier: MIT
 *
 * Golden files of one sub-layer without wiring: binding it, memory before it, its backward pass.
 * Probabilities are not requested from a backend but derived from its output, by attending over
 * one-hot values, so a kernel that never materialises them is tested as well. */
#include "golden_inner.h"

#include <stdlib.h>
#include <string.h>

enum status golden_bind_sublayer(struct run *r, enum mem_kind kind, struct err *e)
{
    struct arena *const a = &r->arena;

    params_place(&r->params, a);
    enum status st = sublayers_bind(&r->sublayers, r->g, &r->params, kind, r->max, a, e);
    if (st != OK)
        return st;
    r->grad = r->grad && sublayers_can_grad(&r->sublayers, r->g, NULL) == OK;
    if (r->grad) {
        st = sublayers_bind_grad(&r->sublayers, r->g, a, e);
        params_place_grad(&r->params, a);
        r->d_x = arena_f32(a, PART_ACTIVATIONS, r->x->n);
    }
    r->y = arena_f32(a, PART_ACTIVATIONS, r->x->n);
    r->room = arena_f32(a, PART_ACTIVATIONS, r->x->n);
    return st;
}

struct sublayer_input golden_enter(struct run *r)
{
    struct sublayer *const s = r->sublayers.at;
    struct work *const w = r->sublayers.work;
    const size_t D = (size_t)r->c.D;
    const struct extent m = r->max;
    float *const x = sublayers_input(&r->sublayers, r->room);

    for (int done = 0; r->mem && done < m.M; done += m.L) {
        const int n = min_int(m.L, m.M - done);
        const float *const rows = r->mem->data;
        for (int b = 0; b < m.B; b++)
            memcpy(x + (size_t)(b * n) * D, rows + (size_t)(b * m.M + done) * D,
                   sizeof(float) * (size_t)n * D);
        sublayer_remember(r->g, s, w, x, m.B, n);
    }
    memcpy(x, r->x->data, r->x->n * sizeof(float));
    return sublayer_source(r->g, s, w, x, m.B, m.L);
}

void golden_backward_sublayer(struct run *r)
{
    struct sublayer *const s = r->sublayers.at;
    const struct work *const w = r->sublayers.work;

    s->kind->backward(r->g, s, w, sublayer_source_again(s, w, r->max.B, r->max.L), r->d_x,
                      r->dy->data, r->max.M);
}

/* ---- probabilities ------------------------------------------------------------------------ */

/* Values v [K,Hkv,dh] and sink_v [H,sinks,dh] that are 1 where column c0+e of the weights meets
 * coordinate e, else 0. The sinks' columns come first. */
static void set_one_hot(const struct attn *a, int sinks, float *v, float *sink_v, int c0, int n)
{
    const int K = a->M + a->L, kv_width = a->Hkv * a->dh;

    memset(v, 0, sizeof(float) * (size_t)K * (size_t)kv_width);
    memset(sink_v, 0, sizeof(float) * (size_t)a->H * (size_t)sinks * (size_t)a->dh);
    for (int e = 0; e < n; e++) {
        const int sink = c0 + e, j = sink - sinks;
        for (int h = 0; h < a->H && j < 0; h++)
            sink_v[((ptrdiff_t)h * sinks + sink) * a->dh + e] = 1;
        for (int h = 0; h < a->Hkv && j >= 0; h++)
            v[j * kv_width + h * a->dh + e] = 1;
    }
}

/* With one-hot values the output of query i is p[i, c0 .. c0+dh). */
void golden_probs(struct run *r, struct attn a, const struct attn_impl *impl, void *scratch)
{
    const int sinks = a.sink_v ? a.sinks : 0; /* else they have no values to read them from */
    const int columns = sinks + a.M + a.L, HD = a.H * a.dh;
    const size_t rows = (size_t)a.B * (size_t)a.H * (size_t)a.L, n = rows * (size_t)columns;
    const struct tensor *const wanted = safetensors_find(r->s, "out.probs");

    if (!wanted || wanted->n != n) {
        golden_compare(r, "out.probs", NULL, n);
        return;
    }
    float *const v = calloc((size_t)columns * (size_t)HD, sizeof(*v));
    float *const slice = calloc(rows * (size_t)a.dh, sizeof(*slice));
    float *const probs = calloc(n, sizeof(*probs));
    float *const sink_v = v + (size_t)(a.M + a.L) * (size_t)HD;
    NEED(v && slice && probs);
    a.rel_v = NULL;
    a.lse = NULL;
    a.o = slice;
    a.v = v;
    a.v_at = (struct stride){.batch = 0, .row = a.Hkv * a.dh};
    a.sink_v = sinks ? sink_v : NULL;
    for (int c0 = 0; c0 < columns; c0 += a.dh) {
        const int width = min_int(a.dh, columns - c0);
        set_one_hot(&a, sinks, v, sink_v, c0, width);
        impl->forward(r->g, &a, scratch);
        for (size_t row = 0; row < rows; row++) {
            const size_t L = (size_t)a.L, H = (size_t)a.H;
            const size_t b = row / (H * L), h = row / L % H, i = row % L;
            memcpy(probs + row * (size_t)columns + c0, slice + ((b * L + i) * H + h) * (size_t)a.dh,
                   sizeof(float) * (size_t)width);
        }
    }
    golden_compare(r, "out.probs", probs, n);
    free(v), free(slice), free(probs);
}
