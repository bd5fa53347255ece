/* SPDX-License-Identifier: MIT
 *
 * The files in harness/studies: each is planned as it stands, and runs to its end with models and
 * budgets cut down to seconds. */
#include "tests/support/each.h"
#include "tests/support/program.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"

static char studies[FILE_PATH];

static void setup(void)
{
    char *const path = realpath("harness/studies", NULL);

    cr_assert_not_null(path);
    snprintf(studies, sizeof(studies), "%s", path);
    free(path);
    folder_make();
    must_shell("mkdir corpora && cd corpora && seq 1 9999 >enwik8.train && seq 2 999 >enwik8.valid "
               "&& seq 3 999 >enwik8.test && for k in train valid test; do cp enwik8.$k "
               "books.$k.txt; cp enwik8.$k shakespeare.$k.txt; done");
}

TestSuite(study_files, .init = setup, .fini = folder_remove, .timeout = 240);

static const char *const names[] = {
    "abilities", "bandit",   "base",     "beyond",      "blind",       "budget",   "catch",
    "copy",      "delight",  "deployed", "depth",       "distances",   "features", "funnel",
    "gates",     "halting",  "hours",    "lags",        "leaderboard", "local",    "long",
    "masked",    "memory",   "muon",     "networks",    "norms",       "numpad",   "pairs",
    "planted",   "reach",    "recipes",  "shakespeare", "stability",   "state",    "terms",
    "tmaze",     "tmaze100", "tmaze90"};

static struct ran shell(const char *fmt, const char *name)
{

    return run_shell("S=%s; N=%s; %s", studies, name, fmt);
}

/* The list above is the folder. */
Test(study_files, all_are_tested)
{
    struct ran r = shell("ls $S | tr '\\n' ' '", "");
    char want[1024] = "";

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        snprintf(want + strlen(want), sizeof(want) - strlen(want), "%s.study ", names[i]);
    cr_expect_str_eq(r.out.data, want);
}

TEST_EACH(const int *i, study_files, as_they_stand, every_number(ARRAY_LEN(names)))
{
    struct ran r = shell("$BENCH study $S/$N.study --dry-run --threads 1 --format csv", names[*i]);

    expect_exit(&r, 0);
    HAS(r.out.data, ",final,");
}

/* Of all variants, and of 17 variants by 7 texts, an eighth: each of them is trained by other suites. */
TEST_EACH(const int *i, study_files, cut_down, every_number(ARRAY_LEN(names)))
{
    SKIP_SANITIZED("minutes, and the suite of studies runs the same code");
    struct ran r = shell(
        "sed -E -f \"$SRC\"/tests/command/cut_down.sed "
        "$S/$N.study >cut.study && "
        "if grep -q '^variants = all' cut.study || [ $N = abilities ]; then P='--shard 3/8'; fi && "
        "$BENCH study cut.study --threads 1 --out r -q $P",
        names[*i]);
    expect_exit(&r, 0);
    struct rows rows = must_read("r/latest", TABLE_STUDY);
    const struct study_row *const row = rows.row;
    size_t ok = 0;
    for (size_t k = 0; k < rows.n; k++) {
        ok += strcmp(row[k].status, "ok") == 0;
        cr_expect(strcmp(row[k].status, "ok") == 0 || strcmp(row[k].status, "skipped") == 0,
                  "%s: %s: %s", row[k].contender, row[k].status, row[k].status_detail);
    }
    cr_expect_gt(ok, 0);
}
