/* SPDX-License-Identifier: MIT
 *
 * The primitives of this process: a primitive is generated for one shape and that takes from 10 us
 * to some milliseconds, so each is made once, by the first call of its shape, and found again.
 * struct ops has no context argument, so there is one library per process and its state is this
 * module's. */
#ifndef ONEDNN_CACHE_H
#define ONEDNN_CACHE_H

#include "make.h"

/* Primitives will be asked for by engines of up to `threads` threads. May be called again. */
enum status cache_open(int threads, struct err *e);

/* The value of key.slots for calls that use `threads` threads each. */
uint32_t cache_slots(int threads);

/* Found, or made now. */
struct primitive *cache_get(const struct key *key);

/* Run it on these operands; `bias` where it has one. False, with the reason kept for cache_ran,
 * where the library cannot. */
bool cache_run(struct primitive *p, const float *src, const float *weights, const float *bias,
               float *dst);

/* As struct backend's packed_floats and pack. */
size_t cache_packed_floats(const struct gemm *like);
void cache_pack(float *dst, const struct gemm *like);

/* As struct backend's ran and held_bytes. */
enum status cache_ran(char *names, size_t size, struct err *e);
size_t cache_held_bytes(void);

#endif
