/* SPDX-License-Identifier: MIT
 *
 * Fused attention: softmax and both products in one pass over the keys, with the scores never
 * larger than a block. Included once per instruction set.
 *
 * Keys are packed once per call into panels [d][VL], values and tables into rows of whole vectors.
 * A work item is up to QUERIES rows of one head; it walks the keys in blocks and keeps, for each
 * row, the running maximum, sum and output (online softmax, base 2). A relative table enters twice:
 *
 *   scores  for each group of rows the band (q + w) . rel_k over the block's distances is computed
 *           with the same kernel; row r of the block starts its accumulators from it at offset -r,
 *           so the relative shift costs no instruction
 *   values  p . rel_v is the value kernel over p with a row stride one longer
 *
 * If keys beyond the table's last distance share its row 0 (R < K), row 0 is subtracted from the
 * table: softmax is invariant to a constant along a row, and the output gets rel_v[0] once, because
 * p sums to 1. Such far keys then cost nothing. */
#include "attn_tile.inc.c"

#include "attn_seen.inc.c"

#include "attn_few.inc.c"
#include "attn_pack.inc.c"

/* ---- one work item ------------------------------------------------------------------------ */

#include "attn_item.inc.c"

/* w->o += w->s . rel_v for group g and keys [j, j+n); the vectors before and after s are 0. */
static void add_positions(const struct item *t, int g, int j, int n)
{
    const int r = table_row(t, g, j);
    const int from = max_int(r - (ROWS - 1), t->f->far_shared ? 1 : 0);
    const int to = min_int(r + n, t->f->n_rel);
    int rows[TILES];

    for (int x = 0; x < TILES; x++)
        rows[x] = to - from;
    if (from < to)
        add_relative_values(t->w->o + g * t->w->ld, t->w->ld, t->w->s[0] + VL + from - r, from,
                            rows, &t->rel_v);
    if (!t->f->a->causal)
        add_future_values(t, g, r, n);
}

/* Where output i of the item goes. */
static float *output_row(const struct item *t, int i)
{
    const struct attn *a = t->f->a;

    return a->o + t->b * a->o_at.batch + (t->i0 + i) * a->o_at.row + t->h * t->f->dv;
}

/* share[r] = 1 / sum of row r of group g, 0 for a row that sees nothing. */
static void row_shares(const struct work *w, int g, float share[ROWS])
{
    for (int r = 0; r < ROWS; r++) {
        const float sum = vsum(vld(w->sum[g + r]));
        share[r] = sum == 0.0f ? 0.0f : 1.0f / sum;
    }
}

/* Is what finish does for group g no more than a factor for each of ROWS whole rows? The values
 * then go straight to the output, which saves 2 % at 128 queries; with the few registers of AVX2
 * it costs up to 2 % elsewhere. */
static bool ends_in_values(const struct item *t, int g)
{
    return VEC_REGISTERS == 32 && t->f->dv % VL == 0 && t->n - g >= ROWS && !t->rel_v.at &&
           !t->f->a->lse;
}

/* One group of rows against keys [j, j+n); fresh: its first block, ends: its last, if nothing
 * but the division by the sums is left. Forced inline although it has two callers: as functions the
 * parts cost 2 % at 64 queries. */
VEC_INLINE void step(const struct item *t, int g, bool fresh, bool ends, int j, int n)
{
    struct work *w = t->w;
    float alpha[VL], share[VL];
    int seen[TILES];
    struct outputs out = in_place(w->o + g * w->ld, w->ld, alpha);

    group_scores(t, g, j, n, v1(-INFINITY), seen);
    softmax_block(w, g, (n + VL - 1) / VL, fresh, alpha, t->rel_v.at != NULL);
    if (ends) {
        row_shares(w, g, share);
        out.to = output_row(t, g);
        out.to_ld = t->f->a->o_at.row;
        out.share = share;
    }
    add_values(fresh, out, weights_of(w), j, seen, &t->v);
    if (t->rel_v.at)
        add_positions(t, g, j, n);
}

/* Keys that any of queries [i, i+n) sees: [*lo, *hi). */
static void visible(const struct item *t, int i, int n, int *lo, int *hi)
{
    const struct attn *a = t->f->a;

    *lo = t->window ? max_int(0, a->M + i - t->window + 1) : 0;
    *hi = a->causal ? min_int(attn_keys(a), a->M + i + n) : attn_keys(a);
}

/* Divide group g's rows by their sums, add the shared far row's part and store them. */
static void finish(const struct item *t, int g)
{
    const struct attn *a = t->f->a;
    const float *far_v = t->f->far_shared && a->rel_v ? a->rel_v + t->h * a->rel_head : NULL;
    const int dv = t->f->dv;

    for (int i = g; i < min_int(g + ROWS, t->n); i++) {
        float *o = output_row(t, i);
        const float sum = vsum(vld(t->w->sum[i]));
        const vf share = v1(sum == 0.0f ? 0.0f : 1.0f / sum);
        const float *unscaled = t->w->o + i * t->w->ld;
        for (int e = 0; e < dv; e += VL) {
            vf x = vmul(vld(unscaled + e), share);
            if (far_v && sum != 0.0f)
                x = vadd(x, vld_upto(far_v + e, dv - e, v0()));
            vst_upto(o + e, dv - e, x);
        }
        if (!a->lse)
            continue;
        const float far = attn_gain(a) * far_score(t, i);
        a->lse[((ptrdiff_t)t->b * a->H + t->h) * a->L + t->i0 + i] =
            sum == 0.0f ? -INFINITY : LN2 * (far + t->w->top[i]) + logf(sum);
    }
}

/* Groups before whose window the keys end. */
static void finish_unseeing(const struct item *t)
{
    for (int g = 0; g < t->n; g += ROWS) {
        int from, to;
        visible(t, t->i0 + g, min_int(ROWS, t->n - g), &from, &to);
        if (from / VL * VL < to)
            continue;
        fetch_queries(t, g);
        init_rows(t, g);
        finish(t, g);
    }
}

/* Each query sees one contiguous range of keys. */
static void run_ranges(const struct item *t)
{
    const int block = t->i0 / QUERIES * QUERIES;
    int lo, hi;

    if (t->window && !t->f->a->causal)
        finish_unseeing(t);
    /* Keys are cut where a block of QUERIES cuts them, so that a lower one sums as that does. */
    visible(t, block, t->i0 - block + t->n, &lo, &hi);
    for (int j = lo / VL * VL; j < hi; j += KEYS)
        for (int g = 0; g < t->n; g += ROWS) {
            int from, to;
            visible(t, t->i0 + g, min_int(ROWS, t->n - g), &from, &to);
            const int first = max_int(j, from / VL * VL), last = min_int(j + KEYS, to);
            if (first >= last)
                continue;
            const bool begins = first <= from;
            if (begins)
                fetch_queries(t, g);
            if (begins && t->sink_k)
                init_rows(t, g);
            const bool ends = last == to && ends_in_values(t, g);
            step(t, g, begins && !t->sink_k, ends, first, last - first);
            if (last == to && !ends)
                finish(t, g);
        }
}

/* With a mask, a group's visible keys may have gaps or be none at all. */
static void run_seen(const struct item *t)
{
    const int K = t->f->K;

    for (int g = 0; g < t->n; g += ROWS) {
        fetch_queries(t, g);
        init_rows(t, g);
    }
    for (int j = 0; j < K; j += KEYS)
        for (int g = 0; g < t->n; g += ROWS)
            for (struct range r = {0, j}; next_visited(t->seen, g, min_int(j + KEYS, K), &r);)
                step(t, g, false, false, r.from, r.to - r.from);
    for (int g = 0; g < t->n; g += ROWS)
        finish(t, g);
}

static void run_item(const struct item *t)
{
    for (int m = 0; m < ROWS; m++)
        vst(t->w->s[m], v0()); /* the vector before the scores, read by table row */
    if (t->seen)
        run_seen(t);
    else
        run_ranges(t);
}

/* `height` queries from i0 on, or those that are left, of head h in sequence b. Unless `copy`, they
 * are read in place if nothing is added to them and the groups are whole. */
static struct item item_of(const struct fused *f, struct work *w, int b, int h, int i0, int height,
                           bool copy)
{
    const struct attn *a = f->a;
    const int n = min_int(height, a->L - i0);
    const ptrdiff_t first = b * a->q_at.batch + i0 * a->q_at.row + h * a->dh;
    const struct queries there = {a->no_content ? NULL : a->q + first, a->q_at.row};
    const struct queries qu = {w->qu, w->ld}, qw = {w->qw, w->ld};
    const bool copied = copy || n % ROWS || a->no_content || PER_LANE == 2;
    const bool copy_u = copied || a->u, copy_w = copied || a->w;
    const bool same = !a->rel_k || a->u == a->w;
    const int kv = h / (a->H / a->Hkv), vectors = f->v_pad / VL;
    const struct values packed = {.at = f->v + ((ptrdiff_t)b * a->Hkv + kv) * f->v_head,
                                  .rows = lanes_for(f->K),
                                  .vectors = vectors};
    const struct values in_place = {.at = a->v ? a->v + b * a->v_at.batch + kv * f->dv : NULL,
                                    .step = a->v_at.row,
                                    .rows = f->K,
                                    .vectors = vectors};

    if (a->mask)
        compute_seen(&w->seen, a, h, i0, n);
    return (struct item){
        .f = f,
        .w = w,
        .b = b,
        .h = h,
        .i0 = i0,
        .n = n,
        .window = attn_window(a, h),
        .adjusts = a->soft_cap != 0 || a->add.at || a->fade.at || a->scores_out || a->gain != 0,
        .seen = a->mask ? &w->seen : NULL,
        .qu = copy_u ? qu : there,
        .qw = same ? (copy_u ? qu : there) : (copy_w ? qw : there),
        .k = f->k + ((ptrdiff_t)b * a->Hkv + kv) * f->k_head,
        .v = values_in_place(f) ? in_place : packed,
        .rel_k = a->rel_k ? f->rel_k + h * f->rel_k_head : NULL,
        .rel_v = {.at = a->rel_v ? f->rel_v + h * f->rel_v_head : NULL,
                  .rows = f->n_rel,
                  .vectors = vectors},
        .bias = a->bias ? f->bias + h * f->bias_head : NULL,
        .sink_k = a->sinks ? f->sink_k + h * f->sink_k_head : NULL,
        .sink_v = {.at = a->sinks ? f->sink_v + h * f->sink_v_head : NULL,
                   .rows = lanes_for(a->sinks),
                   .vectors = vectors},
    };
}

/* Item t of the call in a worker's work space. */
static void run(const struct fused *f, const struct split_attn *s, int worker, int t)
{
    const struct split_attn_item at = split_attn_item(s, t);
    const struct item item = item_of(f, f->work + worker, at.head / f->a->H, at.head % f->a->H,
                                     at.first, s->height, false);

    run_item(&item);
}

/* ---- the implementation ------------------------------------------------------------------- */

static bool fused_accepts(const struct attn *a, const char **why_not)
{
    if (a->sinks && a->rel_v) {
        *why_not = "does not support sinks with relative values";
        return false;
    }
    if (a->soft_cap != 0 && (a->rel_k || a->bias)) { /* which are in the product already */
        *why_not = "does not support a soft cap with relative keys or a bias";
        return false;
    }
    if (PER_LANE == 2 && !a->bf16) {
        *why_not = "multiplies numbers of bf16 only";
        return false;
    }
    return attn_supports(a, TERMS_FUSED, why_not);
}

static struct attn_need fused_need(const struct attn *a, int threads)
{
    const struct fused f = layout(a, NULL);
    const size_t each =
        sizeof(struct work) + work_rows(a) * sizeof(float) + seen_words(a) * sizeof(uint64_t);
    const size_t many = f.floats * sizeof(float) + (size_t)threads * each;
    const size_t few = few_fits(a) ? (size_t)threads * few_bytes(a) : 0;

    return (struct attn_need){.scratch_bytes = few > many ? few : many};
}

static void fused_forward(const struct engine *g, const struct attn *a, void *scratch)
{
    if (a->L <= FEW && few_fits(a) && !a->unrounded) { /* it reads keys and values as they are */
        few_forward(a, g->threads, scratch);
        return;
    }
    const struct fused f = layout(a, scratch);
    const struct tasks n = tasks_of(&f);
    const int packs = tasks_count(&n);
    const struct split_attn s = split_attn(a, QUERIES, ROWS, g->threads);

    float *const rows = (float *)(void *)(f.work + g->threads);
    uint64_t *const bits = (uint64_t *)(void *)(rows + (size_t)g->threads * work_rows(a));
    for (int t = 0; t < g->threads; t++) {
        work_start(&f.work[t], a, rows + (size_t)t * work_rows(a));
        if (a->mask)
            seen_start(&f.work[t].seen, a, bits + (size_t)t * seen_words(a));
    }
    if (g->threads <= 1) {
        for (int t = 0; t < packs; t++)
            pack_task(&f, &n, t);
        for (int t = 0; t < s.items; t++)
            run(&f, &s, 0, t);
        return;
    }
#pragma omp parallel num_threads(g->threads)
    {
        const int worker = omp_get_thread_num();
#pragma omp for schedule(static, 1)
        for (int t = 0; t < packs; t++)
            pack_task(&f, &n, t);
        if (s.fixed) {
#pragma omp for schedule(static, 1)
            for (int t = 0; t < s.items; t++)
                run(&f, &s, worker, t);
        } else {
#pragma omp for schedule(dynamic, 1)
            for (int t = 0; t < s.items; t++)
                run(&f, &s, worker, t);
        }
    }
}
