/* SPDX-License-Identifier: MIT
 *
 * rates = auto: the walk of a search, and one that is killed and continued. */
#include "harness/command/learn/study_rates.h"
#include "study_runs.h"
#include "tests/support/tmp_folder.h"

enum { OUT = 6, LADDER = 2 * OUT + 1, TUNE_SEEDS = 2 };

struct search {
    struct study_job job[LADDER * TUNE_SEEDS + 1];
    struct study_row row[LADDER * TUNE_SEEDS];
    struct rows rows;
};

/* Jobs as the planner orders them, of start 1. */
static struct search *begin(void)
{
    struct search *const s = room(1, sizeof(*s));

    s->rows.row = s->row;
    for (int i = 0; i < LADDER; i++)
        for (int seed = 0; seed < TUNE_SEEDS; seed++) {
            struct study_job *const j = &s->job[i * TUNE_SEEDS + seed];
            *j = (struct study_job){.role = STUDY_TUNE, .seed = seed + 1};
            j->lr = ldexp(1, i % 2 ? (i + 1) / 2 : -i / 2);
            snprintf(j->id, sizeof(j->id), "%d.%d", (uint8_t)i, (uint8_t)seed);
        }
    s->job[LADDER * TUNE_SEEDS] = (struct study_job){.role = STUDY_FINAL, .lr = NAN, .id = "final"};
    return s;
}

/* The loss at 2^k: NAN for one that is wrong. */
typedef double loss_fn(int k);

static double at_start(int k) { return abs(k); }
static double above(int k) { return fabs(k - 3.5); } /* 3 and 4 are equal */
static double below(int k) { return k < -1 ? 9 - k : k + 2; }
static double ever_lower(int k) { return k; }
static double ever_higher(int k) { return -k; }
static double flat(int k) { return 1 + 0 * k; }
static double wild(int k) { return k > -3 ? NAN : -k; }
static double hopeless(int k) { return NAN * k; }
static double cliff(int k) { return k > 2 ? NAN : -k; } /* the best before what diverges */

static struct study_rate walk(struct search *s, loss_fn *loss, const char *bad, int *rates)
{
    struct study_rate r = study_rate_of(&s->rows, s->job, LADDER * TUNE_SEEDS + 1);

    for (*rates = 0; !isnan(r.next); ++*rates) {
        cr_assert_lt(*rates, LADDER);
        for (int i = 0; i < LADDER * TUNE_SEEDS; i++)
            if (s->job[i].lr == r.next) {
                struct study_row *const row = &s->row[s->rows.n++];
                const double nats = loss((int)log2(r.next));
                *row = study_row_empty();
                text_put(row->case_id, TEXT_SIZE, s->job[i].id);
                text_put(row->status, TEXT_SIZE, isnan(nats) ? bad : "ok");
                row->valid_nats = nats + (s->job[i].seed == 1 ? 0.25 : -0.25);
            }
        r = study_rate_of(&s->rows, s->job, LADDER * TUNE_SEEDS + 1);
        if (r.open)
            break;
    }
    return r;
}

/* Where the search ends, after how many rates: at the best of three, or at an end of the ladder, never
 * beyond what diverges. */
Test(study_rates, walks_outwards)
{
    static const struct {
        loss_fn *loss;
        double best;
        int rates;
    } is[] = {{at_start, 1, 3},          {above, 8, 6},        {below, 0.5, 3},
              {ever_lower, 1.0 / 64, 7}, {ever_higher, 64, 8}, {flat, 1, 3},
              {wild, 0.125, 5},          {hopeless, NAN, 7},   {cliff, 4, 5}};

    for (size_t i = 0; i < ARRAY_LEN(is); i++) {
        struct search *const s = begin();
        int rates;
        const struct study_rate r = walk(s, is[i].loss, "wrong", &rates);
        cr_expect(r.best == is[i].best || (isnan(r.best) && isnan(is[i].best)), "%zu: %g", i,
                  r.best);
        cr_expect_eq(rates, is[i].rates, "%zu: %d", i, rates);
        cr_expect(!r.open);
    }
}

/* What failed may work later: the search waits for it. */
Test(study_rates, waits_for_what_failed)
{
    struct search *const s = begin();
    int rates;

    cr_expect(walk(s, cliff, "failed", &rates).open);
    cr_expect_eq(rates, 4, "%d", rates);
}

TestSuite(study_search, .init = folder_make, .fini = folder_remove, .timeout = 240);

#define SEARCH                                                                                     \
    "variants = rope alibi\nsize = s: --layers 1 --d-model 16 --heads 2\nrates = auto 1e-3\n"      \
    "rates-of = rope: alibi\ncorpus = c: copy:lag=3,p=0.9,alphabet=4\nseeds = 3\n"                 \
    "baseline-seeds = 3\ntokens = 2560\ntune-tokens = 1280\n"                                      \
    "train = --seq 16 --mem 0 --batch 4 --lr-warmup 5 --backend ref\neval = --mem 0 --bytes 256\n"

/* Killed within its search it goes on to the same rates, whose neighbours were all tried; who takes a rate
 * says whose. */
Test(study_search, killed_and_continued)
{
    static const char *const moments[] = {"[2/", "[6/"};

    folder_put_text("a.study", SEARCH);
    must_bench("study a.study --threads 1 --out w");
    kill_and_go_on("a.study --threads 1", moments, ARRAY_LEN(moments), 0);
    const struct rows whole = must_read("w/latest", TABLE_STUDY);
    expect_same_rows("w/latest", "r/latest", whole.n);
    const struct study_row *const a = whole.row;
    double best = NAN;
    for (size_t i = 0; i < whole.n; i++) {
        const bool final = strcmp(a[i].role, "final") == 0;
        cr_expect_eq(a[i].steps, final ? 40 : 20);
        cr_expect_str_eq(a[i].rate_of, strcmp(a[i].contender, "alibi") == 0 ? "rope" : "");
        best = final ? a[i].lr : best;
    }
    int beside = 0, tuned = 0;
    for (size_t i = 0; i < whole.n; i++) {
        const bool tunes = strcmp(a[i].role, "tune") == 0;
        tuned += tunes;
        beside += tunes && (a[i].lr == best / 2 || a[i].lr == best * 2);
        cr_expect(tunes || a[i].lr == best);
    }
    NUMBERS({tuned + 6, (int)whole.n}, {beside, best == 64e-3 || best == 1e-3 / 64 ? 1 : 2});
}
