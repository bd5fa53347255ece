/* SPDX-License-Identifier: MIT
 *
 * How long the jobs of a study take, for its estimate before they run. */
#include "study_jobs.h"

#include "harness/learn/train/train_play.h"

/* Seconds of playing and learning: an action is drawn from a forward pass of the segment so far, half
 * of it in the mean. */
static double play_s(const struct study *s, const struct study_job *j, double step_s)
{
    const double forward = 1 / 3.0; /* of a step without playing */
    const struct options *const o = &j->model->o;
    const int L = o->seq.v[0], steps = j->steps - j->before;
    const double play = step_s * forward * (0.5 * L + 1);
    struct options eval = {0};
    struct task task;

    if (task_parse(&task, j->model->corpus->train, NULL) != OK ||
        options_parse_line(&eval, s->eval, NULL) != OK)
        return 0;
    const double batch = play * ceil((double)task_length(&task) / L) / o->batch.v[0];
    const double validations = ceil((double)steps / o->eval_every);
    const double episodes = validations * PLAY_VALID + (j->role == STUDY_FINAL ? eval.episodes : 0);
    options_free(&eval);
    return steps * (step_s + play) + batch * episodes;
}

/* Segments that score the job's model, and the processes that do it. */
static double scored_segments(const struct study *s, const struct study_job *j, int *processes)
{
    char *const line = study_eval_line(s, j, "study");
    struct options o = {0};
    struct stat text;
    double segments = 0;
    struct err e;

    *processes = 0;
    if (j->role == STUDY_FINAL && *j->model->corpus->test &&
        options_parse_again(&o, line, &e) == OK) {
        const bool file = stat(j->model->corpus->test, &text) == 0;
        const double all = file ? (double)text.st_size : SOURCE_TOKENS;
        *processes = o.seq.n * o.mem.n;
        for (int i = 0; i < o.seq.n; i++)
            segments += o.mem.n * (o.bytes > 0 ? fmin(o.bytes, all) : all) / o.seq.v[i];
    }
    options_free(&o);
    free(line);
    return segments;
}

double study_job_s(const struct study *s, const struct study_job *j, const struct speeds *speeds)
{
    const double alone = 0.5;   /* a segment's forward pass by itself, of its share of a step */
    const double rest_s = 4e-4; /* of a step besides products, measured with one small layer */
    const struct study_model *const m = j->model;
    const struct options *const o = &m->o;
    const struct bench_case c = {.variant = m->config.variant,
                                 .backend = backend_find(o->backends.v[0]),
                                 .workload = WORK_TRAIN,
                                 .phase = PHASE_FWD_BWD,
                                 .mem_kind = mem_usual(variant_mem(m->config.variant), true),
                                 .seq = m->config.max_seq, /* with the past of what recomputes it */
                                 .mem = m->config.mem_len,
                                 .batch = o->batch.v[0],
                                 .layers = o->layers.v[0],
                                 .threads = o->threads.v[0],
                                 .config = m->config,
                                 .opt = o};

    if (*m->why)
        return 0;
    const double step = estimate_call_s(&c, speeds) + rest_s;
    if (m->corpus->is_task)
        return play_s(s, j, step) + speeds->start_s * (1 + (j->role == STUDY_FINAL));
    const double segment = alone * step / o->batch.v[0];
    const int steps = j->steps - j->before,
              validations = (steps + o->eval_every - 1) / o->eval_every;
    int processes;
    const double scored = scored_segments(s, j, &processes);
    return steps * step + segment * (validations * (double)VALID_TOKENS / o->seq.v[0] + scored) +
           speeds->start_s * (1 + processes);
}
