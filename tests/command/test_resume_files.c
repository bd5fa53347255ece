/* SPDX-License-Identifier: MIT
 *
 * --resume of a folder whose files are torn, damaged, of another version or of other options. */
#include "tests/support/whole_run.h"

#include <stdlib.h>
#include <unistd.h>

TestSuite(resume_files, .init = folder_make, .fini = folder_remove, .timeout = 120);

static struct bytes file_of(const char *name)
{
    char path[FILE_PATH];
    struct bytes b;
    struct err e;

    folder_path(path, name);
    cr_assert_eq(file_read(&b, path, &e), OK, "%s", e.msg);
    return b;
}

static void replace_file(const char *name, const char *data, size_t n)
{
    char path[FILE_PATH];
    struct err e;

    folder_path(path, name);
    cr_assert_eq(file_replace(path, data, n, &e), OK, "%s", e.msg);
}

static void run_whole(void)
{
    struct ran r = run_bench(folder, "-q " SLOW "--max-time 0.003 --min-samples 3 --out r");

    expect_exit(&r, 0);
    ran_free(&r);
}

static struct ran resume_whole(void)
{
    return run_bench(folder, SLOW "--max-time 0.003 --min-samples 3 --out r --resume");
}

static void expect_refused(int code, const char *text)
{
    struct ran r = resume_whole();

    expect_exit(&r, code);
    expect_said(&r, text);
    cr_expect_eq(r.out.n, 0, "%s", r.out.data);
    ran_free(&r);
}

Test(resume_files, a_complete_run_has_nothing_to_do)
{
    run_whole();
    struct bytes before = file_of("r/latest/latency.csv");
    struct ran r = resume_whole();
    struct bytes after = file_of("r/latest/latency.csv");

    expect_exit(&r, 0);
    cr_expect_str_eq(after.data, before.data);
    expect_complete("r/latest");
    struct bytes json = file_of("r/latest/run.json");
    cr_expect(strstr(json.data, "\"ok\": 8"), "%s", json.data);
    free(before.data);
    free(after.data);
    free(json.data);
    ran_free(&r);
}

/* Cut anywhere, as a kill or a full disk would. */
Test(resume_files, after_torn_files)
{
    if (!HAVE_ZSTD)
        cr_skip_test("samples.csv.zst needs zstd");
    static const char *const names[] = {"r/latest/latency.csv", "r/latest/memory.csv",
                                        "r/latest/samples.csv.zst"};

    run_whole();
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        for (size_t cut = 1; cut < 600; cut += 400) {
            struct bytes b = file_of(names[i]);
            cr_assert(b.n > cut + 100);
            replace_file(names[i], b.data, b.n - cut);
            struct ran r = resume_whole();
            if (strstr(names[i], "latency")) { /* the list of what is done */
                expect_exit(&r, 0);
                expect_complete("r/latest");
            } else {
                cr_expect(r.code == 0 || r.code == 7, "%s", r.err.data);
            }
            ran_free(&r);
            free(b.data);
        }
}

Test(resume_files, a_line_with_fields_missing)
{
    run_whole();
    struct bytes b = file_of("r/latest/latency.csv");
    char *line = strchr(strchr(b.data, '\n') + 1, '\n') + 1; /* the third */

    replace_file("r/latest/latency.csv", "", 0);
    memmove(line + 40, strchr(line, '\n'), strlen(strchr(line, '\n')) + 1);
    replace_file("r/latest/latency.csv", b.data, strlen(b.data));
    expect_refused(7, "/latency.csv line 3: ");
    expect_refused(7, " fields, header has ");
    free(b.data);
}

Test(resume_files, a_file_of_a_later_version)
{
    run_whole();
    struct bytes b = file_of("r/latest/latency.csv");

    for (char *at = b.data; (at = strstr(at, "bench-latency/2")); at++)
        at[strlen("bench-latency/")] = '3';
    replace_file("r/latest/latency.csv", b.data, b.n);
    expect_refused(7, "/latency.csv has schema bench-latency/3.");
    expect_refused(7, ", this program reads 2.x");
    free(b.data);
}

Test(resume_files, with_other_options)
{
    run_whole();
    struct ran r =
        run_bench(folder, SLOW "--max-time 0.003 --min-samples 3 --out r --resume=r/latest "
                               "--d-model 64");
    expect_exit(&r, 2);
    expect_said(&r, "bench: cannot resume r/20");
    expect_said(&r, ": made with --d-model 32, now 64");
    ran_free(&r);
    expect_complete("r/latest");
}

Test(resume_files, without_a_description_of_the_run)
{
    char path[FILE_PATH];

    run_whole();
    replace_file("r/latest/run.json", "{\"schema\": \"bench-run/2.0\", ", 28);
    expect_refused(7, "/run.json line 1: ");
    replace_file("r/latest/run.json", "{\"schema\": \"bench-run/3.0\"}\n", 28);
    expect_refused(7, "/run.json has schema bench-run/3.0, this program reads 2.x");
    folder_path(path, "r/latest/run.json");
    cr_assert_eq(unlink(path), 0);
    expect_refused(7, "/run.json: No such file or directory");
}

/* Rows that failed are kept, and still count for the exit code. */
Test(resume_files, failed_rows_are_not_forgotten)
{
    run_whole();
    struct bytes b = file_of("r/latest/latency.csv");
    char *status = strchr(b.data, '\n'), *changed = NULL; /* of the first row */

    for (int column = 0; column < 5; column++)
        status = strchr(status + 1, ',');
    cr_assert_eq(strncmp(status, ",ok,", 4), 0, "%.100s", status);
    cr_assert(asprintf(&changed, "%.*s,failed,%s", (int)(status - b.data), b.data, status + 4) > 0);
    replace_file("r/latest/latency.csv", changed, strlen(changed));
    struct ran r = resume_whole();
    expect_exit(&r, 1);
    struct rows rows = must_read(folder, "r/latest", TABLE_LATENCY);
    cr_expect_eq(count_status(&rows, "failed"), 1);
    cr_expect_eq(count_status(&rows, "ok"), CASES - 1);
    rows_free(&rows);
    free(changed);
    free(b.data);
    ran_free(&r);
}
