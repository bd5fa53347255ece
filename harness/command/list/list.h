/* SPDX-License-Identifier: MIT
 *
 * What a word of `bench list` prints: a table, whose rows a function fills in. */
#pragma once

#include "harness/cli/command_table.h"
#include "harness/cli/options.h"

struct listing {
    const struct text_table_column *column;
    int columns;
    const char *taken; /* the one option it obeys; NULL: none */
    bool takes_word;   /* after its own */
    enum status (*fill)(struct text_table *t, struct options *o, struct err *e);
    void (*page)(FILE *f); /* what --format md prints in place of the table, or NULL */
    enum status (*instead)(struct options *o, int *code, struct err *e); /* without such a table */
};
#define LISTING(columns_, ...)                                                                     \
    {                                                                                              \
        .column = columns_, .columns = ARRAY_LEN(columns_), __VA_ARGS__                            \
    }

#define X(word) extern const struct listing list_of_##word;
LISTS(X)
#undef X

enum status list_print(const struct listing *l, const char *word, struct options *o, int *code,
                       struct err *e);
