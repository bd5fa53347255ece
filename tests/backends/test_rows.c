/* SPDX-License-Identifier: MIT
 *
 * Row operations called from inside a parallel region. Their results are tested in tests/check. */
#include "tests/support/every_backend.h"
#include "tests/support/kernel/fenced.h"
#include "tests/support/open_engine.h"

/* Threads only divide rows: the result is the same to the bit, also inside a parallel region. */
TEST_EACH(int *b, rows, threads, every_backend())
{
    enum { ROWS = 67, N = 1023 };
    const struct engine g = open_engine(backends[*b]->name, 2);
    float *one = normals(ROWS * N, "s", 0, 2), *two = copied(one, ROWS * N),
          *inside = copied(one, ROWS * N);
    struct softmax o = {
        .s = one, .ld = N, .rows = ROWS, .cols = N, .hi = 3, .hi_slope = 1, .threads = 1};

    g.ops.softmax(&o);
    o.s = two, o.threads = 2;
    g.ops.softmax(&o);
    o.s = inside, o.threads = 1;
#pragma omp parallel num_threads(2)
#pragma omp single
    g.ops.softmax(&o);
    cr_assert_arr_eq(one, two, sizeof(float[ROWS * N]));
    cr_assert_arr_eq(one, inside, sizeof(float[ROWS * N]));
}
