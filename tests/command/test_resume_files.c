/* SPDX-License-Identifier: MIT
 *
 * --resume of a folder whose files are torn, damaged, of another version or of other options. */
#include "tests/support/sanitized.h"
#include "tests/support/whole_run.h"

TestSuite(resume_files, .init = folder_make, .fini = folder_remove, .timeout = 120);

static void run_whole(void) { must_bench("-q " SLOW "--max-time 0.003 --min-samples 3 --out r"); }

static struct ran resume_whole(void)
{
    return run_bench(SLOW "--max-time 0.003 --min-samples 3 --out r --resume");
}

static void expect_refused(int code, const char *text)
{
    struct ran r = resume_whole();

    expect_exit(&r, code);
    expect_said(&r, text);
    cr_expect_eq(r.out.n, 0, "%s", r.out.data);
}

Test(resume_files, a_complete_run_has_nothing_to_do)
{
    run_whole();
    struct bytes before = folder_read("r/latest/latency.csv");
    struct ran r = resume_whole();
    struct bytes after = folder_read("r/latest/latency.csv");

    expect_exit(&r, 0);
    cr_expect_str_eq(after.data, before.data);
    expect_complete("r/latest");
    struct bytes json = folder_read("r/latest/run.json");
    HAS(json.data, "\"ok\": 8");
}

/* Cut anywhere, as a kill or a full disk would. */
Test(resume_files, after_torn_files)
{
    if (!HAVE_ZSTD)
        cr_skip_test("samples.csv.zst needs zstd");

    run_whole();
    EACH_TEXT (name, "r/latest/latency.csv", "r/latest/memory.csv", "r/latest/samples.csv.zst")
        for (size_t cut = 1; cut < 600; cut += 400) {
            struct bytes b = folder_read(name);
            cr_assert(b.n > cut + 100);
            folder_put(name, b.data, b.n - cut);
            struct ran r = resume_whole();
            if (strstr(name, "latency")) { /* the list of what is done */
                expect_exit(&r, 0);
                expect_complete("r/latest");
            } else {
                cr_expect(r.code == 0 || r.code == 7, "%s", r.err.data);
            }
        }
}

Test(resume_files, a_line_with_fields_missing)
{
    run_whole();
    struct bytes b = folder_read("r/latest/latency.csv");
    char *line = strchr(strchr(b.data, '\n') + 1, '\n') + 1; /* the third */

    folder_put("r/latest/latency.csv", "", 0);
    memmove(line + 40, strchr(line, '\n'), strlen(strchr(line, '\n')) + 1);
    folder_put("r/latest/latency.csv", b.data, strlen(b.data));
    expect_refused(7, "/latency.csv line 3: ");
    expect_refused(7, " fields, header has ");
}

Test(resume_files, a_file_of_a_later_version)
{
    run_whole();
    struct bytes b = folder_read("r/latest/latency.csv");

    for (char *at = b.data; (at = strstr(at, "bench-latency/2")); at++)
        at[strlen("bench-latency/")] = '3';
    folder_put("r/latest/latency.csv", b.data, b.n);
    expect_refused(7, "/latency.csv has schema bench-latency/3.");
    expect_refused(7, ", this program reads 2.x");
}

Test(resume_files, with_other_options)
{
    run_whole();
    struct ran r =
        bench_exits(2, "bench: cannot resume r/20",
                    SLOW "--max-time 0.003 --min-samples 3 --out r --resume=r/latest --d-model 64");
    expect_said(&r, ": made with --d-model 32, now 64");
    expect_complete("r/latest");
}

Test(resume_files, without_a_description_of_the_run)
{
    run_whole();
    folder_put("r/latest/run.json", "{\"schema\": \"bench-run/" SCHEMA_VERSION "\", ", 28);
    expect_refused(7, "/run.json line 1: ");
    folder_put("r/latest/run.json", "{\"schema\": \"bench-run/3.0\"}\n", 28);
    expect_refused(7, "/run.json has schema bench-run/3.0, this program reads 2.x");
    cr_assert_eq(unlink(in_folder("r/latest/run.json")), 0);
    expect_refused(7, "/run.json: No such file or directory");
}

/* The run, its first row with another status, and resumed: the code and the statuses that there are
 * then. */
static void resume_after(const char *was, int code, int ok)
{
    run_whole();
    struct bytes b = folder_read("r/latest/latency.csv");
    char *status = strchr(b.data, '\n'); /* of the first row */

    for (int column = 0; column < 5; column++)
        status = strchr(status + 1, ',');
    cr_assert_eq(strncmp(status, ",ok,", 4), 0, "%.100s", status);
    folder_put_text("r/latest/latency.csv",
                    kept(need_text("%.*s,%s,%s", (int)(status - b.data), b.data, was, status + 4)));
    struct ran r = resume_whole();
    expect_exit(&r, code);
    struct rows rows = must_read("r/latest", TABLE_LATENCY);
    NUMBERS({rows.n, CASES}, {count_status(&rows, "ok"), ok},
            {count_status(&rows, was), CASES - ok});
}

Test(resume_files, failed_rows_are_tried_again) { resume_after("failed", 0, CASES); }
Test(resume_files, timeouts_are_tried_again) { resume_after("timeout", 0, CASES); }

/* They count for the exit code. */
Test(resume_files, wrong_rows_stay) { resume_after("wrong", 5, CASES - 1); }
Test(resume_files, skipped_rows_stay) { resume_after("skipped", 0, CASES - 1); }

/* Rows that two processes wrote: readers take the last and say so once. */
Test(resume_files, with_doubled_rows)
{
    run_whole();
    must_shell("cd r/latest && for t in latency memory; do tail -n +2 $t.csv > rows && cat rows >> "
               "$t.csv; done; rm rows");
    struct ran again = resume_whole();
    expect_exit(&again, 0);
    expect_said(&again, "8 rows twice");
    expect_complete("r/latest");
    EACH_TEXT (word, "$BENCH compare --axis variant r/latest", "$BENCH plot r/latest --format csv",
               "$BENCH report r/latest -o page.html", "$BENCH baseline save b r/latest --out r",
               ("$BENCH rerun $(cut -d, -f4 r/latest/latency.csv | tail -n 1) $(echo r/2*) --out r "
                "--max-time 0.003 --min-samples 3")) {
        struct ran read = run_shell("%s", word);
        const char *const said = strstr(read.err.data, "8 rows twice");
        cr_expect(said && !strstr(said + 8, "rows twice"), "%s: %s", word, read.err.data);
        expect_exit(&read, 0);
    }
}

/* A disk that is full at any moment leaves a run that can be continued, or none. */
Test(resume_files, after_a_full_disk)
{
    for (int blocks = 0; blocks < 12; blocks += SANITIZED ? 3 : 1) {
        must_shell("rm -rf r; trap '' XFSZ; (ulimit -f %d; exec $BENCH " SLOW
                   "--max-time 0.003 --min-samples 3 --out r -q --raw csv) > /dev/null 2>&1; "
                   "code=$?; test $code -eq 7 || test $code -eq 0 || exit 9; set -- r/2*; test -e "
                   "$1 || exit 0; exec $BENCH " SLOW
                   "--max-time 0.003 --min-samples 3 --out r -q --resume=$1 --raw csv",
                   blocks);
    }
    expect_complete("r/latest");
}
