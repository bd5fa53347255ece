/* SPDX-License-Identifier: MIT
 *
 * Pinning a team: threads run where they were put, and one that is seen elsewhere is an error. */
#include "harness/machine/pin.h"
#include "tests/support/failure.h"

#include <omp.h>

static struct topo *this_machine(void)
{
    struct topo *t;

    MUST(topo_open(&t, NULL, &failure));
    return kept(t);
}

Test(pin, names_the_cpus_of_its_threads)
{
    struct topo *const topo = this_machine();
    struct team team;
    int n;
    char all[256];
    const struct topo_cpu *const cpu = topo_cpus(topo, &n);
    int cpus[2] = {cpu[0].cpu, cpu[n - 1].cpu};

    n = n > 1 ? 2 : 1;
    topo_format_cpus(cpus, n, all, sizeof(all));
    const char *const policy = kept_text(n > 1 ? "%d,%d" : "%d", cpus[n - 1], cpus[0]);
    MUST(pin_team(&team, topo, policy, n, &failure));
    cr_expect_eq(team.seen, n);
    cr_expect_eq(team.first_cpu, cpus[n - 1], "the first thread is on the first CPU of the list");
    cr_expect_str_eq(team.cpus, all);
}

/* A machine whose second thread, or only one, turns up elsewhere. */
static int astray(const struct topo *t)
{
    const int last = omp_get_thread_num() == omp_get_num_threads() - 1;

    return topo_where(t) + last;
}

Test(pin, a_thread_that_is_seen_elsewhere_is_an_error)
{
    struct topo *const topo = this_machine();
    struct team team;
    int n;

    topo_cpus(topo, &n);
    for (int threads = 1; threads <= n && threads <= 2; threads++) {
        cr_expect_eq(pin_team_seen(&team, topo, "compact", threads, topo_where, &failure), OK, "%s",
                     failure.msg);
        REFUSED(pin_team_seen(&team, topo, "compact", threads, astray, &failure), E_CHILD,
                "  -> use --pin none");
    }
}

/* Threads that are not pinned may be anywhere. */
Test(pin, none_asks_for_nothing)
{
    struct topo *const topo = this_machine();
    struct team team;

    cr_expect_eq(pin_team_seen(&team, topo, "none", 3, astray, &failure), OK, "%s", failure.msg);
    cr_expect(team.seen == 3 && team.first_cpu == -1);
}
