/* SPDX-License-Identifier: MIT
 *
 * /proc/self/cgroup says which groups this process is in, /proc/self/mountinfo where they are
 * mounted. In a container the path may lie above what is mounted: then the mount itself is the
 * group, which is where the walk upwards ends. */
#include "quota.h"

#include "harness/util/fileio.h"

enum { PATH = 4096 };

/* Version 2: "50000 100000" or "max 100000" in cpu.max. Version 1: two files, -1 = none. NAN: no
 * quota. */
static double quota_of(const char *group, bool two)
{
    char path[2 * PATH + 32], line[256];
    double used = NAN, period = NAN;

    snprintf(path, sizeof(path), "%s/%s", group, two ? "cpu.max" : "cpu.cfs_quota_us");
    file_key(path, "", line, sizeof(line)); /* "": no number */
    (void)sscanf(line, "%lf %lf", &used, &period);
    if (!two) {
        snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", group);
        period = file_key(path, "", line, sizeof(line)) ? strtod(line, NULL) : NAN;
    }
    return used > 0 && period > 0 ? used / period : NAN;
}

/* Is a word of a list that commas separate? */
static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);

    for (; *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",\n") == n && memcmp(list, word, n) == 0)
            return true;
    return false;
}

/* The path of this process's group: "0::/a/b" of version 2, "4:cpu,cpuacct:/a/b" of version 1. */
static bool read_group(char *line, bool two, char path[PATH])
{
    char *const names = strchr(line, ':'), *const at = names ? strchr(names + 1, ':') : NULL;

    if (!at)
        return false;
    *at = '\0';
    snprintf(path, PATH, "%.*s", (int)strcspn(at + 1, "\n"), at + 1);
    return two ? strncmp(line, "0:", 2) == 0 && names[1] == '\0' : has_word(names + 1, "cpu");
}

/* Where groups are mounted: fields 5, and after " - " the type and, last, the options. */
static bool read_mount(char *line, bool two, char mount[PATH])
{
    const char *const rest = strstr(line, " - ");
    char type[64], options[PATH];

    if (!rest || sscanf(line, "%*s %*s %*s %*s %4095s", mount) != 1 ||
        sscanf(rest, " - %63s %*s %4095s", type, options) != 2)
        return false;
    return two ? strcmp(type, "cgroup2") == 0
               : strcmp(type, "cgroup") == 0 && has_word(options, "cpu");
}

/* What `read` makes of the first line that it takes. */
static bool find_line(const char *root, const char *file, bool two,
                      bool (*read)(char *line, bool two, char out[PATH]), char out[PATH])
{
    char line[2 * PATH];
    bool found = false;

    snprintf(line, PATH, "%s/proc/self/%s", root, file);
    FILE *const f = fopen(line, "re");
    while (f && !found && fgets(line, sizeof(line), f))
        found = read(line, two, out);
    if (f)
        fclose(f);
    return found;
}

/* From the group up to where it is mounted. */
static void look(struct quota *q, const char *root, bool two)
{
    char path[PATH], mount[PATH], group[2 * PATH], *slash;

    if (!find_line(root, "cgroup", two, read_group, path) ||
        !find_line(root, "mountinfo", two, read_mount, mount))
        return;
    do {
        snprintf(group, sizeof(group), "%s%s%s", root, mount, path);
        const double cpus = strlen(group) < PATH - 16 ? quota_of(group, two) : NAN;
        if (isfinite(cpus) && !(q->cpus <= cpus)) {
            q->cpus = cpus;
            snprintf(q->stat, sizeof(q->stat), "%.4000s/cpu.stat", group);
        }
        slash = strrchr(path, '/');
        if (slash)
            *slash = '\0';
    } while (slash);
}

struct quota quota_find(const char *root)
{
    struct quota q = {.cpus = NAN};

    look(&q, root, true);
    look(&q, root, false);
    return q;
}

int64_t quota_throttled(const struct quota *q)
{
    char line[256];

    return q->stat[0] && file_key(q->stat, "nr_throttled ", line, sizeof(line))
               ? strtoll(line, NULL, 10)
               : 0;
}

int quota_threads(const struct quota *q, int threads)
{
    return isfinite(q->cpus) && q->cpus < threads ? max_int(1, (int)q->cpus) : max_int(1, threads);
}
