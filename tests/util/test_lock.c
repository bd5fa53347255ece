/* SPDX-License-Identifier: MIT
 *
 * Locks that living processes hold: who is refused, who is named, and what a killed process leaves.
 */
#include "harness/util/lock.h"
#include "tests/support/tmp_folder.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

TestSuite(lock, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* A process that holds the lock until it is killed; returns once it does. */
static pid_t holder_of(const char *path)
{
    int ready[2];
    char taken = 0;

    cr_assert_eq(pipe(ready), 0);
    const pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        struct lock l;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        taken = lock_take(&l, path, "it", &failure) == OK;
        if (write(ready[1], &taken, 1) == 1)
            pause();
        _exit(1);
    }
    cr_assert_eq(read(ready[0], &taken, 1), 1);
    cr_assert(taken);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void end(pid_t pid)
{
    cr_assert_eq(kill(pid, SIGKILL), 0);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(lock, the_second_is_told_who_holds_it)
{
    struct lock l;

    const char *const path = in_folder("a.lock");
    const pid_t holder = holder_of(path);
    cr_expect_eq(lock_take(&l, path, "checkpoint a", &failure), E_UNSUPPORTED);
    HAS(failure.msg, "checkpoint a", kept_text("process %d ", (int)holder));
    lock_release(&l); /* of one that was refused: nothing */
    cr_expect_eq(access(path, F_OK), 0);
    end(holder);
}

Test(lock, a_killed_process_leaves_none)
{
    struct lock l;

    const char *const path = in_folder("a.lock");
    end(holder_of(path));
    MUST(lock_take(&l, path, "a", &failure));
    lock_release(&l);
    cr_expect_neq(access(path, F_OK), 0, "a file is left");
    MUST(lock_take(&l, path, "a", &failure));
    lock_release(&l);
}

Test(lock, a_folder_that_is_not_there)
{
    struct lock l;

    const char *const path = in_folder("nowhere/a.lock");
    REFUSED(lock_take(&l, path, "a", &failure), E_IO, path);
}

/* Another user may have put there what nobody can lock: nobody waits for it, and nobody is kept
 * from measuring. */
Test(lock, what_is_no_file_is_no_lock)
{
    static const char *const made[] = {"pipe", "link", "link-to-pipe", "folder", "nowhere/lock"};
    struct lock l;

    const char *path = in_folder("pipe");
    cr_assert_eq(mkfifo(path, 0666), 0);
    path = in_folder("link");
    cr_assert_eq(symlink("target", path), 0);
    path = in_folder("link-to-pipe");
    cr_assert_eq(symlink("pipe", path), 0);
    path = in_folder("folder");
    cr_assert_eq(mkdir(path, 0777), 0);
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        path = in_folder(made[i]);
        cr_expect_eq(lock_shared(path), LOCK_NO_FILE, "%s", made[i]);
        cr_expect_eq(lock_shared(path), LOCK_NO_FILE, "%s, again", made[i]);
        cr_expect_eq(lock_take(&l, path, "it", &failure), E_IO, "%s", made[i]);
        HAS(failure.msg, "  -> ");
    }
    cr_expect_not(folder_has("target"), "made through a link");
}

Test(lock, a_shared_one)
{
    int how = -1;

    const char *const path = in_folder("shared");
    cr_expect_eq(lock_shared(path), LOCK_OURS);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(lock_shared(path) == LOCK_ANOTHERS ? 0 : 1);
    cr_assert_eq(waitpid(pid, &how, 0), pid);
    cr_expect_eq(how, 0, "two have it");
}

/* Each takes and releases it in turn, which removes the file below the others' hands: never two at
 * once. A file made exclusively while it is held would show a second. */
Test(lock, no_two_at_once)
{
    enum { PROCESSES = 4, TURNS = 5000 };
    pid_t pid[PROCESSES];

    const char *const path = in_folder("a.lock");
    const char *const mark = in_folder("mark");
    for (int p = 0; p < PROCESSES; p++) {
        pid[p] = fork();
        cr_assert_geq(pid[p], 0);
        for (int i = 0; pid[p] == 0 && i < TURNS; i++) {
            struct lock l;
            while (lock_take(&l, path, "a", &failure) == E_UNSUPPORTED)
                continue;
            FILE *f = fopen(mark, "wx");
            if (!f || fclose(f) != 0 || unlink(mark) != 0)
                _exit(1);
            lock_release(&l);
        }
        if (pid[p] == 0)
            _exit(0);
    }
    for (int p = 0; p < PROCESSES; p++) {
        int how = -1;
        cr_assert_eq(waitpid(pid[p], &how, 0), pid[p]);
        cr_expect_eq(how, 0, "process %d found another one inside", p);
    }
}
