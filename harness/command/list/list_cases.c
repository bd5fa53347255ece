/* SPDX-License-Identifier: MIT
 *
 * bench list cases. */
#include "harness/cli/command_table.h"
#include "harness/command/commands.h"
#include "harness/machine/env.h"
#include "harness/plan/plan.h"

enum {
    INDEX,
    GROUP,
    CASE_ID,
    FIRST_CHOICE,
    NOTE = FIRST_CHOICE + CHOICE_COLUMNS,
    REPRO,
    COLUMN_COUNT
};
_Static_assert((int)COLUMN_COUNT <= (int)TEXT_TABLE_COLUMNS,
               "a table holds every choice of a case");

/* Is the choice left out of the table for people? */
static bool is_wide(int i)
{
    return i == CASE_phase || (i >= CASE_d_model && i < THREADS_CHOICE_AT);
}

/* Named as in the tables; an empty field does not apply to the case. */
static void name_columns(struct text_table_column columns[COLUMN_COUNT])
{
    columns[INDEX] = (struct text_table_column){.name = "index", .number = true};
    columns[GROUP] = (struct text_table_column){.name = "group", .number = true, .spare = 1};
    columns[CASE_ID] = (struct text_table_column){.name = "case_id", .spare = 1};
    columns[NOTE] = (struct text_table_column){.name = "note", .least = 12, .spare = 1};
    columns[REPRO] = (struct text_table_column){.name = "repro", .wide = true};
    for (int i = 0; i < CHOICE_COLUMNS; i++) {
        const struct chosen c = chosen_at(i);
        columns[FIRST_CHOICE + i] = (struct text_table_column){
            c.name, .number = c.number, .wide = is_wide(i), .spare = i > CASE_mem_tokens};
    }
}

static void add_case(struct text_table *s, const struct bench_case *c)
{
    text_table_cell(s, "%d", c->index);
    text_table_cell(s, "%d", c->group);
    text_table_cell(s, "%s", c->case_id);
    for (int i = 0; i < CHOICE_COLUMNS; i++) {
        char value[CHOICE_TEXT];
        case_print(value, i, c);
        text_table_cell(s, "%s", value);
    }
    text_table_cell(s, "%s", c->unsupported ? c->unsupported : "");
    text_table_cell(s, "%s", c->repro);
}

static enum status usual_threads(int *n, struct err *e)
{
    struct topo *t;

    TRY(topo_open(&t, NULL, e));
    *n = env_threads(t);
    topo_close(t);
    return OK;
}

static enum status add_cases(struct text_table *s, struct plan *p, struct options *o, struct err *e)
{
    TRY(usual_threads(&o->default_threads, e));
    TRY(text_table_select(s, &o->columns, e));
    TRY(plan_published(o, e));
    TRY(plan_asked(p, o, e));
    for (int i = 0; i < p->n; i++)
        add_case(s, &p->cases[i]);
    return OK;
}

enum status list_cases(struct options *opt, int *code, struct err *e)
{
    struct text_table_column columns[COLUMN_COUNT];
    struct text_table s = {.column = columns, .columns = COLUMN_COUNT};
    struct plan p = {0};

    name_columns(columns);
    const enum status st = add_cases(&s, &p, opt, e);
    s.quiet = opt->quiet;
    if (st == OK) {
        *code = p.n ? EXIT_FINE : EXIT_NOTHING_TO_DO;
        text_table_print(stdout, &s, (enum format)opt->format);
        if (!opt->quiet && command_find(opt->command) == CMD_LIST) /* a sweep says more */
            fprintf(stderr, "%d case%s in %d group%s\n", p.n, plural(p.n), p.groups,
                    plural(p.groups));
    }
    plan_free(&p);
    text_table_free(&s);
    return st;
}
