/* SPDX-License-Identifier: MIT
 *
 * Kernels of this folder as a test's own folder has them: fast, as a judge calls them for seconds. */
#pragma once

#include "tests/support/program.h"

/* tests/judge/`name`.inc.c as the file `to`, behind which options may follow. */
static inline void compile_judged(const char *name, const char *to)
{
    need_programs("cc");
    must_shell("cc -O3 -fno-math-errno -fno-trapping-math -fno-signed-zeros -fassociative-math "
               "-march=native -w "
               "-I\"$SRC\"/variants/backends/library \"$SRC\"/tests/judge/%s.inc.c -o %s -lm",
               name, to);
}
