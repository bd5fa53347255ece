/* SPDX-License-Identifier: MIT
 *
 * Files with awkward names through whole runs: the file that is named is the one that is read, its
 * name comes back from the tables, and its row can be repeated. */
#include "tests/support/random_word.h"
#include "tests/support/tmp_folder.h"
#include "tests/table/must_rows.h"

#include "harness/cli/option_words.h"
#include "harness/table/runjson.h"

enum { TEXT = 600 };
static const char TRAIN[] =
    "train --variant xl --layers 1 --d-model 16 --heads 1 --seq 4 --mem 4 --batch 1 --steps 1 "
    "--threads 1 --backend ref --corpus plain --ckpt m.safetensors";

/* A text of one byte value: other texts have other scores. */
static void write_text(const char *name, int byte)
{
    char text[TEXT];

    memset(text, byte, TEXT);
    folder_put(name, text, TEXT);
}

static void make_files(void)
{
    folder_make();
    write_text("plain", 'p');
    must_bench("%s", TRAIN);
}

TestSuite(names, .init = make_files, .fini = folder_remove, .timeout = 120);

/* `bench eval` of a text as a user of bash asks for it. */
static struct ran score_again(const char *corpus, const char *more)
{
    FILE *const f = text_begin();

    fputs("exec \"$BENCH\" eval --ckpt m.safetensors --seq 8 --mem 0 --threads 1 --backend ref "
          "--out r -q --corpus=",
          f);
    word_print(f, corpus, '\'');
    fputs(more, f);
    folder_put_text("script", text_end(f));
    return run_shell("bash ./script");
}

static struct perplexity_row score(const char *corpus)
{
    struct ran r = score_again(corpus, "");

    expect_exit(&r, 0);
    struct rows rows = must_read("r/latest", TABLE_PERPLEXITY);
    cr_assert_eq(rows.n, 1);
    return *(struct perplexity_row *)rows.row;
}

/* The words of a column. */
static void expect_word(const char *line, int at, const char *word)
{
    struct options o = {0};
    struct words w = {0};

    cr_assert_eq(words_split(&w, &o, line, NULL, 0, &failure), OK, "%s: %s", line, failure.msg);
    cr_assert_lt(at, w.n);
    const char *const text = w.v[at].text, *const equals =
                                               strncmp(text, "--", 2) ? NULL : strchr(text, '=');
    cr_expect_str_eq(equals ? equals + 1 : text, word, "%s", line);
    words_free(&w);
    options_free(&o);
}

Test(names, the_file_that_is_named_is_scored)
{
    const double plain = score("plain").nll_nats_per_token;

    write_text("ab.txt", 'p'); /* what a\"b\".txt would be without its quotes */
    EACH_TEXT (awkward, "a\"b\".txt", "a\"b", "new\nline", "\xff\xfe", "tab\tcr\r", "-x", "@x",
               "#x", "a b'c", "$HOME", "\\n", "\033]0;x\a", "$'x'") {
        char *const column = kept(text_exact(awkward));
        write_text(awkward, 'q');
        const struct perplexity_row row = score(awkward);
        TEXTS({row.status, "ok"}, {row.corpus, column});
        cr_expect_neq(row.nll_nats_per_token, plain);
        if (*awkward == '@')
            HAS(row.repro, " --corpus=\"@x\" ");
        else
            expect_word(row.repro, 4, awkward);
        struct rows env = must_read("r/latest", TABLE_ENV);
        expect_word(((struct env_row *)env.row)->argv, 15, awkward);
        must_bench("rerun %s --out r -q", row.case_id);
        const struct perplexity_row *const second = must_rows("r/latest", TABLE_PERPLEXITY, 1);
        cr_expect_str_neq(second->run_id, row.run_id);
        cr_expect_str_eq(second->case_id, row.case_id);
        cr_expect_eq(second->nll_nats_per_token, row.nll_nats_per_token);
    }
}

Test(names, random_ones)
{
    enum { TIMES = 12 };

    for (uint64_t seed = 0; seed < TIMES; seed++) {
        char name[24];
        random_word(name, sizeof(name), seed);
        for (char *c = name; *c; c++)
            *c = *c == '/' ? '_' : *c;
        if (!*name || strcmp(name, "plain") == 0)
            continue;
        char *const column = kept(text_exact(name));
        write_text(name, 'q');
        const struct perplexity_row row = score(name);
        TEXTS({row.corpus, column}, {row.status, "ok"});
    }
}

/* A run of it is continued. */
Test(names, are_compared_by_resume)
{
    write_text("new\nline\xff", 'q');
    score("new\nline\xff");
    struct ran again = score_again("new\nline\xff", " --resume");
    expect_exit(&again, 0);
    bench_exits(2, NULL,
                "eval --ckpt m.safetensors --seq 8 --mem 0 --threads 1 --backend ref --out r -q "
                "--resume --corpus plain");
}

/* Paths whose line would not fit into a row are refused before anything is written. */
Test(names, too_long_ones_are_refused)
{
    shell_exits(2, NULL,
                "d=$(printf '%%0200d' 0); mkdir -p $d/$d/$d/$d/$d/$d && cp plain "
                "$d/$d/$d/$d/$d/$d/t && exec \"$BENCH\" eval --ckpt m.safetensors --seq 8 --mem 0 "
                "--threads 1 --backend ref --out r -q --corpus $d/$d/$d/$d/$d/$d/t");
    must_shell("test ! -e r");
}
