/* SPDX-License-Identifier: MIT
 *
 * A file that is written beside the one whose name it gets when it is whole. Each writer's has a name
 * of its own, so two that write one file at once do not write into each other's. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Create PATH.XXXXXXXX.tmp, where nothing has that name yet, such as a link to another file. The
 * descriptor to write to, and its malloc'ed name; -1 with errno and NULL. */
int half_create(char **half, const char *path);

/* Write all of `path` with `put`, sync it and rename it: after a crash the old file or the new one is
 * there, never half of one. 0 or an errno. */
int half_write(const char *path, bool (*put)(FILE *f, const void *arg), const void *arg);

/* Remove the halves of `path`, which killed processes left: only for whom alone may write it. 0 or an
 * errno. */
int half_clear(const char *path);

/* Make changes to the names in a folder durable. 0 or an errno. */
int folder_sync(const char *dir);
