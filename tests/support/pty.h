/* SPDX-License-Identifier: MIT
 *
 * A process on a pseudo terminal, and the screen it produces. */
#pragma once

#include "program.h"
#include "tmp_folder.h"
#include "words.h"

#include <pty.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define ERASE "\r\033[K"

enum { ON_STDOUT = 1, ON_STDERR = 2, ON_BOTH = ON_STDOUT | ON_STDERR };

struct view {
    int code;
    char screen[1 << 18]; /* what reached the terminal, byte by byte */
    char file[1 << 16];   /* the other stream */
};

typedef void scene_fn(void *arg);

static inline void act(int where, int terminal, int file, scene_fn *scene, void *arg)
{
    forget_settings();
    setenv("TERM", "xterm", 1);
    dup2(where & ON_STDOUT ? terminal : file, STDOUT_FILENO);
    dup2(where & ON_STDERR ? terminal : file, STDERR_FILENO);
    close(terminal);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (chdir(folder) == 0)
        scene(arg);
    _exit(fflush(stdout) == 0 ? 0 : 1);
}

/* Run the scene with one or both streams on a terminal of so many columns; 0 = unknown width. */
static inline void watch(struct view *v, int where, int columns, scene_fn *scene, void *arg)
{
    const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    struct termios raw = {0};
    int master, terminal, how = 0;
    const int file = memfd_create("other stream", MFD_CLOEXEC);
    size_t n = 0;
    ssize_t got;

    *v = (struct view){0};
    cfmakeraw(&raw);
    cr_assert(file >= 0 && openpty(&master, &terminal, NULL, &raw, &size) == 0);
    fflush(NULL);
    const pid_t pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        close(master);
        act(where, terminal, file, scene, arg);
    }
    close(terminal);
    while ((got = read(master, v->screen + n, sizeof(v->screen) - 1 - n)) > 0)
        n += (size_t)got;
    /* Nobody reads on: the process would wait for ever. */
    cr_assert(n < sizeof(v->screen) - 1, "more than %zu bytes", sizeof(v->screen) - 1);
    cr_assert_eq(waitpid(pid, &how, 0), pid);
    /* What a process wrote just before its end can arrive after the first end of file. */
    while ((got = read(master, v->screen + n, sizeof(v->screen) - 1 - n)) > 0)
        n += (size_t)got;
    v->code = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    cr_assert(pread(file, v->file, sizeof(v->file) - 1, 0) >= 0);
    close(file);
    close(master);
}

/* Columns of the widest line; escape sequences that start with ESC [ take none. */
static inline int widest(const char *text)
{
    int widest = 0, at = 0;

    for (; *text; text++) {
        if (*text == '\033') {
            text += strcspn(text, "Km");
            continue;
        }
        at = *text == '\n' || *text == '\r' ? 0 : at + (((unsigned char)*text & 0xc0) != 0x80);
        widest = max_int(widest, at);
    }
    return widest;
}

/* The terminal's lines at the end, without what was erased. */
static inline void what_remains(char *text)
{
    char *out = text, *line = text;

    for (const char *in = text; *in; in++) {
        if (strncmp(in, ERASE, strlen(ERASE)) == 0) {
            out = line;
            in += strlen(ERASE) - 1;
            continue;
        }
        *out++ = *in;
        if (*in == '\n')
            line = out;
    }
    *out = '\0';
}
