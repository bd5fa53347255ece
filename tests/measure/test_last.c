/* SPDX-License-Identifier: MIT
 *
 * The last lines of a sweep, from medians whose ratios are known. */
#include "harness/measure/console.h"
#include "tests/support/command_line.h"
#include "tests/support/pty.h"

TestSuite(last, .init = folder_make, .fini = folder_remove, .timeout = 60);

struct last {
    struct options o;
    struct plan p;
};

/* ref takes twice as long: 2 ms +-2 %, 1 ms +-1 %. */
static void play_last(void *arg)
{
    struct last *const s = arg;
    struct seen seen[8];
    struct console show;
    struct err e;

    CHECK(console_open(&show, &s->o, &tables[TABLE_LATENCY], s->p.n, &e) == OK);
    for (int i = 0; i < s->p.n; i++) {
        const double k = s->p.cases[i].backend == &backend_ref ? 2 : 1;
        seen[i] = (struct seen){&s->p.cases[i], k * 1e6, k * 1e6 * (1 - 0.01 * k),
                                k * 1e6 * (1 + 0.01 * k)};
    }
    console_fastest(&show, seen, s->p.n);
}

Test(last, ratios_of_backends_have_intervals)
{
    static struct view v;
    struct last s = {0};

    must_plan(&s.p, &s.o,
              "--variant xl --backend ref,avx2 --workload attn --seq 4,8 --mem 0 "
              "--threads 1 --format table");
    cr_assert_eq(s.p.n, 4);
    watch(&v, ON_STDOUT, 100, play_last, &s);
    /* log(2.04/1.96)/2 and log(1.01/0.99)/2, squared, over two shapes: 2 exp(+-0.0158) */
    cr_expect(strstr(v.screen, "\nfastest for xl: avx2, 2.00x ref [1.97 2.03] "
                               "(geometric mean of 2 shapes)\n"),
              "%s", v.screen);
    drop_plan(&s.p, &s.o);
}
