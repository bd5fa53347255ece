/* SPDX-License-Identifier: MIT
 *
 * The settings of all parts. */
#include "harness/util/fileio.h"
#include "list.h"
#include "variants/model/config/settings.h"

/* "0, 1", "1 to 64", words, or "text" that a part reads. */
static void print_values(FILE *to, const struct choice *row)
{
    const char *word;
    int n = 0;

    for (int i = (int)row->least; row->codec == CODEC_WORD && (word = choice_word(row, i)); i++)
        fprintf(to, "%s%s", n++ ? ", " : "", word);
    if (row->codec == CODEC_FLAG)
        fputs("0, 1", to);
    else if (row->codec == CODEC_INT)
        fprintf(to, "%.0f to %.0f", row->least, row->most);
    else if (row->codec == CODEC_REAL || row->codec == CODEC_WIDE)
        fprintf(to, row->most < 1e6 ? "%.3g to %.7g" : "from %.3g", row->least, row->most);
    else if (row->codec >= CODEC_LIST)
        fputs("text", to);
}

/* With a past or none, in a language model or a layer alone: a setting may need one of these. With
 * `sometimes`, those that have its part, where other choices make it count. */
static bool has(const struct variant *v, const struct choice *row, bool sometimes)
{
    for (int kind = 0; kind < 4; kind++) {
        struct config c = config_default(v, 8, 2, 4, 8, 1, kind & 1 ? 8 : 0);
        c.mem_len = kind & 2 ? 8 : 0;
        config_numbers_reset(&c);
        if (sometimes ? setting_belongs(row, &c) : setting_applies(row, &c))
            return true;
    }
    return false;
}

static void print_variants(FILE *to, const struct choice *row)
{
    int n = 0;

    for (int pass = 0; pass < 2 && n == 0; pass++)
        for (int i = 0; variants[i]; i++)
            if (has(variants[i], row, pass))
                fprintf(to, "%s%s", n++ ? " " : "", variants[i]->name);
}

static void add_row(struct text_table *t, const struct choice *row)
{
    struct bytes values, names;
    FILE *to = bytes_begin(&values);

    print_values(to, row);
    bytes_end(to, &values);
    to = bytes_begin(&names);
    print_variants(to, row);
    bytes_end(to, &names);
    text_table_add(t, (const char *const[]){row->name, values.data, row->help, names.data});
    free(values.data);
    free(names.data);
}

static const struct text_table_column settings_columns[] = {
    {.name = "setting"},
    {.name = "values", .least = 10},
    {.name = "about", .least = 24},
    {.name = "variants", .least = 20},
};

static enum status fill_settings(struct text_table *t, struct options *o, struct err *e)
{
    const struct choice *row;

    for (struct settings all = {0}; (row = setting_next(&all));)
        add_row(t, row);
    return OK;
}

const struct listing list_of_settings = LISTING(settings_columns, .fill = fill_settings);
