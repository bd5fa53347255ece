/* SPDX-License-Identifier: MIT
 *
 * The table of a study for people and as CSV: a row a contender at a place, with its difference,
 * interval, verdict and notes. study_verdict.c decides; nothing is computed here. */
#include "study_answer.h"

enum {
    CORPUS,
    SIZE,
    CONTENDER,
    CONTROL,
    SKELETON,
    BUDGET,
    PARAMETERS,
    RATE,
    SEEDS,
    TEST,
    SD,
    WAY,
    WAY_LEAST,
    WAY_MOST,
    REACHED,
    DIFF,
    LOW,
    HIGH,
    P,
    Q,
    SHOWN,
    VERDICT,
    TIME,
    TIME_LOW,
    TIME_HIGH,
    TIME_VERDICT,
    NOISE,
    NOTE,
    /* of tasks, in place of those of losses */
    RETURN,
    RETURN_LOW,
    RETURN_HIGH,
    RETURN_SD,
    RANDOM,
    OPTIMUM,
    SOLVED,
    SHARE_LOW,
    SHARE_HIGH,
    RETURN_GAIN,
    RETURN_SHOWN,
    RETURN_NOISE,
    COLUMNS
};

static const int of_texts[] = {
    CORPUS, SIZE,    CONTENDER, CONTROL,  SKELETON,  BUDGET,       PARAMETERS, RATE, SEEDS, TEST,
    SD,     WAY,     WAY_LEAST, WAY_MOST, REACHED,   DIFF,         LOW,        HIGH, P,     Q,
    SHOWN,  VERDICT, TIME,      TIME_LOW, TIME_HIGH, TIME_VERDICT, NOISE,      NOTE};
static const int of_tasks[] = {CORPUS,     SIZE,         CONTENDER,    CONTROL, SKELETON,
                               BUDGET,     PARAMETERS,   RATE,         SEEDS,   RETURN,
                               RETURN_LOW, RETURN_HIGH,  RETURN_SD,    RANDOM,  OPTIMUM,
                               WAY,        WAY_LEAST,    WAY_MOST,     SOLVED,  SHARE_LOW,
                               SHARE_HIGH, RETURN_GAIN,  LOW,          HIGH,    P,
                               Q,          RETURN_SHOWN, VERDICT,      TIME,    TIME_LOW,
                               TIME_HIGH,  TIME_VERDICT, RETURN_NOISE, NOTE};

static const struct text_table_column columns[COLUMNS] = {
    [CORPUS] = {.name = "corpus"},
    [SIZE] = {.name = "size", .spare = 1},
    [BUDGET] = {.name = "budget_tokens", .number = true},
    [CONTENDER] = {.name = "contender"},
    [CONTROL] = {.name = "control"},
    [SKELETON] = {.name = "skeleton", .spare = 2},
    [PARAMETERS] = {.name = "parameters", .number = true, .spare = 4},
    [RATE] = {.name = "lr", .number = true, .spare = 4},
    [SEEDS] = {.name = "seeds", .number = true, .spare = 2},
    [TEST] = {.name = "test_nats", .number = true, .spare = 1},
    [SD] = {.name = "sd_nats", .number = true, .spare = 3},
    [WAY] = {.name = "way", .number = true},
    [WAY_LEAST] = {.name = "way_least", .number = true, .spare = 3},
    [WAY_MOST] = {.name = "way_most", .number = true, .spare = 3},
    [REACHED] = {.name = "reached", .spare = 1},
    [DIFF] = {.name = "diff_nats", .number = true},
    [LOW] = {.name = "ci95_low", .number = true},
    [HIGH] = {.name = "ci95_high", .number = true},
    [P] = {.name = "p_holm", .number = true, .spare = 3},
    [Q] = {.name = "q", .number = true, .spare = 4},
    [SHOWN] = {.name = "shown_min_nats", .number = true, .spare = 4},
    [VERDICT] = {.name = "verdict"},
    [TIME] = {.name = "time_ratio", .number = true, .spare = 1},
    [TIME_LOW] = {.name = "time_low", .number = true, .spare = 2},
    [TIME_HIGH] = {.name = "time_high", .number = true, .spare = 2},
    [TIME_VERDICT] = {.name = "time_verdict", .spare = 1},
    [NOISE] = {.name = "noise_nats", .number = true, .wide = true},
    [NOTE] = {.name = "note", .least = 12, .spare = 2},
    [RETURN] = {.name = "return", .number = true},
    [RETURN_LOW] = {.name = "return_low", .number = true, .spare = 2},
    [RETURN_HIGH] = {.name = "return_high", .number = true, .spare = 2},
    [RETURN_SD] = {.name = "sd", .number = true, .spare = 3},
    [RANDOM] = {.name = "random", .number = true, .spare = 2},
    [OPTIMUM] = {.name = "optimum", .number = true, .spare = 2},
    [SOLVED] = {.name = "solved"},
    [SHARE_LOW] = {.name = "solved_low", .number = true, .spare = 3},
    [SHARE_HIGH] = {.name = "solved_high", .number = true, .spare = 3},
    [RETURN_GAIN] = {.name = "gain", .number = true},
    [RETURN_SHOWN] = {.name = "shown_min", .number = true, .spare = 4},
    [RETURN_NOISE] = {.name = "noise", .number = true, .wide = true},
};

/* Those of a kind of study. */
struct fields {
    const int *field;
    int n;
};

static struct fields fields_of(bool tasks)
{
    return tasks ? (struct fields){of_tasks, ARRAY_LEN(of_tasks)}
                 : (struct fields){of_texts, ARRAY_LEN(of_texts)};
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
                    const struct study_entry *r, struct fields shown, bool people)
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
    for (int i = 0; i < shown.n; i++)
        row[i] = text[shown.field[i]];
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
        column[i] = columns[shown.field[i]];
        column[i].wide = column[i].wide || (shown.field[i] == CONTROL && !v->controls) ||
                         (shown.field[i] == SKELETON && !skeletons) ||
                         (shown.field[i] == BUDGET && !budgets);
    }
    for (int i = 0; i < v->n; i++)
        add_row(&t, v, &v->v[i], shown, people);
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
