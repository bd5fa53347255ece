/* SPDX-License-Identifier: MIT
 *
 * bench import: a published model in the format of bench train, and its tokenizer beside it. */
#include "commands.h"
#include "harness/learn/train.h"
#include "harness/tokens/tokenizer_copy.h"
#include "harness/util/fileio.h"
#include "harness/util/text.h"

#include "variants/base/arena.h"
#include "variants/model/lm.h"
#include "variants/model/weights.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status load(struct lm *m, const struct weights *w, struct arena *a, struct err *e)
{
    params_place(&m->params, a);
    enum status st = arena_place(a, HUGE_NEVER, NULL, NULL, e);
    if (st != OK)
        return st;
    params_place(&m->params, a);
    return weights_load(w, &m->params, e);
}

static enum status write_checkpoint(const struct weights *w, const char *dir, const char *out,
                                    struct err *e)
{
    const char *const slash = strrchr(out, '/');
    char folder[FILE_PATH], from[PUBLISHED_PATH];
    struct arena a = {0};
    struct lm m;
    bool tokenizer;
    enum status st = lm_init(&m, &w->config, e);

    if (st != OK)
        return st;
    if (snprintf(folder, sizeof(folder), "%s.tokenizer", out) >= (int)sizeof(folder))
        st = file_fail(e, "create", out, ENAMETOOLONG);
    if (st == OK)
        st = published_folder(from, dir, e);
    if (st == OK)
        st = load(&m, w, &a, e);
    if (st == OK)
        st = tokenizer_copy(from, folder, &tokenizer, e);
    if (st == OK) {
        const struct provenance made = {
            .unit = "token",
            .source = w->published.source,
            .tokenizer = tokenizer ? folder + (slash ? slash + 1 - out : 0) : NULL};
        st = trainer_forget(out, e); /* of a training that is overwritten */
        if (st == OK)
            st = checkpoint_save(out, &w->config, &m.params, &made, e);
    }
    lm_free(&m);
    arena_release(&a);
    return st;
}

/* Nobody may be training what is written, and only --force overwrites it. */
static enum status write_alone(const struct weights *w, const char *dir, const struct options *o,
                               struct err *e)
{
    struct lock lock = {0};
    enum status st = trainer_lock(&lock, o->ckpt, e);

    if (st == OK && !o->force && access(o->ckpt, F_OK) == 0)
        st = fail(e, E_IO, "checkpoint %s exists  -> --force overwrites it", o->ckpt);
    if (st == OK)
        st = file_may_replace(o->ckpt, e);
    if (st == OK)
        st = write_checkpoint(w, dir, o->ckpt, e);
    lock_release(&lock);
    return st;
}

int cmd_import(struct options *opt)
{
    const char *const dir = opt->words.n ? opt->words.v[0] : NULL;
    struct weights w = {0};
    struct err e;
    enum status st = OK;

    if (!dir || !opt->ckpt)
        return report_error(fail(&e, E_USAGE,
                                 "import needs a folder and a file to write  -> bench "
                                 "import DIR --ckpt FILE"),
                            &e);
    if (!published_is(dir))
        st = fail(&e, E_IO,
                  "checkpoint %s: not the folder of a published model  -> give one "
                  "with " PUBLISHED_CONFIG,
                  dir);
    if (st == OK)
        st = weights_open(&w, dir, &e);
    if (st == OK)
        st = write_alone(&w, dir, opt, &e);
    if (st == OK && !opt->quiet)
        text_line(stderr,
                  "bench: wrote %s of family %s to %s as variant %s; next: bench eval --ckpt %s "
                  "--corpus TEXT",
                  dir, w.published.family, opt->ckpt, w.config.variant->name, opt->ckpt);
    weights_close(&w);
    return st == OK ? EXIT_FINE : report_error(st, &e);
}
