/* SPDX-License-Identifier: MIT
 *
 * Traps for kernels that do not compute what they seem to. */
#include "judge.h"

#include "op_inner.h"

#include "harness/measure/stats.h"
#include "harness/util/units.h"
#include "harness/worker/exec.h"
#include "variants/backends/library/benchkernel.h"
#include "variants/backends/outside.h"
#include "variants/base/arena.h"

#include <dirent.h>
#include <fenv.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

static const uint32_t POISON = 0x7fc0beef; /* a NaN that nobody computes */

static const struct judged {
    const char *name;
    int function; /* enum bk_function */
    const struct op_row *row;
} judged[] = {
    {"linear", BK_LINEAR, &op_products[0]},
    {"linear bf16", BK_LINEAR, &op_products[2]},
    {"attention", BK_ATTENTION_FORWARD, &op_attns[0]},
    {"attention backward", BK_ATTENTION_BACKWARD, &op_attns[2]},
    {"recurrence", BK_RECURRENCE_FORWARD, &op_recurs[0]},
    {"recurrence step", BK_RECURRENCE_FORWARD, &op_recurs[3]},
    {"recurrence backward", BK_RECURRENCE_BACKWARD, &op_recurs[2]},
};

struct judge {
    struct engine g, ref;
    const struct judged *of;
    judge_said *say;
    void *arg;
    uint64_t seed;
    int tasks;      /* threads of this process before the kernel was loaded */
    cpu_set_t cpus; /* of this thread */
    /* Of small cases the smallest is said that falls into a trap. */
    bool small, found; /* one runs; something was found in it, or in any large one */
    size_t numbers, least;
    const char *trap;
    char text[256];
};

static void found(struct judge *j, const char *trap, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void found(struct judge *j, const char *trap, const char *fmt, ...)
{
    char text[sizeof(j->text)];
    const int n = snprintf(text, sizeof(text), "%s: ", j->of->name);

    VPRINT(text + n, sizeof(text) - (size_t)n, fmt);
    if (!j->small)
        j->say(j->arg, trap, text);
    else if (j->numbers < j->least) {
        j->trap = trap;
        j->least = j->numbers;
        memcpy(j->text, text, sizeof(text));
    }
    j->found = true;
}

/* ---- results that end at a page that cannot be touched -------------------------------------- */

struct fence {
    char *map;
    size_t size, before; /* bytes: all; from the first page that can be touched to the array */
};

static float *fenced(struct fence *f, size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = n * sizeof(float),
                 room = round_up(bytes + 1, page);

    f->size = room + 2 * page;
    f->before = room - bytes;
    f->map = mmap(NULL, f->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(f->map != MAP_FAILED);
    CHECK(mprotect(f->map + page, room, PROT_READ | PROT_WRITE) == 0);
    memset(f->map + page, 0x5a, f->before);
    return (float *)(void *)(f->map + page + f->before);
}

/* Was it left alone before its beginning? */
static bool unfence(const struct fence *f)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bool whole = true;

    for (size_t i = 0; i < f->before; i++)
        whole = whole && f->map[page + i] == 0x5a;
    munmap(f->map, f->size);
    return whole;
}

/* ---- one run -------------------------------------------------------------------------------- */

static void poison(const struct trial *t, float *const *out)
{
    for (int k = 0; k < t->n_out; k++)
        for (size_t i = 0; i < t->out[k].n; i++)
            memcpy(&out[k][i], t->out[k].first ? (const void *)&t->out[k].first[i] : &POISON,
                   sizeof(float));
}

static void run(struct judge *j, struct trial *t, const struct engine *g, float *const *out)
{
    t->is_subject = g == &j->g;
    t->refusal.msg[0] = '\0';
    j->of->row->run(g, t, out);
}

static void run_reference(struct judge *j, struct trial *t)
{
    float *want[MAX_OUTPUTS];

    for (int k = 0; k < t->n_out; k++)
        want[k] = t->out[k].want;
    trial_reset(t, want);
    run(j, t, &j->ref, want);
    j->of->row->bounds(t);
}

/* The first wrong number, as a row. */
static bool compare(struct judge *j, const struct trial *t, float *const *out, const char *when)
{
    for (int k = 0; k < t->n_out; k++)
        for (size_t i = 0; i < t->out[k].n; i++) {
            const struct output *const o = &t->out[k];
            const bool untouched = o->want[i] == GUARD_VALUE && !o->first;
            const bool poisoned = bits_of_float(out[k][i]) == POISON;
            const double got = (double)out[k][i], want = (double)o->want[i];
            if (untouched
                    ? poisoned
                    : !poisoned && (isinf(o->bound[i]) || in_bounds(got, want, o->bound[i]) <= 1))
                continue;
            if (untouched)
                found(j, "writes_outside", "%s: %s[%zu] is %.7g, not untouched%s", t->name, o->name,
                      i, got, when);
            else
                found(j, poisoned ? "incomplete" : "wrong", "%s: %s[%zu] is %.7g, not %.7g%s",
                      t->name, o->name, i, got, want, when);
            return false;
        }
    return true;
}

static uint64_t operands_hash(const struct trial *t)
{
    uint64_t hash = 0;

    for (int k = 0; k < t->n_buffers; k++)
        if (!t->buffer[k].scratch)
            hash = XXH3_64bits_withSeed(t->buffer[k].at - GUARD,
                                        (t->buffer[k].n + 2 * (size_t)GUARD) * sizeof(float), hash);
    const struct attn *const a = &t->attn.a;
    const struct {
        const float *at;
        ptrdiff_t row;
        int rows;
    } all[] = {{a->q, a->q_at.row, a->L},
               {a->k, a->k_at.row, t->has_attn ? attn_keys(a) : 0},
               {a->v, a->v_at.row, t->has_attn ? attn_keys(a) : 0}};
    for (size_t i = 0; t->has_attn && i < ARRAY_LEN(all); i++)
        hash = XXH3_64bits_withSeed(all[i].at, sizeof(float) * (size_t)(all[i].row * all[i].rows),
                                    hash);
    return hash;
}

/* ---- small cases ---------------------------------------------------------------------------- */

/* Sometimes a row that sees nothing, sometimes scores of -inf, but for each query's own key. */
struct twist {
    struct mask mask;
    uint64_t *bits;
    float *add;
};

static void twist(struct trial *t, struct twist *w, uint32_t chance)
{
    struct attn *const a = &t->attn.a;
    const int K = attn_keys(a), words = K / 64 + 1, rows = a->M + a->L;

    *w = (struct twist){.bits = NULL};
    if (!t->has_attn || a->K || a->rel_v || chance % 4 > 1)
        return;
    if (chance % 4 == 0) {
        w->bits = need_room((size_t)rows * (size_t)words, sizeof(*w->bits));
        for (int i = 0; i < rows * words; i++)
            w->bits[i] = i / words == a->M ? 0 : ~(0x9e3779b97f4a7c15u * (uint64_t)(i + 1)) | 1;
        w->mask = (struct mask){.rows = w->bits, .row_words = words};
        a->mask = &w->mask;
    } else {
        w->add = need_room((size_t)a->L * (size_t)K, sizeof(*w->add));
        for (int i = 0; i < a->L * K; i++)
            w->add[i] = i % 5 == 1 && i % K != a->M + i / K ? -INFINITY : 0;
        a->add = (struct dense){w->add, 0, 0, K};
    }
    text_append(t->name, sizeof(t->name), w->bits ? ", a mask" : ", -inf added");
}

/* The same once more: results elsewhere, and each before a page that cannot be touched. */
static void run_at_edge(struct judge *j, struct trial *t)
{
    struct fence fence[MAX_OUTPUTS] = {{0}};
    float *out[MAX_OUTPUTS];
    char text[192];

    snprintf(text, sizeof(text), "edge %s: %s", j->of->name, t->name);
    j->say(j->arg, "now", text);
    for (int k = 0; k < t->n_out; k++)
        out[k] = fenced(&fence[k], t->out[k].n);
    poison(t, out);
    run(j, t, &j->g, out);
    compare(j, t, out, ", at other addresses");
    for (int k = 0; k < t->n_out; k++)
        if (!unfence(&fence[k]) && !j->found)
            found(j, "writes_outside", "%s: before %s", t->name, t->out[k].name);
}

static void check_own(struct judge *j, struct trial *t, float *const *out, uint64_t before)
{
    bool whole = true;

    for (int k = 0; k < t->n_buffers; k++)
        whole = whole && guards_intact(t->buffer[k].at, t->buffer[k].n);
    for (int k = 0; k < t->n_out; k++)
        whole = whole && guards_intact(out[k], t->out[k].n);
    if (!whole || operands_hash(t) != before)
        found(j, "writes_outside", "%s: %s", t->name,
              whole ? "its operands changed" : "beside an array");
    if (outside_changed())
        found(j, "state", "%s: %s", t->name, outside_changed());
}

/* False where the kernel does not take the case. */
static bool small_case(struct judge *j, int at, uint32_t chance)
{
    struct trial *const t = trial_new(j->of->row, at);
    const long calls = outside_calls(j->of->function);
    float *out[MAX_OUTPUTS];
    char text[192];
    struct twist w;

    twist(t, &w, chance);
    t->subject = &j->g;
    t->threads = j->g.threads;
    snprintf(text, sizeof(text), "%s: %s", j->of->name, t->name);
    j->say(j->arg, "now", text);
    for (int k = 0; k < t->n_out; k++)
        out[k] = t->out[k].one;
    poison(t, out);
    const uint64_t before = operands_hash(t);
    run(j, t, &j->g, out);
    const bool took = !t->refusal.msg[0] && outside_calls(j->of->function) > calls;
    if (took) {
        j->numbers = t->n_out ? t->out[0].n : 0;
        j->found = false;
        check_own(j, t, out, before);
        run_reference(j, t);
        if (compare(j, t, out, "") && !j->found)
            run_at_edge(j, t);
    }
    free(w.bits);
    free(w.add);
    trial_free(t);
    return took;
}

/* ---- a large case, again and again ---------------------------------------------------------- */

/* Other numbers in the same places. */
static void renew(struct trial *t)
{
    const struct attn *const a = &t->attn.a;

    for (int k = 0; k < t->n_buffers; k++)
        for (size_t i = 0; !t->buffer[k].scratch && i < t->buffer[k].n; i++)
            t->buffer[k].at[i] *= 0.875f;
    for (ptrdiff_t i = 0; t->has_attn && i < a->B * a->q_at.batch; i++)
        t->attn.q[i] *= 0.875f;
    for (ptrdiff_t i = 0; t->has_attn && i < a->B * a->v_at.batch; i++)
        t->attn.v[i] *= 0.875f;
}

static double timed(struct judge *j, struct trial *t, float *const *out)
{
    exec_apart();
    const int64_t start = clock_wall_ns();

    t->timed = true;
    run(j, t, &j->g, out);
    t->timed = false;
    return (double)(clock_wall_ns() - start) - exec_apart().wall_ns;
}

static double cpu_ms(void)
{
    clockid_t id;

    CHECK(clock_getcpuclockid(exec_pid(), &id) == 0);
    return (double)clock_read_ns(id) * 1e-6;
}

static int count_tasks(void)
{
    DIR *const all = opendir("/proc/self/task");
    int n = -2; /* . and .. */

    while (all && readdir(all))
        n++;
    if (all)
        closedir(all);
    return n;
}

/* Its threads: how many, where, and whether they rest. `busy` is CPU time by wall time. */
static void look_at_threads(struct judge *j, double busy)
{
    cpu_set_t cpus;

    clock_sleep_ms(5);
    const double before = cpu_ms();
    clock_sleep_ms(60);
    const double after = cpu_ms() - before;
    sched_getaffinity(exec_pid(), sizeof(cpus), &cpus);
    if (after > 20)
        found(j, "threads", "%.0f ms of CPU time in the 60 ms after it returned", after);
    else if (!exec_pid() && count_tasks() > j->tasks)
        found(j, "threads", "%d threads, of which %d were given", count_tasks(), j->tasks);
    else if (busy > j->g.threads + 0.3)
        found(j, "threads", "busy on %.1f CPUs, of which %d were given", busy, j->g.threads);
    else if (!CPU_EQUAL(&cpus, &j->cpus))
        found(j, "threads", "the CPUs that the calling thread may use changed");
}

static double flop_of(const struct judge *j, const struct trial *t)
{
    switch (j->of->function) {
    case BK_LINEAR:
        return 2.0 * t->a.gemm.m * t->a.gemm.n * t->a.gemm.k;
    case BK_ATTENTION_FORWARD:
        return attn_flop(&t->attn.a);
    case BK_ATTENTION_BACKWARD:
        return attn_flop(&t->attn.a) + attn_grad_flop(&t->attn.a);
    default:
        return recur_flop(&t->a.recur) * (j->of->function == BK_RECURRENCE_BACKWARD ? 3 : 1);
    }
}

/* What has to be read: operands of every kind of call. */
static double bytes_of(const struct judge *j, const struct trial *t)
{
    const struct attn *const a = &t->attn.a;
    const struct recur *const r = &t->a.recur;

    switch (j->of->function) {
    case BK_LINEAR:
        return 4.0 * t->a.gemm.k * (t->a.gemm.m + t->a.gemm.n);
    case BK_ATTENTION_FORWARD:
    case BK_ATTENTION_BACKWARD:
        return 4.0 * a->B * (attn_keys(a) * a->Hkv * (a->dh + attn_dv(a)) + a->L * a->H * a->dh);
    default:
        return 4.0 * r->B * r->L * r->Hs * (r->dk + r->dv);
    }
}

/* After timing: new numbers at the same addresses. */
static void check_renewed(struct judge *j, struct trial *t, float *const *out)
{
    float *const first = need_room(t->out[0].n, sizeof(*first));

    memcpy(first, out[0], t->out[0].n * sizeof(*first));
    renew(t);
    run_reference(j, t);
    poison(t, out);
    run(j, t, &j->g, out);
    const bool stale = memcmp(first, out[0], t->out[0].n * sizeof(*first)) == 0;
    if (stale)
        found(j, "stale", "%s: the numbers of an earlier call, of other operands", t->name);
    else
        compare(j, t, out, ", for new numbers after timing");
    free(first);
}

/* Bits of a further call of the same operands. */
static bool varies(struct judge *j, struct trial *t, float *const *out)
{
    float *const again[MAX_OUTPUTS] = {t->out[0].got, t->out[1].got, t->out[2].got, t->out[3].got,
                                       t->out[4].got, t->out[5].got, t->out[6].got, t->out[7].got,
                                       t->out[8].got, t->out[9].got};

    poison(t, out);
    run(j, t, &j->g, out);
    poison(t, again);
    run(j, t, &j->g, again);
    return memcmp(out[0], again[0], t->out[0].n * sizeof(float)) != 0;
}

static void large_case(struct judge *j, int at)
{
    enum { SAME = 15, NEW = 7, LEAST_NS = 20000, HIDDEN_NS = 1000000 };
    struct trial *const t = trial_new(j->of->row, at);
    const long calls = outside_calls(j->of->function);
    float *out[MAX_OUTPUTS];
    double same[SAME], fresh = INFINITY, hidden = INFINITY;
    char text[192];

    t->subject = &j->g;
    t->threads = j->g.threads;
    snprintf(text, sizeof(text), "%s, again and again: %s", j->of->name, t->name);
    j->say(j->arg, "now", text);
    for (int k = 0; k < t->n_out; k++)
        out[k] = t->out[k].one;
    poison(t, out);
    run(j, t, &j->g, out);
    if (outside_calls(j->of->function) > calls) {
        const double cpu = cpu_ms();
        const int64_t start = clock_wall_ns();
        for (int i = 0; i < SAME; i++) {
            same[i] = timed(j, t, out);
            hidden = fmin(hidden, exec_hidden_ns());
        }
        const double wall = (double)(clock_wall_ns() - start) * 1e-6, used = cpu_ms() - cpu;
        sort_numbers(same, SAME);
        look_at_threads(j, wall > 5 ? used / wall : 0);
        for (int i = 0; i < NEW; i++) {
            renew(t);
            fresh = fmin(fresh, timed(j, t, out));
        }
        if (fresh > 2 * same[SAME / 2] + LEAST_NS)
            found(j, "defers", "%.3g us for new numbers, %.3g us for those of the call before",
                  fresh * 1e-3, same[SAME / 2] * 1e-3);
        if (hidden > same[SAME / 2] / 4 + HIDDEN_NS) /* a busy machine lets both wait */
            found(j, "defers", "%.3g us of each call are not in the time that it says",
                  hidden * 1e-3);
        check_renewed(j, t, out);
        if (varies(j, t, out))
            j->say(j->arg, "varies", j->of->name);
        snprintf(text, sizeof(text), "%.17g %.17g %.17g %s", flop_of(j, t), bytes_of(j, t),
                 same[0] * 1e-9, j->of->name);
        j->say(j->arg, "rate", text);
    }
    trial_free(t);
}

/* ---- all ------------------------------------------------------------------------------------ */

static void judge_function(struct judge *j)
{
    const struct op_row *const row = j->of->row;
    int ran = 0, refused = 0, large = 0;
    char text[96];

    j->small = true;
    j->trap = NULL;
    j->least = SIZE_MAX;
    while (row->timing[large].shape && large < MAX_TIMINGS - 1 && row->timing[large + 1].shape)
        large++;
    for (int i = 0; i < 8 * JUDGE_CASES && ran < JUDGE_CASES; i++) {
        const uint32_t which = rng_u32(j->seed, rng_stream(j->of->name), 2 * (uint64_t)i);
        const uint32_t chance = rng_u32(j->seed, rng_stream(j->of->name), 2 * (uint64_t)i + 1);
        if (small_case(j, (int)(which % (uint32_t)row->cases), chance >> 8))
            ran++;
        else
            refused++;
    }
    j->small = false;
    if (j->trap)
        j->say(j->arg, j->trap, j->text);
    else if (ran > 0)
        for (int i = large; i >= 0; i--)
            large_case(j, row->cases + i);
    snprintf(text, sizeof(text), "%s %d case%s, %d refused", j->of->name, ran, plural(ran),
             refused);
    if (ran > 0)
        j->say(j->arg, "ran", text);
}

enum status judge(const char *path, int threads, uint64_t seed, judge_said *say, void *arg,
                  struct err *e)
{
    struct arena products = {0};
    struct judge j = {.say = say, .arg = arg, .seed = seed};

    fesetmode(FE_DFL_MODE); /* denormals are seen */
    TRY(engine_open(&j.ref, backend_ref.name, 1, NULL, e));
    j.tasks = count_tasks();
    sched_getaffinity(0, sizeof(j.cpus), &j.cpus);
    say(arg, "now", "loading it");
    TRY(engine_open(&j.g, path, threads, NULL, e));
    if (exec_pid())
        sched_getaffinity(exec_pid(), sizeof(j.cpus), &j.cpus);
    TRY(engine_place(&j.g, &products, e));
    say(arg, "kernel", outside_name());
    for (size_t i = 0; i < ARRAY_LEN(judged); i++) {
        j.of = &judged[i];
        if (outside_has(j.of->function))
            judge_function(&j);
    }
    say(arg, "now", "closing it");
    outside_close();
    arena_release(&products);
    return OK;
}
