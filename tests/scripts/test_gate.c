/* SPDX-License-Identifier: MIT
 *
 * scripts/gate.sh on a repository whose program is a script: what it builds, keeps and says. */
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

TestSuite(gate_script, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* In folder/repo, six commits: `make` notes where it ran, and its program prints its words. */
static void make_repository(void)
{
    static const char make[] =
        "set -e; mkdir repo; cd repo; git init -q .; git config user.name a; git config user.email "
        "a; "
        "mkdir scripts; cp \"%s/scripts/gate.sh\" scripts; echo build >.gitignore; "
        "printf 'all:\\n\\tpwd >>%s/made\\n\\tmkdir -p build/release\\n"
        "\\tcp program build/release/bench\\n' >Makefile; "
        "printf '#!/bin/sh\\necho \"$*\"\\nexit 3\\n' >program; chmod +x program; "
        "for i in 1 2 3 4 5 6; do echo $i >number; git add .; git commit -qm $i; done";
    char line[4 * PATH_MAX], here[PATH_MAX];

    if (!realpath(".", here) || access("scripts/gate.sh", R_OK) != 0)
        cr_skip_test("run from the top of the repository");
    struct ran has = run_shell(folder, "git --version && make --version && bash --version");
    const bool can = has.code == 0;
    ran_free(&has);
    if (!can)
        cr_skip_test("git, make and bash are needed");
    snprintf(line, sizeof(line), make, here, folder);
    shell_exits(folder, 0, NULL, line);
}

/* Both sides are named; the old one stays, with those of the two bases before it. */
Test(gate_script, names_both_and_keeps_the_old_builds)
{
    static const int bases[] = {1, 1, 2, 3, 4};

    make_repository();
    for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
        struct ran r = run_shell(folder, bases[i] == 3 ? "echo more >>repo/number" : "true");
        char line[512], name[16];
        ran_free(&r);
        snprintf(line, sizeof(line), "cd repo; git rev-parse --short=8 HEAD~%d", bases[i]);
        r = run_shell(folder, line);
        cr_assert_eq(sscanf(r.out.data, "%15s", name), 1);
        ran_free(&r);
        snprintf(line, sizeof(line), "cd repo; scripts/gate.sh HEAD~%d --variant xl", bases[i]);
        r = run_shell(folder, line);
        expect_exit(&r, 3);
        snprintf(line, sizeof(line), "gate: old %s, new ", name);
        cr_expect(strstr(r.out.data, line), "%s: %s", line, r.out.data);
        cr_expect_eq(strstr(r.out.data, " modified\n") != NULL, bases[i] >= 3, "%s", r.out.data);
        cr_expect_eq(strstr(r.out.data, "is built first") != NULL, i != 1, "%s", r.out.data);
        snprintf(line, sizeof(line),
                 "gate --exec old=build/gate-%s/build/release/bench --exec new=build/release/bench "
                 "@harness/sweeps/gate.args --variant xl\n",
                 name);
        cr_expect(strstr(r.out.data, line), "%s: %s", line, r.out.data);
        ran_free(&r);
    }
    struct ran r = run_shell(
        folder, "cd repo; ls -d build/gate-* | wc -l; for i in 2 3 4; do "
                "test -x build/gate-$(git rev-parse --short=8 "
                "HEAD~$i)/build/release/bench || echo no $i; done; git worktree list | wc -l");
    cr_expect_str_eq(r.out.data, "3\n4\n");
    ran_free(&r);
}

/* A word that is no commit, and programs that are there. */
Test(gate_script, what_it_is_told)
{
    make_repository();
    shell_exits(folder, 2, "no commit nope  -> ", "cd repo; scripts/gate.sh nope");
    struct ran r =
        run_shell(folder, "cd repo; OLD=./program NEW=./program scripts/gate.sh --variant xl");
    expect_exit(&r, 3);
    cr_expect(strstr(r.out.data,
                     "gate: old ./program, new ./program\ngate --exec old=./program --exec "
                     "new=./program @harness/sweeps/gate.args --variant xl\n"),
              "%s", r.out.data);
    ran_free(&r);
    r = run_shell(folder, "cd repo; scripts/gate.sh --help; test ! -e build");
    expect_exit(&r, 0);
    cr_expect(strstr(r.out.data, "OLD=PROGRAM NEW=PROGRAM"), "%s", r.out.data);
    ran_free(&r);
}
