/* SPDX-License-Identifier: MIT
 *
 * bench generate: a prompt, continued by a checkpoint. For programs, a generated text is a row: the
 * text, its tokens, why it ended, how fast it was. */
#include "harness/learn/score/generate.h"
#include "harness/command/commands.h"
#include "harness/learn/score/play_score.h"
#include "harness/tokens/unicode.h"

#include "variants/base/printable.h"

#include <inttypes.h>

/* ---- a row -------------------------------------------------------------------------------- */

/* Lists of ids are numbers: JSON has them without quotes. */
static const struct text_table_column columns[] = {
    {.name = "prompt"},
    {.name = "text"},
    {.name = "ended"},
    {.name = "model"},
    {.name = "choices"},
    {.name = "seed", .number = true},
    {.name = "past"},
    {.name = "prompt_tokens", .number = true},
    {.name = "new_tokens", .number = true},
    {.name = "prompt_tokens_per_s", .number = true},
    {.name = "new_tokens_per_s", .number = true},
    {.name = "prompt_ids", .number = true},
    {.name = "new_ids", .number = true},
};

static const char *const ended_name[] = {
    [ENDED_LENGTH] = "length", [ENDED_TOKEN] = "end_token", [ENDED_SIGNAL] = "signal"};

/* Does --format ask for rows, in place of a text to read? */
static bool generated_is_row(const struct options *o)
{
    return o->format != FORMAT_AUTO && o->format != FORMAT_TABLE;
}

/* E_USAGE for --columns without rows, and for one that they do not have. */
static enum status generated_check(const struct options *o, struct err *e)
{
    struct text_table s = {.column = columns, .columns = ARRAY_LEN(columns)};

    if (o->columns.n > 0 && !generated_is_row(o))
        return fail(e, E_USAGE, "--columns chooses columns of a row  -> add --format json");
    return text_table_select(&s, &o->columns, e);
}

/* Tokens per second; 0 where there are none. */
static double speed(int tokens, double ns) { return tokens > 0 && ns > 0 ? tokens / ns * 1e9 : 0; }

static double generated_prompt_speed(const struct generated *made)
{
    return speed(made->prompt, made->prompt_ns);
}

/* The first is chosen from the logits of the prompt. */
static double generated_speed(const struct generated *made)
{
    return speed(made->chosen - 1, made->decode_ns);
}

/* Bytes that are no UTF-8, and zeros, are U+FFFD; the ids have them all. */
static enum status add_text(struct text_table *t, const struct bytes *text, struct err *e)
{
    char *const copy = need_room(text->n + 1, 1);
    struct bytes clean;

    for (size_t i = 0; i < text->n; i++)
        copy[i] = text->data[i] ? text->data[i] : '\xff';
    const enum status st = utf8_replace(&clean, copy, text->n, e);
    free(copy);
    TRY(st);
    text_table_cell(t, "%s", clean.data);
    free(clean.data);
    return OK;
}

static void add_ids(struct text_table *t, const int32_t *ids, int n)
{
    struct bytes list;
    FILE *const f = bytes_begin(&list);

    putc('[', f);
    for (int i = 0; i < n; i++)
        fprintf(f, "%s%" PRId32, i ? "," : "", ids[i]);
    putc(']', f);
    text_table_cell(t, "%s", bytes_end(f, &list));
    free(list.data);
}

/* What the model does by options, in place of what its checkpoint says. */
static void add_choices(struct text_table *t, const struct options *o)
{
    struct bytes list;
    FILE *const f = bytes_begin(&list);

    for (int i = 0, n = 0; i < MODEL_CHOICE_COUNT; i++)
        if (o->chosen[i].n > 0)
            fprintf(f, "%s--%s %s", n++ ? " " : "", model_choices[i].option, o->chosen[i].v[0]);
    text_table_cell(t, "%s", bytes_end(f, &list));
    free(list.data);
}

static void add_speed(struct text_table *t, double speed)
{
    text_table_number(t, "%.6g", speed > 0 ? speed : NAN);
}

static enum status add_row(struct text_table *t, const struct options *o,
                           const struct bytes *prompt, const struct generated *made, struct err *e)
{
    TRY(add_text(t, prompt, e));
    TRY(add_text(t, &made->text, e));
    text_table_cell(t, "%s", ended_name[made->ended]);
    text_table_cell(t, "%s", o->ckpt);
    add_choices(t, o);
    if (o->temperature > 0)
        text_table_cell(t, "%" PRIu64, (uint64_t)o->seed);
    else
        text_table_cell(t, "%s", "");
    text_table_cell(t, "%s", made->how);
    text_table_cell(t, "%d", made->prompt);
    text_table_cell(t, "%d", made->tokens);
    add_speed(t, generated_prompt_speed(made));
    add_speed(t, generated_speed(made));
    add_ids(t, made->ids, made->prompt);
    add_ids(t, made->ids + made->prompt, made->tokens);
    return OK;
}

/* Print it as --format and --columns say. */
static enum status generated_print(const struct options *o, const struct bytes *prompt,
                                   const struct generated *made, struct err *e)
{
    struct text_table t = {.column = columns, .columns = ARRAY_LEN(columns)};

    TRY(text_table_select(&t, &o->columns, e));
    const enum status st = add_row(&t, o, prompt, made, e);
    if (st == OK)
        text_table_print(stdout, &t, (enum format)o->format);
    text_table_free(&t);
    return st;
}

/* ---- a text ------------------------------------------------------------------------------- */

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
    prompt->data = need_text("%s", o->prompt);
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
    static const char *const of_texts[] = {"prompt",     "prompt-file", "tokenizer",
                                           "new-tokens", "ignore-eos",  "temperature",
                                           "top-k",      "top-p",       "lora"};

    for (size_t i = 0; i < ARRAY_LEN(of_texts); i++)
        if (options_written(o, of_texts[i]))
            return fail(e, E_USAGE, "--%s does not apply to an episode of a task  -> leave it out",
                        of_texts[i]);
    return OK;
}

/* A row for each step. */
static enum status print_steps(const struct options *o, const struct played *p, struct err *e)
{
    static const struct text_table_column of_steps[] = {{.name = "step", .number = true},
                                                        {.name = "sees", .number = true},
                                                        {.name = "does", .number = true},
                                                        {.name = "reward", .number = true}};
    struct text_table s = {.column = of_steps, .columns = ARRAY_LEN(of_steps)};
    enum status st = text_table_select(&s, &o->columns, e);

    for (int i = 0; i < p->length && st == OK; i++) {
        text_table_cell(&s, "%d", i);
        text_table_cell(&s, "%d", (int)p->seen[i]);
        text_table_cell(&s, "%d", (int)p->done[i]);
        text_table_cell(&s, "%g", (double)p->rewards[i]);
    }
    if (st == OK) {
        text_table_print(stdout, &s, generated_is_row(o) ? (enum format)o->format : FORMAT_TABLE);
        st = file_flush(stdout, "standard output", e);
    }
    text_table_free(&s);
    return st;
}

static enum status generate_episode(const struct options *o, struct err *e)
{
    struct played p;

    TRY(check_episode(o, e));
    enum status st = play_episode(&p, o, e);
    if (st == OK)
        st = print_steps(o, &p, e);
    played_free(&p);
    return st;
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

enum status cmd_generate(struct options *opt, int *code, struct err *e)
{
    char task[KEYED_TEXT];

    play_task_of(opt->ckpt, task);
    if (*task)
        return generate_episode(opt, e);

    struct generated made = {0};
    struct bytes prompt = {0};
    const enum status st = generate(opt, &prompt, &made, e);

    if (st == OK && !opt->quiet)
        text_line(stderr,
                  "bench: prompt of %d tokens %.0f tok/s, %d new tokens %.0f tok/s%s, past: %s",
                  made.prompt, generated_prompt_speed(&made), made.tokens, generated_speed(&made),
                  made.ended == ENDED_TOKEN ? ", then the end of the text" : "", made.how);
    const bool stopped = st == OK && made.ended == ENDED_SIGNAL;
    free(prompt.data);
    free(made.text.data);
    free(made.ids);
    return stopped ? E_INTERRUPTED : st;
}
