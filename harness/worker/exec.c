/* SPDX-License-Identifier: MIT
 *
 * One process, its lines, and the arrays of a call. */
#include "exec.h"

#include "harness/cli/exit_code.h"
#include "harness/util/text.h"
#include "process.h"
#include "variants/backends/library/benchkernel.h"
#include "variants/backends/outside.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xxhash.h>

enum { VERSION = 1, EMPTY_CALLS = 32, BESIDE = 64, ARRAYS = 64, ASKED = 256, DIMS = 4 };

/* An array of a call, and its copy without gaps, which BESIDE bytes keep from the next. */
struct array {
    char *own, *copy;
    size_t unit, size; /* bytes: of a number, of the copy */
    int n[DIMS];
    ptrdiff_t own_at[DIMS], copy_at[DIMS]; /* 0 = repeats */
    bool result;
};

/* Of this process: the other one. */
static struct {
    struct protocol *parent, lines;
    pid_t pid;
    cpu_set_t cpus; /* given to it */
    const char *command;
    char name[64], version[64];
    char *map; /* the file of memory */
    size_t map_size, used;
    char line[PROTOCOL_LINE / 2], answer[PROTOCOL_LINE];
    struct array array[ARRAYS];
    int arrays;
    int64_t begun_ns, begun_cpu_ns;
    struct clock_span apart;
    double empty_ns, empty_trip_ns; /* of an empty call: inside; there and back */
    double hidden_ns;               /* of the last call: there and back without what it said */
    clockid_t cpu;                  /* of the process */
    struct {
        uint64_t line;
        char why[128];
    } asked[ASKED];
} now;

pid_t exec_pid(void) { return now.pid; }
double exec_hidden_ns(void) { return now.hidden_ns - 2 * now.empty_trip_ns; }

struct clock_span exec_apart(void)
{
    const struct clock_span apart = now.apart;

    now.apart = (struct clock_span){0};
    return apart;
}

/* ---- lines --------------------------------------------------------------------------------- */

static _Noreturn void end(enum status st, const char *what, const char *text)
{
    struct err e;

    protocol_write(now.parent, &e, "fail %d kernel %s: %s%.200s  -> run: %.200s", (int)st, now.name,
                   what, text, now.command);
    _exit(EXIT_SOME_FAILED);
}

/* Send now.line and read now.answer. A process that has ended says how; `st`: what that is. */
static void ask(enum status st)
{
    struct err e, death;

    if (protocol_write(&now.lines, &e, "%s", now.line) == OK &&
        protocol_read(&now.lines, now.answer, &e) == OK)
        return;
    if (now.lines.ended && process_reap(now.pid, &death) != OK)
        e = death;
    end(st, "", e.msg);
}

/* ---- arrays -------------------------------------------------------------------------------- */

/* Of a struct: its dimensions as letters; where its first strides are, and its gradient in the struct of
 * gradients (0 = none). */
struct field {
    const char *name, *dims, *type; /* NULL = f32 */
    size_t at, grad, strides;
    int strided;
    bool result, rows;
};

struct sizes {
    const char *letters;
    int n[9];
};

#define A(name) #name, .at = offsetof(struct ba_attention, name)
#define D(name) .grad = offsetof(struct ba_attention_grad, d_##name)
#define AT(name, count) .strides = offsetof(struct ba_attention, name), .strided = count
static const struct field attention[] = {
    {A(q), .dims = "BLHd", D(q), AT(q_at, 2)},
    {A(k), .dims = "BKGd", D(k), AT(k_at, 2)},
    {A(v), .dims = "BKGe", D(v), AT(v_at, 2)},
    {A(o), .dims = "BLHe", D(o), AT(o_at, 2), .result = true},
    {A(lse), .dims = "BHL", .result = true},
    {A(u), .dims = "Hd", D(u)},
    {A(w), .dims = "Hd", D(w)},
    {A(rel_k), .dims = "HRd", D(rel_k), AT(rel_head, 1)},
    {A(rel_v), .dims = "HRd", D(rel_v), AT(rel_head, 1)},
    {A(rel_q), .dims = "HRd", D(rel_q), AT(rel_head, 1)},
    {A(bias), .dims = "HR", D(bias), AT(bias_head, 1)},
    {A(window_of_head), .dims = "H", .type = "i32"},
    {A(add), .dims = "BHLK", D(add), AT(add_batch, 3)},
    {A(fade), .dims = "BHK", D(fade), AT(fade_batch, 2), .type = "f64"},
    {A(scores_out), .dims = "BHLK", D(scores_out), .result = true},
    {A(mix_logits), .dims = "HH", D(mix_logits)},
    {A(mix_probs), .dims = "HH", D(mix_probs)},
    {A(sink_k), .dims = "Hsd", D(sink_k)},
    {A(sink_v), .dims = "Hse", D(sink_v)},
    {A(sink_logit), .dims = "Hs", D(sink_logit)},
};
#undef A
#undef D
#define R(name) #name, .at = offsetof(struct ba_recurrence, name)
#define D(name) .grad = offsetof(struct ba_recurrence_grad, d_##name)
#define ROWS(name)                                                                                 \
    R(name), D(name), .strides = offsetof(struct ba_recurrence, name.batch), .strided = 3,         \
                      .rows = true
static const struct field recurrence[] = {
    {ROWS(q), .dims = "BLHd"},
    {ROWS(k), .dims = "BKSd"},
    {ROWS(v), .dims = "BKSe"},
    {ROWS(g), .dims = "BKSg"},
    {ROWS(beta), .dims = "BKS"},
    {ROWS(a), .dims = "BKSd"},
    {ROWS(b), .dims = "BKSd"},
    {ROWS(i), .dims = "BKS"},
    {R(u), .dims = "Hd", D(u)},
    {R(s0), .dims = "BSde", D(s0)},
    {R(z0), .dims = "BSd", D(z0)},
    {R(m0), .dims = "BS"},
    {R(s1), .dims = "BSde", D(s1), .result = true},
    {R(z1), .dims = "BSd", .result = true},
    {R(m1), .dims = "BS", .result = true},
    {R(o), .dims = "BLHe", D(o), .result = true},
    {R(den), .dims = "BLH", .result = true},
};

/* To the copy, or back. */
static void copy(const struct array *x, bool back)
{
    const int run = x->own_at[3] == 1 ? x->n[3] : 1;

    for (int a = 0; a < (x->copy_at[0] ? x->n[0] : 1); a++)
        for (int b = 0; b < (x->copy_at[1] ? x->n[1] : 1); b++)
            for (int c = 0; c < (x->copy_at[2] ? x->n[2] : 1); c++)
                for (int d = 0; d < (x->copy_at[3] ? x->n[3] : 1); d += run) {
                    const int at[DIMS] = {a, b, c, d};
                    char *own = x->own, *twin = x->copy;
                    for (int i = 0; i < DIMS; i++) {
                        own += at[i] * x->own_at[i] * (ptrdiff_t)x->unit;
                        twin += at[i] * x->copy_at[i] * (ptrdiff_t)x->unit;
                    }
                    memcpy(back ? own : twin, back ? twin : own, (size_t)run * x->unit);
                }
}

/* Give its copy a place, and describe it in the line: " q=f32:OFFSET:B,L,H,d:STRIDES". */
static void put(const struct field *f, const char *prefix, void *own, bool result,
                const struct sizes *s, const char *call)
{
    struct array *const x = &now.array[now.arrays++];
    const int from = DIMS - (int)strlen(f->dims);
    const ptrdiff_t *const strides = (const void *)(call + f->strides);
    const char *const type = f->type ? f->type : "f32";
    ptrdiff_t own_at = 1, copy_at = 1;

    CHECK(now.arrays <= ARRAYS);
    *x =
        (struct array){.own = own, .copy = now.map + now.used, .n = {1, 1, 1, 1}, .result = result};
    for (int i = DIMS - 1; i >= from; i--) {
        const int letter = i - from, per = f->rows && letter == 2 ? (int)strides[3] : 1;
        x->n[i] = s->n[strchr(s->letters, f->dims[letter]) - s->letters] / max_int(per, 1);
        x->own_at[i] = letter < f->strided ? strides[letter] : own_at;
        x->copy_at[i] = x->own_at[i] || x->n[i] == 1 ? copy_at : 0;
        own_at *= x->n[i];
        copy_at *= x->copy_at[i] ? x->n[i] : 1;
    }
    x->unit = strcmp(type, "f64") == 0 ? sizeof(double) : sizeof(float);
    x->size = (size_t)copy_at * x->unit;
    text_append(now.line, sizeof(now.line), " %s%s=%s:%zu", prefix, f->name, type, now.used);
    for (int i = from; i < DIMS; i++)
        text_append(now.line, sizeof(now.line), "%c%d", i == from ? ':' : ',', x->n[i]);
    for (int i = from; i < DIMS; i++)
        text_append(now.line, sizeof(now.line), "%c%td", i == from ? ':' : ',', x->copy_at[i]);
    now.used += round_up(x->size + BESIDE, BESIDE);
}

static void *member(const void *of, size_t at)
{
    return at ? *(void *const *)(const void *)((const char *)of + at) : NULL;
}

static void put_all(const struct field *f, size_t n, const struct sizes *s, const void *call,
                    const void *grad)
{
    for (; n-- > 0; f++) {
        void *const own = member(call, f->at), *const d = grad ? member(grad, f->grad) : NULL;
        if (own)
            put(f, "", own, f->result && !grad, s, call);
        if (d)
            put(f, "d_", d, !f->result, s, call);
    }
    CHECK(now.used <= now.map_size && strlen(now.line) < sizeof(now.line) - 1);
}

/* ---- calls --------------------------------------------------------------------------------- */

static const char *const function[BK_FUNCTIONS] = {"linear", "attention_forward",
                                                   "attention_backward", "recurrence_forward",
                                                   "recurrence_backward"};

/* The line of a call; gradients may be NULL. */
static void describe(const char *what, enum bk_function f, int threads, const void *call,
                     const void *grad)
{
    const struct ba_attention *const a = call;
    const struct ba_recurrence *const r = call;

    now.begun_ns = clock_wall_ns();
    now.begun_cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    now.arrays = 0;
    now.used = 0;
    snprintf(now.line, sizeof(now.line), "%s%s threads=%d", what, function[f], threads);
    if (f == BK_ATTENTION_FORWARD || f == BK_ATTENTION_BACKWARD) {
        const struct sizes s = {"BLHdKGeRs",
                                {a->B, a->L, a->H, a->dh, a->K ? a->K : a->M + a->L,
                                 a->Hkv ? a->Hkv : a->H, a->dv ? a->dv : a->dh, a->R + a->Rf,
                                 a->sinks}};
        text_append(now.line, sizeof(now.line),
                    " M=%d ordered=%d causal=%d window=%d R=%d scale=%.9g soft_cap=%.9g gain=%.9g "
                    "no_content=%d q_step=%d k_step=%d q_first=%d",
                    a->M, !a->K, a->causal, a->window, a->R, (double)a->scale, (double)a->soft_cap,
                    (double)a->gain, a->no_content, a->q_step, a->k_step, a->q_first);
        put_all(attention, ARRAY_LEN(attention), &s, a, grad);
    } else {
        const struct sizes s = {
            "BLHKSdeg",
            {r->B, r->L, r->H, r->M + r->L, r->Hs ? r->Hs : r->H, r->dk, r->dv, r->g_width}};
        text_append(now.line, sizeof(now.line),
                    " M=%d H=%d Hs=%d dk=%d norm=%d scale=%.9g eps=%.9g", r->M, r->H, s.n[4], r->dk,
                    r->norm, r->scale == 0 ? 1 : (double)r->scale, (double)r->eps);
        put_all(recurrence, ARRAY_LEN(recurrence), &s, r, grad);
    }
}

/* Of the time since describe() the kernel took so much. */
static void take(double wall_ns, double cpu_ns)
{
    now.apart.wall_ns += (double)(clock_wall_ns() - now.begun_ns) - wall_ns;
    now.apart.cpu_ns +=
        (double)(clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - now.begun_cpu_ns) - cpu_ns;
}

/* The kernel's time is what it says, and no less than its share of what the process computed meanwhile. */
static void run(enum bk_function f, const struct bk_team *team, const void *call, const void *grad)
{
    double wall_ns = -1, cpu_ns;

    describe("", f, team->threads, call, grad);
    for (struct array *x = now.array; x < now.array + now.arrays; x++) {
        copy(x, false);
        memset(x->copy + x->size, 0x5a, BESIDE);
    }
    const int64_t cpu = clock_read_ns(now.cpu), sent = clock_wall_ns();
    ask(E_CHILD);
    const double trip = (double)(clock_wall_ns() - sent);
    const double least = (double)(clock_read_ns(now.cpu) - cpu) / team->threads - now.empty_trip_ns;
    if (sscanf(now.answer, "ok %lf %lf", &wall_ns, &cpu_ns) != 2 || !(wall_ns >= 0))
        end(E_CHILD, "it answered ", now.answer);
    for (struct array *x = now.array; x < now.array + now.arrays; x++) {
        for (size_t i = 0; i < BESIDE; i++)
            if (x->copy[x->size + i] != 0x5a)
                end(E_CHILD, "it wrote beside an array in ", function[f]);
        if (x->result)
            copy(x, true);
    }
    now.hidden_ns = trip - wall_ns;
    take(fmin(trip, fmax(wall_ns, least)), fmax(cpu_ns, least));
}

static void attention_forward(void *state, const struct bk_team *team, const struct ba_attention *a)
{
    run(BK_ATTENTION_FORWARD, team, a, NULL);
}

static void attention_backward(void *state, const struct bk_team *team,
                               const struct ba_attention *a, const struct ba_attention_grad *d)
{
    run(BK_ATTENTION_BACKWARD, team, a, d);
}

static void recurrence_forward(void *state, const struct bk_team *team,
                               const struct ba_recurrence *r)
{
    run(BK_RECURRENCE_FORWARD, team, r, NULL);
}

static void recurrence_backward(void *state, const struct bk_team *team,
                                const struct ba_recurrence *r, const struct ba_recurrence_grad *d)
{
    run(BK_RECURRENCE_BACKWARD, team, r, d);
}

/* Answers are kept: the same questions come with every call. */
static const char *why(void *state, enum bk_function f, const void *call)
{
    if (f < BK_RECURRENCE_FORWARD && ((const struct ba_attention *)call)->masks)
        return "is a process, and gets no masks";
    describe("why ", f, 1, call, NULL);
    const uint64_t line = XXH3_64bits(now.line, strlen(now.line));
    char *const kept = now.asked[line % ASKED].why;
    if (now.asked[line % ASKED].line != line) {
        ask(E_CHILD);
        if (strcmp(now.answer, "ok") != 0 && strncmp(now.answer, "no ", 3) != 0)
            end(E_CHILD, "it answered ", now.answer);
        now.asked[line % ASKED].line = line;
        snprintf(kept, sizeof(now.asked[0].why), "%.120s",
                 now.answer[0] == 'n' ? now.answer + 3 : "");
    }
    take(0, 0);
    return kept[0] ? kept : NULL;
}

/* ---- the process --------------------------------------------------------------------------- */

/* In the group of this process, so that whoever ends it ends all, on the CPUs of its team. */
static void start(int threads)
{
    char *const words = need_text("exec %s", now.command);
    char *const argv[] = {"sh", "-c", words, NULL};
    const int memory = memfd_create("bench-kernel", MFD_CLOEXEC);
    cpu_set_t own;
    struct err e;
    int ends[2];

#pragma omp parallel num_threads(threads) private(own)
    {
        sched_getaffinity(0, sizeof(own), &own);
#pragma omp critical
        CPU_OR(&now.cpus, &now.cpus, &own);
    }
    sched_getaffinity(0, sizeof(own), &own);
    now.map_size = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    NEED(memory >= 0 && ftruncate(memory, (off_t)now.map_size) == 0);
    now.map = mmap(NULL, now.map_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    NEED(now.map != MAP_FAILED && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    setpgid(0, 0);
    sched_setaffinity(0, sizeof(now.cpus), &now.cpus);
    if (process_exec("/bin/sh", argv, environ, (int[]){ends[1], memory}, 2, &now.pid, &e) != OK)
        end(E_CHILD, "", e.msg);
    free(words);
    sched_setaffinity(0, sizeof(own), &own);
    CHECK(clock_getcpuclockid(now.pid, &now.cpu) == 0);
    close(ends[1]);
    close(memory);
    now.lines.fd = ends[0];
}

/* Time to get there and back, when nothing is done. */
static void measure_empty(void)
{
    snprintf(now.line, sizeof(now.line), "empty");
    for (int i = -EMPTY_CALLS; i < EMPTY_CALLS; i++) {
        double wall_ns, cpu_ns;
        const int64_t sent = clock_wall_ns();
        ask(E_IO);
        if (sscanf(now.answer, "ok %lf %lf", &wall_ns, &cpu_ns) != 2)
            end(E_IO, "to an empty call it answered ", now.answer);
        now.empty_trip_ns += i < 0 ? 0 : (double)(clock_wall_ns() - sent) / EMPTY_CALLS;
        now.empty_ns += i < 0 ? 0 : wall_ns / EMPTY_CALLS;
    }
}

static bool has(const char *words, enum bk_function f)
{
    return text_has_word(words, function[f], strlen(function[f]));
}

static void open_process(const char *command, int threads, struct bk_kernel *k, char note[64])
{
    int spoken = 0, at = 0;
    cpu_set_t seen;

    now.command = command;
    snprintf(now.name, sizeof(now.name), "%.60s", command);
    start(threads);
    snprintf(now.line, sizeof(now.line), "bench-kernel %d threads=%d bytes=%zu", VERSION, threads,
             now.map_size);
    ask(E_IO);
    if (strncmp(now.answer, "no ", 3) == 0)
        end(E_UNSUPPORTED, "cannot run here: ", now.answer + 3);
    if (sscanf(now.answer, "bench-kernel %d %63s %63s %n", &spoken, now.name, now.version, &at) <
            3 ||
        spoken != VERSION)
        end(E_IO, "for \"bench-kernel 1 NAME VERSION FUNCTIONS\" it answered ", now.answer);
    const char *const words = now.answer + at;
    *k = (struct bk_kernel){
        .name = now.name,
        .version = now.version,
        .why = why,
        .attention_forward = has(words, BK_ATTENTION_FORWARD) ? attention_forward : NULL,
        .attention_backward = has(words, BK_ATTENTION_BACKWARD) ? attention_backward : NULL,
        .recurrence_forward = has(words, BK_RECURRENCE_FORWARD) ? recurrence_forward : NULL,
        .recurrence_backward = has(words, BK_RECURRENCE_BACKWARD) ? recurrence_backward : NULL,
    };
    measure_empty();
    if (sched_getaffinity(now.pid, sizeof(seen), &seen) != 0 || !CPU_EQUAL(&seen, &now.cpus))
        end(E_UNSUPPORTED, "runs on other CPUs than it was given", "");
    snprintf(note, 64, "empty=%.2gus,%.2gus", now.empty_ns * 1e-3, now.empty_trip_ns * 1e-3);
}

void exec_serve(struct protocol *parent)
{
    now.parent = parent;
    outside_processes(open_process);
}
