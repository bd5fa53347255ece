/* SPDX-License-Identifier: MIT
 *
 * Kernels that misbehave, each in its way, on top of the naive one: a copy of the library named stale.so is
 * the one that is stale. */
#define _GNU_SOURCE
#define bench_kernel naive_kernel
#include "../../contrib/kernels/naive.c"
#undef bench_kernel

#include <dlfcn.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef const struct ba_attention attention;
typedef const struct bk_team threads;

static int large(attention *a) { return a->L >= 200; }
static size_t out_bytes(attention *a) { return sizeof(float) * a->B * a->o_at.batch; }

void fair(threads *t, attention *a) { forward(NULL, t, a); }

void wrong(threads *t, attention *a) /* at one size */
{
    forward(NULL, t, a);
    if (a->L == 37)
        a->o[0] += 0.01f;
}
void stale(threads *t, attention *a) /* of one address and shape */
{
    static const float *q;
    static float *kept;
    if (large(a) && q == a->q) {
        memcpy(a->o, kept, out_bytes(a));
        return;
    }
    forward(NULL, t, a);
    q = a->q;
    kept = realloc(kept, out_bytes(a));
    memcpy(kept, a->o, out_bytes(a));
}
void incomplete(threads *t, attention *a) /* without the last row */
{
    float *const row = a->o + (a->B - 1) * a->o_at.batch + (a->L - 1) * a->o_at.row, before = *row;
    forward(NULL, t, a);
    *row = before;
}
void outside_before(threads *t, attention *a)
{
    forward(NULL, t, a);
    a->o[-1] = 0;
}
void outside_after(threads *t, attention *a)
{
    forward(NULL, t, a);
    a->o[out_bytes(a) / sizeof(float) + 40] = 0;
}
void outside_between(threads *t, attention *a) /* in the gap of rows */
{
    forward(NULL, t, a);
    if (a->o_at.row > a->H * (a->dv ? a->dv : a->dh))
        a->o[a->o_at.row - 1] = 0;
}
void outside_operand(threads *t, attention *a)
{
    forward(NULL, t, a);
    ((float *)a->v)[0] = 0;
}
void defers(threads *t, attention *a) /* knows a call by some of its numbers */
{
    static float kept[3], *o;
    const float now[3] = {a->q[0], a->q[a->q_at.row - 1], a->v[0]};
    if (large(a) && a->o == o && memcmp(now, kept, sizeof(kept)) == 0 && o[0] == o[0])
        return; /* o still has it, and is not poisoned */
    forward(NULL, t, a);
    memcpy(kept, now, sizeof(kept));
    o = a->o;
}
static void *spin(void *arg)
{
    for (;;)
        ;
    return arg;
}
void spins(threads *t, attention *a)
{
    static pthread_t thread;
    forward(NULL, t, a);
    if (!thread)
        pthread_create(&thread, NULL, spin, NULL);
}
static void *nap(void *arg)
{
    pause();
    return arg;
}
void more_threads(threads *t, attention *a)
{
    static pthread_t thread;
    forward(NULL, t, a);
    if (!thread)
        pthread_create(&thread, NULL, nap, NULL);
}
void rounds(threads *t, attention *a)
{
    forward(NULL, t, a);
    fesetround(FE_UPWARD);
}
void flushes(threads *t, attention *a) /* denormals */
{
    forward(NULL, t, a);
#ifdef __SSE__
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() ^ 0x8000);
#else
    rounds(t, a);
#endif
}
void masks_signals(threads *t, attention *a)
{
    sigset_t all;
    forward(NULL, t, a);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
}
void locale(threads *t, attention *a)
{
    forward(NULL, t, a);
    setlocale(LC_ALL, "C.UTF-8");
}
void enables_traps(threads *t, attention *a) /* of exceptions */
{
    forward(NULL, t, a);
    feenableexcept(FE_DIVBYZERO);
}
void moves(threads *t, attention *a) /* to another CPU */
{
    static int done;
    cpu_set_t cpus;
    forward(NULL, t, a);
    if (!large(a) || done++)
        return;
    sched_getaffinity(0, sizeof(cpus), &cpus);
    const int other = !CPU_ISSET(0, &cpus) ? 0 : 1;
    CPU_ZERO(&cpus);
    CPU_SET(other, &cpus);
    sched_setaffinity(0, sizeof(cpus), &cpus);
}
void outside_far(threads *t, attention *a) /* before the words beside the array */
{
    forward(NULL, t, a);
    if (((size_t)a->o & 4095) > 256 && ((size_t)(a->o + a->B * a->o_at.batch) & 4095) == 0)
        a->o[-40] = 0;
}
void forks(threads *t, attention *a)
{
    fork();
    forward(NULL, t, a);
}
void leaves_process(threads *t, attention *a)
{
    static int done;
    forward(NULL, t, a);
    if (!done++ && fork() == 0) {
        sleep(20);
        _exit(0);
    }
}
void varies(threads *t, attention *a)
{
    static int n;
    forward(NULL, t, a);
    a->o[0] *= 1 + (n++ % 2) * 1.2e-7f;
}
void crashes(threads *t, attention *a)
{
    forward(NULL, t, a);
    *(volatile int *)8 = 0;
}
void aborts(threads *t, attention *a) { abort(); }
void ends(threads *t, attention *a) { exit(0); }
void hangs(threads *t, attention *a) { pause(); }
void prints(threads *t, attention *a)
{
    forward(NULL, t, a);
    puts("case_id,status,not a row");
    fflush(stdout);
}

static void (*own)(threads *t, attention *a);

/* Which one it is, by the name of its file. */
static void *open_by_name(threads *t, char *why, size_t why_size)
{
    Dl_info file;
    char name[64] = "";

    dladdr(&own, &file);
    sscanf(strrchr(file.dli_fname, '/'), "/%63[^.]", name);
    return *(void **)&own = dlsym(dlopen(file.dli_fname, RTLD_NOW), name);
}

static void bad(void *state, threads *t, attention *a) { own(t, a); }

const struct bk_kernel bench_kernel = {
    .size = sizeof(struct bk_kernel),
    .abi = BK_ABI,
    .name = "bad",
    .version = "0",
    .open = open_by_name,
    .why = why,
    .attention_forward = bad,
};
