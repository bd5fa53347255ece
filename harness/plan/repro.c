/* SPDX-License-Identifier: MIT
 *
 * The line of options that makes one case again. Its hash is the case's name in every run, so the
 * order is fixed and defaults are left out. */
#include "case.h"

#include "harness/cli/option_words.h"
#include "harness/util/fileio.h"

static bool is_always_said(int i)
{
    return i == CASE_variant || i == CASE_backend || i == CASE_workload || i == CASE_seq_tokens ||
           i == CASE_mem_tokens || i == CASE_mem_kind || i == THREADS_CHOICE_AT;
}

void repro_choice(FILE *f, int i, const char *text)
{
    const char *const option = chosen_at(i).option;

    if (i == CASE_BEFORE_MODEL + CHOICE_same_length) /* a flag */
        fprintf(f, " --%s", option);
    else {
        const bool quoted = i == CASE_BEFORE_MODEL + CHOICE_mask || strchr(text, ';');
        word_print_option(f, option, text, quoted ? '\'' : '\0');
    }
}

static void print_choice(FILE *f, int i, const struct bench_case *c, const struct bench_case *usual)
{
    char text[CHOICE_TEXT], own[CHOICE_TEXT];

    case_print(text, i, c);
    case_print(own, i, usual);
    if (!*text || (!is_always_said(i) && strcmp(text, own) == 0))
        return;
    repro_choice(f, i, text);
}

char *case_repro(const struct bench_case *c, const struct options *preset)
{
    char own[CHOICE_TEXT];
    struct bytes line;
    FILE *const f = bytes_begin(&line);
    char *const rest = options_repro(c->opt);
    struct bench_case usual;

    case_usual(&usual, c, preset);
    for (int i = 0; i < CHOICE_COLUMNS; i++) {
        if (i != SETTINGS_CHOICE) {
            print_choice(f, i, c, &usual);
            continue;
        }
        settings_print(own, &c->config, true, workload_scope(c->workload) == SCOPE_CORE);
        if (*own)
            word_print_option(f, "set", own, '\0');
    }
    fputs(rest, f);
    free(rest);
    bytes_end(f, &line);
    memmove(line.data, line.data + 1, line.n); /* the first blank */
    return line.data;
}
