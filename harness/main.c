/* SPDX-License-Identifier: MIT
 *
 * Reads the command line and hands over to the command. */
#include "harness/cli/version.h"
#include "harness/command/commands.h"
#include "harness/figure/figure.h"
#include "harness/plan/plan.h"
#include "harness/util/fileio.h"
#include "harness/util/suggest.h"

#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STDOUT_BUFFER = 1 << 16 }; /* more than any text that is printed at once */

static const struct command {
    const char *name;
    int (*run)(struct options *opt);
    const char *words; /* the words it takes, NULL = none */
    int n_words;       /* at most */
    const char *doc;   /* NULL: hidden */
} commands[] = {
    {"sweep", cmd_sweep, NULL, 0, "run the matrix, write the tables (the default)"},
    {"list", cmd_list, "WHAT", 1,
     "variants, backends, cases (the planned matrix), columns, baselines"},
    {"check", cmd_check, NULL, 0, "correctness only, against the reference or golden files"},
    {"eval", cmd_eval, NULL, 0, "perplexity of a checkpoint on a text"},
    {"train", cmd_train, NULL, 0, "train a model of a variant on a text, write a checkpoint"},
    {"rerun", cmd_rerun, "CASE_ID", 1, "run one row again from its repro line"},
    {"topo", cmd_topo, NULL, 0, "the machine, the pin plan; --roofline measures its peaks"},
    {"doctor", cmd_doctor, NULL, 0, "is this machine fit to measure on? what to repair"},
    {"compare", cmd_compare, "RUN RUN", 2,
     "two runs, one --axis of a run, or two programs (--exec)"},
    {"gate", cmd_gate, NULL, 0, "two programs in turns; exit code 3 if the new one is slower"},
    {"baseline", cmd_baseline, "WHAT", 3, "save, list, show or rm a run kept for this machine"},
    {"merge", cmd_merge, "DIR...", INT_MAX, "join the shards of a sweep"},
    {"plot", cmd_plot, "RUN...", INT_MAX,
     "figures of runs (gnuplot); --term draws in the terminal; plot history RUN..."},
    {"report", cmd_report, "RUN...", INT_MAX, "runs as one page of HTML: -o FILE"},
    {"cell", cmd_worker, "WORD", INT_MAX, NULL},
};

static const struct command *find_command(const char *name, struct err *e)
{
    const char *names[ARRAY_LEN(commands) + 1] = {0};
    int n = 0;

    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
        if (commands[i].doc)
            names[n++] = commands[i].name;
    }
    unknown_word(e, "command", name, names, "bench --help");
    return NULL;
}

/* Pictures are a form of plot's files only. */
static enum status check_format(const struct command *c, const struct options *o, struct err *e)
{
    if (o->format < FORMAT_SVG || c->run == cmd_plot)
        return OK;
    return fail(e, E_USAGE, "bench %s has no --format %s  -> %s, %s, %s or %s", c->name,
                format_name[o->format], format_name[FORMAT_TABLE], format_name[FORMAT_CSV],
                format_name[FORMAT_JSONL], format_name[FORMAT_MD]);
}

static enum status check_words(const struct command *c, const struct options *o, struct err *e)
{
    if (o->words.n <= c->n_words)
        return OK;
    const char *const extra = o->words.v[c->n_words];
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (commands[i].doc && strcmp(commands[i].name, extra) == 0)
            return fail(e, E_USAGE, "command %s after options  -> write it first: bench %s ...",
                        extra, extra);
    return fail(e, E_USAGE,
                "unexpected word \"%.64s\"  -> options start with --, lists are a,b "
                "without blanks",
                extra);
}

/* A command without a dry run must refuse --dry-run, not run. */
static enum status check_dry_run(const struct command *c, const struct options *o, struct err *e)
{
    if (!o->dry_run || c->run == cmd_sweep || c->run == cmd_list)
        return OK;
    return fail(e, E_USAGE,
                "--dry-run does not apply to %s  -> bench list cases prints what a sweep would run",
                c->name);
}

static void print_help(const struct options *o)
{
    struct bytes text;
    FILE *const f = bytes_open(&text, NULL);

    NEED(f);
    fputs("Commands:\n", f);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (commands[i].doc)
            fprintf(f, "  %-9s%-8s %s\n", commands[i].name,
                    commands[i].words ? commands[i].words : "", commands[i].doc);
    if (strcmp(o->command, "plot") == 0 || strcmp(o->command, "report") == 0) {
        fputs("\nFigures:\n", f);
        plot_print_figures(f);
    }
    NEED(bytes_close(f, &text, NULL) == OK);
    options_help(stdout, o->usage, text.data);
    free(text.data);
}

static int dispatch(struct options *o)
{
    struct err e;

    if (o->version) {
        version_print(stdout);
        return EXIT_FINE;
    }
    if (o->help || o->usage) {
        print_help(o);
        return EXIT_FINE;
    }
    const struct command *const c = find_command(o->command, &e);
    if (!c)
        return report_error(E_USAGE, &e);
    enum status st = check_words(c, o, &e);
    if (st == OK)
        st = check_format(c, o, &e);
    if (st == OK)
        st = check_dry_run(c, o, &e);
    cpu_limit((enum isa)o->max_isa);
    if (st == OK)
        st = lookup_impl(o, &e);
    return st == OK ? c->run(o) : report_error(st, &e);
}

int main(int argc, char **argv)
{
    struct options o;
    struct err e;
    enum status st;
    int code;

    setlocale(LC_ALL, "C");
    /* Own buffer, so that file_flush meets a full disk and knows why. Lives as long as stdout. */
    char *const room = isatty(STDOUT_FILENO) ? NULL : malloc(STDOUT_BUFFER);
    if (room)
        setvbuf(stdout, room, _IOFBF, STDOUT_BUFFER);
    st = options_parse(&o, argc, argv, &e);
    code = st == OK ? dispatch(&o) : report_error(st, &e);
    st = file_flush(stdout, "standard output", &e);
    if (st != OK) { /* only an interrupt takes precedence */
        const int flushed = report_error(st, &e);
        code = code == EXIT_SIGINT || code == EXIT_SIGTERM ? code : flushed;
    }
    options_free(&o);
    return code;
}
