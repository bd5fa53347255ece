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

    memset(v, 0, sizeof(float) * (size_t)(K * kv_width));
    memset(sink_v, 0, sizeof(float) * (size_t)(a->H * sinks * a->dh));
    for (int e = 0; e < n; e++) {
        const int sink = c0 + e, j = sink - sinks;
        for (int h = 0; h < a->H && j < 0; h++)
            sink_v[(h * sinks + sink) * a->dh + e] = 1;
        for (int h = 0; h < a->Hkv && j >= 0; h++)
            v[j * kv_width + h * a->dh + e] = 1;
    }
}

/* With one-hot values the output of query i is p[i, c0 .. c0+dh). */
void golden_probs(struct run *r, const struct attn *maps, int n_maps, const struct attn_impl *impl,
                  void *scratch)
{
    const int sinks = maps->sink_v ? maps->sinks : 0, H = maps->H, L = maps->L, dh = maps->dh;
    const int columns = sinks + maps->M + L, HD = H * dh, rows = maps->B * H * L;
    float *const v =
        malloc(sizeof(float) * (size_t)((columns + rows) * HD + n_maps * rows * columns));
    float *const sink_v = v + (maps->M + L) * HD, *const slice = v + columns * HD;
    float *const probs = slice + rows * HD;

    NEED(v);
    for (int map = 0; map < n_maps; map++)
        for (int c0 = 0; c0 < columns; c0 += dh) {
            const int n = min_int(dh, columns - c0);
            struct attn a = maps[map];
            a.dv = 0;
            a.rel_v = NULL;
            a.lse = NULL;
            a.o = slice;
            a.o_at = (struct stride){.batch = L * HD, .row = HD};
            a.v = v;
            a.v_at = (struct stride){.batch = 0, .row = a.Hkv * dh};
            a.sink_v = sinks ? sink_v : NULL;
            set_one_hot(&a, sinks, v, sink_v, c0, n);
            impl->forward(r->g, &a, scratch);
            for (int row = 0; row < rows; row++) {
                const int b = row / (H * L), h = row / L % H, i = row % L;
                const int to = ((b * H + h) * n_maps + map) * L + i;
                memcpy(probs + to * columns + c0, slice + (b * L + i) * HD + h * dh,
                       sizeof(float) * (size_t)n);
            }
        }
    golden_compare(r, "out.probs", probs, (size_t)(n_maps * rows) * (size_t)columns);
    free(v);
}
