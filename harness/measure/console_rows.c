/* SPDX-License-Identifier: MIT
 *
 * Rows of a sweep to paste, and as chosen columns. */
#include "console_rows.h"

enum { CELL = 64 }; /* bytes of a number */

/* ---- to paste ----------------------------------------------------------------------------- */

/* X(column, a struct text_table_column) */
#define COLUMN_LIST(X)                                                                             \
    X(SEQ, .name = "seq", .number = true)                                                          \
    X(MEM, .name = "mem", .number = true)                                                          \
    X(VARIANT, .name = "variant")                                                                  \
    X(BACKEND, .name = "backend")                                                                  \
    X(MEDIAN, .name = "median [ms]", .number = true)                                               \
    X(TOKENS, .name = "tok/s", .number = true)                                                     \
    X(INTERVAL, .name = "95 % interval [ms]", .number = true)                                      \
    X(GFLOP, .name = "GFLOP/s", .number = true)                                                    \
    X(PEAK, .name = "of peak [%]", .number = true)                                                 \
    X(ARENA, .name = "reserved [MiB]", .number = true)                                             \
    X(RSS, .name = "peak RSS [MiB]", .number = true)                                               \
    X(CHECKED, .name = "check")                                                                    \
    X(NOISE, .name = "noise [%]", .number = true)
#define X(column, ...) column,
enum { COLUMN_LIST(X) COLUMN_COUNT };
#undef X
#define X(column, ...) {__VA_ARGS__},
static const struct text_table_column columns[COLUMN_COUNT] = {COLUMN_LIST(X)};
#undef X

void pasted_heading(FILE *f, enum format format, const char *heading)
{
    text_above(f, format, format == FORMAT_MD ? "**%s**" : "%s", heading);
    text_row_print(f, format, columns, NULL, COLUMN_COUNT);
}

/* Four digits, none of them an exponent. */
static void put(char text[CELL], double x)
{
    const double a = fabs(x);

    *text = '\0';
    if (isfinite(x))
        snprintf(text, CELL, "%.*f",
                 a >= 1000  ? 0
                 : a >= 100 ? 1
                 : a >= 10  ? 2
                 : a >= 1   ? 3
                            : 4,
                 x);
}

void pasted_row(FILE *f, enum format format, const struct result *r, const struct latency_row *row,
                const char *variant)
{
    static const double NS = 1e-6, MIB = 1.0 / (1 << 20);
    char text[COLUMN_COUNT][CELL] = {{0}}, low[CELL], high[CELL], reason[LINE_SIZE + 32];
    const char *cell[COLUMN_COUNT];

    for (int k = 0; k < COLUMN_COUNT; k++)
        cell[k] = text[k];
    snprintf(text[SEQ], CELL, "%d", r->bcase->seq);
    mem_text(text[MEM], r->bcase->mem);
    cell[VARIANT] = variant;
    cell[BACKEND] = r->bcase->backend->name;
    if (r->status != ROW_OK) {
        snprintf(reason, sizeof(reason), "%s: %s", row_status_name[r->status], r->detail);
        cell[CHECKED] = reason;
    } else {
        put(text[MEDIAN], NS * r->sum.median);
        const bool interval = isfinite(r->sum.ci_low);
        put(low, NS * (interval ? r->sum.ci_low : r->sum.min));
        put(high, NS * (interval ? r->sum.ci_high : r->sum.max));
        if (interval && r->sum.launches == 1)
            strcpy(text[INTERVAL], "one launch");
        else
            snprintf(text[INTERVAL], CELL, "%.20s to %.20s%s", low, high,
                     interval ? "" : " (range)");
        put(text[TOKENS], row->tokens_per_s);
        put(text[GFLOP], row->gflop_per_s);
        put(text[PEAK], row->peak_flops_pct);
        put(text[ARENA], MIB * r->report.arena_bytes);
        put(text[RSS], MIB * r->report.rss_peak_bytes);
        cell[CHECKED] = r->bcase->opt->check ? "ok" : "none";
        put(text[NOISE], result_noise_pct(r));
        if (r->remarks & REMARK_FEW)
            strcpy(text[NOISE], "few");
        if (result_is_noisy(r))
            strcat(text[NOISE], " ~");
    }
    text_row_print(f, format, columns, cell, COLUMN_COUNT);
}

/* ---- chosen columns ----------------------------------------------------------------------- */

/* A number with its unit, as the screen shows it. */
static void number_text(char text[CELL], const struct column *c, const char *raw)
{
    const double x = strtod(raw, NULL);
    const struct unit_text h = strcmp(c->unit, "ns") == 0      ? units_ns(x)
                               : strcmp(c->unit, "bytes") == 0 ? units_bytes(x)
                               : strcmp(c->unit, "%") == 0     ? units_pct(x)
                               : strcmp(c->unit, "1/s") == 0   ? units_rate(x)
                                                               : (struct unit_text){""};

    if (!*raw)
        snprintf(text, CELL, "-");
    else if (*h.s)
        snprintf(text, CELL, "%s", h.s);
    else if (c->type == COLUMN_REAL)
        snprintf(text, CELL, "%.4g", x);
    else
        snprintf(text, CELL, "%.60s", raw);
}

static int width_of(const struct column *c)
{
    enum { TEXT = 12, NUMBER = 10 };

    return max_int((int)strlen(c->name), c->type == COLUMN_TEXT ? TEXT : NUMBER);
}

void chosen_line(char line[LINE_SIZE], const struct table *t, const struct selection *s,
                 const void *row)
{
    int place = 0, at = 0; /* where the column begins, where the line ends */

    line[0] = '\0';
    for (int k = 0; k < s->n; k++) {
        const struct column *const c = &t->columns[s->at[k]];
        const bool number = c->type != COLUMN_TEXT;
        char num[NUMBER_SIZE], shown[CELL];
        const char *text = row ? row_field(t, s->at[k], row, num) : c->name;
        if (row && number) {
            number_text(shown, c, text);
            text = shown;
        }
        const int width = terminal_columns(text);
        place += k ? 2 : 0;
        const int pad = max_int(k ? 1 : 0, place + (number ? width_of(c) - width : 0) - at);
        text_append(line, LINE_SIZE, "%*s%s", pad, "", text);
        at += pad + width;
        place += width_of(c);
    }
}
