/* SPDX-License-Identifier: MIT
 *
 * A study of one text: its last part stands in for those to validate and to test on. */
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

TestSuite(study_text, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* The loss is that of the last part, which bench train leaves for validation. */
Test(study_text, of_one_file)
{
    struct ran r = shell_exits(
        0, "note: numbers is one text",
        "seq 2000 >text; printf 'variants = vanilla xl\nsize = s: --layers 1 --d-model 16 --heads "
        "2\ntrain = --seq 16 --mem 16 --batch 4 --backend ref\ncorpus = numbers: text\nrates = "
        "1e-3 3e-3\nseeds = 3\nbaseline-seeds = 3\nsteps = 10\n' >one.study; exec \"$BENCH\" study "
        "one.study --threads 1 --out r --format csv");
    expect_said(&r, "/{study,env}.csv");
    struct rows rows = must_read("r/latest", TABLE_STUDY);
    const struct study_row *const row = rows.row;
    int finals = 0;
    for (size_t i = 0; i < rows.n; i++) {
        const bool final = strcmp(row[i].role, "final") == 0;
        finals += final;
        cr_expect_str_eq(row[i].status, "ok");
        cr_expect(final ? row[i].test_nats == row[i].valid_nats : isnan(row[i].test_nats));
        cr_expect(!strstr(row[i].repro, "--valid"), "%s", row[i].repro);
    }
    cr_expect_eq(finals, 6);
}
