/* SPDX-License-Identifier: MIT
 *
 * bench recl: the relative effective context length of each model of a group, from the losses of
 * `bench eval --losses`. */
#include "harness/learn/score/recl.h"
#include "harness/command/commands.h"
#include "harness/learn/score/losses.h"
#include "harness/util/fileio.h"

#include <dirent.h>

static const double shares[] = {0.1, 0.5, 1}; /* r, as published */

struct group {
    struct losses *file; /* [n] */
    int n;
    int *model; /* [models] index of one file of each */
    int models;
    int *context; /* [contexts] that every model was scored with, ascending */
    int contexts;
};

static int is_losses(const struct dirent *entry)
{
    return text_ends(entry->d_name, ".safetensors");
}

static enum status read_file(struct group *g, const char *folder, const char *name, struct err *e)
{
    char path[FILE_PATH];

    TRY(file_join(path, folder, name, e));
    TRY(GROW(g->file, g->n, e));
    return losses_read(&g->file[g->n++], path, e);
}

static enum status read_files(struct group *g, const char *folder, struct err *e)
{
    struct dirent **entry = NULL;
    const int n = scandir(folder, &entry, is_losses, alphasort);
    enum status st = n < 0 ? file_fail(e, "read", folder, errno) : OK;

    for (int i = 0; i < n; i++) {
        if (st == OK)
            st = read_file(g, folder, entry[i]->d_name, e);
        free(entry[i]);
    }
    free(entry);
    if (st == OK && g->n == 0)
        st =
            fail(e, E_USAGE, "%.300s has no losses  -> bench eval --ckpt F --mem 0,128 --losses %s",
                 folder, folder);
    return st;
}

/* All files are of one text in the same segments. */
static enum status check_alike(const struct group *g, struct err *e)
{
    CHECK(g->file);
    const struct losses *const a = &g->file[0];

    for (int i = 1; i < g->n; i++) {
        const struct losses *const b = &g->file[i];
        if (strcmp(a->corpus_xxh3, b->corpus_xxh3) != 0 || a->n != b->n || a->seq != b->seq)
            return fail(e, E_USAGE,
                        "%.200s and %.200s are of different texts or segments  -> score both with "
                        "the same --corpus, --bytes and --seq, or use a folder for each",
                        a->file.path, b->file.path);
    }
    return OK;
}

static bool same_model(const struct losses *a, const struct losses *b)
{
    return strcmp(a->checkpoint_xxh3, b->checkpoint_xxh3) == 0;
}

static const struct losses *one_of(const struct group *g, int model)
{
    return &g->file[g->model[model]];
}

static const struct losses *find(const struct group *g, int model, int mem)
{
    for (int i = 0; i < g->n; i++)
        if (same_model(&g->file[i], one_of(g, model)) && g->file[i].mem == mem)
            return &g->file[i];
    return NULL;
}

static void list_models(struct group *g)
{
    CHECK(g->file);
    g->model = need_room((size_t)g->n, sizeof(*g->model));
    for (int i = 0; i < g->n; i++) {
        bool known = false;
        for (int k = 0; k < g->models; k++)
            known = known || same_model(one_of(g, k), &g->file[i]);
        if (!known)
            g->model[g->models++] = i;
    }
}

static int ascending(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

static enum status list_contexts(struct group *g, struct err *e)
{
    CHECK(g->file);
    g->context = need_room((size_t)g->n, sizeof(*g->context));
    for (int i = 0; i < g->n; i++) {
        const int mem = g->file[i].mem;
        bool usable = mem >= 0; /* all of the past has no length */
        for (int k = 0; k < g->models; k++)
            usable = usable && find(g, k, mem);
        for (int k = 0; k < g->contexts; k++)
            usable = usable && g->context[k] != mem;
        if (usable)
            g->context[g->contexts++] = mem;
    }
    if (g->contexts < 2)
        return fail(e, E_USAGE,
                    "%d model%s scored with %d context%s in common  -> score all with the same two "
                    "or more values of --mem",
                    g->models, plural(g->models), g->contexts, plural(g->contexts));
    qsort(g->context, (size_t)g->contexts, sizeof(*g->context), ascending);
    return OK;
}

/* ---- the table ------------------------------------------------------------------------------ */

enum { R_COUNT = ARRAY_LEN(shares) };

static void print(const struct group *g, struct recl *const at[R_COUNT], enum format format)
{
    static const struct text_table_column columns[] = {
        {.name = "checkpoint"},
        {.name = "variant"},
        {.name = "recl_0.1", .number = true},
        {.name = "recl_0.5", .number = true},
        {.name = "recl_1", .number = true},
        {.name = "gain_0.1", .number = true},
        {.name = "note", .least = 12, .spare = 1},
    };
    struct text_table t = {.column = columns, .columns = ARRAY_LEN(columns)};

    for (int i = 0; i < g->models; i++) {
        bool at_end = false;
        text_table_cell(&t, "%s", one_of(g, i)->checkpoint);
        text_table_cell(&t, "%s", one_of(g, i)->variant);
        for (int k = 0; k < R_COUNT; k++) {
            text_table_number(&t, "%.0f", at[k][i].none ? NAN : at[k][i].length);
            at_end = at_end || at[k][i].at_end;
        }
        text_table_cell(&t, "%.4f", at[0][i].gain);
        text_table_cell(&t, "%s",
                        at[0][i].none ? "none: its own loss does not fall with more context"
                        : at_end      ? "it gains to the last context: longer ones are not scored"
                                      : "");
    }
    text_table_print(stdout, &t, format);
    text_table_free(&t);
}

static enum status compute(const struct group *g, enum format format, struct err *e)
{
    CHECK(g->models > 0 && g->contexts > 0);
    const size_t models = (size_t)g->models;
    struct recl_model *const model = need_room(models, sizeof(*model));
    const float **const nll = need_room(models * (size_t)g->contexts, sizeof(*nll));
    struct recl *const all = need_room(R_COUNT * models, sizeof(*all));
    struct recl *at[R_COUNT];
    enum status st = OK;

    for (int i = 0; i < g->models; i++) {
        model[i].nll = nll + (ptrdiff_t)i * g->contexts;
        for (int k = 0; k < g->contexts; k++)
            nll[(ptrdiff_t)i * g->contexts + k] = find(g, i, g->context[k])->nll;
    }
    for (int k = 0; k < R_COUNT && st == OK; k++) {
        at[k] = all + (ptrdiff_t)k * g->models;
        st = recl_of_group(at[k], model, g->models, g->context, g->contexts, g->file[0].n,
                           shares[k], e);
    }
    if (st == OK)
        print(g, at, format);
    free(model);
    free(nll);
    free(all);
    return st;
}

static enum status recl(struct group *g, const struct options *o, struct err *e)
{
    if (o->words.n == 0)
        return fail(e, E_USAGE, "recl needs a folder of losses  -> bench recl FOLDER");
    TRY(read_files(g, o->words.v[0], e));
    TRY(check_alike(g, e));
    list_models(g);
    TRY(list_contexts(g, e));
    return compute(g, (enum format)o->format, e);
}

enum status cmd_recl(struct options *opt, int *code, struct err *e)
{
    struct group g = {0};
    const enum status st = recl(&g, opt, e);

    for (int i = 0; i < g.n; i++)
        losses_close(&g.file[i]);
    free(g.file);
    free(g.model);
    free(g.context);
    return st;
}
