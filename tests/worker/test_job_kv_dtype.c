/* SPDX-License-Identifier: MIT
 *
 * Cases whose cached keys and values are narrower than f32: what is stored, what is computed, and
 * who cannot. */
#include "beside_ref.h"
#include "tests/support/every_backend.h"
#include "tests/support/sanitized.h"

enum { KV_TYPES = 3 }; /* f32, bf16, q8 */
#define SMALL "--d-model 40 --heads 4 --d-inner 72 --layers 2 --threads 2 --mem-kind kv "

/* Two layers of 9 keys and values; a row of an odd width is filled up to a whole float. */
Test(job_kv_dtype, cache_takes_its_bytes)
{
    static const struct {
        const char *line;
        size_t bytes[KV_TYPES];
    } cases[] = {
        {"-w decode -V rope ", {40 * 4, 40 * 2, 4 * (4 + 12)}},
        {"-w decode -V gqa --kv-heads 2 ", {20 * 4, 20 * 2, 2 * (4 + 12)}},
        {"-w layer --seq 6 -V gqa --kv-heads 1 --d-head 6 ", {6 * 4, 6 * 2, 4 + 8}},
        {"-w segment --seq 6 -V xl --d-head 5 --heads 5 ", {25 * 4, 26 * 2, 5 * (4 + 8)}},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const size_t layers = strstr(cases[i].line, "-w layer") ? 1 : 2;
        struct plan p = planned(SMALL "%s --mem 9 -b ref --kv-dtype f32,bf16,q8", cases[i].line);
        cr_assert_eq(p.n, KV_TYPES, "%s", cases[i].line);
        for (int n = 0; n < KV_TYPES; n++) {
            struct job j;
            must_start(&j, &p.cases[n]);
            cr_expect_eq(p.cases[n].config.kv_dtype, (enum elem)n);
            cr_expect_eq(strstr(p.cases[n].repro, "--kv-dtype bf16") != NULL, n == ELEM_BF16);
            const size_t row = cases[i].bytes[n];
            NUMBERS_OF(p.cases[n].repro, {j.arena.part[PART_MEMORY], layers * 2 * 9 * row},
                       {job_predicted_bytes(&j), j.arena.part[PART_MEMORY]});
        }
    }
}

/* Other numbers than f32's, by no more than two roundings of a layer. */
Test(job_kv_dtype, rounding_is_small_and_there)
{
    struct plan p = planned(SMALL "-w segment --seq 7 --mem 9 -V rope,gqa,window,llama,xl -b ref "
                                  "--kv-dtype f32,bf16,q8");
    cr_assert_eq(p.n, 5 * KV_TYPES);
    for (int i = 0; i < p.n; i++) {
        const enum elem elem = p.cases[i].config.kv_dtype;
        struct job f32, narrow;
        if (elem == ELEM_F32)
            continue;
        must_start(&f32, &p.cases[i - (int)elem]);
        must_start(&narrow, &p.cases[i]);
        job_run(&f32);
        job_run(&narrow);
        cr_expect_leq(job_bound(&p.cases[i]).rel, elem == ELEM_Q8 ? 4 * 0x1p-8 : 2 * 0x1p-8);
        expect_alike(&narrow, &f32);
        cr_expect(memcmp(f32.out, narrow.out, f32.n_out * sizeof(float)) != 0, "%s",
                  p.cases[i].repro);
    }
}

/* Every variant that caches: as the reference within the bound of its check, or refused. */
TEST_EACH(int *b, job_kv_dtype, backends_agree, every_narrow_backend(), .timeout = 300)
{
    const char *const name = backends[*b]->name;
    int ran = 0;

    if (backend_usable(backends[*b], NULL) != OK)
        cr_skip_test("%s cannot run here", name);
    EACH_TEXT (work, "-w decode ", "-w layer,segment --seq 7 ") {
        struct plan p = planned(SMALL "%s --mem 9 -V all -b %s --kv-dtype bf16,q8", work, name);
        plan_drop_unsupported(&p);
        for (int i = 0; i < p.n; i++) {
            const struct bench_case *const c = &p.cases[i];
            struct job j;
            if (c->config.kv_dtype == ELEM_F32 || /* it has no such choice */
                !sampled((size_t)(i + *b), 3))
                continue;
            if (!runs_as_reference(&j, c, false, elem_name[c->config.kv_dtype]))
                continue;
            cr_expect_eq(j.arena.part[PART_MEMORY], job_predicted_bytes(&j), "%s", c->repro);
            ran++;
        }
    }
    const bool reads = strcmp(name, "onednn") != 0 && strcmp(name, "openblas") != 0;
    cr_expect_eq(ran > (SANITIZED ? 40 : 120), reads, "%s: %d ran", name, ran);
}

Test(job_kv_dtype, cases_that_cache_nothing)
{
#define CACHE_NOTHING                                                                              \
    "-V xl -b ref --mem-kind hidden --kv-dtype bf16 --seq 6 --mem 9 --d-model 40 --heads 4 "       \
    "--layers 2 "
    expect_unsupported(CACHE_NOTHING "-w layer", "unsupported: no keys and values are cached");
    expect_unsupported(CACHE_NOTHING "-w train",
                       "unsupported: training reads keys and values as f32");
    expect_unsupported(
        "-V vanilla -b ref --kv-dtype bf16 -w cross --seq 6 --mem 9 --d-model 40 --heads 4",
        "unsupported: keys and values of another text are f32");
}
