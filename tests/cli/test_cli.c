/* SPDX-License-Identifier: MIT
 *
 * The command line for users: which output goes to which stream, the answer to every mistake, and
 * the exit code for scripts. */
#include "tests/support/json.h"
#include "tests/support/kernel/simd.h"
#include "tests/support/program.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"

TestSuite(cli, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* ---- mistakes ----------------------------------------------------------------------------- */

/* One line that says what and what to do, nothing on stdout, and nothing left behind. */
Test(cli, mistakes)
{
    /* Words, the beginning of the line on stderr after "bench: ", and the code where it is not 2. */
    static const char *const list[][3] = {
        {"--variant xll",
         "unknown variant \"xll\"  -> did you mean xl?  (see: bench list variants"},
        {"swep", "unknown command \"swep\"  -> did you mean sweep?  (see: bench help)"},
        {"check --variant nosuch", "unknown variant \"nosuch\"  -> "},
        {"check --format json", "bench check has no --format json  -> use --format jsonl"},
        {"check --columns result", "--columns chooses columns of rows  -> "},
        {"--filter backend:" SIMD "3", "unknown backend \"" SIMD "3\"  -> did you mean " SIMD "?"},
        {"merge /nonexistent", "no run in /nonexistent  -> give the folders of shards", "7"},
        {"baseline rm nope", "this machine has no baseline \"nope\"", "4"},
        {"--vaiant xl", "unknown option --vaiant  -> did you mean --variant?  (see: bench help)"},
        {"--mem 12,abc", "not a whole number  -> write one such as 128, 4k (4000) or 4Ki (4096)"},
        {"--threads 4000", "oversubscribe knowingly"},
        {"--pin 0,9999 --threads 2", "--pin 0,9999"},
        {"--membind 77 --pin 0 --threads 1", "--membind 77"},
        {"--backend " SIMD " --max-isa ref",
         "backend " SIMD " is above --max-isa ref  -> raise it, or ", "6"},
        {"--backend cuda", "unknown backend \"cuda\"  -> "},
        {"--filter seq", "--filter \"seq\""},
        {"--columns median", "has no column \"median\"  -> did you mean median_ns?"},
        {"@nothing", "cannot read @nothing: No such file or directory  -> ", "7"},
        {"sweep more", "unexpected word \"more\"  -> start options with --, write lists as a,b "},
        {"--variant xl list", "command list after options  -> write it first: bench list ..."},
        {"list", "list needs a word  -> "},
        {"list casez", "unknown list \"casez\"  -> did you mean cases?"},
        {"rerun", "rerun needs a case  -> bench rerun CASE_ID"},
        {"explain", "explain needs a case  -> bench explain CASE_ID"},
        {"explain abc", "no run in results  -> bench explain CASE_ID RUN", "7"},
        {"rerun abc", "no run in results  -> ", "7"},
        {"eval", "eval needs a checkpoint  -> bench eval --ckpt FILE --corpus FILE"},
        {"--resume nope", "unexpected word \"nope\"  -> write --resume=nope if it is the folder"},
        {"eval --resume nope", "unexpected word \"nope\"  -> write --resume=nope if"},
        {"train --resume nope", "unexpected word \"nope\"  -> start options with --"},
        {"--resume=nope nope", "unexpected word \"nope\"  -> start options with --"},
        {"--resume=nothing", "no run in nothing  -> ", "7"},
        {"check --golden nothing", "cannot read nothing: No such file or directory  -> ", "7"},
        {"--filter 'seq<4' --seq 8", "no cases to measure  -> see: bench list cases", "77"},
        {"topo --seq 4", "--seq does not apply to topo  -> use it with sweep, "},
        {"doctor --variant xl", "--variant does not apply to doctor"},
        {"list backends --seq 4", "--seq does not apply to list backends"},
        {"list variants nosuch", "unknown variant \"nosuch\"  -> use one of "},
        {"list variants family:nosuch", "unknown family \"nosuch\"  -> "},
        {"list backends " SIMD, "unexpected word \"" SIMD "\"  -> bench list backends lists all"},
        {"list cases xl", "unexpected word \"xl\"  -> "},
        {"list variants --seq 4", "--seq does not apply to list variants"},
        {"compare a b --variant xl", "--variant does not apply to runs"},
        {"help nothing", "unknown command \"nothing\"  -> "},
        {"completion", "completion needs a shell  -> "},
        {"completion csh", "unknown shell \"csh\"  -> "},
        {"gate --dry-run", "--dry-run does not apply to gate"},
        {"compare -n a b", "--dry-run does not apply to compare"},
        {"train --dry-run", "--dry-run does not apply to train"},
        {"eval --dry-run", "--dry-run does not apply to eval"},
        {"check --dry-run", "--dry-run does not apply to check"},
        {"--impl fusd --backend ref", "unknown implementation \"fusd\"  -> did you mean fused?  ("},
        {"--impl nonesuch --backend ref", "unknown implementation \"nonesuch\"  -> use one of "},
        {"list cases --impl nonesuch", "unknown implementation \"nonesuch\"  -> use one of "},
        {"--dry-run --filter 'seq<4' --seq 8 --format zork",
         "unknown --format \"zork\"  -> use one of "},
    };

    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        const char *const words = list[i][0];
        struct ran r = bench_exits(list[i][2] ? atoi(list[i][2]) : 2, list[i][1], "%s", words);
        cr_expect_eq(strncmp(r.err.data, "bench: ", 7), 0, "%s: %s", words, r.err.data);
        cr_expect_eq(strchr(r.err.data, '\n'), r.err.data + r.err.n - 1, "one line: %s",
                     r.err.data);
        HAS(r.err.data, "  -> ");
        cr_expect_eq(r.out.n, 0, "%s", r.out.data);
        cr_expect_eq(rmdir(folder), 0, "%s left something behind", words);
        folder_make();
    }
}

/* A name that only some of the chosen backends have: the others' rows say so, and the reference is
 * measured as usual. */
Test(cli, an_implementation_of_one_backend)
{
    struct ran r = run_bench(
        "-q --variant xl --backend openblas," SIMD
        ",ref --workload attn --seq 4 --mem 0 --impl fused --columns backend,status " TINY);

    if (r.code == 6)
        cr_skip_test(SIMD " or openblas is not usable here");
    expect_exit(&r, 0);
    cr_expect_str_eq(r.out.data, "backend,status\nopenblas,skipped\n" SIMD ",ok\nref,ok\n");

    bench_exits(2, "bench: unknown implementation \"fused\"  -> use one of ",
                "-q --variant xl --backend openblas --impl fused");
}

/* The text for a backend that the build lacks, whichever that is here. */
Test(cli, backend_that_was_not_built_in)
{
    struct ran list = must_bench("list backends --format csv");
    char name[32] = "", words[64];

    for (char *line = strtok(list.out.data, "\n"); line; line = strtok(NULL, "\n"))
        if (strstr(line, ",no,") && sscanf(line, "%31[^,]", name) == 1)
            break;
    if (!name[0])
        cr_skip_test("every backend is usable here");
    snprintf(words, sizeof(words), "bench: backend %s ", name);
    struct ran r = bench_exits(6, NULL, "--backend %s", name);
    cr_expect_eq(strncmp(r.err.data, words, strlen(words)), 0, "%s", r.err.data);
    HAS(r.err.data, "  -> ");
}

Test(cli, environment_variables_are_options)
{
    shell_exits(2, "bench: BENCH_SEQ: --seq \"128..\": range has no end  -> ",
                "BENCH_SEQ=128.. \"$BENCH\"");

    struct ran r = must_shell("BENCH_SEQ=8 BENCH_MEM= \"$BENCH\" list cases --variant xl --backend "
                              "ref -q --columns seq_tokens,mem_tokens");
    cr_expect_str_eq(r.out.data, "seq_tokens,mem_tokens\n8,0\n8,512\n");
}

/* ---- what needs no measuring -------------------------------------------------------------- */

/* Sources as they can be written, and all of the past among lengths. */
Test(cli, sources_and_all_of_the_past_are_words)
{
    struct ran r = must_shell("\"$BENCH\" list sources --columns source --format jsonl");
    cr_expect(strstr(r.out.data, "{\"source\": \"copy:lag=192,p=0.9,alphabet=16,groups=1\"}") ||
                  strstr(r.out.data, "{\"source\":\"copy:lag=192,p=0.9,alphabet=16,groups=1\"}"),
              "%s", r.out.data);
    HAS(r.out.data, "flipflop:ignore=0.8");
    r = must_shell("\"$BENCH\" list cases --variant linear --backend ref --seq 8 --mem 4,all -q "
                   "--columns mem_tokens,mem_kind");
    cr_expect_str_eq(r.out.data, "mem_tokens,mem_kind\n4,state\nall,state\n");
    shell_exits(2, "--mem all does not apply to vanilla",
                "\"$BENCH\" list cases --variant vanilla --backend ref --mem all");
}

Test(cli, help_and_version_go_to_stdout)
{
    static const char *const words[] = {"--help", "-h", "--usage", "help list", "--version"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        struct ran r = must_bench("%s", words[i]);
        cr_expect_eq(strstr(r.out.data, i < 4 ? "Usage: bench" : "bench "), r.out.data,
                     "%s: %.200s", words[i], r.out.data);
        cr_expect_eq(r.err.n, 0, "%s: %s", words[i], r.err.data);
    }
}

#define CASES "--variant xl,shaw --backend ref --seq 8,16 --mem 0 --threads 1 -q "

Test(cli, a_dry_run_is_list_cases)
{
    struct ran dry = must_bench("--dry-run " CASES);
    struct ran list = must_bench("list cases " CASES);

    cr_expect_str_eq(dry.out.data, list.out.data);
    cr_expect_eq(dry.err.n, 0, "%s", dry.err.data);
    cr_expect_eq(strncmp(dry.out.data, "index,group,case_id,", 20), 0);
    cr_expect_eq(rmdir(folder), 0, "a dry run leaves something behind");
    folder_make();
}

Test(cli, lists_in_every_format)
{
    EACH_TEXT (list, "variants", "backends", ("cases " CASES), "columns")
        EACH_TEXT (format, "csv", "jsonl", "md", "table") {
            struct ran r = must_bench("list %s -q --format %s", list, format);
            cr_expect(r.out.n > 20);
            cr_expect_eq(r.err.n, 0, "%s", r.err.data);
        }
}

#define PRINTS "--variant xl --backend ref --workload attn --seq 4 --mem 0 --ckpt none " TINY

/* Of every command that prints, in the ways that it prints: one message, with the reason. */
Test(cli, a_closed_stdout_is_an_error)
{
    static const char prepare[] =
        "printf 'variants = xl\nsize = s: --layers 1 --d-model 16 --heads 2\n"
        "corpus = copy: copy:lag=5,alphabet=8\nrates = 1e-3\nseeds = 1\nbaseline-seeds = 1\n"
        "steps = 1\ntrain = --seq 16 --mem 0 --batch 2\neval = --mem 0 --bytes 200\n' >s.study;"
        "$BENCH study s.study -q --threads 1 --out st >/dev/null && "
        "$BENCH eval --ckpt $M --bytes 300 --seq 16 --mem 0,16 --threads 1 --out r -q --losses l "
        ">/dev/null && $BENCH " PRINTS "-q >/dev/null && mv r run && mkdir gold && cp "
        "${M%/results/*}/tests/golden/op_sink.safetensors gold && seq 300 >t.txt && $BENCH train "
        "--variant xl "
        "--corpus t.txt --layers 1 --d-model 16 --heads 2 --seq 16 --mem 16 --batch 2 --steps 1 "
        "--threads 1 --pin none --ckpt g -q";
    const char *const model = "export M=\"${BENCH%/build/*}/results/models/xl.safetensors\"; ";

    size_t turn = 0;
    must_shell("%s%s", model, prepare);
    EACH_TEXT (
        word, PRINTS, PRINTS "--format csv", PRINTS "-q --format json", PRINTS "-q --format fom",
        PRINTS "--format md", "list variants", ("list cases " CASES), "list columns --format csv",
        "list models", "list settings", "check --backend ref --golden gold",
        "eval --ckpt $M --bytes 300 --seq 16 --mem 0 --threads 1 --out r",
        "eval --ckpt $M --bytes 300 --seq 16 --mem 0 --threads 1 --out r -q --format json",
        "eval --ckpt $M --bytes 300 --seq 16 --mem 0 --threads 1 --out r -q --format fom",
        "study s.study --threads 1 --out st", "study s.study --threads 1 --dry-run",
        "study st/latest", "recl l", "generate --ckpt g --prompt 12 --new-tokens 3 --threads 1",
        "generate --ckpt g --prompt 12 --new-tokens 3 --threads 1 --format json",
        "rerun $(sed -n 2p run/latest/latency.csv | cut -d, -f4) --out run",
        "explain $(sed -n 2p run/latest/latency.csv | cut -d, -f4) run/latest", "topo",
        "topo --format csv", "doctor", "compare run/latest run/latest --format csv",
        "baseline list", "slurm", "plot run/latest --format csv", "history run/latest run/latest",
        "report run/latest", "export --to json run/latest", "export --to openmetrics run/latest",
        "export --to junit run/latest", "export --to fom run/latest", "help", "help man",
        "help train", "completion bash", "--version", "--help", "train --help", "train --usage") {
        if (!sampled(turn++, 3))
            continue;
        struct ran r = run_shell("%s$BENCH %s >/dev/full", model, word);
        const char *const said = strstr(r.err.data, "bench: ");
        expect_exit(&r, 7);
        expect_said(&r, "bench: cannot write to standard output: No space left on device  -> ");
        cr_expect(said && !strstr(said + 1, "\nbench: "), "%s: %s", word, r.err.data);
    }
}

/* As Unix tools do: who has read enough is told nothing, whether or not SIGPIPE is ignored. */
Test(cli, a_reader_that_has_seen_enough)
{
    EACH_TEXT (ignoring, "", "trap '' PIPE; ")
        EACH_TEXT (command, "list variants --format csv", "help man", "topo --format csv",
                   "list columns --format md") {
            struct ran r =
                shell_exits(141, NULL,
                            "rm -f code; %s{ sleep 0.2; \"$BENCH\" %s; echo $? >code; } | true; "
                            "until [ -s code ]; do sleep 0.05; done; exit $(cat code)",
                            ignoring, command);
            cr_expect_eq(r.err.n, 0, "%s: %s", command, r.err.data);
        }
}

/* ---- streams of a sweep ------------------------------------------------------------------- */

#define TWO_CASES "--variant xl --backend ref --workload attn --seq 4,8 --mem 0 " TINY

static struct rows rows_of(const struct bytes *out)
{
    struct rows rows;
    const enum status st =
        csv_rows(&rows, &tables[TABLE_LATENCY], "stdout", out->data, out->n, &failure);

    cr_assert_eq(st, OK, "%s", failure.msg);
    kept(rows.row);
    return rows;
}

/* A pipe gets the latency table, byte by byte as it is on disk, and nothing else. */
Test(cli, a_pipe_gets_strict_csv)
{
    struct ran r = must_bench(TWO_CASES);
    struct rows rows = rows_of(&r.out);
    NUMBERS({rows.n, 2}, {count_status(&rows, "ok"), 2});
    struct bytes file = folder_read("r/latest/latency.csv");
    cr_expect_str_eq(r.out.data, file.data);
    expect_said(&r, "2 cases in 2 groups");
    expect_said(&r, "[2/2] xl attn seq=8 mem=0 ref  ok");
    expect_said(&r, "wrote r/20");
    cr_expect(!strchr(r.err.data, '\033') && !strchr(r.err.data, '\r'), "no terminal here: %s",
              r.err.data);
}

Test(cli, quiet_says_nothing_but_results)
{
    struct ran r = must_bench("-q " TWO_CASES);
    cr_expect_eq(r.err.n, 0, "%s", r.err.data);
    struct rows rows = rows_of(&r.out);
    cr_expect_eq(rows.n, 2);
    r = must_bench("-q --columns seq_tokens,status,variant --format csv " TWO_CASES);
    cr_expect_str_eq(r.out.data, "seq_tokens,status,variant\n4,ok,xl\n8,ok,xl\n");
}

Test(cli, json_lines)
{
    struct ran r = must_bench("-q --format jsonl " TWO_CASES);
    int n = 0;

    for (char *line = strtok(r.out.data, "\n"); line; line = strtok(NULL, "\n"), n++) {
        const json_t *const row = json_of(line);
        cr_assert(json_is_object(row), "%s", line);
        cr_expect_str_eq(text_at(row, "status"), "ok");
        cr_expect_eq(json_integer_value(json_object_get(row, "seq_tokens")), n ? 8 : 4);
        cr_expect(json_number_value(json_object_get(row, "median_ns")) > 0);
        cr_expect(!json_is_string(json_object_get(row, "p99_ns")), "not measured is not a text");
    }
    cr_expect_eq(n, 2);
}

/* One document at the end: the environment, and all rows or chosen columns of them. */
Test(cli, json_is_one_document)
{
    const json_t *doc = json_of(must_bench("-q --format json " TWO_CASES).out.data);

    cr_expect(json_is_string(json_object_get(json_object_get(doc, "context"), "cpu_model")));
    const json_t *rows = json_object_get(doc, "benchmarks");
    cr_expect_eq(json_array_size(rows), 2);
    cr_expect(json_number_value(json_object_get(json_array_get(rows, 1), "real_time")) > 0);
    cr_expect_eq(json_integer_value(json_object_get(json_array_get(rows, 1), "seq_tokens")), 8);

    doc = json_of(must_bench("-q --format json --columns seq_tokens,status " TWO_CASES).out.data);
    rows = json_object_get(doc, "benchmarks");
    cr_expect_eq(json_object_size(json_array_get(rows, 0)), 2);
}

Test(cli, chosen_columns_of_the_table)
{
    static const char begins[] = "backend       seq_tokens   median_ns\nref                    4  ";
    struct ran r =
        must_bench("-q --format table --columns backend,seq_tokens,median_ns " TWO_CASES);
    cr_expect_eq(strncmp(r.out.data, begins, strlen(begins)), 0, "%s", r.out.data);
    cr_expect(!strstr(r.out.data, "GFLOP/s"), "%s", r.out.data);
}

Test(cli, verbose_markdown_and_table)
{
    struct ran r =
        bench_exits(0, ": --variant xl --backend ref --workload attn --seq 8", "-v " TWO_CASES);
    expect_said(&r, "products of ref");
    r = must_bench("-q --format md --columns variant,status " TWO_CASES);
    cr_expect_str_eq(r.out.data, "| variant | status |\n|---|---|\n| xl | ok |\n| xl | ok |\n");

    r = run_bench("-q --format table --variant xl --backend ref,openblas --workload attn --seq 4 "
                  "--mem 0 " TINY);
    if (r.code == 6)
        cr_skip_test("openblas is not usable here");
    expect_exit(&r, 0);
    HAS(r.out.data, "   seq    mem  variant        backend       median     tok/s  95 % ",
        "\nbackends by time: attn");
    cr_expect(!strchr(r.out.data, '\033'), "%s", r.out.data);
}

/* These switch off everything but text, terminal or not. */
Test(cli, no_color_and_dumb_terminals)
{
    struct ran r = must_shell(
        "export NO_COLOR=1 TERM=dumb CI=true; exec \"$BENCH\" --format table " TWO_CASES);
    cr_expect(!strchr(r.out.data, '\033') && !strchr(r.err.data, '\033'));
    expect_said(&r, "[1/2] xl attn seq=4 mem=0 ref  ok");
}

/* The rows are measured and saved even if stdout fails, or a pipe closes. */
Test(cli, a_sweep_into_a_full_stdout)
{
    shell_exits(7, "bench: cannot write to standard output: No space left on device  -> ",
                "exec \"$BENCH\" " TWO_CASES ">/dev/full");
    struct rows rows = must_read("r/latest", TABLE_LATENCY);
    cr_expect_eq(count_status(&rows, "ok"), 2);
    struct ran r = must_shell("\"$BENCH\" " TWO_CASES
                              " | head -c 20; cat r/latest/run.json"); /* head's and cat's */
    cr_expect_eq(strncmp(r.out.data, "schema,run_id,host_i", 20), 0);
    HAS(r.out.data, "\"exit_code\": ");
    rows = must_read("r/latest", TABLE_LATENCY);
    cr_expect_eq(count_status(&rows, "ok"), 2);
}

/* A row with the output of its control says why, and none computes what its control does. */
Test(rows_run, say_why_they_are_as_their_controls, .timeout = 240)
{
    struct ran r = must_bench("list rows --format md");
    int same = 0, other = 0, skipped = 0, v = 0;

    for (char *line = strtok(r.out.data, "\n"); line; line = strtok(NULL, "\n")) {
        const char *const why = strrchr(line, ':');
        other += strstr(line, "| other |") != NULL;
        skipped += strstr(line, "| skipped |") != NULL;
        cr_expect_null(strstr(line, "it is its control"), "%s", line);
        if (!strstr(line, "| same |"))
            continue;
        cr_expect(why && strlen(why) > strlen(": |"), "%s: no reason", line);
        same++;
    }
    while (variants[v])
        v++;
    cr_expect_eq(same + other + skipped, 4 * v - 4, "the first has no control, %d rows have",
                 same + other + skipped);
    cr_expect_gt(other, 3 * v);
    cr_expect_gt(same, 0);
}
