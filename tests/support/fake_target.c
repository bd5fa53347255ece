/* SPDX-License-Identifier: MIT
 *
 * The fake target and the emit function that records its calls. */
#include "fake_target.h"

#include "variants/base/rng.h"

#include <criterion/criterion.h>

const struct schedule usual_schedule = {.max_time_s = 3,
                                        .min_samples = 15,
                                        .target_ci = 0.01,
                                        .block_ms = 5,
                                        .warmup_ms = 300,
                                        .interleave = true,
                                        .seed = 1};

static enum status fake_block(void *ctx, uint32_t calls, bool prime, struct sample *x,
                              struct err *e)
{
    struct fake *f = ctx;
    const double u = 2 * rng_uniform(f->seed, 1, (uint64_t)f->blocks) - 1;

    f->blocks++;
    f->primed += prime;
    if (f->blocks == f->stop_at)
        *f->stop = 1;
    if (f->blocks == f->fail_at)
        return fail(e, f->fails_with, "fake failed  -> nothing");
    const double call_ns = f->blocks == 1 && f->first_ns > 0 ? f->first_ns : f->call_ns;
    x->wall_ns = call_ns * calls * (1 + f->noise * u) * (f->blocks == f->slow_at ? 10 : 1);
    x->cpu_ns = x->wall_ns / 2;
    x->involuntary_switches = f->switches_every && f->blocks % f->switches_every == 0;
    return OK;
}

static enum status note(void *arg, int target, const struct sample *s, const struct outcome *o,
                        struct err *e)
{
    struct diary *d = arg;

    if (!s) {
        d->done[target]++;
        d->why[target] = o->stop;
        return d->fail_done ? fail(e, E_IO, "disk full  -> free some") : OK;
    }
    d->late += d->done[target];
    cr_assert_lt(d->n, MOST_BLOCKS);
    d->target[d->n] = target;
    d->sample[d->n++] = *s;
    return d->n == d->fail_at ? fail(e, E_IO, "disk full  -> free some") : OK;
}

enum status measure_fakes(struct bed *b, int n, const struct schedule *s)
{
    struct side t[MOST_TARGETS];

    for (int i = 0; i < n; i++) {
        b->fake[i].seed = 100 + (uint64_t)i;
        t[i] = (struct side){.block = fake_block, .launch = {&b->fake[i]}, .launches = 1};
    }
    const enum status st = measure(t, n, s, note, &b->diary, b->out, &b->err);
    cr_expect_eq(b->diary.late, 0, "%d samples after their target was done", b->diary.late);
    return st;
}
