/* SPDX-License-Identifier: MIT
 *
 * Fused attention: softmax and both products in one pass over the keys, with the scores never
 * larger than a block. Included once per instruction set.
 *
 * Keys are packed once per call into panels [d][VL], values and tables into rows of whole vectors.
 * A work item is QUERIES rows of one head; it walks the keys in blocks, keeping for each row the
 * running maximum, sum and output (online softmax, base 2). A relative table enters twice:
 *
 *   scores  for each group of rows the band (q + w) . rel_k that its block's distances use is
 *           computed with the same kernel; row r of the block starts its accumulators from it at
 *           offset -r, so the relative shift costs no instruction
 *   values  p . rel_v is the value kernel over p with a row stride one longer
 *
 * Where keys beyond the table's last distance share its row 0 (R < K), row 0 is subtracted from the
 * table: softmax does not see a constant along a row, and the output gets rel_v[0] once, because p
 * sums to 1. So far keys cost nothing. */
#include "attn_tile.inc.c"

#include "attn_few.inc.c"
#include "attn_pack.inc.c"

/* ---- one work item ------------------------------------------------------------------------ */

/* Rows [i0, i0+n) of head h in sequence b. */
struct item {
    const struct fused *f;
    struct work *w;
    int b, h, i0, n;
    int window;                    /* of the head */
    const float *k, *rel_k, *bias; /* this head's, packed; NULL = none */
    struct values v, rel_v;
    struct queries qu, qw; /* q + u and q + w: the operand itself, or w->qu, w->qw */
};

/* dst = q + bias for the queries of group g. Rows behind the last query are finite; nobody reads
 * what comes of them. */
static void load_queries(const struct item *t, int g, float (*dst)[HEAD_LD], const float *bias)
{
    const struct attn *a = t->f->a;

    for (int i = g; i < g + ROWS; i++) {
        const float *q = a->q + t->b * a->q_at.batch + (t->i0 + i) * a->q_at.row + t->h * a->dh;
        for (int e = 0; e < a->dh; e += VL) {
            vf x = v0();
            if (i < t->n)
                x = vld_upto(q + e, a->dh - e, v0());
            if (bias)
                x = vadd(x, vld_upto(bias + t->h * a->dh + e, a->dh - e, v0()));
            vst(dst[i] + e, x);
        }
    }
}

/* Bring group g's queries to where the item expects them. */
static void fetch_queries(const struct item *t, int g)
{
    if (t->qu.at == t->w->qu[0])
        load_queries(t, g, t->w->qu, t->f->a->u);
    if (t->qw.at == t->w->qw[0])
        load_queries(t, g, t->w->qw, t->f->a->w);
}

static struct queries group_of(struct queries q, int g)
{
    return (struct queries){q.at + g * q.ld, q.ld};
}

/* The band of group g for table rows [r, r + n): element r + x of query m goes to column VL + x of
 * row m. Panels are whole, so the first may begin up to VL - 1 rows early. Rows before the table
 * count as 0 (they are far and subtracted, or nobody sees them), rows behind it as the last one. */
static void make_band(const struct item *t, int g, int r, int n)
{
    const int n_rel = t->f->n_rel, d = t->f->a->dh;
    const int first = clamp_int(r, 0, n_rel - 1) / VL * VL, end = clamp_int(r + n, 1, n_rel);
    const int at = max_int(0, VL + first - r); /* 0: the whole band lies behind the table */
    const float *bias = t->bias ? t->bias + (r - t->f->bias_lo) : NULL; /* from row r on */
    const int vectors = (end - first + VL - 1) / VL;
    float *band = t->w->band[0];
    int every[TILES];

    for (int x = 0; x < VL + first - r; x += VL)
        for (int m = 0; m < ROWS; m++)
            vst(band + m * LD + x, bias ? vld(bias - VL + x) : v0());
    for (int x = 0; x < TILES; x++)
        every[x] = vectors * VL;
    scores(band + at, group_of(t->qw, g), d, t->rel_k + (ptrdiff_t)first * d, vectors, every,
           bias ? bias + (first - r) : NULL, 0);
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
    const int vectors = t->f->d_pad / VL;

    for (int m = 0; m < ROWS; m++) {
        const float *p = t->w->s[m] + VL;
        float *o = t->w->o[g + m];
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

/* Table row of key j for query i of the item. */
static int table_row(const struct item *t, int i, int j) { return j + t->f->row0 - (t->i0 + i); }

/* w->s = the scores of one group against keys [j, j+n), n <= KEYS, j a multiple of VL, `hidden`
 * where a query does not see a key. seen[x]: keys that tile x sees, at most. */
static void group_scores(const struct item *t, int g, int j, int n, vf hidden, int seen[TILES])
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
    scores(s[0] + VL, group_of(t->qu, g), a->dh, t->k + (ptrdiff_t)j * a->dh, vectors, seen, start,
           start_row);
    for (int m = 0; m < ROWS; m++) {
        const int own = a->M + t->i0 + g + m; /* the query's own key */
        const int lo = t->window ? clamp_int(own - t->window + 1 - j, 0, vectors * VL) : 0;
        const int hi = a->causal ? min_int(own + 1 - j, n) : n;
        if (lo > 0 || hi < vectors * VL)
            fill_outside(s[m] + VL, lo, hi, vectors, hidden);
    }
}

/* w->o += w->s . rel_v for group g and keys [j, j+n); the vectors around s are 0. */
static void add_positions(const struct item *t, int g, int j, int n)
{
    const int r = table_row(t, g, j);
    const int from = max_int(r - (ROWS - 1), t->f->far_shared ? 1 : 0);
    const int to = min_int(r + n, t->f->n_rel);
    int rows[TILES];

    for (int x = 0; x < TILES; x++)
        rows[x] = to - from;
    if (from < to)
        add_relative_values(t->w->o[g], t->w->s[0] + VL + from - r, from, rows, &t->rel_v);
    if (!t->f->a->causal)
        add_future_values(t, g, r, n);
}

/* One group of rows against keys [j, j+n); fresh: its first. */
static void step(const struct item *t, int g, bool fresh, int j, int n)
{
    struct work *w = t->w;
    float alpha[VL];
    int seen[TILES];

    group_scores(t, g, j, n, v1(-INFINITY), seen);
    soften(w, g, (n + VL - 1) / VL, fresh, alpha);
    add_values(fresh, w->o[g], alpha, w->s[0] + VL, j, seen, &t->v);
    if (t->rel_v.at)
        add_positions(t, g, j, n);
}

/* Keys that any of the queries [i, i+n) sees: [*lo, *hi). */
static void visible(const struct item *t, int i, int n, int *lo, int *hi)
{
    const struct attn *a = t->f->a;

    *lo = t->window ? max_int(0, a->M + i - t->window + 1) : 0;
    *hi = a->causal ? min_int(a->M + a->L, a->M + i + n) : a->M + a->L;
}

/* Divide by the sums and store the rows of group g, with the shared far rows' part. */
static void finish(const struct item *t, int g)
{
    const struct attn *a = t->f->a;
    const ptrdiff_t table = t->h * a->rel_head;
    const float *far_k = t->f->far_shared && a->rel_k ? a->rel_k + table : NULL;
    const float *far_v = t->f->far_shared && a->rel_v ? a->rel_v + table : NULL;

    for (int i = g; i < min_int(g + ROWS, t->n); i++) {
        float *o = a->o + t->b * a->o_at.batch + (t->i0 + i) * a->o_at.row + t->h * a->dh;
        const float sum = vsum(vld(t->w->sum[i]));
        const vf share = v1(sum == 0.0f ? 0.0f : 1.0f / sum);
        for (int e = 0; e < a->dh; e += VL) {
            vf x = vmul(vld(t->w->o[i] + e), share);
            if (far_v && sum != 0.0f)
                x = vadd(x, vld_upto(far_v + e, a->dh - e, v0()));
            vst_upto(o + e, a->dh - e, x);
        }
        if (!a->lse)
            continue;
        float far = 0.0f; /* what every score of the row was shifted by */
        for (int e = 0; far_k && e < a->dh; e++)
            far += t->qw.at[i * t->qw.ld + e] * far_k[e];
        a->lse[((ptrdiff_t)t->b * a->H + t->h) * a->L + t->i0 + i] =
            sum == 0.0f ? -INFINITY : LN2 * (far * t->f->factor + t->w->top[i]) + logf(sum);
    }
}

static void run_item(const struct item *t)
{
    struct work *w = t->w;
    int lo, hi;

    for (int m = 0; m < ROWS; m++)
        vst(w->s[m], v0()); /* in front of the scores, read by table row */
    visible(t, t->i0, t->n, &lo, &hi);
    for (int j = lo / VL * VL; j < hi; j += KEYS)
        for (int g = 0; g < t->n; g += ROWS) {
            int from, to;
            visible(t, t->i0 + g, min_int(ROWS, t->n - g), &from, &to);
            const int first = max_int(j, from / VL * VL), last = min_int(j + KEYS, to);
            if (first >= last)
                continue;
            if (first <= from) {
                fetch_queries(t, g);
            }
            step(t, g, first <= from, first, last - first);
            if (last == to)
                finish(t, g);
        }
}

/* Queries from i0 on of head h in sequence b. Unless `copy`, they are read where they are if there
 * is nothing to add and the groups are whole. */
static struct item item_of(const struct fused *f, struct work *w, int b, int h, int i0, bool copy)
{
    const struct attn *a = f->a;
    const int n = min_int(QUERIES, a->L - i0);
    const float *q = a->q + b * a->q_at.batch + i0 * a->q_at.row + h * a->dh;
    const struct queries there = {q, a->q_at.row};
    const struct queries qu = {w->qu[0], HEAD_LD}, qw = {w->qw[0], HEAD_LD};
    const bool copy_u = copy || a->u || n % ROWS, copy_w = copy || a->w || n % ROWS;
    const bool same = !a->rel_k || a->u == a->w;
    const int kv = h / (a->H / a->Hkv), vectors = f->d_pad / VL;
    const struct values packed = {
        .at = f->v + ((ptrdiff_t)b * a->Hkv + kv) * f->v_head, .rows = f->K, .vectors = vectors};
    const struct values in_place = {.at = a->v + b * a->v_at.batch + kv * a->dh,
                                    .step = a->v_at.row,
                                    .rows = f->K,
                                    .vectors = vectors};

    return (struct item){
        .f = f,
        .w = w,
        .b = b,
        .h = h,
        .i0 = i0,
        .n = n,
        .window = attn_window(a, h),
        .qu = copy_u ? qu : there,
        .qw = same ? (copy_u ? qu : there) : (copy_w ? qw : there),
        .k = f->k + ((ptrdiff_t)b * a->Hkv + kv) * f->k_head,
        .v = values_in_place(a) ? in_place : packed,
        .rel_k = a->rel_k ? f->rel_k + h * f->rel_k_head : NULL,
        .rel_v = {.at = a->rel_v ? f->rel_v + h * f->rel_v_head : NULL,
                  .rows = f->n_rel,
                  .vectors = vectors},
        .bias = a->bias ? f->bias + h * f->bias_head : NULL,
    };
}

/* Item t of the call on a worker's own space, in an order that hands out the longest rows first. */
static void run(const struct fused *f, int worker, int t)
{
    const int heads = f->a->B * f->a->H, blocks = (f->a->L + QUERIES - 1) / QUERIES;
    const int i0 = (blocks - 1 - t / heads) * QUERIES;
    const struct item item =
        item_of(f, f->work + worker, t % heads / f->a->H, t % heads % f->a->H, i0, false);

    run_item(&item);
}

/* ---- the implementation ------------------------------------------------------------------- */

static bool fused_accepts(const struct attn *a, const char **why_not)
{
    if (a->dh > HEAD) {
        *why_not = "heads wider than 256";
        return false;
    }
    return attn_knows(a, TERMS_PLAIN, why_not);
}

static struct attn_need fused_need(const struct attn *a, int threads)
{
    const struct fused f = layout(a, NULL);
    const size_t many = f.floats * sizeof(float) + (size_t)threads * sizeof(struct work);
    const size_t few = (size_t)threads * few_room(a) * sizeof(struct few_row);

    return (struct attn_need){.scratch_bytes = few > many ? few : many};
}

static void fused_forward(const struct engine *g, const struct attn *a, void *scratch)
{
    if (a->L <= FEW) {
        few_forward(a, g->threads, scratch);
        return;
    }
    const struct fused f = layout(a, scratch);
    const struct tasks n = tasks_of(&f);
    const int packs = n.keys + n.tables + n.biases;
    const int items = a->B * a->H * ((a->L + QUERIES - 1) / QUERIES);

    if (g->threads <= 1) {
        for (int t = 0; t < packs; t++)
            pack_task(&f, &n, t);
        for (int t = 0; t < items; t++)
            run(&f, 0, t);
        return;
    }
    /* The same heads stay with the same threads where that divides evenly: what one has packed and
     * written is in its caches. */
    const bool even = a->B * a->H % g->threads == 0 && a->B * a->Hkv % g->threads == 0;
#pragma omp parallel num_threads(g->threads)
    {
        const int worker = omp_get_thread_num();
#pragma omp for schedule(static, 1)
        for (int t = 0; t < packs; t++)
            pack_task(&f, &n, t);
        if (even) {
#pragma omp for schedule(static, 1)
            for (int t = 0; t < items; t++)
                run(&f, worker, t);
        } else {
#pragma omp for schedule(dynamic, 1)
            for (int t = 0; t < items; t++)
                run(&f, worker, t);
        }
    }
}
