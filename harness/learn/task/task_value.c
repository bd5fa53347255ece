/* SPDX-License-Identifier: MIT
 *
 * Exact returns by enumeration. What an agent knows of an episode that draws nothing after its start
 * is the list of the states that it can be in, all as likely: its belief. With the sum over the
 * states s of a belief b that an action a parts by what is then seen, o, and paid, r,
 *
 *   V(b) = max_a sum_{o,r} |b_{a,o,r}| / |b| (r + V(b_{a,o,r})),    0 at the end. */
#include "task.h"

#include <xxhash.h>

/* ---- beliefs -------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct episode) == 20 + 4 * EPISODE_STATE, "no gaps");

struct belief {
    XXH128_hash_t key; /* of the states, their time with them; 128 bits do not meet by chance */
    size_t from;       /* first of its states */
    int n;
    double value;
    int best;
};

/* All that can be believed, in order of time. */
struct beliefs {
    const struct task *t;
    struct episode *states;
    size_t n_states, room_states;
    struct belief *v;
    size_t n, room;
    size_t *place; /* [places] of a belief by its key: its number + 1, 0 = none */
    size_t places; /* a power of two, twice as many as beliefs at least */
    /* for one action of one belief, each with room for all starts */
    struct episode *before, *to, *part;
    double *reward;
};

static size_t *place_of(const struct beliefs *s, XXH128_hash_t key)
{
    size_t i = key.low64 & (s->places - 1);

    while (s->place[i] && !XXH128_isEqual(s->v[s->place[i] - 1].key, key))
        i = (i + 1) & (s->places - 1);
    return &s->place[i];
}

static void make_room(struct beliefs *s, int n)
{
    if (s->n == s->room) {
        s->room = 2 * s->room + 512;
        s->v = realloc(s->v, s->room * sizeof(*s->v));
        NEED(s->v);
        free(s->place);
        for (s->places = 1; s->places < 2 * s->room;)
            s->places *= 2;
        s->place = need_room(s->places, sizeof(*s->place));
        for (size_t i = 0; i < s->n; i++)
            *place_of(s, s->v[i].key) = i + 1;
    }
    if (s->n_states + (size_t)n > s->room_states) {
        s->room_states = 2 * s->room_states + (size_t)n;
        s->states = realloc(s->states, s->room_states * sizeof(*s->states));
        NEED(s->states);
    }
}

/* The belief of these states, new if it is none yet. */
static struct belief *believe(struct beliefs *s, const struct episode *states, int n)
{
    make_room(s, n);
    const XXH128_hash_t key = XXH3_128bits(states, (size_t)n * sizeof(*states));
    size_t *const place = place_of(s, key);
    if (!*place) {
        s->v[s->n] = (struct belief){.key = key, .from = s->n_states, .n = n};
        memcpy(s->states + s->n_states, states, (size_t)n * sizeof(*states));
        s->n_states += (size_t)n;
        *place = ++s->n;
    }
    return &s->v[*place - 1];
}

/* Returns how many ways to begin there are. */
static int open_beliefs(struct beliefs *s, const struct task *t)
{
    const int n = t->kind->starts(t);

    CHECK(n > 0);
    *s = (struct beliefs){.t = t};
    s->before = need_room(3 * (size_t)n, sizeof(*s->before));
    s->reward = need_room((size_t)n, sizeof(*s->reward));
    s->to = s->before + n;
    s->part = s->to + n;
    return n;
}

static void close_beliefs(struct beliefs *s)
{
    free(s->states);
    free(s->v);
    free(s->place);
    free(s->before);
    free(s->reward);
}

/* Return from one action on, of what belief i is; or, first of all, what can be believed then. */
static double after(struct beliefs *s, size_t i, int action)
{
    const int n = s->v[i].n;
    double sum = 0;

    memcpy(s->before, s->states + s->v[i].from, (size_t)n * sizeof(*s->before));
    for (int k = 0; k < n; k++) {
        s->to[k] = s->before[k];
        s->reward[k] = task_step(s->t, &s->to[k], action);
        sum += s->reward[k];
    }
    if (s->to[0].t == task_length(s->t))
        return sum / n;
    /* Each part is taken at its first state; those that were taken have a reward of NAN. */
    for (int k = 0; k < n; k++) {
        if (isnan(s->reward[k]))
            continue;
        const int seen = task_observe(s->t, &s->to[k]);
        const double paid = s->reward[k];
        int m = 0;
        for (int j = k; j < n; j++)
            if (s->reward[j] == paid && task_observe(s->t, &s->to[j]) == seen) {
                s->part[m++] = s->to[j];
                s->reward[j] = NAN;
            }
        sum += m * believe(s, s->part, m)->value;
    }
    return sum / n;
}

/* Values of all that can follow the beliefs of now: they are met in order of time, and have their
 * values in the opposite one. */
static void evaluate(struct beliefs *s)
{
    const int A = task_actions(s->t);

    for (size_t i = 0; i < s->n; i++)
        for (int a = 0; a < A; a++)
            (void)after(s, i, a);
    for (size_t i = s->n; i-- > 0;) {
        double most = -INFINITY;
        for (int a = 0; a < A; a++) {
            const double value = after(s, i, a);
            if (value > most) {
                most = value;
                s->v[i].best = a;
            }
        }
        s->v[i].value = most;
    }
}

/* ---- optimum -------------------------------------------------------------------------------- */

/* All ways to begin; malloc'ed. */
static struct episode *all_starts(const struct task *t, int n)
{
    struct episode *const b = need_room((size_t)n, sizeof(*b));

    for (int i = 0; i < n; i++)
        t->kind->begin(t, &b[i], i);
    return b;
}

/* Those of b that show `seen`. */
static int keep_seen(const struct task *t, struct episode *b, int n, int seen)
{
    int k = 0;

    for (int i = 0; i < n; i++)
        if (task_observe(t, &b[i]) == seen)
            b[k++] = b[i];
    return k;
}

double task_enumerated(const struct task *t, const int32_t *seen, const int32_t *done, int n,
                       int *best)
{
    struct beliefs s;
    int k = open_beliefs(&s, t);
    struct episode *const b = all_starts(t, k);
    double value = NAN;

    k = keep_seen(t, b, k, seen[0]);
    for (int i = 0; i < n && k > 0; i++) {
        for (int j = 0; j < k; j++)
            (void)task_step(t, &b[j], done[i]);
        k = keep_seen(t, b, k, seen[i + 1]);
    }
    if (k > 0) {
        (void)believe(&s, b, k);
        evaluate(&s);
        value = s.v[0].value;
        if (best)
            *best = s.v[0].best;
    }
    free(b);
    close_beliefs(&s);
    return value;
}

/* The mean over what the start shows. */
double task_optimum(const struct task *t, bool *exact)
{
    struct beliefs s;
    double sum = 0;

    if (t->kind->optimum)
        return t->kind->optimum(t, exact);
    const int n = open_beliefs(&s, t), symbols = task_symbols(t);
    struct episode *const b = all_starts(t, n), *const part = all_starts(t, n);
    for (int seen = 0; seen < symbols; seen++) {
        memcpy(part, b, (size_t)n * sizeof(*part));
        const int k = keep_seen(t, part, n, seen);
        if (k > 0)
            (void)believe(&s, part, k);
    }
    const size_t first = s.n;
    evaluate(&s);
    for (size_t i = 0; i < first; i++)
        sum += s.v[i].n * s.v[i].value;
    free(b);
    free(part);
    close_beliefs(&s);
    *exact = true;
    return sum / n;
}

/* ---- random --------------------------------------------------------------------------------- */

struct likely {
    struct episode e;
    double p;
};

static int by_state(const void *a, const void *b)
{
    const struct likely *const x = a, *const y = b;

    return memcmp(x->e.v, y->e.v, sizeof(x->e.v));
}

/* Equal states become one. */
static int merge(struct likely *x, int n)
{
    int k = 0;

    qsort(x, (size_t)n, sizeof(*x), by_state);
    for (int i = 0; i < n; i++)
        if (k > 0 && by_state(&x[k - 1], &x[i]) == 0)
            x[k - 1].p += x[i].p;
        else
            x[k++] = x[i];
    return k;
}

double task_random(const struct task *t)
{
    const int A = task_actions(t);
    double sum = 0;
    int n;

    if (t->kind->random)
        return t->kind->random(t);
    n = t->kind->starts(t);
    CHECK(n > 0);
    struct episode *const b = all_starts(t, n);
    struct likely *x = need_room((size_t)n, sizeof(*x));
    for (int i = 0; i < n; i++)
        x[i] = (struct likely){b[i], 1.0 / n};
    free(b);
    for (int s = 0; s < task_length(t) && n > 0; s++) {
        struct likely *const next = need_room((size_t)n * (size_t)A, sizeof(*next));
        for (int i = 0; i < n; i++)
            for (int a = 0; a < A; a++) {
                struct likely *const to = &next[i * A + a];
                *to = (struct likely){x[i].e, x[i].p / A};
                sum += to->p * task_step(t, &to->e, a);
            }
        free(x);
        x = next;
        n = merge(x, n * A);
    }
    free(x);
    return sum;
}
