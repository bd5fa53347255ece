/* SPDX-License-Identifier: MIT
 *
 * Reading runs, and finding rows and samples in them. */
#include "run_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Samples of one round that stand together in the file are one turn. */
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

enum status run_read(struct run *r, const char *dir, struct err *e)
{
    struct {
        enum table_id table;
        struct rows *rows;
    } const parts[] = {{TABLE_LATENCY, &r->latency},
                       {TABLE_MEMORY, &r->memory},
                       {TABLE_PERPLEXITY, &r->perplexity},
                       {TABLE_ENV, &r->env}};
    enum status st = OK;

    *r = (struct run){0};
    if (snprintf(r->dir, sizeof(r->dir), "%s", dir) >= FILE_PATH)
        return fail(e, E_IO, "cannot open %.200s...: the name is too long  -> move it", dir);
    for (size_t i = 0; i < ARRAY_LEN(parts) && st == OK; i++) {
        const struct table *t = &tables[parts[i].table];
        char path[FILE_PATH];
        st = file_join(path, dir, t->file, e);
        if (st == OK)
            st = table_read(parts[i].rows, t, path, e);
    }
    if (st == OK && r->latency.n > 0)
        st = samples_read(&r->samples, dir, e);
    if (st == OK)
        st = check_samples(r, e);
    if (st == OK)
        st = index_samples(r, e);
    const struct latency_row *row = r->latency.row;
    for (size_t i = 0; i < r->latency.n && st == OK; i++)
        r->unchecked += strstr(row[i].status_detail, "unchecked") != NULL;
    if (st != OK)
        run_free(r);
    return st;
}

void run_free(struct run *r)
{
    rows_free(&r->latency);
    rows_free(&r->memory);
    rows_free(&r->perplexity);
    rows_free(&r->env);
    rows_free(&r->samples);
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

/* ---- axes --------------------------------------------------------------------------------- */

static const struct {
    const char *word, *column;
    bool inside_group;
} axes[] = {
    {"backend", "backend", true},   {"variant", "variant", true},   {"gate", "gate", true},
    {"clip", "clip", true},         {"rnn_cell", "rnn_cell", true}, {"halt", "halt", true},
    {"mem_kind", "mem_kind", true}, {"seq", "seq_tokens", false},   {"mem", "mem_tokens", false},
    {"threads", "threads", false},  {"batch", "batch_size", false},
};

static int column_of(const struct table *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->columns[i].name, name) == 0)
            return i;
    return -1;
}

enum status axis_find(struct axis *a, const char *word, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(axes); i++)
        if (strcmp(axes[i].word, word) == 0) {
            *a = (struct axis){axes[i].word, column_of(&tables[TABLE_LATENCY], axes[i].column),
                               axes[i].inside_group};
            return OK;
        }
    return fail(e, E_USAGE, "--axis \"%.60s\" is no axis  -> backend, variant, threads, ...", word);
}

enum status axis_no_value(const struct axis *a, const char *base, const struct rows *latency,
                          const char *dir, struct err *e)
{
    const struct latency_row *row = latency->row;
    char list[160] = "", num[NUMBER_SIZE], padded[TEXT_SIZE + 4];

    for (size_t i = 0; i < latency->n; i++) {
        const char *value = row_field(&tables[TABLE_LATENCY], a->column, &row[i], num);
        snprintf(padded, sizeof(padded), "%s%.60s", *list ? ", " : "", value);
        if (*value && !strstr(list, value) && strlen(list) + strlen(padded) < sizeof(list))
            strcat(list, padded);
    }
    return fail(e, E_USAGE, "no row of %.200s has %s \"%.60s\"  -> %s", dir, a->word, base,
                *list ? list : "the axis does not apply to this run");
}

/* ---- keys --------------------------------------------------------------------------------- */

/* Who measured, when, and what became of it: not part of a case's identity. */
static const char *const not_key[] = {
    "schema",   "run_id",        "host_id", "case_id",   "started_at_utc",
    "status",   "status_detail", "impl",    "gemm_from", "rows_from",
    "isa_used", "threads_seen",  "cpus",    "repro",     NULL};
/* What a variant brings along. */
static const char *const of_variant[] = {
    "mem_kind", "gate", "norm_place", "clip",     "clamp_len", "same_length", "kv_heads", "ffn",
    "norm",     "mask", "mask_heads", "rnn_cell", "halt",      "settings",    NULL};
/* Perplexities of other weights or another text are not comparable. */
static const char *const of_text[] = {"checkpoint_xxh3", "corpus_xxh3", "tokens_scored", NULL};

static bool among(const char *name, const char *const *list)
{
    while (*list && strcmp(*list, name) != 0)
        list++;
    return *list != NULL;
}

static bool is_key(const struct table *t, int i, const struct axis *without)
{
    const char *name = t->columns[i].name;

    if (i >= KEY_COUNT)
        return t == &tables[TABLE_PERPLEXITY] && among(name, of_text);
    if (without && i == without->column)
        return false;
    if (without && strcmp(without->word, "variant") == 0 && among(name, of_variant))
        return false;
    return !among(name, not_key);
}

static char *key_of(const struct table *t, const void *row, const struct axis *without)
{
    char *text = NULL, num[NUMBER_SIZE];
    size_t size;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return NULL;
    for (int i = 0; i < t->n; i++)
        if (is_key(t, i, without))
            fprintf(f, "%s=%s\n", t->columns[i].name, row_field(t, i, row, num));
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

enum status keys_make(struct keys *k, enum table_id table, const struct rows *rows,
                      const struct axis *without, struct err *e)
{
    const struct table *t = &tables[table];

    *k = (struct keys){.by_key = table == TABLE_PERPLEXITY};
    k->key = calloc(rows->n + 1, sizeof(*k->key));
    k->case_id = calloc(rows->n + 1, sizeof(*k->case_id));
    k->used = calloc(rows->n + 1, sizeof(*k->used));
    if (!k->key || !k->case_id || !k->used)
        return fail(e, E_NOMEM, "no memory for %zu rows", rows->n);
    for (; k->n < (int)rows->n; k->n++) {
        const void *row = (const char *)rows->row + (size_t)k->n * t->row_size;
        k->case_id[k->n] = row_text(t, row, "case_id");
        k->key[k->n] = key_of(t, row, without);
        if (!k->key[k->n])
            return fail(e, E_NOMEM, "no memory for %zu rows", rows->n);
    }
    return OK;
}

void keys_free(struct keys *k)
{
    for (int i = 0; i < k->n; i++)
        free(k->key[i]);
    free(k->key);
    free(k->case_id);
    free(k->used);
    *k = (struct keys){0};
}

int keys_match(struct keys *in, const struct keys *of, int i)
{
    int found = -1;

    for (int k = 0; k < in->n && found < 0 && !in->by_key; k++)
        if (strcmp(in->case_id[k], of->case_id[i]) == 0)
            found = k;
    if (found < 0) /* another build may write another repro line */
        for (int k = 0; k < in->n; k++)
            if (strcmp(in->key[k], of->key[i]) == 0)
                found = found == -1 ? k : -2;
    if (found < 0)
        return -1;
    in->used[found] = true;
    return found;
}

int keys_unused(const struct keys *k)
{
    int n = 0;

    for (int i = 0; i < k->n; i++)
        n += !k->used[i];
    return n;
}

/* ---- words for people --------------------------------------------------------------------- */

void row_label(const struct latency_row *row, const struct axis *without, char *buf, size_t size)
{
    const struct table *t = &tables[TABLE_LATENCY];
    static const struct {
        const char *column, *before, *usual; /* left out where it has the usual value */
    } parts[] = {
        {"variant", "", ""},          {"workload", "", ""},          {"phase", "", "fwd"},
        {"seq_tokens", "seq=", ""},   {"mem_tokens", "mem=", ""},    {"mem_kind", "", ""},
        {"gate", "gate=", ""},        {"clip", "clip=", ""},         {"rnn_cell", "cell=", ""},
        {"halt", "halt=", ""},        {"batch_size", "batch=", "1"}, {"layers", "layers=", "1"},
        {"threads", "threads=", "1"}, {"backend", "", ""},
    };
    size_t n = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(parts) && n < size; i++) {
        const int column = column_of(t, parts[i].column);
        char num[NUMBER_SIZE];
        const char *value = row_field(t, column, row, num);
        if (!*value || strcmp(value, parts[i].usual) == 0 || !is_key(t, column, without))
            continue;
        n += (size_t)snprintf(buf + n, size - n, "%s%s%s", n ? " " : "", parts[i].before, value);
    }
}
