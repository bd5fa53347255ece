/* SPDX-License-Identifier: MIT
 *
 * Texts of keys and values, read and written. */
#include "keyed.h"

bool keyed_is(const char *text, const char *name)
{
    const size_t n = strlen(name);

    return strncmp(text, name, n) == 0 && text[n] == ':';
}

void keyed_usual(char text[KEYED_TEXT], const struct keyed_name *kind)
{
    snprintf(text, KEYED_TEXT, "%s:", kind->name);
    for (int k = 0; k < KEYED_KEYS && kind->keys[k].name; k++) {
        const struct keyed_key *const key = &kind->keys[k];
        text_append(text, KEYED_TEXT, "%s%s=", k ? "," : "", key->name);
        if (key->words)
            text_append(text, KEYED_TEXT, "%s", key->words[(int)key->usual]);
        else
            text_append(text, KEYED_TEXT, "%g", key->usual);
    }
    CHECK(strlen(text) < KEYED_TEXT - 1);
}

/* "z2, z5 or s5", "a whole number from 1 to 255", "a number from 0 to 1" */
static void write_bounds(char text[KEYED_TEXT], const struct keyed_key *key)
{
    *text = '\0';
    if (!key->words)
        snprintf(text, KEYED_TEXT, "a %s from %g to %.10g", key->real ? "number" : "whole number",
                 key->least, key->most);
    for (int w = 0; key->words && key->words[w]; w++)
        text_append(text, KEYED_TEXT, "%s%s",
                    w == 0              ? ""
                    : key->words[w + 1] ? ", "
                                        : " or ",
                    key->words[w]);
}

static bool read_value(double *value, const struct keyed_key *key, const char *text)
{
    char *end;

    for (int w = 0; key->words && key->words[w]; w++)
        if (strcmp(key->words[w], text) == 0) {
            *value = w;
            return true;
        }
    *value = strtod(text, &end);
    return !key->words && end != text && !*end && *value >= key->least && *value <= key->most &&
           (key->real || *value == floor(*value));
}

static const struct keyed_key seed_key = {.name = "seed", .most = 1e9};

/* One "key=value". */
static enum status read_pair(const struct keyed_name *kind, const char *text, const char *pair,
                             double value[KEYED_KEYS], uint64_t *seed, struct err *e)
{
    const char *const equals = strchr(pair, '=');
    const size_t n = equals ? (size_t)(equals - pair) : strlen(pair);
    char usual[KEYED_TEXT], bounds[KEYED_TEXT];
    double x;

    for (int k = -1; equals && k < KEYED_KEYS; k++) {
        const struct keyed_key *const key = k < 0 ? &seed_key : &kind->keys[k];
        if (!key->name || strlen(key->name) != n || memcmp(key->name, pair, n) != 0)
            continue;
        write_bounds(bounds, key);
        if (!read_value(&x, key, equals + 1))
            return fail(e, E_USAGE, "%s \"%.120s\": %s \"%.40s\" is not allowed  -> use %s",
                        kind->noun, text, key->name, equals + 1, bounds);
        if (k < 0)
            *seed = (uint64_t)x;
        else
            value[k] = x;
        return OK;
    }
    keyed_usual(usual, kind);
    return fail(e, E_USAGE, "%s \"%.120s\": cannot read \"%.40s\"  -> write it as %s", kind->noun,
                text, pair, usual);
}

enum status keyed_read(const struct keyed_name *n, const char *text, double value[KEYED_KEYS],
                       uint64_t *seed, struct err *e)
{
    CHECK(keyed_is(text, n->name));
    *seed = 0;
    for (int k = 0; k < KEYED_KEYS; k++)
        value[k] = n->keys[k].usual;
    for (const char *at = strchr(text, ':') + 1; *at;) {
        char pair[KEYED_TEXT];
        const size_t len = strcspn(at, ",");
        snprintf(pair, sizeof(pair), "%.*s", (int)(len < sizeof(pair) ? len : sizeof(pair)), at);
        TRY(read_pair(n, text, pair, value, seed, e));
        at += len + (at[len] == ',');
    }
    return OK;
}
