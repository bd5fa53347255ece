/* SPDX-License-Identifier: MIT
 *
 * Which tokens meet in attention to means and maps of several tokens: without queries every row
 * that is seen counts the same, and with maps that change nothing the output is their mean. By hand
 * from each scheme's definition, for texts that no group divides, on the reference. */
#include "tests/support/alone.h"
#include "tests/support/named.h"
#include "tests/support/set_choice.h"

enum { D = 4, MOST = 29 };

typedef double table[MOST][D];

static const char *const one_head[] = {"attn.v.weight", "attn.o.weight", NULL};

/* ---- one sub-layer ------------------------------------------------------------------------- */

struct condensed {
    struct alone l;
    float x[MOST * D], z[MOST * D];
};

static void identity(struct condensed *t, const char *name)
{
    for (int e = 0; e < D; e++)
        data_of(&t->l.p, "%s", name)[e * D + e] = 1;
}

/* All weights 0 but `maps` of values and of outputs. */
static void open_alone(struct condensed *t, struct config c, int L, const char *const *maps)
{
    *t = (struct condensed){
        .l = {.g = open_engine("ref", 1), .c = c, .max = {1, L, 0}, .kind = MEM_RECOMPUTE}};
    t->l.c.max_seq = MOST;
    MUST(config_check(&t->l.c, &failure));
    sublayers_init_bare(&t->l.list, &t->l.c, SUB_ATTENTION, &t->l.p, 0);
    alone_place(&t->l);
    for (int i = 0; i < t->l.p.n; i++)
        memset(t->l.p.v[i].data, 0, t->l.p.v[i].n * sizeof(float));
    for (; *maps; maps++)
        identity(t, *maps);
    for (int i = 0; i < L * D; i++)
        t->x[i] = (float)((int)(rng_u32(SEED, rng_stream("rows"), (uint64_t)i) % 255) - 127) / 64;
}

/* Means of up to MOST numbers of at most 2, twice: each sum and quotient is off by U of its terms,
 * and by `more` U where weights are not alike. */
static void expect_rows(struct condensed *t, int L, table want, int more, const char *what)
{
    struct sublayer *const s = t->l.list.at;
    struct work *const w = t->l.list.work;

    s->kind->forward(&t->l.g, s, w, sublayer_source(&t->l.g, s, w, t->x, 1, L),
                     (struct act){.y = t->z});
    for (int i = 0; i < L * D; i++)
        cr_expect_leq(in_bounds((double)t->z[i], want[i / D][i % D], 2.0 * (MOST + more) * 2 * U),
                      1, "%s, %d tokens: row %d is %g, not %g", what, L, i / D, (double)t->z[i],
                      want[i / D][i % D]);
}

static void add(double *to, const double *row, double factor)
{
    for (int e = 0; e < D; e++)
        to[e] += factor * row[e];
}

static void tokens(table x, const struct condensed *t)
{
    for (int i = 0; i < MOST * D; i++)
        x[i / D][i % D] = (double)t->x[i];
}

static struct config of(const char *variant)
{
    return config_default(variant_find(variant), D, 1, D, 8, 1, 0);
}

/* ---- a window, then cells ------------------------------------------------------------------ */

enum { WINDOW = 4, WIDE = 11, STRIDE = 2, KERNELS = 4 };

/* A cell of `kernel` rows of y: the largest of each column, or a sum whose shares are a softmax of
 * map [kernel,D] times the middle row; without a map all alike. */
static void cell_by_hand(double cell[D], double (*y)[D], int kernel, bool largest, const float *map)
{
    double share[KERNELS] = {0}, sum = 0;

    for (int t = 0; t < kernel; t++) {
        for (int e = 0; e < D && map; e++)
            share[t] += (double)map[t * D + e] * y[kernel / 2][e];
        sum += share[t] = exp(share[t]);
    }
    for (int e = 0; e < D; e++) {
        cell[e] = largest ? y[0][e] : 0;
        for (int t = 0; t < kernel; t++)
            cell[e] = largest ? fmax(cell[e], y[t][e]) : cell[e] + share[t] / sum * y[t][e];
    }
}

struct by_hand {
    int L, kernel;
    bool causal, largest;
    const float *map_k, *map_v;
    int pairs; /* counted */
};

/* y1, the mean of a window, + attention of y1 to the cells of y1 whose first and last row are in the
 * wider window, whole ones only. */
static void pooled_by_hand(table want, const struct condensed *t, struct by_hand *h)
{
    table x, y = {{0}};

    tokens(x, t);
    for (int i = 0; i < h->L; i++) {
        const int from = i - WINDOW + 1 < 0 ? 0 : i - WINDOW + 1;
        const int to = h->causal || i + WINDOW > h->L ? (h->causal ? i + 1 : h->L) : i + WINDOW;
        h->pairs += to - from;
        for (int j = from; j < to; j++)
            add(y[i], x[j], 1.0 / (to - from));
    }
    for (int i = 0; i < h->L; i++) {
        double sum[D] = {0}, all = 0;
        for (int first = 0; first + h->kernel <= h->L; first += STRIDE) {
            double k[D], v[D], score = 0;
            if (i - first >= WIDE || first + h->kernel - 1 - i >= (h->causal ? 1 : WIDE))
                continue;
            h->pairs++;
            cell_by_hand(k, y + first, h->kernel, h->largest, h->map_k);
            cell_by_hand(v, y + first, h->kernel, h->largest, h->map_v);
            for (int e = 0; e < D; e++)
                score += y[i][e] * k[e] / sqrt(D);
            all += exp(score);
            add(sum, v, exp(score));
        }
        memcpy(want[i], y[i], sizeof(y[i]));
        if (all > 0)
            add(want[i], sum, 1 / all);
    }
}

/* Small multiples of 1/16, other ones for each name. */
static const float *some_map(struct condensed *t, const char *name, int n)
{
    float *const at = data_of(&t->l.p, "%s", name);

    for (int i = 0; i < n; i++)
        at[i] = (float)((int)(rng_u32(SEED, rng_stream(name), (uint64_t)i) % 31) - 15) / 16;
    return at;
}

/* Coordinates are at most 2, so scores and what shares are a softmax of are sums of four products of
 * at most 8 in all: off by 8 * 2 D U, and their exponentials by that share. Cells follow from such
 * shares once, outputs from keys and values of such cells once more; mean and maximum are exact by
 * comparison. */
enum { SOFTMAX_ERRORS = 2 * 8 * 2 * D };

Test(condensed_rows, cells_of_a_wider_window)
{
    static const char *const maps[] = {"attn1.v.weight",
                                       "attn1.o.weight",
                                       "attn2.q.weight",
                                       "attn2.k.weight",
                                       "attn2.v.weight",
                                       "attn2.o.weight",
                                       NULL};
    static const char *const kinds[] = {"mean", "max", "dynamic"};

    for (int turn = 0; turn < 6; turn++)
        for (int L = 1; L <= MOST; L++) {
            const bool causal = turn < 3, dynamic = turn % 3 == 2;
            struct config c = of(causal ? "poolingformer" : "poolingformer-bi");
            struct by_hand h = {.L = L, .kernel = KERNELS - L % 2, .causal = causal};
            struct condensed t;
            table want = {{0}};
            set_number(&c, "pf_window", WINDOW), set_number(&c, "pf_window2", WIDE);
            set_number(&c, "pf_kernel", h.kernel), set_number(&c, "pf_stride", STRIDE);
            h.largest = turn % 3 == 1;
            if (!dynamic)
                set_choice(&c, "pf_pool", kinds[turn % 3]);
            open_alone(&t, c, L, maps);
            h.map_k = dynamic ? some_map(&t, "attn2.ldconv_k", h.kernel * D) : NULL;
            h.map_v = dynamic ? some_map(&t, "attn2.ldconv_v", h.kernel * D) : NULL;
            pooled_by_hand(want, &t, &h);
            const int cells = L < h.kernel ? 0 : (L - h.kernel) / STRIDE + 1;
            cr_expect_eq(sublayer_flop(t.l.list.at, 1, L, 0),
                         4.0 * D * h.pairs + 16.0 * L * D * D +
                             (dynamic ? 8.0 : 2.0) * cells * h.kernel * D,
                         "%s, %d tokens", kinds[turn % 3], L);
            expect_rows(&t, L, want, SOFTMAX_ERRORS, kinds[turn % 3]);
        }
}

/* ---- groups that are convolved into one row ------------------------------------------------ */

enum { GROUP = 3 };

/* The learned value, here 0, and the groups that end at the query or before it. */
Test(condensed_rows, whole_groups_and_what_stands_for_none)
{
    for (int L = 1; L <= MOST; L++) {
        struct config c = of("mca");
        struct condensed t;
        table want = {{0}}, x;
        set_number(&c, "mca_stride", GROUP);
        open_alone(&t, c, L, one_head);
        for (int e = 0; e < D; e++)
            for (int k = 0; k < GROUP; k++) /* out, in, tap: a mean */
                data_of(&t.l.p, "attn.conv_v.weight")[(e * D + e) * GROUP + k] = 1.0f / GROUP;
        tokens(x, &t);
        for (int i = 0; i < L; i++)
            for (int g = 0; (g + 1) * GROUP <= i + 1; g++)
                for (int k = 0; k < GROUP; k++)
                    add(want[i], x[g * GROUP + k], 1.0 / GROUP / ((i + 1) / GROUP + 1));
        expect_rows(&t, L, want, 0, "mca");
    }
}

/* ---- blocks that are mapped to fewer rows --------------------------------------------------- */

enum { BLOCK = 5, RANK = 2 };

/* Of each block before the query's own RANK rows, here the mean of its tokens and twice its last
 * one; of its own block the tokens up to itself. */
Test(condensed_rows, blocks_before_its_own)
{
    for (int L = 1; L <= MOST; L++) {
        struct config c = of("linformer");
        struct condensed t;
        table want = {{0}}, x;
        set_number(&c, "lin_block", BLOCK), set_number(&c, "rank", RANK);
        open_alone(&t, c, L, one_head);
        for (int k = 0; k < BLOCK; k++)
            data_of(&t.l.p, "attn.proj_v.weight")[k] = 1.0f / BLOCK;
        data_of(&t.l.p, "attn.proj_v.weight")[2 * BLOCK - 1] = 2;
        tokens(x, &t);
        for (int i = 0; i < L; i++) {
            const int own = i / BLOCK, rows = own * RANK + i % BLOCK + 1;
            for (int b = 0; b < own; b++) {
                for (int k = 0; k < BLOCK; k++)
                    add(want[i], x[b * BLOCK + k], 1.0 / BLOCK / rows);
                add(want[i], x[b * BLOCK + BLOCK - 1], 2.0 / rows);
            }
            for (int j = own * BLOCK; j <= i; j++)
                add(want[i], x[j], 1.0 / rows);
        }
        expect_rows(&t, L, want, 0, "linformer");
    }
}

/* ---- a pyramid of means ---------------------------------------------------------------------- */

enum { NEAR = 2 };

/* NEAR tokens, the query's own the newest; then, going back, NEAR nodes of each level, one more
 * where the tokens that are left would not fill nodes of twice the size. */
static void tree_by_hand(double *to, table x, int i)
{
    double rows = 0;

    for (int pass = 0; pass < 2; pass++) { /* count, then add */
        int left = i + 1, size = 1;
        double n = 0;
        while (left > 0) {
            int nodes = 0;
            for (; left >= size && (nodes < NEAR || left % (2 * size)); nodes++) {
                left -= size;
                for (int k = 0; pass && k < size; k++)
                    add(to, x[left + k], 1.0 / size / rows);
                n++;
            }
            size *= 2;
        }
        rows = n;
    }
}

Test(condensed_rows, nodes_of_a_pyramid)
{
    for (int L = 1; L <= MOST; L++) {
        struct config c = of("bp");
        struct condensed t;
        table want = {{0}}, x;
        set_number(&c, "tree", NEAR);
        open_alone(&t, c, L, one_head);
        tokens(x, &t);
        for (int i = 0; i < L; i++)
            tree_by_hand(want[i], x, i);
        expect_rows(&t, L, want, 0, "bp");
    }
}
