/* SPDX-License-Identifier: MIT
 *
 * A study over its budgets: places, means over tokens, and contenders that change places. */
#include "harness/measure/study_answer.h"
#include "tests/support/study_rows.h"

/* Seeds 1 to 4 around `nats`: what a seed adds is the contender's own, and small. */
static void put(struct table_of_rows *t, const char *contender, int64_t budget, double nats)
{
    static const double off[][4] = {{0.001, -0.002, 0.002, -0.001}, {-0.001, 0.002, 0.001, -0.002}};

    for (int seed = 1; seed <= 4; seed++) {
        struct study_row *const r =
            add(t, contender, "s", seed, nats + off[*contender % 2][seed - 1]);
        r->budget_tokens = budget;
        r->effect = 0.005;
    }
}

static char *said(const struct table_of_rows *t, bool answer)
{
    FILE *const f = text_begin();
    struct study_verdicts v = verdicts(t);

    if (answer)
        study_answer(f, &v);
    else
        study_verdicts_print(f, &v, FORMAT_MD);
    return text_end(f);
}

/* Means of base, early and late after 1Ki, 2Ki, 4Ki. */
static struct table_of_rows make(const double nats[3][3])
{
    static const char *const names[] = {"base", "early", "late"};
    struct table_of_rows t = make_rows();

    for (int k = 2; k >= 0; k--) /* as they come in the table is no order of budgets */
        for (int i = 0; i < 3; i++)
            put(&t, names[i], 1024 << k, nats[i][k]);
    return t;
}

static int count(const char *text, const char *what)
{
    int n = 0;

    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

/* Rows of tuning are of no budget; each budget has its baseline, and p is corrected for all. */
Test(study_budgets_of, verdicts_by_budget)
{
    static const double nats[3][3] = {{2, 1.9, 1.8}, {1.9, 1.9, 1.9}, {2.1, 1.8, 1.7}};
    struct table_of_rows t = make(nats);
    struct study_row *const tuned = add(&t, "late", "s", 1, NAN);

    text_put(tuned->role, TEXT_SIZE, "tune");
    struct study_verdicts v = verdicts(&t);
    cr_assert_eq(v.n, 9);
    NUMBERS({v.tested, 6}, {v.noise_of, 3});
    for (int i = 0; i < v.n; i++) {
        const struct study_entry *const e = &v.v[i];
        const int k = e->row->budget_tokens == 1024 ? 0 : e->row->budget_tokens == 2048 ? 1 : 2;
        const int at = *e->row->contender == 'b' ? 0 : *e->row->contender == 'e' ? 1 : 2;
        NUMBERS({e->test.mean, nats[at][k], 1e-12}, {study_is_last(&v, e), k == 2});
        if (at > 0)
            cr_expect_float_eq(e->quality.diff.mid, nats[at][k] - nats[0][k], 1e-12);
    }
    char *const md = said(&t, false);
    cr_expect(strstr(md, "| contender | 1Ki | 2Ki | 4Ki |"), "%s", md);
    cr_expect(strstr(md, "| late | 2.100 +-0.003 | 1.800 +-0.003 | 1.700 +-0.003 |"), "%s", md);
    cr_expect_eq(count(md, "| late |"), 4, "%s", md);
}

/* Who is ahead when, by how much, between the last and the first budget that show it. Of base and early
 * the middle shows neither; late and base turn at once. Nothing is said of late and early, which lies within
 * the least effect at the end. */
Test(study_budgets_of, who_changes_places)
{
    static const double nats[3][3] = {{2, 1.9, 1.8}, {1.9, 1.9, 1.9}, {2.1, 1.8, 1.897}};
    struct table_of_rows t = make(nats);
    struct study_verdicts v = verdicts(&t);
    int n;
    struct study_crossing *const c = kept(study_crossings(&v, &n));

    cr_assert_eq(n, 4, "%d", n);
    static const struct {
        const char *was, *is;
        int64_t from, to;
        double by[2];
    } expected[] = {{"early", "base", 1024, 4096, {0.1, 0.1}},
                    {"base", "late", 1024, 2048, {0.1, 0.1}},
                    {"late", "base", 2048, 4096, {0.1, 0.097}},
                    {"early", "late", 1024, 2048, {0.2, 0.1}}};
    for (int i = 0; i < n; i++) {
        cr_expect_str_eq(c[i].ahead[0]->row->contender, expected[i].was);
        cr_expect_str_eq(c[i].ahead[1]->row->contender, expected[i].is);
        cr_expect_eq(c[i].ahead[0]->row->budget_tokens, expected[i].from);
        cr_expect_eq(c[i].ahead[1]->row->budget_tokens, expected[i].to);
        for (int k = 0; k < 2; k++) {
            cr_expect_float_eq(c[i].by[k].mid, expected[i].by[k], 1e-9);
            cr_expect(c[i].by[k].low < c[i].by[k].mid && c[i].by[k].mid < c[i].by[k].high &&
                      c[i].by[k].low > 0);
        }
        cr_expect(c[i].p < 1e-4, "%g", c[i].p);
    }
    char *const text = said(&t, true);
    cr_expect(strstr(text, "text, s: early is ahead of base by 0.100 nats (0.0"), "%s", text);
    cr_expect(strstr(text, "after 1Ki tokens, and behind by 0.100 nats (0.0"), "%s", text);
    cr_expect(strstr(text, "after 4Ki tokens: early is 0.100 nats worse than base"), "%s", text);
    cr_expect_eq(count(text, " worse than "), 2, "the largest budget alone: %s", text);
}

/* Of returns more is ahead. */
Test(study_budgets_of, returns_change_places)
{
    static const double returns[3][3] = {{0.2, 0.3, 0.4}, {0.3, 0.3, 0.3}, {0.1, 0.1, 0.1}};
    struct table_of_rows t = make(returns);

    for (size_t i = 0; i < t.rows.n; i++) {
        t.row[i].test_return = t.row[i].test_nats;
        t.row[i].test_nats = NAN;
    }
    char *const text = said(&t, true);
    HAS(text, "early is ahead of base by 0.100 (0.0", "after 1Ki tokens, and behind by 0.100 (0.0");
    cr_expect_eq(count(text, " is ahead of "), 1, "%s", text);
}

/* What is no change of places: a difference that chance makes, one within the least effect, a rate at an
 * end, a seed without a score, one budget alone, what only its own interval shows. */
Test(study_budgets_of, no_change_without_proof)
{
    static const double turn[3][3] = {{2, 1.9, 1.8}, {1.9, 1.9, 1.9}, {3, 3, 3}};
    static const double small[3][3] = {{2, 1.9, 1.8}, {1.9952, 1.9, 1.8048}, {3, 3, 3}};
    /* One-sided p of 0.01 at the end (Student's, six degrees of freedom: t = 0.0035 / 0.0011), which 3 budgets
     * make 0.03, and 3 pairs 0.09. */
    static const double one[3][3] = {{2, 1.9, 1.8}, {1.9, 1.9, 1.8035}, {3, 3, 3}};
    static const double chance[3][3] = {{2, 1.9, 1.8}, {1.99, 1.9, 1.81}, {3, 3, 3}};

    for (int what = 0; what < 7; what++) {
        struct table_of_rows t = make(what == 1   ? small
                                      : what == 2 ? chance
                                      : what == 6 ? one
                                                  : turn);
        for (size_t i = 0; i < t.rows.n; i++) {
            struct study_row *const r = &t.row[i];
            const bool early = strcmp(r->contender, "early") == 0;
            if (what == 2)
                r->test_nats += 0.05 * (early ? 1 : -1) * (r->seed % 2 ? 1 : -1);
            if (what == 3 && early && r->seed == 2 && r->budget_tokens == 1024)
                text_put(r->status, TEXT_SIZE, "failed");
            if (what == 6)
                r->effect = 0;
            if (what == 4)
                r->budget_tokens = r->budget_tokens == 4096 ? 4096 : I64_EMPTY;
        }
        if (what == 5)
            for (int k = 0; k < 2; k++) {
                struct study_row *const r = add(&t, "early", "s", 1, NAN);
                text_put(r->role, TEXT_SIZE, "tune");
                r->lr = k ? 1e-3 : 2e-3;
            }
        char *const md = said(&t, false);
        const char *const none = "no two contenders are shown to change places";
        cr_expect_eq(strstr(md, none) == NULL, what == 0, "%d: %s", what, md);
        cr_expect_eq(count(md, " is ahead of "), what == 0, "%d: %s", what, md);
    }
}

/* The chance of any change of places that is not there, where none of eight contenders differ at any of
 * six budgets: 5 % at most, and here none of 40 studies. */
Test(study_budgets_of, rarely_a_change_that_is_not_there)
{
    static const char *const names[] = {"base", "b", "c", "d", "e", "f", "g", "h"};
    uint64_t state = 1;
    int wrong = 0;

    for (int study = 0; study < 40; study++) {
        struct table_of_rows t = make_rows();
        for (int k = 0; k < 6; k++)
            for (int i = 0; i < 8; i++)
                for (int seed = 1; seed <= 4; seed++) {
                    double sum = -6; /* near to a normal number */
                    for (int n = 0; n < 12; n++)
                        sum += (double)((state =
                                             state * 6364136223846793005u + 1442695040888963407u) >>
                                        33) /
                               (1u << 31);
                    add(&t, names[i], "s", seed, 2 + sum)->budget_tokens = 1024 << k;
                }
        struct study_verdicts v = verdicts(&t);
        int n;
        kept(study_crossings(&v, &n));
        wrong += n > 0;
        study_verdicts_free(&v);
    }
    cr_expect_leq(wrong, 5, "%d", wrong); /* P(more than 5 of 40 at 5 %) is 1.4 % */
}
