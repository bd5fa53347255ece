/* SPDX-License-Identifier: MIT
 *
 * The table of a study for people and as CSV: a row a contender at a place, with its difference,
 * interval, verdict and notes. study_verdict.c decides; nothing is computed here. */
#include "study_answer.h"

/* Which studies have a column: of texts, of tasks. */
enum { TEXTS = 1, TASKS = 2, BOTH = TEXTS | TASKS };

/* X(column, studies, a struct text_table_column), in the order of the table. */
#define COLUMN_LIST(X)                                                                             \
    X(CORPUS, BOTH, .name = "corpus")                                                              \
    X(SIZE, BOTH, .name = "size", .spare = 1)                                                      \
    X(CONTENDER, BOTH, .name = "contender")                                                        \
    X(CONTROL, BOTH, .name = "control")                                                            \
    X(SKELETON, BOTH, .name = "skeleton", .spare = 2)                                              \
    X(BUDGET, BOTH, .name = "budget_tokens", .number = true)                                       \
    X(PARAMETERS, BOTH, .name = "parameters", .number = true, .spare = 4)                          \
    X(RATE, BOTH, .name = "lr", .number = true, .spare = 4)                                        \
    X(SEEDS, BOTH, .name = "seeds", .number = true, .spare = 2)                                    \
    X(TEST, TEXTS, .name = "test_nats", .number = true, .spare = 1)                                \
    X(SD, TEXTS, .name = "sd_nats", .number = true, .spare = 3)                                    \
    X(RETURN, TASKS, .name = "return", .number = true)                                             \
    X(RETURN_LOW, TASKS, .name = "return_low", .number = true, .spare = 2)                         \
    X(RETURN_HIGH, TASKS, .name = "return_high", .number = true, .spare = 2)                       \
    X(RETURN_SD, TASKS, .name = "sd", .number = true, .spare = 3)                                  \
    X(RANDOM, TASKS, .name = "random", .number = true, .spare = 2)                                 \
    X(OPTIMUM, TASKS, .name = "optimum", .number = true, .spare = 2)                               \
    X(WAY, BOTH, .name = "way", .number = true)                                                    \
    X(WAY_LEAST, BOTH, .name = "way_least", .number = true, .spare = 3)                            \
    X(WAY_MOST, BOTH, .name = "way_most", .number = true, .spare = 3)                              \
    X(REACHED, TEXTS, .name = "reached", .spare = 1)                                               \
    X(SOLVED, TASKS, .name = "solved")                                                             \
    X(SHARE_LOW, TASKS, .name = "solved_low", .number = true, .spare = 3)                          \
    X(SHARE_HIGH, TASKS, .name = "solved_high", .number = true, .spare = 3)                        \
    X(DIFF, TEXTS, .name = "diff_nats", .number = true)                                            \
    X(RETURN_GAIN, TASKS, .name = "gain", .number = true)                                          \
    X(LOW, BOTH, .name = "ci95_low", .number = true)                                               \
    X(HIGH, BOTH, .name = "ci95_high", .number = true)                                             \
    X(P, BOTH, .name = "p_holm", .number = true, .spare = 3)                                       \
    X(Q, BOTH, .name = "q", .number = true, .spare = 4)                                            \
    X(SHOWN, TEXTS, .name = "shown_min_nats", .number = true, .spare = 4)                          \
    X(RETURN_SHOWN, TASKS, .name = "shown_min", .number = true, .spare = 4)                        \
    X(VERDICT, BOTH, .name = "verdict")                                                            \
    X(TIME, BOTH, .name = "time_ratio", .number = true, .spare = 1)                                \
    X(TIME_LOW, BOTH, .name = "time_low", .number = true, .spare = 2)                              \
    X(TIME_HIGH, BOTH, .name = "time_high", .number = true, .spare = 2)                            \
    X(TIME_VERDICT, BOTH, .name = "time_verdict", .spare = 1)                                      \
    X(NOISE, TEXTS, .name = "noise_nats", .number = true, .wide = true)                            \
    X(RETURN_NOISE, TASKS, .name = "noise", .number = true, .wide = true)                          \
    X(NOTE, BOTH, .name = "note", .least = 12, .spare = 2)

#define X(column, ...) column,
enum { COLUMN_LIST(X) COLUMNS };
#undef X
#define X(column, studies, ...) {studies, {__VA_ARGS__}},
static const struct {
    int studies;
    struct text_table_column is;
} columns[COLUMNS] = {COLUMN_LIST(X)};
#undef X

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

static void put_returns(char num[COLUMNS][NUMBER_SIZE], const struct study_entry *r, double noise)
{
    const struct interval mean = mean_interval(r->test);

    text_number(num[RETURN], "%.4f", r->test.mean);
    text_number(num[RETURN_LOW], "%.4f", mean.low);
    text_number(num[RETURN_HIGH], "%.4f", mean.high);
    text_number(num[RETURN_SD], "%.4f", r->test.sd);
    text_number(num[RANDOM], "%.4f", r->row->random_return);
    text_number(num[OPTIMUM], "%.4f", r->row->optimum_return);
    text_number(num[RETURN_GAIN], "%+.4f", r->quality.diff.mid);
    text_number(num[RETURN_NOISE], "%.4g", noise);
    if (r->test.n == 0)
        return;
    const int seeds = r->test.n + r->lost;
    const struct interval share = share_interval(r->solved, seeds);
    snprintf(num[SOLVED], NUMBER_SIZE, "%d/%d", r->solved, seeds);
    text_number(num[SHARE_LOW], "%.2f", share.low);
    text_number(num[SHARE_HIGH], "%.2f", share.high);
}

static void add_row(struct text_table *t, const struct study_verdicts *v,
                    const struct study_entry *r, const struct fields *shown, bool people)
{
    char num[COLUMNS][NUMBER_SIZE] = {""};
    const char *text[COLUMNS], *row[COLUMNS];
    const bool timed = isfinite(r->log_time.low);
    const bool origin = r->row->baseline == 1 && !*r->row->control;

    for (int i = 0; i < COLUMNS; i++)
        text[i] = num[i];
    text_number(num[PARAMETERS], "%.0f",
                r->row->parameters == I64_EMPTY ? NAN : (double)r->row->parameters);
    text_number(num[RATE], "%g", r->lr);
    text_number(num[SEEDS], "%.0f", r->test.n);
    text_number(num[TEST], "%.4f", r->test.mean);
    text_number(num[SD], "%.4f", r->test.sd);
    text_number(num[WAY], "%.3f", no_minus(r->way.mean));
    text_number(num[WAY_LEAST], "%.3f", no_minus(r->way.least));
    text_number(num[WAY_MOST], "%.3f", no_minus(r->way.most));
    text_number(num[DIFF], "%+.4f", r->quality.diff.mid);
    text_number(num[LOW], "%+.4f", r->quality.diff.low);
    text_number(num[HIGH], "%+.4f", r->quality.diff.high);
    text_number(num[P], "%.2g", r->p);
    text_number(num[Q], "%.2g", r->q);
    text_number(num[SHOWN], "%.4f", r->shown_min);
    text_number(num[RETURN_SHOWN], "%.4f", r->shown_min);
    text_number(num[TIME], "%.3f", exp(r->log_time.mid));
    text_number(num[TIME_LOW], "%.3f", exp(r->log_time.low));
    text_number(num[TIME_HIGH], "%.3f", exp(r->log_time.high));
    text_number(num[NOISE], "%.4g", v->noise);
    put_returns(num, r, v->noise);
    text[REACHED] = isnan(r->way.mean) ? "" : study_reached(r) ? "yes" : "no";
    text[CORPUS] = r->row->corpus;
    text[SIZE] = r->row->size;
    if (r->row->budget_tokens != I64_EMPTY)
        snprintf(num[BUDGET], NUMBER_SIZE, "%lld", (long long)r->row->budget_tokens);
    text[CONTENDER] = r->row->contender;
    text[CONTROL] = r->row->control;
    text[SKELETON] = r->row->skeleton;
    text[VERDICT] = origin ? "" : study_verdict_name[r->verdict];
    const bool probably =
        r->time_verdict == VERDICT_PROBABLY_FASTER || r->time_verdict == VERDICT_PROBABLY_SLOWER;
    char time_verdict[48] = "";
    if (timed)
        snprintf(time_verdict, sizeof(time_verdict), "%s%s", verdict_name[r->time_verdict],
                 probably ? " (noisy)" : "");
    text[TIME_VERDICT] = time_verdict;
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
    text[NOTE] = note;
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
