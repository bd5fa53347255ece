/* SPDX-License-Identifier: MIT
 *
 * Every backend besides ref and the levels of instructions (ISA_LIST): a file
 * variants/backends/NAME.c that defines backend_NAME, and a row here: its name, whether this build
 * has it, and the package without which a build does not; "" = it needs none. */
#pragma once

/* clang-format off */
/* X(name, built, package) */
#define BACKENDS(X) \
    X(openblas, HAVE_OPENBLAS, "libopenblas-openmp-dev") \
    X(onednn, HAVE_ONEDNN, "libdnnl-dev")
/* clang-format on */
