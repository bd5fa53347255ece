/* SPDX-License-Identifier: MIT
 *
 * The figures that pages show: `make figures` draws each, and this version has drawn them. */
#include "harness/cli/build.h"
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

TestSuite(figures, .init = folder_make, .fini = folder_remove, .timeout = 240);

static const char SHIPPED[] = "find docs results/reference -name '*.svg' | LC_ALL=C sort";

static char *must_say(const char *line) { return must_shell("cd $SRC; %s", line).out.data; }

Test(figures, all_are_drawn_from_rows)
{
    char *const shipped = must_say(SHIPPED);
    char *const drawn = must_say("scripts/figures.py --list | LC_ALL=C sort");

    cr_expect_gt(strlen(shipped), 100);
    cr_expect_str_eq(shipped, drawn, "a figure without a line in scripts/figures.py");
}

/* In the look of this version, and measured by a program that can be named. */
Test(figures, all_are_of_this_version)
{
    char *const shipped = must_say(SHIPPED), *rest = shipped, own[128];

    snprintf(own, sizeof(own), "<desc>drawn by bench %s</desc>", build_version);
    for (char *path; (path = strtok_r(rest, "\n", &rest));) {
        struct bytes svg = must_load(path);
        cr_expect(strstr(svg.data, own), "%s is not of version %s  -> make figures", path,
                  build_version);
        cr_expect_null(strstr(svg.data, " changed<"), "%s: of a tree that nobody has", path);
        cr_expect_null(strstr(svg.data, "GNUPLOT"), "%s has not been described", path);
    }
}

/* Pages show what there is. */
Test(figures, each_is_shown)
{
    char *const shipped = must_say(SHIPPED), *rest = shipped, line[512];

    for (char *path; (path = strtok_r(rest, "\n", &rest));) {
        const char *const name = strrchr(path, '/') + 1;
        snprintf(
            line, sizeof(line),
            "find docs results/reference README.md -name '*.md' | xargs grep -l '](.*%s)' | wc -l",
            name);
        char *const pages = must_say(line);
        cr_expect_gt(atoi(pages), 0, "no page shows %s", path);
    }
}

/* By the program, by points of the script, and of a study made of curves. */
Test(figures, the_same_rows_give_the_same_bytes)
{
    static const char *const some[] = {"crossover/latency-mem.svg", "abilities/state/state.svg",
                                       "study/gates.svg"};

    need_programs("gnuplot");
    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
        struct bytes svg[2];
        for (int k = 0; k < 2; k++) {
            const char *const path = in_folder(kept_text("%d.svg", k));
            must_shell(
                "cd $SRC; scripts/figures.py --bench \"$BENCH\" --into %s results/reference/%s",
                path, some[i]);
            svg[k] = must_load(path);
        }
        cr_expect_str_eq(svg[0].data, svg[1].data, "%s", some[i]);
    }
}
