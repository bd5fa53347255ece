/* SPDX-License-Identifier: MIT
 *
 * Hashing as published: in each round rows in the order of (bucket, position) are cut into chunks
 * of `lsh_chunk`; a query sees its own chunk and the one before it, causal by position unless
 * attention sees the future. Before the
 * first chunk of a round comes the last one of the round before, before that of the first round the
 * last of all. The own row counts where nothing else is visible, with a score of -5e4. What is
 * visible in round r gives o_r and z_r, the logarithm of its sum:
 *
 *   o = sum_r w_r o_r
 *   w = softmax(z)
 *
 * within:         keys of other buckets are hidden, and so is the round before
 * no duplicates:  a score loses the logarithm of how many rounds show the pair
 *
 * Where a chunk ends depends on later rows: this is no language model. */
#include "lsh.h"
#include "plain.h"

static const double LONELY = -5e4;

/* A thread's: rows of one head in the order of each round [R,L] and the place of each [R,L]; the
 * keys, what is added to their scores and their probabilities, in all rounds of one query; one o_r
 * of each round, o. */
struct room {
    int32_t *order, *place, *keys;
    double *add, *p;
    float *o;
    size_t bytes;
};

static struct room room_of(const struct sublayer *s, int L, void *base)
{
    const struct lsh *const l = lsh_of(s->c);
    const size_t rows = (size_t)l->rounds * (size_t)L;
    const size_t slots = (size_t)l->rounds * 2 * (size_t)l->chunk;
    size_t at = 0;
    struct room r;

    r.order = content_place(base, &at, rows, sizeof(*r.order));
    r.place = content_place(base, &at, rows, sizeof(*r.place));
    r.keys = content_place(base, &at, slots, sizeof(*r.keys));
    r.add = content_place(base, &at, slots, sizeof(*r.add));
    r.p = content_place(base, &at, slots, sizeof(*r.p));
    r.o = content_place(base, &at, (size_t)l->rounds * (size_t)s->c->dh, sizeof(*r.o));
    r.bytes = at;
    return r;
}

size_t lsh_chunked_scratch(const struct sublayer *s, struct extent max, int threads)
{
    return (size_t)threads * room_of(s, max.L, NULL).bytes;
}

/* One head of one sequence. */
struct head {
    const struct content_call *n;
    const struct lsh *l;
    struct room room;
    int b, h;
};

static void sort_rounds(const struct head *t)
{
    const int L = t->n->a.L;

    for (int r = 0; r < t->l->rounds; r++) {
        int at = 0;
        for (int bucket = 0; bucket < 2 * t->l->half; bucket++)
            for (int j = 0; j < L; j++)
                if (lsh_bucket(t->n, t->b, t->h, j, r) == bucket) {
                    t->room.order[(ptrdiff_t)r * L + at] = j;
                    t->room.place[(ptrdiff_t)r * L + j] = at++;
                }
    }
}

static int chunk_of(const struct head *t, int r, int j)
{
    return t->room.place[(ptrdiff_t)r * t->n->a.L + j] / t->l->chunk;
}

/* How often round r shows key j to query i: in its own chunk, in the one before. */
static int times(const struct head *t, int r, int i, int j)
{
    const int R = t->l->rounds, last = t->n->a.L / t->l->chunk - 1;
    const int mine = chunk_of(t, r, i), its = chunk_of(t, r, j);
    const bool same = lsh_bucket(t->n, t->b, t->h, i, r) == lsh_bucket(t->n, t->b, t->h, j, r);
    const int before = (r + R - 1) % R;

    if (t->l->within)
        return same && (its == mine || its == mine - 1);
    return (its == mine) + (mine > 0 ? its == mine - 1 : chunk_of(t, before, j) == last);
}

/* Append the rows of a chunk that query i sees. */
static int add_chunk(const struct head *t, int r, int in, int chunk, int i, int n, int32_t *keys)
{
    const int L = t->n->a.L, c = t->l->chunk;

    for (int x = chunk * c; x < (chunk + 1) * c; x++) {
        const int j = t->room.order[(ptrdiff_t)in * L + x];
        const bool same = lsh_bucket(t->n, t->b, t->h, i, r) == lsh_bucket(t->n, t->b, t->h, j, r);
        if ((j <= i || !t->n->a.causal) && (same || !t->l->within))
            keys[n++] = j;
    }
    return n;
}

/* The keys of query i in round r, with what is added to their scores. */
static struct plain_row row_of(const struct head *t, int r, int i)
{
    const int R = t->l->rounds, mine = chunk_of(t, r, i), L = t->n->a.L;
    const ptrdiff_t at = (ptrdiff_t)r * 2 * t->l->chunk;
    int32_t *const keys = t->room.keys + at;
    int others = 0;

    int n = add_chunk(t, r, r, mine, i, 0, keys);
    if (mine > 0)
        n = add_chunk(t, r, r, mine - 1, i, n, keys);
    else if (!t->l->within)
        n = add_chunk(t, r, (r + R - 1) % R, L / t->l->chunk - 1, i, n, keys);
    for (int x = 0; x < n; x++)
        others += keys[x] != i;
    int kept = 0;
    for (int x = 0; x < n; x++) {
        double count = 0;
        if (others && keys[x] == i)
            continue;
        for (int k = 0; k < R && !t->l->duplicates; k++)
            count += times(t, k, i, keys[x]);
        t->room.add[at + kept] = count > 1 ? -log(count) : 0;
        keys[kept++] = keys[x];
    }
    return (struct plain_row){.a = &t->n->a,
                              .b = t->b,
                              .h = t->h,
                              .i = i,
                              .keys = keys,
                              .add = t->room.add + at,
                              .n = kept,
                              .p = t->room.p + at};
}

/* A row that only sees itself has a constant in place of its score. */
static bool lonely(const struct plain_row *row) { return row->n == 0 || row->keys[0] == row->i; }

static double probs(const struct plain_row *row)
{
    if (!lonely(row))
        return plain_probs(row);
    for (int x = 0; x < row->n; x++)
        row->p[x] = 1.0 / row->n;
    return LONELY + log(row->n);
}

/* All rounds of query i: their rows, the weight of each, and o_r in the room. */
static void all_rounds(const struct head *t, int i, struct plain_row *rows, double *weight)
{
    const int R = t->l->rounds, dh = t->n->a.dh;
    double most = -INFINITY, sum = 0;

    memset(t->room.o, 0, sizeof(float) * (size_t)R * (size_t)dh);
    for (int r = 0; r < R; r++) {
        rows[r] = row_of(t, r, i);
        weight[r] = probs(&rows[r]);
        most = fmax(most, weight[r]);
        plain_output(&rows[r], 1, t->room.o + (ptrdiff_t)r * dh);
    }
    for (int r = 0; r < R; r++)
        sum += weight[r] = exp(weight[r] - most);
    for (int r = 0; r < R; r++)
        weight[r] /= sum;
}

enum { MOST_ROUNDS = 1 << 8 };

static void query_forward(const struct head *t, int i)
{
    const int dh = t->n->a.dh;
    float *const o = content_o(&t->n->a, t->b, t->h, i);
    struct plain_row rows[MOST_ROUNDS];
    double weight[MOST_ROUNDS];

    all_rounds(t, i, rows, weight);
    memset(o, 0, sizeof(*o) * (size_t)dh);
    for (int r = 0; r < t->l->rounds; r++)
        add_in_lanes(o, (float)weight[r], t->room.o + (ptrdiff_t)r * dh, dh);
}

/* dz_r = w_r d_o . (o_r - o) */
static void query_backward(const struct head *t, int i, const struct attn_grad *d)
{
    const struct attn *const a = &t->n->a;
    const float *const o = content_o(a, t->b, t->h, i), *const d_o = d->d_o + (o - a->o);
    struct plain_row rows[MOST_ROUNDS];
    double weight[MOST_ROUNDS], along = 0;

    all_rounds(t, i, rows, weight);
    for (int r = 0; r < t->l->rounds; r++)
        along += weight[r] * content_dot(d_o, t->room.o + (ptrdiff_t)r * a->dh, a->dh);
    for (int r = 0; r < t->l->rounds; r++) {
        const double own = content_dot(d_o, t->room.o + (ptrdiff_t)r * a->dh, a->dh);
        if (lonely(&rows[r]))
            add_in_lanes(d->d_v + (content_v(a, t->b, t->h, i) - a->v), (float)weight[r], d_o,
                         a->dh);
        else
            plain_grad(&rows[r], weight[r], d_o, weight[r] * (own - along), d);
    }
}

void lsh_chunked_head(const struct content_call *n, int head, const struct attn_grad *d)
{
    const size_t bytes = room_of(n->s, n->s->state.attention.largest.L, NULL).bytes;
    const struct lsh *const l = lsh_of(n->s->c);

    CHECK(n->a.M == 0 && n->a.L % l->chunk == 0 && l->rounds <= MOST_ROUNDS);
    const struct head t = {.n = n,
                           .l = l,
                           .room = room_of(n->s, n->a.L, content_room(n, bytes)),
                           .b = head / n->a.H,
                           .h = head % n->a.H};
    sort_rounds(&t);
    for (int i = 0; i < n->a.L; i++)
        if (d)
            query_backward(&t, i, d);
        else
            query_forward(&t, i);
}
