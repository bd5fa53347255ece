/* SPDX-License-Identifier: MIT
 *
 * The data of a folder: the tables of a run, the curves of training runs, and comparisons. */
#include "figure.h"

#include "harness/measure/study_verdict.h"
#include "harness/table/case_row.h"
#include "harness/table/rundir.h"
#include "variants/base/safetensors.h"

#include <dirent.h>

/* "copy:lag=192, layers 2, d_model 64, heads 4" */
static void read_made_of(struct plot_train *t, const char *table)
{
    static const char *const facts[][2] = {
        {"corpus", ""}, {"n_layer", "layers "}, {"d_model", "d_model "}, {"n_head", "heads "}};
    const int n = (int)(strlen(table) - strlen(tables[TABLE_TRAIN].file)) - 1; /* without the dot */
    struct safetensors s;
    char path[FILE_PATH];

    if (n <= 0 || snprintf(path, sizeof(path), "%.*s", n, table) >= FILE_PATH ||
        safetensors_open(&s, path, &(struct err){""}) != OK)
        return;
    for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
        const char *const value = safetensors_meta(&s, facts[i][0]);
        if (value)
            text_append(t->made_of, sizeof(t->made_of), "%s%s%s", *t->made_of ? ", " : "",
                        facts[i][1], path_name(value));
    }
    const char *const unit = safetensors_meta(&s, "unit");
    text_put(t->unit, sizeof(t->unit), unit ? unit : "");
    safetensors_close(&s);
}

static enum status read_train(struct plot_data *d, const char *path, const char *name,
                              struct err *e)
{
    GROW_SMALL(d->train, d->n_train);
    struct plot_train *const t = &d->train[d->n_train];
    *t = (struct plot_train){.made_of = ""};
    TRY(table_read(&t->rows, &tables[TABLE_TRAIN], path, e));
    const int n = (int)(strlen(name) - strlen(tables[TABLE_TRAIN].file));
    snprintf(t->name, TEXT_SIZE, "%.*s", n > 0 ? n - 1 : 0, name); /* without the dot */
    if (text_ends(t->name, ".safetensors"))
        t->name[strlen(t->name) - strlen(".safetensors")] = '\0';
    read_made_of(t, path);
    d->n_train++;
    return OK;
}

/* ---- the folder --------------------------------------------------------------------------- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void keep_file(struct plot_data *d, const char *name, const struct table *t, int train)
{
    GROW_SMALL(d->file, d->n_files);
    struct plot_file *const f = &d->file[d->n_files++];
    *f = (struct plot_file){.table = t, .train = train};
    snprintf(f->name, sizeof(f->name), "%s", name);
}

static enum status read_file(struct plot_data *d, const char *name, struct err *e)
{
    char path[FILE_PATH];
    const int before = d->n_changes;

    TRY(file_join(path, d->dir, name, e));
    if (!text_ends(name, ".csv"))
        return OK;
    for (int t = 0; t < TABLE_COUNT; t++)
        if (strcmp(name, tables[t].file) == 0 && t != TABLE_SAMPLES && t != TABLE_TRAIN) {
            TRY(table_read(&d->table[t], &tables[t], path, e));
            keep_file(d, name, &tables[t], -1);
            return OK;
        }
    if (text_ends(name, tables[TABLE_TRAIN].file)) {
        TRY(read_train(d, path, name, e));
        keep_file(d, name, &tables[TABLE_TRAIN], d->n_train - 1);
    } else if (plot_is_changes(path)) {
        TRY(plot_read_changes(d, path, e));
        if (d->n_changes > before)
            keep_file(d, name, NULL, -1);
    }
    return OK;
}

void plot_name_weights(char name[LINE_SIZE], const struct study_row *r, const char *variant)
{
    const bool own = strcmp(r->contender, variant) == 0;

    snprintf(name, LINE_SIZE, "%s%sseed %lld%s", own ? "" : r->contender, own ? "" : " ",
             (long long)r->seed, study_budget_text(r).s);
}

/* Weights of a study are files named by a hash: who trained them with which seed tells more. */
static void name_weights(struct plot_data *d)
{
    const struct study_row *const study = d->table[TABLE_STUDY].row;
    struct perplexity_row *const score = d->table[TABLE_PERPLEXITY].row;

    for (size_t i = 0; i < d->table[TABLE_PERPLEXITY].n; i++)
        for (size_t k = 0; k < d->table[TABLE_STUDY].n; k++) {
            if (!*study[k].checkpoint || !text_ends(score[i].checkpoint, study[k].checkpoint))
                continue;
            plot_name_weights(score[i].checkpoint, &study[k], score[i].variant);
            break;
        }
}

enum status plot_read(struct plot_data *d, const char *dir, struct err *e)
{
    struct dirent **list;
    enum status st;

    *d = (struct plot_data){0};
    const int n = scandir(dir, &list, NULL, by_name);
    if (n < 0)
        return file_fail(e, "read", dir, errno);
    st = rundir_find(d->dir, NULL, dir, e); /* the link `latest` moves */
    for (int i = 0; i < n; i++) {
        if (st == OK)
            st = read_file(d, list[i]->d_name, e);
        free(list[i]);
    }
    free(list);
    if (st == OK && d->n_files == 0)
        st = fail(e, E_IO, "%s has no tables of bench  -> give the folder of a run", dir);
    if (st == OK)
        name_weights(d);
    else
        plot_data_free(d);
    return st;
}

enum status plot_filter(struct plot_data *d, const struct names *expressions, struct err *e)
{
    return rows_filter(d->table, expressions, e);
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
    names = need_room((size_t)n + 1, sizeof(*names));
    for (int i = 0; i < n; i++)
        names[i] = backends[i]->name;
    const enum status st = unknown_word(e, "backend", base, names, "bench list backends");
    free(names);
    return st;
}

void plot_data_free(struct plot_data *d)
{
    for (int t = 0; t < TABLE_COUNT; t++)
        rows_free(&d->table[t]);
    for (int i = 0; i < d->n_train; i++)
        rows_free(&d->train[i].rows);
    free(d->train);
    free(d->change);
    free(d->file);
    *d = (struct plot_data){0};
}
