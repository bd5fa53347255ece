/* SPDX-License-Identifier: MIT
 *
 * Runs that end early, by a signal, a kill or a torn file, and what --resume makes of them: every
 * planned cell exactly once, whatever the moment was. */
#include "../harness/samples.h"
#include "program.h"
#include "tmp_folder.h"

#include <criterion/parameterized.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

TestSuite(resume, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* Eight cells in four groups, each about 60 ms long. */
enum { CELLS = 8 };
#define SLOW                                                                                       \
    "--variant shaw,xl --backend ref --workload attn --seq 4..32 --mem 0 --d-model 32 --heads 2 "  \
    "--threads 1 --max-time 0.03 --target-ci 0 --warmup-ms 0 --block-ms 2 "

static void sleep_ms(long ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL); }

/* ---- whole and complete ------------------------------------------------------------------- */

static int rows_with(const struct rows *rows, enum table_id id, const char *case_id)
{
    const struct table *t = &tables[id];
    int n = 0;

    for (size_t i = 0; i < rows->n; i++)
        n += strcmp(row_text(t, (const char *)rows->row + i * t->row_size, "case_id"), case_id) == 0;
    return n;
}

/* Each cell once, ok, with its memory row and all its samples; nothing else. */
static void expect_complete(const char *run)
{
    char path[FILE_PATH];
    struct rows latency = must_read(folder, run, TABLE_LATENCY);
    struct rows memory = must_read(folder, run, TABLE_MEMORY), samples;
    const struct latency_row *row = latency.row;
    struct err e;
    int64_t total = 0;

    cr_expect_eq(latency.n, CELLS);
    cr_expect_eq(memory.n, CELLS);
    cr_expect_eq(count_status(&latency, "ok"), CELLS);
    folder_path(path, run);
    cr_assert_eq(samples_read(&samples, path, &e), OK, "%s", e.msg);
    for (size_t i = 0; i < latency.n; i++) {
        cr_expect_eq(rows_with(&latency, TABLE_LATENCY, row[i].case_id), 1);
        cr_expect_eq(rows_with(&memory, TABLE_MEMORY, row[i].case_id), 1);
        cr_expect_eq(rows_with(&samples, TABLE_SAMPLES, row[i].case_id), row[i].samples);
        total += row[i].samples;
    }
    cr_expect_eq((int64_t)samples.n, total);
    rows_free(&latency);
    rows_free(&memory);
    rows_free(&samples);
}

/* Tables of an interrupted run are whole; a cell that is not ok says interrupted. */
static void expect_readable(const char *run)
{
    for (int id = 0; id < TABLE_SAMPLES; id++) {
        struct rows rows = must_read(folder, run, (enum table_id)id);
        if (id == TABLE_LATENCY)
            cr_expect_eq(count_status(&rows, "ok") + count_status(&rows, "interrupted"),
                         (int)rows.n);
        rows_free(&rows);
    }
    char path[FILE_PATH];
    struct rows samples;
    struct err e;
    folder_path(path, run);
    cr_expect_eq(samples_read(&samples, path, &e), OK, "%s", e.msg);
    rows_free(&samples);
}

/* The line behind "resume with: ". */
static char *printed_command(struct ran *r)
{
    static const char label[] = "\nresume with: ";
    char *at = strstr(r->err.data, label);

    cr_assert(at, "%s", r->err.data);
    at += strlen(label);
    at[strcspn(at, "\n")] = '\0';
    return at;
}

/* ---- signals ------------------------------------------------------------------------------ */

struct stop {
    int number;     /* signal */
    bool group;     /* to the whole process group, as a terminal or timeout(1) does */
    char after[32]; /* text on stderr */
    long delay_ms;  /* and so much later */
};

ParameterizedTestParameters(resume, after_a_signal)
{
    static struct stop stops[] = {
        {SIGINT, false, "cells in", 0},   {SIGTERM, true, "cells in", 300},
        {SIGTERM, true, "[2/8]", 20},     {SIGINT, true, "[2/8]", 70},
        {SIGTERM, true, "[5/8]", 10},     {SIGINT, false, "[6/8]", 5},
    };
    return cr_make_param_array(struct stop, stops, ARRAY_LEN(stops));
}

ParameterizedTest(struct stop *s, resume, after_a_signal, .init = folder_make,
                  .fini = folder_remove, .timeout = 120)
{
    struct program p = start_bench(folder, SLOW "--out 'my runs' --filter 'seq<=32'");

    cr_assert(wait_for_text(&p, s->after));
    sleep_ms(s->delay_ms);
    kill(s->group ? -p.pid : p.pid, s->number);
    struct ran r = finish_bench(&p);
    expect_exit(&r, 128 + s->number);
    expect_said(&r, "interrupted; what was measured is in my runs/20");
    expect_readable("my runs/latest");
    struct rows env = must_read(folder, "my runs/latest", TABLE_ENV);
    cr_expect_eq(((struct env_row *)env.row)->exit_code, 128 + s->number);
    rows_free(&env);

    struct ran again = run_shell(folder, printed_command(&r));
    expect_exit(&again, 0);
    expect_complete("my runs/latest");
    ran_free(&r);
    ran_free(&again);
}

Test(resume, a_second_signal_ends_at_once)
{
    struct program p = start_bench(folder, "--variant xl --backend ref --workload layer --seq 256 "
                                           "--mem 0 --threads 1 --max-time 60 --warmup-ms 0 "
                                           "--block-ms 20000 --target-ci 0 --out r");
    pid_t child;

    cr_assert(wait_for_text(&p, "cells in"));
    for (int i = 0; i < 2000 && children_of(p.pid, &child, 1) == 0; i++)
        sleep_ms(2);
    sleep_ms(1500); /* into a block of 20 s */
    const time_t start = time(NULL);
    kill(p.pid, SIGINT);
    sleep_ms(50);
    kill(p.pid, SIGINT);
    struct ran r = finish_bench(&p);
    expect_exit(&r, 130);
    cr_expect(time(NULL) - start < 10);
    ran_free(&r);
}

/* ---- kill -9 ------------------------------------------------------------------------------ */

static bool gone(const pid_t *pid, int n)
{
    for (int i = 0; i < n; i++)
        if (kill(pid[i], 0) == 0)
            return false;
    return true;
}

struct moment {
    char after[32];
    long delay_ms;
};

ParameterizedTestParameters(resume, after_a_kill)
{
    static struct moment moments[] = {
        {"cells in", 0}, {"[2/8]", 25}, {"[4/8]", 60}, {"[8/8]", 0}};
    return cr_make_param_array(struct moment, moments, ARRAY_LEN(moments));
}

ParameterizedTest(struct moment *m, resume, after_a_kill, .init = folder_make,
                  .fini = folder_remove, .timeout = 120)
{
    struct program p = start_bench(folder, SLOW "--out r");
    pid_t children[16];

    cr_assert(wait_for_text(&p, m->after));
    sleep_ms(m->delay_ms);
    const int n = children_of(p.pid, children, (int)ARRAY_LEN(children));
    kill(p.pid, SIGKILL);
    struct ran r = finish_bench(&p);
    expect_exit(&r, 128 + SIGKILL);
    for (int i = 0; i < 1500 && !gone(children, n); i++)
        sleep_ms(2);
    cr_expect(gone(children, n), "children survive their parent");

    struct ran again = run_bench(folder, SLOW "--out r --resume");
    expect_exit(&again, 0);
    expect_complete("r/latest");
    ran_free(&r);
    ran_free(&again);
}

/* ---- files -------------------------------------------------------------------------------- */

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

Test(resume, a_complete_run_has_nothing_to_do)
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
Test(resume, after_torn_files)
{
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

Test(resume, a_line_with_fields_missing)
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

Test(resume, a_file_of_a_later_version)
{
    run_whole();
    struct bytes b = file_of("r/latest/latency.csv");

    for (char *at = b.data; (at = strstr(at, "bench-latency/1")); at++)
        at[strlen("bench-latency/")] = '2';
    replace_file("r/latest/latency.csv", b.data, b.n);
    expect_refused(7, "/latency.csv has schema bench-latency/2.");
    expect_refused(7, ", this program reads 1.x");
    free(b.data);
}

Test(resume, with_other_options)
{
    run_whole();
    struct ran r = run_bench(folder, SLOW "--max-time 0.003 --min-samples 3 --out r --resume=r/latest "
                                          "--d-model 64");
    expect_exit(&r, 2);
    expect_said(&r, "bench: cannot resume r/20");
    expect_said(&r, ": made with --d-model 32, now 64");
    ran_free(&r);
    expect_complete("r/latest");
}

Test(resume, without_a_description_of_the_run)
{
    char path[FILE_PATH];

    run_whole();
    replace_file("r/latest/run.json", "{\"schema\": \"bench-run/1.0\", ", 28);
    expect_refused(7, "/run.json line 1: ");
    replace_file("r/latest/run.json", "{\"schema\": \"bench-run/2.0\"}\n", 28);
    expect_refused(7, "/run.json has schema bench-run/2.0, this program reads 1.x");
    folder_path(path, "r/latest/run.json");
    cr_assert_eq(unlink(path), 0);
    expect_refused(7, "/run.json: No such file or directory");
}

/* Rows that failed stay as they are, and the end of the run still speaks of them. */
Test(resume, failed_rows_are_not_forgotten)
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
    cr_expect_eq(count_status(&rows, "ok"), CELLS - 1);
    rows_free(&rows);
    free(changed);
    free(b.data);
    ran_free(&r);
}
