/* SPDX-License-Identifier: MIT
 *
 * The command of each system on docs/systems.md runs its idea: at small sizes its output is not that
 * of its control. */
#include "harness/worker/workload.h"
#include "tests/support/command_line.h"
#include "tests/support/started_job.h"
#include "variants/systems.h"

/* A model's output is that of the second segment, unless its positions end with the first: its memory is
 * then its own. */
static void run(struct job *j, const struct bench_case *c)
{
    must_start(j, c);
    job_move_weights(j);
    job_run(j);
    if (workload_is_model(c->workload) && !config_mem(&c->config)->cached) {
        lm_commit(&j->lm.lm, j->shape.L);
        job_run(j);
    }
}

/* Of the same sizes as the case. A variant without a control is that of its own options. */
static struct plan plan_control(const struct bench_case *c)
{
    const struct plan p =
        planned("-b ref --threads 1 --d-model 32 --heads 4 --d-inner 64 --seq %d -w %s --layers %d "
                "--mem %d -V %s",
                c->seq, workload_name[c->workload], c->layers, c->mem,
                c->variant->control ? c->variant->control : c->variant->name);

    cr_assert_eq(p.n, 1, "%d cases", p.n);
    return p;
}

/* Returns 0 for what has no control: the first variant itself. */
static int expect_its_idea(const struct system *s, const struct bench_case *c)
{
    const struct plan p = plan_control(c);
    struct job own, control;

    const bool itself = strcmp(c->repro, p.cases->repro) == 0;
    if (!itself) {
        run(&own, c);
        run(&control, p.cases);
        cr_expect(job_outputs_differ(&own, &control), "%s: %s computes what %s does", s->name,
                  c->repro, p.cases->repro);
    }
    cr_expect(!itself || !c->variant->control, "%s: %s is its control", s->name, s->run);
    return !itself;
}

Test(systems_run, each_command_runs_its_idea, .timeout = 300)
{
    int n = 0, themselves = 0;

    for (const struct system *s = systems; s->name; s++) {
        if (!s->run || strncmp(s->run, "train ", strlen("train ")) == 0)
            continue;
        struct plan p =
            planned("-b ref --threads 1 --d-model 32 --heads 4 --d-inner 64 --seq 160%s %s",
                    strstr(s->run, "--mem ") ? "" : " --mem 80", s->run);
        plan_drop_unsupported(&p);
        cr_expect_gt(p.n, 0, "%s: %s runs nothing", s->name, s->run);
        for (int i = 0; i < p.n; i++, n++)
            themselves += !expect_its_idea(s, &p.cases[i]);
    }
    cr_expect_gt(n, 100);
    cr_expect_eq(themselves, 3,
                 "the first variant, in a layer, in cross attention, with an encoder");
}
