/* SPDX-License-Identifier: MIT
 *
 * The rows of WORKLOADS as values. */
#include "workloads.h"

#define X(id_, name_, scope_, context_, flags_, help_, not_all_, not_zero_, advice_)               \
    [WORK_##                                                                                       \
        id_] = {#name_, SCOPE_##scope_, CONTEXT_##context_, flags_, not_all_, not_zero_, advice_},
const struct workload_row workload_rows[WORK_COUNT] = {WORKLOADS(X)};
#undef X

#define X(id_, name_, ...) #name_,
const char *const workload_name[WORK_COUNT + 1] = {WORKLOADS(X) NULL};
