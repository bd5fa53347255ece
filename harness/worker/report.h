/* SPDX-License-Identifier: MIT
 *
 * A child's report on a bound and checked case, or on a scored text. One list makes the struct,
 * what is sent and what is read. */
#pragma once

#include "harness/machine/pin.h"
#include "harness/table/columns.h"
#include "protocol.h"

/* X(name); the numbers of a score use the macro X that the list is expanded with. */
#define SCORE_NUMBER(name, how, column) X(name)
#define REPORT_TEXTS(X)                                                                            \
    X(impl)                                                                                        \
    X(gemm_from)                                                                                   \
    X(rows_from)                                                                                   \
    X(isa_used)                                                                                    \
    X(core)                                                                                        \
    X(config)                                                                                      \
    X(cpu)                                                                                         \
    X(cpus)                                                                                        \
    X(worst_at)                                                                                    \
    X(token_is)                                                                                    \
    X(note)
#define REPORT_REALS(X)                                                                            \
    X(threads_seen)                                                                                \
    X(mixed_kinds)                                                                                 \
    X(arena_bytes)                                                                                 \
    X(predicted_bytes)                                                                             \
    X(cache_bytes)                                                                                 \
    X(rss_before_bytes)                                                                            \
    X(rss_peak_bytes)                                                                              \
    X(bind_ns)                                                                                     \
    X(flop)                                                                                        \
    X(bytes)                                                                                       \
    X(moved_bytes)                                                                                 \
    X(gather_ns)                                                                                   \
    X(tokens)                                                                                      \
    X(max_abs_err)                                                                                 \
    X(max_rel_err)                                                                                 \
    X(nmse)                                                                                        \
    X(checked_rows)                                                                                \
    X(output_rows)                                                                                 \
    SCORE_NUMBERS(SCORE_NUMBER)

enum { REPORT_TEXT = 256 };

struct report {
#define X(name) char name[REPORT_TEXT];
    REPORT_TEXTS(X)
#undef X
#define X(name) double name;
    REPORT_REALS(X)
#undef X
    double part_bytes[PART_COUNT];
};

/* The fields from gemm_from to cpus, and threads_seen. */
void report_describe(struct report *r, const struct engine *g, const struct team *team);

enum status report_send(const struct report *r, struct protocol *t, struct err *e);
/* A field_fn, `arg` is the report; lines of a newer child that are unknown here are ignored. */
void report_field(void *arg, const char *name, const char *value);
