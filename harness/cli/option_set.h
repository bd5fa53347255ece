/* SPDX-License-Identifier: MIT
 *
 * Setting one option. */
#pragma once

#include "option_table.h"

/* Where a value comes from; a later source overrides an earlier one. */
enum option_source {
    FROM_PRESET,
    FROM_COMMAND, /* its own default */
    FROM_OTHERS,  /* follows from other options: options_default */
    FROM_ENVIRONMENT,
    FROM_EARLIER, /* what is continued was begun with it */
    FROM_USER
};

/* Set option `index` of the table. `value` is NULL if none was written. `depth` is that of the
 * @file it stands in, 0 on the command line: what stands beside an @file overrides what the file
 * says, before or after it. A list grows if it was last set from the same source and depth. Errors
 * name the option as --name. */
enum status option_set(struct options *o, int index, const char *value, enum option_source from,
                       int depth, struct err *e);
