/* SPDX-License-Identifier: MIT
 *
 * Facts about the build. The Makefile writes build_info.h into the build folder and rewrites it
 * only when a fact changes, so that a new commit recompiles this file and no other. */
#include "build.h"
#include "build_info.h"

const char build_version[] = "0.3.0";
const char build_commit[] = BUILD_COMMIT;
const bool build_dirty = BUILD_DIRTY;
const char build_compiler[] = BUILD_COMPILER;
const char build_flags[] = BUILD_FLAGS;
