/* SPDX-License-Identifier: MIT
 *
 * Reading runs, and finding rows and samples in them. */
#include "run.h"

#include "case_row.h"
#include "harness/cli/exit_code.h"
#include "remarks.h"
#include "runjson.h"

/* ---- reading ------------------------------------------------------------------------------ */

static enum status check_samples(const struct run *r, struct err *e)
{
    const struct sample_row *row = r->samples.row;

    for (size_t i = 0; i < r->samples.n; i++)
        if (!(row[i].wall_ns > 0) || row[i].calls < 1 || row[i].calls > UINT32_MAX)
            return fail(e, E_IO, "%s: sample %lld of case %s has no time  -> remove that row",
                        r->dir, (long long)row[i].sample, row[i].case_id);
    return OK;
}

static int ref_order(const void *a, const void *b)
{
    const struct sample_ref *x = a, *y = b;
    const int by_case = strcmp(x->row->case_id, y->row->case_id);

    return by_case ? by_case : (x->row > y->row) - (x->row < y->row);
}

/* Samples of one round that are adjacent in the file form one turn. */
static enum status index_samples(struct run *r, struct err *e)
{
    const struct sample_row *row = r->samples.row;
    int turn = 0;

    r->ref = calloc(r->samples.n + 1, sizeof(*r->ref));
    if (!r->ref)
        return fail(e, E_NOMEM, "no memory for %zu samples", r->samples.n);
    for (size_t i = 0; i < r->samples.n; i++) {
        turn += i > 0 && row[i].round != row[i - 1].round;
        r->ref[i] = (struct sample_ref){&row[i], turn};
    }
    qsort(r->ref, r->samples.n, sizeof(*r->ref), ref_order);
    return OK;
}

enum status run_table(struct rows *out, const char *dir, enum table_id table, struct err *e)
{
    char path[FILE_PATH];

    *out = (struct rows){0};
    TRY(file_join(path, dir, tables[table].file, e));
    return table_read(out, &tables[table], path, e);
}

/* No rows where the table is missing, as of runs that scored nothing. */
static enum status read_if_there(struct run *r, enum table_id table, struct err *e)
{
    char path[FILE_PATH];

    TRY(file_join(path, r->dir, tables[table].file, e));
    return access(path, F_OK) == 0 ? run_table(&r->table[table], r->dir, table, e) : OK;
}

void run_note_doubled(const char *dir, size_t n)
{
    if (n > 0)
        text_line(stderr, "note: %s has %zu rows twice, the last of each counts", dir, n);
}

static void count_unchecked(struct run *r)
{
    const struct latency_row *row = r->latency.row;

    r->unchecked = 0;
    for (size_t i = 0; i < r->latency.n; i++)
        if (remarks_of_row(row[i].status, row[i].status_detail) & REMARK_UNCHECKED)
            r->unchecked++;
}

/* ---- its end ------------------------------------------------------------------------------ */

/* A run that ended early has another exit code, or none. */
static bool ended_by_itself(int64_t exit_code, bool bad)
{
    switch (exit_code) {
    case EXIT_FINE:
    case EXIT_NOT_TRUSTWORTHY:
    case EXIT_NOTHING_TO_DO:
        return true;
    case EXIT_SOME_FAILED:
    case EXIT_WRONG_NUMBERS:
    case EXIT_BAD_FILE:
        return bad;
    default:
        return false;
    }
}

/* Of the tables that a run counts the rows of. */
static bool has_ended(const struct run *r)
{
    static const enum table_id counted[] = {TABLE_LATENCY, TABLE_PERPLEXITY, TABLE_STUDY};
    const struct env_row *const env = r->env.row;
    bool bad = false, ended = r->env.n > 0;
    size_t n = 0;

    for (size_t k = 0; k < ARRAY_LEN(counted); k++) {
        const struct table *const t = &tables[counted[k]];
        const struct rows *const rows = &r->table[counted[k]];
        for (size_t i = 0; i < rows->n; i++) {
            const char *const row = (const char *)rows->row + i * t->row_size;
            const int is = word_index(row_text(t, row, "status"), row_status_name);
            bad = bad || is == ROW_WRONG || is == ROW_FAILED || is == ROW_TIMEOUT;
        }
        n += rows->n;
    }
    for (size_t i = 0; i < r->env.n; i++)
        ended = ended && ended_by_itself(env[i].exit_code, bad);
    return ended && n > 0 && (int64_t)n >= runjson_counted(r->dir);
}

static enum status begin(struct run *r, const char *dir, struct err *e)
{
    *r = (struct run){0};
    if (text_put(r->dir, FILE_PATH, dir))
        return OK;
    return fail(e, E_IO, "cannot open %.200s...: the name is too long  -> move the run", dir);
}

static enum status read_study(struct run *r, const char *dir, struct err *e)
{
    TRY(begin(r, dir, e));
    TRY(run_table(&r->study, dir, TABLE_STUDY, e));
    TRY(read_if_there(r, TABLE_PERPLEXITY, e));
    return read_if_there(r, TABLE_ENV, e);
}

static enum status read_all(struct run *r, const char *dir, struct err *e)
{
    TRY(begin(r, dir, e));
    for (int t = 0; t < TABLE_SAMPLES; t++)
        TRY(t == TABLE_PERPLEXITY ? read_if_there(r, TABLE_PERPLEXITY, e)
                                  : run_table(&r->table[t], dir, (enum table_id)t, e));
    TRY(read_if_there(r, TABLE_STUDY, e));
    if (r->latency.n > 0 && samples_exist(dir))
        TRY(samples_read(&r->samples, dir, e));
    TRY(check_samples(r, e));
    count_unchecked(r);
    return index_samples(r, e);
}

static enum status finish(struct run *r, enum status st)
{
    r->ended = st == OK && has_ended(r);
    if (st != OK)
        run_free(r);
    return st;
}

enum status run_read_study(struct run *r, const char *dir, struct err *e)
{
    return finish(r, read_study(r, dir, e));
}

enum status run_read(struct run *r, const char *dir, struct err *e)
{
    return finish(r, read_all(r, dir, e));
}

enum status run_filter(struct run *r, const struct names *expressions, struct err *e)
{
    TRY(rows_filter(r->table, expressions, e));
    count_unchecked(r);
    return OK;
}

void run_free(struct run *r)
{
    for (int t = 0; t < TABLE_COUNT; t++)
        rows_free(&r->table[t]);
    free(r->ref);
    r->ref = NULL;
}

/* ---- finding ------------------------------------------------------------------------------ */

struct series run_series(const struct run *r, const char *case_id)
{
    size_t low = 0, high = r->samples.n;

    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (strcmp(r->ref[mid].row->case_id, case_id) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    struct series s = {r->ref + low, 0};
    while (low + (size_t)s.n < r->samples.n && strcmp(s.ref[s.n].row->case_id, case_id) == 0)
        s.n++;
    return s;
}

double run_arena_bytes(const struct run *r, const char *case_id)
{
    const struct memory_row *row = r->memory.row;

    for (size_t i = 0; i < r->memory.n; i++)
        if (strcmp(row[i].case_id, case_id) == 0)
            return row[i].arena_peak_bytes == I64_EMPTY ? NAN : (double)row[i].arena_peak_bytes;
    return NAN;
}
