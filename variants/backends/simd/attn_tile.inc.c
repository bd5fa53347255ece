/* SPDX-License-Identifier: MIT
 *
 * The matrix kernels of fused attention for one group of query rows, and the softmax between them.
 * Everything works on small blocks in a thread's own work space, independent of heads, sequences
 * and threads. Scores are in base 2: the factor log2 e is already in the packed keys.
 *
 * Register budget: TILE_ROWS*COLS accumulators + COLS of the other operand + 1 broadcast, 28 of 32
 * with AVX-512, 16 of 16 with AVX2. A block of KEYS keys and values of 64 floats takes 128 KiB of
 * L2.
 *
 * With VEC_BF16 queries, keys and key tables are pairs along a head, probabilities and values pairs
 * along the keys; the factor cannot be in keys that are bf16, and enters with the start. */
#include "narrow.h"
#include "tile.h"
#include "variants/backends/backend.h"
#include "variants/backends/split.h"

#include <omp.h>

enum {
    TILE_ROWS = VEC_REGISTERS / 4,
    TILES = 2, /* stacked in a group: the second reads its operand from L1 */
    ROWS = TILES * TILE_ROWS,
    COLS = TILE_COLS,
    QUERIES = 64,       /* most of an item, in groups of ROWS that share one pass over the keys */
    KEYS = 256,         /* per block */
    LINE = 16,          /* floats of a cache line */
    LD = KEYS + 3 * VL, /* of scores and band: VL before, 2 VL after */
};

#define LOG2E 0x1.715476p+0f
#define LN2 0x1.62e43p-1f

/* Below every score, yet its differences do not overflow. Row maxima start here. */
#define LOWEST (-0x1p126f)

/* Which keys each query of a work item sees under a mask. A head with the same visibility as the
 * head before reuses its bits. */
struct seen {
    uint64_t *bits; /* [SEEN_ROWS][words]: per query, then the union per group */
    int words;
    int i0, window; /* what the bits describe: first query (-1 = none), and the head's window and
                     * mask */
    const struct mask *mask;
};
enum { SEEN_ROWS = QUERIES + QUERIES / ROWS };

/* Per thread. Rows of s and of `band` start VL floats in. */
struct work {
    float *qu, *qw;                       /* [QUERIES] rows of whole vectors: q + u, q + w */
    float *o;                             /* likewise, not yet divided by the sum */
    ptrdiff_t ld;                         /* floats between them */
    _Alignas(64) float sum[QUERIES][VL];  /* in VL partial sums */
    _Alignas(64) float top[QUERIES + VL]; /* running row maxima */
    _Alignas(64) float s[ROWS][LD];       /* scores, then 2^(s - top) */
    _Alignas(64) float band[ROWS][LD];    /* (q + w) . rel_k + bias by table row; with VEC_BF16 then
                                           * the pairs of 2^(s - top) */
    float far[QUERIES];                   /* VEC_BF16: far_score of each row */
    struct seen seen;
};

/* An odd number of lines between rows as wide as a head, otherwise they collide in L1. */
static ptrdiff_t work_ld(const struct attn *a)
{
    const int lines = (max_int(a->dh, attn_dv(a)) + LINE - 1) / LINE;

    return (ptrdiff_t)(lines | 1) * LINE;
}

/* Floats of a thread's rows, and giving it those. */
static size_t work_rows(const struct attn *a) { return 3 * (size_t)QUERIES * (size_t)work_ld(a); }

static void work_start(struct work *w, const struct attn *a, float *rows)
{
    w->ld = work_ld(a);
    w->qu = rows;
    w->qw = rows + QUERIES * w->ld;
    w->o = rows + 2 * QUERIES * w->ld;
}

/* Width of the next tile: a full tile is not followed by a single vector (4 = 2 + 2). */
static int tile_width(int vectors)
{
    return vectors >= COLS && vectors != COLS + 1 ? COLS : vectors == 1 ? 1 : 2;
}

/* ---- scores ------------------------------------------------------------------------------- */

/* Rows of queries, ld floats apart. */
struct queries {
    const float *at;
    ptrdiff_t ld;
};

/* s = q . panel + start: C panels of VL keys, packed [d][VL], d lanes a head. Row r of `start` is
 * offset by r * start_row floats, which adds relative positions at no instruction. Pairs: factor
 * (q . panel) + start. */
VEC_INLINE void score_tile(int C, float *s, struct queries q, int d, const float *panel,
                           const float *start, ptrdiff_t start_row, float factor)
{
    vf acc[TILE_ROWS][TILE_COLS];

    UNROLL
    for (int r = 0; r < TILE_ROWS; r++)
        UNROLL
    for (int c = 0; c < C; c++)
        acc[r][c] = PER_LANE == 1 && start ? vld(start + r * start_row + c * VL) : v0();
    tile_mac(PER_LANE == 2, TILE_ROWS, C, acc, d, q.at, q.ld, 1, panel, VL, (ptrdiff_t)d * VL);
    UNROLL
    for (int r = 0; r < TILE_ROWS; r++)
        UNROLL
    for (int c = 0; c < C; c++) {
        if (PER_LANE == 2)
            acc[r][c] =
                vfma(acc[r][c], v1(factor), start ? vld(start + r * start_row + c * VL) : v0());
        vst(s + r * LD + c * VL, acc[r][c]);
    }
}

/* A group's scores against `vectors` panels; tile t needs only its first n[t] keys. */
static void scores(float *s, struct queries q, int d, const float *panels, int vectors,
                   const int n[TILES], const float *start, ptrdiff_t start_row, float factor)
{
    for (int v = 0, width; v < vectors; v += width) {
        const float *panel = panels + (ptrdiff_t)v * d * VL;

        width = tile_width(vectors - v);
        for (int t = 0; t < TILES; t++) {
            const int row = t * TILE_ROWS;
            const float *from = start ? start + row * start_row + v * VL : NULL;
            float *to = s + row * LD + v * VL;
            const struct queries q_t = {q.at + row * q.ld, q.ld};
            if (v * VL >= n[t])
                continue;
            switch (width) {
            case 1:
                score_tile(1, to, q_t, d, panel, from, start_row, factor);
                break;
            case 2:
                score_tile(2, to, q_t, d, panel, from, start_row, factor);
                break;
            default:
                score_tile(COLS, to, q_t, d, panel, from, start_row, factor);
            }
        }
    }
}

/* ---- softmax ------------------------------------------------------------------------------ */

/* Columns of `vectors` vectors outside [lo, hi) become x. */
VEC_INLINE void fill_outside(float *s, int lo, int hi, int vectors, vf x)
{
    for (int at = 0; at < lo; at += VL)
        vst_upto(s + at, lo - at, x);
    for (int at = max_int(hi, 0); at < vectors * VL; at += VL)
        vst(s + at, x);
}

/* 2^(s - top) of a row, in place, and the vector after it 0; returns its sum added to `sum`. */
VEC_INLINE vf exp_row(float *s, int vectors, vf top, vf sum)
{
    for (int v = 0; v < vectors; v++) {
        const vf e = vexp2(vsub(vld(s + v * VL), top));
        vst(s + v * VL, e);
        sum = vadd(sum, e);
    }
    vst(s + vectors * VL, v0());
    return sum;
}

#if defined(VEC_BF16)
/* Likewise, and as pairs. `keep`: s is needed, too. */
VEC_INLINE vf exp_row_pairs(float *pairs, float *s, int vectors, vf top, vf sum, bool keep)
{
    for (int v = 0; v < vectors; v += 2) {
        const vf x = vexp2(vsub(vld(s + v * VL), top));
        const vf y = v + 1 < vectors ? vexp2(vsub(vld(s + (v + 1) * VL), top)) : v0();
        vst(pairs + v / 2 * VL, vpairs(x, y));
        sum = vadd(sum, vadd(x, y));
        if (!keep)
            continue;
        vst(s + v * VL, x);
        vst(s + (v + 1) * VL, y);
    }
    if (keep)
        vst(s + vectors * VL, v0());
    return sum;
}
#endif

/* Where the value kernel reads the first row of probabilities. */
static const float *weights_of(const struct work *w)
{
    return (PER_LANE == 2 ? w->band[0] : w->s[0]) + VL;
}

/* s = 2^(s - top) for one group; updates top and sum (starts them if fresh). alpha[r] is the factor
 * for the group's older sums and outputs. The vector after each row becomes 0. `keep`: the floats
 * are needed, whatever weights_of is. */
static void softmax_block(struct work *w, int g, int vectors, bool fresh, float alpha[ROWS],
                          bool keep)
{
    const vmask rows = vfirst(ROWS);
    float block_top[VL];

    for (int r = 0; r < ROWS; r++) {
        const float *s = w->s[r] + VL;
        vf x = vld(s);
        for (int v = 1; v < vectors; v++)
            x = vmax(x, vld(s + v * VL));
        block_top[r] = vmax_lanes(x);
    }
    const vf old = fresh ? v1(LOWEST) : vld_m(w->top + g, rows, v0());
    const vf top = vmax(old, vld_m(block_top, rows, v0()));
    vst_m(w->top + g, rows, top);
    vst_m(alpha, rows, vexp2(vsub(old, top)));
    for (int r = 0; r < ROWS; r++) {
        float *s = w->s[r] + VL;
        const vf t = v1(w->top[g + r]);
        const vf sum = fresh ? v0() : vmul(vld(w->sum[g + r]), v1(alpha[r]));
#if defined(VEC_BF16)
        vst(w->sum[g + r], exp_row_pairs(w->band[r] + VL, s, vectors, t, sum, keep));
#else
        vst(w->sum[g + r], exp_row(s, vectors, t, sum));
#endif
    }
}

/* ---- values ------------------------------------------------------------------------------- */

/* Rows of outputs, ld floats apart, that become share (alpha o + p . v), in `to`. alpha and share
 * are a factor for each row, NULL = 1. */
struct outputs {
    const float *o;
    ptrdiff_t ld;
    const float *alpha;
    float *to;
    ptrdiff_t to_ld;
    const float *share;
};

static struct outputs in_place(float *o, ptrdiff_t ld, const float *alpha)
{
    return (struct outputs){o, ld, alpha, o, ld, NULL};
}

/* Those from row `row` and column `column` on. */
static struct outputs outputs_from(const struct outputs *x, int row, int column)
{
    return (struct outputs){
        .o = x->o + row * x->ld + column,
        .ld = x->ld,
        .alpha = x->alpha ? x->alpha + row : NULL,
        .to = x->to + row * x->to_ld + column,
        .to_ld = x->to_ld,
        .share = x->share ? x->share + row : NULL,
    };
}

/* C vectors of n rows of v, or of n pairs of rows. p_row = LD reads a block of keys; LD + 1 reads p
 * by table row, one key later per query. A fresh o counts as 0. */
VEC_INLINE void value_tile(bool pairs, int C, bool fresh, struct outputs x, const float *p,
                           ptrdiff_t p_row, int n, const float *v, ptrdiff_t v_row)
{
    vf acc[TILE_ROWS][TILE_COLS];

    UNROLL
    for (int r = 0; r < TILE_ROWS; r++)
        UNROLL
    for (int c = 0; c < C; c++) {
        acc[r][c] = fresh ? v0() : vld(x.o + r * x.ld + c * VL);
        if (x.alpha)
            acc[r][c] = vmul(acc[r][c], v1(x.alpha[r]));
    }
    tile_mac(pairs, TILE_ROWS, C, acc, n, p, p_row, 1, v, v_row, VL);
    UNROLL
    for (int r = 0; r < TILE_ROWS; r++)
        UNROLL
    for (int c = 0; c < C; c++)
        vst(x.to + r * x.to_ld + c * VL, x.share ? vmul(acc[r][c], v1(x.share[r])) : acc[r][c]);
}

/* A matrix of values. Long ones are packed in strips as wide as the tiles that read them, each
 * [rows][width * VL]: with a larger row stride a tile would fetch parts of cache lines that it does
 * not use. Short ones may stay in place, `step` floats from row to row. */
struct values {
    const float *at;
    ptrdiff_t step; /* 0 = strips */
    int rows, vectors;
};

/* First vector of the strip that contains vector v. */
static int strip_start(int vectors, int v)
{
    int at = 0;

    while (at + tile_width(vectors - at) <= v)
        at += tile_width(vectors - at);
    return at;
}

/* Row stride in floats of the strip of vector v; strip_at: offset of its vector of a row. */
static ptrdiff_t strip_step(int vectors, int v)
{
    return tile_width(vectors - strip_start(vectors, v)) * VL;
}

static ptrdiff_t strip_at(int vectors, int rows, int v, int row)
{
    const int at = strip_start(vectors, v);

    return (ptrdiff_t)at * VL * rows + row * strip_step(vectors, v) + (v - at) * VL;
}

/* A group's outputs from rows [x, ..) of the values; tile t needs only n[t] of them. */
VEC_INLINE void value_tiles(bool pairs, bool fresh, struct outputs out, const float *p,
                            ptrdiff_t p_row, int x, const int n[TILES], const struct values *values)
{
    for (int at = 0, width; at < values->vectors; at += width) {
        width = tile_width(values->vectors - at);
        const ptrdiff_t step = values->step ? values->step : width * VL;
        const ptrdiff_t strip = (ptrdiff_t)at * VL * (values->step ? 1 : values->rows);
        const float *v = values->at + strip + x * step;
        for (int t = 0; t < TILES; t++) {
            const int row = t * TILE_ROWS;
            const float *p_t = p + row * p_row;
            const struct outputs to = outputs_from(&out, row, at * VL);
            switch (width) {
            case 1:
                value_tile(pairs, 1, fresh, to, p_t, p_row, n[t], v, step);
                break;
            case 2:
                value_tile(pairs, 2, fresh, to, p_t, p_row, n[t], v, step);
                break;
            default:
                value_tile(pairs, COLS, fresh, to, p_t, p_row, n[t], v, step);
            }
        }
    }
}

/* By key: p is a group's block of probabilities (weights_of), its first key is row x of the values,
 * whole lanes. */
VEC_INLINE void add_values(bool fresh, struct outputs out, const float *p, int x,
                           const int n[TILES], const struct values *v)
{
    int rows[TILES];

    for (int t = 0; t < TILES; t++)
        rows[t] = lanes_for(n[t]);
    value_tiles(PER_LANE == 2, fresh, out, p, LD, x / PER_LANE, rows, v);
}

/* By table row, from row x on: for query r, row x + y belongs to p's key y + r. */
static void add_relative_values(float *o, ptrdiff_t ld, const float *p, int x, const int n[TILES],
                                const struct values *v)
{
    value_tiles(false, false, in_place(o, ld, NULL), p, LD + 1, x, n, v);
}
