/* SPDX-License-Identifier: MIT
 *
 * Cases with narrower weights: what is stored, what is computed, and who cannot. */
#include "beside_ref.h"
#include "harness/worker/workload.h"
#include "tests/support/every_backend.h"
#include "tests/support/open_engine.h"
#include "tests/support/sanitized.h"

#define SMALL                                                                                      \
    "--seq 11 --mem 9 --d-model 40 --heads 4 --d-inner 72 --layers 2 --threads 2 --mem-kind auto "

/* Bytes of a layer of 40 columns, 72 hidden units: four maps of 40 x 40, two of 72, vectors. */
Test(job_dtype, weights_take_their_bytes)
{
    enum { D = 40, F = 72, VECTORS = 4 * D + F + D }; /* two norms and both biases */
    static const size_t rows[ELEM_COUNT][2] = {
        {4 * D, 4 * F}, {2 * D, 2 * F}, {36 * 2, 36 * 3}, {20 * 2, 20 * 3}, {24 * 2, 24 * 3}};

    struct plan p = planned("-w layer -V vanilla -b ref --dtype f32,bf16,q8,q4,q4_1 " SMALL);
    cr_assert_eq(p.n, ELEM_COUNT);
    for (int i = 0; i < p.n; i++) {
        struct job j;
        must_start(&j, &p.cases[i]);
        NUMBERS_OF(p.cases[i].repro, {p.cases[i].config.dtype, (enum elem)i},
                   {j.arena.part[PART_WEIGHTS],
                    (4 * D + F) * rows[i][0] + D * rows[i][1] + VECTORS * sizeof(float)});
    }
}

/* The reference in q8 is the f32 model of the numbers that are stored; in bf16 rows are rounded as
 * well, so that weights alone explain a part of the difference only. */
Test(job_dtype, reference_computes_with_what_is_stored)
{
    for (enum elem elem = ELEM_BF16; elem < ELEM_COUNT; elem++) {
        struct job f32, narrow;

        struct plan p =
            planned("-w segment -V gtrxl,llama -b ref --dtype f32,%s " SMALL, elem_name[elem]);
        cr_assert_eq(p.n, 4);
        for (int i = 0; i < p.n; i += 2) {
            must_start(&f32, &p.cases[i]);
            must_start(&narrow, &p.cases[i + 1]);
            struct params *const wide = &f32.lm.lm.params;
            const struct params *const of = &narrow.lm.lm.params;
            int replaced = 0;
            for (int w = 0; w < of->n; w++) {
                const int n = of->v[w].shape[of->v[w].rank - 1];
                if (of->v[w].elem == ELEM_F32)
                    continue;
                cr_expect(of->v[w].elem == elem && !of->v[w].data && of->v[w].narrow);
                for (ptrdiff_t row = 0; row < (ptrdiff_t)of->v[w].n / n; row++)
                    param_row(&of->v[w], row, wide->v[w].data + row * n);
                replaced++;
            }
            cr_expect_geq(replaced, 13, "%s", p.cases[i].repro); /* six maps a layer, embedding */
            f32.ops->fill(&f32);                                 /* its cache is of other weights */
            job_run(&f32);
            job_run(&narrow);
            const bool same = memcmp(f32.out, narrow.out, f32.n_out * sizeof(float)) == 0;
            cr_expect_eq(same, elem_in_blocks(elem), "%s", p.cases[i + 1].repro);
            for (size_t x = 0; x < f32.n_out; x++)
                cr_assert(fabsf(f32.out[x] - narrow.out[x]) < 0.1f);
        }
    }
}

/* Rows of q8 are those of the case that asks for them, with the same weights. */
Test(job_dtype, rows_are_rounded_where_it_is_asked_for)
{
    struct plan p =
        planned("-w layer,segment,decode -V gtrxl,llama,pkm -b ref --dtype f32,q8 "
                "--act-dtype f32,q8 --seq 1 --mem 9 --d-model 40 --heads 4 --d-inner 72 "
                "--layers 2 --threads 2 --mem-kind auto");
    plan_drop_unsupported(&p);
    int compared = 0;
    for (int i = 0; i + 1 < p.n; i++) {
        const struct bench_case *const c = &p.cases[i], *const other = &p.cases[i + 1];
        struct job wide, rounded;
        cr_expect(c->config.dtype == ELEM_Q8 || c->config.act_dtype == ROWS_F32, "%s", c->repro);
        if (c->config.dtype != ELEM_Q8 || c->config.act_dtype != ROWS_F32)
            continue;
        cr_assert(other->config.act_dtype == ROWS_Q8 && other->variant == c->variant);
        must_start(&wide, c);
        if (job_open(&rounded, other, &failure) != OK) {
            cr_expect_not_null(strstr(failure.msg, "chooses"), "%s: %s", other->repro, failure.msg);
        } else {
            must_start(&rounded, other);
            job_run(&wide);
            job_run(&rounded);
            cr_expect_eq(wide.arena.part[PART_WEIGHTS], rounded.arena.part[PART_WEIGHTS]);
            cr_expect(memcmp(wide.out, rounded.out, wide.n_out * sizeof(float)) != 0, "%s",
                      other->repro);
            expect_alike(&rounded, &wide);
            compared++;
        }
    }
    cr_expect_geq(compared, 6);
}

enum { SHARES = 4 };
static struct criterion_test_params every_share(void) { return every_number(SHARES); }

/* Of the four pairs of a layer or a segment and rows of floats or of 8 bits, two, which have both of each: the
 * other two where the name of the variant, or the type, is another. */
static bool has_turn(const struct bench_case *c)
{
    return (strlen(c->variant->name) + c->workload + c->config.dtype + c->config.act_dtype) % 2;
}

/* Every variant in every type on every backend: as the reference within the bound of its check, or refused.
 * Backends take turns, so that one reference does for all. Under sanitizers one case of seven, which is prime
 * to the number of workloads, types and kinds of rows, so that each of them has its turn. */
TEST_EACH(int *share, job_dtype, backends_agree, every_share(), .timeout = 300)
{
    enum { MOST = 16 };
    struct engine g[MOST];
    int ran[MOST] = {0}, before = 0;
    size_t turn = 0;
    char names[256] = "";

    for (int b = 0; backends[b]; b++) {
        cr_assert_lt(b, MOST);
        if (backend_usable(backends[b], NULL) != OK)
            continue;
        g[b] = open_engine(backends[b]->name, 1);
        text_append(names, sizeof(names), "%s%s", *names ? "," : "", backends[b]->name);
    }
    struct plan p = planned(
        "-w attn,layer,segment -V all -b %s --dtype bf16,q8,q4,q4_1 --act-dtype f32,q8 " SMALL,
        names);
    plan_drop_unsupported(&p);
    for (int i = 0; i < p.n; i++) {
        const struct bench_case *const c = &p.cases[i];
        int b = 0;
        while (backends[b] != c->backend)
            b++;
        turn += b <= before;
        before = b;
        struct job j;
        if (turn % SHARES == (size_t)*share && has_turn(c) && sampled(turn, 7))
            ran[b] += runs_as_reference(&j, c, g[b].lacks[c->config.dtype], "unsupported in ");
    }
    for (int b = 0; backends[b]; b++)
        if (backend_usable(backends[b], NULL) == OK)
            cr_expect_eq(ran[b] > (SANITIZED ? 0 : 100 / SHARES),
                         !g[b].lacks[ELEM_BF16] || !g[b].lacks[ELEM_Q8], "%s: %d of %d ran",
                         backends[b]->name, ran[b], p.n);
}

Test(job_dtype, cases_that_have_no_such_weights)
{
    expect_unsupported(SMALL "-w attn -V vanilla -b ref --dtype q8",
                       "unsupported: attention alone has no weights");
    expect_unsupported(SMALL "-w train -V xl -b ref --dtype q8",
                       "unsupported: weights are not trained in 8 bits or 4");
    expect_unsupported(SMALL "-w attn -V vanilla -b ref --dtype q4",
                       "unsupported: attention alone has no weights");
    expect_unsupported(SMALL "-w attn -V vanilla -b ref --dtype q4_1",
                       "unsupported: attention alone has no weights");
    expect_unsupported(SMALL "-w cross -V vanilla -b ref --dtype bf16",
                       "unsupported: projections of another text are f32");
    expect_unsupported(SMALL "-w attn --phase fwd_bwd -V xl -b ref --dtype bf16",
                       "unsupported: attention is trained in f32");
}
