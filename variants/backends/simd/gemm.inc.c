/* SPDX-License-Identifier: MIT
 *
 * Dense products with the vectors of vec.h, included once per instruction set. Large ones follow
 * the usual plan: a block of B is packed into slivers of two vectors, a block of A into tiles, and
 * a register tile runs down both; the tile's height varies, so that no row is wasted. Products of
 * few rows with a weight W [n,k] read W once, in place, at memory speed; a narrower W is widened in
 * registers there, and block by block where it is packed. The epilogue runs block by
 * block, while the block of c is in L2; running it in the registers of the last step is not
 * faster. */
#include "lanes.h"
#include "narrow.h"
#include "tile.h"
#include "variants/backends/backend.h"
#include "variants/backends/split.h"

#include <stdint.h>

/* Register budget: MR*NV accumulators + NV of B + 1 broadcast = 31 of 32, 15 of 16. KC rows of one
 * sliver of B stay in L1 or close to it, MC x KC of A and KC x NC of B in L2. */
enum {
    MR = VEC_REGISTERS == 32 ? 14 : 6,
    NV = 2,
    NR = NV * VL,
    KC = 256,
    MC = 8 * MR,
    NC = 512,
    FEW_ROWS = 8,    /* up to this many in place, without packing */
    FEW_BF16 = 32768 /* floats of them that are rounded first */
};

/* A product and its epilogue, at most one of the two. */
struct fused {
    const struct gemm *g;
    const struct act *act;
    const struct gate_op *gate;
};

/* The epilogue for rows [i0, i1) and columns [j0, j1) of c. A gate may be narrower than the
 * product. */
static void run_epilogue(const struct fused *f, int i0, int i1, int j0, int j1)
{
    if (f->act)
        act_part(f->act, i0, i1, j0, j1);
    if (f->gate)
        gate_part(f->gate, i0, i1, j0, min_int(j1, f->gate->n));
}

/* c = beta c + alpha a b for one tile: a packed [k][R], b packed [k][NR], `cols` columns of c. */
VEC_INLINE void gemm_tile(int R, int C, const struct gemm *g, int k, float beta, const float *a,
                          const float *b, float *c, int cols)
{
    vf acc[MR][TILE_COLS];
    const vmask last = vfirst(cols - (C - 1) * VL);

    UNROLL
    for (int r = 0; r < R; r++)
        UNROLL
    for (int v = 0; v < C; v++)
        acc[r][v] = v0();
    tile_fma(R, C, acc, k, a, 1, R, b, NR, VL);
    UNROLL
    for (int r = 0; r < R; r++)
        UNROLL
    for (int v = 0; v < C; v++) {
        float *to = c + r * g->ldc + v * VL;
        vf x = vmul(acc[r][v], v1(g->alpha));
        if (v < C - 1) {
            vst(to, beta == 0.0f ? x : vfma(vld(to), v1(beta), x));
        } else {
            if (beta != 0.0f)
                x = vfma(vld_m(to, last, v0()), v1(beta), x);
            vst_m(to, last, x);
        }
    }
}

static void gemm_tile_any(int R, const struct gemm *g, int k, float beta, const float *a,
                          const float *b, float *c, int cols)
{
#define HEIGHT(r)                                                                                  \
    case r:                                                                                        \
        if (r > MR)                                                                                \
            break;                                                                                 \
        if (cols > VL)                                                                             \
            gemm_tile(r <= MR ? r : 1, 2, g, k, beta, a, b, c, cols);                              \
        else                                                                                       \
            gemm_tile(r <= MR ? r : 1, 1, g, k, beta, a, b, c, cols);                              \
        break;
    switch (R) {
        HEIGHT(1)
        HEIGHT(2)
        HEIGHT(3)
        HEIGHT(4)
        HEIGHT(5)
        HEIGHT(6)
        HEIGHT(7)
        HEIGHT(8)
        HEIGHT(9)
        HEIGHT(10)
        HEIGHT(11)
        HEIGHT(12)
        HEIGHT(13)
        HEIGHT(14)
    }
#undef HEIGHT
}

/* Row j of a narrow W. */
static const void *narrow_row(const struct gemm *g, int j)
{
    return (const char *)g->b_narrow + (size_t)j * elem_row_bytes(g->elem, g->k);
}

/* As pack_across, of columns of op(b): k <= KC. */
static void pack_narrow(float *to, const struct gemm *g, int p, int k, int j, int cols)
{
    _Alignas(64) float row[VL * KC];

    for (int c = 0; c < cols; c++)
        widen(row + c * KC, g->elem, narrow_row(g, j + c), p, k);
    pack_across(to, NR, row, KC, cols, k, 1.0f);
}

/* Rows [p, p+k) of op(b), columns [j, j+n), into slivers of [k][NR]. */
static void pack_b(float *dst, const struct gemm *g, int p, int k, int j, int n)
{
    for (int s = 0; s < n; s += NR)
        for (int v = 0; v < NV; v++) {
            float *to = dst + (ptrdiff_t)s * k + v * VL;
            const int at = s + v * VL, cols = clamp_int(n - at, 0, VL);
            if (cols == 0)
                continue;
            if (g->elem != ELEM_F32)
                pack_narrow(to, g, p, k, j + at, cols);
            else if (g->tb)
                pack_across(to, NR, g->b + (j + at) * g->ldb + p, g->ldb, cols, k, 1.0f);
            else
                pack_along(to, NR, g->b + p * g->ldb + j + at, g->ldb, cols, k);
        }
}

/* Rows [i, i+R) of op(a), columns [p, p+k), into [k][R]. */
static void pack_a(float *dst, const struct gemm *g, int i, int R, int p, int k)
{
    if (g->ta)
        pack_along(dst, R, g->a + p * g->lda + i, g->lda, R, k);
    else
        pack_across(dst, R, g->a + i * g->lda + p, g->lda, R, k, 1.0f);
}

/* The whole of b, packed: steps of k one after the other, each in slivers of the padded width. */
static int padded(int n) { return (n + NR - 1) / NR * NR; }

static int k_steps(int k) { return max_int(1, (k + KC - 1) / KC); }

/* First row of step s; whole blocks of q8. A step has KC rows at most. */
static int k_from(const struct gemm *g, int s, int steps)
{
    const int unit = g->elem == ELEM_Q8 ? Q8_BLOCK : 1;

    return min_int(g->k, split_at((g->k + unit - 1) / unit, s, steps) * unit);
}

static size_t gemm_packed_floats(const struct gemm *g)
{
    if (g->m <= FEW_ROWS && g->tb)
        return 0;
    return (size_t)g->k * (size_t)padded(g->n) + NR;
}

static void gemm_pack(float *dst, const struct gemm *g)
{
    const int steps = k_steps(g->k);

    for (int s = 0; s < steps; s++) {
        const int p = split_at(g->k, s, steps), k = split_at(g->k, s + 1, steps) - p;
        pack_b(dst + (ptrdiff_t)p * padded(g->n), g, p, k, 0, g->n);
    }
}

/* c[i0..i1) [j0..j1), over all k; j0 is a multiple of NR where b is packed. */
static void gemm_part(const struct fused *f, int i0, int i1, int j0, int j1)
{
    _Alignas(64) float a[MC * KC + VL], b[KC * NC + NR];
    const struct gemm *g = f->g;
    const int steps = k_steps(g->k);

    for (int j = j0; j < j1; j += NC) {
        const int n = min_int(NC, j1 - j);
        for (int s = 0; s < steps; s++) {
            const int p = k_from(g, s, steps), k = k_from(g, s + 1, steps) - p;
            const float beta = s == 0 ? g->beta : 1.0f;
            const float *slivers = b;
            if (g->b_packed)
                slivers = g->b_packed + (ptrdiff_t)p * padded(g->n) + (ptrdiff_t)j * k;
            else
                pack_b(b, g, p, k, j, n);
            for (int i = i0; i < i1; i += MC) {
                const int m = min_int(MC, i1 - i), tiles = (m + MR - 1) / MR;
                for (int t = 0; t < tiles; t++)
                    pack_a(a + split_at(m, t, tiles) * k, g, i + split_at(m, t, tiles),
                           split_at(m, t + 1, tiles) - split_at(m, t, tiles), p, k);
                if (g->elem == ELEM_BF16)
                    round_to_bf16(a, (ptrdiff_t)m * k);
                for (int c = 0; c < n; c += NR)
                    for (int t = 0; t < tiles; t++) {
                        const int r = split_at(m, t, tiles);
                        gemm_tile_any(split_at(m, t + 1, tiles) - r, g, k, beta, a + r * k,
                                      slivers + (ptrdiff_t)c * k, g->c + (i + r) * g->ldc + j + c,
                                      min_int(NR, n - c));
                    }
                if (s == steps - 1)
                    run_epilogue(f, i, i + m, j, j + n);
            }
        }
    }
}

/* ---- few rows ----------------------------------------------------------------------------- */

enum { DOT_ROWS = 2, DOT_COLS = 4 }; /* most of a tile */

/* Numbers from p on of row j of W, `left` of them there. */
VEC_INLINE vf dot_weights(enum elem E, const struct gemm *g, int j, int p, int left)
{
    if (E == ELEM_F32)
        return vld_upto(g->b + j * g->ldb + p, left, v0());
    const uint16_t *const half = (const uint16_t *)g->b_narrow + (ptrdiff_t)j * g->k + p;
    return left >= VL ? vld_bf16(half) : vld_bf16_n(half, left);
}

/* `left` columns from p on, VL at most. */
VEC_INLINE void dot_step(enum elem E, int R, int C, vf acc[DOT_ROWS][DOT_COLS],
                         const struct gemm *g, const float *a, int j, int p, int left)
{
    vf x[DOT_ROWS];

    UNROLL
    for (int r = 0; r < R; r++)
        x[r] = vld_upto(a + r * g->lda + p, left, v0());
    UNROLL
    for (int c = 0; c < C; c++) {
        const vf y = dot_weights(E, g, j + c, p, left);
        UNROLL
        for (int r = 0; r < R; r++)
            acc[r][c] = vfma(x[r], y, acc[r][c]);
    }
}

VEC_INLINE void dot_plain(enum elem E, int R, int C, vf acc[DOT_ROWS][DOT_COLS],
                          const struct gemm *g, int i, int j)
{
    const float *const a = g->a + i * g->lda;
    int p = 0;

    for (; p + VL <= g->k; p += VL)
        dot_step(E, R, C, acc, g, a, j, p, VL);
    if (p < g->k)
        dot_step(E, R, C, acc, g, a, j, p, g->k - p);
}

/* Block by block: the sum of a block is multiplied by its scale. */
VEC_INLINE void dot_q8(int R, int C, vf acc[DOT_ROWS][DOT_COLS], const struct gemm *g, int i, int j)
{
    enum { PARTS = Q8_BLOCK / VL };
    const ptrdiff_t row = (ptrdiff_t)(elem_row_bytes(ELEM_Q8, g->k) / sizeof(struct q8_block));
    const struct q8_block *w = (const struct q8_block *)g->b_narrow + j * row;
    const float *a = g->a + i * g->lda;

    for (int p = 0; p < g->k; p += Q8_BLOCK, w++) {
        vf x[DOT_ROWS][PARTS];
        UNROLL
        for (int r = 0; r < R; r++)
            UNROLL
        for (int v = 0; v < PARTS; v++)
            x[r][v] = vld_upto(a + r * g->lda + p + v * VL, max_int(0, g->k - p - v * VL), v0());
        UNROLL
        for (int c = 0; c < C; c++) {
            const vf scale = v1(w[c * row].scale);
            vf sum[DOT_ROWS];
            UNROLL
            for (int v = 0; v < PARTS; v++) {
                const vf q = vld_int8(w[c * row].q + v * VL);
                UNROLL
                for (int r = 0; r < R; r++)
                    sum[r] = v ? vfma(x[r][v], q, sum[r]) : vmul(x[r][v], q);
            }
            UNROLL
            for (int r = 0; r < R; r++)
                acc[r][c] = vfma(sum[r], scale, acc[r][c]);
        }
    }
}

/* R rows of a times C rows of W, of element type E, over all k: dot products along k. */
VEC_INLINE void dot_tile(enum elem E, int R, int C, const struct gemm *g, int i, int j)
{
    vf acc[DOT_ROWS][DOT_COLS];

    UNROLL
    for (int r = 0; r < R; r++)
        UNROLL
    for (int c = 0; c < C; c++)
        acc[r][c] = v0();
    if (E == ELEM_Q8)
        dot_q8(R, C, acc, g, i, j);
    else
        dot_plain(E, R, C, acc, g, i, j);
    UNROLL
    for (int r = 0; r < R; r++)
        UNROLL
    for (int c = 0; c < C; c++) {
        float *to = g->c + (i + r) * g->ldc + j + c;
        const float sum = g->alpha * vsum(acc[r][c]);
        *to = g->beta == 0.0f ? sum : sum + g->beta * *to;
    }
}

VEC_INLINE void dots(enum elem E, const struct gemm *g, int j0, int j1)
{
    int j = j0;

    for (; j + DOT_COLS <= j1; j += DOT_COLS) {
        int i = 0;
        for (; i + DOT_ROWS <= g->m; i += DOT_ROWS)
            dot_tile(E, DOT_ROWS, DOT_COLS, g, i, j);
        if (i < g->m)
            dot_tile(E, 1, DOT_COLS, g, i, j);
    }
    for (; j < j1; j++)
        for (int i = 0; i < g->m; i++)
            dot_tile(E, 1, 1, g, i, j);
}

/* The rows of a are rounded once, not for each row of W. */
static void dots_bf16(const struct gemm *g, int j0, int j1)
{
    _Alignas(64) float a[FEW_BF16];
    struct gemm rounded = *g;

    for (int i = 0; i < g->m; i++)
        memcpy(a + (ptrdiff_t)i * g->k, g->a + i * g->lda, sizeof(*a) * (size_t)g->k);
    round_to_bf16(a, (ptrdiff_t)g->m * g->k);
    rounded.a = a;
    rounded.lda = g->k;
    dots(ELEM_BF16, &rounded, j0, j1);
}

/* Are there few rows, so that W is read in place? */
static bool is_few(const struct gemm *g)
{
    return g->m <= FEW_ROWS && g->tb && !g->ta &&
           (g->elem != ELEM_BF16 || (int64_t)g->m * g->k <= FEW_BF16);
}

/* c[..][j0..j1) of few rows: some rows of W at a time against all rows of a. */
static void gemm_few(const struct fused *f, int j0, int j1)
{
    const struct gemm *g = f->g;

    if (g->elem == ELEM_BF16)
        dots_bf16(g, j0, j1);
    else if (g->elem == ELEM_Q8)
        dots(ELEM_Q8, g, j0, j1);
    else
        dots(ELEM_F32, g, j0, j1);
    run_epilogue(f, 0, g->m, j0, j1);
}

/* ---- threads ------------------------------------------------------------------------------ */

static void gemm_share(const struct fused *f, bool few, const struct split_gemm *s, int t)
{
    const struct split_gemm_part p = split_gemm_part(s, t);

    if (few)
        gemm_few(f, p.j0, p.j1);
    else
        gemm_part(f, p.i0, p.i1, p.j0, p.j1);
}

static void gemm_fused(const struct fused *f)
{
    const struct gemm *g = f->g;
    const struct split_gemm_shape shape = {
        .m = g->m,
        .n = g->n,
        .k = g->k,
        .tile_rows = MR,
        .tile_cols = NR,
        .few = is_few(g),
        .packed = g->b_packed != NULL,
    };
    const struct split_gemm s = split_gemm(&shape, g->threads);
    const int parts = s.rows * s.cols;
    CHECK(g->elem == ELEM_F32 || (g->tb && !g->ta && !g->b_packed));

    if (parts == 1) {
        gemm_share(f, shape.few, &s, 0);
        return;
    }
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int t = 0; t < parts; t++)
        gemm_share(f, shape.few, &s, t);
}

static void gemm(const struct gemm *g) { gemm_fused(&(struct fused){.g = g}); }

static void gemm_act(const struct gemm *g, const struct act *epilogue)
{
    gemm_fused(&(struct fused){.g = g, .act = epilogue});
}

static void gemm_gate(const struct gemm *g, const struct gate_op *gate)
{
    gemm_fused(&(struct fused){.g = g, .gate = gate});
}
