/* SPDX-License-Identifier: MIT
 *
 * Facts about the machine, from the CPU, /proc, /sys and hwloc. */
#include "env.h"

#include "clock.h"

#include <dirent.h>
#include <link.h>
#include <sys/utsname.h>
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

    cpu_hypervisor(signature);
    if (!signature[0]) { /* paravirtual guests have none */
        file_key("/sys/hypervisor/type", "", buf, size);
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

/* Two runtimes in one process mean two thread pools, so all are listed. */
static int note_openmp(struct dl_phdr_info *info, size_t info_size, void *arg)
{
    struct env_row *const row = arg;
    const char *const name = path_name(info->dlpi_name);

    if (strncmp(name, "libgomp", 7) == 0 || strncmp(name, "libomp", 6) == 0 ||
        strncmp(name, "libiomp", 7) == 0)
        text_join(row->openmp, sizeof(row->openmp), " ", name);
    return 0;
}

/* Stable from run to run; the CPUs that exist, not those allowed today. */
static void host_hash(const struct env_facts *f, char *buf, size_t size)
{
    const int64_t gib = (int64_t)1 << 30;
    char text[LINE_SIZE + 512];
    const int n = snprintf(text, sizeof(text), "%s|%s|%d %d %d %d %d|%zu %zu %zu %d|%lld|%s",
                           f->row.cpu_model, f->row.isa, f->topo.packages, f->topo.numa_nodes,
                           f->topo.cores, f->topo.cpus, f->topo.smt, f->topo.l1d_bytes,
                           f->topo.l2_bytes, f->topo.l3_bytes, f->topo.l3_count,
                           (long long)((f->row.memory_bytes + gib / 2) / gib), f->row.hypervisor);

    CHECK(n > 0 && (size_t)n < sizeof(text));
    snprintf(buf, size, "%016llx", (unsigned long long)XXH3_64bits(text, (size_t)n));
}

/* Those of schedulers and interrupts, of idle states and clock rates, of memory, and
 * against weaknesses of the CPU. */
static const char kernel_options[] =
    "isolcpus nohz nohz_full rcu_nocbs rcu_nocb_poll irqaffinity threadirqs preempt skew_tick"
    " nowatchdog nmi_watchdog nosmt maxcpus nr_cpus"
    " idle processor.max_cstate intel_idle.max_cstate cpuidle.off intel_pstate amd_pstate"
    " cpufreq.default_governor clocksource tsc no-kvmclock"
    " transparent_hugepage hugepages hugepagesz default_hugepagesz numa_balancing norandmaps"
    " mitigations nopti pti spectre_v2 nospectre_v2 retbleed";

void env_kernel_options(char *line)
{
    char *to = line;

    for (char *word = strtok(line, " "), *start = line; word; word = strtok(NULL, " ")) {
        const size_t n = strlen(word);
        if (!text_has_word(kernel_options, word, strcspn(word, "=")))
            continue;
        if (to > start)
            *to++ = ' ';
        memmove(to, word, n);
        to += n;
    }
    *to = '\0';
}

/* Some are what a user has set, or a hypervisor. */
static void clean_texts(struct env_row *row)
{
    const struct table *const t = &tables[TABLE_ENV];

    for (int i = 0; i < t->n; i++) {
        const struct column *const c = &t->columns[i];
        char text[PAGE_TEXT_SIZE], *const at = (char *)row + c->offset;
        if (c->type == COLUMN_TEXT) {
            memcpy(text, at, c->size);
            text_put(at, c->size, text);
        }
    }
}

/* ---- public ------------------------------------------------------------------------------- */

void env_gather(const struct topo *topo, struct env_facts *f)
{
    const struct clock_facts clock = clock_facts();
    struct env_row *const row = &f->row;
    struct topo_facts *const t = &f->topo;

    *row = env_row_empty();
    f->quota = quota_find("");
    topo_facts(topo, t);
    row->clock_resolution_ns = clock.resolution_ns;
    row->clock_overhead_ns = clock.overhead_ns;
    row->memory_bytes = memory("MemTotal");
    row->memory_free_bytes = memory("MemAvailable");
    row->cpu_quota = f->quota.cpus;
    row->packages = t->packages;
    row->numa_nodes = t->numa_nodes;
    row->cores = t->cores;
    row->cpus = t->cpus;
    row->smt = t->smt;
    row->allowed_cores = t->allowed_cores;
    row->allowed_cpus = t->allowed_cpus;
    row->core_kinds = t->kinds;
    row->l1d_bytes = (int64_t)t->l1d_bytes;
    row->l2_bytes = (int64_t)t->l2_bytes;
    row->l3_bytes = (int64_t)t->l3_bytes;
    row->l3_count = t->l3_count;
    snprintf(row->cpuset, sizeof(row->cpuset), "%s", t->cpuset);
    snprintf(row->hwloc_version, sizeof(row->hwloc_version), "%s", topo_library);
    if (gethostname(row->hostname, sizeof(row->hostname) - 1) != 0)
        row->hostname[0] = '\0';
    kernel_name(row->kernel, sizeof(row->kernel));
    cpu_name(row->cpu_model, sizeof(row->cpu_model));
    file_key("/proc/cpuinfo", "microcode", row->microcode, sizeof(row->microcode));
    snprintf(row->isa, sizeof(row->isa), "%s", isa_name[cpu_isa_unmasked()]);
    snprintf(row->max_isa, sizeof(row->max_isa), "%s", isa_name[cpu_isa()]);
    hypervisor_name(row->hypervisor, sizeof(row->hypervisor));
    huge_page_mode(row->huge_pages, sizeof(row->huge_pages));
    governor_of(topo, row->governor, sizeof(row->governor));
    boost_state(row->boost, sizeof(row->boost));
    file_key("/proc/sys/kernel/randomize_va_space", "", row->aslr, sizeof(row->aslr));
    mitigations(row->mitigations, sizeof(row->mitigations));
    file_key("/proc/cmdline", "", row->kernel_options, sizeof(row->kernel_options));
    env_kernel_options(row->kernel_options);
    file_key("/sys/devices/system/clocksource/clocksource0/current_clocksource", "",
             row->clock_source, sizeof(row->clock_source));
    if (confstr(_CS_GNU_LIBC_VERSION, row->libc, sizeof(row->libc)) == 0)
        row->libc[0] = '\0';
    dl_iterate_phdr(note_openmp, row);
    env_overrides(environ, row->env_overrides, sizeof(row->env_overrides));
    if (getloadavg(&row->load_1min, 1) != 1)
        row->load_1min = 0;
    host_hash(f, row->host_id, sizeof(row->host_id));
    clean_texts(row);
}

int env_threads(const struct topo *t)
{
    const struct quota q = quota_find("");
    struct topo_facts f;

    topo_facts(t, &f);
    return quota_threads(&q, f.allowed_cores);
}

/* ", L2 1 MiB", ", L2 48 KiB": cache sizes are whole multiples of a unit. */
static void append_cache(char *buf, size_t size, const char *level, size_t bytes)
{
    const size_t mib = (size_t)1 << 20, kib = (size_t)1 << 10;
    const bool large = bytes % mib == 0;

    if (bytes)
        text_append(buf, size, ", %s %zu %s", level, bytes / (large ? mib : kib),
                    large ? "MiB" : "KiB");
}

void env_summary(const struct env_facts *f, char *buf, size_t size)
{
    const struct topo_facts *const t = &f->topo;
    const int cores = t->allowed_cores;

    snprintf(buf, size, "%s, ", f->row.cpu_model);
    if (f->row.hypervisor[0])
        text_append(buf, size, "%d vCPU (%s)", t->allowed_cpus, f->row.hypervisor);
    else
        text_append(buf, size, "%d core%s", cores, plural(cores));
    if (!f->row.hypervisor[0] && t->smt)
        text_append(buf, size, ", %d threads", t->allowed_cpus);
    text_append(buf, size, ", %d NUMA node%s", t->numa_nodes, plural(t->numa_nodes));
    append_cache(buf, size, "L2", t->l2_bytes);
    append_cache(buf, size, "L3", t->l3_bytes);
    text_append(buf, size, ", %s", f->row.isa);
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
