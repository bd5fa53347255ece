/* SPDX-License-Identifier: MIT
 *
 * bench merge: the shards of one sweep or study become one run. They must have been made with the
 * same options, be complete (unless --partial), and have no case in common. Shards of unlike
 * machines are kept as they are: a row says its host_id, and env.csv has a row for each. Rows are
 * written in the order of the unsharded sweep: a shard has every n-th group, so groups are taken
 * from the shards in turn. */
#include "commands.h"
#include "harness/learn/study/study_file.h"
#include "harness/table/keys.h"
#include "harness/table/run.h"
#include "harness/table/rundir.h"

#include "harness/cli/build.h"

struct shard {
    struct run run;
    char *options; /* without the line of the shard */
    char command[TEXT_SIZE];
    struct rows study; /* of a study */
    struct bytes file; /* that describes it */
    int i, n;
    size_t at; /* next row of latency, or of the study */
};

static bool is_study(const struct shard *s) { return strcmp(s->command, "study") == 0; }

struct merge {
    struct shard *shard; /* [n], by number after check_shards */
    int n;
    bool partial; /* shards may be missing */
    int lacks;    /* those that are */
    int code;     /* exit code of the whole */
    struct rundir out;
    int rows[ROW_STATUS_COUNT];
    struct study_row *jobs; /* of all shards */
    size_t n_jobs;
};

/* ---- reading ------------------------------------------------------------------------------ */

/* Take the line "shard=I/N" out of the options. False if there is none. */
static bool take_shard(struct shard *s)
{
    static const char name[] = "shard=";
    char *line = s->options;

    while (line && strncmp(line, name, sizeof(name) - 1) != 0) {
        line = strchr(line, '\n');
        line += line != NULL;
    }
    if (!line || sscanf(line + sizeof(name) - 1, "%d/%d", &s->i, &s->n) != 2)
        return false;
    char *end = strchr(line, '\n');
    memmove(line, end ? end + 1 : "", strlen(end ? end + 1 : "") + 1);
    return true;
}

static enum status read_study(struct shard *s, const char *dir, struct err *e)
{
    char path[FILE_PATH];

    TRY(run_table(&s->study, dir, TABLE_STUDY, e));
    TRY(file_join(path, dir, study_copy, e));
    return file_read(&s->file, path, e);
}

static enum status read_shard(struct shard *s, const char *word, struct err *e)
{
    char started[TEXT_SIZE], dir[FILE_PATH];
    const enum status found = rundir_find(dir, ".", word, e);

    if (found != OK)
        return fail(e, found, "no run in %.400s  -> give the folders of shards", word);
    TRY(runjson_read(dir, &s->options, started, e));
    if (!take_shard(s))
        return fail(e, E_USAGE, "%s is not a shard  -> merge runs made with --shard I/N", dir);
    TRY(run_read(&s->run, dir, e));
    TRY(runjson_command(dir, s->command, e));
    if (is_study(s))
        TRY(read_study(s, dir, e));
    run_note_doubled(dir, s->run.latency.doubled + s->run.perplexity.doubled + s->study.doubled);
    return OK;
}

/* ---- checking ----------------------------------------------------------------------------- */

static int shard_order(const void *a, const void *b)
{
    return ((const struct shard *)a)->i - ((const struct shard *)b)->i;
}

/* The first difference of two option texts, for the message. */
static void first_difference(const char *a, const char *b, char *buf, size_t size)
{
    while (*a && *b && strcspn(a, "\n") == strcspn(b, "\n") &&
           memcmp(a, b, strcspn(a, "\n")) == 0) {
        a += strcspn(a, "\n") + 1;
        b += strcspn(b, "\n") + 1;
    }
    snprintf(buf, size, "%.*s, %.*s", min_int(100, (int)strcspn(a, "\n")), a,
             min_int(100, (int)strcspn(b, "\n")), b);
}

/* --partial: it is said, not refused. */
static enum status missing(struct merge *m, int i, int n, struct err *e)
{
    if (!m->partial)
        return fail(e, E_USAGE,
                    "shard %d/%d is missing  -> run it, give its folder, or merge with --partial",
                    i, n);
    m->lacks++;
    text_line(stderr, "warning: shard %d/%d is missing: the run is partial", i, n);
    return OK;
}

static enum status check_shards(struct merge *m, struct err *e)
{
    int next = 1;

    qsort(m->shard, (size_t)m->n, sizeof(*m->shard), shard_order);
    for (int i = 0; i < m->n; i++) {
        const struct shard *s = &m->shard[i], *first = &m->shard[0];
        char where[256];
        if (strcmp(s->options, first->options) != 0) {
            first_difference(first->options, s->options, where, sizeof(where));
            return fail(e, E_USAGE,
                        "%s and %s have different options: %s  -> merge shards of one sweep",
                        first->run.dir, s->run.dir, where);
        }
        if (strcmp(s->command, first->command) != 0 || s->file.n != first->file.n ||
            (s->file.n > 0 && memcmp(s->file.data, first->file.data, s->file.n) != 0))
            return fail(e, E_USAGE, "%s and %s are of different studies  -> merge shards of one",
                        first->run.dir, s->run.dir);
        if (s->n != first->n)
            return fail(e, E_USAGE,
                        "%s is 1 of %d shards, %s 1 of %d  -> merge shards of one sweep",
                        first->run.dir, first->n, s->run.dir, s->n);
        if (s->i < next)
            return fail(e, E_USAGE, "shard %d/%d twice: %s  -> give it once", s->i, s->n,
                        s->run.dir);
        for (; next < s->i; next++)
            TRY(missing(m, next, s->n, e));
        next = s->i + 1;
    }
    for (; next <= m->shard[0].n; next++)
        TRY(missing(m, next, m->shard[0].n, e));
    return OK;
}

struct claim {
    const char *id;
    const struct shard *by;
};

static int claim_order(const void *a, const void *b)
{
    return strcmp(((const struct claim *)a)->id, ((const struct claim *)b)->id);
}

static const struct rows *rows_of(const struct shard *s, enum table_id t)
{
    return t == TABLE_STUDY ? &s->study : &s->run.table[t];
}

/* No case may come from two shards, or twice from one. */
static enum status check_disjoint(const struct merge *m, enum table_id t, struct err *e)
{
    size_t n = 0, total = 0;
    enum status st = OK;

    for (int i = 0; i < m->n; i++)
        total += rows_of(&m->shard[i], t)->n;
    struct claim *const claim = need_room(total + 1, sizeof(*claim));
    for (int i = 0; i < m->n; i++)
        for (size_t k = 0; k < rows_of(&m->shard[i], t)->n; k++) {
            const char *row = (const char *)rows_of(&m->shard[i], t)->row + k * tables[t].row_size;
            claim[n++] = (struct claim){row_text(&tables[t], row, "case_id"), &m->shard[i]};
        }
    qsort(claim, n, sizeof(*claim), claim_order);
    for (size_t i = 1; i < n && st == OK; i++)
        if (strcmp(claim[i].id, claim[i - 1].id) == 0)
            st = fail(e, E_USAGE, "case %s is in %s and in %s  -> merge shards of one sweep",
                      claim[i].id, claim[i - 1].by->run.dir, claim[i].by->run.dir);
    free(claim);
    return st;
}

/* ---- writing ------------------------------------------------------------------------------ */

/* The rows now belong to the merged run. */
static void rename_run(const struct merge *m, enum table_id t, void *row)
{
    text_put((char *)row_text(&tables[t], row, "run_id"), TEXT_SIZE, m->out.run_id);
}

/* Cases of a group differ in variant, choices and backend. */
static bool same_group(const void *a, const void *b)
{
    static const char *const but[] = {"variant", "backend", NULL};

    return rows_alike(&tables[TABLE_LATENCY], a, b, but);
}

/* Jobs of a group of a study differ in role, rate and seed. */
static bool same_job_group(const void *a, const void *b)
{
    const struct study_row *const x = a, *const y = b;

    return strcmp(x->corpus, y->corpus) == 0 && strcmp(x->size, y->size) == 0 &&
           strcmp(x->contender, y->contender) == 0;
}

static enum status write_case(struct merge *m, struct shard *s, void *of, struct err *e)
{
    struct latency_row *const row = of;
    struct memory_row *memory = s->run.memory.row;

    for (size_t i = 0; i < s->run.memory.n; i++)
        if (strcmp(memory[i].case_id, row->case_id) == 0) {
            rename_run(m, TABLE_MEMORY, &memory[i]);
            TRY(rundir_write(&m->out, TABLE_MEMORY, &memory[i], e));
        }
    const int status = word_index(row->status, row_status_name);
    if (status >= 0)
        m->rows[status]++;
    rename_run(m, TABLE_LATENCY, row);
    return rundir_write(&m->out, TABLE_LATENCY, row, e);
}

static enum status take_job(struct merge *m, struct shard *s, void *of, struct err *e)
{
    struct study_row *const row = of;
    const int status = word_index(row->status, row_status_name);

    rename_run(m, TABLE_STUDY, row);
    m->rows[status < 0 ? ROW_FAILED : status]++;
    GROW_SMALL(m->jobs, m->n_jobs);
    m->jobs[m->n_jobs++] = *row;
    return OK;
}

/* One group of each shard in turn, until all are used up. */
typedef bool same_fn(const void *a, const void *b);
typedef enum status take_fn(struct merge *m, struct shard *s, void *of, struct err *e);
static enum status in_turn(struct merge *m, enum table_id t, same_fn *same, take_fn *take,
                           struct err *e)
{
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < m->n; i++) {
            struct shard *const s = &m->shard[i];
            const struct rows *const r = rows_of(s, t);
            char *const first = (char *)r->row + s->at * tables[t].row_size, *row = first;
            for (; s->at < r->n && same(first, row); s->at++, row += tables[t].row_size)
                TRY(take(m, s, row, e));
            more = more || row > first;
        }
    }
    return OK;
}

static enum status write_table(const struct merge *m, enum table_id t, const void *rows, size_t n,
                               struct err *e)
{
    char path[FILE_PATH];

    TRY(file_join(path, m->out.path, tables[t].file, e));
    return table_replace(&tables[t], path, rows, n, e);
}

/* The rows of a study and its file. */
static enum status write_study(struct merge *m, struct err *e)
{
    char path[FILE_PATH];

    TRY(file_join(path, m->out.path, study_copy, e));
    TRY(file_replace(path, m->shard[0].file.data, m->shard[0].file.n, e));
    TRY(in_turn(m, TABLE_STUDY, same_job_group, take_job, e));
    return write_table(m, TABLE_STUDY, m->jobs, m->n_jobs, e);
}

static enum status write_rest(struct merge *m, struct err *e)
{
    for (int i = 0; i < m->n; i++) {
        const struct rows *ppl = &m->shard[i].run.perplexity;
        const struct rows *samples = &m->shard[i].run.samples;
        for (size_t k = 0; k < ppl->n; k++) {
            void *row = (struct perplexity_row *)ppl->row + k;
            rename_run(m, TABLE_PERPLEXITY, row);
            TRY(rundir_write(&m->out, TABLE_PERPLEXITY, row, e));
        }
        for (size_t k = 0; k < samples->n; k++) {
            struct sample_row *row = (struct sample_row *)samples->row + k;
            rename_run(m, TABLE_SAMPLES, row);
            TRY(samples_write(&m->out.samples, row, e));
        }
    }
    return OK;
}

/* Cases of one shape are of one shard: only those of unlike shapes are of unlike machines. */
static void tell_machines(const struct env_row *rows, size_t n)
{
    text_line(stderr,
              "note: the shards are of %zu machines; times of one are not compared with "
              "those of another",
              n);
    for (size_t i = 0; i < n; i++)
        text_line(stderr, "  host_id %s: %s", rows[i].host_id, rows[i].cpu_model);
}

/* The exit code of the run that the shards are of: a failure of one is one of the whole. */
static int code_of(const struct merge *m)
{
    int code = EXIT_NOTHING_TO_DO;

    for (int i = 0; i < m->n; i++) {
        const struct rows *const env = &m->shard[i].run.env;
        const int64_t end = env->n > 0 ? ((const struct env_row *)env->row)->exit_code : I64_EMPTY;
        const int of_shard = end == I64_EMPTY ? EXIT_SOME_FAILED : (int)end; /* killed */
        if (code == EXIT_NOTHING_TO_DO || code == EXIT_FINE)
            code = of_shard == EXIT_NOTHING_TO_DO ? code : of_shard;
    }
    return m->lacks > 0 && (code == EXIT_NOTHING_TO_DO || code == EXIT_FINE) ? EXIT_SOME_FAILED
                                                                             : code;
}

/* One row per machine: the first of each shard. */
static enum status write_env(struct merge *m, struct err *e)
{
    struct env_row *rows = need_room((size_t)m->n, sizeof(*rows));
    size_t n = 0;

    for (int i = 0; i < m->n; i++) {
        const struct rows *env = &m->shard[i].run.env;
        bool known = env->n == 0;
        for (size_t k = 0; k < n && !known; k++)
            known = strcmp(rows[k].host_id, ((const struct env_row *)env->row)->host_id) == 0;
        if (known)
            continue;
        rows[n] = *(const struct env_row *)env->row;
        rows[n].exit_code = m->code;
        rename_run(m, TABLE_ENV, &rows[n++]);
    }
    const enum status st = write_table(m, TABLE_ENV, rows, n, e);
    if (n > 1 && st == OK)
        tell_machines(rows, n);
    free(rows);
    return st;
}

static enum status write_all(struct merge *m, struct err *e)
{
    TRY(is_study(&m->shard[0]) ? write_study(m, e)
                               : in_turn(m, TABLE_LATENCY, same_group, write_case, e));
    TRY(write_rest(m, e));
    return write_env(m, e);
}

static enum status create(struct merge *m, struct options *o, struct err *e)
{
    const time_t now = time(NULL);
    enum raw raw = (enum raw)o->raw;
    char started[TEXT_SIZE];
    const char *note = NULL;

    TRY(raw_choose(&raw, &note, raw, options_given(o, "raw"), e));
    utc_text(started, now);
    const struct env_row *env = m->shard[0].run.env.row;
    const struct runjson json = {.command = m->shard[0].command, /* the whole of it */
                                 .host_id = m->shard[0].run.env.n ? env->host_id : "",
                                 .started_at_utc = started,
                                 .argc = o->argc,
                                 .argv = o->argv,
                                 .options = m->shard[0].options};
    TRY(rundir_create(&m->out, o->out, build_commit, now, raw, &json, e));
    m->code = code_of(m);
    const enum status st = write_all(m, e);
    const enum status closed = rundir_close(&m->out, st == OK ? e : &(struct err){""});
    TRY(st);
    TRY(closed);
    utc_text(started, time(NULL));
    return runjson_finish(m->out.path, started, m->code, m->rows, e);
}

static enum status merge(struct merge *m, struct options *o, struct err *e)
{
    for (int i = 0; i < m->n; i++)
        TRY(read_shard(&m->shard[i], o->words.v[i], e));
    TRY(check_shards(m, e));
    TRY(check_disjoint(m, TABLE_LATENCY, e));
    TRY(check_disjoint(m, TABLE_PERPLEXITY, e));
    TRY(check_disjoint(m, TABLE_STUDY, e));
    return create(m, o, e);
}

enum status cmd_merge(struct options *opt, int *code, struct err *e)
{
    if (opt->words.n == 0)
        return fail(e, E_USAGE, "merge needs the shards' folders  -> bench merge DIR...");
    struct merge *const m = need_room(1, sizeof(*m));
    m->n = opt->words.n;
    m->partial = opt->partial;
    m->shard = need_room((size_t)m->n, sizeof(*m->shard));
    const enum status st = merge(m, opt, e);
    for (int i = 0; i < m->n; i++) {
        run_free(&m->shard[i].run);
        rows_free(&m->shard[i].study);
        free(m->shard[i].file.data);
        free(m->shard[i].options);
    }
    free(m->shard);
    free(m->jobs);
    if (st == OK && !opt->quiet)
        text_line(stderr, "wrote %s", m->out.path);
    free(m);
    return st;
}
