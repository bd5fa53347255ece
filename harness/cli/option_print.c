/* SPDX-License-Identifier: MIT
 *
 * Options as text: one option's value, the canonical form that --resume compares, and the options
 * that belong to every repro line. */
#include "harness/util/fileio.h"
#include "option_set.h"
#include "option_words.h"

#include <inttypes.h>

static void print_ints(FILE *f, const struct ints *list, const char *const *words)
{
    for (int i = 0; i < list->n; i++) {
        const int n = list->v[i];
        if (i > 0)
            fputc(',', f);
        if (n < 0)
            fputs(words[-1 - n], f);
        else
            fprintf(f, "%d", n);
    }
}

static void print_names(FILE *f, const struct names *list, char between)
{
    for (int i = 0; i < list->n; i++) {
        if (i > 0)
            fputc(between, f);
        fputs(list->v[i], f);
    }
}

static void print_value(FILE *f, const struct options *o, const struct option_spec *s)
{
    const void *const at = option_field(o, s);
    const char *text;

    switch (s->kind) {
    case KIND_FLAG:
        fputs(*(const bool *)at ? "yes" : "no", f);
        break;
    case KIND_OFF:
        fputs(*(const bool *)at ? "no" : "yes", f);
        break;
    case KIND_COUNT:
        fprintf(f, "%d", *(const int *)at);
        break;
    case KIND_INT:
        if (s->preset || *(const int *)at) /* without a preset, 0 means "not set" */
            fprintf(f, "%d", *(const int *)at);
        break;
    case KIND_SEED:
        fprintf(f, "%" PRIu64, *(const uint64_t *)at);
        break;
    case KIND_DECIMAL: /* likewise */
        if (s->preset || *(const double *)at > 0)
            fprintf(f, "%.15g", *(const double *)at);
        break;
    case KIND_WORD:
        fputs(s->words[*(const int *)at], f);
        break;
    case KIND_TEXT:
    case KIND_PATH:
        text = *(const char *const *)at;
        fputs(text ? text : "", f);
        break;
    case KIND_INTS:
        print_ints(f, at, s->words);
        break;
    case KIND_NAMES:
    case KIND_CHOICE:
        print_names(f, at, ',');
        break;
    case KIND_LINES:
    case KIND_FILTER: /* a value may have commas */
        print_names(f, at, ' ');
        break;
    case KIND_RESUME:
    case KIND_QUICK:
        break;
    }
}

char *option_value(const struct options *o, const struct option_spec *s)
{
    struct bytes text;
    FILE *const f = bytes_begin(&text);

    if (s->at == offsetof(struct options, threads) && o->threads.n == 0)
        fprintf(f, "%d", o->default_threads);
    else
        print_value(f, o, s);
    return bytes_end(f, &text);
}

void option_print(FILE *f, const struct options *o, const struct option_spec *s)
{
    if (s->kind == KIND_FILTER) { /* each holds for itself */
        for (int i = 0; i < o->filters.n; i++)
            word_print_option(f, s->name, o->filters.v[i], '\0');
        return;
    }
    char *const text = option_value(o, s);
    const int times = s->metavar ? 0 : s->kind == KIND_COUNT ? atoi(text) : 1;
    if (s->metavar)
        word_print_option(f, s->name, text, '\0');
    for (int n = 0; n < times; n++)
        fprintf(f, " --%s", s->name);
    free(text);
}

void options_print_again(FILE *f, const struct options *o)
{
    for (int i = 0; i < o->argc; i++) {
        if (i > 0)
            fputc(' ', f);
        word_print(f, o->argv[i], '\0');
    }
}

char *options_command_line(const struct options *o)
{
    struct bytes text;
    FILE *const f = bytes_begin(&text);

    options_print_again(f, o);
    return bytes_end(f, &text);
}

/* An option's value on a line of its own, malloc'ed. */
static char *value_line(const struct options *o, const struct option_spec *s)
{
    char *const value = option_value(o, s), *const line = text_exact(value);

    free(value);
    return line;
}

/* Weights may have been moved: --ckpt is where they are now. */
bool option_is_continued(const struct option_spec *s, enum continued kind)
{
    if (kind == CONTINUED_RUN)
        return s->flags & (IN_CASE | IN_RUN);
    return s->flags & (IN_CASE | IN_RUN | IN_TRAINING) && option_is_for(s, CMD_TRAIN) &&
           s->at != offsetof(struct options, ckpt);
}

char *options_canonical(const struct options *o, enum continued kind)
{
    struct bytes text;
    FILE *const f = bytes_begin(&text);

    for (int i = 0; i < option_count; i++) {
        const struct option_spec *const s = &option_specs[i];
        if (!option_is_continued(s, kind))
            continue;
        char *const value = value_line(o, s);
        fprintf(f, "%s=%s\n", s->name, value);
        free(value);
    }
    return bytes_end(f, &text);
}

/* Options that are of the beginning, or that the line to continue with has in its own words. */
static bool is_said(const struct options *o, const struct option_spec *s, enum continued kind)
{
    const bool baselines = o->save_baseline || o->baseline; /* they stand in --out */

    return option_is_continued(s, kind) || s->kind == KIND_RESUME || s->kind == KIND_QUICK ||
           s->at == offsetof(struct options, ckpt) ||
           (s->at == offsetof(struct options, out) && !baselines) ||
           (s->at == offsetof(struct options, force) && kind == CONTINUED_TRAINING);
}

void options_print_resume(FILE *f, const struct options *o, enum continued kind, const char *of)
{
    word_print(f, o->argv[0], '\0');
    if (o->command_given)
        fprintf(f, " %s", o->command);
    for (int i = 0; i < option_count; i++) {
        const struct option_spec *const s = &option_specs[i];
        if (o->given[i] == FROM_USER && !is_said(o, s, kind))
            option_print(f, o, s);
    }
    if (kind == CONTINUED_TRAINING)
        word_print_option(f, "ckpt", of, '\0');
    fputs(" --resume", f);
    if (kind == CONTINUED_RUN) {
        fputc('=', f);
        word_print(f, of, '\0');
    }
}

/* The value of an option in a canonical text, to the end of its line; of a text that is older than the option
 * its default. */
static const char *stored_value(const char *stored, const struct option_spec *s)
{
    const size_t n = strlen(s->name);

    for (const char *line = stored; *line; line += *line == '\n') {
        if (strncmp(line, s->name, n) == 0 && line[n] == '=')
            return line + n + 1;
        line += strcspn(line, "\n");
    }
    return s->preset ? s->preset : "";
}

enum status options_resumable(const struct options *o, const char *stored, const char *const *only,
                              const char *path, struct err *e)
{
    enum status st = OK;

    for (int i = 0; i < option_count && st == OK; i++) {
        const struct option_spec *const s = &option_specs[i];
        if (only ? word_index(s->name, only) < 0 : !(s->flags & (IN_CASE | IN_RUN)))
            continue;
        const char *const then = stored_value(stored, s);
        const int n = (int)strcspn(then, "\n");
        char *const now = value_line(o, s);
        if (strlen(now) != (size_t)n || memcmp(then, now, (size_t)n) != 0)
            st = fail(e, E_USAGE,
                      "cannot resume %.200s: made with --%s %.*s, now %.120s  -> give the options "
                      "that it was begun with",
                      path, s->name, n ? min_int(n, 120) : 4, n ? then : "none",
                      *now ? now : "none");
        free(now);
    }
    return st;
}

char *options_repro(const struct options *o)
{
    struct bytes text;
    FILE *const f = bytes_begin(&text);

    for (int i = 0; i < option_count; i++) {
        const struct option_spec *const s = &option_specs[i];
        if (!(s->flags & IN_CASE))
            continue;
        char *const value = option_value(o, s);
        if (strcmp(value, s->preset ? s->preset : "") != 0)
            word_print_option(f, s->name, value, '\0');
        free(value);
    }
    return bytes_end(f, &text);
}
