/* SPDX-License-Identifier: MIT
 *
 * Version of this program and of its libraries. */
#ifndef VERSION_H
#define VERSION_H

#include <stdio.h>

/* "hwloc 2.9, jansson 2.14, ..., OpenBLAS 0.3.21 ..., oneDNN 2.6.3 ...", with a newline. */
void version_libraries(FILE *f);

/* Version, compiler, flags and libraries: bench --version. */
void version_print(FILE *f);

#endif
