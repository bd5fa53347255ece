/* SPDX-License-Identifier: MIT
 *
 * The environment of measuring children, and the facts that a run is recorded with. */
#include "harness/machine/env.h"

#include "tests/support/failure.h"

#include <ctype.h>
#include <sched.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

static char *const parent[] = {"PATH=/bin",
                               "OPENBLAS_CORETYPE=Haswell",
                               "OMP_NUM_THREADS=3",
                               "GOMP_CPU_AFFINITY=0",
                               "GOMP_SPINCOUNT=INFINITE",
                               "KMP_BLOCKTIME=200",
                               "GOTO_NUM_THREADS=1",
                               "DNNL_VERBOSE=1",
                               "ONEDNN_MAX_CPU_ISA=AVX2",
                               "MKL_NUM_THREADS=9",
                               "MY_OMP_THING=kept",
                               "OMP=kept",
                               "EMPTY=",
                               NULL};

static int count(char *const *env, const char *variable)
{
    int n = 0;

    for (; *env; env++)
        n += strcmp(*env, variable) == 0;
    return n;
}

static int length(char *const *env)
{
    int n = 0;

    while (env[n])
        n++;
    return n;
}

Test(env, child_environment)
{
    const char *const kept[] = {
        "PATH=/bin", "MKL_NUM_THREADS=9",    "MY_OMP_THING=kept", "OMP=kept",
        "EMPTY=",    "GOMP_SPINCOUNT=10000", "KMP_BLOCKTIME=1"};
    char **env;

    env = env_child_environment(parent, NULL, NULL);
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        cr_expect_eq(count(env, kept[i]), 1, "%s", kept[i]);
    cr_expect_eq(length(env), ARRAY_LEN(kept), "%d variables", length(env));
    env_free(env);
}

Test(env, child_environment_with_libraries_told)
{
    char **env;

    env = env_child_environment(parent, "SkylakeX", "avx512_core");
    NUMBERS({count(env, "OPENBLAS_CORETYPE=SkylakeX"), 1},
            {count(env, "OPENBLAS_CORETYPE=Haswell"), 0},
            {count(env, "ONEDNN_MAX_CPU_ISA=AVX512_CORE"), 1},
            {count(env, "ONEDNN_MAX_CPU_ISA=AVX2"), 0});
    env_free(env);
    env = env_child_environment(parent + ARRAY_LEN(parent) - 1, "Zen", NULL);
    cr_expect_eq(length(env), 3);
    env_free(env);
}

Test(env, padding_is_one_variable_more)
{
    char *const none[] = {NULL};
    char **env = env_padded(none, 3);

    cr_expect(length(env) == 1 && count(env, "BENCH_PADDING=000") == 1);
    env_free(env);
    env = env_padded(parent, 1);
    NUMBERS({length(env), length(parent) + 1}, {count(env, "BENCH_PADDING=0"), 1},
            {count(env, parent[0]), count(parent, parent[0])});
    env_free(env);
}

Test(env, overrides)
{
    char all[1024], cut[32];

    env_overrides(parent, all, sizeof(all));
    TEXTS({all, "DNNL_VERBOSE=1;GOMP_CPU_AFFINITY=0;GOMP_SPINCOUNT=INFINITE;"
                "GOTO_NUM_THREADS=1;KMP_BLOCKTIME=200;MKL_NUM_THREADS=9;OMP_NUM_THREADS=3;"
                "ONEDNN_MAX_CPU_ISA=AVX2;OPENBLAS_CORETYPE=Haswell"});
    env_overrides(parent, cut, sizeof(cut));
    cr_expect_str_eq(cut, "DNNL_VERBOSE=1;GOMP_CPU_AFFI...", "%s", cut);
    env_overrides(parent + ARRAY_LEN(parent) - 1, cut, sizeof(cut));
    cr_expect_str_eq(cut, "");
}

Test(env, facts_of_this_machine)
{
    struct topo *t;
    struct env_facts f;

    MUST(topo_open(&t, NULL, &failure));
    setenv("OPENBLAS_CORETYPE", "Haswell", 1);
    env_gather(t, &f);
    topo_close(t);
    cr_expect_eq(strlen(f.row.host_id), 16);
    for (const char *c = f.row.host_id; *c; c++)
        cr_expect(isxdigit((unsigned char)*c) && !isupper((unsigned char)*c), "%s", f.row.host_id);
    cr_expect_neq(f.row.cpu_model[0], '\0');
    cr_expect_str_eq(f.row.isa, isa_name[cpu_isa_unmasked()]);
    cr_expect(strstr(f.row.kernel, ", Linux ") != NULL, "%s", f.row.kernel);
    NUMBERS({f.row.memory_bytes / 4096, sysconf(_SC_PHYS_PAGES) * (sysconf(_SC_PAGESIZE) / 4096)});
    cr_expect(f.row.memory_free_bytes > 0 && f.row.memory_free_bytes <= f.row.memory_bytes);
    cr_expect(strstr(f.row.env_overrides, "OPENBLAS_CORETYPE=Haswell") != NULL, "%s",
              f.row.env_overrides);
    cr_expect(strncmp(f.row.openmp, "libgomp", 7) == 0 || strncmp(f.row.openmp, "libomp", 6) == 0,
              "\"%s\"", f.row.openmp);
    cr_expect(f.row.clock_overhead_ns > 0 && f.row.clock_overhead_ns < 1e5);
    cr_expect_geq(f.row.load_1min, 0);
    cr_expect_neq(f.row.governor[0], '\0');
    if (access("/proc/sys/kernel/randomize_va_space", R_OK) == 0)
        cr_expect(strlen(f.row.aslr) == 1 && strchr("012", f.row.aslr[0]), "\"%s\"", f.row.aslr);
    cr_expect(!strstr(f.row.mitigations, "Not affected"), "%s", f.row.mitigations);
    cr_expect(!strchr(f.row.kernel_options, '\n') && !strchr(f.row.clock_source, '\n'));
    cr_expect(!f.row.mitigations[0] || strchr(f.row.mitigations, '='), "%s", f.row.mitigations);
#ifdef __GLIBC__
    const char *const libc = kept_text("glibc %s", gnu_get_libc_version());
    cr_expect_str_eq(f.row.libc, libc);
#endif
}

/* Of a machine where no two numbers are alike; what a user has set may be any bytes. */
Test(env, each_fact_has_its_column)
{
    struct env_facts f;
    struct topo *t;

    MUST(topo_open(&t,
                   "package:2 numa:2 l3:2(size=33554432) l2:4(size=1048576) "
                   "l1:1(size=49152) core:2 pu:2",
                   &failure));
    setenv("OMP_SCHEDULE", "a\001b", 1);
    env_gather(t, &f);
    topo_close(t);
    cr_expect(f.row.packages == 2 && f.row.numa_nodes == 4 && f.row.smt == 1);
    cr_expect(f.row.cores == 64 && f.row.cpus == 128);
    cr_expect(f.row.allowed_cores == 64 && f.row.allowed_cpus == 128 && f.row.core_kinds == 1);
    cr_expect(f.row.l1d_bytes == 49152 && f.row.l2_bytes == 1 << 20);
    cr_expect(f.row.l3_bytes == 32 << 20 && f.row.l3_count == 8);
    cr_expect_str_eq(f.row.cpuset, "0-127");
    cr_expect(strstr(f.row.env_overrides, "OMP_SCHEDULE=a") && !strchr(f.row.env_overrides, 1));
}

/* The host_id does not depend on the part of the machine that this process may use. */
Test(env, host_id_is_stable)
{
    struct env_facts all, one;
    struct topo *t;
    int n;
    cpu_set_t set;

    MUST(topo_open(&t, NULL, &failure));
    env_gather(t, &all);
    CPU_ZERO(&set);
    CPU_SET((topo_cpus(t, &n))[0].cpu, &set);
    topo_close(t);
    cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
    cpu_limit(ISA_BASE);
    setenv("OMP_NUM_THREADS", "1", 1);
    MUST(topo_open(&t, NULL, &failure));
    env_gather(t, &one);
    topo_close(t);
    cr_expect_eq(one.topo.allowed_cpus, 1);
    TEXTS({one.row.max_isa, "ref"}, {one.row.host_id, all.row.host_id});

    MUST(topo_open(&t, "numa:2 core:32 pu:2", &failure));
    env_gather(t, &one);
    topo_close(t);
    cr_expect_str_neq(one.row.host_id, all.row.host_id, "other CPUs, other machine");
}

Test(env, summary)
{
    struct env_facts f = {.row = {.cpu_model = "AMD EPYC", .hypervisor = "KVM", .isa = "avx512"},
                          .topo = {.allowed_cpus = 2,
                                   .allowed_cores = 2,
                                   .numa_nodes = 1,
                                   .l2_bytes = 1 << 20,
                                   .l3_bytes = 32 << 20}};
    char text[256];

    env_summary(&f, text, sizeof(text));
    cr_expect_str_eq(text, "AMD EPYC, 2 vCPU (KVM), 1 NUMA node, L2 1 MiB, L3 32 MiB, avx512");
    f.row.hypervisor[0] = '\0';
    f.topo = (struct topo_facts){.allowed_cpus = 128,
                                 .allowed_cores = 64,
                                 .smt = true,
                                 .numa_nodes = 2,
                                 .l2_bytes = 512 << 10};
    env_summary(&f, text, sizeof(text));
    cr_expect_str_eq(text, "AMD EPYC, 64 cores, 128 threads, 2 NUMA nodes, L2 512 KiB, avx512");
}

Test(env, ticks)
{
    const struct env_ticks now = env_ticks();
    const struct env_ticks a = {1000, 100}, b = {1400, 110};

    cr_expect_gt(now.total, 0);
    cr_expect_leq(now.steal, now.total);
    NUMBERS({env_steal_pct(&a, &b), 2.5, 1e-12}, {env_steal_pct(&b, &b), 0},
            {env_steal_pct(&b, &a), 0});
}

/* What a host's command line says of its disks, consoles and keys goes to nobody. */
Test(env, kernel_options_are_those_that_change_times)
{
    static const struct {
        const char *line, *kept;
    } is[] = {
        {"BOOT_IMAGE=/vmlinuz root=UUID=1-2 ro console=ttyS0 quiet secret=x", ""},
        {"ro mitigations=off isolcpus=2-3 x.y=z nohz_full=2-3 rcu_nocbs=2-3",
         "mitigations=off isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3"},
        {"nosmt  quiet  idle=poll", "nosmt idle=poll"},
        {"nohz", "nohz"},
        {"id=3 pre mitigation", ""},
        {"nohzx=1 xnohz nohz=", "nohz="},
        {"init=/sbin/mitigations root=mitigations", ""},
        {"", ""},
    };

    for (size_t i = 0; i < ARRAY_LEN(is); i++) {
        char line[128];
        snprintf(line, sizeof(line), "%s", is[i].line);
        env_kernel_options(line);
        cr_expect_str_eq(line, is[i].kept, "%s", is[i].line);
    }
}
