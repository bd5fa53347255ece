/* SPDX-License-Identifier: MIT
 *
 * Preparation of a fused attention call, once for all its work items: the scratch layout, and keys,
 * values and tables packed for the kernels of attn_tile.inc.c. */

/* A call: its packed operands and their places. Offsets in floats. */
struct fused {
    const struct attn *a;
    const struct attn *seen_by; /* who sees which keys: `a`, or that with keys and values swapped */
    int K, n_rel;               /* keys; rows of the tables */
    int d_pad;                  /* dh in whole vectors */
    int dk;                     /* lanes of a head of keys */
    int dv, v_pad;              /* width of values; in whole vectors */
    int row0;                   /* key j of query i has table row clamp(j + row0 - i, 0, n_rel-1) */
    bool far_shared;            /* far keys share row 0, which is subtracted from the tables */
    float factor;               /* scale log2 e, in the packed keys and key tables */
    int bias_lo;                /* table row of the extended bias's first element */
    float *k, *v, *rel_k, *rel_v, *bias, *sink_k, *sink_v;
    ptrdiff_t k_head, v_head, rel_k_head, rel_v_head, bias_head; /* 0 = shared by heads */
    ptrdiff_t sink_k_head, sink_v_head;
    struct work *work; /* [threads] */
    size_t floats;     /* before `work` */
};

/* Size of a head's extended bias: one element for every distance of every query, plus the
 * read-ahead of whole vectors and groups. */
static size_t bias_floats(const struct attn *a)
{
    const size_t n = (size_t)attn_keys(a) + (size_t)a->L + 8 * (size_t)VL;

    return round_up(n, VL);
}

static float *take(size_t *at, float *base, size_t n)
{
    float *p = base ? base + *at : NULL;

    *at += round_up(n, 16);
    return p;
}

/* Few values are read in place if a head is whole vectors and rows are not so far apart that they
 * collide in L1 or need a page each: copying would cost more than it saves. */
enum { IN_PLACE_KEYS = 768, IN_PLACE_ROW = 1024 };

/* Without a mask or window each key is seen by some query. */
static bool hides_keys(const struct attn *a) { return a->mask || a->window || a->window_of_head; }

static bool values_in_place(const struct fused *f)
{
    return PER_LANE == 1 && !hides_keys(f->seen_by) && f->a->v &&
           attn_keys(f->a) <= IN_PLACE_KEYS && attn_dv(f->a) % VL == 0 &&
           f->a->v_at.row < IN_PLACE_ROW;
}

/* Lay out the scratch; base = NULL only counts. Packed values always get room, because strides may
 * not be known when counting. */
static struct fused layout(const struct attn *a, float *base)
{
    const int K = attn_keys(a), n_rel = a->R + a->Rf, dv = attn_dv(a);
    const int d_pad = (int)round_up((size_t)a->dh, VL), v_pad = (int)round_up((size_t)dv, VL);
    struct fused f = {.a = a,
                      .seen_by = a,
                      .K = K,
                      .n_rel = n_rel,
                      .d_pad = d_pad,
                      .dk = lanes_for(a->dh),
                      .dv = dv,
                      .v_pad = v_pad,
                      .row0 = a->R - 1 - a->M};
    const size_t kv = (size_t)a->B * (size_t)a->Hkv, tables = a->rel_head ? (size_t)a->H : 1;

    f.far_shared = a->R < K;
    f.factor = a->scale * LOG2E;
    f.bias_lo = f.row0 - a->L - 2 * VL;
    f.k_head = (ptrdiff_t)round_up((size_t)K, VL) * f.dk;
    f.v_head = (ptrdiff_t)lanes_for(K) * v_pad;
    f.k = take(&f.floats, base, kv * (size_t)f.k_head);
    f.v = take(&f.floats, base, kv * (size_t)f.v_head);
    if (a->rel_k) {
        const size_t n = round_up((size_t)n_rel, VL) * (size_t)f.dk;
        f.rel_k = take(&f.floats, base, tables * n);
        f.rel_k_head = a->rel_head ? (ptrdiff_t)n : 0;
    }
    if (a->rel_v) {
        const size_t n = (size_t)n_rel * (size_t)v_pad;
        f.rel_v = take(&f.floats, base, tables * n);
        f.rel_v_head = a->rel_head ? (ptrdiff_t)n : 0;
    }
    if (a->bias) {
        const size_t n = bias_floats(a);
        f.bias = take(&f.floats, base, (a->bias_head ? (size_t)a->H : 1) * n);
        f.bias_head = a->bias_head ? (ptrdiff_t)n : 0;
    }
    if (a->sinks) {
        f.sink_k_head = (ptrdiff_t)round_up((size_t)a->sinks, VL) * f.dk;
        f.sink_v_head = (ptrdiff_t)lanes_for(a->sinks) * v_pad;
        f.sink_k = take(&f.floats, base, (size_t)a->H * (size_t)f.sink_k_head);
        f.sink_v = take(&f.floats, base, (size_t)a->H * (size_t)f.sink_v_head);
    }
    f.work = base ? (struct work *)(void *)(base + f.floats) : NULL;
    return f;
}

/* ---- packing ------------------------------------------------------------------------------ */

/* Rows [r, r+n) of a value matrix into strips (attn_tile.inc.c), minus row `zero`. */
static void pack_values(float *dst, int rows, const float *src, ptrdiff_t ld, int d, int r, int n,
                        const float *zero)
{
    const int vectors = (d + VL - 1) / VL;

    for (int v = 0; v < vectors; v++) {
        const ptrdiff_t step = strip_step(vectors, v);
        float *to = dst + strip_at(vectors, rows, v, r);
        const vf less = zero ? vld_upto(zero + v * VL, d - v * VL, v0()) : v0();

        pack_along(to, step, src + r * ld + v * VL, ld, d - v * VL, n);
        for (int x = 0; zero && x < n; x++)
            vst(to + x * step, vsub(vld(to + x * step), less));
    }
}

#if defined(VEC_BF16)
#include "attn_pack_pairs.inc.c"
#else
#include "attn_pack_floats.inc.c"
#endif

#if !defined(VEC_BF16)
static void pack_keys_q8(const struct fused *f, int b, int h, int j, int n)
{
    const struct attn *a = f->a;
    const ptrdiff_t head = (ptrdiff_t)b * a->Hkv + h;
    const uint32_t *const k =
        a->k_q8 ? a->k_q8 + b * a->k_at.batch + h * q8_head_words(a->dh) : NULL;
    const uint32_t *const v = a->v_q8 + b * a->v_at.batch + h * q8_head_words(f->dv);

    for (int x = j; k && x < j + n; x += VL)
        pack_panel_q8(f->k + head * f->k_head + (ptrdiff_t)x * f->dk, k + x * a->k_at.row,
                      a->k_at.row, min_int(VL, j + n - x), a->dh, f->factor);
    pack_key_values_q8(f->v + head * f->v_head, f->K, v, a->v_at.row, f->dv, j, n);
}
#endif

/* ---- what no query sees ------------------------------------------------------------------- */

/* The kernels multiply hidden values by 0, which is not 0 of an infinity or of what is no number. One
 * that somebody sees is in the outputs anyway. */
static bool any_query_sees(const struct attn *a, int kv, int j)
{
    const int group = a->H / a->Hkv;

    for (int h = kv * group; h < (kv + 1) * group; h++) {
        const struct sight sight = attn_sight(a, h);
        for (int i = 0; i < a->L; i++)
            if (sight_visible(&sight, i, j))
                return true;
    }
    return false;
}

static bool finite_bf16(const uint16_t *x, int n)
{
    enum { EXPONENT = 0x7f80 };
    int found = 0;

    for (int e = 0; e < n; e++)
        found |= (x[e] & EXPONENT) == EXPONENT;
    return !found;
}

/* Row j of a head's packed values = 0. */
static void clear_values(float *to, int K, int d, int j)
{
    const uint32_t kept = PER_LANE == 1 ? 0 : j % 2 ? 0xffff : 0xffff0000;
    const int vectors = (d + VL - 1) / VL;

    for (int v = 0; v < vectors; v++) {
        float *const row = to + strip_at(vectors, lanes_for(K), v, j / PER_LANE);
        for (int x = 0; x < VL; x++)
            row[x] = float_of_bits(bits_of_float(row[x]) & kept);
    }
}

/* Keys and values [j, j+n) of one head. */
static void pack_keys(const struct fused *f, int b, int h, int j, int n)
{
    const struct attn *a = f->a;
    const ptrdiff_t head = (ptrdiff_t)b * a->Hkv + h;
    const ptrdiff_t k = b * a->k_at.batch + h * a->dh;
    const ptrdiff_t v = b * a->v_at.batch + h * f->dv;
    float *const to = f->v + head * f->v_head;

#if !defined(VEC_BF16) /* numbers of q8 are none of bf16 */
    if (a->v_q8) {
        pack_keys_q8(f, b, h, j, n);
        return;
    }
#endif
    for (int x = j; !a->no_content && x < j + n; x += VL) {
        float *panel = f->k + head * f->k_head + (ptrdiff_t)x * f->dk;
        const ptrdiff_t at = k + x * a->k_at.row;
        const int rows = min_int(VL, j + n - x);
        if (a->k_bf16)
            pack_panel_bf16(panel, a->k_bf16 + at, a->k_at.row, rows, a->dh, f->factor);
        else
            pack_panel(panel, a->k + at, a->k_at.row, rows, a->dh, f->factor);
    }
    if (a->v_bf16)
        pack_key_values_bf16(to, f->K, a->v_bf16 + v, a->v_at.row, f->dv, j, n);
    else if (!values_in_place(f))
        pack_key_values(to, f->K, a->v + v, a->v_at.row, f->dv, j, n);
    for (int x = j; hides_keys(f->seen_by) && x < j + n; x++)
        if (!(a->v_bf16 ? finite_bf16(a->v_bf16 + v + x * a->v_at.row, f->dv)
                        : floats_finite(a->v + v + x * a->v_at.row, f->dv)) &&
            !any_query_sees(f->seen_by, h, x))
            clear_values(to, f->K, f->dv, x);
}

/* Rows [r, r+n) of table `t`. Key tables go into panels, value tables into strips. */
static void pack_table(const struct fused *f, int t, int r, int n)
{
    const struct attn *a = f->a;
    const ptrdiff_t at = t * a->rel_head, first = at + (ptrdiff_t)r * a->dh;

    for (int x = 0; a->rel_k && x < n; x += VL) {
        float *panel = f->rel_k + t * f->rel_k_head + (ptrdiff_t)(r + x) * f->dk;
        pack_panel(panel, a->rel_k + first + (ptrdiff_t)x * a->dh, a->dh, min_int(VL, n - x), a->dh,
                   f->factor);
        for (int e = 0; PER_LANE == 1 && f->far_shared && e < a->dh; e++)
            vst(panel + e * VL, vsub(vld(panel + e * VL), v1(f->factor * a->rel_k[at + e])));
    }
    if (a->rel_v)
        pack_values(f->rel_v + t * f->rel_v_head, f->n_rel, a->rel_v + at, f->dv, f->dv, r, n,
                    f->far_shared ? a->rel_v + at : NULL);
}

/* Head h's bias, in base 2 and extended on both sides so that no index needs a clamp. */
static void pack_bias(const struct fused *f, int h)
{
    const float *bias = f->a->bias + h * f->a->bias_head;
    const int n = (int)bias_floats(f->a);

    for (int x = 0; x < n; x++)
        f->bias[h * f->bias_head + x] = LOG2E * bias[clamp_int(f->bias_lo + x, 0, f->n_rel - 1)];
}

static void pack_sinks(const struct fused *f, int h)
{
    const struct attn *a = f->a;
    const ptrdiff_t first = (ptrdiff_t)h * a->sinks;
    float *const k = f->sink_k + h * f->sink_k_head, *const v = f->sink_v + h * f->sink_v_head;

    for (int x = 0; a->sink_k && x < a->sinks; x += VL)
        pack_panel(k + (ptrdiff_t)x * f->dk, a->sink_k + (first + x) * a->dh, a->dh,
                   min_int(VL, a->sinks - x), a->dh, f->factor);
    if (!a->sink_k)
        memset(k, 0, (size_t)f->sink_k_head * sizeof(*k));
    if (a->sink_v)
        pack_key_values(v, a->sinks, a->sink_v + first * f->dv, f->dv, f->dv, 0, a->sinks);
    else
        memset(v, 0, (size_t)f->sink_v_head * sizeof(*v));
}

/* Packing tasks: PACK keys of a sequence, PACK rows of a table, a head's bias, or a head's
 * sinks. */
enum { PACK = 64 };
struct tasks {
    int key_blocks, keys, table_blocks, tables, biases, sinks;
};
static struct tasks tasks_of(const struct fused *f)
{
    const struct attn *a = f->a;
    struct tasks n = {.key_blocks = (f->K + PACK - 1) / PACK,
                      .table_blocks = (f->n_rel + PACK - 1) / PACK};

    n.keys = a->B * a->Hkv * n.key_blocks;
    n.tables = a->rel_k || a->rel_v ? (a->rel_head ? a->H : 1) * n.table_blocks : 0;
    n.biases = a->bias ? (a->bias_head ? a->H : 1) : 0;
    n.sinks = a->sinks ? a->H : 0;
    return n;
}

static int tasks_count(const struct tasks *n) { return n->keys + n->tables + n->biases + n->sinks; }

static void pack_task(const struct fused *f, const struct tasks *n, int t)
{
    if (t < n->keys) {
        const int heads = f->a->B * f->a->Hkv, head = t % heads, j = t / heads * PACK;
        pack_keys(f, head / f->a->Hkv, head % f->a->Hkv, j, min_int(PACK, f->K - j));
    } else if (t < n->keys + n->tables) {
        const int x = t - n->keys, r = x % n->table_blocks * PACK;
        pack_table(f, x / n->table_blocks, r, min_int(PACK, f->n_rel - r));
    } else if (t < n->keys + n->tables + n->biases) {
        pack_bias(f, t - n->keys - n->tables);
    } else {
        pack_sinks(f, t - n->keys - n->tables - n->biases);
    }
}
