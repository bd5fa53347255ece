/* SPDX-License-Identifier: MIT
 *
 * The models in a folder, the second word or the working one: a row for each checkpoint of ours and
 * each published model, what it is, or why it cannot be read. */
#include "list.h"

#include "harness/util/fileio.h"

#include "variants/base/gguf.h"
#include "variants/model/import/weights.h"

#include <dirent.h>

static const struct text_table_column columns[] = {
    {.name = "model", .least = 12},
    {.name = "family"},
    {.name = "variant"},
    {.name = "layers", .number = true},
    {.name = "width", .number = true, .spare = 1},
    {.name = "heads", .number = true, .spare = 1},
    {.name = "vocabulary", .number = true, .spare = 1},
    {.name = "parameters", .number = true},
    {.name = "context", .number = true, .spare = 1},
    {.name = "source"},
    {.name = "why_not", .least = 20},
};
enum { CELLS = ARRAY_LEN(columns) };

/* Numbers of a model; 0 where it cannot be one. */
static size_t parameters(const struct config *c)
{
    struct err ignored;
    struct lm m;
    size_t n = 0;

    if (lm_init(&m, c, &ignored) != OK)
        return 0;
    for (int i = 0; i < m.params.n; i++)
        n += m.params.v[i].n;
    lm_free(&m);
    return n;
}

static void add_model(struct text_table *t, const char *path, const char *name)
{
    struct err why = {""};
    struct weights w;

    if (weights_open(&w, path, &why) != OK) {
        text_table_add(t, (const char *const[CELLS]){[0] = name, [CELLS - 1] = why.msg});
        return;
    }
    const struct config *const c = &w.config;
    text_table_cell(t, "%s", name);
    text_table_cell(t, "%s", w.is_published ? w.published.family : "");
    text_table_cell(t, "%s", c->variant->name);
    text_table_cell(t, "%d", c->steps ? c->steps : c->N);
    text_table_cell(t, "%d", c->D);
    text_table_cell(t, "%d", c->H);
    text_table_cell(t, "%d", c->V);
    text_table_cell(t, "%zu", parameters(c));
    text_table_number(t, "%.0f", w.is_published ? w.published.context : NAN);
    text_table_cell(t, "%s", weights_source(&w));
    text_table_cell(t, "%s", "");
    weights_close(&w);
}

/* Is it a model, as far as names say? */
static bool looks_like_one(const char *path, const char *name)
{
    char config[FILE_PATH];

    if (file_join(config, path, PUBLISHED_CONFIG, &(struct err){""}) == OK &&
        access(config, F_OK) == 0)
        return true;
    return text_ends(name, ".safetensors") || text_ends(name, ".gguf");
}

static enum status list_folder(struct text_table *t, const char *dir, struct err *e)
{
    struct dirent **entries = NULL;
    const int n = scandir(dir, &entries, NULL, alphasort);
    enum status st = OK;

    if (n < 0)
        st =
            fail(e, E_IO, "cannot read %s: %s  -> give a folder with models", dir, strerror(errno));
    for (int i = 0; i < n; i++) {
        const char *const name = entries[i]->d_name;
        char path[FILE_PATH];
        if (st == OK && *name != '.')
            st = file_join(path, dir, name, e);
        if (st == OK && *name != '.' && looks_like_one(path, name))
            add_model(t, path, name);
        free(entries[i]);
    }
    free(entries);
    return st;
}

static enum status fill_models(struct text_table *t, struct options *o, struct err *e)
{
    const char *const dir = o->words.n > 1 ? o->words.v[1] : ".";

    if (!looks_like_one(dir, "") && !gguf_is(dir))
        return list_folder(t, dir, e);
    add_model(t, dir, dir);
    return OK;
}

const struct listing list_of_models = LISTING(columns, .fill = fill_models, .takes_word = true);
