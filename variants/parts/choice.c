/* SPDX-License-Identifier: MIT
 *
 * Choices as text. */
#include "choice.h"

#include <errno.h>

const void *registry_find(const struct registry *r, const char *name)
{
    const void *entry;

    for (int i = 0; (entry = r->at(i)); i++)
        if (strcmp(*(const char *const *)entry, name) == 0)
            return entry;
    return NULL;
}

const char *choice_word(const struct choice *row, int i)
{
    if (row->words)
        return row->words[i];
    const void *const entry = row->list ? row->list->at(i) : NULL;
    return entry ? *(const char *const *)entry : NULL;
}

int list_read(double *to, int room, const char *text, double least, double most, bool whole)
{
    int n = 0;

    for (const char *at = *text ? text : NULL; at;) {
        char *end;
        const double x = strtod(at, &end);
        if (end == at || n == room || !(x >= least && x <= most) || (whole && x != floor(x)) ||
            (*end != ',' && *end != '\0'))
            return -1;
        to[n++] = x;
        at = *end == ',' ? end + 1 : NULL;
    }
    return n;
}

static const void *pointer_at(const void *at)
{
    const void *p;

    memcpy(&p, at, sizeof(p)); /* pointers to structs have one representation */
    return p;
}

/* With as few digits as give this float again. */
static void print_real(char text[CHOICE_TEXT], float x)
{
    enum { ENOUGH = 9 };

    for (int digits = 6; digits <= ENOUGH; digits++) {
        snprintf(text, CHOICE_TEXT, "%.*g", digits, (double)x);
        if (strtof(text, NULL) == x)
            return;
    }
}

void choice_print(char text[CHOICE_TEXT], const struct choice *row, const void *base)
{
    const void *const at = (const char *)base + row->at;
    const struct layer_list *list;
    const void *entry;

    *text = '\0';
    switch (row->codec) {
    case CODEC_INT:
        if (row->words && *(const int *)at < 0)
            snprintf(text, CHOICE_TEXT, "%s", row->words[-1 - *(const int *)at]);
        else
            snprintf(text, CHOICE_TEXT, "%d", *(const int *)at);
        break;
    case CODEC_FLAG:
        snprintf(text, CHOICE_TEXT, "%d", *(const bool *)at);
        break;
    case CODEC_REAL:
        print_real(text, *(const float *)at);
        break;
    case CODEC_WIDE:
        snprintf(text, CHOICE_TEXT, "%.17g", *(const double *)at);
        break;
    case CODEC_WORD:
        if (!row->unsaid || strcmp(row->unsaid, row->words[*(const int *)at]) != 0)
            snprintf(text, CHOICE_TEXT, "%s", row->words[*(const int *)at]);
        break;
    case CODEC_ENTRY:
        entry = pointer_at(at);
        snprintf(text, CHOICE_TEXT, "%s", entry ? *(const char *const *)entry : "");
        break;
    case CODEC_LIST:
        list = at;
        for (int i = 0; i < list->n; i++)
            text_append(text, CHOICE_TEXT, "%s%.10g", i ? "," : "", list->at[i]);
        break;
    case CODEC_TEXT:
        row->print(text, base);
        break;
    }
}

static enum status not_a_word(const struct choice *row, const char *text, struct err *e)
{
    char list[CHOICE_TEXT] = "";
    const char *word;

    for (int i = 0; (word = choice_word(row, i)); i++)
        text_append(list, sizeof(list), "%s%s", i ? ", " : "", word);
    return fail(e, E_USAGE, "%s \"%.60s\" is unknown  -> use %s", row->name, text, list);
}

static enum status outside(const struct choice *row, const char *text, struct err *e)
{
    return fail(e, E_USAGE, "%s \"%.60s\"%s%s  -> use %.10g to %.10g", row->name, text,
                row->help ? ": " : "", row->help ? row->help : "", row->least, row->most);
}

static bool is_within(const struct choice *row, double n)
{
    return n >= row->least && n <= row->most; /* false for NaN */
}

static enum status read_number(const struct choice *row, const char *text, double *n, struct err *e)
{
    char *end;

    errno = 0;
    *n = strtod(text, &end);
    if (end == text || *end || errno || !is_within(row, *n) ||
        (row->codec == CODEC_INT && *n != floor(*n)))
        return outside(row, text, e);
    return OK;
}

enum status choice_check(const struct choice *row, const void *base, struct err *e)
{
    const void *const at = (const char *)base + row->at;
    char text[CHOICE_TEXT];

    if ((row->codec == CODEC_INT && !is_within(row, *(const int *)at)) ||
        (row->codec == CODEC_REAL && !is_within(row, (double)*(const float *)at)) ||
        (row->codec == CODEC_WIDE && !is_within(row, *(const double *)at))) {
        choice_print(text, row, base);
        return outside(row, text, e);
    }
    return OK;
}

static enum status read_list(const struct choice *row, const char *text, struct layer_list *to,
                             struct err *e)
{
    struct layer_list list = {0};

    list.n = list_read(list.at, MAX_LAYER_LIST, text, row->least, row->most, row->whole);
    if (list.n < 0)
        return fail(e, E_USAGE,
                    "%s \"%.60s\": not up to %d %snumbers from %.0f to %.0f  -> write for example "
                    "4096,0",
                    row->name, text, (int)MAX_LAYER_LIST, row->whole ? "whole " : "", row->least,
                    row->most);
    *to = list;
    return OK;
}

enum status choice_parse(const struct choice *row, void *base, const char *text, struct err *e)
{
    void *const at = (char *)base + row->at;
    const void *entry;
    double n = 0;
    int i = 0;

    switch (row->codec) {
    case CODEC_FLAG:
        if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
            return fail(e, E_USAGE, "%s \"%.60s\": %s  -> use 0 or 1", row->name, text, row->help);
        *(bool *)at = *text == '1';
        return OK;
    case CODEC_INT:
    case CODEC_REAL:
    case CODEC_WIDE:
        TRY(read_number(row, text, &n, e));
        if (row->codec == CODEC_INT)
            *(int *)at = (int)n;
        else if (row->codec == CODEC_REAL)
            *(float *)at = (float)n;
        else
            *(double *)at = n;
        return OK;
    case CODEC_WORD:
        i = word_index(text, row->words);
        if (i < 0)
            return not_a_word(row, text, e);
        *(int *)at = i;
        return OK;
    case CODEC_ENTRY:
        entry = registry_find(row->list, text);
        if (!entry)
            return not_a_word(row, text, e);
        memcpy(at, &entry, sizeof(entry));
        return OK;
    case CODEC_LIST:
        return read_list(row, text, at, e);
    case CODEC_TEXT:
        return row->parse(base, text, e);
    }
    return OK;
}

bool choice_equal(const struct choice *row, const void *a, const void *b)
{
    char text[2][CHOICE_TEXT];

    choice_print(text[0], row, a);
    choice_print(text[1], row, b);
    return strcmp(text[0], text[1]) == 0;
}

bool choice_applies(const struct choice *row, const struct config *c, enum scope scope)
{
    return row->scope <= scope && (!row->applies || row->applies(c));
}
