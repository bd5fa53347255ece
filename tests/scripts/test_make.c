/* SPDX-License-Identifier: MIT
 *
 * What make says while it compiles, in a tree of a few files: the number of each object among those that
 * it makes now, for whatever reason. */
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

TestSuite(make, .init = folder_make, .fini = folder_remove, .timeout = 120);

static void make_tree(void)
{
    must_shell(
        "set -e; mkdir -p scripts harness tests/preload variants/backends/simd; cp $SRC/Makefile "
        ".; cp $SRC/scripts/build_info.sh scripts; git init -q .; echo 'typedef int nothing;' | "
        "tee variants/backends/simd/gemm_bf16.isa.c >variants/backends/simd/gemm_int8.isa.c; echo "
        "'int one(void);' >harness/one.h; printf "
        "'#include \"harness/one.h\"\\nint one(void) { return 1; }\\n' >harness/one.c; printf "
        "'#include \"harness/one.h\"\\nint main(void) { return one(); }\\n' >harness/main.c");
}

#define AGED "find . -type f -exec touch -d '1 hour ago' {} +; "

/* Every "cc" line has a number of its own, and that of all; returns the latter. They may come in any
 * order. */
static int counted(const char *words)
{
    struct ran r = must_shell("unset MAKEFLAGS MFLAGS MAKELEVEL; %s", words);
    int lines = 0, all = 0, sum = 0;

    for (const char *at = r.out.data; (at = strstr(at, " cc ")); at++) {
        const char *begin = at;
        int number = 0, of = 0;
        while (begin > r.out.data && begin[-1] != '\n')
            begin--;
        cr_expect_eq(sscanf(begin, " [%d/%d] cc", &number, &of), 2, "%s", r.out.data);
        cr_expect(all == 0 || of == all, "%s", r.out.data);
        all = of;
        sum += number;
        lines++;
    }
    cr_expect(lines == all && 2 * sum == all * (all + 1), "%s", r.out.data);
    return lines;
}

Test(make, counts_what_it_compiles)
{
    need_programs("git make gcc");
    make_tree();
    const int all = counted("make CC=gcc");
    cr_expect_gt(all, 2);
    cr_expect_eq(counted("make CC=gcc"), 0);
    cr_expect_eq(counted(AGED "touch harness/one.h; make CC=gcc"), 2);
    cr_expect_eq(counted(AGED "touch harness/one.c; make CC=gcc"), 1);
    cr_expect_eq(counted("make CC=gcc CFLAGS='-O1 -g'"), all, "flags are among the reasons");
}
