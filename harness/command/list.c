/* SPDX-License-Identifier: MIT
 *
 * bench list: what is built in, and which of it can be used here. */
#include "commands.h"
#include "harness/cli/command_table.h"
#include "harness/cli/option_set.h"
#include "harness/compare/baseline.h"
#include "harness/learn/synthetic.h"
#include "harness/learn/task.h"
#include "harness/plan/plan.h"
#include "harness/table/record.h"
#include "harness/util/fileio.h"
#include "harness/util/suggest.h"
#include "harness/util/text_table.h"
#include "list_cases.h"
#include "list_models.h"
#include "list_rows.h"
#include "list_settings.h"
#include "variants/model/attention/sublayer_attention.h"
#include "variants/model/exclusions.h"
#include "variants/systems.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const NO_OPTION[] = {NULL};

/* Print and free. */
static int finish(struct text_table *s, const struct options *o, enum status st, struct err *e)
{
    if (st == OK)
        st = text_table_select(s, &o->columns, e);
    s->quiet = o->quiet;
    if (st == OK)
        text_table_print(stdout, s, (enum format)o->format);
    text_table_free(s);
    return st == OK ? EXIT_FINE : report_error(st, e);
}

/* Terms that no fused kernel supports: the variant's attention is composed of products. */
static const char *why_composed(const struct variant *v)
{
    struct config c = config_default(v, 8, 2, 4, 8, 1, 0);
    struct engine g;
    const char *why = NULL;

    c.max_seq = 8;
    if (engine_open(&g, backend_ref.name, 1, NULL, NULL) == OK)
        why = attention_refusal(&g, &c);
    return why ? why : "";
}

/* Options that apply to it, and the numbers that --set accepts for it. */
static void print_axes(char *list, size_t size, const struct variant *v)
{
    struct config c = config_default(v, 8, 2, 4, 8, 1, 0);
    const char *between = "--set ";
    const struct choice *row;
    size_t n = 0;

    c.mem_len = 8;
    config_numbers_reset(&c);
    *list = '\0';
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        if (model_choices[i].special && choice_applies(&model_choices[i], &c, SCOPE_MODEL))
            n += (size_t)snprintf(list + n, size - n, "%s--%s", n ? " " : "",
                                  model_choices[i].option);
    for (struct settings all = {0}; (row = setting_next(&all));)
        if (setting_applies(row, &c)) {
            n += (size_t)snprintf(list + n, size - n, "%s%s%s", n && *between == '-' ? " " : "",
                                  between, row->name);
            between = ",";
        }
    CHECK(n < size);
}

/* How much it keeps of the past, as a word. */
static const char *memory_of(const struct variant *v)
{
    return v->bidirectional    ? "bidirectional"
           : v->mem->recurrent ? "cached"
           : v->mem->state     ? "state"
           : v->mem->cached    ? "prefix"
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

static int list_variants(struct options *o)
{
    static const char *const taken[] = {"variant", NULL};
    const struct variant *chosen[MAX_LOOKUP];
    static const struct text_table_column columns[] = {
        {.name = "family"},
        {.name = "variant"},
        {.name = "alias", .spare = 1},
        {.name = "about", .least = 24},
        {.name = "memory"},
        {.name = "sees", .spare = 1},
        {.name = "norm", .spare = 1},
        {.name = "gate", .spare = 1},
        {.name = "control", .least = 8, .spare = 1},
        {.name = "axes", .least = 20, .spare = 1},
        {.name = "composed", .least = 20, .spare = 1},
        {.name = "paper", .least = 20, .spare = 1},
    };
    struct text_table s = {.column = columns, .columns = ARRAY_LEN(columns)};
    struct err e;
    int n = 0;
    enum status st = options_refuse(o, "list variants", taken, &e);

    if (st == OK && o->words.n > 1)
        st = choose_variants(o, o->words.v[1], &e);
    if (st == OK)
        st = options_given(o, "variant") ? lookup_variants(chosen, &n, o, &e)
                                         : (n = by_family(chosen), OK);
    for (int i = 0; i < n && st == OK; i++) {
        const struct variant *const v = chosen[i];
        char list[512];
        print_axes(list, sizeof(list), v);
        const char *const text[] = {
            family_name[family_of(v)],
            v->name,
            v->alias,
            v->about,
            memory_of(v),
            sees(v),
            wiring_name[v->wiring],
            v->gate ? v->gate->name : "",
            v->control,
            list,
            why_composed(v),
            v->paper,
        };
        st = text_table_add(&s, text, &e);
    }
    return finish(&s, o, st, &e);
}

/* The families, and who is in them. */
static int list_families(const struct options *o)
{
    static const struct text_table_column columns[] = {
        {.name = "family"},
        {.name = "about", .least = 26},
        {.name = "variants", .least = 34},
    };
    struct text_table s = {.column = columns, .columns = ARRAY_LEN(columns)};
    struct err e;
    enum status st = options_refuse(o, "list families", NO_OPTION, &e);

    for (enum family f = 0; f < FAMILY_COUNT && st == OK; f++) {
        struct bytes names;
        FILE *const to = bytes_open(&names, NULL);
        int n = 0;
        NEED(to);
        for (int i = 0; variants[i]; i++)
            if (variant_family(i) == f)
                fprintf(to, "%s%s", n++ ? " " : "", variants[i]->name);
        NEED(bytes_close(to, &names, NULL) == OK);
        st = text_table_add(&s, (const char *const[]){family_name[f], family_about[f], names.data},
                            &e);
        free(names.data);
    }
    return finish(&s, o, st, &e);
}

/* What a model may have, and what does not go with it. */
static int list_parts(const struct options *o)
{
    static const struct text_table_column columns[] = {
        {.name = "part", .least = 24},
        {.name = "excludes", .least = 30},
    };
    struct text_table s = {.column = columns, .columns = ARRAY_LEN(columns)};
    char part[FEATURE_TEXT], other[FEATURE_TEXT];
    struct err e;
    enum status st = options_refuse(o, "list parts", NO_OPTION, &e);

    for (int i = 0; st == OK && exclusions_name(part, i); i++) {
        struct bytes excluded;
        FILE *const to = bytes_open(&excluded, NULL);
        int n = 0;
        NEED(to);
        for (int j = 0; exclusions_name(other, j); j++)
            if (exclusions_between(i, j))
                fprintf(to, "%s%s", n++ ? "; " : "", other);
        NEED(bytes_close(to, &excluded, NULL) == OK);
        st = text_table_add(&s, (const char *const[]){part, excluded.data}, &e);
        free(excluded.data);
    }
    return finish(&s, o, st, &e);
}

/* Each system of the founding papers, and the variant that implements it, or why none does. As Markdown this is the whole of docs/systems.md. */
static int list_systems(const struct options *o)
{
    static const struct text_table_column columns[] = {
        {.name = "system"},
        {.name = "paper", .spare = 1},
        {.name = "status"},
        {.name = "how", .least = 30},
    };
    struct text_table s = {.column = columns, .columns = ARRAY_LEN(columns)};
    struct err e;
    enum status st = options_refuse(o, "list systems", NO_OPTION, &e);

    for (const struct system *t = systems; t->name && st == OK; t++) {
        char how[256];
        const bool code = t->run && o->format == FORMAT_MD;
        snprintf(how, sizeof(how), "%s%s%s%s", code ? "`" : "", t->run ? "bench " : "",
                 t->run ? t->run : t->why, code ? "`" : "");
        const char *const text[] = {t->name, t->paper, t->run ? "built" : "closed", how};
        st = text_table_add(&s, text, &e);
    }
    if (st == OK && o->format == FORMAT_MD)
        fputs("# Systems\n\nWhich systems of the papers that this harness started from are "
              "implemented: "
              "built, and "
              "one command that runs it,\nor closed, and why. `bench list systems --format md` "
              "writes "
              "this page.\n\n",
              stdout);
    return finish(&s, o, st, &e);
}

static int list_backends(const struct options *o)
{
    static const struct text_table_column columns[] = {
        {.name = "backend"},
        {.name = "usable"},
        {.name = "needs"},
        {.name = "about", .least = 30},
    };
    struct text_table s = {.column = columns, .columns = ARRAY_LEN(columns)};
    const char *name, *repair;
    struct err e;
    enum status st = options_refuse(o, "list backends", NO_OPTION, &e);

    for (int i = 0; backends[i] && st == OK; i++) {
        const struct backend *const b = backends[i];
        struct err why;
        const bool usable = backend_usable(b, &why) == OK;
        const char *const text[] = {b->name, usable ? "yes" : "no", isa_needs[b->needs],
                                    usable ? b->about : why.msg};
        st = text_table_add(&s, text, &e);
    }
    for (int i = 0; st == OK && (name = optional_backend(i, &repair)); i++) {
        char note[160];
        const char *const text[] = {name, "no", "", note};
        if (backend_find(name))
            continue;
        snprintf(note, sizeof(note), "was not built in  -> %s", repair);
        st = text_table_add(&s, text, &e);
    }
    return finish(&s, o, st, &e);
}

static int list_columns(const struct options *o)
{
    static const struct text_table_column columns[] = {
        {.name = "table"},
        {.name = "column"},
        {.name = "type"},
        {.name = "unit"},
        {.name = "meaning", .least = 20},
    };
    static const char *const type[] = {
        [COLUMN_TEXT] = "text", [COLUMN_I64] = "integer", [COLUMN_REAL] = "real"};
    struct text_table s = {.column = columns, .columns = ARRAY_LEN(columns)};
    struct err e;
    enum status st = options_refuse(o, "list columns", NO_OPTION, &e);

    if (st == OK && o->format == FORMAT_MD) { /* the whole of results/README.md */
        columns_markdown(stdout);
        return EXIT_FINE;
    }
    for (int t = 0; t < TABLE_COUNT; t++) {
        for (int i = 0; i < tables[t].n && st == OK; i++) {
            const struct column *const c = &tables[t].columns[i];
            const char *const text[] = {tables[t].name, c->name, type[c->type], c->unit,
                                        c->meaning};
            st = text_table_add(&s, text, &e);
        }
    }
    return finish(&s, o, st, &e);
}

/* What `listed` has, by a word of `list`. */
static int list_keyed(const struct options *o, const char *word, const char *column,
                      bool (*listed)(int i, char text[KEYED_TEXT], const char **about))
{
    const struct text_table_column columns[] = {
        {.name = column},
        {.name = "about", .least = 28},
    };
    char command[32];
    struct text_table s = {.column = columns, .columns = ARRAY_LEN(columns)};
    char usual[KEYED_TEXT];
    const char *about;
    struct err e;

    snprintf(command, sizeof(command), "list %s", word);
    enum status st = options_refuse(o, command, NO_OPTION, &e);
    for (int i = 0; st == OK && listed(i, usual, &about); i++)
        st = text_table_add(&s, (const char *const[]){usual, about}, &e);
    return finish(&s, o, st, &e);
}

int cmd_list(struct options *opt)
{
    const char *const what = opt->words.n ? opt->words.v[0] : "";
    const bool chooses = strcmp(what, "variants") == 0 || strcmp(what, "models") == 0;
    struct err e;

    if (opt->words.n > 1 && !chooses && word_index(what, list_words) >= 0)
        return report_error(fail(&e, E_USAGE,
                                 "unexpected word \"%.64s\"  -> bench list %s lists all of them",
                                 opt->words.v[1], what),
                            &e);
    if (strcmp(what, "variants") == 0)
        return list_variants(opt);
    if (strcmp(what, "backends") == 0)
        return list_backends(opt);
    if (strcmp(what, "cases") == 0 || strcmp(what, "cells") == 0) /* cells: the older word */
        return list_cases(opt);
    if (strcmp(what, "columns") == 0)
        return list_columns(opt);
    if (strcmp(what, "families") == 0)
        return list_families(opt);
    if (strcmp(what, "parts") == 0)
        return list_parts(opt);
    if (strcmp(what, "rows") == 0)
        return list_rows(opt);
    if (strcmp(what, "settings") == 0)
        return list_settings(opt);
    if (strcmp(what, "systems") == 0)
        return list_systems(opt);
    if (strcmp(what, "sources") == 0)
        return list_keyed(opt, what, "source", synthetic_source);
    if (strcmp(what, "tasks") == 0)
        return list_keyed(opt, what, "task", task_listed);
    if (strcmp(what, "baselines") == 0)
        return baseline_list(opt);
    if (strcmp(what, "models") == 0)
        return list_models(opt);
    if (!*what)
        fail(&e, E_USAGE,
             "list needs a word  -> write variants, families, parts, settings, backends, cases, "
             "columns, rows, sources, tasks, systems, models or baselines");
    else
        unknown_word(&e, "list", what, list_words, NULL);
    return report_error(E_USAGE, &e);
}
