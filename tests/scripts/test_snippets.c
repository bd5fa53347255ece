/* SPDX-License-Identifier: MIT
 *
 * The files and rows that CONTRIBUTING.md shows can be built as they stand, and what they add is right. */
#include "tests/support/program.h"

TestSuite(snippets, .timeout = 900);

Test(snippets, can_be_copied)
{
    const char *const bench = getenv("BENCH");

    if (!bench || !strstr(bench, "/build/release/bench"))
        cr_skip_test("objects of build/release are needed");
    struct ran r = must_shell("scripts/snippets.sh");
    cr_expect(strstr(r.out.data, " 0 failed"), "%s\n%s", r.out.data, r.err.data);
}
