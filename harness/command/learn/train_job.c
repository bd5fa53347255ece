/* SPDX-License-Identifier: MIT
 *
 * Asks a child for one training. */
#include "harness/command/child_requests.h"

static void no_fields(void *arg, const char *name, const char *value) {}

enum status training_run(const struct options *o, const struct child_setup *setup, struct err *e)
{
    char *const line = options_command_line(o);
    const enum status st = child_ask_to_the_end(setup, &request_train, line, no_fields, NULL, e);

    free(line);
    return st;
}
