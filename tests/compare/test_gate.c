/* SPDX-License-Identifier: MIT
 *
 * The gate: its rules with known numbers, and the whole command on two programs. The second program
 * is a shell script around the first that edits a child's answers, so that "slower" needs no quiet
 * machine. */
#include "harness/compare/callgrind.h"
#include "harness/compare/gate.h"

#include "harness/cli/build.h"
#include "tests/support/program.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"
#include <signal.h>

TestSuite(gate, .init = folder_make, .fini = folder_remove, .timeout = 120);

static struct change change_of(double low, double mid, double high, enum verdict v)
{
    return (struct change){.log = {low, mid, high}, .verdict = v, .n = 15};
}

/* ---- rules --------------------------------------------------------------------------------- */

Test(gate, threshold_follows_the_noise)
{
    const struct change quiet = change_of(-0.01, 0, 0.01, VERDICT_SAME);
    const struct change loud = change_of(-0.05, 0.01, 0.05, VERDICT_SAME);
    const struct change none = change_of(NAN, NAN, NAN, VERDICT_UNCLEAR);

    cr_expect(!gate_too_noisy(&quiet, 0.05) && gate_threshold(&quiet, 0.05) == 0.05);
    cr_expect(gate_too_noisy(&loud, 0.05));
    cr_expect_lt(fabs(gate_threshold(&loud, 0.05) - 3 * expm1(0.05)), 1e-12);
    cr_expect(gate_too_noisy(&none, 0.05));
}

Test(gate, verdict_needs_two_rounds)
{
    const struct change same = change_of(-0.01, 0, 0.01, VERDICT_SAME);
    const struct change slow = change_of(0.1, 0.2, 0.3, VERDICT_SLOWER);
    const struct change fast = change_of(-0.3, -0.2, -0.1, VERDICT_FASTER);
    const struct change none = change_of(NAN, NAN, NAN, VERDICT_UNCLEAR);
    const struct {
        struct change identical, first, second;
        bool repeated;
        enum verdict want;
    } rule[] = {
        {same, same, none, false, VERDICT_SAME},   {same, slow, slow, true, VERDICT_SLOWER},
        {same, fast, fast, true, VERDICT_FASTER},  {same, slow, same, true, VERDICT_UNCLEAR},
        {same, slow, fast, true, VERDICT_UNCLEAR}, {same, slow, none, false, VERDICT_UNCLEAR},
        {slow, slow, slow, true, VERDICT_UNCLEAR}, /* identical programs already differ here */
        {none, slow, slow, true, VERDICT_UNCLEAR}, {same, none, none, false, VERDICT_UNCLEAR},
    };

    for (size_t i = 0; i < ARRAY_LEN(rule); i++) {
        const struct gate_case g = {.identical = rule[i].identical,
                                    .threshold = 0.05,
                                    .first = rule[i].first,
                                    .second = rule[i].second,
                                    .repeated = rule[i].repeated};
        char note[160];
        const enum verdict v = gate_verdict(&g, note, sizeof(note));
        cr_expect_eq(v, rule[i].want, "rule %zu: %s (%s)", i, verdict_name[v], note);
        cr_expect_eq(gate_flagged(&g),
                     g.first.verdict == VERDICT_SLOWER || g.first.verdict == VERDICT_FASTER);
    }
}

/* Differences of 3 and 4 % between links of one program have a root mean square of 3.54 %: no threshold is below
 * three times that, and what was slower before is judged by it. Cases without times do not count. */
Test(gate, thresholds_hold_what_layout_does)
{
    const struct change slow = change_of(0.06, 0.07, 0.08, VERDICT_SLOWER);
    const struct change fast = change_of(-0.3, -0.2, -0.1, VERDICT_FASTER);
    struct gate_case cases[] = {
        {.identical = change_of(0.02, 0.03, 0.04, VERDICT_SAME), .first = slow, .threshold = 0.05},
        {.identical = change_of(-0.05, -0.04, -0.03, VERDICT_SAME),
         .first = fast,
         .threshold = 0.2},
        {.identical = change_of(NAN, NAN, NAN, VERDICT_UNCLEAR), .threshold = 0.05},
        {.identical = change_of(0.8, 0.9, 1, VERDICT_SLOWER), .threshold = 0.05}};
    struct trial g = {.cases = cases, .threshold = 0.05};
    const double floor = 3 * expm1(sqrt((0.03 * 0.03 + 0.04 * 0.04) / 2));

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        comparisons_add(&g.all)->change.verdict = cases[i].first.verdict;
    gate_layout(&g);
    cr_expect(fabs(cases[0].threshold - floor) < 1e-12 && cases[1].threshold == 0.2);
    NUMBERS_OF(verdict_name[cases[0].first.verdict], {g.all.v[0].threshold, cases[0].threshold},
               {cases[0].first.verdict, VERDICT_SAME}, {g.all.v[0].change.verdict, VERDICT_SAME},
               {cases[1].first.verdict, VERDICT_FASTER});
    comparisons_free(&g.all);
}

Test(gate, instructions_within_half_a_percent)
{
    cr_expect(!gate_more_instructions(1e6, 1.004e6) && gate_more_instructions(1e6, 1.006e6));
    cr_expect(!gate_more_instructions(1e6, 0.5e6));
}

/* ---- the command --------------------------------------------------------------------------- */

#define ONE_CASE                                                                                   \
    "--variant xl --backend ref --workload attn --seq 8 --mem 0 --d-model 32 --heads 2 "           \
    "--warmup-ms 0 --block-ms 0.2 --min-samples 7 "

/* A program that runs $BENCH with a filter on what it sends to its parent (changed.py): lines of Python,
 * which change the words w of a line of the protocol. */
static void write_program(const char *name, const char *python)
{
    folder_put_text(
        kept_text("%s.change", name),
        kept_text("def change(line):\n    w = line.split(' ')\n%s    return ' '.join(w)\n"
                  "bench = '%s'\n",
                  python, getenv("BENCH")));
    must_shell("cp \"$SRC\"/tests/compare/changed.py %s", name);
}

/* Exactly repeating times: every call takes `ns`, nothing is disturbed. */
static void write_clock(const char *name, double ns, const char *more)
{
    write_program(name, kept_text("    if w[0] == 'block' or w[0] == 'sample':\n"
                                  "        w[1] = w[2] = str(float(w[1]) * 0 + %.17g)\n"
                                  "        w[3] = '0'\n%s",
                                  ns, more));
}

Test(gate, of_a_program_with_itself)
{
    write_clock("old", 1e6, "");
    bench_exits(0, "gate: 1 case, 0 slower, 0 faster, 1 same, 0 unclear",
                "gate --exec old=old --exec new=old --summary s.md " ONE_CASE);
    struct ran r = run_shell("cat s.md");
    HAS(r.out.data, "## bench gate: no regression", "gate --exec old=old --exec new=old");
}

/* A path says little on another machine: what each program is stands beside it. */
Test(gate, summary_names_both_programs)
{
    struct ran r =
        run_shell("\"$BENCH\" gate --exec old=\"$BENCH\" --summary s.md -q " ONE_CASE "; cat s.md");

    const char *const is = kept_text("bench` bench %s (%s", build_version, build_commit);
    const char *const first = strstr(r.out.data, is);
    cr_assert(first, "no %s in %s", is, r.out.data);
    cr_expect(strstr(first + 1, is), "%s", first);
}

Test(gate, finds_slower_and_faster)
{
    write_clock("old", 1e6, "");
    write_clock("slow", 1.07e6, "");
    bench_exits(3, "slower in the second round",
                "gate --exec old=old --exec new=slow --summary s.md " ONE_CASE);
    struct ran r = run_shell("cat s.md");
    HAS(r.out.data, "## bench gate: regression");
    bench_exits(0, "1 faster", "gate --exec old=slow --exec new=old " ONE_CASE);
    bench_exits(0, "1 same", "gate --threshold 8 --exec old=old --exec new=slow " ONE_CASE);
    r = must_bench("compare --exec old=old --exec new=slow " ONE_CASE);
    HAS(r.out.data, "7.000");
    /* The same program linked again is 4 % slower: what is 7 % slower may be layout. */
    write_clock("again", 1.04e6, "");
    r = bench_exits(0, "1 same",
                    "gate --exec old=old --exec new=slow --exec again=again " ONE_CASE);
    HAS(r.out.data, ",same,12,");
}

/* Slower in the first half of all launches only: the result does not repeat. */
Test(gate, what_does_not_repeat_is_unclear)
{
    write_clock("old", 1e6, "");
    write_clock("moody", 1e6,
                "        n = len([x for x in os.listdir('.') if x.startswith('launch')])\n"
                "        open('launch%d' % os.getpid(), 'w').close()\n"
                "        w[1] = w[2] = '2e6' if n <= 2 else '1e6'\n");
    struct ran r = bench_exits(0, "1 unclear", "gate --exec old=old --exec new=moody " ONE_CASE);
    HAS(r.out.data, "not confirmed");
    shell_exits(4, NULL,
                "rm launch*; \"$BENCH\" gate --strict --exec old=old --exec new=moody " ONE_CASE);
}

Test(gate, more_bytes_wrong_numbers_and_a_program_that_dies)
{
    write_clock("old", 1e6, "");
    write_clock("new", 1e6, "    if w[0] == 'arena_bytes':\n        w[1] = '4321'\n");
    struct ran r = bench_exits(3, NULL, "gate --exec old=old --exec new=new " ONE_CASE);
    HAS(r.out.data, "arena", "changed");
    /* Wrong numbers outrank everything. */
    write_clock("new", 2e6, "    if w[0] == 'max_rel_err':\n        w[1] = '0.5'\n");
    r = bench_exits(5, NULL, "gate --exec old=old --exec new=new " ONE_CASE);
    HAS(r.out.data, "new max_rel_err");
    write_program("new", "    sys.exit(9)\n");
    bench_exits(1, NULL, "gate --exec old=old --exec new=new " ONE_CASE);
}

Test(gate, refuses)
{
    bench_exits(2, "gate measures two programs", "gate");
    bench_exits(2, "unexpected word", "gate r1 r2");
    bench_exits(2, "no old program", "gate --exec new=/bin/true");
    bench_exits(2, "write old=PATH, new=PATH or again=PATH", "gate --exec /bin/true");
    bench_exits(2, "twice", "gate --exec old=/bin/true --exec old=/bin/false");
    bench_exits(7, "is not a program", "gate --exec old=/nowhere");
    bench_exits(7, "old is not a bench (/", "gate --exec old=/bin/true");
    bench_exits(7, "new is not a bench (/", "gate --exec old=\"$BENCH\" --exec new=/bin/false");
    bench_exits(7, "old is not a bench (/", "compare --exec old=/bin/echo");
    bench_exits(2, "unchecked", "gate --exec old=/bin/true --no-check");
    bench_exits(2, "cannot run another program", "gate --exec old=/bin/true --isolate fork");
    bench_exits(2, "--corpus", "gate --exec old=/bin/true --ckpt x");
    bench_exits(2, "does not apply to compare",
                "compare --exec old=\"$BENCH\" --exec again=\"$BENCH\"");
    bench_exits(2, "no new command line", "gate --plain --exec old=true");
    bench_exits(2, "--variant does not apply to --plain",
                "gate --plain --exec old=a --exec new=b -V xl");
    bench_exits(2, "does not apply to --plain",
                "gate --plain --exec old=a --exec new=b --instructions");
    bench_exits(2, "does not apply to compare", "compare --plain");
    bench_exits(2, "does not apply to sweep", "sweep --exec old=/bin/true");
    bench_exits(2, "it reads no runs", "compare --exec old=/bin/true --axis backend");
}

/* Any two command lines, with blanks, commas and quotes. */
Test(gate, plain_command_lines)
{
#define PLAIN "gate --plain --min-samples 7 --warmup-ms 0 --block-ms 1 --format csv "
#define COUNT_TO(n) "\"i=0,; i=0; while [ \\$i -lt " n " ]; do i=\\$((i + 1)); done\" "
    struct ran r = shell_exits(3, "gate: 1 case, 1 slower",
                               "\"$BENCH\" " PLAIN
                               "--summary s.md --exec old=" COUNT_TO("1000") "--exec new=" COUNT_TO(
                                   "10000") "&& exit; code=$?; cat s.md; exit $code");
    HAS(r.out.data, "whole run,old,new,", ",slower,", "each of whole runs, threshold",
        "new `i=0,; i=0; while [ $i -lt 10000 ]");
    shell_exits(0, "gate: 1 case, 0 slower, 1 faster",
                "\"$BENCH\" " PLAIN "--exec old=" COUNT_TO("10000") "--exec new=" COUNT_TO("1000"));
    bench_exits(0, "1 case, 0 slower, 0 faster",
                PLAIN "--threshold 900 --exec old=true --exec new=true");
    bench_exits(1, "new ended with exit code 3  -> run it by hand: exit 3",
                PLAIN "--exec old=true --exec new='exit 3'");
    bench_exits(1, "ended with signal 9", PLAIN "--exec old='kill -9 $$' --exec new=true");
}

/* What a run started ends with it. */
Test(gate, plain_interrupted)
{
    struct program p =
        start_bench(PLAIN "--exec old='(sleep 1000; true) & echo $! >id; wait' --exec new=true");

    run_shell("until test -s id; do sleep 0.1; done");
    kill(p.pid, SIGTERM);
    const struct ran r = finish_bench(&p);
    expect_exit(&r, 143);
    shell_exits(1, NULL, "sleep 0.2; grep -qs '^State:.[^Z]' /proc/$(cat id)/status || exit 1");
}

/* One text under one checkpoint: |dNLL| <= 1e-4, without statistics. */
Test(gate, another_perplexity_is_a_regression)
{
    must_shell(
        "seq 1 3000 >text; exec \"$BENCH\" train --variant xl --backend ref --corpus text --ckpt "
        "m.safetensors --seq 8 --mem 8 --layers 1 --d-model 32 --heads 2 --steps 1 --threads 1 -q");
    write_clock("old", 1e6, "");
    write_clock("near", 1e6, "    if w[0] == 'nll':\n        w[1] = str(float(w[1]) + 9e-5)\n");
    write_clock("far", 1e6, "    if w[0] == 'nll':\n        w[1] = str(float(w[1]) - 2e-4)\n");
    struct ran r = must_bench("gate --exec old=old --exec new=near --ckpt m.safetensors --corpus "
                              "text --bytes 300 " ONE_CASE);
    HAS(r.out.data, "perplexity seq=8 mem=0");
    r = bench_exits(3, NULL,
                    "gate --exec old=old --exec new=far --ckpt m.safetensors --corpus text --bytes "
                    "300 " ONE_CASE);
    HAS(r.out.data, "NLL");
}

/* ---- instructions -------------------------------------------------------------------------- */

Test(gate, instructions_need_valgrind)
{
    if (count_ready(&failure) != OK)
        cr_skip_test("%s", failure.msg);
    shell_exits(
        6, "valgrind",
        "PATH=/nowhere exec \"$BENCH\" gate --instructions --exec old=\"$BENCH\" " ONE_CASE);
}

Test(gate, counts_repeat_exactly)
{
    SKIP_SANITIZED("valgrind cannot run a program that has its own checker");
#ifdef __clang__
    cr_skip_test("callgrind 3.19 collects nothing in a program that clang 14 built");
#endif
    if (count_ready(&failure) != OK)
        cr_skip_test("%s", failure.msg);
    struct ran r =
        must_shell("exec \"$BENCH\" gate --instructions --exec old=\"$BENCH\" --threshold 900 "
                   "--format csv --columns before_instructions,after_instructions " ONE_CASE);
    double before = 0, after = -1;
    cr_assert_eq(sscanf(r.out.data, "%*[^\n]\n%lf,%lf", &before, &after), 2, "%s", r.out.data);
    cr_expect(before > 1000 && fabs(after / before - 1) < 0.001, "%s", r.out.data);
}
