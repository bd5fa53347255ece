/* SPDX-License-Identifier: MIT
 *
 * Rankings of runs with known numbers: order, ratios, ties, who takes part, and the text. */
#include "tests/support/ranked.h"

#include "tests/support/normal.h"

TestSuite(ranking, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* Rounds in which all cases take turns on a machine that gets ten times slower, so that only pairs
 * have narrow intervals. A case whose `shake` is not 0 is faster and slower by that, in turns. */
struct shaken {
    struct made_case is;
    double shake;
};

static void add_cases(struct rundir *d, const struct shaken *v, int n)
{
    enum { ROUNDS = 20 };

    for (int i = 0; i < n; i++)
        made_row(d, &v[i].is, "host", "ok", "", 100);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < n; i++) {
            const double level = 1 + 0.5 * round, turn = round % 2 ? 1 + v[i].shake : 1;
            made_sample(d, v[i].is.id, round, v[i].is.ns * level * turn, 0);
        }
}

static struct run run_of(const struct shaken *v, int n)
{
    struct rundir d = made_open("aaaa");
    add_cases(&d, v, n);
    struct run r = made_read(&d);
    return r;
}

/* Of two rows of a kernel from outside it has run one; the other a backend ran that is here, too. */
Test(ranking, what_a_kernel_refused_is_not_its_time)
{
    static const struct shaken v[] = {
        {{"xl", "./k.so", "1", 128, 1000}, 0},
        {{"xl", "avx2", "2", 128, 2000}, 0},
        {{"rope", "./k.so", "3", 128, 3000}, 0},
        {{"rope", "avx2", "4", 128, 3000}, 0},
    };
    struct run run = run_of(v, ARRAY_LEN(v));
    int ran = 0;

    for (size_t i = 0; i < run.latency.n; i++) {
        struct latency_row *const r = (struct latency_row *)run.latency.row + i;
        text_put(r->impl, sizeof(r->impl), strcmp(r->variant, "xl") ? "fused" : "k@1:attention");
    }
    struct rankings r = ranked(&run, RANKED_BACKENDS);
    for (int i = 0; i < r.n; i++)
        for (int k = 0; k < r.v[i].n; k++)
            for (int s = 0; s < r.v[i].shapes; s++)
                ran += strcmp(r.v[i].v[k].name, "./k.so") == 0 && r.v[i].v[k].place[s].row;
    cr_expect_eq(ran, 1);
}

Test(ranking, variants_by_their_fastest_backends)
{
    static const struct shaken v[] = {
        {{"xl", "avx2", "1", 128, 1800}, 0},    {{"xl", "avx512", "2", 128, 1500}, 0},
        {{"rope", "avx2", "3", 128, 1000}, 0},  {{"rope", "ref", "4", 128, 900}, 0},
        {{"linear", "ref", "5", 128, 3000}, 0},
    };
    struct run run = run_of(v, ARRAY_LEN(v));
    struct rankings r = ranked(&run, RANKED_VARIANTS);

    cr_assert_eq(r.n, 1);
    const struct ranking *one = &r.v[0];
    cr_assert_eq(one->n, 3);
    cr_expect_eq(one->shapes, 1);
    cr_expect_str_eq(one->v[0].name, "rope"); /* by avx2: ref counts only where nothing else ran */
    TEXTS({one->v[1].name, "xl"}, {one->v[1].place[0].row->backend, "avx512"},
          {one->v[2].name, "linear"});
    expect_ratio(&one->v[1].change.log, 1.5);
    expect_ratio(&one->v[2].change.log, 3);
    cr_expect(!is_slower(&one->v[0].change) && is_slower(&one->v[1].change) &&
              is_slower(&one->v[2].change));

    r = ranked(&run, RANKED_BACKENDS);
    cr_assert_eq(r.n, 1);
    /* No case ran on all three: they stand as they came, whatever each ran. */
    cr_assert_eq(r.v[0].n, 3);
    cr_expect_eq(r.v[0].common, 0);
    TEXTS({r.v[0].v[0].name, "avx2"}, {r.v[0].v[1].name, "avx512"}, {r.v[0].v[2].name, "ref"});
    cr_expect(isnan(r.v[0].v[1].change.log.mid) && !is_slower(&r.v[0].v[1].change));
}

/* made_row gives each row an interval of 1 % to either side. */
Test(ranking, without_samples_rows_have_their_own_intervals)
{
    static const struct made_case v[] = {{"xl", "avx2", "1", 128, 1000},
                                         {"rope", "avx2", "2", 128, 1500},
                                         {"linear", "avx2", "3", 128, 1010}};
    const double half = sqrt(2) * log(1.01 / 0.99) / 2;
    struct rundir d = made_open("aaaa");
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        made_row(&d, &v[i], "host", "ok", "", 100);
    struct rankings r = ranked_end(&d, RANKED_VARIANTS);
    cr_assert(r.n == 1 && r.v[0].n == 3);
    const struct contestant *const rope = &r.v[0].v[2], *const linear = &r.v[0].v[1];
    cr_expect_float_eq(rope->change.log.low, log(1.5) - half, 1e-12);
    cr_expect_float_eq(rope->change.log.high, log(1.5) + half, 1e-12);
    cr_expect(is_slower(&rope->change) && !is_slower(&linear->change));
}

/* A line over all shapes, then one for each case; the leader of a shape need not lead over all. */
Test(ranking, csv_has_every_place)
{
    static const struct shaken v[] = {
        {{"a\"b", "avx2", "1", 128, 1000}, 0}, {{"rope", "avx2", "2", 128, 1200}, 0},
        {{"a\"b", "avx2", "3", 256, 4500}, 0}, {{"rope", "avx2", "4", 256, 3000}, 0},
        {{"rope", "avx2", "5", 512, 9000}, 0},
    };
    static const char *const lines[] = {
        "subject,setting,mean,name,variant,backend,case_id,ratio,low,high,few,verdict,bits,unit,"
        "remark,clock,time_ns",
        "variants,layer,geometric mean of 2 shapes,rope,,,,1,1,1,,fastest,,,,wall,",
        "variants,layer,,rope,rope,avx2,2,1.2,1.2,1.2,,slower,,,,wall,1200",
        "variants,layer,,rope,rope,avx2,4,1,1,1,,fastest,,,,wall,3000",
        "variants,layer,,rope,rope,avx2,5,1,1,1,,fastest,,,,wall,9000",
        "variants,layer,geometric mean of 2 shapes,\"a\"\"b\",,,,1.11803399,1.11803399,1.11803399,,"
        "slower,,,,wall,",
        "variants,layer,,\"a\"\"b\",\"a\"\"b\",avx2,1,1,1,1,,fastest,,,,wall,1000",
        "variants,layer,,\"a\"\"b\",\"a\"\"b\",avx2,3,1.5,1.5,1.5,,slower,,,,wall,4500",
    };
    struct run run = run_of(v, ARRAY_LEN(v));
    struct rankings r = ranked(&run, RANKED_VARIANTS);
    size_t n = 0;

    FILE *const f = text_begin();
    rankings_print_csv_header(f);
    rankings_print_csv(f, &r, RANKED_VARIANTS);
    char *text = text_end(f);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), n++)
        if (n < ARRAY_LEN(lines))
            cr_expect_str_eq(line, lines[n]);
    cr_expect_eq(n, ARRAY_LEN(lines));
}

Test(ranking, mean_over_shapes_that_all_ran)
{
    static const struct shaken v[] = {
        {{"xl", "avx2", "1", 128, 1000}, 0},   {{"rope", "avx2", "2", 128, 1200}, 0},
        {{"xl", "avx2", "3", 256, 4500}, 0},   {{"rope", "avx2", "4", 256, 3000}, 0},
        {{"rope", "avx2", "5", 512, 9000}, 0},
    };
    struct run run = run_of(v, ARRAY_LEN(v));
    struct rankings r = ranked(&run, RANKED_VARIANTS);

    cr_assert_eq(r.n, 1);
    const struct ranking *one = &r.v[0];
    cr_assert_eq(one->n, 2);
    NUMBERS({one->shapes, 3}, {one->common, 2});
    cr_expect_str_eq(one->v[0].name, "rope");
    expect_ratio(&one->v[1].change.log, sqrt(1.0 / 1.2 * 1.5));
    cr_expect_str_eq(one->v[one->leader[0]].name, "xl");
    expect_ratio(&one->v[0].place[0].change.log, 1.2);
    cr_expect_str_eq(one->v[one->leader[1]].name, "rope");
    expect_ratio(&one->v[1].place[1].change.log, 1.5);
}

/* Half of the blocks of `rope` are 10 % slower than those of xl, half 5 % faster: the interval of
 * the median ratio has 1 inside. */
Test(ranking, what_an_interval_does_not_show_is_a_tie)
{
    static const struct shaken v[] = {
        {{"xl", "avx2", "1", 128, 1000}, 0},
        {{"rope", "avx2", "2", 128, 1100}, -0.15},
        {{"window", "avx2", "3", 128, 1200}, 0.01},
    };
    struct run run = run_of(v, ARRAY_LEN(v));
    struct rankings r = ranked(&run, RANKED_VARIANTS);

    cr_assert(r.n == 1 && r.v[0].n == 3);
    cr_expect_str_eq(r.v[0].v[1].name, "rope");
    cr_expect(!is_slower(&r.v[0].v[1].change) && !is_slower(&r.v[0].v[1].place[0].change));
    cr_expect(is_slower(&r.v[0].v[2].change));

    char *text = PRINTED(f, rankings_print(f, &r, RANKED_VARIANTS, 80, false));
    const char *const tie = strstr(text, "no difference shown");
    cr_assert(tie && tie > strstr(text, "rope") && tie < strstr(text, "window"), "%s", text);
    cr_expect(!strstr(tie + 1, "no difference shown"), "%s", text);

    /* For programs: the first is not called the fastest. */
    text = PRINTED(csv, rankings_print_csv(csv, &r, RANKED_VARIANTS));
    HAS(text, ",xl,,,,1,1,1,,first,", ",xl,xl,avx2,1,1,1,1,,first,");
    cr_expect_not(strstr(text, "fastest"), "%s", text);
}

Test(ranking, perplexity_stands_beside_the_time)
{
    static const struct shaken v[] = {
        {{"xl", "avx2", "1", 128, 1000}, 0},
        {{"rope", "avx2", "2", 128, 2000}, 0},
    };
    struct rundir d = made_open("aaaa");
    add_cases(&d, v, ARRAY_LEN(v));
    const struct key_row k = made_key(&d, &v[1].is, "host");
    struct perplexity_row p = ROW_OF(perplexity, PERPLEXITY, &k);
    p.bits_per_unit = 1.5;
    text_put(p.unit, TEXT_SIZE, "byte");
    made_write(&d, TABLE_PERPLEXITY, &p);
    struct rankings r = ranked_end(&d, RANKED_VARIANTS);
    cr_assert(r.n == 1 && r.v[0].n == 2);
    NUMBERS({r.v[0].v[0].bits, NAN}, {r.v[0].v[1].bits, 1.5});
    cr_expect_str_eq(r.unit, "byte");
}

Test(ranking, text_stays_within_the_width)
{
    enum { VARIANTS = 9, WIDTH = 60 };
    static const char *const names[VARIANTS] = {
        "vanilla", "xl", "rope", "window", "linear", "gtrxl", "sandwich", "delight", "compressive"};
    static char id[2 * VARIANTS][16];
    struct shaken v[2 * VARIANTS];

    for (int i = 0; i < 2 * VARIANTS; i++) {
        snprintf(id[i], sizeof(id[i]), "%d", i);
        v[i] = (struct shaken){{names[i / 2], "avx2", id[i], i % 2 ? 128 : 256, 1000 + 100 * i}, 0};
    }
    struct run run = run_of(v, ARRAY_LEN(v));
    struct rankings r = ranked(&run, RANKED_VARIANTS);
    char *text = PRINTED(f, rankings_print(f, &r, RANKED_VARIANTS, WIDTH, false));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        cr_expect(terminal_columns(line) <= WIDTH, "%s", line);
    for (int i = 0; i < VARIANTS; i++)
        cr_expect_eq(r.v[0].v[i].place[0].row != NULL, true);
}

/* The median of xl's row says that it is faster, as on a machine that was busy during the other's
 * blocks; the pairs of blocks say the opposite. */
Test(ranking, pairs_count_more_than_medians)
{
    static const struct made_case fast = {"rope", "avx2", "1", 128, 1000},
                                  slow = {"xl", "avx2", "2", 128, 1500};
    struct rundir d = made_open("aaaa");
    made_row(&d, &(struct made_case){"rope", "avx2", "1", 128, 2000}, "host", "ok", "", 100);
    made_row(&d, &slow, "host", "ok", "", 100);
    for (int round = 0; round < 20; round++) {
        made_sample(&d, fast.id, round, fast.ns, 0);
        made_sample(&d, slow.id, round, slow.ns, 0);
    }
    struct rankings r = ranked_end(&d, RANKED_VARIANTS);
    cr_assert(r.n == 1 && r.v[0].n == 2);
    cr_expect_str_eq(r.v[0].v[0].name, "rope");
    cr_expect_eq(r.v[0].leader[0], 0);
    expect_ratio(&r.v[0].v[1].change.log, 1.5);
    cr_expect(is_slower(&r.v[0].v[1].change) && is_slower(&r.v[0].v[1].place[0].change));
}

/* So they do for the backend that a variant stands on. */
Test(ranking, pairs_choose_the_backend)
{
    static const struct made_case v[] = {{"xl", "avx2", "1", 128, 1500},
                                         {"xl", "avx512", "2", 128, 1000},
                                         {"rope", "avx512", "3", 128, 3000}};
    struct rundir d = made_open("aaaa");
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        struct made_case row = v[i];
        row.ns = i == 1 ? 2000 : row.ns; /* its median of a busy minute */
        made_row(&d, &row, "host", "ok", "", 100);
    }
    for (int round = 0; round < 20; round++)
        for (size_t i = 0; i < ARRAY_LEN(v); i++)
            made_sample(&d, v[i].id, round, v[i].ns, 0);
    struct rankings r = ranked_end(&d, RANKED_VARIANTS);
    cr_assert(r.n == 1 && r.v[0].n == 2);
    cr_expect_str_eq(r.v[0].v[0].place[0].row->backend, "avx512");
    expect_ratio(&r.v[0].v[1].change.log, 3);
}

/* ---- one case under two names ---------------------------------------------------------------- */

/* A sweep of two variants that are the same; each launch favours one of them by 2 % in a deviation,
 * blocks scatter by 1 %. Does the ranking show a difference? */
static bool shows_a_difference(int launches, struct synthetic *r)
{
    enum { BLOCKS = 10, SAME = 2 };
    static const struct made_case v[SAME] = {{"xl", "avx2", "1", 128, 1000},
                                             {"rope", "avx2", "2", 128, 1000}};
    struct rundir d = made_open("aaaa");
    for (int i = 0; i < SAME; i++)
        made_row(&d, &v[i], "host", "ok", "", 100);
    for (int launch = 0; launch < launches; launch++) {
        const double level[SAME] = {0.02 * normal(r), 0.02 * normal(r)};
        for (int k = 0; k < BLOCKS; k++)
            for (int i = 0; i < SAME; i++)
                made_block(&d, v[i].id, launch * BLOCKS + k, launch,
                           1000 * exp(level[i] + 0.01 * normal(r)), 0, 0.9);
    }
    struct run run = made_read(&d);
    struct rankings of = ranked(&run, RANKED_VARIANTS);
    cr_assert(of.n == 1 && of.v[0].n == SAME);
    const bool shown = of.v[0].v[1].change.verdict != VERDICT_UNSHOWN;
    rundir_remove(&d);
    return shown;
}

/* Of 100 rankings 5 with a deviation of 2.2, three of which are allowed; one launch shows most. */
Test(ranking, equal_cases_are_not_told_apart)
{
    enum { SWEEPS = 100 };
    struct synthetic r = {6, rng_stream("test.aa"), 0};
    int of_three = 0, of_one = 0;

    for (int i = 0; i < SWEEPS; i++) {
        of_three += shows_a_difference(3, &r);
        of_one += shows_a_difference(1, &r);
    }
    cr_expect_leq(of_three, 11, "seed %d: %d of %d", (int)r.seed, of_three, SWEEPS);
    cr_expect_gt(of_one, SWEEPS / 2, "seed %d: %d of %d", (int)r.seed, of_one, SWEEPS);
}
