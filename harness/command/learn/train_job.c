/* SPDX-License-Identifier: MIT
 *
 * Asks a child for one training. */
#include "train_job.h"

#include "harness/command/child_requests.h"

#include <stdlib.h>

static void no_fields(void *arg, const char *name, const char *value) {}

enum status training_run(const struct options *o, const struct child_setup *setup, struct err *e)
{
    struct child_setup patient = *setup;
    struct child child = {.protocol = {.fd = -1}};
    char *const line = options_command_line(o);

    patient.patience_s = 0; /* silent while it trains */
    enum status st = child_begin(&child, &patient, &request_train, line, e);
    if (st == OK)
        st = child_answer_to_the_end(&child, no_fields, NULL, e);
    child_close(&child);
    free(line);
    return st;
}
