/* SPDX-License-Identifier: MIT
 *
 * Planning a study. */
#include "study_jobs.h"

#include "harness/cli/option_words.h"
#include "harness/learn/train/train.h"

#include <xxhash.h>

const char *const study_role_name[] = {"tune", "final"};

/* Options that a study says by its own keys, or decides. */
static const char *const own_train[] = {"ckpt",     "corpus",  "valid",   "lr",     "seed",
                                        "steps",    "minutes", "stop-at", "resume", "force",
                                        "progress", "task",    NULL};
static const char *const own_budgets[] = {"schedule", "lr-decay", NULL};
static const char *const own_eval[] = {"ckpt",    "corpus", "resume",   "out",     "format",  "raw",
                                       "columns", "strict", "progress", "threads", "backend", NULL};
static const char *const eval_of_tasks[] = {"pin", "max-isa", "huge-pages", NULL};

static enum status refuse_own(const struct options *o, const char *const *own, struct err *e)
{
    for (; *own; own++)
        if (options_typed(o, *own))
            return fail(e, E_USAGE,
                        "--%s is not an option for the file of a study  -> see: bench help study",
                        *own);
    return OK;
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* Do the file's words say the number of threads? */
static bool says_threads(const struct study *s, const struct study_model *m)
{
    struct options o;
    struct bytes b;
    FILE *const f = bytes_begin(&b);

    fprintf(f, "%s %s %s", m->variant->words, m->size->words, s->train);
    char *const line = bytes_end(f, &b);
    const bool says = options_parse_line(&o, line, NULL) == OK && o.threads.n > 0;
    options_free(&o);
    free(line);
    return says;
}

/* What --threads and --backend of the command are, on a line. A run that goes on has a number of
 * threads in any case, the machine's if none was written: the file's comes first. */
static void print_placement(FILE *f, const struct study *s, const struct study_model *m,
                            const struct options *opt)
{
    if (opt->threads.n > 0 && (options_written(opt, "threads") || !says_threads(s, m)))
        fprintf(f, " --threads %d", opt->threads.v[0]);
    if (options_given(opt, "backend"))
        word_print_option(f, "backend", opt->backends.v[0], '\0');
}

/* The options of a group's trainings but its width, text, rate, seed and checkpoint. A task is among
 * them: some options are for tasks only. */
static char *shape_line(const struct study *s, const struct study_model *m,
                        const struct options *opt)
{
    struct bytes b;
    FILE *const f = bytes_begin(&b);

    const enum skeleton skeleton = study_skeleton(s, m->variant);
    fprintf(f, "bench train %s %s %s", m->variant->words, m->size->words, s->train);
    if (skeleton == (enum skeleton)s->skeleton && skeleton)
        fprintf(f, " --skeleton %s", skeleton_name[skeleton]);
    fputs(s->budgets.n ? " --schedule wsd --lr-decay 0.2" : "", f); /* see stable_steps */
    print_placement(f, s, m, opt);
    if (m->corpus->is_task)
        word_print_option(f, "task", m->corpus->train, '\0');
    return bytes_end(f, &b);
}

char *study_train_line(const struct study_job *j, double lr, int steps)
{
    const struct options *const o = &j->model->o;
    struct bytes b;
    FILE *const f = bytes_begin(&b);

    fprintf(f, "%s --steps %d --threads %d", j->model->line, steps, o->threads.v[0]);
    word_print_option(f, "backend", o->backends.v[0], '\0');
    if (!isnan(lr))
        fprintf(f, " --lr %.12g", lr);
    fprintf(f, " --seed %d", j->seed);
    return bytes_end(f, &b);
}

/* The lengths of the training, where the file does not say others. */
static void print_lengths(FILE *f, const struct study *s, const struct options *trained)
{
    struct options o = {0};
    char mem[MEM_TEXT];

    NEED(options_parse_line(&o, s->eval, NULL) == OK); /* read before */
    if (!options_given(&o, "seq"))
        fprintf(f, " --seq %d", trained->seq.v[0]);
    mem_text(mem, trained->mem.v[0]);
    if (!options_given(&o, "mem"))
        fprintf(f, " --mem %s", mem);
    options_free(&o);
}

char *study_eval_line(const struct study *s, const struct study_job *j, const char *ckpt)
{
    const struct options *const o = &j->model->o;
    struct bytes b;
    FILE *const f = bytes_begin(&b);

    fprintf(f, "bench eval %s", s->eval);
    if (!study_of_tasks(s)) /* whose checkpoints know theirs, and the task */
        print_lengths(f, s, o);
    fprintf(f, " --threads %d", o->threads.v[0]);
    word_print_option(f, "backend", o->backends.v[0], '\0');
    if (!study_of_tasks(s))
        word_print_option(f, "corpus", j->model->corpus->test, '\0');
    word_print_option(f, "ckpt", ckpt, '\0');
    return bytes_end(f, &b);
}

/* ---- models --------------------------------------------------------------------------------- */

/* Read the group's line; `m->o` and `m->config` are those of a training. */
static enum status settle(struct study_model *m, const char *line, int threads, int vocab,
                          struct err *e)
{
    options_free(&m->o);
    enum status st = options_parse_again(&m->o, line, e);
    if (!m->o.ckpt) /* each job has its own */
        m->o.ckpt = "study";
    if (st == OK)
        st = train_settle(&m->o, threads, e);
    if (st == OK || st == E_UNSUPPORTED) /* all is settled but that it cannot be */
        st = train_config(&m->config, variant_find(m->o.variants.v[0]), &m->o, vocab, e);
    if (st == E_UNSUPPORTED) {
        snprintf(m->why, sizeof(m->why), "%.255s", e->msg);
        st = OK;
    }
    return st == OK ? config_check(&m->config, e) : st;
}

static enum status count(int64_t *parameters, const struct config *c, struct err *e)
{
    struct lm lm = {0};
    const enum status st = lm_init(&lm, c, e);

    *parameters = 0;
    for (int i = 0; i < lm.params.n && st == OK; i++)
        *parameters += (int64_t)lm.params.v[i].n;
    lm_free(&lm);
    return st;
}

/* Parameters at a feed-forward layer of this width. */
static enum status count_at(int64_t *parameters, const struct study_model *m, int width,
                            struct err *e)
{
    struct config c = m->config;

    c.F = width;
    TRY(config_check(&c, e));
    return count(parameters, &c, e);
}

/* The width nearest to `target` parameters, a multiple of 8 if that is within 1 %. Parameters are a
 * line in the width. 0: there is none. */
static int equal_width(int64_t low, int64_t high, int64_t target, int D)
{
    const int64_t slope = (high - low) / (2 * D);

    if (slope <= 0)
        return llabs(low - target) * 100 <= target ? 2 * D : 0;
    for (int step = 8; step > 0; step /= 2) {
        const int64_t more = ((target - low) / slope + step / 2) / step * step;
        const int64_t off = low + more * slope - target;
        if (more >= 0 && llabs(off) * 100 <= target)
            return 2 * D + (int)more;
    }
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The largest number of parameters that sets the others': three times the median. What has more has
 * its tables, memories or experts, which no feed-forward layer makes up for. */
static int64_t largest_usual(const struct study_model *m, const int64_t *low, int n)
{
    int64_t *const sorted = need_room((size_t)max_int(1, n), sizeof(*sorted)), most = 0;
    int trained = 0;

    for (int i = 0; i < n; i++)
        if (!*m[i].why)
            sorted[trained++] = low[i];
    qsort(sorted, (size_t)trained, sizeof(*sorted), by_number);
    for (int i = 0; i < trained; i++)
        most = sorted[i] <= 3 * sorted[trained / 2] ? sorted[i] : most;
    free(sorted);
    return most;
}

/* The largest of the models at a feed-forward layer of twice the width sets the number of
 * parameters, but for those far above the others; the others' feed-forward layers grow until they
 * have as many. What cannot have as many keeps its usual width, and its rows say so. */
static enum status widen(struct study_model *m, int n, int64_t *low, int64_t *high, struct err *e)
{
    for (int i = 0; i < n; i++) {
        if (*m[i].why)
            continue;
        if (options_typed(&m[i].o, "d-inner"))
            return fail(e, E_USAGE,
                        "--d-inner of %s and equal-parameters = yes exclude each other  -> leave "
                        "one of them out",
                        m[i].variant->name);
        TRY(count_at(&low[i], &m[i], 2 * m[i].config.D, e));
        TRY(count_at(&high[i], &m[i], 4 * m[i].config.D, e));
    }
    const int64_t target = largest_usual(m, low, n);
    for (int i = 0; i < n; i++) {
        if (*m[i].why)
            continue;
        const int width = equal_width(low[i], high[i], target, m[i].config.D);
        char *line = NULL;
        if (width == 0) {
            snprintf(m[i].remark, sizeof(m[i].remark),
                     "no width gives it the %lld parameters of the others", (long long)target);
            continue;
        }
        NEED(asprintf(&line, "%s --d-inner %d", m[i].line, width) >= 0);
        free(m[i].line);
        m[i].line = line;
        TRY(settle(&m[i], line, m[i].o.threads.v[0], m[i].config.V, e));
    }
    return OK;
}

static enum status equalise(struct study_model *m, int n, struct err *e)
{
    int64_t *const counts = need_room(2 * (size_t)max_int(1, n), sizeof(*counts));

    const enum status st = widen(m, n, counts, counts + n, e);
    free(counts);
    return st;
}

static int steps_of(const struct study_model *m, int tokens)
{
    CHECK(m->o.batch.n > 0 && m->o.batch.v && m->o.seq.n > 0 && m->o.seq.v); /* it is settled */
    const double a_step = (double)m->o.batch.v[0] * m->o.seq.v[0];

    return (int)fmax(1, ceil(tokens / a_step));
}

/* Text and budget of a model whose line has the shape. */
static enum status complete(struct study_model *m, const struct study *s, struct err *e)
{
    struct bytes b;
    FILE *const f = bytes_begin(&b);

    m->steps = s->steps ? s->steps : steps_of(m, s->tokens);
    m->tune_steps = s->tune_tokens ? steps_of(m, s->tune_tokens) : m->steps;
    fputs(m->line, f);
    if (!m->corpus->is_task)
        word_print_option(f, "corpus", m->corpus->train, '\0');
    if (m->corpus->valid)
        word_print_option(f, "valid", m->corpus->valid, '\0');
    free(m->line);
    m->line = bytes_end(f, &b);
    TRY(settle(m, m->line, m->o.threads.v[0], m->config.V, e));
    return *m->why ? OK : count(&m->parameters, &m->config, e);
}

/* Symbols of a model of the text, or of one that plays the task. */
static enum status read_vocab(int *vocab, const struct study_corpus *corpus, struct err *e)
{
    struct corpus text;
    struct task task;

    if (corpus->is_task) {
        TRY(task_parse(&task, corpus->train, e));
        *vocab = player_symbols(&task);
        return OK;
    }
    TRY(corpus_open(&text, corpus->train, SPLIT_TRAIN, 4096, e));
    *vocab = text.vocab;
    corpus_close(&text);
    return OK;
}

/* What the file says of a training, but not by keys of its own. */
static enum status check_train(const struct study *s, const struct study_model *m, struct err *e)
{
    struct options o = {0};
    char *line = NULL;

    NEED(asprintf(&line, "bench train %s %s %s", m->variant->words, m->size->words, s->train) >= 0);
    enum status st = options_parse_again(&o, line, e);
    if (st == OK)
        st = refuse_own(&o, own_train, e);
    if (st == OK && s->budgets.n)
        st = refuse_own(&o, own_budgets, e);
    options_free(&o);
    free(line);
    return st;
}

/* Are others compared with the i-th variant, or it with none? */
static bool is_baseline(const struct study *s, int i)
{
    const struct study_item *const v = s->variants.v;
    bool is = v[i].control < 0;

    for (int k = 0; k < s->variants.n; k++)
        is = is || v[k].control == i;
    return is;
}

/* A model of each variant of a study, baselines first. */
static void put_in_order(struct study_model *m, const struct study *s)
{
    const struct study_item *const v = s->variants.v;
    const int n = s->variants.n;
    int at = 0;

    for (int others = 0; others < 2; others++)
        for (int i = 0; i < n; i++)
            if (is_baseline(s, i) != others)
                m[at++] =
                    (struct study_model){.variant = &v[i],
                                         .control = v[i].control < 0 ? NULL : &v[v[i].control],
                                         .baseline = !others};
    for (int i = 0; i < n; i++) {
        const struct study_item *from = m[i].variant;
        while (from->rates >= 0)
            from = &v[from->rates];
        for (int k = 0; k < n; k++)
            if (m[k].variant == from)
                m[i].rates = &m[k];
    }
}

/* All models at one size on one text. */
static enum status make_models(struct study_model *m, const struct study *s,
                               const struct study_corpus *corpus, const struct study_item *size,
                               const struct options *opt, struct err *e)
{
    int vocab;

    TRY(read_vocab(&vocab, corpus, e));
    put_in_order(m, s);
    for (int i = 0; i < s->variants.n; i++) {
        m[i].corpus = corpus;
        m[i].size = size;
        m[i].line = shape_line(s, &m[i], opt);
        enum status st = check_train(s, &m[i], e);
        if (st == OK)
            st = settle(&m[i], m[i].line, opt->default_threads, vocab, e);
        if (st != OK) {
            const struct err why = *e;
            return fail(e, st, "variant %s, size %s: %.500s", m[i].variant->name, size->name,
                        why.msg);
        }
    }
    if (s->equal_parameters)
        TRY(equalise(m, s->variants.n, e));
    for (int i = 0; i < s->variants.n; i++)
        TRY(complete(&m[i], s, e));
    study_find_same(m, s->variants.n);
    return OK;
}

/* ---- jobs ----------------------------------------------------------------------------------- */

static void name_job(struct study_job *j, const struct study *s)
{
    const struct study_model *const m = j->model;
    char *const line = study_train_line(j, j->lr, j->steps), *text = NULL;

    CHECK(m->variant && m->size && m->corpus);
    NEED(asprintf(&text, "%s %s %s %s %s %s %s", study_role_name[j->role], m->variant->name,
                  m->size->name, m->corpus->name, m->corpus->test, s->eval, line) >= 0);
    snprintf(j->id, sizeof(j->id), "%016llx", (unsigned long long)XXH3_64bits(text, strlen(text)));
    free(text);
    free(line);
}

static enum status add_job(struct study_plan *p, const struct study_job *job, struct err *e)
{
    TRY(GROW(p->jobs, p->n, e));
    p->jobs[p->n] = *job;
    name_job(&p->jobs[p->n++], p->study);
    return OK;
}

/* The last step of a training of wsd at which it does not matter when it ends: the rate falls in the last
 * fifth. Strictly before it, so that no rounding makes a difference. */
static int stable_steps(int steps) { return (int)((4LL * steps - 1) / 5); }

/* Jobs at the chosen rate, a seed each. Auxiliary losses end with the progress of a training, so that
 * trainings of two budgets share nothing. */
static enum status add_finals(struct study_plan *p, struct study_job job, struct err *e)
{
    const struct study *const s = p->study;
    const struct study_model *const m = job.model;
    const int seeds = m->baseline ? s->baseline_seeds : s->seeds;

    for (int k = 0, before = 0; k == 0 || k < s->budgets.n; k++) {
        job.budget = s->budgets.n ? s->budgets.v[k] : 0;
        job.steps = job.budget ? steps_of(m, job.budget) : m->steps;
        job.stable =
            k + 1 < s->budgets.n && m->config.aux_layers == 0 ? stable_steps(job.steps) : 0;
        job.before = before;
        before = job.stable;
        for (job.seed = 1; job.seed <= seeds; job.seed++)
            TRY(add_job(p, &job, e));
    }
    return OK;
}

static enum status add_group(struct study_plan *p, int group, struct err *e)
{
    const struct study *const s = p->study;
    const struct study_model *const m = &p->models[group];
    const bool chosen = s->n_rates > 1 && !*m->why, tunes = chosen && m->rates == m;
    struct study_job job = {.model = m, .group = group, .role = STUDY_TUNE, .steps = m->tune_steps};

    for (int r = 0; r < s->n_rates && tunes; r++)
        for (job.seed = 1; job.seed <= s->tune_seeds; job.seed++) {
            job.lr = s->rates[r];
            job.maybe = s->search && r > 2;
            TRY(add_job(p, &job, e));
        }
    job.role = STUDY_FINAL;
    job.maybe = false;
    job.lr = chosen || *m->why ? NAN : s->rates[0];
    return add_finals(p, job, e);
}

/* The options of the scores: one line, tried with a name in place of a checkpoint. */
static enum status check_eval(const struct study *s, struct err *e)
{
    struct options o = {0};
    char *line = NULL;

    NEED(asprintf(&line, "bench eval %s", s->eval) >= 0);
    enum status st = options_parse_again(&o, line, e);
    if (st == OK)
        st = refuse_own(&o, own_eval, e);
    if (st == OK && study_of_tasks(s))
        st = options_refuse(&o, "a study of tasks", eval_of_tasks, e);
    if (st != OK) {
        const struct err why = *e;
        fail(e, st, "%.200s, eval: %.400s", s->path, why.msg);
    }
    options_free(&o);
    free(line);
    return st;
}

enum status study_plan_make(struct study_plan *p, const struct study *s, const struct options *opt,
                            struct err *e)
{
    const int n = s->variants.n;
    struct shard_of shard;

    *p = (struct study_plan){.study = s, .n_models = n * s->sizes.n * s->n_corpora};
    TRY(check_eval(s, e));
    if (opt->threads.n > 1 || opt->backends.n > 1)
        return fail(e, E_USAGE,
                    "study takes one value of --threads and of --backend  -> give one each");
    TRY(shard_read(&shard, opt->shard, p->n_models, e));
    p->models = need_room((size_t)max_int(1, p->n_models), sizeof(*p->models));
    for (int c = 0; c < s->n_corpora; c++)
        for (int z = 0; z < s->sizes.n; z++)
            TRY(make_models(&p->models[(c * s->sizes.n + z) * n], s, &s->corpora[c], &s->sizes.v[z],
                            opt, e));
    for (int g = 0; g < p->n_models; g++)
        if ((p->models[g].rates - p->models) % shard.n == shard.i)
            TRY(add_group(p, g, e));
    return OK;
}

void study_plan_free(struct study_plan *p)
{
    for (int i = 0; i < p->n_models && p->models; i++) {
        options_free(&p->models[i].o);
        free(p->models[i].line);
    }
    free(p->models);
    free(p->jobs);
    *p = (struct study_plan){0};
}
