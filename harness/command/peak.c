/* SPDX-License-Identifier: MIT
 *
 * `bench peak`, hidden: the child that measures what the machine can do at best. One line on
 * stdout, for peaks_measure. */
#include "commands.h"

#include "harness/machine/peak.h"
#include "harness/util/fileio.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

static enum status measure_peaks(const struct options *opt, const struct topo *t, struct peaks *out,
                                 struct err *e)
{
    struct topo_facts f;
    enum status st;

    topo_facts(t, &f);
    const int threads = opt->threads.n > 0 ? opt->threads.v[0] : f.allowed_cores;
    int *const cpus = malloc((size_t)threads * sizeof(*cpus));
    if (!cpus)
        return fail(e, E_NOMEM, "no memory to place %d threads  -> free some", threads);
    st = topo_plan(t, opt->pin, threads, cpus, e);
    if (st == OK)
        st = peak_run_in_process(t, threads, cpus, out, e);
    free(cpus);
    return st;
}

int cmd_peak(struct options *opt)
{
    struct topo *t;
    struct peaks p;
    struct err e;
    char line[512];
    enum status st;

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody waits for the answer of an orphan */
    cpu_limit((enum isa)opt->max_isa);
    st = topo_open(&t, NULL, &e);
    if (st == OK) {
        st = measure_peaks(opt, t, &p, &e);
        topo_close(t);
    }
    if (st == OK) {
        peaks_format(&p, line, sizeof(line));
        printf("%s\n", line);
        st = file_flush(stdout, "the standard output", &e);
    }
    return st == OK ? EXIT_FINE : report_error(st, &e);
}
