/* SPDX-License-Identifier: MIT
 *
 * Perplexity rows for people. */
#include "perplexity.h"

#include "harness/learn/source/counting.h"
#include "harness/learn/source/pairs.h"
#include "harness/measure/console_rows.h"

/* The screen's columns, which Markdown has too. Bits per unit come first; where a unit is not a
 * byte, those of a byte stand beside them, which alone compare models with different tokens. The
 * floor is that of the text's true source, where it is known; answers, and their own, stand beside
 * it where the source has some, and of targets how many are the most likely tokens. */
enum { MOST = 16 + MODEL_CHOICE_COUNT, KEPT = 3, CELL = 64 };

struct screen {
    bool ok; /* else numbers are empty */
    int n;
    struct text_table_column column[MOST];
    const char *cell[MOST];
    char text[MOST][CELL]; /* of cells that have it */
    int width[MOST];
};

/* The next column: its name and text, at least so wide. */
static void put_cell(struct screen *s, const char *name, const char *text, int least)
{
    CHECK(s->n < MOST);
    s->width[s->n] = (s->n > 0) + max_int(max_int(least, (int)strlen(name)), (int)strlen(text));
    s->column[s->n] = (struct text_table_column){.name = name, .number = true};
    s->cell[s->n++] = text;
}

static void put_number(struct screen *s, const char *name, const char *format, double x, int least)
{
    CHECK(s->n < MOST);
    if (s->ok)
        snprintf(s->text[s->n], CELL, isfinite(x) ? format : "-", x);
    put_cell(s, name, s->text[s->n], least);
}

/* The last ones, until the others fit on the terminal. */
static void drop_columns(struct screen *s, int room)
{
    int width = 0;

    for (int k = 0; k < s->n; k++)
        width += s->width[k];
    while (s->n > KEPT && width > room)
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
            put_cell(s, model_choices[i].name, row_field(t, at, row, s->text[s->n]), widest);
        }
}

static void put_interval(struct screen *s, double low, double high)
{
    CHECK(s->n < MOST);
    if (s->ok)
        snprintf(s->text[s->n], CELL, "[%.1f %.1f]", 100 * low, 100 * high);
    put_cell(s, "95 % CI", s->text[s->n], 12);
}

/* Shares of questions; those that are published most have their intervals beside them. */
static void put_shares(struct screen *s, const struct perplexity_row *row)
{
    put_number(s, "acc %", "%.1f", 100 * row->accuracy, 5);
    put_interval(s, row->accuracy_ci95_low, row->accuracy_ci95_high);
    put_number(s, "norm %", "%.1f", 100 * row->acc_norm, 5);
    put_interval(s, row->acc_norm_ci95_low, row->acc_norm_ci95_high);
    put_number(s, "byte %", "%.1f", 100 * row->acc_bytes, 5);
    put_number(s, "token %", "%.1f", 100 * row->acc_tokens, 5);
    put_number(s, "exact %", "%.1f", 100 * row->exact_match, 5);
    put_number(s, "questions", "%.0f", (double)row->segments, 6);
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
    const bool typed =
        opt && (opt->chosen[CHOICE_dtype].n > 0 || opt->chosen[CHOICE_kv_dtype].n > 0);
    const struct variant *const v = variant_find(row->variant);
    const bool ok = strcmp(row->status, "ok") == 0, pasted = format_is_pasted(format);
    const bool of_tokens = !opt || opt->unit == UNIT_TOKEN;
    const double units = (double)(of_tokens                ? row->tokens_scored
                                  : opt->unit == UNIT_WORD ? row->words
                                                           : row->bytes);
    const double per_s = of_tokens ? row->tokens_per_s : units / row->eval_ns * 1e9;
    const struct unit_text scored = units_count(units), rate = units_rate(per_s);
    struct screen s = {.ok = ok};
    char seq[16], mem[MEM_TEXT], bits[48], ppl[48], speed[48], reason[2 * LINE_SIZE],
        interval[CELL];

    snprintf(seq, sizeof(seq), "%d", (int)row->seq_tokens);
    mem_text(mem, row->mem_tokens);
    snprintf(bits, sizeof(bits), "bits/%.20s", row->unit);
    snprintf(ppl, sizeof(ppl), "ppl/%.20s", row->unit);
    snprintf(speed, sizeof(speed), "%.20ss/s", row->unit);
    snprintf(interval, sizeof(interval), isfinite(row->ppl_ci95_low) ? "[%.4f %.4f]" : "-",
             log2(row->ppl_ci95_low), log2(row->ppl_ci95_high));
    put_cell(&s, "seq", seq, 5);
    put_cell(&s, "mem", mem, 6);
    put_choices(&s, row, opt);
    if (opt ? opt->choices != NULL : isfinite(row->acc_norm))
        put_shares(&s, row);
    put_number(&s, bits, "%.4f", row->bits_per_unit, 9);
    put_cell(&s, "95 % interval", ok ? interval : row->status_detail, 17);
    if (shows_bytes(row, opt))
        put_number(&s, "bits/byte", "%.4f", row->bits_per_byte, 9);
    if (isfinite(row->ppl_floor) || synthetic_named(row->corpus))
        put_number(&s, "floor", "%.4f", log2(row->ppl_floor), 6);
    if (synthetic_asks(row->corpus)) {
        put_number(&s, "answers", "%.4f", row->answer_nll_nats / log(2), 7);
        put_number(&s, "floor", "%.4f", row->answer_floor_nats / log(2), 6);
    }
    if (strcmp(row->unit, PAIRS_UNIT) == 0)
        put_number(&s, "right %", "%.2f", 100 * row->accuracy, 7);
    put_number(&s, ppl, "%.4f", row->ppl, 8);
    if (typed) {
        put_number(&s, "vs f32 %", "%+.4f", row->ppl_delta_pct, 8);
        put_number(&s, "KL nats", "%.2g", row->kl_nats, 8);
        put_number(&s, "same %", "%.2f", row->same_top_pct, 6);
    }
    put_cell(&s, "scored", ok ? scored.s : "", 8);
    put_cell(&s, speed, ok ? rate.s : "", 8);
    if (v && (v->exit || v->halt))
        put_number(&s, "layers", "%.2f", row->layers_run, 6);
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
        const int at = fprintf(f, "%*s%*s  ", s.width[0], seq, s.width[1], mem);
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
