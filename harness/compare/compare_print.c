/* SPDX-License-Identifier: MIT
 *
 * Comparisons as text. */
#include "compare_print.h"

enum { NAMES_ABREAST = 4, TEXT = LINE_SIZE + 256 };

const char *comparison_word(const struct comparison *c)
{
    if (c->changed && c->change.verdict != VERDICT_SLOWER)
        return "changed";
    return verdict_name[c->exact ? comparison_exact_verdict(c) : c->change.verdict];
}

int comparisons_undecided(const struct comparisons *c)
{
    return comparisons_count(c, VERDICT_UNCLEAR) + comparisons_count(c, VERDICT_UNSHOWN) +
           comparisons_count(c, VERDICT_PROBABLY_SLOWER) +
           comparisons_count(c, VERDICT_PROBABLY_FASTER);
}

int comparisons_count(const struct comparisons *c, enum verdict v)
{
    int n = 0;

    for (int i = 0; i < c->n; i++)
        n += !c->v[i].exact && c->v[i].change.n > 0 && c->v[i].change.verdict == v;
    return n;
}

/* ---- reasons ------------------------------------------------------------------------------ */

/* Each reason once, below the table; cells have its number. */
struct reasons {
    const char **text; /* [2 n of comparisons] */
    int n;
};

static const char BY_CPU[] = "compared by CPU time: most blocks were preempted";

/* The number of the reason, from 1. */
static int reason_number(struct reasons *r, const char *text)
{
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->text[i], text) == 0)
            return i + 1;
    r->text[r->n++] = text;
    return r->n;
}

/* " (1)", " (1, 2)" */
static void marks_text(struct reasons *r, const struct comparison *c, char *buf, size_t size)
{
    const int cpu = c->change.n > 0 && change_by_cpu(&c->change) ? reason_number(r, BY_CPU) : 0;
    const int note = *c->note ? reason_number(r, c->note) : 0;

    *buf = '\0';
    if (cpu && note)
        snprintf(buf, size, " (%d, %d)", cpu, note);
    else if (cpu || note)
        snprintf(buf, size, " (%d)", cpu + note);
}

/* ---- the table ---------------------------------------------------------------------------- */

/* "-36.8 % [-37.4 -36.1]"; "-36.8 % (-38.0 to -30.2)": the range of few samples */
static void change_text(const struct change *c, char *buf, size_t size)
{
    snprintf(buf, size, c->few ? "%+.1f %% (%+.1f to %+.1f)" : "%+.1f %% [%+.1f %+.1f]",
             change_pct(c->log.mid), change_pct(c->log.low), change_pct(c->log.high));
}

/* " probably slower (noisy)"; that CPU time was compared is a reason below the table */
static void word_text(const struct comparison *c, char *buf, size_t size)
{
    const char *const remark = change_by_cpu(&c->change) ? "" : change_remark(&c->change);

    snprintf(buf, size, " %s%s%s%s", comparison_word(c), *remark ? " (" : "", remark,
             *remark ? ")" : "");
}

static void after_text(struct reasons *r, const struct comparison *c, char *buf, size_t size)
{
    char change[64], marks[32], word[64] = "";

    marks_text(r, c, marks, sizeof(marks));
    if (c->exact) {
        snprintf(buf, size, "%.6f  %s%s", c->nll[AFTER], comparison_word(c), marks);
        return;
    }
    if (c->change.n == 0) {
        snprintf(buf, size, "-%s", marks);
        return;
    }
    change_text(&c->change, change, sizeof(change));
    if (c->change.verdict == VERDICT_SAME)
        snprintf(change, sizeof(change), "~ [%+.1f %+.1f]", change_pct(c->change.log.low),
                 change_pct(c->change.log.high));
    if (c->change.verdict != VERDICT_SAME || c->changed)
        word_text(c, word, sizeof(word));
    snprintf(buf, size, "%s  %s%s%s", units_ns(comparison_ns(c, AFTER)).s, change, word, marks);
}

static void before_text(const struct comparison *c, char *buf, size_t size)
{
    if (c->exact)
        snprintf(buf, size, "%.6f", c->nll[BEFORE]);
    else if (c->change.n == 0)
        snprintf(buf, size, "-");
    else if (isfinite(c->before_pct))
        snprintf(buf, size, "%s ±%s", units_ns(comparison_ns(c, BEFORE)).s,
                 units_pct(c->before_pct).s);
    else
        snprintf(buf, size, "%s", units_ns(comparison_ns(c, BEFORE)).s);
}

/* Index of the comparison's name among the distinct ones; *n grows. */
static int name_index(const char **names, int *n, int max, const char *name)
{
    for (int i = 0; i < *n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    if (*n < max)
        names[(*n)++] = name;
    return *n - 1;
}

/* One line per base, the names side by side, in the order in which bases come first. */
static void fill_abreast(struct text_table *s, struct reasons *r, const struct comparisons *c,
                         const char **names, int n)
{
    char text[NAMES_ABREAST + 1][TEXT];
    bool *done = need_room((size_t)c->n + 1, sizeof(*done));

    for (int i = 0; i < c->n; i++) {
        const char *row[NAMES_ABREAST + 2] = {c->v[i].label, text[0]};
        if (done[i])
            continue;
        before_text(&c->v[i], text[0], TEXT);
        for (int j = i; j < c->n; j++) {
            if (c->v[j].line != c->v[i].line)
                continue;
            const int k = name_index(names, &n, n, c->v[j].name[AFTER]);
            after_text(r, &c->v[j], text[k + 1], TEXT);
            row[k + 2] = text[k + 1];
            done[j] = true;
        }
        text_table_add(s, row);
    }
    free(done);
}

/* One line per comparison: what both have in common, the other's name, the base's time, the
 * other's, the change. */
static void fill_below(struct text_table *s, struct reasons *r, const struct comparisons *c)
{
    char before[TEXT], after[TEXT];

    for (int i = 0; i < c->n; i++) {
        before_text(&c->v[i], before, TEXT);
        after_text(r, &c->v[i], after, TEXT);
        char *change = strstr(after, "  "); /* behind the time */
        if (change)
            *change++ = '\0';
        const char *row[] = {c->v[i].label, c->v[i].name[AFTER], before, after,
                             change ? change + 1 : ""};
        text_table_add(s, row);
    }
}

/* Does it fit? */
static bool print_abreast(FILE *f, enum format format, struct reasons *r,
                          const struct comparisons *c, const char **names, int n)
{
    struct text_table_column column[NAMES_ABREAST + 2] = {
        {.name = ""}, {.name = c->n ? c->v[0].name[BEFORE] : ""}};

    for (int i = 0; i < n; i++)
        column[i + 2].name = names[i];
    struct text_table s = {.column = column, .columns = n + 2};
    fill_abreast(&s, r, c, names, n);
    const bool fits = format_is_pasted(format) || text_table_width(&s) <= terminal_width(fileno(f));
    if (fits)
        text_table_print(f, &s, format);
    text_table_free(&s);
    return fits;
}

/* The names side by side where they fit, else below each other. */
static void print_columns(FILE *f, enum format format, struct reasons *r,
                          const struct comparisons *c)
{
    const struct text_table_column column[] = {{.name = "", .least = 14},
                                               {.name = ""},
                                               {.name = c->n ? c->v[0].name[BEFORE] : ""},
                                               {.name = ""},
                                               {.name = "", .least = 16}};
    struct text_table s = {.column = column, .columns = ARRAY_LEN(column)};
    const char *names[NAMES_ABREAST + 1];
    int n = 0;

    for (int i = 0; i < c->n; i++)
        name_index(names, &n, NAMES_ABREAST + 1, c->v[i].name[AFTER]);
    if (n <= NAMES_ABREAST && print_abreast(f, format, r, c, names, n))
        return;
    r->n = 0;
    fill_below(&s, r, c);
    text_table_print(f, &s, format);
    text_table_free(&s);
}

/* Are there changes over pairs? Their median need not be the ratio of the two medians. */
static bool any_pairs(const struct comparisons *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->v[i].change.n > 0 && c->v[i].change.basis != BASIS_MOMENTS)
            return true;
    return false;
}

static void print_table(FILE *f, const struct comparisons *c, enum format format)
{
    struct reasons r = {.text = need_room(2 * (size_t)c->n + 1, sizeof(*r.text))};
    struct comparisons own = *c; /* with shorter labels */
    char shared[sizeof(c->v->label)];

    own.v = need_room((size_t)c->n + 1, sizeof(*own.v));
    if (c->n > 0)
        memcpy(own.v, c->v, (size_t)c->n * sizeof(*own.v));
    comparisons_share(own.v, own.n, shared);
    if (*shared)
        text_above(f, format, "%s", shared);
    print_columns(f, format, &r, &own);
    for (int i = 0; i < r.n; i++)
        text_below(f, format, "(%d) %s", i + 1, r.text[i]);
    if (any_pairs(c))
        text_below(f, format,
                   "times: the median of each side; changes: the median over pairs of blocks");
    free(r.text);
    free(own.v);
}

/* ---- the long form ------------------------------------------------------------------------ */

/* TEXT(name, text) and NUMBER(name, format, number) of a comparison. */
#define LONG_COLUMNS(TEXT, NUMBER)                                                                 \
    TEXT("case", c->label)                                                                         \
    TEXT("before", c->name[BEFORE])                                                                \
    TEXT("after", c->name[AFTER])                                                                  \
    NUMBER("before_median_ns", "%.6g", comparison_ns(c, BEFORE))                                   \
    NUMBER("after_median_ns", "%.6g", comparison_ns(c, AFTER))                                     \
    NUMBER("change_pct", "%.3f", change_pct(d->log.mid))                                           \
    NUMBER("ci95_low_pct", "%.3f", change_pct(d->log.low))                                         \
    NUMBER("ci95_high_pct", "%.3f", change_pct(d->log.high))                                       \
    TEXT("verdict", comparison_word(c))                                                            \
    NUMBER("threshold_pct", "%.3g", c->exact ? NAN : 100 * c->threshold)                           \
    TEXT("basis", d->n > 0 ? basis_name[d->basis] : "")                                            \
    NUMBER("samples", "%.0f", d->n > 0 ? d->n : NAN)                                               \
    NUMBER("samples_disturbed", "%.0f", d->n > 0 ? d->disturbed : NAN)                             \
    NUMBER("before_arena_bytes", "%.0f", c->arena_bytes[BEFORE])                                   \
    NUMBER("after_arena_bytes", "%.0f", c->arena_bytes[AFTER])                                     \
    NUMBER("before_instructions", "%.0f", c->instructions[BEFORE])                                 \
    NUMBER("after_instructions", "%.0f", c->instructions[AFTER])                                   \
    NUMBER("before_nll_nats_per_token", "%.9g", c->nll[BEFORE])                                    \
    NUMBER("after_nll_nats_per_token", "%.9g", c->nll[AFTER])                                      \
    TEXT("note", c->note)                                                                          \
    TEXT("before_case_id", c->case_id[BEFORE])                                                     \
    TEXT("after_case_id", c->case_id[AFTER])

#define TEXT(title, text) {.name = title},
#define NUMBER(title, format, x) {.name = title, .number = true},
static const struct text_table_column columns_long[] = {LONG_COLUMNS(TEXT, NUMBER)};
#undef TEXT
#undef NUMBER

static void add_long(struct text_table *s, const struct comparison *c)
{
    const struct change *d = &c->change;

#define TEXT(title, text) text_table_cell(s, "%s", text);
#define NUMBER(title, format, x) text_table_number(s, format, x);
    LONG_COLUMNS(TEXT, NUMBER)
#undef TEXT
#undef NUMBER
}

enum status comparisons_print(FILE *f, const struct comparisons *c, enum format format,
                              const struct names *columns, struct err *e)
{
    struct text_table s = {.column = columns_long, .columns = ARRAY_LEN(columns_long)};
    const bool table = format_is_table(format, f);

    TRY(text_table_select(&s, columns, e));
    if ((table || format_is_pasted(format)) && columns->n == 0) {
        print_table(f, c, table ? FORMAT_TABLE : format);
        return OK;
    }
    for (int i = 0; i < c->n; i++)
        add_long(&s, &c->v[i]);
    text_table_print(f, &s, format);
    text_table_free(&s);
    return OK;
}

void comparisons_print_means(FILE *f, enum format format, const struct comparisons *c)
{
    struct change *changes = need_room((size_t)c->n + 1, sizeof(*changes));
    const char *names[NAMES_ABREAST];
    int n = 0;

    for (int i = 0; i < c->n; i++)
        if (!c->v[i].exact)
            name_index(names, &n, NAMES_ABREAST, c->v[i].name[AFTER]);
    for (int k = 0; k < n; k++) {
        char text[128];
        int m = 0, undecided = 0, probable = 0;
        for (int i = 0; i < c->n; i++)
            if (strcmp(c->v[i].name[AFTER], names[k]) == 0 && isfinite(c->v[i].change.log.low))
                changes[m++] = c->v[i].change;
        const struct change mean = change_mean(changes, m, 0);
        change_text(&mean, text, sizeof(text));
        for (int i = 0; i < m; i++) {
            const enum verdict is = changes[i].verdict;
            undecided += is == VERDICT_UNCLEAR || is == VERDICT_UNSHOWN;
            probable += is == VERDICT_PROBABLY_FASTER || is == VERDICT_PROBABLY_SLOWER;
        }
        if (undecided > 0)
            text_append(text, sizeof(text), "  (%d undecided)", undecided);
        if (probable > 0)
            text_append(text, sizeof(text), "  (%d probable)", probable);
        if (m > 1)
            text_below(f, format, "geometric mean of %d: %s %s", m, names[k], text);
    }
    free(changes);
}
