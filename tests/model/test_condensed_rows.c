/* SPDX-License-Identifier: MIT
 *
 * Which tokens meet in attention to means and maps of several tokens: without queries every row
 * that is seen counts the same, and with maps that change nothing the output is their mean. By hand
 * from each scheme's definition, for texts that no group divides, on the reference. */
#include "harness/check/guarded.h"
#include "tests/support/open_engine.h"
#include "tests/support/set_choice.h"
#include "variants/model/sublayer/sublayer_list.h"
#include "variants/parts/parts.h"

#include <math.h>
#include <string.h>

enum { D = 4, MOST = 29 };

typedef double table[MOST][D];

/* ---- one sub-layer ------------------------------------------------------------------------- */

struct alone {
    struct engine g;
    struct config c;
    struct params params;
    struct sublayers list;
    struct arena arena;
    float x[MOST * D], z[MOST * D];
};

static void bind(struct alone *t, int L)
{
    struct err e = {""};

    params_place(&t->params, &t->arena);
    cr_assert_eq(sublayers_bind(&t->list, &t->g, &t->params, MEM_RECOMPUTE,
                                (struct extent){1, L, 0}, &t->arena, &e),
                 OK, "%s", e.msg);
}

static float *weights(struct alone *t, const char *name)
{
    const struct param *const p = params_find(&t->params, name);

    cr_assert(p, "no %s", name);
    return p->data;
}

static void identity(struct alone *t, const char *name)
{
    for (int e = 0; e < D; e++)
        weights(t, name)[e * D + e] = 1;
}

/* All weights 0 but `maps` of values and of outputs. */
static void open_alone(struct alone *t, struct config c, int L, const char *const *maps)
{
    struct err e = {""};

    *t = (struct alone){.g = open_engine("ref", 1), .c = c};
    t->c.max_seq = MOST;
    cr_assert_eq(config_check(&t->c, &e), OK, "%s", e.msg);
    cr_assert_eq(sublayers_init_operator(&t->list, &t->c, &t->params, 0, &e), OK, "%s", e.msg);
    bind(t, L);
    cr_assert_eq(arena_place(&t->arena, HUGE_NEVER, NULL, NULL, &e), OK);
    memset(t->arena.base, 0xff, t->arena.size);
    bind(t, L);
    for (int i = 0; i < t->params.n; i++)
        memset(t->params.v[i].data, 0, t->params.v[i].n * sizeof(float));
    for (; *maps; maps++)
        identity(t, *maps);
    for (int i = 0; i < L * D; i++)
        t->x[i] = (float)((int)(rng_u32(SEED, rng_stream("rows"), (uint64_t)i) % 255) - 127) / 64;
}

/* Means of up to MOST numbers of at most 2, twice: each sum and quotient is off by U of its terms. */
static void expect_rows(struct alone *t, int L, table want, const char *what)
{
    struct sublayer *const s = t->list.at;
    struct work *const w = t->list.work;

    s->kind->forward(&t->g, s, w, sublayer_source(&t->g, s, w, t->x, 1, L),
                     (struct act){.y = t->z});
    for (int i = 0; i < L * D; i++)
        cr_expect_leq(in_bounds((double)t->z[i], want[i / D][i % D], 2.0 * MOST * 2 * U), 1,
                      "%s, %d tokens: row %d is %g, not %g", what, L, i / D, (double)t->z[i],
                      want[i / D][i % D]);
    sublayers_free(&t->list);
    params_free(&t->params);
    arena_release(&t->arena);
}

static void add(double *to, const double *row, double factor)
{
    for (int e = 0; e < D; e++)
        to[e] += factor * row[e];
}

static void tokens(table x, const struct alone *t)
{
    for (int i = 0; i < MOST * D; i++)
        x[i / D][i % D] = (double)t->x[i];
}

static struct config of(const char *variant)
{
    return config_default(variant_find(variant), D, 1, D, 8, 1, 0);
}

/* ---- a window, then cells ------------------------------------------------------------------ */

enum { WINDOW = 4, WIDE = 11, KERNEL = 3, STRIDE = 2 };

/* y1 + means of the cells whose first and last row are in the wider window, whole ones only. */
static void pooled_by_hand(table want, const struct alone *t, int L, bool causal)
{
    table x, y = {{0}};

    tokens(x, t);
    for (int i = 0; i < L; i++) {
        const int from = i - WINDOW + 1 < 0 ? 0 : i - WINDOW + 1;
        const int to = causal || i + WINDOW > L ? (causal ? i + 1 : L) : i + WINDOW;
        for (int j = from; j < to; j++)
            add(y[i], x[j], 1.0 / (to - from));
    }
    for (int i = 0; i < L; i++) {
        double sum[D] = {0};
        int seen = 0;
        for (int first = 0; first + KERNEL <= L; first += STRIDE) {
            const int last = first + KERNEL - 1;
            if (i - first >= WIDE || last - i >= (causal ? 1 : WIDE))
                continue;
            for (int j = first; j <= last; j++)
                add(sum, y[j], 1.0 / KERNEL);
            seen++;
        }
        memcpy(want[i], y[i], sizeof(y[i]));
        if (seen)
            add(want[i], sum, 1.0 / seen);
    }
}

Test(condensed_rows, cells_of_a_wider_window)
{
    static const char *const maps[] = {"attn1.v.weight", "attn1.o.weight", "attn2.v.weight",
                                       "attn2.o.weight", NULL};

    for (int causal = 0; causal < 2; causal++)
        for (int L = 1; L <= MOST; L++) {
            struct config c = of(causal ? "poolingformer" : "poolingformer-bi");
            struct alone t;
            table want = {{0}};
            set_number(&c, "pf_window", WINDOW), set_number(&c, "pf_window2", WIDE);
            set_number(&c, "pf_kernel", KERNEL), set_number(&c, "pf_stride", STRIDE);
            set_choice(&c, "pf_pool", "mean");
            open_alone(&t, c, L, maps);
            pooled_by_hand(want, &t, L, causal);
            expect_rows(&t, L, want, c.variant->name);
        }
}

/* ---- groups that are convolved into one row ------------------------------------------------ */

enum { GROUP = 3 };

/* The learned value, here 0, and the groups that end at the query or before it. */
Test(condensed_rows, whole_groups_and_what_stands_for_none)
{
    static const char *const maps[] = {"attn.v.weight", "attn.o.weight", NULL};

    for (int L = 1; L <= MOST; L++) {
        struct config c = of("mca");
        struct alone t;
        table want = {{0}}, x;
        set_number(&c, "mca_stride", GROUP);
        open_alone(&t, c, L, maps);
        for (int e = 0; e < D; e++)
            for (int k = 0; k < GROUP; k++) /* out, in, tap: a mean */
                weights(&t, "attn.conv_v.weight")[(e * D + e) * GROUP + k] = 1.0f / GROUP;
        tokens(x, &t);
        for (int i = 0; i < L; i++)
            for (int g = 0; (g + 1) * GROUP <= i + 1; g++)
                for (int k = 0; k < GROUP; k++)
                    add(want[i], x[g * GROUP + k], 1.0 / GROUP / ((i + 1) / GROUP + 1));
        expect_rows(&t, L, want, "mca");
    }
}

/* ---- blocks that are mapped to fewer rows --------------------------------------------------- */

enum { BLOCK = 5, RANK = 2 };

/* Of each block before the query's own RANK rows, here the mean of its tokens and twice its last
 * one; of its own block the tokens up to itself. */
Test(condensed_rows, blocks_before_its_own)
{
    static const char *const maps[] = {"attn.v.weight", "attn.o.weight", NULL};

    for (int L = 1; L <= MOST; L++) {
        struct config c = of("linformer");
        struct alone t;
        table want = {{0}}, x;
        set_number(&c, "lin_block", BLOCK), set_number(&c, "rank", RANK);
        open_alone(&t, c, L, maps);
        for (int k = 0; k < BLOCK; k++)
            weights(&t, "attn.proj_v.weight")[k] = 1.0f / BLOCK;
        weights(&t, "attn.proj_v.weight")[2 * BLOCK - 1] = 2;
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
        expect_rows(&t, L, want, "linformer");
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
    static const char *const maps[] = {"attn.v.weight", "attn.o.weight", NULL};

    for (int L = 1; L <= MOST; L++) {
        struct config c = of("bp");
        struct alone t;
        table want = {{0}}, x;
        set_number(&c, "tree", NEAR);
        open_alone(&t, c, L, maps);
        tokens(x, &t);
        for (int i = 0; i < L; i++)
            tree_by_hand(want[i], x, i);
        expect_rows(&t, L, want, "bp");
    }
}
