/* SPDX-License-Identifier: MIT
 *
 * Each variant in each workload, run once beside its control at one small size by the ref backend:
 * FLOP, bytes and output, none of which depends on the machine, and what the two models differ in. */
#include "harness/util/fileio.h"
#include "harness/worker/workload.h"
#include "list.h"
#include "variants/model/config/control.h"

/* Longer than most windows and blocks; more layers than one period of any stack; a cache of fewer
 * rows than there are. */
#define SIZES                                                                                      \
    "--seq 80 --mem %d --layers " LAYERS " --d-model 32 --heads 4 --d-inner 64 --set window=40"
#define LAYERS "6"
enum { LINE = 512 };

static const struct {
    enum workload workload;
    int mem;
} shown[] = {{WORK_LAYER, 80}, {WORK_SEGMENT, 80}, {WORK_DECODE, 240}, {WORK_TRAIN, 80}};

/* One case, run once. */
struct made {
    struct options o;
    struct plan plan;
    struct job job;
    bool opened;
    const struct bench_case *ran; /* NULL: it is skipped */
    struct err why_not;
};

static void skip(struct made *m, const char *why)
{
    static const char word[] = "unsupported: ";
    const size_t common = strncmp(why, word, strlen(word)) == 0 ? strlen(word) : 0;

    m->ran = NULL;
    fail(&m->why_not, E_UNSUPPORTED, "%s", why + common);
}

static enum status run_line(struct made *m, const char *line, uint64_t seed, struct err *e)
{
    TRY(options_parse_line(&m->o, line, e));
    m->o.seed = seed;
    TRY(plan_make(&m->plan, &m->o, e));
    m->ran = &m->plan.cases[m->plan.n - 1];
    if (m->ran->unsupported)
        return fail(e, E_UNSUPPORTED, "%s", m->ran->unsupported);
    m->opened = true;
    TRY(job_open(&m->job, m->ran, e));
    TRY(job_place(&m->job, NULL, NULL, e));
    job_run(&m->job);
    return OK;
}

/* The last case of `models`: variants and their options. Of several, one that is unsupported is no
 * error. */
static void make(struct made *m, const char *models, enum workload w, int mem, uint64_t seed)
{
    char line[LINE];
    struct err e;

    *m = (struct made){.opened = false};
    snprintf(line, sizeof(line), "-b ref --threads 1 -w %s " SIZES " -V %s", workload_name[w], mem,
             models);
    if (run_line(m, line, seed, &e) != OK)
        skip(m, e.msg);
}

static void drop(struct made *m)
{
    if (m->opened)
        job_close(&m->job);
    plan_free(&m->plan);
    options_free(&m->o);
}

/* ---- beside its control ------------------------------------------------------------------- */

static void run_moved(struct job *j)
{
    job_move_weights(j);
    job_run(j);
}

/* Why it computes what its control does. */
static const char *why_same(struct made *own, struct made *control, bool same_cost)
{
    const struct config *const c = &own->job.config;

    if (c->pos != control->job.config.pos && !workload_is_model(own->ran->workload))
        return "positions are added to the embedding, which one layer has not";
    if (c->recur != control->job.config.recur)
        return "it remembers other rows, and those of a timed case are drawn at random";
    if (own->ran->mem_kind == MEM_STATE && own->ran->mem)
        return "a state begins at zero, where decays do not show";
    if (c->layer_windows.n && c->layer_windows.at[0] >= own->ran->seq + own->ran->mem)
        return "its windows are longer than these texts";
    run_moved(&own->job);
    run_moved(&control->job);
    if (job_outputs_differ(&own->job, &control->job))
        return "its weights begin where it computes what its control does";
    return same_cost ? "it is its control" : "the same result of other work";
}

static void print_differences(FILE *to, const struct made *own, const struct made *control,
                              enum workload w)
{
    const struct config a = config_of_layers(&own->job.config, false);
    struct config b = config_of_layers(&control->job.config, false);

    b.max_seq = a.max_seq; /* which follows from its memory */
    const struct differences d = control_differences(&a, &b, workload_scope(w));
    for (int i = 0; i < d.n; i++)
        fprintf(to, "%s%s", i ? ", " : "", d.name[i]);
}

/* Of a case, or to its control; NAN where there is none. */
struct costs {
    double flop, bytes;
};

static struct costs costs_of(struct made *m)
{
    return m->ran ? (struct costs){job_flop(&m->job), job_bytes(&m->job)}
                  : (struct costs){NAN, NAN};
}

static void add_row(struct text_table *t, const struct variant *v, size_t at, uint64_t seed)
{
    const enum workload w = shown[at].workload;
    const int mem = v->bidirectional ? 0 : shown[at].mem;
    struct made *const own = need_room(2, sizeof(*own)), *const control = own + 1;
    struct bytes why;
    char models[64];
    FILE *const to = bytes_begin(&why);

    snprintf(models, sizeof(models), "%s,%s", variants[0]->name, v->name);
    make(own, models, w, mem, seed);
    if (v->control)
        make(control, v->control, w, mem, seed);
    const struct costs is = costs_of(own), of = costs_of(control);
    const bool both = own->ran && control->ran;
    const bool same = both && !job_outputs_differ(&own->job, &control->job);
    if (both)
        print_differences(to, own, control, w);
    if (same)
        fprintf(to, ": %s", why_same(own, control, is.flop == of.flop && is.bytes == of.bytes));
    if (!own->ran)
        fputs(own->why_not.msg, to);
    else if (!control->ran)
        fprintf(to, "%s%s", v->control ? "its control is skipped: " : "it has no control",
                control->why_not.msg);
    text_table_cell(t, "%s", workload_name[w]);
    text_table_cell(t, "%s", v->name);
    text_table_cell(t, "%s", v->control ? v->control : "");
    text_table_number(t, "%.0f", is.flop);
    text_table_number(t, "%.3f", is.flop / of.flop);
    text_table_number(t, "%.0f", is.bytes);
    text_table_number(t, "%.3f", is.bytes / of.bytes);
    text_table_cell(t, "%s", !own->ran ? "skipped" : !both ? "" : same ? "same" : "other");
    text_table_cell(t, "%s", bytes_end(to, &why));
    drop(own);
    drop(control);
    free(why.data);
    free(own);
}

/* ---- the command -------------------------------------------------------------------------- */

static const struct text_table_column rows_columns[] = {
    {.name = "workload"},
    {.name = "variant"},
    {.name = "control", .least = 8, .spare = 2},
    {.name = "flop", .number = true, .spare = 1},
    {.name = "flop_to_control", .number = true},
    {.name = "bytes", .number = true, .spare = 1},
    {.name = "bytes_to_control", .number = true},
    {.name = "result"},
    {.name = "why", .least = 20},
};

static enum status fill_rows(struct text_table *t, struct options *o, struct err *e)
{
    const struct variant *chosen[MAX_LOOKUP];
    int n = 0;

    if (options_given(o, "variant"))
        TRY(lookup_variants(chosen, &n, o, e));
    else
        for (; variants[n]; n++)
            chosen[n] = variants[n];
    for (size_t w = 0; w < ARRAY_LEN(shown); w++)
        for (int i = 0; i < n; i++)
            add_row(t, chosen[i], w, o->seed);
    return OK;
}

const struct listing list_of_rows = LISTING(rows_columns, .fill = fill_rows, .taken = "variant");
