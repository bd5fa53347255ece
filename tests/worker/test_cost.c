/* SPDX-License-Identifier: MIT
 *
 * Useful FLOP and compulsory bytes against numbers computed by hand. The shape is B 2, H 2, L 3, M
 * 4, d 5, so that K = 7 and P = L M + L (L+1)/2 = 18. */
#include "tests/support/compared.h"
#include "variants/model/lm/lm.h"

static struct attn core(void)
{
    return (struct attn){
        .B = 2, .H = 2, .Hkv = 2, .L = 3, .M = 4, .dh = 5, .causal = true, .scale = 1};
}

static const float some[1]; /* costs never look at values */

static struct attn core_xl(void)
{
    struct attn a = core();

    a.R = 7, a.rel_head = 7 * 5;
    a.rel_k = a.u = a.w = some;
    return a;
}

static struct attn core_shaw(void) /* clip 1 */
{
    struct attn a = core();

    a.R = 2;
    a.rel_k = a.rel_v = some;
    return a;
}

Test(cost, visible_pairs)
{
    static const struct {
        int window, pairs;
        bool both;
    } cases[] = {{0, 18, false},   {1, 3, false}, {6, 17 /* 5 + 6 + 6 */, false},
                 {100, 18, false}, {0, 21, true}, {2, 9 /* 4, 3, 2: later keys, too */, true}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct attn a = core();
        a.window = cases[i].window, a.causal = !cases[i].both;
        cr_expect_eq(attn_pairs(&a, 0), cases[i].pairs, "case %zu", i);
    }
}

Test(cost, flop_of_the_core)
{
    const struct attn plain = core(), xl = core_xl(), shaw = core_shaw();

    cr_expect_eq(attn_flop(&plain), 1440); /* 4 B H P d */
    cr_expect_eq(attn_flop(&xl), 2160);    /* 6 B H P d */
    /* 4 B H P d + 4 B H L (clip+1) d + 2 B H P */
    cr_expect_eq(attn_flop(&shaw), 1440 + 480 + 144);
}

/* A clip beyond the keys has K rows that count: cheaper pair by pair. */
Test(cost, flop_of_a_table_is_the_cheaper_way)
{
    struct attn a = core_shaw();

    a.R = 100;
    cr_expect_eq(attn_flop(&a), 1440 + 2 * 2 * 2 * 180); /* two tables, B H, 2 P d */
    a.R = 1;
    cr_expect_eq(attn_flop(&a), 1440 + 2 * 4 * (30 + 18)); /* 2 L 1 d and P additions */
}

Test(cost, bytes_of_the_core)
{
    struct attn plain = core(), xl = core_xl(), shaw = core_shaw();

    cr_expect_eq(attn_bytes(&plain), 4 * (2 * 60 + 2 * 140)); /* q, o and k, v */
    cr_expect_eq(attn_bytes(&xl), 1600 + 4 * 7 * 2 * 5);      /* 4 K H d */
    cr_expect_eq(attn_bytes(&shaw), 1600 + 8 * 2 * 5);        /* 8 (clip+1) d */
    plain.Hkv = 1;
    cr_expect_eq(attn_bytes(&plain), 4 * (2 * 60 + 2 * 70));
    plain.Hkv = 2, plain.bias = some, plain.R = 7;
    cr_expect_eq(attn_bytes(&plain), 1600 + 4 * 7);
    plain.bias_head = 7;
    cr_expect_eq(attn_bytes(&plain), 1600 + 4 * 7 * 2);
}

/* One query over long memory, per sequence; 0.5 FLOP per byte for vanilla. */
Test(cost, intensity_of_one_token)
{
    struct attn a = core();

    a.L = 1, a.M = 99999, a.B = 1;
    cr_expect_float_eq(attn_flop(&a) / attn_bytes(&a), 0.5, 1e-4);
    a.R = 100000, a.rel_head = 500000, a.rel_k = a.u = a.w = some;
    cr_expect_float_eq(attn_flop(&a) / attn_bytes(&a), 0.5, 1e-4);
    a.B = 1000;
    cr_expect_float_eq(attn_flop(&a) / attn_bytes(&a), 0.75, 1e-3);
}

/* The same shape with one further term each. */
Test(cost, flop_of_further_terms)
{
    static const int windows[] = {1, 6}; /* 3 and 17 pairs */
    struct attn added = core(), keyed = core(), sunk = core(), mixing = core(), only = core();
    struct attn spans = core(), bare = core(), wide = core();

    added.add.at = some, added.add.row = 7;
    keyed.rel_q = some, keyed.R = 7;
    sunk.sinks = 3, sunk.sink_k = sunk.sink_v = some;
    bare.sinks = 3, bare.sink_logit = some;
    wide.dv = 2 * wide.dh;
    mixing.mix_logits = mixing.mix_probs = some;
    only.no_content = true;
    spans.window_of_head = windows;
    cr_expect_eq(attn_flop(&added), 1440 + 72);   /* B H P */
    cr_expect_eq(attn_flop(&keyed), 1440 + 720);  /* 2 B H P d */
    cr_expect_eq(attn_flop(&sunk), 1440 + 720);   /* 4 B H L 3 d */
    cr_expect_eq(attn_flop(&mixing), 1440 + 576); /* 4 B H H P */
    cr_expect_eq(attn_flop(&bare), 1440);         /* logits alone are no products */
    cr_expect_eq(attn_flop(&wide), 720 + 1440);   /* 2 B H P (d + dv) */
    cr_expect_eq(attn_flop(&only), 720);          /* 2 B H P d */
    cr_expect_eq(attn_flop(&spans), 4 * 2 * 20 * 5);
    keyed.R = 2; /* K rows of 2 products each are cheaper: 2 B H K 2 d and B H P */
    NUMBERS({attn_flop(&keyed), 1440 + 560 + 72},
            {attn_grad_flop(&keyed), 2880 + 2 * (560 + 72) - 72},
            {attn_grad_flop(&sunk), 2 * (1440 + 720)}, {attn_grad_flop(&mixing), 2 * (1440 + 576)},
            {attn_grad_flop(&added), 2880});
    added.scores_out = (float[1]){0};
    cr_expect_eq(attn_grad_flop(&added), 2880 + 72); /* what arrives is added */
}

Test(cost, bytes_of_further_terms)
{
    struct attn added = core(), sunk = core(), mixing = core(), only = core();
    struct attn bare = core(), wide = core();

    added.add.at = some, added.add.row = 7, added.add.head = 21;
    cr_expect_eq(attn_bytes(&added), 1600 + 4 * 2 * 18); /* visible pairs, for all sequences */
    added.add.head = 0, added.add.batch = 21;
    cr_expect_eq(attn_bytes(&added), 1600 + 4 * 2 * 18); /* for all heads */
    added.scores_out = (float[1]){0};
    cr_expect_eq(attn_bytes(&added), 1600 + 4 * 2 * 18 + 4 * 4 * 18);
    sunk.sinks = 3, sunk.sink_k = sunk.sink_v = some;
    cr_expect_eq(attn_bytes(&sunk), 1600 + 4 * 2 * 2 * 3 * 5);
    bare.sinks = 3, bare.sink_logit = some;
    cr_expect_eq(attn_bytes(&bare), 1600 + 4 * 2 * 3);
    wide.dv = 2 * wide.dh; /* half of the bytes are v and o */
    cr_expect_eq(attn_bytes(&wide), 800 + 2 * 800);
    mixing.mix_logits = some;
    cr_expect_eq(attn_bytes(&mixing), 1600 + 4 * 4);
    only.no_content = true;
    cr_expect_eq(attn_bytes(&only), 800);
}

/* 3 queries of a stream from its token 4 on, memory from token 0: blocks of 3 tokens. */
Test(cost, pairs_of_a_mask)
{
    static const struct mask blocks = {.block = 3}, strided = {.window = 2, .stride = 3};
    struct attn a = core();

    a.mask = &blocks;
    cr_expect_eq(attn_pairs(&a, 0), 2 + 3 + 1); /* 3 4, 3 4 5, 6 */
    a.base = 1;                                 /* one later: 3 4 5, 6, 6 7 */
    cr_expect_eq(attn_pairs(&a, 0), 3 + 1 + 2);
    a.mask = &strided, a.base = 0;
    cr_expect_eq(attn_pairs(&a, 0), 3 + 3 + 4); /* 1 3 4, 2 4 5, 0 3 5 6 */
    cr_expect_eq(attn_flop(&a), 4 * 2 * 2 * 10 * 5);
}

/* Key 0 keeps its place in the stream; tables lose the distances that no longer occur. */
Test(cost, a_shorter_past)
{
    struct attn a = core();
    const float table[7 * 5] = {0};

    a.rel_q = table, a.R = 7, a.base = 11;
    attn_resize(&a, 2, 3);
    cr_expect(a.L == 2 && a.M == 3 && a.R == 5 && a.base == 11);
    cr_expect_eq(a.rel_q, table + 2 * 5);
}

/* ---- a layer and a model: D 8, F 7 --------------------------------------------------------- */

static double layer_flop(const char *variant, const char *gate, enum mem_kind kind)
{
    struct config c = config_default(variant_find(variant), 8, 2, 5, 7, 1, 0);
    struct params p = {0};
    struct arena a = {0};
    struct sublayers sublayers;
    struct engine g;
    const bool all = kind == MEM_RECOMPUTE;
    const struct extent s = {2, all ? 7 : 3, all ? 0 : 4};

    c.clip = 1, c.rel_rows = 2;
    if (gate)
        c.gate = gate_find(gate);
    cr_assert_eq(engine_open(&g, "ref", 1, NULL, NULL), OK);
    if (c.pos->model_params)
        c.pos->model_params(&c, &p);
    sublayers_init(&sublayers, &c, &p, 0);
    params_place(&p, &a);
    cr_assert_eq(sublayers_bind(&sublayers, &g, &p, kind, s, &a, NULL), OK);
    const double flop = sublayers_flop(&sublayers, s.B, s.L, s.M);
    sublayers_free(&sublayers);
    params_free(&p);
    return flop;
}

/* W_q, W_o: 4 B L D H d = 1920; W_k, W_v: 4 B K D H d = 4480 of hidden states, 1920 of new rows
 * only; FFN: 4 B L D F = 1344. */
Test(cost, flop_of_a_layer)
{
    enum { XL = 2160 + 1920 + 4480 + 1344, GATE = 384 };
    static const struct {
        const char *variant, *gate;
        enum mem_kind kind;
        double flop;
    } cases[] = {
        {"xl", NULL, MEM_HIDDEN, XL},
        {"xl", NULL, MEM_KV, 2160 + 1920 + 1920 + 1344},
        {"shaw", NULL, MEM_HIDDEN, 2064 + 1920 + 4480 + 1344},
        {"shaw", NULL, MEM_KV, 2064 + 1920 + 1920 + 1344},
        /* The whole window of 7: P = 28, 4 B H P d = 2240, 8 B 7 D H d = 8960, 4 B 7 D F = 3136. */
        {"vanilla", NULL, MEM_RECOMPUTE, 2240 + 8960 + 3136},
        /* Two gates per layer, B L D^2 = 384. */
        {"gtrxl", "residual", MEM_HIDDEN, XL},
        {"gtrxl", "input", MEM_HIDDEN, XL + 4 * GATE},
        {"gtrxl", "output", MEM_HIDDEN, XL + 4 * GATE},
        {"gtrxl", "highway", MEM_HIDDEN, XL + 4 * GATE},
        {"gtrxl", "sigtanh", MEM_HIDDEN, XL + 8 * GATE},
        {"gtrxl", "gru", MEM_HIDDEN, XL + 24 * GATE},
        /* Residual weights cost nothing, a second feed-forward as much as the first; the order does not
         * matter. */
        {"rezero", NULL, MEM_HIDDEN, XL},
        {"sandwich", NULL, MEM_HIDDEN, XL},
        {"macaron", NULL, MEM_HIDDEN, XL + 1344},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const double flop = layer_flop(cases[i].variant, cases[i].gate, cases[i].kind);
        cr_expect_eq(flop, cases[i].flop, "case %zu, %s: %g", i, cases[i].variant, flop);
    }
}

Test(cost, flop_of_a_model)
{
    struct config c = config_default(variant_find("xl"), 8, 2, 5, 7, 3, 11);
    struct arena a = {0};
    struct engine g;
    struct lm m;

    cr_assert_eq(engine_open(&g, "ref", 1, NULL, NULL), OK);
    cr_assert_eq(lm_init(&m, &c, NULL), OK);
    cr_assert_eq(lm_bind(&m, &g, MEM_KV, (struct extent){2, 3, 4}, &a, NULL), OK);
    /* 3 layers and 2 B L D V */
    cr_expect_eq(lm_flop(&m, 2, 3, 4, 3), 3 * 7344 + 2 * 2 * 3 * 8 * 11);
    cr_expect_eq(lm_flop(&m, 2, 3, 4, 1), 3 * 7344 + 2 * 2 * 1 * 8 * 11);
    /* Less memory than there is room for: P = 6, so 6 B H P d = 720; the rest as above. */
    cr_expect_eq(lm_flop(&m, 2, 3, 0, 3), 3 * (720 + 1920 + 1920 + 1344) + 2 * 2 * 3 * 8 * 11);
    lm_free(&m);
}

/* 2 R D H d of projected codes, however many sequences. */
Test(cost, flop_of_lowering)
{
    struct config c = config_default(variant_find("xl"), 8, 2, 5, 7, 1, 0);

    cr_expect_eq(c.pos->build_tables_flop(&c, 7), 2 * 7 * 8 * 10);
    c.clamp_len = 3; /* four rows are left */
    cr_expect_eq(c.pos->build_tables_flop(&c, 7), 2 * 4 * 8 * 10);
}
