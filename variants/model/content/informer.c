/* SPDX-License-Identifier: MIT
 *
 * ProbSparse attention: Zhou et al. 2020, "Informer", arXiv:2012.07436. Sample s(i, u) of U keys
 * for each query:
 *
 *   measure_i = max_u q_i . k_s(i,u) - (1/K) sum_u q_i . k_s(i,u)
 *
 * The top_u queries of the largest measure attend; the others get the mean of all values (mean),
 * the sum of those up to them (cumsum, the published masked form) or their mean (cummean). The
 * choice reads the whole segment: with a mask it is still no language model. */
#include "content.h"

#include "variants/model/attention/sublayer_attention.h"

enum lazy { LAZY_MEAN, LAZY_CUMSUM, LAZY_CUMMEAN };
struct informer {
    int top, sample, rows; /* rows of the sample; 0 = as long as a segment */
    enum lazy lazy;
};

static const char *const lazy_name[] = {"mean", "cumsum", "cummean", NULL};

static const struct choice choices[] = {
    ROW_INT(struct informer, top, "top_u", 1, 1 << 20, "queries that attend", .setting = true,
            .tiny = "3"),
    ROW_INT(struct informer, sample, "sample", 1, 1 << 16, "keys that a query is measured by",
            .setting = true, .input = "sample", .axis = 1, .tiny = "4"),
    ROW_INT(struct informer, rows, "sample_rows", 0, 1 << 20,
            "queries that there is a sample for, 0 = those of a segment", .input = "sample",
            .axis = 0),
    ROW_WORD(struct informer, lazy, "lazy", lazy_name, "what the other queries get",
             .absent = "mean", SETTING),
    {0},
};

static const struct informer *informer_of(const struct config *c)
{
    return config_numbers(c, SLOT_MIXER);
}

/* 5 ceil(ln 1024) */
static int sampled_rows(const struct config *c)
{
    return informer_of(c)->rows ? informer_of(c)->rows : max_int(1, c->max_seq);
}

static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    const struct informer *const i = numbers;

    if ((int64_t)sampled_rows(c) * i->sample > 1 << 28)
        return fail(e, E_USAGE, "%s: samples of %d keys for %d queries  -> use fewer",
                    c->variant->name, i->sample, sampled_rows(c));
    return OK;
}

const struct part_numbers informer_numbers = {
    choices, PRESET(struct informer, .top = 35, .sample = 35), check};

static void params(const struct sublayer *s, const char *prefix, struct params *p)
{
    const int rows = sampled_rows(s->c), shape[] = {rows, informer_of(s->c)->sample};
    const int sample = params_add(p, INIT_UNIFORM, (float)rows, 2, shape, "%ssample", prefix);

    params_bound(p, sample, 0, 1 << 24);
    params_buffer(p, sample);
}

/* ---- work space --------------------------------------------------------------------------- */

/* A thread's: the measure of each query; the active ones gathered, and their gradients; bits of
 * what they see. */
struct room {
    struct sort_key *order;
    int32_t *rows;
    float *q, *o, *lse, *d_o, *d_q;
    uint64_t *bits;
    size_t bytes;
};

static int active(const struct config *c, int L) { return min_int(informer_of(c)->top, L); }

static struct room room_at(const struct config *c, int L, void *base)
{
    const size_t n = (size_t)L, u = (size_t)active(c, L), floats = u * (size_t)c->dh;
    size_t at = 0;
    struct room r;

    r.order = content_place(base, &at, n, sizeof(*r.order));
    r.rows = content_place(base, &at, u, sizeof(*r.rows));
    r.q = content_place(base, &at, floats, sizeof(*r.q));
    r.o = content_place(base, &at, floats, sizeof(*r.o));
    r.lse = content_place(base, &at, u, sizeof(*r.lse));
    r.d_o = content_place(base, &at, floats, sizeof(*r.d_o));
    r.d_q = content_place(base, &at, floats, sizeof(*r.d_q));
    r.bits = content_place(base, &at, u * (size_t)bits_words(L), sizeof(*r.bits));
    r.bytes = at;
    return r;
}

static size_t scratch(const struct sublayer *s, struct extent max, int threads)
{
    return (size_t)threads * room_at(s->c, max.L, NULL).bytes;
}

/* Is a query active? [B,H,L] */
static size_t kept(const struct sublayer *s, struct extent max)
{
    return (size_t)(max.B * s->c->H) * (size_t)max.L;
}

struct head {
    const struct content_call *n;
    struct room room;
    float *active;
    int b, h, u;
};

static struct head head_of(const struct content_call *n, int head)
{
    const struct config *const c = n->s->c;
    const size_t bytes = room_at(c, n->s->state.attention.largest.L, NULL).bytes;

    return (struct head){.n = n,
                         .room = room_at(c, n->a.L, content_room(n, bytes)),
                         .active = n->kept + (ptrdiff_t)head * n->a.L,
                         .b = head / n->a.H,
                         .h = head % n->a.H,
                         .u = active(c, n->a.L)};
}

/* ---- the choice --------------------------------------------------------------------------- */

static double measure(const struct head *t, int i)
{
    const struct config *const c = t->n->s->c;
    const struct attn *const a = &t->n->a;
    const int U = informer_of(c)->sample;
    const float *const sample =
        content_buffer(t->n->s, 0)->data + (ptrdiff_t)(i % sampled_rows(c)) * U;
    double most = -INFINITY, sum = 0;

    for (int u = 0; u < U; u++) {
        const int j = (int)sample[u] % a->L;
        const double s =
            content_dot(content_q(a, t->b, t->h, i), content_k(a, t->b, t->h, j), a->dh);
        most = fmax(most, s);
        sum += s;
    }
    return most - sum / a->L;
}

static void choose(const struct head *t)
{
    const int L = t->n->a.L;

    for (int i = 0; i < L; i++)
        t->room.order[i] = (struct sort_key){measure(t, i), i};
    qsort(t->room.order, (size_t)L, sizeof(*t->room.order), by_largest);
    memset(t->active, 0, sizeof(float) * (size_t)L);
    for (int x = 0; x < t->u; x++)
        t->active[t->room.order[x].at] = 1;
}

/* The active rows in order, their queries and what they see. */
static void gather(const struct head *t, const struct mask *bits, uint64_t *row)
{
    const struct attn *const a = &t->n->a;
    int n = 0;

    for (int i = 0; i < a->L; i++) {
        if (t->active[i] == 0)
            continue;
        memset(row, 0, sizeof(*row) * (size_t)bits->row_words);
        for (int j = 0; j <= i && a->causal; j++)
            row[j / 64] |= (uint64_t)1 << j % 64;
        row += bits->row_words;
        memcpy(t->room.q + (ptrdiff_t)n * a->dh, content_q(a, t->b, t->h, i),
               sizeof(float) * (size_t)a->dh);
        t->room.rows[n++] = i;
    }
    CHECK(n == t->u);
}

static struct attn operands(const struct head *t, const struct mask *bits)
{
    const struct attn *const all = &t->n->a;
    struct attn one = *all;

    one.B = one.H = one.Hkv = 1;
    one.L = t->u;
    one.K = all->L;
    one.base = 0;
    one.causal = false;
    one.mask = all->causal ? bits : NULL;
    one.q = t->room.q;
    one.o = t->room.o;
    one.q_at = one.o_at = (struct stride){0, all->dh};
    one.k = content_k(all, t->b, t->h, 0);
    one.v = content_v(all, t->b, t->h, 0);
    one.lse = all->lse ? t->room.lse : NULL;
    return one;
}

/* ---- forward ------------------------------------------------------------------------------ */

/* What each value counts in the output of a query that does not attend. */
static double lazy_factor(const struct head *t, int i)
{
    switch (informer_of(t->n->s->c)->lazy) {
    case LAZY_MEAN:
        return 1.0 / t->n->a.L;
    case LAZY_CUMMEAN:
        return 1.0 / (i + 1);
    case LAZY_CUMSUM:
        break;
    }
    return 1;
}

static bool sums_up(const struct head *t) { return informer_of(t->n->s->c)->lazy != LAZY_MEAN; }

static void lazy_forward(const struct head *t)
{
    const struct attn *const a = &t->n->a;
    float *const sum = t->room.d_o; /* of values; free until backward */
    int done = 0;

    memset(sum, 0, sizeof(float) * (size_t)a->dh);
    for (int i = 0; i < a->L; i++) {
        for (; done < (sums_up(t) ? i + 1 : a->L); done++)
            add_in_lanes(sum, 1, content_v(a, t->b, t->h, done), a->dh);
        float *const o = content_o(a, t->b, t->h, i);
        for (int e = 0; e < a->dh && t->active[i] == 0; e++)
            o[e] = (float)lazy_factor(t, i) * sum[e];
    }
}

static void head_forward(const struct head *t)
{
    const struct attn *const a = &t->n->a;
    const struct mask bits = {.rows = t->room.bits, .row_words = bits_words(a->L)};

    choose(t);
    gather(t, &bits, t->room.bits);
    const struct attn one = operands(t, &bits);
    content_core(t->n, &one, NULL);
    for (int x = 0; x < t->u; x++) {
        const int i = t->room.rows[x];
        memcpy(content_o(a, t->b, t->h, i), t->room.o + (ptrdiff_t)x * a->dh,
               sizeof(float) * (size_t)a->dh);
        if (a->lse)
            a->lse[((ptrdiff_t)t->b * a->H + t->h) * a->L + i] = t->room.lse[x];
    }
    lazy_forward(t);
}

/* ---- backward ----------------------------------------------------------------------------- */

static void lazy_backward(const struct head *t, const struct attn_grad *d)
{
    const struct attn *const a = &t->n->a;
    float *const sum = t->room.d_o;
    int done = a->L - 1;

    memset(sum, 0, sizeof(float) * (size_t)a->dh);
    for (int j = a->L - 1; j >= 0; j--) {
        for (; done >= (sums_up(t) ? j : 0); done--)
            if (t->active[done] == 0)
                add_in_lanes(sum, (float)lazy_factor(t, done),
                             d->d_o + (content_o(a, t->b, t->h, done) - a->o), a->dh);
        add_in_lanes(d->d_v + (content_v(a, t->b, t->h, j) - a->v), 1, sum, a->dh);
    }
}

static void head_backward(const struct head *t, const struct attn_grad *d)
{
    const struct attn *const a = &t->n->a;
    const struct mask bits = {.rows = t->room.bits, .row_words = bits_words(a->L)};
    const size_t row = sizeof(float) * (size_t)a->dh;

    gather(t, &bits, t->room.bits);
    for (int x = 0; x < t->u; x++) {
        const int i = t->room.rows[x];
        const float *const o = content_o(a, t->b, t->h, i);
        memcpy(t->room.o + (ptrdiff_t)x * a->dh, o, row);
        memcpy(t->room.d_o + (ptrdiff_t)x * a->dh, d->d_o + (o - a->o), row);
        t->room.lse[x] = a->lse[((ptrdiff_t)t->b * a->H + t->h) * a->L + i];
    }
    const struct attn one = operands(t, &bits);
    content_core(t->n, &one,
                 &(struct attn_grad){.d_o = t->room.d_o,
                                     .d_q = t->room.d_q,
                                     .d_k = d->d_k + (one.k - a->k),
                                     .d_v = d->d_v + (one.v - a->v)});
    for (int x = 0; x < t->u; x++)
        memcpy(d->d_q + (content_q(a, t->b, t->h, t->room.rows[x]) - a->q),
               t->room.d_q + (ptrdiff_t)x * a->dh, row);
    lazy_backward(t, d);
}

/* ---- the form ----------------------------------------------------------------------------- */

static struct attn core(const struct sublayer *s, struct extent max)
{
    static const uint64_t bits[1] = {1};
    static const struct mask mask = {.rows = bits, .row_words = 1};
    struct attn a = attn_of_config(s->c, 1, active(s->c, max.L), 0);

    a.H = a.Hkv = 1;
    a.window = 0;
    a.causal = false;
    a.K = max.L;
    a.mask = s->c->causal ? &mask : NULL;
    a.q_at.row = a.o_at.row = s->c->dh;
    return a;
}

static void run_head(const struct content_call *n, int head, const struct attn_grad *d)
{
    const struct head t = head_of(n, head);

    CHECK(n->a.M == 0);
    if (d)
        head_backward(&t, d);
    else
        head_forward(&t);
}

static bool shows(const struct content_call *n, int i, struct shown *out)
{
    out->name = "active";
    out->n = (size_t)(n->a.B * n->a.H) * (size_t)n->a.L;
    out->whole = true;
    if (out->to)
        memcpy(out->to, n->kept, out->n * sizeof(float));
    return i == 0;
}

static double flop(const struct sublayer *s, int B, int L, int M)
{
    const double half = s->c->causal ? 0.5 : 1; /* of the keys, on average */

    return 4.0 * B * s->c->H * s->c->dh * active(s->c, L) * L * half;
}

static double choice_flop(const struct sublayer *s, int B, int L, int M)
{
    return 2.0 * B * s->c->H * L * informer_of(s->c)->sample * s->c->dh;
}

/* Queries that attend, and their outputs. */
static double moved_rows(const struct config *c, int L, int M) { return 2.0 * active(c, L); }

static const char *looks_ahead(const struct config *c)
{
    return c->causal ? "its queries are chosen among all rows of a segment, later ones included"
                     : NULL;
}

const struct content content_informer = {
    .past = true,
    .both = true,
    .no_memory = true,
    CONTENT_HOOKS,
    .head = run_head,
    .moved_rows = moved_rows,
    .kept = kept,
    .core = core,
    .looks_ahead = looks_ahead,
};
