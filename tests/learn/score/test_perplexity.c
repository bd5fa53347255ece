/* SPDX-License-Identifier: MIT
 *
 * Rows of perplexity: what bench eval writes of a model whose every probability is known, and that
 * the columns of a row agree with each other. */
#include "harness/learn/score/perplexity.h"
#include "tests/support/command_line.h"
#include "tests/support/model.h"
#include "tests/support/tmp_folder.h"
#include "tests/table/must_rows.h"
#include "variants/model/checkpoint/checkpoint.h"

TestSuite(perplexity, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* A byte model of width 8, and into the folder. */
static struct config open_small(struct model *m, const char *variant, int layers)
{
    struct config c = config_default(variant_find(variant), 8, 2, 4, 12, layers, 256);

    c.max_seq = 4;
    model_open(m, &c, "ref", 1, MEM_NONE, (struct extent){1, 4, 0});
    return c;
}

static void save_small(struct model *m, const struct config *c)
{
    const struct provenance from = {.unit = "byte"};

    MUST(checkpoint_save(in_folder("model.safetensors"), c, &m->lm.params, &from, &failure));
}

/* Its weights from the seed, or nothing but the bias of the
 * output: `a` has probability 1/2, `b` and `c` 1/4 each, whatever came before. */
static void save_model(bool known)
{
    struct model m;
    const struct config c = open_small(&m, "xl", 1);

    for (int i = 0; known && i < m.lm.params.n; i++) {
        struct param *const p = &m.lm.params.v[i];
        const bool bias = strcmp(p->name, "out.bias") == 0;
        for (size_t k = 0; k < p->n; k++)
            p->data[k] = bias ? -1000 : 0;
        if (bias)
            p->data['a'] = logf(2), p->data['b'] = p->data['c'] = 0;
    }
    save_small(&m, &c);
}

#define EVAL "eval --ckpt model.safetensors --corpus text --seq 4 -b ref --threads 1 --pin none "

/* The row that bench eval writes of the model on `text`, in segments of 4. */
static struct perplexity_row evaluate(const char *text, const char *how)
{
    folder_put_text("text", text);
    must_bench(EVAL "--out r %s", how);
    return *(const struct perplexity_row *)must_rows("r/latest", TABLE_PERPLEXITY, 1);
}

/* Logits are floats, and so is each token's nll. */
static void expect_near(double got, double want, const char *column)
{
    cr_expect_float_eq(got, want, 1e-6 * fabs(want), "%s is %.9g, not %.9g", column, got, want);
}

/* Fifteen tokens after the first in segments aaaa abab bbcc aab of 4, 6, 8 and 4 bits: 22 bits. The
 * segments are -28/15, 2/15, 32/15 and -6/15 bits away from the mean's prediction: squares
 * 1848/225, times 4/3, is the variance of the sum. */
Test(perplexity, of_known_probabilities)
{
    const double bits = 22.0 / 15, half = 1.959964 * sqrt(1848.0 / 225 * 4 / 3) / 15;

    save_model(true);
    const struct perplexity_row row = evaluate("xaaaaababbbccaab", "--mem 4");
    NUMBERS({row.tokens_scored, 15}, {row.segments, 4});
    cr_expect_str_eq(row.unit, "byte");
    expect_near(row.bits_per_unit, bits, "bits_per_unit");
    expect_near(row.bits_per_byte, bits, "bits_per_byte, of the fifteen");
    cr_expect(row.bytes == 15 && row.words == 1, "%lld bytes, %lld words", (long long)row.bytes,
              (long long)row.words);
    expect_near(row.nll_nats_per_token, bits * 0.693147180559945, "nll_nats_per_token");
    expect_near(row.ppl, exp2(bits), "ppl");
    expect_near(row.ppl_ci95_low, exp2(bits - half), "ppl_ci95_low");
    expect_near(row.ppl_ci95_high, exp2(bits + half), "ppl_ci95_high");
    cr_expect(isnan(row.ppl_floor), "a file has no floor");
    expect_near(row.tokens_per_s, 15 / (row.eval_ns / 1e9), "tokens_per_s");
}

/* Any row: the ways to say the same agree, also where a way to count has fewer tokens than it scores,
 * or more. Tables keep nine digits. */
Test(perplexity, columns_agree)
{
    static const char text[] = "no model of random weights expects this text"; /* 44 bytes */
    static const struct {
        const char *how;
        int scored, tokens, segments;
    } ways[] = {
        {"--mem 4", 43, 43, 11},
        {"--mem 0 --batch 3", 3 * 13, 3 * 13, 4}, /* 14 bytes each */
        {"--count hf --stride 2", 3 + 20 * 2, 3 + 20 * 1, 21},
        {"--count hf --stride 3", 3 + 13 * 3 + 1, 3 + 13 * 2, 15},
    };

    save_model(false);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        const struct perplexity_row row = evaluate(text, ways[i].how);
        NUMBERS_OF(ways[i].how, {row.tokens_scored, ways[i].scored}, {row.tokens, ways[i].tokens},
                   {row.segments, ways[i].segments});
        expect_near(row.tokens_per_s, (double)row.tokens_scored / (row.eval_ns / 1e9),
                    "tokens_per_s");
        expect_near(row.nll_sum, row.nll_nats_per_token * (double)row.tokens, "nll_sum");
        expect_near(row.ppl_token, row.ppl, "ppl_token");
        if (!strstr(ways[i].how, "--batch"))
            expect_near(row.bits_per_byte, row.bits_per_unit, "bits_per_byte");
        cr_expect(row.nll_nats_per_token > 1 && row.ppl_ci95_low < row.ppl_ci95_high);
        expect_near(row.bits_per_unit, row.nll_nats_per_token / log(2), "bits_per_unit");
        expect_near(row.bits_per_unit, log2(row.ppl), "bits_per_unit");
        /* The interval is symmetric in nats. */
        expect_near(row.ppl_ci95_low * row.ppl_ci95_high, row.ppl * row.ppl, "the ends' product");
    }
}

/* f32 comes first, asked for or not, and the others say what they lose against it, also when the
 * run goes on later. */
Test(perplexity, types_are_compared_with_f32)
{
    static const char *const types[][2] = {{"f32", ""}, {"bf16", ""}, {"q8", ""},   {"q8", "q8"},
                                           {"q4", ""},  {"q4", "q8"}, {"q4_1", ""}, {"q4_1", "q8"}};
    enum { TYPES = ARRAY_LEN(types) };

    save_model(false);
    folder_put_text("text", "a small text to score");
    must_bench(EVAL "--mem 4 --out r --dtype bf16,q8,q4,q4_1 --act-dtype f32,q8");
    must_shell("mv r/2* run; head -n 3 run/perplexity.csv >cut; mv cut run/perplexity.csv; $BENCH "
               "eval --resume=run -q");
    const struct perplexity_row *const row = must_rows("run", TABLE_PERPLEXITY, TYPES);
    for (int i = 0; i < TYPES; i++) {
        TEXTS({row[i].dtype, types[i][0]}, {row[i].act_dtype, types[i][1]});
        cr_expect(i == 0 || row[i].ppl != row[i - 1].ppl);
        cr_expect(row[i].tokens_scored == row[0].tokens_scored && isfinite(row[i].ppl));
        cr_expect_eq(strstr(row[i].repro, "--dtype") != NULL, i > 0);
        if (i == 0) {
            NUMBERS({row[i].ppl_delta_pct, NAN}, {row[i].kl_nats, NAN}, {row[i].same_top_pct, NAN});
            continue;
        }
        cr_expect(row[i].kl_nats > 0 && row[i].kl_nats <= row[i].kl_p99_nats, "%s: %g", types[i][0],
                  row[i].kl_nats);
        const double same = row[i].same_top_pct / 100 * (double)row[i].tokens_scored;
        cr_expect(same > 0.5 && same < (double)row[i].tokens_scored + 0.5 &&
                      fabs(same - round(same)) < 1e-6,
                  "%g of %lld tokens", same, (long long)row[i].tokens_scored);
        cr_expect_neq(row[i].ppl, row[0].ppl);
        cr_expect_float_eq(row[i].ppl_delta_pct, 100 * (row[i].ppl / row[0].ppl - 1), 1e-9);
    }
    cr_expect_lt(row[1].kl_nats, row[2].kl_nats, "bf16 rounds less than q8");
    cr_expect_lt(row[2].kl_nats, row[4].kl_nats, "and q8 less than q4");
    cr_expect_lt(row[6].kl_nats, row[4].kl_nats, "q4_1 less than q4");
    cr_expect_lt(row[2].kl_nats, row[6].kl_nats, "and more than q8");
}

/* Each document begins with an empty memory, in both models: one and its copy diverge as the one. */
Test(perplexity, documents_are_compared_alone)
{
    double kl[2];

    save_model(false);
    for (int i = 0; i < 2; i++) {
        folder_put_text("text", i ? "a small text\na small text\n" : "a small text\n");
        must_bench(EVAL "--doc-sep line --mem 4 --out r --dtype bf16");
        const struct perplexity_row *const row = must_rows("r/latest", TABLE_PERPLEXITY, 2);
        kl[i] = row[1].kl_nats;
    }
    cr_expect_float_eq(kl[0], kl[1], 1e-8 * kl[0], "%.9g, %.9g", kl[0], kl[1]);
}

/* So do keys and values that are cached in other types; where none are, the option is refused. */
Test(perplexity, types_of_a_cache_are_compared_with_f32)
{
    static const char *const types[] = {"f32", "q8", "bf16"};

    save_model(false);
    folder_put_text("text", "a small text to score");
    bench_exits(2, "applies to cached keys and values only  -> use --mem-kind kv",
                EVAL "--mem 4 --mem-kind hidden --kv-dtype q8");
    struct ran r = must_bench(EVAL "--mem 4 --out r --format table --kv-dtype q8,bf16");
    HAS(r.out.data, "kv_dtype", "vs f32 %");
    const struct perplexity_row *const row = must_rows("r/latest", TABLE_PERPLEXITY, 3);
    for (int i = 0; i < 3; i++) {
        TEXTS({row[i].kv_dtype, types[i]}, {row[i].dtype, "f32"});
        cr_expect_eq(strstr(row[i].repro, "--kv-dtype") != NULL, i > 0);
        NUMBERS({isnan(row[i].ppl_delta_pct), i == 0}, {isnan(row[i].kl_nats), i == 0});
        if (i > 0) {
            cr_expect_neq(row[i].ppl, row[0].ppl);
            cr_expect_float_eq(row[i].ppl_delta_pct, 100 * (row[i].ppl / row[0].ppl - 1), 1e-9);
        }
    }
}

/* One row for each value of a choice that no weight depends on; the line of a row makes it again.
 */
Test(perplexity, of_one_checkpoint_at_several_thresholds)
{
    static const char *const taus[] = {"0", "0.9", "1"};
    struct model m;
    const struct config c = open_small(&m, "exit", 3);

    save_small(&m, &c);
    folder_put_text("text", "a text that is short");
    struct ran r = must_bench(EVAL "--mem 4 --exit-tau 0,0.9,1 --out r");
    HAS(r.out.data, "exit_tau");
    const struct perplexity_row *const row =
        must_rows("r/latest", TABLE_PERPLEXITY, ARRAY_LEN(taus));
    for (size_t i = 0; i < ARRAY_LEN(taus); i++)
        cr_expect_str_eq(row[i].exit_tau, taus[i]);
    NUMBERS({row[0].layers_run, 3}, {row[2].layers_run, 1});
    cr_expect_neq(row[0].ppl, row[2].ppl);
    must_bench("%s --out again", row[2].repro);
    const struct perplexity_row *const again = must_rows("again/latest", TABLE_PERPLEXITY, 1);
    cr_expect_str_eq(again->case_id, row[2].case_id);
    cr_expect_eq(again->ppl, row[2].ppl);
    /* what weights depend on, and what this model has not */
    EACH_TEXT (word, "--norm post", "--gate gru", "--exit-patience 2", "--exit-tau 2")
        bench_exits(2, NULL, EVAL "--mem 4 %s --out no", word);
}

/* ---- for people ---------------------------------------------------------------------------- */

/* What the screen has of a score of 3000 tokens, 1000 words and 6000 bytes in 2 s. */
static char *shown(const char *line, const char *unit)
{
    struct perplexity_row row = perplexity_row_empty();
    struct options o;

    MUST(parse_words(&o, line, &failure));
    text_put(row.status, sizeof(row.status), "ok");
    text_put(row.unit, sizeof(row.unit), unit);
    text_put(row.corpus, sizeof(row.corpus), "text");
    row.seq_tokens = 64;
    row.mem_tokens = 0;
    row.tokens_scored = row.tokens = 3000;
    row.words = 1000;
    row.bytes = 6000;
    row.bits_per_byte = 1.25;
    row.bits_per_unit = 2.5;
    row.ppl = 5.656854;
    row.eval_ns = 2e9;
    row.tokens_per_s = 1500;
    return PRINTED(f, perplexity_print(f, &row, &o, true, FORMAT_TABLE));
}

/* The heading's unit is that of what is scored and of the speed; bits per byte stand beside other
 * units where the bytes are known, and a floor only where there may be one. */
Test(perplexity, units_of_the_heading)
{
    const char *s = shown("eval --corpus text --tokenizer t", "token");
    HAS(s, "bits/token", "bits/byte", "1.2500", "3 000", "tokens/s", "1 500");
    cr_expect(!strstr(s, "floor"), "%s", s);
    s = shown("eval --corpus text --tokenizer t --unit word", "word");
    HAS(s, "bits/word", "bits/byte", "1 000", "words/s", "500");
    cr_expect(!strstr(s, "3 000") && !strstr(s, "1 500"), "%s", s);
    s = shown("eval --corpus text --tokenizer t --unit byte", "byte");
    HAS(s, "6 000", "bytes/s", "3 000");
    cr_expect(!strstr(s, "1.2500"), "once: %s", s);
    s = shown("eval --tokens ids", "token");
    cr_expect(!strstr(s, "bits/byte"), "of no text: %s", s);
    s = shown("eval --tokens ids --corpus text", "token");
    HAS(s, "bits/byte");
    s = shown("eval --corpus text --batch 2", "token");
    cr_expect(!strstr(s, "bits/byte"), "the end is dropped: %s", s);
}

/* A byte model whose stream is 256 in its first number, whatever it read, so that the logits of `a`,
 * `b` and `c` are 256 times these numbers, and other bytes have no probability. */
static void save_logits(const double e[3])
{
    struct model m;
    const struct config c = open_small(&m, "xl", 1);

    for (int i = 0; i < m.lm.params.n; i++)
        for (size_t k = 0; k < m.lm.params.v[i].n; k++)
            m.lm.params.v[i].data[k] = 0;
    const struct param *const bias = params_find(&m.lm.params, "out.bias");
    const struct param *const norm = params_find(&m.lm.params, "layers.0.ln2.bias");
    const struct param *const embed = params_find(&m.lm.params, "embed.weight");
    cr_assert(bias && norm && embed);
    norm->data[0] = 256;
    for (int v = 0; v < 256; v++)
        bias->data[v] = v >= 'a' && v <= 'c' ? 0 : -1000;
    for (int v = 0; v < 3; v++)
        embed->data[(size_t)('a' + v) * 8] = (float)e[v];
    save_small(&m, &c);
}

/* Sum of p ln(p / q) of two softmaxes of three logits. */
static double kl_of(const double p[3], const double q[3])
{
    const double zp = exp(p[0]) + exp(p[1]) + exp(p[2]), zq = exp(q[0]) + exp(q[1]) + exp(q[2]);
    double sum = 0;

    for (int v = 0; v < 3; v++)
        sum += exp(p[v]) / zp * (p[v] - log(zp) - q[v] + log(zq));
    return sum;
}

/* Logits beyond 256 in f32, and what bf16 makes of them: eight bits, so that between 1 and 2 it has
 * multiples of 1/128, and ties go to the even one. All are exact, what is left is the rounding of
 * logits in f32 softmaxes: 256 * 2^-24. From f32 (p) to bf16 (q), and not the other way round. */
Test(perplexity, the_divergence_is_from_f32)
{
    static const struct {
        double p[3], q[3];
    } known[] = {{{0, 0.5, 1.5}, {0, 0, 2}}, {{1, 3, 0}, {0, 4, 0}}, {{0.5, 2.5, 3.5}, {0, 2, 4}}};

    folder_put_text("text", "abcabcaabbcc");
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        const double *const p = known[i].p, *const q = known[i].q;
        save_logits((const double[]){1 + p[0] / 256, 1 + p[1] / 256, 1 + p[2] / 256});
        must_bench(EVAL "--mem 4 --out r --dtype bf16 -q");
        const struct perplexity_row *row = must_rows("r/latest", TABLE_PERPLEXITY, 2);
        row++; /* of bf16 */
        cr_assert_gt(fabs(kl_of(p, q) - kl_of(q, p)), 0.005, "tells nothing");
        cr_expect_float_eq(row->kl_nats, kl_of(p, q), 3e-5, "%zu: %g, not %g", i, row->kl_nats,
                           kl_of(p, q));
        cr_expect_float_eq(row->kl_p99_nats, kl_of(p, q), 3e-5, "all tokens alike");
        cr_expect_eq(row->same_top_pct, 100);
    }
}
