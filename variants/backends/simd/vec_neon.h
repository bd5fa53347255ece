/* SPDX-License-Identifier: MIT
 *
 * The functions of vec.h on arm64: eight floats in two of its 128-bit registers, so that 32 of them
 * are 16 vectors, as many as tiles of AVX2 have. */
#pragma once

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { VL = 8, VEC_REGISTERS = 16 };
typedef struct {
    float32x4_t lo, hi;
} vf;

/* f of both halves. */
#define BOTH1(f, a)                                                                                \
    (vf) { f((a).lo), f((a).hi) }
#define BOTH2(f, a, b)                                                                             \
    (vf) { f((a).lo, (b).lo), f((a).hi, (b).hi) }
#define BOTH3(f, a, b, c)                                                                          \
    (vf) { f((a).lo, (b).lo, (c).lo), f((a).hi, (b).hi, (c).hi) }

VEC_INLINE vf v1(float x) { return (vf){vdupq_n_f32(x), vdupq_n_f32(x)}; }
VEC_INLINE vf v0(void) { return v1(0); }
VEC_INLINE vf vld(const float *p) { return (vf){vld1q_f32(p), vld1q_f32(p + 4)}; }
VEC_INLINE void vst(float *p, vf a)
{
    vst1q_f32(p, a.lo);
    vst1q_f32(p + 4, a.hi);
}
VEC_INLINE vf vadd(vf a, vf b) { return BOTH2(vaddq_f32, a, b); }
VEC_INLINE vf vsub(vf a, vf b) { return BOTH2(vsubq_f32, a, b); }
VEC_INLINE vf vmul(vf a, vf b) { return BOTH2(vmulq_f32, a, b); }
VEC_INLINE vf vdiv(vf a, vf b) { return BOTH2(vdivq_f32, a, b); }
VEC_INLINE vf vfma(vf a, vf b, vf c) { return BOTH3(vfmaq_f32, c, a, b); }
VEC_INLINE vf vfnma(vf a, vf b, vf c) { return BOTH3(vfmsq_f32, c, a, b); } /* c - a b */
/* By comparison: fmax and fmin return a NaN whichever operand it is. */
VEC_INLINE float32x4_t greater(float32x4_t a, float32x4_t b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}
VEC_INLINE float32x4_t smaller(float32x4_t a, float32x4_t b)
{
    return vbslq_f32(vcltq_f32(a, b), a, b);
}
VEC_INLINE vf vmax(vf a, vf b) { return BOTH2(greater, a, b); }
VEC_INLINE vf vmin(vf a, vf b) { return BOTH2(smaller, a, b); }
VEC_INLINE vf vabs(vf a) { return BOTH1(vabsq_f32, a); }
/* a where x < 0 or x is -0, b elsewhere. */
VEC_INLINE float32x4_t by_sign(float32x4_t x, float32x4_t a, float32x4_t b)
{
    const int32x4_t sign = vshrq_n_s32(vreinterpretq_s32_f32(x), 31);
    return vbslq_f32(vreinterpretq_u32_s32(sign), a, b);
}
VEC_INLINE vf vsel_neg(vf x, vf a, vf b) { return BOTH3(by_sign, x, a, b); }
/* a where x < y, b elsewhere and where either is a NaN. */
VEC_INLINE vf vsel_lt(vf x, vf y, vf a, vf b)
{
    return (vf){vbslq_f32(vcltq_f32(x.lo, y.lo), a.lo, b.lo),
                vbslq_f32(vcltq_f32(x.hi, y.hi), a.hi, b.hi)};
}

/* A bit for each lane, the first the lowest. There are no masked loads and stores: lanes move one
 * by one. */
typedef uint32_t vmask;
VEC_INLINE vmask vfirst(int n) { return (1u << n) - 1u; }
VEC_INLINE vmask vlanes(uint64_t bits) { return (vmask)(bits & 255); }
VEC_INLINE vf vld_m(const float *p, vmask m, vf fill)
{
    float lane[VL];

    if (m == 255)
        return vld(p);
    vst(lane, fill);
    for (int i = 0; i < VL; i++)
        if (m >> i & 1)
            lane[i] = p[i];
    return vld(lane);
}
VEC_INLINE void vst_m(float *p, vmask m, vf a)
{
    float lane[VL];

    if (m == 255) {
        vst(p, a);
        return;
    }
    vst(lane, a);
    for (int i = 0; i < VL; i++)
        if (m >> i & 1)
            p[i] = lane[i];
}
/* a b in the lanes of m, a in the others. */
VEC_INLINE vf vmul_m(vf a, vmask m, vf b)
{
    const uint32x4_t lo = {1, 2, 4, 8}, hi = {16, 32, 64, 128}, bits = vdupq_n_u32(m);
    return (vf){vbslq_f32(vtstq_u32(bits, lo), vmulq_f32(a.lo, b.lo), a.lo),
                vbslq_f32(vtstq_u32(bits, hi), vmulq_f32(a.hi, b.hi), a.hi)};
}

/* Halves are folded upon each other, then neighbours added. */
VEC_INLINE float vsum(vf a) { return vaddvq_f32(vaddq_f32(a.lo, a.hi)); }
VEC_INLINE float vmax_lanes(vf a) { return vmaxvq_f32(vmaxq_f32(a.lo, a.hi)); }

/* Lane i of the result is vsum(r[i]), added in the same order. */
VEC_INLINE float32x4_t sums4(const vf r[4])
{
    float32x4_t t[4];

    UNROLL
    for (int i = 0; i < 4; i++)
        t[i] = vaddq_f32(r[i].lo, r[i].hi);
    return vpaddq_f32(vpaddq_f32(t[0], t[1]), vpaddq_f32(t[2], t[3]));
}
VEC_INLINE vf vsums(const vf r[VL]) { return (vf){sums4(r), sums4(r + 4)}; }

/* x rounded to the nearest integer, and 2^n a for such an n in [-127, 127], 0 for -127: adding
 * 1.5 * 2^23 + 127 leaves the biased exponent in the low bits. */
VEC_INLINE vf vround(vf x) { return BOTH1(vrndnq_f32, x); }
VEC_INLINE float32x4_t power_of_2(float32x4_t n)
{
    const int32x4_t bits = vreinterpretq_s32_f32(vaddq_f32(n, vdupq_n_f32(0x1.8000fep+23f)));
    return vreinterpretq_f32_s32(vshlq_n_s32(bits, 23));
}
VEC_INLINE vf vscale2(vf a, vf n) { return vmul(a, BOTH1(power_of_2, n)); }

/* r[i][j] <-> r[j][i]: pairs, then quads. */
VEC_INLINE void transpose4(float32x4_t r[4])
{
    const float64x2_t even01 = vreinterpretq_f64_f32(vtrn1q_f32(r[0], r[1]));
    const float64x2_t odd01 = vreinterpretq_f64_f32(vtrn2q_f32(r[0], r[1]));
    const float64x2_t even23 = vreinterpretq_f64_f32(vtrn1q_f32(r[2], r[3]));
    const float64x2_t odd23 = vreinterpretq_f64_f32(vtrn2q_f32(r[2], r[3]));

    r[0] = vreinterpretq_f32_f64(vtrn1q_f64(even01, even23));
    r[1] = vreinterpretq_f32_f64(vtrn1q_f64(odd01, odd23));
    r[2] = vreinterpretq_f32_f64(vtrn2q_f64(even01, even23));
    r[3] = vreinterpretq_f32_f64(vtrn2q_f64(odd01, odd23));
}
VEC_INLINE void vtranspose(vf r[VL])
{
    float32x4_t quad[2][2][4]; /* [rows 0 or 4 on][columns 0 or 4 on] */

    UNROLL
    for (int i = 0; i < 4; i++) {
        quad[0][0][i] = r[i].lo;
        quad[0][1][i] = r[i].hi;
        quad[1][0][i] = r[4 + i].lo;
        quad[1][1][i] = r[4 + i].hi;
    }
    transpose4(quad[0][0]);
    transpose4(quad[0][1]);
    transpose4(quad[1][0]);
    transpose4(quad[1][1]);
    UNROLL
    for (int i = 0; i < 4; i++) {
        r[i] = (vf){quad[0][0][i], quad[1][0][i]};
        r[4 + i] = (vf){quad[0][1][i], quad[1][1][i]};
    }
}

/* ---- narrower element types, see narrow.h ------------------------------------------------- */

/* x rounded to bf16, as floats. */
VEC_INLINE float32x4_t rounded4(float32x4_t x)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(x), exponent = vdupq_n_u32(0x7f800000);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t even = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    const uint32x4_t sign = vandq_u32(bits, vdupq_n_u32(0x80000000));
    const uint32x4_t number = vceqq_f32(x, x), normal = vtstq_u32(bits, exponent);
    const uint32x4_t to = vbslq_u32(normal, vbslq_u32(number, even, quiet), sign);

    return vreinterpretq_f32_u32(vandq_u32(to, vdupq_n_u32(0xffff0000)));
}
VEC_INLINE vf vbf16(vf x) { return BOTH1(rounded4, x); }
VEC_INLINE float32x4_t widened4(uint16x4_t x)
{
    return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(x), 16));
}
VEC_INLINE vf vld_bf16(const uint16_t *p)
{
    const uint16x8_t x = vld1q_u16(p);
    return (vf){widened4(vget_low_u16(x)), widened4(vget_high_u16(x))};
}
VEC_INLINE vf vld_bf16_n(const uint16_t *p, int n)
{
    uint16_t some[VL] = {0};

    memcpy(some, p, sizeof(*p) * (size_t)n);
    return vld_bf16(some);
}
VEC_INLINE vf vld_int8(const int8_t *p)
{
    const int16x8_t x = vmovl_s8(vld1_s8(p));
    return (vf){vcvtq_f32_s32(vmovl_s16(vget_low_s16(x))),
                vcvtq_f32_s32(vmovl_s16(vget_high_s16(x)))};
}
VEC_INLINE vf vld_int8_n(const int8_t *p, int n)
{
    int8_t some[VL] = {0};

    memcpy(some, p, (size_t)n);
    return vld_int8(some);
}

VEC_INLINE vf vld_int4(const uint8_t *p, bool upper)
{
    const uint8x8_t both = vld1_u8(p),
                    q = upper ? vshr_n_u8(both, 4) : vand_u8(both, vdup_n_u8(15));
    const int16x8_t x = vsubq_s16(vreinterpretq_s16_u16(vmovl_u8(q)), vdupq_n_s16(8));
    return (vf){vcvtq_f32_s32(vmovl_s16(vget_low_s16(x))),
                vcvtq_f32_s32(vmovl_s16(vget_high_s16(x)))};
}

#if defined(VEC_INT8)
/* As in vec_avx2.h. */
typedef struct {
    int32x4_t lo, hi;
} vi;
VEC_INLINE vi vi0(void) { return (vi){vdupq_n_s32(0), vdupq_n_s32(0)}; }
VEC_INLINE vi vild(const void *p)
{
    return (vi){vld1q_s32((const int32_t *)p), vld1q_s32((const int32_t *)p + 4)};
}
VEC_INLINE vf vfloats(vi a) { return (vf){vcvtq_f32_s32(a.lo), vcvtq_f32_s32(a.hi)}; }
VEC_INLINE int32x4_t madd4(int32x4_t acc, float32x4_t a, float32x4_t b)
{
    const int16x8_t x = vreinterpretq_s16_f32(a), y = vreinterpretq_s16_f32(b);
    const int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y));

    return vaddq_s32(acc, vpaddq_s32(low, vmull_high_s16(x, y)));
}
VEC_INLINE vi vmadd(vi acc, vf a, vf b)
{
    return (vi){madd4(acc.lo, a.lo, b.lo), madd4(acc.hi, a.hi, b.hi)};
}
VEC_INLINE float32x4_t pairs4(vf a)
{
    const int16x4_t lo = vqmovn_s32(vcvtnq_s32_f32(a.lo));

    return vreinterpretq_f32_s16(vqmovn_high_s32(lo, vcvtnq_s32_f32(a.hi)));
}
VEC_INLINE vf vpairs(vf lo, vf hi) { return (vf){pairs4(lo), pairs4(hi)}; }
VEC_INLINE void vst_int8(int8_t *p, vf pairs)
{
    const int8x8_t lo = vqmovn_s16(vreinterpretq_s16_f32(pairs.lo));

    vst1q_s8(p, vqmovn_high_s16(lo, vreinterpretq_s16_f32(pairs.hi)));
}

typedef struct {
    int8x16_t lo, hi;
} vb;
VEC_INLINE vb vld_block(const int8_t *q) { return (vb){vld1q_s8(q), vld1q_s8(q + 16)}; }
VEC_INLINE vb vld_block4(const uint8_t *q)
{
    const uint8x16_t both = vld1q_u8(q);
    const int8x16_t eight = vdupq_n_s8(8);

    return (vb){vsubq_s8(vreinterpretq_s8_u8(vandq_u8(both, vdupq_n_u8(15))), eight),
                vsubq_s8(vreinterpretq_s8_u8(vshrq_n_u8(both, 4)), eight)};
}
VEC_INLINE vf pairs16(int8x16_t b)
{
    return (vf){vreinterpretq_f32_s16(vmovl_s8(vget_low_s8(b))),
                vreinterpretq_f32_s16(vmovl_high_s8(b))};
}
VEC_INLINE void vblock_pairs(vf to[2], vb b)
{
    to[0] = pairs16(b.lo);
    to[1] = pairs16(b.hi);
}
VEC_INLINE float32x4_t dot16(int8x16_t a, int8x16_t b)
{
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)));

    return vcvtq_f32_s32(vpadalq_s16(low, vmull_high_s8(a, b)));
}
VEC_INLINE vf vdot_block(vb a, vb b) { return (vf){dot16(a.lo, b.lo), dot16(a.hi, b.hi)}; }

#if defined(VEC_DOT4)
/* As in vec_avx2.h, of signed int8 both. */
enum { DOT4_ZERO = 0 };
VEC_INLINE vi vi1(const float *p)
{
    const int32x4_t all = vreinterpretq_s32_f32(vld1q_dup_f32(p));

    return (vi){all, all};
}
VEC_INLINE int32x4_t dot4(int32x4_t acc, float32x4_t a, int32x4_t b)
{
    return vdotq_s32(acc, vreinterpretq_s8_f32(a), vreinterpretq_s8_s32(b));
}
VEC_INLINE vi vdot4(vi acc, vf a, vi b)
{
    return (vi){dot4(acc.lo, a.lo, b.lo), dot4(acc.hi, a.hi, b.hi)};
}
VEC_INLINE vf vquads8(const int8_t *p, const int8_t *then)
{
    return (vf){vreinterpretq_f32_s8(vld1q_s8(p)), vreinterpretq_f32_s8(vld1q_s8(p + 16))};
}
VEC_INLINE vf v1_halves(const float *p, const float *then) { return v1(*p); }
VEC_INLINE int32_t vsum_pairs(vf pairs)
{
    return vaddlvq_s16(vreinterpretq_s16_f32(pairs.lo)) +
           vaddlvq_s16(vreinterpretq_s16_f32(pairs.hi));
}
#endif

/* As in vec_avx2.h. */
VEC_INLINE vb vld_nibbles(enum elem elem, const void *w)
{
    return (vb){vreinterpretq_s8_u8(vld1q_u8(q4_at(elem, w, 0)->q)),
                vreinterpretq_s8_u8(vld1q_u8(q4_at(elem, w, 1)->q))};
}
VEC_INLINE vf vld_nibble_scales(enum elem elem, const void *w)
{
    return (vf){vdupq_n_f32(q4_at(elem, w, 0)->scale), vdupq_n_f32(q4_at(elem, w, 1)->scale)};
}
VEC_INLINE vf vld_nibble_shifts(const struct q4_1_block w[2])
{
    return (vf){vdupq_n_f32(w[0].shift), vdupq_n_f32(w[1].shift)};
}
VEC_INLINE int32x4_t dot_nibbles16(int32x4_t acc, int8x16_t both, const int8_t *lower,
                                   const int8_t *upper)
{
    const int8x16_t lo = vandq_s8(both, vdupq_n_s8(15)), x = vld1q_s8(lower), y = vld1q_s8(upper);
    const int8x16_t hi = vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(both), 4));
#if defined(VEC_DOT4)
    return vdotq_s32(vdotq_s32(acc, lo, x), hi, y);
#else
    const int16x8_t first =
        vmlal_s8(vmull_s8(vget_low_s8(lo), vget_low_s8(x)), vget_low_s8(hi), vget_low_s8(y));
    const int16x8_t then = vmlal_high_s8(vmull_high_s8(lo, x), hi, y);

    return vpadalq_s16(acc, vaddq_s16(first, then));
#endif
}
VEC_INLINE vi vdot_nibbles(vi acc, vb both, const int8_t lower[4 * VL], const int8_t upper[4 * VL])
{
    return (vi){dot_nibbles16(acc.lo, both.lo, lower, upper),
                dot_nibbles16(acc.hi, both.hi, lower + 16, upper + 16)};
}
#endif

#undef BOTH1
#undef BOTH2
#undef BOTH3
