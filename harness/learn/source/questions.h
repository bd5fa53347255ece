/* SPDX-License-Identifier: MIT
 *
 * Questions of choice: a context and its continuations, of which one is right. A line of a file is
 *   {"context": TEXT, "continuations": [TEXT, ...], "gold": N}
 * N counts from 0; other keys mean nothing. Tokens are those of EleutherAI's lm-evaluation-harness 0.4.13
 * (_encode_pair of lm_eval/api/model.py): white space that ends a context belongs to what follows; of both
 * together, what is behind as many tokens as the context alone has is the continuation's; an empty context
 * is the token that begins a text; what is longer than the model reads loses its beginning. */
#pragma once

#include "texts.h"

/* What log-likelihoods are divided by before they are compared. */
enum measure { BY_NOTHING, BY_CHARS, BY_BYTES, BY_TOKENS, MEASURES };

struct continuation {
    double length[MEASURES]; /* of the continuation as it stands in the file; its tokens */
    double nats; /* its log-likelihood, and is each token the most likely one? By scoring */
    bool greedy;
};

struct question {
    size_t first; /* its continuations are docs [first, first + n) of the texts */
    int n, gold;
};

struct questions {
    struct question *question;
    struct continuation *continuation; /* [docs] */
    size_t n;                          /* questions */
};

/* Of the bytes of a file, for a model that reads `most` tokens at once: the texts are a document a continuation,
 * whose tokens `given` are the context's. `tokenizer` as in texts_make. E_IO, naming file and line. */
enum status questions_make(struct questions *c, struct texts *t, const struct corpus *file,
                           const struct options *o, const char *tokenizer, int most, struct err *e);
void questions_free(struct questions *c);

/* The one with the largest log-likelihood by a measure; of equals the first. */
int questions_best(const struct questions *c, const struct question *q, enum measure by);
