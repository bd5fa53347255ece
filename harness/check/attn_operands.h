/* SPDX-License-Identifier: MIT
 *
 * One attention with random operands, gaps between their rows and sequences, guard words around the
 * results, and the bound on the error of rounding to float. */
#pragma once

#include "guarded.h"

#include "variants/backends/backend.h"

enum {
    HAS_U = 1,
    HAS_W = 2,
    REL_K = 4,
    REL_V = 8,
    BIAS = 16,
    PER_HEAD = 32,
    LSE = 64,
    FULL = 128,
    WIDE_V = 256, /* values wider than keys, or narrower; not with REL_V */
    NARROW_V = 512,
    CAP = 1024,
    SINK_LOGIT = 2048, /* sinks that are logits only */
    CROSS = 4096,      /* M + 1 keys that are not ordered with the queries; with FULL, no tables */
};
enum { ALL_KEYS = 100000, SINK_LOGITS = 3 };

/* Optional terms; R = ALL_KEYS means a row for every distance. */
struct scheme {
    int terms, R, Rf, window;
};

struct shape {
    int B, H, Hkv, L, M, dh;
};

/* All operands of one case, random. */
struct operands {
    struct attn a;
    float *q, *k, *v, *u, *w, *rel_k, *rel_v, *bias, *sink_logit, *o, *lse;
    size_t o_size, lse_size;
};

void make_operands(struct operands *x, const struct shape *s, const struct scheme *t);
void free_operands(struct operands *x);

/* Numbers of bf16 for all operands that a->bf16 names. */
void round_operands(struct operands *x);

/* Largest Euclidean norm of a row of n floats among `rows` rows of each of B sequences. */
double widest(const float *x, int B, int rows, struct stride at, int n);

/* A dot product of d terms is off by d U sum |a||b| <= d U |a| |b|, and q + u, the factor and the
 * conversion to base 2 round four more times; a table with its far row subtracted is up to twice as
 * wide. So each score, of size up to S, is off by ds, and s - max rounds relative to 2 S. exp adds
 * 4 U, so p is off by 2 ds + U (4 S + 8), sums over n keys by 2 n U; v and rel_v are weighted by
 * all of that. A cap's slope is at most 1; its quotient, tanh (4 ulp) and product round too. Where
 * operands are of bf16, p may be rounded to it, by 2^-8 of itself. */
enum { CAP_ROUNDINGS = 12 };
struct bound {
    double out, lse;
};

struct bound attn_bound(const struct operands *x);
