/* SPDX-License-Identifier: MIT
 *
 * What a model must keep from token to token (the column cache_bytes), by formulas of its kinds of
 * memory; and that the memory of a case has the bytes that its closed form says. */
#include "tests/support/command_line.h"
#include "tests/support/started_job.h"

/* The only case of a line. */
static size_t cache_of(const char *line)
{
    struct job j;

    struct plan p = planned("%s", line);
    cr_assert_eq(p.n, 1, "%s makes %d cases", line, p.n);
    cr_assert_null(p.cases[0].unsupported, "%s: %s", line, p.cases[0].unsupported);
    cr_assert_eq(job_open(&j, &p.cases[0], &failure), OK, "%s: %s", line, failure.msg);
    const size_t bytes = job_cache_bytes(&j);
    job_close(&j);
    return bytes;
}

/* Two sequences, M = 100 tokens, two layers, D = 32, 4 heads of 8. */
enum { B = 2, M = 100, N = 2, D = 32, H = 4, DH = 8 };
#define SIZES "-b ref --batch 2 --mem 100 --layers 2 --d-model 32 --heads 4 --threads 1 "
#define KEYS_VALUES (2 * H * DH * 4) /* bytes of a row */
/* Floats of states: 4/3 as wide as the layer, for whole heads; heads of keys of 4 by values of 8, and 3 rows before a
 * convolution of 4 taps of queries, keys and values. */
enum { GRU = 40, GDN = H * 4 * 8 + 3 * H * (4 + 4 + 8) };

Test(job_cache, bytes_by_formula, .timeout = 120)
{
    static const struct {
        const char *line;
        size_t bytes;
    } cases[] = {
        {"-w decode -V rope", B * N * M * KEYS_VALUES},
        {"-w layer --seq 5 -V rope", B * M * KEYS_VALUES},
        {"-w attn --seq 5 -V rope", B * M * KEYS_VALUES},
        {"-w segment --seq 5 -V rope --mem-kind hidden", B * N * M * KEYS_VALUES},
        {"-w train --seq 5 -V rope", B * N * M * KEYS_VALUES},
        {"-w request --seq 6 -V rope", B * N * (M + 5) * KEYS_VALUES},
        {"-w decode -V xl", B * N * M * KEYS_VALUES},
        /* shared heads count once, narrow ones with their scales */
        {"-w decode -V gqa --kv-heads 2", B * N * M * KEYS_VALUES / 2},
        {"-w decode -V mqa", B * N * M * KEYS_VALUES / 4},
        {"-w decode -V rope --kv-dtype bf16", B * N * M * KEYS_VALUES / 2},
        {"-w decode -V rope --kv-dtype q8", B * N * M * 2 * H * (4 + DH)},
        {"-w attn --seq 5 -V rope --kv-dtype q8", B * M * 2 * H * (4 + DH)},
        /* windows: the newest W - 1; sinks and the window; a layer in two */
        {"-w decode -V window --mask window=16", B * N * 15 * KEYS_VALUES},
        {"-w decode -V window --mask window=16 --mem-kind hidden", B * N * 15 * KEYS_VALUES},
        {"-w attn --seq 5 -V window --mask window=16", B * 15 * KEYS_VALUES},
        {"-w decode -V window --mask window=1", 0},
        {"-w decode -V window --mask window=101", B * N * 100 * KEYS_VALUES},
        {"-w decode -V window --mask window=102", B * N * 100 * KEYS_VALUES},
        {"-w decode -V gemma --kv-heads 4 --layer-windows 11,0", B * (10 + M) * KEYS_VALUES},
        {"-w decode -V multiscale --head-windows 3,9,5,5", B * N * 8 * KEYS_VALUES},
        {"-w decode -V longformer --mask window=16,global=4", B * N * (15 + 4) * KEYS_VALUES},
        {"-w decode -V fixed --mask block=8,fixed=8,summary=2", B * N * (7 + 22) * KEYS_VALUES},
        {"-w decode -V strided", B * N * M * KEYS_VALUES},
        /* latents and the rotated key; rows that are compressed later */
        {"-w decode -V mla --set kv_rank=12", B * N * M * (12 + DH / 2) * 4},
        {"-w decode -V compressive", B * N * M * D * 4},
        /* states, whatever M is; in a stack beside keys and values */
        {"-w decode -V mingru", B * N * GRU * 4},
        {"-w layer --seq 5 -V gdn", B * GDN * 4},
        {"-w layer --seq 5 -V gdn --mem-kind recompute", B * GDN * 4},
        {"-w decode -V gdn-hybrid --stack gdn,rope", B * (GDN * 4 + M * KEYS_VALUES)},
        /* run without a cache, but it could have one; it can not */
        {"-w decode -V vanilla", B * N * M * KEYS_VALUES},
        {"-w decode -V universal", B * N * M * KEYS_VALUES},
        {"-w decode -V funnel", B * M * 4},
        {"-w decode -V sinkhorn", B * M * 4},
        {"-w cross --seq 5 -V vanilla", B * M * KEYS_VALUES},
        {"-w encdec --seq 5 -V vanilla", B * N * M * KEYS_VALUES},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const line = kept_text(SIZES "%s", cases[i].line);
        const size_t bytes = cache_of(line);
        NUMBERS_OF(cases[i].line, {bytes, cases[i].bytes});
    }
}

/* Every variant has a number, the same for each kind of memory; that of the engine, where it keeps
 * this; and the closed form of each kind is what the arena has. */
Test(job_cache, of_every_variant, .timeout = 240)
{
    int numbers = 0, equal = 0;

    EACH_TEXT (line, "-w decode,layer -V all --mem-kind hidden,kv,recompute,state --seq 3 ",
               "-w segment -V all --mem-kind hidden,kv,recompute,state --seq 3 --mem 7 ",
               "-w attn,request -V all --seq 3 ") {
        struct plan p = planned(SIZES "%s", line);
        plan_drop_unsupported(&p);
        size_t before = 0;
        for (int i = 0; i < p.n; i++) {
            const struct bench_case *const c = &p.cases[i];
            struct job j;
            cr_assert_eq(job_open(&j, c, &failure), OK, "%s: %s", c->repro, failure.msg);
            const size_t bytes = job_cache_bytes(&j), memory = j.arena.part[PART_MEMORY];
            const bool other_kind = i > 0 && c[-1].variant == c->variant &&
                                    c[-1].workload == c->workload && c[-1].seq == c->seq;
            cr_expect(bytes > 0, "%s", c->repro);
            cr_expect(!other_kind || bytes == before, "%s: %zu, not %zu", c->repro, bytes, before);
            if (c->workload != WORK_ATTN)
                cr_expect_eq(job_predicted_bytes(&j), memory, "%s: %zu, not %zu", c->repro,
                             job_predicted_bytes(&j), memory);
            numbers++;
            equal += bytes == memory;
            before = bytes;
            job_close(&j);
        }
    }
    cr_expect(numbers > 400 && equal > numbers / 4, "%d of %d", equal, numbers);
}

/* The context that a layer is measured with is the same whether its rows are hidden or cached, as far
 * back as they are seen. */
Test(job_cache, hidden_as_cached)
{
    int compared = 0;

    EACH_TEXT (line, "-V window,block,longformer,image,star --mask window=9",
               "-V window,block --mask block=7,back=1;window=20",
               "-V llama,gemma,rope,xl,alibi,lite --layer-windows 9,30",
               "-V multiscale --head-windows 3,9", "-V streaming,bigbird,image2d") {
        struct plan p =
            planned("-w layer,segment --mem-kind hidden,kv --seq 5 --mem 40 -b ref --d-model 24 "
                    "--heads 4 --layers 2 %s",
                    line);
        plan_drop_unsupported(&p);
        for (int i = 0; i + 1 < p.n; i++) {
            struct job j[2];
            if (p.cases[i].mem_kind != MEM_HIDDEN || p.cases[i + 1].mem_kind != MEM_KV)
                continue;
            for (int k = 0; k < 2; k++) {
                must_start(&j[k], &p.cases[i + k]);
                job_run(&j[k]);
            }
            const struct agreement a =
                agree(j[0].out, j[1].out, j[0].n_out, job_bound(&p.cases[i]));
            cr_expect(a.within, "%s: %g", p.cases[i].repro, a.max_rel);
            compared++;
        }
    }
    cr_expect_geq(compared, 30);
}
