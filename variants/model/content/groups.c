/* SPDX-License-Identifier: MIT
 *
 * Gathering by group in front of the ordinary kernel. */
#include "groups.h"

/* ---- work space --------------------------------------------------------------------------- */

/* Members of all groups of all heads, and each thread's gathered rows. */
struct space {
    int32_t *members; /* [B,H, 2 K] rows in order of group and position */
    int32_t *starts;  /* [B,H, n+1] */
    int32_t *fill;    /* [threads, n] */
    char *threads;
    size_t per_thread;
};

/* A thread's: operands of one group, their gradients, bits. */
struct gathered {
    float *q, *k, *v, *o, *lse, *d_o, *d_q, *d_k, *d_v;
    uint64_t *bits, *running; /* [queries, words], [words] */
    int32_t *queue;           /* members that are visible at present */
};

static struct gathered gathered_at(const struct sublayer *s, char *base, size_t *bytes)
{
    const struct extent max = s->state.attention.largest;
    const size_t L = (size_t)max.L, K = L + (size_t)max.M, dh = (size_t)s->c->dh;
    const size_t q = L * dh * sizeof(float), k = K * dh * sizeof(float);
    const size_t words = (size_t)bits_words((int)K);
    size_t at = 0;
    struct gathered x;

    x.q = content_place(base, &at, 1, q);
    x.k = content_place(base, &at, 1, k);
    x.v = content_place(base, &at, 1, k);
    x.o = content_place(base, &at, 1, q);
    x.lse = content_place(base, &at, L, sizeof(*x.lse));
    x.d_o = content_place(base, &at, 1, q);
    x.d_q = content_place(base, &at, 1, q);
    x.d_k = content_place(base, &at, 1, k);
    x.d_v = content_place(base, &at, 1, k);
    x.bits = content_place(base, &at, s->c->share_qk ? 0 : L * words, sizeof(*x.bits));
    x.running = content_place(base, &at, words, sizeof(*x.running));
    x.queue = content_place(base, &at, K, sizeof(*x.queue));
    if (bytes)
        *bytes = at;
    return x;
}

static struct space space_of(const struct sublayer *s, struct extent max, int groups, int threads,
                             char *base, size_t *bytes)
{
    const size_t heads = (size_t)max.B * (size_t)s->c->H, K = (size_t)max.M + (size_t)max.L;
    const size_t n = (size_t)groups;
    struct space x;
    size_t at = 0;

    gathered_at(s, NULL, &x.per_thread);
    x.members = content_place(base, &at, heads * 2 * K, sizeof(*x.members));
    x.starts = content_place(base, &at, heads * (n + 1), sizeof(*x.starts));
    x.fill = content_place(base, &at, (size_t)threads * n, sizeof(*x.fill));
    x.threads = content_place(base, &at, (size_t)threads, x.per_thread);
    if (bytes)
        *bytes = at;
    return x;
}

size_t groups_scratch(const struct sublayer *s, struct extent max, int groups, int threads)
{
    size_t bytes;

    space_of(s, max, groups, threads, NULL, &bytes);
    return bytes;
}

/* Bits that hide nothing in particular: a sign that there will be some. */
static const uint64_t some_bits[1] = {1};
static const struct mask with_bits = {.rows = some_bits, .row_words = 1};

struct attn groups_core(const struct sublayer *s, struct extent max)
{
    const struct config *const c = s->c;
    const int K = max.M + max.L;
    struct attn a = {.B = 1,
                     .H = 1,
                     .Hkv = 1,
                     .L = max.L,
                     .dh = c->dh,
                     .scale = c->scale,
                     .q_at = {0, c->dh},
                     .k_at = {0, c->dh},
                     .v_at = {0, c->dh},
                     .o_at = {0, c->dh}};

    if (c->share_qk) {
        a.M = max.M;
        a.causal = true;
        a.window = K;
    } else {
        a.K = K;
        a.mask = &with_bits;
    }
    return a;
}

/* ---- members ------------------------------------------------------------------------------ */

struct run {
    const struct content_call *n;
    const struct groups *groups;
    const struct attn_grad *d; /* NULL = forward */
    struct space space;
    int K;
    bool shared; /* each row is in one group, as query and as key */
    bool dry;    /* rows are copied, and nothing runs */
};

static int number(const struct run *r, int b, int h, int j, int which)
{
    const int each = r->groups->numbers;

    return (int)head_row(r->n->numbers, b, j, h, each)[which];
}

static int key_number(const struct run *r, int b, int h, int j)
{
    return number(r, b, h, j, r->groups->at_key);
}

static int query_number(const struct run *r, int b, int h, int j)
{
    return number(r, b, h, j, r->groups->at_query);
}

static int32_t *members_of(const struct run *r, int head)
{
    return r->space.members + (ptrdiff_t)head * 2 * r->K;
}

static int32_t *starts_of(const struct run *r, int head)
{
    return r->space.starts + (ptrdiff_t)head * (r->groups->n + 1);
}

/* A counting sort by number; a query stands in its group even where its key is in another. */
static void sort_head(const struct run *r, int head, int32_t *fill)
{
    const int M = r->n->a.M, n = r->groups->n, b = head / r->n->a.H, h = head % r->n->a.H;
    int32_t *const members = members_of(r, head), *const starts = starts_of(r, head);

    memset(fill, 0, sizeof(*fill) * (size_t)n);
    for (int pass = 0; pass < 2; pass++) {
        for (int j = 0; j < r->K; j++) {
            const int of_key = key_number(r, b, h, j);
            const int of_query = r->shared || j < M ? of_key : query_number(r, b, h, j);
            CHECK(of_key >= 0 && of_key < n && of_query >= 0 && of_query < n);
            if (pass)
                members[fill[of_key]] = j;
            fill[of_key]++;
            if (of_query != of_key) {
                if (pass)
                    members[fill[of_query]] = j;
                fill[of_query]++;
            }
        }
        for (int c = 0, at = 0; c <= n && !pass; c++) {
            const int count = c < n ? fill[c] : 0;
            starts[c] = at;
            if (c < n)
                fill[c] = at;
            at += count;
        }
    }
}

/* ---- one group ---------------------------------------------------------------------------- */

/* Rows of a group: members [0, n) in order of position. */
struct group {
    const struct run *r;
    struct gathered x;
    int b, h, c, n;
    const int32_t *row;
};

static size_t row_bytes(const struct group *p) { return sizeof(float) * (size_t)p->r->n->a.dh; }

static void gather_keys(const struct group *p, int from, int to)
{
    const struct attn *const a = &p->r->n->a;

    for (int x = from; x < to; x++) {
        const ptrdiff_t at = (ptrdiff_t)(x - from) * a->dh;
        memcpy(p->x.k + at, content_k(a, p->b, p->h, p->row[x]), row_bytes(p));
        memcpy(p->x.v + at, content_v(a, p->b, p->h, p->row[x]), row_bytes(p));
    }
}

/* The x-th query: the new row of member m. */
static void gather_query(const struct group *p, int x, int m)
{
    const struct attn *const a = &p->r->n->a;
    const struct attn_grad *const d = p->r->d;
    const int i = p->row[m] - a->M;
    const ptrdiff_t at = (ptrdiff_t)x * a->dh, o_at = content_o(a, p->b, p->h, i) - a->o;

    memcpy(p->x.q + at, content_q(a, p->b, p->h, i), row_bytes(p));
    if (d) {
        memcpy(p->x.o + at, a->o + o_at, row_bytes(p));
        memcpy(p->x.d_o + at, d->d_o + o_at, row_bytes(p));
        p->x.lse[x] = a->lse[((ptrdiff_t)p->b * a->H + p->h) * a->L + i];
    }
}

static void scatter_query(const struct group *p, int x, int m)
{
    const struct attn *const a = &p->r->n->a;
    const struct attn_grad *const d = p->r->d;
    const int i = p->row[m] - a->M;
    const ptrdiff_t at = (ptrdiff_t)x * a->dh;

    if (d) {
        add_in_lanes(d->d_q + (content_q(a, p->b, p->h, i) - a->q), 1, p->x.d_q + at, a->dh);
        return;
    }
    memcpy(content_o(a, p->b, p->h, i), p->x.o + at, row_bytes(p));
    if (a->lse)
        a->lse[((ptrdiff_t)p->b * a->H + p->h) * a->L + i] = p->x.lse[x];
}

static void scatter_keys(const struct group *p, int from, int to)
{
    const struct attn *const a = &p->r->n->a;
    const struct attn_grad *const d = p->r->d;

    for (int x = from; x < to; x++) {
        const ptrdiff_t at = (ptrdiff_t)(x - from) * a->dh;
        add_in_lanes(d->d_k + (content_k(a, p->b, p->h, p->row[x]) - a->k), 1, p->x.d_k + at,
                     a->dh);
        add_in_lanes(d->d_v + (content_v(a, p->b, p->h, p->row[x]) - a->v), 1, p->x.d_v + at,
                     a->dh);
    }
}

static void run_core(const struct group *p, struct attn one)
{
    const struct attn_grad d = {.d_o = p->x.d_o, .d_q = p->x.d_q, .d_k = p->x.d_k, .d_v = p->x.d_v};

    if (p->r->dry)
        return;
    one.q = p->x.q;
    one.k = p->x.k;
    one.v = p->x.v;
    one.o = p->x.o;
    one.lse = p->r->n->a.lse ? p->x.lse : NULL;
    content_core(p->r->n, &one, p->r->d ? &d : NULL);
}

/* A query that sees its own row only. */
static void alone(const struct group *p, int m)
{
    const struct attn *const a = &p->r->n->a;
    const struct attn_grad *const d = p->r->d;
    const int j = p->row[m], i = j - a->M;
    float *const o = content_o(a, p->b, p->h, i);

    if (d) {
        add_in_lanes(d->d_v + (content_v(a, p->b, p->h, j) - a->v), 1, d->d_o + (o - a->o), a->dh);
        return;
    }
    memcpy(o, content_v(a, p->b, p->h, j), row_bytes(p));
    if (a->lse)
        a->lse[((ptrdiff_t)p->b * a->H + p->h) * a->L + i] =
            a->scale *
            (float)content_dot(content_q(a, p->b, p->h, i), content_k(a, p->b, p->h, j), a->dh);
}

/* Members before a query that it sees at most. */
static int most_before(const struct groups *what)
{
    return !what->newest ? INT_MAX / 2 : what->newest - what->own_counts;
}

/* Queries are the last members, each after its keys: plain causal attention, in which the own
 * position is a key, or with self_last the member before. */
static void plain_group(const struct group *p)
{
    const struct groups *const what = p->r->groups;
    const int M = p->r->n->a.M, before = most_before(what), late = what->self_last;
    int first = 0;

    while (first < p->n && p->row[first] < M)
        first++;
    for (; late && first < p->n && (first == 0 || before == 0); first++)
        alone(p, first);
    if (first == p->n)
        return;
    struct attn one = groups_core(p->r->n->s, (struct extent){.L = p->n - first});
    const int from = max_int(0, first - before), to = p->n - late;
    one.M = first - from - late;
    one.window = min_int(before, p->n) + !late;
    gather_keys(p, from, to);
    for (int x = 0; x < one.L; x++)
        gather_query(p, x, first + x);
    run_core(p, one);
    for (int x = 0; x < one.L; x++)
        scatter_query(p, x, first + x);
    if (p->r->d)
        scatter_keys(p, from, to);
}

static void set_bit(uint64_t *row, int j, bool to)
{
    const uint64_t bit = (uint64_t)1 << j % 64;

    row[j / 64] = to ? row[j / 64] | bit : row[j / 64] & ~bit;
}

static bool no_bits(const uint64_t *row, int words)
{
    for (int w = 0; w < words; w++)
        if (row[w])
            return false;
    return true;
}

/* Whether a member is one as a key, as a query. */
static bool is_key(const struct group *p, int m)
{
    return key_number(p->r, p->b, p->h, p->row[m]) == p->c;
}

static bool is_query(const struct group *p, int m)
{
    return p->row[m] >= p->r->n->a.M && query_number(p->r, p->b, p->h, p->row[m]) == p->c;
}

/* The keys that each query sees, among all members; returns the number of queries. `running` are
 * the newest keys at each member. */
static int set_bits(const struct group *p)
{
    const struct groups *const what = p->r->groups;
    const int words = bits_words(p->n);
    int oldest = 0, keys = 0, queries = 0;

    memset(p->x.running, 0, sizeof(uint64_t) * (size_t)words);
    for (int m = 0; m < p->n; m++) {
        const bool key = is_key(p, m);
        if (key) {
            p->x.queue[keys++] = m;
            set_bit(p->x.running, m, true);
        }
        const int seen = what->newest ? what->newest + (key && !what->own_counts) : INT_MAX;
        while (keys - oldest > seen) {
            set_bit(p->x.running, p->x.queue[oldest++], false);
        }
        if (!is_query(p, m))
            continue;
        uint64_t *const row = p->x.bits + (ptrdiff_t)queries++ * words;
        memcpy(row, p->x.running, sizeof(uint64_t) * (size_t)words);
        set_bit(row, m, !what->self_last);
        if (no_bits(row, words))
            set_bit(row, m, true);
    }
    return queries;
}

static void mixed_group(const struct group *p)
{
    struct attn one = groups_core(p->r->n->s, (struct extent){.L = 1});
    struct mask bits = {.rows = p->x.bits, .row_words = bits_words(p->n)};

    one.L = set_bits(p);
    one.K = p->n;
    one.mask = &bits;
    if (one.L == 0)
        return;
    gather_keys(p, 0, p->n);
    for (int m = 0, x = 0; m < p->n; m++)
        if (is_query(p, m))
            gather_query(p, x++, m);
    run_core(p, one);
    for (int m = 0, x = 0; m < p->n; m++)
        if (is_query(p, m))
            scatter_query(p, x++, m);
    if (p->r->d)
        scatter_keys(p, 0, p->n);
}

static void run_group(const struct run *r, int head, int c)
{
    const int worker = omp_get_thread_num();
    const int32_t *const starts = starts_of(r, head);

    CHECK(r->space.threads);
    const struct group p = {
        .r = r,
        .x = gathered_at(r->n->s, r->space.threads + (size_t)worker * r->space.per_thread, NULL),
        .b = head / r->n->a.H,
        .h = head % r->n->a.H,
        .c = c,
        .n = starts[c + 1] - starts[c],
        .row = members_of(r, head) + starts[c],
    };

    if (r->shared)
        plain_group(&p);
    else
        mixed_group(&p);
}

/* ---- all groups --------------------------------------------------------------------------- */

static void run_all(const struct content_call *n, const struct groups *what,
                    const struct attn_grad *d, bool dry)
{
    const struct sublayer *const s = n->s;
    const int heads = n->a.B * n->a.H, groups = what->n;
    char *const room = content_own_scratch(n);

    CHECK(room);
    const struct run r = {.n = n,
                          .groups = what,
                          .d = d,
                          .dry = dry,
                          .space = space_of(s, s->state.attention.largest, groups,
                                            s->state.attention.workers, room, NULL),
                          .K = n->a.M + n->a.L,
                          .shared = s->c->share_qk};
    /* Keys that several groups have are added to by one thread. */
    const int per_item = d && !r.shared ? groups : 1;

#pragma omp parallel num_threads(content_team(n))
    {
#pragma omp for schedule(static, 1)
        for (int head = 0; head < heads; head++)
            sort_head(&r, head, r.space.fill + (ptrdiff_t)omp_get_thread_num() * groups);
#pragma omp for schedule(dynamic, 1)
        for (ptrdiff_t item = 0; item < (ptrdiff_t)heads * groups / per_item; item++)
            for (ptrdiff_t x = item * per_item; x < (item + 1) * per_item; x++)
                run_group(&r, (int)(x / groups), (int)(x % groups));
    }
}

void groups_run(const struct content_call *n, const struct groups *what, const struct attn_grad *d)
{
    run_all(n, what, d, false);
}

void groups_gather(const struct content_call *n, const struct groups *what)
{
    run_all(n, what, NULL, true);
}

/* ---- inspection --------------------------------------------------------------------------- */

bool groups_visible(const struct content_call *n, const struct groups *what, int b, int h, int i,
                    int j)
{
    const struct run r = {.n = n, .groups = what};
    const int own = n->a.M + i, c = query_number(&r, b, h, own);
    const bool member = key_number(&r, b, h, own) == c;
    int left = what->newest ? what->newest - (member && what->own_counts) : INT_MAX;
    bool others = false, sees = false;

    for (int k = own - 1; k >= 0 && left > 0; k--)
        if (key_number(&r, b, h, k) == c) {
            others = true;
            sees = sees || k == j;
            left--;
        }
    return j == own ? !what->self_last || !others : sees;
}

/* A group has M/n members before the new ones, of which its first query sees some; with self_last
 * its last member is no key, and without members before, its first query's value goes straight to
 * the output. Where queries and keys have groups of their own, a new row is in two of them. */
double groups_moved(const struct groups *what, bool shared, int L, int M)
{
    const double n = what->n, before = (double)M / n, most = most_before(what);
    const double late = what->self_last, alone = what->self_last && M == 0 ? 1 : 0;

    if (!shared)
        return 2.0 * L + 2 * (M + L + L * (1 - 1 / n));
    const double keys = (before < most ? before : most) + L / n - late;
    return n * (2 * (L / n - alone) + 2 * (keys > 0 ? keys : 0) + alone);
}

double groups_pairs(const struct groups *what, int L, int M)
{
    double pairs = 0;

    for (int i = 0; i < L; i++) {
        const double members = (double)(M + i) / what->n, most = most_before(what);
        const double others = members < most ? members : most;
        pairs += what->self_last ? (others > 1 ? others : 1) : 1 + others;
    }
    return pairs;
}
