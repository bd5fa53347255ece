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
    KC = 256, /* lanes of k */
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
            const int depth = lanes_for(k);
            const float beta = s == 0 ? g->beta : 1.0f;
            const float *slivers = b;
            if (g->b_packed)
                slivers = g->b_packed + (ptrdiff_t)p * padded(g->n) + (ptrdiff_t)j * k;
            else
                pack_b(b, g, p, k, j, n);
            if (PER_LANE == 1 && g->rounds)
                round_to_bf16(b, (ptrdiff_t)k * ((n + NR - 1) / NR * NR));
            for (int i = i0; i < i1; i += MC) {
                const int m = min_int(MC, i1 - i), tiles = (m + MR - 1) / MR;
                for (int t = 0; t < tiles; t++)
                    pack_a(a + split_at(m, t, tiles) * depth, g, i + split_at(m, t, tiles),
                           split_at(m, t + 1, tiles) - split_at(m, t, tiles), p, k);
                if (PER_LANE == 1 && (g->elem == ELEM_BF16 || g->rounds))
                    round_to_bf16(a, (ptrdiff_t)m * k);
                for (int c = 0; c < n; c += NR)
                    for (int t = 0; t < tiles; t++) {
                        const int r = split_at(m, t, tiles);
                        gemm_tile_any(split_at(m, t + 1, tiles) - r, g, depth, beta, a + r * depth,
                                      slivers + (ptrdiff_t)c * depth,
                                      g->c + (i + r) * g->ldc + j + c, min_int(NR, n - c));
                    }
                if (s == steps - 1)
                    run_epilogue(f, i, i + m, j, j + n);
            }
        }
    }
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
