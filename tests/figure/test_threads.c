/* SPDX-License-Identifier: MIT
 *
 * Speed-up over threads: times that follow Amdahl's law give its serial fraction back. */
#include "tests/support/figure_rows.h"

TestSuite(plot_threads, .init = folder_make, .fini = folder_remove, .timeout = 240);

static void put_threads(struct rundir *r, const char *variant, int least, double serial)
{
    for (int n = least; n <= 8; n *= 2) {
        struct key_row k = key_of(r, variant, "one", 64, 0);
        k.threads = n;
        put_latency(r, &k, 1e6 * (serial + (1 - serial) / n), 1, 1);
    }
}

Test(plot_threads, times_give_speed_up_efficiency_and_serial_fraction)
{
    static const double serial[] = {0.25, 0};
    struct rundir r = made_open("aaaa");
    for (int v = 0; v < 2; v++)
        put_threads(&r, variants[v]->name, 1, serial[v]);
    struct plot p = plot_of(&r, "latency-threads");
    cr_assert_eq(p.rows.n, 2, "speed-up and efficiency");
    cr_assert_eq(p.series.n, 2);
    for (int v = 0; v < 2; v++)
        for (int n = 1; n <= 8; n *= 2) {
            const struct plot_point *const a = point_at(&p, 0, 0, v, 0, n);
            const double wanted = 1 / (serial[v] + (1 - serial[v]) / n);
            NUMBERS({a->y, wanted, 1e-9}, {a->z, serial[v], 1e-9},
                    {point_at(&p, 1, 0, v, 0, n)->y, wanted / n, 1e-9});
            if (n > 1) {
                cr_expect_lt(a->low, 0.9 * wanted);
                cr_expect_gt(a->high, 1.1 * wanted);
            }
            if (n == 8)
                cr_expect_float_eq(point_at(&p, 0, 0, v, 1, 8)->y, wanted, 1e-9, "Amdahl's curve");
        }
}

Test(plot_threads, without_one_thread_there_is_no_speed_up)
{
    struct rundir r = made_open("aaaa");
    put_threads(&r, variants[0]->name, 2, 0.1);
    struct plot p = plot_of(&r, "latency-threads");
    cr_expect_eq(p.n, 0);
    cr_expect_gt(strlen(p.why), 10);
}
