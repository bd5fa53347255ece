/* SPDX-License-Identifier: MIT
 *
 * Giving one option a value. */
#ifndef OPTION_SET_H
#define OPTION_SET_H

#include "option_table.h"

/* Where a value comes from; a later source replaces what an earlier one said. */
enum option_source { FROM_PRESET, FROM_ENVIRONMENT, FROM_USER };

/* Set option `index` of the table. `value` is NULL where none was written. A list grows if it was
 * last set by the same source. Errors name the option as --name. */
enum status option_set(struct options *o, int index, const char *value, enum option_source from,
                       struct err *e);

#endif
