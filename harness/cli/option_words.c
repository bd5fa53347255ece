/* SPDX-License-Identifier: MIT
 *
 * Words to a line and back, reading @files. */
#include "option_words.h"
#include "harness/util/fileio.h"
#include "option_table.h" /* options_keep */
#include "variants/base/printable.h"

#include <ctype.h>

enum {
    DEPTH_MAX = 8, /* of files that name files */
    WORDS_MAX = 100000,
    FILE_BYTES_MAX = 1 << 20, /* larger files are not option files */
};

static enum status insert(struct words *w, int at, const struct word *new, struct err *e)
{
    if (w->n == WORDS_MAX)
        return fail(e, E_USAGE, "more than %d words of options  -> use fewer @files", WORDS_MAX);
    TRY(GROW(w->v, w->n, e));
    memmove(w->v + at + 1, w->v + at, (size_t)(w->n - at) * sizeof(*w->v));
    w->v[at] = *new;
    w->n++;
    return OK;
}

enum status words_add(struct words *w, struct options *o, const char *text, struct err *e)
{
    const struct word new = {.text = options_keep(o, text, strlen(text))};

    return insert(w, w->n, &new, e);
}

/* ---- a word on a line ---------------------------------------------------------------------- */

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *const at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

    return at ? (int)(at - digits) : -1;
}

/* The escape at `text`, after its backslash, as one byte; returns its length, 0 if it is none. */
static size_t read_escape(const char *text, char *byte)
{
    static const char letters[] = "abefnrtv\\'\"", bytes[] = "\a\b\033\f\n\r\t\v\\'\"";
    const char *const at = *text ? strchr(letters, *text) : NULL;
    int value = 0;
    size_t n = 1;

    if (at) {
        *byte = bytes[at - letters];
        return 1;
    }
    for (; *text == 'x' && n < 3 && hex_digit(text[n]) >= 0; n++)
        value = 16 * value + hex_digit(text[n]);
    *byte = (char)value;
    return value ? n : 0;
}

/* Read the word at `text` into `word`, which has room for all of `text`; returns its length on the
 * line. *quote is the quote that is still open. */
static size_t read_word(const char *text, char *word, char *quote)
{
    bool escapes = false;
    size_t n = 0, at = 0;

    *quote = '\0';
    for (; text[at] && text[at] != '\n' && (*quote || !strchr(" \t\r", text[at])); at++) {
        if (*quote && text[at] == *quote) {
            *quote = '\0';
        } else if (*quote && escapes && text[at] == '\\') {
            const size_t length = read_escape(text + at + 1, &word[n]);
            if (length == 0)
                word[n] = '\\';
            at += length;
            n++;
        } else if (*quote) {
            word[n++] = text[at];
        } else if (text[at] == '"' || text[at] == '\'') {
            *quote = text[at];
            escapes = false;
        } else if (text[at] == '$' && text[at + 1] == '\'') {
            *quote = text[++at];
            escapes = true;
        } else {
            word[n++] = text[at];
        }
    }
    word[n] = '\0';
    return at;
}

/* Is every character one that `set` does not have, and printable? */
static bool free_of(const char *word, const char *set)
{
    while (*word) {
        const size_t n = printable_length(word);
        if (n == 0 || (n == 1 && strchr(set, *word)))
            return false;
        word += n;
    }
    return true;
}

void word_print(FILE *f, const char *word, char quote)
{
    static const char special[] = " \"'#$`\\!~*?[]{}()<>|&;";
    const bool in_double = free_of(word, "\"$`\\!"), in_single = free_of(word, "'");

    if (!quote && *word && free_of(word, special))
        fputs(word, f);
    else if (in_double && (quote != '\'' || !in_single))
        fprintf(f, "\"%s\"", word);
    else if (in_single)
        fprintf(f, "'%s'", word);
    else
        text_print_quoted(f, word);
}

void word_print_option(FILE *f, const char *name, const char *value, char quote)
{
    /* A word that begins with @ would be read as a file of options. */
    fprintf(f, " --%s%c", name, *value == '@' ? '=' : ' ');
    word_print(f, value, quote);
}

/* ---- a line of words ----------------------------------------------------------------------- */

/* `room` holds the longest word of `text`. */
static enum status split_into(struct words *w, int at, struct options *o, const char *text,
                              char *room, const char *file, int depth, struct err *e)
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
        text += read_word(text, room, &quote);
        const struct word new = {options_keep(o, room, strlen(room)), file, line, depth};
        if (quote) {
            fail(e, E_USAGE, "quote %c is not closed  -> end it on the same line", quote);
            words_locate(&new, e);
            return E_USAGE;
        }
        TRY(insert(w, at++, &new, e));
    }
}

static enum status split_at(struct words *w, int at, struct options *o, const char *text,
                            const char *file, int depth, struct err *e)
{
    char *const room = need_room(strlen(text) + 1, 1);
    const enum status st = split_into(w, at, o, text, room, file, depth, e);

    free(room);
    return st;
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
    const char *why;
    const int fd = file_open_regular(path, &why);
    FILE *const f = fd < 0 ? NULL : fdopen(fd, "rb");
    char *buf = NULL;
    size_t n = 0;
    enum status st = E_IO;

    *text = NULL;
    if (fd < 0)
        return fail(
            e, E_IO,
            "cannot read @%s: %s  -> give a path from the current folder or from the repository",
            path, why);
    NEED(f);
    buf = malloc(FILE_BYTES_MAX + 2);
    if (!buf) {
        st = fail(e, E_NOMEM, "no memory to read @%s", path);
        goto out;
    }
    n = fread(buf, 1, FILE_BYTES_MAX + 1, f);
    buf[n] = '\0';
    if (ferror(f))
        fail(e, E_IO, "cannot read @%s: %s  -> check the disk", path, strerror(errno));
    else if (n > FILE_BYTES_MAX || memchr(buf, '\0', n))
        fail(e, E_IO, "@%s is not a file of options  -> write one option and its value a line",
             path);
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

/* The text of the file that a word names, to be freed. */
static enum status read_named(char **text, const struct word *from, struct err *e)
{
    const char *const name = from->text + 1;
    char path[PATH_MAX];

    if (!*name)
        return fail(e, E_USAGE, "@ without a file  -> write @harness/sweeps/smoke.args");
    if (from->depth == DEPTH_MAX)
        return fail(e, E_USAGE,
                    "@%.200s: files nest deeper than %d  -> check that none names itself", name,
                    DEPTH_MAX);
    options_locate(path, sizeof(path), name);
    return read_text(text, path, e);
}

/* Replace word `at`, "@FILE". */
static enum status expand(struct words *w, int at, struct options *o, struct err *e)
{
    const struct word from = w->v[at];
    const char *const name = from.text + 1;
    char *text = NULL;
    enum status st = read_named(&text, &from, e);

    if (st != OK) {
        words_locate(&from, e);
        return st;
    }
    CHECK(text);
    memmove(w->v + at, w->v + at + 1, (size_t)(w->n - at - 1) * sizeof(*w->v));
    w->n--;
    st = split_at(w, at, o, text, options_keep(o, name, strlen(name)), from.depth + 1, e);
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
        TRY(expand(w, i, o, e));
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
