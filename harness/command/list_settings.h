/* SPDX-License-Identifier: MIT
 *
 * `bench list settings`: what --set takes, its values, and the variants that have it. */
#ifndef LIST_SETTINGS_H
#define LIST_SETTINGS_H

#include "harness/cli/options.h"

int list_settings(struct options *opt); /* returns the exit code */

#endif
