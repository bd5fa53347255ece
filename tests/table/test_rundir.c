/* SPDX-License-Identifier: MIT
 *
 * Run folders: made once, found again, cleaned after a kill. */
#include "harness/table/rundir.h"
#include "tests/support/program.h"
#include "tests/support/sample_rows.h"
#include "tests/support/tmp_folder.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static const time_t started = 1795240862; /* 2026-11-21T06:01:02Z */

static const struct runjson json = {.command = "sweep",
                                    .host_id = "host",
                                    .started_at_utc = "2026-11-21T06:01:02Z",
                                    .options = "seq=4\n"};

TestSuite(rundir, .init = folder_make, .fini = folder_remove, .timeout = 240);

static void create(struct rundir *r, enum raw raw)
{
    MUST(rundir_create(r, folder, "4f2c1ab", started, raw, &json, &failure));
}

static void close_run(struct rundir *r) { MUST(rundir_close(r, &failure)); }

/* ---- the folder --------------------------------------------------------------------------- */

Test(rundir, has_all_files_and_a_link)
{
    char path[FILE_PATH], target[64] = "";
    struct rundir r;
    struct stat s;

    create(&r, RAW_CSV);
    cr_expect_str_eq(r.run_id, "20261121T060102Z-4f2c1ab");
    for (int i = 0; i <= TABLE_SAMPLES; i++) {
        cr_assert_eq(file_join(path, r.path, tables[i].file, NULL), OK);
        struct rows rows = must_read_table(path, i);
        cr_expect_eq(rows.n, 0);
    }
    folder_path(path, "latest");
    cr_assert_gt(readlink(path, target, sizeof(target) - 1), 0);
    cr_expect_str_eq(target, r.run_id);
    close_run(&r);

    struct rundir again;
    create(&again, RAW_NONE);
    cr_expect_str_eq(again.run_id, "20261121T060102Z-4f2c1ab-2");
    cr_assert_gt(readlink(path, target, sizeof(target) - 1), 0);
    target[strlen(again.run_id)] = '\0';
    cr_expect_str_eq(target, again.run_id);
    cr_assert_eq(file_join(path, again.path, "samples.csv", NULL), OK);
    cr_expect_neq(stat(path, &s), 0, "--raw none writes no samples");
    close_run(&again);
}

Test(rundir, makes_the_parents_it_needs)
{
    char text[TEXT_SIZE];
    struct rundir r;

    const char *deep = in_folder("a/b//c/");
    MUST(rundir_create(&r, deep, "nogit", started, RAW_NONE, &json, &failure));
    deep = in_folder("a/b//c/20261121T060102Z-nogit");
    cr_expect_str_eq(r.path, deep);
    close_run(&r);
    utc_text(text, started);
    cr_expect_str_eq(text, "2026-11-21T06:01:02Z");
}

Test(rundir, says_why_it_cannot_be_made)
{
    struct rundir r;
    FILE *f;

    const char *path = in_folder("file");
    cr_assert((f = fopen(path, "w")));
    fclose(f);
    REFUSED(rundir_create(&r, path, "nogit", started, RAW_NONE, &json, &failure), E_IO, path,
            "Not a directory  -> ");

    REFUSED(rundir_create(&r, "/proc/bench", "nogit", started, RAW_NONE, &json, &failure), E_IO,
            "cannot create /proc/bench: ", "  -> ");

    path = in_folder("latest");
    cr_assert_eq(mkdir(path, 0777), 0); /* a file that is not a link is not replaced */
    REFUSED(rundir_create(&r, folder, "nogit", started, RAW_CSV, &json, &failure), E_IO,
            "cannot replace the link ", path);
    path = in_folder("20261121T060102Z-nogit");
    cr_expect_neq(rmdir(path), 0, "a folder that could not be filled is left");
    cr_expect_eq(errno, ENOENT);
}

Test(rundir, read_only_folder)
{
    enum { NOBODY = 65534 };
    const uid_t user = geteuid();
    struct rundir r;

    cr_assert_eq(chmod(folder, 0555), 0);
    if (user == 0) /* root may write everywhere */
        cr_assert_eq(seteuid(NOBODY), 0);
    cr_assert_eq(rundir_create(&r, folder, "nogit", started, RAW_CSV, &json, &failure), E_IO);
    cr_assert_eq(seteuid(user), 0);
    cr_assert_eq(chmod(folder, 0755), 0);
    HAS(failure.msg, "Permission denied  -> give a folder that you may write with --out");
}

/* At any file of it. */
Test(rundir, full_disk_while_it_is_made)
{
    static const struct {
        rlim_t bytes;
        const char *file, *why;
    } disks[] = {{100, "run.json", "File too large  -> "},
                 {600, "latency.csv", "No space left on device  -> "}};

    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < ARRAY_LEN(disks); i++) {
        struct rundir r;
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){disks[i].bytes, RLIM_INFINITY}), 0);
        cr_assert_eq(rundir_create(&r, folder, "nogit", started, RAW_CSV, &json, &failure), E_IO);
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}), 0);
        HAS(failure.msg, disks[i].file, disks[i].why);
        cr_expect_neq(rmdir(in_folder("20261121T060102Z-nogit")), 0);
        cr_expect_eq(errno, ENOENT);
    }
}

/* ---- one writer --------------------------------------------------------------------------- */

/* Another process makes the run, and ends without closing it when *hold is closed. */
static pid_t another_writer(int *hold)
{
    int ready[2], end[2];
    char made = 0;

    cr_assert(pipe(ready) == 0 && pipe(end) == 0);
    const pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        struct rundir r;
        close(end[1]);
        made = rundir_create(&r, folder, "4f2c1ab", started, RAW_CSV, &json, &failure) == OK;
        if (write(ready[1], &made, 1) == 1 && read(end[0], &made, 1) == 0)
            _exit(0);
        _exit(1);
    }
    close(end[0]);
    cr_assert(read(ready[0], &made, 1) == 1 && made);
    close(ready[0]);
    close(ready[1]);
    *hold = end[1];
    return pid;
}

Test(rundir, has_one_writer)
{
    struct rundir r;
    int hold, how = -1;
    const pid_t writer = another_writer(&hold);

    REFUSED(rundir_resume(&r, folder, NULL, &failure), E_UNSUPPORTED,
            kept_text("process %d ", (int)writer), "20261121T060102Z-4f2c1ab");
    close(hold);
    cr_assert_eq(waitpid(writer, &how, 0), writer);
    cr_assert_eq(how, 0);
    MUST(rundir_resume(&r, folder, NULL, &failure));
    close_run(&r);
    MUST(rundir_resume(&r, folder, NULL, &failure)); /* closing lets go */
    close_run(&r);
}

/* ---- resume ------------------------------------------------------------------------------- */

static void put_row(struct rundir *r, enum table_id table, const char *id, enum row_status status)
{
    struct key_row key = key_row_empty();
    struct latency_row latency = latency_row_empty();
    struct memory_row memory = memory_row_empty();

    text_put(key.case_id, TEXT_SIZE, id);
    text_put(key.status, TEXT_SIZE, row_status_name[status]);
    row_set_key(&tables[table], table == TABLE_LATENCY ? (void *)&latency : (void *)&memory, &key);
    MUST(rundir_write(r, table, table == TABLE_LATENCY ? (void *)&latency : (void *)&memory,
                      &failure));
}

static size_t count_rows(const struct rundir *r, enum table_id table)
{
    const char *const path = kept_text("%s/%s", r->path, tables[table].file);
    struct rows rows = must_read_table(path, table);
    const size_t n = rows.n;
    return n;
}

static void append_bytes(const struct rundir *r, const char *name, const char *text)
{
    const char *const path = kept_text("%s/%s", r->path, name);
    FILE *f = fopen(path, "a");
    cr_assert(f);
    fputs(text, f);
    fclose(f);
}

/* Case a is done, b was interrupted, c has a memory row and samples but no latency row. */
static void interrupted_run(struct rundir *r, enum raw raw)
{
    create(r, raw);
    put_samples(&r->samples, "a", 100);
    put_samples(&r->samples, "b", 3);
    put_row(r, TABLE_MEMORY, "a", ROW_OK);
    put_row(r, TABLE_LATENCY, "a", ROW_OK);
    put_row(r, TABLE_MEMORY, "b", ROW_INTERRUPTED);
    put_row(r, TABLE_LATENCY, "b", ROW_INTERRUPTED);
    put_row(r, TABLE_MEMORY, "c", ROW_OK);
    put_samples(&r->samples, "c", 70);
    MUST(samples_flush(&r->samples, &failure));
    append_bytes(r, "latency.csv", "bench-latency/" SCHEMA_VERSION ",20261121T0");
}

static void resume_and_finish(enum raw raw, bool killed)
{
    static const char *const ids[] = {"a", "b", "c"};
    static const int n[] = {100, 5, 7};
    struct rundir again;
    int how = 0;
    const pid_t child = fork();

    cr_assert_geq(child, 0);
    if (child == 0) {
        struct rundir r;
        interrupted_run(&r, raw);
        if (killed)
            raise(SIGKILL);
        _exit(rundir_close(&r, NULL) != OK);
    }
    cr_assert_eq(waitpid(child, &how, 0), child);
    cr_assert(killed ? WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL : how == 0);

    MUST(rundir_resume(&again, folder, NULL, &failure));
    cr_expect_str_eq(again.path, in_folder("20261121T060102Z-4f2c1ab"));
    cr_expect_str_eq(again.run_id, "20261121T060102Z-4f2c1ab");
    cr_expect_eq(again.samples.raw, raw);
    cr_expect(rundir_done(&again, TABLE_LATENCY, "a"));
    cr_expect_not(rundir_done(&again, TABLE_LATENCY, "b"));
    cr_expect_not(rundir_done(&again, TABLE_LATENCY, "c"));
    NUMBERS({again.had[ROW_OK], 1}, {again.had[ROW_INTERRUPTED], 0});
    for (int i = 1; i < 3; i++) {
        put_samples(&again.samples, ids[i], n[i]);
        put_row(&again, TABLE_MEMORY, ids[i], ROW_OK);
        put_row(&again, TABLE_LATENCY, ids[i], ROW_OK);
    }
    close_run(&again);
    expect_samples(again.path, ids, n, 3);
    NUMBERS({count_rows(&again, TABLE_LATENCY), 3}, {count_rows(&again, TABLE_MEMORY), 3});
}

Test(rundir, resumes_after_an_end) { resume_and_finish(best_raw(), false); }
Test(rundir, resumes_after_a_kill) { resume_and_finish(best_raw(), true); }
Test(rundir, resumes_plain_samples) { resume_and_finish(RAW_CSV, true); }

/* Rows of this program under a header whose columns stand elsewhere would be read as others. */
Test(rundir, a_table_with_columns_elsewhere_is_not_continued)
{
    const struct table *const t = &tables[TABLE_LATENCY];
    struct rundir r;
    struct bytes header;

    create(&r, RAW_NONE);
    close_run(&r);
    table_bytes(&header, t, NULL);
    char *const comma = strstr(header.data, ",median_ns,min_ns,");
    char *const other = strstr(header.data, ",min_ns,median_ns,");
    cr_assert(comma || other, "%s", header.data);
    memcpy(comma ? comma : other, comma ? ",min_ns,median_ns," : ",median_ns,min_ns,", 18);
    const char *const path = kept_text("%s/%s", r.path, t->file);
    FILE *f = fopen(path, "w");
    cr_assert(f && fwrite(header.data, 1, header.n, f) == header.n && fclose(f) == 0);
    REFUSED(rundir_resume(&r, folder, NULL, &failure), E_IO, path, "  -> ");
    free(header.data);
}

Test(rundir, resumes_without_samples)
{
    struct rundir r;
    struct rows rows;

    create(&r, RAW_NONE);
    put_samples(&r.samples, "a", 2); /* writes nothing */
    close_run(&r);
    MUST(rundir_resume(&r, folder, r.path, &failure));
    cr_expect_eq(r.samples.raw, RAW_NONE);
    REFUSED(samples_read(&rows, r.path, &failure), E_IO, "has no raw samples  -> ");
    close_run(&r);
}

/* What may have been a matter of the moment is tried again, nothing else. */
Test(rundir, resume_tries_again)
{
    static const bool again[ROW_STATUS_COUNT] = {
        [ROW_FAILED] = true, [ROW_TIMEOUT] = true, [ROW_INTERRUPTED] = true, [ROW_SUSPECT] = true};
    struct rundir r;

    create(&r, RAW_NONE);
    for (int i = 0; i < ROW_STATUS_COUNT; i++)
        put_row(&r, TABLE_LATENCY, row_status_name[i], (enum row_status)i);
    close_run(&r);
    MUST(rundir_resume(&r, folder, NULL, &failure));
    for (int i = 0; i < ROW_STATUS_COUNT; i++) {
        cr_expect_eq(rundir_done(&r, TABLE_LATENCY, row_status_name[i]), !again[i], "%s",
                     row_status_name[i]);
        cr_expect_eq(r.had[i], !again[i]);
    }
    cr_expect_eq(r.doubled, 0);
    for (int i = 0; i < ROW_STATUS_COUNT; i++)
        put_row(&r, TABLE_LATENCY, row_status_name[i], ROW_OK);
    close_run(&r);
    MUST(rundir_resume(&r, folder, NULL, &failure));
    cr_expect_eq(r.had[ROW_OK], ROW_STATUS_COUNT);
    cr_expect_eq(r.doubled, 3); /* ok, skipped and wrong had no reason to come again */
    close_run(&r);
}

Test(rundir, nothing_to_resume)
{
    struct rundir r;

    REFUSED(rundir_resume(&r, folder, NULL, &failure), E_IO, "no run in ");
    cr_expect_eq(rundir_resume(&r, folder, folder, &failure),
                 E_IO); /* a folder, but not of a run */
    HAS(failure.msg, "latency.csv: No such file");
}

Test(rundir, env_has_one_row)
{
    struct rundir r;
    struct env_row row = env_row_empty();

    create(&r, RAW_NONE);
    MUST(rundir_env(&r, &row, &failure));
    row.exit_code = 0;
    MUST(rundir_env(&r, &row, &failure));
    cr_expect_eq(count_rows(&r, TABLE_ENV), 1);
    close_run(&r);
}

static void expect_latest(const char *run_id)
{
    char target[TEXT_SIZE] = "";

    const char *const path = in_folder("latest");
    const ssize_t n = readlink(path, target, sizeof(target) - 1);
    cr_expect_str_eq(n > 0 ? target : "", run_id);
}

/* A run that was refused before its first row. */
Test(rundir, removed_leaves_nothing)
{
    struct rundir first, refused, later;
    char id[TEXT_SIZE];
    struct stat s;

    create(&refused, RAW_CSV);
    close_run(&refused);
    rundir_remove(&refused);
    cr_expect_neq(stat(refused.path, &s), 0);
    expect_latest("");

    create(&first, RAW_CSV);
    close_run(&first);
    memcpy(id, first.run_id, sizeof(id));
    create(&refused, RAW_CSV);
    close_run(&refused);
    expect_latest(refused.run_id);
    rundir_remove(&refused);
    expect_latest(id);

    create(&refused, RAW_CSV);
    create(&later, RAW_CSV);
    close_run(&refused);
    rundir_remove(&refused);
    expect_latest(later.run_id);
    close_run(&later);
}
