/* SPDX-License-Identifier: MIT
 *
 * bench completion: scripts for bash, zsh and fish. All that they know of bench is that
 *
 *   bench __complete WORD...     the words after the program's name, the last up to the cursor
 *
 * prints what may stand in place of the last one, "WORD<TAB>what it is" a line, and ends with 1 where
 * names of files may. So the words are those of the program that is installed. */
#include "commands.h"
#include "harness/table/run.h"
#include "help.h"

enum { LINE = 4096 };

/* What is completed: `text` as it was typed, of which the first `hidden` characters are words of
 * their own to the shell; the words before it. */
struct typed {
    char text[LINE];
    size_t hidden;
    char **before;
    int n;
};

/* bash ends words at = and :, which are words then. */
static bool is_separator(const char *word)
{
    return strcmp(word, "=") == 0 || strcmp(word, ":") == 0;
}

static struct typed typed_of(int n, char **words)
{
    struct typed t = {.before = words, .n = n - 1};
    const char *const last = words[n - 1];

    while (t.n > 0 && (is_separator(words[t.n]) || is_separator(words[t.n - 1])))
        t.n--;
    for (int i = t.n; i < n; i++)
        text_append(t.text, LINE, "%s", words[i]);
    t.hidden = strlen(t.text) - (is_separator(last) ? 0 : strlen(last));
    return t;
}

/* `word` behind the first `head` characters that were typed, if the rest begins it. */
static void offer(const struct typed *t, size_t head, const char *word, const char *what)
{
    const char *const begun = t->text + head;

    if (strncmp(word, begun, strlen(begun)) == 0)
        printf("%.*s%s\t%s\n", (int)(head > t->hidden ? head - t->hidden : 0), t->text + t->hidden,
               head < t->hidden ? word + (t->hidden - head) : word, what);
}

static void offer_values(const struct typed *t, size_t head, const struct option_spec *s)
{
    const char *const comma = strrchr(t->text + head, ','), *word;

    if (comma)
        head = (size_t)(comma - t->text) + 1;
    for (int i = 0; (word = option_value_at(s, i)); i++)
        offer(t, head, word, "");
}

/* Values behind "NAME:" of a filter, whose NAME is that of a column. */
static void offer_filtered(const struct typed *t, size_t head)
{
    const char *const name = t->text + head + (t->text[head] == '!');
    const char *const colon = strchr(name, ':');
    char option[LINE];

    if (!colon)
        return;
    snprintf(option, sizeof(option), "%.*s", (int)(colon - name), name);
    for (char *c = option; *c; c++)
        *c = *c == '_' ? '-' : *c;
    const int i = option_find(option);
    if (i >= 0)
        offer_values(t, (size_t)(colon - t->text) + 1, &option_specs[i]);
}

/* The value of an option begins behind `head`. True if names of files may stand there. */
static bool complete_value(const struct typed *t, size_t head, const struct option_spec *s)
{
    if (s->kind == KIND_FILTER)
        offer_filtered(t, head);
    else
        offer_values(t, head, s);
    return s->kind == KIND_PATH || s->kind == KIND_RESUME;
}

/* The option of "--name..." up to a =, or of "-k"; NULL if there is none. */
static const struct option_spec *option_of(const char *word)
{
    char name[LINE];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
    for (const struct option_spec *s = option_specs; s < option_specs + option_count; s++)
        if ((name[0] == '-' && name[1] == '-' && strcmp(name + 2, s->name) == 0) ||
            (s->key && name[0] == '-' && name[1] == s->key && !name[2]))
            return s;
    return NULL;
}

static void offer_options(const struct typed *t, int command)
{
    char name[LINE];

    for (const struct option_spec *s = option_specs; s < option_specs + option_count; s++)
        if (option_is_for(s, command)) {
            snprintf(name, sizeof(name), "--%s", s->name);
            offer(t, 0, name, option_doc(s, command));
        }
}

static void offer_commands(const struct typed *t)
{
    for (int c = 0; c < COMMAND_COUNT; c++)
        if (command_specs[c].doc)
            offer(t, 0, command_specs[c].name, command_specs[c].doc);
}

/* The cases of the latest run, each once. */
static void offer_cases(const struct typed *t)
{
    static const enum table_id of[] = {TABLE_LATENCY, TABLE_PERPLEXITY};

    for (size_t k = 0; k < ARRAY_LEN(of); k++) {
        const enum table_id table = of[k];
        struct rows rows = {0};
        struct err e;
        if (run_table(&rows, "results/latest", table, &e) != OK)
            continue;
        for (size_t i = 0; i < rows.n; i++) {
            const char *const row = (const char *)rows.row + i * tables[table].row_size;
            offer(t, 0, row_text(&tables[table], row, "case_id"),
                  row_text(&tables[table], row, "variant"));
        }
        rows_free(&rows);
    }
}

static bool is_case(const char *word)
{
    return strlen(word) == 16 && strspn(word, "0123456789abcdef") == 16;
}

/* A word that is no option. True if names of files may stand there. */
static bool complete_word(const struct typed *t, int command)
{
    const char *const *const words = command_specs[command].choices;
    bool has_case = !(command == CMD_EXPLAIN || command == CMD_RERUN);

    if (t->n == 0 || command == CMD_HELP)
        offer_commands(t);
    if (command == CMD_HELP)
        offer(t, 0, "man", "the manual page");
    for (int i = 0; words && words[i]; i++)
        offer(t, 0, words[i], "");
    for (int i = 0; i < t->n; i++)
        has_case = has_case || is_case(t->before[i]);
    if (!has_case)
        offer_cases(t);
    return t->n > 0 && command != CMD_HELP && !words && has_case;
}

int complete(int n, char **words)
{
    if (n < 1)
        return EXIT_BAD_USAGE;
    const struct typed t = typed_of(n, words);
    const int named = t.n > 0 ? command_find(t.before[0]) : -1;
    const int command = named >= 0 && command_specs[named].doc ? named : CMD_SWEEP;
    const struct option_spec *const before = t.n > 0 ? option_of(t.before[t.n - 1]) : NULL;
    const char *const equals = t.text[0] == '-' ? strchr(t.text, '=') : NULL;
    const struct option_spec *const own = equals ? option_of(t.text) : NULL;
    bool files = false;

    if (own)
        files = complete_value(&t, (size_t)(equals - t.text) + 1, own);
    else if (before && before->metavar && before->kind != KIND_RESUME &&
             !strchr(t.before[t.n - 1], '='))
        files = complete_value(&t, 0, before);
    else if (t.text[0] == '-')
        offer_options(&t, command);
    else
        files = complete_word(&t, command);
    return files ? 1 : EXIT_FINE;
}

/* ---- scripts ------------------------------------------------------------------------------- */

static const char in_bash[] =
    "# Completion of bench for bash, made by: bench completion bash\n"
    "_bench() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} found\n"
    "    COMPREPLY=()\n"
    "    if [[ $cur == @* ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -P @ -f -- \"${cur#@}\")\n"
    "    elif ! found=$(\"${COMP_WORDS[0]}\" __complete \"${COMP_WORDS[@]:1:COMP_CWORD}\"); then\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"${cur#[=:]}\")\n"
    "    elif [[ $found ]]; then\n"
    "        mapfile -t COMPREPLY <<<\"$found\"\n"
    "        COMPREPLY=(\"${COMPREPLY[@]%%$'\\t'*}\")\n"
    "    fi\n"
    "}\n"
    "complete -o filenames -F _bench bench\n";

static const char in_zsh[] = "#compdef bench\n"
                             "# Completion of bench for zsh, made by: bench completion zsh\n"
                             "_bench() {\n"
                             "    local found line\n"
                             "    local -a offers\n"
                             "    found=$($words[1] __complete \"${(@)words[2,CURRENT]}\" "
                             "2>/dev/null) || { _files; return }\n"
                             "    for line in ${(f)found}; do\n"
                             "        offers+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
                             "    done\n"
                             "    _describe bench offers\n"
                             "}\n"
                             "\n"
                             "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
                             "    _bench \"$@\"\n"
                             "else\n"
                             "    compdef _bench bench\n"
                             "fi\n";

static const char in_fish[] =
    "# Completion of bench for fish, made by: bench completion fish\n"
    "function __bench_complete\n"
    "    set -l words (commandline -opc) (commandline -ct | string collect --allow-empty)\n"
    "    $words[1] __complete $words[2..] 2>/dev/null\n"
    "    or __fish_complete_path (commandline -ct)\n"
    "end\n"
    "complete -c bench -f -a '(__bench_complete)'\n";

enum status cmd_completion(struct options *opt, int *code, struct err *e)
{
    static const char *const scripts[] = {in_bash, in_zsh, in_fish};
    const char *const shell = opt->words.n > 0 ? opt->words.v[0] : "";

    if (!*shell)
        return fail(e, E_USAGE, "completion needs a shell  -> write bash, zsh or fish");
    const int i = word_index(shell, completion_words);
    if (i < 0)
        return unknown_word(e, "shell", shell, completion_words, NULL);
    fputs(scripts[i], stdout);
    return OK;
}
