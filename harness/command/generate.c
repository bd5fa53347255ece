/* SPDX-License-Identifier: MIT
 *
 * bench generate: a prompt, continued by a checkpoint. */
#include "harness/learn/generate.h"
#include "commands.h"
#include "generated_row.h"
#include "harness/learn/play_score.h"
#include "harness/util/signals.h"
#include "harness/util/text.h"

#include "variants/base/printable.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What no choice is made by is said, not ignored. */
static enum status check(const struct options *o, struct err *e)
{
    static const char *const of_chance[] = {"top-k", "top-p", "seed"};

    if (!o->ckpt || !o->prompt == !o->prompt_file)
        return fail(e, E_USAGE,
                    "generate needs a model and one prompt  -> bench generate --ckpt FILE --prompt "
                    "TEXT, or --prompt-file FILE");
    for (size_t i = 0; i < ARRAY_LEN(of_chance); i++)
        if (o->temperature == 0 && options_written(o, of_chance[i]))
            return fail(e, E_USAGE,
                        "--%s does nothing without chance  -> add --temperature 1, or leave it out",
                        of_chance[i]);
    return generated_check(o, e);
}

static enum status load(struct bytes *prompt, const struct options *o, struct err *e)
{
    if (o->prompt_file)
        return file_read(prompt, o->prompt_file, e);
    prompt->data = strdup(o->prompt);
    NEED(prompt->data);
    prompt->n = strlen(prompt->data);
    return OK;
}

/* As it is; on a terminal, which it must not take hold of, lines of what may stand there. */
static void print(const struct bytes *text)
{
    const bool guarded = isatty(STDOUT_FILENO);

    for (size_t i = 0, n; i < text->n; i += n) {
        const char *const at = text->data + i;
        char escaped[PRINTABLE_ESCAPE];
        n = guarded && *at != '\n' && *at != '\t' ? printable_length(at) : 1;
        if (n > 0) {
            fwrite(at, 1, n, stdout);
        } else {
            printable_escape(escaped, *at);
            fputs(escaped, stdout);
            n = 1;
        }
    }
}

/* ---- of a task ---------------------------------------------------------------------------- */

static enum status check_episode(const struct options *o, struct err *e)
{
    static const char *const of_texts[] = {"prompt",     "prompt-file", "tokenizer", "new-tokens",
                                           "ignore-eos", "temperature", "top-k",     "top-p"};

    for (size_t i = 0; i < ARRAY_LEN(of_texts); i++)
        if (options_written(o, of_texts[i]))
            return fail(e, E_USAGE, "--%s does not apply to an episode of a task  -> leave it out",
                        of_texts[i]);
    return OK;
}

/* A row for each step. */
static enum status print_steps(const struct options *o, const struct played *p, struct err *e)
{
    static const struct text_table_column columns[] = {{.name = "step", .number = true},
                                                       {.name = "sees", .number = true},
                                                       {.name = "does", .number = true},
                                                       {.name = "reward", .number = true}};
    struct text_table s = {.column = columns, .columns = ARRAY_LEN(columns)};
    enum status st = text_table_select(&s, &o->columns, e);

    for (int i = 0; i < p->length && st == OK; i++) {
        char step[16], sees[16], does[16], reward[32];
        const char *const text[] = {step, sees, does, reward};
        snprintf(step, sizeof(step), "%d", i);
        snprintf(sees, sizeof(sees), "%d", (int)p->seen[i]);
        snprintf(does, sizeof(does), "%d", (int)p->done[i]);
        snprintf(reward, sizeof(reward), "%g", (double)p->rewards[i]);
        text_table_add(&s, text);
    }
    if (st == OK) {
        text_table_print(stdout, &s, generated_is_row(o) ? (enum format)o->format : FORMAT_TABLE);
        st = file_flush(stdout, "standard output", e);
    }
    text_table_free(&s);
    return st;
}

static int generate_episode(const struct options *o)
{
    struct played p = {0};
    struct err e;
    enum status st = check_episode(o, &e);

    if (st == OK)
        st = play_episode(&p, o, &e);
    if (st == OK)
        st = print_steps(o, &p, &e);
    played_free(&p);
    return st == OK ? EXIT_FINE : report_error(st, &e);
}

static enum status generate(const struct options *o, struct bytes *prompt, struct generated *made,
                            struct err *e)
{
    TRY(check(o, e));
    TRY(load(prompt, o, e));
    TRY(generate_run(made, o, prompt, e));
    if (generated_is_row(o)) {
        TRY(generated_print(o, prompt, made, e));
    } else {
        print(prompt);
        print(&made->text);
        putchar('\n');
    }
    return file_flush(stdout, "standard output", e);
}

int cmd_generate(struct options *opt)
{
    char task[KEYED_TEXT];

    play_task_of(opt->ckpt, task);
    if (*task)
        return generate_episode(opt);

    struct generated made = {0};
    struct bytes prompt = {0};
    struct err e;
    const enum status st = generate(opt, &prompt, &made, &e);

    if (st == OK && !opt->quiet)
        text_line(stderr,
                  "bench: prompt of %d tokens %.0f tok/s, %d new tokens %.0f tok/s%s, past: %s",
                  made.prompt, generated_prompt_speed(&made), made.tokens, generated_speed(&made),
                  made.ended == ENDED_TOKEN ? ", then the end of the text" : "", made.how);
    const bool stopped = st == OK && made.ended == ENDED_SIGNAL;
    free(prompt.data);
    free(made.text.data);
    free(made.ids);
    if (stopped)
        return signals_exit_code();
    return st == OK ? EXIT_FINE : report_error(st, &e);
}
