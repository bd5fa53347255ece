/* SPDX-License-Identifier: MIT
 *
 * Facts about the machine, from the CPU, /proc, /sys and hwloc. */
#include "env.h"

#include "harness/util/fileio.h"
#include "harness/util/suggest.h"
#include "harness/util/text.h"
#include "variants/base/cpu.h"

#include <dirent.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <xxhash.h>

/* "MemTotal: 8388608 kB" of /proc/meminfo in bytes. */
static int64_t memory(const char *key)
{
    char text[64];

    return file_key("/proc/meminfo", key, text, sizeof(text)) ? strtoll(text, NULL, 10) * 1024 : 0;
}

/* ---- one fact each ------------------------------------------------------------------------ */

/* PRETTY_NAME="..." and the release. */
static void kernel_name(char *buf, size_t size)
{
    char name[128];
    struct utsname u;

    if (!file_key("/etc/os-release", "PRETTY_NAME", name, sizeof(name)))
        snprintf(name, sizeof(name), "unknown system");
    const char *const start = name + (name[0] == '"');
    const size_t n = strcspn(start, "\"");
    if (uname(&u) == 0)
        snprintf(buf, size, "%.*s, %s %s", (int)n, start, u.sysname, u.release);
    else
        snprintf(buf, size, "%.*s", (int)n, start);
}

static void hypervisor_name(char *buf, size_t size)
{
    static const struct {
        const char *signature, *name;
    } known[] = {
        {"KVMKVMKVM", "KVM"},      {"Microsoft Hv", "Hyper-V"}, {"VMwareVMware", "VMware"},
        {"XenVMMXenVMM", "Xen"},   {"TCGTCGTCGTCG", "QEMU"},    {"VBoxVBoxVBox", "VirtualBox"},
        {"bhyve bhyve ", "bhyve"}, {"ACRNACRNACRN", "ACRN"},    {" lrpepyh  vr", "Parallels"},
    };
    char signature[HYPERVISOR_SIZE];

    buf[0] = '\0';
    cpu_hypervisor(signature);
    if (!signature[0]) {
        char type[32]; /* paravirtual guests have none */
        if (file_key("/sys/hypervisor/type", "", type, sizeof(type)))
            snprintf(buf, size, "%s", type);
        return;
    }
    snprintf(buf, size, "unknown");
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(signature, known[i].signature) == 0)
            snprintf(buf, size, "%s", known[i].name);
}

/* The word in brackets of "always [madvise] never". */
static void huge_page_mode(char *buf, size_t size)
{
    char line[128];

    buf[0] = '\0';
    if (!file_key("/sys/kernel/mm/transparent_hugepage/enabled", "", line, sizeof(line)))
        return;
    const char *const open = strchr(line, '[');
    if (open)
        snprintf(buf, size, "%.*s", (int)strcspn(open + 1, "]"), open + 1);
}

static void governor_of(const struct topo *t, char *buf, size_t size)
{
    char path[96];
    int n;
    const struct topo_cpu *const cpus = topo_cpus(t, &n);

    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor",
             n > 0 ? cpus[0].cpu : 0);
    if (!file_key(path, "", buf, size))
        snprintf(buf, size, "none");
}

static void boost_state(char *buf, size_t size)
{
    char text[8];

    buf[0] = '\0';
    if (file_key("/sys/devices/system/cpu/cpufreq/boost", "", text, sizeof(text)))
        snprintf(buf, size, "%s", text[0] == '1' ? "on" : "off");
    else if (file_key("/sys/devices/system/cpu/intel_pstate/no_turbo", "", text, sizeof(text)))
        snprintf(buf, size, "%s", text[0] == '0' ? "on" : "off");
}

/* What the kernel does about each weakness that this CPU has, without its details. */
static void mitigations(char *buf, size_t size)
{
    static const char dir[] = "/sys/devices/system/cpu/vulnerabilities";
    struct dirent **entries = NULL;
    const int n = scandir(dir, &entries, NULL, alphasort);

    buf[0] = '\0';
    for (int i = 0; i < n; i++) {
        char path[512], text[256];
        snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && file_key(path, "", text, sizeof(text)) &&
            strcmp(text, "Not affected") != 0)
            text_append(buf, size, "%s%s=%.*s", *buf ? ";" : "", entries[i]->d_name,
                        (int)strcspn(text, ";"), text);
        free(entries[i]);
    }
    free(entries);
}

static void libc_name(char *buf, size_t size)
{
    if (confstr(_CS_GNU_LIBC_VERSION, buf, size) == 0)
        buf[0] = '\0';
}

/* Two runtimes in one process mean two thread pools, so all are listed. */
static int note_openmp(struct dl_phdr_info *info, size_t info_size, void *arg)
{
    struct env_facts *const f = arg;
    const char *const slash = strrchr(info->dlpi_name, '/');
    const char *const name = slash ? slash + 1 : info->dlpi_name;

    (void)info_size;
    if (strncmp(name, "libgomp", 7) == 0 || strncmp(name, "libomp", 6) == 0 ||
        strncmp(name, "libiomp", 7) == 0)
        text_join(f->openmp, sizeof(f->openmp), " ", name);
    return 0;
}

/* Stable from run to run; the CPUs that exist, not those allowed today. */
static void host_hash(const struct env_facts *f, char *buf, size_t size)
{
    const int64_t gib = (int64_t)1 << 30;
    char text[512];
    const int n =
        snprintf(text, sizeof(text), "%s|%s|%d %d %d %d %d|%zu %zu %zu %d|%lld|%s", f->cpu_model,
                 f->isa, f->topo.packages, f->topo.numa_nodes, f->topo.cores, f->topo.cpus,
                 f->topo.smt, f->topo.l1d_bytes, f->topo.l2_bytes, f->topo.l3_bytes,
                 f->topo.l3_count, (long long)((f->memory_bytes + gib / 2) / gib), f->hypervisor);

    CHECK(n > 0 && (size_t)n < sizeof(text));
    snprintf(buf, size, "%016llx", (unsigned long long)XXH3_64bits(text, (size_t)n));
}

/* Schedulers and interrupts, idle states and clock rates, memory, weaknesses of the CPU. */
static const char *const kernel_options[] = {"mitigations",
                                             "isolcpus",
                                             "nohz",
                                             "nohz_full",
                                             "rcu_nocbs",
                                             "rcu_nocb_poll",
                                             "irqaffinity",
                                             "threadirqs",
                                             "preempt",
                                             "skew_tick",
                                             "nowatchdog",
                                             "nmi_watchdog",
                                             "nosmt",
                                             "maxcpus",
                                             "nr_cpus",
                                             "idle",
                                             "processor.max_cstate",
                                             "intel_idle.max_cstate",
                                             "cpuidle.off",
                                             "intel_pstate",
                                             "amd_pstate",
                                             "cpufreq.default_governor",
                                             "clocksource",
                                             "tsc",
                                             "no-kvmclock",
                                             "transparent_hugepage",
                                             "hugepages",
                                             "hugepagesz",
                                             "default_hugepagesz",
                                             "numa_balancing",
                                             "norandmaps",
                                             "nopti",
                                             "pti",
                                             "spectre_v2",
                                             "nospectre_v2",
                                             "retbleed",
                                             NULL};

void env_kernel_options(char *line)
{
    char *to = line, name[64];

    for (char *word = strtok(line, " "), *start = line; word; word = strtok(NULL, " ")) {
        const size_t n = strlen(word);
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
        if (word_index(name, kernel_options) < 0)
            continue;
        if (to > start)
            *to++ = ' ';
        memmove(to, word, n);
        to += n;
    }
    *to = '\0';
}

/* ---- public ------------------------------------------------------------------------------- */

void env_gather(const struct topo *t, struct env_facts *f)
{
    *f = (struct env_facts){.clock = clock_facts(),
                            .memory_bytes = memory("MemTotal"),
                            .memory_free_bytes = memory("MemAvailable")};
    f->quota = quota_find("");
    topo_facts(t, &f->topo);
    snprintf(f->hwloc, sizeof(f->hwloc), "%s", topo_library);
    if (gethostname(f->hostname, sizeof(f->hostname) - 1) != 0)
        f->hostname[0] = '\0';
    kernel_name(f->kernel, sizeof(f->kernel));
    cpu_name(f->cpu_model, sizeof(f->cpu_model));
    file_key("/proc/cpuinfo", "microcode", f->microcode, sizeof(f->microcode));
    snprintf(f->isa, sizeof(f->isa), "%s", isa_name[cpu_isa_unmasked()]);
    snprintf(f->max_isa, sizeof(f->max_isa), "%s", isa_name[cpu_isa()]);
    hypervisor_name(f->hypervisor, sizeof(f->hypervisor));
    huge_page_mode(f->huge_pages, sizeof(f->huge_pages));
    governor_of(t, f->governor, sizeof(f->governor));
    boost_state(f->boost, sizeof(f->boost));
    file_key("/proc/sys/kernel/randomize_va_space", "", f->aslr, sizeof(f->aslr));
    mitigations(f->mitigations, sizeof(f->mitigations));
    file_key("/proc/cmdline", "", f->kernel_options, sizeof(f->kernel_options));
    env_kernel_options(f->kernel_options);
    file_key("/sys/devices/system/clocksource/clocksource0/current_clocksource", "",
             f->clock_source, sizeof(f->clock_source));
    libc_name(f->libc, sizeof(f->libc));
    dl_iterate_phdr(note_openmp, f);
    env_overrides(environ, f->overrides, sizeof(f->overrides));
    if (getloadavg(&f->load_1min, 1) != 1)
        f->load_1min = 0;
    host_hash(f, f->host_id, sizeof(f->host_id));
}

int env_threads(const struct topo *t)
{
    const struct quota q = quota_find("");
    struct topo_facts f;

    topo_facts(t, &f);
    return quota_threads(&q, f.allowed_cores);
}

/* "1 MiB", "48 KiB": cache sizes are whole multiples of a unit. */
static void cache_size(size_t bytes, char *buf, size_t size)
{
    const size_t mib = (size_t)1 << 20;

    if (bytes % mib == 0)
        snprintf(buf, size, "%zu MiB", bytes / mib);
    else
        snprintf(buf, size, "%zu KiB", bytes / 1024);
}

void env_summary(const struct env_facts *f, char *buf, size_t size)
{
    const struct topo_facts *const t = &f->topo;
    char cpus[96], l2[24], l3[24];

    if (f->hypervisor[0])
        snprintf(cpus, sizeof(cpus), "%d vCPU (%s)", t->allowed_cpus, f->hypervisor);
    else if (t->smt)
        snprintf(cpus, sizeof(cpus), "%d core%s, %d threads", t->allowed_cores,
                 t->allowed_cores == 1 ? "" : "s", t->allowed_cpus);
    else
        snprintf(cpus, sizeof(cpus), "%d core%s", t->allowed_cores,
                 t->allowed_cores == 1 ? "" : "s");
    cache_size(t->l2_bytes, l2, sizeof(l2));
    cache_size(t->l3_bytes, l3, sizeof(l3));
    snprintf(buf, size, "%s, %s, %d NUMA node%s%s%s%s%s, %s", f->cpu_model, cpus, t->numa_nodes,
             t->numa_nodes == 1 ? "" : "s", t->l2_bytes ? ", L2 " : "", t->l2_bytes ? l2 : "",
             t->l3_bytes ? ", L3 " : "", t->l3_bytes ? l3 : "", f->isa);
}

struct env_ticks env_ticks(void)
{
    char line[256];
    struct env_ticks t = {0};

    if (!file_key("/proc/stat", "cpu ", line, sizeof(line)))
        return t;
    /* user nice system idle iowait irq softirq steal; user includes guest time */
    const char *at = line;
    for (int i = 0; i < 8; i++) {
        char *end;
        t.steal = strtoull(at, &end, 10);
        if (end == at)
            return (struct env_ticks){0};
        t.total += t.steal;
        at = end;
    }
    return t;
}

double env_steal_pct(const struct env_ticks *before, const struct env_ticks *after)
{
    if (after->total <= before->total || after->steal < before->steal)
        return 0;
    return 100.0 * (double)(after->steal - before->steal) / (double)(after->total - before->total);
}
