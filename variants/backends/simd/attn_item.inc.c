/* SPDX-License-Identifier: MIT
 *
 * A work item of fused attention, some queries of one head: its operands, and the scores of one
 * group of its rows against a block of keys, including positions and other terms. */

/* Rows [i0, i0+n) of head h in sequence b. */
struct item {
    const struct fused *f;
    struct work *w;
    int b, h, i0, n;
    int window;                             /* of the head */
    bool adjusts;                           /* its scores are more than a product (attn_extra) */
    const struct seen *seen;                /* visible pairs; NULL = no mask */
    const float *k, *rel_k, *bias, *sink_k; /* this head's, packed; NULL = none */
    struct values v, rel_v, sink_v;
    struct queries qu, qw; /* q + u and q + w: in place, or w->qu, w->qw */
};

#if defined(VEC_BF16)
/* dst = pairs of q + bias for the queries of group g. Rows after the last query are 0 and unused.
 */
static void load_queries(const struct item *t, int g, float *dst, const float *bias)
{
    const struct attn *a = t->f->a;
    const ptrdiff_t ld = t->w->ld, row = a->q_at.row;
    const int d = a->dh, rows = min_int(ROWS, t->n - g);
    const float *q = a->q + t->b * a->q_at.batch + (t->i0 + g) * row + t->h * d;

    dst += g * ld;
    for (int e = 0; e < d; e += 2 * VL) {
        const float *const add = bias ? bias + t->h * d + e : NULL;
        const int left = d - e, more = max_int(0, left - VL);
        const vf x = add ? vld_upto(add, left, v0()) : v0();
        const vf y = add && more ? vld_upto(add + VL, more, v0()) : v0();
        for (int i = 0; i < rows; i++) {
            const float *const from = q + i * row + e;
            vf lo = vld_upto(from, left, v0());
            vf hi = more ? vld_upto(from + VL, more, v0()) : v0();
            if (bias && a->unrounded) /* before the sum, too, as elsewhere */
                lo = vbf16(lo), hi = vbf16(hi);
            vst(dst + i * ld + e / 2, vpairs(vadd(lo, x), vadd(hi, y)));
        }
        for (int i = rows; i < ROWS; i++)
            vst(dst + i * ld + e / 2, v0());
    }
}

/* far_score of the queries of group g. */
static void load_far(const struct item *t, int g)
{
    const struct attn *const a = t->f->a;
    const float *const far_k = a->rel_k + t->h * a->rel_head;

    for (int i = g; i < g + ROWS; i++) {
        const float *const q = t->qw.at + i * t->qw.ld;
        vf sum = v0();
        for (int e = 0; e < a->dh; e += 2 * VL)
            sum = vdot2(sum, vld(q + e / 2), vpairs_n(far_k + e, a->dh - e));
        t->w->far[i] = vsum(sum) * t->f->factor;
    }
}
#else
/* dst = q + bias for the queries of group g. Rows after the last query are finite and unused. */
static void load_queries(const struct item *t, int g, float *dst, const float *bias)
{
    const struct attn *a = t->f->a;
    const ptrdiff_t ld = t->w->ld, row = a->q_at.row;
    const int d = a->dh, rows = min_int(ROWS, t->n - g);
    const float *q = a->q + t->b * a->q_at.batch + (t->i0 + g) * row + t->h * d;

    dst += g * ld;
    for (int e = 0; e < d; e += VL) {
        const vf x = bias ? vld_upto(bias + t->h * d + e, d - e, v0()) : v0();
        for (int i = 0; i < rows; i++) {
            const vf sum = vadd(vld_upto(q + i * row + e, d - e, v0()), x);
            vst(dst + i * ld + e, bias && a->bf16 ? vbf16(sum) : sum);
        }
        for (int i = rows; i < ROWS; i++)
            vst(dst + i * ld + e, x);
    }
}

static void load_far(const struct item *t, int g) { (void)t, (void)g; } /* it is in the tables */
#endif

/* Make group g's queries available where the item reads them. */
static void fetch_queries(const struct item *t, int g)
{
    if (t->f->a->no_content)
        return;
    if (t->qu.at == t->w->qu)
        load_queries(t, g, t->w->qu, t->f->a->u);
    if (t->qw.at == t->w->qw)
        load_queries(t, g, t->w->qw, t->f->a->w);
    if (t->rel_k && t->f->far_shared)
        load_far(t, g);
}

static struct queries group_of(struct queries q, int g)
{
    return (struct queries){q.at + g * q.ld, q.ld};
}

/* The band of group g for table rows [r, r + n): element r + x of query m goes to column VL + x of
 * row m. Panels are whole, so the first may begin up to VL - 1 rows early. Rows before the table
 * count as 0 (far rows, which were subtracted, or hidden ones), rows after it repeat the last
 * one. */
static void make_band(const struct item *t, int g, int r, int n)
{
    const int n_rel = t->f->n_rel, d = t->f->dk;
    const int first = clamp_int(r, 0, n_rel - 1) / VL * VL, end = clamp_int(r + n, 1, n_rel);
    const int at = max_int(0, VL + first - r); /* 0: the whole band lies after the table */
    const float *bias = t->bias ? t->bias + (r - t->f->bias_lo) : NULL; /* from row r on */
    const int vectors = (end - first + VL - 1) / VL;
    float *band = t->w->band[0];
    int every[TILES];

    for (int m = 0; m < ROWS; m++) /* row by row: stores of one cache line follow each other */
        for (int x = 0; x < VL + first - r; x += VL)
            vst(band + m * LD + x, bias ? vld(bias - VL + x) : v0());
    for (int x = 0; x < TILES; x++)
        every[x] = vectors * VL;
    scores(band + at, group_of(t->qw, g), d, t->rel_k + (ptrdiff_t)first * d, vectors, every,
           bias ? bias + (first - r) : NULL, 0, t->f->factor);
    for (int m = 0; PER_LANE == 2 && t->f->far_shared && m < ROWS; m++)
        for (int x = 0; x < vectors; x++) {
            float *const s = band + m * LD + at + x * VL;
            vst(s, vsub(vld(s), v1(t->w->far[g + m])));
        }
    if (t->f->a->causal || r + n <= n_rel)
        return;
    for (int m = 0; m < ROWS; m++) {
        const vf last = v1(band[m * LD + at + n_rel - 1 - first]);
        for (int x = max_int(VL, VL + n_rel - r); x < VL + n; x += VL)
            vst(band + m * LD + x, last);
    }
}

/* Future keys share the table's last row: o += (sum of p over them) rel_v[last]. */
static void add_future_values(const struct item *t, int g, int r, int n)
{
    const int last = t->f->n_rel - 1;
    const int vectors = t->f->v_pad / VL;

    for (int m = 0; m < ROWS; m++) {
        const float *p = t->w->s[m] + VL;
        float *o = t->w->o + (g + m) * t->w->ld;
        vf sum = v0();
        for (int x = max_int(0, last + 1 - (r - m)); x < n; x += VL)
            sum = vadd(sum, vld_upto(p + x, n - x, v0()));
        const vf share = v1(vsum(sum));
        for (int v = 0; v < vectors; v++) {
            const vf row = vld(t->rel_v.at + strip_at(vectors, t->f->n_rel, v, last));
            vst(o + v * VL, vfma(share, row, vld(o + v * VL)));
        }
    }
}

#include "attn_extra.inc.c"

/* Table row of key j for query i of the item. */
static int table_row(const struct item *t, int i, int j) { return j + t->f->row0 - (t->i0 + i); }

/* w->s = scores of one group against keys [j, j+n), n <= KEYS, j a multiple of VL, and `hidden` for
 * hidden pairs. seen[x]: upper bound of the keys that tile x sees. */
VEC_INLINE void group_scores(const struct item *t, int g, int j, int n, vf hidden, int seen[TILES])
{
    const struct attn *a = t->f->a;
    const int vectors = (n + VL - 1) / VL, r = table_row(t, g, j);
    const float *start = t->bias ? t->bias + (r - t->f->bias_lo) : NULL;
    ptrdiff_t start_row = -1;
    float(*s)[LD] = t->w->s;

    for (int x = 0; x < TILES; x++)
        seen[x] = a->causal ? clamp_int(a->M + t->i0 + g + (x + 1) * TILE_ROWS - j, 0, n) : n;
    if (t->rel_k && (r + n > 1 || !t->f->far_shared)) {
        make_band(t, g, r - (ROWS - 1), vectors * VL + ROWS - 1);
        start = t->w->band[0] + VL + ROWS - 1;
        start_row = LD - 1;
    }
    scores(s[0] + VL, group_of(t->qu, g), a->no_content ? 0 : t->f->dk,
           t->k + (ptrdiff_t)j * t->f->dk, vectors, seen, start, start_row, t->f->factor);
    for (int m = 0; t->adjusts && m < min_int(ROWS, t->n - g); m++)
        adjust_scores(t, g + m, s[m] + VL, t->w->band[m] + VL, j, n);
    if (t->seen) {
        hide_unseen(t->seen, g, s, j, vectors, hidden);
        return;
    }
    for (int m = 0; m < ROWS; m++) {
        const int own = a->M + t->i0 + g + m; /* key at the query's position */
        const int lo = t->window ? clamp_int(own - t->window + 1 - j, 0, vectors * VL) : 0;
        const int hi = a->causal ? min_int(own + 1 - j, n) : n;
        if (lo > 0 || hi < vectors * VL)
            fill_outside(s[m] + VL, lo, hi, vectors, hidden);
    }
}
