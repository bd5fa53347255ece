/* SPDX-License-Identifier: MIT
 *
 * Slots: what is carried from segment to segment, and gradients that reach what earlier segments
 * wrote, against differences of a loss that runs all of them. Golden files compare the numbers. */
#include "tests/support/gradients.h"
#include "tests/support/in_double.h"
#include "tests/support/model.h"
#include "variants/model/lm/slots.h"

enum { BATCH = 2, TOKENS = 4, SEGMENTS = 3 };

static struct config slots_of(const char *variant, int n, int replay)
{
    struct config c = config_default(variant_find(variant), 12, 2, 6, 16, 2, 11);

    c.slots.n = n;
    c.slots.temp = 1.5f;
    c.slots.bptt = replay > 0;
    c.slots.replay = replay;
    c.final_ln = true;
    c.max_seq = TOKENS;
    return c;
}

static struct config of_slots(int n, int replay) { return slots_of("memformer", n, replay); }

static void segment(struct model *m, int s)
{
    model_segment(m, 0, BATCH, s * TOKENS, TOKENS, TOKENS);
}

Test(slots, are_units_that_each_segment_rewrites)
{
    const struct config c = of_slots(3, 0);
    const size_t n = (size_t)(BATCH * 3 * c.D);
    struct model m;

    model_open(&m, &c, "ref", 1, MEM_HIDDEN, (struct extent){BATCH, TOKENS, 0});
    float *const before = room(n, sizeof(*before)), *const first = room(n, sizeof(*first));
    const struct slots *const slots = m.lm.drive_data;
    for (int s = 0; s < SEGMENTS; s++) {
        segment(&m, s);
        cr_expect_eq(memcmp(slots->now, before, n * sizeof(*before)), 0, "not before commit");
        lm_commit(&m.lm, TOKENS);
        cr_expect_neq(memcmp(slots->now, before, n * sizeof(*before)), 0);
        memcpy(before, slots->now, n * sizeof(*before));
        memcpy(s ? before : first, slots->now, n * sizeof(*before));
        for (int j = 0; j < BATCH * 3; j++) {
            double sum = 0;
            for (int e = 0; e < c.D; e++)
                sum += pow((double)before[j * c.D + e], 2);
            cr_expect_float_eq(sum, 1, 1e-5, "slot %d of %d: %g", j, s, sum);
        }
    }
    lm_forget(&m.lm);
    segment(&m, 0);
    lm_commit(&m.lm, TOKENS);
    cr_expect_eq(memcmp(slots->now, first, n * sizeof(*first)), 0, "forgotten");
}

/* ---- the write, in double ------------------------------------------------------------------- */

enum { WIDE = 64 };

/* Slot j of sequence b, written: own row first, then those of the segment. */
static void write_slot(const struct slots *t, int b, int j, double *to)
{
    const struct config *const c = t->c;
    const int D = c->D, dh = c->dh, sharing = c->H / c->kv_heads;
    const float *const own = t->used + (b * c->slots.n + j) * D;
    double x[WIDE], q[WIDE], k[1 + TOKENS][WIDE], v[1 + TOKENS][WIDE], o[WIDE] = {0}, length = 0;

    for (int i = 0; i <= TOKENS; i++) {
        to_doubles(x, i ? t->h + (b * TOKENS + i - 1) * D : own, D);
        if (i == 0)
            affine(q, t->w[1].data, NULL, x, c->H * dh, D);
        affine(k[i], t->w[2].data, NULL, x, c->kv_heads * dh, D);
        affine(v[i], t->w[3].data, NULL, x, c->kv_heads * dh, D);
    }
    for (int h = 0; h < c->H; h++) {
        double p[1 + TOKENS], sum = 0;
        for (int i = 0; i <= TOKENS; i++) {
            double s = 0;
            for (int e = 0; e < dh; e++)
                s += q[h * dh + e] * k[i][h / sharing * dh + e];
            sum += p[i] = exp(s * (double)c->scale / (double)c->slots.temp);
        }
        for (int i = 0; i <= TOKENS; i++)
            for (int e = 0; e < dh; e++)
                o[h * dh + e] += p[i] / sum * v[i][h / sharing * dh + e];
    }
    affine(to, t->w[4].data, t->w[0].data + j * D, o, D, c->H * dh);
    for (int r = 0; r < D; r++)
        length += to[r] * to[r];
    for (int r = 0; r < D; r++)
        to[r] /= sqrt(length);
}

/* Heads that share keys and values are neighbours. Scores below 4 are sums of D (1 + dh) products:
 * 300 roundings, and so is each number of a unit. */
Test(slots, what_is_written_is_its_equations)
{
    for (int kv = 1; kv <= 4; kv *= 2) {
        struct config c = config_default(variant_find("memformer"), 12, 4, 5, 16, 2, 11);
        struct model m;
        c.slots.n = 3;
        c.slots.temp = 1.5f;
        c.kv_heads = kv;
        c.final_ln = true;
        c.max_seq = TOKENS;
        model_open(&m, &c, "ref", 1, MEM_HIDDEN, (struct extent){BATCH, TOKENS, 0});
        for (int i = 0; i < m.lm.params.n; i++) /* far from weights that are all alike */
            for (size_t e = 0; e < m.lm.params.v[i].n; e++)
                m.lm.params.v[i].data[e] *= strstr(m.lm.params.v[i].name, "write.") ? 8 : 1;
        lm_build_tables(&m.lm, &m.g);
        const struct slots *const t = m.lm.drive_data;
        for (int s = 0; s < SEGMENTS; s++) {
            segment(&m, s);
            for (int x = 0; x < BATCH * 3; x++) {
                double want[WIDE];
                write_slot(t, x / 3, x % 3, want);
                for (int e = 0; e < c.D; e++)
                    cr_expect_leq(fabs((double)t->next[x * c.D + e] - want[e]), 300 * U * 4,
                                  "%d key heads, segment %d, slot %d", kv, s, x);
            }
            lm_commit(&m.lm, TOKENS);
        }
    }
}

/* Where nothing is carried every segment begins anew. */
Test(slots, without_a_past_each_segment_is_the_first)
{
    const struct config c = of_slots(3, 0);
    struct model m;

    model_open(&m, &c, "ref", 1, MEM_NONE, (struct extent){BATCH, TOKENS, 0});
    segment(&m, 0);
    const float first = m.lm.logits[3];
    lm_commit(&m.lm, TOKENS);
    segment(&m, 0);
    cr_expect_eq(m.lm.logits[3], first);
}

/* ---- gradients ------------------------------------------------------------------------------ */

static void open_training(struct model *m, const struct config *c, int M)
{
    model_open_trained(m, c, "ref", 1, MEM_HIDDEN, (struct extent){BATCH, TOKENS, M});
    for (int i = 0; i < m->lm.params.n; i++)
        quantise(m->lm.params.v[i].data, m->lm.params.v[i].n);
}

/* Of the last segment, all of them being run with the present weights. */
static double last_loss(void *model)
{
    struct model *const m = model;
    double sum = 0;

    lm_build_tables(&m->lm, &m->g);
    lm_forget(&m->lm);
    for (int s = 0; s < SEGMENTS; s++) {
        m->lm.drop.step = (uint64_t)s; /* each has masks of its own */
        segment(m, s);
        if (s + 1 < SEGMENTS)
            lm_commit(&m->lm, TOKENS);
    }
    for (int i = 0; i < BATCH * TOKENS; i++)
        sum += (double)m->nll[i] / (BATCH * TOKENS);
    return sum;
}

static void run_backward(struct model *m)
{
    int32_t tokens[BATCH * TOKENS], targets[BATCH * TOKENS];

    last_loss(m);
    for (int i = 0; i < BATCH * TOKENS; i++) {
        const int at = (SEGMENTS - 1) * TOKENS + i % TOKENS;
        tokens[i] = token_of(m, i / TOKENS, at);
        targets[i] = token_of(m, i / TOKENS, at + 1);
    }
    params_zero_grad(&m->lm.params);
    lm_backward(&m->lm, &m->g, tokens, targets, BATCH, TOKENS);
}

/* A memory of no rows: slots alone connect the segments. The loss is a mean of numbers near ln V,
 * as in tests/model/test_grad_lm.c, of three times as many steps. */
static void gradients_reach(const char *variant, int heads, int kv_heads, float drop)
{
    struct config c = slots_of(variant, 2, SEGMENTS - 1);
    struct model m;

    c.H = heads;
    c.kv_heads = kv_heads;

    open_training(&m, &c, 0);
    m.lm.drop = (struct dropout){.p = drop, .seed = SEED};
    const struct param *const bias = params_find(&m.lm.params, "write.1.bias");
    for (size_t i = 0; bias && i < bias->n; i++) /* no step comes near the corners of its ReLU */
        bias->data[i] = i % 2 ? 1 : -1;
    const struct scalar f = {last_loss, &m, 12 * U * log(c.V), 0x1p-6};
    run_backward(&m);
    expect_gradients_aside(&f, variant, &m.lm.params, 64 * U);
}

Test(slots, gradients_reach_earlier_writes) { gradients_reach("memformer", 2, 2, 0); }
Test(slots, gradients_reach_shared_keys) { gradients_reach("memformer", 4, 2, 0); }
Test(slots, gradients_reach_what_made_a_vector) { gradients_reach("summary", 2, 2, 0); }
Test(slots, gradients_reach_earlier_writes_through_their_masks)
{
    gradients_reach("memformer", 2, 2, 0.125f);
}
Test(slots, gradients_reach_what_made_a_vector_through_its_masks)
{
    gradients_reach("summary", 2, 2, 0.125f);
}

/* Each segment drops the oldest vector and adds one, which is of its rows alone. */
Test(slots, a_vector_for_each_segment)
{
    const struct config c = slots_of("summary", 3, 0);
    const size_t D = (size_t)c.D, n = 3 * D;
    struct model m;
    float before[BATCH * 3 * 12];

    open_training(&m, &c, 0);
    lm_build_tables(&m.lm, &m.g);
    lm_forget(&m.lm);
    const struct slots *const slots = m.lm.drive_data;
    for (int s = 0; s < SEGMENTS; s++) {
        segment(&m, s);
        memcpy(before, slots->used, sizeof(before));
        lm_commit(&m.lm, TOKENS);
        for (size_t b = 0; b < BATCH; b++) {
            double length = 0;
            cr_expect_eq(memcmp(slots->now + b * n, before + b * n + D, 2 * D * sizeof(float)), 0);
            for (size_t e = 0; e < D; e++)
                length += pow((double)slots->now[b * n + 2 * D + e], 2);
            cr_expect_float_eq(length, 1, 16 * U * (double)D);
        }
    }
}

static double norm_of(const struct model *m, const char *name)
{
    const struct param *const w = params_find(&m->lm.params, name);
    double sum = 0;

    cr_assert_not_null(w);
    for (size_t i = 0; i < w->n; i++)
        sum += (double)w->grad[i] * (double)w->grad[i];
    return sqrt(sum);
}

/* Without it slots are constants, and nothing trains what is written. */
Test(slots, replay_is_what_trains_the_write)
{
    for (int replay = 0; replay < SEGMENTS; replay++) {
        const struct config c = of_slots(2, replay);
        struct model m;
        open_training(&m, &c, 0);
        run_backward(&m);
        cr_expect_eq(norm_of(&m, "write.q.weight") > 0, replay > 0, "%d", replay);
        cr_expect_gt(norm_of(&m, "layers.0.read.k.weight"), 0);
    }
}

/* Backward leaves the present as it was: slots and rows that a commit makes memory. */
Test(slots, the_present_returns)
{
    const struct config c = of_slots(2, SEGMENTS - 1);
    const size_t n = (size_t)(BATCH * TOKENS * c.V);
    struct model m;
    float *logits[2];

    for (int back = 0; back < 2; back++) {
        open_training(&m, &c, 3);
        if (back)
            run_backward(&m);
        else
            last_loss(&m);
        lm_commit(&m.lm, TOKENS);
        segment(&m, SEGMENTS);
        logits[back] = copied(m.lm.logits, n);
    }
    cr_expect_eq(memcmp(logits[0], logits[1], n * sizeof(float)), 0);
}
