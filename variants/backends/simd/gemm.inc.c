/* SPDX-License-Identifier: MIT
 *
 * Dense products with the vectors of vec.h, included once per instruction set. Large ones follow
 * the usual plan: a block of B is packed into slivers of two vectors, a block of A into tiles, and
 * a register tile runs down both; the tile's height varies, so that no row is wasted. What comes
 * from memory is fetched while tiles are multiplied: waiting for it took 4 to 10 %. A product of
 * one row with a weight W [n,k], or of few with one that is not packed, reads W once, in place, at
 * memory speed. The epilogue runs block by block, while the block of c is in L2; running it in the
 * registers of the last step is not faster.
 *
 * A lane of a vector holds PER_LANE numbers of k: one float, narrower numbers being widened; with
 * VEC_BF16, whose products are of bf16 alone, a pair; with VEC_INT8, whose products are of q8 with
 * q8, a pair, or with VEC_DOT4 four, and after each block of 32 its scale and shift. */
#include "amx.h"
#include "lanes.h"
#include "narrow.h"
#include "tile.h"
#include "variants/backends/backend.h"
#include "variants/backends/split.h"

/* Register budget: MR*NV accumulators + NV of B + 1 broadcast = 31 of 32, 15 of 16.
 *
 * Slivers of B pass by a block of A that stays in L2, MC x KC or MC x KB. Each block of k reads and
 * writes all of c, so it is long: KC, half of L2, where B lies packed in memory. What is packed
 * here, KB x NB, is read again for each block of A; it may be as large as L2, because its slivers
 * are streams. */
#if defined(VEC_AMX_BF16)
/* Two by two tiles of sums, in registers of their own. */
enum { MR = 2 * SIDE, TILES = 4, MR_UNIT = SIDE };
#elif defined(VEC_AMX_INT8)
enum { MR = SIDE, TILES = 10, MR_UNIT = 1 };
#elif defined(VEC_DOT4)
/* Sums of a block besides: MR*NV more of them. */
enum { MR = 6, TILES = 24, MR_UNIT = 1 };
#elif defined(VEC_INT8)
/* Products and sums are two instructions, the first with a register of its own: a small tile leaves
 * its loads as much time. */
enum { MR = 4, TILES = 16, MR_UNIT = 1 };
#else
enum { MR = VEC_REGISTERS == 32 ? 14 : 6, TILES = VEC_REGISTERS == 32 ? 10 : 11, MR_UNIT = 1 };
#endif
enum {
    NV = 2,
    NR = NV * VL,
    MC = TILES * MR,                     /* rows of a block of A: TILES tiles of a height */
    KC = PER_BLOCK * (1024 / PER_BLOCK), /* lanes of k */
    KB = PER_BLOCK * (512 / PER_BLOCK),  /* likewise */
    NB = 512,
    FETCH = PER_BLOCK * ((31 + PER_BLOCK) / PER_BLOCK), /* lanes of k between fetches */
    FETCH_MIN = 1 << 20, /* multiply-adds: where all is in L2, looking for it costs 1 to 5 % */
    FETCH_ROWS = 64, /* with few tiles there is too much to fetch in each: up to 70 % with one */
    PACKED_ROWS = 2, /* from this many on a weight that can be packed is */
    FEW_ROWS = 8,    /* up to this many in place, if it is not */
    FEW_BF16 = 32768 /* floats of them that are rounded first */
};

/* Of few rows, most of a tile: as many dot products as a vector has lanes, which vsums then adds up
 * together. In a stream a row's sum goes in chains, because each product waits for the one before. */
enum { DOT_COLS = 4, DOT_ROWS = VL / DOT_COLS, CHAINS = 4, STREAM_ROWS = 2 };

/* Work space of a thread: a block of A in tiles and one of B in slivers, or few rows, rounded. */
struct room {
    _Alignas(64) float a[MC * KC + VL];
    _Alignas(64) float b[KB * NB + NR];
};

#include "gemm_ahead.inc.c"

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

#if !defined(VEC_AMX_BF16)
/* c = beta c + alpha a b for one tile of k lanes: a packed [k][R], b packed [k][NR], `cols` columns
 * of c. On the way it fetches its part of c, evenly, and lines of `ahead`. */
VEC_INLINE void gemm_tile(int R, int C, const struct gemm *g, int k, float beta, const float *a,
                          const float *b, float *c, int cols, struct ahead *ahead)
{
    vf acc[MR][TILE_COLS];
    const int every = ahead ? FETCH : k;
    const vmask last = vfirst(cols - (C - 1) * VL);

    UNROLL
    for (int r = 0; r < R; r++)
        UNROLL
    for (int v = 0; v < C; v++)
        acc[r][v] = v0();
    for (int p = 0, row = 0; p < k; p += every) {
        if (ahead) {
            fetch_ahead(ahead);
            for (const int end = min_int(row + ahead->c_rows, R); row < end; row++)
                vprefetch_l1(c + row * g->ldc, C * VL);
        }
#if defined(VEC_INT8)
        tile_blocks(R, C, acc, min_int(every, k - p), a + p * R, b + p * NR, NR,
                    g->elem == ELEM_Q4_1);
#else
        tile_mac(PER_LANE == 2, R, C, acc, min_int(every, k - p), a + p * R, 1, R, b + p * NR, NR,
                 VL);
#endif
    }
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
                          const float *b, float *c, int cols, struct ahead *ahead)
{
#define HEIGHT(r)                                                                                  \
    case r:                                                                                        \
        if (r > MR)                                                                                \
            break;                                                                                 \
        if (cols > VL)                                                                             \
            gemm_tile(r <= MR ? r : 1, 2, g, k, beta, a, b, c, cols, ahead);                       \
        else                                                                                       \
            gemm_tile(r <= MR ? r : 1, 1, g, k, beta, a, b, c, cols, ahead);                       \
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
#endif

/* Row j of a narrow W. */
static const void *narrow_row(const struct gemm *g, int j)
{
    return (const char *)g->b_narrow + (size_t)j * elem_row_bytes(g->elem, g->k);
}

/* The whole of b, packed: steps of k one after the other, each in slivers of the padded width. */
static int padded(int n) { return (n + NR - 1) / NR * NR; }

static int k_steps(int k, int most) { return max_int(1, (lanes_for(k) + most - 1) / most); }

/* First row of step s; whole lanes, whole blocks of q8. */
static int k_from(const struct gemm *g, int s, int steps)
{
    const int unit = elem_in_blocks(g->elem) || PER_BLOCK > 1 ? Q8_BLOCK : PER_LANE;

    return min_int(g->k, split_at((g->k + unit - 1) / unit, s, steps) * unit);
}

#if defined(VEC_BF16)
#include "gemm_pairs.inc.c"
#if defined(VEC_AMX_BF16)
#include "gemm_amx.inc.c"
#endif
#elif defined(VEC_INT8)
#include "gemm_int8.inc.c"
#else
#include "gemm_pack.inc.c"

#include "gemm_few_floats.inc.c"
#endif

#if !defined(VEC_BF16)
/* A weight is packed for products of more rows than read it in place. */
static size_t gemm_packed_floats(const struct gemm *g)
{
    const int in_place = g->quantises ? FEW_ROWS : PACKED_ROWS - 1;

    if (g->m <= in_place && g->tb)
        return 0;
    return (size_t)lanes_for(g->k) * (size_t)padded(g->n) + NR;
}

static void gemm_pack(float *dst, const struct gemm *g)
{
    const int steps = k_steps(g->k, KC);

    for (int s = 0; s < steps; s++) {
        const int p = k_from(g, s, steps), k = k_from(g, s + 1, steps) - p;
        pack_b(dst + (ptrdiff_t)lanes_for(p) * padded(g->n), g, p, k, 0, g->n);
    }
}
#endif

/* Rows [p, p+k) and columns [j, j+n) of op(b). */
struct block {
    int p, k, j, n;
};

/* How rows [i0, i1) and columns [j0, j1) of c are walked through: `wide` columns at a time; for
 * each, the steps of k; for each, the tiles. */
struct walk {
    int i0, i1, j0, j1, wide, steps, tiles;
};

static struct walk walk_of(const struct gemm *g, int i0, int i1, int j0, int j1)
{
    return (struct walk){
        .i0 = i0,
        .i1 = i1,
        .j0 = j0,
        .j1 = j1,
        .wide = g->b_packed ? j1 - j0 : NB,
        .steps = k_steps(g->k, g->b_packed ? KC : KB),
        .tiles = (i1 - i0 + MR - 1) / MR,
    };
}

/* First row of tile t. */
static int tile_row(const struct walk *w, int t)
{
    const int units = (w->i1 - w->i0 + MR_UNIT - 1) / MR_UNIT;

    return min_int(w->i1, w->i0 + split_at(units, t, w->tiles) * MR_UNIT);
}

/* That of step s of the columns from j; the step after the last is the first of the next columns,
 * of none at the end. */
static struct block block_at(const struct gemm *g, const struct walk *w, int j, int s)
{
    if (s == w->steps)
        s = 0, j += w->wide;
    const int p = k_from(g, s, w->steps);
    return (struct block){p, k_from(g, s + 1, w->steps) - p, j, clamp_int(w->j1 - j, 0, w->wide)};
}

/* A block of b where it lies, to be fetched in `times` turns. */
static struct ahead ahead_of_block(const struct gemm *g, const struct block *b, int times)
{
    const ptrdiff_t size = sizeof(float);

    if (g->elem != ELEM_F32)
        return ahead_of((const char *)narrow_row(g, b->j) + elem_row_bytes(g->elem, b->p),
                        (ptrdiff_t)elem_row_bytes(g->elem, b->k),
                        (ptrdiff_t)elem_row_bytes(g->elem, g->k), b->n, times);
    if (g->tb)
        return ahead_of(g->b + b->j * g->ldb + b->p, b->k * size, g->ldb * size, b->n, times);
    return ahead_of(g->b + b->p * g->ldb + b->j, b->n * size, g->ldb * size, b->n ? b->k : 0,
                    times);
}

/* Tiles [t0, t1) of c, of a packed from row tile_row(t0) on, times the block of b of step s of the
 * columns from j, in slivers. */
static void gemm_block(const struct fused *f, const struct walk *w, int j, int s, int t0, int t1,
                       const float *a, const float *slivers)
{
    const struct gemm *const g = f->g;
    const struct block b = block_at(g, w, j, s), next = block_at(g, w, j, s + 1);
    const int i0 = tile_row(w, t0), i1 = tile_row(w, t1), depth = lanes_for(b.k);
    const int fetches = max_int(1, (depth + FETCH - 1) / FETCH), turns = fetches * (t1 - t0);
    const ptrdiff_t bytes = NR * depth * (ptrdiff_t)sizeof(float);
    const bool fetch = w->i1 - w->i0 > FETCH_ROWS && (int64_t)g->m * g->n * g->k >= FETCH_MIN;
    struct ahead ahead = {0};

    if (!g->b_packed && t0 == 0)
        ahead = ahead_of_block(g, &next, turns * ((b.n + NR - 1) / NR));
    for (int c0 = 0; c0 < b.n; c0 += NB) {
        const int c1 = min_int(c0 + NB, b.n);
        for (int c = c0; c < c1; c += NR) {
            const float *const sliver = slivers + (ptrdiff_t)c * depth;
            if (g->b_packed) /* the next sliver follows */
                ahead = ahead_of(sliver + NR * depth, bytes, 0, 1, turns);
            ahead.c_rows = (MR + fetches - 1) / fetches;
            for (int t = t0, i = i0, end; t < t1; t++, i = end) {
                end = tile_row(w, t + 1);
                gemm_tile_any(end - i, g, depth, s == 0 ? g->beta : 1.0f,
                              a + (ptrdiff_t)(i - i0) * depth, sliver, g->c + i * g->ldc + b.j + c,
                              min_int(NR, b.n - c), fetch ? &ahead : NULL);
            }
        }
        if (s == w->steps - 1)
            run_epilogue(f, i0, i1, b.j + c0, b.j + c1);
    }
}

/* c[i0..i1) [j0..j1), over all k; j0 is a multiple of NR where b is packed. */
static void gemm_part(const struct fused *f, struct room *room, int i0, int i1, int j0, int j1)
{
    float *const a = room->a, *const b = room->b;
    const struct gemm *g = f->g;
    const struct walk w = walk_of(g, i0, i1, j0, j1);

    for (int j = j0; j < j1; j += w.wide)
        for (int s = 0; s < w.steps; s++) {
            const struct block now = block_at(g, &w, j, s);
            const int p = now.p, k = now.k, depth = lanes_for(k);
            const float *slivers = b;
            if (g->b_packed)
                slivers =
                    g->b_packed + (ptrdiff_t)lanes_for(p) * padded(g->n) + (ptrdiff_t)j * depth;
            else
                pack_b(b, g, p, k, j, now.n);
            if (PER_LANE == 1 && g->rounds)
                round_to_bf16(b, (ptrdiff_t)k * padded(now.n));
            for (int t0 = 0; t0 < w.tiles; t0 += TILES) {
                const int t1 = min_int(t0 + TILES, w.tiles);
                const int i = tile_row(&w, t0);
                for (int t = t0; t < t1; t++)
                    pack_a(a + (ptrdiff_t)(tile_row(&w, t) - i) * depth, g, tile_row(&w, t),
                           tile_row(&w, t + 1) - tile_row(&w, t), p, k);
                if (PER_LANE == 1 && (g->elem == ELEM_BF16 || g->rounds))
                    round_to_bf16(a, (ptrdiff_t)(tile_row(&w, t1) - i) * k);
                gemm_block(f, &w, j, s, t0, t1, a, slivers);
            }
        }
}

/* ---- threads ------------------------------------------------------------------------------ */

static void gemm_share(const struct fused *f, bool few, const struct split_gemm *s, int t)
{
    const struct split_gemm_part p = split_gemm_part(s, t);
    struct room *const room = (struct room *)(void *)f->g->room + t;

    if (few) {
        gemm_few(f, room, p.j0, p.j1);
        return;
    }
    begin_tiles();
    gemm_part(f, room, p.i0, p.i1, p.j0, p.j1);
    end_tiles();
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
    CHECK(g->elem == ELEM_F32 || (g->tb && !g->ta && !g->rounds));
    CHECK(g->elem == ELEM_F32 || !g->b_packed || g->quantises);
    CHECK(!g->rounds || !g->b_packed);
    CHECK(!g->quantises || elem_in_blocks(g->elem));
    CHECK(g->room);

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
