/* SPDX-License-Identifier: MIT
 *
 * bench train: the loop around trainer_step, its table, its progress line, and when it saves. The
 * work is done in a child with the controlled environment of measuring children; Ctrl-C saves. */
#include "harness/learn/train/train.h"
#include "harness/command/child_requests.h"
#include "harness/command/commands.h"
#include "harness/learn/train/train_files.h"
#include "harness/learn/train/train_play.h"
#include "harness/learn/train/train_texts.h"
#include "harness/machine/env.h"
#include "harness/util/progress.h"
#include "harness/util/signals.h"

enum { PATH = 4200 };

/* Of the steps since the last report. */
struct sums {
    double loss, norm, entropy, returned, ponder;
    double wall_ns, cpu_ns;
    int episodes; /* of each sequence, that ended */
};

struct session_of_training {
    const struct options *opt;
    const struct outcome *outcome;
    struct trainer t;
    struct table_file table;
    const volatile int *stop;
    int begun_at; /* step */
    int64_t start_ns, report_ns;
    int report_step;
    struct sums sums;
    struct clocks clocks;
    double random, optimum; /* of a task */
    bool exact;             /* the optimum is, or a bound */
    struct progress_line show;
    struct ranks ranks;
};

/* What a training on a text has otherwise than one on a task. */
struct outcome {
    const char *counted;                                 /* what its speed is of */
    int64_t (*until)(const struct trainer *t, int step); /* tokens of the first steps */
    void (*put)(struct train_row *row, const struct session_of_training *s, int steps,
                const struct validation *valid); /* NULL = not validated */
    void (*say)(char *line, size_t size, const struct session_of_training *s,
                const struct train_row *row);
};

/* ---- options ------------------------------------------------------------------------------ */

/* Existing files are overwritten only with --force. */
static enum status check_files(const struct options *o, struct err *e)
{
    const bool exists = access(o->ckpt, F_OK) == 0;

    if (exists && !o->resume && !o->force)
        return fail(
            e, E_IO,
            "checkpoint %s exists  -> continue it with --resume, or overwrite it with --force",
            o->ckpt);
    if (!exists && o->resume)
        return fail(e, E_IO, "checkpoint %s does not exist  -> train without --resume", o->ckpt);
    return file_may_replace(o->ckpt, e);
}

/* --resume: what is not written again is as it was when the training began. */
static enum status take_options(struct options *o, struct err *e)
{
    if (o->resume_dir)
        return fail(e, E_USAGE,
                    "train --resume takes no value  -> write train --ckpt %.200s --resume",
                    o->resume_dir);
    if (!o->resume || !o->ckpt)
        return OK;
    TRY(check_files(o, e));
    char *const stored = trainer_options(o->ckpt), *const best = strrchr(o->ckpt, '.');
    NEED(stored);
    if (!*stored && best && strcmp(best, ".best") == 0) {
        free(stored);
        return fail(e, E_IO, "%.300s has no state of the optimiser  -> resume --ckpt %.*s", o->ckpt,
                    (int)(best - o->ckpt), o->ckpt);
    }
    const enum status st = options_continue(o, stored, CONTINUED_TRAINING, e);
    free(stored);
    TRY(st);
    cpu_limit((enum isa)o->max_isa);
    return lookup_impl(o, e);
}

/* ---- the table and the screen ------------------------------------------------------------- */

/* Rank 0 prints and writes files. */
static bool writes(const struct session_of_training *s) { return s->ranks.index == 0; }

static double seconds_since(int64_t ns) { return (double)(clock_wall_ns() - ns) * 1e-9; }

/* Time of the whole run, earlier sessions included. */
static double trained_s(const struct session_of_training *s)
{
    return s->t.trained_s + seconds_since(s->start_ns);
}

/* By the clock it is rank 0's. */
static double progress_of(const struct session_of_training *s)
{
    const struct options *o = s->opt;

    return o->minutes > 0 ? trained_s(s) / (60 * o->minutes)
                          : (double)s->t.optimizer.step / (double)o->steps;
}

/* "step 250/1500", or without the total if the clock decides. */
static void step_text(const struct session_of_training *s, char *buf, size_t size)
{
    if (s->opt->minutes > 0)
        snprintf(buf, size, "step %d", s->t.optimizer.step);
    else
        snprintf(buf, size, "step %d/%d", s->t.optimizer.step, s->opt->steps);
}

/* Drop fields, which two blanks separate, from the end until the line fits. */
static void keep_fields(char *line, int columns)
{
    while (terminal_columns(line) > columns) {
        char *last = NULL;
        for (char *at = line; (at = strstr(at, "  ")); at += 2)
            last = at;
        if (!last)
            break;
        *last = '\0';
    }
    terminal_cut(line, columns);
}

/* A line that stays on the screen: for validations and what --log-every asks for, and on paper for
 * every report. */
static void print_report(struct session_of_training *s, const struct train_row *row)
{
    const enum progress how = s->show.how;
    const bool validated = !isnan(row->valid_nats) || !isnan(row->valid_return);
    char line[512];

    if (how == PROGRESS_NONE ||
        (how == PROGRESS_BAR && !validated && !options_given(s->opt, "log-every")))
        return;
    const double done = progress_of(s), left = trained_s(s) * (1 - done) / fmax(1e-9, done);
    step_text(s, line, sizeof(line));
    s->outcome->say(line, sizeof(line), s, row);
    text_append(line, sizeof(line), "  %s %s/s  %s left", units_rate(row->tokens_per_s).s,
                s->outcome->counted, duration_text(fmax(0, left)).s);
    if (!isnan(row->entropy_nats))
        text_append(line, sizeof(line), "  entropy %.3f", row->entropy_nats);
    text_append(line, sizeof(line), "  norm %.2f  lr %.2e", row->grad_norm, row->lr);
    terminal_line_clear(&s->show.line);
    if (how == PROGRESS_BAR)
        keep_fields(line, terminal_width(STDERR_FILENO));
    fprintf(stderr, "%s\n", line);
}

/* Between reports, on a terminal. */
static void show_step(struct session_of_training *s)
{
    const int steps = s->t.optimizer.step - s->report_step;
    char step[48];

    if (s->show.how != PROGRESS_BAR || steps == 0)
        return;
    step_text(s, step, sizeof(step));
    progress_at(&s->show, progress_of(s), "%s  loss %.4f%s%s", step, s->sums.loss / steps,
                s->t.play ? "" : " nats/", s->t.play ? "" : s->t.corpus.unit);
}

/* Cost of adding the gradients since the last row. */
static void put_sums(struct train_row *row, struct grad_sum *sum)
{
    if (sum->steps > 0) {
        row->comm_ns = sum->wait_ns / sum->steps;
        row->overlap_pct = 100 * (1 - sum->wait_ns / sum->between_ns);
        row->grad_bytes = sum->bytes / sum->steps;
    }
    sum->wait_ns = sum->between_ns = sum->bytes = 0;
    sum->steps = 0;
}

static void put_losses(struct train_row *row, const struct session_of_training *s, int steps,
                       const struct validation *valid)
{
    row->loss_nats = s->sums.loss / steps;
    row->bits_per_token = row->loss_nats / log(2);
    if (!valid)
        return;
    row->valid_nats = valid->nll;
    row->valid_floor_nats = valid->floor;
    row->valid_accuracy = valid->accuracy;
    row->valid_answer_nats = valid->answers.nll;
    row->valid_answer_floor_nats = valid->answers.floor;
}

static void say_losses(char *line, size_t size, const struct session_of_training *s,
                       const struct train_row *row)
{
    text_append(line, size, "  loss %.4f", row->loss_nats);
    if (!isnan(row->valid_nats))
        text_append(line, size, "  valid %.4f", row->valid_nats);
    if (!isnan(row->valid_answer_nats))
        text_append(line, size, " answers %.4f", row->valid_answer_nats);
    text_append(line, size, " nats/%s", s->t.corpus.unit);
    if (!isnan(row->valid_accuracy))
        text_append(line, size, "  %.1f %% right", 100 * row->valid_accuracy);
}

static int64_t tokens_until(const struct trainer *t, int step)
{
    return (int64_t)step * t->all_B * t->L;
}

static const struct outcome of_text = {
    .counted = "tokens", .until = tokens_until, .put = put_losses, .say = say_losses};

static void put_returns(struct train_row *row, const struct session_of_training *s, int steps,
                        const struct validation *valid)
{
    enum { CI95_SD_X100 = 196 };

    row->task_loss = s->sums.loss / steps;
    row->entropy_nats = s->sums.entropy / steps;
    row->random_return = s->random;
    row->optimum_return = s->optimum;
    if (s->sums.episodes > 0)
        row->task_return = s->sums.returned / s->sums.episodes;
    if (!valid)
        return;
    row->valid_return = valid->returned;
    row->valid_return_ci95_low = valid->returned - CI95_SD_X100 / 100.0 * valid->returned_error;
    row->valid_return_ci95_high = valid->returned + CI95_SD_X100 / 100.0 * valid->returned_error;
}

static void say_returns(char *line, size_t size, const struct session_of_training *s,
                        const struct train_row *row)
{
    if (!isnan(row->task_return))
        text_append(line, size, "  return %.3f", row->task_return);
    if (!isnan(row->valid_return))
        text_append(line, size, "  valid %.3f [%.3f, %.3f], random %.3g, %s %.3g",
                    row->valid_return, row->valid_return_ci95_low, row->valid_return_ci95_high,
                    row->random_return, s->exact ? "optimum" : "bound", row->optimum_return);
}

static const struct outcome of_task = {
    .counted = "steps", .until = play_frames, .put = put_returns, .say = say_returns};

static enum status report(struct session_of_training *s, const struct step_report *last,
                          const struct validation *valid, struct err *e)
{
    const struct trainer *t = &s->t;
    const int steps = t->optimizer.step - s->report_step;
    struct train_row row = train_row_empty();

    text_put(row.variant, sizeof(row.variant), t->lm.c.variant->name);
    text_put(row.backend, sizeof(row.backend), t->engine.backend->name);
    row.threads = t->engine.threads;
    row.step = t->optimizer.step;
    row.tokens = s->outcome->until(t, t->optimizer.step);
    s->outcome->put(&row, s, steps, valid);
    row.grad_norm = s->sums.norm / steps;
    row.ponder_steps = s->sums.ponder / steps;
    row.lr = last->lr;
    row.tokens_per_s =
        (double)(row.tokens - s->outcome->until(t, s->report_step)) / seconds_since(s->report_ns);
    row.ranks = s->ranks.count;
    row.nodes = s->ranks.nodes;
    put_sums(&row, &s->t.sum);
    row.cpu_pct = 100 * s->sums.cpu_ns / s->sums.wall_ns;
    print_report(s, &row);
    s->sums = (struct sums){0};
    s->report_step = t->optimizer.step;
    s->report_ns = clock_wall_ns();
    return writes(s) ? table_write(&s->table, &row, e) : OK;
}

/* ---- the loop ----------------------------------------------------------------------------- */

static bool finished(const struct session_of_training *s)
{
    const struct options *o = s->opt;
    const int step = s->t.optimizer.step;

    return *s->stop || (o->stop_at && step >= o->stop_at) ||
           (o->minutes > 0 ? trained_s(s) >= 60 * o->minutes : step >= o->steps);
}

static enum status validate(struct session_of_training *s, const struct step_report *last,
                            struct err *e)
{
    const struct validation valid = trainer_validate(&s->t);

    TRY(report(s, last, &valid, e));
    if (!trainer_agrees(&s->t))
        return fail(e, E_WRONG,
                    "ranks have different weights at step %d  -> use machines of one kind, or "
                    "--max-isa avx2",
                    s->t.optimizer.step);
    if (valid.nll < s->t.best_valid) {
        s->t.best_valid = valid.nll;
        if (writes(s))
            TRY(trainer_save_best(&s->t, s->opt->ckpt, e));
    }
    TRY(trainer_save(&s->t, s->opt->ckpt, trained_s(s), e));
    s->report_ns = clock_wall_ns();
    return OK;
}

static void add_step(struct sums *s, const struct step_report *last, const struct clock_span *span)
{
    s->wall_ns += span->wall_ns;
    s->cpu_ns += span->cpu_ns;
    s->loss += last->loss;
    s->norm += last->grad_norm;
    s->entropy += last->entropy;
    s->ponder += last->ponder;
    if (!isnan(last->returned)) {
        s->returned += last->returned;
        s->episodes++;
    }
}

static enum status loop(struct session_of_training *s, struct err *e)
{
    /* Asked once per step: a condition that ends the training must also have saved it. */
    bool end = ranks_any(&s->ranks, finished(s));
    while (!end) {
        double progress = progress_of(s);
        ranks_from_first(&s->ranks, &progress, sizeof(progress));
        clocks_start(&s->clocks);
        const struct step_report last = trainer_step(&s->t, progress);
        const struct clock_span span = clocks_stop(&s->clocks);
        add_step(&s->sums, &last, &span);
        show_step(s);
        if (!isfinite(last.loss)) {
            const bool saved = access(s->opt->ckpt, F_OK) == 0; /* a new training has removed it */
            return fail(e, E_WRONG, "loss is %g at step %d  -> lower --lr%s%s", last.loss,
                        s->t.optimizer.step, saved ? "; last saved: " : "",
                        saved ? s->opt->ckpt : "");
        }
        end = ranks_any(&s->ranks, finished(s));
        if (end || s->t.optimizer.step % s->opt->eval_every == 0)
            TRY(validate(s, &last, e));
        else if (s->t.optimizer.step % s->opt->log_every == 0)
            TRY(report(s, &last, NULL, e));
    }
    return OK;
}

static enum status open_files(struct session_of_training *s, struct err *e)
{
    const struct options *const o = s->opt;

    TRY(trainer_open_ranked(&s->t, o, &s->ranks, e));
    if (writes(s))
        TRY(trainer_clear(o->ckpt, o->resume, e));
    return train_texts_keep(&s->t, o->ckpt, e);
}

static enum status take_up(struct session_of_training *s, struct err *e)
{
    if (s->opt->resume)
        TRY(trainer_load(&s->t, s->opt->ckpt, e));
    return writes(s) ? trainer_table(&s->table, s->opt, s->t.optimizer.step, e) : OK;
}

static void announce(const struct session_of_training *s)
{
    const struct trainer *const t = &s->t;

    text_line(stderr, "train %s on %s: %s parameters%s, %d x %d tokens a step, %s, %d threads%s",
              t->lm.c.variant->name, t->corpus.name,
              units_count((double)t->arena.part[PART_WEIGHTS] / sizeof(float)).s,
              trainer_frozen(t).s, t->all_B, t->L, t->engine.backend->name, t->engine.threads,
              s->ranks.count > 1 ? " a rank" : "");
    if (s->ranks.count > 1)
        fprintf(stderr, "%d ranks on %d node%s\n", s->ranks.count, s->ranks.nodes,
                plural(s->ranks.nodes));
}

static enum status train(struct session_of_training *s, struct err *e)
{
    const struct options *o = s->opt;

    TRY(ranks_agree(&s->ranks, open_files(s, e), e));
    TRY(ranks_agree(&s->ranks, take_up(s, e), e));
    CHECK(s->t.lm.c.variant); /* a model was opened, on all ranks */
    if (!o->quiet && writes(s))
        announce(s);
    s->outcome = &of_text;
    if (s->t.play) {
        s->outcome = &of_task;
        s->random = task_random(&s->t.play->player.task);
        s->optimum = task_optimum(&s->t.play->player.task, &s->exact);
    }
    s->start_ns = s->report_ns = clock_wall_ns();
    s->begun_at = s->report_step = s->t.optimizer.step;
    s->show.how =
        writes(s) ? terminal_progress((enum progress)o->progress, o->quiet) : PROGRESS_NONE;
    progress_begin(&s->show, 0, "training");
    s->show.before = progress_of(s);
    enum status st = clocks_open(&s->clocks, s->t.engine.threads, e);
    if (st == OK)
        st = loop(s, e);
    clocks_close(&s->clocks);
    progress_end(&s->show);
    const enum status closed = table_close(&s->table, st == OK ? e : &(struct err){""});
    return st == OK ? closed : st;
}

static void tell_end(const struct session_of_training *s, int step)
{
    const struct options *const o = s->opt;

    if (step > s->begun_at)
        fprintf(stderr, "wrote %s (step %d), %s.best (best), %s.opt, %s.train.csv\n", o->ckpt, step,
                o->ckpt, o->ckpt, o->ckpt);
    else if (o->minutes <= 0)
        text_line(stderr, "%d of %d steps are done  -> train on with --resume --steps N", step,
                  o->steps);
}

/* The lock is the child's, which may outlive a killed parent. */
static enum status lock_files(struct lock *l, const struct options *o, struct err *e)
{
    TRY(trainer_lock(l, o->ckpt, e));
    return check_files(o, e);
}

static enum status train_here(const struct options *o, const struct ranks *ranks, struct err *e)
{
    struct session_of_training *const s = need_room(1, sizeof(*s));
    struct lock lock = {0};

    s->opt = o;
    s->ranks = *ranks;
    s->stop = signals_watch();
    enum status st = ranks_agree(ranks, writes(s) ? lock_files(&lock, o, e) : OK, e);
    if (st == OK)
        st = train(s, e);
    const int step = s->t.optimizer.step;
    trainer_close(&s->t);
    lock_release(&lock);
    if (st == OK && !o->quiet && writes(s))
        tell_end(s, step);
    if (st == OK && *s->stop)
        st = fail(e, E_INTERRUPTED, "interrupted");
    free(s);
    return st;
}

/* ---- parent and child ---------------------------------------------------------------------- */

/* Complete the options and check them. */
static enum status settle(struct options *o, struct err *e)
{
    struct topo *topo = NULL;

    TRY(take_options(o, e));
    TRY(topo_open(&topo, NULL, e));
    const int threads = env_threads(topo);
    topo_close(topo);
    return train_settle(o, threads, e);
}

static enum status settle_and_train(struct options *o, struct err *e)
{
    cpu_limit((enum isa)o->max_isa);
    TRY(settle(o, e));
    return train_here(o, &(struct ranks){.count = 1, .nodes = 1}, e);
}

static enum status obey_train(struct server *s, const char *words, struct err *e)
{
    struct options o;
    enum status st = options_parse_again(&o, words, e);

    if (st == OK)
        st = settle_and_train(&o, e);
    options_free(&o);
    return st == OK ? protocol_write(&s->protocol, e, "end") : st;
}

const struct request request_train = {"train", obey_train};

/* Is there a checkpoint to go on from? Not the one that --force is about to remove. */
static bool can_resume(const struct options *o, const struct stat *before)
{
    struct stat now;

    return stat(o->ckpt, &now) == 0 && (o->resume || now.st_ino != before->st_ino ||
                                        now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
                                        now.st_mtim.tv_nsec != before->st_mtim.tv_nsec);
}

static void no_fields(void *arg, const char *name, const char *value) {}

enum status training_run(const struct options *o, const struct child_setup *setup, struct err *e)
{
    char *const line = options_command_line(o);
    const enum status st = child_ask_to_the_end(setup, &request_train, line, no_fields, NULL, e);

    free(line);
    return st;
}

static enum status train_in_child(const struct options *o, const struct stat *before, struct err *e)
{
    struct child_setup setup = {0};
    enum status st = child_setup_open(&setup, o, e);

    if (st == OK)
        st = training_run(o, &setup, e);
    if (st == E_CHILD) {
        const struct err why = *e;
        fail(e, st, "training was %.500s  -> %s", why.msg,
             can_resume(o, before) ? "go on with --resume"
                                   : "nothing was saved yet: start it again");
    }
    child_setup_close(&setup);
    return st;
}

static void say_how_to_resume(const struct options *o)
{
    fputs("resume with: ", stderr);
    options_print_resume(stderr, o, CONTINUED_TRAINING, o->ckpt);
    fputc('\n', stderr);
}

/* In the process that the launcher started: a child would not be one of its ranks. Whoever fails
 * says so and ends all. E_CHILD: another does; E_WRONG: all have these numbers, and rank 0 says it.
 */
static enum status train_ranked(struct options *o, struct ranks *r, int *code, struct err *e)
{
    const enum status st = train_here(o, r, e);

    if (st == E_INTERRUPTED && r->index == 0)
        say_how_to_resume(o);
    if (st == OK || st == E_INTERRUPTED)
        return st;
    *code = exit_of(st);
    if (st == E_CHILD || (st == E_WRONG && r->index > 0))
        return OK;
    report_error(st, e);
    fflush(NULL);
    ranks_abort(r, *code);
    return OK;
}

static enum status train_alone(struct options *opt, struct err *e)
{
    struct stat before = {0}; /* all zero: there is none */

    (void)stat(opt->ckpt, &before);
    const enum status st = opt->isolate == ISOLATE_NONE
                               ? train_here(opt, &(struct ranks){.count = 1, .nodes = 1}, e)
                               : train_in_child(opt, &before, e);
    if (st == E_INTERRUPTED && can_resume(opt, &before))
        say_how_to_resume(opt);
    return st;
}

enum status cmd_train(struct options *opt, int *code, struct err *e)
{
    struct ranks ranks;
    enum status st = ranks_open(&ranks, e);

    if (st == OK)
        st = settle(opt, e);
    if (st != OK && ranks.index > 0) { /* rank 0 says it */
        *code = exit_of(st);
        st = OK;
    } else if (st == OK)
        st = ranks.count > 1 ? train_ranked(opt, &ranks, code, e) : train_alone(opt, e);
    ranks_close(&ranks);
    return st;
}
