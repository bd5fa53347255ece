/* SPDX-License-Identifier: MIT
 *
 * Verdicts of studies in which a seed has no score. */
#include "tests/support/study_rows.h"

enum { OWN, CONTROL, NOBODY, WHOSE };

/* A contender that is better by a hundred times the noise, and its control. The last seed of one of
 * them ended as `status` says; `again`: and was trained once more, which gave a score. */
static struct table_of_rows with_a_lost_seed(const char *control, int seeds, int side,
                                             const char *status, bool again)
{
    struct table_of_rows t = make_rows();

    for (int seed = 1; seed <= seeds; seed++)
        for (int k = 0; k < 2; k++) {
            const bool lost = seed == seeds && k == (side == OWN ? 1 : 0) && side != NOBODY;
            struct study_row *const r =
                add(&t, k ? "new" : "base", "s", seed, (k ? 1 : 2) + 0.01 * seed);
            text_put(r->control, TEXT_SIZE, k ? control : "");
            r->test_answer_nats = r->test_nats;
            r->test_answer_floor_nats = k ? r->test_nats : 0; /* reached */
            r->test_answer_blind_nats = 3;
            if (again && lost)
                add(&t, k ? "new" : "base", "s", seed, 1)[0] = *r;
            if (!lost)
                continue;
            text_put(r->status, TEXT_SIZE, status);
            if (strcmp(status, "ok") == 0)
                r->test_nats = r->test_answer_nats = NAN;
        }
    return t;
}

/* A mean of the seeds that went well is better than the model: no verdict comes of it, on whichever
 * side, whatever became of the seed, before three seeds and after. */
Test(study_verdict, none_from_survivors)
{
    static const char *const statuses[] = {"failed",  "timeout",     "wrong",
                                           "skipped", "interrupted", "ok"};
    static const char *const controls[] = {"", "base"};

    for (size_t i = 0; i < ARRAY_LEN(statuses) * 2 * 2 * WHOSE * 2; i++) {
        const char *const status = statuses[i / 24], *const control = controls[i % 2];
        const int seeds = 4 + (int)(i / 2 % 2);
        const int side = (int)(i / 4 % WHOSE);
        const bool again = i / 12 % 2, lost = side != NOBODY && !again;
        struct table_of_rows t = with_a_lost_seed(control, seeds, side, status, again);
        struct study_verdicts v = verdicts(&t);
        const struct study_entry *const e = entry(&v, "new", "s"), *b = entry(&v, "base", "s");
        char why[64];
        const char *const became =
            strcmp(status, "wrong") == 0 ? "collapsed: no number" : "has no score";
        snprintf(why, sizeof(why), "1 of %d seeds%s %s", seeds,
                 side == OWN ? ""
                 : *control  ? " of its control"
                             : " of the baseline",
                 became);
        cr_expect_eq(e->verdict, lost ? STUDY_NOT_TESTED : STUDY_BETTER, "%s %d", status, side);
        cr_expect_eq(isnan(e->p) && isnan(e->quality.diff.mid) && isnan(e->quality.diff.low), lost);
        cr_expect_str_eq(e->why, lost ? why : "", "%s %d: %s", status, side, e->why);
        NUMBERS({e->lost, lost && side == OWN}, {b->lost, lost && side == CONTROL},
                {e->test.n, seeds - e->lost}, {study_reached(e), e->lost == 0}, {v.tested, !lost});
        cr_expect_eq(isnan(v.noise), b->lost > 0, "the noise is of all seeds, too");
        snprintf(why, sizeof(why), "the baseline; 1 of %d seeds %s", seeds, became);
        cr_expect_str_eq(b->why, b->lost ? why : "the baseline", "%s", b->why);
    }
}

/* Every seed once, whichever row comes first, and none that was only tuned with; two in the plural.
 * Of a task a seed that was lost has not solved it. */
Test(study_verdict, lost_seeds_are_counted)
{
    static const int order[] = {4, 2, 6, 1, 5, 3};
    struct table_of_rows t = make_rows();

    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        for (int k = 0; k < 2; k++) {
            struct study_row *const r = add(&t, k ? "base" : "new", "s", order[i], NAN);
            r->random_return = 0;
            r->optimum_return = 1;
            r->test_return = k ? 0.1 + 0.01 * order[i] : 0.95 + 0.001 * order[i];
            r->solved = !k;
            if (k || order[i] % 3)
                continue;
            text_put(r->status, TEXT_SIZE, "wrong");
            r->test_return = NAN;
            add(&t, "new", "s", order[i], NAN)[0] = *r; /* and again in vain */
            for (int other = 0; other < 2; other++) {
                struct study_row *const tune = add(&t, "new", "s", other ? 7 : order[i], NAN);
                text_put(tune->role, TEXT_SIZE, "tune");
                text_put(tune->status, TEXT_SIZE, "failed");
            }
        }
    struct study_verdicts v = verdicts(&t);
    const struct study_entry *const new = entry(&v, "new", "s");
    NUMBERS({new->lost, 2}, {new->test.n, 4}, {new->solved, 4});
    cr_expect(!study_reached(new));
    cr_expect_str_eq(new->why, "2 of 6 seeds collapsed: no number");
    cr_expect(study_entry_of(&v, &t.row[0]) == new);
    char *const out = PRINTED(f, study_verdicts_print(f, &v, FORMAT_CSV));
    /* Clopper and Pearson of 4 of 6 */
    HAS(out, ",4/6,0.22,0.96,", ",not tested,,,,,0.01871,2 of 6 seeds collapsed: no number\n");
}

/* A loss within 2 % of that of single bytes, from there on, is no model's: of one seed or all, of either side,
 * it is not averaged, and nothing is compared with it. Older rows and generated texts do not tell. */
Test(study_verdict, collapsed_runs_are_no_models)
{
    static const struct {
        double nats;
        bool collapsed;
    } is[] = {{2.94 - 1e-9, false}, {2.94 + 1e-9, true}, {3.2, true}, {2, false}};

    for (size_t i = 0; i < ARRAY_LEN(is) * 2 * 3 * 2; i++) {
        const size_t k = i % ARRAY_LEN(is), own = i / ARRAY_LEN(is) % 2;
        const int seeds = 1 + (int)(i / ARRAY_LEN(is) / 2 % 3);
        const bool old = i >= ARRAY_LEN(is) * 6, collapsed = is[k].collapsed && !old;
        struct table_of_rows t = make_rows();
        for (int seed = 3; seed > 0; seed--)
            for (size_t who = 0; who < 2; who++) {
                const bool may = who == own && seed <= seeds;
                struct study_row *const r = add(&t, who ? "new" : "base", "s", seed,
                                                may ? is[k].nats : (who ? 1.5 : 1) + 0.01 * seed);
                r->test_unigram_nats = old ? NAN : 3;
            }
        struct study_verdicts v = verdicts(&t);
        const struct study_entry *const e = entry(&v, "new", "s"), *b = entry(&v, "base", "s");
        const struct study_entry *const whose = own ? e : b;
        const char *const why =
            kept_text("%d of 3 seeds%s collapsed: %.3f nats, single bytes 3.000", seeds,
                      own ? "" : " of the baseline", is[k].nats);
        cr_expect_eq(e->verdict == STUDY_NOT_TESTED, collapsed, "%zu: %s", i, e->why);
        cr_expect_eq(whose->collapsed, collapsed ? seeds : 0, "%zu", i);
        NUMBERS({whose->test.n, collapsed ? 3 - seeds : 3}, {whose->lr, 1e-3},
                {isnan(e->p), collapsed});
        cr_expect_str_eq(e->why, collapsed ? why : "", "%zu: %s", i, e->why);
    }
}
