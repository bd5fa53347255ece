/* SPDX-License-Identifier: MIT
 *
 * Rankings of rows that differ in more than their length: memories, threads, and noise in some of
 * the shapes. */
#include "harness/measure/ranking.h"
#include "tests/support/run_folder.h"

#include <math.h>

TestSuite(ranking_shapes, .init = folder_make, .fini = folder_remove, .timeout = 60);

static struct rankings must_rank(const struct run *run, enum ranked what)
{
    struct rankings r;
    struct err e;

    cr_assert_eq(rankings_make(&r, run, what, &e), OK, "%s", e.msg);
    return r;
}

static void expect_ratio(const struct interval *x, double ratio)
{
    cr_expect(fabs(x->low - log(ratio)) < 1e-9 && fabs(x->high - log(ratio)) < 1e-9,
              "%g [%g %g], not %g", exp(x->mid), exp(x->low), exp(x->high), ratio);
}

/* A row of a shape: memory and threads, too; twenty rounds of blocks, of which the first
 * `disturbed` were preempted. */
struct shaped {
    struct made_case is;
    int mem, threads, disturbed;
};

static void add_shaped(struct rundir *d, const struct shaped *v, int n)
{
    enum { ROUNDS = 20 };

    for (int i = 0; i < n; i++) {
        struct latency_row row = latency_row_empty();
        struct key_row k = made_key(d, &v[i].is, "host");
        struct err e;
        k.mem_tokens = v[i].mem;
        k.threads = v[i].threads;
        row_set_key(&tables[TABLE_LATENCY], &row, &k);
        row.median_ns = v[i].is.ns;
        row.ci95_low_ns = row.ci95_high_ns = v[i].is.ns;
        cr_assert_eq(rundir_write(d, TABLE_LATENCY, &row, &e), OK, "%s", e.msg);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < n; i++)
            made_sample(d, v[i].is.id, round, v[i].is.ns, round < v[i].disturbed);
}

static struct run read_back(struct rundir *d)
{
    struct run run;
    struct err e;

    made_close(d, "host", "CPU");
    cr_assert_eq(run_read(&run, d->path, &e), OK, "%s", e.msg);
    return run;
}

static void add_score(struct rundir *d, const char *variant, const char *id, int mem, double bits)
{
    const struct made_case c = {variant, "ref", id, 64, 0};
    struct perplexity_row p = perplexity_row_empty();
    struct key_row k = made_key(d, &c, "host");
    struct err e;

    k.mem_tokens = mem;
    row_set_key(&tables[TABLE_PERPLEXITY], &p, &k);
    p.bits_per_unit = bits;
    text_put(p.unit, TEXT_SIZE, "word");
    cr_assert_eq(rundir_write(d, TABLE_PERPLEXITY, &p, &e), OK, "%s", e.msg);
}

static const struct contestant *named(const struct ranking *r, const char *name)
{
    int i = 0;

    while (i < r->n && strcmp(r->v[i].name, name) != 0)
        i++;
    cr_assert_lt(i, r->n, "no %s", name);
    return &r->v[i];
}

/* Of several memories the longest that a variant was timed with; a score of another memory is not
 * taken for it, and of two scores neither. */
Test(ranking_shapes, perplexity_is_that_of_the_longest_memory)
{
    static const struct shaped v[] = {
        {{"xl", "avx2", "1", 64, 1000}, 128, 1, 0},   {{"xl", "avx2", "2", 64, 1500}, 512, 1, 0},
        {{"xl", "avx2", "3", 64, 900}, 0, 1, 0},      {{"rope", "avx2", "4", 64, 2000}, 0, 1, 0},
        {{"rope", "avx2", "5", 64, 2500}, 128, 1, 0}, {{"gqa", "avx2", "6", 64, 3000}, 0, 1, 0},
        {{"window", "avx2", "7", 64, 3500}, 0, 1, 0}, {{"window", "avx2", "8", 64, 3600}, 64, 1, 0},
    };
    struct rundir d;

    made_open(&d, "aaaa");
    add_shaped(&d, v, ARRAY_LEN(v));
    add_score(&d, "xl", "s1", 0, 3), add_score(&d, "xl", "s2", 128, 2.5);
    add_score(&d, "xl", "s3", 512, 2), add_score(&d, "xl", "s4", 1024, 1);
    add_score(&d, "rope", "s5", 0, 4), add_score(&d, "rope", "s6", 128, 3.5);
    add_score(&d, "gqa", "s7", 0, 5), add_score(&d, "gqa", "s8", 0, 6);
    add_score(&d, "window", "s9", 0, 7);
    struct run run = read_back(&d);
    struct rankings r = must_rank(&run, RANKED_VARIANTS);
    cr_assert_eq(r.n, 1);
    cr_expect_eq(r.v[0].shapes, 4);
    cr_expect_eq(named(&r.v[0], "xl")->bits, 2);
    cr_expect_eq(named(&r.v[0], "rope")->bits, 3.5);
    cr_expect(isnan(named(&r.v[0], "gqa")->bits), "scored twice");
    cr_expect(isnan(named(&r.v[0], "window")->bits), "not scored with 64");
    cr_expect_str_eq(r.unit, "word");
    rankings_free(&r);
    run_free(&run);
}

/* Three lengths, two threads; `noisy` of them had both sides preempted more often than not, which
 * threads' CPU time cannot mend. */
static bool slower_over_all(int noisy, bool *each)
{
    static const char *const id[] = {"1", "2", "3", "4", "5", "6"};
    struct shaped v[6];
    struct rundir d;

    for (int i = 0; i < 6; i++)
        v[i] = (struct shaped){
            {i % 2 ? "rope" : "xl", "avx2", id[i], 64 << i / 2, i % 2 ? 1500 : 1000},
            0,
            2,
            i / 2 < noisy ? 15 : 0};
    made_open(&d, "aaaa");
    add_shaped(&d, v, 6);
    struct run run = read_back(&d);
    struct rankings r = must_rank(&run, RANKED_VARIANTS);
    cr_assert(r.n == 1 && r.v[0].n == 2 && r.v[0].common == 3);
    cr_expect_str_eq(r.v[0].v[1].name, "rope");
    expect_ratio(&r.v[0].v[1].log, 1.5);
    for (int s = 0; s < 3; s++)
        each[s] = r.v[0].v[1].place[s].slower;
    const bool slower = r.v[0].v[1].slower;
    rankings_free(&r);
    run_free(&run);
    folder_remove();
    folder_make();
    return slower;
}

Test(ranking_shapes, noise_in_most_shapes_is_no_verdict)
{
    bool each[3];

    for (int noisy = 0; noisy <= 3; noisy++) {
        cr_expect_eq(slower_over_all(noisy, each), noisy <= 1, "%d of 3 shapes", noisy);
        for (int s = 0; s < 3; s++)
            cr_expect_eq(each[s], s >= noisy, "shape %d of %d noisy", s, noisy);
    }
}

/* Threads tell settings apart, and each has its leader; lengths and memories are shapes of one. */
Test(ranking_shapes, settings_are_not_mixed)
{
    static const struct shaped v[] = {
        {{"xl", "avx2", "1", 64, 1000}, 0, 1, 0},  {{"rope", "avx2", "2", 64, 2000}, 0, 1, 0},
        {{"xl", "avx2", "3", 64, 800}, 0, 2, 0},   {{"rope", "avx2", "4", 64, 400}, 0, 2, 0},
        {{"xl", "avx2", "5", 64, 1000}, 64, 2, 0}, {{"rope", "avx2", "6", 64, 700}, 64, 2, 0},
    };
    struct rundir d;

    made_open(&d, "aaaa");
    add_shaped(&d, v, ARRAY_LEN(v));
    struct run run = read_back(&d);
    struct rankings r = must_rank(&run, RANKED_VARIANTS);
    cr_assert_eq(r.n, 2);
    cr_expect(r.v[0].shapes == 1 && r.v[1].shapes == 2);
    cr_expect_str_eq(r.v[0].v[0].name, "xl");
    expect_ratio(&r.v[0].v[1].log, 2);
    cr_expect_str_eq(r.v[1].v[0].name, "rope");
    expect_ratio(&r.v[1].v[1].log, sqrt(2.0 * 1000 / 700));
    rankings_free(&r);

    r = must_rank(&run, RANKED_BACKENDS);
    cr_expect_eq(r.n, 0, "one backend is not ranked");
    rankings_free(&r);
    run_free(&run);
}
