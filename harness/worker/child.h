/* SPDX-License-Identifier: MIT
 *
 * The parent's side of a child: start, ask, end. Every process of this program that computes is
 * started here: measuring children, which take several requests, and those that take one (scoring a
 * text, training, checking a backend, measuring peaks). */
#ifndef CHILD_H
#define CHILD_H

#include "serve.h"

#include <sys/types.h>

struct child {
    struct protocol protocol;
    pid_t pid;   /* 0 = none */
    bool failed; /* nothing more can be asked of it */
    /* Of a measuring child. */
    const struct bench_case *bcase;
    struct report report;
    struct worker *worker; /* --isolate none: the case is bound in this process */
};

enum { CHILD_WORDS = 8 };

/* What every child of a run shares. */
struct child_setup {
    enum isolate isolate;
    char **environment;       /* for exec */
    double patience_s;        /* longest silence before a child counts as hung; 0 = for ever */
    const volatile int *stop; /* number of interruptions so far */
    double memory_bytes;      /* that cases may take together */
    char cpu[64];             /* the CPU that the parent sees */
    /* Words that start the program, for exec: another build, or valgrind and its options in front
     * of one. At most CHILD_WORDS, NULL after the last; NULL = this program. */
    const char *const *launch;
};

/* What the options and this process say; memory_bytes is left 0. Catches signals. */
enum status child_setup_open(struct child_setup *s, const struct options *opt, struct err *e);
void child_setup_close(struct child_setup *s);

/* ---- one request ----------------------------------------------------------------------------- */

/* Start a child and give it `request`. --isolate none is the caller's affair: it starts one all the
 * same. */
enum status child_begin(struct child *c, const struct child_setup *setup,
                        const struct request *request, const char *words, struct err *e);
/* Read its answer. A dead child's error says how it died. An interruption ends the wait. */
enum status child_answer(struct child *c, field_fn *field, void *arg, struct err *e);
/* The same for a child that ends by itself when interrupted, which is waited for: a SIGTERM of this
 * process is passed on, a Ctrl-C reaches it without us. */
enum status child_answer_to_the_end(struct child *c, field_fn *field, void *arg, struct err *e);

/* ---- measuring ----------------------------------------------------------------------------- */

/* Start and let it pin, open and count. `reference` is a file descriptor, see enum role. With
 * --isolate none all of this happens in this process. */
enum status child_open(struct child *c, const struct bench_case *bcase,
                       const struct child_setup *setup, enum role role, int reference,
                       struct err *e);
enum status child_place(struct child *c, struct err *e);

/* struct side's block function; the launch is the child. */
enum status child_block(void *ctx, uint32_t calls, bool prime, struct sample *out, struct err *e);

/* Ask for the last report and end it. Safe after any failure, and twice. */
void child_close(struct child *c);

#endif
