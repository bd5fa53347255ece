/* SPDX-License-Identifier: MIT
 *
 * Reads the command line and hands over to the command. */
#include "harness/cli/build.h"
#include "harness/command/commands.h"
#include "harness/command/help.h"
#include "harness/plan/plan.h"
#include "harness/util/fileio.h"
#include "harness/util/signals.h"
#include "variants/registry_check.h"

#include <locale.h>
#include <sys/resource.h>

enum { STDOUT_BUFFER = 1 << 16 }; /* more than any text that is printed at once */

static command_fn *const run[COMMAND_COUNT] = {
    [CMD_SWEEP] = cmd_sweep,       [CMD_LIST] = cmd_list,         [CMD_CHECK] = cmd_check,
    [CMD_EVAL] = cmd_eval,         [CMD_TRAIN] = cmd_train,       [CMD_STUDY] = cmd_study,
    [CMD_RECL] = cmd_recl,         [CMD_GENERATE] = cmd_generate, [CMD_RERUN] = cmd_rerun,
    [CMD_EXPLAIN] = cmd_explain,   [CMD_IMPORT] = cmd_import,     [CMD_TOPO] = cmd_topo,
    [CMD_DOCTOR] = cmd_doctor,     [CMD_COMPARE] = cmd_compare,   [CMD_GATE] = cmd_gate,
    [CMD_BASELINE] = cmd_baseline, [CMD_MERGE] = cmd_merge,       [CMD_SLURM] = cmd_slurm,
    [CMD_EXPORT] = cmd_export,     [CMD_PLOT] = cmd_plot,         [CMD_HISTORY] = cmd_history,
    [CMD_REPORT] = cmd_report,     [CMD_HELP] = cmd_help,         [CMD_COMPLETION] = cmd_completion,
    [CMD_WORKER] = cmd_worker,     [CMD_JUDGE] = cmd_judge,
};

/* The command of that name, -1 with an error if there is none. */
static int find_command(const char *name, struct err *e)
{
    const char *names[COMMAND_COUNT + 1] = {0};
    const int found = command_find(name);
    int n = 0;

    for (int i = 0; i < COMMAND_COUNT; i++)
        if (command_specs[i].doc)
            names[n++] = command_specs[i].name;
    if (found < 0)
        unknown_word(e, "command", name, names, "bench help");
    return found;
}

/* svg, png and pdf belong to plot and history, fom to commands that measure. */
static enum status check_format(int command, const struct options *o, struct err *e)
{
    const bool measures =
        command == CMD_SWEEP || command == CMD_EVAL || command == CMD_RERUN || command == CMD_STUDY;

    if (o->format < FORMAT_FOM || command == CMD_PLOT || command == CMD_HISTORY)
        return OK;
    if (o->format == FORMAT_FOM && measures && o->columns.n > 0)
        return fail(e, E_USAGE,
                    "--columns does not choose columns of --format fom  -> use --format jsonl");
    if (o->format == FORMAT_FOM && measures && !o->dry_run)
        return OK;
    return fail(e, E_USAGE, "bench %s has no --format %s  -> use %s, %s, %s, %s, %s or %s",
                command_specs[command].name, format_name[o->format], format_name[FORMAT_TABLE],
                format_name[FORMAT_CSV], format_name[FORMAT_JSONL], format_name[FORMAT_JSON],
                format_name[FORMAT_MD], format_name[FORMAT_TEX]);
}

static enum status check_words(int command, const struct options *o, struct err *e)
{
    const int most = command_specs[command].n_words;

    if (o->words.n <= most)
        return OK;
    const char *const extra = o->words.v[most];
    const int misplaced = command_find(extra);
    if (misplaced >= 0 && command_specs[misplaced].doc)
        return fail(e, E_USAGE, "command %s after options  -> write it first: bench %s ...", extra,
                    extra);
    if (o->resume && !o->resume_dir && command != CMD_TRAIN)
        return fail(
            e, E_USAGE,
            "unexpected word \"%.200s\"  -> write --resume=%.200s if it is the folder of the run",
            extra, extra);
    return fail(
        e, E_USAGE,
        "unexpected word \"%.64s\"  -> start options with --, write lists as a,b without blanks",
        extra);
}

static void print_help(const struct options *o, int command)
{
    if (o->usage)
        help_usage(stdout, command);
    else if (o->command_given || o->help_all)
        help_command(stdout, command, o->help_all);
    else
        help_general(stdout);
}

/* Interrupted, these say themselves how to go on; the others must begin again. */
static bool continues(int command)
{
    return command == CMD_SWEEP || command == CMD_EVAL || command == CMD_TRAIN ||
           command == CMD_STUDY || command == CMD_WORKER;
}

static enum status check_options(int command, struct options *o, struct err *e)
{
    TRY(check_words(command, o, e));
    TRY(check_format(command, o, e));
    cpu_limit((enum isa)o->max_isa);
    return lookup_impl(o, e);
}

static int dispatch(struct options *o)
{
    struct err e;
    int code = EXIT_FINE;

    if (o->version) {
        version_print(stdout);
        return EXIT_FINE;
    }
    const int command = find_command(o->command, &e);
    if (command < 0)
        return report_error(E_USAGE, &e);
    const bool helps = command == CMD_HELP && o->words.n > 0; /* with --help-all, about another */
    const bool asks = command_specs[command].n_words == 0 && o->words.n == 1 &&
                      strcmp(o->words.v[0], "help") == 0; /* "bench train help" */
    if (!helps && (o->help || o->help_all || o->usage || asks)) {
        print_help(o, command);
        return EXIT_FINE;
    }
    enum status st = check_options(command, o, &e);
    if (st == OK)
        st = run[command](o, &code, &e);
    const int its = st == E_INTERRUPTED ? signals_exit_code()
                    : st != OK          ? report_error(st, &e)
                                        : EXIT_FINE;
    code = code == EXIT_FINE ? its : code;
    if ((code == EXIT_SIGINT || code == EXIT_SIGTERM) && !continues(command)) {
        fputs("repeat with: ", stderr);
        options_print_again(stderr, o);
        fputc('\n', stderr);
    }
    return code;
}

/* Without enough of it the program would end by a signal, without a word. */
static enum status check_stack(struct err *e)
{
    enum { LEAST_KIB = 256 };
    struct rlimit is;

    if (getrlimit(RLIMIT_STACK, &is) != 0 || is.rlim_cur >> 10 >= LEAST_KIB)
        return OK;
    return fail(e, E_USAGE, "%llu KiB of stack, the program needs %d  -> raise ulimit -s",
                (unsigned long long)is.rlim_cur >> 10, LEAST_KIB);
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
    st = check_stack(&e);
    st = st == OK ? registry_check(&e) : st;
    if (st != OK)
        return report_error(st, &e);
    if (argc > 1 && strcmp(argv[1], "__complete") == 0)
        return complete(argc - 2, argv + 2);
    st = options_parse(&o, argc, argv, &e);
    code = st == OK ? dispatch(&o) : report_error(st, &e);
    st = file_flush(stdout, "standard output", &e);
    if (st != OK && file_reader_gone(STDOUT_FILENO)) { /* as if SIGPIPE had ended the program */
        code = code == EXIT_FINE ? EXIT_SIGPIPE : code;
    } else if (st != OK) { /* only an interrupt takes precedence */
        const int flushed = report_error(st, &e);
        code = code == EXIT_SIGINT || code == EXIT_SIGTERM ? code : flushed;
    }
    options_free(&o);
    return code;
}
