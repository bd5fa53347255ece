/* SPDX-License-Identifier: MIT
 *
 * The products of attention's backward that sum along the queries: over one item's queries, from a
 * block of probabilities or their gradients. Included by attn_grad.inc.c. */

/* Gradients of the terms from one (sequence, head); rows of tables are whole vectors. */
struct term_sums {
    float *u, *w, *rel_k, *rel_v, *bias, *sink_k, *sink_v,
        *sink_logit; /* NULL = none, except u and w */
};

/* dst [TILE_ROWS, C vectors] += sum over i < n of a[r + i step] q_i. */
VEC_INLINE void outer_tile(int C, float *dst, ptrdiff_t ld, const float *a, ptrdiff_t step, int n,
                           struct queries q)
{
    vf acc[TILE_ROWS][TILE_COLS];

    UNROLL
    for (int r = 0; r < TILE_ROWS; r++)
        UNROLL
    for (int c = 0; c < C; c++)
        acc[r][c] = vld(dst + r * ld + c * VL);
    tile_fma(TILE_ROWS, C, acc, n, a, 1, step, q.at, q.ld, VL);
    UNROLL
    for (int r = 0; r < TILE_ROWS; r++)
        UNROLL
    for (int c = 0; c < C; c++)
        vst(dst + r * ld + c * VL, acc[r][c]);
}

static void outer(float *dst, int vectors, const float *a, ptrdiff_t step, int n, struct queries q)
{
    for (int v = 0, width; v < vectors; v += width) {
        const struct queries from = {q.at + v * VL, q.ld};
        width = tile_width(vectors - v);
        switch (width) {
        case 1:
            outer_tile(1, dst + v * VL, vectors * VL, a, step, n, from);
            break;
        case 2:
            outer_tile(2, dst + v * VL, vectors * VL, a, step, n, from);
            break;
        default:
            outer_tile(COLS, dst + v * VL, vectors * VL, a, step, n, from);
        }
    }
}

/* Narrow the queries [*from, *to) to those of the groups from the first to the last that sees one
 * of the keys [j, j+TILE_ROWS); false if none does. */
static bool seeing_groups(const struct seen *s, int j, int *from, int *to)
{
    const uint64_t keys = (~(uint64_t)0 >> (64 - TILE_ROWS)) << j % 64;
    int first = QUERIES, end = 0;

    for (int g = *from / ROWS * ROWS; g < *to; g += ROWS)
        if (seen_by_group(s, g)[j / 64] & keys) {
            first = min_int(first, g);
            end = g + ROWS;
        }
    *from = max_int(*from, first);
    *to = min_int(*to, end);
    return *from < *to;
}

/* dst [keys of the block, d] += s^T q, where s is the block's p or g. */
static void add_by_key(const struct item *t, float *dst, int d, float (*s)[LD], int j, int n,
                       struct queries q)
{
    const struct attn *a = t->f->a;

    for (int x = 0; x < n; x += TILE_ROWS) {
        const int own = j + x - a->M - t->i0, last = own + TILE_ROWS - 1; /* queries at the keys */
        int from = a->causal ? clamp_int(own, 0, t->n) : 0;
        int to = t->window ? clamp_int(last + t->window, from, t->n) : t->n;
        if (t->seen && !seeing_groups(t->seen, j + x, &from, &to))
            continue;
        outer(dst + (ptrdiff_t)(j + x) * d, d / VL, s[from] + VL + x, LD, to - from,
              group_of(q, from));
    }
}

/* dst [table rows] += s^T q by table row: row r belongs to key r - r0 + i for query i, where r0 is
 * the row of the block's first key for query 0. */
static void add_by_row(const struct item *t, float *dst, float (*s)[LD], int r0, int n,
                       struct queries q)
{
    const int d = t->f->d_pad, first = t->f->far_shared ? 1 : 0;
    const int end = min_int(r0 + n, t->f->n_rel);

    for (int r = max_int(r0 - (t->n - 1), first); r < end; r += TILE_ROWS) {
        const int from = max_int(0, r0 - r - (TILE_ROWS - 1)), to = min_int(t->n, n - (r - r0));
        outer(dst + (ptrdiff_t)r * d, d / VL, s[from] + VL + (r - r0 + from), LD + 1, to - from,
              group_of(q, from));
    }
}

/* Likewise dst [table rows] += row sums of s alone. */
static void add_sums_by_row(const struct item *t, float *dst, float (*s)[LD], int r0, int n)
{
    const int end = min_int(r0 + n, t->f->n_rel);

    for (int r = max_int(r0 - (t->n - 1), t->f->far_shared ? 1 : 0); r < end; r += VL) {
        const int from = max_int(0, r0 - r - (VL - 1)), to = min_int(t->n, n - (r - r0));
        vf sum = vld(dst + r);
        for (int i = from; i < to; i++)
            sum = vadd(sum, vld(s[i] + VL + (r - r0 + i)));
        vst(dst + r, sum);
    }
}

static float sum_range(const float *s, int lo, int hi)
{
    vf sum = v0();

    for (int x = lo; x < hi; x += VL)
        sum = vadd(sum, vld_upto(s + x, hi - x, v0()));
    return vsum(sum);
}

/* The keys that share a row at an end of the table: the last row for the future, the first one for
 * the far past. */
static void add_shared(const struct item *t, float *table, float *bias, float (*s)[LD], int r0,
                       int n, bool far, struct queries q)
{
    const int row = far ? 0 : t->f->n_rel - 1, d = t->f->d_pad;

    for (int i = 0; i < t->n; i++) {
        const int lo = far ? 0 : clamp_int(row + 1 - r0 + i, 0, n);
        const int hi = far ? clamp_int(1 - r0 + i, 0, n) : n;
        if (lo >= hi)
            continue;
        const float share = sum_range(s[i] + VL, lo, hi);
        for (int e = 0; table && e < d; e += VL) {
            float *to = table + (ptrdiff_t)row * d + e;
            vst(to, vfma(v1(share), vld(q.at + i * q.ld + e), vld(to)));
        }
        if (bias)
            bias[row] += share;
    }
}

/* A block's share of the terms' gradients, from its p and g; d_o are rel_v's queries. */
static void add_terms(const struct item *x, struct term_sums t, float (*p)[LD], float (*g)[LD],
                      struct queries d_o, int j, int n)
{
    const int r0 = table_row(x, 0, j);

    if (t.rel_k)
        add_by_row(x, t.rel_k, g, r0, n, x->qw);
    if (t.rel_v)
        add_by_row(x, t.rel_v, p, r0, n, d_o);
    if (t.bias)
        add_sums_by_row(x, t.bias, g, r0, n);
    for (int far = 0; far <= 1; far++) {
        if (far ? !x->f->far_shared : x->f->a->causal)
            continue;
        if (t.rel_k || t.bias)
            add_shared(x, t.rel_k, t.bias, g, r0, n, far, x->qw);
        if (t.rel_v)
            add_shared(x, t.rel_v, NULL, p, r0, n, far, d_o);
    }
}
