/* SPDX-License-Identifier: MIT
 *
 * One training in a child of its own, as `bench train` runs it: for commands that run many. */
#pragma once

#include "harness/worker/child.h"

/* `o` was read from a command line (options_parse_again), which the child reads again. Waits for
 * the end. E_INTERRUPTED: stopped and saved; E_CHILD says how the child died. */
enum status training_run(const struct options *o, const struct child_setup *setup, struct err *e);
