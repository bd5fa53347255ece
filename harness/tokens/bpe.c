/* SPDX-License-Identifier: MIT
 *
 * See bpe.h. A word may be a whole text, so neighbours are linked and candidates wait in a heap:
 * n log n steps. Candidates whose pair is gone are recognised by its rank: one of
 * the same rank in its place waits there, too. */
#include "bpe.h"

enum status merges_open(struct merges *m, size_t n, struct err *e)
{
    *m = (struct merges){.slots = 16, .room = (int)n};
    while (m->slots < 2 * n)
        m->slots *= 2;
    m->at = malloc(m->slots * sizeof(*m->at));
    if (!m->at)
        return fail(e, E_NOMEM, "no memory for %zu merges", n);
    for (size_t i = 0; i < m->slots; i++)
        m->at[i].joint = -1;
    return OK;
}

/* The rule of a pair, or the free place for it. */
static struct merge *place_of(const struct merges *m, int32_t left, int32_t right)
{
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t i = (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (m->slots - 1);

    while (m->at[i].joint >= 0 && (m->at[i].left != left || m->at[i].right != right))
        i = (i + 1) & (m->slots - 1);
    return &m->at[i];
}

void merges_put(struct merges *m, struct merge rule)
{
    struct merge *const at = place_of(m, rule.left, rule.right);

    CHECK(m->n < m->room);
    if (at->joint < 0)
        *at = rule;
    m->n++;
}

bool merges_has(const struct merges *m, int32_t left, int32_t right)
{
    return place_of(m, left, right)->joint >= 0;
}

void merges_free(struct merges *m)
{
    free(m->at);
    *m = (struct merges){0};
}

enum status bpe_begin(struct bpe_work *w, size_t n, struct err *e)
{
    if (n > INT32_MAX / 4)
        return fail(e, E_IO,
                    "a word of %zu characters is too long  -> give a text of shorter words", n);
    if (n > w->room) {
        bpe_free(w);
        w->room = 2 * n;
        w->symbol = malloc(w->room * sizeof(*w->symbol));
        w->heap = malloc(2 * w->room * sizeof(*w->heap)); /* n-1 pairs; each join replaces one
                                                             by two at most */
    }
    if (n > 0 && (!w->symbol || !w->heap)) {
        bpe_free(w);
        return fail(e, E_NOMEM, "no memory for a word of %zu characters", n);
    }
    w->n = w->queued = 0;
    return OK;
}

void bpe_add(struct bpe_work *w, int32_t id)
{
    CHECK(w->n < w->room);
    if (w->n > 0)
        w->symbol[w->n - 1].after = (int32_t)w->n;
    w->symbol[w->n] = (struct symbol){id, (int32_t)w->n - 1, -1};
    w->n++;
}

static bool goes_first(struct candidate a, struct candidate b)
{
    return a.rank < b.rank || (a.rank == b.rank && a.at < b.at);
}

static void swap(struct candidate *a, struct candidate *b)
{
    const struct candidate kept = *a;

    *a = *b;
    *b = kept;
}

static const struct merge *rule_of(const struct bpe_work *w, const struct merges *m, int32_t at)
{
    const int32_t after = w->symbol[at].after;

    return after < 0 ? NULL : place_of(m, w->symbol[at].id, w->symbol[after].id);
}

/* The pair that begins at `at`, if a rule joins it. */
static void queue(struct bpe_work *w, const struct merges *m, int32_t at)
{
    const struct merge *const rule = at < 0 ? NULL : rule_of(w, m, at);
    size_t i = w->queued;

    if (!rule || rule->joint < 0)
        return;
    w->heap[w->queued++] = (struct candidate){rule->rank, at};
    for (; i > 0 && goes_first(w->heap[i], w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&w->heap[i], &w->heap[(i - 1) / 2]);
}

static struct candidate take_first(struct bpe_work *w)
{
    const struct candidate first = w->heap[0];

    w->heap[0] = w->heap[--w->queued];
    for (size_t i = 0, k; (k = 2 * i + 1) < w->queued; i = k) {
        k += k + 1 < w->queued && goes_first(w->heap[k + 1], w->heap[k]);
        if (!goes_first(w->heap[k], w->heap[i]))
            break;
        swap(&w->heap[k], &w->heap[i]);
    }
    return first;
}

void bpe_run(struct bpe_work *w, const struct merges *m)
{
    for (size_t i = 0; i + 1 < w->n; i++)
        queue(w, m, (int32_t)i);
    while (w->queued > 0) {
        const struct candidate c = take_first(w);
        struct symbol *const s = &w->symbol[c.at];
        const struct merge *const rule = s->id < 0 ? NULL : rule_of(w, m, c.at);
        if (!rule || rule->joint < 0 || rule->rank != c.rank)
            continue;
        struct symbol *const gone = &w->symbol[s->after];
        s->id = rule->joint;
        s->after = gone->after;
        gone->id = -1;
        if (s->after >= 0)
            w->symbol[s->after].before = c.at;
        queue(w, m, s->before);
        queue(w, m, c.at);
    }
}

void bpe_free(struct bpe_work *w)
{
    free(w->symbol);
    free(w->heap);
    *w = (struct bpe_work){0};
}
