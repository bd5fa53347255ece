/* SPDX-License-Identifier: MIT
 *
 * The user's options. One table (option_table.c) holds each option: its name, default, help,
 * environment variable BENCH_NAME, the field here that it fills, and whether it belongs to the
 * repro line and to the comparison of --resume. Names of variants, backends and gates are kept as
 * words; plan.c looks them up. */
#pragma once

#include "harness/util/text_table.h"
#include "variants/model/config/choices.h"

/* The values of options that take one word; stored as int, in the order of the words. */
enum order { ORDER_INTERLEAVE, ORDER_GIVEN };
enum cache_mode { CACHE_HOT, CACHE_COLD };
enum isolate { ISOLATE_EXEC, ISOLATE_FORK, ISOLATE_NONE };
enum raw { RAW_NONE, RAW_CSV, RAW_ZST };
enum lr_schedule { LR_COSINE, LR_LINEAR, LR_WSD, LR_CONSTANT };
enum objective { OBJECTIVE_LM, OBJECTIVE_MLM, OBJECTIVE_SEQ2SEQ };
enum initial { INITIAL_USUAL, INITIAL_BY_DEPTH };
/* How a text is counted: which windows of it are scored, and what the sum is divided by. */
enum count { COUNT_STREAM, COUNT_HF, COUNT_LM_EVAL };
enum unit { UNIT_TOKEN, UNIT_WORD, UNIT_BYTE };
enum mem_begin { MEM_BEGIN_AUTO, MEM_BEGIN_ZEROS, MEM_BEGIN_EMPTY };
extern const char *const count_name[],
    *const unit_name[],
        *const detok_name[],
            *const join_name[],
                *const mem_begin_name[],
                    *const id_type_name[]; /* as enum id_type of harness/tokens/token_file.h */
enum export_to {
    EXPORT_JSON,
    EXPORT_OPENMETRICS,
    EXPORT_JUNIT,
    EXPORT_FOM,
    EXPORT_HF, /* of models: a folder; a GGUF file; a folder of an adapter */
    EXPORT_GGUF,
    EXPORT_PEFT,
};
extern const char *const export_name[],
    *const order_name[], *const cache_name[], *const isolate_name[]; /* NULL-ended */
extern const char *const huge_pages_name[], *const format_name[];

enum { LAUNCHES_MOST = 32 };
enum { OPTION_MAX = 192 }; /* room for the rows of the table */

struct options {
    const char *command; /* "sweep" if none was written */
    bool command_given;
    struct names words; /* the other words without a dash: a case id, a list's subject */

    /* axes */
    struct names variants; /* or "all" */
    struct names backends; /* or "auto" */
    struct names workloads, phases, mem_kinds;
    struct names chosen[MODEL_CHOICE_COUNT]; /* values of each choice; n == 0: the variant's own */
    struct ints seq, mem, batch;
    struct ints layers;   /* n == 0: 4 for whole models */
    struct ints threads;  /* n == 0: default_threads */
    struct names filters; /* each a well-formed expression */

    /* the same for all cases */
    int d_model, heads, vocab;
    int kv_heads;               /* 0 = the variant's own */
    int d_head;                 /* 0 = d_model / heads */
    int d_inner;                /* 0 = 4 * d_model */
    const char *settings;       /* "" = defaults: settings_parse */
    int skeleton;               /* enum skeleton (variants/model/config/skeleton.h) */
    const char *impl;           /* NULL = the first that accepts */
    int max_isa;                /* enum isa */
    const char *openblas_core;  /* NULL = the library's choice */
    const char *onednn_max_isa; /* likewise */
    const char *pin, *membind;
    int huge_pages; /* enum huge_pages */
    int cache;      /* enum cache_mode */
    uint64_t seed;
    int default_threads; /* physical cores allowed; set by the caller, 1 after parsing */

    /* measuring */
    int min_samples, launches; /* launches 0 = case_launches */
    double max_time_s, target_ci_pct, block_ms, warmup_ms, cool_down_s;
    int order, isolate; /* enum order, enum isolate */
    bool quick;
    bool check;
    double check_time_s; /* 0 = max_time_s */

    /* output */
    const char *out;
    int format, raw, progress, color; /* the enums above */
    struct names columns;             /* n == 0: all */
    bool resume;
    const char *resume_dir; /* NULL: the latest run under `out` */
    bool quiet, strict, fail_fast, dry_run;
    const char *save_baseline, *baseline; /* NULL = none */
    const char *shard;                    /* "I/N", never "auto" after parsing; NULL = all */
    bool force;
    bool partial;      /* merge what there is */
    int nodes, shards; /* of bench slurm; shards 0 = as many as nodes */
    int verbose;       /* number of -v */

    /* check, eval, topo */
    const char *golden, *tokens; /* NULL = none */
    int tokens_type;             /* enum id_type */
    const char *ckpt, *corpus;
    const char *choices;   /* eval: a file of questions, in place of a text; NULL = none */
    int bytes;             /* bytes of text to score, 0 = all */
    const char *losses;    /* eval: a folder, of one score the file; NULL = none */
    const char *attention; /* likewise */
    const char *tokenizer; /* a folder; NULL = tokens are bytes */
    int count, unit;       /* enum count, enum unit */
    int stride;            /* 0 = a window */
    const char *bos, *doc_sep;
    int detok, join; /* of WikiText or not */
    int mem_begin;   /* enum mem_begin */
    bool roofline;
    bool bench; /* check: time the operations too */

    /* generate */
    const char *prompt, *prompt_file; /* NULL = the other one */
    int new_tokens, top_k;            /* top_k 0 = all */
    bool ignore_eos;
    int episodes;              /* of a task */
    double temperature, top_p; /* temperature 0 = no chance */

    /* train */
    int steps, stop_at; /* stop_at 0 = at the end */
    int lr_warmup, eval_every, log_every;
    int schedule;   /* enum lr_schedule */
    double minutes; /* 0 = by steps */
    double lr, grad_clip, weight_decay;
    double lr_floor, lr_decay;    /* fractions: of lr, of the training */
    struct names weight_decay_of; /* param_group_name */
    double z_loss;
    int objective;             /* enum objective */
    double mask_share;         /* in (0,1] */
    int init;                  /* enum initial */
    int optimizer, muon_scale; /* enum optimizer_kind, muon_scale */
    double dropout;            /* in [0,1) */
    const char *valid;         /* NULL = the end of the corpus */
    const char *from;          /* weights to begin with; NULL = none */
    struct names train_only;   /* patterns of parameters; n == 0: all */
    const char *lora;          /* to train: "r=8,alpha=16,on=PATTERN"; else a folder; or NULL */
    const char *task;          /* NULL = train on a text */
    double discount, trace, value_coef, entropy_coef;

    /* compare, gate */
    const char *axis, *base; /* NULL = not inside one run; NULL = the first value */
    struct names exec;       /* "old=PATH", "new=PATH" */
    bool plain;              /* they are command lines */
    double threshold_pct;
    bool instructions;
    const char *summary;

    /* plot, report */
    struct names figures; /* n == 0: all */
    const char *size;     /* "WxH"; NULL = as the figure needs */
    int dpi;
    bool term;

    /* export */
    int to; /* enum export_to */

    bool help, help_all, usage, version;

    int argc; /* the program's arguments */
    char **argv;

    /* private */
    const struct variant *published; /* that ckpt is of, in a sweep; NULL: none */
    int longest;                     /* tokens that it was made to see at once, 0 = any */
    unsigned char given[OPTION_MAX]; /* where each option's value comes from: enum option_source */
    unsigned char depth[OPTION_MAX]; /* of the @file that set it; 0: the command line */
    char **owned;
    int n_owned;
};

/* Read defaults, the environment (except for the hidden command `worker`, which obeys its parent
 * only), @files, and the command line; the later source wins. Lists that one source repeats grow.
 * E_USAGE or E_IO (an @file), each with a remedy. Free `o` in any case. */
enum status options_parse(struct options *o, int argc, char **argv, struct err *e);

/* A malloc'ed line of the words that `o` was read from; options_parse_again reads it in a
 * child as options_parse did. */
char *options_command_line(const struct options *o);
enum status options_parse_again(struct options *o, const char *line, struct err *e);

/* Parse one line of options, such as a repro column. Defaults apply, the environment does not. */
enum status options_parse_line(struct options *o, const char *line, struct err *e);

void options_free(struct options *o);

/* A default that follows from other options: unless something was given, or an earlier call set one. */
enum status options_default(struct options *o, const char *name, const char *value, struct err *e);

/* E_USAGE if @file or command line choose or measure cases with an option that is not among these
 * names (NULL-terminated): `what` does neither. */
enum status options_refuse(const struct options *o, const char *what, const char *const *taken,
                           struct err *e);

/* Was the option (name without dashes) set by environment, @file or command line? */
bool options_given(const struct options *o, const char *name);
/* ... by @file or command line? */
bool options_written(const struct options *o, const char *name);
/* ... by the command line itself? */
bool options_typed(const struct options *o, const char *name);

/* The kind of work that --resume continues. */
enum continued { CONTINUED_RUN, CONTINUED_TRAINING };

/* A malloc'ed text of "name=value" lines: everything that influences cases or measuring, or the
 * training. A value that cannot stand on a line is $'...'. */
char *options_canonical(const struct options *o, enum continued kind);

/* Read the arguments of `o` again, with the options of such a text in place of those that were not
 * written: they go before the environment, and before defaults. E_USAGE if this program does not
 * take one of them. */
enum status options_continue(struct options *o, const char *stored, enum continued kind,
                             struct err *e);

/* Print the line that continues a run (`of`: its folder) or a training (its checkpoint), quoted for
 * the shell: with the options written that do not belong to what is continued. */
void options_print_resume(FILE *f, const struct options *o, enum continued kind, const char *of);

/* Print the command line as it was given, quoted for the shell. */
void options_print_again(FILE *f, const struct options *o);

/* Take the values that `from` has of all options of its command. */
enum status options_take(struct options *o, const struct options *from, struct err *e);

/* Compare a stored canonical text with these options: of a run all, or `only` some (ends with NULL). E_USAGE:
 * "cannot resume PATH: made with --d-model 512, now 256". */
enum status options_resumable(const struct options *o, const char *stored, const char *const *only,
                              const char *path, struct err *e);

/* A malloc'ed " --name value ..." of the options that belong to every repro line and differ from
 * their defaults. */
char *options_repro(const struct options *o);

/* Resolve a path of the repository: as written if that exists, else from the folder of the
 * executable and up to three folders above it, or from share/bench of one of them, where `make
 * install` puts it. False if there is none; `out` is then `path`. */
bool options_locate(char *out, size_t size, const char *path);

/* The same for files that belong to the program, such as scripts to execute: never from the current
 * folder, which anybody may own. */
bool options_locate_own(char *out, size_t size, const char *path);
