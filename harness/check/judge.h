/* SPDX-License-Identifier: MIT
 *
 * Is a kernel from a file right, complete and honest? Its functions run the cases of op_cases.h that they
 * take, then one large case again and again. Everything is said as it is found, because the kernel may
 * end the process. */
#pragma once

#include "variants/base/base.h"

enum { JUDGE_CASES = 200 }; /* of each function, at most */

/* `what` is
 *   kernel   NAME@VERSION
 *   now      what is about to run; "edge ": results end at a page that cannot be touched
 *   ran      how many cases of a function
 *   rate     FLOP BYTES SECONDS FUNCTION
 *   varies   FUNCTION
 *   TRAP     a trap of docs/kernels.md, with '_' for its blank: the evidence */
typedef void judge_said(void *arg, const char *what, const char *text);

enum status judge(const char *path, int threads, uint64_t seed, judge_said *say, void *arg,
                  struct err *e);
