/* SPDX-License-Identifier: MIT
 *
 * Splitting text into words, reading @files. */
#include "option_words.h"
#include "harness/util/grow.h"
#include "option_table.h" /* options_keep */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DEPTH_MAX = 8, /* of files that name files */
    WORDS_MAX = 100000,
    FILE_BYTES_MAX = 1 << 20, /* larger files are not option files */
};

static enum status insert(struct words *w, int at, const struct word *new, struct err *e)
{
    if (w->n == WORDS_MAX)
        return fail(e, E_USAGE, "more than %d words of options  -> use fewer @files", WORDS_MAX);
    if (GROW(w->v, w->n, e) != OK)
        return E_NOMEM;
    memmove(w->v + at + 1, w->v + at, (size_t)(w->n - at) * sizeof(*w->v));
    w->v[at] = *new;
    w->n++;
    return OK;
}

enum status words_add(struct words *w, struct options *o, const char *text, struct err *e)
{
    const struct word new = {.text = options_keep(o, text, strlen(text))};

    if (!new.text)
        return fail(e, E_NOMEM, "no memory for options");
    return insert(w, w->n, &new, e);
}

/* Length of the word at `text` including quotes. *quote is the quote that is still open. */
static size_t word_length(const char *text, char *quote)
{
    size_t n = 0;

    *quote = '\0';
    for (; text[n]; n++) {
        if (*quote) {
            if (text[n] == '\n')
                break;
            if (text[n] == *quote)
                *quote = '\0';
        } else if (text[n] == '"' || text[n] == '\'') {
            *quote = text[n];
        } else if (strchr(" \t\r\n", text[n])) {
            break;
        }
    }
    return n;
}

/* A kept copy of text[0..len) without its quotes. */
static char *unquoted(struct options *o, const char *text, size_t len)
{
    char *const word = options_keep(o, text, len);
    size_t n = 0;
    char quote = '\0';

    if (!word)
        return NULL;
    for (size_t i = 0; i < len; i++) {
        if (quote ? text[i] == quote : text[i] == '"' || text[i] == '\'')
            quote = quote ? '\0' : text[i];
        else
            word[n++] = text[i];
    }
    word[n] = '\0';
    return word;
}

static enum status split_at(struct words *w, int at, struct options *o, const char *text,
                            const char *file, int depth, struct err *e)
{
    int line = 1;

    for (;;) {
        for (; *text && strchr(" \t\r\n", *text); text++)
            line += *text == '\n';
        if (*text == '#') {
            text += strcspn(text, "\n");
            continue;
        }
        if (!*text)
            return OK;

        char quote;
        const size_t len = word_length(text, &quote);
        const struct word new = {unquoted(o, text, len), file, line, depth};
        if (!new.text)
            return fail(e, E_NOMEM, "no memory for options");
        if (quote) {
            fail(e, E_USAGE, "quote %c is not closed  -> end it on the same line", quote);
            words_locate(&new, e);
            return E_USAGE;
        }
        const enum status st = insert(w, at++, &new, e);
        if (st != OK)
            return st;
        text += len;
    }
}

enum status words_split(struct words *w, struct options *o, const char *text, const char *file,
                        int depth, struct err *e)
{
    return split_at(w, w->n, o, text, file, depth, e);
}

bool options_locate_own(char *out, size_t size, const char *path)
{
    static const char *const below[] = {"", "share/bench/"}; /* the repository, an installation */
    char exe[PATH_MAX];

    if (realpath("/proc/self/exe", exe))
        for (int level = 0; level < 4; level++) {
            char *const slash = strrchr(exe, '/');
            if (!slash)
                break;
            *slash = '\0';
            for (size_t i = 0; i < ARRAY_LEN(below); i++)
                if ((size_t)snprintf(out, size, "%s/%s%s", exe, below[i], path) < size &&
                    access(out, F_OK) == 0)
                    return true;
        }
    snprintf(out, size, "%s", path);
    return false;
}

bool options_locate(char *out, size_t size, const char *path)
{
    snprintf(out, size, "%s", path);
    return access(path, F_OK) == 0 || (*path != '/' && options_locate_own(out, size, path));
}

/* The whole file, NUL-terminated, to be freed. */
static enum status read_text(char **text, const char *path, struct err *e)
{
    FILE *const f = fopen(path, "rb");
    char *buf = NULL;
    size_t n = 0;
    enum status st = E_IO;

    *text = NULL;
    if (!f)
        return fail(e, E_IO,
                    "cannot read @%s: %s  -> paths start at the current folder or the repository",
                    path, strerror(errno));
    buf = malloc(FILE_BYTES_MAX + 2);
    if (!buf) {
        st = fail(e, E_NOMEM, "no memory to read @%s", path);
        goto out;
    }
    n = fread(buf, 1, FILE_BYTES_MAX + 1, f);
    buf[n] = '\0';
    if (ferror(f))
        fail(e, E_IO, "cannot read @%s: %s", path, strerror(errno));
    else if (n > FILE_BYTES_MAX || memchr(buf, '\0', n))
        fail(e, E_IO, "@%s is no file of options  -> one option and value a line", path);
    else
        st = OK;
out:
    fclose(f);
    if (st == OK)
        *text = buf;
    else
        free(buf);
    return st;
}

/* Replace word `at`, "@FILE". */
static enum status expand(struct words *w, int at, struct options *o, struct err *e)
{
    const struct word from = w->v[at];
    const char *const name = from.text + 1;
    char path[PATH_MAX];
    char *text = NULL, *file = NULL;
    enum status st;

    if (!*name) {
        st = fail(e, E_USAGE, "@ without a file  -> write @harness/sweeps/smoke.args");
    } else if (from.depth == DEPTH_MAX) {
        st = fail(e, E_USAGE, "@%.200s: files nest deeper than %d  -> does one name itself?", name,
                  DEPTH_MAX);
    } else {
        options_locate(path, sizeof(path), name);
        st = read_text(&text, path, e);
    }
    if (st == OK) {
        file = options_keep(o, name, strlen(name));
        if (!file)
            st = fail(e, E_NOMEM, "no memory for options");
    }
    if (st != OK || !text) {
        words_locate(&from, e);
    } else {
        memmove(w->v + at, w->v + at + 1, (size_t)(w->n - at - 1) * sizeof(*w->v));
        w->n--;
        st = split_at(w, at, o, text, file, from.depth + 1, e);
    }
    free(text);
    return st;
}

enum status words_expand(struct words *w, struct options *o, struct err *e)
{
    int i = 0;

    while (i < w->n && strcmp(w->v[i].text, "--") != 0) {
        if (w->v[i].text[0] != '@') {
            i++; /* look at the expanded word again: its first word may be an @file too */
            continue;
        }
        const enum status st = expand(w, i, o, e);
        if (st != OK)
            return st;
    }
    return OK;
}

void words_locate(const struct word *w, struct err *e)
{
    if (!w->file || !e)
        return;
    const struct err inner = *e;
    fail(e, OK, "%.120s line %d: %.500s", w->file, w->line, inner.msg);
}

void words_free(struct words *w)
{
    free(w->v);
    *w = (struct words){0};
}
