/* SPDX-License-Identifier: MIT
 *
 * From presets, environment and command line to struct options. getopt_long walks the words;
 * unknown ones get the program's own error text. Help is in option_print.c. */
#include "launcher.h"
#include "option_set.h"
#include "option_words.h"

#include <ctype.h>
#include <getopt.h>

enum { LONG_BASE = 256 }; /* getopt's value of option i is LONG_BASE + i */

static enum status set_presets(struct options *o, struct err *e)
{
    *o = (struct options){
        .command = "sweep",
        .settings = "",
        .check = true,
        .default_threads = 1,
    };
    for (int i = 0; i < option_count; i++)
        if (option_specs[i].preset)
            TRY(option_set(o, i, option_specs[i].preset, FROM_PRESET, 0, e));
    return OK;
}

/* Options stored by the run or training that --resume continues. NULL: a new one. */
struct earlier {
    const char *stored;
    enum continued kind;
};

/* BENCH_MAX_TIME for --max-time. Empty counts as unset. A continued run keeps its options. */
static enum status read_environment(struct options *o, const struct earlier *earlier, struct err *e)
{
    for (int i = 0; i < option_count; i++) {
        const struct option_spec *const s = &option_specs[i];
        char name[48];
        snprintf(name, sizeof(name), "BENCH_%s", s->name);
        for (char *c = name; *c; c++)
            *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);

        const char *const value = getenv(name);
        if (!value || !*value || s->flags & NO_ENV ||
            (earlier->stored && option_is_continued(s, earlier->kind)))
            continue;
        const enum status st = option_set(o, i, value, FROM_ENVIRONMENT, 0, e);
        if (st != OK) {
            const struct err inner = *e;
            return fail(e, st, "%s: %.560s", name, inner.msg);
        }
    }
    return OK;
}

/* Environment variables that other programs obey too. */
static void respect_conventions(struct options *o)
{
    const char *const term = getenv("TERM"), *const ci = getenv("CI");
    const char *const no_color = getenv("NO_COLOR");
    const bool dumb = term && strcmp(term, "dumb") == 0;

    if (!options_given(o, "color") && (dumb || (no_color && *no_color)))
        o->color = COLOR_NEVER;
    if (!options_given(o, "progress") && (dumb || (ci && strcmp(ci, "true") == 0)))
        o->progress = PROGRESS_PLAIN;
}

static int index_of_key(int key)
{
    if (key >= LONG_BASE)
        return key - LONG_BASE;
    for (int i = 0; i < option_count; i++)
        if (option_specs[i].key == key)
            return i;
    return -1;
}

static bool takes_value(const struct option_spec *s)
{
    return s->metavar && s->kind != KIND_RESUME;
}

/* getopt's form of the table: '-' returns words without a dash in place, ':' tells a missing value
 * from an unknown option. */
static void fill_getopt(struct option *table, char *letters)
{
    *letters++ = '-';
    *letters++ = ':';
    for (int i = 0; i < option_count; i++) {
        const struct option_spec *const s = &option_specs[i];
        table[i] = (struct option){
            .name = s->name,
            .has_arg = takes_value(s)           ? required_argument
                       : s->kind == KIND_RESUME ? optional_argument
                                                : no_argument,
            .val = LONG_BASE + i,
        };
        if (s->key)
            *letters++ = (char)s->key;
        if (s->key && takes_value(s))
            *letters++ = ':';
    }
    table[option_count] = (struct option){0};
    *letters = '\0';
}

/* The error for a word that starts with a dash and is no option. */
static enum status unknown_option(const char *word, struct err *e)
{
    const char *names[OPTION_MAX + 1] = {0};
    char name[64], list[160] = "";

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
    for (int i = 0; i < option_count; i++) {
        names[i] = option_specs[i].name;
        if (strncmp(names[i], name, strlen(name)) == 0)
            text_append(list, sizeof(list), "%s--%s", *list ? ", " : "", names[i]);
    }
    if (*list)
        return fail(e, E_USAGE, "option --%s is ambiguous  -> write one of %s", name, list);
    const char *const guess = nearest(name, names);
    if (guess)
        return fail(e, E_USAGE, "unknown option --%s  -> did you mean --%s?  (see: bench help)",
                    name, guess);
    return fail(e, E_USAGE, "unknown option --%s  -> see: bench help", name);
}

/* The error for what getopt refuses: `got` is its return value, `opt` its optopt, `word` the word
 * it refused. */
static enum status refuse(int got, int opt, const char *word, struct err *e)
{
    const int index = index_of_key(opt);

    if (opt && index < 0)
        return fail(e, E_USAGE, "unknown option -%c  -> see: bench help", opt);
    if (!opt)
        return unknown_option(word, e);
    const struct option_spec *const s = &option_specs[index];
    if (got == ':')
        return fail(e, E_USAGE, "--%s needs a value  -> write --%s %s", s->name, s->name,
                    s->preset ? s->preset : s->metavar);
    return fail(e, E_USAGE, "--%s takes no value  -> write --%s alone", s->name, s->name);
}

static enum status add_word(struct options *o, const char *word, bool first, struct err *e)
{
    if (first) {
        o->command = word;
        o->command_given = true;
        return OK;
    }
    TRY(GROW(o->words.v, o->words.n, e));
    o->words.v[o->words.n++] = word;
    return OK;
}

/* `argv` has the program name first: argv[i] is w->v[i - 1]. */
static enum status walk(struct options *o, const struct words *w, char **argv, struct err *e)
{
    struct option table[OPTION_MAX + 1];
    char letters[2 * OPTION_MAX + 3];
    enum status st = OK;

    fill_getopt(table, letters);
    optind = 0; /* glibc: start anew */
    opterr = 0;
    while (st == OK) {
        const int at = max_int(optind, 1); /* the word that getopt looks at */
        const int got = getopt_long(w->n + 1, argv, letters, table, NULL);
        if (got == -1)
            break;
        if (got == 1)
            st = add_word(o, optarg, at == 1, e);
        else if (got == '?' || got == ':')
            st = refuse(got, optopt, argv[at], e);
        else
            st = option_set(o, index_of_key(got), optarg, FROM_USER, w->v[at - 1].depth, e);
        if (st != OK)
            words_locate(&w->v[at - 1], e);
    }
    for (int i = optind; i <= w->n && st == OK; i++)
        st = add_word(o, argv[i], false, e); /* after "--" */
    return st;
}

static enum status read_words(struct options *o, struct words *w, struct err *e)
{
    TRY(words_expand(w, o, e));
    char **const argv = need_room((size_t)w->n + 2, sizeof(*argv));
    argv[0] = (char[]){"bench"};
    for (int i = 0; i < w->n; i++)
        argv[i + 1] = w->v[i].text;
    const enum status st = walk(o, w, argv, e);
    free(argv);
    return st;
}

/* Divisors of D below and above the number of heads asked for. */
static enum status check_heads(const struct options *o, struct err *e)
{
    const int D = o->d_model, H = o->heads;
    int below = min_int(H, D), above = H;

    if (o->d_head || D % H == 0)
        return OK;
    while (D % below)
        below--;
    while (above < D && D % above)
        above++;
    if (above >= D)
        return fail(e, E_USAGE,
                    "--heads %d does not divide --d-model %d  -> use %d, or give --d-head", H, D,
                    below);
    return fail(e, E_USAGE,
                "--heads %d does not divide --d-model %d  -> use %d or %d, or give --d-head", H, D,
                below, above);
}

/* "sweep, list and gate" */
static void owners(const struct option_spec *s, char *text, size_t size)
{
    *text = '\0';
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (option_is_for(s, i) && command_specs[i].doc)
            text_append(text, size, "%s%s", *text ? ", " : "", command_specs[i].name);
}

/* The command must take every option of the command line and its @files. One that the environment
 * sets is for the commands that take it. */
static enum status check_owners(const struct options *o, struct err *e)
{
    const int command = command_find(o->command);
    char text[160];

    for (int i = 0; i < option_count && command >= 0; i++) {
        if (o->given[i] != FROM_USER || option_is_for(&option_specs[i], command))
            continue;
        owners(&option_specs[i], text, sizeof(text));
        if ((command == CMD_PLOT || command == CMD_HISTORY) && option_specs[i].group == GROUP_AXES)
            return fail(e, E_USAGE,
                        "--%s does not apply to %s  -> choose rows with %s --filter KEY:VALUE",
                        option_specs[i].name, o->command, o->command);
        return fail(e, E_USAGE, "--%s does not apply to %s  -> use it with %s",
                    option_specs[i].name, o->command, text);
    }
    return OK;
}

enum status options_refuse(const struct options *o, const char *what, const char *const *taken,
                           struct err *e)
{
    for (int i = 0; i < option_count; i++) {
        const struct option_spec *const s = &option_specs[i];
        const bool of_cases = s->group <= GROUP_PLACE || s->flags & (IN_CASE | IN_RUN);
        if (of_cases && o->given[i] == FROM_USER && word_index(s->name, taken) < 0)
            return fail(e, E_USAGE, "--%s does not apply to %s  -> leave it out", s->name, what);
    }
    return OK;
}

static void copy_arguments(struct options *o, int argc, char **argv)
{
    o->argv = need_room((size_t)argc + 1, sizeof(*o->argv));
    for (; o->argc < argc; o->argc++)
        o->argv[o->argc] = options_keep(o, argv[o->argc], strlen(argv[o->argc]));
}

/* Set option `name` to the value of a canonical text: a word of a line. Defaults stay defaults, which
 * no other option changes. */
static enum status set_earlier(struct options *o, const char *name, const char *value,
                               const struct earlier *earlier, int command, struct err *e)
{
    const int index = option_find(name);
    const struct option_spec *const s = index < 0 ? NULL : &option_specs[index];

    if (!*value)
        return OK;
    if (!s || !option_is_continued(s, earlier->kind))
        return fail(e, E_USAGE,
                    "cannot resume: made with --%.64s, which this version does not have  -> use "
                    "the version that began it",
                    name);
    const char *const usual = s->preset ? s->preset : s->kind == KIND_DECIMAL ? "0" : "";
    if (strcmp(value, usual) == 0 && !command_preset(command, name))
        return s->preset ? options_default(o, name, value, e) : OK;
    if (s->kind != KIND_FILTER)
        return option_set(o, index, value, FROM_EARLIER, 0, e);
    for (const char *at = value; *at; at += strspn(at, " ")) { /* one by one */
        const size_t n = strcspn(at, " ");
        TRY(option_set(o, index, options_keep(o, at, n), FROM_EARLIER, 0, e));
        at += n;
    }
    return OK;
}

/* A line's value, which text_exact() may have quoted. */
static enum status read_value(const char **value, struct options *o, const char *text, size_t n,
                              struct err *e)
{
    struct words w = {0};
    enum status st = OK;

    *value = options_keep(o, text, n);
    if (strncmp(*value, "$'", 2) == 0)
        st = words_split(&w, o, *value, NULL, 0, e);
    if (st == OK && w.n == 1)
        *value = w.v[0].text;
    words_free(&w);
    return st;
}

static enum status read_earlier(struct options *o, const struct earlier *earlier, int command,
                                struct err *e)
{
    for (const char *line = earlier->stored; line && *line; line += *line == '\n') {
        const size_t length = strcspn(line, "\n"), n = strcspn(line, "=\n");
        const char *value = "";
        if (n < length)
            TRY(read_value(&value, o, line + n + 1, length - n - 1, e));
        TRY(set_earlier(o, options_keep(o, line, n), value, earlier, command, e));
        line += length;
    }
    return OK;
}

/* A sweep of fewer cases, where they were not chosen. */
static enum status quick_sweep(struct options *o, struct err *e)
{
    static const char *const few[][2] = {{"backend", "fast"}, {"seq", "128"}, {"bytes", "4096"}};

    for (size_t i = 0; i < ARRAY_LEN(few); i++)
        TRY(options_default(o, few[i][0], few[i][1], e));
    return OK;
}

/* run.json gets I/N in place of auto, so that --resume compares the part itself. */
static enum status settle_shard(struct options *o, struct err *e)
{
    char text[SHARD_TEXT];

    if (!o->shard || strcmp(o->shard, "auto") != 0)
        return OK;
    TRY(launcher_shard(text, e));
    o->shard = options_keep(o, text, strlen(text));
    return OK;
}

/* What holds between options. */
static enum status check_together(struct options *o, struct err *e)
{
    TRY(check_owners(o, e));
    TRY(check_heads(o, e));
    if (o->launches > 1 && o->isolate == ISOLATE_NONE)
        return fail(e, E_USAGE,
                    "--launches %d and --isolate none exclude each other: there is one process  "
                    "-> leave one of them out",
                    o->launches);
    return settle_shard(o, e);
}

static enum status read_all(struct options *o, struct words *w, int argc, char **argv,
                            const struct earlier *earlier, int earlier_command, struct err *e)
{
    const bool child = argc > 1 && command_find(argv[1]) == CMD_WORKER;

    TRY(set_presets(o, e));
    copy_arguments(o, argc, argv);
    if (!child)
        TRY(read_environment(o, earlier, e));
    TRY(read_earlier(o, earlier, earlier_command, e));
    for (int i = 1; i < argc; i++)
        TRY(words_add(w, o, argv[i], e));
    TRY(read_words(o, w, e));
    const int command = command_find(o->command);
    for (int i = 0; i < option_count; i++)
        if (o->given[i] < FROM_COMMAND && command_preset(command, option_specs[i].name))
            TRY(option_set(o, i, command_preset(command, option_specs[i].name), FROM_COMMAND, 0,
                           e));
    if (o->quick && command == CMD_SWEEP)
        TRY(quick_sweep(o, e));
    if (!(o->help || o->help_all || o->usage || o->version))
        TRY(check_together(o, e));
    respect_conventions(o);
    /* "none" is for sweeps only: it stops the scoring of the shipped checkpoints. */
    if (o->ckpt && strcmp(o->ckpt, "none") == 0 && command != CMD_SWEEP && command != CMD_SLURM)
        o->ckpt = NULL;
    return OK;
}

static enum status parse(struct options *o, int argc, char **argv, const struct earlier *earlier,
                         int earlier_command, struct err *e)
{
    struct words w = {0};
    const enum status st = read_all(o, &w, argc, argv, earlier, earlier_command, e);

    words_free(&w);
    return st;
}

enum status options_parse(struct options *o, int argc, char **argv, struct err *e)
{
    return parse(o, argc, argv, &(struct earlier){0}, -1, e);
}

enum status options_continue(struct options *o, const char *stored, enum continued kind,
                             struct err *e)
{
    const struct earlier earlier = {stored, kind};
    struct options again;
    const int default_threads = o->default_threads;
    const enum status st = parse(&again, o->argc, o->argv, &earlier, command_find(o->command), e);

    if (st != OK) {
        options_free(&again);
        return st;
    }
    options_free(o);
    *o = again;
    o->default_threads = default_threads;
    return OK;
}

enum status options_take(struct options *o, const struct options *from, struct err *e)
{
    const int command = command_find(from->command);

    for (int i = 0; i < option_count; i++) {
        const struct option_spec *const s = &option_specs[i];
        if (!option_is_for(s, command) || s->kind == KIND_RESUME || s->kind == KIND_QUICK)
            continue;
        char *const value = option_value(from, s);
        const enum status st =
            *value ? option_set(o, i, value, (enum option_source)from->given[i], 0, e) : OK;
        free(value);
        TRY(st);
    }
    return OK;
}

enum status options_parse_line(struct options *o, const char *line, struct err *e)
{
    struct words w = {0};
    enum status st = set_presets(o, e);

    if (st == OK)
        st = words_split(&w, o, line, NULL, 0, e);
    if (st == OK)
        st = read_words(o, &w, e);
    if (st == OK)
        st = check_heads(o, e);
    words_free(&w);
    return st;
}

enum status options_parse_again(struct options *o, const char *line, struct err *e)
{
    struct options kept = {0};
    struct words w = {0};
    enum status st = words_split(&w, &kept, line, NULL, 0, e);
    char **const argv = need_room((size_t)w.n + 1, sizeof(*argv));

    *o = (struct options){0};
    for (int i = 0; i < w.n; i++)
        argv[i] = w.v[i].text;
    if (st == OK)
        st = options_parse(o, w.n, argv, e);
    free(argv);
    words_free(&w);
    options_free(&kept);
    return st;
}

/* The index of an option that there is. */
static int option_of(const char *name)
{
    const int index = option_find(name);

    CHECK(index >= 0);
    return index;
}

enum status options_default(struct options *o, const char *name, const char *value, struct err *e)
{
    const int index = option_of(name);

    return o->given[index] < FROM_OTHERS ? option_set(o, index, value, FROM_OTHERS, 0, e) : OK;
}

bool options_given(const struct options *o, const char *name)
{
    return o->given[option_of(name)] > FROM_OTHERS;
}

bool options_written(const struct options *o, const char *name)
{
    return o->given[option_of(name)] == FROM_USER;
}

bool options_typed(const struct options *o, const char *name)
{
    return options_written(o, name) && o->depth[option_of(name)] == 0;
}

void options_free(struct options *o)
{
    for (int i = 0; i < option_count; i++) {
        const enum option_kind kind = option_specs[i].kind;
        char *const at = (char *)o + option_specs[i].at;
        if (kind == KIND_INTS)
            free(((struct ints *)at)->v);
        else if (kind == KIND_NAMES || kind == KIND_CHOICE || kind == KIND_FILTER ||
                 kind == KIND_LINES)
            free(((struct names *)at)->v);
    }
    for (int i = 0; i < o->n_owned; i++)
        free(o->owned[i]);
    free(o->owned);
    free(o->words.v);
    free(o->argv);
    *o = (struct options){0};
}
