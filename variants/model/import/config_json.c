/* SPDX-License-Identifier: MIT
 *
 * Reading config.json. */
#include "config_json.h"

#include "variants/base/json_text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONFIG_BYTES = 1 << 20, MAX_SAID = 64, SAID_TEXT = 256 };

/* ---- files -------------------------------------------------------------------------------- */

static bool read_whole(int fd, char *to, size_t n)
{
    for (size_t at = 0; at < n;) {
        const ssize_t got = read(fd, to + at, n - at);
        if (got <= 0)
            return false;
        at += (size_t)got;
    }
    return true;
}

/* The bytes of a regular file; what is wrong with it, or NULL. */
static const char *read_text(char **text, size_t *n, const char *path, size_t most)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const char *why = NULL;
    struct stat info;

    *text = NULL;
    if (fd < 0 || fstat(fd, &info) != 0)
        why = strerror(errno);
    else if (!S_ISREG(info.st_mode))
        why = "not a regular file";
    else if ((uint64_t)info.st_size > most)
        why = "larger than any that is published";
    else if (!(*text = malloc((size_t)info.st_size + 1)))
        why = "no memory";
    else if (!read_whole(fd, *text, *n = (size_t)info.st_size))
        why = "cannot be read to its end";
    if (fd >= 0)
        close(fd);
    return why;
}

enum status import_json(json_t **out, const char *checkpoint, const char *path, size_t most,
                        struct err *e)
{
    const char *const slash = strrchr(path, '/'), *const name = slash ? slash + 1 : path;
    json_error_t why;
    size_t n = 0;
    char *text;

    *out = NULL;
    const char *const wrong = read_text(&text, &n, path, most);
    if (wrong) {
        free(text);
        return fail(e, E_IO, "checkpoint %s: %s: %s  -> give the folder of a published model",
                    checkpoint, name, wrong);
    }
    *out = json_read(text, n, JSON_REJECT_DUPLICATES, &why);
    const bool starved = !*out && errno == ENOMEM;
    free(text);
    if (starved)
        return fail(e, E_NOMEM, "checkpoint %s: no memory for %s  -> free some", checkpoint, name);
    if (!*out)
        return fail(e, E_IO,
                    "checkpoint %s: %s is not JSON at its line %d: %.120s  -> a whole file",
                    checkpoint, name, why.line, why.text);
    if (json_is_object(*out))
        return OK;
    json_decref(*out);
    *out = NULL;
    return fail(e, E_IO, "checkpoint %s: %s is not a JSON object  -> a whole file", checkpoint,
                name);
}

enum status config_json_open(struct config_json *j, const char *path, const char *file,
                             struct err *e)
{
    *j = (struct config_json){.path = path, .family = "", .e = e};
    j->said.path = strdup(path);
    j->said.meta = calloc((size_t)2 * MAX_SAID, sizeof(*j->said.meta));
    if (!j->said.path || !j->said.meta)
        return j->st = fail(e, E_NOMEM, "checkpoint %s: no memory  -> free some", path);
    return j->st = import_json(&j->root, path, file, CONFIG_BYTES, e);
}

void config_json_close(struct config_json *j)
{
    json_decref(j->root);
    safetensors_close(&j->said);
    *j = (struct config_json){0};
}

/* ---- values ------------------------------------------------------------------------------- */

void config_json_refuse(struct config_json *j, const char *fmt, ...)
{
    char what[sizeof(j->e->msg)];
    va_list ap;

    if (j->st != OK)
        return;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    j->st = fail(j->e, E_IO, "checkpoint %s: %s", j->path, what);
}

const json_t *config_json_at(const struct config_json *j, const char *key)
{
    static const char *const rotary[] = {"rope_theta", "partial_rotary_factor"};
    const json_t *found = NULL;

    for (size_t i = 0; i < ARRAY_LEN(rotary); i++)
        if (strcmp(rotary[i], key) == 0)
            found = json_object_get(json_object_get(j->root, "rope_parameters"), key);
    if (!found || json_is_null(found))
        found = json_object_get(j->root, key);
    return found && !json_is_null(found) ? found : NULL;
}

/* A value as the file writes it, maybe cut. */
static void as_text(char *to, size_t size, const json_t *value)
{
    char *const text = json_write(value, JSON_ENCODE_ANY | JSON_COMPACT);

    snprintf(to, size, "%s", text ? text : "?");
    free(text);
}

int config_json_whole(struct config_json *j, const char *key, int absent, int least, int most)
{
    const json_t *const value = config_json_at(j, key);
    const json_int_t n = json_integer_value(value);
    char text[64];

    if (!value && absent == REQUIRED)
        config_json_refuse(j, "%s is missing from config.json  -> a complete config", key);
    if (!value || j->st != OK)
        return absent == REQUIRED ? least : absent;
    if (json_is_integer(value) && n >= least && n <= most)
        return (int)n;
    as_text(text, sizeof(text), value);
    config_json_refuse(j, "%s %s is not a whole number in %d..%d  -> a published config", key, text,
                       least, most);
    return least;
}

double config_json_real(struct config_json *j, const char *key, double absent, double least,
                        double most)
{
    const json_t *const value = config_json_at(j, key);
    const double x = json_number_value(value);
    char text[64];

    if (!value || j->st != OK)
        return absent;
    if (json_is_number(value) && x >= least && x <= most)
        return x;
    as_text(text, sizeof(text), value);
    config_json_refuse(j, "%s %s is not a number from %g to %g  -> a published config", key, text,
                       least, most);
    return absent;
}

bool config_json_flag(struct config_json *j, const char *key, bool absent)
{
    const json_t *const value = config_json_at(j, key);
    char text[64];

    if (!value || j->st != OK)
        return absent;
    if (json_is_boolean(value))
        return json_is_true(value);
    as_text(text, sizeof(text), value);
    config_json_refuse(j, "%s %s is neither true nor false  -> a published config", key, text);
    return absent;
}

const char *config_json_word(struct config_json *j, const char *key, const char *absent)
{
    const json_t *const value = config_json_at(j, key);
    char text[64];

    if (!value || j->st != OK)
        return absent;
    if (json_is_string(value))
        return json_string_value(value);
    as_text(text, sizeof(text), value);
    config_json_refuse(j, "%s %s is not a text  -> a published config", key, text);
    return absent;
}

void config_json_put(struct config_json *j, const char *key, const char *fmt, ...)
{
    struct safetensors *const s = &j->said;
    char value[SAID_TEXT];
    va_list ap;

    if (j->st != OK)
        return;
    CHECK(s->n_meta < MAX_SAID);
    va_start(ap, fmt);
    CHECK(vsnprintf(value, sizeof(value), fmt, ap) < SAID_TEXT);
    va_end(ap);
    s->meta[2 * s->n_meta] = strdup(key);
    s->meta[2 * s->n_meta + 1] = strdup(value);
    s->n_meta++;
    if (!s->meta[2 * s->n_meta - 2] || !s->meta[2 * s->n_meta - 1])
        j->st = fail(j->e, E_NOMEM, "checkpoint %s: no memory  -> free some", j->path);
}

void config_json_put_tensor(struct config_json *j, const char *name)
{
    if (j->st != OK)
        return;
    CHECK(!j->said.tensors && strlen(name) < TENSOR_NAME);
    j->said.tensors = calloc(1, sizeof(*j->said.tensors));
    if (!j->said.tensors) {
        j->st = fail(j->e, E_NOMEM, "checkpoint %s: no memory  -> free some", j->path);
        return;
    }
    strcpy(j->said.tensors[0].name, name);
    j->said.n_tensors = 1;
}
