/* SPDX-License-Identifier: MIT
 *
 * The screen while a sweep runs. */
#include "console.h"

#include "console_rows.h"

static double now_s(void) { return (double)clock_wall_ns() * 1e-9; }

/* ---- the table ---------------------------------------------------------------------------- */

/* In order of importance; the first five are always shown. */
enum { SEQ, MEM, VARIANT, BACKEND, MEDIAN, ALWAYS, TOKENS = ALWAYS, INTERVAL, COLUMN_COUNT = 13 };
enum { WIDEN_MAX = 20 }; /* columns that long variants may add */
static const struct terminal_column {
    const char *name;
    int gap, width; /* blanks before the column, and its width; a longer text takes space that its
                     * neighbours leave */
    int narrow;     /* width if the terminal is too narrow for five columns; the gap is then one */
    bool right;
} columns[COLUMN_COUNT] = {
    [SEQ] = {"seq", 0, 6, 5, true},
    [MEM] = {"mem", 1, 6, 5, true},
    [VARIANT] = {"variant", 2, 14, 9, false},
    [BACKEND] = {"backend", 1, 9, 8, false},
    [MEDIAN] = {"median", 1, 10, 8, true},
    [TOKENS] = {"tok/s", 1, 9, 0, true},
    [INTERVAL] = {"95 % interval", 2, 17, 0, false},
    {"GFLOP/s", 1, 8, 0, true},
    {"%peak", 1, 6, 0, true},
    {"reserved", 1, 10, 0, true},
    {"peak RSS", 1, 10, 0, true},
    {"check", 2, 8, 0, false},
    {"noise", 1, 9, 0, false},
};

/* ---- opening and closing -------------------------------------------------------------------- */

void console_flush(struct console *s)
{
    progress_end(&s->wait);
    if (fflush(stdout) != 0 && !s->out_error)
        s->out_error = errno;
}

bool console_at_end(enum format format) { return format == FORMAT_JSON || format == FORMAT_FOM; }

void console_end(struct console *s)
{
    if (s->started)
        text_rows_end(stdout, s->format);
    s->started = false;
}

bool console_is_to_paste(const struct console *s)
{
    return format_is_pasted(s->format) && s->opt->columns.n == 0;
}

enum status console_open(struct console *s, const struct options *opt, const struct table *t,
                         int cases, struct err *e)
{
    *s = (struct console){.opt = opt, .cases = cases, .start_s = now_s()};
    s->format = opt->format != FORMAT_AUTO ? (enum format)opt->format
                : isatty(STDOUT_FILENO)    ? FORMAT_TABLE
                                           : FORMAT_CSV;
    s->wait.how = terminal_progress((enum progress)opt->progress, opt->quiet);
    s->color = terminal_color((enum color)opt->color, STDOUT_FILENO);
    s->told_by_rows = !console_at_end(s->format) && terminal_is_one();
    s->last_told_s = s->row_s = s->start_s;
    return columns_select(&s->columns, t, opt->columns.v, opt->columns.n, e);
}

void console_plan(struct console *s, const struct bench_case *cases, int n)
{
    case_labels_find(&s->labels, cases, n,
                     columns[VARIANT].width + columns[BACKEND].gap + columns[BACKEND].width);
    s->widen = min_int(s->labels.excess, WIDEN_MAX);
}

/* ---- the progress line -------------------------------------------------------------------- */

void console_note(struct console *s, const char *fmt, ...)
{
    va_list ap;

    terminal_line_clear(&s->wait.line);
    va_start(ap, fmt);
    text_vline(stderr, fmt, ap);
    va_end(ap);
}

void console_spent(struct console *s, double expected_s)
{
    s->expected_done_s += expected_s;
    s->row_s = now_s();
}

/* "  2 min 10 s left", by the estimate, corrected by what the finished cases took. */
static void time_left(const struct console *s, char *buf, size_t size)
{
    const double spent = s->row_s - s->start_s, done = s->expected_done_s;
    const double pace = done > 0 ? spent / done : 1;
    const double left = (s->expected_s - done) * pace - (now_s() - s->row_s);

    buf[0] = '\0';
    if (s->expected_s > 0 && left > 0)
        snprintf(buf, size, "  %s left", duration_text(fmax(0.1, left)).s);
    else if (s->expected_s > 0)
        snprintf(buf, size, "  longer than expected");
}

/* "  noise 0.8 %": half of the median's 95 % interval over the newest samples. */
static void noise_so_far(const struct result *r, char *buf, size_t size)
{
    enum { NEWEST = 256 };
    double per_call[NEWEST];
    const int newest = min_int(r->n, NEWEST);
    const int n = stats_usable(r->samples + r->n - newest, newest, per_call, NULL);

    sort_numbers(per_call, n);
    const struct interval ci = stats_median_interval(per_call, n);
    buf[0] = '\0';
    if (isfinite(ci.low))
        snprintf(buf, size, "  noise %s", units_pct(50 * (ci.high - ci.low) / ci.mid).s);
}

void console_progress(struct console *s, const struct result *r)
{
    enum { PLAIN_S = 30, LEAST = 12 };
    const bool bar = s->wait.how == PROGRESS_BAR;
    char label[160], noise[48], left[48], rest[160], line[352];

    if (s->wait.how == PROGRESS_NONE || now_s() - s->last_told_s < (bar ? 0.1 : PLAIN_S))
        return;
    s->last_told_s = now_s();
    case_label(r->bcase, label, sizeof(label));
    noise_so_far(r, noise, sizeof(noise));
    time_left(s, left, sizeof(left));
    snprintf(rest, sizeof(rest), "  %d/%d+ samples%s%s", r->n, s->opt->min_samples, noise, left);
    if (bar) /* how far it is matters more than the whole name */
        terminal_cut(label,
                     max_int(LEAST, terminal_width(STDERR_FILENO) - LEAST - (int)strlen(rest)));
    snprintf(line, sizeof(line), "[%3d/%d] %s%s", s->done + 1, s->cases, label, rest);
    if (bar)
        terminal_line_put(&s->wait.line, line);
    else
        terminal_line_print(line);
}

/* ---- rows ------------------------------------------------------------------------------- */

enum { TABLE_LINE = 512 };

/* Of the first n columns. */
static int width_of(const struct console *s, int n)
{
    int width = s->widen;

    for (int k = 0; k < n; k++)
        width += columns[k].gap + columns[k].width;
    return width;
}

/* Each text in its column; one that is too long pushes its successors only as far as necessary. */
static void lay_out(const struct console *s, const char *const *text, int n, char line[TABLE_LINE])
{
    const bool narrow = s->width < width_of(s, ALWAYS);
    int place = 0, at = 0; /* where the column begins, where the line ends */

    line[0] = '\0';
    for (int k = 0; k < n; k++) {
        const int room =
            narrow ? columns[k].narrow : columns[k].width + (k == VARIANT ? s->widen : 0);
        const int width = terminal_columns(text[k]);
        place += k == 0 ? 0 : narrow ? 1 : columns[k].gap;
        const int pad = max_int(k > 0, place + (columns[k].right ? room - width : 0) - at);
        text_append(line, TABLE_LINE, "%*s%s", pad, "", text[k]);
        at += pad + width;
        place += room;
    }
}

/* The same within so many columns: a long variant is shortened first. The variant in `text` may be
 * overwritten. */
static void lay_out_within(const struct console *s, int room, const char *const *text, int n,
                           char *variant, char line[TABLE_LINE])
{
    lay_out(s, text, n, line);
    const int excess = terminal_columns(line) - room;
    if (excess <= 0)
        return;
    terminal_cut(variant, terminal_columns(variant) - excess);
    lay_out(s, text, n, line);
}

static void print_line(const struct console *s, const char *code, char *line)
{
    const bool colored = s->color && *code;

    terminal_cut(line, s->width);
    printf("%s%s%s\n", colored ? code : "", line, colored ? "\033[0m" : "");
}

/* A text of any length: it breaks between words. */
static void print_filled(const struct console *s, const char *code, const char *text, int indent)
{
    struct bytes filled;
    FILE *const f = bytes_begin(&filled);

    text_fill(f, text, 0, indent, s->width);
    bytes_end(f, &filled);
    for (char *line = filled.data, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end)
            *end++ = '\0';
        print_line(s, code, line);
    }
    free(filled.data);
}

/* Name, once, the columns that do not fit on the terminal. */
static void tell_hidden(struct console *s)
{
    char names[160] = "";

    if (s->hidden_told || s->opt->quiet || s->fitting == COLUMN_COUNT)
        return;
    for (int k = s->fitting; k < COLUMN_COUNT; k++)
        text_join(names, sizeof(names), ", ", columns[k].name);
    console_note(s,
                 "note: %d columns are too narrow for %s  -> widen the terminal to %d; --format "
                 "csv has them all",
                 s->width, names, width_of(s, COLUMN_COUNT));
    s->hidden_told = true;
}

/* The terminal may have changed its size since the last heading. */
static void print_heading(struct console *s, const struct bench_case *c)
{
    const char *names[COLUMN_COUNT];
    char line[TABLE_LINE];

    if (s->started && same_heading(&s->labels, &s->heading, c))
        return;
    s->width = terminal_width(STDOUT_FILENO);
    for (s->fitting = ALWAYS; s->fitting < COLUMN_COUNT; s->fitting++)
        if (width_of(s, s->fitting + 1) > s->width)
            break;
    tell_hidden(s);
    if (s->started)
        putchar('\n');
    case_heading(&s->labels, c, line, sizeof(line));
    print_filled(s, "\033[1m", line, 2);
    for (int k = 0; k < COLUMN_COUNT; k++)
        names[k] = columns[k].name;
    lay_out(s, names, s->fitting, line);
    print_line(s, "\033[1m", line);
    s->heading = *c;
    s->started = true;
}

/* A mark and the median: "~" noisy, "!" not compared with the reference. */
static void median_text(const struct result *r, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s",
             r->remarks & REMARK_UNCHECKED ? "!"
             : result_is_noisy(r)          ? "~"
                                           : "",
             units_ns(r->sum.median).s);
}

/* "ok 64 rows": not all of them. */
static void check_text(const struct result *r, char *buf, size_t size)
{
    if (r->remarks & REMARK_SAMPLED)
        snprintf(buf, size, "ok %.0f rows", r->report.checked_rows);
    else
        snprintf(buf, size, "%s", r->bcase->opt->check ? "ok" : "none");
}

/* Fewer than INTERVAL_SAMPLES have no interval. That of one launch does not tell where others lie. */
static void interval_text(const struct result *r, char *buf, size_t size)
{
    if (isfinite(r->sum.ci_low) && r->sum.launches == 1)
        snprintf(buf, size, "one launch");
    else if (isfinite(r->sum.ci_low))
        snprintf(buf, size, "[%s %s]", units_ns(r->sum.ci_low).s, units_ns(r->sum.ci_high).s);
    else
        snprintf(buf, size, "range of %d", r->sum.used);
}

/* A row without numbers: the label of the case, then the reason. */
static void print_reason(const struct console *s, const struct result *r, const char *const *text,
                         char *variant)
{
    enum { STATUS = 13, REASON = 9 }; /* columns: "  skipped: ..", before further lines */
    const bool bad = r->status == ROW_WRONG || r->status == ROW_FAILED ||
                     r->status == ROW_TIMEOUT || r->status == ROW_SUSPECT;
    char line[TABLE_LINE], whole[TABLE_LINE + LINE_SIZE + 32];

    lay_out_within(s, s->width - STATUS, text, MEDIAN, variant, line);
    snprintf(whole, sizeof(whole), "%s  %s: %s", line, row_status_name[r->status], r->detail);
    print_filled(s, bad ? "\033[31m" : "", whole, REASON);
}

/* What the median of a request consists of. */
static void print_tokens(const struct console *s, const struct result *r)
{
    char line[TABLE_LINE];

    if (!(r->first_ns > 0))
        return;
    if (r->token_ns > 0)
        snprintf(line, sizeof(line), "%13s first token %s, each further one %s, 99 %% below %s", "",
                 units_ns(r->first_ns).s, units_ns(r->token_ns).s, units_ns(r->token_p99_ns).s);
    else
        snprintf(line, sizeof(line), "%13s one token, %s", "", units_ns(r->first_ns).s);
    print_line(s, "", line);
}

static void print_case(struct console *s, const struct result *r, const struct latency_row *row)
{
    const struct bench_case *c = r->bcase;
    char seq[16], mem[MEM_TEXT], variant[64], median[48], check[32], noise[64], ci[80];
    char line[TABLE_LINE];

    print_heading(s, c);
    snprintf(seq, sizeof(seq), "%d", c->seq);
    mem_text(mem, c->mem);
    case_variant(&s->labels, c, variant, sizeof(variant));
    interval_text(r, ci, sizeof(ci));
    const struct unit_text tokens = units_rate(row->tokens_per_s),
                           gflop = units_rate(row->gflop_per_s),
                           peak = units_rate(row->peak_flops_pct),
                           arena = units_bytes(r->report.arena_bytes),
                           rss = units_bytes(r->report.rss_peak_bytes);
    const char *const text[COLUMN_COUNT] = {seq,      mem,   variant, c->backend->name, median,
                                            tokens.s, ci,    gflop.s, peak.s,           arena.s,
                                            rss.s,    check, noise};
    if (r->status != ROW_OK) {
        print_reason(s, r, text, variant);
        return;
    }
    median_text(r, median, sizeof(median));
    check_text(r, check, sizeof(check));
    snprintf(noise, sizeof(noise), "%s",
             r->remarks & REMARK_FEW ? "few" : units_pct(result_noise_pct(r)).s);
    lay_out_within(s, s->width, text, s->fitting, variant, line);
    print_line(s, "", line);
    print_tokens(s, r);
}

static void print_chosen(struct console *s, const struct table *t, const struct latency_row *row)
{
    char line[LINE_SIZE];

    s->width = terminal_width(STDOUT_FILENO);
    if (!s->started) {
        chosen_line(line, t, &s->columns, NULL);
        print_line(s, "\033[1m", line);
    }
    chosen_line(line, t, &s->columns, row);
    print_line(s, "", line);
}

static void print_pasted(struct console *s, const struct result *r, const struct latency_row *row)
{
    char heading[TABLE_LINE], variant[64];

    if (!s->started || !same_heading(&s->labels, &s->heading, r->bcase)) {
        case_heading(&s->labels, r->bcase, heading, sizeof(heading));
        const bool again = s->started;
        console_end(s);
        fputs(again ? "\n" : "", stdout);
        pasted_heading(stdout, s->format, heading);
        s->heading = *r->bcase;
    }
    case_variant(&s->labels, r->bcase, variant, sizeof(variant));
    pasted_row(stdout, s->format, r, row, variant);
}

void console_row(struct console *s, const struct result *r, const struct latency_row *row)
{
    const struct table *t = &tables[TABLE_LATENCY];
    char label[160], line[sizeof(label) + LINE_SIZE + 64];

    s->done++;
    s->last_told_s = now_s();
    progress_end(&s->wait);
    if (s->wait.how == PROGRESS_PLAIN && !s->told_by_rows) {
        case_label(r->bcase, label, sizeof(label));
        snprintf(line, sizeof(line), "[%d/%d] %s  %s  %s", s->done, s->cases, label,
                 row_status_name[r->status],
                 r->status == ROW_OK ? units_ns(r->sum.median).s : r->detail);
        terminal_line_print(line);
    }
    if (s->format == FORMAT_TABLE && s->opt->columns.n > 0)
        print_chosen(s, t, row);
    else if (s->format == FORMAT_TABLE)
        print_case(s, r, row);
    else if (console_is_to_paste(s))
        print_pasted(s, r, row);
    else if (!console_at_end(s->format)) {
        if (!s->started)
            row_print_names(stdout, s->format, t, &s->columns);
        row_print(stdout, s->format, t, &s->columns, row);
    }
    s->started = true;
    console_flush(s);
}
