/* SPDX-License-Identifier: MIT
 *
 * The CPU quota of this process's control group: how much of the CPUs it may use, and how often it
 * was stopped for having used it. Of containers, batch systems and systemd; versions 1 and 2. */
#pragma once

#include "variants/base/base.h"

struct quota {
    double cpus;     /* of CPU time per second; NAN = no quota */
    char stat[4096]; /* cpu.stat of the group that has it */
};

/* The least quota of the group and of those above it. `root` is "" but for tests: the folder below
 * which /proc and the control groups are. What cannot be read is no quota. */
struct quota quota_find(const char *root);

/* Periods in which the group was stopped so far; 0 without a quota. */
int64_t quota_throttled(const struct quota *q);

/* At most `threads`, and no more than can run all the time; at least one. */
int quota_threads(const struct quota *q, int threads);
