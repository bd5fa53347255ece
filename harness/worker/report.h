/* SPDX-License-Identifier: MIT
 *
 * A child's report on a bound and checked case, or on a scored text. One list makes the struct,
 * what is sent and what is read. */
#ifndef REPORT_H
#define REPORT_H

#include "harness/machine/pin.h"
#include "protocol.h"

#include "variants/backends/backend.h"
#include "variants/base/arena.h"

/* X(name) */
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
    X(nll)                                                                                         \
    X(nll_low)                                                                                     \
    X(nll_high)                                                                                    \
    X(nll_floor)                                                                                   \
    X(accuracy)                                                                                    \
    X(answers)                                                                                     \
    X(answer_nll)                                                                                  \
    X(answer_floor)                                                                                \
    X(answer_blind)                                                                                \
    X(tokens_scored)                                                                               \
    X(nll_sum)                                                                                     \
    X(tokens_counted)                                                                              \
    X(words)                                                                                       \
    X(text_bytes)                                                                                  \
    X(oov)                                                                                         \
    X(segments)                                                                                    \
    X(eval_ns)                                                                                     \
    X(kl)                                                                                          \
    X(kl_p99)                                                                                      \
    X(same_top_pct)                                                                                \
    X(layers_run)                                                                                  \
    X(layers_p90)                                                                                  \
    X(nll_at_1)                                                                                    \
    X(nll_at_2)                                                                                    \
    X(nll_at_4)                                                                                    \
    X(nll_at_8)                                                                                    \
    X(nll_at_16)                                                                                   \
    X(nll_at_32)                                                                                   \
    X(nll_at_64)                                                                                   \
    X(nll_at_128)                                                                                  \
    X(nll_at_256)                                                                                  \
    X(nll_at_512)                                                                                  \
    X(nll_at_1024)

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

#endif
