/* SPDX-License-Identifier: MIT
 *
 * Raw samples under kills, damage and full disks; run.json. */
#include "harness/table/runjson.h"
#include "harness/table/samples.h"
#include "tests/support/sample_rows.h"
#include "tests/support/tmp_folder.h"

#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

TestSuite(samples, .init = folder_make, .fini = folder_remove, .timeout = 240);
TestSuite(runjson, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* ---- samples ------------------------------------------------------------------------------ */

Test(samples, every_flushed_sample_survives_a_kill_at_any_byte)
{
    struct samples s;
    struct err e;
    struct bytes file;
    struct rows rows;
    char path[FILE_PATH];
    enum { each = 5 };
    const enum raw raw = best_raw();
    static const char *const ids[] = {"a", "c", "d", "e"};
    size_t flushed[4], flushes = 0, rows_at[4];

    folder_path(path, raw_file[raw]);
    cr_assert_eq(samples_create(&s, folder, raw, &e), OK, "%s", e.msg);
    for (size_t total = 0; flushes < 4; flushes++) {
        put_samples(&s, ids[flushes], each);
        total += each;
        cr_assert_eq(samples_flush(&s, &e), OK, "%s", e.msg);
        flushed[flushes] = (size_t)s.out.end;
        rows_at[flushes] = total;
    }
    cr_assert_eq(samples_close(&s, &e), OK, "%s", e.msg);
    cr_assert_eq(file_read(&file, path, &e), OK);

    for (size_t n = 0; n <= file.n; n++) {
        cr_assert_eq(file_replace(path, file.data, n, &e), OK);
        cr_assert_eq(samples_resume(&s, folder, &e), OK, "%zu bytes: %s", n, e.msg);
        put_samples(&s, "b", 1);
        cr_assert_eq(samples_close(&s, &e), OK, "%s", e.msg);
        cr_assert_eq(samples_read(&rows, folder, &e), OK, "%zu bytes: %s", n, e.msg);
        size_t least = 0;
        for (size_t k = 0; k < flushes; k++)
            if (flushed[k] <= n)
                least = rows_at[k];
        cr_expect_geq(rows.n, least + 1, "%zu bytes: %zu rows", n, rows.n);
        cr_expect_str_eq(((struct sample_row *)rows.row)[rows.n - 1].case_id, "b");
        rows_free(&rows);
    }
    free(file.data);
}

Test(samples, samples_reach_the_disk_without_a_flush)
{
    struct samples s;
    struct err e;
    const enum raw raw = best_raw();

    cr_assert_eq(samples_create(&s, folder, raw, &e), OK, "%s", e.msg);
    const off_t before = s.out.end;
    put_samples(&s, "a", 64);
    cr_expect_gt(s.out.end, before);
    cr_assert_eq(samples_close(&s, &e), OK, "%s", e.msg);
    expect_samples(folder, (const char *const[]){"a"}, (const int[]){64}, 1);
}

Test(samples, many_samples_and_damage)
{
    struct samples s;
    struct err e;
    struct rows rows;
    struct bytes file;
    char path[FILE_PATH];
    const enum raw raw = best_raw();

    folder_path(path, raw_file[raw]);
    cr_assert_eq(samples_create(&s, folder, raw, &e), OK, "%s", e.msg);
    put_samples(&s, "a", 20000);
    cr_assert_eq(samples_close(&s, &e), OK, "%s", e.msg);
    expect_samples(folder, (const char *const[]){"a"}, (const int[]){20000}, 1);

    cr_assert_eq(file_read(&file, path, &e), OK);
    memset(file.data + file.n / 2, 0x55, 64);
    cr_assert_eq(file_replace(path, file.data, file.n, &e), OK);
    cr_expect_eq(samples_read(&rows, folder, &e), E_IO);
    cr_expect(strstr(e.msg, path), "%s", e.msg);
    cr_expect_eq(samples_resume(&s, folder, &e), E_IO, "damage is not a torn end");
    free(file.data);
}

Test(samples, a_full_disk_stops_the_samples)
{
    struct samples s;
    struct err e;
    const enum raw raw = best_raw();
    enum status st = OK;
    struct sample_row row = sample_row_empty();

    cr_assert_eq(samples_create(&s, folder, raw, &e), OK, "%s", e.msg);
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, RLIM_INFINITY}), 0);
    for (int i = 0; st == OK && i < 10000; i++) {
        row.wall_ns = i * 1.37;
        st = samples_write(&s, &row, &e);
    }
    cr_expect_eq(st, E_IO);
    cr_expect(strstr(e.msg, raw_file[raw]) && strstr(e.msg, "No space left"), "%s", e.msg);
    cr_expect_eq(samples_write(&s, &row, &e), E_IO);
    cr_expect(raw == RAW_CSV || samples_flush(&s, &e) == E_IO);
    samples_close(&s, NULL);

    struct rows rows;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}), 0);
    cr_assert_eq(samples_resume(&s, folder, &e), OK, "%s", e.msg);
    cr_assert_eq(samples_write(&s, &row, &e), OK, "%s", e.msg);
    cr_assert_eq(samples_close(&s, &e), OK, "%s", e.msg);
    cr_assert_eq(samples_read(&rows, folder, &e), OK, "%s", e.msg);
    const struct sample_row *back = rows.row;
    cr_expect_gt(rows.n, 10);
    for (size_t i = 0; i + 1 < rows.n; i++)
        cr_expect_eq(back[i].wall_ns, (double)i * 1.37);
    rows_free(&rows);
}

Test(samples, zst_without_zstd_is_said)
{
    enum raw raw;
    const char *note;
    struct err e;

    if (best_raw() == RAW_ZST) {
        cr_expect_eq(raw_choose(&raw, &note, RAW_ZST, true, &e), OK);
        cr_expect_eq(raw, RAW_ZST);
    } else {
        cr_expect_eq(raw_choose(&raw, &note, RAW_ZST, true, &e), E_UNSUPPORTED);
    }
    cr_expect_eq(raw_choose(&raw, &note, RAW_NONE, true, &e), OK);
    cr_expect_eq(raw, RAW_NONE);
}

/* ---- run.json ----------------------------------------------------------------------------- */

static const char options[] = "variant=xl\nd-model=512\nfilter=key:a=b,\"c\"\nquick=\n";

static void create_json(void)
{
    static char w0[] = "bench", w1[] = "--variant", w2[] = "x\xff";
    char *argv[] = {w0, w1, w2};
    const struct runjson r = {.command = "sweep",
                              .run_id = "r1",
                              .host_id = "h1",
                              .started_at_utc = "2026-11-21T06:01:02Z",
                              .argc = 3,
                              .argv = argv,
                              .options = options};
    struct err e;
    cr_assert_eq(runjson_create(folder, &r, &e), OK, "%s", e.msg);
}

Test(runjson, gives_back_the_options)
{
    char *back, start[TEXT_SIZE];
    struct err e;

    create_json();
    cr_assert_eq(runjson_read(folder, &back, start, &e), OK, "%s", e.msg);
    cr_expect_str_eq(back, options);
    cr_expect_str_eq(start, "2026-11-21T06:01:02Z");
    free(back);
}

Test(runjson, tells_the_end)
{
    char path[FILE_PATH];
    const int counts[ROW_STATUS_COUNT] = {[ROW_OK] = 7, [ROW_SKIPPED] = 2};
    struct err e;
    json_int_t code, ok, skipped;
    const char *schema, *end, *d_model;

    create_json();
    cr_assert_eq(runjson_finish(folder, "2026-11-21T06:02:00Z", 130, counts, &e), OK, "%s", e.msg);
    folder_path(path, "run.json");
    json_t *j = json_load_file(path, 0, NULL);
    cr_assert_eq(json_unpack(j, "{s:s, s:s, s:I, s:{s:I, s:I}, s:{s:s}}", "schema", &schema,
                             "finished_at_utc", &end, "exit_code", &code, "rows", "ok", &ok,
                             "skipped", &skipped, "options", "d-model", &d_model),
                 0);
    cr_expect_str_eq(schema, "bench-run/" SCHEMA_VERSION);
    cr_expect_str_eq(end, "2026-11-21T06:02:00Z");
    cr_expect_str_eq(d_model, "512");
    cr_expect(code == 130 && ok == 7 && skipped == 2);
    cr_expect_str_eq(json_string_value(json_array_get(json_object_get(j, "argv"), 2)), "$'x\\xff'");
    json_decref(j);
}

Test(runjson, that_is_none)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "{\"schema\":1}",
                                      "{\"schema\":\"bench-run/3.0\"}",
                                      "{\"schema\":\"bench-run/" SCHEMA_VERSION "\"}",
                                      "{\"schema\":\"bench-run/" SCHEMA_VERSION
                                      "\",\"started_at_utc\":\"\",\"options\":{\"a\":1}}"};
    static const char *const wanted[] = {"line",
                                         "line",
                                         "has no schema",
                                         "has no schema",
                                         "has schema bench-run/3.0, this program reads 2.x",
                                         "has no options",
                                         "option a is not a text"};
    char path[FILE_PATH], *back, start[TEXT_SIZE];
    struct err e;

    folder_path(path, "run.json");
    cr_expect_eq(runjson_read(folder, &back, start, &e), E_IO, "there is none");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cr_assert_eq(file_replace(path, bad[i], strlen(bad[i]), &e), OK);
        cr_expect_eq(runjson_read(folder, &back, start, &e), E_IO, "%s", bad[i]);
        cr_expect(strstr(e.msg, path) && strstr(e.msg, wanted[i]), "%s", e.msg);
        cr_expect_null(back);
    }
}
