/* SPDX-License-Identifier: MIT
 *
 * Cases bound in this process: counting and placing agree in every part; sizes by their closed
 * forms; and a run leaves everything unchanged. */
#include "tests/support/command_line.h"
#include "tests/support/every_backend.h"
#include "tests/support/kernel/simd.h"
#include "tests/support/sanitized.h"
#include "tests/support/started_job.h"

/* ---- counting and placing ----------------------------------------------------------------- */

static void check_case(const struct bench_case *c)
{
    struct job j;

    must_open_job(&j, c);
    const struct arena counted = j.arena;
    cr_expect_null(counted.base);
    must_place(&j);
    NUMBERS_OF(c->repro, {j.arena.used, counted.used});
    cr_expect(j.arena.size >= counted.used, "%s", c->repro);
    size_t sum = 0;
    for (int p = 0; p < PART_COUNT; p++) {
        cr_expect_eq(j.arena.part[p], counted.part[p], "%s: part %d", c->repro, p);
        sum += counted.part[p];
    }
    cr_expect(sum <= counted.used && counted.used < sum + 4096 * ARENA_ALIGN,
              "%s: parts are %zu of %zu bytes", c->repro, sum, counted.used);
    cr_expect(counted.part[PART_GRADIENTS] == 0 && counted.part[PART_OPTIMIZER] == 0);

    const size_t n = j.n_out * sizeof(float);
    cr_assert_eq(j.n_out, (size_t)(j.out_shape[0] * j.out_shape[1] * j.out_shape[2]));
    float *first = room(1, n);
    job_run(&j);
    memcpy(first, j.out, n);
    for (size_t i = 0; i < j.n_out; i++)
        cr_assert(isfinite(first[i]), "%s: number %zu", c->repro, i);
    job_run(&j);
    cr_expect_arr_eq(first, j.out, n, "%s: the second run differs", c->repro);
    cr_expect(job_flop(&j) > 0 && job_bytes(&j) > 0);
    cr_expect_eq(job_tokens(&j), (double)c->batch * c->seq);
}

TEST_EACH(int *b, job, takes_what_it_counted, every_backend(), .timeout = 120)
{
    if (backend_usable(backends[*b], NULL) != OK)
        cr_skip_test("%s cannot run here", backends[*b]->name);
    EACH_TEXT (
        line,
        "-w attn,layer,segment,decode -V all --seq 9 --mem 0,20 --batch 2 --d-model 24 --heads 3 "
        "--d-inner 40 --layers 2 --mem-kind hidden,kv,recompute --threads 2",
        "-w layer -V gtrxl --gate gru,input,output,highway,sigtanh,residual --seq 5 --mem 6 "
        "--d-model 16 --heads 2 --d-head 7 --threads 1",
        "-w attn,layer -V bert,xl,shaw --direction both --seq 9 --mem 0 --d-model 24 --heads 3 "
        "--batch 2 --clip 4 --threads 2",
        "-w cross -V vanilla,bert,nope --mem-kind hidden,kv --seq 1,9 --mem 20 --d-model 24 "
        "--heads 4 --kv-heads 2 --batch 2 --threads 2",
        "-w request -V all --seq 4 --mem 9 --batch 2 --d-model 24 --heads 3 --d-inner 40 --layers "
        "2 "
        "--mem-kind hidden,kv,recompute,state --threads 2",
        "-w encdec -V all --seq 9 --mem 0,20 --batch 2 --d-model 24 --heads 3 --d-inner 40 "
        "--layers 2 "
        "--threads 2",
        "-w attn,layer,decode -V xl,shaw --clamp-len 5 --clip 0,100 --same-length --seq 7 --mem 30 "
        "--d-model 16 --heads 2 --layers 1 --threads 1") {
        struct plan p = planned("-b %s %s", backends[*b]->name, line);
        plan_drop_unsupported(&p);
        cr_assert_geq(p.n, 5);
        for (int c = 0; c < p.n; c++)
            if (sampled((size_t)(c + *b), 3))
                check_case(&p.cases[c]);
    }
}

/* ---- contexts ------------------------------------------------------------------------------- */

/* Keys and values that were projected before are those that the run projects; they are all that is
 * remembered. */
Test(job, cached_contexts_change_nothing)
{
    enum { B = 2, S = 13, D = 24, OUT = B * 5 * D };
    float first[OUT];

    for (int kv = 0; kv < 2; kv++) {
        struct job j;
        struct plan p = planned(
            "-w cross -V vanilla -b ref --mem-kind %s --seq 5 --mem %d --d-model %d --heads 4 "
            "--batch %d --threads 1",
            kv ? "kv" : "hidden", S, D, B);
        cr_assert_eq(p.n, 1);
        must_open_job(&j, p.cases);
        must_place(&j);
        job_run(&j);
        cr_assert_eq(j.n_out, OUT);
        if (kv)
            cr_expect_arr_eq(first, j.out, sizeof(first));
        else
            memcpy(first, j.out, sizeof(first));
        cr_expect_eq(j.arena.part[PART_MEMORY], sizeof(float) * B * S * D * (kv ? 2 : 1));
        cr_expect_eq(job_predicted_bytes(&j), j.arena.part[PART_MEMORY]);
    }
}

/* ---- closed forms ------------------------------------------------------------------------- */

/* The single case of a line, counted. */
static void count(struct job *j, struct plan p)
{
    cr_assert_eq(p.n, 1, "%d cases", p.n);
    must_open_job(j, p.cases);
}

static void expect_parts(const char *line, size_t memory, size_t rel_pos)
{
    struct job j;

    count(&j, planned("%s", line));
    NUMBERS_OF(line, {j.arena.part[PART_MEMORY], memory}, {j.arena.part[PART_REL_POS], rel_pos});
    if (j.bcase->workload != WORK_ATTN)
        cr_expect_eq(job_predicted_bytes(&j), memory, "%s", line);
}

/* Cached states with N 3, B 2, M 20, D 24, H 3, d 10: hidden 4 N B M D, keys and values 8 N B M H
 * d, rho 4 N K H d. */
Test(job, memory_by_its_formula)
{
#define SIZES "-b ref --mem 20 --batch 2 --d-model 24 --heads 3 --d-head 10 --layers 3 --seq 5 "
    const size_t hidden = 4 * 3 * 2 * 20 * 24, kv = 8 * 3 * 2 * 20 * 30, rho = 4 * 3 * 25 * 30;

    expect_parts(SIZES "-w segment -V xl --mem-kind hidden", hidden, rho);
    expect_parts(SIZES "-w segment -V xl --mem-kind kv", kv, rho);
    expect_parts(SIZES "-w decode -V gtrxl --mem-kind kv", kv, 4 * 3 * 21 * 30);
    expect_parts(SIZES "-w layer -V xl --mem-kind hidden", hidden / 3, rho / 3);
    expect_parts(SIZES "-w segment -V shaw --mem-kind kv", kv, 0);
    expect_parts(SIZES "-w segment -V macaron --mem-kind hidden", hidden, rho);
    expect_parts(SIZES "-w segment -V sandwich --mem-kind kv", kv, rho);
    expect_parts(SIZES "-w layer -V macaron --mem-kind hidden", hidden / 3, rho / 3);
    expect_parts(SIZES "-w segment -V vanilla --mem-kind recompute", 0, 0);
    expect_parts(SIZES "-w segment -V vanilla", kv, 0);
    expect_parts(SIZES "-w attn -V xl", 0, rho / 3);
    expect_parts(SIZES "-w layer -V xl --mem-kind hidden --clamp-len 7", hidden / 3, 4 * 8 * 30);
}

/* Weights of a model: every tensor of D 24, H d 30, F 40, V 256, two layers. */
Test(job, weights_by_their_shapes)
{
    const size_t attn = 4 * 24 * 30, ffn = 2 * 24 * 40 + 40 + 24, norms = 4 * 24;
    const size_t model = 256 * 24 + 256, uv = 2 * 30, wr = 24 * 30, last = 2 * 24; /* a norm */
    const struct {
        const char *variant;
        size_t floats;
    } cases[] = {
        {"vanilla", model + 2 * (attn + ffn + norms)},
        {"shaw --clip 4", model + 2 * (attn + ffn + norms + 2 * 5 * 10)},
        {"xl", model + uv + 2 * (attn + ffn + norms + wr)},
        {"gtrxl", model + last + uv + 2 * (attn + ffn + norms + wr + 2 * (6 * 24 * 24 + 24))},
        {"gtrxl --gate input", model + last + uv + 2 * (attn + ffn + norms + wr + 2 * 24 * 24)},
        {"rezero", model + uv + 2 * (attn + ffn + wr + 1)},
        {"macaron", model + last + uv + 2 * (attn + 2 * ffn + 6 * 24 + wr)},
        {"sandwich", model + last + uv + 2 * (attn + ffn + norms + wr)},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job j;
        count(&j, planned("-b ref -w segment --seq 5 --mem 4 --d-model 24 --heads 3 --d-head 10 "
                          "--d-inner 40 --layers 2 -V %s",
                          cases[i].variant));
        cr_expect_eq(j.arena.part[PART_WEIGHTS], 4 * cases[i].floats, "%s: %zu floats",
                     j.bcase->repro, j.arena.part[PART_WEIGHTS] / 4);
    }
}

/* Compulsory bytes of a run, each operand once. The model is that of the weights above with N 2, B
 * 2, L 5, M 20: W weights, hidden memory 4 N B M D, rho 4 N K H d, and what the run writes. */
Test(job, bytes_by_their_operands)
{
#define SHAPE "-b ref --seq 5 --mem 20 --batch 2 --d-model 24 --heads 3 --d-head 10 --d-inner 40 "
    const size_t layer = 4 * (4 * 24 * 30 + 2 * 24 * 40 + 40 + 24 + 4 * 24 + 24 * 30);
    const size_t memory = 4 * 2 * 20 * 24, rho = 4 * 25 * 30, uv = 4 * 60;
    const size_t embedding = 4 * 256 * 24, bias = 4 * 256,
                 weights = embedding + bias + uv + 2 * layer;
    const size_t model = weights + 2 * memory + 2 * rho;
    const struct {
        const char *line;
        size_t bytes;
    } cases[] = {
        /* q and o, k and v, a table of K rows, u and w */
        {"-w attn -V xl", 4 * (2 * 2 * 5 * 30 + 2 * 2 * 25 * 30) + rho},
        /* the stream, in and out */
        {"-w layer -V xl --mem-kind hidden", layer + uv + memory + rho + 4 * 2 * 2 * 5 * 24},
        /* the logits; all rows of an embedding that is the output, too */
        {"-w segment -V xl --layers 2 --mem-kind hidden", model + 4 * 2 * 5 * 256},
        {"-w decode -V xl --layers 2 --mem-kind hidden",
         weights + 2 * memory + 2 * 4 * 21 * 30 + 4 * 2 * 256},
        /* the losses; one rho for the gradients of both layers' tables */
        {"-w train -V xl --layers 2 --mem-kind hidden", model + rho + 4 * 2 * 5},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job j;
        count(&j, planned(SHAPE "%s", cases[i].line));
        size_t want = cases[i].bytes;
        if (j.bcase->phase ==
            PHASE_FWD_BWD) { /* gradients of all that forward keeps, two moments */
            cr_expect_eq(j.arena.part[PART_OPTIMIZER], 2 * weights);
            cr_expect_geq(j.arena.part[PART_GRADIENTS], weights);
            want += j.arena.part[PART_OPTIMIZER] + j.arena.part[PART_GRADIENTS];
        }
        NUMBERS_OF(j.bcase->repro, {job_bytes(&j), (double)want},
                   {job_tokens(&j), j.bcase->workload == WORK_DECODE ? 2 : 10});
    }
}

/* Of an embedding that is not the output, only the rows of the segment's tokens are read. */
Test(job, bytes_of_an_embedding_of_its_own)
{
    struct job j;

    count(&j, planned(SHAPE "-w segment -V llama --layers 1 --mem-kind hidden"));
    const double weights = (double)j.arena.part[PART_WEIGHTS];
    const double tables = (double)j.arena.part[PART_REL_POS], memory = 4 * 2 * 20 * 24;
    NUMBERS({job_bytes(&j), weights + tables + memory - 4 * 24 * (256 - 2 * 5) + 4 * 2 * 5 * 256});
}

/* composed: threads x row block x padded K floats, where the block is at most 128 rows and a row of
 * scores is K rounded up to 16 floats and 16 more, so that rows are not a power of two apart. */
Test(job, scores_of_composed_attention)
{
    static const struct {
        int seq, mem, threads;
        size_t floats;
    } cases[] = {
        {1, 0, 1, 1 * 32},      {1, 511, 2, 2 * 528},       {9, 20, 1, 9 * (32 + 16)},
        {128, 0, 1, 128 * 144}, {129, 0, 2, 2 * 128 * 160}, {512, 512, 2, 2 * 128 * 1040},
    };

    if (!backend_find("openblas"))
        cr_skip_test("built without openblas");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job j;
        count(&j,
              planned(
                  "-b openblas -w attn -V xl --d-model 16 --heads 2 --seq %d --mem %d --threads %d",
                  cases[i].seq, cases[i].mem, cases[i].threads));
        cr_expect_str_eq(job_impl(&j), "composed");
        cr_expect_eq(j.arena.part[PART_SCORES], 4 * cases[i].floats, "%s: %zu floats",
                     j.bcase->repro, j.arena.part[PART_SCORES] / 4);
    }
}

/* ---- what ran ------------------------------------------------------------------------------- */

/* Every implementation once, in the order of the layers: pooled queries are composed of products,
 * recurrent layers and attention of a stack have one each, an encoder's come first. */
Test(job, all_implementations_are_named, .timeout = 240)
{
    static const struct {
        const char *line, *impl;
    } cases[] = {
        {"-w segment -V funnel --layers 2", "composed+fused"},
        {"-w segment -V funnel --layers 6", "fused+composed"},
        {"-w segment -V vanilla --layers 3", "fused"},
        {"-w decode -V gdn-hybrid --layers 4", "step+fused"},
        {"-w segment -V gdn-hybrid --layers 4", "fused"},
        {"-w train -V funnel --layers 6", "fused+composed"},
        {"-w encdec -V vanilla --layers 2", "fused"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job j;
        count(&j, planned("%s -b " SIMD " --seq 16 --mem 8 --d-model 32 --heads 2 --threads 1",
                          cases[i].line));
        cr_expect_str_eq(job_impl(&j), cases[i].impl, "%s: %s", j.bcase->repro, job_impl(&j));
    }
}

/* ---- the same problem for every case of a group -------------------------------------------- */

/* The kind of memory changes nothing, for vanilla neither: on the reference to the last bit. */
Test(job, memory_kinds_agree)
{
    struct job j[2];

    struct plan p = planned(
        "-b ref -w layer,segment,decode -V shaw,xl,gtrxl --mem-kind hidden,kv --seq 6 --mem "
        "17 --batch 2 --d-model 16 --heads 2 --layers 2");
    cr_assert_eq(p.n, 18);
    for (int c = 0; c < p.n; c += 2) {
        for (int k = 0; k < 2; k++) {
            must_open_job(&j[k], &p.cases[c + k]);
            must_place(&j[k]);
            job_run(&j[k]);
        }
        cr_assert(j[0].kind == MEM_HIDDEN && j[1].kind == MEM_KV && j[0].n_out == j[1].n_out);
        cr_expect_arr_eq(j[0].out, j[1].out, j[0].n_out * sizeof(float), "%s", p.cases[c].repro);
    }
}

Test(job, seed_decides)
{
    float first = 0;

    for (int seed = 1; seed <= 3; seed++) {
        struct job j;
        count(&j, planned("-b ref -w layer -V xl --seq 4 --mem 5 --d-model 16 --heads 2 --seed %d",
                          seed == 3 ? 1 : seed));
        must_place(&j);
        job_run(&j);
        if (seed == 1)
            first = j.out[0];
        cr_expect_eq(j.out[0] == first, seed != 2, "seed %d", seed);
    }
}
