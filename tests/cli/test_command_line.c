/* SPDX-License-Identifier: MIT
 *
 * A command line on its way to a child: every word arrives unchanged. */
#include "harness/cli/options.h"
#include "tests/support/failure.h"
#include "tests/support/random_word.h"

Test(command_line, words_arrive_as_they_were)
{
    char *argv[] = {"bench", "train", "--ckpt",   "a \"quoted\" 'name' # of a file",
                    "--seq", "8,16",  "--corpus", "\"",
                    NULL};
    struct options o, again;

    MUST(options_parse(&o, 8, argv, &failure));
    char *const line = kept(options_command_line(&o));
    cr_assert_eq(options_parse_again(&again, line, &failure), OK, "%s: %s", line, failure.msg);
    cr_assert_eq(again.argc, 8);
    for (int i = 0; i < again.argc; i++)
        cr_expect_str_eq(again.argv[i], argv[i]);
    cr_expect_str_eq(again.ckpt, argv[3]);
    cr_expect_eq(again.seq.n, 2);
    options_free(&o);
    options_free(&again);
}

/* Any bytes, also through the lines that --resume compares. */
Test(command_line, any_bytes_arrive)
{
    enum { TIMES = 300 };

    for (uint64_t seed = 0; seed < TIMES; seed++) {
        char ckpt[40], corpus[40];
        char *argv[] = {"bench", "train", "--ckpt", ckpt, "--corpus", corpus, NULL};
        struct options o, again;
        random_word(ckpt + 1, sizeof(ckpt) - 1, 2 * seed);
        random_word(corpus + 1, sizeof(corpus) - 1, 2 * seed + 1);
        ckpt[0] = corpus[0] = 'x'; /* neither empty nor a file of options */
        MUST(options_parse(&o, 6, argv, &failure));
        char *const line = kept(options_command_line(&o)), *const stored = kept(options_canonical(
                                                               &o, CONTINUED_RUN));
        cr_assert_eq(options_parse_again(&again, line, &failure), OK, "%s: %s", line, failure.msg);
        TEXTS({again.ckpt, ckpt}, {again.corpus, corpus});
        cr_expect_eq(options_resumable(&again, stored, NULL, "r", &failure), OK, "%s", failure.msg);
        char *same[] = {"bench", "train", "--resume", NULL};
        options_free(&again);
        MUST(options_parse(&again, 3, same, &failure));
        MUST(options_continue(&again, stored, CONTINUED_RUN, &failure));
        cr_expect_str_eq(again.corpus, corpus);
        again.corpus = "another";
        cr_expect_eq(options_resumable(&again, stored, NULL, "r", &failure), E_USAGE);
        options_free(&o);
        options_free(&again);
    }
}
