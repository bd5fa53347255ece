/* SPDX-License-Identifier: MIT
 *
 * Trainings that are killed before each of the calls that change their files, whose disk is full
 * from there on, or in which one call fails: --resume comes to the same files as a training that
 * nothing disturbed. Two trainings of one checkpoint: the second is refused. */
#include "tests/support/each.h"
#include "tests/support/failing.h"
#include "tests/support/loaded.h"
#include "tests/support/words.h"

#include <dirent.h>
#include <signal.h>

#define IN "checkpoint_here" /* the folder whose calls count */
#define LINE                                                                                       \
    "train --variant xl --backend ref --threads 1 --pin none --seq 4 --mem 4 --batch 2 --layers "  \
    "1 --d-model 8 --heads 2 --corpus text --lr-warmup 2 --dropout 0.1 --ckpt " IN "/m "
#define SHORT LINE "--isolate none -q --steps 4 --eval-every 2 " /* two saves */

static void make_text(void)
{
    char text[400];

    folder_make();
    cr_assert_eq(mkdir(in_folder(IN), 0777), 0);
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('a' + (i * i + i / 7) % 5);
    folder_put("text", text, sizeof(text));
}

TestSuite(train_faults, .init = make_text, .fini = folder_remove, .timeout = 240);

/* ---- comparing ---------------------------------------------------------------------------- */

static void expect_same_bytes(const char *name, int n)
{
    cr_assert(folder_has(name), "call %d: no %s", n, name);
    const char *const whole = kept_text("whole/%s", strrchr(name, '/') + 1);
    const struct bytes a = folder_read(name), b = folder_read(whole);
    cr_assert(a.n == b.n && memcmp(a.data, b.data, a.n) == 0, "call %d: %s differs", n, name);
}

/* The tensors: its metadata have the time that the training took. */
static void expect_same_state(int n)
{
    const struct safetensors a = tensors_of(in_folder(IN "/m.opt")),
                             b = tensors_of(in_folder("whole/m.opt"));

    cr_assert_eq(a.n_tensors, b.n_tensors);
    for (int i = 0; i < a.n_tensors; i++) {
        const struct tensor *const x = &a.tensors[i], *const y = &b.tensors[i];
        cr_assert(strcmp(x->name, y->name) == 0 && x->n == y->n &&
                      memcmp(x->data, y->data, x->n * ELEMENT_BYTES) == 0,
                  "call %d: %s differs", n, x->name);
    }
}

/* Every step once, with the same numbers but for the time. */
static void expect_same_curve(int n)
{
    size_t lines = 0;

    cr_assert(folder_has(IN "/m.train.csv"), "call %d: no curve", n);
    const struct rows a = must_read_table(in_folder(IN "/m.train.csv"), TABLE_TRAIN);
    const struct rows b = must_read_table(in_folder("whole/m.train.csv"), TABLE_TRAIN);
    const struct bytes file = folder_read(IN "/m.train.csv");
    for (size_t i = 0; i < file.n; i++)
        lines += file.data[i] == '\n';
    cr_assert(a.n == b.n && lines == a.n + 1 && file.data[file.n - 1] == '\n',
              "call %d: %zu rows in %zu lines for %zu", n, a.n, lines, b.n);
    for (size_t i = 0; i < a.n; i++) {
        const struct train_row *const x = (const struct train_row *)a.row + i;
        const struct train_row *const y = (const struct train_row *)b.row + i;
        cr_assert(x->step == y->step && x->loss_nats == y->loss_nats &&
                      x->valid_nats == y->valid_nats,
                  "call %d: row %zu", n, i);
    }
}

/* The files of a training and no other: nothing half written, no lock. */
static void expect_no_leftovers(int n)
{
    DIR *d = opendir(in_folder(IN));
    cr_assert_not_null(d);
    for (const struct dirent *f; (f = readdir(d));)
        cr_assert(is_word_of("m m.best m.opt m.train.csv . ..", f->d_name), "call %d: %s is left",
                  n, f->d_name);
    closedir(d);
}

static void expect_as_undisturbed(int n)
{
    expect_same_bytes(IN "/m", n);
    expect_same_bytes(IN "/m.best", n);
    expect_same_state(n);
    expect_same_curve(n);
    expect_no_leftovers(n);
}

/* ---- one fault after the other ------------------------------------------------------------ */

/* Go on as the messages say: from the checkpoint, or anew where nothing was saved. Returns the exit
 * code; with a fault at call `at` if that is not 0. */
static int go_on(const char *how, int at)
{

    struct ran r =
        run_shell("exec env %s=\"${BENCH%%/*}/faults.so\" FAULT_IN=" IN
                  " FAULT_HOW=%s FAULT_AT=%d \"$BENCH\" " SHORT "%s",
                  at ? "LD_PRELOAD" : "UNUSED", how, at, folder_has(IN "/m") ? "--resume" : "");
    const int code = r.code;
    cr_assert(at || code == 0, "ended with %d: %s", code, r.err.data);
    return code;
}

/* Every call of a whole training in turn; where `again`, every third time one while it is resumed,
 * too. */
static void expect_survived(const char *how, int code, bool again)
{
    enum { MOST = 500, FEWEST = 30 };
    int n = 0, got;

    SKIP_SANITIZED("a library loaded first and the sanitizer's do not go together");
    must_shell("\"$BENCH\" " SHORT "&& mv " IN " whole && mkdir " IN);
    do {
        must_shell("rm -f " IN "/*");
        got = go_on(how, ++n);
        cr_assert(got == code || got == 0, "call %d: exit code %d", n, got);
        if (again && n % 3 == 0)
            go_on(how, n / 3);
        go_on(how, 0);
        expect_as_undisturbed(n);
    } while (got != 0 && n < MOST);
    cr_expect(n > FEWEST && n < MOST, "%d calls", n);
}

Test(train_faults, killed_before_every_call) { expect_survived("kill", 128 + SIGKILL, true); }

Test(train_faults, a_disk_that_is_full_at_every_call) { expect_survived("full", 7, false); }

/* One call fails, the later ones do not. */
static char hows[][16] = {"open:EMFILE", "write:EIO",  "name:EIO",
                          "sync:ENOSPC", "map:ENOMEM", "memory:ENOMEM"};

TEST_EACH(char (*how)[16], train_faults, a_call_fails, EVERY(hows), .init = make_text,
          .fini = folder_remove, .timeout = 3600)
{
    enum { MOST = 24 };

    SKIP_SANITIZED("a library loaded first and the sanitizer's do not go together");
    const int calls = count_failing(*how, SHORT);
    must_shell("mv " IN " whole && mkdir " IN);
    for (int n = 1; n <= calls; n = next_failing(n, calls, MOST)) {
        must_shell("rm -f " IN "/*");
        struct ran r = run_failing(*how, n, SHORT);
        expect_orderly(&r, *how, n, false);
        go_on("", 0); /* also when it was complete: its lock may be left */
        expect_as_undisturbed(n);
    }
}

/* ---- two at once -------------------------------------------------------------------------- */

/* A training that would take minutes, once it has said `text`; *child does the work. A step is
 * reported before it is saved: one more step must be awaited. */
static struct program start_long(const char *more, const char *text, pid_t *child)
{
    struct program p = start_bench(LINE "--steps 100000000 --progress plain %s", more);

    cr_assert(wait_for_text(&p, text));
    cr_assert_eq(children_of(p.pid, child, 1), 1);
    return p;
}

Test(train_faults, the_second_training_is_refused)
{
    pid_t child;
    struct program p = start_long("--eval-every 2", "step 4/", &child);
    struct ran r = bench_exits(6, NULL, LINE "--resume");
    const char *const holder = kept_text("process %d ", (int)child);
    expect_said(&r, IN "/m");
    expect_said(&r, holder);
    bench_exits(6, NULL, LINE "--force --isolate none");

    /* Its child dies with it, and the lock with that. */
    cr_assert_eq(kill(p.pid, SIGKILL), 0);
    r = finish_bench(&p);
    expect_exit(&r, 128 + SIGKILL);
    must_bench(LINE "--resume --stop-at 1");
    expect_no_leftovers(0);
}

/* ---- what it says ------------------------------------------------------------------------- */

/* Kill the child; does the message recommend --resume? */
static bool told_to_resume(struct program *p, pid_t child)
{
    cr_assert_eq(kill(child, SIGKILL), 0);
    struct ran r = finish_bench(p);
    expect_exit(&r, 1);
    const bool told = strstr(r.err.data, "--resume");
    return told;
}

Test(train_faults, resume_is_recommended_where_it_works)
{
    pid_t child;
    struct program p = start_long("--eval-every 1000000", "train ", &child);

    cr_expect_not(told_to_resume(&p, child), "nothing was saved");
    cr_expect_not(folder_has(IN "/m"));

    p = start_long("--eval-every 2", "step 4/", &child);
    cr_expect(told_to_resume(&p, child));
    must_bench(LINE "--resume --stop-at 1");

    /* --force has removed the earlier checkpoint: nothing goes on from that. */
    p = start_long("--eval-every 1000000 --force", "train ", &child);
    cr_expect_not(told_to_resume(&p, child));
    cr_expect_not(folder_has(IN "/m"));
    cr_expect_not(folder_has(IN "/m.opt"));
    cr_expect_not(folder_has(IN "/m.best"));
}

/* Interrupted before its first step, it has written nothing, and says nothing of files. */
Test(train_faults, nothing_to_do_writes_nothing)
{
    must_shell("exec \"$BENCH\" " SHORT);
    struct stat before, after;

    const char *const path = in_folder(IN "/m");
    cr_assert_eq(stat(path, &before), 0);
    struct ran r = must_bench(LINE "--steps 4 --resume");
    cr_expect_not(strstr(r.err.data, "wrote"), "%s", r.err.data);
    cr_assert_eq(stat(path, &after), 0);
    cr_expect_eq(before.st_ino, after.st_ino);
}
