/* SPDX-License-Identifier: MIT
 *
 * Drives the peak loops: sizes buffers by the caches, runs all threads at once, and keeps the best
 * of several short blocks, because interference can only make a block slower. */
#include "peak.h"

#include "clock.h"
#include "variants/base/arena.h"

#include <omp.h>
#include <unistd.h>

#define BLOCK_S 2e-3 /* target length of a timed block, in seconds */

#define AND(ID, name, flags) , &peak_loops_##name
const struct peak_loops *const peak_loops[ISA_COUNT] = {&peak_loops_base ISA_LIST(AND)};
#undef AND

/* ---- sizes -------------------------------------------------------------------------------- */

/* Bytes that each thread reads to measure a level; 0 = no such level. */
struct slices {
    size_t l1, l2, l3, dram;
    size_t stride; /* bytes of memory per thread: the maximum of them */
};

/* How densely threads share cores and L3s. */
struct crowd {
    int per_core, per_l3; /* the most threads on one of them */
    int l3_used;
};

static struct crowd crowd_of(const struct topo *t, int threads, const int *cpus)
{
    struct crowd c = {1, 0, 0};
    int n, on_l3;
    const struct topo_cpu *const all = topo_cpus(t, &n);
    struct topo_facts f;

    topo_facts(t, &f);
    if (cpus[0] < 0) { /* not pinned: assume the widest spread */
        const int apart = max_int(min_int(f.l3_count, threads), 1);
        return (struct crowd){1 + (threads > f.allowed_cores), (threads + apart - 1) / apart,
                              apart};
    }
    for (int l3 = 0; l3 < max_int(f.l3_count, 1); l3++) {
        on_l3 = 0;
        for (int k = 0; k < n; k++)
            for (int i = 0; i < threads; i++) {
                if (all[k].cpu != cpus[i] || all[k].l3 != l3)
                    continue;
                on_l3++;
                c.per_core = max_int(c.per_core, all[k].sibling + 1);
            }
        c.per_l3 = max_int(c.per_l3, on_l3);
        c.l3_used += on_l3 > 0;
    }
    return c;
}

/* Total bytes of all threads, beyond the capacity of the L3s in use (`l3s` bytes together): four
 * times as much, or twice if four times takes too long; at most an eighth of the machine's memory.
 */
static size_t far_bytes(size_t l3s)
{
    const size_t least = (size_t)64 << 20, long_enough = (size_t)256 << 20;
    const size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    size_t n = 4 * l3s;

    if (n > long_enough)
        n = 2 * l3s > long_enough ? 2 * l3s : long_enough;
    if (n < least)
        n = least;
    return n < memory / 8 ? n : memory / 8;
}

/* Half of each cache that a thread has to itself, leaving room for other lines. An L3 slice is at
 * least 1.5 L2, so that the L2 cannot hold it, and no more than tells the two apart: L3s of shared
 * machines have hundreds of megabytes, which take long to map. */
static struct slices slices_of(const struct topo *t, int threads, const int *cpus, double seconds)
{
    enum { PAGE = 4096, HUGE_PAGE = 2 << 20 };
    const size_t enough = 16 << 20; /* of an L3 */
    const double byte_per_s = 10e9; /* of a slow machine's memory */
    const struct crowd c = crowd_of(t, threads, cpus);
    struct topo_facts f;
    struct slices s = {0};

    topo_facts(t, &f);
    s.l1 = f.l1d_bytes / (size_t)(2 * c.per_core) / PAGE * PAGE;
    s.l2 = f.l2_bytes / (size_t)(2 * c.per_core) / PAGE * PAGE;
    s.l3 = f.l3_bytes / (size_t)(2 * max_int(c.per_l3, 1)) / PAGE * PAGE;
    if (s.l3 > 8 * f.l2_bytes && s.l3 > enough)
        s.l3 = 8 * f.l2_bytes > enough ? 8 * f.l2_bytes : enough;
    if (s.l3 > 0 && s.l3 < f.l2_bytes * 3 / 2)
        s.l3 = round_up(f.l2_bytes * 3 / 2, PAGE);

    const size_t l3s = f.l3_bytes * (size_t)max_int(c.l3_used, 1), far = far_bytes(l3s);
    /* Unless there is too little memory to distinguish it from the cache, or too little time. */
    if (far >= l3s * 3 / 2 && (double)far <= seconds * byte_per_s)
        s.dram = round_up(far / (size_t)threads, HUGE_PAGE);
    s.stride = s.dram > s.l3 ? s.dram : round_up(s.l3, HUGE_PAGE);
    return s;
}

/* ---- blocks ------------------------------------------------------------------------------- */

struct crew {
    const struct topo *topo;
    int threads;
    const int *cpus;
    unsigned char *buf; /* one slice of `stride` bytes per thread */
    size_t stride;
};

/* A loop to time: multiply-adds, or reading `bytes` per thread and pass. */
struct load {
    const struct peak_loops *loops;
    size_t bytes;    /* 0 = multiply-adds */
    double work;     /* flop or bytes per count and thread */
    uint64_t counts; /* per block */
    double *best;    /* work per second of all threads */
    bool quiet;      /* some block was not preempted */
};

/* Pin the threads; each touches its own slice first, so that it is local and mapped. */
static enum status crew_settle(const struct crew *c, struct err *e)
{
    enum status st = OK;
    int started = 0;

#pragma omp parallel num_threads(c->threads) reduction(+ : started)
    {
        const int i = omp_get_thread_num();
        struct err mine;
        const enum status pinned = topo_pin(c->topo, c->cpus[i], &mine);

        started++;
        if (pinned == OK) {
            memset(c->buf + (size_t)i * c->stride, 1 + i % 255, c->stride);
        } else {
#pragma omp critical(peak_error)
            st = fail(e, pinned, "%s", mine.msg);
        }
    }
    if (st == OK && started != c->threads)
        st = fail(e, E_UNSUPPORTED,
                  "%d threads wanted, OpenMP started %d  -> unset OMP_THREAD_LIMIT and OMP_DYNAMIC",
                  c->threads, started);
    return st;
}

/* Seconds from the first thread's start to the last one's end. Adds to *wrong each thread whose
 * result shows that it did not do its work. */
static double run_block(const struct crew *c, const struct load *l, int *wrong)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    int bad = 0;

#pragma omp parallel num_threads(c->threads) reduction(min : first) reduction(max : last)          \
    reduction(+ : bad)
    {
        const int i = omp_get_thread_num();
        const unsigned char *const mine = c->buf + (size_t)i * c->stride;
        double fma = 1;
        /* Clear what other loads left in the caches. */
        uint64_t bits = l->bytes ? l->loops->read(mine, l->bytes, 1) : 0;

#pragma omp barrier
        first = clock_wall_ns();
        if (l->bytes)
            bits |= l->loops->read(mine, l->bytes, l->counts);
        else
            fma = l->loops->fma(l->counts);
        last = clock_wall_ns();
        bad += l->bytes ? (bits & 0xff) != (uint64_t)(1 + i % 255) : !(fabs(fma - 1) < 1e-3);
    }
    *wrong += bad;
    return (double)(last - first) * 1e-9;
}

/* Counts for a block of 2 ms: shorter than a scheduler's time slice, so that some blocks run
 * uninterrupted on a busy machine. Doubling also wakes the CPU. */
static void calibrate(const struct crew *c, struct load *l, int *wrong)
{
    double s;

    /* The multiply-adds need some sixty iterations to reach their fixed point, however long other
     * programs kept them from it. */
    const uint64_t least = l->bytes ? 1 : 1000;

    for (l->counts = least; (s = run_block(c, l, wrong)) < BLOCK_S / 4;)
        l->counts *= 2;
    l->counts = (uint64_t)fmax((double)least, ceil((double)l->counts * BLOCK_S / s));
}

/* A block of each load. Did it raise a peak by more than half a percent? */
static bool run_round(const struct crew *c, struct load *l, int n, int *wrong)
{
    bool rose = false;

    for (int i = 0; i < n; i++) {
        const double work = l[i].work * (double)l[i].counts * c->threads;
        const int64_t switches = clock_switches();
        const double s = run_block(c, &l[i], wrong);
        l[i].quiet |= clock_switches() == switches;
        rose |= work / s > 1.005 * *l[i].best;
        *l[i].best = fmax(*l[i].best, work / s);
        if (s < BLOCK_S / 2) /* calibration was disturbed */
            l[i].counts *= 2;
    }
    return rose;
}

/* Round-robin, so that a slow moment does not hit all blocks of one load, until some rounds in a
 * row have raised no peak. */
static enum status run_loads(const struct crew *c, struct load *l, int n, double seconds,
                             struct err *e)
{
    enum { ROUNDS_MIN = 3, ROUNDS_MAX = 20, ROUNDS_STEADY = 5 };
    const int64_t until = clock_wall_ns() + (int64_t)(seconds * 1e9);
    int wrong = 0;

    for (int i = 0; i < n; i++)
        calibrate(c, &l[i], &wrong);
    for (int r = 0, steady = 0; r < ROUNDS_MAX && steady < ROUNDS_STEADY; r++) {
        if (r >= ROUNDS_MIN && clock_wall_ns() >= until)
            break;
        steady = run_round(c, l, n, &wrong) ? 0 : steady + 1;
    }
    if (wrong)
        return fail(e, E_WRONG, "a peak loop gave a wrong result  -> report it");
    return OK;
}

static int list_loads(const struct slices *s, struct peaks *out, struct load *l)
{
    const enum isa most = cpu_isa();
    const struct {
        size_t bytes;
        double *best;
    } levels[] = {{s->l1, &out->l1}, {s->l2, &out->l2}, {s->l3, &out->l3}, {s->dram, &out->dram}};
    int n = 0;

    for (enum isa isa = ISA_BASE; isa < ISA_COUNT && isa <= most; isa++)
        l[n++] = (struct load){
            .loops = peak_loops[isa], .work = peak_loops[isa]->flop, .best = &out->flops[isa]};
    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        if (levels[i].bytes)
            l[n++] = (struct load){.loops = peak_loops[most],
                                   .bytes = levels[i].bytes,
                                   .work = (double)levels[i].bytes,
                                   .best = levels[i].best};
    return n;
}

enum status peak_run_in_process(const struct topo *t, int threads, const int *cpus, double seconds,
                                struct peaks *out, struct err *e)
{
    const struct slices s = slices_of(t, threads, cpus, seconds);
    const size_t bytes = (size_t)threads * s.stride;
    struct arena a = {0};
    struct crew c = {.topo = t, .threads = threads, .cpus = cpus, .stride = s.stride};
    struct load loads[ISA_COUNT + 4];
    enum status st;

    *out = (struct peaks){.threads = threads};
    arena_take(&a, PART_SCRATCH, bytes);
    st = arena_place(&a, HUGE_MADVISE, NULL, NULL, e);
    if (st != OK)
        return fail(e, st, "cannot map %zu bytes to measure memory bandwidth  -> free some memory",
                    bytes);
    c.buf = arena_take(&a, PART_SCRATCH, bytes);
    st = crew_settle(&c, e);
    const int n = list_loads(&s, out, loads);
    if (st == OK)
        st = run_loads(&c, loads, n, seconds, e);
    for (int i = 0; i < n; i++)
        out->busy += !loads[i].quiet;
    arena_release(&a);
    return st;
}

double peaks_read_s(const struct peaks *p, const struct topo_facts *t, double bytes,
                    const char **level)
{
    const struct {
        const char *name;
        double rate, size;
    } of[] = {{"L1", p->l1, p->threads * (double)t->l1d_bytes},
              {"L2", p->l2, p->threads * (double)t->l2_bytes},
              {"L3", p->l3, (double)t->l3_bytes * t->l3_count},
              {"memory", p->dram, INFINITY}};
    double s = 0;

    *level = "";
    for (size_t i = 0; i < ARRAY_LEN(of); i++)
        if (of[i].rate > 0 && bytes > 0) {
            *level = of[i].name;
            s += fmin(bytes, of[i].size) / of[i].rate;
            bytes -= fmin(bytes, of[i].size);
        }
    return s;
}
