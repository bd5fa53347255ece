/* SPDX-License-Identifier: MIT
 *
 * The keys that a query sees, as one bit per key, for kernels that compute many keys at once and
 * then drop the hidden ones. Each term of a mask sets its bits within the bounds of causality and
 * window. */
#include "mask.h"

/* A row of bits. Bit 0 is stream position `first`; only positions [from, to) may be set. */
struct row {
    uint64_t *bits;
    int64_t first, from, to;
};

int bits_words(int keys) { return (keys + 63) / 64; }

/* Positions [from, to). */
static void set_range(const struct row *r, int64_t from, int64_t to)
{
    const int64_t lo = max_wide(from, r->from) - r->first, hi = min_wide(to, r->to) - r->first;

    if (lo >= hi)
        return;
    const int64_t word = lo / 64, last = (hi - 1) / 64;
    const uint64_t head = ~(uint64_t)0 << lo % 64, tail = ~(uint64_t)0 >> (63 - (hi - 1) % 64);
    if (word == last) {
        r->bits[word] |= head & tail;
        return;
    }
    r->bits[word] |= head;
    for (int64_t w = word + 1; w < last; w++)
        r->bits[w] = ~(uint64_t)0;
    r->bits[last] |= tail;
}

/* Runs of `n` positions in [from, to), beginning at multiples of `step` from `at`. */
static void set_every(const struct row *r, int64_t at, int64_t step, int n, int64_t from,
                      int64_t to)
{
    const int64_t lo = max_wide(from, r->from) - n + 1, hi = min_wide(to, r->to);
    const int64_t ahead = ((at - lo) % step + step) % step;

    for (int64_t p = lo + ahead; p < hi; p += step)
        set_range(r, p, p + n);
}

static void set_blocks(const struct row *r, const struct mask *m, int64_t q)
{
    const int64_t own = q / m->block;

    set_range(r, (own - m->back) * m->block, (own + m->back + 1) * m->block);
    set_range(r, own * m->block - m->memory, own * m->block);
    for (int x = 0; x < m->n_random; x++) {
        const int64_t c = m->random[(own - m->random_from) * m->n_random + x];
        if (c >= 0)
            set_range(r, c * m->block, (c + 1) * m->block);
    }
}

static void set_rect(const struct row *r, const struct mask *m, int64_t q)
{
    int64_t from, to = r->from;

    while (to < r->to && mask_rect_next(m, q, to, &from, &to))
        set_range(r, from, to);
}

static void set_visible(const struct row *r, const struct mask *m, int64_t q)
{
    const int64_t step = max_int(m->dilation, 1), reach = (m->window - 1) * step;

    if (m->rows) {
        CHECK(r->first == 0);
        set_range(r, r->from, r->to);
        for (int64_t word = 0; word * 64 < r->to; word++)
            r->bits[word] &= mask_row(m, q)[word];
        return;
    }
    if (mask_hides_nothing(m) || q < m->global) {
        set_range(r, r->from, r->to);
        return;
    }
    set_range(r, q, q + 1);
    if (m->window && step == 1)
        set_range(r, q - reach, q + reach + 1);
    else if (m->window)
        set_every(r, q, step, 1, q - reach, q + reach + 1);
    if (m->block)
        set_blocks(r, m, q);
    if (m->stride)
        set_every(r, q, m->stride, 1, r->from, r->to);
    if (m->fixed && m->summary > 0)
        set_every(r, m->fixed - m->summary, m->fixed, m->summary, r->from, r->to);
    if (m->global)
        set_range(r, 0, m->global);
    if (m->rect)
        set_rect(r, m, q);
}

void sight_bits(const struct sight *s, int i, uint64_t *bits)
{
    const int64_t q = s->query + (int64_t)i * s->query_step;
    const struct row r = {
        .bits = bits,
        .first = s->key,
        .from = s->window ? max_wide(s->key, q - s->window + 1) : s->key,
        .to = s->causal ? min_wide(s->key + s->K, q + 1) : s->key + s->K,
    };
    static const struct mask none;

    CHECK(s->key_step == 1);
    memset(bits, 0, (size_t)bits_words(s->K) * sizeof(*bits));
    if (r.from < r.to)
        set_visible(&r, s->mask ? s->mask : &none, q);
}

bool bits_next(const uint64_t *bits, int group, int end, struct range *r)
{
    const uint64_t whole = ~(uint64_t)0 >> (64 - group);
    int j = r->to;

    while (j < end && !(bits[j / 64] >> j % 64 & whole))
        j = bits[j / 64] >> j % 64 ? j + group : (j / 64 + 1) * 64;
    r->from = min_int(j, end);
    while (j < end && bits[j / 64] >> j % 64 & whole)
        j += group;
    r->to = min_int(j, end);
    return r->from < r->to;
}
