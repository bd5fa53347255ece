/* SPDX-License-Identifier: MIT
 *
 * The results of a job of a study. */
#include "study_list.h"

#include "harness/learn/score/perplexity.h"
#include "harness/learn/score/score_child.h"
#include "harness/learn/train/train_files.h"
#include "harness/table/run.h"

/* Of all steps; NAN where a row does not tell. */
static double cpu_pct(const struct rows *curve)
{
    const struct train_row *const r = curve->row;
    double wall_s = 0, cpu_s = 0;

    for (size_t i = 0; i < curve->n; i++) {
        const int64_t tokens = r[i].tokens - (i > 0 ? r[i - 1].tokens : 0);
        wall_s += (double)tokens / r[i].tokens_per_s;
        cpu_s += (double)tokens / r[i].tokens_per_s * r[i].cpu_pct;
    }
    return cpu_s / wall_s;
}

enum status study_read_curve(struct study_row *row, const char *ckpt, struct err *e)
{
    char path[FILE_PATH];
    struct rows curve;

    if (snprintf(path, sizeof(path), "%s.%s", ckpt, tables[TABLE_TRAIN].file) >= FILE_PATH)
        return file_fail(e, "read", ckpt, ENAMETOOLONG);
    TRY(table_read(&curve, &tables[TABLE_TRAIN], path, e));
    row->cpu_pct = cpu_pct(&curve);
    if (curve.n > 0) {
        const struct train_row *const last = (const struct train_row *)curve.row + curve.n - 1;
        row->tokens = last->tokens;
        row->train_nats = last->loss_nats;
        row->valid_nats = last->valid_nats;
        row->valid_return = last->valid_return;
        row->random_return = last->random_return;
        row->optimum_return = last->optimum_return;
        if (isfinite(last->valid_return))
            row->solved =
                play_solved(last->valid_return, last->random_return, last->optimum_return);
    }
    rows_free(&curve);
    row->train_s = trainer_saved_s(ckpt);
    return OK;
}

static enum status read_score(struct session *s, struct study_row *row, struct err *e)
{
    struct rows scores;
    enum status st = run_table(&scores, s->dir.path, TABLE_PERPLEXITY, e);
    const struct perplexity_row *const r = scores.row;

    for (size_t i = 0; i < scores.n && st == OK; i++) {
        if (strcmp(r[i].case_id, row->test_case_id) != 0)
            continue;
        if (strcmp(r[i].status, row_status_name[ROW_OK]) != 0)
            st = fail(e, E_CHILD, "its score: %.500s", r[i].status_detail);
        text_put(row->unit, TEXT_SIZE, r[i].unit);
        row->test_seq_tokens = r[i].seq_tokens;
        row->test_mem_tokens = r[i].mem_tokens;
        row->test_tokens = r[i].tokens_scored;
        row->test_nats = r[i].nll_nats_per_token;
        row->test_floor_nats = log(r[i].ppl_floor);
        row->test_answer_nats = r[i].answer_nll_nats;
        row->test_answer_floor_nats = r[i].answer_floor_nats;
        row->test_answer_blind_nats = r[i].answer_blind_nats;
    }
    rows_free(&scores);
    return st;
}

static enum status score_task(struct session *s, const struct study *study,
                              const struct study_job *j, struct study_row *row, const char *ckpt,
                              struct err *e)
{
    char *const line = study_eval_line(study, j, ckpt);
    struct play_score p;
    const enum status st = play_in_child(&p, line, &s->setup, e);

    free(line);
    if (st != OK)
        return st;
    text_put(row->unit, TEXT_SIZE, "step");
    row->test_episodes = p.episodes;
    row->test_return = p.mean;
    row->test_return_ci95_low = p.low;
    row->test_return_ci95_high = p.high;
    row->solved = play_solved(p.mean, p.random, p.optimum);
    return OK;
}

/* What single bytes tell about the compared text. */
static enum status put_unigram(struct study_row *row, const struct study_job *j, int64_t bytes,
                               struct err *e)
{
    const struct study_corpus *const of = j->model->corpus;
    const bool own = *of->test;
    size_t count[256] = {0}, from = 0;
    struct corpus text;
    double sum = 0;

    if (synthetic_named(of->train) || j->model->o.tokens || j->model->o.tokenizer)
        return OK;
    TRY(corpus_open(&text, own ? of->test : of->train, SPLIT_TEST, own ? (size_t)bytes : 0, e));
    if (!own) { /* its last twentieth */
        from = text.n - text.n / 20;
        text.n = from + (size_t)fmin((double)(text.n - from), VALID_TOKENS);
    }
    for (size_t i = from; i < text.n; i++)
        count[text.bytes[i]]++;
    for (int i = 0; i < 256; i++)
        sum += count[i] ? (double)count[i] * log((double)count[i]) : 0;
    row->test_unigram_nats = log((double)(text.n - from)) - sum / (double)(text.n - from);
    corpus_close(&text);
    return OK;
}

enum status study_score(struct session *s, const struct study *study, const struct study_job *j,
                        struct study_row *row, const char *ckpt, struct err *e)
{
    if (j->model->corpus->is_task)
        return score_task(s, study, j, row, ckpt, e);
    if (!*j->model->corpus->test) {
        row->test_nats = row->valid_nats;
        return put_unigram(row, j, 0, e);
    }

    char *const line = study_eval_line(study, j, ckpt), first[17];
    struct options o = {0};
    enum status st = options_parse_again(&o, line, e);

    if (st == OK)
        st = perplexity_rows(s, &o, first, e);
    if (st == OK) {
        text_put(row->test_case_id, TEXT_SIZE, first);
        st = read_score(s, row, e);
    }
    if (st == OK)
        st = put_unigram(row, j, o.bytes, e);
    options_free(&o);
    free(line);
    return st;
}
