/* SPDX-License-Identifier: MIT
 *
 * --filter. */
#include "filter.h"
#include "lookup.h"

#include <ctype.h>

/* The key named text[0..len). -1 with an error if there is none. */
static int find_key(const char *text, size_t len, struct err *e)
{
    const char *names[2 * CHOICE_COLUMNS + 1] = {0};
    char name[32];
    int n = CHOICE_COLUMNS;

    snprintf(name, sizeof(name), "%.*s", (int)min_int((int)len, 31), text);
    const int key = chosen_find(name);
    if (key >= 0)
        return key;
    for (int i = 0; i < CHOICE_COLUMNS; i++) {
        const struct chosen row = chosen_at(i);
        names[i] = row.name;
        if (strcmp(row.name, row.option) != 0 && chosen_find(row.option) == i)
            names[n++] = row.option;
    }
    unknown_word(e, "filter key", name, names, NULL);
    return -1;
}

static bool is_word_of(int key, const char *text)
{
    const char *word;

    for (int i = 0; (word = chosen_word(key, i)); i++)
        if (strcmp(word, text) == 0)
            return true;
    return false;
}

enum status filter_parse(struct filter *f, const char *text, struct err *e)
{
    const bool negate = *text == '!';
    const char *const name = text + negate;
    const size_t len = strcspn(name, ":<>=");
    const char *value = name + len;

    *f = (struct filter){.negate = negate, .op = FILTER_IS};
    if (!*value || len == 0)
        return fail(e, E_USAGE,
                    "--filter \"%.60s\": no comparison  -> write key:value, !key:value or key<=N",
                    text);
    f->key = find_key(name, len, e);
    if (f->key < 0)
        return E_USAGE;
    if (*value == '<' || *value == '>') {
        const bool or_equal = value[1] == '=';
        f->op = (*value == '<' ? FILTER_LESS : FILTER_MORE) | (or_equal ? FILTER_IS : 0);
        value += or_equal;
    }
    value++;
    if (!*value)
        return fail(e, E_USAGE, "--filter \"%.60s\": no value  -> write it after the %c", text,
                    value[-1]);
    const struct variant *const v = f->key == CASE_variant ? variant_find(value) : NULL;
    f->text = v ? v->name : value; /* an alias stands for the name */
    f->word = f->op == FILTER_IS && chosen_at(f->key).number && is_word_of(f->key, value);
    if (f->word)
        return OK;
    if (chosen_at(f->key).number)
        return number_parse(&f->number, "--filter", value, 0, INT_MAX, e);
    if (f->op != FILTER_IS)
        return fail(e, E_USAGE, "--filter \"%.60s\": %s is a word  -> write %s:%.40s", text,
                    chosen_at(f->key).name, chosen_at(f->key).name, value);
    return OK;
}

enum status filter_check(const struct filter *f, struct err *e)
{
    const char *words[MAX_LOOKUP + 1] = {0};
    const char *word, *repair;
    int n = 0;

    for (int i = 0; n < MAX_LOOKUP && (word = chosen_word(f->key, i)); i++)
        words[n++] = word;
    for (int i = 0; f->key == CASE_backend && (word = optional_backend(i, &repair)); i++)
        if (word_index(word, words) < 0 && n < MAX_LOOKUP)
            words[n++] = word;
    if (n == 0 || chosen_at(f->key).number || word_index(f->text, words) >= 0)
        return OK;
    if (f->key == CASE_variant)
        return is_variant_set(f->text) ? OK : unknown_variant(f->text, e);
    return unknown_word(e, chosen_at(f->key).name, f->text, words, NULL);
}

/* Is the variant of that name in the set? */
static bool in_set(const char *set, const char *name)
{
    int i = 0;

    while (variants[i] && strcmp(variants[i]->name, name) != 0)
        i++;
    return variants[i] && variant_set_has(set, i);
}

bool filter_match_text(const struct filter *f, const char *text)
{
    if (f->key == CASE_variant && is_variant_set(f->text))
        return in_set(f->text, text) != f->negate;
    const bool number = chosen_at(f->key).number && !f->word;
    const int n = number ? (int)strtol(text, NULL, 10) : 0;
    const int is = n < f->number ? FILTER_LESS : n > f->number ? FILTER_MORE : FILTER_IS;
    const bool match =
        number ? isdigit((unsigned char)*text) && f->op & is : strcmp(text, f->text) == 0;

    return match != f->negate;
}

bool filter_match(const struct filter *f, const struct bench_case *c)
{
    char text[CHOICE_TEXT];

    case_print(text, f->key, c);
    return filter_match_text(f, text);
}
