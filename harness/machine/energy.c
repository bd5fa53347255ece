/* SPDX-License-Identifier: MIT
 *
 * /sys/class/powercap has a folder for each zone; those of whole packages are named "package-N", whatever
 * driver counts (intel-rapl also on AMD). Zones inside a package (core, uncore, dram) would count twice. */
#include "energy.h"

#include "harness/util/fileio.h"

#include <dirent.h>

static const char zones[] = "/sys/class/powercap";

/* NAN if there is no number. */
static double read_number(const char *path)
{
    char text[64], *end;

    file_key(path, "", text, sizeof(text));
    const double x = strtod(text, &end);
    return end == text ? NAN : x;
}

static bool is_package(const char *root, const char *zone)
{
    char path[768], number[64];

    snprintf(path, sizeof(path), "%s%s/%s/name", root, zones, zone);
    return file_key(path, "package-", number, sizeof(number));
}

/* False if its counter cannot be read. */
static bool add_package(struct energy *e, const char *root, const char *zone)
{
    struct energy_package *const p = &e->package[e->packages];
    char path[768];

    snprintf(path, sizeof(path), "%s%s/%s/max_energy_range_uj", root, zones, zone);
    p->range = read_number(path);
    const int n = snprintf(p->path, sizeof(p->path), "%s%s/%s/energy_uj", root, zones, zone);
    if (n >= (int)sizeof(p->path) || !(p->range > 0) || !(read_number(p->path) >= 0))
        return false;
    e->packages++;
    return true;
}

void energy_find(struct energy *e, const char *root)
{
    char path[512];
    bool all = true;

    e->packages = 0;
    snprintf(path, sizeof(path), "%s%s", root, zones);
    DIR *const folder = opendir(path);
    for (struct dirent *d; folder && all && (d = readdir(folder));)
        if (d->d_name[0] != '.' && is_package(root, d->d_name))
            all = e->packages < MOST_PACKAGES && add_package(e, root, d->d_name);
    if (folder)
        closedir(folder);
    if (!all)
        e->packages = 0;
}

void energy_start(struct energy *e)
{
    for (int i = 0; i < e->packages; i++)
        e->package[i].start = read_number(e->package[i].path);
}

double energy_joules(const struct energy *e)
{
    double sum = e->packages > 0 ? 0 : NAN;

    for (int i = 0; i < e->packages; i++) {
        const struct energy_package *const p = &e->package[i];
        const double used = read_number(p->path) - p->start;
        sum += used < 0 ? used + p->range : used;
    }
    return sum * 1e-6;
}
