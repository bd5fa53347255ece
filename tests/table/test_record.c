/* SPDX-License-Identifier: MIT
 *
 * The tables: the documented columns, rows that read back as they were written, and the printed
 * forms. */
#include "harness/table/range.h"
#include "harness/table/remarks.h"
#include "tests/support/json.h"
#include "tests/support/program.h"
#include "tests/support/run_folder.h"
#include "variants/base/printable.h"

#include <locale.h>

TestSuite(record, .init = folder_make, .fini = folder_remove, .timeout = 240);

static const struct table *const latency = &tables[TABLE_LATENCY];

/* ---- columns ------------------------------------------------------------------------------ */

Test(record, headers_are_the_documented_ones)
{
    struct bytes got;
    char *own = must_load("tests/table/headers.txt").data;
    const char *const of_keys = strsep(&own, "\n"); /* then a line a table */

    for (int i = TABLE_LATENCY; i <= TABLE_PERPLEXITY; i++) {
        const char *const wanted = kept_text("%s,%s\n", of_keys, strsep(&own, "\n"));
        table_bytes(&got, &tables[i], NULL);
        cr_expect_str_eq(got.data, wanted);
        free(got.data);
    }
    table_bytes(&got, &tables[TABLE_ENV], NULL);
    cr_expect_eq(strncmp(got.data, "schema,run_id,host_id,", 22), 0);
    HAS(got.data, ",openblas_core,openblas_config,onednn_version,env_overrides,");
    free(got.data);
}

Test(record, results_readme_is_up_to_date)
{
    char *text = PRINTED(f, columns_markdown(f));
    struct bytes tracked = must_load("results/README.md");
    cr_expect_str_eq(tracked.data, text, "results/README.md differs  -> make && scripts/pages.sh");
}

/* ---- round trips -------------------------------------------------------------------------- */

static const double awkward[] = {0.0,
                                 -0.0,
                                 0.1,
                                 1.0 / 3.0,
                                 1e15,
                                 1e22,
                                 123456789012,
                                 5e-324,
                                 DBL_MAX,
                                 -DBL_MIN,
                                 DBL_TRUE_MIN * 3,
                                 0.30000000000000004,
                                 2.5};
static const int64_t awkward_count[] = {0, -1, INT64_MAX, INT64_MIN + 1, 42};
static const char *const awkward_text[] = {"",         "plain",    "a,b",       "say \"hi\"",
                                           "\"",       " spaces ", "\xce\xbcs", "two\nlines",
                                           "cr\rhere", "\xff"};

/* Column i gets an awkward value that depends on i and `turn`. */
static void fill(const struct table *t, void *row, int turn)
{
    for (int i = 0; i < t->n; i++) {
        const struct column *c = &t->columns[i];
        char *at = (char *)row + c->offset;
        const size_t k = (size_t)(i + turn);
        const struct column_range range = column_range(c);
        const int64_t count = awkward_count[k % ARRAY_LEN(awkward_count)];
        const double x = awkward[k % ARRAY_LEN(awkward)];
        memset(at, 0, c->size);
        if (range.words)
            snprintf(at, c->size, "%s", range.words[turn % 2]);
        else if (i == 0)
            snprintf(at, c->size, "%s", t->schema);
        else if (c->type == COLUMN_TEXT)
            snprintf(at, c->size, "%s", awkward_text[k % ARRAY_LEN(awkward_text)]);
        else if (c->type == COLUMN_I64)
            memcpy(at,
                   (double)count < range.least || (double)count > range.most ? &(int64_t){1}
                                                                             : &count,
                   sizeof(int64_t));
        else
            memcpy(at, x < range.least || x > range.most ? &(double){0.1} : &x, sizeof(double));
    }
}

static void expect_same_row(const struct table *t, const char *a, const char *b)
{
    for (int i = 0; i < t->n; i++) {
        const struct column *c = &t->columns[i];
        if (c->type == COLUMN_TEXT) {
            char line[PAGE_TEXT_SIZE];
            printable_copy(line, sizeof(line), a + c->offset);
            cr_expect_str_eq(line, b + c->offset, "%s.%s", t->name, c->name);
        } else
            cr_expect_eq(memcmp(a + c->offset, b + c->offset, c->size), 0, "%s.%s", t->name,
                         c->name);
    }
}

Test(record, every_table_reads_back_what_it_wrote)
{
    enum { TURNS = 30 };
    for (int k = 0; k < TABLE_COUNT; k++) {
        const struct table *t = &tables[k];
        struct table_file f;
        char *rows = room(TURNS, t->row_size);

        const char *const file = in_folder(t->file);
        MUST(table_create(&f, t, file, &failure));
        for (int turn = 0; turn < TURNS; turn++) {
            char *row = rows + (size_t)turn * t->row_size;
            fill(t, row, turn);
            /* Rows of the same case would replace each other. */
            if (t->counter)
                memcpy(row + t->columns[find_column(t, t->counter)].offset, &(int64_t){turn},
                       sizeof(int64_t));
            if (k == TABLE_LATENCY) /* fewer have no interval */
                ((struct latency_row *)row)->samples = INTERVAL_SAMPLES;
            if (find_column(t, "case_id") >= 0)
                snprintf(row + t->columns[find_column(t, "case_id")].offset, TEXT_SIZE, "%d", turn);
            MUST(table_write(&f, row, &failure));
        }
        MUST(table_close(&f, &failure));
        struct rows back = must_read_table(file, (enum table_id)(t - tables));
        cr_assert_eq(back.n, TURNS);
        for (size_t i = 0; i < TURNS; i++)
            expect_same_row(t, rows + i * t->row_size, (char *)back.row + i * t->row_size);
    }
}

/* Older versions wrote the range of three to five samples as an interval of 95 %. */
Test(record, ranges_are_no_intervals)
{
    struct rundir d = made_open("aaaa");
    for (int samples = 5; samples <= 6; samples++) {
        const struct made_case c = {"xl", "avx2", samples == 5 ? "five" : "six", 64, 1000};
        const struct key_row k = made_key(&d, &c, "host");
        struct latency_row row = ROW_OF(latency, LATENCY, &k);
        row.samples = samples;
        row.ci95_low_ns = 990;
        row.ci95_high_ns = 1010;
        made_write(&d, TABLE_LATENCY, &row);
    }
    struct run run = made_read(&d);
    const struct latency_row *const row = run.latency.row;
    cr_assert_eq(run.latency.n, 2);
    cr_expect(isnan(row[0].ci95_low_ns) && isnan(row[0].ci95_high_ns));
    cr_expect(row[1].ci95_low_ns == 990 && row[1].ci95_high_ns == 1010);
}

Test(record, empty_rows_stay_empty)
{
    struct latency_row row = latency_row_empty(), *back;

    const char *const path = in_folder("latency.csv");
    row.mean_ns = INFINITY; /* not a measurement either */
    MUST(table_replace(latency, path, &row, 1, &failure));
    struct bytes text = must_load(path);
    const char *line = strchr(text.data, '\n') + 1;
    cr_expect_eq(strspn(line + strlen(latency->schema), ","), (size_t)latency->n - 1, "%s", line);
    struct rows rows = must_read_table(path, TABLE_LATENCY);
    back = rows.row;
    NUMBERS({back->median_ns, NAN}, {back->mean_ns, NAN}, {back->samples, I64_EMPTY});
    cr_expect_str_eq(back->schema, "bench-latency/" SCHEMA_VERSION);
}

Test(record, reals_are_short_and_have_a_point)
{
    static const struct {
        double x;
        const char *text;
    } want[] = {{0.1, "0.1"},
                {0.30000000000000004, "0.30000000000000004"},
                {21400000.0, "21400000"},
                {1.0 / 3.0, "0.3333333333333333"},
                {-2.5e-7, "-2.5e-07"}};
    struct latency_row row = latency_row_empty();
    char num[NUMBER_SIZE];
    int column = 0;

    setlocale(LC_ALL, "de_DE.UTF-8"); /* a decimal comma, where the system has the locale */
    while (strcmp(latency->columns[column].name, "median_ns") != 0)
        column++;
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        row.median_ns = want[i].x;
        cr_expect_str_eq(row_field(latency, column, &row, num), want[i].text);
    }
}

Test(record, keys_are_shared)
{
    struct key_row key = key_row_empty();

    snprintf(key.repro, sizeof(key.repro), "--variant xl");
    key.seed = 7;
    struct perplexity_row row = ROW_OF(perplexity, PERPLEXITY, &key);
    cr_expect_str_eq(row.repro, "--variant xl");
    NUMBERS({row.seed, 7}, {row.heads, I64_EMPTY});
    cr_expect_str_eq(row_text(&tables[TABLE_PERPLEXITY], &row, "repro"), "--variant xl");
}

Test(record, texts_are_cut_between_characters)
{
    char t[8];

    cr_expect(text_put(t, sizeof(t), "1234567"));
    cr_expect_str_eq(t, "1234567");
    cr_expect_not(text_put(t, sizeof(t), "123456\xce\xbc"));
    cr_expect_str_eq(t, "123456");
    cr_expect(text_put(t, sizeof(t), "a\n\xff\xc0\x80"));
    cr_expect_str_eq(t, "a ???");
    cr_expect(text_put(t, sizeof(t), "\xed\xa0\x80")); /* a surrogate */
    cr_expect_str_eq(t, "???");
    cr_expect(text_put(t, sizeof(t), "\xf0\x9f\x98\x80"));
    cr_expect_str_eq(t, "\xf0\x9f\x98\x80");
    cr_expect(text_put(t, sizeof(t), "\xe2\x82")); /* ends inside a character */
    cr_expect_str_eq(t, "??");
}

/* ---- printing ----------------------------------------------------------------------------- */

static void expect_print(enum format format, const struct selection *s, const void *row,
                         const char *wanted)
{
    char *text = PRINTED(f, row_print(f, format, latency, s, row));
    cr_expect_str_eq(text, wanted);
}

Test(record, rows_print_as_csv_jsonl_and_md)
{
    const char *const names[] = {"variant", "median_ns", "samples", "status_detail"};
    const char *const one[] = {"variant"};
    struct latency_row row = latency_row_empty();
    struct selection s;

    MUST(columns_select(&s, latency, names, 4, &failure));
    snprintf(row.variant, TEXT_SIZE, "xl");
    row.median_ns = 1.5;
    snprintf(row.status_detail, LINE_SIZE, "a|b, \"c\"");
    expect_print(FORMAT_CSV, &s, &row, "xl,1.5,,\"a|b, \"\"c\"\"\"\n");
    expect_print(FORMAT_JSONL, &s, &row,
                 "{\"variant\":\"xl\",\"median_ns\":1.5,\"samples\":null,"
                 "\"status_detail\":\"a|b, \\\"c\\\"\"}\n");
    expect_print(FORMAT_MD, &s, &row, "| xl | 1.5 |  | a\\|b, \"c\" |\n");
    snprintf(row.status_detail, LINE_SIZE, "\xff");
    expect_print(FORMAT_JSONL, &s, &row,
                 "{\"variant\":\"xl\",\"median_ns\":1.5,\"samples\":null,"
                 "\"status_detail\":\"?\"}\n");

    MUST(columns_select(&s, latency, one, 1, &failure));
    row.variant[0] = '\0';
    expect_print(FORMAT_CSV, &s, &row, "\"\"\n");
}

Test(record, a_whole_jsonl_row_is_json)
{
    struct env_row row;
    struct selection s;
    const struct table *t = &tables[TABLE_ENV];

    fill(t, &row, 3);
    cr_assert_eq(columns_select(&s, t, NULL, 0, NULL), OK);
    cr_assert_eq(s.n, t->n);
    char *text = PRINTED(f, row_print(f, FORMAT_JSONL, t, &s, &row));
    const json_t *const j = json_of(text);
    cr_assert(json_is_object(j), "%s", text);
    cr_expect_eq(json_object_size(j), (size_t)t->n);
}

Test(record, unknown_columns_are_named)
{
    const char *const names[] = {"medain_ns"};
    struct selection s;

    REFUSED(columns_select(&s, latency, names, 1, &failure), E_USAGE,
            "\"medain_ns\"  -> did you mean median_ns?");
    HAS(failure.msg, "(see: bench list columns)");
}

Test(record, a_full_stream_is_an_error)
{
    FILE *f = fopen("/dev/full", "w");
    cr_assert(f);
    fputs("x\n", f);
    REFUSED(file_flush(f, "standard output", &failure), E_IO,
            "cannot write to standard output: No space left");
    fclose(f);
}
