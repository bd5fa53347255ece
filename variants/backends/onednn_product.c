/* SPDX-License-Identifier: MIT
 *
 * The cache of primitives: found without a lock, made under one. Nothing is ever dropped. */
#include "onednn_product.h"
#include "onednn_pack.h"

#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    BUCKETS = 1024,
    FEW_ROWS = 12, /* fewer rows do not pay for copying b, which brgemm does with a plain one */
};

/* Everything that decides which primitive runs. Hashed and compared as bytes: no padding. */
enum { FORM_TA = 1, FORM_TB = 2, FORM_PACKED = 4 };
struct key {
    ptrdiff_t lda, ldb, ldc;
    int m, n, k, threads;
    float alpha, beta;
    uint32_t form;
    uint32_t slots; /* threads that may run it at the same time */
};
_Static_assert(sizeof(struct key) == 3 * sizeof(ptrdiff_t) + 8 * sizeof(int), "no padding");

/* Memory objects carry the pointers of a call, so each thread has its own. */
enum { SRC, WEIGHTS, DST, SCRATCH, OPERANDS };
struct slot {
    dnnl_stream_t stream;
    dnnl_exec_arg_t arg[OPERANDS];
};

struct product {
    struct key key;
    struct product *next;
    dnnl_primitive_t run; /* NULL: the library has nothing good for it */
    const char *impl;
    struct slot *slot; /* [key.slots] */
    atomic_bool used;
};

/* Work space of primitives, the same for all that fit: a thread runs one after the other. */
struct space {
    struct space *older; /* primitives that were made with it still use it */
    unsigned char *at;
    size_t slice, slots; /* bytes per thread */
};

static struct {
    pthread_mutex_t making; /* guards all but the lookup of products */
    dnnl_engine_t engine;
    int threads;
    _Atomic(struct product *) bucket[BUCKETS];
    struct packing *packings;
    struct space *space;
    size_t held_bytes;
    bool failed;
    struct err why; /* the first refusal or failure */
} library = {.making = PTHREAD_MUTEX_INITIALIZER};

/* ---- making a product --------------------------------------------------------------------- */

static void complain(const struct key *key, const char *what, const char *detail)
{
    if (library.failed)
        return;
    library.failed = true;
    fail(&library.why, E_UNSUPPORTED,
         "oneDNN %s %s for %d x %d x %d%s%s, alpha %g, beta %g  -> use another backend", what,
         detail, key->m, key->n, key->k, key->form & FORM_TA ? ", a transposed" : "",
         key->form & FORM_TB ? ", b transposed" : "", (double)key->alpha, (double)key->beta);
}

static void *take(size_t bytes)
{
    const size_t whole = round_up(bytes, 64);
    void *at = aligned_alloc(64, whole);

    CHECK(at);
    library.held_bytes += whole;
    return memset(at, 0, whole);
}

static const struct space *space_for(size_t bytes, size_t slots)
{
    struct space *s = library.space;

    if (s && s->slice >= bytes && s->slots >= slots)
        return s;
    s = take(sizeof(*s));
    s->slice = round_up(bytes, 4096) + 64; /* slices at a page's distance would share cache sets */
    s->slots = slots;
    s->at = take(s->slice * slots);
    s->older = library.space;
    return library.space = s;
}

static dnnl_status_t lay_out(struct matmul *mm, const struct key *key)
{
    const bool ta = key->form & FORM_TA, tb = key->form & FORM_TB;
    dnnl_status_t st =
        layout_strided(&mm->src, key->m, key->k, ta ? 1 : key->lda, ta ? key->lda : 1);

    if (st == dnnl_success && key->form & FORM_PACKED)
        st = layout_copy(&mm->weights,
                         &packing_for(&library.packings, library.engine, key->n, key->k)->layout);
    else if (st == dnnl_success)
        st = layout_strided(&mm->weights, key->k, key->n, tb ? 1 : key->ldb, tb ? key->ldb : 1);
    if (st == dnnl_success)
        st = layout_strided(&mm->dst, key->m, key->n, key->ldc, 1);
    return st;
}

static bool describe(dnnl_primitive_desc_t *pd, const char **impl, const struct matmul *mm, int nth)
{
    *pd = NULL;
    return matmul_describe(pd, mm, library.engine, nth) == dnnl_success &&
           dnnl_primitive_desc_query(*pd, dnnl_query_impl_info_str, 0, (void *)impl) ==
               dnnl_success;
}

/* The library's first choice, except that for few rows it is brgemm, which copies b, and the second
 * one is not. NULL, with the reason noted, where nothing but the fallback would do. */
static dnnl_primitive_desc_t choose(struct product *p, const struct matmul *mm)
{
    const bool packed = p->key.form & FORM_PACKED;
    dnnl_primitive_desc_t first, second;
    const char *name;

    if (!describe(&first, &p->impl, mm, 0)) {
        if (!packed)
            complain(&p->key, "has no", "implementation");
        return NULL;
    }
    if (strstr(p->impl, "ref")) {
        if (!packed)
            complain(&p->key, "would fall back to", p->impl);
        dnnl_primitive_desc_destroy(first);
        return NULL;
    }
    if (packed || p->key.m >= FEW_ROWS || strncmp(p->impl, "brg", 3) != 0)
        return first;
    if (describe(&second, &name, mm, 1) && !strstr(name, "ref")) {
        dnnl_primitive_desc_destroy(first);
        p->impl = name;
        return second;
    }
    if (second)
        dnnl_primitive_desc_destroy(second);
    return first;
}

static dnnl_status_t make_slots(struct product *p, const struct matmul *mm,
                                const_dnnl_primitive_desc_t pd)
{
    static const int arg[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    struct layout scratch = {0};
    dnnl_status_t st = layout_query(&scratch, pd, dnnl_query_scratchpad_md);

    if (st != dnnl_success)
        return st;
    const struct layout *const layout[] = {&mm->src, &mm->weights, &mm->dst, &scratch};
    const struct space *space = space_for(layout_bytes(&scratch), p->key.slots);
    p->slot = take(p->key.slots * sizeof(*p->slot));
    for (uint32_t t = 0; t < p->key.slots && st == dnnl_success; t++) {
        struct slot *s = &p->slot[t];
        st = dnnl_stream_create(&s->stream, library.engine, dnnl_stream_default_flags);
        for (int i = 0; i < OPERANDS && st == dnnl_success; i++) {
            s->arg[i].arg = arg[i];
            st = layout_memory(&s->arg[i].memory, layout[i], library.engine,
                               i == SCRATCH ? space->at + t * space->slice : DNNL_MEMORY_NONE);
        }
    }
    layout_release(&scratch);
    return st;
}

/* How many threads a primitive uses is fixed when it is made and asked again when it runs. */
static void make(struct product *p)
{
    struct matmul mm = {.alpha = p->key.alpha, .beta = p->key.beta};
    const int threads = omp_get_max_threads();
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t st = lay_out(&mm, &p->key);

    omp_set_num_threads(p->key.threads);
    if (st == dnnl_success && (pd = choose(p, &mm))) {
        st = make_slots(p, &mm, pd);
        if (st == dnnl_success)
            st = dnnl_primitive_create(&p->run, pd);
    }
    if (st != dnnl_success) {
        p->run = NULL;
        complain(&p->key, "reports", dnnl_status2str(st));
    }
    omp_set_num_threads(threads);
    if (pd)
        dnnl_primitive_desc_destroy(pd);
    layout_release(&mm.src);
    layout_release(&mm.weights);
    layout_release(&mm.dst);
}

/* ---- finding one -------------------------------------------------------------------------- */

static struct key key_of(const struct gemm *g, bool packed)
{
    return (struct key){
        .lda = g->lda,
        .ldb = packed ? 0 : g->ldb,
        .ldc = g->ldc,
        .m = g->m,
        .n = g->n,
        .k = g->k,
        .threads = g->threads,
        .alpha = g->alpha,
        .beta = g->beta,
        .form = (g->ta ? FORM_TA : 0) | (packed  ? FORM_PACKED
                                         : g->tb ? FORM_TB
                                                 : 0),
        .slots = g->threads > 1 ? 1 : (uint32_t)library.threads,
    };
}

static struct product *look_up(_Atomic(struct product *) *bucket, const struct key *key)
{
    struct product *p = atomic_load_explicit(bucket, memory_order_acquire);

    while (p && memcmp(&p->key, key, sizeof(*key)) != 0)
        p = p->next;
    return p;
}

static struct product *product_for(const struct gemm *g, bool packed)
{
    const struct key key = key_of(g, packed);
    _Atomic(struct product *) *bucket = &library.bucket[XXH3_64bits(&key, sizeof(key)) % BUCKETS];
    struct product *p = look_up(bucket, &key);

    if (p)
        return p;
    pthread_mutex_lock(&library.making);
    p = look_up(bucket, &key); /* another thread may have been faster */
    if (!p) {
        p = take(sizeof(*p));
        p->key = key;
        p->next = atomic_load_explicit(bucket, memory_order_relaxed);
        make(p);
        atomic_store_explicit(bucket, p, memory_order_release);
    }
    pthread_mutex_unlock(&library.making);
    return p;
}

/* ---- running one -------------------------------------------------------------------------- */

static bool execute(struct product *p, const float *a, const float *b, float *c)
{
    const int thread = p->key.threads > 1 ? 0 : omp_get_thread_num();
    const int threads = omp_get_max_threads();

    CHECK((uint32_t)thread < p->key.slots);
    const struct slot *s = &p->slot[thread];
    dnnl_status_t st = dnnl_memory_set_data_handle(s->arg[SRC].memory, (void *)a);
    if (st == dnnl_success)
        st = dnnl_memory_set_data_handle(s->arg[WEIGHTS].memory, (void *)b);
    if (st == dnnl_success)
        st = dnnl_memory_set_data_handle(s->arg[DST].memory, c);
    omp_set_num_threads(p->key.threads);
    if (st == dnnl_success)
        st = dnnl_primitive_execute(p->run, s->stream, OPERANDS, s->arg);
    if (st == dnnl_success)
        st = dnnl_stream_wait(s->stream);
    omp_set_num_threads(threads);
    if (!atomic_load_explicit(&p->used, memory_order_relaxed))
        atomic_store_explicit(&p->used, true, memory_order_relaxed);
    return st == dnnl_success;
}

void product_run(const struct gemm *g)
{
    struct product *p = product_for(g, g->b_packed != NULL);
    const float *b = g->b_packed ? g->b_packed : g->b;

    if (!p->run && g->b_packed) { /* not every product of these weights takes the packed form */
        p = product_for(g, false);
        b = g->b;
    }
    if (p->run && execute(p, g->a, b, g->c))
        return;
    if (p->run) {
        pthread_mutex_lock(&library.making);
        complain(&p->key, "cannot run", p->impl);
        pthread_mutex_unlock(&library.making);
    }
    for (int i = 0; i < g->m; i++)
        for (int j = 0; j < g->n; j++)
            g->c[i * g->ldc + j] = NAN;
}

/* ---- a constant b ------------------------------------------------------------------------- */

size_t product_packed_floats(const struct gemm *like)
{
    pthread_mutex_lock(&library.making);
    const struct packing *p = packing_for(&library.packings, library.engine, like->n, like->k);
    const size_t bytes = p->plain ? 0 : layout_bytes(&p->layout);
    pthread_mutex_unlock(&library.making);
    return bytes / sizeof(float);
}

void product_pack(float *dst, const struct gemm *like)
{
    pthread_mutex_lock(&library.making);
    const struct packing *p = packing_for(&library.packings, library.engine, like->n, like->k);
    const dnnl_status_t st = packing_fill(dst, p, library.engine, like);
    pthread_mutex_unlock(&library.making);
    CHECK(st == dnnl_success);
}

/* ---- the library -------------------------------------------------------------------------- */

enum status products_open(int threads, struct err *e)
{
    dnnl_status_t st = dnnl_success;

    pthread_mutex_lock(&library.making);
    if (!library.engine)
        st = dnnl_engine_create(&library.engine, dnnl_cpu, 0);
    library.threads = max_int(library.threads, threads);
    library.failed = false;
    pthread_mutex_unlock(&library.making);
    if (st == dnnl_success)
        return OK;
    return fail(e, E_UNSUPPORTED, "oneDNN gives no CPU engine (%s)  -> use another backend",
                dnnl_status2str(st));
}

/* Append `name` to a list joined by '+', unless it is there. */
static void append(char *names, size_t size, const char *name)
{
    const size_t n = strlen(names), len = strlen(name);

    for (const char *at = names; (at = strstr(at, name)); at += len)
        if ((at == names || at[-1] == '+') && (at[len] == '\0' || at[len] == '+'))
            return;
    if (n + len + 2 <= size) {
        if (n)
            names[n] = '+';
        memcpy(names + n + (n > 0), name, len + 1);
    }
}

enum status products_ran(char *names, size_t size, struct err *e)
{
    pthread_mutex_lock(&library.making);
    names[0] = '\0';
    for (int i = 0; i < BUCKETS; i++)
        for (struct product *p = atomic_load_explicit(&library.bucket[i], memory_order_acquire); p;
             p = p->next)
            if (atomic_exchange_explicit(&p->used, false, memory_order_relaxed))
                append(names, size, p->impl);
    const bool failed = library.failed;
    if (failed && e)
        *e = library.why;
    pthread_mutex_unlock(&library.making);
    return failed ? E_UNSUPPORTED : OK;
}

size_t products_held_bytes(void) { return library.held_bytes; }
