/* SPDX-License-Identifier: MIT
 *
 * run.json, through jansson, always replaced as a whole. */
#include "runjson.h"

#include "harness/cli/command_table.h"
#include "variants/base/json_text.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char runjson_file[] = "run.json";
static const char schema[] = "bench-run/" SCHEMA_VERSION;

static enum status no_memory(struct err *e) { return fail(e, E_NOMEM, "no memory for run.json"); }

/* Lines of "name=value" as an object; NULL without memory. Names are unique. */
static json_t *options_object(const char *lines)
{
    json_t *object = json_object();

    for (const char *line = lines; object && *line; line += *line == '\n') {
        const size_t length = strcspn(line, "\n"), name = strcspn(line, "=");
        CHECK(name < length);
        char *key = strndup(line, name);
        CHECK(!key || !json_object_get(object, key));
        json_t *value = json_stringn(line + name + 1, length - name - 1);
        if (!key || json_object_set_new(object, key, value) != 0) {
            json_decref(object);
            object = NULL;
        }
        free(key);
        line += length;
    }
    return object;
}

static json_t *words_array(int argc, char **argv)
{
    json_t *array = json_array();
    for (int i = 0; array && i < argc; i++) {
        char *const word = text_exact(argv[i]);
        if (json_array_append_new(array, json_string(word)) != 0) {
            json_decref(array);
            array = NULL;
        }
        free(word);
    }
    return array;
}

static enum status save(const char *dir, json_t *run, struct err *e)
{
    char path[FILE_PATH];
    enum status st = file_join(path, dir, runjson_file, e);
    char *text = json_write(run, JSON_INDENT(2) | JSON_PRESERVE_ORDER);

    if (!text)
        return no_memory(e);
    if (st == OK) {
        const size_t n = strlen(text);
        text[n] = '\n'; /* replaces the NUL */
        st = file_replace(path, text, n + 1, e);
    }
    free(text);
    return st;
}

/* The file as an object of our schema. */
static enum status load(json_t **run, const char *dir, char path[FILE_PATH], struct err *e)
{
    struct bytes file = {0};
    json_error_t at;
    enum status st = file_join(path, dir, runjson_file, e);

    *run = NULL;
    if (st == OK)
        st = file_read(&file, path, e);
    if (st != OK)
        return st;
    *run = json_read(file.data, file.n, JSON_REJECT_DUPLICATES, &at);
    const int why = errno;
    free(file.data);
    if (!*run && why == ENOMEM)
        return no_memory(e);
    if (!*run)
        return fail(e, E_IO, "%s line %d: %s  -> start a new run", path, at.line, at.text);
    const char *found = json_string_value(json_object_get(*run, "schema"));
    st = found ? schema_check(path, schema, found, NULL, e)
               : fail(e, E_IO, "%s has no schema  -> start a new run", path);
    if (st != OK) {
        json_decref(*run);
        *run = NULL;
    }
    return st;
}

enum status runjson_create(const char *dir, const struct runjson *r, struct err *e)
{
    enum status st = OK;
    json_t *run = json_object();

    if (json_object_set_new(run, "schema", json_string(schema)) != 0 ||
        json_object_set_new(run, "command", json_string(r->command)) != 0 ||
        json_object_set_new(run, "run_id", json_string(r->run_id)) != 0 ||
        json_object_set_new(run, "host_id", json_string(r->host_id)) != 0 ||
        json_object_set_new(run, "argv", words_array(r->argc, r->argv)) != 0 ||
        json_object_set_new(run, "options", options_object(r->options)) != 0 ||
        json_object_set_new(run, "started_at_utc", json_string(r->started_at_utc)) != 0 ||
        json_object_set_new(run, "finished_at_utc", json_null()) != 0 ||
        json_object_set_new(run, "exit_code", json_null()) != 0 ||
        json_object_set_new(run, "rows", json_object()) != 0)
        st = no_memory(e);
    if (st == OK)
        st = save(dir, run, e);
    json_decref(run);
    return st;
}

enum status runjson_finish(const char *dir, const char *finished_at_utc, int exit_code,
                           const int rows[ROW_STATUS_COUNT], struct err *e)
{
    char path[FILE_PATH];
    json_t *run;
    enum status st = load(&run, dir, path, e);

    if (st != OK)
        return st;
    json_t *counts = json_object();
    for (int i = 0; i < ROW_STATUS_COUNT; i++)
        if (json_object_set_new(counts, row_status_name[i], json_integer(rows[i])) != 0)
            st = no_memory(e);
    if (json_object_set_new(run, "finished_at_utc", json_string(finished_at_utc)) != 0 ||
        json_object_set_new(run, "exit_code", json_integer(exit_code)) != 0 ||
        json_object_set_new(run, "rows", counts) != 0)
        st = no_memory(e);
    if (st == OK)
        st = save(dir, run, e);
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
    const enum status st = load(&run, dir, path, e);

    if (st != OK)
        return st;
    const char *const name = json_string_value(json_object_get(run, "command"));
    const char *const word = json_string_value(json_array_get(json_object_get(run, "argv"), 1));
    text_put(command, TEXT_SIZE, name ? name : word && command_find(word) >= 0 ? word : "sweep");
    json_decref(run);
    return OK;
}

enum status runjson_read(const char *dir, char **options, char started_at_utc[TEXT_SIZE],
                         struct err *e)
{
    char path[FILE_PATH];
    struct bytes text = {0};
    json_t *run, *value;
    const char *name;
    enum status st = load(&run, dir, path, e);

    *options = NULL;
    if (st != OK)
        return st;
    json_t *object = json_object_get(run, "options");
    const char *started = json_string_value(json_object_get(run, "started_at_utc"));
    FILE *const f = bytes_open(&text, e);
    if (!json_is_object(object) || !started)
        st = fail(e, E_IO, "%s has no options or no start  -> start a new run", path);
    else if (!f)
        st = E_NOMEM;
    else
        text_put(started_at_utc, TEXT_SIZE, started);
    if (st == OK)
        json_object_foreach(object, name, value)
        {
            const char *const word = json_string_value(value);
            if (!word || strchr(word, '\n') || !*name || name[strcspn(name, "=\n")])
                st =
                    fail(e, E_IO, "%s: option %.64s is not a text  -> start a new run", path, name);
            else
                fprintf(f, "%s=%s\n", name, word);
        }
    const enum status closed = f ? bytes_close(f, &text, st == OK ? e : NULL) : OK;
    if (st == OK)
        st = closed;
    if (st == OK)
        *options = text.data;
    else
        free(text.data);
    json_decref(run);
    return st;
}
