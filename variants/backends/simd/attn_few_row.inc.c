/* SPDX-License-Identifier: MIT
 *
 * One query of one head in attention of a few queries (attn_few.inc.c): its products with a row of
 * keys or values, the terms of positions and others, and its online softmax. */

enum {
    FEW = 4,        /* most queries; above, packing pays */
    FEW_HEAD = 576, /* widest head, as wide as the latents of DeepSeek-V2: pointers to rows instead
                     * of arrays would cost 2 to 5 % */
    FEW_KEYS = 256, /* per block: long, since the stream stops at its end; their scores stay in
                     * L1 */
};

/* One query of one head. */
struct few_row {
    _Alignas(64) float qu[FEW_HEAD], qw[FEW_HEAD]; /* as in struct work, 0 after dh */
    float o[FEW_HEAD];
    float s[FEW_KEYS + VL]; /* of a block: scores, then 2^(s - top) */
    float top, sum;
    ptrdiff_t key, value; /* offset of its head in a row of keys or values, as strides count */
    uint64_t *seen;       /* bits of visible keys, if a mask hides some */
};

/* Numbers of a head from the e-th on, as caches hold them: floats, bf16 or int8. */
VEC_INLINE vf few_load(enum elem elem, const void *head, int e)
{
    return elem == ELEM_Q8     ? vld_int8((const int8_t *)head + e)
           : elem == ELEM_BF16 ? vld_bf16((const uint16_t *)head + e)
                               : vld((const float *)head + e);
}

VEC_INLINE vf few_load_n(enum elem elem, const void *head, int e, int n)
{
    return elem == ELEM_Q8     ? vld_int8_n((const int8_t *)head + e, n)
           : elem == ELEM_BF16 ? vld_bf16_n((const uint16_t *)head + e, n)
                               : vld_n((const float *)head + e, n);
}

/* q . k; q is 0 beyond d. */
VEC_INLINE float few_dot(enum elem elem, const float *q, const void *k, int d)
{
    vf acc = v0();
    int e = 0;

    UNROLL4
    for (; e + VL <= d; e += VL)
        acc = vfma(vld(q + e), few_load(elem, k, e), acc);
    if (e < d)
        acc = vfma(vld(q + e), few_load_n(elem, k, e, d - e), acc);
    return vsum(acc);
}

/* o += p v; o is padded to whole vectors. */
VEC_INLINE void few_add(enum elem elem, float *o, float p, const void *v, int d)
{
    const vf weight = v1(p);
    int e = 0;

    UNROLL4
    for (; e + VL <= d; e += VL)
        vst(o + e, vfma(weight, few_load(elem, v, e), vld(o + e)));
    if (e < d)
        vst(o + e, vfma(weight, few_load_n(elem, v, e, d - e), vld(o + e)));
}

/* For n queries and row x of a block, values: o += s[x] v; keys: s[x] += q . k. */
VEC_INLINE void few_row_as(enum elem elem, bool values, struct few_row *w, int n, int x,
                           const void *row, int d)
{
    const size_t size = elem == ELEM_BF16 ? sizeof(uint16_t) : sizeof(float);

    for (int t = 0; t < n; t++) {
        const void *head = (const char *)row + (size_t)(values ? w[t].value : w[t].key) * size;
        const float scale = elem == ELEM_Q8 ? q8_head_scale(head) : 1;
        head = elem == ELEM_Q8 ? q8_head_numbers(head) : head;
        if (values)
            few_add(elem, w[t].o, w[t].s[x] * scale, head, d);
        else
            w[t].s[x] += scale * few_dot(elem, w[t].qu, head, d);
    }
}

#define FEW_ROW(name, elem, values)                                                                \
    static void name(struct few_row *w, int n, int x, const void *row, int d)                      \
    {                                                                                              \
        few_row_as(elem, values, w, n, x, row, d);                                                 \
    }
FEW_ROW(few_key, ELEM_F32, false)
FEW_ROW(few_key_bf16, ELEM_BF16, false)
FEW_ROW(few_key_q8, ELEM_Q8, false)
FEW_ROW(few_value, ELEM_F32, true)
FEW_ROW(few_value_bf16, ELEM_BF16, true)
FEW_ROW(few_value_q8, ELEM_Q8, true)
#undef FEW_ROW

/* The same for the visible keys or values [j, j+n), by mask; j is a multiple of 64. Queries that do
 * not see a key skip it. */
typedef void few_row_op(struct few_row *w, int n, int x, const void *row, int d);
VEC_INLINE void few_each_seen(struct few_row *w, int rows, int j, int n, const char *at,
                              ptrdiff_t step, int d, few_row_op *op)
{
    for (int word = 0; word * 64 < n; word++) {
        uint64_t any = 0;
        for (int t = 0; t < rows; t++)
            any |= w[t].seen[j / 64 + word];
        for (; any; any &= any - 1) {
            const int bit = __builtin_ctzll(any), x = word * 64 + bit;
            if (x >= n)
                break;
            for (int t = 0; t < rows; t++)
                if (w[t].seen[j / 64 + word] >> bit & 1)
                    op(&w[t], 1, x, at + x * step, d);
        }
    }
}

/* Does any of the rows see one of the keys [j, j+n)? */
static bool few_any_sees(const struct few_row *w, int rows, int j, int n)
{
    uint64_t any = 0;

    for (int t = 0; t < rows; t++)
        for (int x = 0; x < n; x += 64)
            any |= w[t].seen[(j + x) / 64];
    return any;
}

/* Table rows of keys [j, j+n) of a block for query i: far keys, before `near`, share row 0; from
 * `future` on they share the last row; between, key j + x has row r + x. */
struct few_span {
    int r, last, near, future;
};

static struct few_span few_span_of(const struct attn *a, int i, int j, int n)
{
    const int n_rel = a->R + a->Rf, r = j + a->R - 1 - a->M - i;
    const int near = clamp_int(-r, 0, n);

    return (struct few_span){r, n_rel - 1, near, clamp_int(n_rel - r, near, n)};
}

/* s = the relative scores of query i of head h and keys [j, j+n). */
static void few_relative_scores(const struct attn *a, struct few_row *w, int h, int i, int j, int n)
{
    const struct few_span t = few_span_of(a, i, j, n);
    const int d = a->dh;
    float *s = w->s, far = 0.0f, future = 0.0f;

    if (a->rel_k) {
        const float *rel = a->rel_k + h * a->rel_head;
        if (t.near > 0)
            far = few_dot(ELEM_F32, w->qw, rel, d);
        for (int x = t.near; x < t.future; x++)
            s[x] = few_dot(ELEM_F32, w->qw, rel + (ptrdiff_t)(t.r + x) * d, d);
        if (t.future < n)
            future = few_dot(ELEM_F32, w->qw, rel + (ptrdiff_t)t.last * d, d);
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

/* o += p . rel_v likewise; a shared row is weighted by the sum of its keys' p. */
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
    few_add(ELEM_F32, w->o, far, rel, d);
    for (int x = t.near; x < t.future; x++)
        few_add(ELEM_F32, w->o, w->s[x], rel + (ptrdiff_t)(t.r + x) * d, d);
    few_add(ELEM_F32, w->o, future, rel + (ptrdiff_t)t.last * d, d);
}

/* Complete the scores of query i of head h against keys [j, j+n) for the softmax. */
static void few_adjust(const struct attn *a, struct few_row *w, int b, int h, int i, int j, int n)
{
    const int window = attn_window(a, h), own = a->M + i, vectors = (n + VL - 1) / VL;
    const uint64_t *bits = a->mask ? w->seen : NULL;
    float *s = w->s;

    if (a->soft_cap != 0)
        cap_row(s, NULL, LOG2E * a->soft_cap, n);
    if (a->add.at)
        add_dense(s, a->add.at + attn_dense_at(&a->add, b, h, i) + j, n);
    if (a->fade.at)
        add_fade(s, a, b, h, i, j, n);
    if (a->scores_out)
        output_scores(a, a->scores_out + attn_scores_at(a, b, h, i), s, 0.0f, window, bits, i, j,
                      n);
    if (a->gain != 0)
        scale_row(s, a->gain, n);
    fill_outside(s, window ? clamp_int(own - window + 1 - j, 0, n) : 0,
                 a->causal ? min_int(own + 1 - j, n) : n, vectors, v1(-INFINITY));
    for (int x = 0; bits && x < n; x += VL)
        vst_m(s + x, vlanes(~visible_lanes(a, window, bits, i, j + x)), v1(-INFINITY));
}

/* s = 2^(s - top) for a block's n scores and the rest of their last vector; updates top, sum and
 * o. */
static void few_softmax(const struct attn *a, struct few_row *w, int n)
{
    float *s = w->s;
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
    for (int e = 0; e < attn_dv(a); e += VL)
        vst(w->o + e, vmul(vld(w->o + e), alpha));
}

static void few_start(const struct attn *a, struct few_row *w, int b, int h, int i)
{
    const ptrdiff_t q = b * a->q_at.batch + i * a->q_at.row + h * a->dh;
    const vf factor = v1(a->scale * LOG2E);

    for (int e = 0; e < a->dh; e += VL) {
        const int left = a->dh - e;
        const vf x = a->no_content ? v0() : vld_upto(a->q + q + e, left, v0());
        const vf u = a->u ? vld_upto(a->u + h * a->dh + e, left, v0()) : v0();
        const vf y = a->w ? vld_upto(a->w + h * a->dh + e, left, v0()) : v0();
        const vf qu = vadd(x, u), qw = vadd(x, y);
        vst(w->qu + e, vmul(a->bf16 ? vbf16(qu) : qu, factor));
        vst(w->qw + e, vmul(a->bf16 ? vbf16(qw) : qw, factor));
    }
    for (int e = 0; e < attn_dv(a); e += VL)
        vst(w->o + e, v0());
    w->top = LOWEST;
    w->sum = 0.0f;
    const ptrdiff_t kv = h / (a->H / a->Hkv);
    w->key = kv * (a->k_q8 ? q8_head_words(a->dh) : a->dh);
    w->value = kv * (a->v_q8 ? q8_head_words(attn_dv(a)) : attn_dv(a));
    if (a->mask) {
        const struct sight sight = attn_sight(a, h);
        sight_bits(&sight, i, w->seen);
    }
}

/* The sinks of head h, before any key. */
static void few_sinks(const struct attn *a, struct few_row *w, int h)
{
    for (int j = 0; j < a->sinks; j += FEW_KEYS) {
        const int n = min_int(FEW_KEYS, a->sinks - j), d = a->dh, dv = attn_dv(a);
        const ptrdiff_t at = (ptrdiff_t)h * a->sinks + j;

        for (int x = 0; x < n; x++)
            w->s[x] = a->sink_k ? few_dot(ELEM_F32, w->qu, a->sink_k + (at + x) * d, d) : 0.0f;
        if (a->sink_logit)
            add_dense(w->s, a->sink_logit + at, n);
        fill_outside(w->s, 0, n, (n + VL - 1) / VL, v1(-INFINITY));
        few_softmax(a, w, n);
        for (int x = 0; a->sink_v && x < n; x++)
            few_add(ELEM_F32, w->o, w->s[x], a->sink_v + (at + x) * dv, dv);
    }
}

static void few_finish(const struct attn *a, const struct few_row *w, int b, int h, int i)
{
    const int dv = attn_dv(a);
    float *o = a->o + b * a->o_at.batch + i * a->o_at.row + h * dv;
    const vf share = v1(w->sum == 0.0f ? 0.0f : 1.0f / w->sum);

    for (int e = 0; e < dv; e += VL)
        vst_upto(o + e, dv - e, vmul(vld(w->o + e), share));
    if (a->lse)
        a->lse[((ptrdiff_t)b * a->H + h) * a->L + i] =
            w->sum == 0.0f ? -INFINITY : LN2 * w->top + logf(w->sum);
}
