/* SPDX-License-Identifier: MIT
 *
 * The jobs of a study before they run. */
#include "study_list.h"

#include "harness/measure/study_verdict.h"

enum status study_estimate(double **expected, const struct session *s,
                           const struct study_plan *plan, struct err *e)
{
    struct peaks peaks = {0};
    struct speeds speeds;
    const struct study_job *const job = plan->jobs;
    double *const of = need_room((size_t)max_int(1, plan->n), sizeof(*of));

    *expected = of;
    TRY(speeds_measure(&speeds, &peaks, &s->setup, s->topo, s->opt->pin,
                       plan->n > 0 ? job[0].model->o.threads.v[0] : 0, e));
    speeds.slow = load_slows(s->facts.row.load_1min, speeds.threads, s->facts.topo.allowed_cpus);
    for (int i = 0; i < plan->n; i++) {
        const bool again = i > 0 && job[i].model == job[i - 1].model &&
                           job[i].role == job[i - 1].role && job[i].steps == job[i - 1].steps;
        of[i] = again ? of[i - 1] : study_job_s(plan->study, &job[i], &speeds);
    }
    return OK;
}

void study_say_power(struct console *c, const struct study_plan *plan, double sd)
{
    const struct study *const s = plan->study;
    const int seeds = min_int(s->seeds, s->baseline_seeds);
    int models = 0, tested = 0;

    for (int i = 0; i < plan->n_models; i++) {
        models += !*plan->models[i].why;
        tested += !*plan->models[i].why && plan->models[i].control;
    }
    tested *= max_int(1, s->budgets.n);
    if (seeds >= STUDY_LEAST_SEEDS && tested > 0)
        console_note(
            c,
            "with a seed sd of %.3g, %d seeds and %d comparison%s a true difference of %.3g%s "
            "is shown in four of five such studies",
            sd, seeds, tested, plural(tested),
            least_shown(sd * sqrt(2.0 / seeds), (models - 1.0) * (seeds - 1), tested, s->effect),
            study_of_tasks(s) ? "" : " nats");
}

void study_list(const struct study_plan *plan, const double *expected, const struct options *opt)
{
    static const struct text_table_column columns[] = {
        {.name = "index", .number = true, .spare = 1},
        {.name = "group", .number = true, .spare = 1},
        {.name = "case_id", .spare = 1},
        {.name = "role"},
        {.name = "contender"},
        {.name = "control", .spare = 1},
        {.name = "size"},
        {.name = "corpus"},
        {.name = "seed", .number = true},
        {.name = "lr", .number = true},
        {.name = "parameters", .number = true, .spare = 1},
        {.name = "steps", .number = true, .spare = 1},
        {.name = "estimate_s", .number = true},
        {.name = "note", .least = 12, .spare = 1},
        {.name = "repro", .wide = true},
    };
    struct text_table t = {.column = columns, .columns = ARRAY_LEN(columns)};
    double sum = 0;
    int sure = 0;

    for (int i = 0; i < plan->n; i++) {
        const struct study_job *const j = &plan->jobs[i];
        const struct study_model *const m = j->model;
        char *const line = study_train_line(j, j->lr, j->steps);
        text_table_cell(&t, "%d", i);
        text_table_cell(&t, "%d", j->group);
        text_table_cell(&t, "%s", j->id);
        text_table_cell(&t, "%s", study_role_name[j->role]);
        text_table_cell(&t, "%s", m->variant->name);
        text_table_cell(&t, "%s", m->control ? m->control->name : "");
        text_table_cell(&t, "%s", m->size->name);
        text_table_cell(&t, "%s", m->corpus->name);
        text_table_cell(&t, "%d", j->seed);
        text_table_number(&t, "%g", j->lr);
        text_table_cell(&t, "%lld", (long long)m->parameters);
        text_table_cell(&t, "%d", j->steps);
        text_table_cell(&t, "%.3g", expected[i]);
        text_table_cell(&t, "%s",
                        *m->why        ? m->why
                        : *m->remark   ? m->remark
                        : j->maybe     ? "if the best rate is not among those before"
                        : isnan(j->lr) ? "at the best rate"
                                       : "");
        text_table_cell(&t, "%s", line);
        free(line);
        sum += j->maybe ? 0 : expected[i];
        sure += !j->maybe;
    }
    t.quiet = opt->quiet;
    text_table_print(stdout, &t, (enum format)opt->format);
    if (!opt->quiet)
        fprintf(stderr, "%d job%s, about %s\n", sure, plural(sure), duration_text(sum).s);
    text_table_free(&t);
}
