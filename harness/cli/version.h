/* SPDX-License-Identifier: MIT
 *
 * Version of this program and of its libraries. */
#ifndef VERSION_H
#define VERSION_H

#include <stdio.h>

/* Version, compiler, flags and libraries: bench --version. */
void version_print(FILE *f);

#endif
