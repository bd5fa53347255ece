/* SPDX-License-Identifier: MIT
 *
 * Terms of attention other than positions: talking heads, spans, persistent vectors, and scores
 * carried from layer to layer. Each where it reduces to something simpler; golden files test other
 * values, the suites over all variants segments, memories and backends. */
#include "tests/support/model.h"
#include "tests/support/named.h"
#include "variants/model/attention/sublayer_attention.h"

enum { T = 23, BATCH = 2, VOCAB = 11, H = 3 };
static const struct extent whole = {BATCH, T, 0};

static struct config of(const char *variant, int N)
{
    struct config c = config_default(variant_find(variant), 12, H, 5, 17, N, VOCAB);

    c.wiring = WIRING_POST;
    return c;
}

static void open(struct model *m, const struct config *c)
{
    model_open(m, c, "ref", 1, MEM_NONE, whole);
}

/* Both have drawn their weights by name, so shared weights are equal. */
static void expect_same(struct model *a, struct model *b, const char *what)
{
    float *got = model_stream(a, 0, BATCH, T, T), *want = model_stream(b, 0, BATCH, T, T);

    cr_expect_lt(case_error(got, want, BATCH * T * VOCAB), 1, "%s", what);
}

static void expect_different(struct model *a, struct model *b, const char *what)
{
    float *got = model_stream(a, 0, BATCH, T, T), *want = model_stream(b, 0, BATCH, T, T);

    cr_expect_gt(case_error(got, want, BATCH * T * VOCAB), 1, "%s", what);
}

/* ---- talking heads ------------------------------------------------------------------------ */

static void set_mix(const struct model *m, const char *fmt, const int from[H])
{
    for (int l = 0; l < m->lm.c.N; l++) {
        float *const mix = data_of(&m->lm.params, fmt, l);
        for (int i = 0; i < H * H; i++)
            mix[i] = from[i / H] == i % H;
    }
}

/* Heads permuted and permuted back give the plain model; three in a cycle, so that a transposed
 * matrix would show. */
Test(talking, there_and_back_is_plain)
{
    static const int self[H] = {0, 1, 2}, ring[H] = {1, 2, 0}, back[H] = {2, 0, 1};
    const struct config c = of("talking", 2), plain = of("xl", 2);
    struct model m, p;

    open(&m, &c), open(&p, &plain);
    expect_different(&m, &p, "mixed");
    set_mix(&m, "layers.%d.attn.mix_logits", self), set_mix(&m, "layers.%d.attn.mix_probs", self);
    expect_same(&m, &p, "the identity");
    set_mix(&m, "layers.%d.attn.mix_logits", ring), set_mix(&m, "layers.%d.attn.mix_probs", back);
    expect_same(&m, &p, "there and back");
    set_mix(&m, "layers.%d.attn.mix_probs", ring);
    expect_different(&m, &p, "there and on");
}

/* With initial weights heads hardly mix. */
Test(talking, begins_near_the_identity)
{
    const struct config c = of("talking", 1);
    struct model m;

    open(&m, &c);
    const float *mix = data_of(&m.lm.params, "layers.%d.attn.mix_probs", 0);
    for (int i = 0; i < H * H; i++)
        cr_expect(fabsf(mix[i] - (i / H == i % H)) < 0.2f && mix[i] != 0 && mix[i] != 1);
}

/* ---- adaptive span ------------------------------------------------------------------------ */

static void set_span(const struct model *m, float z)
{
    for (int l = 0; l < m->lm.c.N; l++)
        for (int h = 0; h < H; h++)
            data_of(&m->lm.params, "layers.%d.attn.span", l)[h] = z;
}

Test(span, long_spans_are_plain)
{
    const struct config c = of("span", 2), plain = of("xl", 2);
    struct model m, p;

    open(&m, &c), open(&p, &plain);
    set_span(&m, T);
    expect_same(&m, &p, "spans beyond the first key");
}

/* With a ramp of one token nothing fades: a span of z tokens is a window of z + 1. */
Test(span, steep_spans_are_windows)
{
    for (int z = 0; z <= 8; z += 4) {
        struct config c = of("span", 2), plain = of("xl", 2);
        struct model m, p;
        set_number(&c, "span_ramp", 1);
        plain.window = z + 1;
        open(&m, &c), open(&p, &plain);
        set_span(&m, (float)z);
        expect_same(&m, &p, "a window");
        cr_expect_float_eq(lm_flop(&m.lm, 1, T, 0, T), lm_flop(&p.lm, 1, T, 0, T), 1e-6);
    }
}

/* m halves the weight of a key before normalisation: with all other scores equal, 1 : 1/2. */
Test(span, keys_fade)
{
    struct config c = of("span", 1);
    struct attn a = {0};
    struct model m;

    set_number(&c, "span_ramp", 4);
    open(&m, &c);
    set_span(&m, 1.0f);
    lm_build_tables(&m.lm, &m.g);
    a = sublayers_attention(&m.lm.sublayers, 0)->state.attention.prepared;
    static const double want[] = {1, 1, 0.75, 0.5, 0.25};
    for (int h = 0; h < H; h++) {
        cr_expect_eq(a.window_of_head[h], 5);
        for (int n = 0; n < 5; n++)
            cr_expect_float_eq(a.bias[h * a.bias_head + a.R - 1 - n], log(want[n]), 1e-6);
    }
}

Test(span, stays_between_its_bounds)
{
    struct config c = of("span", 1);
    struct model m;

    set_number(&c, "span_max", 7);
    open(&m, &c);
    struct param *const z = (struct param *)params_find(&m.lm.params, "layers.0.attn.span");
    z->data[0] = -3, z->data[1] = 9, z->data[2] = 4;
    param_keep_bounds(z);
    cr_expect(z->data[0] == 0 && z->data[1] == 7 && z->data[2] == 4);
}

/* Its bias has a row for each distance: positions whose tables have others are refused
 * (test_exclusions.c), and the rest can be bound and built. */
Test(span, with_every_kind_of_positions)
{
    EACH_TEXT (fit, "none", "sinusoid", "learned", "xl", "rope") {
        struct config c = of("span", 1);
        struct model m;
        c.pos = pos_find(fit);
        c.max_seq = T;
        config_numbers_reset(&c);
        open(&m, &c);
        set_span(&m, 1);
        lm_build_tables(&m.lm, &m.g);
    }
}

/* ---- persistent vectors -------------------------------------------------------------------- */

/* A query that sees only itself, and whose scores are all 0, gives its own value 1/(1+n) with n
 * persistent vectors of value 0. */
Test(persistent, shares_of_the_softmax)
{
    static const int counts[] = {1, 3};
    float *shares[2];

    for (int k = 0; k < 2; k++) {
        struct config c = of("all-attention", 1);
        struct model m;
        set_number(&c, "persistent", counts[k]);
        c.wiring = WIRING_PRE;
        c.window = 1;
        c.pos = pos_find("none");
        open(&m, &c);
        memset(data_of(&m.lm.params, "sub.%d.attn.q.weight", 0), 0, sizeof(float) * 15 * 12);
        memset(data_of(&m.lm.params, "sub.%d.attn.pers_v", 0), 0,
               sizeof(float) * (size_t)(H * counts[k] * 5));
        (void)model_stream(&m, 0, BATCH, T, T);
        shares[k] = copied(m.lm.sublayers.work[0].array[AT_O], BATCH * T * 15);
    }
    for (int i = 0; i < BATCH * T * 15; i++) /* v/2 and v/4 */
        cr_expect_float_eq(shares[0][i], 2 * shares[1][i],
                           1e-6 * fabs((double)shares[0][i]) + 1e-9);
}

/* Attention alone: as many vectors as a feed-forward network would have units, and no network. */
Test(persistent, stands_for_the_feed_forward)
{
    const struct config c = of("all-attention", 3);
    struct model m;

    open(&m, &c);
    cr_expect_eq(m.lm.sublayers.n, 3);
    for (int i = 0; i < m.lm.params.n; i++)
        cr_expect(!strstr(m.lm.params.v[i].name, "ff."), "%s", m.lm.params.v[i].name);
    const struct param *const k = params_find(&m.lm.params, "sub.2.attn.pers_k");
    cr_expect(k && k->shape[0] == H && k->shape[1] == c.F && k->shape[2] == c.dh);
    const double added = lm_flop(&m.lm, 1, T, 0, T);
    struct config half = c;
    struct model h;
    set_number(&half, "persistent", 7);
    open(&h, &half);
    cr_expect_float_eq(added - lm_flop(&h.lm, 1, T, 0, T), 3.0 * 4 * T * H * 5 * (c.F - 7), 1e-6);
}

/* ---- carried scores ------------------------------------------------------------------------ */

/* A single layer has nothing to add to, and the mean of one is itself. */
Test(realformer, one_layer_is_plain)
{
    const struct config plain = of("xl", 1);

    EACH_TEXT (name, "realformer", "realformer-mean") {
        const struct config c = of(name, 1);
        struct model m, p;
        open(&m, &c), open(&p, &plain);
        expect_same(&m, &p, name);
    }
}

/* Layer 1 has no scores of its own: its W_q, u and v are 0. Its softmax sees those of layer 0, or
 * half of them: lse_i = log sum of exp(gain S_ij) over j <= i. */
Test(realformer, a_silent_layer_repeats_the_one_below)
{
    static const char *const names[] = {"realformer", "realformer-mean"};

    for (int mean = 0; mean < 2; mean++) {
        struct config c = of(names[mean], 2);
        struct model m;
        c.uv_per_layer = true;
        model_open_trained(&m, &c, "ref", 1, MEM_NONE, whole);
        memset(data_of(&m.lm.params, "layers.%d.attn.q.weight", 1), 0, sizeof(float) * 15 * 12);
        memset(data_of(&m.lm.params, "layers.%d.attn.bias_u", 1), 0, sizeof(float) * 15);
        memset(data_of(&m.lm.params, "layers.%d.attn.bias_v", 1), 0, sizeof(float) * 15);
        lm_build_tables(&m.lm, &m.g);
        model_segment(&m, 0, BATCH, 0, T, T);
        const float *const S = m.lm.sublayers.work[0].array[AT_SCORES];
        const float *const lse = m.lm.sublayers.work[2].array[AT_LSE];
        for (int row = 0; row < BATCH * H * T; row++) {
            double sum = 0;
            for (int j = 0; j <= row % T; j++)
                sum += exp((mean ? 0.5 : 1) * (double)S[row * T + j]);
            cr_expect_float_eq(lse[row], log(sum), 1e-5, "%s row %d", names[mean], row);
        }
    }
}

/* At inference one matrix for all layers; in training one for each. */
Test(realformer, scores_are_in_the_ledger)
{
    const struct config c = of("realformer", 3), plain = of("xl", 3);
    struct model m, p;

    open(&m, &c), open(&p, &plain);
    const size_t pairs = sizeof(float) * BATCH * H * T * T;
    cr_expect_geq(m.arena.part[PART_SCORES], p.arena.part[PART_SCORES] + pairs);
    cr_expect_lt(m.arena.part[PART_SCORES], p.arena.part[PART_SCORES] + 2 * pairs);
    cr_expect_float_eq(lm_flop(&m.lm, BATCH, T, 0, T) - lm_flop(&p.lm, BATCH, T, 0, T),
                       2.0 * BATCH * H * T * (T + 1) / 2, 1e-6);
}
