/* SPDX-License-Identifier: MIT
 *
 * What is to be said of a row that is ok, but not without reserve: flags in memory, words in the
 * column status_detail. Nothing else reads those words. */
#ifndef REMARKS_H
#define REMARKS_H

#include <stddef.h>

enum remark {
    REMARK_UNCHECKED = 1, /* not compared with the reference */
    REMARK_NOISY = 2,     /* disturbed samples had to count */
    REMARK_FEW = 4,       /* fewer than 15 samples */
};

/* status_detail of an ok row: the words with blanks between them. */
void remarks_print(char *buf, size_t size, unsigned remarks);

/* Those of a row that was read; 0 unless its status is ok, for then the detail is a reason. */
unsigned remarks_of_row(const char *status, const char *status_detail);

#endif
