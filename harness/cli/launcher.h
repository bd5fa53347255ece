/* SPDX-License-Identifier: MIT
 *
 * --shard auto: which part of a job this process is, as its launcher (a scheduler's array, MPI, GNU
 * parallel) says in environment variables. */
#pragma once

#include "variants/base/base.h"

enum { SHARD_TEXT = 32 };

/* "I/N", from 1, of the first launcher that says both rank and size; launchers[] has their order.
 * E_USAGE: none does (the message names what was looked for), or what one says is no part. */
enum status launcher_shard(char shard[SHARD_TEXT], struct err *e);
