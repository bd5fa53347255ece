/* SPDX-License-Identifier: MIT
 *
 * bench eval: perplexity of one checkpoint on one text. */
#include "harness/command/commands.h"
#include "harness/export/export.h"
#include "harness/learn/score/perplexity.h"
#include "harness/learn/score/play_score.h"

/* Scores have columns of their own: --columns chooses them in other formats. */
static enum status print_document(const struct session *s, struct err *e)
{
    struct run run;
    enum status st = run_read(&run, s->dir.path, e);

    if (st == OK)
        st = s->console.format == FORMAT_JSON ? export_json(stdout, &run, &(struct names){0}, e)
                                              : export_run(stdout, EXPORT_FOM, &run, e);
    run_free(&run);
    return st;
}

/* ---- of a task ---------------------------------------------------------------------------- */

static void add_score(struct text_table *t, const struct play_score *s)
{
    text_table_cell(t, "%s", s->task);
    text_table_cell(t, "%s", s->variant);
    text_table_cell(t, "%s", s->backend);
    text_table_number(t, "%.6g", s->step < 0 ? NAN : (double)s->step);
    text_table_cell(t, "%.6g", (double)s->episodes);
    text_table_number(t, "%.6g", s->mean);
    text_table_number(t, "%.6g", s->low);
    text_table_number(t, "%.6g", s->high);
    text_table_number(t, "%.6g", s->random);
    text_table_number(t, "%.6g", s->optimum);
    text_table_cell(t, "%s", s->exact ? "exact" : "bound");
}

static enum status eval_task(const struct options *o, struct err *e)
{
    static const struct text_table_column columns[] = {
        {.name = "task"},     {.name = "variant"}, {.name = "backend"},    {.name = "step"},
        {.name = "episodes"}, {.name = "return"},  {.name = "ci95_low"},   {.name = "ci95_high"},
        {.name = "random"},   {.name = "optimum"}, {.name = "optimum_is"},
    };
    static const char *const taken[] = {"ckpt", "episodes", "backend",    "threads",
                                        "pin",  "max-isa",  "huge-pages", NULL};
    struct text_table t = {.column = columns, .columns = ARRAY_LEN(columns)};
    struct play_score score;

    t.quiet = o->quiet;
    TRY(options_refuse(o, "eval of a task", taken, e));
    TRY(text_table_select(&t, &o->columns, e));
    const enum status st = play_score(&score, o, e);
    if (st == E_INTERRUPTED)
        report_error(st, e);
    TRY(st);
    add_score(&t, &score);
    text_table_print(stdout, &t, (enum format)o->format);
    text_table_free(&t);
    return OK;
}

enum status cmd_eval(struct options *opt, int *code, struct err *e)
{
    char task[KEYED_TEXT];

    TRY(session_continue(opt, e));
    play_task_of(opt->ckpt, task);
    if (*task)
        return eval_task(opt, e);
    if (options_typed(opt, "episodes"))
        return fail(e, E_USAGE,
                    "--episodes is of checkpoints that have learnt a task  -> leave it out");
    TRY(perplexity_presets(opt, e));
    struct session *const s = need_room(1, sizeof(*s));
    enum status st = session_open(s, opt, e);
    if (st == OK && opt->format == FORMAT_JSON && opt->columns.n > 0)
        st = fail(e, E_USAGE,
                  "--columns does not choose columns of --format json  -> use --format jsonl");
    if (st == OK)
        st = perplexity_eval(s, e);
    if (st == OK && console_at_end(s->console.format))
        st = print_document(s, e);
    *code = s->started ? session_exit_code(s, st) : exit_of(st);
    session_close(s);
    free(s);
    return st;
}
