/* SPDX-License-Identifier: MIT
 *
 * CPU quotas below a root of the test's own, as systemd, Docker and Slurm lay them out. */
#include "harness/machine/quota.h"
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

TestSuite(quota, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* A file below the root, and the folders to it. */
static void put(const char *path, const char *text)
{
    must_shell("mkdir -p \"$(dirname '%s')\"", path);
    folder_put_text(path, text);
}

#define MOUNT_2 "30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
#define MOUNT_1                                                                                    \
    "31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"                            \
    "32 25 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"                            \
    "33 25 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"

static void machine(const char *mounts, const char *groups)
{
    put("proc/self/mountinfo", mounts);
    put("proc/self/cgroup", groups);
}

Test(quota, none)
{
    struct quota q = quota_find(folder); /* no /proc */

    cr_expect(isnan(q.cpus));
    NUMBERS({quota_throttled(&q), 0}, {quota_threads(&q, 7), 7}, {quota_threads(&q, 0), 1});
    machine(MOUNT_2, "0::/user.slice\n");
    put("sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
    cr_expect(isnan(quota_find(folder).cpus));
    machine(MOUNT_1, "4:memory:/a\n3:cpu,cpuacct:/a\n");
    put("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
    cr_expect(isnan(quota_find(folder).cpus));
}

/* The least of the group and of those above it stops it: its periods count. */
Test(quota, version_two)
{
    machine(MOUNT_2, "0::/a/b/c\n");
    put("sys/fs/cgroup/a/cpu.max", "400000 100000\n");
    put("sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
    put("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 4\n");
    put("sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/a/b/c/cpu.stat", "usage_usec 5\nnr_periods 0\nnr_throttled 0\n");
    struct quota q = quota_find(folder);
    NUMBERS({q.cpus, 1.5}, {quota_throttled(&q), 4}, {quota_threads(&q, 8), 1});
    put("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 5\nnr_periods 12\nnr_throttled 7\n");
    cr_expect_eq(quota_throttled(&q), 7);
}

/* In a container: its own root, seen from inside. */
Test(quota, version_two_of_a_container)
{
    machine(MOUNT_2, "0::/\n");
    put("sys/fs/cgroup/cpu.max", "250000 100000\n");
    struct quota q = quota_find(folder);
    NUMBERS({q.cpus, 2.5}, {quota_threads(&q, 8), 2}, {quota_threads(&q, 2), 2});
    machine(MOUNT_2, "0::/../other\n"); /* above what is mounted */
    cr_expect_eq(quota_find(folder).cpus, 2.5);
}

Test(quota, version_one)
{
    machine(MOUNT_1, "7:memory:/m\n4:cpuset:/s\n3:cpu,cpuacct:/docker/0123\n0::/\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us",
        "10000\n"); /* the container's, at the mount */
    put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/cpu,cpuacct/cpu.stat", "nr_periods 242\nnr_throttled 81\n");
    struct quota q = quota_find(folder);
    NUMBERS({q.cpus, 0.1, 1e-12}, {quota_throttled(&q), 81}, {quota_threads(&q, 2), 1});
    put("sys/fs/cgroup/cpu,cpuacct/docker/0123/cpu.cfs_quota_us", "5000\n");
    put("sys/fs/cgroup/cpu,cpuacct/docker/0123/cpu.cfs_period_us", "100000\n");
    cr_expect_float_eq(quota_find(folder).cpus, 0.05, 1e-12);
}

/* What is no quota stops nothing, and nothing is read beyond its end. */
Test(quota, garbage)
{
    machine(MOUNT_2, "0::/a\n");
    EACH_TEXT (bad, "", "\n", "x y\n", "-1 100000\n", "100000\n", "0 0\n", "nan nan\n") {
        put("sys/fs/cgroup/a/cpu.max", bad);
        cr_expect(isnan(quota_find(folder).cpus), "%s", bad);
    }
    machine("\n - \nx - cgroup2\n", "::\n0:\nx\n");
    cr_expect(isnan(quota_find(folder).cpus));
}
