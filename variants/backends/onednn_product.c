/* SPDX-License-Identifier: MIT
 *
 * The cache of primitives: found without a lock, made under one. Nothing is
 * ever dropped. */
#include "onednn_product.h"
#include "onednn_make.h"

#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <string.h>
#include <xxhash.h>

enum { BUCKETS = 1024 };

static struct {
    pthread_mutex_t making; /* guards all but the lookup of products */
    struct workshop shop;
    int threads;
    _Atomic(struct product *) bucket[BUCKETS];
} library = {.making = PTHREAD_MUTEX_INITIALIZER};

/* ---- finding one
 * -------------------------------------------------------------------------- */

static uint32_t bits(float x)
{
    uint32_t b;

    memcpy(&b, &x, sizeof(b));
    return b;
}

static struct key key_of(const struct gemm *g, const struct heads *heads, bool packed)
{
    return (struct key){
        .lda = g->lda,
        .ldb = packed ? 0 : g->ldb,
        .ldc = g->ldc,
        .heads = heads->n,
        .head_a = heads->a,
        .head_b = heads->b,
        .head_c = heads->c,
        .m = g->m,
        .n = g->n,
        .k = g->k,
        .threads = g->threads,
        .alpha = bits(g->alpha),
        .beta = bits(g->beta),
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

static struct product *product_for(const struct gemm *g, const struct heads *heads, bool packed)
{
    const struct key key = key_of(g, heads, packed);
    _Atomic(struct product *) *bucket = &library.bucket[XXH3_64bits(&key, sizeof(key)) % BUCKETS];
    struct product *p = look_up(bucket, &key);

    if (p)
        return p;
    pthread_mutex_lock(&library.making);
    p = look_up(bucket, &key); /* another thread may have been faster */
    if (!p) {
        p = product_make(&library.shop, &key);
        p->next = atomic_load_explicit(bucket, memory_order_relaxed);
        atomic_store_explicit(bucket, p, memory_order_release);
    }
    pthread_mutex_unlock(&library.making);
    return p;
}

/* ---- running one
 * -------------------------------------------------------------------------- */

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

void product_run(const struct gemm *g) { product_run_heads(g, &(struct heads){0}); }

static void fill_with_nan(const struct gemm *g, const struct heads *heads)
{
    for (int h = 0; h < max_int(1, heads->n); h++)
        for (int i = 0; i < g->m; i++)
            for (int j = 0; j < g->n; j++)
                g->c[h * heads->c + i * g->ldc + j] = NAN;
}

void product_run_heads(const struct gemm *g, const struct heads *heads)
{
    struct product *p = product_for(g, heads, g->b_packed != NULL);
    const float *b = g->b_packed ? g->b_packed : g->b;

    if (!p->run && g->b_packed) { /* not every product of these weights takes the
                                     packed form */
        p = product_for(g, heads, false);
        b = g->b;
    }
    if (p->run && execute(p, g->a, b, g->c))
        return;
    if (p->run) {
        pthread_mutex_lock(&library.making);
        workshop_complain(&library.shop, &p->key, "cannot run", p->impl);
        pthread_mutex_unlock(&library.making);
    }
    fill_with_nan(g, heads);
}

/* ---- a constant b
 * ------------------------------------------------------------------------- */

size_t product_packed_floats(const struct gemm *like)
{
    pthread_mutex_lock(&library.making);
    const struct packing *p =
        packing_for(&library.shop.packings, library.shop.engine, like->n, like->k);
    const size_t bytes = p->plain ? 0 : layout_bytes(&p->layout);
    pthread_mutex_unlock(&library.making);
    return bytes / sizeof(float);
}

void product_pack(float *dst, const struct gemm *like)
{
    pthread_mutex_lock(&library.making);
    const struct packing *p =
        packing_for(&library.shop.packings, library.shop.engine, like->n, like->k);
    const dnnl_status_t st = packing_fill(dst, p, library.shop.engine, like);
    pthread_mutex_unlock(&library.making);
    CHECK(st == dnnl_success);
}

/* ---- the library
 * -------------------------------------------------------------------------- */

enum status products_open(int threads, struct err *e)
{
    dnnl_status_t st = dnnl_success;

    pthread_mutex_lock(&library.making);
    if (!library.shop.engine)
        st = dnnl_engine_create(&library.shop.engine, dnnl_cpu, 0);
    library.threads = max_int(library.threads, threads);
    library.shop.failed = false;
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
    const bool failed = library.shop.failed;
    if (failed && e)
        *e = library.shop.why;
    pthread_mutex_unlock(&library.making);
    return failed ? E_UNSUPPORTED : OK;
}

size_t products_held_bytes(void) { return library.shop.held_bytes; }
