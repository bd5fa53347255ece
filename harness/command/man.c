/* SPDX-License-Identifier: MIT
 *
 * The manual page bench(1), in troff with the macros of man(7): made of the tables of commands
 * and options that help prints, so that both say the same. */
#include "harness/cli/build.h"
#include "harness/cli/exit_code.h"
#include "help.h"

/* Text that troff must not read as requests: a point or quote at the beginning of a line,
 * backslashes and dashes anywhere. */
static void put(FILE *f, const char *text)
{
    static const struct text_escape escapes[] = {{"\\", "\\e"},  {"-", "\\-"},   {"~", "\\(ti"},
                                                 {"^", "\\(ha"}, {"'", "\\(aq"}, {NULL, NULL}};

    if (*text == '.' || *text == '\'')
        fputs("\\&", f);
    text_print_escaped(f, text, escapes);
}

static void put_line(FILE *f, const char *text)
{
    put(f, text);
    fputc('\n', f);
}

/* "sweep, list: "; nothing for an option of all commands. */
static void put_owners(FILE *f, const struct option_spec *s)
{
    int n = 0, all = 0;

    for (int i = 0; i < COMMAND_COUNT; i++) {
        all += command_specs[i].doc != NULL;
        n += command_specs[i].doc && option_is_for(s, i);
    }
    for (int i = 0, k = 0; n < all && i < COMMAND_COUNT; i++)
        if (command_specs[i].doc && option_is_for(s, i))
            fprintf(f, "%s%s", k++ ? ", " : "(", command_specs[i].name);
    if (n < all)
        fputs(")\n", f);
}

/* Its meaning for single commands: "plot: ...". */
static void put_own(FILE *f, const struct option_spec *s)
{
    for (int i = 0; i < OWN_DOCS && s->docs[i].doc; i++) {
        int n = 0;
        fputs(".br\n", f);
        for (int c = 0; c < COMMAND_COUNT; c++)
            if (s->docs[i].only & 1u << c && command_specs[c].doc)
                fprintf(f, "%s%s", n++ ? ", " : "", command_specs[c].name);
        fputs(": ", f);
        put(f, s->docs[i].doc);
        if (s->docs[i].shown) {
            fputs(" [", f);
            put(f, s->docs[i].shown);
            fputc(']', f);
        }
        fputc('\n', f);
    }
}

static void put_option(FILE *f, const struct option_spec *s)
{
    char *const text = option_text(s, -1);

    fputs(".TP\n\\fB", f);
    if (s->key)
        fprintf(f, "\\-%c\\fR, \\fB", s->key);
    fputs("\\-\\-", f);
    put(f, s->name);
    fputs("\\fR", f);
    if (s->metavar) {
        fputs(s->kind == KIND_RESUME ? "[=\\fI" : " \\fI", f);
        put(f, s->metavar);
        fputs(s->kind == KIND_RESUME ? "\\fR]" : "\\fR", f);
    }
    fputc('\n', f);
    put_line(f, text);
    put_own(f, s);
    put_owners(f, s);
    free(text);
}

static void put_command(FILE *f, const struct command_spec *c)
{
    fprintf(f, ".SS bench %s%s", c->name, c->words ? " " : "");
    put_line(f, c->words ? c->words : "");
    put(f, c->doc);
    fputs(".\n", f);
    if (*c->about)
        put_line(f, c->about);
    for (int i = 0; i < EXAMPLES && c->example[i].line; i++) {
        fputs(".PP\n", f);
        put(f, c->example[i].does);
        fputs(":\n.PP\n.nf\n.RS 4\n", f);
        put_line(f, c->example[i].line);
        fputs(".RE\n.fi\n", f);
    }
}

void help_man(FILE *f)
{
    fprintf(f, ".TH BENCH 1 \"\" \"bench %s\" \"User Commands\"\n.SH NAME\n", build_version);
    put_line(f, "bench - compare attention variants on CPUs: check, time, and write tables");
    fputs(".SH SYNOPSIS\n.B bench\n[\\fICOMMAND\\fR] [\\fIWORD\\fR...] [\\fIOPTION\\fR...]\n", f);
    fputs(".SH COMMANDS\n", f);
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (command_specs[i].doc)
            put_command(f, &command_specs[i]);
    fputs(".SH OPTIONS\nThe commands that take an option stand below it.\n", f);
    for (int g = 0; g < GROUP_COUNT; g++) {
        fputs(".SS ", f);
        put_line(f, option_group_title[g]);
        for (int i = 0; i < option_count; i++)
            if ((int)option_specs[i].group == g)
                put_option(f, &option_specs[i]);
    }
    fputs(".SH FILES\n.TP\n.I @FILE\n", f);
    put_line(f, "Options, as words; # begins a comment, and a file may name files. An option "
                "beside @FILE replaces the file's.");
    fputs(".TP\n.I results/\n", f);
    put_line(f, "A folder for each run, and the link latest. bench list columns says what is in "
                "its tables.");
    fputs(".SH ENVIRONMENT\n", f);
    put_line(f, "Every option is read from the environment too: BENCH_MAX_TIME for --max-time. "
                "NO_COLOR, TERM=dumb and CI set the defaults of --color and --progress.");
    fputs(".SH EXIT STATUS\n", f);
    for (int i = 0; exit_meanings[i].meaning; i++) {
        fprintf(f, ".TP\n%d\n", exit_meanings[i].code);
        put_line(f, exit_meanings[i].meaning);
    }
}
