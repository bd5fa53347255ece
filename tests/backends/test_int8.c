/* SPDX-License-Identifier: MIT
 *
 * Products of rows of q8 by every kernel for them: every sum within its bound of the reference, of
 * shapes around blocks, tiles, few rows and steps of k, packed and in place. */
#include "harness/check/op_bounds.h"
#include "tests/support/kernel/by_weights.h"
#include "tests/support/open_engine.h"
#include "variants/backends/simd/simd.h"

#if !defined(__aarch64__)
#include "tests/support/kernel/emulate_x86.h"
#endif

struct sizes {
    int m, n, k;
};

struct kernels {
    const char *name;
    enum isa level;
    bool dot4, tiles;
    void (*gemm)(const struct gemm *);
    size_t (*packed_floats)(const struct gemm *);
    void (*pack)(float *, const struct gemm *);
    size_t (*room)(void);
};

#define KERNELS(isa, at, has_dot4, ...)                                                            \
    {                                                                                              \
        .name = #isa, .level = at, .dot4 = has_dot4, .gemm = gemm_int8_##isa,                      \
        .packed_floats = gemm_packed_floats_int8_##isa, .pack = gemm_pack_int8_##isa,              \
        .room = gemm_room_int8_##isa, __VA_ARGS__                                                  \
    }

static const struct kernels kernels[] = {
#if defined(__aarch64__)
    KERNELS(neon, ISA_NEON, false),
    KERNELS(neon_dot, ISA_NEON, true),
#else
    KERNELS(avx2, ISA_AVX2, false),
    KERNELS(avx_vnni, ISA_AVX2, true),
    KERNELS(avx512, ISA_AVX512, false),
    KERNELS(avx512_vnni, ISA_AVX512, true),
    KERNELS(amx_int8, ISA_AVX512, true, .tiles = true),
#endif
};

/* Emulates what a CPU of the level lacks; false: not possible. */
static bool emulate(const struct kernels *k)
{
#if !defined(__aarch64__)
    if (k->level == ISA_AVX2 || (k->tiles && cpu_has_dot4_unmasked(ISA_AVX512))) {
        emulate_x86();
        return true;
    }
#endif
    return false;
}

/* Multiply-adds up to which an emulated instruction, of microseconds, takes little time. */
enum { EMULATED_MOST = 1 << 20 };

static bool can_run(const struct kernels *k, const struct sizes *s)
{
    if (cpu_isa_unmasked() < k->level)
        return false;
    if (k->tiles ? cpu_isa_unmasked() == ISA_COUNT - 1
                 : !k->dot4 || cpu_has_dot4_unmasked(k->level))
        return true;
    return s->m * s->n * s->k <= EMULATED_MOST && emulate(k);
}

static void expect_sums(const struct kernels *k, const struct engine *ref, struct gemm p,
                        bool packs, const float *old)
{
    const size_t size = (size_t)p.m * (size_t)p.n, floats = packs ? k->packed_floats(&p) : 0;
    float *const c = room(size, sizeof(*c)), *const want = room(size, sizeof(*want));
    float *const packed = floats ? room(floats, sizeof(*packed)) : NULL;
    char *const space = kept(aligned_alloc(64, (size_t)p.threads * k->room()));

    memcpy(c, old, sizeof(*c) * size);
    memcpy(want, old, sizeof(*want) * size);
    p.c = want;
    ref->ops.gemm(&p);
    if (packed)
        k->pack(packed, &p);
    p.b_packed = packed;
    p.c = c;
    p.room = space;
    k->gemm(&p);
    for (int i = 0; i < p.m; i++)
        for (int j = 0; j < p.n; j++) {
            const int at = i * p.n + j;
            const double bound = product_bound(&p, p.beta != 0 ? (double)old[at] : 0, i, j);
            cr_assert(fabs((double)c[at] - (double)want[at]) <= bound,
                      "%s %s, %d x %d x %d, packed %d: %a at %d,%d, not %a", elem_name[p.elem],
                      k->name, p.m, p.n, p.k, packed != NULL, (double)c[at], i, j,
                      (double)want[at]);
        }
}

static void narrow_weights(enum elem elem, char *to, const float *b, const struct sizes *s)
{
    for (int j = 0; j < s->n; j++)
        elem_narrow(elem, to + (size_t)j * elem_row_bytes(elem, s->k), b + (size_t)j * (size_t)s->k,
                    s->k);
}

static void expect_sums_of(const struct sizes *s)
{
    const size_t m = (size_t)s->m, n = (size_t)s->n, k = (size_t)s->k;
    float *const a = room(m * k, sizeof(*a)), *const b = room(n * k, sizeof(*b));
    float *const old = room(m * n, sizeof(*old));
    char *const w = room(1, n * elem_row_bytes(ELEM_F32, s->k + Q8_BLOCK));
    const struct engine ref = open_engine("ref", 1);

    rng_normal(a, m * k, 1, rng_stream("a"), 0, 1);
    rng_normal(b, n * k, 1, rng_stream("b"), 0, 1);
    rng_normal(old, m * n, 1, rng_stream("old"), 0, 1);
    for (size_t i = 0; i < ARRAY_LEN(kernels); i++)
        for (enum elem elem = ELEM_Q8; elem < ELEM_COUNT && can_run(&kernels[i], s); elem++) {
            narrow_weights(elem, w, b, s);
            for (int packs = 0; packs < 2; packs++) {
                struct gemm p = by_weights(&ref, s->m, s->n, s->k, a, NULL);
                p.alpha = 0.5f, p.beta = packs ? 0 : -0.75f, p.threads = 1 + (s->m + s->n) % 2;
                p.elem = elem, p.b_narrow = w, p.quantises = true;
                expect_sums(&kernels[i], &ref, p, packs, old);
            }
        }
}

Test(int8, sums, .timeout = 600)
{
    static const struct sizes shapes[] = {
        {1, 1, 1},     {1, 5, 33},     {2, 3, 64},   {3, 70, 96},    {5, 33, 31},
        {8, 17, 1056}, {9, 31, 32},    {7, 64, 65},  {13, 34, 4000}, {6, 1, 3300},
        {149, 65, 97}, {150, 600, 32}, {4, 7, 9000},
    };

    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        expect_sums_of(&shapes[i]);
}

/* ---- the bytes, in double ------------------------------------------------------------------- */

/* Number e of a row, from its bytes alone: a scale, numbers of 8 or 4 bits, for q4_1 a shift. */
static double by_bytes(enum elem elem, const char *row, int e)
{
    const size_t sizes[ELEM_COUNT] = {[ELEM_Q8] = 36, [ELEM_Q4] = 20, [ELEM_Q4_1] = 24};
    const char *const block = row + (size_t)(e / 32) * sizes[elem];
    const int i = e % 32;
    float scale, shift = 0;

    memcpy(&scale, block, sizeof(scale));
    if (elem == ELEM_Q4_1)
        memcpy(&shift, block + 20, sizeof(shift));
    if (elem == ELEM_Q8)
        return (double)scale * ((const signed char *)block)[4 + i];
    const unsigned pair = ((const unsigned char *)block)[4 + i % 16];
    return (double)scale * ((int)(i < 16 ? pair & 15 : pair >> 4) - 8) + (double)shift;
}

/* Rows that end before, at and after a block. The first number of each block of A is 127 of its
 * steps, the others whole ones, so that A is not rounded. A sum of few blocks, each exact but for its
 * factors, and a shift times a sum: 16 roundings of the sum of sizes. */
static void expect_by_bytes(const struct kernels *kernel, enum elem elem, const struct sizes *s)
{
    const int m = s->m, n = s->n, k = s->k;
    const size_t bytes = elem_row_bytes(elem, k);
    float *const a = room((size_t)(m * k), sizeof(*a)), *const c = room(1, 4 * (size_t)(m * n));
    float *const b = room((size_t)(n * k), sizeof(*b)), *const row = room(1, 4 * (size_t)k);
    char *const w = room(1, (size_t)n * bytes);

    for (int i = 0; i < m * k; i++)
        a[i] = i % k % 32 == 0 ? 127 * 0x1p-7f : (float)(i * 37 % 201 - 100) * 0x1p-7f;
    rng_normal(b, (size_t)(n * k), 1, rng_stream("b"), 0.5f, 1);
    narrow_weights(elem, w, b, s);
    struct gemm p = by_weights(&(struct engine){.threads = 1 + (m + n) % 2}, m, n, k, a, c);
    p.elem = elem, p.b_narrow = w, p.quantises = true; /* several threads read W as one stream */
    const size_t floats = kernel->packed_floats(&p);
    float *const packed = room(floats + 1, sizeof(*packed));
    p.room = kept(aligned_alloc(64, (size_t)p.threads * kernel->room()));
    for (int packs = 0; packs < (floats ? 2 : 1); packs++) {
        if (packs) {
            kernel->pack(packed, &p);
            p.b_packed = packed;
        }
        kernel->gemm(&p);
        for (int x = 0; x < m * n; x++) {
            double want = 0, size = 0;
            for (int e = 0; e < k; e++) {
                const double y =
                    (double)a[x / n * k + e] * by_bytes(elem, w + (size_t)(x % n) * bytes, e);
                want += y;
                size += fabs(y) + fabs((double)a[x / n * k + e]);
            }
            cr_assert_leq(fabs((double)c[x] - want), 16 * U * size,
                          "%s %s, %d x %d x %d, packed %d", elem_name[elem], kernel->name, m, n, k,
                          packs);
        }
    }
    for (int first = 0; first < k; first++) { /* read from any number on */
        elem_widen(elem, row, w, first, k - first);
        for (int e = first; e < k; e++)
            cr_assert_leq(fabs((double)row[e - first] - by_bytes(elem, w, e)), 8 * U);
    }
}

Test(int8, ends_of_rows_by_their_bytes, .timeout = 240)
{
    static const int lengths[] = {1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 129};
    static const int rows[] = {1, 3, 9, 40}, columns[] = {1, 5, 34};

    for (size_t i = 0; i < ARRAY_LEN(kernels); i++)
        for (enum elem elem = ELEM_Q8; elem < ELEM_COUNT; elem++)
            for (size_t x = 0; x < ARRAY_LEN(lengths) * ARRAY_LEN(rows) * ARRAY_LEN(columns); x++) {
                const struct sizes s = {rows[x % 4], columns[x / 4 % 3], lengths[x / 12]};
                if (can_run(&kernels[i], &s))
                    expect_by_bytes(&kernels[i], elem, &s);
            }
}

/* The row tells what ran. A mask of the level hides what multiplies four. */
static void expect_instruction(const char *backend, enum isa level, const char *four,
                               const char *two)
{
    if (cpu_isa_unmasked() < level)
        return;
    cpu_limit(ISA_COUNT - 1);
    const struct engine g = open_engine(backend, 1);
    cr_expect_str_eq(g.int8_by(), cpu_has_dot4_unmasked(level) ? four : two);
    cpu_limit(level);
    if (level < ISA_COUNT - 1)
        cr_expect_str_eq(g.int8_by(), two);
}

Test(int8, instructions_are_named)
{
#if defined(__aarch64__)
    expect_instruction("neon", ISA_NEON, "sdot", "smull");
#else
    expect_instruction("avx2", ISA_AVX2, "vpdpbusd", "vpmaddwd");
    const bool tiles = cpu_isa_unmasked() == ISA_AMX_BF16;
    expect_instruction("avx512", ISA_AVX512, tiles ? "tdpbsud+vpdpbusd" : "vpdpbusd", "vpmaddwd");
    cpu_limit(ISA_AVX512_BF16);
    if (tiles)
        cr_expect_str_eq(open_engine("avx512", 1).int8_by(), "vpdpbusd");
#endif
}
