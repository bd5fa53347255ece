/* SPDX-License-Identifier: MIT
 *
 * What the files of the library share: the engine behind the handle, and how arguments are refused.
 * Whatever a caller passes is checked here, so that no CHECK of the kernels is reached. */
#pragma once

#include "benchattn.h"

#include "variants/backends/backend.h"
#include "variants/base/arena.h"

#include <pthread.h>

enum { LIMIT_MASKS = 256, LIMIT_THREADS = 1024, LIMIT_LENGTH = 1 << 28, LIMIT_WIDTH = 1 << 20 };

struct ba_engine {
    pthread_mutex_t lock;
    struct engine g;
    struct arena products; /* their work space */
    void *room;            /* work space of a call, kept for the next */
    size_t room_bytes;
    struct mask masks[LIMIT_MASKS]; /* those of the call */
};

/* A struct of the caller, whose size is its first member, into `to`, which has `size` bytes, the
 * first `first` of them since version 1. E_USAGE if it is NULL or too short, E_UNSUPPORTED if it
 * says something that this version does not know. */
enum status take_struct(void *to, size_t size, size_t first, const void *from, const char *name,
                        struct err *e);
#define FIRST_SIZE(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

/* A number with its name and its limits. */
struct number {
    const char *name;
    int64_t is, least, most;
};
enum status check_numbers(const struct number *all, size_t n, struct err *e);

/* A product with its name, which has to fit an int. */
enum status check_product(const char *name, int64_t x, int64_t y, int64_t z, struct err *e);

/* An array that has to be there, or must not be. */
struct pointer {
    bool missing, needless;
    const char *name, *why; /* "without ...", "where ..." */
};
enum status check_pointers(const struct pointer *all, size_t n, struct err *e);

/* Elements that are laid out by strides, `width` adjacent ones at each place. */
struct places {
    ptrdiff_t count[3], stride[3]; /* stride 0 repeats */
    ptrdiff_t width;
};
enum status check_strides(const struct places *p, const char *name, struct err *e);
enum status check_no_overlap(const struct places *p, const char *name, struct err *e);

/* Packed texts: text n has tokens [cu[n], cu[n+1]). Where there are none, one text is everything. */
struct texts {
    int n;
    const int32_t *cu;
    int32_t whole[2];
};
/* `alone`: there is nothing else, neither sequences nor keys before the tokens. */
enum status take_texts(struct texts *t, int texts, const int32_t *cu_seqlens, int L, bool alone,
                       struct err *e);

/* The masks of `a` into the engine's; E_USAGE also if a head has none of them. */
enum status take_masks(struct ba_engine *engine, const struct ba_attention *a, struct err *e);
/* Do rows of bits reach all keys? */
enum status check_mask_rows(const struct attn *a, int n_masks, struct err *e);

/* At least so many bytes of work space, aligned to cache lines. */
enum status engine_room(struct ba_engine *engine, size_t bytes, struct err *e);

/* A call of the library with a struct of the caller's, and one of gradients, by one thread at a time.
 * Returns what the caller gets, and says why. */
typedef enum status library_call(struct ba_engine *engine, const void *of, const void *grads,
                                 struct err *e);
int called(struct ba_engine *engine, library_call *call, const void *of, const void *grads,
           char *why, size_t why_size);
