/* SPDX-License-Identifier: MIT
 *
 * Markdown and LaTeX to paste: what the screen shows. */
#include "harness/cli/build.h"
#include "tests/support/pasted.h"
#include "tests/support/pty.h"

TestSuite(pasted, .init = folder_make, .fini = folder_remove, .timeout = 240);

#define CASES "--variant xl,shaw --backend ref --seq 8,16 --mem 0 --threads 1 -q "
#define TWO_CASES "--variant xl --backend ref --workload attn --seq 4,8 --mem 0 " TINY

/* Lists, in all three forms. Those of columns are a page as Markdown. */
Test(pasted, lists)
{
    EACH_TEXT (list, "variants", "backends", "parts", ("cases " CASES)) {
        struct ran table = run_bench("list %s -q --format table", list);
        struct ran md = run_bench("list %s -q --format md", list);
        struct ran tex = run_bench("list %s -q --format tex", list);
        cr_expect_gt(expect_pasted(table.out.data, md.out.data, tex.out.data), 1, "%s", list);
    }
}

/* What stands in an issue: the screen's columns, units in the heads, a number in each cell. */
Test(pasted, markdown_to_paste)
{
    struct ran r =
        must_bench("-q --format md --filter '!seq:4' --workload layer --launches 2 " TWO_CASES);
    double median = 0, low = 0, high = 0;

    HAS(r.out.data, "| seq | mem | variant | backend | median [ms] | tok/s | 95 % interval [ms] |");
    const char *const row = strstr(r.out.data, "| 8 | 0 | xl");
    cr_assert(row, "%s", r.out.data);
    cr_expect_eq(
        sscanf(strstr(row, "| ref |"), "| ref | %lf | %*f | %lf to %lf |", &median, &low, &high), 3,
        "%s", row);
    cr_expect(0 < low && low <= median && median <= high, "%s", row);
    cr_expect_eq(count_in(r.out.data, "\n**"), 1, "a heading for each workload: %s", r.out.data);

    /* Which program on which machine, and what follows: all on standard output. */
    r = must_bench(
        "--format md --variant xl,rope --backend ref --workload attn --seq 4 --mem 0 " TINY);
    cr_expect_eq(strncmp(r.out.data, "bench ", 6), 0, "%s", r.out.data);
    HAS(r.out.data, build_commit, "CPU");
    cr_expect_eq(count_in(r.out.data, "\n```text\nvariants by time: attn"), 1, "%s", r.out.data);
    cr_expect_str_eq(strrchr(r.out.data, '.'), ".\n```\n");
}

/* A table for each heading, and comments; of chosen columns, one table. */
Test(pasted, latex_to_paste)
{
    static const struct {
        const char *words;
        int tables;
    } is[] = {{"--variant xl,rope --backend ref --workload attn,layer --seq 4 --mem 0 " TINY, 2},
              {"--columns variant,status " TWO_CASES, 1}};

    for (size_t i = 0; i < ARRAY_LEN(is); i++) {
        struct ran r = must_bench("--format tex %s", is[i].words);
        cr_expect_eq(tex_tables(r.out.data), is[i].tables, "%s", r.out.data);
    }
}
