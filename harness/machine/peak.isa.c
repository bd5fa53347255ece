/* SPDX-License-Identifier: MIT
 *
 * The loops of a roofline on the vectors of ISA. V_FMA(a, b, c) is a * b + c, which the baselines of both
 * architectures multiply, then add; of bf16 products of pairs, where the upper half of a float is one number
 * and the other is multiplied by 0. */
#include "peak.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#define V_BYTES 16
#else
#include <immintrin.h>
#endif

#if defined(VEC_NEON)
#define V_FMA(a, b, c) vfmaq_f32(c, a, b)
#elif defined(__aarch64__)
#define V_FMA(a, b, c) vaddq_f32(vmulq_f32(a, b), c)
#elif defined(__AVX512BF16__)
#define V_BYTES 64
#define V_FLOP 4
#define V_FMA(a, b, c) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))
#elif defined(VEC_AVX512)
#define V_BYTES 64
#define V_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#elif defined(VEC_AVX2)
#define V_BYTES 32
#define V_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#else
#define V_BYTES 16
#define V_FMA(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
#endif

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

#define LOOPS_OF(isa) peak_loops_##isa
#define LOOPS(isa) LOOPS_OF(isa)
const struct peak_loops LOOPS(ISA) = {.flop = (double)V_FLOP * N_CHAINS * LANES,
                                      .cycles = N_CHAINS / 2.0,
                                      .fma = fma_loop,
                                      .read = read_loop};
