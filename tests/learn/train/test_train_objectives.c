/* SPDX-License-Identifier: MIT
 *
 * What a training minimises, objective by objective, from the text alone: which tokens are read, which
 * are to be told, and over what the mean is, with softmax and logarithm in double. The reference and the
 * kernels share what hands them their rows and targets, so neither can judge it. */
#include "tests/support/failure.h"
#include "tests/support/open_trainer.h"

TestSuite(train_objectives, .timeout = 120);

enum { STEPS = 4, MOST = 512 };

static void begin(struct trainer *t, const char *line)
{
    struct options o = training_parse("%s --steps 8", line);

    training_settle(&o);
    o.lr = 0; /* all steps have the weights of the first */
    training_begin(t, o);
}

/* The mean loss of the last `scored` of each n rows, and in d [V] that gradient of the logits which the
 * output's bias has: the mean of p - 1{target} over all. */
static double by_hand(double *d, const float *logits, const int32_t *targets, int B, int n,
                      int scored, int V)
{
    double loss = 0;

    for (int v = 0; v < V; v++)
        d[v] = 0;
    for (int r = 0; r < B * n; r++) {
        const float *const x = logits + (ptrdiff_t)r * V;
        double sum = 0;
        for (int v = 0; v < V; v++)
            sum += exp((double)x[v]);
        for (int v = 0; v < V; v++)
            d[v] += (exp((double)x[v]) / sum - (v == targets[r])) / (B * n);
        if (r % n >= n - scored)
            loss += (log(sum) - (double)x[targets[r]]) / (B * scored);
    }
    return loss;
}

/* Logits of order 1 and their losses are rounded to float; so are sums of a hundred terms below 1. */
static const double within = 2e-6;

static void expect_step(struct trainer *t, struct trainer *u, const int32_t *targets, int n,
                        int scored, const char *line, int step)
{
    const int V = t->lm.c.V;
    const double loss = trainer_step(t, 0).loss;
    const struct param *bias = NULL;
    double d[MOST];

    cr_assert_leq(V, MOST);
    for (int i = 0; i < t->lm.params.n; i++)
        if (t->lm.params.v[i].group == PARAM_BIASES && (int)t->lm.params.v[i].n == V)
            bias = &t->lm.params.v[i];
    cr_assert(bias, "%s", line);
    const double want = by_hand(d, u->lm.logits, targets, u->B, n, scored, V);
    cr_expect_float_eq(loss, want, within, "%s, step %d: %.9g, not %.9g", line, step, loss, want);
    for (int v = 0; v < V; v++)
        cr_expect_float_eq((double)bias->grad[v], d[v], within,
                           "%s, step %d, symbol %d: %.9g, not %.9g", line, step, v,
                           (double)bias->grad[v], d[v]);
}

static void forward(struct trainer *u, const int32_t *tokens, const int32_t *targets, int n)
{
    lm_forward(&u->lm, &u->engine, tokens, u->B, n, n, targets, u->nll);
}

/* Each of three sequences reads its third of the text; the next token is to be told. Those that keep no
 * rows of the past read up to 20 tokens before the segment again, whose losses are in the gradient. */
Test(train_objectives, next_tokens)
{
    static const struct {
        const char *line;
        int past;
    } ways[] = {{"--variant xl --seq 12 --mem 20 --corpus copy:lag=3,alphabet=9", 0},
                {"--variant xl --seq 12 --mem 20 --corpus README.md", 0},
                {"--variant vanilla --seq 12 --mem 20 --corpus copy:lag=3,alphabet=9", 20},
                {"--variant vanilla --seq 12 --mem 0 --corpus README.md", 0}};

    for (size_t w = 0; w < ARRAY_LEN(ways); w++) {
        struct trainer t, u;
        begin(&t, ways[w].line), begin(&u, ways[w].line);
        lm_forget(&u.lm);
        const size_t part = (u.text.n - 1) / 3;
        for (int step = 0; step < STEPS; step++) {
            int32_t tokens[MOST], targets[MOST];
            const int at = step * 12, past = at < ways[w].past ? at : ways[w].past, n = past + 12;
            for (int b = 0; b < 3; b++)
                for (int i = 0; i < n; i++) {
                    const uint8_t *const here =
                        u.text.at + (size_t)b * part + (size_t)(at - past + i);
                    tokens[b * n + i] = here[0];
                    targets[b * n + i] = here[1];
                }
            forward(&u, tokens, targets, n);
            expect_step(&t, &u, targets, n, 12, ways[w].line, step);
            lm_commit(&u.lm, 12);
        }
    }
}

/* Segments are seen whole; the hidden ones, a quarter of 12, are to be told, and no other. */
Test(train_objectives, hidden_tokens)
{
    EACH_TEXT (
        line,
        "--variant bert --objective mlm --mask-share 0.25 --seq 12 --corpus copy:lag=3,alphabet=9",
        "--variant bert --objective mlm --mask-share 0.25 --seq 12 --corpus README.md") {
        struct trainer t, u;
        begin(&t, line), begin(&u, line);
        const size_t part = (u.text.n - 1) / 3;
        for (int step = 0; step < STEPS; step++) {
            int32_t tokens[MOST], targets[MOST], places[MOST];
            int n = 0;
            trainer_step(&t, 0); /* which hides what it hides; the same step again below */
            for (int b = 0; b < 3; b++)
                for (int i = 0; i < 12; i++) {
                    const int32_t was = u.text.at[(size_t)b * part + (size_t)(step * 12 + i)];
                    const int32_t is = t.tokens[b * 12 + i];
                    cr_assert(is == was || is == u.lm.c.V - 1, "%s", line);
                    tokens[b * 12 + i] = is;
                    if (is != was) {
                        places[n] = i;
                        targets[n++] = was;
                    }
                }
            cr_assert_eq(n, 3 * 3, "%s, step %d: %d", line, step, n);
            t.optimizer.step = step;
            u.lm.picked = places;
            u.lm.n_picked = 3;
            lm_forget(&u.lm);
            forward(&u, tokens, targets, 12);
            expect_step(&t, &u, targets, 3, 3, line, step);
        }
    }
}

/* The encoder reads five symbols, the decoder the mark and all but the last of what is to be told:
 * the same from the end. Three pairs a step, in the order of the text. */
Test(train_objectives, pairs)
{
    const char *const line =
        "--variant vanilla --objective seq2seq --corpus reverse:n=5,alphabet=7";
    struct trainer t, u;

    begin(&t, line), begin(&u, line);
    for (int step = 0; step < STEPS; step++) {
        int32_t tokens[15], targets[15];
        for (int b = 0; b < 3; b++)
            for (int i = 0; i < 5; i++) {
                const uint8_t *const pair = u.text.at + (size_t)(step * 3 + b) * 11;
                u.source[b * 5 + i] = pair[i];
                targets[b * 5 + i] = pair[4 - i];
                tokens[b * 5 + i] = i ? pair[5 - i] : 7;
            }
        forward(&u, tokens, targets, 5);
        expect_step(&t, &u, targets, 5, 5, line, step);
    }
}
