/* SPDX-License-Identifier: MIT
 *
 * Attention of a few queries over many keys, as in generating one token at a time: bound by memory,
 * so every operand is read once, in place and in the order it lies in memory. Scores are dot
 * products along the head; VL of them are summed at once by a transpose. Keys are the outer loop,
 * heads the inner one, because heads lie side by side in a row. */

enum {
    FEW = 4,       /* queries, at most: above, packing pays */
    FEW_KEYS = 64, /* of a block: 64 rows of keys and values stay in L2 while heads pass by */
    FEW_COLS = 4,  /* vectors of output that stay in registers */
};

/* One query of one head. */
struct few_row {
    _Alignas(64) float qu[HEAD], qw[HEAD]; /* as in struct work, whole vectors, 0 behind dh */
    float o[HEAD];
    float top, sum;
};

/* acc[x] += q . rows[clamp(first + x, 0, last)], unsummed, for VL rows of d floats. */
VEC_INLINE void dots(vf acc[VL], const float *q, const float *rows, ptrdiff_t ld, int first,
                     int last, int d)
{
    const float *row[VL];
    int e = 0;

    UNROLL
    for (int x = 0; x < VL; x++)
        row[x] = rows + clamp_int(first + x, 0, last) * ld;
    for (; e + VL <= d; e += VL) {
        const vf y = vld(q + e);
        UNROLL
        for (int x = 0; x < VL; x++)
            acc[x] = vfma(y, vld(row[x] + e), acc[x]);
    }
    if (e < d) {
        const vf y = vld(q + e);
        const vmask m = vfirst(d - e);
        UNROLL
        for (int x = 0; x < VL; x++)
            acc[x] = vfma(y, vld_m(row[x] + e, m, v0()), acc[x]);
    }
}

/* Lane x is the sum of acc[x]. */
VEC_INLINE vf sum_each(vf acc[VL])
{
    vtranspose(acc);
    UNROLL
    for (int step = 1; step < VL; step *= 2)
        UNROLL
    for (int x = 0; x < VL; x += 2 * step)
        acc[x] = vadd(acc[x], acc[x + step]);
    return acc[0];
}

/* o += sum over x < n of p[x] v[x]: C vectors, `left` floats of them exist. */
VEC_INLINE void few_values(int C, float *o, const float *p, int n, const float *v, ptrdiff_t v_row,
                           int left)
{
    vf acc[FEW_COLS];
    const vmask tail = vfirst(min_int(VL, left - (C - 1) * VL));

    UNROLL
    for (int c = 0; c < C; c++)
        acc[c] = vld(o + c * VL);
    UNROLL4
    for (int x = 0; x < n; x++) {
        const vf y = v1(p[x]);
        UNROLL
        for (int c = 0; c < C - 1; c++)
            acc[c] = vfma(y, vld(v + c * VL), acc[c]);
        acc[C - 1] = vfma(y, vld_m(v + (C - 1) * VL, tail, v0()), acc[C - 1]);
        v += v_row;
    }
    UNROLL
    for (int c = 0; c < C; c++)
        vst(o + c * VL, acc[c]);
}

/* o [d, padded] += p [n] . v [n, v_row]. */
static void add_few(float *o, const float *p, int n, const float *v, ptrdiff_t v_row, int d)
{
    for (int e = 0; e < d; e += FEW_COLS * VL) {
        const int left = d - e;
        switch (min_int(FEW_COLS, (left + VL - 1) / VL)) {
        case 1:
            few_values(1, o + e, p, n, v + e, v_row, left);
            break;
        case 2:
            few_values(2, o + e, p, n, v + e, v_row, left);
            break;
        case 3:
            few_values(3, o + e, p, n, v + e, v_row, left);
            break;
        default:
            few_values(FEW_COLS, o + e, p, n, v + e, v_row, left);
        }
    }
}

/* o += p . rel_v for a block whose first key has row r of n_rel: far keys share row 0 and future
 * ones the last, so one row gets the sum of their p. */
static void add_few_relative(float *o, const float *p, int n, const float *rel_v, int r, int n_rel,
                             int d)
{
    const int near = clamp_int(-r, 0, n), future = clamp_int(n_rel - r, near, n);
    float far_sum = 0.0f, future_sum = 0.0f;

    for (int x = 0; x < near; x++)
        far_sum += p[x];
    for (int x = future; x < n; x++)
        future_sum += p[x];
    add_few(o, &far_sum, 1, rel_v, d, d);
    add_few(o, p + near, future - near, rel_v + (ptrdiff_t)max_int(r + near, 0) * d, d, d);
    add_few(o, &future_sum, 1, rel_v + (ptrdiff_t)(n_rel - 1) * d, d, d);
}

/* Query i of head h in sequence b against keys [j, j+n). */
static void few_step(const struct attn *a, struct few_row *w, int b, int h, int i, int j, int n)
{
    const int kv = h / (a->H / a->Hkv), n_rel = a->R + a->Rf, own = a->M + i;
    const int window = attn_window(a, h);
    const int r = j + a->R - 1 - own, vectors = (n + VL - 1) / VL; /* table row of key j */
    const float *k = a->k + b * a->k_at.batch + j * a->k_at.row + kv * a->dh;
    const float *v = a->v + b * a->v_at.batch + j * a->v_at.row + kv * a->dh;
    float s[FEW_KEYS + VL];

    for (int x = 0; x < n; x += VL) {
        vf acc[VL];
        UNROLL
        for (int y = 0; y < VL; y++)
            acc[y] = v0();
        dots(acc, w->qu, k, a->k_at.row, x, n - 1, a->dh);
        if (a->rel_k) {
            const float *rel = a->rel_k + h * a->rel_head;
            const float *next = rel + (ptrdiff_t)clamp_int(r + x + FEW_KEYS, 0, n_rel - 1) * a->dh;
            for (int e = 0; e < VL * a->dh; e += 16) /* a stream per head is too many to be seen */
                __builtin_prefetch(next + e, 0, 2);
            dots(acc, w->qw, rel, a->dh, r + x, n_rel - 1, a->dh);
        }
        vst(s + x, sum_each(acc));
    }
    for (int x = 0; a->bias && x < n; x++)
        s[x] += LOG2E * a->bias[h * a->bias_head + clamp_int(r + x, 0, n_rel - 1)];
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
    add_few(w->o, s, n, v, a->v_at.row, a->dh);
    if (a->rel_v)
        add_few_relative(w->o, s, n, a->rel_v + h * a->rel_head, r, n_rel, a->dh);
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
    for (int j = lo; j < hi; j += FEW_KEYS)
        for (int t = 0; t < n; t++) {
            const int window = attn_window(a, h0 + t / L), first = a->M + t % L - window + 1;
            if (!window || j + FEW_KEYS > first) /* else this head's window begins later */
                few_step(a, &rows[t], b, h0 + t / L, t % L, j, min_int(FEW_KEYS, hi - j));
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

/* A call's items: sequences x shares of the heads, so that every thread has one, and where there
 * are more threads than heads x parts of the keys. A part gives a partial softmax, joined
 * afterwards: then there is at most an item a thread, and its number is that of its rows. */
struct few_items {
    int shares, parts, n;
    int lo, hi; /* keys that any query sees */
};

static struct few_items few_items_of(const struct attn *a, int threads)
{
    const int shares = clamp_int((threads + a->B - 1) / a->B, 1, a->H);
    const int lo = attn_hull(a, 0, a->H, 0, a->L).from, hi = a->M + a->L;
    const int blocks = (hi - lo + FEW_KEYS - 1) / FEW_KEYS;
    const int parts = clamp_int(threads / (a->B * shares), 1, max_int(1, blocks));

    return (struct few_items){shares, parts, a->B * shares * parts, lo, hi};
}

static void few_item(const struct attn *a, const struct few_items *n, struct few_row *rows, int t)
{
    const int part = t % n->parts, share = t / n->parts % n->shares, b = t / n->parts / n->shares;
    const int h0 = a->H * share / n->shares, h1 = a->H * (share + 1) / n->shares;
    const int blocks = (n->hi - n->lo + FEW_KEYS - 1) / FEW_KEYS;
    const int from = n->lo + blocks * part / n->parts * FEW_KEYS;
    const int to = min_int(n->hi, n->lo + blocks * (part + 1) / n->parts * FEW_KEYS);

    few_heads(a, rows, b, h0, h1, from, to);
    for (int x = 0; n->parts == 1 && x < (h1 - h0) * a->L; x++)
        few_finish(a, &rows[x], b, h0 + x / a->L, x % a->L);
}

/* Heads are shares of one here: the parts of sequence b's head h. */
static void few_join_parts(const struct attn *a, const struct few_items *n, struct few_row *rows,
                           int b, int h)
{
    const ptrdiff_t room = (ptrdiff_t)few_room(a);
    struct few_row *first = rows + ((ptrdiff_t)b * a->H + h) * n->parts * room;

    for (int i = 0; i < a->L; i++) {
        for (int part = 1; part < n->parts; part++)
            few_join(first + i, first + part * room + i, a->dh);
        few_finish(a, first + i, b, h, i);
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
