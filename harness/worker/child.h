/* SPDX-License-Identifier: MIT
 *
 * The parent's side of a measuring child: start, talk, end. With --isolate none there is no child,
 * and the same calls serve the cell in this process. */
#ifndef CHILD_H
#define CHILD_H

#include "protocol.h"

#include <sys/types.h>

struct child {
    const struct bench_case *bcase;
    struct report report;
    struct protocol protocol;
    pid_t pid;             /* 0 = none */
    struct worker *worker; /* --isolate none */
    bool failed;           /* nothing more can be asked of it */
};

enum { CHILD_WORDS = 8 };

/* What every child of a run shares. */
struct child_setup {
    enum isolate isolate;
    char **environment;       /* for exec */
    double patience_s;        /* longest silence before a child counts as hung */
    const volatile int *stop; /* number of interruptions so far */
    double memory_bytes;      /* that cells may take together */
    char cpu[64];             /* the CPU that the parent sees */
    /* Words that start the program, for exec: another build, or valgrind and its options in front
     * of one. At most CHILD_WORDS, NULL behind the last; NULL = this program. */
    const char *const *launch;
};

/* Start and let it pin, open and count. A dead child's error says how it died. `reference` is a
 * file descriptor, see enum role. */
enum status child_open(struct child *c, const struct bench_case *bcase,
                       const struct child_setup *setup, enum role role, int reference,
                       struct err *e);
/* Start one that scores a text instead; `line` are the options of score.h. */
enum status child_score(struct child *c, const char *line, const struct child_setup *setup,
                        struct err *e);
enum status child_place(struct child *c, struct err *e);

/* struct target's block function; ctx is the child. */
enum status child_block(void *ctx, uint32_t calls, bool prime, struct sample *out, struct err *e);

/* Ask for the last report and end it. Safe after any failure, and twice. */
void child_close(struct child *c);

/* Start `program` (a path, or a name that PATH has; NULL = this program again) with `keep` [n_keep]
 * open at descriptors 3, 4, ... Children ignore SIGINT (the parent ends them) and die with the
 * parent. */
enum status child_exec(const char *program, char *const *argv, char *const *environment,
                       const int *keep, int n_keep, pid_t *pid, struct err *e);

/* Wait for a child that has ended and say how: OK for exit 0, else E_CHILD with the text. */
enum status child_reap(pid_t pid, struct err *e);

#endif
