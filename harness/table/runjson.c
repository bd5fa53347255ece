/* SPDX-License-Identifier: MIT
 *
 * run.json, through jansson, always replaced as a whole. */
#include "runjson.h"

#include "harness/cli/command_table.h"
#include "variants/base/json_text.h"

const char runjson_file[] = "run.json";
static const char schema[] = "bench-run/" SCHEMA_VERSION;

/* Lines of "name=value" as an object. Names are unique. */
static json_t *options_object(const char *lines)
{
    json_t *object = json_object();

    for (const char *line = lines; *line; line += *line == '\n') {
        const size_t length = strcspn(line, "\n"), name = strcspn(line, "=");
        CHECK(name < length);
        char *const key = need_text("%.*s", (int)name, line);
        CHECK(!json_object_get(object, key));
        json_object_set_new(object, key, json_stringn(line + name + 1, length - name - 1));
        free(key);
        line += length;
    }
    return object;
}

static json_t *words_array(int argc, char **argv)
{
    json_t *array = json_array();
    for (int i = 0; i < argc; i++) {
        char *const word = text_exact(argv[i]);
        json_array_append_new(array, json_string(word));
        free(word);
    }
    return array;
}

static enum status save(const char *dir, json_t *run, struct err *e)
{
    char path[FILE_PATH];

    TRY(file_join(path, dir, runjson_file, e));
    char *const text = json_write(run, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    NEED(text);
    const size_t n = strlen(text);
    text[n] = '\n'; /* replaces the NUL */
    const enum status st = file_replace(path, text, n + 1, e);
    free(text);
    return st;
}

/* The file as an object of our schema. */
static enum status load(json_t **run, const char *dir, char path[FILE_PATH], struct err *e)
{
    struct bytes file;
    json_error_t at;

    *run = NULL;
    TRY(file_join(path, dir, runjson_file, e));
    TRY(file_read(&file, path, e));
    *run = json_read(file.data, file.n, JSON_REJECT_DUPLICATES, &at);
    const int why = errno;
    free(file.data);
    NEED(*run || why != ENOMEM);
    if (!*run)
        return fail(e, E_IO, "%s line %d: %s  -> start a new run", path, at.line, at.text);
    const char *found = json_string_value(json_object_get(*run, "schema"));
    const enum status st = found ? schema_check(path, schema, found, NULL, e)
                                 : fail(e, E_IO, "%s has no schema  -> start a new run", path);
    if (st != OK) {
        json_decref(*run);
        *run = NULL;
    }
    return st;
}

enum status runjson_create(const char *dir, const struct runjson *r, struct err *e)
{
    json_t *run = json_object();

    json_object_set_new(run, "schema", json_string(schema));
    json_object_set_new(run, "command", json_string(r->command));
    json_object_set_new(run, "run_id", json_string(r->run_id));
    json_object_set_new(run, "host_id", json_string(r->host_id));
    json_object_set_new(run, "argv", words_array(r->argc, r->argv));
    json_object_set_new(run, "options", options_object(r->options));
    json_object_set_new(run, "started_at_utc", json_string(r->started_at_utc));
    json_object_set_new(run, "finished_at_utc", json_null());
    json_object_set_new(run, "exit_code", json_null());
    json_object_set_new(run, "rows", json_object());
    const enum status st = save(dir, run, e);
    json_decref(run);
    return st;
}

enum status runjson_finish(const char *dir, const char *finished_at_utc, int exit_code,
                           const int rows[ROW_STATUS_COUNT], struct err *e)
{
    char path[FILE_PATH];
    json_t *run;

    TRY(load(&run, dir, path, e));
    json_t *const counts = json_object();
    for (int i = 0; i < ROW_STATUS_COUNT; i++)
        json_object_set_new(counts, row_status_name[i], json_integer(rows[i]));
    json_object_set_new(run, "finished_at_utc", json_string(finished_at_utc));
    json_object_set_new(run, "exit_code", json_integer(exit_code));
    json_object_set_new(run, "rows", counts);
    const enum status st = save(dir, run, e);
    json_decref(run);
    return st;
}

int64_t runjson_counted(const char *dir)
{
    char path[FILE_PATH];
    const char *status;
    json_t *run, *count;
    int64_t n = 0;

    if (load(&run, dir, path, &(struct err){""}) != OK)
        return access(path, F_OK) == 0 ? INT64_MAX : 0;
    json_object_foreach(json_object_get(run, "rows"), status, count)
    {
        const int64_t rows = json_integer_value(count);
        n += rows >= 0 && rows <= INT32_MAX ? rows : 0;
    }
    json_decref(run);
    return n;
}

enum status runjson_command(const char *dir, char command[TEXT_SIZE], struct err *e)
{
    char path[FILE_PATH];
    json_t *run;

    TRY(load(&run, dir, path, e));
    const char *const name = json_string_value(json_object_get(run, "command"));
    const char *const word = json_string_value(json_array_get(json_object_get(run, "argv"), 1));
    text_put(command, TEXT_SIZE, name ? name : word && command_find(word) >= 0 ? word : "sweep");
    json_decref(run);
    return OK;
}

/* "name=value", a line each. */
static enum status print_options(FILE *f, json_t *object, const char *path, struct err *e)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        const char *const word = json_string_value(value);
        if (!word || strchr(word, '\n') || !*name || name[strcspn(name, "=\n")])
            return fail(e, E_IO, "%s: option %.64s is not a text  -> start a new run", path, name);
        fprintf(f, "%s=%s\n", name, word);
    }
    return OK;
}

enum status runjson_read(const char *dir, char **options, char started_at_utc[TEXT_SIZE],
                         struct err *e)
{
    char path[FILE_PATH];
    struct bytes text;
    json_t *run;

    *options = NULL;
    TRY(load(&run, dir, path, e));
    json_t *object = json_object_get(run, "options");
    const char *started = json_string_value(json_object_get(run, "started_at_utc"));
    FILE *const f = bytes_begin(&text);
    enum status st = OK;
    if (!json_is_object(object) || !started)
        st = fail(e, E_IO, "%s has no options or no start  -> start a new run", path);
    else
        st = print_options(f, object, path, e);
    bytes_end(f, &text);
    if (st == OK) {
        text_put(started_at_utc, TEXT_SIZE, started);
        *options = text.data;
    } else {
        free(text.data);
    }
    json_decref(run);
    return st;
}
