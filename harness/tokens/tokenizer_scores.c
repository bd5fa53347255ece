/* SPDX-License-Identifier: MIT
 *
 * Merges of SentencePiece (Kudo and Richardson 2018, arXiv:1808.06226; its model BPE): a file has no
 * list of them, but a score of each token. Of all neighbours that make a token together those of the
 * highest score are joined, the leftmost first: a rule for each way to cut a token in two, whose rank
 * is the token's place by score. */
#include "tokenizer_json.h"
#include "variants/base/sort.h"

/* What a token is to merges. */
struct piece {
    struct sort_key score; /* of the token of this id */
    bool joins, unused;    /* it can be a part; it can be made, but would be cut up again */
};

static bool reads(struct piece *p, const json_t *score)
{
    p->unused = json_is_false(score);
    p->joins = json_is_number(score);
    p->score.value = json_number_value(score);
    return p->unused || p->joins || json_is_null(score);
}

/* A part of a token, if it is one that texts are made of; -1 = none. */
static int32_t part(const struct tokenizer *t, const struct piece *by_id, const char *text,
                    size_t n)
{
    const int32_t id = vocab_find(&t->vocab, text, n);

    return id >= 0 && by_id[id].joins ? id : -1;
}

/* The ways to make token id of two, as rules of this rank; returns how many. Without `put` they are
 * only counted. */
static size_t cut_up(struct tokenizer *t, const struct piece *by_id, int32_t id, int32_t rank,
                     bool put)
{
    struct token *const k = &t->vocab.token[id];
    size_t n = 0, length;

    for (size_t at = 0; at < k->n; at += length) {
        utf8_next(k->text + at, k->n - at, &length);
        const int32_t left = at > 0 ? part(t, by_id, k->text, at) : -1;
        const int32_t right = left >= 0 ? part(t, by_id, k->text + at, k->n - at) : -1;
        n += right >= 0;
        if (right >= 0 && put)
            merges_put(&t->merges, (struct merge){left, right, rank, id});
    }
    k->made = k->made || (n > 0 && put);
    return n;
}

/* Scores that are all alike say no order: converters write such ones where they know none. */
static enum status check_order(const struct tokenizer *t, const struct piece *sorted, int n,
                               struct err *e)
{
    const struct piece *first = NULL;
    bool several = false;

    for (int i = 0; i < n; i++) {
        if (!sorted[i].joins || !t->vocab.token[sorted[i].score.at].made)
            continue;
        if (first && sorted[i].score.value != first->score.value)
            return OK;
        several = first != NULL;
        first = &sorted[i];
    }
    return several ? tokenizer_bad(t, e,
                                   "its scores are all %g and give merges no order  -> "
                                   "--tokenizer DIR, the folder of its tokenizer.json",
                                   first->score.value)
                   : OK;
}

static enum status put_rules(struct tokenizer *t, const struct piece *by_id,
                             const struct piece *sorted, struct err *e)
{
    const int n = t->vocab.n;
    size_t rules = 0;
    int32_t rank = 0;

    for (int i = 0; i < n; i++) {
        const bool asks = by_id[i].joins || by_id[i].unused;
        const size_t ways = asks ? cut_up(t, by_id, i, 0, false) : 0;
        if (ways > 0 && by_id[i].unused)
            return tokenizer_bad(t, e,
                                 "token \"%.40s\" is unused and a merge makes it: not supported "
                                 " -> --tokenizer DIR, the folder of its tokenizer.json",
                                 t->vocab.token[i].text);
        rules += ways;
    }
    TRY(merges_open(&t->merges, rules, e));
    for (int i = 0; i < n; i++) {
        rank += i > 0 && sorted[i].score.value != sorted[i - 1].score.value;
        if (sorted[i].joins)
            cut_up(t, by_id, (int32_t)sorted[i].score.at, rank, true);
    }
    return check_order(t, sorted, n, e);
}

enum status tokenizer_read_scores(struct tokenizer *t, const json_t *scores, struct err *e)
{
    const size_t n = (size_t)t->vocab.n;
    struct piece *const by_id = calloc(2 * n + 1, sizeof(*by_id)), *const sorted = by_id + n;
    enum status st = OK;

    if (!by_id)
        return tokenizer_no_memory(t, e);
    if (json_array_size(scores) != n)
        st = tokenizer_bad(t, e, "%zu scores of %zu tokens  -> give a whole file",
                           json_array_size(scores), n);
    for (size_t i = 0; st == OK && i < n; i++) {
        by_id[i].score.at = (ptrdiff_t)i;
        if (!reads(&by_id[i], json_array_get(scores, i)))
            st = tokenizer_bad(t, e, "token %zu has no score  -> give a whole file", i);
        sorted[i] = by_id[i];
    }
    if (st == OK) {
        qsort(sorted, n, sizeof(*sorted), by_largest);
        st = put_rules(t, by_id, sorted, e);
    }
    free(by_id);
    return st;
}
