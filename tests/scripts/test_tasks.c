/* SPDX-License-Identifier: MIT
 *
 * The ten tasks of docs/tasks.md: their commands work, with tiny sizes, and they are those of the
 * recorded text. */
#include "tests/support/program.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"
#include <sys/wait.h>

enum { TASKS = 10 };

TestSuite(tasks, .init = folder_make, .fini = folder_remove, .timeout = 600);

Test(tasks, commands_are_documented)
{
    struct ran r = must_shell("$SRC/scripts/tasks.sh --list");
    struct bytes recorded = must_load("docs/tasks.md");
    int n = 0;

    for (char *line = strtok(r.out.data, "\n"); line; line = strtok(NULL, "\n"), n++) {
        const char *const text = strncmp(line, "# ", 2) == 0 ? line + 2 : line;
        cr_expect(strstr(recorded.data, text), "docs/tasks.md has no: %s", text);
    }
    cr_expect_eq(n, 2 * TASKS);
}

/* Scores do not depend on the machine, but for the rounding of their last places: what a page shows of them is what the
 * program prints now. The filter leaves of both texts the numbers that no clock decides. */
static const char no_times[] = "awk '/^ *[0-9]+ +[0-9]+ +[0-9.]+ +[[]/ { gsub(/[][]/, \"\"); print "
                               "$1, $2, $3, $4, $5, $6, $7 } "
                               "$2 ~ /^(avx|neon|onednn|openblas)/ { for (i = 3; i <= NF; i++) "
                               "if ($i ~ /^[0-9]+[.][0-9][0-9][0-9]$/) print $1, $i } "
                               "/ at best$/ { print $(NF - 2) }' | sort -u";

/* Are these the same words, or numbers that differ by one in the last place? */
static bool same_word(const char *old, const char *new)
{
    char *end;
    const char *const point = strchr(old, '.');
    const double place = point ? pow(10, -(double)strlen(point + 1)) : 0,
                 number = strtod(new, &end);

    return end == new ? strcmp(old, new) == 0
                      : fabs(strtod(old, NULL) - number) < 1.5 * place + 1e-9;
}

/* The number of words; the first that differs fails the test. */
static int same_words(const char *page, char *old, char *new)
{
    char *old_at, *new_at;
    const char *was = strtok_r(old, " \n", &old_at), *is = strtok_r(new, " \n", &new_at);
    int n = 0;

    for (; was && is && same_word(was, is); n++) {
        was = strtok_r(NULL, " \n", &old_at);
        is = strtok_r(NULL, " \n", &new_at);
    }
    cr_expect(!was && !is, "%s says %s, the program %s  -> record it again", page,
              was ? was : "nothing", is ? is : "nothing");
    return n;
}

Test(tasks, scores_on_pages_are_the_programs)
{
    static const struct {
        const char *page, *program;
        int words;
    } shown[] = {
        {"README.md",
         "env -u BENCH_CKPT \"$BENCH\" --quick --format table --max-time 0.003 --min-samples 3 "
         "--warmup-ms 0 --out "
         "\"$TMP\"",
         9},
        {"docs/tasks.md", "scripts/tasks.sh --only 10 \"$BENCH\"", 21},
    };

    SKIP_SANITIZED("the scores have tests of their own");
    setenv("TMP", folder, 1);
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        struct ran page = run_shell("cat $SRC/%s | %s", shown[i].page, no_times);
        struct ran now = run_shell("cd $SRC; command -v script >/dev/null || exit 99; %s | %s",
                                   shown[i].program, no_times);
        if (now.code == 99)
            cr_skip_test("script is not installed");
        cr_expect_eq(same_words(shown[i].page, page.out.data, now.out.data), shown[i].words, "%s",
                     now.err.data);
    }
}

/* Longer than run_shell waits. */
Test(tasks, commands_work)
{
    static const char line[] = "command -v gnuplot >/dev/null && command -v script >/dev/null || "
                               "exit 99; scripts/tasks.sh --tiny \"$BENCH\" 2>&1";
    char text[512];
    int n = 0;

    SKIP_SANITIZED("the commands have tests of their own, the script is what is tested");
    FILE *const f = text_begin(), *const p = popen(line, "r"); // NOLINT: own words
    cr_assert(p);
    while (fgets(text, sizeof(text), p)) {
        fputs(text, f);
        n += strncmp(text, "## ", 3) == 0;
    }
    const int how = pclose(p), code = WIFEXITED(how) ? WEXITSTATUS(how) : -1;
    const char *const said = text_end(f);
    if (code == 99)
        cr_skip_test("gnuplot or script is not installed");
    NUMBERS_OF(said, {code, 0}, {n, TASKS});
}
