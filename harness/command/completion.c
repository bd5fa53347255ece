/* SPDX-License-Identifier: MIT
 *
 * bench completion: scripts for bash, zsh and fish, with the words of this build. */
#include "commands.h"
#include "harness/table/record.h"
#include "harness/util/suggest.h"
#include "help.h"

#include <string.h>

static bool has_values(const struct option_spec *s) { return option_value_at(s, 0) != NULL; }
static bool is_list(const struct option_spec *s)
{
    return s->kind == KIND_NAMES || s->kind == KIND_CHOICE;
}

static void print_values(FILE *f, const struct option_spec *s)
{
    const char *word;

    for (int i = 0; (word = option_value_at(s, i)); i++)
        fprintf(f, "%s%s", i ? " " : "", word);
}

static void print_commands(FILE *f, const char *between)
{
    for (int i = 0, n = 0; i < COMMAND_COUNT; i++)
        if (command_specs[i].doc)
            fprintf(f, "%s%s", n++ ? between : "", command_specs[i].name);
}

/* The first words that a command takes, NULL if any. */
static bool print_words(FILE *f, int command)
{
    const char *const *const words = command_specs[command].choices;

    if (command == CMD_HELP) {
        print_commands(f, " ");
        fputs(" man", f);
        return true;
    }
    for (int i = 0; words && words[i]; i++)
        fprintf(f, "%s%s", i ? " " : "", words[i]);
    return words != NULL;
}

/* Text inside single quotes of a shell; `also` are characters that take a backslash. */
static void print_quoted(FILE *f, const char *text, const char *also)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\'", f);
        else if (strchr(also, *text))
            fputc('\\', f);
        fputc(*text, f);
    }
}

/* The case ids of the latest run, by the names of columns' place; no quotes, for any shell. */
static bool takes_case(int command) { return command == CMD_EXPLAIN || command == CMD_RERUN; }
static void print_case_ids(FILE *f)
{
    fprintf(f,
            "cut -sd, -f%d results/latest/latency.csv results/latest/perplexity.csv 2>/dev/null | "
            "grep -v case_id | sort -u",
            find_column(&tables[TABLE_LATENCY], "case_id") + 1);
}

/* Do its values stand behind "NAME:" of a filter? */
static bool is_filtered(const struct option_spec *s)
{
    char column[64];

    snprintf(column, sizeof(column), "%s", s->name);
    for (char *c = column; *c; c++)
        *c = *c == '-' ? '_' : *c;
    return has_values(s) && find_column(&tables[TABLE_LATENCY], column) >= 0;
}

/* ---- bash ---------------------------------------------------------------------------------- */

static void print_option_names(FILE *f, const struct option_spec *s)
{
    fprintf(f, "--%s", s->name);
    if (s->key)
        fprintf(f, "|-%c", s->key);
}

static void bash_values(FILE *f)
{
    fputs("    case $prev in\n", f);
    for (int i = 0; i < option_count; i++) {
        const struct option_spec *const s = &option_specs[i];
        if (!s->metavar)
            continue;
        fputs("    ", f);
        print_option_names(f, s);
        if (has_values(s)) {
            fputs(") values='", f);
            print_values(f, s);
            fputs("' ;;\n", f);
        } else {
            fputs(s->kind == KIND_PATH || s->kind == KIND_RESUME ? ") files=1 ;;\n"
                                                                 : ") return ;;\n",
                  f);
        }
    }
    fputs("    esac\n", f);
}

static void bash_commands(FILE *f)
{
    fputs("    case $command in\n", f);
    for (int c = 0; c < COMMAND_COUNT; c++) {
        if (!command_specs[c].doc)
            continue;
        fprintf(f, "    %s) words='", command_specs[c].name);
        print_words(f, c);
        if (takes_case(c)) { /* then a run */
            fputs("'; [[ \" ${COMP_WORDS[*]:2:COMP_CWORD-2} \" =~ \" \"[0-9a-f]{16}\" \" ]] || "
                  "words=$(",
                  f);
            print_case_ids(f);
            fputs("); options='", f);
        } else {
            fputs("' options='", f);
        }
        for (int i = 0, n = 0; i < option_count; i++)
            if (option_is_for(&option_specs[i], c))
                fprintf(f, "%s--%s", n++ ? " " : "", option_specs[i].name);
        fputs("' ;;\n", f);
    }
    fputs("    esac\n", f);
}

static void print_bash(FILE *f)
{
    fputs("# Completion of bench for bash, made by: bench completion bash\n"
          "_bench() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local command=sweep values='' files='' words='' options='' head=''\n"
          "    if [[ $cur == --*=* ]]; then # unless = and : end words\n"
          "        head=${cur%%=*}= prev=${cur%%=*} cur=${cur#*=}\n"
          "    fi\n"
          "    if [[ $prev == --filter && $cur == ?*:* ]]; then\n"
          "        head+=${cur%%:*}: prev=${cur%%:*} prev=--${prev#!} cur=${cur#*:}\n"
          "    fi\n"
          "    [[ $cur != = ]] || cur='' # --seq=8 is three words\n"
          "    [[ $prev != = ]] || prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    if [[ $cur == : ]]; then # --filter variant:xl is four words\n"
          "        prev=--${prev#!} cur=''\n"
          "    elif [[ $prev == : ]]; then\n"
          "        prev=--${COMP_WORDS[COMP_CWORD - 2]#!}\n"
          "    fi\n"
          "    case ${COMP_WORDS[1]} in\n"
          "    ",
          f);
    print_commands(f, "|");
    fputs(") [ \"$COMP_CWORD\" -eq 1 ] || command=${COMP_WORDS[1]} ;;\n    esac\n", f);
    bash_values(f);
    bash_commands(f);
    fputs(
        "    if [ -n \"$values\" ]; then\n"
        "        [[ $cur != *,* ]] || head+=${cur%,*},\n"
        "        mapfile -t COMPREPLY < <(compgen -P \"$head\" -W \"$values\" -- \"${cur##*,}\")\n"
        "    elif [ -n \"$files\" ]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -P \"$head\" -f -- \"$cur\")\n"
        "    elif [[ $cur == -* ]]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
        "    elif [[ $cur == @* ]]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -P @ -f -- \"${cur#@}\")\n"
        "    elif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W '",
        f);
    print_commands(f, " ");
    fputs("' -- \"$cur\")\n"
          "    elif [ -n \"$words\" ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
          "    else\n"
          "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
          "    fi\n"
          "}\n"
          "complete -o filenames -F _bench bench\n",
          f);
}

/* ---- zsh ----------------------------------------------------------------------------------- */

static void zsh_option(FILE *f, const struct option_spec *s, int command)
{
    const char *const end = !s->metavar ? "" : s->kind == KIND_RESUME ? "=-" : "=";

    fputs(" \\\n            ", f);
    if (s->key)
        fprintf(f, "'(-%c --%s)'{-%c%s,--%s%s}", s->key, s->name, s->key, s->metavar ? "+" : "",
                s->name, end);
    else
        fprintf(f, "'--%s%s'", s->name, end);
    fputs("'[", f);
    print_quoted(f, option_doc(s, command), "[]:\\");
    fputc(']', f);
    if (s->metavar) {
        fprintf(f, "%s:", s->kind == KIND_RESUME ? ":" : "");
        print_quoted(f, s->metavar, "[]:\\");
        fputc(':', f);
        if (has_values(s)) {
            fputs(is_list(s) ? "_values -s , value " : "(", f);
            print_values(f, s);
            fputs(is_list(s) ? "" : ")", f);
        } else if (s->kind == KIND_PATH || s->kind == KIND_RESUME) {
            fputs("_files", f);
        } else if (s->kind == KIND_FILTER) {
            fputs("_bench_filter", f);
        }
    }
    fputc('\'', f);
}

/* Values behind "NAME:". */
static void zsh_filter(FILE *f)
{
    fputs("_bench_filter() {\n    compset -P '*:' || return\n    case $IPREFIX in\n", f);
    for (int i = 0; i < option_count; i++)
        if (is_filtered(&option_specs[i])) {
            fprintf(f, "    *%s:) compadd - ", option_specs[i].name);
            print_values(f, &option_specs[i]);
            fputs(" ;;\n", f);
        }
    fputs("    esac\n}\n", f);
}

static void zsh_command(FILE *f, int c)
{
    fprintf(f, "    %s)\n        _arguments -s", command_specs[c].name);
    for (int i = 0; i < option_count; i++)
        if (option_is_for(&option_specs[i], c))
            zsh_option(f, &option_specs[i], c);
    if (takes_case(c)) {
        fputs(" \\\n            '1:case:{compadd - $(", f);
        print_case_ids(f);
        fputs(")}'", f);
    }
    fputs(" \\\n            '*:word:", f);
    fputs(command_specs[c].choices || c == CMD_HELP ? "(" : "_files", f);
    fputs(print_words(f, c) ? ")'\n        ;;\n" : "'\n        ;;\n", f);
}

static void print_zsh(FILE *f)
{
    fputs("#compdef bench\n"
          "# Completion of bench for zsh, made by: bench completion zsh\n",
          f);
    zsh_filter(f);
    fputs("_bench() {\n"
          "    local command=sweep\n"
          "    local -a commands\n"
          "    commands=(\n",
          f);
    for (int c = 0; c < COMMAND_COUNT; c++)
        if (command_specs[c].doc) {
            fprintf(f, "        '%s:", command_specs[c].name);
            print_quoted(f, command_specs[c].doc, ":\\");
            fputs("'\n", f);
        }
    fputs("    )\n"
          "    if (( CURRENT == 2 )) && [[ $words[2] != -* && $words[2] != @* ]]; then\n"
          "        _describe command commands\n"
          "        return\n"
          "    fi\n"
          "    if [[ -n ${commands[(r)$words[2]:*]} ]]; then\n"
          "        command=$words[2]\n"
          "        shift words\n"
          "        (( CURRENT-- ))\n"
          "    fi\n"
          "    case $command in\n",
          f);
    for (int c = 0; c < COMMAND_COUNT; c++)
        if (command_specs[c].doc)
            zsh_command(f, c);
    fputs("    esac\n}\n\nif [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n    _bench \"$@\"\n"
          "else\n    compdef _bench bench\nfi\n",
          f);
}

/* ---- fish ---------------------------------------------------------------------------------- */

/* For the commands that it means `doc` to. */
static void fish_line(FILE *f, const struct option_spec *s, const char *doc)
{
    int owners = 0, all = 0;

    for (int c = 0; c < COMMAND_COUNT; c++) {
        all += command_specs[c].doc != NULL;
        owners += command_specs[c].doc && option_is_for(s, c) && option_doc(s, c) == doc;
    }
    if (owners == 0)
        return;
    fputs("complete -c bench", f);
    if (owners < all) {
        fputs(" -n 'contains -- (__bench_command)", f);
        for (int c = 0; c < COMMAND_COUNT; c++)
            if (command_specs[c].doc && option_is_for(s, c) && option_doc(s, c) == doc)
                fprintf(f, " %s", command_specs[c].name);
        fputc('\'', f);
    }
    if (s->key)
        fprintf(f, " -s %c", s->key);
    fprintf(f, " -l %s", s->name);
    if (s->metavar && s->kind != KIND_RESUME)
        fputs(s->kind == KIND_PATH ? " -r -F" : " -x", f);
    if (has_values(s)) {
        fputs(is_list(s) ? " -a '(__fish_append , " : " -a '", f);
        print_values(f, s);
        fputs(is_list(s) ? ")'" : "'", f);
    }
    if (s->kind == KIND_FILTER)
        fputs(" -a '(__bench_filter)'", f);
    fputs(" -d '", f);
    for (const char *c = doc; *c; c++)
        fprintf(f, "%s%c", *c == '\'' || *c == '\\' ? "\\" : "", *c);
    fputs("'\n", f);
}

static void fish_option(FILE *f, const struct option_spec *s)
{
    fish_line(f, s, s->doc);
    for (int i = 0; i < OWN_DOCS && s->docs[i].doc; i++)
        fish_line(f, s, s->docs[i].doc);
}

/* Values behind "NAME:". */
static void fish_filter(FILE *f)
{
    fputs("function __bench_filter\n"
          "    set -l word (string replace -r '^--filter=' '' -- (commandline -ct))\n"
          "    set -l key (string replace -r ':.*' '' -- $word)\n"
          "    string match -q '*:*' -- $word; or return\n"
          "    switch (string replace -r '^!' '' -- $key)\n",
          f);
    for (int i = 0; i < option_count; i++)
        if (is_filtered(&option_specs[i])) {
            fprintf(f, "        case %s\n            printf '%%s\\n' $key:", option_specs[i].name);
            const char *word;
            fputc('{', f);
            for (int k = 0; (word = option_value_at(&option_specs[i], k)); k++)
                fprintf(f, "%s%s", k ? "," : "", word);
            fputs("}\n", f);
        }
    fputs("    end\nend\n", f);
}

static void print_fish(FILE *f)
{
    fputs("# Completion of bench for fish, made by: bench completion fish\n"
          "function __bench_command\n"
          "    set -l words (commandline -opc)\n"
          "    if set -q words[2]; and contains -- $words[2] ",
          f);
    print_commands(f, " ");
    fputs("\n        echo $words[2]\n"
          "    else\n"
          "        echo sweep\n"
          "    end\n"
          "end\n",
          f);
    fish_filter(f);
    for (int c = 0; c < COMMAND_COUNT; c++)
        if (command_specs[c].doc) {
            fprintf(f, "complete -c bench -n __fish_is_first_arg -a %s -d '",
                    command_specs[c].name);
            print_quoted(f, command_specs[c].doc, "\\");
            fputs("'\n", f);
        }
    for (int c = 0; c < COMMAND_COUNT; c++)
        if (command_specs[c].doc && (command_specs[c].choices || c == CMD_HELP)) {
            fprintf(f, "complete -c bench -n '__fish_seen_subcommand_from %s' -f -a '",
                    command_specs[c].name);
            print_words(f, c);
            fputs("'\n", f);
        }
    for (int c = 0; c < COMMAND_COUNT; c++)
        if (takes_case(c)) {
            fprintf(f, "complete -c bench -n '__fish_seen_subcommand_from %s' -a '(",
                    command_specs[c].name);
            print_case_ids(f);
            fputs(")'\n", f);
        }
    for (int i = 0; i < option_count; i++)
        fish_option(f, &option_specs[i]);
}

/* ---- the command --------------------------------------------------------------------------- */

int cmd_completion(struct options *opt)
{
    const char *const shell = opt->words.n > 0 ? opt->words.v[0] : "";
    struct err e;

    if (!*shell)
        return report_error(
            fail(&e, E_USAGE, "completion needs a shell  -> write bash, zsh or fish"), &e);
    switch (word_index(shell, completion_words)) {
    case 0:
        print_bash(stdout);
        break;
    case 1:
        print_zsh(stdout);
        break;
    case 2:
        print_fish(stdout);
        break;
    default:
        return report_error(unknown_word(&e, "shell", shell, completion_words, NULL), &e);
    }
    return EXIT_FINE;
}
