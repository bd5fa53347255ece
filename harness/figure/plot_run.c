/* SPDX-License-Identifier: MIT
 *
 * Rows of figures, samples of the run. */
#include "plot_run.h"

#include "harness/measure/ranking.h"

void plot_run_open(struct plot_run *r, const struct plot_data *d)
{
    struct err e = {""};

    *r = (struct plot_run){0};
    if (d->table[TABLE_LATENCY].n > 0 && run_read(&r->read, d->dir, &e) == OK)
        r->run = r->read;
    for (int t = 0; t <= TABLE_ENV; t++)
        r->run.table[t] = d->table[t];
    if (d->table[TABLE_LATENCY].n > 0 && r->read.samples.n == 0)
        text_put(r->unsampled, sizeof(r->unsampled), e.msg[0] ? e.msg : "there are none");
}

void plot_run_close(struct plot_run *r) { run_free(&r->read); }

void plot_run_rank(const struct plot_data *d, bool color)
{
    struct plot_run r;

    plot_run_open(&r, d);
    rankings_show(stderr, &r.run, terminal_width(STDERR_FILENO), color);
    plot_run_close(&r);
}
