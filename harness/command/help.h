/* SPDX-License-Identifier: MIT
 *
 * Shared by help, the manual page and completion. All three are made from the tables of commands
 * and options, and from the registries. */
#pragma once

#include "harness/cli/option_table.h"

/* The i-th word that the option takes, NULL after the last: words of the table, values of a choice,
 * or names of variants, backends and figures. */
const char *option_value_at(const struct option_spec *s, int i);

/* Purpose, permitted words, and default for a command (-1: of the option): free it. */
char *option_text(const struct option_spec *s, int command);

extern const char *const option_group_title[GROUP_COUNT];

/* The page of one command, with its usual options or with all. */
void help_command(FILE *f, int command, bool all);

/* Its usage line, with all options. */
void help_usage(FILE *f, int command);

/* The page of the program. */
void help_general(FILE *f);

/* The manual page, in troff. */
void help_man(FILE *f);
