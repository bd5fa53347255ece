/* SPDX-License-Identifier: MIT
 *
 * The ten tasks of docs/tasks.md: their commands work, with tiny sizes, and they are those of the
 * recorded text. */
#include "tests/support/program.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"

#include <string.h>
#include <sys/wait.h>

enum { TASKS = 10 };

TestSuite(tasks, .init = folder_make, .fini = folder_remove, .timeout = 600);

static struct bytes must_load(const char *path)
{
    struct bytes b;
    struct err e;

    cr_assert_eq(file_read(&b, path, &e), OK, "%s", e.msg);
    return b;
}

Test(tasks, commands_are_documented)
{
    struct ran r = run_shell(".", "scripts/tasks.sh --list");
    struct bytes recorded = must_load("docs/tasks.md");
    int n = 0;

    expect_exit(&r, 0);
    for (char *line = strtok(r.out.data, "\n"); line; line = strtok(NULL, "\n"), n++) {
        const char *const text = strncmp(line, "# ", 2) == 0 ? line + 2 : line;
        cr_expect(strstr(recorded.data, text), "docs/tasks.md has no: %s", text);
    }
    cr_expect_eq(n, 2 * TASKS);
    free(recorded.data);
    ran_free(&r);
}

/* Longer than run_shell waits. */
Test(tasks, commands_work)
{
    static const char line[] = "command -v gnuplot >/dev/null && command -v script >/dev/null || "
                               "exit 99; scripts/tasks.sh --tiny \"$BENCH\" 2>&1";
    struct bytes said = {0};
    char text[512];
    int n = 0;

    if (SANITIZED)
        cr_skip_test("the commands have tests of their own, the script is what is tested");
    FILE *const f = bytes_open(&said, NULL), *const p = popen(line, "r"); // NOLINT: own words
    cr_assert(f && p);
    while (fgets(text, sizeof(text), p)) {
        fputs(text, f);
        n += strncmp(text, "## ", 3) == 0;
    }
    const int how = pclose(p), code = WIFEXITED(how) ? WEXITSTATUS(how) : -1;
    cr_assert_eq(bytes_close(f, &said, NULL), OK);
    if (code == 99)
        cr_skip_test("gnuplot or script is not installed");
    cr_expect_eq(code, 0, "%s", said.data);
    cr_expect_eq(n, TASKS, "%s", said.data);
    free(said.data);
}
