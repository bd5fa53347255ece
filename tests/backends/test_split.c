/* SPDX-License-Identifier: MIT
 *
 * How calls are cut for more threads than this machine has: for the shapes of layers, segments,
 * decoding and training, on machines that hwloc makes up. Nothing runs; what is cut is counted. */
#include "variants/backends/split.h"

#include "harness/machine/topo.h"
#include "tests/support/failure.h"

enum { MOST_THREADS = 128, MOST = 64 /* queries of a block */ };

static const struct machine {
    char synthetic[32];
    int cores;
} machines[] = {{"package:1 core:2 pu:1", 2},
                {"package:1 core:16 pu:1", 16},
                {"package:2 core:8 pu:2", 16},
                {"package:2 core:12 pu:2", 24},
                {"package:2 core:64 pu:1", 128}};

/* The head of a test that runs for the threads of each machine. */
#define ON_EACH_MACHINE(name)                                                                      \
    static void name(int threads);                                                                 \
    Test(split, name)                                                                              \
    {                                                                                              \
        for (size_t i = 0; i < ARRAY_LEN(machines); i++)                                           \
            name(threads_of(&machines[i]));                                                        \
    }                                                                                              \
    static void name(int threads)

/* One thread per core, each on a core of its own whatever the policy. */
static int threads_of(const struct machine *m)
{
    struct topo *t;
    struct topo_facts f;
    int n, cpus[MOST_THREADS];

    MUST(topo_open(&t, m->synthetic, &failure));
    topo_facts(t, &f);
    cr_assert_eq(f.allowed_cores, m->cores);
    cr_assert_leq(f.allowed_cores, MOST_THREADS);
    const struct topo_cpu *const all = topo_cpus(t, &n);
    for (int threads = 1; threads <= f.allowed_cores; threads++)
        EACH_TEXT (how, "compact", "scatter") {
            bool taken[MOST_THREADS] = {false};
            MUST(topo_plan(t, how, threads, cpus, &failure));
            for (int i = 0; i < threads; i++)
                for (int c = 0; c < n; c++) {
                    if (all[c].cpu != cpus[i])
                        continue;
                    cr_assert(!taken[all[c].core], "%s, %d threads on %s: core %d twice", how,
                              threads, m->synthetic, all[c].core);
                    taken[all[c].core] = true;
                }
        }
    topo_close(t);
    return f.allowed_cores;
}

/* Every shape of attention: dh 64, so D is 256 to 1024. */
static const int queries[] = {128, 200, 256, 512, 1000, 1024, 2048}, heads[] = {4, 8, 12, 16},
                 sequences[] = {1, 2, 3, 4, 8}, pasts[] = {0, 512, 2048};
enum { DH = 64 };

#define EACH(x, of)                                                                                \
    for (size_t x##_i = 0, x = 0; x##_i < ARRAY_LEN(of) && ((x = (size_t)(of)[x##_i]), true);      \
         x##_i++)

static struct attn shape(size_t B, size_t H, size_t Hkv, size_t L, size_t M)
{
    return (struct attn){.B = (int)B,
                         .H = (int)H,
                         .Hkv = (int)Hkv,
                         .L = (int)L,
                         .M = (int)M,
                         .dh = DH,
                         .causal = true};
}

static void begins_a_line(ptrdiff_t at, const char *what)
{
    cr_assert_eq(at % SPLIT_LINE, 0, "%s begins within a line, at %td", what, at);
}

/* ---- attention ---------------------------------------------------------------------------- */

/* Work of an item: pairs of a query and a key. */
static double pairs_of(const struct attn *a, const struct split_attn *s, int t)
{
    const int first = split_attn_item(s, t).first;
    double pairs = 0;

    for (int i = first; i < min_int(first + s->height, a->L); i++)
        pairs += a->M + i + 1;
    return pairs;
}

static void covers_attention(const struct attn *a, const struct split_attn *s, int least)
{
    bool *const seen = room((size_t)s->heads * (size_t)a->L, sizeof(*seen));
    int last = a->L;

    cr_assert_eq(s->height % least, 0);
    for (int t = 0; t < s->items; t++) {
        const struct split_attn_item at = split_attn_item(s, t);
        const ptrdiff_t row = (ptrdiff_t)a->H * DH;
        const int turn = t / s->abreast, before = turn > 0 ? t - s->abreast : t;
        cr_assert(!s->fixed || turn % s->blocks == 0 || split_attn_item(s, before).head == at.head,
                  "head %d is left for another", split_attn_item(s, before).head);
        cr_assert_leq(at.first, s->fixed && turn % s->blocks == 0 ? a->L : last,
                      "the longest come first");
        last = at.first;
        begins_a_line(((ptrdiff_t)(at.head / a->H) * a->L + at.first) * row +
                          (ptrdiff_t)(at.head % a->H) * DH,
                      "an item's output");
        for (int i = at.first; i < min_int(at.first + s->height, a->L); i++) {
            bool *const one = &seen[(size_t)at.head * (size_t)a->L + (size_t)i];
            cr_assert(!*one, "query %d of head %d twice", i, at.head);
            *one = true;
        }
    }
    for (int i = 0; i < s->heads * a->L; i++)
        cr_assert(seen[i], "query %d of head %d is nobody's", i % a->L, i / a->L);
}

/* Largest share / mean share. Items are taken as threads become free; `fixed` ones are dealt. */
static double attention_balance(const struct attn *a, const struct split_attn *s, int threads)
{
    double load[MOST_THREADS] = {0}, all = 0, largest = 0;

    for (int t = 0; t < s->items; t++) {
        int to = s->fixed ? t % threads : 0;
        for (int i = 1; !s->fixed && i < threads; i++)
            to = load[i] < load[to] ? i : to;
        load[to] += pairs_of(a, s, t);
    }
    for (int i = 0; i < threads; i++) {
        all += load[i];
        largest = load[i] > largest ? load[i] : largest;
    }
    return largest * threads / all;
}

/* A thread takes its last item when its load is at most the mean, so the largest share is less than
 * mean + that item: with n items for each of T threads, at most 1 + 1/n of the mean were they
 * equal, and n >= 2. Later items of causal attention are the shorter ones. */
static void check_attention(const struct attn *a, int least, int threads)
{
    const struct split_attn s = split_attn(a, MOST, least, threads);
    const double balance = attention_balance(a, &s, threads);
    const int could = s.heads * ((a->L + least - 1) / least);

    covers_attention(a, &s, least);
    cr_expect(s.fixed || s.items >= min_int(2 * threads, could),
              "B %d H %d L %d: %d items for %d threads, %d possible", a->B, a->H, a->L, s.items,
              threads, could);
    if (s.items >= 2 * threads || s.fixed)
        cr_expect_leq(balance, 1.5, "B %d H %d L %d M %d: %d items for %d threads, balance %.2f",
                      a->B, a->H, a->L, a->M, s.items, threads, balance);
    if (!s.fixed && s.height < MOST)
        cr_expect_lt(s.heads * ((a->L + 2 * s.height - 1) / (2 * s.height)), 2 * threads,
                     "blocks are lower than they need be");
}

ON_EACH_MACHINE(attention)
{
    EACH(B, sequences) EACH(H, heads) EACH(L, queries) EACH(M, pasts)
    {
        for (size_t kv = 0; kv < 2; kv++)
            for (int least = 8; least <= 16; least *= 2) {
                const struct attn a = shape(B, H, kv ? 1 : H, L, M);
                check_attention(&a, least, threads);
            }
    }
}

/* What runs on one or two threads has not changed: whole blocks, but for a lone head or two. */
Test(split, few_threads_have_whole_blocks)
{
    for (int threads = 1; threads <= 2; threads++)
        EACH(B, sequences) EACH(H, heads) EACH(L, queries)
        {
            const struct attn a = shape(B, H, 1, L, 0);
            cr_assert_eq(split_attn(&a, MOST, 16, threads).height, MOST);
        }
}

/* ---- a few queries ------------------------------------------------------------------------ */

static void covers_few(const struct attn *a, const struct split_few *s)
{
    const int keys = attn_keys(a);
    unsigned char *const seen = room((size_t)a->B * (size_t)a->H, (size_t)keys);

    for (int t = 0; t < s->items; t++) {
        const struct split_few_item x = split_few_item(s, t);
        cr_assert(x.h0 < x.h1 && x.from < x.to, "item %d is empty", t);
        begins_a_line((ptrdiff_t)x.h0 * DH, "a share of the heads");
        for (int h = x.h0; h < x.h1; h++) {
            cr_assert_eq(split_few_first(s, x.b, h) + x.part, t);
            for (int j = x.from; j < x.to; j++)
                cr_assert_eq(seen[(x.b * a->H + h) * keys + j]++, 0, "key %d of head %d twice", j,
                             h);
        }
    }
    for (int i = 0; i < a->B * a->H * keys; i++)
        cr_assert_eq(seen[i], 1, "key %d of head %d is nobody's", i % keys, i / keys);
}

/* With parts there is at most one item per thread: a share of the heads is dropped rather than
 * shared, so that more than half of the threads have one, unless heads and parts run out. */
ON_EACH_MACHINE(few_queries)
{
    EACH(B, sequences) EACH(H, heads) EACH(M, pasts)
    {
        const struct attn a = shape(B, H, H, 1, M);
        const struct split_few s = split_few(&a, threads);
        const int most_parts = max_int(1, attn_keys(&a) / 128);
        const int could = a.B * a.H * most_parts;
        covers_few(&a, &s);
        cr_expect(s.parts == 1 || s.items <= threads, "parts need a thread's rows each");
        cr_expect(2 * s.items > min_int(threads, could), "B %d H %d M %d: %d items, %d threads",
                  a.B, a.H, a.M, s.items, threads);
        if (threads % a.B == 0 && s.items < threads)
            cr_expect(s.shares == a.H || s.parts > 1, "B %d H %d M %d: %d items, %d threads", a.B,
                      a.H, a.M, s.items, threads);
    }
}

/* ---- products ----------------------------------------------------------------------------- */

/* Parts in a row of the grid have the same rows, and so on: both axes are covered once. */
static int covers_grid(const struct split_gemm *s)
{
    int working = 0;

    for (int t = 0; t < s->rows * s->cols; t++) {
        const int r = t / s->cols, c = t % s->cols;
        const struct split_gemm_part p = split_gemm_part(s, t);
        cr_assert(p.i0 <= p.i1 && p.j0 <= p.j1);
        cr_assert_eq(p.i0, r ? split_gemm_part(s, t - s->cols).i1 : 0);
        cr_assert_eq(p.j0, c ? split_gemm_part(s, t - 1).j1 : 0);
        cr_assert(r < s->rows - 1 || p.i1 == s->m, "rows end at %d of %d", p.i1, s->m);
        cr_assert(c < s->cols - 1 || p.j1 == s->n, "columns end at %d of %d", p.j1, s->n);
        if (p.j0 < s->n)
            begins_a_line((ptrdiff_t)p.i0 * s->n + p.j0, "a part of a product");
        working += p.i0 < p.i1 && p.j0 < p.j1;
    }
    return working;
}

/* Shares of an axis differ by one unit at most: the largest is less than mean + 1, on both axes. */
static void check_gemm(const struct split_gemm_shape *of, int threads)
{
    const struct split_gemm s = split_gemm(of, threads);
    const int working = covers_grid(&s), units = (of->n + s.unit - 1) / s.unit;
    const double by_row = (double)of->m / s.rows, by_col = (double)units / s.cols;

    if (s.rows * s.cols == 1)
        return;
    cr_expect_eq(s.rows * s.cols, threads);
    cr_expect_eq(working, min_int(threads, of->few ? units : of->m * units),
                 "%d x %d: %d of %d threads work", of->m, of->n, working, threads);
    if (working < threads)
        return;
    double largest = 0;
    for (int t = 0; t < threads; t++) {
        const struct split_gemm_part p = split_gemm_part(&s, t);
        const double area = (double)(p.i1 - p.i0) * (p.j1 - p.j0);
        largest = area > largest ? area : largest;
    }
    const double balance = largest * threads / ((double)of->m * of->n);
    cr_expect_lt(balance, (1 + 1 / by_row) * (1 + 1 / by_col));
    cr_expect_leq(balance, 2, "%d x %d, %d threads: balance %.2f", of->m, of->n, threads, balance);
}

ON_EACH_MACHINE(products)
{
    static const int widths[] = {256, 512, 768, 1024}, times[] = {1, 3, 4},
                     tokens[] = {1, 8, 128, 200, 512, 2048};
    EACH(D, widths) EACH(x, times) EACH(B, sequences) EACH(T, tokens)
    {
        const int rows = (int)(B * T), n = (int)(D * x);
        for (int packed = 0; packed < 2; packed++)
            for (int wide = 0; wide < 2; wide++) {
                struct split_gemm_shape of = {.m = rows,
                                              .n = n,
                                              .k = (int)D,
                                              .tile_rows = wide ? 14 : 6,
                                              .tile_cols = wide ? 32 : 16,
                                              .few = rows <= 8,
                                              .packed = packed};
                check_gemm(&of, threads);
            }
    }
}

/* ---- rows, columns, states ---------------------------------------------------------------- */

ON_EACH_MACHINE(rows_and_columns)
{
    static const int widths[] = {200, 256, 512, 1024, 4096};
    EACH(B, sequences) EACH(L, queries) EACH(n, widths)
    {
        const int rows = (int)(B * L), chunks = split_rows(rows, (int)n, threads);
        const struct split_columns s = split_columns(rows, (int)n, threads);
        const bool alone = B * L * n < 1 << 15;
        cr_assert_eq(split_at(rows, 0, chunks), 0);
        cr_assert_eq(split_at(rows, chunks, chunks), rows);
        cr_expect_eq(chunks, alone ? 1 : min_int(rows, 4 * threads));
        cr_expect_eq(s.parts, alone ? 1 : min_int(threads, ((int)n + 15) / 16));
        cr_assert_eq(split_columns_at(&s, 0), 0);
        cr_assert_eq(split_columns_at(&s, s.parts), (int)n);
        for (int t = 0; t < s.parts; t++) {
            begins_a_line(split_columns_at(&s, t), "a part of the columns");
            cr_assert_lt(split_columns_at(&s, t), split_columns_at(&s, t + 1));
        }
    }
}

/* A thread has at most one slice more than another, and a slice at most one unit more. */
ON_EACH_MACHINE(states)
{
    static const int widths[] = {16, 64, 128, 200, 256};
    EACH(B, sequences) EACH(H, heads) EACH(dv, widths)
    {
        for (int unit = 16; unit <= 64; unit *= 4) {
            const int states = (int)(B * H), units = ((int)dv + unit - 1) / unit;
            const int slices = split_slices(states, (int)dv, unit, threads);
            cr_expect(states * slices >= threads || slices == units,
                      "%d states, %d slices, %d threads", states, slices, threads);
            cr_expect(slices == 1 || states * (slices - 1) < threads, "slices without need");
            cr_assert_eq(split_slice_at((int)dv, unit, 0, slices), 0);
            cr_assert_eq(split_slice_at((int)dv, unit, slices, slices), (int)dv);
            for (int t = 0; t < slices; t++) {
                begins_a_line(split_slice_at((int)dv, unit, t, slices), "a slice");
                cr_assert_lt(split_slice_at((int)dv, unit, t, slices),
                             split_slice_at((int)dv, unit, t + 1, slices));
            }
        }
    }
}

ON_EACH_MACHINE(channels)
{
    static const int widths[] = {200, 256, 512, 1024, 2048};
    EACH(B, sequences) EACH(n, widths)
    {
        for (int most = 64; most <= 128; most *= 2) {
            const int width = split_channels((int)B, (int)n, most, threads);
            const int blocks = (int)B * (((int)n + width - 1) / width);
            begins_a_line(width, "a block of channels");
            cr_expect(blocks >= threads || width == SPLIT_LINE, "%d blocks, %d threads", blocks,
                      threads);
            cr_expect(width == most || (int)B * (((int)n + 2 * width - 1) / (2 * width)) < threads,
                      "blocks are smaller than they need be");
        }
    }
}
