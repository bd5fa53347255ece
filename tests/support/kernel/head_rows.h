/* SPDX-License-Identifier: MIT
 *
 * The rows of a file of bench eval --attention. */
#pragma once

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Empty numbers are NAN. */
struct head_row {
    int layer, attention, head, queries;
    double visible, entropy, keys90, rank90, values, apart, before;
};

/* The number of rows, `most` at most. */
static inline int read_rows(const char *path, struct head_row *row, int most)
{
    FILE *const f = fopen(path, "r");
    char line[512];
    int n = 0;

    cr_assert(f, "%s", path);
    cr_assert(fgets(line, sizeof(line), f));
    cr_expect_str_eq(line, "layer,attention,head,queries,visible_keys,entropy_nats,keys90,rank90,"
                           "values_rank90,jsd_heads_bits,jsd_before_bits\n");
    while (n < most && fgets(line, sizeof(line), f)) {
        double x[11];
        char *at = line;
        for (int i = 0; i < 11; i++) {
            char *end = at;
            x[i] = strtod(at, &end);
            if (end == at)
                x[i] = NAN;
            at = end + 1;
        }
        row[n++] = (struct head_row){(int)x[0], (int)x[1], (int)x[2], (int)x[3], x[4], x[5],
                                     x[6],      x[7],      x[8],      x[9],      x[10]};
    }
    fclose(f);
    return n;
}
