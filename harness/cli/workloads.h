/* SPDX-License-Identifier: MIT
 *
 * What a measured call can run: a row of WORKLOADS each. What runs is a struct workload_ops of the same
 * name in harness/worker/. */
#pragma once

#include "variants/parts/choice.h"

/* What --mem counts. */
enum context {
    CONTEXT_PAST,   /* tokens before it, as the variant remembers them */
    CONTEXT_KEYS,   /* keys of attention alone */
    CONTEXT_ROWS,   /* rows of another sequence */
    CONTEXT_PROMPT, /* tokens that are read first */
    CONTEXT_SOURCE, /* tokens of an encoder */
};
enum {
    WORK_PHASES = 1,    /* --phase is an axis; otherwise it is forward only, */
    WORK_TRAINS = 2,    /* or both */
    WORK_DECODES = 4,   /* it runs a model one token at a time */
    WORK_ONE_TOKEN = 8, /* and only one */
};

/* X(ID, name, scope, context, flags, help, why not with --mem all, why not with --mem 0, what then):
 * NULL where the context may be so. What is unsupported for another reason: harness/plan/plan.c. */
#define WORKLOADS(X)                                                                               \
    X(ATTN, attn, CORE, KEYS, WORK_PHASES, "attn",                                                 \
      "unsupported: attention alone carries no state", NULL, "give a number of tokens")            \
    X(LAYER, layer, LAYER, PAST, WORK_PHASES, ", layer", NULL, NULL, NULL)                         \
    X(SEGMENT, segment, MODEL, PAST, 0, ", segment (prefill)", NULL, NULL, NULL)                   \
    X(DECODE, decode, MODEL, PAST, WORK_DECODES | WORK_ONE_TOKEN, ", decode (one token)", NULL,    \
      NULL, NULL)                                                                                  \
    X(TRAIN, train, MODEL, PAST, WORK_TRAINS, ", train", NULL, NULL, NULL)                         \
    X(CROSS, cross, CORE, ROWS, WORK_PHASES, ", cross (attention to another text)", NULL,          \
      "unsupported: there is no context", "use --mem 1 or more")                                   \
    X(REQUEST, request, MODEL, PROMPT, WORK_DECODES,                                               \
      ", request (a prompt of --mem tokens, then --seq new ones)",                                 \
      "unsupported: a prompt has a number of tokens", "unsupported: there is no prompt",           \
      "use --mem 512")                                                                             \
    X(ENCDEC, encdec, MODEL, SOURCE, WORK_PHASES,                                                  \
      ", encdec (an encoder of --mem tokens and a decoder of --seq)",                              \
      "unsupported: a source has a length",                                                        \
      "unsupported: there is no source: --mem gives its length",                                   \
      "use --mem 128; --seq is the length of the translation")

#define X(id_, ...) WORK_##id_,
enum workload { WORKLOADS(X) WORK_COUNT };
#undef X

struct workload_row {
    const char *name;
    enum scope scope; /* MODEL: embedding, N layers, output */
    enum context context;
    int flags;
    const char *not_all, *not_zero, *advice;
};
extern const struct workload_row workload_rows[WORK_COUNT];
extern const char *const workload_name[WORK_COUNT + 1]; /* NULL-terminated */

static inline enum scope workload_scope(enum workload w) { return workload_rows[w].scope; }
static inline enum context workload_context(enum workload w) { return workload_rows[w].context; }
static inline bool workload_is_model(enum workload w)
{
    return workload_rows[w].scope == SCOPE_MODEL;
}
static inline bool workload_has(enum workload w, int flag) { return workload_rows[w].flags & flag; }
