/* SPDX-License-Identifier: MIT
 *
 * Rows of numbers to and from their element type. */
#include "elem.h"

const char *const elem_name[ELEM_COUNT + 1] = {"f32", "bf16", "q8", "q4", "q4_1"};
const char *const kv_elem_name[] = {"f32", "bf16", "q8", NULL};
const char *const row_elem_name[ROW_ELEM_COUNT + 1] = {"f32", "q8"};

static int blocks(int n) { return (n + Q8_BLOCK - 1) / Q8_BLOCK; }

size_t elem_row_bytes(enum elem elem, int n)
{
    static const size_t each[ELEM_COUNT] = {
        [ELEM_F32] = sizeof(float),
        [ELEM_BF16] = sizeof(uint16_t),
        [ELEM_Q8] = sizeof(struct q8_block),
        [ELEM_Q4] = sizeof(struct q4_block),
        [ELEM_Q4_1] = sizeof(struct q4_1_block),
    };

    return (size_t)(elem_in_blocks(elem) ? blocks(n) : n) * each[elem];
}

/* The scale of n numbers. One below the normal numbers would be flushed to zero by the kernels: it is
 * zero here. */
static float scale_of(const float *x, int n, float *largest)
{
    *largest = 0;
    for (int i = 0; i < n; i++) {
        const float size = fabsf(x[i]);
        if (!(size <= FLT_MAX))
            return NAN;
        *largest = fmaxf(*largest, size);
    }
    const float scale = *largest / 127;
    return scale < FLT_MIN ? 0 : scale;
}

/* n numbers as q; returns their scale. */
static float quantise(int8_t *q, const float *x, int n)
{
    float largest;
    const float scale = scale_of(x, n, &largest);

    memset(q, 0, (size_t)n);
    if (!(scale > 0))
        return scale;
    for (int i = 0; i < n; i++)
        q[i] = (int8_t)lrint((double)x[i] / (double)scale);
    return scale;
}

/* n numbers as q4 by largest / -t; returns how much of their sum of squares the best scale of these q
 * explains, which is what is left of it the less. */
static double quantise_by(double t, double largest, int8_t q[Q8_BLOCK], const float *x, int n,
                          double *scale)
{
    double xq = 0, qq = 0;

    for (int i = 0; i < n; i++) {
        const long to = lrint((double)x[i] * (-t / largest));
        q[i] = (int8_t)(to < -Q4_ZERO ? -Q4_ZERO : to > Q4_ZERO - 1 ? Q4_ZERO - 1 : to);
        xq += (double)x[i] * q[i];
        qq += (double)q[i] * q[i];
    }
    *scale = xq / qq; /* the q of the largest is not 0 */
    return xq * *scale;
}

/* Returns the scale of n numbers as q4, 0 up to a block. */
static float quantise4(int8_t best[Q8_BLOCK], const float *x, int n)
{
    enum { FIRST = 7 * 8, LAST = 9 * 8 }; /* eighths */
    float size, found = scale_of(x, n, &size);
    double most = 0, largest = 0;

    memset(best, 0, Q8_BLOCK);
    if (!(found > 0))
        return found;
    for (int i = 0; i < n && largest == 0; i++)
        largest = fabsf(x[i]) == size ? (double)x[i] : 0;
    for (int t = FIRST; t <= LAST; t++) {
        int8_t q[Q8_BLOCK] = {0};
        double scale;
        const double explained = quantise_by(t / 8.0, largest, q, x, n, &scale);
        if (explained <= most)
            continue;
        most = explained;
        found = (float)scale;
        memcpy(best, q, sizeof(q));
    }
    return found;
}

static void put_q4(struct q4_block *to, float scale, const int8_t q[Q8_BLOCK])
{
    to->scale = scale;
    for (int i = 0; i < Q4_BYTES; i++)
        to->q[i] = (uint8_t)((q[i] + Q4_ZERO) | (q[i + Q4_BYTES] + Q4_ZERO) << 4);
}

static void quantise4_block(struct q4_block *to, const float *x, int n)
{
    int8_t q[Q8_BLOCK];
    const float scale = quantise4(q, x, n);

    put_q4(to, scale, q);
}

/* ---- q4_1 --------------------------------------------------------------------------------- */

/* x = scale q + shift, as kernels read them: below the normal numbers is zero. */
struct line {
    float scale, shift;
};
static struct line line_of(double scale, double shift)
{
    return (struct line){fabs(scale) < (double)FLT_MIN ? 0 : (float)scale,
                         fabs(shift) < (double)FLT_MIN ? 0 : (float)shift};
}

/* n numbers as the q that are nearest; returns the sum of squares that is left. */
static double quantise_on(struct line l, int8_t q[Q8_BLOCK], const float *x, int n)
{
    double left = 0;

    for (int i = 0; i < n; i++) {
        const double from = (double)x[i] - (double)l.shift;
        const double at = l.scale != 0 ? from / (double)l.scale : 0;
        q[i] = (int8_t)lrint(fmax(-Q4_ZERO, fmin(Q4_ZERO - 1, at)));
        const double off = from - (double)l.scale * q[i];
        left += off * off;
    }
    return left;
}

/* The line of least squares for these q; that of before where they are all the same. */
static struct line line_through(struct line before, const int8_t q[Q8_BLOCK], const float *x, int n)
{
    double sq = 0, sqq = 0, sx = 0, sxq = 0;

    for (int i = 0; i < n; i++) {
        sq += q[i];
        sqq += (double)q[i] * q[i];
        sx += (double)x[i];
        sxq += (double)x[i] * q[i];
    }
    const double determinant = n * sqq - sq * sq;
    if (!(determinant > 0))
        return before;
    const double scale = (n * sxq - sq * sx) / determinant;
    return line_of(scale, (sx - scale * sq) / n);
}

/* What is left of n numbers by the best of some lines from `l` on, if that is less than *least. */
static void try_from(struct line l, struct line *best, int8_t best_q[Q8_BLOCK], double *least,
                     const float *x, int n)
{
    enum { TURNS = 5 };

    for (int turn = 0; turn < TURNS; turn++) {
        int8_t q[Q8_BLOCK] = {0};
        const double left = quantise_on(l, q, x, n);
        if (left < *least) {
            *least = left;
            *best = l;
            memcpy(best_q, q, sizeof(q));
        }
        l = line_through(l, q, x, n);
    }
}

/* Are the numbers from lo to hi some of `steps` + 1 ones as far from each other? Then q and *l are
 * they, exactly. */
static bool is_on_steps(int steps, double lo, double hi, struct line *l, int8_t q[Q8_BLOCK],
                        const float *x, int n)
{
    const float scale = (float)((hi - lo) / steps);

    *l = line_of((double)scale, lo + Q4_ZERO * (double)scale);
    quantise_on(*l, q, x, n);
    for (int i = 0; i < n; i++)
        if (fmaf(l->scale, (float)q[i], l->shift) != x[i])
            return false;
    return true;
}

static void quantise4_1_block(struct q4_1_block *to, const float *x, int n)
{
    enum { STEPS = 15, MOST = 17 }; /* beyond 15, what is farthest out is cut */
    int8_t q[Q8_BLOCK] = {0}, plain[Q8_BLOCK];
    const float scale = quantise4(plain, x, n);
    double lo = (double)x[0], hi = lo, least = INFINITY;
    struct line best = {scale, 0};
    bool found = isnan(scale);

    for (int i = 1; i < n; i++) {
        lo = fmin(lo, (double)x[i]);
        hi = fmax(hi, (double)x[i]);
    }
    for (int steps = STEPS; !found && steps > 0; steps--)
        found = is_on_steps(steps, lo, hi, &best, q, x, n);
    for (int steps = STEPS; !found && steps <= MOST; steps++) {
        const double step = (hi - lo) / steps;
        try_from(line_of(step, (lo + hi + step) / 2), &best, q, &least, x, n);
    }
    if (!found)
        try_from((struct line){scale, 0}, &best, q, &least, x, n);
    put_q4(&to->of, best.scale, q);
    to->shift = best.shift;
}

static void quantise_block(struct q8_block *to, const float *x, int n)
{
    memset(to, 0, sizeof(*to));
    to->scale = quantise(to->q, x, n);
}

void elem_block(enum elem elem, struct q8_block *to, const void *row, int b)
{
    CHECK(elem_in_blocks(elem));
    if (elem == ELEM_Q8) {
        *to = ((const struct q8_block *)row)[b];
        return;
    }
    const struct q4_block *const block = q4_at(elem, row, b);
    to->scale = block->scale;
    for (int i = 0; i < Q4_BYTES; i++) {
        to->q[i] = (int8_t)((block->q[i] & 15) - Q4_ZERO);
        to->q[i + Q4_BYTES] = (int8_t)((block->q[i] >> 4) - Q4_ZERO);
    }
}

void q8_round_row(struct q8_block *row, const float *x, int n)
{
    for (int b = 0; b < blocks(n); b++) {
        struct q8_block *const to = &row[b];
        const float *const from = x + b * Q8_BLOCK;
        const int left = min_int(Q8_BLOCK, n - b * Q8_BLOCK);
        float largest;
        *to = (struct q8_block){.scale = scale_of(from, left, &largest)};
        for (int i = 0; to->scale > 0 && i < left; i++)
            to->q[i] = (int8_t)lrintf(from[i] * (127 / largest));
    }
}

void elem_narrow(enum elem elem, void *row, const float *x, int n)
{
    uint16_t *const half = row;
    struct q8_block *const block = row;

    if (elem == ELEM_F32)
        memcpy(row, x, (size_t)n * sizeof(*x));
    for (int i = 0; elem == ELEM_BF16 && i < n; i++)
        half[i] = bf16_of(x[i]);
    for (int b = 0; elem == ELEM_Q8 && b < blocks(n); b++)
        quantise_block(&block[b], x + b * Q8_BLOCK, min_int(Q8_BLOCK, n - b * Q8_BLOCK));
    for (int b = 0; elem == ELEM_Q4 && b < blocks(n); b++)
        quantise4_block((struct q4_block *)row + b, x + b * Q8_BLOCK,
                        min_int(Q8_BLOCK, n - b * Q8_BLOCK));
    for (int b = 0; elem == ELEM_Q4_1 && b < blocks(n); b++)
        quantise4_1_block((struct q4_1_block *)row + b, x + b * Q8_BLOCK,
                          min_int(Q8_BLOCK, n - b * Q8_BLOCK));
}

void elem_widen(enum elem elem, float *x, const void *row, int first, int n)
{
    const uint16_t *const half = row;
    if (elem == ELEM_F32)
        memcpy(x, (const float *)row + first, (size_t)n * sizeof(*x));
    for (int i = 0; elem == ELEM_BF16 && i < n; i++)
        x[i] = bf16_float(half[first + i]);
    struct q8_block block;
    for (int i = 0; elem_in_blocks(elem) && i < n; i++) {
        const int b = (first + i) / Q8_BLOCK, e = (first + i) % Q8_BLOCK;
        if (i == 0 || e == 0)
            elem_block(elem, &block, row, b);
        x[i] = elem == ELEM_Q4_1 ? fmaf(block.scale, (float)block.q[e], elem_shift(elem, row, b))
                                 : block.scale * (float)block.q[e];
    }
}

size_t elem_heads_bytes(enum elem elem, int heads, int n)
{
    return elem == ELEM_Q8 ? (size_t)heads * (size_t)q8_head_words(n) * sizeof(uint32_t)
                           : round_up(elem_row_bytes(elem, heads * n), sizeof(uint32_t));
}

void elem_heads_narrow(enum elem elem, void *row, const float *x, int heads, int n)
{
    uint32_t *head = row;

    if (elem != ELEM_Q8) {
        elem_narrow(elem, row, x, heads * n);
        return;
    }
    for (int h = 0; h < heads; h++, head += q8_head_words(n), x += n) {
        head[q8_head_words(n) - 1] = 0; /* what fills the last word */
        const float scale = quantise((int8_t *)(void *)(head + 1), x, n);
        memcpy(head, &scale, sizeof(scale));
    }
}

void bf16_round(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = bf16_float(bf16_of(x[i]));
}
