/* SPDX-License-Identifier: MIT
 *
 * bench import: a published model in the format of bench train, and its tokenizer beside it. */
#include "commands.h"
#include "harness/learn/train.h"
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

/* What tokenizer_open reads, and what it reads beside it. */
static const char *const tokenizer_files[] = {"tokenizer.json", "vocab.json", "merges.txt",
                                              "vocab.txt"};
static const char *const beside_them[] = {"tokenizer_config.json", "special_tokens_map.json",
                                          "added_tokens.json", PUBLISHED_CONFIG};

static enum status copy_file(const char *from, const char *to, const char *name, struct err *e)
{
    char a[FILE_PATH], b[FILE_PATH];
    struct bytes text = {0};
    enum status st = file_join(a, from, name, e);

    if (st == OK)
        st = file_join(b, to, name, e);
    if (st == OK)
        st = file_read(&text, a, e);
    if (st == OK)
        st = file_replace(b, text.data, text.n, e);
    free(text.data);
    return st;
}

static enum status remove_file(const char *dir, const char *name, struct err *e)
{
    char path[FILE_PATH];
    const enum status st = file_join(path, dir, name, e);

    if (st != OK || unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR)
        return st;
    return file_fail(e, "remove", path, errno);
}

/* Copy those of the n files that there are to the folder; *any: there are some. Those of an earlier
 * model go: they would be read. */
static enum status copy_files(const char *from, const char *to, const char *const *names, size_t n,
                              bool *any, struct err *e)
{
    enum status st = OK;

    *any = false;
    for (size_t i = 0; st == OK && i < n; i++) {
        char path[FILE_PATH];
        if ((st = file_join(path, from, names[i], e)) != OK)
            continue;
        if (access(path, F_OK) != 0) {
            st = remove_file(to, names[i], e);
            continue;
        }
        if (mkdir(to, 0777) != 0 && errno != EEXIST)
            return file_fail(e, "create", to, errno);
        st = copy_file(from, to, names[i], e);
        *any = true;
    }
    return st;
}

/* Copy a tokenizer to OUT.tokenizer; *any says whether there is one. Beside it the files that say
 * which token begins a text, and whose rules are meant. */
static enum status copy_tokenizer(const char *from, const char *to, bool *any, struct err *e)
{
    bool ignored;
    enum status st = copy_files(from, to, tokenizer_files, ARRAY_LEN(tokenizer_files), any, e);

    if (st == OK && *any)
        st = copy_files(from, to, beside_them, ARRAY_LEN(beside_them), &ignored, e);
    return st;
}

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
        st = copy_tokenizer(from, folder, &tokenizer, e);
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
