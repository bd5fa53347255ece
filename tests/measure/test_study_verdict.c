/* SPDX-License-Identifier: MIT
 *
 * Verdicts of studies: known rows, and simulated studies whose truth is known. */
#include "tests/support/normal.h"
#include "tests/support/study_rows.h"

Test(study_verdict, clear_differences_and_none)
{
    struct table_of_rows t = make_rows();
    static const double noise[] = {0.01, -0.01, 0.002, -0.004, 0.006};

    for (int seed = 1; seed <= 3; seed++) /* contenders may come before the baseline */
        add(&t, "bad", "s", seed, 2.5 + noise[seed]);
    for (int seed = 1; seed <= 5; seed++)
        add(&t, "base", "s", seed, 2 + noise[seed - 1]);
    for (int seed = 1; seed <= 3; seed++) {
        add(&t, "good", "s", seed, 1.5 + noise[seed]);
        add(&t, "same", "s", seed, 2 + noise[seed]);
    }
    struct study_verdicts v = verdicts(&t);
    cr_assert_eq(v.n, 4);
    cr_expect(v.v[0].row->baseline == 1, "the baseline comes first");
    NUMBERS({v.tested, 3}, {entry(&v, "good", "s")->verdict, STUDY_BETTER},
            {entry(&v, "bad", "s")->verdict, STUDY_WORSE},
            {entry(&v, "same", "s")->verdict, STUDY_NOT_SHOWN});
    double base[5];
    for (int i = 0; i < 5; i++)
        base[i] = 2 + noise[i];
    cr_expect(fabs(v.noise - stats_stddev(base, 5)) < 1e-12);
}

/* Each against its own control: "first" is better than its control and worse than the other one, and
 * a control may have a control. Holm's correction is over all pairs. */
Test(study_verdict, own_controls)
{
    static const struct {
        const char *contender, *control;
        double nats;
        bool baseline;
    } of[] = {{"low", "", 1, true},
              {"high", "low", 3, true},
              {"first", "high", 2, false},
              {"second", "low", 1.5, false},
              {"lost", "gone", 1.5, false}};
    static const double noise[] = {0.01, -0.01, 0.002};
    struct table_of_rows t = make_rows();

    for (int seed = 1; seed <= 3; seed++)
        for (size_t i = ARRAY_LEN(of); i-- > 0;) {
            struct study_row *const r =
                add(&t, of[i].contender, "s", seed, of[i].nats + noise[seed - 1]);
            text_put(r->control, TEXT_SIZE, of[i].control);
            r->baseline = of[i].baseline;
        }
    struct study_verdicts v = verdicts(&t);
    cr_expect(v.controls);
    NUMBERS({v.tested, 3}, {v.noise_of, 2}, {entry(&v, "first", "s")->verdict, STUDY_BETTER},
            {entry(&v, "first", "s")->quality.diff.mid, -1, 1e-12},
            {entry(&v, "second", "s")->verdict, STUDY_WORSE},
            {entry(&v, "high", "s")->verdict, STUDY_WORSE},
            {entry(&v, "high", "s")->quality.diff.mid, 2, 1e-12},
            {entry(&v, "low", "s")->verdict, STUDY_NOT_TESTED},
            {entry(&v, "lost", "s")->verdict, STUDY_NOT_TESTED});
    cr_expect(v.v[0].row->baseline == 1 && v.v[1].row->baseline == 1, "controls come first");
    cr_expect(strstr(entry(&v, "lost", "s")->why, "control"), "%s", entry(&v, "lost", "s")->why);
    const struct study_entry *const least = entry(&v, "second", "s");
    cr_expect_float_eq(least->p, least->quality.p, 1e-15, "the largest p is not multiplied");
    cr_expect_float_eq(entry(&v, "high", "s")->p, 3 * entry(&v, "high", "s")->quality.p, 1e-15);
}

/* Rows of a training that ran twice, as after --resume with another program: the last counts. */
Test(study_verdict, a_seed_counts_once)
{
    struct table_of_rows t = make_rows();

    for (int twice = 0; twice < 2; twice++)
        for (int seed = 1; seed <= 3; seed++) {
            struct study_row *const base = add(&t, "base", "s", seed, 2 + 0.01 * seed);
            struct study_row *const one = add(&t, "one", "s", seed, (twice ? 3 : 9) + 0.01 * seed);
            base->tokens = one->tokens = 1000;
            base->train_s = 1 + 0.01 * seed;
            one->train_s = twice ? 2 : 8;
        }
    struct study_verdicts v = verdicts(&t);
    const struct study_entry *const one = entry(&v, "one", "s");
    NUMBERS({one->test.n, 3}, {entry(&v, "base", "s")->test.n, 3},
            {one->quality.diff.mid, 1, 1e-12}, {exp(one->log_time.mid), 2 / 1.02, 1e-3});
    cr_expect_lt(one->log_time.low, one->log_time.mid); /* three pairs, no two alike */
}

/* Of a text that asks, answers are compared, and the way is from blind to the floor. The rest of
 * the loss would say the opposite. */
Test(study_verdict, answers_are_compared)
{
    struct table_of_rows t = make_rows();
    const double blind = log(8), floor = 0.2;

    for (int seed = 1; seed <= 3; seed++)
        for (int k = 0; k < 2; k++) {
            struct study_row *const r = add(&t, k ? "able" : "base", "s", seed, k ? 3 : 2);
            r->test_answer_nats = k ? floor + 0.005 * seed : blind + 0.01 * seed;
            r->test_answer_floor_nats = floor;
            r->test_answer_blind_nats = blind;
        }
    struct study_verdicts v = verdicts(&t);
    const struct study_entry *const able = entry(&v, "able", "s"), *base = entry(&v, "base", "s");
    NUMBERS({able->verdict, STUDY_BETTER}, {able->test.mean, floor + 0.01, 1e-12},
            {able->way.mean, 1 - 0.01 / (blind - floor), 1e-12},
            {able->way.least, 1 - 0.015 / (blind - floor), 1e-12},
            {able->way.most, 1 - 0.005 / (blind - floor), 1e-12});
    cr_expect(study_reached(able), "0.01 nats are 1 %% of perplexity");
    cr_expect_float_eq(base->way.mean, -0.02 / (blind - floor), 1e-12);
    cr_expect(!study_reached(base));

    t = make_rows();
    for (int seed = 1; seed <= 2; seed++)
        add(&t, "base", "s", seed, 2);
    v = verdicts(&t);
    cr_expect(isnan(v.v[0].way.mean), "a text that asks nothing");
    cr_expect(!study_reached(&v.v[0]));
}

/* Of a task the return is compared, and more of it is better; the way is from actions at random to
 * the best policy, and all seeds have to solve it. */
Test(study_verdict, returns_are_compared)
{
    struct table_of_rows t = make_rows();

    for (int seed = 1; seed <= 3; seed++)
        for (int k = 0; k < 3; k++) {
            static const char *const names[] = {"able", "base", "partly"};
            struct study_row *const r = add(&t, names[k], "s", seed, NAN);
            const bool solves = k == 0 || (k == 2 && seed > 1);
            r->random_return = 0.5;
            r->optimum_return = 2.5;
            r->test_return = solves ? 2.4 + 0.02 * seed : 0.5 + 0.01 * seed;
            r->solved = solves;
        }
    struct study_verdicts v = verdicts(&t);
    const struct study_entry *const able = entry(&v, "able", "s"), *base = entry(&v, "base", "s"),
                                    *partly = entry(&v, "partly", "s");
    NUMBERS({able->verdict, STUDY_BETTER}, {partly->verdict, STUDY_NOT_SHOWN},
            {able->quality.diff.mid, 2.44 - 0.52, 1e-12}, {able->way.mean, 1.94 / 2, 1e-12},
            {able->way.least, 1.92 / 2, 1e-12}, {able->way.most, 1.96 / 2, 1e-12},
            {base->way.mean, 0.01, 1e-12}, {partly->solved, 2});
    cr_expect(study_reached(able) && !study_reached(base) && !study_reached(partly));
    char *const out = PRINTED(f, study_verdicts_print(f, &v, FORMAT_CSV));
    HAS(out, ",solved,solved_low,solved_high,", ",2/3,0.09,0.99,");
    cr_expect(!strstr(out, "nats"), "%s", out);
    for (size_t i = 0; i < t.rows.n; i++) /* the able one becomes the baseline */
        t.row[i].baseline = strcmp(t.row[i].contender, "able") == 0;
    v = verdicts(&t);
    cr_expect_eq(entry(&v, "base", "s")->verdict, STUDY_WORSE);
}

/* Tuning rows, rows that are not ok, one seed, and another size without a baseline. */
Test(study_verdict, what_is_not_tested_says_why)
{
    struct table_of_rows t = make_rows();

    for (int seed = 1; seed <= 5; seed++)
        add(&t, "base", "s", seed, 2 + 0.01 * seed);
    add(&t, "single", "s", 1, 1);
    text_put(add(&t, "single", "s", 1, 0)->role, TEXT_SIZE, "tune");
    for (int seed = 1; seed <= 3; seed++) {
        struct study_row *const r = add(&t, "broken", "s", seed, NAN);
        text_put(r->status, TEXT_SIZE, "failed");
        text_put(r->status_detail, LINE_SIZE, "no memory");
        add(&t, "alone", "l", seed, 1);
    }
    struct study_verdicts v = verdicts(&t);
    static const char *const names[][2] = {{"single", "s"}, {"broken", "s"}, {"alone", "l"}};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct study_entry *const e = entry(&v, names[i][0], names[i][1]);
        cr_expect_eq(e->verdict, STUDY_NOT_TESTED, "%s", names[i][0]);
        cr_expect(*e->why, "%s", names[i][0]);
        cr_expect(isnan(e->p), "%s", names[i][0]);
    }
    NUMBERS({entry(&v, "single", "s")->test.n, 1}, {v.tested, 0});
    cr_expect_str_eq(entry(&v, "broken", "s")->why, "no memory");
}

/* Five standard errors of a difference of three pairs: shown alone, and not among ten comparisons with more
 * spread. */
Test(study_verdict, interval_without_zero_among_many_comparisons)
{
    static const double noise[] = {-0.01, 0, 0.01};
    static const char said[] = "its own interval leaves out 0: more seeds may decide";

    for (int others = 0; others <= 9; others += 9) {
        struct table_of_rows t = make_rows();
        char name[] = "same0";
        for (int seed = 1; seed <= 3; seed++) {
            add(&t, "base", "s", seed, 2 + noise[seed - 1]);
            add(&t, "near", "s", seed, 1.95 + noise[seed % 3]);
            for (int i = 0; i < others; i++) {
                name[4] = (char)('0' + i);
                add(&t, name, "s", seed, 2 + 2.5 * noise[(seed + i) % 3]);
            }
        }
        struct study_verdicts v = verdicts(&t);
        char *const text = PRINTED(f, study_verdicts_print(f, &v, FORMAT_CSV));
        cr_expect_lt(entry(&v, "near", "s")->quality.diff.high, 0);
        cr_expect_eq(entry(&v, "near", "s")->verdict, others ? STUDY_NOT_SHOWN : STUDY_BETTER);
        cr_expect_eq(strstr(text, said) != NULL, others > 0, "%s", text);
    }
}

/* Every kind of comparison by itself, in any order of rows: pairs with the pooled variance; with their own, if there
 * is `wild`, which spreads more than the others; and Welch's where no seed is shared. Expected: scipy 1.17
 * (ttest_rel, ttest_ind), statsmodels 0.15 (ols "y ~ C(contender) + C(seed)"). */
Test(study_verdict, pairs_pools_and_others)
{
    static const struct {
        const char *name;
        int seed[4];
        double nats[4];
        struct interval diff;
        double p, own_low, own_high, own_p;
    } is[] = {{"base", {1, 2, 3, 4}, {2.00, 2.03, 1.98, 2.04}, {0, 0, 0}, 0, 0, 0, 0},
              {"near",
               {4, 3, 2, 1},
               {1.95, 1.87, 1.93, 1.92},
               {-0.110529271223642, -0.095, -0.0794707287763593},
               5.59787639773273e-06,
               -0.115542602567605,
               -0.0744573974323949,
               0.000680474083218951},
              {"far",
               {1, 2, 3, 4},
               {2.31, 2.32, 2.27, 2.36},
               {0.286970728776358, 0.3025, 0.318029271223641},
               5.71664322492374e-09,
               0.278631652710372,
               0.326368347289628,
               3.35365324250076e-05},
              {"wild",
               {2, 1, 4, 3},
               {2.9, 1.5, 2.1, 3.3},
               {-0.857588498389953, 0.4375, 1.73258849838995},
               0.361108004923937,
               -0.857588498389953,
               1.73258849838995,
               0.361108004923937},
              {"other",
               {11, 12, 13, 14},
               {2.22, 2.19, 2.25, 2.21},
               {0.159393101598019, 0.205, 0.250606898401981},
               3.52724666111831e-05,
               0.159393101598019,
               0.250606898401981,
               3.52724666111831e-05}};

    for (int turn = 0; turn < 4; turn++) {
        const bool wild = turn >= 2;
        struct table_of_rows t = make_rows();
        for (size_t k = 0; k < 4 * ARRAY_LEN(is); k++) {
            const size_t at = turn % 2 ? 4 * ARRAY_LEN(is) - 1 - k : k;
            if (!wild && strcmp(is[at / 4].name, "wild") == 0)
                continue;
            add(&t, is[at / 4].name, "s", is[at / 4].seed[at % 4], is[at / 4].nats[at % 4]);
        }
        struct study_verdicts v = verdicts(&t);
        for (size_t i = 1; i < ARRAY_LEN(is); i++) {
            if (!wild && strcmp(is[i].name, "wild") == 0)
                continue;
            const struct welch *const w = &entry(&v, is[i].name, "s")->quality;
            const double p = wild ? is[i].own_p : is[i].p;
            NUMBERS_OF(is[i].name, {w->diff.mid, is[i].diff.mid, 1e-9},
                       {w->diff.low, wild ? is[i].own_low : is[i].diff.low, 1e-9},
                       {w->diff.high, wild ? is[i].own_high : is[i].diff.high, 1e-9},
                       {w->p, p, 1e-9 * p});
        }
    }
}

/* A difference below the least effect, or whose interval reaches it, is not shown however small its p is; rows
 * without an effect ask for any. */
Test(study_verdict, an_effect_that_counts)
{
    static const double effects[] = {NAN, 0, 0.005, 0.0098, 0.0099, 0.02};

    for (size_t i = 0; i < ARRAY_LEN(effects) * 2; i++) {
        const double sign = i % 2 ? 1 : -1, effect = effects[i / 2];
        struct table_of_rows t = make_rows();
        for (int seed = 1; seed <= 4; seed++)
            for (int k = 0; k < 2;
                 k++) /* differences of 0.01 -+ 0.0001: half an interval is 0.00018 */
                add(&t, k ? "new" : "base", "s", seed,
                    2 + 0.01 * seed + k * sign * (0.01 + 0.0001 * (seed % 2 ? 1 : -1)))
                    ->effect = effect;
        struct study_verdicts v = verdicts(&t);
        const struct study_entry *const e = entry(&v, "new", "s");
        cr_expect_lt(e->p, 1e-5);
        cr_expect_eq(e->verdict,
                     effect > 0.00985 ? STUDY_NOT_SHOWN
                     : sign < 0       ? STUDY_BETTER
                                      : STUDY_WORSE,
                     "%g", effect);
        cr_expect_gt(e->shown_min, fmax(0, effect));
    }
}

/* The best of the tried rates is the least or the largest, of either side: there may be a better one, and
 * neither better nor worse is said. Whose rate another takes has its ends, too; of one rate there are none,
 * and what has a rate between its ends is compared. */
Test(study_verdict, rates_at_an_end)
{
    static const double rates[] = {1e-3, 2e-3, 4e-3};
    static const char *const of[] = {"base", "far", "led"};

    for (int tried = 1; tried <= 3; tried++)
        for (int best = 0; best < tried * tried; best++) {
            const int is[] = {best % tried, best / tried, best % tried};
            bool end[3];
            struct table_of_rows t = make_rows();
            for (int i = 0; i < 3; i++) {
                end[i] = tried == 2 || (tried == 3 && is[i] != 1);
                for (int k = 0; k < 2 * tried && i < 2; k++) { /* two seeds of each */
                    struct study_row *const r = add(&t, of[i], "s", k % 2, NAN);
                    text_put(r->role, TEXT_SIZE, "tune");
                    r->lr = rates[k / 2];
                }
                for (int seed = 1; seed <= 3; seed++) {
                    struct study_row *const r = add(&t, of[i], "s", seed, 2 + i + 0.01 * seed);
                    r->lr = rates[is[i]];
                    text_put(r->rate_of, TEXT_SIZE, i == 2 ? "base" : "");
                }
            }
            struct study_verdicts v = verdicts(&t);
            for (int i = 0; i < 3; i++) {
                const struct study_entry *const e = entry(&v, of[i], "s");
                cr_expect_eq(study_rate_at_end(e), end[i], "%s: %d of %d", of[i], best, tried);
                if (i > 0)
                    cr_expect_eq(e->verdict, end[0] || end[i] ? STUDY_AT_END : STUDY_WORSE,
                                 "%s: %d of %d", of[i], best, tried);
            }
            cr_expect_eq(v.tested, 2, "what is at an end counts as asked");
        }
}

/* Twice the seconds per token, with 1 % of noise; on another machine there is no ratio. */
Test(study_verdict, time_by_seconds_per_token)
{
    struct table_of_rows t = make_rows();

    for (int seed = 1; seed <= 5; seed++)
        for (int k = 0; k < 3; k++) {
            static const char *const names[] = {"base", "slow", "elsewhere"};
            struct study_row *const r = add(&t, names[k], "s", seed, 2 + 0.01 * seed);
            r->tokens = 1000 * (k + 1);
            r->train_s = (double)r->tokens * (k ? 2e-3 : 1e-3) * (1 + 0.01 * ((seed + k) % 2));
            if (k == 2)
                text_put(r->host_id, TEXT_SIZE, "other");
        }
    struct study_verdicts v = verdicts(&t);
    const struct study_entry *const slow = entry(&v, "slow", "s");
    cr_expect_eq(slow->time_verdict, VERDICT_SLOWER);
    /* the noise is in 3 of the 5 seeds of one, and in the 2 others of the other */
    cr_expect(fabs(slow->log_time.mid - log(2) + 0.2 * log(1.01)) < 1e-12);
    cr_expect(exp(slow->log_time.low) < 2 && exp(slow->log_time.high) > 2);
    cr_expect(isnan(entry(&v, "elsewhere", "s")->log_time.mid));
}

/* Trainings that had so many per cent of the CPU took `ratio` times as long: what other programs took
 * may be all of it. */
static enum verdict time_verdict_at(double ratio, double base_pct, double other_pct, bool *said)
{
    struct table_of_rows t = make_rows();

    for (int seed = 1; seed <= 5; seed++)
        for (int k = 0; k < 2; k++) {
            struct study_row *const r = add(&t, k ? "other" : "base", "s", seed, 2 + 0.01 * seed);
            r->tokens = 1000;
            r->train_s = (k ? ratio : 1) * (1 + 0.001 * ((seed + k) % 2));
            r->cpu_pct = k ? other_pct : base_pct;
        }
    struct study_verdicts v = verdicts(&t);
    *said = strstr(PRINTED(f, study_verdicts_print(f, &v, FORMAT_CSV)), "(noisy)");
    const enum verdict verdict = entry(&v, "other", "s")->time_verdict;
    return verdict;
}

Test(study_verdict, preempted_trainings_have_no_firm_time)
{
    static const double share[] = {100, 99, 80, 50, 10, NAN}, ratio[] = {1.05, 1.3, 2.5};

    for (size_t i = 0; i < ARRAY_LEN(ratio); i++)
        for (size_t k = 0; k < ARRAY_LEN(share); k++)
            for (int side = 0; side < 4; side++) {
                const double base = side & 1 ? share[k] : 100, other = side & 2 ? share[k] : 100;
                const bool doubtful = side && share[k] < 100 && ratio[i] < 100 / share[k];
                bool said;
                cr_expect_eq(time_verdict_at(ratio[i], base, other, &said),
                             doubtful ? VERDICT_PROBABLY_SLOWER : VERDICT_SLOWER, "%g, %g %g",
                             ratio[i], base, other);
                cr_expect_eq(said, doubtful);
                cr_expect_eq(time_verdict_at(1 / ratio[i], base, other, &said),
                             doubtful ? VERDICT_PROBABLY_FASTER : VERDICT_FASTER, "1/%g, %g %g",
                             ratio[i], base, other);
                cr_expect_eq(said, doubtful);
            }
}

/* A machine that becomes three times as slow from seed to seed, for all alike: a contender that
 * takes a tenth longer is slower, because seeds are paired; the last seed, which the baseline has
 * not, says nothing. */
Test(study_verdict, time_of_a_machine_that_slows_down)
{
    struct table_of_rows t = make_rows();

    for (int seed = 1; seed <= 4; seed++)
        for (int k = 0; k < 2 - (seed == 4); k++) {
            struct study_row *const r = add(&t, seed == 4 || k ? "slow" : "base", "s", seed, 2);
            r->tokens = 1000;
            r->train_s = pow(3, seed) * (k ? 1.1 : 1) * (1 + 0.001 * ((seed + k) % 2));
        }
    struct study_verdicts v = verdicts(&t);
    const struct study_entry *const slow = entry(&v, "slow", "s");
    cr_expect_eq(slow->time_verdict, VERDICT_SLOWER, "%g .. %g", slow->log_time.low,
                 slow->log_time.high);
    cr_expect(fabs(exp(slow->log_time.mid) - 1.1) < 0.001);
}

/* The baseline against itself with new seeds, in tables of four at three sizes: not shown to differ
 * in at least 19 of 20, here in 400 tables (a finding anywhere counts; 4 standard errors are 4.4 %). A
 * contender that is worse by ten times the noise is found out every time in tables of four. */
Test(study_verdict, noise_is_noise_and_a_planted_difference_is_worse)
{
    enum { TABLES = 400 };
    const uint64_t stream = rng_stream("study.tables");
    static const char *const sizes[] = {"s", "m", "l"}, *const names[] = {"a", "b", "c", "d"};
    uint64_t at = 0;
    int quiet = 0, found = 0;

    for (int k = 0; k < TABLES; k++) {
        struct table_of_rows t = make_rows();
        for (size_t z = 0; z < ARRAY_LEN(sizes); z++) {
            for (int seed = 1; seed <= 5; seed++)
                add(&t, "base", sizes[z], seed, 2 + 0.01 * normal_at(stream, at++));
            for (size_t i = 0; i < ARRAY_LEN(names); i++)
                for (int seed = 1; seed <= 3; seed++)
                    add(&t, names[i], sizes[z], seed, 2 + 0.01 * normal_at(stream, at++));
        }
        struct study_verdicts v = verdicts(&t);
        int loud = 0;
        for (int i = 0; i < v.n; i++)
            loud += v.v[i].verdict == STUDY_BETTER || v.v[i].verdict == STUDY_WORSE;
        quiet += loud == 0;
        t.rows.n = 17;                /* one size */
        for (int i = 14; i < 17; i++) /* the last contender */
            t.row[i].test_nats += 0.1;
        v = verdicts(&t);
        found += entry(&v, "d", "s")->verdict == STUDY_WORSE;
    }
    cr_expect_geq(quiet, (0.95 - 0.044) * TABLES);
    cr_expect_geq(found, 0.95 * TABLES);
}

/* Two seeds have a ratio of times, but neither an interval nor a verdict, and no test of quality. */
Test(study_verdict, nothing_below_three_seeds)
{
    for (int seeds = 2; seeds <= 3; seeds++) {
        struct table_of_rows t = make_rows();
        for (int seed = 1; seed <= seeds; seed++) {
            struct study_row *const base = add(&t, "base", "s", seed, 2 + 0.01 * seed);
            base->tokens = 1000;
            base->train_s = 10 + 0.01 * seed;
            struct study_row *const slow = add(&t, "slow", "s", seed, 2.1 - 0.01 * seed);
            slow->tokens = 1000;
            slow->train_s = 20;
        }
        struct study_verdicts v = verdicts(&t);
        const struct study_entry *const slow = entry(&v, "slow", "s");
        cr_expect(fabs(slow->log_time.mid - log(2)) < 0.01);
        cr_expect_eq(isfinite(slow->log_time.low), seeds == 3);
        cr_expect_eq(slow->time_verdict, seeds == 3 ? VERDICT_SLOWER : VERDICT_UNSHOWN);
        cr_expect_eq(isfinite(slow->p), seeds == 3);
        cr_expect_str_eq(slow->why, seeds == 3 ? "" : "fewer than three seeds");
    }
}

/* ---- times ---------------------------------------------------------------------------------- */

/* Only times of one machine, backend and number of threads make a ratio. */
Test(study_verdict, times_of_the_same_place_are_compared)
{
    enum { SAME, HOST, BACKEND, THREADS, PLACES };

    for (int other = SAME; other < PLACES; other++) {
        struct table_of_rows t = make_rows();
        for (int seed = 1; seed <= 3; seed++)
            for (int k = 0; k < 2; k++) {
                struct study_row *const r = add(&t, k ? "one" : "base", "s", seed, 2 + 0.01 * seed);
                text_put(r->host_id, TEXT_SIZE, k && other == HOST ? "elsewhere" : "here");
                text_put(r->backend, TEXT_SIZE, k && other == BACKEND ? "ref" : "simd");
                r->threads = k && other == THREADS ? 2 : 1;
                r->tokens = 1000;
                r->train_s = k ? 3 : 2;
            }
        struct study_verdicts v = verdicts(&t);
        const struct study_entry *const one = entry(&v, "one", "s");
        if (other == SAME)
            cr_expect_float_eq(one->log_time.mid, log(1.5), 1e-12);
        else
            cr_expect(isnan(one->log_time.mid), "place %d: %g", other, one->log_time.mid);
    }
}
