/* SPDX-License-Identifier: MIT
 *
 * Attention of a few queries over many keys, as in decoding one token at a time. It is bound by
 * memory, so keys and values are read once, in place and in memory order: a row is finished for all
 * heads before the next begins, because heads are adjacent and the hardware prefetches such a
 * stream. Two rows at a time, or one head down its column, save loads from L1 but take up to twice
 * as long when operands exceed L3. */

#include "attn_few_row.inc.c"

/* op of n queries and a block's rows [j, j+keys), `step` bytes apart from `at` on. */
VEC_INLINE void few_each(const struct attn *a, struct few_row *rows, int n, int j, int keys,
                         const char *at, ptrdiff_t step, int d, few_row_op *op)
{
    if (a->mask) {
        few_each_seen(rows, n, j, keys, at, step, d, op);
        return;
    }
    for (int x = 0; x < keys; x++)
        op(rows, n, x, at + x * step, d);
}

enum { FLOAT_BYTES = sizeof(float), BF16_BYTES = sizeof(uint16_t), WORD_BYTES = 4 };

/* s += q . k for n queries and a block's keys [j, j+keys). */
static void few_keys(const struct attn *a, struct few_row *rows, int n, int b, int j, int keys)
{
    const ptrdiff_t k = b * a->k_at.batch + j * a->k_at.row, step = a->k_at.row;

    if (a->no_content)
        return;
    if (a->k_q8)
        few_each(a, rows, n, j, keys, (const char *)(a->k_q8 + k), step * WORD_BYTES, a->dh,
                 few_key_q8);
    else if (a->k_bf16)
        few_each(a, rows, n, j, keys, (const char *)(a->k_bf16 + k), step * BF16_BYTES, a->dh,
                 few_key_bf16);
    else
        few_each(a, rows, n, j, keys, (const char *)(a->k + k), step * FLOAT_BYTES, a->dh, few_key);
}

/* o += p v likewise. */
static void few_values(const struct attn *a, struct few_row *rows, int n, int b, int j, int keys)
{
    const ptrdiff_t v = b * a->v_at.batch + j * a->v_at.row, step = a->v_at.row;
    const int dv = attn_dv(a);

    if (a->v_q8)
        few_each(a, rows, n, j, keys, (const char *)(a->v_q8 + v), step * WORD_BYTES, dv,
                 few_value_q8);
    else if (a->v_bf16)
        few_each(a, rows, n, j, keys, (const char *)(a->v_bf16 + v), step * BF16_BYTES, dv,
                 few_value_bf16);
    else
        few_each(a, rows, n, j, keys, (const char *)(a->v + v), step * FLOAT_BYTES, dv, few_value);
}

/* All queries of heads [h0, h1) in sequence b against keys [lo, hi); the part with the first keys
 * includes the sinks. `rows` has room for L queries per head. */
static void few_heads(const struct attn *a, struct few_row *rows, int b, int h0, int h1, int lo,
                      int hi, bool first)
{
    const int L = a->L, n = (h1 - h0) * L;

    for (int t = 0; t < n; t++) {
        few_start(a, &rows[t], b, h0 + t / L, t % L);
        if (first)
            few_sinks(a, &rows[t], h0 + t / L);
    }
    for (int j = lo; j < hi; j += FEW_KEYS) {
        const int keys = min_int(FEW_KEYS, hi - j);
        if (a->mask && !few_any_sees(rows, n, j, keys))
            continue;
        for (int t = 0; t < n; t++)
            few_relative_scores(a, &rows[t], h0 + t / L, t % L, j, keys);
        few_keys(a, rows, n, b, j, keys);
        for (int t = 0; t < n; t++) {
            few_adjust(a, &rows[t], b, h0 + t / L, t % L, j, keys);
            few_softmax(a, &rows[t], keys);
            if (a->rel_v)
                few_relative_values(a, &rows[t], h0 + t / L, t % L, j, keys);
        }
        few_values(a, rows, n, b, j, keys);
    }
}

/* Merge the partial softmax `other` into w. */
static void few_join(struct few_row *w, const struct few_row *other, int d)
{
    const vf top = vmax(v1(w->top), v1(other->top));
    const vf mine = vexp2(vsub(v1(w->top), top)), theirs = vexp2(vsub(v1(other->top), top));

    for (int e = 0; e < d; e += VL)
        vst(w->o + e, vfma(vld(other->o + e), theirs, vmul(vld(w->o + e), mine)));
    vst_n(&w->sum, 1, vfma(v1(other->sum), theirs, vmul(v1(w->sum), mine)));
    vst_n(&w->top, 1, top);
}

/* Rows per thread. */
static size_t few_room(const struct attn *a) { return (size_t)a->H * (size_t)min_int(a->L, FEW); }

/* Words of one row's bits. */
static size_t few_words(const struct attn *a)
{
    return a->mask ? (size_t)bits_words(attn_keys(a)) : 0;
}

/* Bytes of a thread's rows; the bits follow the rows of all threads. */
static size_t few_bytes(const struct attn *a)
{
    return few_room(a) * (sizeof(struct few_row) + few_words(a) * sizeof(uint64_t));
}

/* Does a row hold a head of this width? */
static bool few_fits(const struct attn *a) { return a->dh <= FEW_HEAD && attn_dv(a) <= FEW_HEAD; }

/* With parts of the keys an item's number selects its rows, otherwise the thread does. */
static void few_item(const struct attn *a, const struct split_few *n, struct few_row *rows, int t)
{
    const struct split_few_item at = split_few_item(n, t);

    few_heads(a, rows, at.b, at.h0, at.h1, at.from, at.to, at.part == 0);
    for (int x = 0; n->parts == 1 && x < (at.h1 - at.h0) * a->L; x++)
        few_finish(a, &rows[x], at.b, at.h0 + x / a->L, x % a->L);
}

/* Merge the parts of sequence b's head h. */
static void few_join_parts(const struct attn *a, const struct split_few *n, struct few_row *rows,
                           int b, int h)
{
    const ptrdiff_t room = (ptrdiff_t)few_room(a);
    const int item = split_few_first(n, b, h), h0 = split_few_item(n, item).h0;
    struct few_row *first = rows + item * room;

    for (int i = 0; i < a->L; i++) {
        struct few_row *w = first + (ptrdiff_t)(h - h0) * a->L + i;
        for (int part = 1; part < n->parts; part++)
            few_join(w, w + part * room, attn_dv(a));
        few_finish(a, w, b, h, i);
    }
}

static void few_forward(const struct attn *a, int threads, struct few_row *rows)
{
    const ptrdiff_t room = (ptrdiff_t)few_room(a);
    const struct split_few n = split_few(a, threads);
    const ptrdiff_t all = threads * room;

    for (ptrdiff_t t = 0; a->mask && t < all; t++)
        rows[t].seen = (uint64_t *)(void *)(rows + all) + t * (ptrdiff_t)few_words(a);
    if (threads <= 1) {
        for (int t = 0; t < n.items; t++)
            few_item(a, &n, rows, t);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(dynamic, 1)
        for (int t = 0; t < n.items; t++)
            few_item(a, &n, rows + (n.parts > 1 ? t : omp_get_thread_num()) * room, t);
#pragma omp for schedule(static, 1)
        for (int t = 0; t < (n.parts > 1 ? a->B * a->H : 0); t++)
            few_join_parts(a, &n, rows, t / a->H, t % a->H);
    }
}
