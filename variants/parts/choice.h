/* SPDX-License-Identifier: MIT
 *
 * A choice: a value of a model, or of the case that measures it, that a user can choose. A table of
 * choices is an array of rows; options, columns of tables, filter keys, repro lines, keys of files
 * and comparisons are loops over rows. A row says where the value lies in its struct and how it is
 * written. */
#pragma once

#include "variants/base/base.h"

/* The largest sizes, on command lines and in files: no product of a few of them leaves its type. */
enum {
    MAX_WIDTH = 1 << 20,
    MAX_LAYERS = 1 << 10,
    MAX_DISTANCE = 1 << 28, /* tokens */
    MAX_STATE = 1 << 28,    /* numbers that a recurrent layer carries for a sequence */
};

struct config;

/* How a value lies in memory and how it is written. */
enum codec {
    CODEC_INT,   /* int: decimal digits; the i-th of `words` stands for -1 - i */
    CODEC_FLAG,  /* bool: 0 or 1 */
    CODEC_REAL,  /* float */
    CODEC_WIDE,  /* double */
    CODEC_WORD,  /* an enum: one of `words` */
    CODEC_ENTRY, /* a pointer to an entry of a registry, NULL = "" */
    CODEC_LIST,  /* struct layer_list: numbers joined by commas */
    CODEC_TEXT,  /* through print and parse */
};

/* One number for each layer, over and over: layer l has at[l % n]. n = 0: none. */
enum { MAX_LAYER_LIST = 16 };
struct layer_list {
    int n;
    double at[MAX_LAYER_LIST];
};

/* A list of parts with names. */
struct registry {
    const char *noun;         /* "gate" */
    const void *(*at)(int i); /* the i-th, whose first member is its name; NULL after the last */
};
const void *registry_find(const struct registry *r,
                          const char *name); /* NULL where there is none */

/* The smallest thing that has it: attention alone, a layer, a whole model. */
enum scope { SCOPE_CORE, SCOPE_LAYER, SCOPE_MODEL };

enum { CHOICE_TEXT = 1024 }; /* bytes of a value as text */

struct choice {
    const char *name;   /* of columns and filter keys */
    const char *option; /* without dashes; NULL = none */
    const char *unit, *help;
    enum codec codec;
    size_t at;          /* offset in the struct that it belongs to */
    double least, most; /* CODEC_INT, CODEC_REAL, CODEC_WIDE, each of CODEC_LIST */
    bool whole;         /* CODEC_LIST */
    const char *const *words;
    const char *unsaid; /* CODEC_WORD: the word that is written as "" */
    const struct registry *list;
    enum scope scope;
    bool skeleton;   /* norms, feed-forward networks, biases: most ideas leave them as they are */
    bool special;    /* only some variants have it: `bench list variants` says which */
    bool setting;    /* one of --set and of the column `settings`; a word from number `least` on */
    bool if_changed; /* a setting that the column has only where it is not as usual */
    /* No parameter depends on it: a checkpoint may be scored with another value (`bench eval`). */
    bool at_eval;
    /* In files: */
    const char *key;     /* NULL = the name */
    const char *absent;  /* the value where the key is missing or says "none"; NULL = as usual */
    bool zero_is_absent; /* CODEC_INT */
    bool in_digits;      /* CODEC_WORD: files have its number, up to `most` */
    bool elsewhere;      /* files say it in other keys */
    bool if_other;       /* checkpoints say it only where it is not what `absent` says */
    const char *tensor;  /* 1 where the file has this tensor, else 0; no key is read */
    const char *rows_of; /* CODEC_INT: where the key is missing, the rows of this tensor, if any */
    /* CODEC_INT: where the key is missing, the size of this axis of the input of that name in
     * golden files, if there is one. */
    const char *input;
    int axis;
    const char *of_input; /* a bool, true where the input of that name has `axis`; no key is read */
    bool (*applies)(const struct config *c); /* NULL = always */
    /* What tests of small models set, so that short texts reach it: for turn t the t-th of values
     * joined by |, over and over; NULL = it stays as usual. */
    const char *tiny;
    void (*print)(char text[CHOICE_TEXT], const void *base);
    enum status (*parse)(void *base, const char *text, struct err *e);
};

/* A setting that few change: the column, and the line that runs a case again, say it only then. */
#define SETTING .setting = true, .if_changed = true

/* Rows of tables, for `field` of `type`. Further members follow the help. */
#define ROW_NUMBER(kind, type, field, text, from_, to, ...)                                        \
    {                                                                                              \
        .name = text, .codec = kind, .at = offsetof(type, field), .least = from_, .most = to,      \
        .help = __VA_ARGS__                                                                        \
    }
#define ROW_INT(...) ROW_NUMBER(CODEC_INT, __VA_ARGS__)
#define ROW_REAL(...) ROW_NUMBER(CODEC_REAL, __VA_ARGS__)
#define ROW_WIDE(...) ROW_NUMBER(CODEC_WIDE, __VA_ARGS__)
#define ROW_FLAG(type, field, text, ...)                                                           \
    ROW_NUMBER(CODEC_FLAG, type, field, text, 0, 1, __VA_ARGS__)
#define ROW_WORD(type, field, text, list, ...)                                                     \
    {                                                                                              \
        .name = text, .codec = CODEC_WORD, .at = offsetof(type, field), .words = list,             \
        .help = __VA_ARGS__                                                                        \
    }
#define ROW_TEXT(text, to, of, ...)                                                                \
    {                                                                                              \
        .name = text, .codec = CODEC_TEXT, .print = to, .parse = of, .help = __VA_ARGS__           \
    }

/* The value of the row in the struct at `base`, as text. */
void choice_print(char text[CHOICE_TEXT], const struct choice *row, const void *base);

/* Set it from text. E_USAGE, with the words that there are or the bounds. */
enum status choice_parse(const struct choice *row, void *base, const char *text, struct err *e);

/* E_USAGE where the row is a number outside its bounds. */
enum status choice_check(const struct choice *row, const void *base, struct err *e);

/* What files call it. */
static inline const char *choice_key(const struct choice *row)
{
    return row->key ? row->key : row->name;
}

/* A row of a part that this model's does not have, under a key that another part may have, too. */
static inline bool choice_is_idle(const struct choice *row, const struct config *c)
{
    return row->if_other && row->applies && !row->applies(c);
}

bool choice_equal(const struct choice *row, const void *a, const void *b);

/* Does a model, or the part of one that is measured, have it? */
bool choice_applies(const struct choice *row, const struct config *c, enum scope scope);

/* Numbers joined by commas, up to `room` of them, each from least to most. Their number; -1 where
 * the text is something else. */
int list_read(double *to, int room, const char *text, double least, double most, bool whole);

/* The i-th word that the row takes; NULL after the last, and where it takes no words. */
const char *choice_word(const struct choice *row, int i);
