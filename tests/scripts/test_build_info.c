/* SPDX-License-Identifier: MIT
 *
 * What scripts/build_info.sh says of the commit. */
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

TestSuite(build_info, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* Commits until the seven digits of one read as a number; then what the script calls it. */
Test(build_info, commits_are_no_numbers)
{
    char all[64], name[64];

    need_programs("git cc");
    struct ran r = must_shell(
        "set -e; mkdir scripts; cp \"$SRC/scripts/build_info.sh\" scripts; git init -q .; export "
        "GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a; export "
        "GIT_AUTHOR_DATE='@1 +0000' GIT_COMMITTER_DATE='@1 +0000'; tree=$(git write-tree); i=0; "
        "while :; do i=$((i + 1)); c=$(git commit-tree -m \"$i\" $tree); case $(echo $c | cut "
        "-c1-7) in *[a-df]*) ;; *) break ;; esac; done; git update-ref HEAD $c; echo $c; sh "
        "scripts/build_info.sh cc -O2 | sed -n 's/.*BUILD_COMMIT \"\\(.*\\)\"/\\1/p'");
    cr_assert_eq(sscanf(r.out.data, "%63s %63s", all, name), 2, "%s", r.out.data);
    cr_expect_geq(strcspn(all, "abcdf"), 7u);
    cr_expect_eq(strncmp(all, name, strlen(name)), 0, "%s of %s", name, all);
    cr_expect(strpbrk(name, "abcdf"), "%s reads as a number", name);
}
