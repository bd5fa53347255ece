/* SPDX-License-Identifier: MIT
 *
 * Invalid files: golden files with a changed number or cut short, and checkpoints that are not
 * models. */
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

#include <string.h>
#include <unistd.h>

TestSuite(bad_files, .init = folder_make, .fini = folder_remove, .timeout = 120);

static void write_file(const char *name, const char *data, size_t n)
{
    char path[FILE_PATH];
    struct err e;

    folder_path(path, name);
    cr_assert_eq(file_replace(path, data, n, &e), OK, "%s", e.msg);
}

/* ---- wrong numbers ------------------------------------------------------------------------ */

/* The folder of golden files, independent of the folder that the runner was started in. */
static void copy_golden(const char *name)
{
    char synthetic[FILE_PATH];
    struct bytes b;
    struct err e;

    cr_assert(snprintf(synthetic, sizeof(synthetic), "tests/golden/%s", name) > 0);
    if (access(synthetic, R_OK) != 0)
        cr_skip_test("run from the top of the repository");
    cr_assert_eq(file_read(&b, synthetic, &e), OK, "%s", e.msg);
    write_file(name, b.data, b.n);
    free(b.data);
}

/* Where the bytes of a tensor begin: a minimal reader of its own. */
static size_t tensor_at(const struct bytes *b, const char *tensor)
{
    char key[64];
    uint64_t header;
    unsigned long first = 0;

    memcpy(&header, b->data, sizeof(header));
    snprintf(key, sizeof(key), "\"%s\"", tensor);
    const char *at = strstr(b->data + 8, key);
    cr_assert(at && (at = strstr(at, "\"data_offsets\"")) && (at = strchr(at, '[')));
    cr_assert_eq(sscanf(at, "[%lu", &first), 1);
    return 8 + header + first;
}

#define GOLDEN "att_xl_mem.safetensors"

static void change_golden(size_t (*where)(const struct bytes *b), float by)
{
    char path[FILE_PATH];
    struct bytes b;
    struct err e;
    float x;

    copy_golden(GOLDEN);
    folder_path(path, GOLDEN);
    cr_assert_eq(file_read(&b, path, &e), OK, "%s", e.msg);
    memcpy(&x, b.data + where(&b), sizeof(x));
    x += by;
    memcpy(b.data + where(&b), &x, sizeof(x));
    write_file(GOLDEN, b.data, b.n);
    free(b.data);
}

static size_t first_output(const struct bytes *b) { return tensor_at(b, "out.y"); }

Test(bad_files, a_golden_file_that_is_right)
{
    copy_golden(GOLDEN);
    struct ran r = run_bench(folder, "check --golden . --backend ref");
    expect_exit(&r, 0);
    cr_expect(strstr(r.out.data, "check: 1 file, "), "%s", r.out.data);
    cr_expect(strstr(r.out.data, ", 0 failed, "), "%s", r.out.data);
    ran_free(&r);
}

Test(bad_files, one_float_of_a_golden_file_is_wrong)
{
    change_golden(first_output, 0.5f);
    struct ran r = run_bench(folder, "check --golden %s --backend ref", GOLDEN);
    expect_exit(&r, 5);
    cr_expect(strstr(r.out.data, "FAILED   ref       " GOLDEN " out.y: error 0.5, limit ") ||
                  strstr(r.out.data, "out.y: error 0."),
              "%s", r.out.data);
    cr_expect(strstr(r.out.data, GOLDEN), "%s", r.out.data);
    cr_expect(strstr(r.out.data, "check: 1 file, "), "%s", r.out.data);
    ran_free(&r);
}

/* Every result as a row, the failed ones too; the summary is no row. */
Test(bad_files, results_of_check_as_rows)
{
    static const char *const formats[] = {"csv", "jsonl", "md"};

    change_golden(first_output, 0.5f);
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        int failed = 0, lines = 0;
        struct ran r = run_bench(folder,
                                 "check --golden %s --backend ref --format %s --columns "
                                 "result,backend,what,error",
                                 GOLDEN, formats[i]);
        expect_exit(&r, 5);
        expect_said(&r, "check: 1 file, 10 tensors, 9 passed, 1 failed");
        for (const char *at = r.out.data; *at; at += strcspn(at, "\n") + 1, lines++)
            failed += strstr(at, "failed") && strstr(at, "failed") < strchr(at, '\n');
        cr_expect_eq(failed, 1, "%s", r.out.data);
        cr_expect_eq(lines, i == 0 ? 11 : i == 1 ? 10 : 12, "%s", r.out.data);
        cr_expect(i != 0 || strncmp(r.out.data, "result,backend,what,error\n", 26) == 0, "%s",
                  r.out.data);
        ran_free(&r);
    }
}

Test(bad_files, a_float_that_is_no_number)
{
    change_golden(first_output, (float)(0.0 / 0.0));
    struct ran r = run_bench(folder, "check --golden . --backend ref");
    expect_exit(&r, 5);
    ran_free(&r);
}

/* A bad file gives 7, unless a number is wrong as well. */
Test(bad_files, a_golden_file_cut_short)
{
    copy_golden(GOLDEN);
    write_file("bad.safetensors", "\x10\0\0\0\0\0\0\0{}", 10);
    struct ran r = run_bench(folder, "check --golden . --backend ref");
    expect_exit(&r, 7);
    cr_expect(strstr(r.out.data, "bad.safetensors"), "%s", r.out.data);
    ran_free(&r);
    change_golden(first_output, 0.5f);
    r = run_bench(folder, "check --golden . --backend ref");
    expect_exit(&r, 5);
    ran_free(&r);
}

/* ---- checkpoints -------------------------------------------------------------------------- */

/* Detected only in the measuring child: a row with the reason, and the exit code of a bad file. */
Test(bad_files, a_model_of_something_else_than_bytes)
{
    copy_golden("lm_xl_post.safetensors");
    write_file("text", "abcdefghijklmnopqrstuvwxyz\n", 27);
    struct ran r =
        run_bench(folder, "eval --ckpt lm_xl_post.safetensors --corpus text --seq 4 --mem 0 "
                          "--out r");
    expect_exit(&r, 7);
    expect_said(&r, "bench: checkpoint lm_xl_post.safetensors: ");
    struct rows rows = must_read(folder, "r/latest", TABLE_PERPLEXITY);
    const struct perplexity_row *row = rows.row;
    cr_assert_eq(rows.n, 1);
    cr_expect_str_eq(row->status, "failed");
    cr_expect(strstr(row->status_detail, "lm_xl_post.safetensors: "), "%s", row->status_detail);
    rows_free(&rows);
    ran_free(&r);
}

/* Detected before anything is measured. */
Test(bad_files, a_checkpoint_that_a_sweep_cannot_use)
{
    copy_golden("lm_xl_post.safetensors");
    write_file("text", "abcdefghijklmnopqrstuvwxyz\n", 27);
    const struct {
        const char *words;
        int code;
        const char *message;
    } sweeps[] = {
        {"--variant xl --ckpt nothing --corpus text", 7,
         "bench: checkpoint nothing: cannot open: "},
        {"--variant xl --ckpt lm_xl_post.safetensors --corpus nothing", 7,
         "bench: text nothing: cannot open: "},
        {"--variant xl --ckpt lm_xl_post.safetensors", 2,
         "bench: checkpoint lm_xl_post.safetensors needs a text to score  -> add --corpus FILE"},
        {"--variant shaw --ckpt lm_xl_post.safetensors --corpus text", 2,
         "bench: checkpoint lm_xl_post.safetensors is of variant xl, which this sweep leaves out  "
         "-> "
         "--variant xl"},
    };

    for (size_t i = 0; i < ARRAY_LEN(sweeps); i++) {
        char path[FILE_PATH];
        struct ran r = run_bench(folder, TINY "--backend ref --workload attn --seq 4 --mem 0 %s",
                                 sweeps[i].words);
        expect_exit(&r, sweeps[i].code);
        expect_said(&r, sweeps[i].message);
        folder_path(path, "r");
        cr_expect_neq(access(path, F_OK), 0, "%s left a run", sweeps[i].words);
        ran_free(&r);
    }
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

    write_file("text", "hello, world\n", 13);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        write_file("x.safetensors", files[i].data, files[i].n);
        struct ran r = run_bench(folder, "eval --ckpt x.safetensors --corpus text --seq 4 --mem 0");
        expect_exit(&r, 7);
        expect_said(&r, files[i].message);
        cr_expect_eq(r.out.n, 0, "%s", r.out.data);
        ran_free(&r);
    }
}
