/* SPDX-License-Identifier: MIT
 *
 * Routing as published: every centroid takes the w queries and the w keys that are nearest to it,
 * among all of the segment; inside, attention is causal by position, or not at all. A query that is taken n times
 * has the mean of its n results, one that is not taken has 0. What a row becomes thus depends on
 * rows after it: this is no language model. */
#include "plain.h"
#include "routing.h"

/* A thread's: the nearness of each row, rows in order of it, who is taken as query and as key, one
 * list of keys and its probabilities; how often each query of a head is taken. */
struct room {
    struct sort_key *order;
    double *p;
    int32_t *keys, *often;
    bool *as_query, *as_key;
    size_t bytes;
};

static struct room room_of(int L, void *base)
{
    const size_t n = (size_t)L;
    size_t at = 0;
    struct room r;

    r.order = content_place(base, &at, n, sizeof(*r.order));
    r.p = content_place(base, &at, n, sizeof(*r.p));
    r.keys = content_place(base, &at, n, sizeof(*r.keys));
    r.often = content_place(base, &at, n, sizeof(*r.often));
    r.as_query = content_place(base, &at, n, sizeof(*r.as_query));
    r.as_key = content_place(base, &at, n, sizeof(*r.as_key));
    r.bytes = at;
    return r;
}

size_t routing_topk_scratch(const struct sublayer *s, struct extent max, int threads)
{
    return (size_t)threads * room_of(max.L, NULL).bytes;
}

/* The rows that centroid c takes. */
static void take(const struct content_call *n, const struct room *r, int b, int h, int c, bool key,
                 bool *taken)
{
    const int L = n->a.L, w = min_int(routing_of(n->s->c)->window, L);

    for (int i = 0; i < L; i++)
        r->order[i] = (struct sort_key){
            routing_score(n->s, h, c, key ? routing_key(n, b, h, i) : routing_query(n, b, h, i)),
            i};
    qsort(r->order, (size_t)L, sizeof(*r->order), by_largest);
    memset(taken, 0, sizeof(*taken) * (size_t)L);
    for (int x = 0; x < w; x++)
        taken[r->order[x].at] = true;
}

static void take_both(const struct content_call *n, const struct room *r, int b, int h, int c)
{
    take(n, r, b, h, c, false, r->as_query);
    take(n, r, b, h, c, true, r->as_key);
}

/* The keys of query i among those that are taken. */
static struct plain_row row_of(const struct content_call *n, const struct room *r, int b, int h,
                               int i)
{
    const bool last = routing_of(n->s->c)->self_last;
    int count = 0;

    for (int j = 0; j < (n->a.causal ? i + 1 : n->a.L); j++)
        if (r->as_key[j] && !(last && j == i))
            r->keys[count++] = j;
    if (last && count == 0 && r->as_key[i])
        r->keys[count++] = i;
    return (struct plain_row){
        .a = &n->a, .b = b, .h = h, .i = i, .keys = r->keys, .n = count, .p = r->p};
}

static void head_forward(const struct content_call *n, const struct room *r, int b, int h)
{
    const struct attn *const a = &n->a;

    memset(r->often, 0, sizeof(*r->often) * (size_t)a->L);
    for (int i = 0; i < a->L; i++)
        memset(content_o(a, b, h, i), 0, sizeof(float) * (size_t)a->dh);
    for (int c = 0; c < routing_of(n->s->c)->clusters; c++) {
        take_both(n, r, b, h, c);
        for (int i = 0; i < a->L; i++) {
            if (!r->as_query[i])
                continue;
            const struct plain_row row = row_of(n, r, b, h, i);
            plain_probs(&row);
            plain_output(&row, 1, content_o(a, b, h, i));
            r->often[i]++;
        }
    }
    for (int i = 0; i < a->L; i++)
        for (int e = 0; e < a->dh && r->often[i]; e++)
            content_o(a, b, h, i)[e] /= (float)r->often[i];
}

static void head_backward(const struct content_call *n, const struct room *r, int b, int h,
                          const struct attn_grad *d)
{
    const struct attn *const a = &n->a;
    const int C = routing_of(n->s->c)->clusters;

    memset(r->often, 0, sizeof(*r->often) * (size_t)a->L);
    for (int c = 0; c < C; c++) {
        take(n, r, b, h, c, false, r->as_query);
        for (int i = 0; i < a->L; i++)
            r->often[i] += r->as_query[i];
    }
    for (int c = 0; c < C; c++) {
        take_both(n, r, b, h, c);
        for (int i = 0; i < a->L; i++) {
            if (!r->as_query[i])
                continue;
            const struct plain_row row = row_of(n, r, b, h, i);
            plain_probs(&row);
            plain_grad(&row, 1.0 / r->often[i], d->d_o + (content_o(a, b, h, i) - a->o), 0, d);
        }
    }
}

void routing_topk_head(const struct content_call *n, int head, const struct attn_grad *d)
{
    const size_t bytes = room_of(n->s->state.attention.largest.L, NULL).bytes;
    const struct room r = room_of(n->a.L, content_room(n, bytes));

    CHECK(n->a.M == 0);
    if (d)
        head_backward(n, &r, head / n->a.H, head % n->a.H, d);
    else
        head_forward(n, &r, head / n->a.H, head % n->a.H);
}
