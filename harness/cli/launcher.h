/* SPDX-License-Identifier: MIT
 *
 * Which part of a job this process is, as the program that started it says: a scheduler's array, an
 * MPI launcher. Reads the environment only. */
#ifndef LAUNCHER_H
#define LAUNCHER_H

#include "variants/base/base.h"

enum { SHARD_TEXT = 32 };

/* "I/N", from 1, of the first launcher that says both rank and size; launchers[] has their order.
 * E_USAGE: none does (the message names what was looked for), or what one says is no part. */
enum status launcher_shard(char shard[SHARD_TEXT], struct err *e);

#endif
