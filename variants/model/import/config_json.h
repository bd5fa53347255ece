/* SPDX-License-Identifier: MIT
 *
 * config.json of a published model: its values by key, each checked, nothing trusted; and what a
 * checkpoint of ours would say of the same model. */
#pragma once

#include "variants/base/safetensors.h"

#include <jansson.h>

/* A JSON object of at most so many bytes, to be released. E_IO naming the checkpoint and the file.
 */
enum status import_json(json_t **out, const char *checkpoint, const char *path, size_t most,
                        struct err *e);

/* Two names of one key in the publisher's program. */
struct alias {
    const char *key, *also;
};

struct shards;

/* The first error sticks; later reads and puts do nothing. */
struct config_json {
    const char *path;            /* of the checkpoint, for messages */
    const char *family;          /* its model_type */
    const struct alias *aliases; /* the last one has no key; NULL = none */
    int usual_context;           /* as of struct model_type */
    json_t *root;
    json_t *read;                /* the keys that were asked for */
    bool bare;                   /* its tensors' names have no prefix */
    const struct shards *shards; /* its tensors */
    bool norms_words;            /* a norm follows the embedding (struct tensor_row, normed) */
    struct safetensors said;     /* metadata of a checkpoint of ours, without tensors */
    enum status st;
    struct err *e;
};

/* Likewise of a config that was read elsewhere; it is released with j. */
enum status config_json_take(struct config_json *j, const char *path, json_t *root, struct err *e);
enum status config_json_open(struct config_json *j, const char *path, const char *file,
                             struct err *e);
void config_json_close(struct config_json *j);

/* E_IO: "checkpoint X: ..."; "checkpoint X: FAMILY with ...". */
void config_json_refuse(struct config_json *j, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void import_refuse(struct config_json *j, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* NULL where there is none, or it is null: for keys that the publisher's program may have so. The
 * readers below take null for no value of theirs; of flags, for false. */
const json_t *config_json_at(struct config_json *j, const char *key);
bool config_json_was_read(const struct config_json *j, const char *key);
/* A value as the file writes it, maybe cut. */
void config_json_text(char *to, size_t size, const json_t *value);
/* A whole number in [least, most]; `absent` without the key, REQUIRED = an error. */
enum { REQUIRED = -1 };
int config_json_whole(struct config_json *j, const char *key, int absent, int least, int most);
/* A finite number in [least, most]. */
double config_json_real(struct config_json *j, const char *key, double absent, double least,
                        double most);
bool config_json_flag(struct config_json *j, const char *key, bool absent);
/* Valid as long as j. */
const char *config_json_word(struct config_json *j, const char *key, const char *absent);

/* Say that the model has this tensor: some choices follow from that. At most one. */
void config_json_put_tensor(struct config_json *j, const char *name);
/* Say KEY = VALUE of the model, in the words of our checkpoints; the last value counts. */
void config_json_put(struct config_json *j, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Likewise of several: SAY(j, {"norm", "pre"}, {"ff_bias", "0"}). */
void config_json_say(struct config_json *j, const char *const said[][2]);
#define SAY(j, ...) config_json_say(j, (const char *const[][2]){__VA_ARGS__, {NULL, NULL}})
