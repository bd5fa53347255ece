/* SPDX-License-Identifier: MIT
 *
 * What the variants of a ranking differ in besides what they are compared for: a line for each, and
 * the options that make them alike. */
#include "ranking_text.h"

/* Columns of latency.csv, and the option that gives all variants one value, where there is one. */
enum { KV_HEADS };
static const struct fact {
    const char *column, *option;
} facts[] = {
    [KV_HEADS] = {"kv_heads", "--kv-heads N"},
    {"d_head", ""},
    {"d_inner", "--skeleton llama"},
    {"mask", ""},
    {"layer_windows", ""},
    {"ffn", "--skeleton llama"},
    {"norm_place", "--skeleton llama"},
    {"norm", "--skeleton llama"},
};
enum { FACTS = ARRAY_LEN(facts), FIRST_FACT = 2, COLUMNS = FIRST_FACT + FACTS };

static const struct latency_row *row_of(const struct ranking *r, int i)
{
    int s = 0;

    while (!r->v[i].place[s].row)
        s++;
    return r->v[i].place[s].row;
}

static const char *value_of(const struct ranking *r, int i, int fact, char num[NUMBER_SIZE])
{
    const struct table *const t = &tables[TABLE_LATENCY];

    return row_field(t, find_column(t, facts[fact].column), row_of(r, i), num);
}

static bool differs(const struct ranking *r, int fact)
{
    char num[2][NUMBER_SIZE];

    for (int i = 1; i < r->n; i++)
        if (strcmp(value_of(r, 0, fact, num[0]), value_of(r, i, fact, num[1])) != 0)
            return true;
    return false;
}

/* Do the models of the run have one skeleton already, as far as they can? */
static bool has_skeleton(const struct ranking *r)
{
    bool own = false;

    for (int i = 0; i < r->n; i++)
        own =
            own || (remarks_of_row(row_of(r, i)->status, row_of(r, i)->status_detail) & REMARK_OWN);
    return own;
}

void ranking_say_networks(FILE *f, const struct ranking *r, const char *before)
{
    const char *option = "";
    bool said = false;

    for (int k = 0; k < FACTS; k++)
        if (*facts[k].option && differs(r, k)) {
            fprintf(f, "%s%s%s", said ? ", " : before, said ? "" : "networks differ in ",
                    facts[k].column);
            said = true;
        }
    for (int k = 0; k < FACTS; k++)
        if (*facts[k].option && strcmp(facts[k].option, option) != 0 && differs(r, k) &&
            (k == KV_HEADS || !has_skeleton(r))) {
            fprintf(f, "%s %s", *option ? "" : "  ->", facts[k].option);
            option = facts[k].option;
        }
    fputs(said ? "\n" : "", f);
}

void ranking_print_networks(FILE *f, const struct ranking *r)
{
    struct text_table_column column[COLUMNS] = {{.name = "  variant"},
                                                {.name = "parameters", .number = true}};
    struct text_table t = {.column = column, .columns = COLUMNS, .quiet = true};
    bool any = false;

    for (int k = 0; k < FACTS; k++) {
        column[FIRST_FACT + k] =
            (struct text_table_column){.name = facts[k].column, .spare = 1 + k};
        any = any || differs(r, k);
    }
    if (!any)
        return;
    for (int i = 0; i < r->n; i++) {
        text_table_cell(&t, "  %s", r->v[i].name);
        text_table_cell(&t, "%s", units_count(r->v[i].parameters).s);
        for (int k = 0; k < FACTS; k++) {
            char number[NUMBER_SIZE];
            const char *const value = value_of(r, i, k, number);
            text_table_cell(&t, "%s", !differs(r, k) ? "" : *value ? value : "-");
        }
    }
    text_table_print(f, &t, FORMAT_TABLE);
    text_table_free(&t);
    ranking_say_networks(f, r, "  ");
}
