/* SPDX-License-Identifier: MIT
 *
 * Reformer: Kitaev et al. 2020, "Reformer: The Efficient Transformer", arXiv:2001.04451. Keys are
 * unit queries; with rotations Q_r of each head and round,
 *
 *   bucket_r(j) = argmax over [x ; -x]
 *   x           = q_j Q_r
 *   exact: a query sees the rows before it that have its bucket in some round, of these the
 *          `lsh_window` newest, and its own only where there are none
 *
 * This is the softmax over the union of all rounds that the paper's sum over rounds is equal to.
 * One round is attention inside groups; several are bits of the keys that each query sees. */
#include "lsh.h"

#include "groups.h"

static const char *const form_name[] = {"exact", "chunked", NULL};

static bool is_chunked(const struct config *c) { return lsh_of(c)->form == LSH_CHUNKED; }

static const struct choice choices[] = {
    ROW_INT(struct lsh, rounds, "lsh_rounds", 1, 1 << 8, "rounds of hashing", .setting = true,
            .input = "rotations", .axis = 2, .tiny = "2|1"),
    ROW_INT(struct lsh, half, "lsh_half", 1, 1 << 12, "half of the buckets of a round",
            .setting = true, .input = "rotations", .axis = 3, .tiny = "1"),
    ROW_INT(struct lsh, window, "lsh_window", 0, 1 << 28,
            "rows of its buckets that a query sees, 0 = all", .setting = true, .absent = "0",
            .tiny = "3|3|0|0"),
    ROW_WORD(struct lsh, form, "lsh", form_name, "which rows of its bucket a query sees",
             .applies = content_is_alone, SETTING),
    ROW_INT(struct lsh, chunk, "lsh_chunk", 0, 1 << 20, "rows of a chunk", .absent = "0",
            .applies = is_chunked, SETTING),
    ROW_FLAG(struct lsh, within, "lsh_within", "1: keys of other buckets in a chunk are hidden",
             .absent = "0", .applies = is_chunked, SETTING),
    ROW_FLAG(struct lsh, duplicates, "lsh_duplicates", "1: a key counts in each round",
             .absent = "1", .applies = is_chunked, SETTING),
    {0},
};

const struct lsh *lsh_of(const struct config *c) { return config_numbers(c, SLOT_MIXER); }

/* 8 buckets of 1024 tokens, of which a query sees the 64 newest; one round, so that groups do. */
static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    const struct lsh *const l = numbers;
    const char *const name = c->variant->name;

    if (!c->share_qk)
        return fail(e, E_USAGE, "%s: queries and keys of different rows  -> share_qk 1", name);
    if (l->form == LSH_CHUNKED && (l->chunk < 1 || c->max_seq % l->chunk))
        return fail(e, E_USAGE, "%s: lsh_chunk %d does not divide %d rows  -> use a divisor", name,
                    l->chunk, c->max_seq);
    if (l->form == LSH_CHUNKED && !l->duplicates && !l->within)
        return fail(e, E_USAGE, "%s: lsh_duplicates 0 without lsh_within  -> use lsh_within 1",
                    name);
    if ((int64_t)c->H * c->dh * l->rounds * l->half > 1 << 28)
        return fail(e, E_USAGE, "%s: %d rounds of %d buckets are too many  -> use fewer", name,
                    l->rounds, 2 * l->half);
    return OK;
}

const struct part_numbers lsh_numbers = {
    choices, PRESET(struct lsh, .rounds = 1, .half = 4, .window = 64, .duplicates = true), check};

static void params(const struct sublayer *s, const char *prefix, struct params *p)
{
    const struct lsh *const l = lsh_of(s->c);

    params_buffer(p, params_add(p, INIT_NORMAL, 1, 4,
                                (const int[]){s->c->H, s->c->dh, l->rounds, l->half}, "%srotations",
                                prefix));
}

/* ---- buckets ------------------------------------------------------------------------------ */

static int numbers(const struct config *c) { return lsh_of(c)->rounds; }

int lsh_bucket(const struct content_call *n, int b, int h, int j, int r)
{
    return (int)head_row(n->numbers, b, j, h, numbers(n->s->c))[r];
}

/* One row of a head in blocks of columns: the bucket of the largest of x and -x. */
static void hash_row(const struct content_call *n, int b, int j, int h)
{
    enum { BLOCK = 1 << 10 };
    const struct lsh *const l = lsh_of(n->s->c);
    const int dh = n->a.dh;
    const float *const q = head_row(n->raw_q, b, j - n->first, h, dh);
    const float *const rotations = content_buffer(n->s, 0)->data;
    double x[BLOCK];

    for (int r = 0; r < l->rounds; r++) {
        double most = 0, least = 0;
        int at_most = 0, at_least = 0;
        for (int from = 0; from < l->half; from += BLOCK) {
            const int columns = min_int(BLOCK, l->half - from);
            for (int k = 0; k < columns; k++)
                x[k] = 0;
            for (int e = 0; e < dh; e++) {
                const float *const row =
                    rotations + ((ptrdiff_t)(h * dh + e) * l->rounds + r) * l->half + from;
#pragma omp simd
                for (int k = 0; k < columns; k++)
                    x[k] += (double)q[e] * (double)row[k];
            }
            for (int k = 0; k < columns; k++) {
                if (from + k == 0 || x[k] > most)
                    most = x[k], at_most = from + k;
                if (from + k == 0 || x[k] < least)
                    least = x[k], at_least = from + k;
            }
        }
        head_row(n->numbers, b, j, h, l->rounds)[r] =
            (float)(-least > most ? l->half + at_least : at_most);
    }
}

static int team(const struct content_call *n, int rows)
{
    const struct lsh *const l = lsh_of(n->s->c);
    const ptrdiff_t products = (ptrdiff_t)n->a.B * rows * n->a.H * n->a.dh * l->rounds * l->half;

    return team_for(n->g->threads, products);
}

static void number(const struct content_call *n)
{
    const int rows = n->a.M + n->a.L - n->first;

#pragma omp parallel for num_threads(team(n, rows))
    for (int x = 0; x < n->a.B * rows; x++)
        for (int h = 0; h < n->a.H; h++)
            hash_row(n, x / rows, x % rows + n->first, h);
}

/* ---- one round: groups -------------------------------------------------------------------- */

static bool one_round(const struct config *c) { return lsh_of(c)->rounds == 1; }

/* With several rounds rows are read where they are. */
static struct groups groups_of(const struct config *c)
{
    return (struct groups){.n = one_round(c) && !is_chunked(c) ? 2 * lsh_of(c)->half : 0,
                           .newest = lsh_of(c)->window,
                           .self_last = true,
                           .numbers = 1};
}

/* ---- several rounds: bits ----------------------------------------------------------------- */

/* The keys of query i: walking back, those that share a bucket, until there are enough. */
static void see(const struct content_call *n, int b, int h, int i, uint64_t *bits)
{
    const struct lsh *const l = lsh_of(n->s->c);
    const int own = n->a.M + i, words = bits_words(n->a.M + n->a.L);
    const float *const mine = head_row(n->numbers, b, own, h, l->rounds);
    int found = 0;

    memset(bits, 0, sizeof(*bits) * (size_t)words);
    for (int j = own - 1; j >= 0 && (!l->window || found < l->window); j--) {
        const float *const its = head_row(n->numbers, b, j, h, l->rounds);
        bool same = false;
        for (int r = 0; r < l->rounds; r++)
            same = same || its[r] == mine[r];
        if (same) {
            bits[j / 64] |= (uint64_t)1 << j % 64;
            found++;
        }
    }
    if (!found)
        bits[own / 64] |= (uint64_t)1 << own % 64;
}

static size_t bits_bytes(const struct sublayer *s, struct extent max)
{
    return round_up((size_t)max.L * (size_t)bits_words(max.M + max.L) * sizeof(uint64_t),
                    ARENA_ALIGN);
}

static void run_bits(const struct content_call *n, const struct attn_grad *d)
{
    const struct attn *const all = &n->a;
    const int words = bits_words(all->M + all->L);
    const size_t bytes = bits_bytes(n->s, n->s->state.attention.largest);

#pragma omp parallel for schedule(static, 1) num_threads(content_team(n))
    for (int head = 0; head < all->B * all->H; head++) {
        const int b = head / all->H, h = head % all->H;
        uint64_t *const bits = content_room(n, bytes);
        const struct mask mask = {.rows = bits, .row_words = words};
        struct attn one = *all;
        one.B = one.H = one.Hkv = 1;
        one.base = 0;
        one.K = all->M + all->L;
        one.M = 0;
        one.causal = false;
        one.mask = &mask;
        one.q = content_q(all, b, h, 0);
        one.k = content_k(all, b, h, 0);
        one.v = content_v(all, b, h, 0);
        one.o = content_o(all, b, h, 0);
        one.lse = all->lse ? all->lse + (ptrdiff_t)head * all->L : NULL;
        for (int i = 0; i < all->L; i++)
            see(n, b, h, i, bits + (ptrdiff_t)i * words);
        if (!d) {
            content_core(n, &one, NULL);
            continue;
        }
        const struct attn_grad own = {.d_o = d->d_o + (one.o - all->o),
                                      .d_q = d->d_q + (one.q - all->q),
                                      .d_k = d->d_k + (one.k - all->k),
                                      .d_v = d->d_v + (one.v - all->v)};
        content_core(n, &one, &own);
    }
}

/* ---- the form ----------------------------------------------------------------------------- */

static struct attn core(const struct sublayer *s, struct extent max)
{
    static const uint64_t bits[1] = {1};
    static const struct mask mask = {.rows = bits, .row_words = 1};
    struct attn a = groups_core(s, max);
    const ptrdiff_t row = (ptrdiff_t)s->c->H * s->c->dh;

    if (one_round(s->c))
        return a;
    a.M = a.window = 0;
    a.causal = false;
    a.K = max.M + max.L;
    a.mask = &mask;
    a.q_at.row = a.k_at.row = a.v_at.row = a.o_at.row = row;
    return a;
}

static size_t scratch(const struct sublayer *s, struct extent max, int threads)
{
    return is_chunked(s->c) ? lsh_chunked_scratch(s, max, threads)
                            : (size_t)threads * bits_bytes(s, max);
}

static void run(const struct content_call *n, const struct attn_grad *d)
{
    if (is_chunked(n->s->c))
        content_each_head(n, lsh_chunked_head, d);
    else
        run_bits(n, d);
}

/* ---- what it shows, and costs ------------------------------------------------------------- */

static void show_buckets(const struct content_call *n, float *to)
{
    const struct attn *const a = &n->a;

    for (int head = 0; head < a->B * a->H; head++)
        for (int r = 0; r < lsh_of(n->s->c)->rounds; r++)
            for (int i = 0; i < a->L; i++)
                *to++ = (float)lsh_bucket(n, head / a->H, head % a->H, a->M + i, r);
}

static void show_visible(const struct content_call *n, float *to)
{
    const struct attn *const a = &n->a;
    const int K = a->M + a->L;
    uint64_t *const bits = calloc((size_t)bits_words(K), sizeof(*bits));

    NEED(bits);
    for (int x = 0; x < a->B * a->H * a->L; x++) {
        see(n, x / a->L / a->H, x / a->L % a->H, x % a->L, bits);
        for (int j = 0; j < K; j++)
            *to++ = bits[j / 64] >> j % 64 & 1;
    }
    free(bits);
}

static bool shows(const struct content_call *n, int i, struct shown *out)
{
    const size_t rows = (size_t)n->a.B * (size_t)n->a.H * (size_t)n->a.L;

    if (i == 0) {
        out->name = "bucket";
        out->n = rows * (size_t)lsh_of(n->s->c)->rounds;
    } else {
        out->name = "visible";
        out->n = rows * (size_t)(n->a.M + n->a.L);
    }
    out->whole = true;
    if (out->to && i == 0)
        show_buckets(n, out->to);
    else if (out->to)
        show_visible(n, out->to);
    return i <= !is_chunked(n->s->c);
}

/* A row of other rounds is in the union with the share 1 - (1 - 1/n)^R. */
static double flop(const struct sublayer *s, int B, int L, int M)
{
    const struct lsh *const l = lsh_of(s->c);
    const double share = 1 - pow(1 - 1 / (2.0 * l->half), l->rounds);
    double pairs = 0;

    for (int i = 0; i < L; i++) {
        const double members = share * (M + i), most = l->window ? l->window : members;
        pairs += fmax(1, fmin(members, most));
    }
    if (is_chunked(s->c))
        pairs = 2.0 * l->rounds * L * l->chunk;
    return 4.0 * B * s->c->H * s->c->dh * pairs;
}

static double choice_flop(const struct sublayer *s, int B, int L, int M)
{
    const double rows = s->mem == MEM_HIDDEN ? M + L : L;

    return 2.0 * B * s->c->H * rows * s->c->dh * lsh_of(s->c)->rounds * lsh_of(s->c)->half;
}

static const char *looks_ahead(const struct config *c)
{
    return is_chunked(c) ? "where its chunks end depends on rows of the whole segment, later ones "
                           "included"
                         : NULL;
}

const struct content content_lsh = {
    .past = true,
    .both_ahead = true,
    .numbers = numbers,
    .number = number,
    CONTENT_HOOKS,
    .core = core,
    .groups = groups_of,
    .run = run,
    .looks_ahead = looks_ahead,
};
