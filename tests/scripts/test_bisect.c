/* SPDX-License-Identifier: MIT
 *
 * scripts/bisect.sh as oracle of `git bisect run`, on a repository whose program is a script: which
 * commit is named, and what each outcome of the gate means. */
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

TestSuite(bisect, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* In folder/repo: `make` copies the file `program`, unless there is a file `broken`. */
static void make_repository(void)
{
    need_programs("git make bash");
    must_shell("set -e; cp \"$SRC/scripts/bisect.sh\" .; mkdir repo; cd repo; git init -q .; git "
               "config user.name a; git config user.email a; printf 'all:\\n\\ttest ! -e "
               "broken\\n\\tmkdir -p build/release\\n"
               "\\tcp program build/release/bench\\n' >Makefile; printf '#!/bin/sh\\necho \"$*\" "
               ">>../calls\\nexit 0\\n' >program; chmod +x program; git add .; git commit -qm "
               "good; cp program ../good");
}

/* Ten commits; the fourth cannot be built, from the seventh on the gate says that it is slower. */
Test(bisect, finds_the_planted_commit)
{
    make_repository();
    struct ran r =
        must_shell("cd repo && for i in 1 2 3 4 5 6 7 8 9 10; do echo $i >number; rm -f broken; [ "
                   "$i != 4 ] || touch broken; [ $i != 7 ] || sed -i 's/exit 0/exit 3/' program; "
                   "git add -A; git commit -qm \"number $i\"; done; git bisect start HEAD HEAD~10 "
                   ">/dev/null && git bisect run ../bisect.sh ../good --variant xl 2>&1");
    HAS(r.out.data, "is the first bad commit", "number 7");
    r = run_shell(
        "grep -c -- 'gate --exec old=../good --exec new=build/release/bench --variant xl' calls");
    int calls = 0; /* commit 7 three times, and one or more good ones */
    cr_expect(sscanf(r.out.data, "%d", &calls) == 1 && calls >= 4, "%s", r.out.data);
}

Test(bisect, what_each_gate_means)
{
    static const struct {
        const char *program;
        int code, gates;
    } rule[] = {
        {"exit 0", 0, 1},
        {"exit 3", 1, 3},
        {"[ $(wc -l <../calls) -gt 1 ] || exit 3", 125, 2}, /* slower once, then not */
        {"exit 5", 125, 1},                                 /* wrong numbers */
        {"exit 4", 125, 1},
        {"exit 77", 125, 1},
        {"exit 2", 128, 1}, /* bad usage: git stops */
        {"exit 130", 128, 1},
    };

    make_repository();
    for (size_t i = 0; i < ARRAY_LEN(rule); i++) {
        struct ran r = run_shell(
            "cd repo && : >../calls && printf '#!/bin/sh\\necho x >>../calls\\n%%s\\n' '%s' "
            ">program && ../bisect.sh ../good >/dev/null; code=$?; echo $code $(wc -l <../calls)",
            rule[i].program);
        int code = -1, asked = -1;
        cr_expect_eq(sscanf(r.out.data, "%d %d", &code, &asked), 2, "%s", r.out.data);
        cr_expect(code == rule[i].code && asked == rule[i].gates, "%s: code %d after %d gates: %s",
                  rule[i].program, code, asked, r.err.data);
    }
    shell_exits(125, NULL, "cd repo && touch broken && ../bisect.sh ../good >/dev/null");
    shell_exits(128, "no program \"../none\"  -> bisect.sh GOOD",
                "cd repo && ../bisect.sh ../none");
}
