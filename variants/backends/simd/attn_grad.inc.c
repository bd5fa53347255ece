/* SPDX-License-Identifier: MIT
 *
 * Backward of fused attention, included after attn.inc.c. The scores are recomputed, block by
 * block, with the forward kernels; the saved lse turns them into probabilities at once:
 *
 *   P = 2^(S - lse)      G = P (dO V^T + shift(dO rel_v^T) - delta)      delta_i = dO_i . O_i
 *   dQ = G K + shift(G) rel_k      dK += G^T (Q + u)      d rel_k += shift(G)^T (Q + w)
 *                                  dV += P^T dO           d rel_v += shift(P)^T dO
 *
 * dO V^T is a score product of dO with values, and dQ an output over keys: attention with keys and
 * values swapped, so a second `struct fused` with swapped operands computes both. The other
 * products run along the queries and accumulate into a thread's own rows.
 *
 * Factors: packed keys carry scale log2 e and packed values ln 2, so G carries ln 2, and its
 * products lack scale log2 e, which is applied when results are stored. Far rows are subtracted as
 * in forward: G sums to 0 along a row, so they do not contribute to dQ either.
 *
 * An item is a (sequence, key head), whose queries one thread takes in order, so results do not
 * depend on the number of threads. The terms' gradients are kept per (sequence, head) and summed in
 * that order at the end. */

#include "attn_grad_sums.inc.c"
#include "variants/backends/attn_sums.h"

struct grad_work {
    struct work x; /* as in forward; x.o accumulates G k, x.band is cap' if scores have a cap */
    struct work y; /* swapped: y.qu is dO; y.o accumulates G rel_k */
    _Alignas(64) float p[QUERIES][LD], g[QUERIES][LD]; /* for a block of keys, VL floats in */
    _Alignas(64) float lse[QUERIES], delta[QUERIES];   /* adjusted for subtracted far rows */
    _Alignas(64) float total[QUERIES][VL];             /* row sums of g, in VL partial sums */
};

/* One call. */
struct backward {
    const struct attn *a; /* without scores_out */
    const struct attn_grad *d;
    struct attn again, swapped; /* the target of `a`; keys and values swapped */
    struct fused x, y;
    bool adjusts;           /* g has more parts than p (dA - delta) */
    float *terms;           /* [B, H, terms_floats] */
    float *sums;            /* [threads, sums_floats]: dK and dV of one head */
    struct grad_work *work; /* [threads] */
    size_t terms_floats, sums_floats;
};

/* ---- work space --------------------------------------------------------------------------- */

/* Keys and values swapped. */
static struct attn swap_operands(const struct attn *a, const float *d_o)
{
    struct attn s = *a;

    s.q = d_o;
    s.q_at = a->o_at;
    s.k = a->v;
    s.k_at = a->v_at;
    if (!a->no_content) { /* otherwise dQ is not computed and s.v is unused */
        s.v = a->k;
        s.v_at = a->k_at;
    }
    s.no_content = false;
    s.mask = NULL; /* an item shares the other's bits */
    s.add.at = NULL;
    s.fade.at = NULL;
    s.scores_out = NULL;
    s.gain = 0;
    s.dh = attn_dv(a);
    s.dv = a->dh;
    s.soft_cap = 0;
    s.sink_k = a->sink_v;
    s.sink_v = a->sink_k;
    s.sink_logit = NULL;
    s.rel_k = a->rel_v;
    s.rel_v = a->rel_k;
    s.u = s.w = s.bias = NULL;
    s.scale = LN2 * LN2; /* the packed values' factor is that times log2 e: ln 2 */
    return s;
}

/* Rows of a sum, including those that tiles of TILE_ROWS may write past its end. */
static size_t sum_rows(int n) { return round_up((size_t)n, TILE_ROWS) + TILE_ROWS; }

static struct term_sums terms_in(const struct backward *c, float *base, size_t *floats)
{
    const size_t d = (size_t)c->x.d_pad, table = sum_rows(c->x.n_rel) * d;
    size_t at = 0;
    struct term_sums t = {.u = take(&at, base, d), .w = take(&at, base, d)};

    if (c->a->rel_k)
        t.rel_k = take(&at, base, table);
    if (c->a->rel_v)
        t.rel_v = take(&at, base, table);
    if (c->a->bias)
        t.bias = take(&at, base, (size_t)c->x.n_rel + 2 * VL);
    if (c->a->sinks) {
        t.sink_k = take(&at, base, sum_rows(c->a->sinks) * d);
        t.sink_v = take(&at, base, sum_rows(c->a->sinks) * (size_t)c->x.v_pad);
        t.sink_logit = take(&at, base, (size_t)c->a->sinks + VL);
    }
    if (floats)
        *floats = at;
    return t;
}

/* Lay out the scratch of c->a; base = NULL only counts. Returns its size in bytes. */
static size_t lay_out_backward(struct backward *c, int threads, float *base)
{
    c->x = layout(c->a, base);
    size_t at = c->x.floats;
    c->y = layout(&c->swapped, base ? base + at : NULL);
    c->y.seen_by = c->a;
    at += c->y.floats;
    terms_in(c, NULL, &c->terms_floats);
    c->sums_floats = sum_rows(c->x.K) * (size_t)(c->x.d_pad + c->x.v_pad);
    c->terms = take(&at, base, (size_t)c->a->B * (size_t)c->a->H * c->terms_floats);
    c->sums = take(&at, base, (size_t)threads * c->sums_floats);
    c->work = base ? (struct grad_work *)(void *)(base + at) : NULL;
    return at * sizeof(float) +
           (size_t)threads * (sizeof(struct grad_work) + 2 * work_rows(c->a) * sizeof(float) +
                              seen_words(c->a) * sizeof(uint64_t));
}

static struct backward backward_of(const struct attn *a, const struct attn_grad *d)
{
    struct backward c = {.d = d, .again = *a};

    if (a->no_content) /* values stand where keys would, and are as wide as they are */
        c.again.dh = attn_dv(a);
    c.swapped = swap_operands(&c.again, d ? d->d_o : NULL);
    c.again.scores_out = NULL;
    return c;
}

/* ---- one item ----------------------------------------------------------------------------- */

#include "attn_grad_group.inc.c"

/* dQ of the item, and its parts of the gradients of u and w. */
static void finish_queries(const struct backward *c, const struct item *x,
                           const struct grad_work *w, struct term_sums t)
{
    const struct attn *a = c->a;
    const vf factor = v1(c->x.factor);

    for (int i = 0; !a->no_content && i < x->n; i++) {
        float *to = c->d->d_q + x->b * a->q_at.batch + (x->i0 + i) * a->q_at.row + x->h * a->dh;
        for (int e = 0; e < a->dh; e += VL) {
            const vf by_key = vmul(factor, vld(w->x.o + i * w->x.ld + e));
            const vf by_row = vmul(factor, vld(w->y.o + i * w->y.ld + e));
            vst_upto(to + e, a->dh - e, vadd(by_key, by_row));
            vst(t.u + e, vadd(vld(t.u + e), by_key));
            vst(t.w + e, vadd(vld(t.w + e), by_row));
        }
    }
}

/* Queries from i0 on; d_k and d_v are the head's sums by key. */
static void grad_queries(const struct backward *c, struct grad_work *w, int b, int h, int i0,
                         float *d_k, float *d_v, struct term_sums t)
{
    const struct item x = item_of(&c->x, &w->x, b, h, i0, QUERIES, true);
    struct item y = item_of(&c->y, &w->y, b, h, i0, QUERIES, true);
    int lo = 0, hi = c->x.K;

    y.seen = x.seen;
    for (int g = 0; g < x.n; g += ROWS)
        load_group(&x, &y, w, g);
    if (x.sink_k)
        grad_sinks(&x, &y, w, t);
    if (!x.seen)
        visible(&x, i0, x.n, &lo, &hi);
    for (int j = lo / VL * VL; j < hi; j += KEYS) {
        const int n = min_int(KEYS, hi - j);
        if (!visits(&x, j, n))
            continue;
        for (int g = 0; g < x.n; g += ROWS)
            grad_group(c, &x, &y, w, g, j, n);
        if (!c->a->no_content)
            add_by_key(&x, d_k, c->x.d_pad, w->g, j, n, x.qu);
        add_by_key(&x, d_v, c->x.v_pad, w->p, j, n, y.qu);
        add_terms(&x, t, w->p, w->g, y.qu, j, n);
    }
    if (row_sums_matter(c))
        add_far_row(&x, w);
    finish_queries(c, &x, w, t);
}

/* dst [K rows of head kv], d wide, = factor sum. */
static void store_sums(const struct attn *a, float *dst, struct stride at, int b, int kv,
                       const float *sum, int d, float factor)
{
    const ptrdiff_t d_pad = (ptrdiff_t)round_up((size_t)d, VL);

    for (int j = 0; j < attn_keys(a); j++) {
        float *to = dst + b * at.batch + j * at.row + (ptrdiff_t)kv * d;
        for (int e = 0; e < d; e += VL)
            vst_upto(to + e, d - e, vmul(v1(factor), vld(sum + j * d_pad + e)));
    }
}

static void grad_head(const struct backward *c, int worker, int b, int kv)
{
    const struct attn *a = c->a;
    const int group = a->H / a->Hkv;
    float *d_k = c->sums + (size_t)worker * c->sums_floats,
          *d_v = d_k + sum_rows(c->x.K) * (size_t)c->x.d_pad;
    struct grad_work *w = c->work + worker;

    memset(d_k, 0, c->sums_floats * sizeof(float));
    for (int m = 0; m < ROWS; m++) { /* vectors that are read by table row */
        vst(w->x.s[m], v0());
        vst(w->y.s[m], v0());
    }
    for (int i = 0; i < QUERIES; i++) {
        vst(w->p[i], v0());
        vst(w->g[i], v0());
    }
    for (int h = kv * group; h < (kv + 1) * group; h++) {
        float *mine = c->terms + (size_t)(b * a->H + h) * c->terms_floats;
        memset(mine, 0, c->terms_floats * sizeof(float));
        for (int i0 = 0; i0 < a->L; i0 += QUERIES)
            grad_queries(c, w, b, h, i0, d_k, d_v, terms_in(c, mine, NULL));
    }
    if (!a->no_content)
        store_sums(a, c->d->d_k, a->k_at, b, kv, d_k, a->dh, c->x.factor);
    store_sums(a, c->d->d_v, a->v_at, b, kv, d_v, c->x.dv, 1.0f);
}

/* ---- the terms ---------------------------------------------------------------------------- */

/* dst [H or 1][rows, n] (heads `head` floats apart) += factor times the sums at `from`, rows `ld`
 * apart, of every sequence and head that shares it. */
static void sum_terms(const struct backward *c, float *dst, ptrdiff_t head, const float *from,
                      ptrdiff_t ld, int rows, int n, float factor, int threads)
{
    const int H = c->a->H, owners = head ? H : 1, sharing = head ? 1 : H;

    if (!dst || !from)
        return;
#pragma omp parallel for num_threads(threads) collapse(2)
    for (int h = 0; h < owners; h++)
        for (int r = 0; r < rows; r++)
            for (int e = 0; e < n; e += VL) {
                float *to = dst + h * head + (ptrdiff_t)r * n + e;
                vf sum = v0();
                for (int x = 0; x < c->a->B * sharing; x++) {
                    const ptrdiff_t of = x / sharing * H + h + x % sharing;
                    const float *at = from + of * (ptrdiff_t)c->terms_floats + r * ld + e;
                    sum = vadd(sum, vld_upto(at, n - e, v0()));
                }
                vst_upto(to, n - e, vfma(v1(factor), sum, vld_upto(to, n - e, v0())));
            }
}

/* ---- the implementation ------------------------------------------------------------------- */

static struct attn_need fused_need_backward(const struct attn *a, int threads)
{
    struct backward c = backward_of(a, NULL);

    c.a = &c.again;
    return (struct attn_need){.scratch_bytes = lay_out_backward(&c, threads, NULL)};
}

static void pack_all(const struct fused *f, int threads)
{
    const struct tasks n = tasks_of(f);

#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < tasks_count(&n); t++)
        pack_task(f, &n, t);
}

static void fused_backward(const struct engine *g, const struct attn *a, const struct attn_grad *d,
                           void *scratch)
{
    struct backward c = backward_of(a, d);
    const int threads = g->threads, rows = a->R + a->Rf, parts = attn_parts(a, d, a->Hkv);

    attn_grad_check(a, d);
    c.a = &c.again;
    lay_out_backward(&c, threads, scratch);
    c.adjusts = a->soft_cap != 0 || a->gain != 0 || d->d_scores_out || d->d_add || d->d_fade ||
                row_sums_matter(&c);
    const size_t each = work_rows(c.a);
    float *const room = (float *)(void *)(c.work + threads);
    uint64_t *const bits = (uint64_t *)(void *)(room + 2 * (size_t)threads * each);
    for (int t = 0; t < threads; t++) {
        work_start(&c.work[t].x, c.a, room + 2 * (size_t)t * each);
        work_start(&c.work[t].y, c.a, room + (2 * (size_t)t + 1) * each);
        if (a->mask)
            seen_start(&c.work[t].x.seen, a, bits + (size_t)t * seen_words(a));
    }
    pack_all(&c.x, threads);
    pack_all(&c.y, threads);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int t = 0; t < parts; t++) {
        const struct attn_part p = attn_part_at(a, d, a->Hkv, t);
        for (int b = p.b0; b < p.b1; b++)
            for (int kv = p.u0; kv < p.u1; kv++)
                grad_head(&c, omp_get_thread_num(), b, kv);
    }
    const struct term_sums t = terms_in(&c, c.terms, NULL);
    const ptrdiff_t ld = c.x.d_pad;
    sum_terms(&c, d->d_rel_k, a->rel_head, t.rel_k, ld, rows, a->dh, c.x.factor, threads);
    sum_terms(&c, d->d_rel_v, a->rel_head, t.rel_v, ld, rows, a->dh, 1.0f, threads);
    sum_terms(&c, d->d_bias, a->bias_head, t.bias, 0, 1, rows, LOG2E, threads);
    sum_terms(&c, d->d_u, a->dh, t.u, 0, 1, a->dh, 1.0f, threads);
    sum_terms(&c, d->d_w, a->dh, t.w, 0, 1, a->dh, 1.0f, threads);
    const int n = a->sinks, dv = c.x.dv;
    sum_terms(&c, d->d_sink_k, (ptrdiff_t)n * a->dh, t.sink_k, ld, n, a->dh, c.x.factor, threads);
    sum_terms(&c, d->d_sink_v, (ptrdiff_t)n * dv, t.sink_v, c.x.v_pad, n, dv, 1.0f, threads);
    sum_terms(&c, d->d_sink_logit, n, t.sink_logit, 0, 1, n, LOG2E, threads);
}
