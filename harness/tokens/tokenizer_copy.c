/* SPDX-License-Identifier: MIT
 *
 * The files of a published tokenizer, copied beside a checkpoint that is made of its model. */
#include "tokenizer.h"

#include "variants/model/import/published.h"

/* What tokenizer_open reads, and what it reads beside it. */
static const char *const tokenizer_files[] = {"tokenizer.json", "vocab.json", "merges.txt",
                                              "vocab.txt"};
static const char *const beside_them[] = {"tokenizer_config.json", "special_tokens_map.json",
                                          "added_tokens.json", "generation_config.json",
                                          PUBLISHED_CONFIG};

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
    *any = false;
    for (size_t i = 0; i < n; i++) {
        char path[FILE_PATH];
        TRY(file_join(path, from, names[i], e));
        if (access(path, F_OK) != 0) {
            TRY(remove_file(to, names[i], e));
            continue;
        }
        TRY(file_make_folder(to, e));
        TRY(file_copy_into(to, from, names[i], e));
        *any = true;
    }
    return OK;
}

enum status tokenizer_copy(const char *from, const char *to, bool *any, struct err *e)
{
    bool ignored;

    TRY(copy_files(from, to, tokenizer_files, ARRAY_LEN(tokenizer_files), any, e));

    if (*any)
        TRY(copy_files(from, to, beside_them, ARRAY_LEN(beside_them), &ignored, e));
    return OK;
}
