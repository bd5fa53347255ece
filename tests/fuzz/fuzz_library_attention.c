/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: bytes become a call of the library's attention, forward and backward. Of calls
 * with numbers of ordinary size, outputs are those of the equations and gradients those of ref. */
#include "library_call.h"

static struct ba_mask any_mask(struct input *in, int positions)
{
    struct ba_mask m = {.size = sizeof(m)};
    const int kind = byte(in);

    if (kind % 8 == 7) {
        m.row_words = number(in, 3);
        const double words = (double)m.row_words * positions;
        if (words > 0 && words * 8 < ROOM / 2) {
            uint64_t *const rows = place((size_t)words * 8);
            for (size_t i = 0; i < (size_t)words; i++)
                rows[i] = (uint64_t)byte(in) * 0x0101010101010101 ^ i;
            m.rows = rows;
        }
        return m;
    }
    if (kind & 1) {
        m.window = number(in, 7);
        m.dilation = around(in, byte(in) % 3);
    }
    if (kind & 2) {
        m.block = number(in, 7);
        m.back = around(in, byte(in) % 3);
        m.memory = around(in, byte(in) % 4);
        m.n_random = around(in, byte(in) % 3);
        m.random_blocks = m.n_random ? number(in, 40) : around(in, 0);
        m.random_from = chance(in, 8) ? number(in, 3) : 0;
        const double blocks = (double)m.random_blocks * m.n_random;
        if (blocks > 0 && blocks * 4 < ROOM / 2) {
            int32_t *const random = place((size_t)blocks * 4);
            for (size_t i = 0; i < (size_t)blocks; i++)
                random[i] = chance(in, 16) ? number(in, 3) : byte(in) % 9 - 1;
            m.random = random;
        }
    }
    if (kind & 4)
        m.stride = number(in, 9);
    if (kind & 8) {
        m.fixed = number(in, 9);
        m.summary = around(in, byte(in) % 4);
    }
    if (kind & 16)
        m.global = number(in, 5);
    if (kind & 32) {
        m.rect_rows = number(in, 4);
        m.rect = number(in, 4);
        m.row = around(in, m.rect > 0 && m.rect < 99 ? m.rect * (1 + byte(in) % 4) : 0);
        m.margin_rows = around(in, byte(in) % 3);
        m.margin = around(in, byte(in) % 4);
    }
    if (chance(in, 64))
        m.reserved = number(in, 1);
    return m;
}

/* The masks of a call; an array of them has no room to spare. */
static void place_masks(struct input *in, struct ba_attention *a)
{
    const double positions =
        a->q_step ? a->q_first + ((double)a->L - 1) * a->q_step + 1 : (double)a->M + a->L;

    a->n_masks = number(in, 3);
    if (a->n_masks > 0 && a->n_masks <= 256) {
        struct ba_mask made[3], *all;
        for (int i = 0; i < 3; i++)
            made[i] = any_mask(in, positions > 0 && positions < 4096 ? (int)positions : 0);
        a->masks = all = a->n_masks == 1
                             ? place_struct(in, made, sizeof(*all), OF(ba_mask, rect_rows))
                             : place((size_t)a->n_masks * sizeof(*all));
        for (int i = 0; a->n_masks > 1 && i < a->n_masks; i++)
            all[i] = made[i % 3];
        if (a->H > 0 && a->H < 4096 && chance(in, 2)) {
            uint8_t *const which = place((size_t)a->H);
            for (int h = 0; h < a->H; h++)
                which[h] = (uint8_t)around(in, byte(in) % a->n_masks);
            a->mask_of_head = which;
        }
    } else if (a->n_masks && chance(in, 2)) {
        a->masks = (const void *)memory.forbidden;
    }
}

static void place_windows(struct input *in, struct ba_attention *a)
{
    a->window = chance(in, 4) ? number(in, 9) : 0;
    if (!chance(in, 6) || a->H < 1 || a->H > 4096)
        return;
    int *const windows = place((size_t)a->H * sizeof(int));
    for (int h = 0; h < a->H; h++)
        windows[h] = number(in, 9);
    a->window_of_head = windows;
}

static struct ba_attention attention_numbers(struct input *in)
{
    struct ba_attention a = {.size = sizeof(a)};
    const int kind = byte(in);

    a.B = around(in, 1 + kind % 2);
    a.Hkv = around(in, (kind >> 1) % 4);
    a.H = around(in, (a.Hkv > 0 && a.Hkv < 4 ? a.Hkv : 1) * (1 + byte(in) % 3));
    a.L = kind % 16 == 8 ? around(in, 60 + byte(in) % 20) : number(in, 9);
    a.M = kind & 16 ? 0 : number(in, 9);
    a.K = kind & 32 && kind & 64 ? number(in, 12) : 0;
    a.dh = number(in, 20);
    a.dv = chance(in, 4) ? number(in, 20) : 0;
    a.causal = around(in, byte(in) % 2);
    if (a.K && !chance(in, 8))
        a.M = a.causal = 0;
    if (chance(in, 4)) {
        a.q_step = number(in, 3);
        a.k_step = around(in, 1 + byte(in) % 3);
        a.q_first = around(in, byte(in) % 16 - 4);
    }
    a.base = chance(in, 4) ? stride(in, 5) : 0;
    a.scale = real(in);
    a.soft_cap = real(in);
    a.gain = real(in);
    a.no_content = chance(in, 12) ? around(in, 1) : 0;
    a.texts = chance(in, 64) ? number(in, 1) : 0;
    return a;
}

/* Which terms there are; one byte each, so that all mixtures come up. */
static void attention_arrays(struct input *in, struct ba_attention *a, struct call *c)
{
    const double K = a->K ? a->K : (double)a->M + a->L, B = a->B, H = a->H, L = a->L, dh = a->dh;
    const double dv = a->dv ? a->dv : a->dh, Hkv = a->Hkv ? a->Hkv : a->H;
    const bool tables = chance(in, 3), content = !a->no_content || chance(in, 16);
    struct {
        struct ba_stride *at;
        double width, n, reach;
    } rows[] = {{&a->q_at, H * dh, L, 0},
                {&a->k_at, Hkv * dh, K, 0},
                {&a->v_at, Hkv * dv, K, 0},
                {&a->o_at, H * dv, L, 0}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        rows[i].at->row = stride(in, rows[i].width);
        const double row = rows[i].at->row ? (double)rows[i].at->row : rows[i].width;
        const double packed = row * rows[i].n;
        rows[i].at->batch = stride(in, packed);
        const double batch = rows[i].at->batch ? (double)rows[i].at->batch : packed;
        rows[i].reach = (B - 1) * batch + (rows[i].n - 1) * row + rows[i].width;
    }
    add_array(c, content, OF(ba_attention, q), rows[0].reach, READ, 1);
    add_array(c, content, OF(ba_attention, k), rows[1].reach, READ, 1);
    add_array(c, !chance(in, 64), OF(ba_attention, v), rows[2].reach, READ, 1);
    add_array(c, !chance(in, 64), OF(ba_attention, o), rows[3].reach, WRITTEN, 0);
    add_array(c, !chance(in, 8), OF(ba_attention, lse), B * H * L, WRITTEN, 0);
    add_array(c, chance(in, 4), OF(ba_attention, u), H * dh, READ, 1);
    if (tables) {
        a->R = number(in, 12);
        a->Rf = number(in, 3);
        a->rel_head = stride(in, ((double)a->R + a->Rf) * dh);
        a->bias_head = stride(in, (double)a->R + a->Rf);
        const double n = (double)a->R + a->Rf, rel = (H - 1) * (double)a->rel_head + n * dh;
        const bool keys = chance(in, 2), vals = chance(in, 3), queries = chance(in, 3);
        add_array(c, keys, OF(ba_attention, rel_k), rel, READ, 1);
        add_array(c, keys && chance(in, 2), OF(ba_attention, w), H * dh, READ, 1);
        add_array(c, vals, OF(ba_attention, rel_v), rel, READ, 1);
        add_array(c, queries, OF(ba_attention, rel_q), rel, READ, 1);
        if (!keys && !vals && !queries && !chance(in, 16))
            a->rel_head = 0;
        const bool bias = (!keys && !vals && !queries) || chance(in, 2);
        add_array(c, bias, OF(ba_attention, bias), (H - 1) * (double)a->bias_head + n, READ, 1);
        if (!bias && !chance(in, 16))
            a->bias_head = 0;
    }
    if (chance(in, 4)) {
        a->add_row = stride(in, K);
        a->add_head = stride(in, K * L);
        a->add_batch = stride(in, K * L * H);
        add_array(c, true, OF(ba_attention, add),
                  reach(B, a->add_batch, H, a->add_head, L, a->add_row, K), READ, 1);
    }
    if (chance(in, 4)) {
        a->fade_head = stride(in, K);
        a->fade_batch = stride(in, K * H);
        add_array(c, true, OF(ba_attention, fade),
                  reach(B, a->fade_batch, H, a->fade_head, 1, 0, K), READ, 1);
        c->all[c->n - 1].wide = true;
    }
    add_array(c, chance(in, 4), OF(ba_attention, scores_out), B * H * L * K, WRITTEN, 0);
    add_array(c, chance(in, 6), OF(ba_attention, mix_logits), H * H, READ, 1);
    add_array(c, chance(in, 6), OF(ba_attention, mix_probs), H * H, READ, 1);
    if (chance(in, 4)) {
        a->sinks = number(in, 4);
        add_array(c, chance(in, 2), OF(ba_attention, sink_k), H * a->sinks * dh, READ, 1);
        add_array(c, chance(in, 2), OF(ba_attention, sink_v), H * a->sinks * dv, READ, 1);
        add_array(c, chance(in, 2), OF(ba_attention, sink_logit), H * a->sinks, READ, 1);
    }
}

static const struct {
    size_t operand, grad;
} attention_grads[] = {
#define GRAD(x)                                                                                    \
    {                                                                                              \
        OF(ba_attention, x), OF(ba_attention_grad, d_##x)                                          \
    }
    GRAD(q),         GRAD(k),      GRAD(v),      GRAD(u),          GRAD(w),    GRAD(rel_k),
    GRAD(rel_v),     GRAD(rel_q),  GRAD(bias),   GRAD(add),        GRAD(fade), GRAD(mix_logits),
    GRAD(mix_probs), GRAD(sink_k), GRAD(sink_v), GRAD(sink_logit),
#undef GRAD
};

static void attention_grad_arrays(struct input *in, const struct call *a, struct call *d)
{
    const struct array *const o = find_array(a, OF(ba_attention, o));
    const struct array *const scores = find_array(a, OF(ba_attention, scores_out));

    for (size_t i = 0; i < ARRAY_LEN(attention_grads); i++) {
        const struct array *const x = find_array(a, attention_grads[i].operand);
        const bool must = attention_grads[i].operand <= OF(ba_attention, v);
        if (!x || (!must && chance(in, 4)))
            continue;
        add_array(d, true, attention_grads[i].grad, x->n, must ? WRITTEN : ADDED, 0);
        d->all[d->n - 1].wide = x->wide;
    }
    add_array(d, o != NULL, OF(ba_attention_grad, d_o), o ? o->n : 0, READ, 1);
    add_array(d, scores && chance(in, 2), OF(ba_attention_grad, d_scores_out),
              scores ? scores->n : 0, READ, 1);
}

/* Outputs against the equations. A query of a hostile mask may see what no judge can name. */
static void judge_outputs(const struct ba_attention *a, const struct call *c)
{
    const struct array *const o = find_array(c, OF(ba_attention, o));
    const struct array *const lse = find_array(c, OF(ba_attention, lse));
    const int K = judge_keys(a);
    answered.judged++;
    const size_t n = (size_t)a->B * (size_t)a->H * (size_t)a->L;
    double *const want = malloc((size_t)o->n * sizeof(double)), *const logs = malloc(n * 8),
                  *const s = malloc(n * (size_t)K * 8);

    for (size_t i = 0; i < (size_t)o->n; i++)
        want[i] = NAN;
    judge_attention(a, want, logs, s);
    for (size_t i = 0; i < (size_t)o->n; i++)
        if (isnan(want[i]))
            CHECK(unwritten((const unsigned char *)o->at[1] + i * 4, 4));
        else
            CHECK(near(value(o, 1, i), want[i], fabs(want[i])));
    for (size_t i = 0; lse && i < n; i++)
        CHECK(near(value(lse, 1, i), logs[i], fabs(logs[i])));
    free(want), free(logs), free(s);
}

PASSES(ba_attention)

static void attention(struct input *in, struct ba_engine *const pair[2])
{
    struct ba_attention a = attention_numbers(in), b;
    struct ba_attention_grad d = {.size = sizeof(d)}, e = d;
    struct call c = {.n = 0}, cd = {.n = 0};

    place_masks(in, &a);
    place_windows(in, &a);
    attention_arrays(in, &a, &c);
    attention_grad_arrays(in, &c, &cd);
    const double K = a.K ? a.K : (double)a.M + a.L, dv = a.dv ? a.dv : a.dh;
    const double work = (double)a.B * a.H * a.L * (K + a.sinks) * ((double)a.dh + dv);
    place_arrays(&c, work);
    cd.fits = c.fits;
    place_arrays(&cd, c.fits ? 0 : INFINITY);
    CHECK(!c.fits || cd.fits);
    b = a;
    enter(&c, 0, &a), enter(&c, 1, &b);
    enter(&cd, 0, &d), enter(&cd, 1, &e);
    if (!c.fits) {
        d.d_o = NULL; /* refused after all else */
        CHECK(call(backward, pair[1], &a, &d) != BA_OK);
        return;
    }
    if (chance(in, 16)) { /* structs of other sizes: what is cut off is zero for both */
        const size_t first = sizeof(a), d_first = sizeof(d);
        void *const x[2] = {place_struct(in, &a, sizeof(a), first),
                            place_struct(in, &b, sizeof(b), first)};
        void *const dx[2] = {place_struct(in, &d, sizeof(d), d_first),
                             place_struct(in, &e, sizeof(e), d_first)};
        for (int i = 0; i < 2; i++)
            (void)call(forward, pair[i], x[i], NULL), (void)call(backward, pair[i], x[i], dx[i]);
        return;
    }
    if (!taken(forward, pair, &c, (void *[]){&a, &b}, (void *[]){NULL, NULL})) {
        CHECK(!taken(backward, pair, &cd, (void *[]){&a, &b}, (void *[]){&d, &e}));
        return;
    }
    if (in->tame)
        expect_alike(&c);
    if (in->tame && work < JUDGED)
        judge_outputs(&b, &c);
    if (taken(backward, pair, &cd, (void *[]){&a, &b}, (void *[]){&d, &e}) && in->tame)
        expect_alike(&cd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return try_call(attention, bytes, size);
}
