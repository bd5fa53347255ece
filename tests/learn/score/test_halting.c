/* SPDX-License-Identifier: MIT
 *
 * How many steps a model that halts runs, in the tables: of trainings, scores and timed cases. */
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

TestSuite(halting, .init = folder_make, .fini = folder_remove, .timeout = 120);

#define SIZES "--layers 6 --d-model 16 --heads 2 --seq 16 --mem 16 --threads 1 --backend ref "

/* Before it has learnt, the unit says 0.73 in each step: after two the sum passes 1 - eps. What
 * steps cost in the loss makes them fewer or more. */
Test(halting, trainings_count_steps)
{
    double ponder[2];

    for (int dear = 0; dear < 2; dear++) {
        must_bench(dear ? "train --variant universal " SIZES
                          "--batch 4 --steps 60 --eval-every 60 --lr 0.01 --set ponder_tau=3 "
                          "--ckpt m1.safetensors -q"
                        : "train --variant universal " SIZES
                          "--batch 4 --steps 60 --eval-every 60 --lr 0.01 --set ponder_tau=0 "
                          "--ckpt m0.safetensors -q");
        const struct rows curve = must_read_table(
            in_folder(dear ? "m1.safetensors.train.csv" : "m0.safetensors.train.csv"), TABLE_TRAIN);
        ponder[dear] = ((const struct train_row *)curve.row)[curve.n - 1].ponder_steps;
    }
    cr_expect(ponder[1] >= 1 && ponder[1] < ponder[0] && ponder[0] <= 7, "%g %g", ponder[0],
              ponder[1]);
    must_bench("train --variant xl " SIZES "--batch 4 --steps 4 --ckpt xl.safetensors -q");
    const struct rows curve = must_read_table(in_folder("xl.safetensors.train.csv"), TABLE_TRAIN);
    cr_expect(isnan(((const struct train_row *)curve.row)[0].ponder_steps));
}

/* One checkpoint at several thresholds: fewer steps the sooner positions halt, all six where the sum
 * never gets there. */
Test(halting, scores_and_times_count_steps)
{
    static const char *const eps[] = {"0", "0.01", "0.9"};

    must_bench("train --variant universal " SIZES "--batch 4 --steps 4 --ckpt u.safetensors -q");
    must_bench("eval --ckpt u.safetensors --bytes 512 --seq 16 --mem 16 -b ref --threads 1 "
               "--halt-eps 0,0.01,0.9 --out r");
    struct rows rows = must_read("r/latest", TABLE_PERPLEXITY);
    const struct perplexity_row *const p = rows.row;
    cr_assert_eq(rows.n, ARRAY_LEN(eps));
    for (size_t i = 0; i < rows.n; i++) {
        cr_expect_str_eq(p[i].halt_eps, eps[i]);
        cr_expect(p[i].layers_run >= 1 && p[i].layers_run <= p[i].layers_run_p90, "%s: %g, %g",
                  eps[i], p[i].layers_run, p[i].layers_run_p90);
        cr_expect(i == 0 || p[i].layers_run < p[i - 1].layers_run, "%s: %g", eps[i],
                  p[i].layers_run);
    }
    cr_expect_eq(p[2].layers_run, 1);
    must_bench("--variant universal,xl --workload segment --layers 6 --d-model 16 --heads 2 --seq "
               "16 --mem 0 -b ref --threads 1 --quick --ckpt none --halt-eps 0.01,0.9 --out t");
    rows = must_read("t/latest", TABLE_LATENCY);
    const struct latency_row *const t = rows.row;
    cr_assert_eq(rows.n, 3);
    for (size_t i = 0; i < rows.n; i++) {
        const bool halts = strcmp(t[i].variant, "universal") == 0;
        cr_expect_eq(isfinite(t[i].layers_run), halts);
        cr_expect(!halts || strcmp(t[i].halt_eps, "0.9") != 0 || t[i].layers_run == 1);
        cr_expect(!halts || strcmp(t[i].halt_eps, "0.9") == 0 || t[i].layers_run > 1);
    }
}
