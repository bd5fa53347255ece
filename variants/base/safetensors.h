/* SPDX-License-Identifier: MIT
 *
 * The safetensors format: eight bytes of header length, a JSON header, the tensors back to back. A
 * header that does not describe the file's bytes exactly is an error that names the file. Files of
 * ours have aligned tensors of F32 and I32; published ones any (safetensors_open_published). */
#pragma once

#include "base.h"

enum { TENSOR_RANK = 5, TENSOR_NAME = 96 };
/* OTHER: what is never read, such as masks of BOOL. */
enum dtype {
    DTYPE_F32,
    DTYPE_I32,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_Q8_0, /* of GGUF, as all that follow: blocks of 32 or 256 numbers of a row */
    DTYPE_Q4_0,
    DTYPE_Q4_1,
    DTYPE_Q5_0,
    DTYPE_Q5_1,
    DTYPE_Q2_K,
    DTYPE_Q3_K,
    DTYPE_Q4_K,
    DTYPE_Q5_K,
    DTYPE_Q6_K,
    DTYPE_IQ4_NL,
    DTYPE_IQ4_XS,
    DTYPE_MXFP4,
    DTYPE_OTHER
};
enum { ELEMENT_BYTES = 4, DTYPE_NAME = 16 }; /* bytes of an element of F32 and I32 */
#define SAFETENSORS_META "__metadata__"      /* the header entry that is not a tensor */

struct tensor {
    char name[TENSOR_NAME];
    enum dtype dtype;
    int rank, shape[TENSOR_RANK];
    size_t n;                    /* elements */
    const void *data;            /* into the mapped file; 4-byte aligned in files of ours */
    char dtype_name[DTYPE_NAME]; /* as the file says it, maybe cut */
    size_t bytes;                /* of its numbers in the file; 0 = unknown */
};

struct safetensors {
    char *path;
    const unsigned char *map;
    size_t size; /* bytes of the whole file */
    struct tensor *tensors;
    int n_tensors;
    char **meta; /* key, value, key, value, ... */
    int n_meta;  /* pairs */
    bool published;
    size_t listed, alignment; /* of GGUF: where the list of tensors begins; that of their numbers */
    bool *asked_tensor, *asked_meta; /* has anybody asked for it by name? NULL = not noted */
};

/* Map and check a file. E_IO with a message that names the file and what is wrong in it. */
enum status safetensors_open(struct safetensors *s, const char *path, struct err *e);
/* Likewise a file as others publish it: of any types, and at any address. Its tensors are read with
 * tensor_floats. */
enum status safetensors_open_published(struct safetensors *s, const char *path, struct err *e);
void safetensors_close(struct safetensors *s);

/* Map a file whose header another format's reader checks; path, map and size of `s` are set. */
enum status safetensors_map(struct safetensors *s, const char *path, struct err *e);

/* NULL if there is none. */
const struct tensor *safetensors_find(const struct safetensors *s, const char *name);
const char *safetensors_meta(const struct safetensors *s, const char *key);

/* Can its numbers be read? How many numbers a block has, and the bytes of n numbers, whole blocks. */
bool tensor_is_readable(enum dtype dtype);
int tensor_block(enum dtype dtype);
size_t tensor_bytes(enum dtype dtype, size_t n);

/* Elements [first, first + n) of a readable tensor, exactly, as floats. */
void tensor_floats(float *to, const struct tensor *t, size_t first, size_t n);

/* The integer under `key`; `fallback` if absent; E_IO if it is not an integer in [lo, hi]. */
enum status safetensors_int(const struct safetensors *s, const char *key, int fallback, int lo,
                            int hi, int *out, struct err *e);
enum status safetensors_i64(const struct safetensors *s, const char *key, int64_t fallback,
                            int64_t lo, int64_t hi, int64_t *out, struct err *e);
enum status safetensors_real(const struct safetensors *s, const char *key, double fallback,
                             double *out, struct err *e);

/* E_IO: what is wrong with the file, which the message names, without control characters. */
enum status safetensors_fail(const struct safetensors *s, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Write `n` tensors and `n_meta` key/value pairs, with half_write. Tensors of other types than F32 and
 * I32 as they were read, with bytes and dtype_name. */
enum status safetensors_write(const char *path, const struct tensor *tensors, int n,
                              const char *const *meta, int n_meta, struct err *e);
