/* SPDX-License-Identifier: MIT
 *
 * Reads the command line and hands over to the command. */
#include "commands.h"
#include "fileio.h"
#include "suggest.h"
#include "version.h"

#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

static const struct command {
    const char *name;
    int (*run)(struct options *opt);
    const char *words; /* what may follow it, NULL = nothing */
    int n_words;       /* at most */
    const char *doc;   /* NULL: hidden */
} commands[] = {
    {"sweep", cmd_sweep, NULL, 0, "run the matrix, write the tables (the default)"},
    {"list", cmd_list, "WHAT", 1,
     "variants, backends, cells (the planned matrix), columns, baselines"},
    {"check", cmd_check, NULL, 0, "correctness only, against the reference or golden files"},
    {"eval", cmd_eval, NULL, 0, "perplexity of a checkpoint on a text"},
    {"train", cmd_train, NULL, 0, "train a model of a variant on a text, write a checkpoint"},
    {"rerun", cmd_rerun, "CASE_ID", 1, "run one row again from its repro line"},
    {"topo", cmd_topo, NULL, 0, "the machine, the pin plan; --roofline measures its peaks"},
    {"doctor", cmd_doctor, NULL, 0, "is this machine fit to measure on? what to mend"},
    {"compare", cmd_compare, "RUN RUN", 2,
     "two runs, one --axis of a run, or two programs (--exec)"},
    {"gate", cmd_gate, NULL, 0, "two programs in turns; exit code 3 if the new one is slower"},
    {"baseline", cmd_baseline, "WHAT", 3, "save, list, show or rm a run kept for this machine"},
    {"merge", cmd_merge, "DIR...", INT_MAX, "join the shards of a sweep"},
    {"cell", cmd_cell, "WORD", INT_MAX, NULL},
    {"peak", cmd_peak, "WORD", INT_MAX, NULL},
};

/* Part of the command line's design, still to come. */
static const char *const later[] = {"plot", "report"};

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

static enum status check_words(const struct command *c, const struct options *o, struct err *e)
{
    if (o->words.n <= c->n_words)
        return OK;
    const char *const extra = o->words.v[c->n_words];
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (commands[i].doc && strcmp(commands[i].name, extra) == 0)
            return fail(e, E_USAGE, "command %s behind options  -> write it first: bench %s ...",
                        extra, extra);
    return fail(e, E_USAGE,
                "unexpected word \"%.64s\"  -> options start with --, lists are a,b "
                "without blanks",
                extra);
}

static void print_help(const struct options *o)
{
    char *text = NULL;
    size_t size;
    FILE *const f = open_memstream(&text, &size);

    CHECK(f != NULL);
    fputs("Commands:\n", f);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (commands[i].doc)
            fprintf(f, "  %-9s%-8s %s\n", commands[i].name,
                    commands[i].words ? commands[i].words : "", commands[i].doc);
    CHECK(fclose(f) == 0);
    options_help(stdout, o->usage, text);
    free(text);
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
    for (size_t i = 0; i < ARRAY_LEN(later); i++)
        if (strcmp(o->command, later[i]) == 0)
            return report_error(fail(&e, E_UNSUPPORTED,
                                     "command %s is not built in yet  -> see: "
                                     "bench --help",
                                     later[i]),
                                &e);
    const struct command *const c = find_command(o->command, &e);
    if (!c)
        return report_error(E_USAGE, &e);
    const enum status st = check_words(c, o, &e);
    if (st != OK)
        return report_error(st, &e);
    cpu_limit((enum isa)o->max_isa);
    return c->run(o);
}

int main(int argc, char **argv)
{
    struct options o;
    struct err e;
    enum status st;
    int code;

    setlocale(LC_ALL, "C");
    st = options_parse(&o, argc, argv, &e);
    code = st == OK ? dispatch(&o) : report_error(st, &e);
    st = file_flush(stdout, "standard output", &e);
    if (st != OK) { /* nothing but an interrupt weighs more */
        const int flushed = report_error(st, &e);
        code = code == EXIT_SIGINT || code == EXIT_SIGTERM ? code : flushed;
    }
    options_free(&o);
    return code;
}
