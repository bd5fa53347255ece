/* SPDX-License-Identifier: MIT
 *
 * Reading config.json. */
#include "config_json.h"

#include "variants/base/json_text.h"
#include "variants/base/lfs_pointer.h"

#include <errno.h>

enum { CONFIG_BYTES = 1 << 20, MAX_SAID = 64, SAID_TEXT = 1024 };

/* ---- files -------------------------------------------------------------------------------- */

/* Python writes Infinity and NaN as words that JSON does not have: they become texts, which no
 * number is taken from. NULL = no memory. */
static char *quote_words(const char *text, size_t *n)
{
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    char *const to = malloc(2 * *n + 1);
    bool quoted = false;
    size_t m = 0;

    for (size_t i = 0; to && i < *n;) {
        size_t length = 0;
        for (size_t k = 0; !quoted && length == 0 && k < ARRAY_LEN(words); k++)
            if (strlen(words[k]) <= *n - i && memcmp(text + i, words[k], strlen(words[k])) == 0)
                length = strlen(words[k]);
        if (length > 0) {
            to[m++] = '"';
            memcpy(to + m, text + i, length);
            m += length;
            to[m++] = '"';
            i += length;
            continue;
        }
        quoted = text[i] == '"' ? !quoted : quoted;
        if (quoted && text[i] == '\\' && i + 1 < *n)
            to[m++] = text[i++];
        to[m++] = text[i++];
    }
    *n = m;
    return to;
}

/* JSON with such words; NULL where it is none. */
static json_t *read_python(const char *text, size_t n)
{
    char *const quoted = quote_words(text, &n);
    json_error_t ignored;

    json_t *const root = quoted ? json_read(quoted, n, JSON_REJECT_DUPLICATES, &ignored) : NULL;
    free(quoted);
    return root;
}

static enum status parse(json_t **out, const struct safetensors *file, const char *checkpoint,
                         const char *name, struct err *e)
{
    const char *const text = (const char *)file->map;
    json_error_t why;

    if (is_lfs_pointer(text, file->size))
        return fail(e, E_IO, "checkpoint %s: %s is " LFS_POINTER_SAYS, checkpoint, name);
    *out = json_read(text, file->size, JSON_REJECT_DUPLICATES, &why);
    if (!*out && errno == ENOMEM)
        return fail(e, E_NOMEM, "checkpoint %s: no memory for %s  -> free some", checkpoint, name);
    if (!*out)
        *out = read_python(text, file->size);
    if (!*out)
        return fail(e, E_IO,
                    "checkpoint %s: %s is not JSON at its line %d: %.120s  -> give the whole file",
                    checkpoint, name, why.line, why.text);
    if (json_is_object(*out))
        return OK;
    json_decref(*out);
    *out = NULL;
    return fail(e, E_IO, "checkpoint %s: %s is not a JSON object  -> give the whole file",
                checkpoint, name);
}

enum status import_json(json_t **out, const char *checkpoint, const char *path, size_t most,
                        struct err *e)
{
    const char *const name = path_name(path);
    struct safetensors file;

    *out = NULL;
    enum status st = safetensors_map(&file, path, e);
    if (st == OK && file.size > most)
        st = fail(e, E_IO,
                  "checkpoint %s: %s: larger than any that is published  -> give the folder of a "
                  "published model",
                  checkpoint, name);
    if (st == OK)
        st = parse(out, &file, checkpoint, name, e);
    safetensors_close(&file);
    return st;
}

enum status config_json_take(struct config_json *j, const char *path, json_t *root, struct err *e)
{
    *j = (struct config_json){.path = path, .family = "", .root = root, .e = e};
    j->said.path = need_text("%s", path);
    j->said.meta = need_room((size_t)2 * MAX_SAID, sizeof(*j->said.meta));
    j->read = json_object();
    return j->st = OK;
}

enum status config_json_open(struct config_json *j, const char *path, const char *file,
                             struct err *e)
{
    if (config_json_take(j, path, NULL, e) == OK)
        j->st = import_json(&j->root, path, file, CONFIG_BYTES, e);
    return j->st;
}

void config_json_close(struct config_json *j)
{
    json_decref(j->root);
    json_decref(j->read);
    safetensors_close(&j->said);
    *j = (struct config_json){0};
}

/* ---- values ------------------------------------------------------------------------------- */

void config_json_refuse(struct config_json *j, const char *fmt, ...)
{
    char what[sizeof(j->e->msg)];

    if (j->st != OK)
        return;
    VPRINT(what, sizeof(what), fmt);
    j->st = fail(j->e, E_IO, "checkpoint %s: %s", j->path, what);
}

void import_refuse(struct config_json *j, const char *fmt, ...)
{
    char what[sizeof(j->e->msg)];

    VPRINT(what, sizeof(what), fmt);
    config_json_refuse(j, "%s with %s", j->family, what);
}

static const json_t *value_named(struct config_json *j, const char *key)
{
    const json_t *const found = json_object_get(j->root, key);

    if (found)
        json_object_set(j->read, key, json_null());
    return found;
}

/* Under any of its names; null is a value here. */
static const json_t *value_at(struct config_json *j, const char *key)
{
    const json_t *found = value_named(j, key);

    for (const struct alias *a = j->aliases; a && a->key; a++) {
        const json_t *const other = strcmp(a->key, key) == 0 ? value_named(j, a->also) : NULL;
        if (found && other && !json_equal(found, other))
            config_json_refuse(j, "%s has another value than %s  -> use one of them", key, a->also);
        found = found ? found : other;
    }
    return found;
}

const json_t *config_json_at(struct config_json *j, const char *key)
{
    const json_t *const found = value_at(j, key);

    return json_is_null(found) ? NULL : found;
}

bool config_json_was_read(const struct config_json *j, const char *key)
{
    return json_object_get(j->read, key);
}

void config_json_text(char *to, size_t size, const json_t *value)
{
    char *const text = json_write(value, JSON_ENCODE_ANY | JSON_COMPACT);

    snprintf(to, size, "%s", text ? text : "?");
    free(text);
}

/* A value that is not what its key has. */
static void refuse_value(struct config_json *j, const char *key, const json_t *value,
                         const char *what)
{
    char text[64];

    config_json_text(text, sizeof(text), value);
    config_json_refuse(j, "%s %s is %s  -> use a published config", key, text, what);
}

int config_json_whole(struct config_json *j, const char *key, int absent, int least, int most)
{
    const json_t *const value = value_at(j, key);
    const json_int_t n = json_integer_value(value);
    char what[64];

    if (!value && absent == REQUIRED)
        config_json_refuse(j, "%s is missing from config.json  -> give a complete config", key);
    if (!value || j->st != OK)
        return absent == REQUIRED ? least : absent;
    if (json_is_integer(value) && n >= least && n <= most)
        return (int)n;
    snprintf(what, sizeof(what), "not a whole number in %d..%d", least, most);
    refuse_value(j, key, value, what);
    return least;
}

double config_json_real(struct config_json *j, const char *key, double absent, double least,
                        double most)
{
    const json_t *const value = value_at(j, key);
    const double x = json_number_value(value);
    char what[64];

    if (!value || j->st != OK)
        return absent;
    if (json_is_number(value) && x >= least && x <= most)
        return x;
    snprintf(what, sizeof(what), "not a number from %g to %g", least, most);
    refuse_value(j, key, value, what);
    return absent;
}

bool config_json_flag(struct config_json *j, const char *key, bool absent)
{
    const json_t *const value = value_at(j, key);

    if (!value || j->st != OK)
        return absent;
    if (json_is_boolean(value))
        return json_is_true(value);
    if (!json_is_null(value) || absent)
        refuse_value(j, key, value, "neither true nor false");
    return absent;
}

const char *config_json_word(struct config_json *j, const char *key, const char *absent)
{
    const json_t *const value = value_at(j, key);

    if (!value || j->st != OK)
        return absent;
    if (json_is_string(value))
        return json_string_value(value);
    refuse_value(j, key, value, "not a text");
    return absent;
}

/* Where what a key says goes; what it said before is gone. */
static char **said_of(struct safetensors *s, const char *key)
{
    for (int i = 0; i < s->n_meta; i++)
        if (strcmp(s->meta[2 * i], key) == 0) {
            free(s->meta[2 * i + 1]);
            return &s->meta[2 * i + 1];
        }
    CHECK(s->n_meta < MAX_SAID);
    s->meta[2 * s->n_meta] = need_text("%s", key);
    return &s->meta[2 * s->n_meta++ + 1];
}

void config_json_put(struct config_json *j, const char *key, const char *fmt, ...)
{
    char value[SAID_TEXT];

    if (j->st != OK)
        return;
    VPRINT(value, sizeof(value), fmt);
    CHECK(strlen(value) < SAID_TEXT - 1);
    *said_of(&j->said, key) = need_text("%s", value);
}

void config_json_say(struct config_json *j, const char *const said[][2])
{
    for (; (*said)[0]; said++)
        config_json_put(j, (*said)[0], "%s", (*said)[1]);
}

void config_json_put_tensor(struct config_json *j, const char *name)
{
    if (j->st != OK)
        return;
    CHECK(!j->said.tensors && strlen(name) < TENSOR_NAME);
    j->said.tensors = need_room(1, sizeof(*j->said.tensors));
    strcpy(j->said.tensors[0].name, name);
    j->said.n_tensors = 1;
}
