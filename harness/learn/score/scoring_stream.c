/* SPDX-License-Identifier: MIT
 *
 * Next tokens: the windows of each document, whose past is carried or run again. */
#include "scoring.h"

/* Is the text that of its source, symbol by symbol? */
static bool has_floor(const struct scored *t)
{
    return t->corpus.generated && t->text.of_bytes && t->text.n == t->corpus.n &&
           t->text.n_docs == 1 && t->batch == 1 && t->s->opt->count == COUNT_STREAM;
}

/* Nats of what the window predicts under the true source; answers are counted. */
static double floor_of(struct scored *t)
{
    const struct window *const w = &t->window;
    const struct synthetic *const s = &t->corpus.synthetic;
    const bool all = t->M != 0 && lm_reaches_all(&t->lm);
    double sum = 0;

    for (int i = 0; i < w->scored; i++) {
        const size_t target = w->at + (size_t)(w->read - w->scored + i) + 1;
        const size_t seen = synthetic_reach(t->past > 0, t->lm.c.N, max_int(0, t->M), t->L, i);
        const size_t reach = all || seen > target ? target : seen;
        const double nll = synthetic_nll(s, t->corpus.bytes, target, reach, &t->memo);
        sum += nll;
        if (synthetic_answers(s, t->corpus.bytes, target))
            answers_add(&t->answers, (double)t->nll[i], nll,
                        synthetic_nll(s, t->corpus.bytes, target, 0, &t->memo));
    }
    return sum;
}

/* The streams of a window are `part` ids apart. */
static enum status score(struct scored *t, struct summand *to, struct err *e)
{
    const struct window *const w = &t->window;
    const int32_t *const ids = t->text.ids + w->at;
    const int first = w->read - w->scored;
    double sum = 0;

    if (w->fresh)
        scored_begin(t);
    for (int b = 0; b < t->batch; b++) {
        const int32_t *const from = ids + (size_t)b * t->windows.part;
        memcpy(t->tokens + b * w->read, from, sizeof(int32_t) * (size_t)w->read);
        memcpy(t->targets + b * w->scored, from + first + 1, sizeof(int32_t) * (size_t)w->scored);
        if (t->text.over >= 0)
            t->tokens[b * w->read] = t->text.over;
    }
    TRY(scored_forward(t, t->batch, w->read, w->scored, e));
    if (t->M != 0) { /* else segments are seen alone, whatever a model could carry */
        lm_commit(&t->lm, w->fresh_ids);
        if (t->compares)
            lm_commit(&t->exact, w->fresh_ids);
    }
    if (t->losses) {
        const size_t at = w->at + (size_t)first;
        const struct layers_run run = lm_layers_run(&t->lm);
        memcpy(t->losses + at, t->nll, sizeof(float) * (size_t)w->scored);
        t->stops = layers_last(&run, t->ran + at, w->scored);
    }
    for (int i = 0; i < t->batch * w->scored; i++)
        sum += scored_nll(t, i, i % w->scored);
    *to = (struct summand){
        .sum = w->weight == w->scored || !w->scored ? sum : sum / w->scored * w->weight,
        .tokens = w->weight * t->batch,
        .scored = (double)w->scored * t->batch,
        .floor = has_floor(t) ? floor_of(t) : NAN,
        .right = NAN};
    return OK;
}

const struct scoring scoring_stream = {.next = scored_next_window, .score = score, .token = ""};
