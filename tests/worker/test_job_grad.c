/* SPDX-License-Identifier: MIT
 *
 * Cases with a backward pass, bound in this process: sizes, costs, repeated runs that are
 * identical, every backend's gradients against the reference's, and a check that detects wrong
 * gradients. */
#include "tests/support/command_line.h"
#include "tests/support/every_backend.h"
#include "tests/support/kernel/simd.h"
#include "tests/support/open_engine.h"
#include "tests/support/program.h"
#include "tests/support/sanitized.h"
#include "tests/support/started_job.h"
#include "tests/support/tmp_folder.h"
#include "tests/support/trains.h"

#define SIZES "--seq 9 --mem 0,20 --batch 2 --d-model 24 --heads 3 --d-inner 40 --layers 2 "

static void start(struct job *j, const struct bench_case *c)
{
    must_open_job(j, c);
    const struct arena counted = j->arena;
    must_place(j);
    cr_expect_eq(j->arena.used, counted.used, "%s", c->repro);
    cr_expect_eq(memcmp(j->arena.part, counted.part, sizeof(counted.part)), 0, "%s", c->repro);
}

static float *must_expect(struct job *j)
{
    float *want;

    cr_assert_eq(job_expect_gradients(j, &want, &failure), OK, "%s: %s", j->bcase->repro,
                 failure.msg);
    cr_assert_not_null(want);
    return kept(want);
}

static double checked(const struct job *j, const float *want)
{
    struct agreement a;

    job_check_gradients(j, want, &a);
    return a.max_rel;
}

/* ---- every backend ------------------------------------------------------------------------ */

static const struct params *weights_of(const struct job *j)
{
    return j->bcase->workload == WORK_LAYER ? &j->layer.params : &j->lm.lm.params;
}

static uint64_t sum_of(const struct params *p, bool grad)
{
    uint64_t sum = 0;

    for (int i = 0; i < p->n; i++)
        for (size_t e = 0; e < p->v[i].n; e++) {
            uint32_t bits;
            memcpy(&bits, (grad ? p->v[i].grad : p->v[i].data) + e, sizeof(bits));
            sum = sum * 31 + bits;
        }
    return sum;
}

/* The same step again: output, weights and gradients to the last bit. */
static void expect_steady(struct job *j)
{
    const struct params *p = weights_of(j);
    const size_t n = j->n_out * sizeof(float);
    float *first = room(1, n);
    const uint64_t weights = sum_of(p, false), grads = sum_of(p, true);

    memcpy(first, j->out, n);
    job_run(j);
    cr_expect_arr_eq(first, j->out, n, "%s", j->bcase->repro);
    cr_expect_eq(sum_of(p, false), weights, "%s: weights moved", j->bcase->repro);
    cr_expect_eq(sum_of(p, true), grads, "%s: gradients moved", j->bcase->repro);
}

static void check_case(const struct bench_case *c)
{
    struct job j;
    struct agreement a;

    start(&j, c);
    float *want = must_expect(&j);
    job_run(&j);
    job_check_gradients(&j, want, &a);
    cr_expect(a.within, "%s: %s off by %.2g, nmse %.2g", c->repro, a.where, a.max_rel, a.nmse);
    cr_expect_eq(job_tokens(&j), (double)c->batch * c->seq);
    cr_expect(job_bytes(&j) > 0);
    if (c->workload != WORK_ATTN)
        expect_steady(&j);
}

TEST_EACH(int *b, job_grad, gradients_of_the_reference, every_narrow_backend(), .timeout = 400)
{
    const enum elem adds = backends[*b]->adds;

    if (backend_usable(backends[*b], NULL) != OK)
        cr_skip_test("%s cannot run here", backends[*b]->name);
    const bool rounds = open_engine(backends[*b]->name, 1).can_round;
    EACH_TEXT (
        line, "-w attn,layer,train -V all --phase fwd_bwd --threads 2 " SIZES,
        "-w layer,train --phase fwd_bwd -V gtrxl --gate gru,input,output,highway,sigtanh,residual "
        "--threads 1 " SIZES,
        "-w layer --phase fwd_bwd -V vanilla,shaw,xl --norm pre --clip 0,50 --clamp-len 5 "
        "--threads 1 " SIZES,
        "-w layer,train --phase fwd_bwd -V base,llama,gdn,switch,delight --dtype bf16 --threads "
        "2 " SIZES,
        "-w encdec --phase fwd_bwd -V all --threads 2 " SIZES,
        "-w encdec --phase fwd_bwd -V transparent,llama --set enc_layers=3 --threads 1 " SIZES) {
        const bool bf16 = strstr(line, "--dtype bf16") != NULL;
        if (bf16 ? !rounds : adds != ELEM_F32)
            continue;
        struct plan p = planned("-b %s %s", backends[*b]->name, line);
        plan_drop_unsupported(&p);
        for (int c = 0; c < p.n; c++)
            if (sampled((size_t)(c + *b), 3) &&
                (p.cases[c].workload == WORK_ATTN || trains(p.cases[c].variant)))
                check_case(&p.cases[c]);
    }
}

/* Sums over many positions must not lose what they are made of, and gradients that are 0 are not to
 * be nothing but rounding. */
TEST_EACH(int *b, job_grad, gradients_of_long_segments, all_but_ref(), .timeout = 120)
{
    if (backend_usable(backends[*b], NULL) != OK)
        cr_skip_test("%s cannot run here", backends[*b]->name);
    struct plan p =
        planned("-b %s -w layer -V fox,man,compressive --phase fwd_bwd --seq 512 --mem 0,128 "
                "--d-model 64 --heads 4 "
                "--threads 2",
                backends[*b]->name);
    for (int c = 0; c < p.n; c++)
        if (sampled((size_t)(c + *b), 3))
            check_case(&p.cases[c]);
}

/* ---- the check ---------------------------------------------------------------------------- */

static void one_case(struct job *j, struct plan p)
{
    cr_assert_eq(p.n, 1, "%d cases", p.n);
    start(j, p.cases);
}

/* One entry of one gradient: of the wrong sign, missing, not a number. Every gradient in turn. */
Test(job_grad, check_detects_a_wrong_entry)
{
    struct job j;
    struct agreement a;

    one_case(&j, planned("-b ref -V gtrxl -w train --seq 6 --mem 4 --d-model 16 --heads 2"));
    float *want = must_expect(&j);
    job_run(&j);
    cr_expect_eq(checked(&j, want), 0, "ref agrees with itself");
    for (int i = 0; i < j.lm.lm.params.n; i++) {
        const struct param *w = &j.lm.lm.params.v[i];
        float *worst = w->grad, kept;
        for (size_t e = 0; e < w->n; e++)
            worst = fabsf(w->grad[e]) > fabsf(*worst) ? &w->grad[e] : worst;
        kept = *worst;
        for (int fault = 0; fault < 3; fault++) {
            *worst = fault == 0 ? -kept : fault == 1 ? 0 : NAN;
            job_check_gradients(&j, want, &a);
            cr_expect(!a.within, "%s, fault %d: %g", w->name, fault, a.max_rel);
            cr_expect(strstr(a.where, w->name), "%s named as %s", w->name, a.where);
        }
        *worst = kept;
    }
}

/* The backend's own pass, but one operand keeps its old value. */
static int forgotten;

static void forgetful(const struct engine *g, const struct attn *a, const struct attn_grad *d,
                      void *scratch)
{
    float *const written[] = {d->d_q, d->d_k, d->d_v};
    const int rows = a->B * (forgotten == 0 ? a->L : a->M + a->L);
    const size_t size = (size_t)rows * (size_t)a->H * (size_t)a->dh * sizeof(float);
    float *const kept = room(1, size);
    const struct attn_impl *impl;

    cr_assert_eq(engine_attn(g, a, &impl, NULL), OK);
    memcpy(kept, written[forgotten], size);
    impl->backward(g, a, d, scratch);
    memcpy(written[forgotten], kept, size);
}

/* The place that it leaves out still holds the reference's gradient when it runs, unless that is
 * cleared. */
Test(job_grad, check_detects_a_missing_store)
{
    EACH_TEXT (work, "attn --phase fwd_bwd", "layer --phase fwd_bwd", "train")
        for (forgotten = 0; forgotten < 3; forgotten++) {
            struct job j;
            one_case(&j,
                     planned("-b ref -V xl --seq 6 --mem 4 --d-model 16 --heads 2 --layers 1 -w %s",
                             work));
            struct sublayers *const sublayers =
                j.bcase->workload == WORK_LAYER ? &j.layer.sublayers : &j.lm.lm.sublayers;
            const struct attn_impl **impl =
                j.bcase->workload == WORK_ATTN
                    ? &j.attn.impl
                    : &sublayers_attention(sublayers, 0)->state.attention.impl;
            struct attn_impl broken = **impl;
            broken.backward = forgetful;
            *impl = &broken;
            float *want = must_expect(&j);
            job_run(&j);
            cr_expect(!(checked(&j, want) <= job_bound(j.bcase).rel), "%s, operand %d", work,
                      forgotten);
        }
}

Test(job_grad, forward_cells_have_nothing_to_judge)
{
    struct job j;
    float *want = (float *)&failure;

    one_case(&j, planned("-b ref -V xl -w layer --seq 6 --mem 4 --d-model 16 --heads 2"));
    cr_expect_eq(job_expect_gradients(&j, &want, &failure), OK);
    cr_expect_null(want);
    cr_expect(j.arena.part[PART_GRADIENTS] == 0 && j.arena.part[PART_OPTIMIZER] == 0);
}

/* A timed training step clips the gradient to 0.25 and moves nothing: the rate is 0. The moments of
 * the first step are those of the gradient, scaled. */
Test(job_grad, a_training_step_clips_and_moves_nothing)
{
    struct job j;
    double gradient = 0, first = 0, off = 0;

    one_case(&j, planned("-b ref -V xl -w train --seq 6 --mem 4 --d-model 16 --heads 2"));
    struct params *const params = &j.lm.lm.params;
    float **const before = room((size_t)params->n, sizeof(*before));
    optimizer_reset(&j.lm.optimizer, params); /* placing may have run a step */
    for (int i = 0; i < params->n; i++) {
        before[i] = room(params->v[i].n, sizeof(float));
        memcpy(before[i], params->v[i].data, params->v[i].n * sizeof(float));
    }
    job_run(&j);
    for (int i = 0; i < params->n; i++) {
        cr_expect_arr_eq(before[i], params->v[i].data, params->v[i].n * sizeof(float), "%s",
                         params->v[i].name);
        for (size_t k = 0; k < params->v[i].n; k++) {
            const double g = (double)params->v[i].grad[k], m = (double)j.lm.optimizer.m[i][k];
            const double v = (double)j.lm.optimizer.v[i][k];
            gradient += g * g;
            first += m * m;
            off = fmax(off, fabs(v - 0.1 * m * m)); /* m is 0.1 of it, v 0.001 of its square */
        }
    }
    cr_expect_gt(sqrt(gradient), 0.25);
    cr_expect_float_eq(sqrt(first), 0.1 * 0.25, 1e-6, "moments of norm %g", sqrt(first));
    cr_expect_lt(off, 1e-9);
}

/* ---- costs -------------------------------------------------------------------------------- */

static double flop_of(const char *line)
{
    struct job j;

    one_case(&j, planned("%s", line));
    const double flop = job_flop(&j);
    return flop;
}

/* Two products of backward for each one of forward; in a layer keys and values of memory need no
 * gradient of their input, which leaves out 4 B M D H d. */
Test(job_grad, flop_counts_both_ways)
{
#define SMALL "-b ref --seq 6 --mem 4 --batch 2 --d-model 16 --heads 2 --layers 3 "
    cr_expect_eq(flop_of(SMALL "-V vanilla -w attn --phase fwd_bwd"),
                 3 * flop_of(SMALL "-V vanilla -w attn"));
    NUMBERS({flop_of(SMALL "-V xl -w attn --phase fwd_bwd"), 3 * flop_of(SMALL "-V xl -w attn")});
    const double wr = 2.0 * 10 * 16 * 16, memory = 4.0 * 2 * 4 * 16 * 16;
    const double layer = flop_of(SMALL "-V xl -w layer --mem-kind hidden");
    cr_expect_eq(flop_of(SMALL "-V xl -w layer --phase fwd_bwd"), 3 * layer - memory + wr);
    cr_expect_eq(flop_of(SMALL "-V xl -w train"),
                 3 * (3 * layer - memory + 2 * wr) + 3 * 2.0 * 2 * 6 * 16 * 256);
    /* A norm before it has weights, which memory's gradient reaches. */
    cr_expect_eq(flop_of(SMALL "-V gtrxl -w layer --phase fwd_bwd"),
                 3 * flop_of(SMALL "-V gtrxl -w layer --mem-kind hidden") + wr);
}

/* ---- what amplifies ----------------------------------------------------------------------- */

static struct bound bound_of(const char *line)
{
    return job_bound(planned("%s --threads 1", line).cases);
}

/* Six steps with a factor 13/4 each, twice that for a softmax, eight roundings. */
Test(job_grad, the_bound_of_an_iteration_grows_with_its_steps)
{
    const char *const nystrom = "-V nystrom -b ref -w layer --seq 9 --mem 0";
    const struct bound plain = bound_of("-V bert -b ref -w layer --seq 9 --mem 0");
    const struct bound six = bound_of(nystrom);

    const char *const none = kept_text("%s --set pinv_iters=0", nystrom);
    cr_expect_float_eq(six.rel - plain.rel, 8 * 0x1p-24 * 2 * pow(3.25, 6), 1e-12);
    cr_expect_float_eq(six.nmse - plain.nmse, pow(six.rel - plain.rel, 2), 1e-15);
    cr_expect_float_eq(bound_of(none).rel - plain.rel, 8 * 0x1p-24 * 2, 1e-12);
}

/* A division by sqrt(head_eps) at least. */
Test(job_grad, the_bound_of_heads_that_are_normed_grows)
{
    const struct bound plain = bound_of("-V linear -b ref -w layer --seq 9 --mem 0");
    const struct bound normed =
        bound_of("-V gdn -b ref -w layer --seq 9 --mem 0 --set head_eps=1e-4");

    cr_expect_float_eq(normed.rel - plain.rel, 8 * 0x1p-24 * 100, 1e-9);
}

/* Keys of 8 numbers are often nearly at right angles to queries: right on any backend. */
Test(job_grad, heads_that_are_normed_may_be_small, .init = folder_make, .fini = folder_remove)
{
    must_bench("-q -V gdn -b auto -w train --seq 32 --mem 32 --d-model 64 --heads 4 --threads 1 "
               "--pin none --ckpt none --max-time 0.001 --min-samples 1 --warmup-ms 0 --out r");
}

/* Two rows, whose matrix of landmarks is as good as singular: right, and further from the reference
 * than other variants may be. */
Test(job_grad, two_landmarks_may_be_alike, .init = folder_make, .fini = folder_remove)
{
    static const int seeds[] = {30, 32, 54};

    if (backend_usable(backend_find(SIMD), NULL) != OK)
        cr_skip_test(SIMD " is not usable here");
    for (size_t i = 0; i < ARRAY_LEN(seeds); i++)
        must_bench("-q -V nystrom -b " SIMD
                   " -w layer --phase fwd_bwd --seq 2 --mem 0 --kv-heads 2 --d-model 64 --seed %d "
                   "--threads 1 --pin none --max-time 0.001 --min-samples 1 --warmup-ms 0 --out r",
                   seeds[i]);
}
