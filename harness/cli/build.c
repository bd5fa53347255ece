/* SPDX-License-Identifier: MIT
 *
 * Facts about the build, and bench --version: also the libraries in use, asked at run time where the
 * library can answer. The Makefile writes build_info.h into the build folder and rewrites it only
 * when a fact changes, so that a new commit recompiles this file and no other. */
#include "build.h"
#include "build_info.h"
#include "harness/util/ranks.h"

#include "variants/backends/backend.h"

#include <csv.h>
#include <hwloc.h>
#include <jansson.h>
#include <utf8proc.h>
#include <xxhash.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#if HAVE_ZSTD
#include <zstd.h>
#endif

const char build_version[] = "0.4.0";
const char build_commit[] = BUILD_COMMIT;
const bool build_dirty = BUILD_DIRTY;
const char build_compiler[] = BUILD_COMPILER;
const char build_flags[] = BUILD_FLAGS;

/* Libraries used by backends. */
static void print_of_backends(FILE *f)
{
    for (int i = 0; backends[i]; i++)
        if (backends[i]->config)
            fprintf(f, ", %s", backends[i]->config());
}

/* "hwloc 2.9, jansson 2.14, ..., OpenBLAS 0.3.21 ..., oneDNN 2.6.3 ...", with a newline. */
static void version_libraries(FILE *f)
{
    const unsigned hwloc = hwloc_get_api_version();
    const unsigned hash = XXH_versionNumber();
    char pcre2[32] = ""; /* and its date */

    pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    fprintf(f, "hwloc %u.%u, jansson %s, libcsv %d.%d.%d, xxHash %u.%u.%u, PCRE2 %.*s, utf8proc %s",
            hwloc >> 16, hwloc >> 8 & 255, jansson_version_str(), CSV_MAJOR, CSV_MINOR, CSV_RELEASE,
            hash / 10000, hash / 100 % 100, hash % 100, (int)strcspn(pcre2, " "), pcre2,
            utf8proc_version());
#if HAVE_ZSTD
    fprintf(f, ", zstd %s", ZSTD_versionString());
#endif
    if (ranks_library())
        fprintf(f, ", %s", ranks_library());
    print_of_backends(f);
    fputc('\n', f);
}

void version_print(FILE *f)
{
    fprintf(f, "bench %s (%s%s)\n", build_version, build_commit, build_dirty ? ", modified" : "");
    fprintf(f, "compiler: %s\nflags: %s\nlibraries: ", build_compiler, build_flags);
    version_libraries(f);
}
