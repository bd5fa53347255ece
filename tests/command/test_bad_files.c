/* SPDX-License-Identifier: MIT
 *
 * Invalid files: golden files with a changed number or cut short, and checkpoints that are not
 * models. */
#include "tests/support/edited_file.h"
#include "tests/support/kernel/simd.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"
#include "tests/table/must_rows.h"

TestSuite(bad_files, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* ---- files that never end ------------------------------------------------------------------ */

/* Pipes, devices and folders in place of files of options and tables are refused, never read. */
Test(bad_files, that_are_no_files)
{
    for (int device = 0; device < 2; device++) {
        must_shell(device ? "rm r/latency.csv; ln -s /dev/zero r/latency.csv"
                          : "mkdir r && mkfifo pipe r/latency.csv");
        EACH_TEXT (word, "$BENCH @pipe", "$BENCH @/dev/zero", "$BENCH @.", "$BENCH compare r r",
                   "$BENCH compare --axis backend r", "$BENCH plot r --format csv",
                   "$BENCH report r -o page.html", "$BENCH rerun 1 r",
                   "$BENCH baseline save b r --out .")
            shell_exits(7, "not a regular file", "%s", word);
    }
}

/* A file in place of a run's folder. */
Test(bad_files, that_are_no_folders)
{
    folder_put("text", "x", 1);
    EACH_TEXT (line, "compare ./text ./text", "export ./text", "rerun 1 ./text", "plot ./text",
               "report ./text -o page.html")
        bench_exits(7, "Not a directory  -> give a folder", "%s", line);
}

/* Texts from files and from the command line take no hold of the terminal. */
Test(bad_files, control_characters)
{
    must_shell("$BENCH --variant xl --backend ref," SIMD " --workload attn --seq 4 --mem 0 " TINY
               "--ckpt none -q && mv r/2* s && rm -r r && mv s r && sed -i "
               "\"2,\\$s/xl,/$(printf 'xl\\033[31m\\033]0;x\\a'),/\" r/latency.csv");
    static const char *const meta[] = {"variant", "x\033[31ml"};

    MUST(safetensors_write(in_folder("m.safetensors"), NULL, 0, meta, 1, &failure));
    EACH_TEXT (
        word, "$BENCH compare --format table r r", "$BENCH compare --format md r r",
        "$BENCH compare --format table --axis backend r",
        "$BENCH eval --ckpt m.safetensors --corpus none", "$BENCH \"$(printf 'x\\033[31m\\a')\"",
        "$BENCH --variant \"$(printf 'x\\033[31m\\a')\"", "$BENCH \"--$(printf 'x\\033[31m\\a')\"",
        "$BENCH compare \"$(printf 'x\\033[31m\\a')\" r",
        "$BENCH plot \"$(printf 'x\\033[31m\\a')\"") {
        struct ran r = run_shell("%s", word);
        cr_expect(r.out.n + r.err.n > 0, "%s", word);
        cr_expect_not(strpbrk(r.out.data, "\033\a"), "%s: %s", word, r.out.data);
        cr_expect_not(strpbrk(r.err.data, "\033\a"), "%s: %s", word, r.err.data);
        cr_expect(strstr(r.out.data, "\\x1b") || strstr(r.err.data, "\\x1b"), "%s: %s%s", word,
                  r.out.data, r.err.data);
    }
}

/* ---- wrong numbers ------------------------------------------------------------------------ */

/* The folder of golden files, independent of the folder that the runner was started in. */
static void copy_golden(const char *name)
{
    char synthetic[FILE_PATH];

    cr_assert(snprintf(synthetic, sizeof(synthetic), "tests/golden/%s", name) > 0);
    if (access(synthetic, R_OK) != 0)
        cr_skip_test("run from the top of the repository");
    struct bytes b = must_load(synthetic);
    folder_put(name, b.data, b.n);
}

/* Where the bytes of a tensor begin: a minimal reader of its own. */
static size_t tensor_at(const struct bytes *b, const char *tensor)
{
    uint64_t header;
    unsigned long first = 0;

    memcpy(&header, b->data, sizeof(header));
    const char *at = strstr(b->data + 8, kept_text("\"%s\"", tensor));
    cr_assert(at && (at = strstr(at, "\"data_offsets\"")) && (at = strchr(at, '[')));
    cr_assert_eq(sscanf(at, "[%lu", &first), 1);
    return 8 + header + first;
}

#define GOLDEN "att_xl_mem.safetensors"

/* The first number of out.y is off. */
static void change_golden(float by)
{
    float x;

    copy_golden(GOLDEN);
    struct bytes b = folder_read(GOLDEN);
    const size_t at = tensor_at(&b, "out.y");
    memcpy(&x, b.data + at, sizeof(x));
    x += by;
    memcpy(b.data + at, &x, sizeof(x));
    folder_put(GOLDEN, b.data, b.n);
}

/* Kinds that only `golden` reads: left out of a folder, with a word; an error where nothing is left, or if
 * the file was named. */
Test(bad_files, golden_files_of_other_kinds)
{
    copy_golden("norm_rms.safetensors");
    bench_exits(7, NULL, "check --golden . --backend ref");
    struct ran r = bench_exits(7, NULL, "check --golden norm_rms.safetensors --backend ref");
    HAS(r.out.data, "make golden");
    copy_golden(GOLDEN);
    r = must_bench("check --golden . --backend ref");
    HAS(r.out.data, "check: 1 file, ", ", 0 failed, ",
        "1 file of other kinds skipped  -> `make golden`");
    r = must_shell("${BENCH%%bench}golden check --golden . --backend ref");
    HAS(r.out.data, "check: 2 files, ");
    cr_expect(!strstr(r.out.data, "other kinds"), "%s", r.out.data);
}

Test(bad_files, one_float_of_a_golden_file_is_wrong)
{
    change_golden(0.5f);
    struct ran r = bench_exits(5, NULL, "check --golden %s --backend ref", GOLDEN);
    HAS(r.out.data, "FAILED   ref       " GOLDEN " out.y: error 0.", "check: 1 file, ");
    change_golden((float)(0.0 / 0.0)); /* no number */
    bench_exits(5, NULL, "check --golden . --backend ref");
}

/* Every result as a row, the failed ones too; the summary is no row. */
Test(bad_files, results_of_check_as_rows)
{
    static const char *const formats[] = {"csv", "jsonl", "md"};

    change_golden(0.5f);
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        int failed = 0, lines = 0;
        struct ran r = bench_exits(
            5, "check: 1 file, 10 tensors, 9 passed, 1 failed",
            "check --golden %s --backend ref --format %s --columns result,backend,what,error",
            GOLDEN, formats[i]);
        for (const char *at = r.out.data; *at; at += strcspn(at, "\n") + 1, lines++)
            failed += strstr(at, "failed") && strstr(at, "failed") < strchr(at, '\n');
        NUMBERS_OF(r.out.data, {failed, 1}, {lines, i == 0 ? 11 : i == 1 ? 10 : 12});
        cr_expect(i != 0 || strncmp(r.out.data, "result,backend,what,error\n", 26) == 0, "%s",
                  r.out.data);
    }
}

/* The file at which a child dies is one failure. Those before it keep their lines and their numbers,
 * and those after it are checked. */
Test(bad_files, a_golden_file_that_kills)
{
    SKIP_SANITIZED("the sanitizers' runtime has to be loaded first");
    change_golden(0.5f);
    must_shell(
        "mv " GOLDEN
        " a.safetensors; cp a.safetensors d.safetensors; cp a.safetensors c_kills.safetensors");
    copy_golden(GOLDEN);
    struct ran r = shell_exits(5, NULL,
                               "exec env LD_PRELOAD=\"${BENCH%%/*}/dies.so\" DIES_AT=c_kills "
                               "\"$BENCH\" check --golden . --backend ref");
    HAS(r.out.data, "a.safetensors out.y: error ", "c_kills.safetensors: killed by SIGABRT",
        "d.safetensors out.y: error ", "check: 4 files, 30 tensors, 28 passed, 3 failed");
}

/* A bad file gives 7, unless a number is wrong as well. */
Test(bad_files, a_golden_file_cut_short)
{
    copy_golden(GOLDEN);
    folder_put("bad.safetensors", "\x10\0\0\0\0\0\0\0{}", 10);
    struct ran r = bench_exits(7, NULL, "check --golden . --backend ref");
    HAS(r.out.data, "bad.safetensors", " 1 failed, ");
    change_golden(0.5f);
    bench_exits(5, NULL, "check --golden . --backend ref");
}

/* A golden file that compares nothing, and files that only a newer program may understand. */
Test(bad_files, golden_files_that_test_nothing)
{
    static const struct {
        const char *file;
        struct edit edit;
        const char *part;
    } cases[] = {
        {GOLDEN, {.drop = "out.*"}, "out."},
        {GOLDEN, {.key = "window", .value = "2147483647"}, "window"},
        {"att_alibi.safetensors", {.key = "span_ramp", .value = "4"}, "span"},
        {"talking_alibi.safetensors", {.key = "span_ramp", .value = "4"}, "span"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        copy_golden(cases[i].file);
        edited_file(in_folder("x.safetensors"), in_folder(cases[i].file), &cases[i].edit);
        struct ran r = bench_exits(7, NULL, "check --golden x.safetensors --backend ref");
        HAS(r.out.data, "x.safetensors", cases[i].part, " 1 failed, ");
    }
}

/* ---- checkpoints -------------------------------------------------------------------------- */

/* A model of bytes as `m.safetensors`, and the text that it has seen. */
static void train(const char *variant)
{
    must_shell("seq 1 200 >text; exec \"$BENCH\" train --variant %s --backend ref --corpus text "
               "--ckpt m.safetensors --force --seq 4 --mem 4 --layers 1 --d-model 16 --heads 2 "
               "--batch 1 --steps 1 --threads 1 -q",
               variant);
}

static void edit(struct edit d)
{
    edited_file(in_folder("x.safetensors"), in_folder("m.safetensors"), &d);
}

#define GATE_SCORE "--corpus text --bytes 40 --seq 4 --mem 0 --backend ref --threads 1 "
#define SCORE GATE_SCORE "--out r "

/* Detected only in the measuring child, and true of every row: said once, and no run. */
Test(bad_files, a_model_of_another_vocabulary)
{
    static const char said[] = "bench: checkpoint m.safetensors has a vocabulary of ";

    train("xl");
    struct ran r = bench_exits(7, NULL,
                               "eval --ckpt m.safetensors --corpus copy:lag=3,alphabet=16 --bytes "
                               "40 --seq 4,8 --mem 0 --out r");
    const char *const first = strstr(r.err.data, said);
    cr_assert(first && !strstr(first + 1, said), "%s", r.err.data);
    cr_expect_eq(r.out.n, 0, "%s", r.out.data);
    r = run_shell("ls -A r");
    cr_expect_str_eq(r.out.data, "");
}

/* Detected before anything is measured. */
Test(bad_files, a_checkpoint_that_a_sweep_cannot_use)
{
    train("xl");
    const struct {
        const char *words;
        int code;
        const char *message;
    } sweeps[] = {
        {"--variant xl --ckpt nothing --corpus text", 7,
         "bench: checkpoint nothing: cannot open: "},
        {"--variant xl --ckpt m.safetensors --corpus nothing", 7,
         "bench: text nothing: cannot open: "},
        {"--variant xl --ckpt m.safetensors", 2,
         "bench: checkpoint m.safetensors needs a text to score  -> add --corpus FILE"},
        {"--variant shaw --ckpt m.safetensors --corpus text", 2,
         "bench: checkpoint m.safetensors is of variant xl, which this sweep leaves out  -> "
         "add --variant xl"},
    };

    for (size_t i = 0; i < ARRAY_LEN(sweeps); i++) {
        bench_exits(sweeps[i].code, sweeps[i].message,
                    TINY "--backend ref --workload attn --seq 4 --mem 0 %s", sweeps[i].words);
        cr_expect_not(folder_has("r"), "%s left a run", sweeps[i].words);
    }
}

/* One change each to a model that can be scored: refused by eval, gate and training alike, with the
 * key or the tensor. */
Test(bad_files, models_that_are_not_what_they_say)
{
    static const struct {
        struct edit edit;
        const char *part;
    } cases[] = {
        {{.key = "causal", .value = "0"}, "causal"},
        {{.key = "variant", .value = "alibi"}, "scheme"},
        {{.key = "scheme", .value = "none"}, "\"bias_u\""},
        {{.key = "variant", .value = "x\033[31ml"}, "variant"},
        {{.key = "window", .value = "2147483647"}, "window"},
        {{.key = "span_ramp", .value = "64"}, "\"layers.0.attn.span\""},
        {{.key = "scale", .value = "1e39"}, "scale"},
        {{.key = "wheels", .value = "4"}, "wheels"},
        {{.drop = "layers.0.ln1.bias"}, "\"layers.0.ln1.bias\""},
        {{.rename = "layers.0.ln1.bias", .new_name = "layers.7.ln1.bias"}, "\"layers.0.ln1.bias\""},
        {{.key = "tied", .value = "0"}, "\"out.weight\""},
        {{.key = "out_bias", .value = "0"}, "\"out.bias\""},
    };

    train("xl");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        edit(cases[i].edit);
        struct ran r = bench_exits(7, "x.safetensors", "eval --ckpt x.safetensors " SCORE);
        expect_said(&r, cases[i].part);
        cr_expect_null(strchr(r.err.data, '\033'));
    }
    edit(cases[0].edit);
    shell_exits(7, "causal",
                "cp m.safetensors.opt x.safetensors.opt; exec \"$BENCH\" train --variant xl "
                "--backend ref --corpus text --ckpt x.safetensors --resume --seq 4 --mem 4 "
                "--layers 1 --d-model 16 --heads 2 --batch 1 --steps 2 --threads 1 -q");
    struct ran r =
        run_bench("gate --exec old=\"$BENCH\" --ckpt x.safetensors --variant xl --workload attn "
                  "--d-model 16 --heads 2 --min-samples 3 --block-ms 0.1 " GATE_SCORE);
    cr_expect_neq(r.code, 0);
    expect_said(&r, "causal");
    train("alibi"); /* a span beside a table of biases does not compose */
    edit((struct edit){.key = "span_ramp", .value = "64"});
    r = bench_exits(7, "x.safetensors", "eval --ckpt x.safetensors " SCORE);
    expect_said(&r, "span");
}

/* A score that is not finite is a wrong number, wherever it is asked for. */
Test(bad_files, scores_that_are_not_finite)
{
    static const struct edit edits[] = {
        {.nudge = "embed.weight", .at = 16 * '1', .by = NAN},
        {.nudge = "layers.0.attn.q.weight", .by = INFINITY},
        {.nudge = "out.bias", .at = 7, .by = INFINITY},
    };

    train("xl");
    for (size_t i = 0; i < ARRAY_LEN(edits); i++) {
        edit(edits[i]);
        bench_exits(5, "score", "eval --ckpt x.safetensors " SCORE);
        const struct perplexity_row *const row = must_rows("r/latest", TABLE_PERPLEXITY, 1);
        cr_expect_str_eq(row->status, "wrong");
        cr_expect(*row->status_detail && isnan(row->ppl) && isnan(row->nll_nats_per_token));
    }
    struct ran r =
        bench_exits(5, NULL, TINY "--variant xl --workload attn --ckpt x.safetensors " SCORE);
    const struct perplexity_row *const row = must_rows("r/latest", TABLE_PERPLEXITY, 1);
    cr_expect_str_eq(row->status, "wrong");
    bench_exits(5, NULL,
                "gate --exec old=\"$BENCH\" --ckpt x.safetensors --variant xl --workload attn "
                "--d-model 16 --heads 2 --min-samples 3 --block-ms 0.1 " GATE_SCORE);
    r = run_bench("compare r/latest r/latest");
    HAS(r.out.data, "unclear");
}

Test(bad_files, checkpoints_that_are_no_models)
{
    struct {
        const char *data;
        size_t n;
        const char *message;
    } files[] = {
        {"", 0, "bench: checkpoint x.safetensors: "},
        {"\xf8\x3f\x01\0\0\0\0\0{}", 10,
         "bench: checkpoint x.safetensors: header says 81920 bytes, file has 10"},
        {"\x02\0\0\0\0\0\0\0{}", 10, "x.safetensors: unknown variant \"none\"  -> "},
        {"\x08\0\0\0\0\0\0\0not json", 16, "bench: checkpoint x.safetensors: "},
    };

    folder_put("text", "hello, world\n", 13);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        folder_put("x.safetensors", files[i].data, files[i].n);
        struct ran r = bench_exits(7, files[i].message,
                                   "eval --ckpt x.safetensors --corpus text --seq 4 --mem 0");
        cr_expect_eq(r.out.n, 0, "%s", r.out.data);
    }
}

/* ---- a machine without /proc --------------------------------------------------------------- */

Test(bad_files, no_proc)
{
    SKIP_SANITIZED("the leak checker reads /proc at the end of a program");
    struct ran can = run_shell("unshare -rm mount -t tmpfs t /proc");
    const bool may = can.code == 0;
    if (!may)
        cr_skip_test("no namespaces for an ordinary user");
    EACH_TEXT (way, "exec", "fork", "none") {
        struct ran r =
            shell_exits(6, "/proc is empty",
                        "unshare -rm sh -c 'mount -t tmpfs t /proc && exec \"$BENCH\" --variant xl "
                        "--backend ref --workload attn --seq 4 --mem 0 --isolate %s " TINY "'",
                        way);
        expect_said(&r, "  -> mount");
        cr_expect_eq(r.err.n, strcspn(r.err.data, "\n") + 1, "one line: %s", r.err.data);
    }
}
