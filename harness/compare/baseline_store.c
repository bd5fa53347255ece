/* SPDX-License-Identifier: MIT
 *
 * Baselines as folders: OUT/baselines/<host_id>/NAME/. */
#include "baseline_store.h"

#include "harness/machine/env.h"
#include "harness/table/run.h"

#include <dirent.h>

enum { FILES = TABLE_SAMPLES + 3, NAME_MAX_LENGTH = 48 };

/* The files that a run's folder may hold. */
static const char *file_name(int i)
{
    return i < TABLE_SAMPLES        ? tables[i].file
           : i == TABLE_SAMPLES     ? raw_file[RAW_CSV]
           : i == TABLE_SAMPLES + 1 ? raw_file[RAW_ZST]
                                    : "run.json";
}

/* ---- names and places --------------------------------------------------------------------- */

enum status baseline_name(const char *name, struct err *e)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    if (!*name || *name == '.' || name[strspn(name, letters)] || strlen(name) > NAME_MAX_LENGTH)
        return fail(
            e, E_USAGE,
            "\"%.60s\" is not a name for a baseline  -> use letters, digits, - _ . (at most %d)",
            name, NAME_MAX_LENGTH);
    return OK;
}

static enum status place(char path[FILE_PATH], const struct options *o, const char *host_id,
                         const char *name, struct err *e)
{
    char all[FILE_PATH], host[FILE_PATH];

    TRY(file_join(all, o->out, "baselines", e));
    TRY(file_join(*name ? host : path, all, host_id, e));
    return *name ? file_join(path, host, name, e) : OK;
}

/* Of this machine; with an error both are empty. */
static enum status facts_here(char host_id[17], char cpu[128], struct err *e)
{
    struct env_facts *const facts = need_room(1, sizeof(*facts));
    struct topo *topo;
    const enum status st = topo_open(&topo, NULL, e);

    if (st == OK) {
        env_gather(topo, facts);
        topo_close(topo);
    }
    text_put(host_id, 17, facts->row.host_id);
    text_put(cpu, 128, facts->row.cpu_model);
    free(facts);
    return st;
}

enum status baseline_host(char host_id[17], struct err *e)
{
    return facts_here(host_id, (char[128]){""}, e);
}

void baseline_cpu(const char *run, char *buf, size_t size)
{
    struct rows rows;

    snprintf(buf, size, "unknown CPU");
    if (run_table(&rows, run, TABLE_ENV, NULL) == OK && rows.n > 0)
        snprintf(buf, size, "%.100s", ((const struct env_row *)rows.row)->cpu_model);
    rows_free(&rows);
}

void baseline_each(const struct options *o, const char *wanted, each_fn *each, void *arg)
{
    struct dirent **hosts = NULL, **names = NULL;
    char all[FILE_PATH], host[FILE_PATH], path[FILE_PATH];
    bool done = false;
    const int n =
        file_join(all, o->out, "baselines", NULL) == OK ? scandir(all, &hosts, NULL, alphasort) : 0;

    for (int i = 0; i < n; i++) {
        const char *id = hosts[i]->d_name;
        const int m = !done && id[0] != '.' && place(host, o, id, "", NULL) == OK
                          ? scandir(host, &names, NULL, alphasort)
                          : 0;
        for (int k = 0; k < m; k++) {
            const char *name = names[k]->d_name;
            if (!done && name[0] != '.' && (!wanted || strcmp(name, wanted) == 0) &&
                place(path, o, id, name, NULL) == OK && file_is_folder(path))
                done = each(arg, id, name, path);
            free(names[k]);
        }
        if (m >= 0)
            free(names);
        names = NULL;
        free(hosts[i]);
    }
    free(hosts);
}

struct found {
    char path[FILE_PATH];
    bool there;
};

static bool keep_first(void *arg, const char *host_id, const char *name, const char *path)
{
    struct found *f = arg;

    f->there = true;
    memcpy(f->path, path, strlen(path) + 1);
    return true;
}

bool baseline_find(char path[FILE_PATH], const struct options *o, const char *name,
                   const char *host_id, struct err *e)
{
    struct found other = {.there = false};
    char theirs[128], ours[128];

    if (baseline_name(name, e) != OK || place(path, o, host_id, name, e) != OK)
        return false;
    if (file_is_folder(path))
        return true;
    baseline_each(o, name, keep_first, &other);
    if (!other.there) {
        fail(e, E_USAGE, "no baseline \"%s\" in %.200s  -> bench baseline save %s", name, o->out,
             name);
        return false;
    }
    baseline_cpu(other.path, theirs, sizeof(theirs));
    (void)facts_here((char[17]){""}, ours, NULL);
    fail(e, E_USAGE,
         "baseline \"%s\" is from another machine (%s, here %s), so times are not compared  -> "
         "save it again here",
         name, theirs, ours);
    return false;
}

enum status baseline_or_run(char path[FILE_PATH], const struct options *o, const char *word,
                            struct err *e)
{
    struct found any = {.there = false};
    char host_id[17];

    if (strlen(word) >= FILE_PATH)
        return file_fail(e, "open", word, ENAMETOOLONG);
    if (file_is_folder(word) || baseline_name(word, NULL) != OK) {
        memcpy(path, word, strlen(word) + 1);
        if (file_is_folder(word))
            return OK;
        return file_fail(e, "open", word, access(word, F_OK) == 0 ? ENOTDIR : errno);
    }
    TRY(baseline_host(host_id, e));
    TRY(place(path, o, host_id, word, e));
    if (file_is_folder(path))
        return OK;
    baseline_each(o, word, keep_first, &any);
    memcpy(path, any.path, sizeof(any.path));
    return any.there ? OK
                     : fail(e, E_IO,
                            "\"%.200s\" is neither a run's folder nor a baseline  -> "
                            "bench baseline list",
                            word);
}

/* ---- saving and removing ------------------------------------------------------------------- */

/* If it is there: samples come in one form only. */
static enum status copy_file(const char *to, const char *from, const char *name, struct err *e)
{
    char source[FILE_PATH];

    TRY(file_join(source, from, name, e));
    return access(source, F_OK) == 0 ? file_copy_into(to, from, name, e) : OK;
}

enum status baseline_remove(const char *dir, struct err *e)
{
    char path[FILE_PATH];

    for (int i = 0; i < FILES; i++)
        if (file_join(path, dir, file_name(i), e) == OK)
            unlink(path);
    return rmdir(dir) == 0 ? OK : file_fail(e, "remove", dir, errno);
}

static enum status make_folders(char path[FILE_PATH], const struct options *o, const char *host_id,
                                struct err *e)
{
    char all[FILE_PATH];

    TRY(file_join(all, o->out, "baselines", e));
    TRY(place(path, o, host_id, "", e));
    TRY(file_make_folder(all, e));
    return file_make_folder(path, e);
}

static enum status fill_and_rename(const char *tmp, const char *path, const char *run,
                                   struct err *e)
{
    for (int i = 0; i < FILES; i++)
        TRY(copy_file(tmp, run, file_name(i), e));
    if (file_is_folder(path))
        TRY(baseline_remove(path, e)); /* only with --force */
    return rename(tmp, path) == 0 ? OK : file_fail(e, "create", path, errno);
}

enum status baseline_copy(const struct options *o, const char *name, const char *host_id,
                          const char *run, struct err *e)
{
    char host[FILE_PATH], path[FILE_PATH], tmp[FILE_PATH], tmp_name[NAME_MAX_LENGTH + 32];

    snprintf(tmp_name, sizeof(tmp_name), ".%s.%ld", name, (long)getpid());
    TRY(make_folders(host, o, host_id, e));
    TRY(file_join(path, host, name, e));
    TRY(file_join(tmp, host, tmp_name, e));
    if (mkdir(tmp, 0777) != 0)
        return file_fail(e, "create", tmp, errno);
    const enum status st = fill_and_rename(tmp, path, run, e);
    if (st != OK)
        baseline_remove(tmp, NULL);
    return st == OK ? file_sync_dir(host, e) : st;
}

enum status baseline_may_write(const struct options *o, const char *name, const char *host_id,
                               struct err *e)
{
    char path[FILE_PATH];

    TRY(baseline_name(name, e));
    TRY(place(path, o, host_id, name, e));
    if (file_is_folder(path) && !o->force)
        return fail(e, E_USAGE, "baseline \"%s\" exists  -> replace it with --force", name);
    return OK;
}
