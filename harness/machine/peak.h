/* SPDX-License-Identifier: MIT
 *
 * Measured peaks of this machine: multiply-adds per second of each instruction set, and bytes read
 * per second from each level of the memory. Rows of the tables are related to these numbers, so
 * they come from the same run, the same threads and the same CPUs. */
#pragma once

#include "topo.h"
#include "variants/base/cpu.h"

struct peaks {
    int threads;
    double flops[ISA_COUNT]; /* flop/s of all threads, of floats, at levels of bf16 of these;
                              * 0 = not available or not allowed */
    double l1, l2, l3, dram; /* bytes/s read by all threads; 0 = no such level, or not measured */
    int busy; /* how many of these had every block preempted: they are of a busy machine, and no
               * measure for others */
};

/* Is the peak of a level one of bf16, which no product of floats reaches? */
static inline bool peak_of_bf16(enum isa isa) { return strstr(isa_name[isa], "bf16") != NULL; }

/* Enough rounds to find a moment without interference, on most machines. */
#define PEAK_TIME_S 0.4

/* Measure in this process, in about `seconds`, and at least a few rounds. Its OpenMP threads are
 * pinned to cpus[] (-1 = not) and stay so. Instruction sets above the mask of cpu.h are left out,
 * and so is memory beyond the caches that takes longer than `seconds` to read once at 10 GB/s. */
enum status peak_run_in_process(const struct topo *t, int threads, const int *cpus, double seconds,
                                struct peaks *out, struct err *e);

/* The least seconds for reading `bytes` again and again: each level holds what it can of them. *level: the
 * last one that is needed, "" without a measured one. */
double peaks_read_s(const struct peaks *p, const struct topo_facts *t, double bytes,
                    const char **level);

/* ---- the loops, one file per instruction set ------------------------------------------------ */

enum { PEAK_READ_STEP = 512 }; /* bytes; read() takes multiples of it */

struct peak_loops {
    double flop, cycles; /* per iteration of fma: the least that is known of a CPU */
    /* Independent chains of multiply-adds, enough to hide the latency. Returns their result, 1 in
     * every lane, so that the compiler cannot remove them. */
    double (*fma)(uint64_t iterations);
    /* Read buf[0..bytes) `passes` times. Returns the OR of all words. */
    uint64_t (*read)(const void *buf, size_t bytes, uint64_t passes);
};
extern const struct peak_loops *const peak_loops[ISA_COUNT];
extern const struct peak_loops peak_loops_base;
#define X(ID, name, flags) extern const struct peak_loops peak_loops_##name;
ISA_LIST(X)
#undef X
