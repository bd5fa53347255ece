/* SPDX-License-Identifier: MIT
 *
 * Training and validation of an encoder and a decoder. */
#include "train_pairs.h"

#include <math.h>
#include <stdio.h>

#define USUAL "reverse:n=16,alphabet=16"

enum status pairs_settle(struct options *o, struct err *e)
{
    char target[16], sources[KEYED_TEXT];
    struct synthetic s = {0};

    TRY(options_default(o, "corpus", USUAL, e));
    if (synthetic_named(o->corpus))
        TRY(synthetic_parse(&s, o->corpus, e));
    const int length = s.kind ? synthetic_pair(&s).target : 0;
    if (length == 0)
        return fail(
            e, E_USAGE,
            "--objective seq2seq: text %.200s has no pairs of a source and a target  -> use "
            "%s",
            o->corpus, synthetic_pairs(sources));
    snprintf(target, sizeof(target), "%d", length);
    TRY(options_default(o, "seq", target, e));
    TRY(options_default(o, "mem", "0", e));
    if (o->seq.n != 1 || o->seq.v[0] != length)
        return fail(
            e, E_USAGE,
            "--objective seq2seq: targets of %.200s have %d symbols  -> use --seq %d, or leave "
            "it out",
            o->corpus, length, length);
    if (o->mem.n != 1 || o->mem.v[0] != 0)
        return fail(e, E_USAGE,
                    "--objective seq2seq: a text is seen whole, without a past  -> use --mem 0");
    return OK;
}

struct source_pair pairs_asked(const struct options *o)
{
    struct synthetic s;

    CHECK(synthetic_named(o->corpus) && synthetic_parse(&s, o->corpus, NULL) == OK);
    return synthetic_pair(&s);
}

enum status pairs_open(struct trainer *t, struct err *e)
{
    TRY(pairs_of(&t->pairs, &t->corpus, e));
    struct pairs valid;

    TRY(pairs_of(&valid, &t->valid_corpus, e));
    if (valid.source != t->pairs.source || valid.target != t->pairs.target)
        return fail(e, E_USAGE,
                    "--valid %s has other lengths than --corpus %s  -> use the same n and len",
                    t->valid_corpus.name, t->corpus.name);
    t->corpus.unit = PAIRS_UNIT;
    return OK;
}

void pairs_batch(struct trainer *t)
{
    const struct pairs *const p = &t->pairs;

    for (int b = 0; b < t->B; b++) {
        const size_t i = (size_t)t->optimizer.step * (size_t)t->all_B + (size_t)(t->first + b);
        pairs_read(p, t->text.at, i % p->n, t->source + b * p->source, t->tokens + b * t->L,
                   t->targets + b * t->L);
    }
}

struct validation pairs_validate(struct trainer *t)
{
    struct lm *const m = &t->valid_lm;
    struct pairs p = t->pairs;
    struct answers a = {0};
    const bool logits = lm_has_logits(m);
    double sum[] = {0, 0, 0, 0, 0, 0, 0, 0};

    p.n = t->valid.n / (size_t)(p.source + p.target + 1);
    lm_build_tables(m, &t->engine);
    for (size_t i = (size_t)t->ranks.index; i < p.n; i += (size_t)t->ranks.count) {
        pairs_read(&p, t->valid.at, i, t->source, t->tokens, t->targets);
        lm_forward(m, &t->engine, t->tokens, 1, t->L, t->L, t->targets, t->nll);
        for (int k = 0; k < t->L; k++)
            sum[0] += (double)t->nll[k];
        sum[1] += pairs_floor(&p, &t->valid_corpus, i, t->nll, &a);
        sum[2] += t->L;
        if (logits)
            sum[7] += pairs_right(m->logits, t->targets, t->L, m->c.V);
    }
    sum[3] = a.nll;
    sum[4] = a.floor;
    sum[5] = a.blind;
    sum[6] = a.tokens;
    ranks_sum(&t->ranks, sum, (int)ARRAY_LEN(sum));
    a = (struct answers){sum[3], sum[4], sum[5], sum[6]};
    return (struct validation){.nll = sum[0] / sum[2],
                               .returned = NAN,
                               .returned_error = NAN,
                               .floor = sum[1] / sum[2],
                               .accuracy = logits ? sum[7] / sum[2] : NAN,
                               .answers = answers_mean(a)};
}
