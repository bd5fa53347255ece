/* SPDX-License-Identifier: MIT
 *
 * A command line on its way to a child: every word arrives unchanged. */
#include "harness/cli/options.h"

#include <criterion/criterion.h>
#include <stdlib.h>

Test(command_line, words_arrive_as_they_were)
{
    char *argv[] = {"bench", "train", "--ckpt",   "a \"quoted\" 'name' # of a file",
                    "--seq", "8,16",  "--corpus", "\"",
                    NULL};
    struct options o, again;
    struct err e = {""};
    char *line = NULL;

    cr_assert_eq(options_parse(&o, 8, argv, &e), OK, "%s", e.msg);
    cr_assert_eq(options_command_line(&line, &o, &e), OK, "%s", e.msg);
    cr_assert_eq(options_parse_again(&again, line, &e), OK, "%s: %s", line, e.msg);
    cr_assert_eq(again.argc, 8);
    for (int i = 0; i < again.argc; i++)
        cr_expect_str_eq(again.argv[i], argv[i]);
    cr_expect_str_eq(again.ckpt, argv[3]);
    cr_expect_eq(again.seq.n, 2);
    free(line);
    options_free(&o);
    options_free(&again);
}

Test(command_line, a_line_break_fits_into_no_line)
{
    char *argv[] = {"bench", "train", "--ckpt", "a\nb", NULL};
    struct options o;
    struct err e = {""};
    char *line = NULL;

    cr_assert_eq(options_parse(&o, 4, argv, &e), OK, "%s", e.msg);
    cr_expect_eq(options_command_line(&line, &o, &e), E_USAGE);
    free(line);
    options_free(&o);
}
