/* SPDX-License-Identifier: MIT
 *
 * Positions that stop early, gates that skip sub-layers, an output that reads all layers: what
 * follows from their rules. Golden files compare whole models, test_grad_lm.c their gradients. */
#include "tests/support/model.h"
#include "tests/support/named.h"
#include "variants/model/lm/exit.h"

enum { BATCH = 2, TOKENS = 9, VOCAB = 11, LAYERS = 4 };

static struct config of(const char *variant)
{
    return config_default(variant_find(variant), 12, 3, 4, 17, LAYERS, VOCAB);
}

static void open_model(struct model *m, const struct config *c)
{
    model_open(m, c, "ref", 1, MEM_HIDDEN, (struct extent){BATCH, TOKENS, TOKENS});
}

static void run(struct model *m) { model_segment(m, 0, BATCH, 0, TOKENS, TOKENS); }

static void expect_steps(const struct config *c, int steps)
{
    struct model m;

    open_model(&m, c);
    run(&m);
    const struct early_exit *const t = m.lm.drive_data;
    for (int i = 0; i < BATCH * TOKENS; i++)
        cr_expect_eq(t->steps[i], steps, "%s, position %d", c->variant->name, i);
}

/* All stop at once where everything is certain, none where nothing is. */
Test(exit, stops_where_its_rule_says)
{
    struct config c = of("exit");

    c.exit_tau = 1;
    expect_steps(&c, 1);
    c.exit_tau = 0;
    expect_steps(&c, LAYERS);
    c = of("exit-patience");
    c.exit_patience = LAYERS;
    expect_steps(&c, LAYERS);
    c.exit = EXIT_TRAIN;
    expect_steps(&c, LAYERS);
}

/* Rows that the first map of the feed-forward network was given. */
static int rows_of_ffn;
static void (*plain_gemm)(const struct gemm *p);
static void counting_gemm(const struct gemm *p)
{
    enum { HIDDEN = 17 };

    rows_of_ffn += p->n == HIDDEN ? p->m : 0;
    plain_gemm(p);
}

static int by_size(const void *x, const void *y)
{
    const float a = *(const float *)x, b = *(const float *)y;

    return (a > b) - (a < b);
}

enum { ROWS = BATCH * TOKENS };

/* The median entropy before the last layer: half of the positions stop there, or earlier. */
static float median_tau(const struct config *c)
{
    struct config all = *c;
    struct model m;

    all.exit_tau = 0;
    open_model(&m, &all);
    run(&m);
    float *const entropy = ((const struct early_exit *)m.lm.drive_data)->lse;
    qsort(entropy, ROWS, sizeof(*entropy), by_size);
    const float tau = (entropy[ROWS / 2 - 1] + entropy[ROWS / 2]) / 2 / logf(VOCAB);
    return tau;
}

/* A feed-forward network runs for the positions that have not stopped. */
Test(exit, positions_that_stopped_cost_nothing)
{
    struct config c = of("exit");
    struct model m;
    int ran = 0;

    c.exit_tau = median_tau(&c);
    open_model(&m, &c);
    plain_gemm = m.g.ops.gemm;
    m.g.ops.gemm = counting_gemm;
    run(&m);
    for (int i = 0; i < ROWS; i++)
        ran += ((const struct early_exit *)m.lm.drive_data)->steps[i];
    cr_expect_lt(ran, ROWS * LAYERS);
    cr_expect_gt(ran, ROWS);
    cr_expect_eq(rows_of_ffn, ran);
    struct layers_count all = {{0}};
    const struct layers_run last = lm_layers_run(&m.lm);
    layers_count(&all, &last);
    cr_expect_float_eq(layers_mean(&all) * ROWS, ran, 1e-9);
}

static void expect_cuts(const struct config *c)
{
    static const enum mem_kind kinds[] = {MEM_HIDDEN, MEM_KV};
    const struct extent whole = {BATCH, TOKENS, 0}, cut = {BATCH, 2, TOKENS};

    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        float *const want = model_logits(c, "ref", 1, MEM_NONE, whole, TOKENS, TOKENS);
        float *const got = model_logits(c, "ref", 1, kinds[k], cut, TOKENS, 2);
        cr_expect_lt(case_error(got, want, ROWS * VOCAB), 1, "%s, norm %s, tau %g",
                     mem_kind_name[kinds[k]], wiring_name[c->wiring], (double)c->exit_tau);
    }
}

/* Layers above remember rows as if they had run, whatever is cached, and where some positions have
 * stopped the others go on, however sub-layers join the stream. */
Test(exit, a_text_may_be_cut_anywhere)
{
    int tried = 0;

    for (int w = 0; w < WIRING_COUNT; w++)
        for (int gate = -1; gate < 0 || gates[gate]; gate++) {
            struct config c = of("exit");
            c.wiring = (enum wiring)w;
            c.gate = gate < 0 ? NULL : gates[gate];
            if (config_check(&c, NULL) != OK)
                continue;
            c.exit_tau = 1;
            expect_cuts(&c);
            c.exit_tau = median_tau(&c);
            expect_cuts(&c);
            tried++;
        }
    cr_expect_gt(tried, WIRING_COUNT - 1);
}

/* With tau 1 only the first layer runs; the others project keys and values. */
Test(exit, flop_counts_what_ran)
{
    struct config c = of("exit");
    struct model m;

    c.exit_tau = 1;
    open_model(&m, &c);
    const double layers = sublayers_flop(&m.lm.sublayers, BATCH, TOKENS, 0);
    const double out = 2.0 * BATCH * TOKENS * 12 * VOCAB;
    cr_expect_float_eq(lm_flop(&m.lm, BATCH, TOKENS, 0, TOKENS), layers + out, 1e-6 * layers);
    run(&m);
    const double kv = 4.0 * 12 * 12 * BATCH * TOKENS * (LAYERS - 1);
    cr_expect_float_eq(lm_flop(&m.lm, BATCH, TOKENS, 0, TOKENS), layers / LAYERS + kv + 2 * out,
                       1e-6 * layers);
}

/* A gate that is shut leaves the stream as it is, an open one adds all of the sub-layer. */
Test(conditional, gates_shut_and_open)
{
    struct config c = of("conditional"), plain = of("alibi");

    c.cond = COND_HARD;
    plain.wiring = WIRING_PRE;
    for (int open = 0; open < 2; open++) {
        struct model m, other;
        open_model(&m, &c);
        open_model(&other, &plain);
        for (struct param *w = m.lm.params.v; w < m.lm.params.v + m.lm.params.n; w++) {
            if (strstr(w->name, "skip"))
                for (size_t e = 0; e < w->n; e++)
                    w->data[e] = strstr(w->name, "bias") ? (open ? 100 : -100) : 0;
        }
        if (!open) /* without sub-layers nothing but the embedding is left */
            for (int i = 0; i < other.lm.params.n; i++)
                if (strstr(other.lm.params.v[i].name, ".o.") ||
                    strstr(other.lm.params.v[i].name, ".2."))
                    memset(other.lm.params.v[i].data, 0, other.lm.params.v[i].n * sizeof(float));
        lm_build_tables(&m.lm, &m.g);
        lm_build_tables(&other.lm, &other.g);
        run(&m);
        run(&other);
        cr_expect_lt(case_error(m.lm.logits, other.lm.logits, BATCH * TOKENS * VOCAB), 1);
    }
}

/* Hard gates have no gradient. */
Test(conditional, hard_gates_are_for_inference)
{
    struct config c = of("conditional");
    struct model m;

    c.cond = COND_HARD;
    open_model(&m, &c);
    cr_expect_eq(sublayers_can_grad(&m.lm.sublayers, &m.g, &(struct err){""}), E_UNSUPPORTED);
}

/* A weight that outdoes the others leaves the last layer alone. */
Test(transparent, one_layer_may_have_all_the_weight)
{
    struct config c = of("transparent"), plain = of("xl");
    struct model m, other;

    plain.wiring = WIRING_PRE;
    open_model(&m, &c);
    open_model(&other, &plain);
    for (int l = 0; l <= LAYERS; l++)
        data_of(&m.lm.params, "transparent.weight")[l] = l == LAYERS ? 100 : 0;
    run(&m);
    run(&other);
    cr_expect_lt(case_error(m.lm.logits, other.lm.logits, BATCH * TOKENS * VOCAB), 1);
}

/* Layers that each position runs. */
static void steps_of(const struct config *c, int32_t steps[BATCH * TOKENS])
{
    struct model m;

    open_model(&m, c);
    run(&m);
    memcpy(steps, ((const struct early_exit *)m.lm.drive_data)->steps, sizeof(*steps) * ROWS);
}

/* A window of nothing but the position is the rule of entropy. With a wider one the first position has
 * the same rule, and the second does not stop before it. */
Test(exit, a_window_waits_for_those_before_it)
{
    struct config c = of("exit-window"), alone = of("exit");
    int32_t steps[BATCH * TOKENS], own[BATCH * TOKENS];
    int waits = 0;

    c.exit_tau = alone.exit_tau = median_tau(&alone);
    steps_of(&alone, own);
    for (c.exit_window = 0; c.exit_window < 4; c.exit_window++) {
        steps_of(&c, steps);
        for (int i = 0; i < BATCH * TOKENS; i++) {
            cr_expect((c.exit_window && i % TOKENS) || steps[i] == own[i], "position %d", i);
            waits += steps[i] > own[i];
        }
        for (int b = 0; b < BATCH && c.exit_window; b++)
            cr_expect_geq(steps[b * TOKENS + 1], steps[b * TOKENS], "window %d", c.exit_window);
    }
    cr_expect_gt(waits, 0);
}

/* One vote is enough at once, and no layers give more votes than there are. With two, a position
 * stops after the first layer that says what one before it did. */
Test(exit, votes_are_counted_over_all_layers)
{
    struct config c = of("exit-votes");
    int32_t steps[BATCH * TOKENS];
    struct model m;

    c.exit_patience = 1;
    expect_steps(&c, 1);
    c.exit_patience = LAYERS + 1;
    expect_steps(&c, LAYERS);
    c.exit_patience = 2;
    steps_of(&c, steps);
    c.exit_patience = LAYERS + 1;
    open_model(&m, &c);
    run(&m); /* nothing stops: all have voted in all layers but the last */
    const struct early_exit *const t = m.lm.drive_data;
    for (int i = 0; i < BATCH * TOKENS; i++) {
        bool had[64] = {false};
        int l = 0;
        while (l < LAYERS - 1 && !had[t->votes[l * BATCH * TOKENS + i]])
            had[t->votes[l++ * BATCH * TOKENS + i]] = true;
        /* the first time is before any has stopped, whose states others then see */
        if (i % TOKENS == 0)
            cr_expect_eq(steps[i], min_int(l + 1, LAYERS), "position %d", i);
    }
}
