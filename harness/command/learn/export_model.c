/* SPDX-License-Identifier: MIT
 *
 * bench export --to hf, --to gguf: the files of a published model with the numbers of a checkpoint that
 * was trained from it. Tokenizer and config are as they came. */
#include "harness/command/commands.h"
#include "harness/util/fileio.h"

#include "variants/base/json_text.h"
#include "variants/model/import/adapter.h"
#include "variants/model/import/changes.h"
#include "variants/model/import/config_json.h"
#include "variants/model/import/weights.h"

#include <dirent.h>

/* Files beside the weights: of tokenizers, of config and of templates. */
static bool goes_along(const char *name)
{
    static const char *const ends[] = {".json", ".txt", ".model", ".jinja", ".tiktoken"};

    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (text_ends(name, ends[i]))
            return true;
    return false;
}

/* The type in which programs load the weights; the sum of an index would be of the former types. */
static enum status copy_edited(const char *to, const char *from, const char *name, bool is_index,
                               struct err *e)
{
    static const char *const types[] = {"dtype", "torch_dtype"};
    enum { MOST = 1 << 26 };
    char old[FILE_PATH], new[FILE_PATH];
    json_t *all;

    TRY(file_join(old, from, name, e));
    TRY(file_join(new, to, name, e));
    TRY(import_json(&all, old, old, MOST, e));
    json_t *const text = json_object_get(all, "text_config");
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        for (int k = 0; k < 2; k++)
            if (json_object_get(k ? text : all, types[i]))
                json_object_set_new(k ? text : all, types[i], json_string("float32"));
    if (is_index)
        json_object_del(json_object_get(all, "metadata"), "total_size");
    char *const written = json_write(all, JSON_INDENT(2));
    const enum status st = written
                               ? file_replace(new, written, strlen(written), e)
                               : fail(e, E_NOMEM, "cannot write %s: no memory  -> free some", new);
    free(written);
    json_decref(all);
    return st;
}

static enum status copy_beside(const char *from, const char *to, bool changed, struct err *e)
{
    enum status st = OK;
    DIR *const d = opendir(from);

    if (!d)
        return file_fail(e, "open", from, errno);
    for (const struct dirent *f; st == OK && (f = readdir(d));) {
        const bool is_index = text_ends(f->d_name, ".index.json");
        if (!goes_along(f->d_name))
            continue;
        st = changed && (is_index || strcmp(f->d_name, PUBLISHED_CONFIG) == 0)
                 ? copy_edited(to, from, f->d_name, is_index, e)
                 : file_copy_into(to, from, f->d_name, e);
    }
    closedir(d);
    return st;
}

static enum status write_folder(const struct changes *c, const struct published *p, const char *to,
                                struct err *e)
{
    char from[PUBLISHED_PATH], path[FILE_PATH];

    TRY(published_folder(from, p->path, e));
    TRY(file_make_folder(to, e));
    for (int i = 0; i < p->shards.n_files; i++) {
        const char *const name = strrchr(p->shards.files[i].path, '/');
        TRY(file_join(path, to, name ? name + 1 : p->shards.files[i].path, e));
        TRY(changes_write(c, p, i, path, e));
    }
    return copy_beside(from, to, c->changed > 0, e);
}

static enum status write_model(struct lm *m, struct arena *a, const struct published *p,
                               const struct weights *w, const struct options *o, struct err *e)
{
    const char *const to = o->words.v[0];
    struct changes c;

    params_place(&m->params, a);
    TRY(arena_place(a, HUGE_NEVER, NULL, NULL, e));
    params_place(&m->params, a);
    TRY(weights_load(w, &m->params, e));
    TRY(changes_find(&c, p, &m->params, e));
    const enum status st =
        o->to == EXPORT_HF ? write_folder(&c, p, to, e) : changes_write(&c, p, 0, to, e);
    if (st == OK && !o->quiet)
        text_line(stderr, "bench: wrote %s, %s with other numbers in %d of %d tensors", to,
                  p->source, c.changed, c.n);
    changes_free(&c);
    return st;
}

static enum status may_write(const char *path, const struct options *o, struct err *e)
{
    return o->force || access(path, F_OK) != 0
               ? OK
               : fail(e, E_IO, "%s exists  -> --force overwrites it", path);
}

/* It is named by what it was trained from. */
static enum status export_adapter(const struct options *o, struct err *e)
{
    const char *const to = o->words.v[0];
    char there[FILE_PATH];
    struct safetensors s;

    if (o->from || o->lora)
        return fail(e, E_USAGE, "export --to peft does not take --%s  -> leave it out",
                    o->from ? "from" : "lora");
    TRY(file_join(there, to, ADAPTER_CONFIG, e));
    TRY(may_write(there, o, e));
    TRY(safetensors_open(&s, o->ckpt, e));
    enum status st = file_make_folder(to, e);
    if (st == OK)
        st = adapter_write(&s, to, e);
    if (st == OK && !o->quiet)
        text_line(stderr, "bench: wrote %s; next: bench eval --lora %s --ckpt MODEL", to, to);
    safetensors_close(&s);
    return st;
}

static enum status check_form(const struct published *p, const struct options *o, struct err *e)
{
    const bool gguf = o->to == EXPORT_GGUF;
    char there[FILE_PATH];

    if (gguf != p->form.computed)
        return fail(e, E_UNSUPPORTED, "--to %s: %s is %s  -> --to %s", export_name[o->to], p->path,
                    gguf ? "a folder" : "a GGUF file", export_name[gguf ? EXPORT_HF : EXPORT_GGUF]);
    if (gguf && p->shards.n_files > 1)
        return fail(e, E_UNSUPPORTED, "--to gguf: %s is one of %d files  -> join them into one",
                    p->path, p->shards.n_files);
    TRY(file_join(there, o->words.v[0], gguf ? "" : PUBLISHED_CONFIG, e));
    if (gguf)
        snprintf(there, sizeof(there), "%s", o->words.v[0]);
    return may_write(there, o, e);
}

static enum status write_as(const struct published *p, const struct weights *w,
                            const struct options *o, struct err *e)
{
    struct arena a = {0};
    struct lm m;

    if (!checkpoint_same_model(&p->config, &w->config))
        return fail(e, E_IO,
                    "checkpoint %s is another model than %s  -> --from with what it was "
                    "trained from",
                    o->ckpt, p->path);
    TRY(lm_init(&m, &w->config, e));
    const enum status st = write_model(&m, &a, p, w, o, e);
    lm_free(&m);
    arena_release(&a);
    return st;
}

/* Both files; config and tensors of each fit each other. */
static enum status open_and_write(struct weights *w, struct published *p, const struct options *o,
                                  struct err *e)
{
    TRY(weights_open_adapted(w, o->ckpt, o->lora, e));
    TRY(published_open(p, o->from ? o->from : o->ckpt, e));
    TRY(check_form(p, o, e));
    w->config.max_seq = p->config.max_seq; /* lengths are of the training, not of the model */
    w->config.mem_len = p->config.mem_len;
    return write_as(p, w, o, e);
}

enum status export_model(const struct options *o, struct err *e)
{
    const char *const to = export_name[o->to];

    if (o->words.n == 0 || !o->ckpt)
        return fail(e, E_USAGE,
                    "export --to %s needs a model, and where to write it  -> bench export --to %s "
                    "%s --ckpt FILE --from MODEL",
                    to, to, o->to == EXPORT_GGUF ? "FILE" : "DIR");
    if (o->to == EXPORT_PEFT)
        return export_adapter(o, e);
    if (!o->from && !published_is(o->ckpt))
        return fail(e, E_USAGE,
                    "export: %s has no names and no config of a published model  -> --from with "
                    "the model that it was trained from",
                    o->ckpt);
    struct weights *const w = need_room(1, sizeof(*w));
    struct published *const p = need_room(1, sizeof(*p));
    const enum status st = open_and_write(w, p, o, e);
    weights_close(w);
    published_close(p);
    free(w);
    free(p);
    return st;
}
