/* SPDX-License-Identifier: MIT
 *
 * Faults: folders that cannot be written, disks that fill up, children that are killed, a machine
 * that is in use, wrong numbers and weights. */
#include "harness/table/samples.h"
#include "tests/support/each.h"
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <time.h>

TestSuite(faults, .init = folder_make, .fini = folder_remove, .timeout = 120);

static void sleep_ms(long ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL); }

/* A file system of `size` at folder/r, that only this process and its children see. */
static void mount_small(const char *size)
{
    const char *const path = in_folder("r");
    const char *const options = kept_text("size=%s", size);
    cr_assert_eq(mkdir(path, 0777), 0);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", path, "tmpfs", 0, options) != 0)
        cr_skip_test("may not mount");
}

static void remount(unsigned long flags, const char *options)
{
    cr_assert_eq(mount("none", in_folder("r"), "tmpfs", MS_REMOUNT | flags, options), 0, "%s",
                 strerror(errno));
}

static void unmount(void) { cr_expect_eq(umount2(in_folder("r"), MNT_DETACH), 0); }

/* ---- folders ------------------------------------------------------------------------------ */

#define ONE_CASE "--variant xl --backend ref --workload attn --seq 4 --mem 0 " TINY

struct place {
    char out[40], message[120];
};

static struct place places[] = {
    {"file", "bench: cannot create file: Not a directory  -> give a folder"},
    {"file/below", "bench: cannot create file/below: Not a directory  -> give a folder"},
    {"/proc/nowhere/below", "bench: cannot create /proc/nowhere: "},
    {"''", "bench: --out has an empty value  -> "},
};

/* Detected before anything is measured. */
TEST_EACH(struct place *p, faults, places_that_cannot_be_written, EVERY(places), .timeout = 120)
{
    folder_put("file", "x", 1);
    struct ran r =
        bench_exits(strcmp(p->out, "''") == 0 ? 2 : 7, p->message, ONE_CASE "--out %s", p->out);
    cr_expect_eq(r.out.n, 0, "%s", r.out.data);
}

Test(faults, a_read_only_disk)
{
    mount_small("1m");
    remount(MS_RDONLY, NULL);
    struct ran r = bench_exits(7, "bench: cannot create r/20", ONE_CASE);
    unmount();
    expect_said(&r, ": Read-only file system  -> give a folder that you may write with --out");
}

Test(faults, a_disk_without_room_for_a_run)
{
    mount_small("4k");
    bench_exits(7,
                ": No space left on device  -> free some space, or give a folder on another "
                "disk with --out",
                ONE_CASE);
    unmount();
}

/* When the disk is full, what is on it is whole; with free space again the run continues to its
 * end. */
Test(faults, a_disk_that_fills_up)
{
    static const char line[] =
        "-q --variant xl --backend ref --workload attn --seq 1..60+1 --mem 0 "
        "--max-time 0.001 " TINY;
    struct rows latency, memory, samples;

    mount_small("64k");
    bench_exits(7,
                ": No space left on device  -> free some space, or give a folder on another disk "
                "with --out",
                "%s", line);
    latency = must_read("r/latest", TABLE_LATENCY);
    memory = must_read("r/latest", TABLE_MEMORY);
    cr_expect(latency.n > 0 && latency.n < 60, "%zu rows", latency.n);
    cr_expect(memory.n >= latency.n);
    for (size_t i = 0; i < latency.n; i++) {
        const struct latency_row *row = (const struct latency_row *)latency.row + i;
        cr_expect_str_eq(row->status, "ok", "row %zu: %s", i, row->status_detail);
    }

    remount(0, "size=4m");
    must_bench("%s --resume", line);
    latency = must_read("r/latest", TABLE_LATENCY);
    memory = must_read("r/latest", TABLE_MEMORY);
    NUMBERS({latency.n, 60}, {memory.n, 60}, {count_status(&latency, "ok"), 60});
    cr_expect_eq(samples_read(&samples, in_folder("r/latest"), &failure), OK, "%s", failure.msg);
    int64_t total = 0;
    for (size_t i = 0; i < latency.n; i++)
        total += ((struct latency_row *)latency.row)[i].samples;
    cr_expect_eq((int64_t)samples.n, total);
    rows_free(&samples);
    unmount();
}

/* ---- children ----------------------------------------------------------------------------- */

static bool is_child(pid_t pid)
{
    char words[64] = "";

    FILE *f = fopen(kept_text("/proc/%d/cmdline", (int)pid), "r");
    if (!f)
        return false;
    const size_t n = fread(words, 1, sizeof(words) - 1, f);
    fclose(f);
    return n > 13 && memcmp(words, "bench\0worker", 13) == 0;
}

/* The measuring children, once there are `want` of them. */
static void wait_for_children(const struct program *p, pid_t *child, int want)
{
    pid_t all[32];

    for (int i = 0; i < 5000; i++) {
        const int n = children_of(p->pid, all, (int)ARRAY_LEN(all));
        int found = 0;
        for (int k = 0; k < n && found < want; k++)
            if (is_child(all[k]))
                child[found++] = all[k];
        if (found == want)
            return;
        sleep_ms(2);
    }
    cr_assert_fail("no %d children", want);
}

/* A sanitizer would turn the signal into a report and an exit code. */
static void let_segv_kill(void)
{
    const char *options = getenv("ASAN_OPTIONS");

    setenv("ASAN_OPTIONS", kept_text("%s:handle_segv=0", options ? options : ""), 1);
}

struct death {
    int number, delay_ms;
    char detail[64];
};

static struct death deaths[] = {
    {SIGKILL, 200, "killed by SIGKILL (out of memory?)"},
    {SIGSEGV, 200, "killed by SIGSEGV"},
    {SIGKILL, 0, "killed by SIGKILL (out of memory?)"},
    {SIGABRT, 20, "killed by SIGABRT"},
};

/* Its row says so; the others are measured, and so is the following group. */
TEST_EACH(struct death *d, faults, a_child_is_killed, EVERY(deaths), .timeout = 120)
{
    let_segv_kill();
    struct program p = start_bench(
        "--variant vanilla,shaw,xl --backend ref --workload attn --seq 8,16 --mem 0 --d-model 32 "
        "--heads 2 --threads 1 --max-time 0.4 --target-ci 0 --warmup-ms 0 --out r");
    pid_t child[3];

    wait_for_children(&p, child, 3);
    sleep_ms(d->delay_ms);
    cr_assert_eq(kill(child[1], d->number), 0);
    struct ran r = finish_bench(&p);
    expect_exit(&r, 1);
    expect_said(&r, d->detail);
    struct rows rows = must_read("r/latest", TABLE_LATENCY);
    cr_assert_eq(rows.n, 6);
    cr_expect_eq(count_status(&rows, "ok"), 5);
    for (size_t i = 0; i < rows.n; i++) {
        const struct latency_row *row = (const struct latency_row *)rows.row + i;
        if (strcmp(row->status, "failed") == 0) {
            cr_expect_str_eq(row->status_detail, d->detail);
            cr_expect_eq(row->seq_tokens, 8);
        }
    }
    cr_expect_eq(count_status(&rows, "failed"), 1);
}

/* With too few file descriptors for a large group some cases cannot start: they become rows that
 * say so, and no row is ok without numbers. */
Test(faults, no_file_descriptors_left)
{
    shell_exits(1, NULL,
                "ulimit -n 24; exec \"$BENCH\" -q --variant shaw --clip 1..20+1 --backend ref "
                "--workload attn --seq 4 --mem 0 " TINY);
    struct rows rows = must_read("r/latest", TABLE_LATENCY);
    cr_assert_eq(rows.n, 20);
    cr_expect(count_status(&rows, "ok") > 0);
    cr_expect(count_status(&rows, "failed") > 0);
    for (size_t i = 0; i < rows.n; i++) {
        const struct latency_row *row = (const struct latency_row *)rows.row + i;
        cr_expect_eq(strcmp(row->status, "ok") == 0, row->median_ns > 0, "%s %s", row->status,
                     row->repro);
        cr_expect(strcmp(row->status, "ok") == 0 || row->status_detail[0], "%s", row->repro);
    }
}

Test(faults, fail_fast_stops_at_the_first)
{
    struct program p = start_bench(
        "--variant xl,shaw --backend ref --workload attn --seq 8,16 --mem 0 --d-model 32 --heads 2 "
        "--threads 1 --max-time 0.3 --target-ci 0 --warmup-ms 0 --out r --fail-fast");
    pid_t child[2];

    wait_for_children(&p, child, 2);
    cr_assert_eq(kill(child[0], SIGKILL), 0);
    struct ran r = finish_bench(&p);
    expect_exit(&r, 1);
    struct rows rows = must_read("r/latest", TABLE_LATENCY);
    cr_expect_eq(rows.n, 2, "the first group only");
}

/* ---- the machine -------------------------------------------------------------------------- */

static void wake(int signal) { (void)signal; }

/* If the lock is taken, a run says so, and --strict makes it an error. The lock is held here:
 * benches of other tests, which run beside this one, take it too and end. A user's may take hours.
 */
Test(faults, a_machine_in_use)
{
    enum { PATIENCE = 60 };
    const struct sigaction wakes = {.sa_handler = wake};
    struct ran r = run_bench(ONE_CASE); /* makes the file, if there is none */
    expect_exit(&r, 0);
    const int fd = open("/tmp/bench-machine.lock", O_RDONLY | O_CLOEXEC);
    cr_assert(fd >= 0);
    cr_assert_eq(sigaction(SIGALRM, &wakes, NULL), 0);
    alarm(PATIENCE);
    if (flock(fd, LOCK_EX) != 0)
        cr_skip_test("another bench has measured for a minute on this machine");
    alarm(0);
    bench_exits(
        0, "warning: another bench is measuring on this machine  -> wait for it, or expect noise",
        ONE_CASE);
    bench_exits(4, NULL, "--strict -q " ONE_CASE);
    close(fd);
}

/* A root that is read-only, /tmp included: TMPDIR stands for it; without one, the run says so. */
Test(faults, a_machine_whose_tmp_is_read_only)
{
    static const char tmp[] = "/tmp/";

    if (strncmp(folder, tmp, strlen(tmp)) == 0 || strncmp(getenv("BENCH"), tmp, strlen(tmp)) == 0)
        cr_skip_test("the test's own files are in /tmp");
    mount_small("1M"); /* for its namespace */
    if (mount("none", "/tmp", "tmpfs", MS_RDONLY, NULL) != 0)
        cr_skip_test("may not mount over /tmp");
    const char *path = in_folder("t");
    cr_assert_eq(mkdir(path, 0777), 0);
    struct ran r = must_shell("TMPDIR=$PWD/t \"$BENCH\" " ONE_CASE);
    cr_expect_not(strstr(r.err.data, "lock"), "%s", r.err.data);

    path = in_folder("t/bench-machine.lock");
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert(fd >= 0, "no lock in TMPDIR");
    cr_assert_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    shell_exits(0, "another bench is measuring on this machine",
                "TMPDIR=$PWD/t \"$BENCH\" " ONE_CASE);
    close(fd);

    shell_exits(0, "note: no lock of this machine: ", "TMPDIR=$PWD/nowhere \"$BENCH\" " ONE_CASE);
    r = run_shell("TMPDIR=$PWD/t \"$BENCH\" doctor");
    HAS(r.out.data, "no other bench is measuring");
    unmount();
}
