/* SPDX-License-Identifier: MIT
 *
 * Sparse Sinkhorn attention: Tay et al. 2020, arXiv:2002.11296. Blocks of b rows, u = 0..n-1:
 *
 *   sk_v  = mean of the keys of a complete block v
 *   sq_u  = causal: mean of q_0 .. q_(u b), known at the block's first token; v < u
 *           both:   mean of the queries of block u
 *   r_uv  = sq_u . sk_v / sqrt(dh)
 *   r_uv <- (r_uv + noise) / temperature           of log(relu(r_uv) + 1e-6) in the form log_relu
 *
 * In each iteration, a row step and a column step; causal: u' <= u, as later rows are not known:
 *
 *   r_uv -= log sum_v  e^(r_uv)
 *   r_uv -= log sum_u' e^(r_u'v)
 *
 * Block u attends to [K^_u ; its own rows] and the values [V^_u ; its own rows]:
 *
 *   S_uv  = e^(r_uv)                a softmax of each row if there are no iterations
 *   K^_u  = sum_v S_uv K_v          row by row
 *   V^_u  = sum_v S_uv V_v          `top` keeps the largest S_uv of a row
 *
 * Backward, through a row step with r after it, and a column step on a, which subtracted log c_uv:
 *
 *   g     = dS (.) S                at first
 *   g_uv -= e^(r_uv) sum_v g_uv
 *   g_tv -= e^(a_tv) sum_(u >= t) g_uv / c_uv */
#include "sinkhorn.h"
#include "variants/model/attention/sublayer_attention.h"

static const char *const form_name[] = {"raw", "log_relu", NULL};

static const struct choice choices[] = {
    ROW_INT(struct sinkhorn, block, "sort_block", 1, 1 << 20, "rows of a block that is sorted",
            .setting = true, .tiny = "3"),
    ROW_INT(struct sinkhorn, iters, "sort_iters", 0, 1 << 8,
            "normalisations of rows and columns, 0 = rows only", .setting = true, .absent = "0",
            .tiny = "0|1|2|3"),
    ROW_INT(struct sinkhorn, top, "sort_top", 0, 1, "1: a block gets one other, not a sum of them",
            .setting = true, .absent = "0", .tiny = "0|1"),
    ROW_WORD(struct sinkhorn, form, "sort_form", form_name, "what is normalised", .absent = "raw",
             SETTING),
    ROW_REAL(struct sinkhorn, temp, "sort_temp", 0, 1 << 20, "temperature of the normalisation",
             .absent = "1", SETTING),
    ROW_INT(struct sinkhorn, noise_batch, "sort_noise_batch", 0, 1 << 16,
            "sequences that there is noise for", .input = "gumbel", .axis = 0),
    ROW_INT(struct sinkhorn, noise, "sort_noise", 0, 1 << 12,
            "blocks that there is noise for, 0 = none", .input = "gumbel", .axis = 2),
    {0},
};

const struct sinkhorn *sinkhorn_of(const struct config *c) { return config_numbers(c, SLOT_MIXER); }

static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    const struct sinkhorn *const s = numbers;
    const char *const name = c->variant->name;

    if (!(s->temp > 0))
        return fail(e, E_USAGE, "%s: sort_temp %g  -> use more than 0", name, (double)s->temp);
    if (c->max_seq / s->block > MOST_BLOCKS)
        return fail(e, E_USAGE, "%s: %d rows in blocks of %d  -> use at most %d blocks", name,
                    c->max_seq, s->block, (int)MOST_BLOCKS);
    if (!c->causal && c->max_seq % s->block)
        return fail(e, E_USAGE, "%s: sort_block %d does not divide %d rows  -> use a divisor", name,
                    s->block, c->max_seq);
    if (s->noise && ((int64_t)s->noise * s->block < c->max_seq || s->noise_batch < 1))
        return fail(e, E_USAGE, "%s: noise of %d blocks of %d rows for %d  -> give as many blocks",
                    name, s->noise, s->block, c->max_seq);
    if ((int64_t)s->noise * s->noise * s->noise_batch * c->H > 1 << 28)
        return fail(e, E_USAGE, "%s: noise of %d blocks is too much  -> use fewer", name, s->noise);
    return OK;
}

const struct part_numbers sinkhorn_numbers = {
    choices, PRESET(struct sinkhorn, .block = 64, .iters = 4, .temp = 0.75f, .noise_batch = 1),
    check};

static void params(const struct sublayer *s, const char *prefix, struct params *p)
{
    const struct sinkhorn *const k = sinkhorn_of(s->c);
    const int shape[] = {k->noise_batch, s->c->H, k->noise, k->noise};

    if (k->noise)
        params_buffer(p, params_add(p, INIT_CONST, 0, 4, shape, "%sgumbel", prefix));
}

/* ---- blocks ------------------------------------------------------------------------------- */

/* S of every head; one float where no block is complete, so that there is something to point at. */
static size_t kept(const struct sublayer *s, struct extent max)
{
    return (size_t)(max.B * s->c->H) * (size_t)blocks(s->c, max.L) *
           (size_t)max_int(1, complete(s->c, max.L));
}

/* S of a head [n, full]. */
static float *sorted(const struct content_call *n, int b, int h)
{
    const ptrdiff_t each = (ptrdiff_t)blocks(n->s->c, n->a.L) * complete(n->s->c, n->a.L);

    return n->kept + ((ptrdiff_t)b * n->a.H + h) * each;
}

/* ---- work space --------------------------------------------------------------------------- */

/* A thread's: means of queries and keys and their gradients, logarithms after each row step and
 * after the last step, their gradient, a column; and keys and values of a block with their
 * gradients. Of all: gradients of mixed rows [B,n,b,H,dh]. */
struct room {
    struct sort_room sort;
    float *k, *v, *d_k, *d_v;
    float *d_mixed_k, *d_mixed_v;
    size_t per_thread, bytes;
};

static struct room room_of(const struct sublayer *s, struct extent max, int threads, int worker,
                           char *base)
{
    const struct sinkhorn *const k = sinkhorn_of(s->c);
    const size_t n = (size_t)blocks(s->c, max.L), dh = (size_t)s->c->dh, b = (size_t)k->block;
    const size_t HD = (size_t)s->c->H * dh, mixed = (size_t)max.B * n * b * HD;
    size_t at = 0, own = 0;
    struct room r;

    r.d_mixed_k = content_place(base, &at, mixed, sizeof(float));
    r.d_mixed_v = content_place(base, &at, mixed, sizeof(float));
    for (int pass = 0; pass < 2; pass++) {
        char *const mine = pass && base ? base + at + (size_t)worker * own : NULL;
        const size_t each = own;
        own = 0;
        r.sort.sq = content_place(mine, &own, n * dh, sizeof(double));
        r.sort.sk = content_place(mine, &own, n * dh, sizeof(double));
        r.sort.d_sq = content_place(mine, &own, n * dh, sizeof(double));
        r.sort.d_sk = content_place(mine, &own, n * dh, sizeof(double));
        r.sort.r = content_place(mine, &own, ((size_t)k->iters + 2) * n * n, sizeof(double));
        r.sort.g = content_place(mine, &own, n * n, sizeof(double));
        r.k = content_place(mine, &own, 2 * b * HD, sizeof(float));
        r.v = content_place(mine, &own, 2 * b * HD, sizeof(float));
        r.d_k = content_place(mine, &own, 2 * b * HD, sizeof(float));
        r.d_v = content_place(mine, &own, 2 * b * HD, sizeof(float));
        CHECK(!pass || own == each);
    }
    r.per_thread = own;
    r.bytes = at + (size_t)threads * own;
    return r;
}

static size_t scratch(const struct sublayer *s, struct extent max, int threads)
{
    return room_of(s, max, threads, 0, NULL).bytes;
}

static struct room my_room(const struct content_call *n)
{
    const struct attention *const t = &n->s->state.attention;
    char *const all = content_own_scratch(n);

    CHECK(all);
    return room_of(n->s, t->largest, t->workers, omp_get_thread_num(), all);
}

static struct sorting sorting_of(const struct content_call *n, int head)
{
    return (struct sorting){.n = n,
                            .k = sinkhorn_of(n->s->c),
                            .room = my_room(n).sort,
                            .b = head / n->a.H,
                            .h = head % n->a.H,
                            .blocks = blocks(n->s->c, n->a.L),
                            .full = complete(n->s->c, n->a.L)};
}

/* ---- attention of one block --------------------------------------------------------------- */

/* Rows [from, from + rows) of all heads, and before them `mixed` ones. */
struct block {
    const struct content_call *n;
    struct room room;
    int b, u, from, rows, mixed;
};

static struct block block_of(const struct content_call *n, int item)
{
    const int each = blocks(n->s->c, n->a.L), size = sinkhorn_of(n->s->c)->block;
    const int u = item % each;

    return (struct block){.n = n,
                          .room = my_room(n),
                          .b = item / each,
                          .u = u,
                          .from = u * size,
                          .rows = min_int(size, n->a.L - u * size),
                          .mixed = sources(n->s->c, u, n->a.L) ? size : 0};
}

static void mix_head(const struct block *p, int h)
{
    const struct attn *const a = &p->n->a;
    const int full = complete(p->n->s->c, a->L), size = p->mixed;
    const float *const S = sorted(p->n, p->b, h) + (ptrdiff_t)p->u * full;
    const ptrdiff_t HD = a->q_at.row;

    for (int v = 0; v < full; v++)
        for (int t = 0; t < size && S[v] != 0; t++) {
            const ptrdiff_t to = t * HD + (ptrdiff_t)h * a->dh;
            add_in_lanes(p->room.k + to, S[v], content_k(a, p->b, h, v * size + t), a->dh);
            add_in_lanes(p->room.v + to, S[v], content_v(a, p->b, h, v * size + t), a->dh);
        }
}

/* Keys and values of the block: mixed rows, then its own. */
static void gather(const struct block *p)
{
    const struct attn *const a = &p->n->a;
    const ptrdiff_t HD = a->q_at.row;
    const size_t mixed = sizeof(float) * (size_t)(p->mixed * HD);

    memset(p->room.k, 0, mixed);
    memset(p->room.v, 0, mixed);
    for (int h = 0; h < a->H; h++)
        mix_head(p, h);
    for (int i = 0; i < p->rows; i++) {
        const ptrdiff_t to = (p->mixed + i) * HD;
        memcpy(p->room.k + to, content_k(a, p->b, 0, p->from + i), sizeof(float) * (size_t)HD);
        memcpy(p->room.v + to, content_v(a, p->b, 0, p->from + i), sizeof(float) * (size_t)HD);
    }
}

static struct attn operands(const struct block *p)
{
    const struct attn *const all = &p->n->a;
    struct attn one = *all;

    one.B = 1;
    one.L = p->rows;
    one.M = p->mixed;
    one.base = 0;
    one.q = content_q(all, p->b, 0, p->from);
    one.o = content_o(all, p->b, 0, p->from);
    one.k = p->room.k;
    one.v = p->room.v;
    /* blocks one after the other, heads within each */
    one.lse = all->lse ? all->lse + ((ptrdiff_t)p->b * all->L + p->from) * all->H : NULL;
    return one;
}

static void run_block(const struct content_call *n, int item, const struct attn_grad *d)
{
    const struct block p = block_of(n, item);
    const ptrdiff_t HD = n->a.q_at.row, size = sinkhorn_of(n->s->c)->block;

    gather(&p);
    const struct attn one = operands(&p);
    if (!d) {
        content_core(n, &one, NULL);
        return;
    }
    const struct attn_grad own = {.d_o = d->d_o + (one.o - n->a.o),
                                  .d_q = d->d_q + (one.q - n->a.q),
                                  .d_k = p.room.d_k,
                                  .d_v = p.room.d_v};
    content_core(n, &one, &own);
    const size_t mixed = sizeof(float) * (size_t)(p.mixed * HD);
    memcpy(p.room.d_mixed_k + item * size * HD, p.room.d_k, mixed);
    memcpy(p.room.d_mixed_v + item * size * HD, p.room.d_v, mixed);
    for (int i = 0; i < p.rows; i++) {
        const ptrdiff_t at = content_k(&n->a, p.b, 0, p.from + i) - n->a.k, from = p.mixed + i;
        add_in_lanes(d->d_k + at, 1, p.room.d_k + from * HD, (int)HD);
        add_in_lanes(d->d_v + at, 1, p.room.d_v + from * HD, (int)HD);
    }
}

/* ---- backward of mixing ------------------------------------------------------- */

/* g = dS (.) S of a head; keys and values of the sources get their share. */
static void mix_grad(const struct sorting *t, const float *d_mixed_k, const float *d_mixed_v,
                     const struct attn_grad *d)
{
    const struct attn *const a = &t->n->a;
    const float *const S = sorted(t->n, t->b, t->h);
    const ptrdiff_t HD = a->q_at.row, size = t->k->block;

    memset(t->room.g, 0, sizeof(double) * (size_t)t->blocks * (size_t)t->full);
    for (int x = 0; x < t->blocks * t->full; x++) {
        const int u = x / t->full, v = x % t->full;
        double share = 0;
        if (S[x] == 0)
            continue;
        for (int row = 0; row < size; row++) {
            const ptrdiff_t at =
                (((ptrdiff_t)t->b * t->blocks + u) * size + row) * HD + (ptrdiff_t)t->h * a->dh;
            const float *const k = content_k(a, t->b, t->h, v * (int)size + row);
            const float *const value = content_v(a, t->b, t->h, v * (int)size + row);
            share +=
                content_dot(d_mixed_k + at, k, a->dh) + content_dot(d_mixed_v + at, value, a->dh);
            add_in_lanes(d->d_k + (k - a->k), S[x], d_mixed_k + at, a->dh);
            add_in_lanes(d->d_v + (value - a->v), S[x], d_mixed_v + at, a->dh);
        }
        t->room.g[x] = share * (double)S[x];
    }
}

/* ---- the form ----------------------------------------------------------------------------- */

static struct attn core(const struct sublayer *s, struct extent max)
{
    const int size = sinkhorn_of(s->c)->block;
    struct attn a = attn_of_config(s->c, 1, min_int(size, max.L), max.L > size ? size : 0);

    if (!s->c->causal)
        a.M = size;
    a.window = 0;
    return a;
}

/* Forward, heads are sorted before blocks attend; backward, after it. */
static void run(const struct content_call *n, const struct attn_grad *d)
{
    const int heads = n->a.B * n->a.H, items = n->a.B * blocks(n->s->c, n->a.L);

    CHECK(n->a.M == 0 && (n->a.causal || n->a.L % sinkhorn_of(n->s->c)->block == 0));
#pragma omp parallel num_threads(content_team(n))
    {
#pragma omp for schedule(static, 1)
        for (int head = 0; head < (d ? 0 : heads); head++) {
            const struct sorting t = sorting_of(n, head);
            sort_head(&t, sorted(n, t.b, t.h));
        }
#pragma omp for schedule(dynamic, 1)
        for (int item = 0; item < items; item++)
            run_block(n, item, d);
#pragma omp for schedule(static, 1)
        for (int head = 0; head < (d ? heads : 0); head++) {
            const struct sorting t = sorting_of(n, head);
            const struct room room = my_room(n);
            mix_grad(&t, room.d_mixed_k, room.d_mixed_v, d);
            sort_head_grad(&t, d);
        }
    }
}

static bool shows(const struct content_call *n, int i, struct shown *out)
{
    out->name = "sort";
    out->n = (size_t)(n->a.B * n->a.H) * (size_t)blocks(n->s->c, n->a.L) *
             (size_t)complete(n->s->c, n->a.L);
    if (out->to)
        memcpy(out->to, n->kept, out->n * sizeof(float));
    return i == 0;
}

/* Pairs of a block's own rows and its mixed ones, and the mixing. */
static double flop(const struct sublayer *s, int B, int L, int M)
{
    const struct sinkhorn *const k = sinkhorn_of(s->c);
    double pairs = 0, mixed = 0;

    for (int u = 0; u < blocks(s->c, L); u++) {
        const double rows = min_int(k->block, L - u * k->block), from = sources(s->c, u, L);
        pairs += s->c->causal ? rows * (rows + 1) / 2 : rows * rows;
        pairs += from > 0 ? rows * k->block : 0;
        mixed += k->top ? 0 : from * k->block;
    }
    return 4.0 * B * s->c->H * s->c->dh * (pairs + mixed);
}

static double choice_flop(const struct sublayer *s, int B, int L, int M)
{
    const double n = blocks(s->c, L);

    return 2.0 * B * s->c->H * n * n * s->c->dh;
}

/* Keys and values of each block, and before them as many mixed ones where it has sources. */
static double moved_rows(const struct config *c, int L, int M)
{
    double mixed = 0;

    for (int u = 0; u < blocks(c, L); u++)
        mixed += sources(c, u, L) ? sinkhorn_of(c)->block : 0;
    return 2 * (L + mixed);
}

const struct content content_sinkhorn = {
    .past = true,
    .both = true,
    .no_memory = true,
    CONTENT_HOOKS,
    .run = run,
    .moved_rows = moved_rows,
    .kept = kept,
    .core = core,
};
