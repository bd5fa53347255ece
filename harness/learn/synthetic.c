/* SPDX-License-Identifier: MIT
 *
 * The table of sources, and their texts. */
#include "synthetic.h"
#include "source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct source_kind *const sources[] = {
    &source_copy,     &source_recall, &source_mqar,   &source_selcopy, &source_cue,
    &source_flipflop, &source_group,  &source_markov, &source_dyck,    &source_lookup,
};

/* ---- texts -------------------------------------------------------------------------------- */

static const struct source_kind *kind_of(const char *text)
{
    const size_t n = strcspn(text, ":");

    for (size_t i = 0; text[n] && i < ARRAY_LEN(sources); i++)
        if (strlen(sources[i]->name) == n && memcmp(sources[i]->name, text, n) == 0)
            return sources[i];
    return NULL;
}

bool synthetic_named(const char *text) { return kind_of(text) != NULL; }

static void write_usual(char text[SOURCE_TEXT], const struct source_kind *kind)
{
    size_t n = (size_t)snprintf(text, SOURCE_TEXT, "%s:", kind->name);

    for (int k = 0; k < SOURCE_KEYS && kind->keys[k].name; k++) {
        const struct source_key *const key = &kind->keys[k];
        n += (size_t)snprintf(text + n, SOURCE_TEXT - n, "%s%s=", k ? "," : "", key->name);
        if (key->words)
            n += (size_t)snprintf(text + n, SOURCE_TEXT - n, "%s", key->words[(int)key->usual]);
        else
            n += (size_t)snprintf(text + n, SOURCE_TEXT - n, "%g", key->usual);
        CHECK(n < SOURCE_TEXT);
    }
}

bool synthetic_source(int i, char text[SOURCE_TEXT], const char **about)
{
    if (i >= (int)ARRAY_LEN(sources))
        return false;
    write_usual(text, sources[i]);
    *about = sources[i]->about;
    return true;
}

/* "z2, z5 or s5", "a whole number from 1 to 255", "a number from 0 to 1" */
static void write_bounds(char text[SOURCE_TEXT], const struct source_key *key)
{
    size_t n = 0;

    if (!key->words)
        snprintf(text, SOURCE_TEXT, "a %s from %g to %.10g", key->real ? "number" : "whole number",
                 key->least, key->most);
    for (int w = 0; key->words && key->words[w]; w++)
        n += (size_t)snprintf(text + n, SOURCE_TEXT - n, "%s%s",
                              w == 0              ? ""
                              : key->words[w + 1] ? ", "
                                                  : " or ",
                              key->words[w]);
}

static bool read_value(double *value, const struct source_key *key, const char *text)
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

static const struct source_key seed_key = {.name = "seed", .most = 1e9};

/* One "key=value". */
static enum status read_pair(struct synthetic *s, const char *text, const char *pair, struct err *e)
{
    const char *const equals = strchr(pair, '=');
    const size_t n = equals ? (size_t)(equals - pair) : strlen(pair);
    char usual[SOURCE_TEXT], bounds[SOURCE_TEXT];
    double value;

    for (int k = -1; equals && k < SOURCE_KEYS; k++) {
        const struct source_key *const key = k < 0 ? &seed_key : &s->kind->keys[k];
        if (!key->name || strlen(key->name) != n || memcmp(key->name, pair, n) != 0)
            continue;
        write_bounds(bounds, key);
        if (!read_value(&value, key, equals + 1))
            return fail(e, E_USAGE, "source \"%.120s\": %s \"%.40s\" is not allowed  -> use %s",
                        text, key->name, equals + 1, bounds);
        if (k < 0)
            s->seed = (uint64_t)value;
        else
            s->value[k] = value;
        return OK;
    }
    write_usual(usual, s->kind);
    return fail(e, E_USAGE, "source \"%.120s\": cannot read \"%.40s\"  -> write it as %s", text,
                pair, usual);
}

enum status synthetic_parse(struct synthetic *s, const char *text, struct err *e)
{
    enum { SYMBOLS = 256 };
    enum status st = OK;
    struct err why;

    *s = (struct synthetic){.kind = kind_of(text)};
    CHECK(s->kind);
    for (int k = 0; k < SOURCE_KEYS; k++)
        s->value[k] = s->kind->keys[k].usual;
    for (const char *at = strchr(text, ':') + 1; st == OK && *at;) {
        char pair[SOURCE_TEXT];
        const size_t n = strcspn(at, ",");
        snprintf(pair, sizeof(pair), "%.*s", (int)(n < sizeof(pair) ? n : sizeof(pair)), at);
        st = read_pair(s, text, pair, e);
        at += n + (at[n] == ',');
    }
    if (st == OK && s->kind->check && s->kind->check(s, &why) != OK)
        return fail(e, E_USAGE, "source \"%.120s\": %s", text, why.msg);
    if (st == OK && synthetic_vocab(s) > SYMBOLS)
        return fail(e, E_USAGE, "source \"%.120s\": %d symbols  -> use %d at most", text,
                    synthetic_vocab(s), (int)SYMBOLS);
    return st;
}

int synthetic_vocab(const struct synthetic *s) { return s->kind->vocab(s); }

void synthetic_fill(const struct synthetic *s, enum split split, uint8_t *symbols, size_t n)
{
    s->kind->fill(s, (uint64_t)split + SPLIT_COUNT * s->seed, symbols, n);
}

/* ---- floors ------------------------------------------------------------------------------- */

size_t synthetic_reach(bool recompute, int N, int M, int L, int i)
{
    const size_t n = (size_t)N, m = (size_t)M, l = (size_t)L;
    const size_t past = recompute || M == 0 ? m : n * m + (n - 1) * (l - 1);

    return past + (size_t)i + 1;
}

double synthetic_nll(const struct synthetic *s, const uint8_t *symbols, size_t at, size_t reach,
                     struct source_memo *memo)
{
    struct source_memo none = {0};

    CHECK(reach <= at);
    return s->kind->nll(s, symbols, at, reach, memo ? memo : &none);
}

bool synthetic_asks(const char *text)
{
    const struct source_kind *const kind = kind_of(text);

    return kind && kind->answers;
}

bool synthetic_answers(const struct synthetic *s, const uint8_t *symbols, size_t at)
{
    return s->kind->answers && s->kind->answers(s, symbols, at);
}
