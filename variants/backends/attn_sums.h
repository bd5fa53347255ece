/* SPDX-License-Identifier: MIT
 *
 * Gradients of terms that sequences and heads may share. Each (sequence, head) fills its own sums;
 * afterwards they are added in a fixed order, so that results do not depend on the number of
 * threads. This header says which sums exist and how long they are. */
#pragma once

#include "attn.h"

enum attn_sum {
    SUM_U,
    SUM_W,
    SUM_REL_K,
    SUM_REL_V,
    SUM_REL_Q,
    SUM_BIAS,
    SUM_SINK_K,
    SUM_SINK_V,
    SUM_SINK_LOGIT,
    SUM_MIX_LOGITS, /* per head: its row of the matrix */
    SUM_MIX_PROBS,
    SUM_COUNT
};

struct attn_sums {
    size_t n[SUM_COUNT];       /* elements per head; 0 = no such term */
    size_t at[SUM_COUNT];      /* offset within the head's sums */
    ptrdiff_t head[SUM_COUNT]; /* elements between heads in the gradient, 0 = shared */
    size_t each;               /* elements of all sums of one (sequence, head) */
};

struct attn_sums attn_sums_of(const struct attn *a);

/* Items (sequence, unit of heads) that add to the same pairs of d_add form a part, which one thread
 * processes in order: sequences [b0, b1), units [u0, u1). */
struct attn_part {
    int b0, b1, u0, u1;
};
int attn_parts(const struct attn *a, const struct attn_grad *d, int units);
struct attn_part attn_part_at(const struct attn *a, const struct attn_grad *d, int units, int part);

/* The gradient that these sums are added to; NULL = not wanted. */
float *attn_sum_target(const struct attn_grad *d, enum attn_sum which);

/* How `d` does not fit `a`, "what  -> what to do"; NULL = it does. */
const char *attn_grad_fault(const struct attn *a, const struct attn_grad *d);

/* Abort if it does not. */
void attn_grad_check(const struct attn *a, const struct attn_grad *d);
