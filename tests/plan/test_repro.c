/* SPDX-License-Identifier: MIT
 *
 * The line of options that makes one case again, and the hash that names it. */
#include "tests/support/command_line.h"
#include "tests/support/failure.h"
#include "tests/support/kernel/simd.h"

static bool same_case(const struct bench_case *a, const struct bench_case *b)
{
    return same_shape(a, b) && a->variant == b->variant && a->backend == b->backend &&
           a->mem_kind == b->mem_kind && case_same_problem(a, b) &&
           strcmp(a->repro, b->repro) == 0 && strcmp(a->case_id, b->case_id) == 0;
}

static void round_trip(const char *line)
{
    struct options o;
    struct plan p;

    must_plan(&p, &o, line);
    cr_expect_gt(p.n, 0);
    for (int i = 0; i < p.n; i++) {
        struct options again;
        struct plan one = {0};
        enum status st = options_parse_line(&again, p.cases[i].repro, &failure);
        if (st == OK)
            st = plan_make(&one, &again, &failure);
        cr_assert_eq(st, OK, "%s: %s", p.cases[i].repro, failure.msg);
        cr_assert_eq(one.n, 1, "%s makes %d cases", p.cases[i].repro, one.n);
        cr_assert(same_case(&p.cases[i], &one.cases[0]), "%s became %s", p.cases[i].repro,
                  one.cases[0].repro);
        cr_expect(again.seed == o.seed && again.cache == o.cache && again.max_isa == o.max_isa);
        cr_expect(strcmp(again.pin, o.pin) == 0 && again.huge_pages == o.huge_pages);
        plan_free(&one);
        options_free(&again);
    }
}

Test(plan, repro_makes_the_same_case, .timeout = 120)
{
    round_trip("-w attn,layer,segment,decode --layers 2,4 --seq 8,128 --mem 0,512 --batch 1,2 "
               "--threads 1,2 --gate gru,input,residual --clip 2,16 --mem-kind auto,hidden,kv");
    round_trip("-V xl,gtrxl,shaw -w attn,segment --seq 8 --mem 4 --d-model 60 --heads 3 --d-head 7 "
               "--d-inner 100 --clamp-len 5 --same-length --seed 9 --pin 0,2 --membind interleave "
               "--cache cold --max-isa " SIMD " --huge-pages madvise --impl composed --backend ref "
               "--openblas-core Haswell --max-time 9 --isolate none");
    round_trip("-V vanilla,shaw,xl -w layer,segment --seq 8 --mem 4 --norm pre --backend ref");
}

/* Sizes that are usual but for this variant. */
Test(plan, repro_has_sizes_that_a_variant_has_otherwise)
{
    struct plan p = planned(
        "-V lite,xl -b ref --seq 8 --mem 0 --d-model 64 --heads 4 --d-inner 256 --d-head 16");
    HAS(p.cases[0].repro, " --d-head 16 --d-inner 256 ");
    cr_expect(!strstr(p.cases[1].repro, "--d-inner"), "%s", p.cases[1].repro);
}

Test(plan, repro_is_short)
{
    struct plan p =
        planned("-V xl -b ref -w attn,layer --seq 8 --mem 4 --threads 2 --d-head 64 --norm post "
                "--max-time 1 --no-check --order given --out x");
    cr_assert_eq(p.n, 2);
    cr_expect_str_eq(p.cases[0].repro,
                     "--variant xl --backend ref --workload attn --seq 8 --mem 4 --threads 2");
    cr_expect_str_eq(p.cases[1].repro, "--variant xl --backend ref --workload layer --seq 8 --mem "
                                       "4 --mem-kind kv --threads 2");
    cr_expect_eq(strlen(p.cases[0].case_id), 16);
}

Test(plan, case_ids_differ)
{
    struct plan p =
        planned("-w attn,layer,segment,decode --layers 2,4 --seq 8,128 --mem 0,512 --batch 1,2 "
                "--threads 1,2 --gate gru,input --clip 2,16 --mem-kind auto,hidden,kv");
    for (int i = 0; i < p.n; i++)
        for (int k = i + 1; k < p.n; k++)
            cr_assert_str_neq(p.cases[i].case_id, p.cases[k].case_id, "%s / %s", p.cases[i].repro,
                              p.cases[k].repro);
}
