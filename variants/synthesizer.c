/* SPDX-License-Identifier: MIT
 *
 * Synthesizer: Tay et al. 2021, "Synthesizer: Rethinking Self-Attention in Transformer Models".
 *
 *   dense   s_hij = W2_h[j] . relu(W1_h x_i + b1_h) + b2_h[j]
 *   random  s_hij = table_h[i, j]
 *
 * Scores without queries and keys: computed from the query's row alone (dense), or a learned table
 * (random). Positions count from the window's start, so the window is recomputed, and none is
 * longer than the table. */
#include "variants/model/attention/sublayer_attention.h"

static bool dense(const struct config *c) { return c->mixer == &mixer_synth_dense; }

static int places(const struct config *c)
{
    return max_int(1, c->max_pos ? c->max_pos : c->max_seq);
}

struct synthesizer {
    int inner; /* hidden units of a head; 0 = dh */
};

static const struct choice choices[] = {
    ROW_INT(struct synthesizer, inner, "syn_inner", 0, 1 << 20,
            "hidden units of a head; 0 = its width", .absent = "0", .applies = dense, SETTING),
    {0},
};

static const struct part_numbers synthesizer_numbers = {choices,
                                                        .size = NUMBERS_SIZE(struct synthesizer)};

static int hidden(const struct config *c)
{
    const struct synthesizer *const numbers = config_numbers(c, SLOT_MIXER);

    return numbers->inner ? numbers->inner : c->dh;
}

/* ---- scores from hidden units --------------------------------------------------------------- */

enum { WEIGHT, BIAS };

static int pairs(const struct steps *t, struct extent now) { return t->c->H * now.L * now.L; }

/* One head of one sequence: its units [L,f], H f apart, scores [L,L], W2 [T,f] and b2 [T]. */
struct head {
    ptrdiff_t units, scores, weight, bias, row;
    int f;
};

static struct head head_at(const struct step_call *c, int at)
{
    const struct config *const model = c->steps->c;
    const int f = hidden(model), H = model->H, L = c->length;
    const ptrdiff_t T = (ptrdiff_t)(at % H) * places(model);

    return (struct head){.units = ((ptrdiff_t)(at / H) * L * H + at % H) * f,
                         .scores = (ptrdiff_t)at * L * L,
                         .weight = T * f,
                         .bias = T,
                         .row = (ptrdiff_t)H * f,
                         .f = f};
}

static void scores_forward(const struct step_call *c)
{
    const int L = c->length;

    for (int at = 0; at < c->B * c->steps->c->H; at++) {
        const struct head h = head_at(c, at);
        float *const to = c->out->at + h.scores;
        for (int i = 0; i < L; i++)
            memcpy(to + (ptrdiff_t)i * L, c->param[BIAS]->data + h.bias, sizeof(float) * (size_t)L);
        mm(c->g, NT, L, L, h.f, 1, c->in->at + h.units, h.row, c->param[WEIGHT]->data + h.weight,
           h.f, 1, to, L);
    }
}

static void scores_backward(const struct step_call *c)
{
    const struct param *const W = c->param[WEIGHT];
    const int L = c->length;

    for (int at = 0; at < c->B * c->steps->c->H; at++) {
        const struct head h = head_at(c, at);
        const float *const d = c->d_out->at + h.scores;
        float *const d_bias = c->param[BIAS]->grad + h.bias;
        mm(c->g, NN, L, h.f, L, 1, d, L, W->data + h.weight, h.f, 1, c->d_in->at + h.units, h.row);
        mm(c->g, TN, L, h.f, L, 1, d, L, c->in->at + h.units, h.row, 1, W->grad + h.weight, h.f);
        for (ptrdiff_t i = 0; i < (ptrdiff_t)L * L; i++)
            d_bias[i % L] += d[i];
    }
}

/* Of all pairs that the output has. */
static double scores_flop(const struct step *s, int B, int pairs_of_heads)
{
    return 2.0 * B * pairs_of_heads * s->width[0] / s->c->H;
}

static int scores(struct steps *t, int units, int weight)
{
    static const struct step_kind kind = {.name = "scores",
                                          .forward = scores_forward,
                                          .backward = scores_backward,
                                          .flop = scores_flop};
    struct step *const s = STEP_READING(t, &kind, units);

    step_shares(s, weight);
    step_shares(s, weight + 1);
    return step_writes_to(t, s, steps_value_of(t, 1, pairs, true));
}

/* ---- the layer ------------------------------------------------------------------------------ */

static struct attn core(const struct steps *t, int part, struct extent now)
{
    static const float something = 0;
    const ptrdiff_t T = places(t->c), L = now.L, all = L * L;
    struct attn a = attn_of_config(t->c, now.B, now.L, 0);

    a.no_content = true;
    a.add = dense(t->c) ? (struct dense){&something, t->c->H * all, all, L}
                        : (struct dense){&something, 0, T * T, T};
    return a;
}

static void build(struct steps *t)
{
    const struct config *const c = t->c;
    const int kv = c->kv_heads * c->dh, H = c->H, T = places(c), f = hidden(c);
    const int V = steps_map(t, kv, c->D, "attn.v.weight");
    int v_bias = -1, table = 0, add = 0;

    t->no_past = "synthesized scores are limited to one window  -> use --mem-kind recompute";
    t->o = steps_map(t, c->D, H * c->dh, "attn.o.weight");
    steps_residual(t);
    if (c->attn_bias) {
        v_bias = steps_tensor(t, INIT_ZERO, 0, 1, &kv, "attn.v.bias");
        t->o_bias = steps_tensor(t, INIT_ZERO, 0, 1, &c->D, "attn.o.bias");
    }
    if (dense(c)) {
        const int units = H * f, first = steps_map(t, units, c->D, "attn.syn.1.weight");
        steps_tensor(t, INIT_ZERO, 0, 1, &units, "attn.syn.1.bias");
        const int second =
            steps_tensor(t, INIT_LINEAR, 0, 3, (const int[]){H, T, f}, "attn.syn.2.weight");
        if (t->declares)
            params_wide(t->declares, t->declares->n - 1);
        steps_tensor(t, INIT_ZERO, 0, 2, (const int[]){H, T}, "attn.syn.2.bias");
        const int x = step_product(t, STEPS_INPUT, units, first, first + 1);
        add = scores(t, step_apply(t, x, CURVE_RELU, 1), second);
    } else
        table = steps_tensor(t, INIT_NORMAL, 1, 3, (const int[]){H, T, T}, "attn.syn.table");
    t->result = step_attend(t, (struct attend){.v = step_product(t, STEPS_INPUT, kv, V, v_bias),
                                               .width = H * c->dh,
                                               .add = add,
                                               .table = table,
                                               .core = core});
}

#define SYNTHESIZER                                                                                \
    .numbers = &synthesizer_numbers, .kind = &sublayer_attending, .build = build, .prefix = "",    \
    .unscaled = true, .windowed = true

const struct mixer mixer_synth_dense = {.name = "synth_dense", SYNTHESIZER};
const struct mixer mixer_synth_random = {.name = "synth_random", SYNTHESIZER};

const struct variant variant_synthesizer = {
    .name = "synthesizer",
    .paper = "Tay et al. 2021, arXiv:2005.00743",
    .about = "each token's scores of all positions from its own row, without keys",
    .control = "vanilla",
    .pos = &pos_sinusoid,
    .mem = &mem_none,
    .mixer = &mixer_synth_dense,
};

const struct variant variant_synthesizer_random = {
    .name = "synthesizer-random",
    .paper = "Tay et al. 2021, arXiv:2005.00743",
    .about = "scores are a learned table by position",
    .control = "vanilla",
    .pos = &pos_sinusoid,
    .mem = &mem_none,
    .mixer = &mixer_synth_random,
};
