/* SPDX-License-Identifier: MIT
 *
 * Whole models backward on the reference: every parameter of every variant, wiring, gate and
 * position scheme is compared with finite differences of the loss, with memory from an earlier
 * segment where there is one. */
#include "tests/support/trained.h"
#include "variants/model/content/content.h"

/* Spans between two distances: at either a key appears or is whole. */
static void between_distances(const struct params *p)
{
    for (int i = 0; i < p->n; i++)
        for (size_t h = 0; strstr(p->v[i].name, "attn.span") && h < p->v[i].n; h++)
            p->v[i].data[h] = 0.4f + 0.1f * (float)h;
}

/* The loss is a mean of B L numbers near ln V = 2.4, each stored once after some ten steps that
 * round to floats; their errors are not of one sign: 4 U of it. The gradient passes as many steps
 * of float, 64 U of its length. Where the true gradient is 0 (a key bias: softmax is invariant to
 * what is the same for all keys) only the noise is left. */
static bool expect_derivatives(struct trained *t)
{
    const struct config *const c = &t->m.lm.c;
    const bool drops = t->m.lm.drop.p > 0;
    const struct scalar f = {loss, t, 4 * U * log(c->V), 0x1p-6};

    run_backward(t);
    /* Each part has three directions in a test of its own. With dropout along one more: a mask that backward
     * lacks is in most entries of a gradient. */
    return expect_gradients_along(
        &f,
        kept_text("%s, %s, %s%s", c->variant->name, wiring_name[c->wiring],
                  c->gate ? c->gate->name : "no gate", drops ? ", dropping" : ""),
        &t->m.lm.params, 64 * U, drops || SANITIZED ? 1 : 2);
}

/* Weights in a generic position: no choice between experts is so close that every step changes it.
 */
static void expect_derivatives_somewhere(const struct config *c, float drop)
{
    bool smooth = false;

    for (uint64_t seed = SEED; seed < SEED + 8 && !smooth; seed++) {
        struct trained t;
        open_trained(&t, c, "ref", 1);
        params_init(&t.m.lm.params, seed, 1);
        avoid_corners(&t.m.lm.params);
        between_distances(&t.m.lm.params);
        remember(&t);
        const double plain = loss(&t);
        t.m.lm.drop = (struct dropout){.p = drop, .seed = SEED, .step = 8};
        cr_expect((fabs(loss(&t) - plain) > 1e-4) == (drop > 0), "what is dropped");
        smooth = expect_derivatives(&t);
    }
    cr_expect(smooth, "a corner is near everywhere");
}

/* A gate's ReLU is kept off its corner by the biases before it. */
static struct config smooth_form(const struct form *w, int turn)
{
    struct config c = wired(w, turn | (w->gate >= 0));

    c.ffn_bias = c.ffn_bias || c.gate;
    /* steps find no room between the corners of a maximum below a ReLU */
    if (c.mixer == &mixer_pooling && c.wiring == WIRING_REORDER)
        set_choice(&c, "pf_pool", "mean");
    return c;
}

/* Nothing keeps the ReLU before a gate off its corner where the last map has no bias. */
static bool corners_everywhere(const struct config *c)
{
    return c->wiring == WIRING_REORDER &&
           ((c->mixer && (c->mixer->kind == &sublayer_steps || c->mixer->attends)) ||
            (c->ffn && c->ffn->build));
}

/* The gradient of AdaNorm is defined otherwise. What chooses jumps wherever a step changes a
 * choice; few experts leave room for steps, more choices do not, nor do rows of one token that
 * choose alike and jump together, as where the network reads what entered the layer: tests of these
 * parts differentiate while the choice stays. */
static bool has_derivatives(const struct config *c)
{
    const bool routes = c->mixer && c->mixer->content && c->mixer->content->numbers;
    const bool together = c->wiring == WIRING_PARALLEL;
    const bool jumps = routes || (c->ffn && c->ffn->chose && (c->ffn != &ffn_moe || together));

    return c->norm_kind != NORM_ADA && !jumps && trains(c->variant);
}

static void expect_derivatives_of_form(const struct form *w, int turn)
{
    struct config c = smooth_form(w, turn);

    choose_where_it_can(&c, &c.clamp_len, turn & 2 ? 3 : 0); /* of distances 0..7 */
    choose_where_it_can(&c, &c.window, turn & 4 ? 4 : 0);
    if (turn & 4) { /* more rows than there are distances */
        c.clip = 20;
        c.rel_rows = turn & 1 ? 41 : 21;
    }
    if (c.pos == &pos_sinusoid && turn & 1 && !c.mixer && !config_mem(&c)->recurrent)
        c.pos = &pos_learned_layer;
    if (!corners_everywhere(&c) && has_derivatives(&c))
        expect_derivatives_somewhere(&c, 0);
}

/* What a variant is by itself with two turns of the options. */
TEST_EACH(int *part, grad_lm, is_the_derivative, every_part())
{
    struct form wirings[WIRINGS];
    const size_t n = all_wirings(wirings, false);

    for (size_t i = (size_t)*part; i < n; i += PARTS)
        for (int half = 0; half <= own_form(&wirings[i]) && sampled(i / PARTS, 2); half++)
            expect_derivatives_of_form(&wirings[i], (int)(i * 2 + (size_t)half * 5) % 8);
}

/* The same with a fixed mask everywhere that something is dropped; one under which no ReLU meets
 * its corner. */
EACH_FORM(grad_lm, is_the_derivative_with_dropout, false)
{
    const struct config c = smooth_form(w, 0);

    if (!corners_everywhere(&c) && has_derivatives(&c))
        expect_derivatives_somewhere(&c, 0.125f);
}

/* Each variant that can be an encoder and a decoder, whose layers have the encoder's gradient, too; and
 * with sums of its layers. */
TEST_EACH(int *part, grad_lm, is_the_derivative_with_an_encoder, every_part(), .timeout = 240)
{
    struct form wirings[WIRINGS];
    const size_t n = all_wirings(wirings, false);

    for (size_t i = (size_t)*part; i < n; i += PARTS) {
        struct config c = smooth_form(&wirings[i], (int)(i % 8));
        c.causal = DIRECTION_CAUSAL;
        c.enc_layers = 1 + (int)(i / PARTS % 2);
        c.transparent = i / PARTS % 3 ? TRANSPARENT_NONE : TRANSPARENT_TOP;
        if (config_check(&c, NULL) == OK && !corners_everywhere(&c) && has_derivatives(&c) &&
            sampled(i / PARTS, 2))
            expect_derivatives_somewhere(&c, i / PARTS % 4 ? 0 : 0.125f);
    }
}

/* What no variant is by itself: settings as files may have them, each model with sizes of its own. */
static const struct {
    const char *variant, *settings;
    int H, dh, F, N;
    bool gates; /* with each gate of outputs */
} models[] = {
    /* several parts of attention, each of which finds what those before it have left */
    {"rope", "qk_norm=1 diff=1 value_residual=1", 3, 5, 17, 2, true},
    {"rope", "qk_norm=1 forget=1 value_residual=1", 3, 5, 17, 2, true},
    {"rope", "qk_norm=1 dman=1 value_residual=1", 3, 5, 17, 2, true},
    /* projections of which the last alone has no bias */
    {"rope", "attn_bias=qkv", 4, 3, 17, 2, false},
    {"xl", "attn_bias=qkv", 4, 3, 17, 2, false},
    {"capsules", "attn_bias=qkv", 4, 3, 17, 2, false},
    {"man", "attn_bias=qkv", 4, 3, 17, 2, false},
    /* scores of the nth layer, divided by n */
    {"learned", "depth_scale=1", 3, 4, 17, 3, false},
    {"xl", "depth_scale=1", 3, 4, 17, 3, false},
    {"cope", "depth_scale=1", 3, 4, 17, 3, false},
    /* factors of sums and logits; norms without biases, one for sub-layers side by side */
    {"vanilla", "logit_scale=0.25 res_scale=0.5 ln_bias=0", 3, 4, 17, 2, false},
    {"rope", "norm=parallel one_norm=1 logit_scale=3 res_scale=0.5", 3, 4, 17, 2, false},
    {"shortconv", "short_taps=4 short_bias=1", 3, 4, 17, 2, false},
    /* queries and keys normed over all heads of a row, of which keys have fewer */
    {"qknorm", "kv_heads=2 qk_norm_over=row", 4, 3, 17, 2, false},
    /* layers without experts before and after one that has them */
    {"llama",
     "ffn=moe moe_act=swiglu moe_k=2 aux_coef=0.125 dense_layers=0,2 dense_inner=10 "
     "dense_ffn=geglu",
     4, 3, 7, 3, false},
    /* heads of queries and keys that serve several heads of values each */
    {"deltanet", "key_heads=2", 4, 3, 17, 2, false},
    {"gdn", "key_heads=2", 4, 3, 17, 2, false},
    {"kda", "key_heads=2", 4, 3, 17, 2, false},
    {"gated-deltaproduct", "key_heads=2", 4, 3, 17, 2, false},
    {"qwen3-next", "key_heads=2", 4, 3, 17, 2, false},
    /* shares of pooled rows: by their middle one, or fixed */
    {"poolingformer", "pf_window2=9 pf_kernel=3 pf_stride=2", 2, 5, 17, 2, false},
    {"poolingformer", "pf_window2=9 pf_kernel=3 pf_stride=2 pf_weights=1", 2, 5, 17, 2, false},
    /* compressed keys, then blocks */
    {"mca", "mca_stride=2 mca_block=3", 2, 5, 17, 2, false},
    /* windows shorter than what is read, and longer; a row alone */
    {"rtransformer", "rnn_cell=rnn rnn_window=4", 2, 3, 5, 2, false},
    {"rtransformer", "rnn_cell=gru rnn_window=6", 2, 3, 5, 2, false},
    {"rtransformer", "rnn_cell=lstm rnn_window=6", 2, 3, 5, 2, false},
    {"cpe", "cpe_kernel=1", 2, 3, 5, 2, false},
    {"cpe", "cpe_kernel=4", 2, 3, 5, 2, false},
    {"cpe", "cpe_kernel=11", 2, 3, 5, 2, false},
    {"sepconv", "sep_kernel=1", 2, 3, 5, 2, false},
    {"sepconv", "sep_kernel=4", 2, 3, 5, 2, false},
    {"sepconv", "sep_kernel=11", 2, 3, 5, 2, false},
};

TEST_EACH(int *which, grad_lm, is_the_derivative_of_models, every_number(ARRAY_LEN(models)),
          .timeout = 300)
{
    struct config c = config_default(variant_find(models[*which].variant), 12, models[*which].H,
                                     models[*which].dh, models[*which].F, models[*which].N, 11);

    c.max_seq = 64;
    if (c.stack.n)
        c.stack = (struct stack){2, {false, true}};
    set_choices(&c, models[*which].settings);
    for (enum out_gate gate = OUT_GATE_NONE;
         gate <= (models[*which].gates ? OUT_GATE_HEADWISE : OUT_GATE_NONE); gate++) {
        c.out_gate = models[*which].gates ? gate : c.out_gate;
        expect_derivatives_somewhere(&c, 0);
    }
}
