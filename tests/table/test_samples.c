/* SPDX-License-Identifier: MIT
 *
 * Raw samples under kills, damage and full disks; run.json. */
#include "harness/table/runjson.h"
#include "tests/support/json.h"
#include "tests/support/sample_rows.h"
#include "tests/support/tmp_folder.h"
#include <signal.h>
#include <sys/resource.h>

TestSuite(samples, .init = folder_make, .fini = folder_remove, .timeout = 240);
TestSuite(runjson, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* ---- samples ------------------------------------------------------------------------------ */

Test(samples, every_flushed_sample_survives_a_kill_at_any_byte)
{
    struct samples s;
    struct rows rows;
    enum { each = 5 };
    const enum raw raw = best_raw();
    static const char *const ids[] = {"a", "c", "d", "e"};
    size_t flushed[4], flushes = 0, rows_at[4];

    const char *const path = in_folder(raw_file[raw]);
    MUST(samples_create(&s, folder, raw, &failure));
    for (size_t total = 0; flushes < 4; flushes++) {
        put_samples(&s, ids[flushes], each);
        total += each;
        MUST(samples_flush(&s, &failure));
        flushed[flushes] = (size_t)s.out.end;
        rows_at[flushes] = total;
    }
    MUST(samples_close(&s, &failure));
    struct bytes file = must_load(path);

    for (size_t n = 0; n <= file.n; n++) {
        cr_assert_eq(file_replace(path, file.data, n, &failure), OK);
        cr_assert_eq(samples_resume(&s, folder, &failure), OK, "%zu bytes: %s", n, failure.msg);
        put_samples(&s, "b", 1);
        MUST(samples_close(&s, &failure));
        cr_assert_eq(samples_read(&rows, folder, &failure), OK, "%zu bytes: %s", n, failure.msg);
        size_t least = 0;
        for (size_t k = 0; k < flushes; k++)
            if (flushed[k] <= n)
                least = rows_at[k];
        cr_expect_geq(rows.n, least + 1, "%zu bytes: %zu rows", n, rows.n);
        cr_expect_str_eq(((struct sample_row *)rows.row)[rows.n - 1].case_id, "b");
        rows_free(&rows);
    }
}

Test(samples, samples_reach_the_disk_without_a_flush)
{
    struct samples s;
    const enum raw raw = best_raw();

    MUST(samples_create(&s, folder, raw, &failure));
    const off_t before = s.out.end;
    put_samples(&s, "a", 64);
    cr_expect_gt(s.out.end, before);
    MUST(samples_close(&s, &failure));
    expect_samples(folder, (const char *const[]){"a"}, (const int[]){64}, 1);
}

Test(samples, many_samples_and_damage)
{
    struct samples s;
    struct rows rows;
    const enum raw raw = best_raw();

    const char *const path = in_folder(raw_file[raw]);
    MUST(samples_create(&s, folder, raw, &failure));
    put_samples(&s, "a", 20000);
    MUST(samples_close(&s, &failure));
    expect_samples(folder, (const char *const[]){"a"}, (const int[]){20000}, 1);

    struct bytes file = must_load(path);
    memset(file.data + file.n / 2, 0x55, 64);
    cr_assert_eq(file_replace(path, file.data, file.n, &failure), OK);
    REFUSED(samples_read(&rows, folder, &failure), E_IO, path);
    cr_expect_eq(samples_resume(&s, folder, &failure), E_IO, "damage is not a torn end");
}

Test(samples, a_full_disk_stops_the_samples)
{
    struct samples s;
    const enum raw raw = best_raw();
    enum status st = OK;
    struct sample_row row = sample_row_empty();

    MUST(samples_create(&s, folder, raw, &failure));
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, RLIM_INFINITY}), 0);
    for (int i = 0; st == OK && i < 10000; i++) {
        row.wall_ns = i * 1.37;
        st = samples_write(&s, &row, &failure);
    }
    cr_expect_eq(st, E_IO);
    HAS(failure.msg, raw_file[raw], "No space left");
    cr_expect_eq(samples_write(&s, &row, &failure), E_IO);
    cr_expect(raw == RAW_CSV || samples_flush(&s, &failure) == E_IO);
    samples_close(&s, NULL);

    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}), 0);
    MUST(samples_resume(&s, folder, &failure));
    MUST(samples_write(&s, &row, &failure));
    MUST(samples_close(&s, &failure));
    struct rows rows = must_samples(folder);
    const struct sample_row *back = rows.row;
    cr_expect_gt(rows.n, 10);
    for (size_t i = 0; i + 1 < rows.n; i++)
        cr_expect_eq(back[i].wall_ns, (double)i * 1.37);
}

Test(samples, zst_without_zstd_is_said)
{
    enum raw raw;
    const char *note;

    if (best_raw() == RAW_ZST) {
        MUST(raw_choose(&raw, &note, RAW_ZST, true, &failure));
        cr_expect_eq(raw, RAW_ZST);
    } else {
        cr_expect_eq(raw_choose(&raw, &note, RAW_ZST, true, &failure), E_UNSUPPORTED);
    }
    MUST(raw_choose(&raw, &note, RAW_NONE, true, &failure));
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
    MUST(runjson_create(folder, &r, &failure));
}

Test(runjson, gives_back_the_options)
{
    char *back, start[TEXT_SIZE];

    create_json();
    MUST(runjson_read(folder, &back, start, &failure));
    TEXTS({back, options}, {start, "2026-11-21T06:01:02Z"});
    free(back);
}

Test(runjson, tells_the_end)
{
    const int counts[ROW_STATUS_COUNT] = {[ROW_OK] = 7, [ROW_SKIPPED] = 2};
    json_int_t code, ok, skipped;
    const char *schema, *end, *d_model;

    create_json();
    MUST(runjson_finish(folder, "2026-11-21T06:02:00Z", 130, counts, &failure));
    json_t *const j = json_of_file(in_folder("run.json"));
    cr_assert_eq(json_unpack(j, "{s:s, s:s, s:I, s:{s:I, s:I}, s:{s:s}}", "schema", &schema,
                             "finished_at_utc", &end, "exit_code", &code, "rows", "ok", &ok,
                             "skipped", &skipped, "options", "d-model", &d_model),
                 0);
    TEXTS({schema, "bench-run/" SCHEMA_VERSION}, {end, "2026-11-21T06:02:00Z"}, {d_model, "512"});
    cr_expect(code == 130 && ok == 7 && skipped == 2);
    cr_expect_str_eq(json_string_value(json_array_get(json_object_get(j, "argv"), 2)), "$'x\\xff'");
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
    char *back, start[TEXT_SIZE];

    const char *const path = in_folder("run.json");
    cr_expect_eq(runjson_read(folder, &back, start, &failure), E_IO, "there is none");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cr_assert_eq(file_replace(path, bad[i], strlen(bad[i]), &failure), OK);
        REFUSED(runjson_read(folder, &back, start, &failure), E_IO, path, wanted[i]);
        cr_expect_null(back);
    }
}
