/* SPDX-License-Identifier: MIT
 *
 * Choices as columns. They stand together, in the order of chosen_at(). */
#include "case_row.h"

#include <stdlib.h>
#include <string.h>

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
            *(int64_t *)at = *text ? strtoll(text, NULL, 10) : I64_EMPTY;
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
    return filter_match_text(f, text);
}
