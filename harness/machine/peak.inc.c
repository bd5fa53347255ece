/* SPDX-License-Identifier: MIT
 *
 * The loops of a roofline, included once per instruction set by peak_*.c, which define the vector:
 * types VF (floats) and VI (bits), V_ONE(x), V_FMA(a, b, c) = a * b + c, V_LOAD, V_OR, V_ZERO,
 * V_STORE_F, V_STORE_I; and V_FLOP, the flop of a lane of V_FMA, if it is not 2. */
#include "peak.h"

/* Fourteen chains and two constants fill sixteen registers. A fused multiply-add of latency 4, two
 * per cycle, needs eight; separate multiply and add, latency 6 together, need twelve. */
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)
#define STREAMS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

enum { N_CHAINS = 14, N_STREAMS = 8, LANES = sizeof(VF) / sizeof(float) };

#if !defined(V_FLOP)
#define V_FLOP 2
#endif

/* x <- x * 0.75 + 0.25 has the fixed point 1: no overflow, no denormals, however long it runs; from
 * above 1 also where a product drops the lower bits of x. The compiler could fold a constant start
 * away with its whole chain. */
static const volatile float start = 1.5f;

static double fma_loop(uint64_t iterations)
{
    const VF a = V_ONE(0.75f), b = V_ONE(0.25f);
    float lane[LANES];
    double sum = 0;
#define X(n) VF x##n = V_ONE(start + 0.0625f * n);
    CHAINS(X)
#undef X

    for (; iterations > 0; iterations--) {
#define X(n) x##n = V_FMA(x##n, a, b);
        CHAINS(X)
#undef X
    }
#define X(n)                                                                                       \
    V_STORE_F(lane, x##n);                                                                         \
    for (int i = 0; i < LANES; i++)                                                                \
        sum += lane[i];
    CHAINS(X)
#undef X
    return sum / (N_CHAINS * LANES);
}

static uint64_t read_loop(const void *buf, size_t bytes, uint64_t passes)
{
    const unsigned char *const end = (const unsigned char *)buf + bytes;
    uint64_t lane[sizeof(VI) / sizeof(uint64_t)], all = 0;
#define X(n) VI x##n = V_ZERO();
    STREAMS(X)
#undef X

    for (; passes > 0; passes--) {
        for (const unsigned char *p = buf; p < end; p += N_STREAMS * sizeof(VI)) {
#define X(n) x##n = V_OR(x##n, V_LOAD(p + n * sizeof(VI)));
            STREAMS(X)
#undef X
        }
        __asm__ volatile("" ::: "memory"); /* forces every pass to read again */
    }
#define X(n) x0 = V_OR(x0, x##n);
    STREAMS(X)
#undef X
    V_STORE_I(lane, x0);
    for (size_t i = 0; i < sizeof(VI) / sizeof(uint64_t); i++)
        all |= lane[i];
    return all;
}

_Static_assert(PEAK_READ_STEP % (N_STREAMS * sizeof(VI)) == 0, "read() loops over whole steps");

#define PEAK_LOOPS                                                                                 \
    {                                                                                              \
        .flop = (double)V_FLOP * N_CHAINS * LANES, .fma = fma_loop, .read = read_loop              \
    }
