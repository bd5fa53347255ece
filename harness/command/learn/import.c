/* SPDX-License-Identifier: MIT
 *
 * bench import: a published model in the format of bench train, and its tokenizer beside it. */
#include "harness/command/commands.h"
#include "harness/learn/train/train_files.h"
#include "harness/tokens/tokenizer.h"

#include "variants/model/import/weights.h"

static enum status convert(struct lm *m, struct arena *a, const struct weights *w, const char *dir,
                           const char *out, struct err *e)
{
    char folder[FILE_PATH], from[PUBLISHED_PATH];
    bool tokenizer;

    if (snprintf(folder, sizeof(folder), "%s.tokenizer", out) >= (int)sizeof(folder))
        return file_fail(e, "create", out, ENAMETOOLONG);
    TRY(published_folder(from, dir, e));
    params_place(&m->params, a);
    TRY(arena_place(a, HUGE_NEVER, NULL, NULL, e));
    params_place(&m->params, a);
    TRY(weights_load(w, &m->params, e));
    TRY(tokenizer_copy(from, folder, &tokenizer, e));
    const struct provenance made = {.unit = "token",
                                    .source = w->published.source,
                                    .tokenizer = tokenizer ? path_name(folder) : NULL};
    TRY(trainer_forget(out, e)); /* of a training that is overwritten */
    return checkpoint_save(out, &w->config, &m->params, &made, e);
}

static enum status write_checkpoint(const struct weights *w, const char *dir, const char *out,
                                    struct err *e)
{
    struct arena a = {0};
    struct lm m;

    TRY(lm_init(&m, &w->config, e));
    const enum status st = convert(&m, &a, w, dir, out, e);
    lm_free(&m);
    arena_release(&a);
    return st;
}

static enum status write_new(const struct weights *w, const char *dir, const struct options *o,
                             struct err *e)
{
    if (!o->force && access(o->ckpt, F_OK) == 0)
        return fail(e, E_IO, "checkpoint %s exists  -> --force overwrites it", o->ckpt);
    TRY(file_may_replace(o->ckpt, e));
    return write_checkpoint(w, dir, o->ckpt, e);
}

static enum status import(struct weights *w, const char *dir, const struct options *o,
                          struct err *e)
{
    struct lock lock = {0};

    if (!published_is(dir))
        return fail(e, E_IO,
                    "checkpoint %s: not the folder of a published model  -> give one "
                    "with " PUBLISHED_CONFIG,
                    dir);
    TRY(weights_open(w, dir, e));
    TRY(trainer_lock(&lock, o->ckpt, e)); /* nobody may be training what is written */
    const enum status st = write_new(w, dir, o, e);
    lock_release(&lock);
    return st;
}

enum status cmd_import(struct options *opt, int *code, struct err *e)
{
    const char *const dir = opt->words.n ? opt->words.v[0] : NULL;
    struct weights w = {0};

    if (!dir || !opt->ckpt)
        return fail(e, E_USAGE,
                    "import needs a folder and a file to write  -> bench import DIR --ckpt FILE");
    const enum status st = import(&w, dir, opt, e);
    if (st == OK && !opt->quiet) {
        CHECK(w.config.variant);
        text_line(stderr,
                  "bench: wrote %s of family %s to %s as variant %s; next: bench eval --ckpt %s "
                  "--corpus TEXT",
                  dir, w.published.family, opt->ckpt, w.config.variant->name, opt->ckpt);
    }
    weights_close(&w);
    return st;
}
