/* SPDX-License-Identifier: MIT
 *
 * The one table of options, for the files that read it: option_parse.c sets values, option_print.c
 * prints them (help, canonical form, repro line). */
#pragma once

#include "command_table.h"
#include "options.h"

/* The form of a value and the type of the field that it fills. */
enum option_kind {
    KIND_FLAG,    /* bool */
    KIND_COUNT,   /* int, one more each time */
    KIND_OFF,     /* bool, set to false */
    KIND_INT,     /* int in [lo, hi] */
    KIND_SEED,    /* uint64_t */
    KIND_DECIMAL, /* double in [lo, hi] or (lo, hi] */
    KIND_WORD,    /* int: index in `words` */
    KIND_TEXT,    /* const char *: one of `words` if given, else any text without blanks */
    KIND_PATH,    /* const char *: any non-empty text */
    KIND_INTS,    /* struct ints in [lo, hi]; the i-th of `words` stands for -1 - i */
    KIND_NAMES,   /* struct names; each one of `words` if given */
    KIND_CHOICE,  /* struct names: values of the choice `row` as text */
    KIND_FILTER,  /* struct names: filter expressions */
    KIND_LINES,   /* struct names: each one any text */
    KIND_RESUME,  /* bool, and an optional path in resume_dir */
    KIND_QUICK,   /* stands for several other options */
};

enum option_group {
    GROUP_AXES,
    GROUP_MEASURE,
    GROUP_PLACE,
    GROUP_OUTPUT,
    GROUP_OTHER,
    GROUP_COUNT
};

enum option_flags {
    IN_CASE = 1, /* distinguishes cases: in the canonical form, and in the repro line unless it is
                  * the default */
    IN_RUN = 2,  /* distinguishes runs: canonical form only */
    ABOVE = 4,   /* KIND_DECIMAL: greater than lo */
    OR_CPUS = 8, /* KIND_TEXT with words: or a list of numbers */
    NO_ENV = 16, /* not read from the environment */
    IN_TRAINING = 32, /* of a training, which goes on with it */
    BELOW = 64,       /* KIND_DECIMAL: less than hi */
};

enum { OWN_DOCS = 5 };

struct option_spec {
    const char *name;
    int key;             /* short option, 0 = none */
    const char *metavar; /* NULL: takes no value */
    const char *preset;  /* the default, as the user would write it; NULL: zero */
    const char *shown;   /* the default as help shows it, if different */
    const char *doc;
    struct { /* what it means to some of its commands */
        unsigned only;
        const char *doc, *shown; /* the default there, if different */
    } docs[OWN_DOCS];
    enum option_group group;
    enum option_kind kind;
    unsigned flags;
    size_t at; /* offset in struct options */
    int lo, hi;
    const char *const *words; /* NULL-terminated */
    unsigned only;            /* the commands that take it: bits 1 << enum command_id */
    unsigned usual;           /* those whose help shows it first; without any, help shows all */
    const struct choice *row; /* KIND_CHOICE */
};

extern const struct option_spec option_specs[];
extern const int option_count;

/* A copy of text[0..len) that lives as long as `o`. */
char *options_keep(struct options *o, const char *text, size_t len);

/* Index of an option in the table, -1 if absent. */
int option_find(const char *name);

static inline bool option_is_for(const struct option_spec *s, int command)
{
    if ((command == CMD_EVAL || command == CMD_GENERATE) && s->row && s->row->at_eval)
        return true;
    return command >= 0 && s->only & 1u << command;
}

/* The meaning of the option for this command; command -1: in general. */
const char *option_doc(const struct option_spec *s, int command);

/* Its default there as help shows it; NULL: zero. */
const char *option_shown(const struct option_spec *s, int command);

static inline const void *option_field(const struct options *o, const struct option_spec *s)
{
    return (const char *)o + s->at;
}

/* Is it among those that a continued run or training was begun with? */
bool option_is_continued(const struct option_spec *s, enum continued kind);

/* A malloc'ed text of the option's value as the user would write it, "" if unset. */
char *option_value(const struct options *o, const struct option_spec *s);

/* Print the option as on a command line, after a blank. */
void option_print(FILE *f, const struct options *o, const struct option_spec *s);
