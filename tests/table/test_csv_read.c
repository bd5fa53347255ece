/* SPDX-License-Identifier: MIT
 *
 * Damaged table files: the error names the damage, and a full disk or a kill leaves whole rows. */
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

#include <signal.h>
#include <sys/resource.h>

static const struct table *const latency = &tables[TABLE_LATENCY];
static char path[FILE_PATH];

static void make_path(void)
{
    folder_make();
    folder_path(path, latency->file);
}

TestSuite(csv_read, .init = make_path, .fini = folder_remove, .timeout = 240);

static void put_file(const char *text, size_t n) { MUST(file_replace(path, text, n, &failure)); }

/* The header and n rows with case ids "0", "1", ... */
static struct bytes sample_file(int n)
{
    struct latency_row row[8];
    cr_assert(n <= 8);
    for (int i = 0; i < n; i++) {
        row[i] = latency_row_empty();
        snprintf(row[i].case_id, TEXT_SIZE, "%d", i);
        row[i].median_ns = 1.5 * i;
    }
    MUST(table_replace(latency, path, row, (size_t)n, &failure));
    return must_load(path);
}

/* ---- bad files ---------------------------------------------------------------------------- */

static void expect_bad(const char *text, size_t n, const char *wanted)
{
    struct rows rows;
    struct err e = {""};
    const size_t prefix = strlen(path);

    put_file(text, n);
    cr_assert_eq(table_read(&rows, latency, path, &e), E_IO, "accepted, expected: %s", wanted);
    cr_expect(strncmp(e.msg, path, prefix) == 0 &&
                  strncmp(e.msg + prefix, wanted, strlen(wanted)) == 0,
              "%s\nexpected: FILE%s", e.msg, wanted);
    cr_expect_eq(rows.n, 0);
}

/* The file of two rows with the first `from` replaced by `to`. */
static void expect_bad_edit(const char *from, const char *to, const char *wanted)
{
    struct bytes good = sample_file(2);
    char *at = strstr(good.data, from), *bad = room(1, good.n + strlen(to) + 1);
    cr_assert(at, "%s", from);
    memcpy(bad, good.data, (size_t)(at - good.data));
    strcat(bad, to);
    strcat(bad, at + strlen(from));
    expect_bad(bad, strlen(bad), wanted);
}

#define ROW2 "\nbench-latency/" SCHEMA_VERSION ",,,0,"
Test(csv_read, faults_are_named_with_file_and_line)
{
    expect_bad("", 0, " is empty");
    expect_bad("schema\0\n", 8, " line 1: a NUL byte");
    expect_bad("\n", 1, " line 1: blank");
    expect_bad("a,b\n1,2\n", 8, " line 1: no column schema");
    static const char lacking[] = "schema,a\nbench-latency/" SCHEMA_VERSION ",x\n";
    expect_bad(lacking, strlen(lacking), " line 1: no column run_id");
    expect_bad("schema,schema\n", 14, " line 1: column schema twice");
    expect_bad_edit("bench-latency/" SCHEMA_VERSION, "bench-latency/3.0",
                    " has schema bench-latency/3.0, this program reads 2.x");
    expect_bad_edit("bench-latency/" SCHEMA_VERSION, "bench-memory/" SCHEMA_VERSION,
                    " has schema \"bench-memory/" SCHEMA_VERSION
                    "\", not bench-latency/" SCHEMA_VERSION);
    expect_bad_edit("bench-latency/" SCHEMA_VERSION, "bench-latency/2",
                    " has schema \"bench-latency/2\"");
    expect_bad_edit("bench-latency/" SCHEMA_VERSION, "",
                    " has schema \"\", not bench-latency/" SCHEMA_VERSION);
    for (int more = -1; more <= 1; more += 2) {
        expect_bad_edit(
            ROW2,
            more < 0 ? "\nbench-latency/" SCHEMA_VERSION ",,0,"
                     : "\nbench-latency/" SCHEMA_VERSION ",,,,0,",
            kept_text(" line 2: %d fields, header has %d", latency->n + more, latency->n));
    }
    expect_bad_edit("\nbench", "\n\nbench", " line 2: blank");
    expect_bad_edit("\nbench", "\n\r\nbench", " line 2: blank");
    expect_bad_edit(ROW2, "\nbench-latency/" SCHEMA_VERSION ",\r,,0,",
                    " line 2: a bare carriage return");
    expect_bad_edit(ROW2, "\nbench-latency/" SCHEMA_VERSION ",a\"b,,0,", " line 2: a quote");
    expect_bad_edit(ROW2, "\nbench-latency/" SCHEMA_VERSION ",\"a\"b,,0,",
                    " line 2: a quote in the wrong place");
    expect_bad_edit(ROW2, "\nbench-latency/" SCHEMA_VERSION ",\"a,,0,",
                    " line 2: a quote is not closed");
    expect_bad_edit(",1.5,", ",nan,", " line 3, column median_ns: \"nan\" is not a number");
    expect_bad_edit(",1.5,", ",inf,", " line 3, column median_ns: \"inf\" is not a number");
    expect_bad_edit(",1.5,", ",1e999,", " line 3, column median_ns: \"1e999\" is not a number");
    expect_bad_edit(",1.5,", ",0x1p3,", " line 3, column median_ns: \"0x1p3\" is not a number");
    expect_bad_edit(",1.5,", ",1-5,", " line 3, column median_ns: \"1-5\" is not a number");
    expect_bad_edit(",1.5,", ", 1.5,", " line 3, column median_ns: \" 1.5\" is not a number");
}

static const struct column *column_named(const char *name)
{
    int i = 0;

    while (i < latency->n && strcmp(latency->columns[i].name, name) != 0)
        i++;
    cr_assert_lt(i, latency->n, "%s", name);
    return &latency->columns[i];
}

Test(csv_read, whole_numbers_are_whole)
{
    char text[512], wanted[128];

    EACH_TEXT (bad, "7.0", "+7", "9223372036854775808", "-9223372036854775808", "7 ", "--7", "-") {
        const char *const names[] = {"schema", "seed"};
        struct rows rows;
        struct column two[2] = {latency->columns[0], *column_named(names[1])};
        const struct table t = {
            "latency", "latency.csv", latency->schema, two, 2, sizeof(struct latency_row), NULL};
        const int n =
            snprintf(text, sizeof(text), "schema,seed\nbench-latency/" SCHEMA_VERSION ",%s\n", bad);
        cr_assert_eq(csv_rows(&rows, &t, "f", text, (size_t)n, &failure), E_IO, "%s", bad);
        snprintf(wanted, sizeof(wanted), "f line 2, column seed: \"%s\" is not a whole", bad);
        cr_expect_eq(strncmp(failure.msg, wanted, strlen(wanted)), 0, "%s", failure.msg);
    }
}

Test(csv_read, a_text_that_does_not_fit_is_an_error)
{
    char text[TEXT_SIZE + 1], edit[TEXT_SIZE + 64], what[80];
    sample_file(1);

    memset(text, 'x', TEXT_SIZE);
    text[TEXT_SIZE] = '\0';
    snprintf(edit, sizeof(edit), "\nbench-latency/" SCHEMA_VERSION ",%s,,0,", text);
    snprintf(what, sizeof(what), " line 2, column run_id: %d bytes, at most %d", TEXT_SIZE,
             TEXT_SIZE - 1);
    expect_bad_edit(ROW2, edit, what);
}

Test(csv_read, versions_of_the_same_major_are_read)
{
    static const struct column two[] = {{"schema", "", "", COLUMN_TEXT, 0, TEXT_SIZE},
                                        {"count", "", "", COLUMN_I64, TEXT_SIZE, sizeof(int64_t)}};
    struct table t = {"x", "x.csv", "bench-x/1.3", two, 2, TEXT_SIZE + sizeof(int64_t), NULL};
    struct rows rows;
    int64_t count;
    static const char newer[] = "more,schema,count\n\"a,\nb\",bench-x/1.4,7\n";
    static const char older[] = "schema\nbench-x/1.2\n";
    static const char same[] = "schema\nbench-x/1.3\n";
    static const char of_any[] = "schema\n"; /* no rows */

    MUST(csv_rows(&rows, &t, "f", newer, sizeof(newer) - 1, &failure));
    memcpy(&count, (char *)rows.row + TEXT_SIZE, sizeof(count));
    cr_expect_eq(count, 7);
    rows_free(&rows);
    MUST(csv_rows(&rows, &t, "f", older, sizeof(older) - 1, &failure));
    memcpy(&count, (char *)rows.row + TEXT_SIZE, sizeof(count));
    cr_expect_eq(count, I64_EMPTY);
    rows_free(&rows);
    MUST(csv_rows(&rows, &t, "f", of_any, sizeof(of_any) - 1, &failure));
    cr_expect_eq(rows.n, 0);
    rows_free(&rows);
    REFUSED(csv_rows(&rows, &t, "f", same, sizeof(same) - 1, &failure), E_IO, "no column count");
}

/* ---- kills and full disks ----------------------------------------------------------------- */

Test(csv_read, a_file_cut_anywhere_reads_as_whole_rows_or_says_so)
{
    struct bytes good = sample_file(3);

    for (size_t n = 0; n <= good.n; n++) {
        struct rows rows;
        struct table_file f;
        put_file(good.data, n);
        const bool whole = n > 0 && good.data[n - 1] == '\n';
        const enum status st = table_read(&rows, latency, path, &failure);
        cr_expect_eq(st, whole ? OK : E_IO, "%zu bytes", n);
        rows_free(&rows);

        cr_assert_eq(table_resume(&f, latency, path, NULL, &failure), OK, "%zu bytes: %s", n,
                     failure.msg);
        struct latency_row row = latency_row_empty();
        MUST(table_write(&f, &row, &failure));
        cr_assert_eq(table_close(&f, &failure), OK);
        size_t lines = 0;
        for (size_t i = 0; i < n; i++)
            lines += good.data[i] == '\n';
        cr_assert_eq(table_read(&rows, latency, path, &failure), OK, "%zu bytes: %s", n,
                     failure.msg);
        cr_expect_eq(rows.n, lines ? lines : 1, "%zu bytes: %zu rows", n, rows.n);
        rows_free(&rows);
    }
}

Test(csv_read, resume_refuses_what_is_not_just_torn)
{
    struct table_file f;
    struct bytes good = sample_file(2), now;
    char *at = strstr(good.data, ",1.5,");

    memcpy(at, ",1x5,", 5);
    put_file(good.data, good.n);
    REFUSED(table_resume(&f, latency, path, NULL, &failure), E_IO, "line 3, column median_ns");

    /* An open quote extends over everything that follows: it is never cut away like a torn line. */
    good = sample_file(2);
    at = strstr(good.data, ROW2) + strlen("\nbench-latency/" SCHEMA_VERSION ",");
    *at = '"';
    put_file(good.data, good.n);
    REFUSED(table_resume(&f, latency, path, NULL, &failure), E_IO, "line 2: a quote is not closed");
    now = must_load(path);
    cr_expect_eq(now.n, good.n);

    /* Another order of columns reads well but must not be appended to. */
    put_file("x,schema\n", 9);
    cr_assert_eq(table_resume(&f, latency, path, NULL, &failure), E_IO);
}

/* ---- rows that replace others ------------------------------------------------------------- */

Test(csv_read, the_last_row_of_a_case_counts)
{
    static const char *const ids[] = {"a", "b", "", "a", "c", "", "b", "b"};
    static const int expected[] = {2, 3, 4, 5, 7};
    struct latency_row row[ARRAY_LEN(ids)];

    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        row[i] = latency_row_empty();
        text_put(row[i].case_id, TEXT_SIZE, ids[i]);
        row[i].seed = (int64_t)i;
    }
    MUST(table_replace(latency, path, row, ARRAY_LEN(row), &failure));
    struct rows rows = must_read_table(path, TABLE_LATENCY);
    cr_assert_eq(rows.n, ARRAY_LEN(expected));
    for (size_t i = 0; i < rows.n; i++)
        cr_expect_eq(((const struct latency_row *)rows.row)[i].seed, expected[i]);
}

/* Steps 10 20 30 40, continued at 20 with another interval, and once more at 25. */
Test(csv_read, a_numbered_row_replaces_those_from_its_number_on)
{
    static const int steps[] = {10, 20, 30, 40, 25, 35, 45, 30, 40},
                     expected[] = {10, 20, 25, 30, 40};
    struct train_row row[ARRAY_LEN(steps)];

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        row[i] = train_row_empty();
        row[i].step = steps[i];
        row[i].tokens = (int64_t)i;
    }
    MUST(table_replace(&tables[TABLE_TRAIN], path, row, ARRAY_LEN(row), &failure));
    struct rows rows = must_read_table(path, TABLE_TRAIN);
    cr_assert_eq(rows.n, ARRAY_LEN(expected));
    for (size_t i = 0; i < rows.n; i++)
        cr_expect_eq(((const struct train_row *)rows.row)[i].step, expected[i]);
    cr_expect_eq(((const struct train_row *)rows.row)[4].tokens, 8);
}

Test(csv_read, a_full_disk_is_named_and_the_last_row_stays_whole)
{
    struct table_file f;
    struct rows rows;
    struct latency_row row = latency_row_empty();

    MUST(table_create(&f, latency, path, &failure));
    MUST(table_write(&f, &row, &failure));
    signal(SIGXFSZ, SIG_IGN);
    const rlim_t room = (rlim_t)f.out.end + 20; /* the next row is cut short by the system */
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){room, RLIM_INFINITY}), 0);
    REFUSED(table_write(&f, &row, &failure), E_IO, path);
    HAS(failure.msg, "No space left on device  -> free some space");
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}), 0);
    MUST(table_read(&rows, latency, path, &failure));
    cr_expect_eq(rows.n, 1);
    rows_free(&rows);
    /* The first error is kept: free space later does not make a table with a hole. */
    cr_assert_eq(table_write(&f, &row, &failure), E_IO);
    REFUSED(table_close(&f, &failure), E_IO, "No space left on device  -> free some space");
    MUST(table_read(&rows, latency, path, &failure));
    cr_expect_eq(rows.n, 1);
    rows_free(&rows);
}

Test(csv_read, nothing_that_exists_is_overwritten)
{
    struct table_file f;

    sample_file(1);
    REFUSED(table_create(&f, latency, path, &failure), E_IO, "File exists");
}

/* ---- ranges ------------------------------------------------------------------------------- */

/* A row with one other value; *name gets the column. */
static void put_value(enum table_id id, const char *name, const char *value)
{
    const char *const text =
        kept_text("schema,%s\n%.*s.0,%s\n", name, (int)strcspn(tables[id].schema, "."),
                  tables[id].schema, value);
    put_file(text, strlen(text));
}

Test(csv_read, values_that_no_run_has)
{
    static const struct {
        enum table_id table;
        const char *column, *value, *wanted;
    } bad[] = {
        {TABLE_LATENCY, "median_ns", "-5", "a number from 0 on"},
        {TABLE_LATENCY, "threads", "-1", "a number from 1 on"},
        {TABLE_LATENCY, "threads", "0", "a number from 1 on"},
        {TABLE_LATENCY, "seq_tokens", "-8", "a number from 1 on"},
        {TABLE_LATENCY, "mem_tokens", "-8", "a number from 0 on"},
        {TABLE_LATENCY, "status", "weird",
         "one of ok, skipped, failed, wrong, timeout, interrupted and suspect"},
        {TABLE_LATENCY, "status", "OK", "one of ok"},
        {TABLE_LATENCY, "same_length", "2", "a number from 0 to 1"},
        {TABLE_LATENCY, "gflop_per_s", "-1e-3", "a number from 0 on"},
        {TABLE_MEMORY, "arena_peak_bytes", "-1", "a number from 0 on"},
        {TABLE_PERPLEXITY, "ppl", "-3", "a number from 0 on"},
        {TABLE_PERPLEXITY, "nll_nats_per_token", "-0.5", "a number from 0 on"},
        {TABLE_PERPLEXITY, "tokens_scored", "-1", "a number from 0 on"},
        {TABLE_STUDY, "role", "finall", "one of tune and final"},
        {TABLE_STUDY, "baseline", "7", "a number from 0 to 1"},
        {TABLE_STUDY, "train_s", "-1", "a number from 0 on"},
        {TABLE_STUDY, "tokens", "-1", "a number from 0 on"},
        {TABLE_TRAIN, "step", "-1", "a number from 0 on"},
        {TABLE_ENV, "git_dirty", "-1", "a number from 0 to 1"},
        {TABLE_SAMPLES, "disturbed", "3", "a number from 0 to 1"},
        {TABLE_SAMPLES, "wall_ns", "-1", "a number from 0 on"},
    };
    static const struct {
        enum table_id table;
        const char *column, *value;
    } good[] = {
        {TABLE_LATENCY, "drift_pct", "-5"},
        {TABLE_MEMORY, "rss_delta_bytes", "-4096"},
        {TABLE_LATENCY, "seed", "-1"},
        {TABLE_LATENCY, "mem_tokens", "0"},
        {TABLE_PERPLEXITY, "ppl_delta_pct", "-2"},
        {TABLE_PERPLEXITY, "answer_floor_nats", "-1e-17"},
        {TABLE_LATENCY, "status", ""},
        {TABLE_LATENCY, "threads", ""},
    };
    struct rows rows;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = {""};
        put_value(bad[i].table, bad[i].column, bad[i].value);
        cr_expect_eq(table_read(&rows, &tables[bad[i].table], path, &e), E_IO, "%s %s",
                     bad[i].column, bad[i].value);
        HAS(e.msg, kept_text("line 2, column %s: \"%s\"", bad[i].column, bad[i].value),
            bad[i].wanted, "  -> ");
    }
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        put_value(good[i].table, good[i].column, good[i].value);
        cr_expect_eq(table_read(&rows, &tables[good[i].table], path, &failure), OK, "%s",
                     failure.msg);
        rows_free(&rows);
    }
}
