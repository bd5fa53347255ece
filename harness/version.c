/* SPDX-License-Identifier: MIT
 *
 * bench --version: the build and the libraries that the program runs with, asked at run time where
 * the library can answer. */
#include "version.h"
#include "build.h"

#include <csv.h>
#include <hwloc.h>
#include <jansson.h>
#include <xxhash.h>

#if HAVE_ZSTD
#include <zstd.h>
#endif

#if HAVE_OPENBLAS
/* Two functions of cblas.h, whose folder only openblas.c needs. */
char *openblas_get_config(void);
int openblas_get_parallel(void);

static void print_openblas(FILE *f)
{
    static const char *const threading[] = {"serial", "pthread", "openmp"};
    const int kind = openblas_get_parallel();

    fprintf(f, ", %s (%s)", openblas_get_config(),
            kind >= 0 && kind <= 2 ? threading[kind] : "unknown threading");
}
#else
static void print_openblas(FILE *f) { (void)f; }
#endif

void version_libraries(FILE *f)
{
    const unsigned hwloc = hwloc_get_api_version();
    const unsigned hash = XXH_versionNumber();

    fprintf(f, "hwloc %u.%u, jansson %s, libcsv %d.%d.%d, xxHash %u.%u.%u", hwloc >> 16,
            hwloc >> 8 & 255, jansson_version_str(), CSV_MAJOR, CSV_MINOR, CSV_RELEASE,
            hash / 10000, hash / 100 % 100, hash % 100);
#if HAVE_ZSTD
    fprintf(f, ", zstd %s", ZSTD_versionString());
#endif
    print_openblas(f);
    fputc('\n', f);
}

void version_print(FILE *f)
{
    fprintf(f, "bench %s (%s%s)\n", build_version, build_commit, build_dirty ? ", modified" : "");
    fprintf(f, "compiler: %s\nflags: %s\nlibraries: ", build_compiler, build_flags);
    version_libraries(f);
}
