/* SPDX-License-Identifier: MIT
 *
 * Rows of perplexity: what bench eval writes of a model whose every probability is known, and that
 * the columns of a row agree with each other. */
#include "tests/support/model.h"
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"
#include "variants/model/checkpoint.h"

TestSuite(perplexity, .init = folder_make, .fini = folder_remove, .timeout = 60);

/* A byte model of width 8 in the folder, its weights from the seed, or nothing but the bias of the
 * output: `a` has probability 1/2, `b` and `c` 1/4 each, whatever came before. */
static void save_model(bool known)
{
    struct config c = config_default(variant_find("xl"), 8, 2, 4, 12, 1, 256);
    const struct provenance from = {.unit = "byte"};
    struct model m;
    struct err e = {""};
    char path[FILE_PATH];

    c.max_seq = 4;
    model_open(&m, &c, "ref", 1, MEM_NONE, (struct extent){1, 4, 0});
    for (int i = 0; known && i < m.lm.params.n; i++) {
        struct param *const p = &m.lm.params.v[i];
        const bool bias = strcmp(p->name, "out.bias") == 0;
        for (size_t k = 0; k < p->n; k++)
            p->data[k] = bias ? -1000 : 0;
        if (bias)
            p->data['a'] = logf(2), p->data['b'] = p->data['c'] = 0;
    }
    folder_path(path, "model.safetensors");
    cr_assert_eq(checkpoint_save(path, &c, &m.lm.params, &from, &e), OK, "%s", e.msg);
    model_close(&m);
}

/* The row that bench eval writes of the model on `text`, in segments of 4. */
static struct perplexity_row evaluate(const char *text)
{
    char path[FILE_PATH];
    struct ran r;

    folder_path(path, "text");
    FILE *f = fopen(path, "w");
    cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
    r = run_bench(folder, "eval --ckpt model.safetensors --corpus text --seq 4 --mem 4 -b ref "
                          "--threads 1 --pin none --out r");
    expect_exit(&r, 0);
    ran_free(&r);
    r = run_shell(folder, "mv r/2* run");
    expect_exit(&r, 0);
    ran_free(&r);
    struct rows rows = must_read(folder, "run", TABLE_PERPLEXITY);
    cr_assert_eq(rows.n, 1);
    const struct perplexity_row row = *(const struct perplexity_row *)rows.row;
    rows_free(&rows);
    return row;
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
    const struct perplexity_row row = evaluate("xaaaaababbbccaab");
    cr_expect_eq(row.tokens_scored, 15);
    cr_expect_eq(row.segments, 4);
    cr_expect_str_eq(row.unit, "byte");
    expect_near(row.bits_per_unit, bits, "bits_per_unit");
    expect_near(row.nll_nats_per_token, bits * 0.693147180559945, "nll_nats_per_token");
    expect_near(row.ppl, exp2(bits), "ppl");
    expect_near(row.ppl_ci95_low, exp2(bits - half), "ppl_ci95_low");
    expect_near(row.ppl_ci95_high, exp2(bits + half), "ppl_ci95_high");
    cr_expect(isnan(row.ppl_floor), "a file has no floor");
    expect_near(row.tokens_per_s, 15 / (row.eval_ns / 1e9), "tokens_per_s");
}

/* Any row: the three ways to say the same agree. Tables keep nine digits. */
Test(perplexity, columns_agree)
{
    save_model(false);
    const struct perplexity_row row = evaluate("no model of random weights expects this text");
    cr_expect(row.nll_nats_per_token > 1 && row.ppl_ci95_low < row.ppl_ci95_high);
    expect_near(row.bits_per_unit, row.nll_nats_per_token / log(2), "bits_per_unit");
    expect_near(row.bits_per_unit, log2(row.ppl), "bits_per_unit");
    /* The interval is symmetric in nats. */
    expect_near(row.ppl_ci95_low * row.ppl_ci95_high, row.ppl * row.ppl, "the ends' product");
}
