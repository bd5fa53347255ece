/* SPDX-License-Identifier: MIT
 *
 * What the fuzz targets of the library share: bytes become numbers, small or hostile, and arrays that
 * are exactly as long as they say: beyond one end of each the memory cannot be touched, before the
 * other stand words that must stay. Each call is made through a level of vector instructions and
 * through ref, whose answers must agree. A call that is refused may have written nothing. */
#pragma once

#include "structure.h"
#include "tests/support/kernel/library_judge.h"

#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#define OF(type, member) offsetof(struct type, member)

/* ---- memory ------------------------------------------------------------------------------- */

enum { SLOTS = 96, ROOM = 1 << 18, CANARY = 256, UNWRITTEN = 0x5b };

/* Where arrays of a call lie, between pages that cannot be touched. */
static struct memory {
    unsigned char *slot[SLOTS], *forbidden;
    struct placed {
        unsigned char *at, *canary;
        size_t bytes;
    } used[SLOTS];
    int n;
    bool at_end; /* arrays end where their slot ends, or begin where it begins */
} memory;

static inline void make_memory(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), step = ROOM + page;
    unsigned char *const all =
        mmap(NULL, SLOTS * step + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(all != MAP_FAILED);
    memory.forbidden = all;
    for (size_t i = 0; i < SLOTS; i++) {
        memory.slot[i] = all + page + i * step;
        CHECK(mprotect(memory.slot[i], ROOM, PROT_READ | PROT_WRITE) == 0);
    }
}

static inline void *place(size_t bytes)
{
    CHECK(memory.n < SLOTS && bytes <= ROOM - CANARY);
    unsigned char *const slot = memory.slot[memory.n];
    struct placed *const p = &memory.used[memory.n++];

    *p = memory.at_end ? (struct placed){slot + ROOM - bytes, slot + ROOM - bytes - CANARY, bytes}
                       : (struct placed){slot, slot + bytes, bytes};
    memset(p->canary, UNWRITTEN, CANARY);
    memset(p->at, UNWRITTEN, bytes);
    return p->at;
}

static inline void check_canaries(void)
{
    for (int i = 0; i < memory.n; i++)
        for (int x = 0; x < CANARY; x++)
            CHECK(memory.used[i].canary[x] == UNWRITTEN);
}

static inline bool unwritten(const unsigned char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != UNWRITTEN)
            return false;
    return true;
}

static inline uint64_t sum_of(const unsigned char *at, size_t bytes)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < bytes; i++)
        sum = sum * 31 + at[i];
    return sum;
}

/* ---- input -------------------------------------------------------------------------------- */

struct input {
    const uint8_t *at;
    size_t n;
    bool tame; /* no number so far that is out of the ordinary */
};

static inline int byte(struct input *in) { return in->n ? (in->n--, *in->at++) : 0; }

static inline bool chance(struct input *in, int of) { return byte(in) % of == 1; }

/* 0 to `most`, or far off. */
static inline int number(struct input *in, int most)
{
    static const int odd[] = {-1, INT_MIN, INT_MAX, 1 << 28, 1 << 20, 65, 257, 1 << 15};
    const int b = byte(in);

    return b < 240 ? b % (most + 1) : odd[b % (int)ARRAY_LEN(odd)];
}

/* What is usual but for one byte in 32. */
static inline int around(struct input *in, int usual)
{
    const int b = byte(in);

    return b % 32 == 31 ? number(in, 8) : usual;
}

static inline ptrdiff_t stride(struct input *in, double packed)
{
    static const ptrdiff_t odd[] = {
        -1, PTRDIFF_MAX, PTRDIFF_MIN, (ptrdiff_t)1 << 32, (ptrdiff_t)1 << 60, 1, INT_MAX};
    const int b = byte(in);

    if (b >= 248)
        return odd[b % (int)ARRAY_LEN(odd)];
    return b % 4 == 0 || fabs(packed) > 1e9 ? 0 : (ptrdiff_t)packed + (b % 4 == 1 ? 0 : b / 16);
}

static inline float real(struct input *in)
{
    static const float usual[] = {0, 0.5f, 1, 2},
                       odd[] = {NAN, INFINITY, -1, 1e30f, 1e-30f, -1e-45f};
    const int b = byte(in);

    if (b < 240)
        return usual[b % (int)ARRAY_LEN(usual)];
    in->tame = false;
    return odd[b % (int)ARRAY_LEN(odd)];
}

/* ---- arrays ------------------------------------------------------------------------------- */

enum role { READ, WRITTEN, ADDED };

/* An array of a call: the member that points to it, and how many numbers it has. */
struct array {
    size_t member;
    double n;
    enum role role;
    float size; /* of its numbers, at most; < 0: all are negative */
    bool wide;  /* double */
    void *at[2];
};

enum { ARRAYS = 48, ENGINES = 2, BACKENDS = 8 };
enum { LONGEST = 200000, JUDGED = 20000 }; /* products of a call */
struct call {
    struct array all[ARRAYS];
    int n;
    bool fits; /* all of it, and the work is little */
};

static inline void add_array(struct call *c, bool there, size_t member, double n, enum role role,
                             float size)
{
    CHECK(c->n < ARRAYS);
    if (there)
        c->all[c->n++] = (struct array){.member = member, .n = n, .role = role, .size = size};
}

/* How far elements reach that are laid out by strides; a call with negative ones is refused. */
static inline double reach(double n0, ptrdiff_t s0, double n1, ptrdiff_t s1, double n2,
                           ptrdiff_t s2, double width)
{
    return (n0 - 1) * (double)s0 + (n1 - 1) * (double)s1 + (n2 - 1) * (double)s2 + width;
}

static inline size_t bytes_of(const struct array *x)
{
    return (size_t)fmax(x->n, 0) * (x->wide ? sizeof(double) : sizeof(float));
}

static inline void fill(const struct array *x, void *at, uint32_t seed)
{
    for (size_t i = 0; i < (size_t)fmax(x->n, 0); i++) {
        seed = seed * 1664525 + 1013904223;
        float value = (float)((int)(seed >> 24) - 128) / 128 * fabsf(x->size);
        if (x->size < 0)
            value = -fabsf(value);
        if (x->wide)
            ((double *)at)[i] = (double)value;
        else
            ((float *)at)[i] = value;
    }
}

/* Memory for all arrays of a call, or what nothing may touch. */
static inline void place_arrays(struct call *c, double work)
{
    c->fits = work < LONGEST;
    for (int i = 0; i < c->n; i++)
        c->fits = c->fits && c->all[i].n * 8 < ROOM - CANARY;
    for (int i = 0; i < c->n; i++) {
        struct array *const x = &c->all[i];
        for (int e = 0; e < ENGINES; e++) {
            if (!c->fits)
                x->at[e] = memory.forbidden;
            else
                x->at[e] = e && x->role == READ ? x->at[0] : place(bytes_of(x));
            if (c->fits && x->role == READ && e == 0)
                fill(x, x->at[0], (uint32_t)i);
            if (c->fits && x->role == ADDED)
                memset(x->at[e], 0, bytes_of(x));
        }
    }
}

static inline void enter(const struct call *c, int engine, void *to)
{
    for (int i = 0; i < c->n; i++)
        memcpy((char *)to + c->all[i].member, &c->all[i].at[engine], sizeof(void *));
}

static inline const struct array *find_array(const struct call *c, size_t member)
{
    for (int i = 0; i < c->n; i++)
        if (c->all[i].member == member)
            return &c->all[i];
    return NULL;
}

static inline double value(const struct array *x, int engine, size_t i)
{
    return x->wide ? ((double *)x->at[engine])[i] : (double)((float *)x->at[engine])[i];
}

/* A struct that ends where memory ends: nothing after its `size` is read. */
static inline void *place_struct(struct input *in, const void *from, size_t size, size_t first)
{
    static const size_t odd[] = {0, 4, 8, SIZE_MAX, 1};
    const int b = byte(in);
    const size_t later = b >= 224 && b < 236 ? 8 : 0, kept = b >= 236 && b < 248 ? first : size;
    const bool at_end = memory.at_end;
    size_t said = b >= 248 ? odd[b % (int)ARRAY_LEN(odd)] : kept + later;

    memory.at_end = true;
    unsigned char *const to = place(kept + later);
    memory.at_end = at_end;
    memset(to, 0, kept + later);
    memcpy(to, from, kept);
    memcpy(to, &said, sizeof(said));
    if (later && b % 2)
        to[kept] = 1;
    return to;
}

/* ---- calls -------------------------------------------------------------------------------- */

static struct ba_engine *engines[BACKENDS]; /* ref, then the others */
static int n_engines = 1;

static inline void open_engines(void)
{
    for (int i = 0; ba_backend_name(i); i++) {
        const bool ref = strcmp(ba_backend_name(i), "ref") == 0;
        const struct ba_engine_options o = {
            .size = sizeof(o), .backend = ba_backend_name(i), .threads = 1};
        CHECK(n_engines < BACKENDS);
        if (ba_engine_open(&engines[ref ? 0 : n_engines], &o, NULL, 0) ==
            BA_OK) /* this CPU has it */
            n_engines += !ref;
    }
    CHECK(engines[0] && engines[1]);
}

typedef int call_fn(struct ba_engine *, const void *, const void *, char *, size_t);
/* Both passes of an operation. */
#define PASSES(of)                                                                                 \
    static int forward(struct ba_engine *g, const void *x, const void *d, char *why, size_t n)     \
    {                                                                                              \
        return of##_forward(g, x, why, n);                                                         \
    }                                                                                              \
    static int backward(struct ba_engine *g, const void *x, const void *d, char *why, size_t n)    \
    {                                                                                              \
        return of##_backward(g, x, d, why, n);                                                     \
    }

/* A status, with its line. */
static inline int call(call_fn *f, struct ba_engine *engine, const void *x, const void *d)
{
    char why[256];

    memset(why, 1, sizeof(why));
    const int st = f(engine, x, d, why, sizeof(why));
    CHECK(memchr(why, '\0', sizeof(why)) && st >= BA_OK && st <= BA_MEMORY);
    CHECK(st == BA_OK ? why[0] == '\0' : strstr(why, "  -> ") && !strpbrk(why, "\n\r\033"));
    return st;
}

static inline void expect_unwritten(const struct call *c, int engine)
{
    for (int i = 0; c->fits && i < c->n; i++)
        if (c->all[i].role == WRITTEN)
            CHECK(unwritten(c->all[i].at[engine], bytes_of(&c->all[i])));
}

/* A hundred times what rounding can do to numbers of this size, and far below what a wrong place
 * does. */
static inline bool near(double got, double want, double largest)
{
    return got == want || fabs(got - want) <= 1e-2 * (1 + largest);
}

static inline double largest_of(const struct array *x, int engine)
{
    double most = 0;

    for (size_t i = 0; i < (size_t)x->n; i++)
        most = fmax(most, fabs(value(x, engine, i)));
    return most;
}

/* What both engines wrote, where no number is out of the ordinary. */
static inline void expect_alike(const struct call *c)
{
    for (int i = 0; i < c->n; i++) {
        const struct array *const x = &c->all[i];
        const double largest = x->role == READ ? INFINITY : largest_of(x, 0);
        if (!(largest < 1e4))
            continue;
        for (size_t n = 0; n < (size_t)x->n; n++)
            if (!unwritten((const unsigned char *)x->at[0] + n * (x->wide ? 8 : 4), 4))
                CHECK(near(value(x, 1, n), value(x, 0, n), largest));
            else
                CHECK(unwritten((const unsigned char *)x->at[1] + n * (x->wide ? 8 : 4), 4));
    }
}

static inline uint64_t sum_of_inputs(const struct call *c)
{
    uint64_t sum = 0;

    for (int i = 0; c->fits && i < c->n; i++)
        if (c->all[i].role == READ)
            sum = sum * 37 + sum_of(c->all[i].at[0], bytes_of(&c->all[i]));
    return sum;
}

/* How many passes were taken and refused, and of how many the numbers were judged. */
static struct {
    int taken, refused, judged;
} answered;

/* A call through both engines: whether it was taken. `c` is what it may write. */
static inline bool taken(call_fn *f, struct ba_engine *const pair[2], const struct call *c,
                         void *const x[2], void *const d[2])
{
    const uint64_t sum = sum_of_inputs(c);
    int st[ENGINES];

    for (int e = 0; e < ENGINES; e++) {
        st[e] = call(f, pair[e], x[e], d[e]);
        if (st[e] != BA_OK)
            expect_unwritten(c, e);
    }
    CHECK(st[0] == st[1] && sum == sum_of_inputs(c));
    ++*(st[0] == BA_OK ? &answered.taken : &answered.refused);
    return st[0] == BA_OK;
}

typedef void make_call_fn(struct input *, struct ba_engine *const pair[2]);

static inline int try_call(make_call_fn *make, const uint8_t *bytes, size_t size)
{
    struct input in = {bytes, size, true};

    if (!engines[0]) {
        make_memory();
        open_engines();
    }
    const int kind = byte(&in);
    struct ba_engine *const pair[2] = {engines[0], engines[1 + (kind >> 3) % (n_engines - 1)]};
    memory.n = 0;
    memory.at_end = kind & 4;
    make(&in, pair);
    check_canaries();
    return 0;
}
