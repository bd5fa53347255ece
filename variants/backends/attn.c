/* SPDX-License-Identifier: MIT
 *
 * What one attention call sees, which of its terms are present, and what it costs. */
#include "attn.h"

#include "variants/base/elem.h"

/* ---- visibility --------------------------------------------------------------------------- */

struct sight attn_sight(const struct attn *a, int h)
{
    const bool steps = a->q_step != 0;

    return (struct sight){
        .L = a->L,
        .K = attn_keys(a),
        .query = a->base + (steps ? a->q_first : a->M),
        .key = a->base,
        .query_step = steps ? a->q_step : 1,
        .key_step = steps ? a->k_step : 1,
        .causal = a->causal,
        .window = attn_window(a, h),
        .mask = a->mask ? a->mask + (a->mask_of_head ? a->mask_of_head[h] : 0) : NULL,
    };
}

/* Heads [h, returned) have to be queried for what heads [h, h+n) see. */
static int end_of_distinct(const struct attn *a, int h, int n)
{
    return a->mask_of_head || a->window_of_head ? h + n : h + 1;
}

bool attn_next_keys(const struct attn *a, int h, int n, int i, struct range *r)
{
    const int end = end_of_distinct(a, h, n), from = r->to;
    struct range seen = {INT_MAX, INT_MAX};

    for (int x = h; x < end; x++) {
        const struct sight sight = attn_sight(a, x);
        struct range own = {from, from};
        if (sight_next(&sight, i, 1, &own) && own.from < seen.from)
            seen = own;
    }
    for (int since = end - h == 1, x = h; since < end - h; since++) {
        x = x + 1 < end ? x + 1 : h;
        const struct sight sight = attn_sight(a, x);
        struct range own = {seen.to, seen.to};
        if (sight_next(&sight, i, 1, &own) && own.from == seen.to) {
            seen.to = own.to;
            since = 0;
        }
    }
    *r = seen;
    return seen.from < seen.to;
}

struct range attn_hull(const struct attn *a, int h, int n, int i, int rows)
{
    struct range hull = {INT_MAX, 0};

    for (int x = h; x < end_of_distinct(a, h, n); x++) {
        const struct sight sight = attn_sight(a, x);
        const struct range own = sight_hull(&sight, i, rows);
        if (own.from == own.to)
            continue;
        hull.from = min_int(hull.from, own.from);
        hull.to = max_int(hull.to, own.to);
    }
    return hull.from < hull.to ? hull : (struct range){0};
}

/* ---- which terms there are ---------------------------------------------------------------- */

unsigned attn_terms(const struct attn *a)
{
    unsigned terms = 0;

#define X(name, there, refusal) terms |= (there) ? (unsigned)TERM_##name : 0;
    ATTN_TERMS(X)
#undef X
    return terms;
}

bool attn_supports(const struct attn *a, unsigned supported, const char **why_not)
{
    static const char *const refusals[TERM_COUNT] = {
#define X(name, there, refusal) refusal,
        ATTN_TERMS(X)
#undef X
    };
    const unsigned unknown = attn_terms(a) & ~supported;

    for (int t = 0; t < TERM_COUNT; t++)
        if (unknown & 1u << t) {
            *why_not = refusals[t];
            return false;
        }
    return true;
}

/* Which mask does not have the blocks that the queries of its head read? */
static bool lacks_random_blocks(const struct attn *a)
{
    for (int h = 0; a->mask && h < a->H; h++) {
        const struct sight s = attn_sight(a, h);
        const int64_t last = s.query + (int64_t)(a->L - 1) * s.query_step;
        const struct mask *m = s.mask;
        if (m->block && m->n_random &&
            (s.query / m->block < m->random_from ||
             last / m->block - m->random_from >= m->random_blocks))
            return true;
    }
    return false;
}

const char *attn_fault(const struct attn *a)
{
    const bool free_keys = a->K != 0 && !a->q_step, content = a->u || a->w || a->rel_k || a->rel_q;
    const struct {
        bool is;
        const char *text;
    } faults[] = {
        {a->M < 0 || a->K < 0, "M or K is negative  -> use 0 or more"},
        {a->H % a->Hkv != 0, "Hkv does not divide H  -> use a divisor"},
        {free_keys && (a->causal || a->M || a->R),
         "K without positions goes with causal, M or R  -> leave them out, or K"},
        {a->k_bf16 && (!a->v_bf16 || a->k || a->no_content),
         "k_bf16 stands alone  -> give v_bf16 and no k"},
        {a->unrounded && !a->bf16, "unrounded without bf16  -> set bf16"},
        {a->k_q8 && (!a->v_q8 || a->k || a->no_content), "k_q8 stands alone  -> give v_q8, no k"},
        {a->v_bf16 && a->v, "v and v_bf16  -> give one of them"},
        {a->v_q8 && (a->v || a->v_bf16 || a->bf16), "v_q8 and values of bf16  -> give one of them"},
        {a->no_content && (content || a->sinks),
         "no_content goes with u, w, rel_k, rel_q or sinks  -> leave them out"},
        {a->fade.at && (a->K || a->q_step), "fade goes with K or q_step  -> leave one out"},
        {a->q_step < 0 || (a->q_step && a->k_step < 1),
         "q_step is negative, or k_step below 1  -> use 1 or more for both"},
        {a->sinks < 0 || a->base < 0, "sinks or base is negative  -> use 0 or more"},
        {!a->mask && a->mask_of_head, "mask_of_head without masks  -> give masks"},
        {a->sinks ? !a->sink_k && !a->sink_logit : a->sink_logit != NULL,
         "sinks and what they are contradict each other  -> give sinks and sink_k or sink_logit"},
        {a->weigh && (a->sinks || a->soft_cap != 0),
         "weigh goes with sinks or a soft cap  -> leave one out"},
        {a->dv < 0, "dv is negative  -> use 0 or more"},
        {!(a->soft_cap >= 0), "soft_cap is negative or no number  -> use 0 or more"},
        {a->rel_v && attn_dv(a) != a->dh, "rel_v goes with dv  -> leave one out"},
        {a->mask && a->q_step && a->q_first < 0,
         "q_first is negative, with a mask  -> use 0 or more"},
    };

    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        if (faults[i].is)
            return faults[i].text;
    return lacks_random_blocks(a) ? "random lacks blocks of queries  -> give all of them" : NULL;
}

void attn_check(const struct attn *a)
{
    const char *const fault = attn_fault(a);

    if (fault)
        check_failed(fault, __FILE__, __LINE__);
}

/* ---- cost --------------------------------------------------------------------------------- */

double attn_pairs(const struct attn *a, int h)
{
    const struct sight sight = attn_sight(a, h);

    return sight_pairs(&sight);
}

/* Over all heads of one sequence. */
static double all_pairs(const struct attn *a)
{
    double pairs = 0;

    if (!a->mask_of_head && !a->window_of_head)
        return a->H * attn_pairs(a, 0);
    for (int h = 0; h < a->H; h++)
        pairs += attn_pairs(a, h);
    return pairs;
}

/* Table rows of distances that can occur. */
static int rows_of_past(const struct attn *a)
{
    return clamp_int(attn_dist(a, a->L - 1, 0) + 1, 0, a->R);
}

static int rows_of_future(const struct attn *a)
{
    return a->causal ? 0 : clamp_int(-attn_dist(a, 0, attn_keys(a) - 1), 0, a->Rf);
}

/* A table term costs a product per pair where every pair has its own row (Transformer-XL), and a
 * product per table row plus an addition per pair where many pairs share one (Shaw); the cheaper is
 * counted. Per sequence; each head has `n` vectors that are multiplied with the table. */
struct table_cost {
    double flop, grad; /* forward, backward */
};

static struct table_cost table_cost(const struct attn *a, int n, double pairs)
{
    const double rows = rows_of_past(a) + rows_of_future(a);
    const double per_pair = 2 * pairs * a->dh;
    const double per_row = 2.0 * a->H * n * rows * a->dh + pairs;

    /* Each forward product has two gradients, of the vector and of the table. With products per
     * row, the gradients of the pairs are summed per row first; dA costs one addition per pair. */
    return per_pair <= per_row ? (struct table_cost){per_pair, 2 * per_pair}
                               : (struct table_cost){per_row, 2 * per_row - pairs};
}

static struct table_cost tables_cost(const struct attn *a, double pairs)
{
    const struct table_cost by_query = table_cost(a, a->L, pairs);
    const struct table_cost by_key = table_cost(a, attn_keys(a), pairs);
    const int queries = (a->rel_k != NULL) + (a->rel_v != NULL), keys = a->rel_q != NULL;

    return (struct table_cost){queries * by_query.flop + keys * by_key.flop,
                               queries * by_query.grad + keys * by_key.grad};
}

/* Forward products that do not depend on tables: q.k and p.v, sinks, mixing of heads. */
static double products(const struct attn *a, double pairs)
{
    const int mixings = (a->mix_logits != NULL) + (a->mix_probs != NULL), dv = attn_dv(a);
    const double by_pair = 2.0 * ((a->no_content ? 0 : a->dh) + dv) + 2.0 * mixings * a->H;
    const double by_sink = 2.0 * ((a->sink_k ? a->dh : 0) + (a->sink_v ? dv : 0));

    return pairs * by_pair + by_sink * a->H * a->L * a->sinks;
}

double attn_flop(const struct attn *a)
{
    const double pairs = all_pairs(a), added = a->add.at || a->fade.at ? pairs : 0;

    return a->B * (products(a, pairs) + tables_cost(a, pairs).flop + added);
}

double attn_grad_flop(const struct attn *a)
{
    const double pairs = all_pairs(a), arriving = a->scores_out ? pairs : 0;

    return a->B * (2 * products(a, pairs) + tables_cost(a, pairs).grad + arriving);
}

/* Floats of `add` that visible pairs read. */
static double added_floats(const struct attn *a)
{
    const double per_head = a->add.row ? all_pairs(a) / a->H : attn_keys(a);

    return (a->add.batch ? a->B : 1) * (a->add.head ? a->H : 1) * per_head;
}

/* Floats that a head of n numbers of k or v takes. */
static double head_floats(const struct attn *a, int n)
{
    return a->v_q8 ? (double)q8_head_words(n) : a->v_bf16 ? 0.5 * n : n;
}

double attn_bytes(const struct attn *a)
{
    const double K = attn_keys(a), H = a->H, dh = a->dh, dv = attn_dv(a);
    const double past = a->q_step ? rows_of_past(a) : min_int(a->R, attn_keys(a));
    const double rows = past + a->Rf, tables = (a->rel_head ? H : 1) * rows * dh;
    double floats = a->B * (a->L * H * dv + K * a->Hkv * head_floats(a, attn_dv(a))); /* o, v */

    if (!a->no_content)
        floats += a->B * (a->L * H * dh + K * a->Hkv * head_floats(a, a->dh)); /* q, k */
    floats += (a->rel_k ? tables : 0) + (a->rel_v ? tables : 0) + (a->rel_q ? tables : 0);
    floats += a->bias ? (a->bias_head ? H : 1) * rows : 0;
    floats += a->fade.at ? 2 * a->B * H * K : 0;
    floats += (a->add.at ? added_floats(a) : 0) + (a->scores_out ? a->B * all_pairs(a) : 0);
    floats += (a->mix_logits ? H * H : 0) + (a->mix_probs ? H * H : 0);
    floats +=
        H * a->sinks * ((a->sink_k ? dh : 0) + (a->sink_v ? dv : 0) + (a->sink_logit != NULL));
    return 4 * floats;
}

void attn_resize(struct attn *a, int L, int M)
{
    const int cut = max_int(0, a->R - (L + M)); /* farthest rows: distances that cannot occur */

    CHECK(!a->add.at || M == a->M);
    CHECK((!a->q_step && !a->K) || (L == a->L && M == a->M));
    a->L = L;
    a->M = M;
    if (a->q_step)
        return;
    a->R -= cut;
    if (a->rel_k)
        a->rel_k += (ptrdiff_t)cut * a->dh;
    if (a->rel_v)
        a->rel_v += (ptrdiff_t)cut * a->dh;
    if (a->rel_q)
        a->rel_q += (ptrdiff_t)cut * a->dh;
    if (a->bias)
        a->bias += cut;
}
