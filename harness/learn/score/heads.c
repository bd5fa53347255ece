/* SPDX-License-Identifier: MIT
 *
 * Entropy, sparsity, rank and likeness of attention. */
#include "heads.h"

#include "energy.h"
#include "harness/measure/stats.h"
#include "harness/util/text_table.h"

/* Of the probability, and of the energy of a matrix. A sum of tenths may be a little less. */
static const double SHARE = 0.9 - 1e-9;

/* Sums, and of how many. */
struct mean {
    double sum, n;
};

struct head {
    struct attn_place at; /* of its attention's first call */
    int attention, of;    /* its number, and which head of it */
    struct mean visible, entropy, keys90, rank90, values90, apart_heads, apart_before;
};

static void add(struct mean *m, double x)
{
    m->sum += x;
    m->n++;
}

/* ---- of one query ------------------------------------------------------------------------- */

/* -sum p ln p */
static double entropy(const double *p, int n)
{
    double sum = 0;

    for (int j = 0; j < n; j++)
        sum -= p[j] > 0 ? p[j] * log(p[j]) : 0;
    return sum;
}

/* The least number of keys that have SHARE of the probability; sorts p. */
static int keys_of_share(double *p, int n)
{
    double sum = 0;
    int keys = 0;

    sort_numbers(p, n);
    while (keys < n && sum < SHARE)
        sum += p[n - ++keys];
    return keys;
}

/* The Jensen-Shannon divergence in bits, from 0 (equal) to 1 (no key in common):
 *
 *   H((p + q) / 2) - (H(p) + H(q)) / 2 */
static double divergence(const double *p, const double *q, int n)
{
    double sum = 0;

    for (int j = 0; j < n; j++) {
        const double m = (p[j] + q[j]) / 2;
        sum += p[j] > 0 ? p[j] * log2(p[j] / m) : 0;
        sum += q[j] > 0 ? q[j] * log2(q[j] / m) : 0;
    }
    return sum / 2;
}

static bool sees(const double *p, int n)
{
    for (int j = 0; j < n; j++)
        if (p[j] > 0)
            return true;
    return false;
}

/* ---- of one call -------------------------------------------------------------------------- */

/* The mean divergence of two heads [L,keys] over queries that see a key; NAN if none does. */
static double heads_apart(const double *p, const double *q, int L, int keys)
{
    struct mean m = {0};

    for (int i = 0; i < L; i++, p += keys, q += keys)
        if (sees(p, keys) && sees(q, keys))
            add(&m, divergence(p, q, keys));
    return m.sum / m.n;
}

/* Was the last call of the sub-layer before it that is of its kind, or of the softmax before it in the
 * same one, with the same queries and as many keys? */
static bool follows(const struct heads *s, const struct attn_place *at, int L, int keys)
{
    const struct attn_place *const last = &s->last;
    const bool same = last->weights == at->weights && last->nth == at->nth;
    const bool next = last->nth + 1 == at->nth || (same && last->part + 1 == at->part);
    const bool alike = last->first == at->first && s->L == L && s->keys == keys;

    return last->kind == at->kind && next && alike;
}

/* Of queries from `skip` on. */
static void add_apart(const struct heads *s, struct head *to, const struct attn_place *at, int H,
                      int L, int keys, int skip)
{
    const ptrdiff_t size = (ptrdiff_t)L * keys, seen = (ptrdiff_t)skip * keys;
    const double *const now = s->now + seen, *const mine = now + to->of * size;
    double least = NAN;

    for (int other = 0; other < H; other++)
        if (other != to->of)
            add(&to->apart_heads, heads_apart(mine, now + other * size, L - skip, keys));
    for (int other = 0; follows(s, at, L, keys) && other < s->H; other++)
        least = fmin(least, heads_apart(mine, s->before + seen + other * size, L - skip, keys));
    if (!isnan(least))
        add(&to->apart_before, least);
}

static void add_queries(struct head *to, const double *p, int L, int keys, double *sorted)
{
    for (int i = 0; i < L; i++, p += keys) {
        int visible = 0;
        for (int j = 0; j < keys; j++)
            visible += p[j] > 0;
        if (visible == 0)
            continue;
        memcpy(sorted, p, sizeof(*p) * (size_t)keys);
        add(&to->visible, visible);
        add(&to->entropy, entropy(p, keys));
        add(&to->keys90, keys_of_share(sorted, keys));
    }
}

/* The rank of the values of all heads; -1 without memory, 0 where they are not floats. */
static int rank_of_values(const struct attn *a)
{
    const int K = attn_keys(a), width = a->Hkv * attn_dv(a);

    if (!a->v)
        return 0;
    double *const v = malloc(sizeof(*v) * (size_t)K * (size_t)width);
    for (int j = 0; v && j < K; j++)
        for (int i = 0; i < width; i++)
            v[(ptrdiff_t)j * width + i] = (double)a->v[j * a->v_at.row + i];
    const int rank = v ? energy_rank(v, K, width, width, SHARE) : -1;
    free(v);
    return rank;
}

/* The first head of the attention, which its first call adds. */
static enum status heads_of(struct heads *s, const struct attn_place *at, int H, size_t *first,
                            struct err *e)
{
    const int attention = s->n > 0 ? s->head[s->n - 1].attention + 1 : 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct attn_place *const it = &s->head[i].at;
        if (it->weights == at->weights && it->nth == at->nth && it->part == at->part) {
            *first = i;
            return OK;
        }
    }
    *first = s->n;
    for (int h = 0; h < H; h++) {
        TRY(GROW(s->head, s->n, e));
        s->head[s->n++] = (struct head){.at = *at, .attention = attention, .of = h};
    }
    return OK;
}

/* Room for one more matrix, and for what computes it or sorts a row. */
static enum status make_room(struct heads *s, size_t matrix, size_t work, struct err *e)
{
    const size_t size = sizeof(double) * (matrix + work);
    double *const now = realloc(s->now, size);

    if (!now)
        return fail(e, E_NOMEM, "no memory for %zu bytes of probabilities", size);
    s->now = now;
    return OK;
}

static void see(void *arg, const struct engine *g, const struct attn_place *at,
                const struct attn *a)
{
    struct heads *const s = arg;
    const int H = a->H, L = a->L, keys = attn_keys(a) + a->sinks;
    const size_t size = (size_t)L * (size_t)keys, all = (size_t)H * size;
    const size_t work = attn_probabilities_work(a);
    const int skip = clamp_int(s->from / at->tokens - at->first, 0, L);
    size_t first;
    struct err e;

    if (!s->watching || skip == L || s->st != OK ||
        (s->st = heads_of(s, at, H, &first, &e)) != OK ||
        (s->st = make_room(s, all, work > (size_t)keys ? work : (size_t)keys, &e)) != OK)
        return;
    double *const spare = s->now + all;
    attn_probabilities(g, at, a, s->now, spare);
    const int values = rank_of_values(a);
    for (int h = 0; h < H; h++) {
        struct head *const to = &s->head[first + (size_t)h];
        const double *const mine = s->now + (size_t)h * size + (ptrdiff_t)skip * keys;
        const int rank = energy_rank(mine, L - skip, keys, keys, SHARE);
        if (rank < 0 || values < 0) {
            s->st = E_NOMEM;
            return;
        }
        add_queries(to, mine, L - skip, keys, spare);
        add_apart(s, to, at, H, L, keys, skip);
        add(&to->rank90, rank);
        if (values > 0)
            add(&to->values90, values);
    }
    double *const swap = s->before;
    s->before = s->now;
    s->now = swap;
    s->H = H, s->L = L, s->keys = keys;
    s->last = *at;
}

void heads_watch(struct heads *s, struct engine *g)
{
    s->watch = (struct attn_watch){.see = see, .arg = s};
    engine_watch(g, &s->watch);
}

void heads_pass(struct heads *s, int from)
{
    s->from = from;
    s->H = 0;
    s->watching = true;
}

enum status heads_seen(struct heads *s, struct err *e)
{
    s->watching = false;
    if (s->st != OK)
        return fail(e, s->st, "no memory to look at attention  -> lower --seq or --mem");
    if (s->n == 0)
        return fail(e, E_UNSUPPORTED,
                    "--attention: this model has no attention with probabilities of keys  -> leave "
                    "it out, or score another");
    return OK;
}

static bool heads_has(const struct heads *s, int layer)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->head[i].at.layer == layer)
            return true;
    return false;
}

void heads_free(struct heads *s)
{
    free(s->head);
    free(s->before);
    free(s->now);
    *s = (struct heads){0};
}

void heads_note(char *note, size_t size, const struct lm *m, const struct heads *seen)
{
    enum { ROOM = 16 }; /* for one more layer, and for what says that more follow */
    const struct sublayers *const all = &m->sublayers;
    int said = -1;

    for (int i = 0; i < all->n; i++) {
        const struct sublayer *const s = &all->at[i];
        if (!s->kind->mixes || s->layer <= said || heads_has(seen, s->layer))
            continue;
        if (said >= 0 && size - strlen(note) < ROOM) {
            text_append(note, size, ", ...");
            return;
        }
        text_append(note, size, "%s%s%d", said < 0 && *note ? "; " : "",
                    said < 0 ? "--attention: no probabilities of layers " : ", ", s->layer + 1);
        said = s->layer;
    }
}

/* ---- the file ----------------------------------------------------------------------------- */

static void add_row(struct text_table *t, const struct head *h)
{
    const struct mean *const m[] = {&h->visible,  &h->entropy,     &h->keys90,      &h->rank90,
                                    &h->values90, &h->apart_heads, &h->apart_before};

    text_table_cell(t, "%d", h->at.layer + 1);
    text_table_cell(t, "%d", h->attention + 1);
    text_table_cell(t, "%d", h->of + 1);
    text_table_cell(t, "%.0f", h->visible.n);
    for (size_t i = 0; i < ARRAY_LEN(m); i++)
        text_table_number(t, "%.6g", m[i]->sum / m[i]->n);
}

enum status heads_write(const struct heads *s, const char *path, struct err *e)
{
    static const struct text_table_column columns[] = {
        {.name = "layer"},          {.name = "attention"},       {.name = "head"},
        {.name = "queries"},        {.name = "visible_keys"},    {.name = "entropy_nats"},
        {.name = "keys90"},         {.name = "rank90"},          {.name = "values_rank90"},
        {.name = "jsd_heads_bits"}, {.name = "jsd_before_bits"},
    };
    struct text_table t = {.column = columns, .columns = ARRAY_LEN(columns)};

    for (size_t i = 0; i < s->n; i++)
        add_row(&t, &s->head[i]);
    const enum status st = text_table_write(&t, path, e);
    text_table_free(&t);
    return st;
}
