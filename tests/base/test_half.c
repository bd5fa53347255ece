/* SPDX-License-Identifier: MIT
 *
 * Files that are written beside the one they replace, by both programs' ways to write a whole file:
 * two writers of one file do not disturb each other, no link is followed, and nothing is left. */
#include "tests/support/tmp_folder.h"
#include "variants/base/half.h"
#include "variants/base/safetensors.h"

#include <dirent.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

TestSuite(half, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* Of the whole program: a machine that has no random numbers yet makes names that can be foretold. */
static bool early;

ssize_t getrandom(void *buf, size_t n, unsigned flags)
{
    return early ? -1 : (ssize_t)syscall(SYS_getrandom, buf, n, flags);
}

enum { WRITERS = 4, TIMES = 25, NUMBERS = 20000, WAYS = 2 };

/* As many equal numbers, so that parts of two files in one are seen. */
static enum status write_whole(int way, const char *path, float value, struct err *e)
{
    static float x[NUMBERS];
    const struct tensor t = {.name = "x", .rank = 1, .shape = {NUMBERS}, .n = NUMBERS, .data = x};

    for (int i = 0; i < NUMBERS; i++)
        x[i] = value;
    return way ? safetensors_write(path, &t, 1, NULL, 0, e) : file_replace(path, x, sizeof(x), e);
}

static void expect_whole(const char *path)
{
    struct bytes b = must_load(path);
    cr_assert_geq(b.n, NUMBERS * sizeof(float));
    const char *const x = b.data + b.n - NUMBERS * sizeof(float);
    cr_expect_eq(memcmp(x, x + sizeof(float), (NUMBERS - 1) * sizeof(float)), 0);
}

/* Names in the folder. */
static int files(void)
{
    DIR *const d = opendir(folder);
    int n = -2; /* . and .. */

    cr_assert(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Two at once, as of two machines that share a folder. */
Test(half, each_has_a_name_of_its_own)
{
    const char *const path = in_folder("file");
    char *half[2];
    int fd[2];

    for (int i = 0; i < 2; i++) {
        fd[i] = half_create(&half[i], path);
        cr_assert_geq(fd[i], 0);
        kept(half[i]);
        cr_expect_eq(strncmp(half[i], path, strlen(path)), 0, "%s", half[i]);
    }
    cr_expect_str_neq(half[0], half[1]);
    cr_expect_eq(files(), 2);
    cr_expect_eq(half_clear(path), 0);
    cr_expect_eq(files(), 0);
    close(fd[0]), close(fd[1]);
}

static int write_often(int way, const char *path, int writer)
{
    for (int i = 0; i < TIMES; i++)
        if (write_whole(way, path, (float)writer, &failure) != OK)
            return 1;
    return 0;
}

Test(half, several_writers_of_one_file)
{
    const char *const path = in_folder("file");

    for (int way = 0; way < WAYS; way++) {
        for (int i = 0; i < WRITERS; i++)
            if (fork() == 0)
                _exit(write_often(way, path, i));
        for (int i = 0, how; i < WRITERS; i++) {
            cr_assert_gt(wait(&how), 0);
            cr_expect(WIFEXITED(how) && WEXITSTATUS(how) == 0, "way %d", way);
        }
        expect_whole(path);
        cr_expect_eq(files(), 1);
    }
}

/* What has the name already stays: another's half, a link to a file, and one to none. */
Test(half, never_of_a_name_that_is_taken)
{
    const char *const path = in_folder("file"), *const target = in_folder("target");
    char taken[3][FILE_PATH];
    struct stat is;

    MUST(file_replace(target, "theirs", 6, &failure));
    for (int i = 0; i < 3; i++)
        cr_assert_lt(snprintf(taken[i], FILE_PATH, "%s.%08x.tmp", path, (unsigned)getpid() + i),
                     FILE_PATH);
    cr_assert_eq(symlink(target, taken[0]), 0);
    cr_assert_eq(symlink("none", taken[1]), 0);
    cr_assert_eq(link(target, taken[2]), 0);
    early = true;
    for (int way = 0; way < WAYS; way++)
        cr_expect_eq(write_whole(way, path, 1, &failure), OK, "%s", failure.msg);
    early = false;
    expect_whole(path);
    cr_expect(stat(target, &is) == 0 && is.st_size == 6 && is.st_nlink == 2);
    cr_expect(lstat(taken[0], &is) == 0 && S_ISLNK(is.st_mode));
    cr_expect(lstat(taken[1], &is) == 0 && S_ISLNK(is.st_mode));
    cr_expect_eq(files(), 5);
}

/* A full disk, and a name that is a folder's. */
Test(half, nothing_is_left_of_a_failure)
{
    const struct rlimit small = {.rlim_cur = 200, .rlim_max = 200};
    const char *const path = in_folder("file"), *const sub = in_folder("folder");

    cr_assert_eq(mkdir(sub, 0700), 0);
    cr_assert_neq(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
    for (int way = 0; way < WAYS; way++)
        cr_expect_eq(write_whole(way, sub, 1, &failure), E_IO);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int way = 0; way < WAYS; way++)
        cr_expect_eq(write_whole(way, path, 1, &failure), E_IO);
    cr_expect(strstr(failure.msg, path) && !strstr(failure.msg, ".tmp"), "%s", failure.msg);
    cr_expect_eq(files(), 1);
}

/* Of this file, and nothing that only looks like it. */
Test(half, clears_what_killed_processes_left)
{
    static const char *const names[] = {"m.00000000.tmp",
                                        "m.89abcdef.tmp", /* then what stays */
                                        "m",
                                        "m.tmp",
                                        "m.0000000.tmp",
                                        "m.000000000.tmp",
                                        "m.0000000g.tmp",
                                        "n.00000000.tmp",
                                        "m.best.00000000.tmp",
                                        "m.00000000.tmp2"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        folder_put_text(names[i], "x");
    cr_expect_eq(half_clear(in_folder("m")), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        cr_expect_eq(folder_has(names[i]), i > 1, "%s", names[i]);
    cr_expect_eq(half_clear(in_folder("none/m")), 0);
}
