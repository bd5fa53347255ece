/* SPDX-License-Identifier: MIT
 *
 * bench help, and --help: a page of the program, and one for each command. */
#include "help.h"
#include "commands.h"
#include "harness/figure/figure.h"
#include "harness/plan/plan.h"

#include <ctype.h>

enum { NARROWEST = 60, WIDEST = 100, USUAL = 80, TEXT_COLUMN = 29 };

const char *const option_group_title[GROUP_COUNT] = {
    [GROUP_AXES] = "What runs (lists a,b; ranges lo..hi, lo..hi*k, lo..hi+k; k, Ki, M, Mi):",
    [GROUP_MEASURE] = "Measuring:",
    [GROUP_PLACE] = "Placement:",
    [GROUP_OUTPUT] = "Output:",
    [GROUP_OTHER] = "Other:",
};

/* ---- options as text ----------------------------------------------------------------------- */

/* The names of a registry, then words that stand for several of them. */
static const char *variant_word(int i)
{
    int n = 0;

    while (variants[n])
        n++;
    return i < n ? variants[i]->name : variant_set_word(i - n);
}

static const char *backend_word(int i)
{
    int n = 0;

    while (backends[n])
        n++;
    return i < n ? backends[i]->name : i == n ? "auto" : i == n + 1 ? "fast" : NULL;
}

const char *option_value_at(const struct option_spec *s, int i)
{
    for (int k = 0; s->words && k <= i; k++)
        if (!s->words[k])
            return NULL;
    if (s->words)
        return s->words[i];
    if (s->row)
        return choice_word(s->row, i);
    switch (s->at) {
    case offsetof(struct options, variants):
        return variant_word(i);
    case offsetof(struct options, backends):
        return backend_word(i);
    case offsetof(struct options, figures):
        return i < figure_count ? figures[i].name : NULL;
    default:
        return NULL;
    }
}

char *option_text(const struct option_spec *s, int command)
{
    const char *const preset = option_shown(s, command), *word;
    const struct choice *row;
    struct bytes text;
    int n = 0;
    FILE *const f = bytes_begin(&text);

    fputs(option_doc(s, command), f);
    while (s->row && (word = choice_word(s->row, n)))
        fprintf(f, "%s%s", n++ ? ", " : ": ", word);
    if (s->at == offsetof(struct options, settings))
        for (struct settings all = {0}; (row = setting_next(&all));)
            fprintf(f, "%s%s", n++ ? ", " : ": ", row->name);
    if (preset && *preset)
        fprintf(f, " [%s]", preset);
    return bytes_end(f, &text);
}

/* ---- the page of a command ----------------------------------------------------------------- */

static int page_width(void)
{
    const int width = terminal_width(STDOUT_FILENO);

    return width == INT_MAX ? USUAL : clamp_int(width, NARROWEST, WIDEST);
}

/* `text`, from column `at` on; its further lines start at column `indent`. */
static void fill(FILE *f, const char *text, int at, int indent)
{
    text_fill(f, text, at, indent, page_width() - 1);
}

/* A name of `width` columns, and what it is. */
static void print_named(FILE *f, int width, const char *name, const char *text)
{
    const int at = fprintf(f, "  %-*s ", width, name);

    fill(f, text, at, width + 3);
}

static void print_examples(FILE *f, const struct command_spec *c)
{
    fputs("\nExamples:\n", f);
    for (int i = 0; i < EXAMPLES && c->example[i].line; i++) {
        fill(f, c->example[i].line, fprintf(f, "  "), 4);
        fill(f, c->example[i].does, fprintf(f, "      "), 6);
    }
}

static void print_figures(FILE *f)
{
    fputs("\nFigures:\n", f);
    for (int i = 0; i < figure_count; i++)
        print_named(f, 17, figures[i].name, figures[i].title);
}

static int by_name(const void *a, const void *b)
{
    const struct option_spec *const *const x = a, *const *const y = b;

    return strcmp((*x)->name, (*y)->name);
}

/* The options of a group that a command takes, by name; returns their number. */
static int options_of(int command, enum option_group group, const struct option_spec **list)
{
    int n = 0;

    for (int i = 0; i < option_count; i++)
        if (option_specs[i].group == group && option_is_for(&option_specs[i], command))
            list[n++] = &option_specs[i];
    qsort(list, (size_t)n, sizeof(const struct option_spec *), by_name);
    return n;
}

/* "--name=ARG", or "--name[=ARG]"; the caller frees it. */
static char *option_form(const struct option_spec *s)
{
    const bool optional = s->kind == KIND_RESUME;

    return need_text("--%s%s%s%s%s", s->name, optional ? "[" : "", s->metavar ? "=" : "",
                     s->metavar ? s->metavar : "", optional ? "]" : "");
}

static void print_option(FILE *f, const struct option_spec *s, int command)
{
    char *const form = option_form(s), *const text = option_text(s, command);
    const char key[] = {'-', (char)s->key, ',', '\0'};
    const int at = fprintf(f, "  %3s %-*s", s->key ? key : "", TEXT_COLUMN - 6, form);

    fill(f, text, at, TEXT_COLUMN);
    free(text);
    free(form);
}

static void print_options(FILE *f, int command)
{
    const struct option_spec *list[OPTION_MAX];

    for (int g = 0; g < GROUP_COUNT; g++) {
        const int n = options_of(command, (enum option_group)g, list);
        if (n > 0)
            fill(f, option_group_title[g], fprintf(f, "\n ") - 1, 1);
        for (int i = 0; i < n; i++)
            print_option(f, list[i], command);
    }
}

/* Those that most users of the command need, its own first; returns their number. */
static int print_usual(FILE *f, int command)
{
    int n = 0;

    for (int own = 1; own >= 0; own--)
        for (int i = 0; i < option_count; i++) {
            const struct option_spec *const s = &option_specs[i];
            if (!(s->usual & 1u << command) || (s->group == GROUP_OTHER) != own)
                continue;
            if (n++ == 0)
                fill(
                    f,
                    "\nUsual options (lists a,b; ranges lo..hi, lo..hi*k, lo..hi+k; k, Ki, M, Mi):",
                    0, 0);
            print_option(f, s, command);
        }
    if (n > 0)
        fprintf(f, "\nbench %s --help-all lists all options.\n", command_specs[command].name);
    return n;
}

void help_usage(FILE *f, int command)
{
    const struct option_spec *list[OPTION_MAX];
    const char *const words = command_specs[command].words;
    struct bytes text;
    FILE *const all = bytes_begin(&text);

    for (int g = 0; g < GROUP_COUNT; g++) {
        const int n = options_of(command, (enum option_group)g, list);
        for (int i = 0; i < n; i++) {
            char *const form = option_form(list[i]);
            const char key[] = {'-', (char)list[i]->key, '|', '\0'};
            fprintf(all, "[%s%s] ", list[i]->key ? key : "", form);
            free(form);
        }
    }
    fputs(words ? words : "", all);
    bytes_end(all, &text);
    const int at = fprintf(f, "Usage: bench %s ", command_specs[command].name);
    fill(f, text.data, at, at);
    free(text.data);
}

void help_command(FILE *f, int command, bool all)
{
    const struct command_spec *const c = &command_specs[command];

    char doc[256];

    snprintf(doc, sizeof(doc), "%c%s.", toupper((unsigned char)*c->doc), c->doc + 1);
    fprintf(f, "Usage: bench %s [OPTION...]%s%s\n", c->name, c->words ? " " : "",
            c->words ? c->words : "");
    fill(f, doc, 0, 0);
    if (*c->about)
        fill(f, c->about, 0, 0);
    if (all || print_usual(f, command) == 0)
        print_options(f, command);
    if (command == CMD_PLOT || command == CMD_REPORT)
        print_figures(f);
    print_examples(f, c);
}

/* ---- the page of the program --------------------------------------------------------------- */

void help_general(FILE *f)
{
    fputs("Usage: bench [COMMAND] [WORD...] [OPTION...]\n", f);
    fill(f,
         "Compare attention variants on this CPU: check, time, and write tables.\n"
         "\nCommands:",
         0, 0);
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (command_specs[i].doc)
            print_named(f, 10, command_specs[i].name, command_specs[i].doc);
    fill(f,
         "\nbench COMMAND --help lists its usual options, bench COMMAND --help-all all.\n"
         "@FILE reads options from a file (# comments, other files); those beside it come first. "
         "Every option is also read from the environment: BENCH_MAX_TIME.",
         0, 0);
    print_examples(f, &command_specs[CMD_SWEEP]);
}

/* ---- the command --------------------------------------------------------------------------- */

enum status cmd_help(struct options *opt, int *code, struct err *e)
{
    const char *names[COMMAND_COUNT + 2] = {0};
    int n = 0;

    if (opt->words.n == 0) {
        help_general(stdout);
        return OK;
    }
    if (strcmp(opt->words.v[0], "man") == 0) {
        help_man(stdout);
        return OK;
    }
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (command_specs[i].doc)
            names[n++] = command_specs[i].name;
    names[n] = "man";
    if (word_index(opt->words.v[0], names) < 0)
        return unknown_word(e, "command", opt->words.v[0], names, NULL);
    help_command(stdout, command_find(opt->words.v[0]), opt->help_all);
    return OK;
}
