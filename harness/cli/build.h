/* SPDX-License-Identifier: MIT
 *
 * What this binary was built from: every run records it. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

extern const char build_version[];
extern const char build_commit[]; /* abbreviated hash, or "nogit" outside a git work tree */
extern const bool build_dirty;    /* the work tree differed from that commit */
extern const char build_compiler[];
extern const char build_flags[]; /* of every file; the ISA files add their own */

/* Version, compiler, flags and libraries: bench --version. */
void version_print(FILE *f);
