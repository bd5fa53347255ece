/* SPDX-License-Identifier: MIT
 *
 * Safetensors files: what is written is read back bit for bit or not at all, the golden files open,
 * and numbers in metadata are read strictly. Hostile files have their own suite. */
#include "tests/support/loaded.h"
#include "tests/support/tmp_folder.h"

#include <glob.h>
#include <signal.h>
#include <sys/resource.h>

TestSuite(safetensors, .init = folder_make, .fini = folder_remove);

static const float values[6] = {1.5f, -0.0f, 0x1p-140f, 3e38f, 0.1f, -7.0f};
static const int32_t tokens[2] = {INT32_MIN, 42};
static const struct tensor sample[] = {
    {.name = "in.x", .dtype = DTYPE_F32, .rank = 2, .shape = {2, 3}, .n = 6, .data = values},
    {.name = "scalar", .dtype = DTYPE_F32, .rank = 0, .n = 1, .data = values + 4},
    {.name = "empty", .dtype = DTYPE_I32, .rank = 3, .shape = {4, 0, 5}, .n = 0},
    {.name = "quote \" \\ \xc3\xa9", .rank = 4, .shape = {1, 1, 1, 3}, .n = 3, .data = values},
    {.name = "in.tokens", .dtype = DTYPE_I32, .rank = 1, .shape = {2}, .n = 2, .data = tokens},
};
static const char *const sample_meta[] = {"kind", "checkpoint", "note", "a \"b\"\n\xc3\xa9", "",
                                          ""};

static void expect_same_tensors(const struct safetensors *s, const struct tensor *t, int n)
{
    cr_assert_eq(s->n_tensors, n);
    for (int i = 0; i < n; i++) {
        const struct tensor *got = safetensors_find(s, t[i].name);
        cr_assert_not_null(got, "%s", t[i].name);
        cr_expect_eq(got, &s->tensors[i], "%s: order", t[i].name);
        NUMBERS({got->dtype, t[i].dtype}, {got->rank, t[i].rank});
        cr_expect_arr_eq(got->shape, t[i].shape, sizeof(got->shape));
        cr_assert_eq(got->n, t[i].n);
        cr_expect_eq((uintptr_t)got->data % 4, 0);
        cr_expect(t[i].n == 0 || memcmp(got->data, t[i].data, 4 * t[i].n) == 0, "%s", t[i].name);
    }
}

Test(safetensors, round_trip)
{
    const char *const path = in_folder("file");
    struct safetensors s;

    MUST(safetensors_write(path, sample, ARRAY_LEN(sample), sample_meta, 3, &failure));
    const struct bytes file = must_load(path);
    uint64_t length;
    memcpy(&length, file.data, sizeof(length));
    NUMBERS({length % 8, 0}, {file.n, 8 + length + 4 * (6 + 1 + 3 + 2)});

    MUST(safetensors_open(&s, path, &failure));
    cr_expect_str_eq(s.path, path);
    cr_expect_eq(s.size, file.n);
    expect_same_tensors(&s, sample, ARRAY_LEN(sample));
    cr_expect_eq(s.n_meta, 3);
    for (int i = 0; i < 3; i++)
        cr_expect_str_eq(safetensors_meta(&s, sample_meta[2 * i]), sample_meta[2 * i + 1]);
    cr_expect_null(safetensors_find(&s, "in.y"));
    cr_expect_null(safetensors_find(&s, "__metadata__"));
    cr_expect_null(safetensors_meta(&s, "in.x"));
    safetensors_close(&s);
    safetensors_close(&s); /* harmless */
}

Test(safetensors, nothing_is_a_file_too)
{
    const char *const path = in_folder("file");

    MUST(safetensors_write(path, NULL, 0, NULL, 0, &failure));
    const struct safetensors s = tensors_of(path);
    NUMBERS({s.n_tensors, 0}, {s.n_meta, 0});
}

/* Each golden file opens, has the kind in its metadata, and survives a rewrite. */
Test(safetensors, golden_files)
{
    const char *const path = in_folder("file");
    glob_t found;

    cr_assert_eq(glob("tests/golden/*.safetensors", 0, NULL, &found), 0, "run from the top folder");
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const struct safetensors s = tensors_of(found.gl_pathv[i]);
        int batch;
        double tolerance;

        const char *name = safetensors_meta(&s, "name");
        const char *const want = kept_text("tests/golden/%s.safetensors", name ? name : "(none)");
        cr_expect_str_eq(found.gl_pathv[i], want);
        MUST(safetensors_int(&s, "batch", 0, 1, 1 << 20, &batch, &failure));
        cr_expect_gt(batch, 0);
        MUST(safetensors_real(&s, "tolerance", -1, &tolerance, &failure));
        cr_expect(tolerance > 0 && tolerance < 1e-3, "%s: %g", want, tolerance);
        cr_expect_gt(s.n_tensors, 0);

        MUST(safetensors_write(path, s.tensors, s.n_tensors, (const char *const *)s.meta, s.n_meta,
                               &failure));
        const struct safetensors copy = tensors_of(path);
        expect_same_tensors(&copy, s.tensors, s.n_tensors);
        cr_assert_eq(copy.n_meta, s.n_meta);
        for (int m = 0; m < 2 * s.n_meta; m++)
            cr_expect_str_eq(copy.meta[m], s.meta[m]);
    }
    globfree(&found);
}

/* Entries may stand in any order; tensors lie where the offsets say. */
Test(safetensors, header_in_another_order)
{
    const char *const header = "{\"b\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[8,12]},"
                               "\"a\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[0,8]}}  ";
    const uint64_t length = round_up(strlen(header), 8);
    const int32_t data[] = {5, 6, 7};
    char file[512];

    memcpy(file, &length, sizeof(length));
    snprintf(file + 8, sizeof(file) - 8, "%-*s", (int)length, header);
    memcpy(file + 8 + length, data, sizeof(data));
    folder_put("file", file, 8 + length + sizeof(data));
    const struct safetensors s = tensors_of(in_folder("file"));
    cr_expect_str_eq(s.tensors[0].name, "b");
    cr_expect_arr_eq(safetensors_find(&s, "a")->data, data, 8);
    cr_expect_arr_eq(safetensors_find(&s, "b")->data, data + 2, 4);
}

/* ---- numbers in metadata ------------------------------------------------------------------ */

static struct safetensors one_pair(char *pair[static 2])
{
    return (struct safetensors){.path = (char *)"g.safetensors", .meta = pair, .n_meta = 1};
}

Test(safetensors, whole_numbers)
{
    int got;

    EACH_TEXT (good, "0", "7", "-7", "100", "-100") {
        const struct safetensors s = one_pair((char *[]){(char *)"n", (char *)good});
        cr_expect_eq(safetensors_int(&s, "n", 55, -100, 100, &got, &failure), OK, "\"%s\"", good);
        cr_expect_eq(got, atoi(good), "\"%s\"", good);
        cr_expect_eq(safetensors_int(&s, "absent", 55, 0, 1, &got, &failure), OK);
        cr_expect_eq(got, 55);
    }
    EACH_TEXT (word, "", " 7", "7 ", "7\n", "+7", "0x7", "7.0", "1e1", "seven", "-", "7,8", "007",
               "- 7", "101", "-101", "true", "\"7\"", "[7]", "99999999999999999999", "2147483648",
               "4294967303") {
        const struct safetensors s = one_pair((char *[]){(char *)"n", (char *)word});
        failure.msg[0] = '\0';
        REFUSED(safetensors_int(&s, "n", 55, -100, 100, &got, &failure), E_IO,
                "checkpoint g.safetensors: metadata n is", "whole number in -100..100");
    }
}

Test(safetensors, real_numbers)
{
    double got;

    EACH_TEXT (good, "0", "16", "-1.5", "1e-05", "0.17677669529663687", "1E+3", "2.5e2", "0.0",
               "1e-400", "12345678901234567890") {
        const struct safetensors s = one_pair((char *[]){(char *)"x", (char *)good});
        cr_expect_eq(safetensors_real(&s, "x", 55, &got, &failure), OK, "\"%s\"", good);
        cr_expect_eq(got, strtod(good, NULL), "\"%s\"", good);
        cr_expect_eq(safetensors_real(&s, "absent", 0.25, &got, &failure), OK);
        cr_expect_eq(got, 0.25);
    }
    EACH_TEXT (wrong, "", " 1", "1 ", "+1", ".5", "1.", "1,5", "0x1p3", "inf", "nan", "NaN",
               "1e999", "1e", "1.5x", "1 2", "-", "01") {
        const struct safetensors s = one_pair((char *[]){(char *)"x", (char *)wrong});
        failure.msg[0] = '\0';
        REFUSED(safetensors_real(&s, "x", 55, &got, &failure), E_IO,
                "checkpoint g.safetensors: metadata x is");
    }
}

/* ---- writing that fails ------------------------------------------------------------------- */

static void expect_not_written(const char *path, const char *const *meta, const char *part)
{
    REFUSED(safetensors_write(path, sample, ARRAY_LEN(sample), meta, 1, &failure), E_IO, path, part,
            "  -> ");
}

Test(safetensors, failed_write_leaves_no_trace)
{
    const char *const path = in_folder("file");

    expect_not_written(in_folder("file/g.safetensors"), sample_meta, "No such file");
    const char *const not_utf8[] = {"corpus", "caf\xe9.txt"};
    expect_not_written(path, not_utf8, "UTF-8");
    cr_expect_neq(access(path, F_OK), 0);
    cr_assert_eq(mkdir(path, 0700), 0);
    expect_not_written(path, sample_meta, "Is a directory");
}

/* A limit on file size simulates a full disk: the old file survives. */
Test(safetensors, full_disk_keeps_the_old_file)
{
    const struct rlimit small = {.rlim_cur = 200, .rlim_max = 200};
    const char *const path = in_folder("file");

    MUST(safetensors_write(path, sample, 1, NULL, 0, &failure));
    cr_assert_neq(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    expect_not_written(path, sample_meta, "cannot write: File too large");
    const struct safetensors s = tensors_of(path);
    expect_same_tensors(&s, sample, 1);
}

/* A reader that has a file open keeps the old bytes while a new one takes its name. */
Test(safetensors, open_file_can_be_replaced)
{
    const char *const path = in_folder("file");

    MUST(safetensors_write(path, sample, 2, NULL, 0, &failure));
    const struct safetensors s = tensors_of(path);
    MUST(safetensors_write(path, sample, 1, NULL, 0, &failure));
    expect_same_tensors(&s, sample, 2);
}

Test(safetensors, tensor_that_contradicts_itself_stops, .signal = SIGABRT)
{
    const struct tensor wrong = {.name = "a", .rank = 1, .shape = {3}, .n = 2, .data = values};

    safetensors_write("/dev/null/g.safetensors", &wrong, 1, NULL, 0, NULL);
}

Test(safetensors, same_name_twice_stops, .signal = SIGABRT)
{
    const struct tensor twice[] = {sample[0], sample[0]};

    safetensors_write("/dev/null/g.safetensors", twice, 2, NULL, 0, NULL);
}
