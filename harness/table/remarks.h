/* SPDX-License-Identifier: MIT
 *
 * Reservations about a row that is ok: flags in memory, words in the column status_detail. Only
 * this file reads those words. */
#pragma once

#include <stddef.h>

/* Fewest samples whose range holds the true median in 95 % of all cases: it misses it in 2 of
 * 2^n. */
enum { INTERVAL_SAMPLES = 6 };

enum remark {
    REMARK_UNCHECKED = 1,  /* not compared with the reference */
    REMARK_NOISY = 2,      /* disturbed samples had to be used */
    REMARK_FEW = 4,        /* fewer than INTERVAL_SAMPLES: their median has no interval */
    REMARK_SAMPLED = 8,    /* some rows of the output were compared with the reference */
    REMARK_THROTTLED = 16, /* the CPU quota stopped it */
    REMARK_BEYOND = 32,    /* more tokens at once than its model was made for */
    REMARK_MIXED = 64,     /* its threads ran on cores of several kinds */
    REMARK_CLOCK = 128,    /* the clock rate moved */
    REMARK_OWN = 256,      /* norms, feed-forward network or biases are not those of --skeleton */
    REMARK_EMBEDDED = 512, /* its positions are added to the embedding, which is elsewhere */
    REMARKS = 1024,        /* above all */
};

/* status_detail of an ok row: the words, separated by blanks. */
void remarks_print(char *buf, size_t size, unsigned remarks);

/* The remarks of a row read from disk; 0 unless its status is ok (the detail of other rows is a
 * reason). */
unsigned remarks_of_row(const char *status, const char *status_detail);
