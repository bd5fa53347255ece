/* SPDX-License-Identifier: MIT
 *
 * The parts of a tokenizer, for the files that read and run it. */
#pragma once

#include "bpe.h"
#include "tokenizer.h"
#include "unicode.h"
#include "vocab.h"
#include "words.h"

/* Tokens that are cut out of a text before words are. Those of one first byte stand together, the
 * longest first. */
struct cuts {
    struct cut {
        struct bytes text;
        int32_t id;
        bool lstrip, rstrip; /* it takes the white space before it, behind it */
        bool single_word;    /* it is none beside a letter of a word */
    } * v;
    int n;
    int first[257]; /* of those that begin with byte b: first[b] .. first[b+1] */
};

struct cut_scan {
    const struct cuts *cuts;
    const char *text; /* UTF-8, n bytes */
    size_t n, at;     /* where the search goes on */
    size_t left;      /* where the text behind the last token begins */
};

/* The next token, and the text [*from, *to) between it and the one before; NULL: none, and the rest. */
const struct cut *cuts_next(struct cut_scan *s, size_t *from, size_t *to);

enum { MAX_NORMALIZERS = 4, MAX_CUTTERS = 4, MAX_PREFIX = 8 };
struct normalizer {
    enum { NORMALIZE_NOTHING, NORMALIZE_NFC, NORMALIZE_PREPEND, NORMALIZE_REPLACE } kind;
    char *from, *to; /* malloc'ed; PREPEND has `to` only */
};

/* Cuts pieces of a text into smaller ones, the last of which are words. */
struct cutter {
    char text[8];  /* a blank: a space, or what stands for one */
    bool replaces; /* each space by it */
    /* In front of pieces that do not begin with it: none, of each, of the one that begins a text */
    enum blank { BLANK_NONE, BLANK_EACH, BLANK_FIRST } blank;
    struct words words;
};

struct tokenizer {
    char *dir;
    bool lists_words; /* words.txt: all below is unused, but for vocab, eos and unk */
    int32_t eos, unk; /* -1 = none */
    struct vocab vocab;
    struct merges merges;
    struct bpe_work work;
    bool bytes;        /* the smallest tokens are bytes; else characters */
    int32_t byte[256]; /* their ids; for characters, what stands for those without a token */
    bool whole_first;  /* a word that is a token is not merged */
    struct normalizer normalizer[MAX_NORMALIZERS];
    int n_normalizers;
    struct cutter cutter[MAX_CUTTERS];
    int n_cutters;
    bool renames; /* an added token is not its own normal form: programs decode it as either */
    bool decodes; /* its decoder is the one of tokenizer_decode */
    bool strips;  /* decoding drops one space in front */
    struct cuts before, after; /* normalizing */
    struct json_t *added;      /* by their texts, as files write them, what files say of them */
    int32_t prefix[MAX_PREFIX];
    int n_prefix;
    int32_t begin; /* see tokenizer_begin */
    int32_t end;   /* its eos_token; -1 = none */
    enum switched switched;
};

/* E_IO: "tokenizer DIR: ...". */
enum status tokenizer_bad(const struct tokenizer *t, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The text after all normalizers. */
enum status tokenizer_normalize(const struct tokenizer *t, const char *text, size_t n,
                                struct bytes *out, struct err *e);

enum { TOKENS_FILE_MOST = 64 << 20 }; /* bytes of one file of a tokenizer */
/* A file of the folder; E_IO where it is larger than that. */
enum status tokenizer_file(const struct tokenizer *t, const char *name, struct bytes *out,
                           struct err *e);

bool tokenizer_has(const struct tokenizer *t, const char *name);

/* tokenizer.json, or a GGUF file; vocab.json and merges.txt; vocab.txt. */
enum status tokenizer_read_json(struct tokenizer *t, struct err *e);
enum status tokenizer_read_pair(struct tokenizer *t, struct err *e);
enum status tokenizer_read_words(struct tokenizer *t, struct err *e);
/* What the files beside them say of the token in front of a text. */
enum status tokenizer_read_front(struct tokenizer *t, struct err *e);

enum status tokenizer_words(const struct tokenizer *t, const char *text, size_t n, struct ids *out,
                            struct err *e);

/* Words with blanks between them, a line end for <eos>. */
enum status tokenizer_join(const struct tokenizer *t, const int32_t *ids, size_t n,
                           struct bytes *out, struct err *e);
