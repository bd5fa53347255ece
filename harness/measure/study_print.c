/* SPDX-License-Identifier: MIT
 *
 * The table of a study for people and as CSV: a row a contender at a place, with its difference,
 * interval, verdict and notes. study_verdict.c decides; nothing is computed here. */
#include "study_answer.h"

/* Which studies have a column: of texts, of tasks. */
enum { TEXTS = 1, TASKS = 2, BOTH = TEXTS | TASKS };

/* TEXT(column, studies, text of an entry, members of a struct text_table_column) and NUMBER(column,
 * studies, format, number of an entry, members), in the order of the table. */
#define COLUMN_LIST(TEXT, NUMBER)                                                                  \
    TEXT(CORPUS, BOTH, r->row->corpus, .name = "corpus")                                           \
    TEXT(SIZE, BOTH, r->row->size, .name = "size", .spare = 1)                                     \
    TEXT(CONTENDER, BOTH, r->row->contender, .name = "contender")                                  \
    TEXT(CONTROL, BOTH, r->row->control, .name = "control")                                        \
    TEXT(SKELETON, BOTH, r->row->skeleton, .name = "skeleton", .spare = 2)                         \
    NUMBER(BUDGET, BOTH, "%.0f", count(r->row->budget_tokens), .name = "budget_tokens")            \
    NUMBER(PARAMETERS, BOTH, "%.0f", count(r->row->parameters), .name = "parameters", .spare = 4)  \
    NUMBER(RATE, BOTH, "%g", r->lr, .name = "lr", .spare = 4)                                      \
    NUMBER(SEEDS, BOTH, "%.0f", r->test.n, .name = "seeds", .spare = 2)                            \
    NUMBER(TEST, TEXTS, "%.4f", r->test.mean, .name = "test_nats", .spare = 1)                     \
    NUMBER(SD, TEXTS, "%.4f", r->test.sd, .name = "sd_nats", .spare = 3)                           \
    NUMBER(RETURN, TASKS, "%.4f", r->test.mean, .name = "return")                                  \
    NUMBER(RETURN_LOW, TASKS, "%.4f", mean.low, .name = "return_low", .spare = 2)                  \
    NUMBER(RETURN_HIGH, TASKS, "%.4f", mean.high, .name = "return_high", .spare = 2)               \
    NUMBER(RETURN_SD, TASKS, "%.4f", r->test.sd, .name = "sd", .spare = 3)                         \
    NUMBER(RANDOM, TASKS, "%.4f", r->row->random_return, .name = "random", .spare = 2)             \
    NUMBER(OPTIMUM, TASKS, "%.4f", r->row->optimum_return, .name = "optimum", .spare = 2)          \
    NUMBER(WAY, BOTH, "%.3f", no_minus(r->way.mean), .name = "way")                                \
    NUMBER(WAY_LEAST, BOTH, "%.3f", no_minus(r->way.least), .name = "way_least", .spare = 3)       \
    NUMBER(WAY_MOST, BOTH, "%.3f", no_minus(r->way.most), .name = "way_most", .spare = 3)          \
    TEXT(REACHED, TEXTS,                                                                           \
         isnan(r->way.mean) ? ""                                                                   \
         : study_reached(r) ? "yes"                                                                \
                            : "no",                                                                \
         .name = "reached", .spare = 1)                                                            \
    TEXT(SOLVED, TASKS, solved, .name = "solved")                                                  \
    NUMBER(SHARE_LOW, TASKS, "%.2f", share.low, .name = "solved_low", .spare = 3)                  \
    NUMBER(SHARE_HIGH, TASKS, "%.2f", share.high, .name = "solved_high", .spare = 3)               \
    NUMBER(DIFF, TEXTS, "%+.4f", r->quality.diff.mid, .name = "diff_nats")                         \
    NUMBER(RETURN_GAIN, TASKS, "%+.4f", r->quality.diff.mid, .name = "gain")                       \
    NUMBER(LOW, BOTH, "%+.4f", r->quality.diff.low, .name = "ci95_low")                            \
    NUMBER(HIGH, BOTH, "%+.4f", r->quality.diff.high, .name = "ci95_high")                         \
    NUMBER(P, BOTH, "%.2g", r->p, .name = "p_holm", .spare = 3)                                    \
    NUMBER(Q, BOTH, "%.2g", r->q, .name = "q", .spare = 4)                                         \
    NUMBER(SHOWN, TEXTS, "%.4f", r->shown_min, .name = "shown_min_nats", .spare = 4)               \
    NUMBER(RETURN_SHOWN, TASKS, "%.4f", r->shown_min, .name = "shown_min", .spare = 4)             \
    TEXT(VERDICT, BOTH, origin ? "" : study_verdict_name[r->verdict], .name = "verdict")           \
    NUMBER(TIME, BOTH, "%.3f", exp(r->log_time.mid), .name = "time_ratio", .spare = 1)             \
    NUMBER(TIME_LOW, BOTH, "%.3f", exp(r->log_time.low), .name = "time_low", .spare = 2)           \
    NUMBER(TIME_HIGH, BOTH, "%.3f", exp(r->log_time.high), .name = "time_high", .spare = 2)        \
    TEXT(TIME_VERDICT, BOTH, time_verdict, .name = "time_verdict", .spare = 1)                     \
    NUMBER(NOISE, TEXTS, "%.4g", v->noise, .name = "noise_nats", .wide = true)                     \
    NUMBER(RETURN_NOISE, TASKS, "%.4g", v->noise, .name = "noise", .wide = true)                   \
    TEXT(NOTE, BOTH, note, .name = "note", .least = 12, .spare = 2)

#define TEXT(column, ...) column,
#define NUMBER(column, ...) column,
enum { COLUMN_LIST(TEXT, NUMBER) COLUMNS };
#undef TEXT
#undef NUMBER
#define TEXT(column, studies, text, ...) {studies, {__VA_ARGS__}},
#define NUMBER(column, studies, format, x, ...) {studies, {.number = true, __VA_ARGS__}},
static const struct {
    int studies;
    struct text_table_column is;
} columns[COLUMNS] = {COLUMN_LIST(TEXT, NUMBER)};
#undef TEXT
#undef NUMBER

/* Those of a kind of study. */
struct fields {
    int n, field[COLUMNS];
};

static struct fields fields_of(bool tasks)
{
    struct fields f = {.n = 0};

    for (int k = 0; k < COLUMNS; k++)
        if (columns[k].studies & (tasks ? TASKS : TEXTS))
            f.field[f.n++] = k;
    return f;
}

/* A number that rounds to 0.000 has no sign. */
static double no_minus(double x) { return fabs(x) < 0.0005 ? 0 : x; }

static double count(int64_t n) { return n == I64_EMPTY ? NAN : (double)n; }

static void add_row(struct text_table *t, const struct study_verdicts *v,
                    const struct study_entry *r, const struct fields *shown, bool people)
{
    char num[COLUMNS][NUMBER_SIZE], solved[NUMBER_SIZE] = "";
    const char *text[COLUMNS], *row[COLUMNS];
    const bool timed = isfinite(r->log_time.low);
    const bool origin = r->row->baseline == 1 && !*r->row->control;
    const int seeds = r->test.n > 0 ? r->test.n + r->lost : 0;
    const struct interval mean = mean_interval(r->test),
                          share = seeds ? share_interval(r->solved, seeds)
                                        : (struct interval){NAN, NAN, NAN};

    if (seeds)
        snprintf(solved, sizeof(solved), "%d/%d", r->solved, seeds);
    const bool probably =
        r->time_verdict == VERDICT_PROBABLY_FASTER || r->time_verdict == VERDICT_PROBABLY_SLOWER;
    char time_verdict[48] = "";
    if (timed)
        snprintf(time_verdict, sizeof(time_verdict), "%s%s", verdict_name[r->time_verdict],
                 probably ? " (noisy)" : "");
    const bool alone = r->quality.diff.low > 0 || r->quality.diff.high < 0;
    const struct study_size parameters = study_size_text(r);
    char rate[TEXT_SIZE + 64] = "";
    if (study_rate_at_end(r))
        snprintf(rate, sizeof(rate), "its learning rate is at an end of the tried ones, %g to %g",
                 r->tried.low, r->tried.high);
    else if (r->verdict == STUDY_AT_END)
        snprintf(rate, sizeof(rate), "the learning rate of %s is at an end", r->against);
    else if (*r->row->rate_of)
        snprintf(rate, sizeof(rate), "at the rate of %s", r->row->rate_of);
    const char *const notes[] = {r->why, r->remark, people ? "" : parameters.text, rate,
                                 r->verdict == STUDY_NOT_SHOWN && alone
                                     ? "its own interval leaves out 0: more seeds may decide"
                                     : ""};
    char note[2 * LINE_SIZE + 512] = "";
    for (size_t i = 0; i < ARRAY_LEN(notes); i++)
        text_join(note, sizeof(note), "; ", notes[i]);
#define TEXT(column, studies, value, ...) text[column] = value;
#define NUMBER(column, studies, format, x, ...) text[column] = text_number(num[column], format, x);
    COLUMN_LIST(TEXT, NUMBER)
#undef TEXT
#undef NUMBER
    for (int i = 0; i < shown->n; i++)
        row[i] = text[shown->field[i]];
    text_table_add(t, row);
}

/* Of any row that has one: the first may have failed. */
static bool of_a_task(const struct study_verdicts *v)
{
    for (int i = 0; i < v->n; i++)
        if (v->v[i].is_task)
            return true;
    return false;
}

static bool any_not_shown(const struct study_verdicts *v)
{
    for (int i = 0; i < v->n; i++)
        if (v->v[i].verdict == STUDY_NOT_SHOWN)
            return true;
    return false;
}

/* Once, of a contender that has the same parameters on all texts. */
static void say_size(FILE *f, enum format format, const struct study_verdicts *v, int i)
{
    const struct study_size size = study_size_text(&v->v[i]);
    const struct study_row *const row = v->v[i].row;
    bool sizes = false;

    for (int k = 0; k < v->n; k++) {
        const struct study_row *const other = v->v[k].row;
        const bool same_size = strcmp(other->size, row->size) == 0;
        if (k < i && same_size && strcmp(other->contender, row->contender) == 0)
            return;
        sizes = sizes || !same_size;
    }
    if (*size.text)
        text_below(f, format, "%s%s%s has %s", row->contender, sizes ? " of size " : "",
                   sizes ? row->size : "", size.text);
}

void study_verdicts_print(FILE *f, const struct study_verdicts *v, enum format format)
{
    const bool tasks = of_a_task(v);
    const struct fields shown = fields_of(tasks);
    struct text_table_column column[COLUMNS];
    struct text_table t = {.column = column, .columns = shown.n};
    const bool people = format_is_table(format, f) || format_is_pasted(format);
    bool skeletons = false, budgets = false;

    for (int i = 0; i < v->n; i++) {
        skeletons = skeletons || *v->v[i].row->skeleton;
        budgets = budgets || v->v[i].row->budget_tokens != I64_EMPTY;
    }
    for (int i = 0; i < shown.n; i++) {
        column[i] = columns[shown.field[i]].is;
        column[i].wide = column[i].wide || (shown.field[i] == CONTROL && !v->controls) ||
                         (shown.field[i] == SKELETON && !skeletons) ||
                         (shown.field[i] == BUDGET && !budgets);
    }
    for (int i = 0; i < v->n; i++)
        add_row(&t, v, &v->v[i], &shown, people);
    text_table_print(f, &t, format);
    if (people && isfinite(v->noise)) {
        fputs(format_is_pasted(format) ? "" : "\n", f);
        text_below(f, format,
                   "noise floor: %.4f%s, the seed standard deviation of the %s (pooled over "
                   "%d); p and verdict are corrected for %d comparison%s",
                   v->noise, tasks ? "" : " nats", v->controls ? "controls" : "baseline",
                   v->noise_of, v->tested, v->tested == 1 ? "" : "s");
        if (any_not_shown(v))
            text_below(f, format,
                       "not shown: neither a difference nor that there is none; a row by itself "
                       "rules out (at 95 %%) a difference outside its ci95_low to ci95_high");
    }
    for (int i = 0; i < v->n && people; i++)
        say_size(f, format, v, i);
    if (people && budgets)
        study_budgets_print(f, v, format);
    text_table_free(&t);
}
