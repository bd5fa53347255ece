/* SPDX-License-Identifier: MIT
 *
 * Attention of a few queries over many keys, as in generating one token at a time: bound by memory,
 * so keys and values are read once, in place and in the order they lie in memory. A row is finished
 * before the next is begun, all heads of it, because heads lie side by side: one stream like that
 * is what the hardware fetches ahead. Two rows at a time, or one head down its column, save loads
 * from L1 but take up to twice as long where operands exceed L3. */

enum {
    FEW = 4,        /* queries, at most: above, packing pays */
    FEW_KEYS = 256, /* of a block: long, for its end stops the stream; their scores stay in L1 */
    FEW_PART = 128, /* keys, at least, that make a thread's own part */
};

/* One query of one head. */
struct few_row {
    _Alignas(64) float qu[HEAD], qw[HEAD]; /* as in struct work, whole vectors, 0 behind dh */
    float o[HEAD];
    float s[FEW_KEYS + VL]; /* of a block: scores, then 2^(s - top) */
    float top, sum;
    ptrdiff_t kv; /* floats in front of its head in a row of keys or values */
};

/* q . k; q is 0 behind d. */
VEC_INLINE float few_dot(const float *q, const float *k, int d)
{
    vf acc = v0();
    int e = 0;

    UNROLL4
    for (; e + VL <= d; e += VL)
        acc = vfma(vld(q + e), vld(k + e), acc);
    if (e < d)
        acc = vfma(vld(q + e), vld_n(k + e, d - e), acc);
    return vsum(acc);
}

/* o += p v; o is padded to whole vectors. */
VEC_INLINE void few_add(float *o, float p, const float *v, int d)
{
    int e = 0;

    UNROLL4
    for (; e + VL <= d; e += VL)
        vst(o + e, vfma(v1(p), vld(v + e), vld(o + e)));
    if (e < d)
        vst(o + e, vfma(v1(p), vld_n(v + e, d - e), vld(o + e)));
}

/* s[x] += q . k of n queries for row x of a block's keys. */
static void few_key(struct few_row *w, int n, int x, const float *k, int d)
{
    for (int t = 0; t < n; t++)
        w[t].s[x] += few_dot(w[t].qu, k + w[t].kv, d);
}

/* o += s[x] v of n queries for row x of its values. */
static void few_value(struct few_row *w, int n, int x, const float *v, int d)
{
    for (int t = 0; t < n; t++)
        few_add(w[t].o, w[t].s[x], v + w[t].kv, d);
}

/* Keys [j, j+n) of a block as query i's tables see them: far ones, before `near`, share row 0, and
 * from `future` on they share the last; between, key j + x has row r + x. */
struct few_span {
    int r, last, near, future;
};

static struct few_span few_span_of(const struct attn *a, int i, int j, int n)
{
    const int n_rel = a->R + a->Rf, r = j + a->R - 1 - a->M - i;
    const int near = clamp_int(-r, 0, n);

    return (struct few_span){r, n_rel - 1, near, clamp_int(n_rel - r, near, n)};
}

/* s = what positions add to the scores of query i of head h and keys [j, j+n). */
static void few_relative_scores(const struct attn *a, struct few_row *w, int h, int i, int j, int n)
{
    const struct few_span t = few_span_of(a, i, j, n);
    const int d = a->dh;
    float *s = w->s, far = 0.0f, future = 0.0f;

    if (a->rel_k) {
        const float *rel = a->rel_k + h * a->rel_head;
        if (t.near > 0)
            far = few_dot(w->qw, rel, d);
        for (int x = t.near; x < t.future; x++)
            s[x] = few_dot(w->qw, rel + (ptrdiff_t)(t.r + x) * d, d);
        if (t.future < n)
            future = few_dot(w->qw, rel + (ptrdiff_t)t.last * d, d);
    } else {
        for (int x = t.near; x < t.future; x++)
            s[x] = 0.0f;
    }
    for (int x = 0; x < t.near; x++)
        s[x] = far;
    for (int x = t.future; x < n; x++)
        s[x] = future;
    for (int x = 0; a->bias && x < n; x++)
        s[x] += LOG2E * a->bias[h * a->bias_head + clamp_int(t.r + x, 0, t.last)];
}

/* o += p . rel_v likewise; a shared row gets the sum of its keys' p. */
static void few_relative_values(const struct attn *a, struct few_row *w, int h, int i, int j, int n)
{
    const struct few_span t = few_span_of(a, i, j, n);
    const float *rel = a->rel_v + h * a->rel_head;
    const int d = a->dh;
    float far = 0.0f, future = 0.0f;

    for (int x = 0; x < t.near; x++)
        far += w->s[x];
    for (int x = t.future; x < n; x++)
        future += w->s[x];
    few_add(w->o, far, rel, d);
    for (int x = t.near; x < t.future; x++)
        few_add(w->o, w->s[x], rel + (ptrdiff_t)(t.r + x) * d, d);
    few_add(w->o, future, rel + (ptrdiff_t)t.last * d, d);
}

/* s = 2^(s - top) for query i of head h and keys [j, j+n), 0 where it does not see them; top, sum
 * and o are brought up to date. */
static void few_soften(const struct attn *a, struct few_row *w, int h, int i, int j, int n)
{
    const int window = attn_window(a, h), own = a->M + i, vectors = (n + VL - 1) / VL;
    float *s = w->s;

    fill_outside(s, window ? clamp_int(own - window + 1 - j, 0, n) : 0,
                 a->causal ? min_int(own + 1 - j, n) : n, vectors, v1(-INFINITY));

    vf block_top = vld(s), sum = v0();
    for (int x = VL; x < n; x += VL)
        block_top = vmax(block_top, vld(s + x));
    const vf top = vmax(v1(w->top), v1(vmax_lanes(block_top)));
    const vf alpha = vexp2(vsub(v1(w->top), top));
    for (int x = 0; x < n; x += VL) {
        const vf e = vexp2(vsub(vld(s + x), top));
        vst(s + x, e);
        sum = vadd(sum, e);
    }
    vst_n(&w->top, 1, top);
    vst_n(&w->sum, 1, vfma(v1(w->sum), alpha, v1(vsum(sum))));
    for (int e = 0; e < a->dh; e += VL)
        vst(w->o + e, vmul(vld(w->o + e), alpha));
}

static void few_start(const struct attn *a, struct few_row *w, int b, int h, int i)
{
    const float *q = a->q + b * a->q_at.batch + i * a->q_at.row + h * a->dh;
    const vf factor = v1(a->scale * LOG2E);

    for (int e = 0; e < a->dh; e += VL) {
        const int left = a->dh - e;
        const vf x = vld_upto(q + e, left, v0());
        const vf u = a->u ? vld_upto(a->u + h * a->dh + e, left, v0()) : v0();
        const vf y = a->w ? vld_upto(a->w + h * a->dh + e, left, v0()) : v0();
        vst(w->qu + e, vmul(vadd(x, u), factor));
        vst(w->qw + e, vmul(vadd(x, y), factor));
        vst(w->o + e, v0());
    }
    w->top = LOWEST;
    w->sum = 0.0f;
    w->kv = h / (a->H / a->Hkv) * a->dh;
}

static void few_finish(const struct attn *a, const struct few_row *w, int b, int h, int i)
{
    float *o = a->o + b * a->o_at.batch + i * a->o_at.row + h * a->dh;
    const vf share = v1(w->sum == 0.0f ? 0.0f : 1.0f / w->sum);

    for (int e = 0; e < a->dh; e += VL)
        vst_upto(o + e, a->dh - e, vmul(vld(w->o + e), share));
    if (a->lse)
        a->lse[((ptrdiff_t)b * a->H + h) * a->L + i] =
            w->sum == 0.0f ? -INFINITY : LN2 * w->top + logf(w->sum);
}

/* All queries of heads [h0, h1) in sequence b against keys [lo, hi); `rows` has room for L of
 * each. */
static void few_heads(const struct attn *a, struct few_row *rows, int b, int h0, int h1, int lo,
                      int hi)
{
    const int L = a->L, n = (h1 - h0) * L;

    for (int t = 0; t < n; t++)
        few_start(a, &rows[t], b, h0 + t / L, t % L);
    for (int j = lo; j < hi; j += FEW_KEYS) {
        const int keys = min_int(FEW_KEYS, hi - j);
        const float *k = a->k + b * a->k_at.batch + j * a->k_at.row;
        const float *v = a->v + b * a->v_at.batch + j * a->v_at.row;
        for (int t = 0; t < n; t++)
            few_relative_scores(a, &rows[t], h0 + t / L, t % L, j, keys);
        for (int x = 0; x < keys; x++)
            few_key(rows, n, x, k + x * a->k_at.row, a->dh);
        for (int t = 0; t < n; t++) {
            few_soften(a, &rows[t], h0 + t / L, t % L, j, keys);
            if (a->rel_v)
                few_relative_values(a, &rows[t], h0 + t / L, t % L, j, keys);
        }
        for (int x = 0; x < keys; x++)
            few_value(rows, n, x, v + x * a->v_at.row, a->dh);
    }
}

/* Make w the row that has seen the keys of both. */
static void few_join(struct few_row *w, const struct few_row *other, int d)
{
    const vf top = vmax(v1(w->top), v1(other->top));
    const vf mine = vexp2(vsub(v1(w->top), top)), theirs = vexp2(vsub(v1(other->top), top));

    for (int e = 0; e < d; e += VL)
        vst(w->o + e, vfma(vld(other->o + e), theirs, vmul(vld(w->o + e), mine)));
    vst_n(&w->sum, 1, vfma(v1(other->sum), theirs, vmul(v1(w->sum), mine)));
    vst_n(&w->top, 1, top);
}

/* Rows that each thread needs room for. */
static size_t few_room(const struct attn *a) { return (size_t)a->H * (size_t)min_int(a->L, FEW); }

/* A call's items: sequences x shares of the heads x parts of the keys, so that every thread has
 * one. Parts come first: whole rows are read in the order they lie. A part gives a partial softmax,
 * joined afterwards: then there is at most an item a thread, and its number is that of its rows. */
struct few_items {
    int shares, parts, n;
    int lo, hi; /* keys that any query sees */
};

static struct few_items few_items_of(const struct attn *a, int threads)
{
    const int lo = attn_hull(a, 0, a->H, 0, a->L).from, hi = a->M + a->L;
    const int parts = clamp_int(threads / a->B, 1, max_int(1, (hi - lo) / FEW_PART));
    const int each = a->B * parts; /* items of a share */
    const int shares = clamp_int(parts > 1 ? threads / each : (threads + each - 1) / each, 1, a->H);

    return (struct few_items){shares, parts, each * shares, lo, hi};
}

static void few_item(const struct attn *a, const struct few_items *n, struct few_row *rows, int t)
{
    const int part = t % n->parts, share = t / n->parts % n->shares, b = t / n->parts / n->shares;
    const int h0 = a->H * share / n->shares, h1 = a->H * (share + 1) / n->shares;
    const int from = n->lo + (int)((int64_t)(n->hi - n->lo) * part / n->parts);
    const int to = n->lo + (int)((int64_t)(n->hi - n->lo) * (part + 1) / n->parts);

    few_heads(a, rows, b, h0, h1, from, to);
    for (int x = 0; n->parts == 1 && x < (h1 - h0) * a->L; x++)
        few_finish(a, &rows[x], b, h0 + x / a->L, x % a->L);
}

/* The parts of sequence b's head h. */
static void few_join_parts(const struct attn *a, const struct few_items *n, struct few_row *rows,
                           int b, int h)
{
    const ptrdiff_t room = (ptrdiff_t)few_room(a);
    const int share = ((h + 1) * n->shares - 1) / a->H, h0 = a->H * share / n->shares;
    struct few_row *first = rows + ((ptrdiff_t)b * n->shares + share) * n->parts * room;

    for (int i = 0; i < a->L; i++) {
        struct few_row *w = first + (ptrdiff_t)(h - h0) * a->L + i;
        for (int part = 1; part < n->parts; part++)
            few_join(w, w + part * room, a->dh);
        few_finish(a, w, b, h, i);
    }
}

static void few_forward(const struct attn *a, int threads, struct few_row *rows)
{
    const ptrdiff_t room = (ptrdiff_t)few_room(a);
    const struct few_items n = few_items_of(a, threads);

    if (threads <= 1) {
        for (int t = 0; t < n.n; t++)
            few_item(a, &n, rows, t);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (int t = 0; t < n.n; t++)
            few_item(a, &n, rows + (n.parts > 1 ? t : omp_get_thread_num()) * room, t);
#pragma omp for schedule(static, 1)
        for (int t = 0; t < (n.parts > 1 ? a->B * a->H : 0); t++)
            few_join_parts(a, &n, rows, t / a->H, t % a->H);
    }
}
