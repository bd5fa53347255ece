/* SPDX-License-Identifier: MIT
 *
 * Golden files of one sub-layer without wiring: binding it, memory before it, its backward pass.
 * Probabilities are not requested from a backend but derived from its output, by attending over
 * one-hot values, so a kernel that never materialises them is tested as well. */
#include "golden.h"

enum status golden_bind_sublayer(struct run *r, enum mem_kind kind, struct err *e)
{
    struct arena *const a = &r->arena;

    params_place(&r->params, a);
    TRY(sublayers_bind(&r->sublayers, r->g, &r->params, kind, r->max, a, e));
    r->grad = r->grad && sublayers_can_grad(&r->sublayers, r->g, NULL) == OK;
    if (r->grad) {
        TRY(sublayers_bind_grad(&r->sublayers, r->g, a, e));
        params_place_grad(&r->params, a);
        r->d_x = arena_f32(a, PART_ACTIVATIONS, r->x->n);
    }
    r->y = arena_f32(a, PART_ACTIVATIONS, r->x->n > r->n_y ? r->x->n : r->n_y);
    r->room = arena_f32(a, PART_ACTIVATIONS, r->x->n);
    return OK;
}

void golden_tables(struct run *r, int tokens)
{
    if (r->c.pos->pos_encoding)
        r->c.pos->pos_encoding(&r->c, 0, tokens, r->sublayers.pos_encoding);
    sublayers_build_tables(&r->sublayers, r->g);
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
    const int K = attn_keys(a), dv = attn_dv(a), kv_width = a->Hkv * dv;

    memset(v, 0, sizeof(float) * (size_t)K * (size_t)kv_width);
    memset(sink_v, 0, sizeof(float) * (size_t)a->H * (size_t)sinks * (size_t)dv);
    for (int e = 0; e < n; e++) {
        const int sink = c0 + e, j = sink - sinks;
        for (int h = 0; h < a->H && j < 0; h++)
            sink_v[((ptrdiff_t)h * sinks + sink) * dv + e] = 1;
        for (int h = 0; h < a->Hkv && j >= 0; h++)
            v[j * kv_width + h * dv + e] = 1;
    }
}

/* `a` with values v and output o. */
static struct attn with_values(const struct attn *a, float *o, const float *v, const float *sink_v)
{
    const int dv = attn_dv(a), HD = a->H * dv;
    struct attn with = *a;

    with.rel_v = NULL;
    with.lse = NULL;
    with.o = o;
    with.o_at = (struct stride){.batch = (ptrdiff_t)a->L * HD, .row = HD};
    with.v = v;
    with.v_at = (struct stride){.batch = 0, .row = (ptrdiff_t)a->Hkv * dv};
    with.sink_v = sink_v;
    return with;
}

/* With one-hot values the output of query i is p[i, c0 .. c0+dv). */
void golden_weights(const struct engine *g, const struct attn *a, const struct attn_impl *impl,
                    void *scratch, float *to, ptrdiff_t head, ptrdiff_t row)
{
    const int sinks = a->sink_v ? a->sinks : 0; /* else there are none to read them from */
    const int H = a->H, L = a->L, dv = attn_dv(a), HD = H * dv;
    const int columns = sinks + attn_keys(a);
    const size_t rows = (size_t)a->B * (size_t)H * (size_t)L;
    float *const v = need_room((size_t)columns * (size_t)HD, sizeof(*v));
    float *const slice = need_room(rows * (size_t)dv, sizeof(*slice));
    float *const sink_v = v + (size_t)attn_keys(a) * (size_t)HD;

    for (int c0 = 0; c0 < columns; c0 += dv) {
        const int width = min_int(dv, columns - c0);
        const struct attn one = with_values(a, slice, v, sinks ? sink_v : NULL);
        set_one_hot(&one, sinks, v, sink_v, c0, width);
        impl->forward(g, &one, scratch);
        for (size_t x = 0; x < rows; x++) {
            const size_t h = x / (size_t)L, i = x % (size_t)L, b = h / (size_t)H;
            const float *const from =
                slice + ((b * (size_t)L + i) * (size_t)H + h % (size_t)H) * (size_t)dv;
            memcpy(to + (ptrdiff_t)h * head + (ptrdiff_t)i * row + c0, from,
                   sizeof(float) * (size_t)width);
        }
    }
    free(v), free(slice);
}

void golden_probs(struct run *r, const struct attn *maps, int n_maps, const struct attn_impl *impl,
                  void *scratch)
{
    const int columns = (maps->sink_v ? maps->sinks : 0) + attn_keys(maps);
    const size_t square = (size_t)maps->L * (size_t)columns;
    const size_t n = (size_t)(maps->B * maps->H * n_maps) * square;
    const struct tensor *const wanted = safetensors_find(r->s, "out.probs");

    if (!wanted || wanted->n != n) {
        golden_compare(r, "out.probs", NULL, n);
        return;
    }
    float *const probs = need_room(n, sizeof(*probs));
    for (int map = 0; map < n_maps; map++)
        golden_weights(r->g, &maps[map], impl, scratch, probs + (size_t)map * square,
                       n_maps * (ptrdiff_t)square, columns);
    golden_compare(r, "out.probs", probs, n);
    free(probs);
}
