/* SPDX-License-Identifier: MIT
 *
 * The parent's side of a child: start, request, end. All child processes that compute are started
 * here: measuring children, which take several requests, and those that take one (scoring a text,
 * training, checking a backend, measuring peaks). */
#pragma once

#include "serve.h"

#include <sys/types.h>

struct child {
    struct protocol protocol;
    pid_t pid;   /* 0 = none */
    bool failed; /* accepts no further requests */
    /* Of a measuring child. */
    const struct bench_case *bcase;
    struct report report;
    struct worker *worker; /* --isolate none: the case is bound in this process */
};

enum { CHILD_WORDS = 8 };

/* Settings that all children of a run share. */
struct child_setup {
    enum isolate isolate;
    char **environment;       /* for exec */
    double patience_s;        /* longest silence before a child counts as hung; 0 = no limit */
    const volatile int *stop; /* number of interruptions so far; one ends every wait */
    void (*tick)(void *arg);  /* called several times a second while waiting; may be NULL */
    void *tick_arg;
    double memory_bytes;   /* that cases may take together */
    int reference_threads; /* of references that are not measured; 0 = as their case */
    char cpu[64];          /* the CPU as the parent detects it */
    /* Words that start the program, for exec: another build, or valgrind and its options before
     * one. At most CHILD_WORDS, NULL after the last; NULL = this program. */
    const char *const *launch;
    struct topo *topo; /* --isolate none: the machine as it was before a case pinned this process */
};

/* Fill from the options and this process; memory_bytes is left 0. Catches signals. */
enum status child_setup_open(struct child_setup *s, const struct options *opt, struct err *e);
void child_setup_close(struct child_setup *s);

/* After the last of several cases that were open together: with --isolate none they have pinned
 * this process. */
void child_unpin(const struct child_setup *s);

/* ---- one request ----------------------------------------------------------------------------- */

/* Start a child and send it `request`. --isolate none is ignored: a child is started anyway. */
enum status child_begin(struct child *c, const struct child_setup *setup,
                        const struct request *request, const char *words, struct err *e);
/* Read its answer. If the child died, the error says how. */
enum status child_answer(struct child *c, field_fn *field, void *arg, struct err *e);
/* Both, and the end of the child. */
enum status child_ask(const struct child_setup *setup, const struct request *request,
                      const char *words, field_fn *field, void *arg, struct err *e);
/* The same of a child that may be silent as long as it works, ends by itself when interrupted, and is
 * waited for: a SIGTERM of this process is passed on; a Ctrl-C reaches it directly. */
enum status child_ask_to_the_end(const struct child_setup *setup, const struct request *request,
                                 const char *words, field_fn *field, void *arg, struct err *e);

/* ---- measuring ----------------------------------------------------------------------------- */

/* Start a child that pins, opens and counts. `reference` is a file descriptor, see enum role. With
 * --isolate none all of this happens in this process. */
enum status child_open(struct child *c, const struct bench_case *bcase,
                       const struct child_setup *setup, enum role role, int reference,
                       struct err *e);
enum status child_place(struct child *c, struct err *e);
/* Of a child with ROLE_MAKE, instead: see worker_reference. */
enum status child_reference(struct child *c, double limit_s, struct err *e);

/* The block function of struct side; the launch is the child. */
enum status child_block(void *ctx, uint32_t calls, bool prime, struct sample *out, struct err *e);

/* Request the last report and end the child. Safe after any failure, and twice. */
void child_close(struct child *c);
