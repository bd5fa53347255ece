/* SPDX-License-Identifier: MIT
 *
 * Dense products with the vectors of vec.h, included once per instruction set. Large ones follow
 * the usual plan: a block of B is packed into slivers of two vectors, a block of A into tiles, and
 * a register tile runs down both; the tile's height varies, so that no row is wasted. Products of
 * few rows with a weight W [n,k] read W once, in place, at memory speed. The epilogue runs block by
 * block, while the block of c is in L2; running it in the registers of the last step is not
 * faster.
 *
 * A lane of a vector holds PER_LANE numbers of k: one float, narrower numbers being widened; with
 * VEC_BF16, whose products are of bf16 alone, a pair. */
#include "lanes.h"
#include "narrow.h"
#include "tile.h"
#include "variants/backends/backend.h"
#include "variants/backends/split.h"

#include <stdint.h>

/* Register budget: MR*NV accumulators + NV of B + 1 broadcast = 31 of 32, 15 of 16. KC lanes of one
 * sliver of B stay in L1 or close to it, MC x KC of A and KC x NC of B in L2. */
enum {
    MR = VEC_REGISTERS == 32 ? 14 : 6,
    NV = 2,
    NR = NV * VL,
    KC = 256,                             /* lanes of k */
    TILES = VEC_REGISTERS == 32 ? 10 : 8, /* of a block of A, all of a height */
    MC = TILES * MR,
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

/* c = beta c + alpha a b for one tile of k lanes: a packed [k][R], b packed [k][NR], `cols` columns
 * of c. */
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
    tile_mac(PER_LANE == 2, R, C, acc, k, a, 1, R, b, NR, VL);
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

/* The whole of b, packed: steps of k one after the other, each in slivers of the padded width. */
static int padded(int n) { return (n + NR - 1) / NR * NR; }

static int k_steps(int k) { return max_int(1, (lanes_for(k) + KC - 1) / KC); }

/* First row of step s; whole lanes, whole blocks of q8. A step has KC lanes at most. */
static int k_from(const struct gemm *g, int s, int steps)
{
    const int unit = g->elem == ELEM_Q8 ? Q8_BLOCK : PER_LANE;

    return min_int(g->k, split_at((g->k + unit - 1) / unit, s, steps) * unit);
}

#if defined(VEC_BF16)
#include "gemm_pairs.inc.c"
#else
#include "gemm_pack.inc.c"

#include "gemm_few.inc.c"
#endif

/* Rows [p, p+k) and columns [j, j+n) of op(b). */
struct block {
    int p, k, j, n;
};

/* That of step s of the columns from j; the step after the last is the first of the next columns,
 * of none at the end, j1. */
static struct block block_at(const struct gemm *g, int j, int j1, int s, int steps)
{
    if (s == steps)
        s = 0, j += NC;
    const int p = k_from(g, s, steps);
    return (struct block){p, k_from(g, s + 1, steps) - p, j, clamp_int(j1 - j, 0, NC)};
}

/* Fetch a piece of a block of b, which then comes from memory while the one before is multiplied;
 * packing alone would wait for it. */
static void prefetch_b(const struct gemm *g, const struct block *b, int piece, int pieces)
{
    const int rows = b->n == 0 ? 0 : g->tb ? b->n : b->k;
    const int end = split_at(rows, piece + 1, pieces);

    for (int r = split_at(rows, piece, pieces); r < end; r++)
        if (g->elem != ELEM_F32)
            vprefetch((const float *)((const char *)narrow_row(g, b->j + r) +
                                      elem_row_bytes(g->elem, b->p)),
                      (int)(elem_row_bytes(g->elem, b->k) / sizeof(float)));
        else if (g->tb)
            vprefetch(g->b + (b->j + r) * g->ldb + b->p, b->k);
        else
            vprefetch(g->b + (b->p + r) * g->ldb + b->j, b->n);
}

/* Fetch a piece of the n floats of a packed sliver. With AVX-512 the hardware keeps up by itself,
 * and this would cost 1 %. */
static void prefetch_sliver(const float *b, int n, int piece, int pieces)
{
    if (VL == 8) {
        const int from = split_at(n, piece, pieces);
        vprefetch(b + from, split_at(n, piece + 1, pieces) - from);
    }
}

/* c[i0..i1) [j0..j1), over all k; j0 is a multiple of NR where b is packed. */
static void gemm_part(const struct fused *f, int i0, int i1, int j0, int j1)
{
    _Alignas(64) float a[MC * KC + VL], b[KC * NC + NR];
    const struct gemm *g = f->g;
    const int steps = k_steps(g->k), tiles = (i1 - i0 + MR - 1) / MR;

#define TILE_ROW(t) (i0 + split_at(i1 - i0, t, tiles))
    for (int j = j0; j < j1; j += NC)
        for (int s = 0; s < steps; s++) {
            const struct block now = block_at(g, j, j1, s, steps);
            const struct block next = block_at(g, j, j1, s + 1, steps);
            const int p = now.p, k = now.k, n = now.n, depth = lanes_for(k);
            const float beta = s == 0 ? g->beta : 1.0f;
            const float *slivers = b;
            if (g->b_packed)
                slivers = g->b_packed + (ptrdiff_t)p * padded(g->n) + (ptrdiff_t)j * k;
            else
                pack_b(b, g, p, k, j, n);
            if (PER_LANE == 1 && g->rounds)
                round_to_bf16(b, (ptrdiff_t)k * ((n + NR - 1) / NR * NR));
            for (int t0 = 0; t0 < tiles; t0 += TILES) {
                const int t1 = min_int(t0 + TILES, tiles);
                const int i = TILE_ROW(t0), m = TILE_ROW(t1) - i;
                for (int t = t0; t < t1; t++)
                    pack_a(a + (TILE_ROW(t) - i) * depth, g, TILE_ROW(t),
                           TILE_ROW(t + 1) - TILE_ROW(t), p, k);
                if (PER_LANE == 1 && (g->elem == ELEM_BF16 || g->rounds))
                    round_to_bf16(a, (ptrdiff_t)m * k);
                for (int c = 0; c < n; c += NR)
                    for (int t = t0; t < t1; t++) {
                        const int r = TILE_ROW(t) - i, rows = TILE_ROW(t + 1) - TILE_ROW(t);
                        const float *sliver = slivers + (ptrdiff_t)c * depth;
                        if (t0 == 0 && g->b_packed)
                            prefetch_sliver(sliver + NR * depth, NR * depth, t, t1);
                        else if (t0 == 0)
                            prefetch_b(g, &next, c / NR * t1 + t, (n + NR - 1) / NR * t1);
                        gemm_tile_any(rows, g, depth, beta, a + r * depth, sliver,
                                      g->c + (i + r) * g->ldc + j + c, min_int(NR, n - c));
                    }
                if (s == steps - 1)
                    run_epilogue(f, i, i + m, j, j + n);
            }
        }
#undef TILE_ROW
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
    CHECK(g->elem == ELEM_F32 || (g->tb && !g->ta && !g->b_packed && !g->rounds));
    CHECK(!g->rounds || !g->b_packed);

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
