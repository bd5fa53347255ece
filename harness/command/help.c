/* SPDX-License-Identifier: MIT
 *
 * bench help, and --help: a page of the program, and one for each command. */
#include "help.h"
#include "commands.h"
#include "harness/figure/figure.h"
#include "harness/plan/plan.h"
#include "harness/util/fileio.h"
#include "harness/util/suggest.h"
#include "harness/util/terminal.h"
#include "variants/backends/backend.h"
#include "variants/model/settings.h"

#include <argp.h>
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NARROWEST = 60, WIDEST = 100, USUAL = 80 };

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
    const char *const own = command_preset(command, s->name), *word;
    const char *const preset = own ? own : s->shown ? s->shown : s->preset;
    const struct choice *row;
    struct bytes text;
    int n = 0;
    FILE *const f = bytes_open(&text, NULL);

    NEED(f);
    fputs(option_doc(s, command), f);
    while (s->row && (word = choice_word(s->row, n)))
        fprintf(f, "%s%s", n++ ? ", " : ": ", word);
    if (s->at == offsetof(struct options, settings))
        for (struct settings all = {0}; (row = setting_next(&all));)
            fprintf(f, "%s%s", n++ ? ", " : ": ", row->name);
    if (preset)
        fprintf(f, " [%s]", preset);
    NEED(bytes_close(f, &text, NULL) == OK);
    return text.data;
}

/* ---- the page of a command ----------------------------------------------------------------- */

static int page_width(void)
{
    const int width = terminal_width(STDOUT_FILENO);

    return width == INT_MAX ? USUAL : clamp_int(width, NARROWEST, WIDEST);
}

static void print_examples(FILE *f, const struct command_spec *c)
{
    fputs("\nExamples:\n", f);
    for (int i = 0; i < EXAMPLES; i++)
        fprintf(f, "  %s\n      %s\n", c->example[i].line, c->example[i].does);
}

static void print_figures(FILE *f)
{
    fputs("\nFigures:\n", f);
    for (int i = 0; i < figure_count; i++)
        fprintf(f, "  %-17s %s\n", figures[i].name, figures[i].title);
}

/* argp lays options out; its own variables choose the width. */
static void print_options(FILE *f, int command, const char *doc, unsigned how)
{
    struct argp_option table[OPTION_MAX + GROUP_COUNT + 1] = {0};
    char *owned[OPTION_MAX] = {0};
    char name[32], form[64];
    int n = 0;

    for (int g = 0; g < GROUP_COUNT; g++) {
        int in_group = 0;
        for (int i = 0; i < option_count; i++) {
            const struct option_spec *const s = &option_specs[i];
            if ((int)s->group != g || !option_is_for(s, command))
                continue;
            if (in_group++ == 0)
                table[n++] = (struct argp_option){.doc = option_group_title[g], .group = g + 1};
            owned[i] = option_text(s, command);
            table[n++] = (struct argp_option){
                .name = s->name,
                .key = s->key ? s->key : 256 + i,
                .arg = s->metavar,
                .flags = s->kind == KIND_RESUME ? OPTION_ARG_OPTIONAL : 0,
                .doc = owned[i],
                .group = g + 1,
            };
        }
    }
    const struct command_spec *const c = &command_specs[command];
    const struct argp argp = {.options = table, .args_doc = c->words, .doc = doc};
    snprintf(name, sizeof(name), "bench %s", c->name);
    snprintf(form, sizeof(form), "no-dup-args-note,rmargin=%d", page_width() - 1);
    setenv("ARGP_HELP_FMT", form, 1);
    argp_help(&argp, f, how, name);
    for (int i = 0; i < option_count; i++)
        free(owned[i]);
}

void help_command(FILE *f, int command, bool usage)
{
    const struct command_spec *const c = &command_specs[command];
    char *doc = NULL;

    CHECK(asprintf(&doc, "%c%s.%s%s", toupper((unsigned char)*c->doc), c->doc + 1,
                   *c->about ? "\n" : "", c->about) >= 0);
    print_options(f, command, doc,
                  usage ? ARGP_HELP_USAGE : ARGP_HELP_SHORT_USAGE | ARGP_HELP_DOC | ARGP_HELP_LONG);
    free(doc);
    if (usage)
        return;
    if (command == CMD_PLOT || command == CMD_REPORT)
        print_figures(f);
    print_examples(f, c);
}

/* ---- the page of the program --------------------------------------------------------------- */

void help_general(FILE *f)
{
    fputs("Usage: bench [COMMAND] [WORD...] [OPTION...]\n"
          "Compare attention variants on this CPU: check, time, and write tables.\n"
          "\nCommands:\n",
          f);
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (command_specs[i].doc)
            fprintf(f, "  %-10s %s\n", command_specs[i].name, command_specs[i].doc);
    fputs("\nbench help COMMAND, or bench COMMAND --help, lists its options.\n"
          "@FILE reads options from a file (# comments, other files); those beside it come\n"
          "first. Every option is also read from the environment: BENCH_MAX_TIME.\n",
          f);
    print_examples(f, &command_specs[CMD_SWEEP]);
}

/* ---- the command --------------------------------------------------------------------------- */

int cmd_help(struct options *opt)
{
    const char *names[COMMAND_COUNT + 2] = {0};
    struct err e;
    int n = 0;

    if (opt->words.n == 0) {
        help_general(stdout);
        return EXIT_FINE;
    }
    if (strcmp(opt->words.v[0], "man") == 0) {
        help_man(stdout);
        return EXIT_FINE;
    }
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (command_specs[i].doc)
            names[n++] = command_specs[i].name;
    names[n] = "man";
    if (word_index(opt->words.v[0], names) < 0)
        return report_error(unknown_word(&e, "command", opt->words.v[0], names, NULL), &e);
    help_command(stdout, command_find(opt->words.v[0]), false);
    return EXIT_FINE;
}
