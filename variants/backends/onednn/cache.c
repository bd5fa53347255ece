/* SPDX-License-Identifier: MIT
 *
 * The cache of primitives: lookup without a lock, creation under one. Entries are never removed. */
#include "cache.h"

#include <pthread.h>
#include <xxhash.h>

enum { BUCKETS = 1024 };

static struct {
    pthread_mutex_t making; /* guards all but the lookup of primitives */
    struct context context;
    int threads;
    _Atomic(struct primitive *) bucket[BUCKETS];
} library = {.making = PTHREAD_MUTEX_INITIALIZER};

enum status cache_open(int threads, struct err *e)
{
    dnnl_status_t st = dnnl_success;

    pthread_mutex_lock(&library.making);
    if (!library.context.engine)
        st = dnnl_engine_create(&library.context.engine, dnnl_cpu, 0);
    library.threads = max_int(library.threads, threads);
    library.context.failed = false;
    pthread_mutex_unlock(&library.making);
    if (st == dnnl_success)
        return OK;
    return fail(e, E_UNSUPPORTED, "oneDNN gives no CPU engine (%s)  -> use another backend",
                dnnl_status2str(st));
}

uint32_t cache_slots(int threads) { return threads > 1 ? 1 : (uint32_t)library.threads; }

/* ---- lookup and execution ----------------------------------------------------------------- */

static struct primitive *lookup(_Atomic(struct primitive *) *bucket, const struct key *key)
{
    struct primitive *p = atomic_load_explicit(bucket, memory_order_acquire);

    while (p && memcmp(&p->key, key, sizeof(*key)) != 0)
        p = p->next;
    return p;
}

struct primitive *cache_get(const struct key *key)
{
    _Atomic(struct primitive *) *bucket = &library.bucket[XXH3_64bits(key, sizeof(*key)) % BUCKETS];
    struct primitive *p = lookup(bucket, key);

    if (p)
        return p;
    pthread_mutex_lock(&library.making);
    p = lookup(bucket, key); /* another thread may have been faster */
    if (!p) {
        p = primitive_make(&library.context, key);
        p->next = atomic_load_explicit(bucket, memory_order_relaxed);
        atomic_store_explicit(bucket, p, memory_order_release);
    }
    pthread_mutex_unlock(&library.making);
    return p;
}

static dnnl_status_t point_at(const struct slot *s, int operand, const void *at)
{
    return dnnl_memory_set_data_handle(s->arg[operand].memory, (void *)at);
}

/* The rows of a in the type that the primitive takes. The library's own reorder does not flush
 * subnormals on every CPU. */
static const void *rows_of(const struct primitive *p, const float *src, int thread)
{
    const struct key *const key = &p->key;
    const size_t n = (size_t)key->k;

    if (!p->rows)
        return src;
    uint16_t *const to = p->rows + (size_t)thread * (size_t)key->m * n;
#pragma omp parallel for num_threads(key->threads)
    for (int i = 0; i < key->m; i++)
        elem_narrow(ELEM_BF16, to + (size_t)i * n, src + i * key->lda, key->k);
    return to;
}

static dnnl_status_t run_plain(const struct key *key, const float *a, const float *b, float *c)
{
    return dnnl_sgemm(key->form & FORM_TA ? 'T' : 'N', key->form & FORM_TB ? 'T' : 'N', key->m,
                      key->n, key->k, float_of_bits(key->alpha), a, key->lda, b, key->ldb,
                      float_of_bits(key->beta), c, key->ldc);
}

static dnnl_status_t run_primitive(const struct primitive *p, const struct slot *s)
{
    const dnnl_status_t st = dnnl_primitive_execute(p->run, s->stream, p->operands, s->arg);

    return st == dnnl_success ? dnnl_stream_wait(s->stream) : st;
}

static dnnl_status_t point_all(const struct primitive *p, const struct slot *s, const float *src,
                               const void *weights, const float *bias, float *dst, int thread)
{
    dnnl_status_t st = point_at(s, SRC, rows_of(p, src, thread));

    if (st == dnnl_success)
        st = point_at(s, WEIGHTS, weights);
    if (st == dnnl_success && p->biased)
        st = point_at(s, BIAS, bias);
    return st == dnnl_success ? point_at(s, DST, dst) : st;
}

bool cache_run(struct primitive *p, const float *src, const void *weights, const float *bias,
               float *dst)
{
    const int thread = p->key.threads > 1 ? 0 : omp_get_thread_num();
    const int threads = omp_get_max_threads();

    dnnl_status_t st = dnnl_success;

    CHECK((uint32_t)thread < p->key.slots);
    if (!p->plain)
        st = point_all(p, &p->slot[thread], src, weights, bias, dst, thread);
    omp_set_num_threads(p->key.threads);
    if (st == dnnl_success)
        st = p->plain ? run_plain(&p->key, src, weights, dst) : run_primitive(p, &p->slot[thread]);
    omp_set_num_threads(threads);
    if (!atomic_load_explicit(&p->used, memory_order_relaxed))
        atomic_store_explicit(&p->used, true, memory_order_relaxed);
    if (st == dnnl_success)
        return true;
    pthread_mutex_lock(&library.making);
    context_error(&library.context, &p->key, "cannot run", p->impl);
    pthread_mutex_unlock(&library.making);
    return false;
}

/* ---- a constant b ------------------------------------------------------------------------- */

size_t cache_packed_floats(const struct gemm *like)
{
    pthread_mutex_lock(&library.making);
    const struct packing *p =
        packing_for(&library.context.packings, library.context.engine, like->n, like->k);
    const size_t bytes = p->plain ? 0 : layout_bytes(&p->layout);
    pthread_mutex_unlock(&library.making);
    return bytes / sizeof(float);
}

void cache_pack(float *dst, const struct gemm *like)
{
    pthread_mutex_lock(&library.making);
    const struct packing *p =
        packing_for(&library.context.packings, library.context.engine, like->n, like->k);
    const dnnl_status_t st = packing_fill(dst, p, library.context.engine, like);
    pthread_mutex_unlock(&library.making);
    CHECK(st == dnnl_success);
}

void cache_failed(int m, int n, int k, const char *what, const char *detail)
{
    const struct key key = {.m = m, .n = n, .k = k, .alpha = bits_of_float(1)};

    pthread_mutex_lock(&library.making);
    context_error(&library.context, &key, what, detail);
    pthread_mutex_unlock(&library.making);
}

/* ---- report ------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each name once, in alphabetical order, joined by '+'. */
static void join_names(char *names, size_t size, const char **name, size_t n)
{
    qsort(name, n, sizeof(*name), by_name);
    names[0] = '\0';
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(name[i], name[i - 1]) != 0)
            text_append(names, size, "%s%s", *names ? "+" : "", name[i]);
}

enum status cache_ran(char *names, size_t size, struct err *e)
{
    const char *name[256];
    size_t n = 0;

    pthread_mutex_lock(&library.making);
    for (int i = 0; i < BUCKETS; i++)
        for (struct primitive *p = atomic_load_explicit(&library.bucket[i], memory_order_acquire);
             p; p = p->next)
            if (atomic_exchange_explicit(&p->used, false, memory_order_relaxed) &&
                n < ARRAY_LEN(name))
                name[n++] = p->impl;
    join_names(names, size, name, n);
    const bool failed = library.context.failed;
    if (failed && e)
        *e = library.context.why;
    pthread_mutex_unlock(&library.making);
    return failed ? E_UNSUPPORTED : OK;
}

size_t cache_held_bytes(void) { return library.context.held_bytes; }
