/* SPDX-License-Identifier: MIT
 *
 * scripts/gate.sh on a repository whose program is a script: what it builds, keeps and says. */
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

TestSuite(gate_script, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* In folder/repo, eight commits: `make` notes where it ran, and its program prints its words. */
static void make_repository(void)
{
    need_programs("git make bash");
    must_shell(
        "set -e; mkdir repo; cd repo; git init -q .; git config user.name a; git config user.email "
        "a; mkdir scripts; cp \"$SRC/scripts/gate.sh\" \"$SRC/scripts/relink.sh\" scripts; echo "
        "build >.gitignore; printf 'all:\\n\\tpwd >>%%s/made\\n\\tmkdir -p build/release\\n"
        "\\tsh link a.o b.o c.o d.o -o build/release/bench\\n' $OLDPWD >Makefile; printf 'set "
        "-e\\nfor to; do :; done\\ncp program $to\\necho \"# $*\" >>$to\\n' >link; printf "
        "'#!/bin/sh\\ncase $1 in --version) echo bench 1; exit;; esac\\n"
        "echo \"$*\"\\nexit 3\\n' >program; chmod +x program; for i in 1 2 3 4 5 6 7 8; do echo $i "
        ">number; git add .; git commit -qm $i; done");
}

/* Both sides are named; the old one stays, with those of the four bases before it. */
Test(gate_script, names_both_and_keeps_the_old_builds)
{
    static const int bases[] = {1, 1, 2, 3, 4, 5, 6};

    make_repository();
    for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
        if (bases[i] == 3)
            must_shell("echo more >>repo/number");
        char line[512], name[16];
        struct ran r = run_shell("cd repo; git rev-parse --short=8 HEAD~%d", bases[i]);
        cr_assert_eq(sscanf(r.out.data, "%15s", name), 1);
        r = shell_exits(3, NULL, "cd repo; scripts/gate.sh HEAD~%d --variant xl", bases[i]);
        snprintf(line, sizeof(line), "gate: old %s, new ", name);
        cr_expect(strstr(r.out.data, line), "%s: %s", line, r.out.data);
        cr_expect_eq(strstr(r.out.data, " modified\n") != NULL, bases[i] >= 3, "%s", r.out.data);
        cr_expect_eq(strstr(r.out.data, "is built first") != NULL, i != 1, "%s", r.out.data);
        snprintf(line, sizeof(line),
                 "gate --exec old=build/gate-%s/build/release/bench --exec new=build/release/bench "
                 "--exec again=build/gate-%s/build/release/again @harness/sweeps/gate.args "
                 "--variant xl\n",
                 name, name);
        cr_expect(strstr(r.out.data, line), "%s: %s", line, r.out.data);
        snprintf(line, sizeof(line), "\ngate: old %s, new ", name);
        const char *const end = strstr(r.out.data, line);
        cr_assert(end, "%s: %s", line, r.out.data);
        HAS(end, bases[i] >= 3 ? " modified: exit code 3; building took "
                               : ": exit code 3; building took ");
        HAS(end, " s, measuring ");
    }
    struct ran r = run_shell("cd repo; ls -d build/gate-* | wc -l; for i in 2 3 4 5 6; do test -x "
                             "build/gate-$(git rev-parse --short=8 HEAD~$i)/build/release/bench || "
                             "echo no $i; done; git worktree list | wc -l");
    cr_expect_str_eq(r.out.data, "5\n6\n");
    /* linked once more: the same objects in another order */
    must_shell("cd $(ls -d repo/build/gate-* | head -n 1)/build/release; for f in bench again; do "
               "tail -n 1 $f | tr ' ' '\\n' | grep '[.]o$' >$f.o; sort $f.o >$f.all; done; cmp "
               "bench.all again.all && ! cmp -s bench.o again.o");
}

/* A word that is no commit, and programs that are there. */
Test(gate_script, what_it_is_told)
{
    make_repository();
    shell_exits(2, "no commit nope  -> ", "cd repo; scripts/gate.sh nope");
    struct ran r =
        shell_exits(3, NULL, "cd repo; OLD=./program NEW=./program scripts/gate.sh --variant xl");
    HAS(r.out.data, "gate: old ./program, new ./program\ngate --exec old=./program --exec "
                    "new=./program @harness/sweeps/gate.args --variant xl\n");
    shell_exits(7, "old is not a bench (/bin/echo --version",
                "cd repo; OLD=/bin/echo NEW=./program scripts/gate.sh");
    shell_exits(
        7, "new is not a bench (./nothing --version",
        "cd repo; NEW=./nothing scripts/gate.sh HEAD~1; code=$?; ! test -e build && exit $code");
    r = must_shell("cd repo; scripts/gate.sh --help; test ! -e build");
    HAS(r.out.data, "OLD=PROGRAM NEW=PROGRAM");
    shell_exits(7, "new does not build  -> ",
                "cd repo; mv program ../saved; OLD=../saved scripts/gate.sh");
    shell_exits(
        7, "old does not build  -> ",
        "cd repo; git rm -q program; git commit -qm none; NEW=../saved scripts/gate.sh HEAD");
}

/* action.yml as CI runs it: its inputs become the step's environment, and its line is run in the checkout. */
Test(gate_script, the_action)
{
    static const struct {
        const char *old, *new, *plain, *args;
        int code;
        const char *prints, *says;
    } step[] = {
        {"true", "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done", "true",
         "--min-samples 6 --block-ms 1 --warmup-ms 0 --format csv", 3, "whole run,old,new,", ""},
        {"./nothing x", "true", "true", "", 1, "", "old ended with exit code 127"},
        {"HEAD~1", "", "false", "--variant xl", 3, "/again @harness/sweeps/gate.args --summary ",
         ""},
        {"/bin/true", "", "false", "--variant xl", 7, "", "old is not a bench"},
        {"nope", "", "false", "", 2, "", "no commit nope"},
    };

    make_repository();
    for (size_t i = 0; i < ARRAY_LEN(step); i++) {
        const struct ran r = shell_exits(
            step[i].code, step[i].says,
            "cd repo; export GITHUB_ACTION_PATH=\"$SRC\" GITHUB_STEP_SUMMARY=\"$PWD/../summary\" "
            "GITHUB_OUTPUT=\"$PWD/../output\" old='%s' new='%s' plain=%s args='%s'; sed -n 's/^ "
            "*\\(GATE_[A-Z]*\\): ${{ inputs[.]\\([a-z]*\\) }}$/export \\1=\"$\\2\"/p; s/^ *run: "
            ".\\(.*\\).$/\\1/p' \"$GITHUB_ACTION_PATH/action.yml\" >../step; mkdir -p ../bin; ln "
            "-sf \"$BENCH\" ../bin/bench; PATH=\"$PWD/../bin:$PATH\" bash -e ../step",
            step[i].old, step[i].new, step[i].plain, step[i].args);
        cr_expect(strstr(r.out.data, step[i].prints), "%zu: %s", i, r.out.data);
        const struct ran left = run_shell("tail -n 1 output; grep -c '^## bench gate' summary");
        const char *const line = kept_text("code=%d\n", step[i].code);
        cr_expect(strstr(left.out.data, line), "%zu: %s", i, left.out.data);
        cr_expect(i > 0 || strstr(left.out.data, "\n1\n"), "%s", left.out.data);
    }
}
