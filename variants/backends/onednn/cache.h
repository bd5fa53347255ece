/* SPDX-License-Identifier: MIT
 *
 * The primitives of this process. Creating one for a shape takes from 10 us to some milliseconds,
 * so each is created once, by the first call of its shape, and then looked up. struct ops has no
 * context argument, so there is one library per process and its state lives in this module. */
#pragma once

#include "make.h"

/* Prepare for engines of up to `threads` threads. May be called again. */
enum status cache_open(int threads, struct err *e);

/* The value of key.slots for calls that use `threads` threads each. */
uint32_t cache_slots(int threads);

/* Looked up, or created now. */
struct primitive *cache_get(const struct key *key);

/* Run it on these operands, src rounded first where the primitive takes bf16; `bias` if it has one.
 * False if the library fails; cache_ran gives the reason. */
bool cache_run(struct primitive *p, const float *src, const void *weights, const float *bias,
               float *dst);

/* As struct backend's packed_floats and pack. */
size_t cache_packed_floats(const struct gemm *like);
void cache_pack(float *dst, const struct gemm *like);

/* cache_ran is to say that oneDNN `what` ("cannot run") `detail`, for a product of this size. */
void cache_failed(int m, int n, int k, const char *what, const char *detail);

/* As struct backend's ran and held_bytes. */
enum status cache_ran(char *names, size_t size, struct err *e);
size_t cache_held_bytes(void);
