/* SPDX-License-Identifier: MIT
 *
 * Texts in memory: whole, or an error. */
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"
#include <sys/resource.h>

TestSuite(fileio, .timeout = 240);

Test(fileio, a_text_of_any_length)
{
    for (size_t n = 0; n < 100000; n = 3 * n + 1) {
        struct bytes b;
        FILE *const f = bytes_begin(&b);
        for (size_t i = 0; i < n; i++)
            fputc("abcde"[i % 5], f);
        bytes_end(f, &b);
        cr_assert_eq(b.n, n);
        cr_assert_eq(strlen(b.data), n);
        for (size_t i = 0; i < n; i++)
            cr_assert_eq(b.data[i], "abcde"[i % 5], "byte %zu of %zu", i, n);
        free(b.data);
    }
}

/* 64 MB in a process that may grow by 16. */
Test(fileio, a_text_that_does_not_fit)
{
    enum { MB = 1 << 20 };
    static char piece[MB];
    unsigned long pages = 0;
    struct bytes b;

    SKIP_SANITIZED("the sanitizer takes more address space than a limit leaves");
    FILE *const statm = fopen("/proc/self/statm", "r");
    cr_assert(statm && fscanf(statm, "%lu", &pages) == 1);
    fclose(statm);
    const rlim_t limit = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t)16 * MB;
    cr_assert_eq(setrlimit(RLIMIT_AS, &(struct rlimit){limit, limit}), 0);

    FILE *const f = bytes_begin(&b);
    for (int i = 0; i < 64; i++)
        fwrite(piece, 1, sizeof(piece), f);
    cr_expect_eq(bytes_close(f, &b, &failure), E_NOMEM);
    cr_expect(!b.data && b.n == 0);
}

TestSuite(fileio_paths, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* A pipe is nobody's file: opening one never waits. */
Test(fileio_paths, pipes)
{
    struct appender a;
    struct bytes b;

    const char *const path = in_folder("pipe");
    cr_assert_eq(mkfifo(path, 0666), 0);
    cr_expect_eq(append_open(&a, path, false, &failure), E_IO);
    cr_expect_eq(file_read(&b, path, &failure), E_IO);
    REFUSED(append_open(&a, "/dev/null", false, &failure), E_IO, "  -> ");
}

/* With root's rights, a report to /dev/null would make a file of it. */
Test(fileio_paths, replaces_files_only)
{
    struct stat is;

    const char *path = in_folder("pipe");
    cr_assert_eq(mkfifo(path, 0666), 0);
    path = in_folder("link");
    cr_assert_eq(symlink("pipe", path), 0);
    path = in_folder("folder");
    cr_assert_eq(mkdir(path, 0777), 0);
    EACH_TEXT (made, "pipe", "link", "folder") {
        struct err e = {""};
        path = in_folder(made);
        cr_expect_eq(file_replace(path, "x", 1, &e), E_IO, "%s", made);
        HAS(e.msg, "  -> ");
        cr_expect_eq(stat(path, &is), 0, "%s is gone", made);
        cr_expect_not(S_ISREG(is.st_mode), "%s is a file", made);
    }
}
