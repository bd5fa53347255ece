/* SPDX-License-Identifier: MIT
 *
 * Slots, backward, and the segments of the past that are run again for it: slots.h. */
#include "lm.h"
#include "slots.h"
#include "variants/parts/linear.h"
#include "variants/parts/norm.h"

/* ---- binding -------------------------------------------------------------------------------- */

static int entries(const struct slots *t) { return t->c->slots.replay + 1; }

static void place(struct slots *t, struct past_segment *p, struct arena *a)
{
    const size_t B = (size_t)t->max.B, D = (size_t)t->c->D;

    const size_t n = (size_t)t->sublayers->n;

    p->head = arena_take(a, PART_ACTIVATIONS, sizeof(*p->head));
    p->n_rows = arena_take(a, PART_ACTIVATIONS, n * sizeof(*p->n_rows));
    p->seen = arena_take(a, PART_ACTIVATIONS, n * sizeof(*p->seen));
    p->tokens = arena_take(a, PART_ACTIVATIONS, B * (size_t)t->max.L * sizeof(int32_t));
    p->slots = arena_f32(a, PART_ACTIVATIONS, slot_floats(t, t->max.B));
    for (int i = 0; i < t->sublayers->n; i++) {
        const struct cache *const m = &t->sublayers->at[i].memory;
        p->rows[i] =
            m->n ? arena_f32(a, PART_ACTIVATIONS, B * (size_t)(m->keep + t->max.L) * D) : NULL;
    }
}

static void make_room(struct slots *t)
{
    if (t->past)
        return;
    t->past = need_room((size_t)entries(t), sizeof(*t->past));
    for (int i = 0; i < entries(t); i++)
        t->past[i].rows = need_room((size_t)t->sublayers->n, sizeof(*t->past[i].rows));
}

enum status slots_bind_grad(struct lm *m, const struct engine *g, struct arena *a, struct err *e)
{
    struct slots *const t = m->drive_data;
    const size_t B = (size_t)t->max.B, L = (size_t)t->max.L, D = (size_t)t->c->D;
    const bool mean = slots_mean(t->c);
    const size_t wide = mean ? B * D : B * (size_t)t->c->slots.n * (size_t)config_q_width(t->c);
    const size_t rows = mean ? 0 : B * L * (size_t)config_q_width(t->c);

    make_room(t);
    TAKE(a, PART_ACTIVATIONS, slot_floats(t, t->max.B), &t->d, &t->d_next, &t->d_r, &t->kept);
    TAKE(a, PART_ACTIVATIONS, wide, &t->d_q, &t->d_ks, &t->d_vs, &t->d_o);
    TAKE(a, PART_ACTIVATIONS, rows, &t->d_k, &t->d_v);
    t->d_h = arena_f32(a, PART_ACTIVATIONS, B * L * D);
    const size_t before = a->used;
    t->ring = arena_take(a, PART_ACTIVATIONS, sizeof(*t->ring));
    for (int i = 0; i < t->c->slots.replay; i++)
        place(t, &t->past[i], a);
    t->block = a->base ? (float *)(a->base + before) : NULL;
    t->n_block = (a->used - before) / sizeof(float);
    place(t, &t->past[t->c->slots.replay], a);
    for (int i = 0; i < t->sublayers->n; i++)
        if (t->sublayers->at[i].kind->reads)
            t->sublayers->at[i].reading.d_ctx = t->d;
    if (a->base)
        slots_forget(m);
    return OK;
}

void slots_free(struct lm *m)
{
    struct slots *const t = m->drive_data;

    for (int i = 0; t->past && i < entries(t); i++)
        free(t->past[i].rows);
    free(t->past);
}

/* ---- gradients ------------------------------------------------------------------------------ */

void slots_unit_grad(float *d, const float *y, float length, int n)
{
    double along = 0;

    for (int e = 0; e < n; e++)
        along += (double)d[e] * (double)y[e];
    for (int e = 0; e < n; e++)
        d[e] = length > 0 ? (d[e] - (float)along * y[e]) / length : 0;
}

/* One head of all slots of a sequence; heads that share keys follow each other in one thread. */
static void attend_grad(const struct slots *t, int b, int h, int L)
{
    const struct config *const c = t->c;
    const int S = c->slots.n, dh = c->dh, kv = config_kv_width(c), wide = config_q_width(c);
    const int group = h / (c->H / c->kv_heads);
    const float scale = c->scale / c->slots.temp;

    for (int j = 0; j < S; j++) {
        const ptrdiff_t slot = (ptrdiff_t)b * S + j;
        const ptrdiff_t at_q = slot * wide + h * dh, at_own = slot * kv + group * dh;
        const float *const p = t->p + (((ptrdiff_t)b * c->H + h) * S + j) * (L + 1);
        double mean = 0;
        for (int e = 0; e < dh; e++) /* sum of p dp */
            mean += (double)t->d_o[at_q + e] * (double)t->o[at_q + e];
        for (int i = 0; i <= L; i++) {
            const ptrdiff_t at =
                i ? ((ptrdiff_t)b * L + i - 1) * kv + (ptrdiff_t)group * dh : at_own;
            const float *const k = (i ? t->k : t->ks) + at, *const v = (i ? t->v : t->vs) + at;
            float *const d_k = (i ? t->d_k : t->d_ks) + at, *const d_v =
                                                                (i ? t->d_v : t->d_vs) + at;
            float d_p = 0;
            for (int e = 0; e < dh; e++)
                d_p += t->d_o[at_q + e] * v[e];
            const float d_s = scale * p[i] * (d_p - (float)mean);
            for (int e = 0; e < dh; e++) {
                d_v[e] += p[i] * t->d_o[at_q + e];
                d_k[e] += d_s * t->q[at_q + e];
                t->d_q[at_q + e] += d_s * k[e];
            }
        }
    }
}

static void clear(const struct slots *t, int B, int L)
{
    const size_t q = (size_t)(B * t->c->slots.n) * (size_t)config_q_width(t->c) * sizeof(float);
    const size_t kv = (size_t)(B * t->c->slots.n) * (size_t)config_kv_width(t->c) * sizeof(float);
    const size_t rows = (size_t)(B * L) * (size_t)config_kv_width(t->c) * sizeof(float);

    memset(t->d_q, 0, q);
    memset(t->d_ks, 0, kv);
    memset(t->d_vs, 0, kv);
    memset(t->d_k, 0, rows);
    memset(t->d_v, 0, rows);
}

/* From d_next to d_h [B,L,D] and to what is added to d; accumulates weight gradients. */
static void write_grad(struct slots *t, const struct engine *g, int B, int L)
{
    const struct config *const c = t->c;
    const int S = c->slots.n, D = c->D, sharing = c->H / c->kv_heads;

    if (slots_mean(c)) {
        slots_mean_grad(t, g, B, L);
        return;
    }
    memcpy(t->d_r, t->d_next, slot_floats(t, B) * sizeof(float));
    for (int j = 0; j < B * S; j++) {
        const ptrdiff_t at = (ptrdiff_t)j * D;
        slots_unit_grad(t->d_r + at, t->next + at, t->length[j], D);
        for (int e = 0; e < D; e++)
            t->w[S_BIAS].grad[(ptrdiff_t)(j % S) * D + e] += t->d_r[at + e];
    }
    linear_backward(g, &t->w[S_O], NULL, t->d_o, t->d_r, t->o, B * S, 0);
    clear(t, B, L);
#pragma omp parallel for num_threads(g->threads)
    for (int i = 0; i < B * c->kv_heads; i++)
        for (int h = 0; h < sharing; h++)
            attend_grad(t, i / c->kv_heads, i % c->kv_heads * sharing + h, L);
    linear_backward(g, &t->w[S_Q], NULL, t->d, t->d_q, t->used, B * S, 1);
    linear_backward(g, &t->w[S_K], NULL, t->d, t->d_ks, t->used, B * S, 1);
    linear_backward(g, &t->w[S_V], NULL, t->d, t->d_vs, t->used, B * S, 1);
    linear_backward(g, &t->w[S_K], NULL, t->d_h, t->d_k, t->h, B * L, 0);
    linear_backward(g, &t->w[S_V], NULL, t->d_h, t->d_v, t->h, B * L, 1);
}

/* From d to the trained rows, where the slots used are the first. */
static void first_grad(struct slots *t, int B)
{
    const int S = t->c->slots.n, D = t->c->D;

    for (int j = 0; t->begins && j < B * S; j++) {
        const ptrdiff_t at = (ptrdiff_t)j * D, row = (ptrdiff_t)(j % S) * D;
        double length = 0;
        for (int e = 0; e < D; e++)
            length += (double)t->w[S_BIAS].data[row + e] * (double)t->used[at + e];
        slots_unit_grad(t->d + at, t->used + at, (float)length, D);
        for (int e = 0; e < D; e++)
            t->w[S_BIAS].grad[row + e] += t->d[at + e];
    }
}

/* ---- segments of the past ------------------------------------------------------------------- */

/* The i-th segment of the past, the newest first; NULL after the last. */
static const struct past_segment *past(const struct slots *t, int i)
{
    const int most = t->c->slots.replay;

    return t->ring && i < t->ring->n ? &t->past[(t->ring->newest - i + most) % most] : NULL;
}

/* The present, with its `fresh` rows that are not memory yet. */
static void put_away(struct slots *t, struct past_segment *to, const struct dropout *drop, int B,
                     int L, int fresh)
{
    const size_t D = (size_t)t->c->D;

    memcpy(to->tokens, t->tokens, (size_t)(B * L) * sizeof(*to->tokens));
    memcpy(to->slots, t->used, slot_floats(t, B) * sizeof(float));
    *to->head = (struct past_head){.L = L, .begins = t->begins, .drop = *drop};
    for (int i = 0; i < t->sublayers->n; i++) {
        const struct cache *const m = &t->sublayers->at[i].memory;
        const size_t n = (size_t)(m->M + fresh) * D;
        to->n_rows[i] = m->M;
        to->seen[i] = m->seen;
        if (m->n)
            rows_copy((struct seq_rows){to->rows[i], (ptrdiff_t)n}, cache_from(m, 0), B, n);
    }
}

static void bring_back(struct slots *t, const struct past_segment *from, int B, int fresh)
{
    const size_t D = (size_t)t->c->D;

    memcpy(t->used, from->slots, slot_floats(t, B) * sizeof(float));
    t->begins = from->head->begins;
    for (int i = 0; i < t->sublayers->n; i++) {
        struct cache *const m = &t->sublayers->at[i].memory;
        const size_t n = (size_t)(from->n_rows[i] + fresh) * D;
        m->M = from->n_rows[i];
        m->seen = from->seen[i];
        cache_reserve(m, m->n ? t->max.L : 0);
        if (m->n)
            rows_copy(cache_from(m, 0), (struct seq_rows){from->rows[i], (ptrdiff_t)n}, B, n);
    }
}

static struct past_segment *present(const struct slots *t) { return &t->past[t->c->slots.replay]; }

/* Put away the present, go to the i-th segment of the past, and back: slots and rows of memory. */
static void leave(struct slots *t, const struct dropout *drop, int B, int L)
{
    put_away(t, present(t), drop, B, L, L);
    memcpy(t->kept, t->next, slot_floats(t, B) * sizeof(float));
}

static void go_to(struct slots *t, int i, int B) { bring_back(t, past(t, i), B, 0); }

static void go_back(struct slots *t, int B)
{
    const struct past_segment *const p = present(t);

    bring_back(t, p, B, p->head->L);
    memcpy(t->tokens, p->tokens, (size_t)(B * p->head->L) * sizeof(*p->tokens));
    memcpy(t->next, t->kept, slot_floats(t, B) * sizeof(float));
}

/* Looks at the memory that this segment had. */
void slots_commit(struct lm *m, int L)
{
    struct slots *const t = m->drive_data;
    const int most = t->c->slots.replay;

    if (t->mem == MEM_NONE || t->mem == MEM_RECOMPUTE)
        return;
    if (t->ring && t->c->slots.bptt && most) { /* training */
        t->ring->newest = (t->ring->newest + 1) % most;
        t->ring->n = min_int(most, t->ring->n + 1);
        put_away(t, &t->past[t->ring->newest], &m->drop, t->max.B, L, 0);
    }
    memcpy(t->now, t->next, slot_floats(t, t->max.B) * sizeof(float));
}

/* ---- backward ------------------------------------------------------------------------------- */

void slots_backward(struct lm *m, const struct engine *g, const int32_t *target, int B, int L)
{
    const struct slots *const t = m->drive_data;

    memset(t->d, 0, slot_floats(t, B) * sizeof(float));
    if (m->c.slots.bptt) /* the layers run again, for earlier segments: none is complete */
        sublayers_backward(&m->sublayers, g, m->d_h, B, L);
    else
        plain_backward(m, g, target, B, L);
}

/* The gradient of the slots that the segment read reaches the writes before it. */
void slots_replay(struct lm *m, const struct engine *g, int B, int L)
{
    struct slots *const t = m->drive_data;
    const struct config *const c = &m->c;
    const struct dropout drop = m->drop;
    const size_t slots = (size_t)(B * c->slots.n) * (size_t)c->D * sizeof(float);

    if (!c->slots.bptt)
        return;
    leave(t, &m->drop, B, L);
    const struct past_segment *p;
    for (int i = 0; (p = past(t, i)); i++) {
        const int len = p->head->L, rows = B * len;
        memcpy(t->d_next, t->d, slots);
        memset(t->d, 0, slots);
        go_to(t, i, B);
        m->drop = p->head->drop;
        lm_states(m, g, p->tokens, m->final_in ? m->final_in : m->h, B, len);
        write_grad(t, g, B, len);
        memcpy(m->d_h, t->d_h, sizeof(float) * (size_t)rows * (size_t)c->D);
        if (c->final_ln)
            norm_backward(g, c, &m->params.v[m->at_final_ln], m->d_h, m->d_h, m->final_in,
                          m->sublayers.work[0].stats, rows, rows);
        sublayers_backward(&m->sublayers, g, m->d_h, B, len);
        lm_embed_backward(m, g, p->tokens, B, len);
    }
    m->drop = drop;
    first_grad(t, B);
    go_back(t, B);
}
