/* SPDX-License-Identifier: MIT
 *
 * bench list: what is built in, and which of it can be used here. */
#include "list.h"
#include "harness/cli/option_set.h"
#include "harness/command/commands.h"
#include "harness/learn/source/synthetic.h"
#include "harness/learn/task/task.h"
#include "harness/plan/plan.h"
#include "harness/table/record.h"
#include "variants/model/config/exclusions.h"
#include "variants/model/layers/sublayer_list.h"
#include "variants/systems.h"

enum status list_print(const struct listing *l, const char *word, struct options *o, int *code,
                       struct err *e)
{
    struct text_table t = {.column = l->column, .columns = l->columns, .quiet = o->quiet};
    char command[32];

    if (l->instead)
        return l->instead(o, code, e);
    snprintf(command, sizeof(command), "list %s", word);
    TRY(options_refuse(o, command, (const char *const[]){l->taken, NULL}, e));
    if (l->page && o->format == FORMAT_MD) {
        l->page(stdout);
        return OK;
    }
    TRY(text_table_select(&t, &o->columns, e));
    const enum status st = l->fill(&t, o, e);
    if (st == OK)
        text_table_print(stdout, &t, (enum format)o->format);
    text_table_free(&t);
    return st;
}

/* Terms that no fused kernel supports: the variant's attention is composed of products. */
static const char *why_composed(const struct variant *v)
{
    struct config c = config_default(v, 8, 2, 4, 8, 1, 0);
    struct engine g;
    const char *why = NULL;

    c.max_seq = 8;
    if (engine_open(&g, backend_ref.name, 1, NULL, NULL) == OK)
        why = sublayers_refusal(&g, &c);
    return why ? why : "";
}

/* Options that apply to it, and the numbers that --set accepts for it. */
static void print_axes(char *list, size_t size, const struct variant *v)
{
    struct config c = config_default(v, 8, 2, 4, 8, 1, 0);
    const struct choice *row;
    int settings = 0;

    c.mem_len = 8;
    config_numbers_reset(&c);
    *list = '\0';
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        if (model_choices[i].special && choice_applies(&model_choices[i], &c, SCOPE_MODEL))
            text_append(list, size, "%s--%s", *list ? " " : "", model_choices[i].option);
    for (struct settings all = {0}; (row = setting_next(&all));)
        if (setting_applies(row, &c))
            text_append(list, size, "%s%s",
                        settings++ ? ","
                        : *list    ? " --set "
                                   : "--set ",
                        row->name);
    CHECK(strlen(list) < size - 1);
}

/* How much it keeps of the past, as a word. */
static const char *memory_of(const struct variant *v)
{
    return v->bidirectional            ? "bidirectional"
           : variant_mem(v)->recurrent ? "cached"
           : variant_mem(v)->state     ? "state"
           : variant_mem(v)->cached    ? "prefix"
                                       : "recomputed";
}

/* Can its queries see the keys after them? */
static const char *sees(const struct variant *v)
{
    const struct config c = config_default(v, 8, 2, 4, 8, 1, 0);

    return v->bidirectional ? "both" : config_can_look_ahead(&c) ? "causal, both" : "causal";
}

static enum family family_of(const struct variant *v)
{
    int i = 0;

    while (variants[i] != v)
        i++;
    return variant_family(i);
}

/* All variants, family by family. */
static int by_family(const struct variant *chosen[MAX_LOOKUP])
{
    int n = 0;

    for (enum family f = 0; f < FAMILY_COUNT; f++)
        for (int i = 0; variants[i]; i++)
            if (variant_family(i) == f)
                chosen[n++] = variants[i];
    return n;
}

/* The word after `list variants`: names as --variant takes them, or a family alone, which an alias may
 * be too. */
static enum status choose_variants(struct options *o, const char *word, struct err *e)
{
    char set[64];

    if (word_index(word, family_name) >= 0) {
        snprintf(set, sizeof(set), "family:%s", word);
        word = set;
    }
    return option_set(o, option_find("variant"), word, FROM_USER, 0, e);
}

/* X(text of variant v, members of a struct text_table_column) */
#define VARIANTS_COLUMNS(X)                                                                        \
    X(family_name[family_of(v)], .name = "family")                                                 \
    X(v->name, .name = "variant")                                                                  \
    X(v->alias, .name = "alias", .spare = 1)                                                       \
    X(v->about, .name = "about", .least = 24)                                                      \
    X(memory_of(v), .name = "memory")                                                              \
    X(sees(v), .name = "sees", .spare = 1)                                                         \
    X(wiring_name[v->wiring], .name = "norm", .spare = 1)                                          \
    X(v->gate ? v->gate->name : "", .name = "gate", .spare = 1)                                    \
    X(v->control, .name = "control", .least = 8, .spare = 1)                                       \
    X(list, .name = "axes", .least = 20, .spare = 1)                                               \
    X(why_composed(v), .name = "composed", .least = 20, .spare = 1)                                \
    X(v->paper, .name = "paper", .least = 20, .spare = 1)
#define COLUMN(text, ...) {__VA_ARGS__},
static const struct text_table_column variants_columns[] = {VARIANTS_COLUMNS(COLUMN)};
#undef COLUMN

static enum status fill_variants(struct text_table *t, struct options *o, struct err *e)
{
    const struct variant *chosen[MAX_LOOKUP];
    int n = 0;

    if (o->words.n > 1)
        TRY(choose_variants(o, o->words.v[1], e));
    if (options_given(o, "variant"))
        TRY(lookup_variants(chosen, &n, o, e));
    else
        n = by_family(chosen);
    for (int i = 0; i < n; i++) {
        const struct variant *const v = chosen[i];
        char list[512];
        print_axes(list, sizeof(list), v);
#define CELL(text, ...) text,
        text_table_add(t, (const char *const[]){VARIANTS_COLUMNS(CELL)});
#undef CELL
    }
    return OK;
}

const struct listing list_of_variants =
    LISTING(variants_columns, .fill = fill_variants, .taken = "variant", .takes_word = true);

/* The families, and who is in them. */
static const struct text_table_column families_columns[] = {
    {.name = "family"},
    {.name = "about", .least = 26},
    {.name = "variants", .least = 34},
};

static enum status fill_families(struct text_table *t, struct options *o, struct err *e)
{
    for (enum family f = 0; f < FAMILY_COUNT; f++) {
        struct bytes names;
        FILE *const to = bytes_begin(&names);
        int n = 0;
        for (int i = 0; variants[i]; i++)
            if (variant_family(i) == f)
                fprintf(to, "%s%s", n++ ? " " : "", variants[i]->name);
        bytes_end(to, &names);
        const char *const text[] = {family_name[f], family_about[f], names.data};
        text_table_add(t, text);
        free(names.data);
    }
    return OK;
}

const struct listing list_of_families = LISTING(families_columns, .fill = fill_families);

/* What a model may have, and what does not go with it. */
static const struct text_table_column parts_columns[] = {
    {.name = "part", .least = 24},
    {.name = "excludes", .least = 30},
};

static enum status fill_parts(struct text_table *t, struct options *o, struct err *e)
{
    char part[FEATURE_TEXT], other[FEATURE_TEXT];

    for (int i = 0; exclusions_name(part, i); i++) {
        struct bytes excluded;
        FILE *const to = bytes_begin(&excluded);
        int n = 0;
        for (int j = 0; exclusions_name(other, j); j++)
            if (exclusions_between(i, j))
                fprintf(to, "%s%s", n++ ? "; " : "", other);
        bytes_end(to, &excluded);
        text_table_add(t, (const char *const[]){part, excluded.data});
        free(excluded.data);
    }
    return OK;
}

const struct listing list_of_parts = LISTING(parts_columns, .fill = fill_parts);

/* Each system of the founding papers, and the variant that implements it, or why none does. As
 * Markdown this is the whole of docs/systems.md. */
static const struct text_table_column systems_columns[] = {
    {.name = "system"},
    {.name = "paper", .spare = 1},
    {.name = "status"},
    {.name = "how", .least = 30},
};

static enum status fill_systems(struct text_table *t, struct options *o, struct err *e)
{
    const bool page = o->format == FORMAT_MD;

    for (const struct system *s = systems; s->name; s++) {
        char how[256];
        const bool code = s->run && page;
        snprintf(how, sizeof(how), "%s%s%s%s", code ? "`" : "", s->run ? "bench " : "",
                 s->run ? s->run : s->why, code ? "`" : "");
        const char *const text[] = {s->name, s->paper, s->run ? "built" : "not built", how};
        text_table_add(t, text);
    }
    if (page)
        fputs("# Systems\n\nWhich systems of the papers that this harness started from are "
              "implemented: built, and one command that runs it,\nor not built, and why. `bench "
              "list systems --format md` writes this page.\n\n",
              stdout);
    return OK;
}

const struct listing list_of_systems = LISTING(systems_columns, .fill = fill_systems);

static const struct text_table_column backends_columns[] = {
    {.name = "backend"},
    {.name = "usable"},
    {.name = "needs"},
    {.name = "about", .least = 30},
};

static enum status fill_backends(struct text_table *t, struct options *o, struct err *e)
{
    const char *name, *repair;

    for (int i = 0; backends[i]; i++) {
        const struct backend *const b = backends[i];
        struct err why;
        const bool usable = backend_usable(b, &why) == OK;
        const char *const text[] = {b->name, usable ? "yes" : "no", isa_needs[b->needs],
                                    usable ? b->about : why.msg};
        text_table_add(t, text);
    }
    for (int i = 0; (name = optional_backend(i, &repair)); i++) {
        char note[160];
        const char *const text[] = {name, "no", "", note};
        if (backend_find(name))
            continue;
        snprintf(note, sizeof(note), "was not built in  -> %s", repair);
        text_table_add(t, text);
    }
    return OK;
}

const struct listing list_of_backends = LISTING(backends_columns, .fill = fill_backends);

static const struct text_table_column columns_columns[] = {
    {.name = "table"},
    {.name = "column"},
    {.name = "type"},
    {.name = "unit"},
    {.name = "meaning", .least = 20},
};

static enum status fill_columns(struct text_table *to, struct options *o, struct err *e)
{
    static const char *const type[] = {
        [COLUMN_TEXT] = "text", [COLUMN_I64] = "integer", [COLUMN_REAL] = "real"};

    for (int t = 0; t < TABLE_COUNT; t++)
        for (int i = 0; i < tables[t].n; i++) {
            const struct column *const c = &tables[t].columns[i];
            const char *const text[] = {tables[t].name, c->name, type[c->type], c->unit,
                                        c->meaning};
            text_table_add(to, text);
        }
    return OK;
}

const struct listing list_of_columns =
    LISTING(columns_columns, .fill = fill_columns, .page = columns_markdown);

static enum status fill_keyed(struct text_table *t,
                              bool (*listed)(int i, char text[KEYED_TEXT], const char **about))
{
    char usual[KEYED_TEXT];
    const char *about;

    for (int i = 0; listed(i, usual, &about); i++)
        text_table_add(t, (const char *const[]){usual, about});
    return OK;
}

static enum status fill_sources(struct text_table *t, struct options *o, struct err *e)
{
    return fill_keyed(t, synthetic_source);
}

static enum status fill_tasks(struct text_table *t, struct options *o, struct err *e)
{
    return fill_keyed(t, task_listed);
}

static const struct text_table_column sources_columns[] = {{.name = "source"},
                                                           {.name = "about", .least = 28}},
                                      tasks_columns[] = {{.name = "task"},
                                                         {.name = "about", .least = 28}};
const struct listing list_of_sources = LISTING(sources_columns, .fill = fill_sources);
const struct listing list_of_tasks = LISTING(tasks_columns, .fill = fill_tasks);
const struct listing list_of_cases = {.instead = list_cases};

#define X(word) &list_of_##word,
static const struct listing *const listings[] = {LISTS(X)};
#undef X

enum status cmd_list(struct options *opt, int *code, struct err *e)
{
    const char *const given = opt->words.n ? opt->words.v[0] : "";
    const char *const what = strcmp(given, "cells") == 0 ? "cases" : given; /* the older word */
    const int at = word_index(what, list_words);
    char all[256] = "";

    for (int i = 0; list_words[i]; i++)
        text_append(all, sizeof(all), "%s%s",
                    i == 0              ? ""
                    : list_words[i + 1] ? ", "
                                        : " or ",
                    list_words[i]);
    if (!*what)
        return fail(e, E_USAGE, "list needs a word  -> write %s", all);
    if (at < 0)
        return unknown_word(e, "list", what, list_words, NULL);
    if (opt->words.n > 1 && !listings[at]->takes_word)
        return fail(e, E_USAGE, "unexpected word \"%.64s\"  -> bench list %s lists all of them",
                    opt->words.v[1], what);
    return list_print(listings[at], what, opt, code, e);
}
