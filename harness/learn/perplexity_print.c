/* SPDX-License-Identifier: MIT
 *
 * Perplexity rows for people. */
#include "perplexity.h"

#include "counting.h"
#include "harness/measure/console_rows.h"
#include "harness/util/terminal.h"
#include "harness/util/text.h"
#include "harness/util/units.h"
#include "pairs.h"
#include "score.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The screen's columns, which Markdown has too. Bits per unit come first; where a unit is not a
 * byte, those of a byte stand beside them, which alone compare models with different tokens. The
 * floor is that of the text's true source, where it is known; answers, and their own, stand beside
 * it where the source has some, and of targets how many are the most likely tokens. */
enum {
    SEQ,
    MEM,
    BITS,
    INTERVAL,
    BYTES,
    FLOOR,
    ANSWERS,
    LEAST,
    RIGHT,
    PPL,
    DELTA,
    KL,
    SAME,
    SCORED,
    SPEED,
    LAYERS,
    SCREEN_COLUMNS
};

struct screen {
    struct text_table_column column[SCREEN_COLUMNS + MODEL_CHOICE_COUNT];
    const char *cell[SCREEN_COLUMNS + MODEL_CHOICE_COUNT];
    char number[MODEL_CHOICE_COUNT][NUMBER_SIZE];
    int width[SCREEN_COLUMNS + MODEL_CHOICE_COUNT], n;
};

/* The next column: its name and text, at least so wide. */
static void put_cell(struct screen *s, const char *name, const char *text, int least)
{
    s->width[s->n] = (s->n > 0) + max_int(max_int(least, (int)strlen(name)), (int)strlen(text));
    s->column[s->n] = (struct text_table_column){.name = name, .number = true};
    s->cell[s->n++] = text;
}

/* The last ones, until the others fit on the terminal. */
static void drop_columns(struct screen *s, int room)
{
    int width = 0;

    for (int k = 0; k < s->n; k++)
        width += s->width[k];
    while (s->n > BITS + 1 && width > room)
        width -= s->width[--s->n];
}

/* Choices of the model that options have given: these tell the rows apart. */
static void put_choices(struct screen *s, const struct perplexity_row *row,
                        const struct options *opt)
{
    const struct table *const t = &tables[TABLE_PERPLEXITY];

    for (int i = 0; opt && i < MODEL_CHOICE_COUNT; i++)
        if (model_choices[i].at_eval && opt->chosen[i].n > 0) {
            const int at = find_column(t, model_choices[i].name);
            int widest = 0;
            for (int k = 0; k < opt->chosen[i].n; k++)
                widest = max_int(widest, (int)strlen(opt->chosen[i].v[k]));
            put_cell(s, model_choices[i].name, row_field(t, at, row, s->number[i]), widest);
        }
}

/* Are the bytes of the text known, and no unit? It does not depend on whether a row is ok. */
static bool shows_bytes(const struct perplexity_row *row, const struct options *opt)
{
    if (strcmp(row->unit, "token") != 0 && strcmp(row->unit, "word") != 0)
        return false;
    if (!opt)
        return isfinite(row->bits_per_byte);
    return !counting_lacks_text(opt) && counting_batch(opt) == 1;
}

void perplexity_print(FILE *f, const struct perplexity_row *row, const struct options *opt,
                      bool first, enum format format)
{
    static const int least[SCREEN_COLUMNS] = {5, 6, 9, 17, 9, 6, 7, 6, 7, 8, 8, 8, 6, 8, 8, 6};
    const bool typed =
        opt && (opt->chosen[CHOICE_dtype].n > 0 || opt->chosen[CHOICE_kv_dtype].n > 0);
    const struct variant *const v = variant_find(row->variant);
    const bool ok = strcmp(row->status, "ok") == 0, pasted = format_is_pasted(format);
    const bool of_tokens = !opt || opt->unit == UNIT_TOKEN;
    const double units = (double)(of_tokens                ? row->tokens_scored
                                  : opt->unit == UNIT_WORD ? row->words
                                                           : row->bytes);
    struct screen s = {.n = 0};
    char bits[48], ppl[48], speed[48], reason[2 * LINE_SIZE], text[SCREEN_COLUMNS][64] = {{0}};
    const char *name[SCREEN_COLUMNS] = {
        "seq",     "mem", bits,       "95 % interval", "bits/byte", "floor",  "answers", "floor",
        "right %", ppl,   "vs f32 %", "KL nats",       "same %",    "scored", speed,     "layers"};

    snprintf(bits, sizeof(bits), "bits/%.20s", row->unit);
    snprintf(ppl, sizeof(ppl), "ppl/%.20s", row->unit);
    snprintf(speed, sizeof(speed), "%.20ss/s", row->unit);
    snprintf(text[SEQ], 64, "%d", (int)row->seq_tokens);
    mem_text(text[MEM], row->mem_tokens);
    if (ok) {
        snprintf(text[BITS], 64, "%.4f", row->bits_per_unit);
        snprintf(text[INTERVAL], 64, isfinite(row->ppl_ci95_low) ? "[%.4f %.4f]" : "-",
                 log2(row->ppl_ci95_low), log2(row->ppl_ci95_high));
        snprintf(text[BYTES], 64, "%.4f", row->bits_per_byte);
        snprintf(text[FLOOR], 64, isfinite(row->ppl_floor) ? "%.4f" : "-", log2(row->ppl_floor));
        snprintf(text[ANSWERS], 64, isfinite(row->answer_nll_nats) ? "%.4f" : "-",
                 row->answer_nll_nats / log(2));
        snprintf(text[LEAST], 64, isfinite(row->answer_floor_nats) ? "%.4f" : "-",
                 row->answer_floor_nats / log(2));
        snprintf(text[RIGHT], 64, isfinite(row->accuracy) ? "%.2f" : "-", 100 * row->accuracy);
        snprintf(text[PPL], 64, "%.4f", row->ppl);
        snprintf(text[DELTA], 64, isfinite(row->ppl_delta_pct) ? "%+.4f" : "-", row->ppl_delta_pct);
        snprintf(text[KL], 64, isfinite(row->kl_nats) ? "%.2g" : "-", row->kl_nats);
        snprintf(text[SAME], 64, isfinite(row->same_top_pct) ? "%.2f" : "-", row->same_top_pct);
        snprintf(text[SCORED], 64, "%s", units_count(units).s);
        snprintf(text[SPEED], 64, "%s",
                 units_rate(of_tokens ? row->tokens_per_s : units / row->eval_ns * 1e9).s);
        snprintf(text[LAYERS], 64, "%.2f", row->layers_run);
    }
    for (int k = 0; k < SCREEN_COLUMNS; k++) {
        if (((k == ANSWERS || k == LEAST) && !synthetic_asks(row->corpus)) ||
            (k == RIGHT && strcmp(row->unit, PAIRS_UNIT) != 0) ||
            ((k == DELTA || k == KL || k == SAME) && !typed) ||
            (k == BYTES && !shows_bytes(row, opt)) ||
            (k == FLOOR && !isfinite(row->ppl_floor) && !synthetic_named(row->corpus)) ||
            (k == LAYERS && !(v && (v->exit || v->halt))))
            continue;
        if (k == BITS)
            put_choices(&s, row, opt);
        put_cell(&s, name[k], k == INTERVAL && !ok ? row->status_detail : text[k], least[k]);
    }
    if (!pasted)
        drop_columns(&s, terminal_width(fileno(f)));
    if (first) {
        text_above(f, format, format == FORMAT_MD ? "**%s  %s  %s**" : "%s  %s  %s", row->variant,
                   row->backend, row->checkpoint);
        for (int k = 0; k < s.n && !pasted; k++)
            fprintf(f, "%*s%s", s.width[k], s.column[k].name, k + 1 < s.n ? "" : "\n");
        if (pasted)
            text_row_print(f, format, s.column, NULL, s.n);
    }
    if (pasted)
        text_row_print(f, format, s.column, s.cell, s.n);
    else if (!ok) {
        const int at = fprintf(f, "%*s%*s  ", s.width[SEQ], text[SEQ], s.width[MEM], text[MEM]);
        snprintf(reason, sizeof(reason), "%s: %s", row->status, row->status_detail);
        text_fill(f, reason, at, at, terminal_width(fileno(f)));
    } else
        for (int k = 0; k < s.n; k++)
            fprintf(f, "%*s%s", s.width[k], s.cell[k], k + 1 < s.n ? "" : "\n");
}

void perplexity_print_row(struct console *c, const struct perplexity_row *row)
{
    const bool first = !c->started, chosen = c->opt->columns.n > 0;
    const enum format format = c->format;
    const struct table *t = &tables[TABLE_PERPLEXITY];
    const struct selection *columns = &c->columns;

    if ((format == FORMAT_TABLE || format_is_pasted(format)) && !chosen) {
        perplexity_print(stdout, row, c->opt, first, format);
    } else if (format == FORMAT_TABLE) {
        char line[LINE_SIZE];
        if (first) {
            chosen_line(line, t, columns, NULL);
            puts(line);
        }
        chosen_line(line, t, columns, row);
        puts(line);
    } else if (!console_at_end(format)) {
        if (first)
            row_print_names(stdout, format, t, columns);
        row_print(stdout, format, t, columns, row);
    }
    c->started = true;
    console_flush(c);
}
