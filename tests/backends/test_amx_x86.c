/* SPDX-License-Identifier: MIT
 *
 * Products by the tiles of AMX, on CPUs without them under emulation: every sum within its bound of the
 * reference, of shapes around tiles, steps of k and threads, with every side turned. */
#include "harness/check/op_bounds.h"
#include "tests/support/kernel/by_weights.h"
#include "tests/support/kernel/emulate_x86.h"
#include "tests/support/open_engine.h"
#include "variants/backends/simd/simd.h"

enum { WEIGHTS = 4 }; /* of bf16; else floats, by their first two bits transposed */

static void expect_sums(int m, int n, int k, int kind)
{
    const size_t size = (size_t)m * (size_t)n, depth = (size_t)k;
    float *const a = room((size_t)m * depth, sizeof(*a)), *const b =
                                                              room((size_t)n * depth, sizeof(*b));
    float *const old = room(size, sizeof(*old)), *const c = room(size, sizeof(*c));
    float *const want = room(size, sizeof(*want));
    uint16_t *const w = room((size_t)n * depth, sizeof(*w));
    const struct engine ref = open_engine("ref", 1);

    rng_normal(a, (size_t)m * depth, 1, rng_stream("a"), 0, 1);
    rng_normal(b, (size_t)n * depth, 1, rng_stream("b"), 0, 1);
    rng_normal(old, size, 1, rng_stream("old"), 0, 1);
    elem_narrow(ELEM_BF16, w, b, n * k);
    struct gemm p = by_weights(&ref, m, n, k, a, want);
    p.alpha = kind % 3 ? -0.5f : 1, p.beta = (float)(kind % 3) / 2;
    if (kind == WEIGHTS) {
        p.elem = ELEM_BF16, p.b_narrow = w;
    } else {
        p.rounds = true, p.b = b;
        p.ta = kind & 1, p.tb = kind & 2;
        p.lda = p.ta ? m : k, p.ldb = p.tb ? k : n;
    }
    memcpy(want, old, sizeof(*want) * size);
    memcpy(c, old, sizeof(*c) * size);
    ref.ops.gemm(&p);
    p.threads = 1 + m % 2;
    p.room = kept(aligned_alloc(64, (size_t)p.threads * gemm_room_amx_bf16()));
    p.c = c;
    gemm_amx_bf16(&p);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            const int at = i * n + j;
            const double bound = product_bound(&p, p.beta != 0 ? (double)old[at] : 0, i, j);
            cr_assert(fabs((double)c[at] - (double)want[at]) <= bound,
                      "%d x %d x %d, kind %d: %a at %d,%d, not %a", m, n, k, kind, (double)c[at], i,
                      j, (double)want[at]);
        }
}

Test(amx, sums, .timeout = 300)
{
    static const int shapes[][3] = {{1, 1, 1},    {9, 17, 33},  {16, 16, 32}, {17, 15, 31},
                                    {32, 33, 64}, {33, 64, 63}, {31, 48, 95}, {47, 31, 65},
                                    {65, 5, 34},  {18, 7, 2100}};

    if (cpu_isa_unmasked() < ISA_AVX512_BF16)
        cr_skip_test("no products of pairs of bf16 in vectors here");
    if (cpu_isa_unmasked() < ISA_AMX_BF16)
        emulate_x86();
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        for (int kind = 0; kind <= WEIGHTS; kind++)
            expect_sums(shapes[i][0], shapes[i][1], shapes[i][2], kind);
}
