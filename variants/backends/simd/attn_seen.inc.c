/* SPDX-License-Identifier: MIT
 *
 * Fused attention with a mask: a row of bits for each query gives the keys that a group of rows
 * visits, in whole vectors; keys among them that a row does not see are hidden. If every vector of
 * keys is seen by some row of a group, as with strides no longer than the group's height, all are
 * visited. */

static uint64_t *seen_row(const struct seen *s, int row)
{
    return s->bits + (ptrdiff_t)row * s->words;
}

static const uint64_t *seen_by_group(const struct seen *s, int g)
{
    return seen_row(s, QUERIES + g / ROWS);
}

/* Words of a thread's bits. */
static size_t seen_words(const struct attn *a)
{
    return a->mask ? (size_t)SEEN_ROWS * (size_t)bits_words(attn_keys(a)) : 0;
}

/* Assign a thread its bits before a call. */
static void seen_start(struct seen *s, const struct attn *a, uint64_t *room)
{
    *s = (struct seen){.bits = room, .words = bits_words(attn_keys(a)), .i0 = -1};
}

static void add_bits(uint64_t *to, const uint64_t *from, int words)
{
    for (int w = 0; w < words; w++)
        to[w] |= from[w];
}

/* The bits of queries [i0, i0+n) of head h. */
static void compute_seen(struct seen *s, const struct attn *a, int h, int i0, int n)
{
    const struct sight sight = attn_sight(a, h);
    const size_t row = (size_t)s->words * sizeof(*s->bits);

    if (s->i0 == i0 && s->mask == sight.mask && s->window == sight.window)
        return;
    s->i0 = i0;
    s->mask = sight.mask;
    s->window = sight.window;
    memset(seen_row(s, QUERIES), 0, (SEEN_ROWS - QUERIES) * row);
    for (int i = 0; i < QUERIES; i++) {
        if (i >= n) {
            memset(seen_row(s, i), 0, row);
            continue;
        }
        sight_bits(&sight, i0 + i, seen_row(s, i));
        add_bits(seen_row(s, QUERIES + i / ROWS), seen_row(s, i), s->words);
    }
}

/* Advance r to the next keys before `end` that group g visits. */
static bool next_visited(const struct seen *s, int g, int end, struct range *r)
{
    return bits_next(seen_by_group(s, g), VL, end, r);
}

/* Lanes [lo, hi) of a vector, clipped to it. */
static uint64_t lanes_between(int lo, int hi)
{
    const int from = clamp_int(lo, 0, VL), to = clamp_int(hi, from, VL);

    return (((uint64_t)1 << to) - 1) & ~(((uint64_t)1 << from) - 1);
}

/* Which of the keys [j, j+VL) query i of a head sees; `bits` are its keys if there is a mask. */
static uint64_t visible_lanes(const struct attn *a, int window, const uint64_t *bits, int i, int j)
{
    const int own = a->M + i; /* key at the query's position */

    if (bits)
        return bits[j / 64] >> j % 64;
    return lanes_between(window ? own - window + 1 - j : 0, a->causal ? own + 1 - j : VL);
}

/* Output the visible ones of a query's scores against keys [j, j+n), with `far` added to each. */
static void output_scores(const struct attn *a, float *out, const float *s, float far, int window,
                          const uint64_t *bits, int i, int j, int n)
{
    for (int x = 0; x < n; x += VL) {
        const uint64_t lanes = visible_lanes(a, window, bits, i, j + x) & lanes_between(0, n - x);
        vst_m(out + j + x, vlanes(lanes), vmul(v1(LN2), vadd(vld(s + x), v1(far))));
    }
}

/* s += add over n keys; `add` begins at their first. */
static void add_dense(float *s, const float *add, int n)
{
    for (int x = 0; x < n; x += VL)
        vst(s + x, vfma(v1(LOG2E), vld_upto(add + x, n - x, v0()), vld(s + x)));
}

/* s += the difference of query i's own sum and those of keys [j, j+n), formed in double. */
static void add_fade(float *s, const struct attn *a, int b, int h, int i, int j, int n)
{
    const double *const head = a->fade.at + attn_fade_at(a, b, h);
    const double own = head[a->M + i];

#pragma omp simd
    for (int x = 0; x < n; x++)
        s[x] += LOG2E * (float)(own - head[j + x]);
}

/* n scores become cap of them, in the same base; `slope` receives its derivative unless it is
 * NULL. */
static void cap_row(float *s, float *slope, float most, int n)
{
    for (int x = 0; x < n; x += VL) {
        const vf t = vtanh(vmul(v1(1.0f / most), vld(s + x)));
        vst(s + x, vmul(v1(most), t));
        if (slope)
            vst(slope + x, vfnma(t, t, v1(1.0f)));
    }
}

static void scale_row(float *s, float by, int n)
{
    for (int x = 0; x < n; x += VL)
        vst(s + x, vmul(v1(by), vld(s + x)));
}

/* Set group g's scores against whole vectors of keys from j on to x where hidden. */
static void hide_unseen(const struct seen *seen, int g, float (*s)[LD], int j, int vectors, vf x)
{
    const uint64_t all = ~(uint64_t)0 >> (64 - VL);

    for (int m = 0; m < ROWS; m++)
        for (int v = 0; v < vectors; v++) {
            const int at = j + v * VL;
            const uint64_t hidden = ~(seen_row(seen, g + m)[at / 64] >> at % 64) & all;
            if (hidden)
                vst_m(s[m] + VL + v * VL, vlanes(hidden), x);
        }
}
