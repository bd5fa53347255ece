/* SPDX-License-Identifier: MIT
 *
 * A golden file, those of a folder, and those of folders of published models in it. */
#include "golden_files.h"
#include "harness/util/fileio.h"
#include "harness/util/grow.h"
#include "variants/model/import/published.h"

#include <dirent.h>

static int by_name(const void *a, const void *b)
{
    const struct golden_file *const x = a, *const y = b;

    return strcmp(x->path, y->path);
}

/* The golden file of a published model's folder. */
#define EXPECTED "expect.safetensors"

static void add(struct golden_files *f, const char *path)
{
    GROW_SMALL(f->at, f->n);
    f->at[f->n++] = (struct golden_file){.path = need_text("%s", path)};
}

/* dir/name, if it is there; with `among` only if that is there, too. */
static bool add_if_there(struct golden_files *f, const char *dir, const char *name,
                         const char *among)
{
    char path[FILE_PATH], beside[FILE_PATH];
    struct err e;

    if (file_join(path, dir, name, &e) != OK ||
        (among && file_join(beside, dir, among, &e) != OK) || access(path, F_OK) != 0 ||
        (among && access(beside, F_OK) != 0))
        return false;
    add(f, path);
    return true;
}

/* Of a published model, in either form. */
static bool add_model(struct golden_files *f, const char *dir)
{
    return add_if_there(f, dir, EXPECTED, PUBLISHED_CONFIG) ||
           add_if_there(f, dir, EXPECTED, PUBLISHED_GGUF);
}

/* A folder of golden files has files, and folders of published models. */
static void add_entry(struct golden_files *f, const char *dir, const char *name)
{
    char path[FILE_PATH];
    struct err e;

    if (*name == '.')
        return;
    if (text_ends(name, ".safetensors"))
        add_if_there(f, dir, name, NULL);
    else if (file_join(path, dir, name, &e) == OK)
        add_model(f, path);
}

enum status golden_files_list(struct golden_files *f, const char *path, struct err *e)
{
    struct stat s;

    if (stat(path, &s) != 0)
        return fail(e, E_IO, "cannot read %s: %s  -> give a golden file or a folder of them", path,
                    strerror(errno));
    if (!S_ISDIR(s.st_mode)) {
        add(f, path);
        return OK;
    }
    if (add_model(f, path))
        return OK;
    DIR *dir = opendir(path);
    if (!dir)
        return fail(e, E_IO, "cannot read %s: %s  -> check its permissions", path, strerror(errno));
    for (const struct dirent *d; (d = readdir(dir));)
        add_entry(f, path, d->d_name);
    closedir(dir);
    if (f->n == 0)
        return fail(e, E_IO,
                    "%s has no *.safetensors files  -> give a folder of golden files, or of a "
                    "published model with " EXPECTED,
                    path);
    f->folder = true;
    qsort(f->at, (size_t)f->n, sizeof(*f->at), by_name);
    return OK;
}

void golden_files_free(struct golden_files *f)
{
    for (int i = 0; i < f->n; i++)
        free(f->at[i].path);
    free(f->at);
}
