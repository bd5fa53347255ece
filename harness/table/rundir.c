/* SPDX-License-Identifier: MIT
 *
 * Run folders: made, found again, cleaned after an interruption, and closed. */
#include "rundir.h"

#include <dirent.h>

enum { FOLDERS_MAX = 1000 }; /* runs of one commit in one second */

void utc_text(char text[TEXT_SIZE], time_t t)
{
    struct tm tm;
    CHECK(gmtime_r(&t, &tm) && strftime(text, TEXT_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0);
}

static void cut_slashes(char *path)
{
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
}

/* mkdir -p. */
static enum status make_dirs(const char *path, struct err *e)
{
    char part[FILE_PATH];
    const size_t n = strlen(path);

    if (n == 0 || n >= sizeof(part))
        return file_fail(e, "create", path, n ? ENAMETOOLONG : ENOENT);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        TRY(file_make_folder(part, e));
    }
    return file_is_folder(path) ? OK : file_fail(e, "create", path, ENOTDIR);
}

/* The first of NAME, NAME-2, NAME-3, ... that does not exist becomes the run's folder. */
static enum status make_folder(struct rundir *r, const char *out_dir, const char *commit,
                               time_t started, struct err *e)
{
    char stamp[TEXT_SIZE];
    struct tm tm;

    CHECK(gmtime_r(&started, &tm) && strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm) > 0);
    for (int i = 1; i < FOLDERS_MAX; i++) {
        snprintf(r->run_id, sizeof(r->run_id), "%.20s-%.32s", stamp, commit);
        if (i > 1)
            text_append(r->run_id, sizeof(r->run_id), "-%d", i);
        TRY(file_join(r->path, out_dir, r->run_id, e));
        if (mkdir(r->path, 0777) == 0)
            return OK;
        if (errno != EEXIST)
            return file_fail(e, "create", r->path, errno);
    }
    return fail(e, E_IO, "%s/%s has %d runs already  -> remove some, or give another --out",
                out_dir, stamp, FOLDERS_MAX - 1);
}

/* A new link, renamed over the old one: `latest` always exists. `before` gets what it pointed to, ""
 * if there was none. */
static enum status link_latest(const char *out_dir, const char *run_id, char before[TEXT_SIZE],
                               struct err *e)
{
    char link[FILE_PATH], tmp[FILE_PATH], name[TEXT_SIZE];

    snprintf(name, sizeof(name), ".latest.%ld", (long)getpid());
    TRY(file_join(link, out_dir, "latest", e));
    TRY(file_join(tmp, out_dir, name, e));
    const ssize_t n = readlink(link, before, TEXT_SIZE - 1);
    before[n > 0 ? n : 0] = '\0';
    unlink(tmp);
    if (symlink(run_id, tmp) != 0)
        return file_fail(e, "create", tmp, errno);
    if (rename(tmp, link) != 0) {
        const int error = errno;
        unlink(tmp);
        return file_fail(e, "replace the link", link, error);
    }
    return file_sync_dir(out_dir, e);
}

/* `latest` points to what it pointed to before, unless another run has moved it since. */
static void unlink_latest(const struct rundir *r)
{
    char out_dir[FILE_PATH], link[FILE_PATH], now[TEXT_SIZE];

    file_parent(out_dir, r->path);
    if (file_join(link, out_dir, "latest", NULL) != OK)
        return;
    const ssize_t n = readlink(link, now, sizeof(now) - 1);
    now[n > 0 ? n : 0] = '\0';
    if (strcmp(now, r->run_id) != 0)
        return;
    if (r->before[0])
        (void)link_latest(out_dir, r->before, now, NULL);
    else
        unlink(link);
}

static void rundir_init(struct rundir *r)
{
    *r = (struct rundir){.samples = {.out = {.fd = -1}}};
    for (int i = 0; i < TABLE_ENV; i++)
        r->table[i] = (struct table_file){.table = &tables[i], .out = {.fd = -1}};
}

/* The names in a folder; only files and empty folders go: whatever else is there, stays. */
void rundir_remove(const struct rundir *r)
{
    char path[FILE_PATH];
    DIR *const d = opendir(r->path);
    const struct dirent *entry;

    while (d && (entry = readdir(d)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            file_join(path, r->path, entry->d_name, NULL) == OK)
            (void)remove(path);
    if (d)
        closedir(d);
    rmdir(r->path);
    unlink_latest(r);
}

static enum status take_lock(struct rundir *r, struct err *e)
{
    char path[FILE_PATH];

    TRY(file_join(path, r->path, "run.lock", e));
    return lock_take(&r->lock, path, r->path, e);
}

static enum status fill_folder(struct rundir *r, enum raw raw, const struct runjson *json,
                               struct err *e)
{
    struct runjson named = *json;
    char path[FILE_PATH];

    named.run_id = r->run_id;
    TRY(take_lock(r, e));
    TRY(runjson_create(r->path, &named, e));
    if (json->file_name) {
        TRY(file_join(path, r->path, json->file_name, e));
        TRY(file_replace(path, json->file_text, strlen(json->file_text), e));
    }
    for (int i = 0; i < TABLE_ENV; i++) {
        TRY(file_join(path, r->path, tables[i].file, e));
        TRY(table_create(&r->table[i], &tables[i], path, e));
    }
    TRY(rundir_env(r, NULL, e));
    TRY(samples_create(&r->samples, r->path, raw, e));
    return file_sync_dir(r->path, e);
}

enum status rundir_create(struct rundir *r, const char *out_dir, const char *commit, time_t started,
                          enum raw raw, const struct runjson *json, struct err *e)
{
    char out[FILE_PATH];

    rundir_init(r);
    const int length = snprintf(out, sizeof(out), "%s", out_dir);
    if (length < 0 || length >= FILE_PATH)
        return file_fail(e, "create", out_dir, ENAMETOOLONG);
    cut_slashes(out);
    TRY(make_dirs(out, e));
    TRY(make_folder(r, out, commit, started, e));
    enum status st = fill_folder(r, raw, json, e);
    if (st == OK)
        st = link_latest(out, r->run_id, r->before, e);
    if (st != OK) {
        rundir_close(r, NULL);
        rundir_remove(r);
    }
    return st;
}

/* Follow one link, so that messages and run_id have the folder's real name. */
enum status rundir_find(char path[FILE_PATH], const char *out_dir, const char *dir, struct err *e)
{
    char target[FILE_PATH], from[FILE_PATH];

    if (dir && strlen(dir) >= sizeof(from))
        return file_fail(e, "open", dir, ENAMETOOLONG);
    if (dir)
        snprintf(from, sizeof(from), "%s", dir);
    else
        TRY(file_join(from, out_dir, "latest", e));
    cut_slashes(from);
    const ssize_t n = readlink(from, target, sizeof(target) - 1);
    if (n >= 0) {
        target[n] = '\0';
        char *slash = strrchr(from, '/');
        if (target[0] == '/' || !slash) {
            memcpy(path, target, (size_t)n + 1);
        } else {
            *slash = '\0';
            TRY(file_join(path, from, target, e));
        }
    } else {
        memcpy(path, from, strlen(from) + 1);
    }
    if (!file_is_folder(path))
        return fail(e, E_IO, "no run in %s  -> give the folder of a run, such as results/latest",
                    dir ? dir : out_dir);
    return OK;
}

static int id_order(const void *a, const void *b) { return strcmp(a, b); }

/* The cases of a table that need not be measured again. */
static enum status note_done(struct rundir *r, enum table_id table, const struct rows *rows,
                             struct err *e)
{
    const struct table *t = &tables[table];
    struct id_set *s = &r->done[table];

    r->doubled += rows->doubled;
    r->has_rows = r->has_rows || rows->n > 0;
    s->id = calloc(rows->n + 1, sizeof(*s->id));
    if (!s->id)
        return fail(e, E_NOMEM, "no memory for %zu case ids", rows->n);
    for (size_t i = 0; i < rows->n; i++) {
        const char *row = (const char *)rows->row + i * t->row_size;
        const int status = word_index(row_text(t, row, "status"), row_status_name);
        if (!row_is_final(t, row))
            continue;
        snprintf(s->id[s->n++], TEXT_SIZE, "%s", row_text(t, row, "case_id"));
        if (status >= 0)
            r->had[status]++;
    }
    qsort(s->id, s->n, sizeof(*s->id), id_order);
    return OK;
}

static enum status resume_table(struct rundir *r, enum table_id table, struct err *e)
{
    char path[FILE_PATH];
    struct rows rows;

    TRY(file_join(path, r->path, tables[table].file, e));
    TRY(table_resume(&r->table[table], &tables[table], path, &rows, e));
    const enum status st = table != TABLE_MEMORY ? note_done(r, table, &rows, e) : OK;
    rows_free(&rows);
    return st;
}

static enum status resume(struct rundir *r, struct err *e)
{
    TRY(take_lock(r, e));
    for (int i = 0; i < TABLE_ENV; i++)
        TRY(resume_table(r, (enum table_id)i, e));
    return samples_resume(&r->samples, r->path, e);
}

enum status rundir_resume(struct rundir *r, const char *out_dir, const char *dir, struct err *e)
{
    char path[FILE_PATH]; /* dir may be r->path */
    enum status st = rundir_find(path, out_dir, dir, e);

    rundir_init(r);
    TRY(st);
    memcpy(r->path, path, sizeof(path));
    if (!text_put(r->run_id, sizeof(r->run_id), path_name(r->path)))
        return fail(e, E_IO, "%s has a name longer than %d bytes  -> rename the folder", r->path,
                    TEXT_SIZE - 1);
    st = resume(r, e);
    if (st != OK)
        rundir_close(r, NULL);
    return st;
}

bool rundir_done(const struct rundir *r, enum table_id table, const char *case_id)
{
    const struct id_set *s = &r->done[table];

    CHECK(table == TABLE_LATENCY || table == TABLE_PERPLEXITY);
    return s->n > 0 && bsearch(case_id, s->id, s->n, sizeof(*s->id), id_order);
}

enum status rundir_write(struct rundir *r, enum table_id table, const void *row, struct err *e)
{
    CHECK(table < TABLE_ENV);
    r->has_rows = true;
    return table_write(&r->table[table], row, e);
}

enum status rundir_env(struct rundir *r, const struct env_row *row, struct err *e)
{
    char path[FILE_PATH];

    TRY(file_join(path, r->path, tables[TABLE_ENV].file, e));
    return table_replace(&tables[TABLE_ENV], path, row, row != NULL, e);
}

enum status rundir_close(struct rundir *r, struct err *e)
{
    enum status st = samples_close(&r->samples, e);

    for (int i = 0; i < TABLE_ENV; i++) {
        const enum status closed = table_close(&r->table[i], st == OK ? e : NULL);
        if (st == OK)
            st = closed;
        free(r->done[i].id);
        r->done[i] = (struct id_set){0};
    }
    lock_release(&r->lock);
    return st;
}
