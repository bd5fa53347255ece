/* SPDX-License-Identifier: MIT
 *
 * See split.h. */
#include "split.h"

static int blocks_of(int n, int each) { return (n + each - 1) / each; }

struct split_attn split_attn(const struct attn *a, int most, int least, int threads)
{
    const int heads = a->B * a->H;
    const bool fixed = heads % threads == 0 && a->B * a->Hkv % threads == 0;
    int height = most;

    while (threads > 1 && !fixed && height / 2 >= least &&
           heads * blocks_of(a->L, height) < 2 * threads)
        height /= 2;
    const int blocks = blocks_of(a->L, height);
    return (struct split_attn){.heads = heads,
                               .height = height,
                               .blocks = blocks,
                               .items = heads * blocks,
                               .abreast = fixed ? threads : heads,
                               .fixed = fixed};
}

/* ---- a few queries ------------------------------------------------------------------------ */

enum { WORD = 64, FEW_PART = 128 /* fewest keys of a thread's part */ };

struct split_few split_few(const struct attn *a, int threads)
{
    const int hull = attn_hull(a, 0, a->H, 0, a->L).from, hi = attn_keys(a);
    const int lo = a->mask ? hull / WORD * WORD : hull;
    const int parts = clamp_int(threads / a->B, 1, max_int(1, (hi - lo) / FEW_PART));
    const int each = a->B * parts; /* items per share */
    const int shares = clamp_int(parts > 1 ? threads / each : blocks_of(threads, each), 1, a->H);

    return (struct split_few){.B = a->B,
                              .H = a->H,
                              .shares = shares,
                              .parts = parts,
                              .items = each * shares,
                              .lo = lo,
                              .hi = hi,
                              .words = a->mask != NULL};
}

/* The first key of a part. */
static int few_cut(const struct split_few *s, int part)
{
    const int at = s->lo + split_at(s->hi - s->lo, part, s->parts);

    return s->words && part < s->parts ? at / WORD * WORD : at;
}

struct split_few_item split_few_item(const struct split_few *s, int t)
{
    const int part = t % s->parts, share = t / s->parts % s->shares;

    return (struct split_few_item){.b = t / s->parts / s->shares,
                                   .h0 = split_at(s->H, share, s->shares),
                                   .h1 = split_at(s->H, share + 1, s->shares),
                                   .part = part,
                                   .from = few_cut(s, part),
                                   .to = few_cut(s, part + 1)};
}

int split_few_first(const struct split_few *s, int b, int h)
{
    const int share = ((h + 1) * s->shares - 1) / s->H;

    return (b * s->shares + share) * s->parts;
}

/* ---- products ----------------------------------------------------------------------------- */

static int grid_rows(const struct split_gemm_shape *of, int threads)
{
    int best = 1;
    int64_t least = INT64_MAX;

    for (int rows = 1; rows <= threads; rows++) {
        if (threads % rows)
            continue;
        const int cols = threads / rows;
        const int64_t edge = of->m / rows + of->n / cols +
                             (of->m < rows * of->tile_rows ? of->m : 0) +
                             (of->n < cols * of->tile_cols ? of->n : 0);
        if (edge < least) {
            least = edge;
            best = rows;
        }
    }
    return best;
}

struct split_gemm split_gemm(const struct split_gemm_shape *of, int threads)
{
    enum { PARALLEL_MIN = 1 << 18 }; /* multiply-adds */
    const bool alone = threads <= 1 || (int64_t)of->m * of->n * of->k < PARALLEL_MIN;
    const int rows = alone || of->few ? 1 : grid_rows(of, threads);

    return (struct split_gemm){.m = of->m,
                               .n = of->n,
                               .rows = rows,
                               .cols = alone ? 1 : threads / rows,
                               .unit = of->packed ? of->tile_cols : SPLIT_LINE};
}

struct split_gemm_part split_gemm_part(const struct split_gemm *s, int t)
{
    const int r = t / s->cols, c = t % s->cols, units = blocks_of(s->n, s->unit);

    return (struct split_gemm_part){
        .i0 = split_at(s->m, r, s->rows),
        .i1 = split_at(s->m, r + 1, s->rows),
        .j0 = min_int(split_at(units, c, s->cols) * s->unit, s->n),
        .j1 = min_int(split_at(units, c + 1, s->cols) * s->unit, s->n),
    };
}

/* ---- rows and columns --------------------------------------------------------------------- */

/* Below this many elements a fork and join costs more than a second core gains. */
enum { ROWS_PARALLEL_MIN = 1 << 15, CHUNKS_PER_THREAD = 4 };

int split_rows(int rows, int n, int threads)
{
    if (threads <= 1 || (int64_t)rows * n < ROWS_PARALLEL_MIN)
        return 1;
    return min_int(rows, threads * CHUNKS_PER_THREAD);
}

struct split_columns split_columns(int rows, int n, int threads)
{
    const bool alone = (int64_t)rows * n < ROWS_PARALLEL_MIN;

    return (struct split_columns){
        n, alone ? 1 : clamp_int(threads, 1, max_int(1, blocks_of(n, SPLIT_LINE)))};
}

/* ---- recurrences -------------------------------------------------------------------------- */

int split_slices(int states, int dv, int width, int threads)
{
    return clamp_int(blocks_of(threads, max_int(states, 1)), 1, blocks_of(dv, width));
}

int split_channels(int B, int n, int most, int threads)
{
    int width = most;

    while (B * blocks_of(n, width) < threads && width / 2 >= SPLIT_LINE)
        width /= 2;
    return width;
}
