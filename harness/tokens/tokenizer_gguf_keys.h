/* SPDX-License-Identifier: MIT
 *
 * Values of a GGUF file's keys of its tokenizer: tokens, flags and lists. A value of another type, or
 * out of bounds, is refused by the name of its key, and not taken as absent: which tokens texts have
 * depends on it. */
#pragma once

#include "tokenizer_json.h"

#define KEY "tokenizer.ggml." /* in front of all names here */

/* Kinds of tokens. All but the normal ones, unused ones and bytes are cut out of texts. */
enum {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN,
    TOKEN_CONTROL,
    TOKEN_OF_USERS,
    TOKEN_UNUSED,
    TOKEN_BYTE,
    TOKEN_KINDS
};

/* NULL without the key. */
const json_t *gguf_key(const json_t *keys, const char *name);

/* E_IO: what is wrong with it. */
enum status gguf_key_wrong(const struct tokenizer *t, const char *name, struct err *e,
                           const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The token of a key; -1 without it. */
enum status gguf_token(const struct tokenizer *t, const json_t *keys, const char *name,
                       json_int_t *id, struct err *e);

/* A flag; `absent` without the key. */
enum status gguf_flag(const struct tokenizer *t, const json_t *keys, const char *name, bool absent,
                      bool *flag, struct err *e);

/* Are all lists there, of one length, and all keys that name tokens good, and does none ask for what
 * is not computed? `scored`: by scores, else by merges. */
enum status gguf_keys_check(const struct tokenizer *t, const json_t *keys, bool scored,
                            struct err *e);
