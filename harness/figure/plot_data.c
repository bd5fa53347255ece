/* SPDX-License-Identifier: MIT
 *
 * What a folder has to draw: the tables of a run, the curves of training runs, and comparisons that
 * were kept as CSV. */
#include "plot.h"

#include "harness/plan/filter.h"
#include "harness/util/suggest.h"
#include "variants/backends/backend.h"

#include <csv.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* ---- comparisons -------------------------------------------------------------------------- */

enum change_column { C_CASE, C_BEFORE, C_AFTER, C_PCT, C_LOW, C_HIGH, C_VERDICT, C_THRESHOLD, C_N };
static const char *const change_names[C_N] = {
    "case",         "before",        "after",   "change_pct",
    "ci95_low_pct", "ci95_high_pct", "verdict", "threshold_pct",
};

struct change_reader {
    struct plot_data *d;
    int place[64]; /* enum change_column of each field, -1 = another */
    int width, field;
    char text[C_N][PLOT_TEXT];
    bool header, no_memory;
};

static void on_field(void *data, size_t length, void *arg)
{
    struct change_reader *const r = arg;
    const int i = r->field++;

    if (i >= (int)ARRAY_LEN(r->place))
        return;
    if (r->header) {
        r->width = i + 1;
        r->place[i] = -1;
        for (int k = 0; k < C_N; k++)
            if (strlen(change_names[k]) == length && memcmp(change_names[k], data, length) == 0)
                r->place[i] = k;
    } else if (i < r->width && r->place[i] >= 0) {
        char *const to = r->text[r->place[i]];
        const size_t n = length < PLOT_TEXT ? length : PLOT_TEXT - 1;
        memcpy(to, data, n);
        to[n] = '\0';
    }
}

static double number(const char *text)
{
    char *end;
    const double x = strtod(text, &end);
    return end == text || *end ? NAN : x;
}

static void on_row(int end, void *arg)
{
    struct change_reader *const r = arg;
    struct plot_data *const d = r->d;
    struct plot_change *more;
    (void)end;

    r->field = 0;
    if (r->header) {
        r->header = false;
        return;
    }
    const struct plot_change c = {
        .pct = number(r->text[C_PCT]),
        .low = number(r->text[C_LOW]),
        .high = number(r->text[C_HIGH]),
        .threshold = number(r->text[C_THRESHOLD]),
    };
    more = realloc(d->change, (size_t)(d->n_changes + 1) * sizeof(*more));
    if (!more) {
        r->no_memory = true;
        return;
    }
    d->change = more;
    more[d->n_changes] = c;
    snprintf(more[d->n_changes].name, PLOT_TEXT, "%.120s: %.30s / %.30s", r->text[C_CASE],
             r->text[C_AFTER], r->text[C_BEFORE]);
    text_put(more[d->n_changes].verdict, TEXT_SIZE, r->text[C_VERDICT]);
    d->n_changes++;
    memset(r->text, 0, sizeof(r->text));
}

static const char BEGIN[] = "case,before,";

/* Other people's files may lie in the folder: folders, pipes, what cannot be read, and tables of
 * anything. They are not looked at further. */
static bool is_changes(const char *path)
{
    char begin[sizeof(BEGIN) - 1];
    struct stat s;

    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode))
        return false;
    FILE *const f = fopen(path, "rbe");
    const bool same = f && fread(begin, 1, sizeof(begin), f) == sizeof(begin) &&
                      memcmp(begin, BEGIN, sizeof(begin)) == 0;
    if (f)
        fclose(f);
    return same;
}

static enum status read_changes(struct plot_data *d, const char *path, struct err *e)
{
    struct change_reader r = {.d = d, .header = true};
    struct csv_parser p;
    struct bytes file;
    enum status st = file_read(&file, path, e);

    if (st != OK)
        return st;
    if (csv_init(&p, CSV_STRICT | CSV_APPEND_NULL) != 0 ||
        csv_parse(&p, file.data, file.n, on_field, on_row, &r) != file.n)
        st = fail(e, E_IO, "%s is no table of comparisons  -> write it again", path);
    csv_fini(&p, on_field, on_row, &r);
    csv_free(&p);
    if (r.no_memory)
        st = fail(e, E_NOMEM, "no memory for %s", path);
    free(file.data);
    return st;
}

/* ---- training ----------------------------------------------------------------------------- */

static enum status read_train(struct plot_data *d, const char *path, const char *name,
                              struct err *e)
{
    struct plot_train *const more = realloc(d->train, (size_t)(d->n_train + 1) * sizeof(*more));

    if (!more)
        return fail(e, E_NOMEM, "no memory for %s", path);
    d->train = more;
    struct plot_train *const t = &more[d->n_train];
    const enum status st = table_read(&t->rows, &tables[TABLE_TRAIN], path, e);
    if (st != OK)
        return st;
    const int n = (int)(strlen(name) - strlen(tables[TABLE_TRAIN].file));
    snprintf(t->name, TEXT_SIZE, "%.*s", n > 0 ? n - 1 : 0, name); /* without the dot */
    if (ends_with(t->name, ".safetensors"))
        t->name[strlen(t->name) - strlen(".safetensors")] = '\0';
    d->n_train++;
    return OK;
}

/* ---- the folder --------------------------------------------------------------------------- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static enum status keep_name(struct plot_data *d, const char *name, struct err *e)
{
    char(*const more)[256] = realloc(d->file, (size_t)(d->n_files + 1) * sizeof(*more));

    if (!more)
        return fail(e, E_NOMEM, "no memory for %s", name);
    d->file = more;
    snprintf(more[d->n_files++], sizeof(*more), "%s", name);
    return OK;
}

static enum status read_file(struct plot_data *d, const char *name, struct err *e)
{
    char path[FILE_PATH];
    enum status st = file_join(path, d->dir, name, e);

    if (st != OK || !ends_with(name, ".csv"))
        return st;
    for (int t = 0; t <= TABLE_ENV; t++)
        if (strcmp(name, tables[t].file) == 0) {
            st = table_read(&d->table[t], &tables[t], path, e);
            return st == OK ? keep_name(d, name, e) : st;
        }
    if (ends_with(name, tables[TABLE_TRAIN].file)) {
        st = read_train(d, path, name, e);
        return st == OK ? keep_name(d, name, e) : st;
    }
    if (!is_changes(path))
        return OK;
    const int before = d->n_changes;
    st = read_changes(d, path, e);
    return st == OK && d->n_changes > before ? keep_name(d, name, e) : st;
}

enum status plot_read(struct plot_data *d, const char *dir, struct err *e)
{
    struct dirent **list;
    enum status st = OK;

    *d = (struct plot_data){0};
    if (snprintf(d->dir, FILE_PATH, "%s", dir) >= FILE_PATH)
        return file_fail(e, "read", dir, ENAMETOOLONG);
    const int n = scandir(dir, &list, NULL, by_name);
    if (n < 0)
        return file_fail(e, "read", dir, errno);
    for (int i = 0; i < n; i++) {
        if (st == OK)
            st = read_file(d, list[i]->d_name, e);
        free(list[i]);
    }
    free(list);
    if (st == OK && d->n_files == 0)
        st = fail(e, E_IO, "%s has no tables of bench  -> give the folder of a run", dir);
    if (st != OK)
        plot_data_free(d);
    return st;
}

static void keep_matches(struct rows *rows, const struct table *t, const struct filter *f)
{
    char *const first = rows->row;
    size_t kept = 0;

    for (size_t i = 0; i < rows->n; i++)
        if (filter_match_row(f, t, first + i * t->row_size))
            memmove(first + kept++ * t->row_size, first + i * t->row_size, t->row_size);
    rows->n = kept;
}

enum status plot_filter(struct plot_data *d, const struct names *expressions, struct err *e)
{
    static const enum table_id with_keys[] = {TABLE_LATENCY, TABLE_MEMORY, TABLE_PERPLEXITY};

    for (int i = 0; i < expressions->n; i++) {
        struct filter f;
        const enum status st = filter_parse(&f, expressions->v[i], e);
        if (st != OK)
            return st;
        for (size_t t = 0; t < ARRAY_LEN(with_keys); t++)
            keep_matches(&d->table[with_keys[t]], &tables[with_keys[t]], &f);
    }
    return OK;
}

enum status plot_set_base(struct plot_data *d, const char *base, struct err *e)
{
    const struct rows *const rows = &d->table[TABLE_LATENCY];
    const char **names;
    bool known = !base || backend_find(base);
    int n = 0;

    d->base = base;
    for (size_t i = 0; i < rows->n && !known; i++) /* the run may come from another build */
        known = strcmp(((const struct latency_row *)rows->row)[i].backend, base) == 0;
    if (known)
        return OK;
    while (backends[n])
        n++;
    names = calloc((size_t)n + 1, sizeof(*names));
    if (!names)
        return fail(e, E_NOMEM, "no memory for names of backends  -> free some");
    for (int i = 0; i < n; i++)
        names[i] = backends[i]->name;
    const enum status st = unknown_word(e, "backend", base, names, "bench list backends");
    free(names);
    return st;
}

void plot_data_free(struct plot_data *d)
{
    for (int t = 0; t <= TABLE_ENV; t++)
        rows_free(&d->table[t]);
    for (int i = 0; i < d->n_train; i++)
        rows_free(&d->train[i].rows);
    free(d->train);
    free(d->change);
    free(d->file);
    *d = (struct plot_data){0};
}
