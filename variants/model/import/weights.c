/* SPDX-License-Identifier: MIT
 *
 * See weights.h. */
#include "weights.h"

#include "adapter.h"

#include "variants/base/gguf.h"

#include <xxhash.h>

enum status weights_open(struct weights *w, const char *path, struct err *e)
{
    enum status st;

    *w = (struct weights){.is_published = published_is(path)};
    if (w->is_published) {
        st = published_open(&w->published, path, e);
        w->config = w->published.config;
        return st;
    }
    if ((st = safetensors_open(&w->file, path, e)) != OK)
        return st;
    if ((st = checkpoint_lm(&w->file, &w->config, e)) != OK ||
        (st = checkpoint_mask_share(&w->file, &w->mask_share, e)) != OK)
        weights_close(w);
    return st;
}

enum status weights_open_adapted(struct weights *w, const char *path, const char *adapter,
                                 struct err *e)
{
    TRY(weights_open(w, path, e));
    const enum status st = adapter ? adapter_open(&w->published, path, adapter, e) : OK;
    if (st != OK)
        weights_close(w);
    return st;
}

void weights_close(struct weights *w)
{
    published_close(&w->published);
    safetensors_close(&w->file);
    *w = (struct weights){0};
}

enum status weights_load(const struct weights *w, struct params *p, struct err *e)
{
    return w->is_published ? published_load(&w->published, p, e)
                           : checkpoint_load(&w->file, "", p, e);
}

enum status lm_place(struct arena *a, enum huge_pages huge,
                     enum status (*bind)(void *arg, struct err *e),
                     enum status (*map)(void *arg, void *base, size_t size, struct err *e),
                     void *arg, struct err *e)
{
    TRY(bind(arg, e));
    TRY(arena_place(a, huge, map, arg, e));
    return bind(arg, e);
}

enum status lm_load(struct lm *m, const struct weights *w, struct engine *g, struct err *e)
{
    TRY(weights_load(w, &m->params, e));
    lm_build_tables(m, g);
    return OK;
}

const char *weights_source(const struct weights *w)
{
    const char *const source = weights_meta(w, "source");

    return w->is_published ? w->published.source : source ? source : "";
}

const char *weights_meta(const struct weights *w, const char *key)
{
    return w->is_published ? NULL : safetensors_meta(&w->file, key);
}

enum status weights_tokenizer(const struct weights *w, char folder[PUBLISHED_PATH], struct err *e)
{
    const char *const name = weights_meta(w, "tokenizer"), *const path = w->file.path;
    const char *const slash = path ? strrchr(path, '/') : NULL;

    *folder = '\0';
    if (w->is_published && gguf_is(w->published.path)) {
        CHECK(snprintf(folder, PUBLISHED_PATH, "%s", w->published.path) < PUBLISHED_PATH);
        return OK; /* a path that was opened */
    }
    if (w->is_published)
        return published_folder(folder, w->published.path, e);
    if (!name)
        return OK;
    if (!*name || *name == '.' || strchr(name, '/'))
        return safetensors_fail(&w->file, e,
                                "metadata tokenizer is \"%.60s\"  -> write a plain name", name);
    const int n = slash
                      ? snprintf(folder, PUBLISHED_PATH, "%.*s/%s", (int)(slash - path), path, name)
                      : snprintf(folder, PUBLISHED_PATH, "%s", name);
    return n < PUBLISHED_PATH
               ? OK
               : safetensors_fail(&w->file, e, "its path is too long  -> use a shorter one");
}

void weights_xxh3(const struct weights *w, char text[17])
{
    enum { AT_ONCE = 1 << 26 };
    const struct shards *const shards = &w->published.shards;
    const int n = w->is_published ? shards->n_files : 1;
    XXH3_state_t *const state = XXH3_createState();

    NEED(state);
    XXH3_64bits_reset(state);
    for (int i = 0; i < n + !!w->published.adapter; i++) {
        const struct safetensors *const f = i == n            ? &w->published.adapter->file
                                            : w->is_published ? &shards->files[i]
                                                              : &w->file;
        for (size_t at = 0; at < f->size; at += AT_ONCE)
            XXH3_64bits_update(state, f->map + at, f->size - at < AT_ONCE ? f->size - at : AT_ONCE);
        shards_drop(f, NULL); /* a whole file in memory beside the model is too much */
    }
    snprintf(text, 17, "%016llx", (unsigned long long)XXH3_64bits_digest(state));
    XXH3_freeState(state);
}
