/* SPDX-License-Identifier: MIT
 *
 * Choices as columns. They stand together, in the order of chosen_at(). */
#include "case_row.h"

#include <ctype.h>

enum { FIRST = KEY_variant };
_Static_assert((int)KEY_threads - (int)FIRST + 1 == (int)CHOICE_COLUMNS,
               "a column for each choice");

void key_row_choose(struct key_row *row, const struct bench_case *c)
{
    const struct column *const columns = tables[TABLE_LATENCY].columns;
    char text[CHOICE_TEXT];

    for (int i = 0; i < CHOICE_COLUMNS; i++) {
        const struct column *const column = &columns[FIRST + i];
        char *const at = (char *)row + column->offset;
        case_print(text, i, c);
        if (column->type == COLUMN_TEXT)
            text_put(at, column->size, text);
        else
            *(int64_t *)at = isdigit((unsigned char)*text) ? strtoll(text, NULL, 10) : I64_EMPTY;
    }
}

bool filter_match_row(const struct filter *f, const struct table *t, const void *row)
{
    const char *const at = (const char *)row + t->columns[FIRST + f->key].offset;
    char text[CHOICE_TEXT] = "";

    if (t->columns[FIRST + f->key].type == COLUMN_TEXT)
        return filter_match_text(f, at);
    if (*(const int64_t *)at != I64_EMPTY)
        snprintf(text, sizeof(text), "%lld", (long long)*(const int64_t *)at);
    else if (f->key == CASE_mem_tokens)
        mem_text(text, I64_EMPTY);
    return filter_match_text(f, text);
}

static const enum table_id with_keys[] = {TABLE_LATENCY, TABLE_MEMORY, TABLE_PERPLEXITY};

/* Does a row have the very value of the filter? Rows may come from a build that knows more. */
static bool rows_have(const struct rows *of, const struct filter *f)
{
    struct filter same = *f;

    same.negate = false;
    for (size_t t = 0; t < ARRAY_LEN(with_keys); t++) {
        const struct table *const table = &tables[with_keys[t]];
        for (size_t i = 0; i < of[with_keys[t]].n; i++)
            if (filter_match_row(&same, table,
                                 (const char *)of[with_keys[t]].row + i * table->row_size))
                return true;
    }
    return false;
}

static void keep_matches(struct rows *rows, const struct table *t, const struct filter *f)
{
    char *const first = rows->row;
    size_t kept = 0;

    for (size_t i = 0; i < rows->n; i++)
        if (filter_match_row(f, t, first + i * t->row_size))
            memmove(first + kept++ * t->row_size, first + i * t->row_size, t->row_size);
    rows->n = kept;
}

enum status rows_filter(struct rows *of, const struct names *expressions, struct err *e)
{
    for (int i = 0; i < expressions->n; i++) {
        struct filter f;
        TRY(filter_parse(&f, expressions->v[i], e));
        if (!rows_have(of, &f))
            TRY(filter_check(&f, e));
        for (size_t t = 0; t < ARRAY_LEN(with_keys); t++)
            keep_matches(&of[with_keys[t]], &tables[with_keys[t]], &f);
    }
    return OK;
}
