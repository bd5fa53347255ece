/* SPDX-License-Identifier: MIT
 *
 * What a training learns of a text: the next token, tokens that are hidden (masked.h), or the target of
 * a pair (pairs.h). Each makes batches of it, and validates. */
#include "harness/learn/source/masked.h"
#include "train_texts.h"
#include "variants/model/lm/admin.h"

/* ---- what they share ---------------------------------------------------------------------- */

static size_t text_position(const struct trainer *t)
{
    const size_t segments = (t->text.n - 1) / (size_t)t->all_B / (size_t)t->L;

    return (size_t)t->optimizer.step % segments * (size_t)t->L;
}

/* Mean nats of the tokens of all sequences that have losses; of a text the new ones, the last of n.
 */
static double mean_of_new(const struct trainer *t, int n)
{
    const int scored = t->hidden ? t->hidden : n, from = t->hidden ? 0 : n - t->L;
    double sum = 0;

    for (int b = 0; b < t->B; b++)
        for (int i = from; i < scored; i++)
            sum += (double)t->nll[b * scored + i];
    ranks_sum(&t->ranks, &sum, 1);
    return sum / (t->all_B * (scored - from));
}

static void text_gradient(struct trainer *t, struct step_report *r)
{
    const int n = t->reads->batch(t);

    if (t->optimizer.step == 0)
        admin_profile(&t->lm, &t->engine, t->tokens, t->B, n);
    lm_forward(&t->lm, &t->engine, t->tokens, t->B, n, n, t->targets, t->nll);
    r->loss = mean_of_new(t, n);
    grad_sum_begin(&t->sum, &t->lm);
    lm_backward(&t->lm, &t->engine, t->tokens, t->targets, t->B, n);
    grad_sum_end(&t->sum);
    trainer_commit(t, &t->lm, t->L);
}

/* Sums over the tokens that this rank has scored; NAN: of what a text does not have. */
struct sums {
    double nll, floor, tokens, right;
    struct answers answers;
};

/* Means over the tokens of this rank, or of all. */
static struct validation means(const struct trainer *t, const struct sums *s, bool divided)
{
    double all[] = {s->nll,         s->floor,         s->tokens,        s->right,
                    s->answers.nll, s->answers.floor, s->answers.blind, s->answers.tokens};

    if (divided)
        ranks_sum(&t->ranks, all, (int)ARRAY_LEN(all));
    return (struct validation){.nll = all[0] / all[2],
                               .floor = all[1] / all[2],
                               .accuracy = all[3] / all[2],
                               .returned = NAN,
                               .returned_error = NAN,
                               .answers =
                                   answers_mean((struct answers){all[4], all[5], all[6], all[7]})};
}

/* ---- the next token ----------------------------------------------------------------------- */

/* Tokens that are run again in front of the one at `at`. */
static int past_at(const struct trainer *t, size_t at)
{
    return at < (size_t)t->past ? (int)at : t->past;
}

/* With an empty memory, or one of zeros, if the weights are of a model that begins so. */
static void begin_text(const struct trainer *t, struct lm *m, int B)
{
    struct err never;

    if (t->M > 0 && m->c.mem_start == MEM_START_ZEROS)
        CHECK(lm_zeros(m, &t->engine, B, &never) == OK); /* it was, when it was opened */
    else
        lm_forget(m);
}

/* Sequence b reads its own contiguous part of the text, one segment per step; at the end of the
 * parts all of them start again with empty memory. Before them stand those of their past. */
static int next_tokens(struct trainer *t)
{
    const size_t part = (t->text.n - 1) / (size_t)t->all_B, at = text_position(t);
    const int past = past_at(t, at), n = past + t->L;

    if (at == 0)
        begin_text(t, &t->lm, t->B);
    for (int b = 0; b < t->B; b++) {
        const size_t from = (size_t)(t->first + b) * part + at - (size_t)past;
        for (int i = 0; i < n; i++) {
            t->tokens[b * n + i] = text_token(&t->text, from + (size_t)i);
            t->targets[b * n + i] = text_token(&t->text, from + (size_t)i + 1);
        }
    }
    return n;
}

/* Nats of n tokens of the validation text after `at` under the true source; those that are answers
 * go to `a`, as t->nll has them. */
static double synthetic_floor(const struct trainer *t, size_t at, int n, struct source_memo *memo,
                              struct answers *a)
{
    const struct synthetic *const s = &t->valid_corpus.synthetic;
    double sum = 0;

    for (int i = 0; i < n; i++) {
        const size_t target = at + (size_t)i + 1;
        const size_t reach =
            t->opt->mem.v[0] != 0 && lm_reaches_all(&t->valid_lm)
                ? target
                : synthetic_reach(t->past > 0, t->lm.c.N, max_int(t->past, t->M), t->L, i);
        const double nll =
            synthetic_nll(s, t->valid.at, target, reach < target ? reach : target, memo);
        sum += nll;
        if (synthetic_answers(s, t->valid.at, target))
            answers_add(a, (double)t->nll[i], nll, synthetic_nll(s, t->valid.at, target, 0, memo));
    }
    return sum;
}

static struct validation validate_next(struct trainer *t)
{
    const size_t tokens = t->valid.n - 1;
    const bool divided = t->kind == MEM_RECOMPUTE; /* no window needs the one before */
    struct source_memo memo = {0};
    struct sums s = {.floor = t->valid_corpus.generated ? 0 : NAN, .right = NAN};
    int window = 0;

    lm_build_tables(&t->valid_lm, &t->engine);
    begin_text(t, &t->valid_lm, 1);
    for (size_t at = 0; at < tokens; at += (size_t)t->L, window++) {
        if (divided && window % t->ranks.count != t->ranks.index)
            continue;
        const int n = tokens - at < (size_t)t->L ? (int)(tokens - at) : t->L;
        const int past = past_at(t, at);
        for (int i = 0; i < past + n; i++)
            t->tokens[i] = text_token(&t->valid, at + (size_t)i - (size_t)past);
        for (int i = 0; i < n; i++)
            t->targets[i] = text_token(&t->valid, at + (size_t)i + 1);
        lm_forward(&t->valid_lm, &t->engine, t->tokens, 1, past + n, n, t->targets, t->nll);
        trainer_commit(t, &t->valid_lm, n);
        for (int i = 0; i < n; i++)
            s.nll += (double)t->nll[i];
        s.tokens += n;
        if (t->valid_corpus.generated)
            s.floor += synthetic_floor(t, at, n, &memo, &s.answers);
    }
    return means(t, &s, divided);
}

const struct train_kind train_next = {.open = train_texts_check_length,
                                      .batch = next_tokens,
                                      .gradient = text_gradient,
                                      .position = text_position,
                                      .validate = validate_next};

/* ---- hidden tokens ------------------------------------------------------------------------ */

static enum status open_hidden(struct trainer *t, struct err *e)
{
    t->hidden = masked_count(t->opt->mask_share, t->L);
    t->corpus.unit = masked_unit(t->corpus.unit);
    return train_texts_check_length(t, e);
}

static int next_hidden(struct trainer *t)
{
    const size_t part = (t->text.n - 1) / (size_t)t->all_B, at = text_position(t);

    lm_forget(&t->lm);
    for (int b = 0; b < t->B; b++) {
        const uint8_t *const from = t->text.at + (size_t)(t->first + b) * part + at;
        const uint64_t window =
            (uint64_t)t->optimizer.step * (uint64_t)t->all_B + (uint64_t)(t->first + b);
        int32_t *const tokens = t->tokens + b * t->L;
        for (int i = 0; i < t->L; i++)
            tokens[i] = from[i];
        masked_hide(t->hidden, t->opt->seed ^ MASKED_TRAINED, window, t->lm.c.V - 1, tokens, t->L,
                    t->places + b * t->hidden, t->targets + b * t->hidden);
    }
    t->lm.picked = t->places;
    t->lm.n_picked = t->hidden;
    return t->L;
}

/* Of each window the same tokens every time. */
static struct validation validate_hidden(struct trainer *t)
{
    const size_t tokens = t->valid.n - 1;
    struct lm *const m = &t->valid_lm;
    struct sums s = {.floor = NAN, .right = NAN};
    int window = 0;

    lm_build_tables(m, &t->engine);
    for (size_t at = 0; at < tokens; at += (size_t)t->L, window++) {
        if (window % t->ranks.count != t->ranks.index)
            continue;
        const int n = tokens - at < (size_t)t->L ? (int)(tokens - at) : t->L;
        const int hidden = masked_count(t->opt->mask_share, n);
        for (int i = 0; i < n; i++)
            t->tokens[i] = t->valid.at[at + (size_t)i];
        masked_hide(hidden, MASKED_SCORED, (uint64_t)window, m->c.V - 1, t->tokens, n, t->places,
                    t->targets);
        m->picked = t->places;
        m->n_picked = hidden;
        lm_forget(m);
        lm_forward(m, &t->engine, t->tokens, 1, n, n, t->targets, t->nll);
        for (int i = 0; i < hidden; i++)
            s.nll += (double)t->nll[i];
        s.tokens += hidden;
    }
    return means(t, &s, true);
}

const struct train_kind train_masked = {.open = open_hidden,
                                        .batch = next_hidden,
                                        .gradient = text_gradient,
                                        .position = text_position,
                                        .validate = validate_hidden};

/* ---- pairs -------------------------------------------------------------------------------- */

static enum status open_pairs(struct trainer *t, struct err *e)
{
    struct pairs valid;

    TRY(pairs_of(&t->pairs, &t->corpus, e));
    TRY(pairs_of(&valid, &t->valid_corpus, e));
    if (valid.source != t->pairs.source || valid.target != t->pairs.target)
        return fail(e, E_USAGE,
                    "--valid %s has other lengths than --corpus %s  -> use the same n and len",
                    t->valid_corpus.name, t->corpus.name);
    t->corpus.unit = PAIRS_UNIT;
    return train_texts_check_length(t, e);
}

static int next_pairs(struct trainer *t)
{
    const struct pairs *const p = &t->pairs;

    for (int b = 0; b < t->B; b++) {
        const size_t i = (size_t)t->optimizer.step * (size_t)t->all_B + (size_t)(t->first + b);
        pairs_read(p, t->text.at, i % p->n, t->source + b * p->source, t->tokens + b * t->L,
                   t->targets + b * t->L);
    }
    return t->L;
}

static struct validation validate_pairs(struct trainer *t)
{
    struct lm *const m = &t->valid_lm;
    struct pairs p = t->pairs;
    const bool logits = lm_has_logits(m);
    struct sums s = {.right = logits ? 0 : NAN};

    p.n = t->valid.n / (size_t)(p.source + p.target + 1);
    lm_build_tables(m, &t->engine);
    for (size_t i = (size_t)t->ranks.index; i < p.n; i += (size_t)t->ranks.count) {
        pairs_read(&p, t->valid.at, i, t->source, t->tokens, t->targets);
        lm_forward(m, &t->engine, t->tokens, 1, t->L, t->L, t->targets, t->nll);
        for (int k = 0; k < t->L; k++)
            s.nll += (double)t->nll[k];
        s.floor += pairs_floor(&p, &t->valid_corpus, i, t->nll, &s.answers);
        s.tokens += t->L;
        if (logits)
            s.right += pairs_right(m->logits, t->targets, t->L, m->c.V);
    }
    return means(t, &s, true);
}

const struct train_kind train_pairs = {.open = open_pairs,
                                       .batch = next_pairs,
                                       .gradient = text_gradient,
                                       .position = text_position,
                                       .validate = validate_pairs};
