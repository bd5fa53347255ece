/* SPDX-License-Identifier: MIT
 *
 * Exports of a run that has two values of every axis: each number stands at the case that it is of,
 * and cases have different names. */
#include "tests/support/json.h"
#include "tests/support/many_rows.h"
#include "tests/support/program.h"

TestSuite(export_axes, .init = folder_make, .fini = folder_remove, .timeout = 240);

static struct ran exported(const char *to)
{
    struct rundir d = made_open("abcdef1");
    many_write(&d, 13, NULL);
    made_close(&d, "host", "CPU");
    struct ran r = must_bench("export --to %s %s", to, d.path);
    return r;
}

/* The name says which row it is, and what it is of if that is no time. */
static void expect_name(const char *name, int i, const char *what)
{
    cr_assert(i >= 0 && i < MANY, "%s", name);
    const struct many_row r = many_row(i);
    cr_expect_str_eq(name, kept_text("%s layer seq=%d mem=%d%s%s %s%s", r.is.variant, r.is.seq,
                                     r.mem, r.batch > 1 ? " batch=4" : "",
                                     r.threads > 1 ? " threads=2" : "", r.is.backend, what));
}

Test(export_axes, one_document)
{
    struct ran r = exported("json");
    json_t *const doc = json_of(r.out.data);
    const json_t *const rows = json_object_get(doc, "benchmarks");

    cr_assert_eq(json_array_size(rows), MANY);
    for (size_t k = 0; k < MANY; k++) {
        const json_t *const one = json_array_get(rows, k);
        const int i = many_of_ns(number_at(one, "real_time"));
        const struct many_row row = many_row(i);
        expect_name(text_at(one, "name"), i, "");
        cr_expect_str_eq(text_at(one, "case_id"), row.id);
        NUMBERS({number_at(one, "seq_tokens"), row.is.seq}, {number_at(one, "mem_tokens"), row.mem},
                {number_at(one, "batch_size"), row.batch},
                {number_at(one, "threads"), row.threads});
    }
}

/* The lines of jq on the page, in its order. */
static json_t *by_jq(int which)
{
    exported("json");
    need_programs("jq");
    struct ran r = must_shell(
        "page=$(dirname \"$BENCH\")/../../docs/measuring.md; line=$(sed -n 's/^ *bench export | "
        "//p' \"$page\" | sed -n %dp); \"$BENCH\" export --out . | eval \"$line\"",
        which);
    return json_of(r.out.data);
}

Test(export_axes, github_action_benchmark)
{
    json_t *const doc = by_jq(1);

    cr_assert_eq(json_array_size(doc), MANY);
    for (size_t k = 0; k < MANY; k++) {
        const json_t *const one = json_array_get(doc, k);
        const int i = many_of_ns(number_at(one, "value"));
        const char *const repro = kept_text("repro %d", i);
        expect_name(text_at(one, "name"), i, "");
        TEXTS({text_at(one, "unit"), "ns"}, {text_at(one, "extra"), repro});
    }
}

Test(export_axes, bencher)
{
    json_t *const doc = by_jq(2);
    const char *name;
    json_t *one;

    cr_expect_eq(json_object_size(doc), MANY);
    json_object_foreach(doc, name, one)
        expect_name(name, many_of_ns(number_at(json_object_get(one, "latency"), "value")), "");
}

/* Lines of a text format that begin with `word`: f gets each of them. */
static int each_line(char *text, const char *word, void (*f)(char *line))
{
    int n = 0;

    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (strncmp(line, word, strlen(word)) == 0) {
            f(line);
            n++;
        }
    return n;
}

static void expect_metric(char *line)
{
    const double seconds = strtod(strrchr(line, ' '), NULL);
    char *const name = strstr(line, "case=\"") + strlen("case=\"");
    const int i = many_of_ns(round(seconds * 1e9));

    cr_assert(i >= 0, "%s", line);
    const char *const label =
        kept_text("variant=\"%s\",backend=\"%s\"", many_row(i).is.variant, many_row(i).is.backend);
    cr_expect(strstr(line, label), "%s: row %d", line, i);
    name[strcspn(name, "\"")] = '\0';
    expect_name(name, i, "");
}

Test(export_axes, openmetrics)
{
    struct ran r = exported("openmetrics");

    cr_expect_eq(each_line(r.out.data, "bench_median_seconds{", expect_metric), MANY);
}

static void expect_test_case(char *line)
{
    char *const name = strstr(line, " name=\"") + strlen(" name=\"");
    const double seconds = strtod(strstr(line, " time=\"") + strlen(" time=\""), NULL);
    const int i = many_of_ns(round(seconds * 1e9));

    name[strcspn(name, "\"")] = '\0';
    if (strncmp(line, "<testcase classname=\"bench.perplexity.", 38) != 0)
        expect_name(name, i, "");
    else /* has no time */
        cr_expect(seconds == 0 && strncmp(name, "repro ", 6) == 0, "%s", name);
}

Test(export_axes, junit)
{
    struct ran r = exported("junit");

    cr_expect_eq(each_line(r.out.data, "<testcase ", expect_test_case), 2 * MANY);
}

static void expect_merit(char *line)
{
    char id[17], what[32];
    double value;

    cr_assert_eq(sscanf(line, "fom %16s %31s %lf", id, what, &value), 3, "%s", line);
    const int i = (int)(strtol(id, NULL, 16) - 0xabc0);
    if (strstr(what, "time") || strstr(what, "median"))
        cr_expect_eq(many_of_ns(value), i, "%s", line);
    if (strstr(what, "arena"))
        cr_expect_eq(value, 10000 + i, "%s", line);
    if (strcmp(what, "perplexity") == 0)
        cr_expect_float_eq(value, exp(1 + 0.01 * i), 1e-6, "%s", line);
}

Test(export_axes, figures_of_merit)
{
    struct ran r = exported("fom");

    cr_expect_geq(each_line(r.out.data, "fom ", expect_merit), 2 * MANY);
}
