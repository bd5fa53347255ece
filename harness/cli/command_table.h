/* SPDX-License-Identifier: MIT
 *
 * The one table of commands: their words, what they do, and examples. Help, the man page,
 * completion and the options that a command takes come from it; main.c adds the functions. */
#pragma once

enum command_id {
    CMD_SWEEP,
    CMD_LIST,
    CMD_CHECK,
    CMD_JUDGE,
    CMD_EVAL,
    CMD_TRAIN,
    CMD_STUDY,
    CMD_RECL,
    CMD_GENERATE,
    CMD_IMPORT,
    CMD_RERUN,
    CMD_EXPLAIN,
    CMD_TOPO,
    CMD_DOCTOR,
    CMD_COMPARE,
    CMD_GATE,
    CMD_BASELINE,
    CMD_MERGE,
    CMD_SLURM,
    CMD_PLOT,
    CMD_HISTORY,
    CMD_REPORT,
    CMD_EXPORT,
    CMD_HELP,
    CMD_COMPLETION,
    CMD_WORKER, /* hidden: a child */
    COMMAND_COUNT
};

enum { EXAMPLES = 4, COMMAND_PRESETS = 12 };

struct command_spec {
    const char *name;
    const char *words; /* the words it takes, as help shows them; NULL = none */
    int n_words;       /* at most */
    const char *doc;   /* a short line; NULL: hidden */
    const char *about; /* what its help says in addition */
    struct {
        const char *line, *does;
    } example[EXAMPLES];        /* those with a line */
    const char *const *choices; /* what its first word may be, NULL-terminated; NULL = anything */
    struct {
        const char *option, *value;
    } preset[COMMAND_PRESETS]; /* its own defaults, where they differ from the options' */
};

extern const struct command_spec command_specs[COMMAND_COUNT];

/* The name of CMD_WORKER in earlier versions. A program given with --exec may be one of them, so it
 * is started by this name, which later versions take too. */
#define WORKER_EARLIER "cell"

/* The words of `list`; list.c has what each prints. */
/* clang-format off */
#define LISTS(X)                                                                                   \
    X(variants) X(families) X(parts) X(settings) X(backends) X(cases) X(columns) X(sources)        \
    X(tasks) X(baselines) X(systems) X(models) X(rows)
/* clang-format on */

/* The words that these commands take first. */
extern const char *const list_words[], *const baseline_words[], *const completion_words[];

/* The default of an option for this command; NULL: the option's own. */
const char *command_preset(int command, const char *option);

/* The command of that name, hidden and earlier ones too; -1 if there is none. */
int command_find(const char *name);
