/* SPDX-License-Identifier: MIT
 *
 * The loops of a roofline, included once per instruction set by peak_*.c, which define the vector:
 * V_BYTES, V_FMA(a, b, c) = a * b + c; and V_FLOP, the flop of a lane of V_FMA, if it is not 2. */
#include "peak.h"

/* Fourteen chains and two constants fill sixteen registers. A fused multiply-add of latency 4, two
 * per cycle, needs eight; separate multiply and add, latency 6 together, need twelve. */
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)
#define STREAMS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

/* Of floats, of bits. */
typedef float VF __attribute__((vector_size(V_BYTES)));
typedef uint64_t VI __attribute__((vector_size(V_BYTES), may_alias));

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
    const VF zero = {0}, a = zero + 0.75f, b = zero + 0.25f;
    double sum = 0;
#define X(n) VF x##n = zero + (start + 0.0625f * n);
    CHAINS(X)
#undef X

    for (; iterations > 0; iterations--) {
#define X(n) x##n = V_FMA(x##n, a, b);
        CHAINS(X)
#undef X
    }
#define X(n)                                                                                       \
    for (int i = 0; i < LANES; i++)                                                                \
        sum += x##n[i];
    CHAINS(X)
#undef X
    return sum / (N_CHAINS * LANES);
}

static uint64_t read_loop(const void *buf, size_t bytes, uint64_t passes)
{
    const unsigned char *const end = (const unsigned char *)buf + bytes;
    uint64_t all = 0;
#define X(n) VI x##n = {0};
    STREAMS(X)
#undef X

    for (; passes > 0; passes--) {
        for (const unsigned char *p = buf; p < end; p += N_STREAMS * sizeof(VI)) {
#define X(n) x##n |= *(const VI *)(p + n * sizeof(VI));
            STREAMS(X)
#undef X
        }
        __asm__ volatile("" ::: "memory"); /* forces every pass to read again */
    }
#define X(n) x0 |= x##n;
    STREAMS(X)
#undef X
    for (size_t i = 0; i < sizeof(VI) / sizeof(uint64_t); i++)
        all |= x0[i];
    return all;
}

_Static_assert(PEAK_READ_STEP % (N_STREAMS * sizeof(VI)) == 0, "read() loops over whole steps");

#define PEAK_LOOPS                                                                                 \
    {                                                                                              \
        .flop = (double)V_FLOP * N_CHAINS * LANES, .cycles = N_CHAINS / 2.0, .fma = fma_loop,      \
        .read = read_loop                                                                          \
    }
