/* SPDX-License-Identifier: MIT
 *
 * How one goes on: --resume needs the folder of a run or the checkpoint of a training and nothing
 * else, bench rerun finds its case in any run, and what was interrupted says which line to paste.
 */
#include "tests/support/whole_run.h"

#include <signal.h>

TestSuite(going_on, .init = folder_make, .fini = folder_remove, .timeout = 120);

static void expect_rows(const char *run, int n)
{
    struct rows rows = must_read(run, TABLE_LATENCY);

    NUMBERS_OF(run, {(int)rows.n, n}, {count_status(&rows, "ok"), n});
}

/* ---- runs --------------------------------------------------------------------------------- */

#define MANY                                                                                       \
    "--variant window,gtrxl --mask window=3,global=1 --gate gru,output --backend ref --workload "  \
    "layer --seq 4,6,8 --mem 0 --filter 'seq<=6' --filter '!gate:output' --seed 7 --no-check "     \
    "--d-model 16 --heads 2 --threads 1 --max-time 0.003 --min-samples 3 --warmup-ms 0 "           \
    "--block-ms 0.5 --target-ci 0 "
enum { MANY_CASES = 4 };

/* All but the first row of each table of the run, as if it had been interrupted there. */
#define CUT "for f in results/2*/latency.csv; do head -n 2 $f > cut && cp cut $f; done; "

Test(going_on, a_run_with_nothing_but_resume)
{
    must_shell("$BENCH -q " MANY);
    expect_rows("results/latest", MANY_CASES);
    must_shell(CUT "$BENCH -q --resume");
    expect_rows("results/latest", MANY_CASES);
    must_shell(CUT "cd /; $BENCH -q --resume=$OLDPWD/results/latest");
    expect_rows("results/latest", MANY_CASES);
}

/* It says so, measures nothing, and prints its document again. */
Test(going_on, a_complete_run_has_nothing_to_resume)
{
    must_shell("$BENCH -q " MANY "&& cp results/latest/latency.csv whole");
    must_shell("$BENCH --resume 2>&1 | grep -q 'is complete, nothing to resume'");
    shell_exits(1, NULL, "$BENCH --resume 2>&1 | grep -qE 'cases in|wrote|by time'");
    must_shell("$BENCH -q --resume --format json | grep -q benchmarks");
    must_shell("cmp results/latest/latency.csv whole");
}

/* What the environment says now is not what it said then. */
Test(going_on, a_run_keeps_its_options)
{
    must_shell("BENCH_SEED=9 $BENCH -q " MANY);
    must_shell(CUT "BENCH_SEQ=5 BENCH_GATE=highway BENCH_SEED=11 $BENCH -q --resume");
    expect_rows("results/latest", MANY_CASES);
    must_shell("grep -q 'seed 7' results/latest/latency.csv");
}

/* Output may differ, cases may not. */
Test(going_on, options_beside_resume)
{
    must_shell("$BENCH -q " MANY);
    must_shell(CUT "$BENCH --resume --format jsonl -v --seed 7 | grep -q '\"status\":\"ok\"'");
    shell_exits(2, NULL, "$BENCH --resume --seed 8");
    shell_exits(2, NULL, "$BENCH --resume --filter 'seq<=8'");
    must_shell("$BENCH -n --resume --columns seq_tokens --format csv | grep -c '^4' | grep -q 2");
    expect_rows("results/latest", MANY_CASES);
}

Test(going_on, a_run_of_another_command_is_named)
{
    must_shell("$BENCH -q " MANY "; $BENCH rerun -q $(tail -n 1 results/latest/latency.csv | cut "
               "-d, -f4) --max-time 0.003 --min-samples 3");
    bench_exits(2, "is a run of bench rerun", "--resume");
    bench_exits(2, "is a run of bench sweep", "eval --resume=$(echo results/2* | cut -d' ' -f1)");
}

/* A run.json without a command, and one of a version with other options. */
Test(going_on, a_description_of_another_version)
{
    must_shell("$BENCH -q " MANY);
    must_shell("sed -i '/\"command\"/d' results/latest/run.json; " CUT "$BENCH -q --resume");
    expect_rows("results/latest", MANY_CASES);
    shell_exits(2, NULL,
                "sed -i 's/\"seed\": \"7\"/\"seed\": \"7\", \"curl\": \"3\"/' "
                "results/latest/run.json; $BENCH -q --resume");
    must_shell(
        "sed -i 's/\"curl\": \"3\"/\"curl\": \"\"/' results/latest/run.json; $BENCH -q --resume");
}

/* ---- trainings ---------------------------------------------------------------------------- */

#define TRAIN                                                                                      \
    "train --variant gtrxl --gate highway --backend ref --threads 1 --pin none --seq 4 --mem 4 "   \
    "--batch 2 --layers 1 --d-model 8 --heads 2 --lr 0.01 --lr-warmup 2 --schedule constant "      \
    "--dropout 0.1 --seed 5 --weight-decay 0.1 --grad-clip 0.5 --eval-every 2 --steps 6 "          \
    "--corpus copy:lag=3,p=0.9,alphabet=4 --ckpt m "

Test(going_on, a_training_with_nothing_but_its_checkpoint)
{
    must_shell("mkdir whole && cd whole && $BENCH " TRAIN);
    must_shell("$BENCH " TRAIN "--stop-at 2");
    must_shell("BENCH_LR=0.5 BENCH_D_MODEL=16 $BENCH train --ckpt m --resume");
    must_shell("cmp m whole/m && cmp m.best whole/m.best");
}

/* The rates of a training that is stopped, of one that gets more steps once it has come to its end, and
 * of one that goes on from its weights, are those of one that runs through: peak and floor included. */
Test(going_on, a_training_keeps_its_rates)
{
    static const char *const schedules[] = {"cosine", "linear", "wsd --lr-decay 0.5", "constant"};
    static const char *const ends[] = {"0.001", "0.001", "0.001", "0.01"};

    for (size_t i = 0; i < ARRAY_LEN(schedules); i++)
        must_shell(
            "rates() { awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == \"lr\") c = i } NR > "
            "1 "
            "{ print $c }' $1.train.csv >$1.rates; }; "
            "train() { $BENCH train --threads 1 --pin none --seq 4 --batch 2 --log-every 1 --lr "
            "0.01 "
            "--lr-warmup 4 --schedule %s -q --force --mem 4 \"$@\" || exit 9; }; "
            "new='--variant xl --layers 1 --d-model 8 --heads 2'; "
            "train $new --steps 12 --ckpt whole && "
            "for at in 3 4 5; do train $new --steps 12 --stop-at $at --ckpt cut; "
            "$BENCH train --ckpt cut --resume --log-every 1 -q || exit 9; rates cut; rates whole; "
            "cmp cut.rates whole.rates || exit 8; done; "
            "train $new --steps 4 --ckpt cut; $BENCH train --ckpt cut --resume --steps 12 "
            "--log-every 1 "
            "-q; rates cut; cmp cut.rates whole.rates || exit 7; "
            "train --from whole --steps 12 --ckpt from; rates from; cmp from.rates whole.rates || "
            "exit 6; "
            "test $(sed -n 4p whole.rates) = 0.01 && test $(tail -n 1 whole.rates) = %s",
            schedules[i], ends[i]);
}

/* One that has come to its end, and a file that only scores. */
Test(going_on, a_training_that_cannot_go_on)
{
    must_shell("$BENCH " TRAIN);
    must_shell("$BENCH train --ckpt m --resume 2>&1 | grep -q '^6 of 6 steps are done  -> '");
    must_shell(
        "$BENCH train --ckpt m.best --resume 2>&1 | grep -q 'no state.* -> resume --ckpt m$'");
}

#define PLAY                                                                                       \
    "train --variant gtrxl --backend ref --threads 1 --pin none --seq 4 --mem 4 --batch 2 "        \
    "--layers 1 --d-model 8 --heads 2 --eval-every 2 --steps 6 --task numpad:n=2,len=11 --ckpt m "

/* Stopped within an episode. What learnt a task scores no text. */
Test(going_on, a_training_on_a_task)
{
    must_shell("mkdir whole && cd whole && $BENCH " PLAY);
    must_shell("$BENCH " PLAY "--stop-at 4");
    shell_exits(2, NULL, "$BENCH train --ckpt m --resume --task tmaze:len=3");
    must_shell("$BENCH train --ckpt m --resume && cmp m whole/m && cmp m.best whole/m.best");
    must_shell("test $(tail -n +2 m.train.csv | wc -l) = 3");
    shell_exits(2, NULL, "$BENCH eval --ckpt m --corpus copy:");
}

Test(going_on, a_task_that_is_none)
{
    bench_exits(2, "see: bench list tasks", "train --variant xl --ckpt n --task maze");
    EACH_TEXT (wrong, "--task tmaze:len=-1",
               "--task tmaze: --corpus copy:", "--task tmaze: --z-loss 0.1",
               "--task tmaze: --dropout 0.1", "--trace 0.5")
        bench_exits(2, NULL, "train --variant xl --ckpt n %s", wrong);
    bench_exits(6, NULL, "train --variant exit --ckpt n --task tmaze:");
    cr_expect_not(folder_has("n"));
}

Test(going_on, a_training_under_another_name)
{
    must_shell("mkdir whole && cd whole && $BENCH " TRAIN);
    must_shell("$BENCH " TRAIN "--stop-at 2 && mkdir other && mv m other/n && for e in opt best "
               "train.csv; do mv m.$e other/n.$e; done");
    must_shell("$BENCH train --ckpt other/n --resume && cmp other/n whole/m");
}

Test(going_on, a_training_with_other_options)
{
    must_shell("$BENCH " TRAIN);
    must_shell("$BENCH train --ckpt m --resume --steps 8 && tail -n 1 m.train.csv | grep -q ,8,");
    EACH_TEXT (word, "--dropout 0.2", "--variant xl", "--z-loss 0.1", "--optimizer muon",
               "--init depth", "--weight-decay-of matrices,norms", "--muon-scale shape",
               "--schedule constant --lr-floor 0.5", "--schedule cosine --lr-decay 0.5")
        bench_exits(2, NULL, "train --ckpt m --resume --steps 9 %s", word);
    must_shell("$BENCH train --ckpt m --resume --steps 9 --schedule wsd --lr-decay 0.5");
    shell_exits(2, NULL, "$BENCH " TRAIN "--weight-decay 0 --weight-decay-of norms --force");
    shell_exits(2, NULL, "$BENCH train --resume");
    shell_exits(7, NULL, "$BENCH train --ckpt none_such --resume");
}

/* The line below `label`, or a failed assertion. */
static const char *printed_line(struct ran *r, const char *label)
{
    char *at = strstr(r->err.data, label);

    cr_assert(at, "no \"%s\" in: %s", label, r->err.data);
    at += strlen(label);
    at[strcspn(at, "\n")] = '\0';
    return at;
}

Test(going_on, an_interrupted_training_prints_its_line)
{
    struct program p = start_bench(TRAIN "--minutes 600 --progress plain --ckpt 'my model'");

    cr_assert(wait_for_text(&p, "step 2 "));
    kill(-p.pid, SIGINT); /* as a terminal does */
    struct ran r = finish_bench(&p);
    expect_exit(&r, 130);
    const char *const line = printed_line(&r, "resume with: ");
    cr_expect_not(strstr(line, "--lr"), "%s", line);
    must_shell("%s --stop-at 1", line);
}

/* ---- lines to paste ----------------------------------------------------------------------- */

Test(going_on, an_interrupted_run_prints_a_short_line)
{
    struct program p = start_bench(SLOW "--format csv -v --out r --fail-fast");

    cr_assert(wait_for_text(&p, "[2/8]"));
    kill(p.pid, SIGINT);
    struct ran r = finish_bench(&p);
    expect_exit(&r, 130);
    const char *const line = printed_line(&r, "resume with: ");
    HAS(line, " --resume=r/2", "--format csv", "--fail-fast", "--verbose");
    cr_expect_not(strstr(line, "--variant"), "%s", line);
    struct ran again = must_shell("%s", line);
    HAS(again.out.data, "bench-latency");
    expect_complete("r/latest");
}

Test(going_on, what_begins_again_prints_its_line)
{
    struct program p = start_bench("check --variant all -v --backend ref");

    sleep(1);
    kill(p.pid, SIGINT);
    struct ran r = finish_bench(&p);
    expect_exit(&r, 130);
    const char *const line = printed_line(&r, "repeat with: ");
    HAS(line, "check --variant all -v --backend ref");
}

/* ---- rerun -------------------------------------------------------------------------------- */

#define AGAIN "-q --max-time 0.003 --min-samples 3 --warmup-ms 0 --format csv --columns seq_tokens "
#define SHORT                                                                                      \
    "$BENCH -q --variant xl --backend ref --workload attn --mem 0 --d-model 16 --heads 2 "         \
    "--threads 1 --max-time 0.003 --min-samples 3 --warmup-ms 0 "
#define ID_OF(run) "$(tail -n 1 " run "/latency.csv | cut -d, -f4)"

Test(going_on, rerun_finds_its_case_in_any_run)
{
    must_shell(SHORT "--seq 4");
    must_shell("mkdir -p results/reference/here && cp -r results/latest/ results/reference/here/a "
               "&& rm -r results/2* results/latest");
    must_shell(SHORT "--seq 5; " SHORT "--seq 6");
    must_shell("$BENCH rerun " ID_OF("results/reference/here/a") " " AGAIN
                                                                 "| tail -n 1 | grep -x 4");
    must_shell("set -- results/2*; $BENCH rerun " ID_OF("$1") " " AGAIN "| tail -n 1 | grep -x 5");
    must_shell("rm results/latest; $BENCH rerun " ID_OF(
        "results/reference/here/a") " " AGAIN "| tail -n 1 | grep -x 4");
}

Test(going_on, rerun_in_a_named_run)
{
    must_shell(SHORT "--seq 4,5 --out a; " SHORT "--seq 6 --out b");
    must_shell("$BENCH rerun " ID_OF("a/latest") " a/latest --out c " AGAIN
                                                 "| tail -n 1 | grep -x 5");
    shell_exits(2, NULL, "$BENCH rerun " ID_OF("a/latest") " b/latest --out c " AGAIN);
    shell_exits(7, NULL, "$BENCH rerun " ID_OF("a/latest") " none_such --out c " AGAIN);
    shell_exits(2, NULL, "$BENCH rerun '' a/latest --out c " AGAIN);
}

Test(going_on, explain_finds_its_case)
{
    must_shell(SHORT "--seq 4,5 --out a");
    must_shell("$BENCH explain " ID_OF("a/latest") " a/latest | grep '^xl attn seq=5 mem=0'");
    must_shell("$BENCH explain " ID_OF("a/latest") " --out a | grep '  launches   1: '");
    shell_exits(2, NULL, "$BENCH explain '' a/latest");
    shell_exits(7, NULL, "$BENCH explain " ID_OF("a/latest") " none_such");
}

Test(going_on, rerun_obeys_the_environment)
{
    static const char again[] = "$BENCH rerun " ID_OF("results/latest") " --max-time 0.003 "
                                                                        "--min-samples 3 "
                                                                        "--format table";

    must_shell(SHORT "--seq 4");
    must_shell("BENCH_COLOR=always %s | grep -q \"$(printf '\\033')\"", again);
    shell_exits(1, NULL,
                "BENCH_COLOR=always NO_COLOR=1 %s --color never | grep -q \"$(printf '\\033')\"",
                again);
}

/* ---- what a training tells ------------------------------------------------------------------ */

/* A row each 5 steps, and the last one. */
Test(going_on, a_training_logs_as_often_as_asked)
{
    must_shell("$BENCH train --variant rope --ckpt m --steps 17 --log-every 5 --seq 4 --mem 0 "
               "--d-model 8 --heads 2 --layers 1 --batch 1 --set rope_dim=2 && test $(tail -n +2 "
               "m.train.csv | wc -l) = 4");
}
