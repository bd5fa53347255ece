/* SPDX-License-Identifier: MIT
 *
 * A text as tokens: its documents, their token ids, and its numbers of words and bytes. */
#pragma once

#include "corpus.h"
#include "windows.h"

struct texts {
    int32_t *ids; /* of all documents, one after the other */
    size_t n;
    struct span *docs;
    size_t n_docs;
    int vocab;        /* ids are below */
    bool of_bytes;    /* or symbols: the model must have this vocabulary */
    const char *unit; /* what a token is: "byte", "symbol", "token", "word" */
    double words;     /* of the original; NAN where ids were given without a text */
    double bytes;
    double oov;   /* words that a list of words lacks, read as <unk>; NAN without a list */
    int32_t over; /* with --bos each: what stands over the first token of each window; -1 = none */
    char note[256]; /* what is remarkable of the beginning and end; "" = nothing */
};

/* Of a corpus, as the options say, by the tokenizer of a folder; NULL = tokens are bytes. E_IO for
 * a text that the tokenizer refuses, E_USAGE where there is no token to begin a text with. */
enum status texts_make(struct texts *t, const struct corpus *c, const struct options *o,
                       const char *tokenizer, struct err *e);
void texts_free(struct texts *t);

/* Are its tokens those of a model with V of them, that of --ckpt? E_IO saying what is not. */
enum status texts_fit(const struct texts *t, const struct options *o, const char *corpus, int V,
                      struct err *e);
