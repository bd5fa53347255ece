/* SPDX-License-Identifier: MIT
 *
 * Baselines as folders, OUT/baselines/<host_id>/NAME/: names, finding, copying, removing. */
#pragma once

#include "baseline.h"

/* E_USAGE for an invalid name. */
enum status baseline_name(const char *name, struct err *e);

/* The host_id of this machine. */
enum status baseline_host(char host_id[17], struct err *e);

/* The CPU of a run, for messages. */
void baseline_cpu(const char *run, char *buf, size_t size);

/* Call `each` for every baseline of that name (NULL: any) until it returns true. */
typedef bool each_fn(void *arg, const char *host_id, const char *name, const char *path);
void baseline_each(const struct options *o, const char *wanted, each_fn *each, void *arg);

/* The baseline of this machine; else false, and the message says whether another machine has it. */
bool baseline_find(char path[FILE_PATH], const struct options *o, const char *name,
                   const char *host_id, struct err *e);

/* E_USAGE if the name is invalid, or taken and --force was not given. */
enum status baseline_may_write(const struct options *o, const char *name, const char *host_id,
                               struct err *e);

/* Copy a run's files; an existing baseline of that name is replaced. Copied under another name,
 * then renamed: a name holds a whole run or nothing. */
enum status baseline_copy(const struct options *o, const char *name, const char *host_id,
                          const char *run, struct err *e);
enum status baseline_remove(const char *dir, struct err *e);
