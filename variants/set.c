/* SPDX-License-Identifier: MIT
 *
 * Set Transformer: Lee et al. 2019, "Set Transformer: A Framework for Attention-based
 * Permutation-Invariant Neural Networks".
 *
 *   h         = q + softmax(q k^T / sqrt(W)) v
 *   MAB(Q, X) = h + relu(W_o h + b)
 *   ISAB(x)   = MAB_1(x, MAB_0(I, x))
 *
 * q is a map of Q, k and v are maps of X, W is the width of all heads. Norms, if there are
 * any, follow both sums.
 * m learned rows I attend to the text and the text to their results: the cost is linear in its
 * length, and the order of rows means nothing. Every row reads the whole text. */
#include "variants/model/attention/sublayer_attention.h"
#include "variants/parts/linear.h"

struct isab {
    int inducing; /* learned rows */
    bool norms;   /* after both sums of a block */
};

static const struct choice choices[] = {
    ROW_INT(struct isab, inducing, "inducing", 1, 1 << 16, "learned rows that attend to the text",
            .scope = SCOPE_LAYER, .setting = true, .tiny = "3"),
    ROW_FLAG(struct isab, norms, "mab_ln", "1: norms inside of a block", .scope = SCOPE_LAYER,
             .setting = true, .absent = "0", .tiny = "0|1"),
    {0},
};

static const struct part_numbers isab_numbers = {choices, PRESET(struct isab, .inducing = 32)};

static const struct isab *numbers(const struct config *c) { return config_numbers(c, SLOT_MIXER); }

/* ---- learned rows --------------------------------------------------------------------------- */

static int learned_rows(const struct steps *t, struct extent now)
{
    return numbers(t->c)->inducing;
}

enum { MAP, ROWS };

/* The map of learned rows, the same for all sequences; params: its weight, which its bias follows,
 * and the rows. */
static void learned_forward(const struct step_call *c)
{
    const struct param *const W = c->param[MAP];
    float *const y = c->out->at;
    const size_t n = (size_t)c->L * (size_t)c->out->n;

    linear_forward(c->g, W, W + 1, y, c->param[ROWS]->data, c->L, (struct act){.y = y});
    for (int b = 1; b < c->B; b++)
        memcpy(y + (size_t)b * n, y, n * sizeof(float));
}

static void learned_backward(const struct step_call *c)
{
    const struct param *const W = c->param[MAP], *const rows = c->param[ROWS];
    float *const d = c->d_out->at, *const d_rows = c->scratch;
    const size_t n = (size_t)c->L * (size_t)c->out->n;

    for (size_t b = 1; b < (size_t)c->B; b++)
        for (size_t i = 0; i < n; i++)
            d[i] += d[b * n + i];
    linear_backward(c->g, W, W + 1, d_rows, d, rows->data, c->L, 0);
    for (size_t i = 0; i < rows->n; i++)
        rows->grad[i] += d_rows[i];
}

static size_t learned_scratch(const struct engine *g, const struct step *s, struct extent max,
                              bool backward)
{
    return backward ? sizeof(float) * (size_t)max.L * (size_t)s->result : 0;
}

/* Of one sequence. */
static double learned_flop(const struct step *s, int B, int L)
{
    return 2.0 * L * s->result * s->result;
}

static int learned(struct steps *t, int map, int rows)
{
    static const struct step_kind kind = {.name = "learned",
                                          .forward = learned_forward,
                                          .backward = learned_backward,
                                          .scratch = learned_scratch,
                                          .flop = learned_flop};
    struct step *const s = steps_add(t, &kind);

    step_shares(s, map);
    step_shares(s, rows);
    return step_writes_to(t, s, steps_value_of(t, config_q_width(t->c), learned_rows, false));
}

/* ---- the two blocks ------------------------------------------------------------------------- */

/* The learned rows attend to the text, or the text to them. */
static struct attn core(const struct steps *t, int nth, struct extent now)
{
    const int m = numbers(t->c)->inducing;
    struct attn a = attn_of_config(t->c, now.B, nth ? now.L : m, 0);

    a.K = nth ? m : now.L;
    a.scale = (float)(1 / sqrt((double)config_q_width(t->c)));
    return a;
}

/* Parameters of a block: weights, each before its bias; of norms too. */
struct block {
    int q, k, v, o, norm[2];
};

static int vector(struct steps *t, enum init init, int nth, const char *name)
{
    const int W = config_q_width(t->c);
    char full[32];

    snprintf(full, sizeof(full), "mab%d.%s", nth, name);
    return steps_tensor(t, init, 0, 1, &W, full);
}

static int map(struct steps *t, int in, int nth, char name)
{
    char weight[32], bias[16];

    snprintf(weight, sizeof(weight), "mab%d.%c.weight", nth, name);
    snprintf(bias, sizeof(bias), "%c.bias", name);
    const int W = steps_map(t, config_q_width(t->c), in, weight);
    vector(t, INIT_ZERO, nth, bias);
    return W;
}

static struct block declare(struct steps *t, int nth)
{
    const int D = t->c->D, W = config_q_width(t->c);
    struct block b = {0};

    b.q = map(t, nth ? D : W, nth, 'q');
    b.k = map(t, nth ? W : D, nth, 'k');
    b.v = map(t, nth ? W : D, nth, 'v');
    b.o = map(t, W, nth, 'o');
    for (int i = 0; i < 2 && numbers(t->c)->norms; i++) {
        b.norm[i] = vector(t, INIT_ONE, nth, i ? "ln1.weight" : "ln0.weight");
        vector(t, INIT_ZERO, nth, i ? "ln1.bias" : "ln0.bias");
    }
    return b;
}

static int normed(struct steps *t, int x, int weights)
{
    const int W = config_q_width(t->c);

    if (!numbers(t->c)->norms)
        return x;
    return step_norm(
        t, x,
        (struct head_norm){
            .width = W, .layer = true, .bias = true, .eps = 1e-5f, .weights = weights});
}

static int block(struct steps *t, const struct block *b, int nth, int q, int x)
{
    const int W = config_q_width(t->c);
    const int v = step_product(t, x, W, b->v, b->v + 1), k = step_product(t, x, W, b->k, b->k + 1);
    const int a = step_attend(t, (struct attend){.q = step_copy(t, q),
                                                 .k = k,
                                                 .v = v,
                                                 .width = W,
                                                 .part = nth,
                                                 .rows = nth ? NULL : learned_rows,
                                                 .core = core});
    const int h = normed(t, step_plus(t, q, a), b->norm[0]);
    const int r = step_apply(t, step_product(t, h, W, b->o, b->o + 1), CURVE_RELU, 1);

    return normed(t, step_plus(t, r, h), b->norm[1]);
}

static void build(struct steps *t)
{
    const int W = config_q_width(t->c);
    const int rows =
        steps_tensor(t, INIT_LINEAR, 0, 2, (const int[]){numbers(t->c)->inducing, W}, "inducing");

    t->no_past = "learned rows read a whole text  -> use --mem 0";
    if (t->declares)
        params_wide(t->declares, t->declares->n - 1);
    const struct block first = declare(t, 0), second = declare(t, 1);
    const int y = block(t, &first, 0, learned(t, first.q, rows), STEPS_INPUT);

    t->result = block(t, &second, 1, step_product(t, STEPS_INPUT, W, second.q, second.q + 1), y);
    t->last = NULL;
}

const struct mixer mixer_isab = {.name = "isab",
                                 .numbers = &isab_numbers,
                                 .kind = &sublayer_attending,
                                 .wide = true,
                                 .unscaled = true,
                                 .build = build,
                                 .prefix = "",
                                 .both = true,
                                 .excludes = EXCLUDES(HAS_CAUSAL, HAS_GROUPS, HAS_ATTN_BIAS)};

const struct variant variant_set = {
    .name = "set",
    .paper = "Lee et al. 2019, arXiv:1810.00825",
    .about = "learned rows attend to the text, the text to their results",
    .control = "vanilla --direction both",
    .pos = &pos_none,
    .mixer = &mixer_isab,
    .bidirectional = true,
};
