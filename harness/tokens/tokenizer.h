/* SPDX-License-Identifier: MIT
 *
 * Texts to the token ids of a published model and back: byte-pair encodings of tokenizer.json, or
 * of vocab.json and merges.txt, and lists of words, vocab.txt. Nothing in these files is trusted;
 * what is not supported is an error by name. */
#pragma once

#include "harness/util/fileio.h"

struct tokenizer;

struct ids {
    int32_t *v; /* malloc'ed, with the room of GROW (harness/util/grow.h) */
    size_t n;
    size_t unknown; /* words that stand as <unk> because a list lacks them */
};

enum status ids_append(struct ids *out, int32_t id, struct err *e);

/* The tokenizer of a folder, or of a GGUF file. E_IO naming it. */
enum status tokenizer_open(struct tokenizer **t, const char *dir, struct err *e);
void tokenizer_close(struct tokenizer *t); /* NULL: nothing */

/* Append the ids of a text, without those that stand in front of one. E_IO for what is not UTF-8
 * (utf8_replace), with its place. */
enum status tokenizer_encode(struct tokenizer *t, const char *text, size_t n, struct ids *out,
                             struct err *e);

/* The text of tokens, whatever bytes they have. Ids are below tokenizer_vocab. E_UNSUPPORTED for
 * lists of words, which do not know the white space, and for a decoder that is not known. */
enum status tokenizer_decode(const struct tokenizer *t, const int32_t *ids, size_t n,
                             struct bytes *out, struct err *e);

/* The same to read: words of a list have a blank between them, and a line end for <eos>. */
enum status tokenizer_show(const struct tokenizer *t, const int32_t *ids, size_t n,
                           struct bytes *out, struct err *e);

/* Ids are below. */
int tokenizer_vocab(const struct tokenizer *t);

/* The ids that stand in front of a text: those of the post-processor, unless add_bos_token of
 * tokenizer_config.json says otherwise. */
const int32_t *tokenizer_prefix(const struct tokenizer *t, int *n);
/* What it has said. */
enum switched { SWITCHED_NOT, SWITCHED_OFF, SWITCHED_ON };
enum switched tokenizer_switched(const struct tokenizer *t);
/* The one that begins a text where one must: the tokenizer's bos_token, else its eos_token
 * (tokenizer_config.json, else special_tokens_map.json); where no file names one, the first that
 * the post-processor puts in front, else bos_token_id or eos_token_id of config.json; the <eos> of
 * a list of words; -1 = none. */
int32_t tokenizer_begin(const struct tokenizer *t);

enum { MAX_ENDS = 16 };
struct ends {
    int32_t id[MAX_ENDS];
    int n;
};
/* The tokens that end a text of a model: eos_token_id of generation_config.json, else of
 * config.json, in the folder `model` ("" = none), else in the tokenizer's; else the eos_token of
 * the tokenizer. Of a GGUF file, the ends of a text, of a turn and of a message. A list of words has
 * none: its <eos> is a line end. E_IO naming the file. */
enum status tokenizer_ends(const struct tokenizer *t, const char *model, struct ends *out,
                           struct err *e);

/* Is it a list of words? */
bool tokenizer_lists_words(const struct tokenizer *t);

/* Copy what tokenizer_open reads of the folder `from` to the folder `to`, which is made if there is
 * something; *any says whether there is. Beside it go the files that say which token begins a text,
 * which ones end it, and whose rules are meant. Those of an earlier model in `to` are removed. E_IO names the file. */
enum status tokenizer_copy(const char *from, const char *to, bool *any, struct err *e);
