/* SPDX-License-Identifier: MIT
 *
 * The handle: opening, threads, work space. */
#include "inner.h"

/* Operands are float: backends that only add products of another type are none of ours. */
static bool is_offered(const struct backend *b) { return b && b->adds == ELEM_F32; }

const char *ba_backend_name(int i)
{
    for (int b = 0; i >= 0 && backends[b]; b++)
        if (is_offered(backends[b]) && backends[b]->needs <= cpu_isa_unmasked() && i-- == 0)
            return backends[b]->name;
    return NULL;
}

/* The backend of that name, or of the highest level that this CPU has. */
static enum status find_backend(const char *name, const struct backend **b, struct err *e)
{
    const struct backend *best = &backend_ref;

    for (int i = 0; backends[i]; i++)
        if (is_offered(backends[i]) && backends[i]->needs <= cpu_isa_unmasked() &&
            backends[i]->needs > best->needs)
            best = backends[i];
    *b = name ? backend_find(name) : best;
    if (!is_offered(*b))
        return fail(e, E_UNSUPPORTED, "there is no backend %.40s  -> use NULL, which is %s here",
                    name, best->name);
    if ((*b)->needs > cpu_isa_unmasked())
        return fail(e, E_UNSUPPORTED,
                    "backend %s needs %s, which this CPU lacks  -> use NULL, which is %s here",
                    name, isa_needs[(*b)->needs], best->name);
    return OK;
}

/* ---- threads ------------------------------------------------------------------------------ */

static void *wait_at(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* Can so many threads run? OpenMP would end the process where one cannot be started. */
static bool threads_start(int n)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t threads[LIMIT_THREADS];
    int started = 0;

    pthread_mutex_lock(&gate);
    while (started < n - 1 && pthread_create(&threads[started], NULL, wait_at, &gate) == 0)
        started++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return started >= n - 1;
}

/* ---- opening ------------------------------------------------------------------------------ */

/* What the caller gets of a status, and why. */
static int told(enum status st, const struct err *e, char *why, size_t why_size)
{
    if (why && why_size > 0) {
        const size_t n = strnlen(st == OK ? "" : e->msg, why_size - 1);
        memcpy(why, e->msg, n);
        why[n] = '\0';
    }
    return st == OK              ? BA_OK
           : st == E_NOMEM       ? BA_MEMORY
           : st == E_UNSUPPORTED ? BA_UNSUPPORTED
                                 : BA_ARGUMENT;
}

static enum status open_engine(struct ba_engine **engine, const struct ba_engine_options *options,
                               struct err *e)
{
    struct ba_engine_options o;
    const struct backend *b;

    if (!engine)
        return fail(e, E_USAGE, "engine is NULL  -> pass where the handle goes");
    *engine = NULL;
    TRY(take_struct(&o, sizeof(o), FIRST_SIZE(struct ba_engine_options, reserved), options,
                    "ba_engine_options", e));
    const struct number numbers[] = {{"threads", o.threads, 0, LIMIT_THREADS},
                                     {"reserved", o.reserved, 0, 0}};
    TRY(check_numbers(numbers, ARRAY_LEN(numbers), e));
    TRY(find_backend(o.backend, &b, e));
    const int threads = max_int(1, o.threads);
    if (!threads_start(threads))
        return fail(e, E_NOMEM, "cannot start %d threads  -> ask for fewer", threads);
    struct ba_engine *const it = calloc(1, sizeof(*it));
    if (!it)
        return fail(e, E_NOMEM, "no memory for an engine  -> free some");
    enum status st = engine_open(&it->g, b->name, threads, NULL, e);
    if (st == OK && engine_place(&it->g, &it->products, NULL) != OK)
        st = fail(e, E_NOMEM, "no memory for products of %d threads  -> ask for fewer", threads);
    if (st != OK) {
        free(it);
        return st;
    }
    pthread_mutex_init(&it->lock, NULL);
    *engine = it;
    return OK;
}

int ba_engine_open(struct ba_engine **engine, const struct ba_engine_options *options, char *why,
                   size_t why_size)
{
    struct err e = {""};

    return told(open_engine(engine, options, &e), &e, why, why_size);
}

void ba_engine_close(struct ba_engine *engine)
{
    if (!engine)
        return;
    pthread_mutex_destroy(&engine->lock);
    arena_release(&engine->products);
    free(engine->room);
    free(engine);
}

const char *ba_engine_backend(const struct ba_engine *engine)
{
    return engine ? engine->g.backend->name : NULL;
}

enum status engine_room(struct ba_engine *engine, size_t bytes, struct err *e)
{
    enum { LINE = 64 };

    if (bytes <= engine->room_bytes)
        return OK;
    free(engine->room);
    engine->room_bytes = 0;
    engine->room = bytes < SIZE_MAX / 2 ? aligned_alloc(LINE, round_up(bytes, LINE)) : NULL;
    if (!engine->room)
        return fail(e, E_NOMEM, "no memory for %zu bytes of work space  -> lower B, L or threads",
                    bytes);
    engine->room_bytes = bytes;
    return OK;
}

int called(struct ba_engine *engine, library_call *call, const void *of, const void *grads,
           char *why, size_t why_size)
{
    struct err e = {""};

    if (!engine)
        return told(fail(&e, E_USAGE, "engine is NULL  -> open one"), &e, why, why_size);
    pthread_mutex_lock(&engine->lock);
    const enum status st = call(engine, of, grads, &e);
    pthread_mutex_unlock(&engine->lock);
    return told(st, &e, why, why_size);
}
