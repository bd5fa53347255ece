/* SPDX-License-Identifier: MIT
 *
 * The workload request: with caches and states it computes what one pass over the same tokens
 * computes; its costs are sums over its tokens; its times are those between its marks. */
#include "harness/worker/token_times.h"
#include "harness/worker/workload.h"
#include "tests/support/command_line.h"
#include "tests/support/started_job.h"

enum { PROMPT = 7, NEW = 5, READ = PROMPT + NEW - 1 };

/* The first case of a line, placed, with weights that are not those of the beginning, and run. */
static void must_run(struct job *j, struct plan p)
{
    cr_assert_eq(p.n, 1, "%d cases", p.n);
    must_start(j, p.cases);
    job_move_weights(j);
    lm_forget(&j->lm.lm); /* convolutions have rows in front of a segment, too */
    job_run(j);
}

#define SIZES "--batch 2 --d-model 24 --heads 3 --d-inner 40 --layers 6 --threads 1"

/* What they compute depends on where a text is cut. */
static bool depends_on_cuts(const char *variant)
{
    EACH_TEXT (name, "compressive", "erniedoc", "memformer", "summary")
        if (strcmp(variant, name) == 0)
            return true;
    return false;
}

/* Of each sequence the rows that choose new tokens, against those of one pass over all tokens. */
static void expect_rows(const char *name, const struct job *request, const struct job *pass)
{
    const int V = request->out_shape[2];
    double most = 0, largest = 0;

    cr_assert_eq(request->out_shape[1], NEW);
    cr_assert_eq(pass->out_shape[1], READ);
    for (int b = 0; b < 2; b++)
        for (int i = 0; i < NEW * V; i++) {
            const double got = request->out[b * NEW * V + i];
            const double want = pass->out[(b * READ + PROMPT - 1) * V + i];
            most = fmax(most, fabs(got - want));
            largest = fmax(largest, fabs(want));
        }
    cr_expect(most <= 2e-5 * largest, "%s: differs by %g of %g", name, most, largest);
}

Test(request, computes_what_one_pass_does, .timeout = 300)
{
    int compared = 0;

    for (int i = 0; variants[i]; i++) {
        const char *const name = variants[i]->name;
        struct job request, pass;

        if (depends_on_cuts(name))
            continue;
        const char *const line =
            kept_text("-w request -b ref -V %s --mem %d --seq %d " SIZES, name, PROMPT, NEW);
        struct plan p;
        if (try_plan(&p, line, &failure) != OK || p.cases->unsupported)
            continue;
        must_run(&request, p);
        must_run(&pass, planned("-w segment -b ref -V %s --mem 0 --seq %d " SIZES, name, READ));
        if (request.out_shape[2] > 1)
            expect_rows(name, &request, &pass);
        compared += request.out_shape[2] > 1;
    }
    cr_expect_gt(compared, 80);
}

/* Reading again costs what is read again. */
Test(request, costs_are_sums)
{
    struct job cached, again;

    must_run(&cached, planned("-w request -b ref -V alibi --mem 7 --seq 5 --mem-kind kv " SIZES));
    must_run(&again,
             planned("-w request -b ref -V vanilla --mem-kind recompute --mem 7 --seq 5 " SIZES));
    double once = 0, anew = 0;
    for (int t = 0; t < NEW; t++) {
        once += lm_flop(&cached.lm.lm, 2, t ? 1 : PROMPT, t ? PROMPT + t - 1 : 0, 1);
        anew += lm_flop(&again.lm.lm, 2, PROMPT + t, 0, 1);
    }
    NUMBERS({job_flop(&cached), once}, {job_flop(&again), anew});
    cr_expect(anew > 2 * once);
    cr_expect(job_bytes(&again) > 0 && job_bytes(&cached) > 0);
    cr_expect_eq(job_tokens(&cached), 2 * NEW);
}

/* Two runs with a clock that counts. */
static int64_t now;
static int64_t tick(void) { return now; }

Test(request, times_between_marks)
{
    struct token_times t = {0};
    struct sample s = {0};
    int64_t at[4];
    struct job j = {.mark_ns = at, .n_marks = 4};

    memcpy(at, (const int64_t[]){100, 150, 157, 160}, sizeof(at));
    cr_assert_eq(token_times_reserve(&t, &j, 2, &failure), OK);
    token_times_add(&t, &j);
    memcpy(at, (const int64_t[]){0, 70, 71, 76}, sizeof(at));
    token_times_add(&t, &j);
    token_times_put(&t, &s);
    cr_expect_eq(s.first_ns, 60); /* 50 and 70 */
    cr_expect_eq(s.token_ns, 3);  /* of 1 3 5 7, the lower of those in the middle */
    cr_expect_eq(s.token_p99_ns, 7);

    s = (struct sample){0};
    token_times_put(&t, &s); /* a block begins anew */
    cr_expect(s.first_ns == 0 && s.token_ns == 0 && s.token_p99_ns == 0);

    struct job m;
    must_run(&m, planned("-w request -b ref -V xl --mem 3 --seq 2 " SIZES));
    cr_expect_eq(m.n_marks, 3);
    m.clock_ns = tick;
    now = 42;
    job_run(&m);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(m.mark_ns[i], 42);
    token_times_free(&t);
}
