/* SPDX-License-Identifier: MIT
 *
 * Attention over a cache of slots: the first n keys of the stream, its sinks, and the w newest
 * (Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks", arXiv:2309.17453).
 * The query at stream position a is at slot min(a, n+w-1), a key dist before it at as many slots
 * less, and sink j at slot j: nothing is ever farther than the cache is long. Keys are remembered
 * without rotation and rotated when they are read. A shorter memory is a smaller cache.
 *
 * Rotated rows only meet as differences, so in the list [remembered rows; new ones] all may be at
 * their index, which is the slot of a query that comes alone. Of several queries those beyond the
 * last slot are at it, nearer to the sinks than their index says; so each head is two, side by
 * side: [q at its index, q at its slot] . [k, 0], or [0, k] for a sink. */
#include "sublayer_attention.h"

/* Where each array of AT_SLOTS is. */
struct slots {
    float *at_slot; /* [B,L,H,dh] queries at their slots */
    float *q;       /* [B,L,H,2 dh] */
    float *k;       /* [B,K,Hkv,2 dh or dh] */
};

static size_t head_floats(const struct config *c, int B, int rows, int heads)
{
    return (size_t)B * (size_t)rows * (size_t)heads * (size_t)c->dh;
}

static struct slots slots_of(const struct config *c, float *at, int B, int L)
{
    const size_t q = head_floats(c, B, L, c->H);

    return (struct slots){at, at + q, at + 3 * q};
}

struct array streaming_array(const struct sublayer *s, struct extent max)
{
    const struct config *const c = s->c;
    const int rows = max.M + max.L;
    const size_t n =
        3 * head_floats(c, max.B, max.L, c->H) + 2 * head_floats(c, max.B, rows, c->kv_heads);

    if (!c->stream_sinks)
        return (struct array){0};
    return (struct array){n, n, true, PART_ACTIVATIONS};
}

static int last_slot(const struct config *c) { return c->stream_sinks + c->window - 1; }

static struct attn doubled(const struct attn *a)
{
    struct attn two = *a;

    two.dv = attn_dv(a);
    two.dh = 2 * a->dh;
    return two;
}

/* A query that comes alone sees all of the cache. */
struct attn streaming_for_impl(const struct attn *a)
{
    struct attn own = a->L > 1 ? doubled(a) : *a;

    if (a->L == 1) {
        own.mask = NULL;
        own.mask_of_head = NULL;
    }
    return own;
}

static void rotate(const struct engine *g, const struct sublayer *s, struct seq_rows x, int B,
                   int rows, int heads, int64_t position)
{
    attention_turn(g, s, x, B, rows, heads, s->c->dh, position, false);
}

/* Columns [0, n) of heads of `from` into every 2n-th block of `to`, from block `half` on. */
static void copy_heads(float *to, const float *from, int heads, int n, int half)
{
    for (int h = 0; h < heads; h++) {
        memcpy(to + (ptrdiff_t)(2 * h + half) * n, from + (ptrdiff_t)h * n,
               sizeof(float) * (size_t)n);
        memset(to + (ptrdiff_t)(2 * h + !half) * n, 0, sizeof(float) * (size_t)n);
    }
}

/* Keys of the list: as they are, or as one half of a wider head. */
static void copy_keys(const struct config *c, const struct attn *a, float *to, bool two)
{
    const int width = a->Hkv * a->dh, K = attn_keys(a);

    for (int b = 0; b < a->B; b++)
        for (int j = 0; j < K; j++, to += two ? 2 * width : width) {
            const float *const from = a->k + b * a->k_at.batch + j * a->k_at.row;
            if (two)
                copy_heads(to, from, a->Hkv, a->dh, j < c->stream_sinks);
            else
                memcpy(to, from, sizeof(float) * (size_t)width);
        }
}

/* Queries at their index in the list, in place, and a copy of them at their slots. */
static void rotate_queries(const struct engine *g, const struct sublayer *s, const struct attn *a,
                           float *at_slot)
{
    const ptrdiff_t row = (ptrdiff_t)a->H * a->dh;
    const int moving = clamp_int(last_slot(s->c) - a->M, 0, a->L);
    const struct seq_rows rest = {at_slot + moving * row, a->L * row};

    memcpy(at_slot, a->q, sizeof(float) * (size_t)(a->B * a->L) * (size_t)row);
    rotate(g, s, (struct seq_rows){at_slot, a->L * row}, a->B, moving, a->H, a->M);
    rotate(g, s, rest, a->B, 1, (a->L - moving) * a->H, last_slot(s->c)); /* all at one slot */
    rotate(g, s, (struct seq_rows){(float *)a->q, a->L * row}, a->B, a->L, a->H, a->M);
}

struct attn streaming_attn(const struct engine *g, const struct sublayer *s, const struct work *w,
                           const struct attn *a)
{
    const struct config *const c = s->c;
    const struct slots to = slots_of(c, w->array[AT_SLOTS], a->B, a->L);
    const bool two = a->L > 1;
    const int heads = two ? 2 : 1, K = attn_keys(a);
    struct attn own = streaming_for_impl(a);

    own.base = 0; /* the mask knows indices, too */
    own.k = to.k;
    own.k_at = (struct stride){(ptrdiff_t)K * a->Hkv * own.dh, (ptrdiff_t)a->Hkv * own.dh};
    copy_keys(c, a, to.k, two);
    rotate(g, s, (struct seq_rows){to.k, own.k_at.batch}, a->B, K, heads * a->Hkv, 0);
    if (!two) {
        rotate(g, s, (struct seq_rows){(float *)a->q, a->q_at.batch}, a->B, a->L, a->H, a->M);
        return own;
    }
    rotate_queries(g, s, a, to.at_slot);
    own.q = to.q;
    own.q_at = (struct stride){(ptrdiff_t)a->L * a->H * own.dh, (ptrdiff_t)a->H * own.dh};
    for (ptrdiff_t h = 0; h < (ptrdiff_t)a->B * a->L * a->H; h++) {
        memcpy(to.q + 2 * h * a->dh, a->q + h * a->dh, sizeof(float) * (size_t)a->dh);
        memcpy(to.q + (2 * h + 1) * a->dh, to.at_slot + h * a->dh, sizeof(float) * (size_t)a->dh);
    }
    return own;
}
