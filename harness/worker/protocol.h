/* SPDX-License-Identifier: MIT
 *
 * The text protocol between the parent and a child: lines over a socket, answered in order. Version
 * 1:
 *
 *   parent                child
 *                         hello bench-cell/1
 *   REQUEST [WORDS]       answer
 *   ...
 *   close                 report                     and the child ends
 *
 * An answer is lines "name value" closed by "end", or the one line "sample WALL CPU SWITCHES SPIN ENERGY FIRST
 * TOKEN TOKEN_P99" for a block (sample.h), or "fail STATUS message" instead of any line. serve.h lists the requests; their handlers
 * explain the answers. */
#pragma once

#include "variants/base/base.h"

#define PROTOCOL_HELLO "hello bench-cell/1"
enum { PROTOCOL_LINE = 16384 }; /* two paths and the options around them */

struct protocol {
    int fd;
    double patience_s;        /* longest silence of the other side; 0 = no limit */
    const volatile int *stop; /* an interruption ends a wait; NULL: it does not */
    void (*tick)(void *arg);  /* called several times a second while waiting; may be NULL */
    void *tick_arg;
    bool ended;       /* the other side has closed */
    bool interrupted; /* the last wait was ended by *stop */
    char buf[PROTOCOL_LINE];
    size_t n;
};

/* One line without its newline into `line` [PROTOCOL_LINE]. E_CHILD at end of file (`ended`),
 * E_TIMEOUT after `patience_s`, E_INTERRUPTED. */
enum status protocol_read(struct protocol *t, char *line, struct err *e);
enum status protocol_write(struct protocol *t, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Read an answer: each "name value" is passed to `field`. */
typedef void field_fn(void *arg, const char *name, const char *value);
enum status protocol_read_answer(struct protocol *t, field_fn *field, void *arg, struct err *e);

/* If `line` is "fail ...": its status and message, else OK. */
enum status protocol_failure(const char *line, struct err *e);
