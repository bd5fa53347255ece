/* SPDX-License-Identifier: MIT
 *
 * What commands print on a terminal fits it: no line of a list, of a diagnosis or of scores is
 * wider than 80 columns, and what they say is still there. */
#include "tests/support/pty.h"

TestSuite(widths, .init = folder_make, .fini = folder_remove, .timeout = 120);

static void run_words(void *arg)
{
    execl("/bin/sh", "sh", "-c", kept_text("exec \"$BENCH\" %s", (const char *)arg), (char *)NULL);
    _exit(99);
}

static struct view v; /* of the last */

static void expect_fits(const char *words)
{
    watch(&v, ON_STDOUT, 80, run_words, (void *)words);
    cr_expect_eq(v.code, 0, "%s: %s%s", words, v.screen, v.file);
    cr_expect_leq(widest(v.screen), 80, "%s: %s", words, v.screen);
}

Test(widths, lists_fit)
{
    static char lists[][64] = {"list variants", "list backends", "list columns",
                               "list cases --variant xl,realformer-mean --seq 8",
                               "list cases --variant xl,linear --workload attn --seq 8"};
    static const char *const says[] = {" realformer-mean ", "\nonednn ", "\nlatency ",
                                       "realformer-mean ", "linear "};

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        expect_fits(lists[i]);
        cr_expect(strstr(v.screen, says[i]), "%s: %s", lists[i], v.screen);
    }
}

/* Pages of help also fit a narrow terminal. */
Test(widths, help_fits)
{
    EACH_TEXT (page, "--help", "sweep --help", "train --help", "gate --help", "plot --help",
               "study --help") {
        watch(&v, ON_STDOUT, 60, run_words, (void *)page);
        cr_expect_leq(widest(v.screen), 60, "%s: %s", page, v.screen);
        HAS(v.screen, "Usage: bench");
    }
}

Test(widths, one_variant_of_the_list)
{
    struct ran r =
        must_bench("list variants --variant roformer,xl --format csv --columns variant,alias");
    cr_expect_str_eq(r.out.data, "variant,alias\nrope,roformer\nxl,\n");
}

/* The word after `list variants`: a family, with or without "family:", or names. */
Test(widths, variants_of_a_word)
{
    static const char *const words[][2] = {{"sparse", "--variant family:sparse"},
                                           {"family:sparse", "--variant family:sparse"},
                                           {"base", "--variant base"},
                                           {"roformer,xl", "--variant rope,xl"}};
    static const char *const columns = "--format csv --columns family,variant";

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        struct ran r = must_bench("list variants %s %s", words[i][0], columns);
        struct ran same = run_bench("list variants %s %s", words[i][1], columns);
        cr_expect_str_eq(r.out.data, same.out.data, "%s", words[i][0]);
        cr_expect(i > 1 || (strstr(r.out.data, "\nsparse,") && !strstr(r.out.data, "\nfull,")),
                  "%s", r.out.data);
    }
}

Test(widths, a_diagnosis_fits)
{
    static char words[] = "doctor --threads 1 || true";

    watch(&v, ON_STDOUT, 60, run_words, words);
    cr_expect_leq(widest(v.screen), 60, "%s", v.screen);
    expect_fits(words);
    HAS(v.screen, "A/A test", "fix");
}

/* What was lost and by how much comes before how it was trained. */
Test(widths, a_study_fits)
{
    char *const study = kept(realpath("results/reference/recipes", NULL));

    cr_assert(study);
    const char *const words = kept_text("study %s", study);
    watch(&v, ON_STDOUT, 60, run_words, (void *)words);
    cr_expect_leq(widest(v.screen), 60, "%s", v.screen);
    expect_fits(words);
    HAS(v.screen, " test_nats ", " diff_nats ", " verdict");
    cr_expect_not(strstr(v.screen, " lr "), "%s", v.screen);
}

/* Bits of the checkpoint's own unit, and the floor of its source. One length unless several are
 * asked for. */
Test(widths, scores_fit)
{
    char *const model = kept(realpath("results/models/xl.safetensors", NULL));

    cr_assert(model);
    expect_fits(kept_text("eval --ckpt %s --mem 0,64 --bytes 2Ki --threads 1 --out r", model));
    HAS(v.screen, " bits/symbol ", " floor ppl/symbol ");
    cr_expect_eq(count_in(v.screen, "\n"), 4, "two lengths of context: %s", v.screen);
}
