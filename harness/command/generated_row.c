/* SPDX-License-Identifier: MIT
 *
 * See generated_row.h. */
#include "generated_row.h"

#include "harness/tokens/unicode.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROMPT,
    TEXT,
    ENDED,
    MODEL,
    CHOICES,
    SEED,
    PAST,
    PROMPT_TOKENS,
    NEW_TOKENS,
    PROMPT_SPEED,
    SPEED,
    PROMPT_IDS,
    IDS,
    COLUMN_COUNT
};
/* Lists of ids are numbers: JSON has them without quotes. */
static const struct text_table_column columns[COLUMN_COUNT] = {
    [PROMPT] = {.name = "prompt"},
    [TEXT] = {.name = "text"},
    [ENDED] = {.name = "ended"},
    [MODEL] = {.name = "model"},
    [CHOICES] = {.name = "choices"},
    [SEED] = {.name = "seed", .number = true},
    [PAST] = {.name = "past"},
    [PROMPT_TOKENS] = {.name = "prompt_tokens", .number = true},
    [NEW_TOKENS] = {.name = "new_tokens", .number = true},
    [PROMPT_SPEED] = {.name = "prompt_tokens_per_s", .number = true},
    [SPEED] = {.name = "new_tokens_per_s", .number = true},
    [PROMPT_IDS] = {.name = "prompt_ids", .number = true},
    [IDS] = {.name = "new_ids", .number = true},
};

static const char *const ended_name[] = {
    [ENDED_LENGTH] = "length", [ENDED_TOKEN] = "end_token", [ENDED_SIGNAL] = "signal"};

bool generated_is_row(const struct options *o)
{
    return o->format != FORMAT_AUTO && o->format != FORMAT_TABLE;
}

enum status generated_check(const struct options *o, struct err *e)
{
    struct text_table s = {.column = columns, .columns = COLUMN_COUNT};

    if (o->columns.n > 0 && !generated_is_row(o))
        return fail(e, E_USAGE, "--columns chooses columns of a row  -> add --format json");
    return text_table_select(&s, &o->columns, e);
}

static double speed(int tokens, double ns) { return tokens > 0 && ns > 0 ? tokens / ns * 1e9 : 0; }

double generated_prompt_speed(const struct generated *made)
{
    return speed(made->prompt, made->prompt_ns);
}

/* The first is chosen from the logits of the prompt. */
double generated_speed(const struct generated *made)
{
    return speed(made->chosen - 1, made->decode_ns);
}

static enum status clean(struct bytes *out, const struct bytes *text, struct err *e)
{
    char *const copy = malloc(text->n + 1);

    NEED(copy);
    for (size_t i = 0; i < text->n; i++)
        copy[i] = text->data[i] ? text->data[i] : '\xff';
    const enum status st = utf8_replace(out, copy, text->n, e);
    free(copy);
    return st;
}

static enum status list(struct bytes *out, const int32_t *ids, int n, struct err *e)
{
    FILE *const f = bytes_open(out, e);

    if (!f)
        return E_NOMEM;
    putc('[', f);
    for (int i = 0; i < n; i++)
        fprintf(f, "%s%" PRId32, i ? "," : "", ids[i]);
    putc(']', f);
    return bytes_close(f, out, e);
}

/* What the model does by options, in place of what its checkpoint says. */
static enum status choices_text(struct bytes *out, const struct options *o, struct err *e)
{
    FILE *const f = bytes_open(out, e);

    if (!f)
        return E_NOMEM;
    for (int i = 0, n = 0; i < MODEL_CHOICE_COUNT; i++)
        if (o->chosen[i].n > 0)
            fprintf(f, "%s--%s %s", n++ ? " " : "", model_choices[i].option, o->chosen[i].v[0]);
    return bytes_close(f, out, e);
}

static enum status print_row(const struct options *o, const char *const *text, struct err *e)
{
    struct text_table s = {.column = columns, .columns = COLUMN_COUNT};

    TRY(text_table_select(&s, &o->columns, e));
    text_table_add(&s, text);
    text_table_print(stdout, &s, (enum format)o->format);
    text_table_free(&s);
    return OK;
}

/* The cells that are as long as the texts. */
enum { BEFORE, BEHIND, CHOSEN, GIVEN_IDS, NEW_IDS, LONG_CELLS };

static enum status print_made(const struct options *o, const struct bytes *prompt,
                              const struct generated *made, struct bytes cell[LONG_CELLS],
                              struct err *e)
{
    char seed[24] = "", speeds[2][32] = {"", ""}, counts[2][16];

    TRY(clean(&cell[BEFORE], prompt, e));
    TRY(clean(&cell[BEHIND], &made->text, e));
    TRY(choices_text(&cell[CHOSEN], o, e));
    TRY(list(&cell[GIVEN_IDS], made->ids, made->prompt, e));
    TRY(list(&cell[NEW_IDS], made->ids + made->prompt, made->tokens, e));
    if (o->temperature > 0)
        snprintf(seed, sizeof(seed), "%" PRIu64, (uint64_t)o->seed);
    snprintf(counts[0], sizeof(counts[0]), "%d", made->prompt);
    snprintf(counts[1], sizeof(counts[1]), "%d", made->tokens);
    if (generated_prompt_speed(made) > 0)
        snprintf(speeds[0], sizeof(speeds[0]), "%.6g", generated_prompt_speed(made));
    if (generated_speed(made) > 0)
        snprintf(speeds[1], sizeof(speeds[1]), "%.6g", generated_speed(made));
    return print_row(o,
                     (const char *const[COLUMN_COUNT]){[PROMPT] = cell[BEFORE].data,
                                                       [TEXT] = cell[BEHIND].data,
                                                       [ENDED] = ended_name[made->ended],
                                                       [MODEL] = o->ckpt,
                                                       [CHOICES] = cell[CHOSEN].data,
                                                       [SEED] = seed,
                                                       [PAST] = made->how,
                                                       [PROMPT_TOKENS] = counts[0],
                                                       [NEW_TOKENS] = counts[1],
                                                       [PROMPT_SPEED] = speeds[0],
                                                       [SPEED] = speeds[1],
                                                       [PROMPT_IDS] = cell[GIVEN_IDS].data,
                                                       [IDS] = cell[NEW_IDS].data},
                     e);
}

enum status generated_print(const struct options *o, const struct bytes *prompt,
                            const struct generated *made, struct err *e)
{
    struct bytes cell[LONG_CELLS] = {0};
    const enum status st = print_made(o, prompt, made, cell, e);

    for (int i = 0; i < LONG_CELLS; i++)
        free(cell[i].data);
    return st;
}
