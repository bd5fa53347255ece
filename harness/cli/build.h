/* SPDX-License-Identifier: MIT
 *
 * What this binary was built from: every run records it. */
#ifndef BUILD_H
#define BUILD_H

#include <stdbool.h>

extern const char build_version[];
extern const char build_commit[]; /* abbreviated hash, or "nogit" outside a git work tree */
extern const bool build_dirty;    /* the work tree differed from that commit */
extern const char build_compiler[];
extern const char build_flags[]; /* of every file; the ISA files add their own */

#endif
