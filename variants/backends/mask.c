/* SPDX-License-Identifier: MIT
 *
 * Visibility in two forms: a rule per pair, and runs of keys that are extended term by term, so
 * that a row is walked without testing every pair. Bit rows are in mask_bits.c. */
#include "mask.h"

/* ---- rule per pair -----------------------------------------------------------------------------
 */

static bool block_visible(const struct mask *m, int64_t query, int64_t key)
{
    const int64_t a = query / m->block, c = key / m->block;

    if (a - c <= m->back && c - a <= m->back)
        return true;
    if (key < a * m->block && key >= a * m->block - m->memory)
        return true;
    for (int x = 0; x < m->n_random; x++)
        if (m->random[(a - m->random_from) * m->n_random + x] == c)
            return true;
    return false;
}

bool mask_visible(const struct mask *m, int64_t query, int64_t key)
{
    const int64_t n = query - key, far = n < 0 ? -n : n;
    const int64_t dilation = max_int(m->dilation, 1);

    if (m->rows)
        return mask_row(m, query)[key / 64] >> key % 64 & 1;
    return n == 0 || mask_hides_nothing(m) ||
           (m->window && far < m->window * dilation && far % dilation == 0) ||
           (m->block && block_visible(m, query, key)) || (m->stride && far % m->stride == 0) ||
           (m->fixed && key % m->fixed >= m->fixed - m->summary) ||
           (m->global && (key < m->global || query < m->global)) ||
           (m->rect && mask_rect_visible(m, query, key));
}

/* ---- runs of positions -------------------------------------------------------------------- */

/* Positions [from, to); from = NEVER means none. */
#define NEVER (INT64_MAX / 4)
struct run {
    int64_t from, to;
};
static const struct run no_run = {NEVER, NEVER};

/* The part of [from, to) at or after p. */
static struct run rest(int64_t p, int64_t from, int64_t to)
{
    return p < to ? (struct run){p > from ? p : from, to} : no_run;
}

/* The first position at or after p whose distance from q is a multiple of step. */
static struct run next_step(int64_t p, int64_t q, int64_t step)
{
    const int64_t ahead = ((q - p) % step + step) % step;

    return (struct run){p + ahead, p + ahead + 1};
}

/* The terms of a mask; RANDOM + x is random block x. */
enum term { OWN, WINDOW, BLOCK, MEMORY, STRIDE, FIXED, GLOBAL, RECT, RANDOM };

static int term_count(const struct mask *m) { return RANDOM + (m->block ? m->n_random : 0); }

static struct run next_in_window(const struct mask *m, int64_t q, int64_t p)
{
    const int64_t step = max_int(m->dilation, 1), first = q - (m->window - 1) * step;
    const struct run r = next_step(p > first ? p : first, q, step);

    if (step == 1)
        return rest(p, first, q + m->window);
    return r.from < q + m->window * step ? r : no_run;
}

static struct run next_summary(const struct mask *m, int64_t p)
{
    const int64_t end = (p / m->fixed + 1) * m->fixed;

    return m->summary > 0 ? rest(p, end - m->summary, end) : no_run;
}

static struct run next_random(const struct mask *m, int x, int64_t q, int64_t p)
{
    const int64_t block = m->random[(q / m->block - m->random_from) * m->n_random + x];

    return block < 0 ? no_run : rest(p, block * m->block, (block + 1) * m->block);
}

static struct run next_in_rect(const struct mask *m, int64_t q, int64_t p)
{
    struct run r;

    return mask_rect_next(m, q, p, &r.from, &r.to) ? r : no_run;
}

/* The next positions at or after p that a term shows to the query at q. */
static struct run next_of_term(const struct mask *m, int term, int64_t q, int64_t p)
{
    switch (term) {
    case OWN:
        return rest(p, q, q + 1);
    case WINDOW:
        return m->window ? next_in_window(m, q, p) : no_run;
    case BLOCK:
        return m->block ? rest(p, (q / m->block - m->back) * m->block,
                               (q / m->block + m->back + 1) * m->block)
                        : no_run;
    case MEMORY:
        return m->memory ? rest(p, q / m->block * m->block - m->memory, q / m->block * m->block)
                         : no_run;
    case STRIDE:
        return m->stride ? next_step(p, q, m->stride) : no_run;
    case FIXED:
        return m->fixed ? next_summary(m, p) : no_run;
    case GLOBAL:
        return m->global ? rest(p, 0, q < m->global ? NEVER : m->global) : no_run;
    case RECT:
        return m->rect ? next_in_rect(m, q, p) : no_run;
    default:
        return next_random(m, term - RANDOM, q, p);
    }
}

static struct run next_bits(const struct mask *m, int64_t q, int64_t p, int64_t end)
{
    struct range r = {0, (int)p};

    return bits_next(mask_row(m, q), 1, (int)end, &r) ? (struct run){r.from, r.to} : no_run;
}

/* The next contiguous positions in [p, end) that any term shows to the query at q. */
static struct run next_visible(const struct mask *m, int64_t q, int64_t p, int64_t end)
{
    const int n = term_count(m);
    struct run seen = no_run;

    if (mask_hides_nothing(m))
        return rest(p, p, end);
    if (m->rows)
        return next_bits(m, q, p, end);
    for (int t = 0; t < n; t++) {
        const struct run r = next_of_term(m, t, q, p);
        if (r.from < seen.from)
            seen = r;
    }
    for (int since = 0, t = 0; since < n && seen.to < end; t = (t + 1) % n, since++) {
        const struct run r = next_of_term(m, t, q, seen.to);
        if (r.from == seen.to) {
            seen.to = r.to;
            since = -1; /* every term may extend the run from here */
        }
    }
    return seen.from < end ? seen : no_run;
}

/* ---- keys of a query ---------------------------------------------------------------------- */

static int64_t query_at(const struct sight *s, int i)
{
    return s->query + (int64_t)i * s->query_step;
}

static int64_t key_at(const struct sight *s, int64_t j) { return s->key + j * s->key_step; }

static int64_t floor_div(int64_t x, int64_t by) { return x / by - (x % by < 0); }

static int64_t clamp_wide(int64_t x, int64_t lo, int64_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* The first key at or after a position, at most `most`. */
static int key_from(const struct sight *s, int64_t position, int most)
{
    return (int)clamp_wide(floor_div(position - s->key - 1, s->key_step) + 1, 0, most);
}

bool sight_visible(const struct sight *s, int i, int j)
{
    const int64_t q = query_at(s, i), k = key_at(s, j);

    return (!s->causal || q >= k) && (!s->window || q - k < s->window) &&
           (!s->mask || mask_visible(s->mask, q, k));
}

/* The range that causality and the window leave to query i. */
static struct range bounds(const struct sight *s, int i)
{
    const int64_t q = query_at(s, i);
    const int to = s->causal ? key_from(s, q + 1, s->K) : s->K;

    return (struct range){s->window ? key_from(s, q - s->window + 1, to) : 0, to};
}

/* The next contiguous keys at or after j that query i sees; [K, K) if there are none. */
static struct range next_of_query(const struct sight *s, int i, int j)
{
    const struct range none = {s->K, s->K}, all = bounds(s, i);
    const int64_t q = query_at(s, i), end = key_at(s, all.to - 1) + 1;
    struct range r = {max_int(j, all.from), 0};

    if (r.from >= all.to)
        return none;
    if (!s->mask)
        return (struct range){r.from, all.to};
    for (bool found = false; !found;) { /* a run may fall between two keys */
        const struct run seen = next_visible(s->mask, q, key_at(s, r.from), end);
        if (seen.from == NEVER)
            return none;
        r.from = key_from(s, seen.from, all.to);
        r.to = key_from(s, seen.to, all.to);
        found = r.from < r.to;
    }
    for (bool more = s->key_step > 1; more && r.to < all.to;) { /* or end between two */
        const struct run seen = next_visible(s->mask, q, key_at(s, r.to), end);
        more = seen.from == key_at(s, r.to);
        if (more)
            r.to = key_from(s, seen.to, all.to);
    }
    return r;
}

bool sight_next(const struct sight *s, int i, int n, struct range *r)
{
    struct range seen = {s->K, s->K};

    for (int x = i; x < i + n; x++) {
        const struct range own = next_of_query(s, x, r->to);
        if (own.from < seen.from)
            seen = own;
    }
    for (int since = 0, x = 0; n > 1 && since < n && seen.to < s->K; x = (x + 1) % n, since++) {
        const struct range own = next_of_query(s, i + x, seen.to);
        if (own.from == seen.to) {
            seen.to = own.to;
            since = -1;
        }
    }
    *r = seen;
    return seen.from < seen.to;
}

/* One past the last key that query i may see; its own key if causal. */
static int last_of_query(const struct sight *s, int i)
{
    const struct range all = bounds(s, i);
    struct range r = {0};
    int last = 0;

    if (s->causal && all.to > 0 && key_at(s, all.to - 1) == query_at(s, i))
        return all.to;
    while (sight_next(s, i, 1, &r))
        last = r.to;
    return last;
}

struct range sight_hull(const struct sight *s, int i, int n)
{
    struct range hull = {s->K, 0};

    if (!s->mask) /* neither end of a later query's range precedes an earlier query's */
        hull = (struct range){bounds(s, i).from, bounds(s, i + n - 1).to};
    for (int x = i; s->mask && x < i + n; x++) {
        hull.from = min_int(hull.from, next_of_query(s, x, 0).from);
        hull.to = max_int(hull.to, last_of_query(s, x));
    }
    return hull.from < hull.to ? hull : (struct range){0};
}

double sight_pairs(const struct sight *s)
{
    double pairs = 0;

    for (int i = 0; i < s->L; i++)
        for (struct range r = {0}; sight_next(s, i, 1, &r);)
            pairs += r.to - r.from;
    return pairs;
}
