/* SPDX-License-Identifier: MIT
 *
 * A file that is written beside the one whose name it gets when it is whole. Each writer's has a name
 * of its own, so two that write one file at once do not write into each other's. */
#pragma once

/* Create PATH.XXXXXXXX.tmp, where nothing has that name yet, such as a link to another file. The
 * descriptor to write to, and its malloc'ed name; -1 with errno and NULL. */
int half_create(char **half, const char *path);

/* Remove the halves of `path`, which killed processes left: only for whom alone may write it. 0 or an
 * errno. */
int half_clear(const char *path);
