/* SPDX-License-Identifier: MIT
 *
 * Questions of choice: each continuation behind its context, without any other past. */
#include "scoring.h"

static bool next(struct scored *t, double *done)
{
    *done = (double)t->nth / (double)t->questions.n;
    return t->nth < t->questions.n;
}

/* The likeliest tokens among those that are scored. */
static void see(struct scored *t, const float *logits, int at, int n)
{
    t->likeliest += pairs_right(logits, t->targets + at, n, t->lm.c.V);
}

/* What the right continuation has is the loss of the question. */
static enum status score(struct scored *t, struct summand *to, struct err *e)
{
    const struct question *const q = &t->questions.question[t->nth++];

    *to = (struct summand){.floor = NAN, .right = NAN};
    for (int k = 0; k < q->n; k++) {
        const struct span *const s = &t->text.docs[q->first + (size_t)k];
        struct continuation *const v = &t->questions.continuation[q->first + (size_t)k];
        const int32_t *const ids = t->text.ids + s->begin;
        const int read = (int)(s->end - s->begin) - 1, own = read + 1 - s->given;
        memcpy(t->tokens, ids, sizeof(int32_t) * (size_t)read);
        memcpy(t->targets, ids + s->given, sizeof(int32_t) * (size_t)own);
        t->likeliest = 0;
        scored_begin(t);
        TRY(scored_forward(t, 1, read, own, e));
        v->greedy = t->likeliest == own;
        for (int i = 0; i < own; i++)
            v->nats -= (double)t->nll[i];
        if (!isfinite(v->nats))
            return fail(e, E_WRONG,
                        "continuation %d of question %zu has a log-likelihood of %g  -> check the "
                        "weights and scales of the checkpoint",
                        k, t->nth - 1, v->nats);
        to->scored += own;
        if (k == q->gold) {
            to->sum = -v->nats;
            to->tokens = own;
        }
    }
    return OK;
}

static void report(const struct scored *t, struct report *r)
{
    double *const share[MEASURES] = {&r->accuracy, &r->acc_norm, &r->acc_bytes, &r->acc_tokens};
    const struct questions *const c = &t->questions;

    for (int by = 0; by <= MEASURES; by++) {
        double right = 0;
        for (const struct question *q = c->question; q < c->question + c->n; q++)
            right += by < MEASURES ? questions_best(c, q, (enum measure)by) == q->gold
                                   : c->continuation[q->first + (size_t)q->gold].greedy;
        *(by < MEASURES ? share[by] : &r->exact_match) = right / (double)c->n;
    }
}

enum status scoring_questions_write(const struct scored *t, const char *path, struct err *e)
{
    static const struct text_table_column columns[] = {
        {.name = "question"},       {.name = "continuation"}, {.name = "gold"},
        {.name = "log_likelihood"}, {.name = "greedy"},       {.name = "tokens"},
        {.name = "bytes"},          {.name = "chars"}};
    const struct questions *const c = &t->questions;
    struct text_table to = {.column = columns, .columns = ARRAY_LEN(columns)};

    for (const struct question *q = c->question; q < c->question + c->n; q++)
        for (int k = 0; k < q->n; k++) {
            const struct continuation *const v = &c->continuation[q->first + (size_t)k];
            text_table_cell(&to, "%td", q - c->question);
            text_table_cell(&to, "%d", k);
            text_table_cell(&to, "%d", k == q->gold);
            text_table_cell(&to, "%.12g", v->nats);
            text_table_cell(&to, "%d", v->greedy);
            for (int by = BY_TOKENS; by > BY_NOTHING; by--)
                text_table_cell(&to, "%.0f", v->length[by]);
        }
    const enum status st = text_table_write(&to, path, e);
    text_table_free(&to);
    return st;
}

const struct scoring scoring_questions = {
    .next = next, .score = score, .see = see, .report = report, .token = "gold "};
