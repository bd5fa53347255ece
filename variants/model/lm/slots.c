/* SPDX-License-Identifier: MIT
 *
 * Slots, forward: equations in slots.h. */
#include "slots.h"
#include "lm.h"
#include "variants/parts/linear.h"
#include "variants/parts/norm.h"

static bool has_slots(const struct config *c) { return c->slots.n > 0; }

static void add_params(struct lm *m)
{
    const struct config *const c = &m->c;
    struct params *const p = &m->params;

    params_add(p, INIT_NORMAL, 1, 2, (const int[]){c->slots.n, c->D}, "%s", "slot_bias");
    if (slots_mean(c)) {
        slots_mean_params(c, p);
        return;
    }
    params_map(p, config_q_width(c), c->D, "write.", "q.weight");
    params_map(p, config_kv_width(c), c->D, "write.", "k.weight");
    params_map(p, config_kv_width(c), c->D, "write.", "v.weight");
    params_map(p, c->D, config_q_width(c), "write.", "o.weight");
}

static enum status bind(struct lm *m, const struct engine *g, struct arena *a, struct err *e)
{
    struct slots *const t = m->drive_data;
    const struct config *const c = &m->c;
    struct sublayers *const sublayers = &m->sublayers;
    const struct extent max = m->max;
    const size_t B = (size_t)max.B, L = (size_t)max.L, S = (size_t)c->slots.n;
    const bool mean = slots_mean(c);
    const size_t wide = mean ? 0 : B * S * (size_t)config_q_width(c);
    const size_t rows = mean ? 0 : B * L * (size_t)config_q_width(c);
    struct past_segment *const past = t->past;

    *t = (struct slots){.c = c,
                        .sublayers = sublayers,
                        .w = &m->params.v[m->at_drive],
                        .mem = m->kind,
                        .max = max,
                        .past = past};
    const bool carried = t->mem != MEM_NONE && t->mem != MEM_RECOMPUTE;
    t->now = arena_f32(a, carried ? PART_MEMORY : PART_SCRATCH, slot_floats(t, max.B));
    TAKE(a, PART_ACTIVATIONS, slot_floats(t, max.B), &t->used, &t->next);
    t->h = arena_f32(a, PART_ACTIVATIONS, B * L * (size_t)c->D);
    t->length = arena_f32(a, PART_SCRATCH, B * S);
    TAKE(a, PART_ACTIVATIONS, wide, &t->q, &t->ks, &t->vs, &t->o);
    TAKE(a, PART_ACTIVATIONS, rows, &t->k, &t->v);
    t->p = arena_f32(a, PART_SCORES, mean ? 0 : B * (size_t)c->H * S * (L + 1));
    TAKE(a, PART_ACTIVATIONS, mean ? B * (size_t)c->D : 0, &t->mean, &t->hidden);
    t->tokens = arena_take(a, PART_ACTIVATIONS, B * L * sizeof(int32_t));
    for (int i = 0; i < sublayers->n; i++)
        if (sublayers->at[i].kind->reads) {
            sublayers->at[i].reading.ctx = t->used;
            sublayers->at[i].reading.slots = t;
        }
    if (a->base)
        slots_forget(m);
    return OK;
}

/* ---- reading and writing -------------------------------------------------------------------- */

float slots_unit(float *y, const float *x, int n)
{
    double sum = 0;

    for (int e = 0; e < n; e++)
        sum += (double)x[e] * (double)x[e];
    const float length = (float)sqrt(sum);
    for (int e = 0; e < n; e++)
        y[e] = length > 0 ? x[e] / length : 0;
    return length;
}

static bool any(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] != 0)
            return true;
    return false;
}

/* What the layers of a segment read. */
static void enter(struct lm *m, const int32_t *tokens, int B, int L)
{
    struct slots *const t = m->drive_data;
    const int S = t->c->slots.n, D = t->c->D;

    t->begins = !any(t->now, slot_floats(t, B));
    if (t->begins)
        for (int j = 0; j < B * S; j++)
            slots_unit(t->used + (ptrdiff_t)j * D, t->w[S_BIAS].data + (ptrdiff_t)(j % S) * D, D);
    else
        memcpy(t->used, t->now, slot_floats(t, B) * sizeof(float));
    memcpy(t->tokens, tokens, (size_t)(B * L) * sizeof(*tokens));
}

static void map(const struct engine *g, const struct param *w, float *y, const float *x, int rows)
{
    linear_forward(g, w, NULL, y, x, rows, (struct act){.y = y});
}

/* One head of one slot. */
static void attend(const struct slots *t, int b, int h, int j, int L)
{
    const struct config *const c = t->c;
    const int S = c->slots.n, dh = c->dh, kv = config_kv_width(c), wide = config_q_width(c);
    const int group = h / (c->H / c->kv_heads);
    const ptrdiff_t slot = (ptrdiff_t)b * S + j;
    const float *const q = t->q + slot * wide + h * dh;
    const float *const own_k = t->ks + slot * kv + group * dh;
    const float *const own_v = t->vs + slot * kv + group * dh;
    const float *const k = t->k + (ptrdiff_t)b * L * kv + group * dh;
    const float *const v = t->v + (ptrdiff_t)b * L * kv + group * dh;
    float *const p = t->p + (((ptrdiff_t)b * c->H + h) * S + j) * (L + 1);
    float *const o = t->o + slot * wide + h * dh;
    const float scale = c->scale / c->slots.temp;
    float most = -INFINITY, sum = 0;

    for (int i = 0; i <= L; i++) {
        const float *const key = i ? k + (ptrdiff_t)(i - 1) * kv : own_k;
        float s = 0;
        for (int e = 0; e < dh; e++)
            s += q[e] * key[e];
        p[i] = scale * s;
        most = fmaxf(most, p[i]);
    }
    for (int i = 0; i <= L; i++)
        sum += p[i] = expf(p[i] - most);
    memset(o, 0, sizeof(float) * (size_t)dh);
    for (int i = 0; i <= L; i++) {
        const float *const value = i ? v + (ptrdiff_t)(i - 1) * kv : own_v;
        p[i] /= sum;
        for (int e = 0; e < dh; e++)
            o[e] += p[i] * value[e];
    }
}

/* From t->h [B,L,D]. */
static void write(struct slots *t, const struct engine *g, int B, int L)
{
    const struct config *const c = t->c;
    const int S = c->slots.n, D = c->D;

    if (slots_mean(c)) {
        slots_mean_write(t, g, B, L);
        return;
    }
    const ptrdiff_t items = (ptrdiff_t)B * c->H * S;

    map(g, &t->w[S_Q], t->q, t->used, B * S);
    map(g, &t->w[S_K], t->ks, t->used, B * S);
    map(g, &t->w[S_V], t->vs, t->used, B * S);
    map(g, &t->w[S_K], t->k, t->h, B * L);
    map(g, &t->w[S_V], t->v, t->h, B * L);
#pragma omp parallel for num_threads(g->threads)
    for (ptrdiff_t i = 0; i < items; i++)
        attend(t, (int)(i / S / c->H), (int)(i / S % c->H), (int)(i % S), L);
    map(g, &t->w[S_O], t->next, t->o, B * S);
    for (int j = 0; j < B * S; j++) {
        float *const m = t->next + (ptrdiff_t)j * D;
        for (int e = 0; e < D; e++)
            m[e] += t->w[S_BIAS].data[(ptrdiff_t)(j % S) * D + e];
        t->length[j] = slots_unit(m, m, D);
    }
}

/* They are written from what the output reads. */
static void forward(struct lm *m, const struct engine *g, float *out, int B, int L)
{
    struct slots *const t = m->drive_data;

    sublayers_forward(&m->sublayers, g, out, plain_input(m, out), B, L);
    if (m->c.final_ln)
        norm_apply(g, &m->c, &m->params.v[m->at_final_ln], t->h, out, NULL, B * L);
    else
        memcpy(t->h, out, sizeof(float) * (size_t)(B * L) * (size_t)m->c.D);
    write(t, g, B, L);
}

static double flop(const struct lm *m, int B, int L, int M)
{
    const struct config *const c = &m->c;
    const double S = (double)B * c->slots.n, rows = (double)B * L, D = c->D;
    const double q = config_q_width(c), kv = config_kv_width(c);

    if (slots_mean(c))
        return plain_flop(m, B, L, M) + slots_mean_flop(c, B, L);
    return plain_flop(m, B, L, M) + 2 * S * D * (2 * q + 2 * kv) + 4 * rows * D * kv +
           4 * S * q * (L + 1);
}

/* ---- memory --------------------------------------------------------------------------------- */

void slots_forget(struct lm *m)
{
    const struct slots *const t = m->drive_data;

    memset(t->now, 0, slot_floats(t, t->max.B) * sizeof(float));
    if (t->ring)
        *t->ring = (struct past_ring){0};
}

bool slots_carries(const struct slots *t, int i, struct carried *out)
{
    const bool carried = t->mem != MEM_NONE && t->mem != MEM_RECOMPUTE;

    *out = i == 0 ? (struct carried){"slots", t->now, carried ? slot_floats(t, t->max.B) : 0, false,
                                     false}
                  : (struct carried){"past", t->block, t->block && carried ? t->n_block : 0, false,
                                     true};
    return i < 2;
}

static size_t carried(const struct lm *m, int B) { return slot_floats(m->drive_data, B); }

/* After commit, too: those that the next segment begins with. */
static bool result(const struct lm *m, int i, struct drive_result *out)
{
    const struct slots *const t = m->drive_data;

    *out = (struct drive_result){.name = "slots", .real = t->next, .n = slot_floats(t, t->max.B)};
    return i < 1;
}

const struct drive drive_slots = {
    .has = has_slots,
    .size = sizeof(struct slots),
    .memory = true,
    .undivided = "slots of memory",
    .params = add_params,
    .bind = bind,
    .bind_grad = slots_bind_grad,
    .free = slots_free,
    .enter = enter,
    .input = plain_input,
    .forward = forward,
    .backward = slots_backward,
    .replay = slots_replay,
    .commit = slots_commit,
    .forget = slots_forget,
    .carried = carried,
    .flop = flop,
    .grad_flop = plain_grad_flop,
    .result = result,
};
