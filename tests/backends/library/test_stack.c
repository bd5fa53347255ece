/* SPDX-License-Identifier: MIT
 *
 * The library on a thread with as little stack as docs/library.md asks for: every kind of call computes
 * what it does on a large stack, and writes nothing below. Memory of somebody else lies right behind
 * the guard page, where a large frame would begin. */
#include "tests/support/kernel/library.h"
#include "tests/support/sanitized.h"
#include "variants/base/rng.h"

#include <pthread.h>
#include <sys/mman.h>

TestSuite(library_stack, .timeout = 240);

/* Long enough for blocks of every kernel: 256 keys, 512 columns of a product; of queries and of a state's
 * steps, 64. */
enum { K = 520, L = 136, H = 2, DH = 64, N = K * H * DH };
enum { OTHERS = 4 << 20, GUARD = 4096, STACK = 128 << 10 };

enum kind { PLAIN, REL_K, REL_Q, MIXED, FEW, DELTA, DECAYING, KINDS };
static const char *const kind_name[] = {"plain", "rel_k", "rel_q",   "mixed",
                                        "few",   "delta", "decaying"};

/* Forward and backward pass of a kind: numbers that a call has made. */
struct call {
    const char *backend;
    enum kind kind;
    float *out; /* [4, N]: o, d_q, d_k, d_v */
    int status;
    char why[256];
};

static float *numbers(size_t n, const char *name)
{
    float *const x = room(n, sizeof(*x));

    rng_normal(x, n, 1, rng_stream(name), 0, 0.3f);
    return x;
}

struct operands {
    float *q, *k, *v, *d_o, *table, *mix, *beta, *lse;
};

static void attend(struct call *c, struct ba_engine *engine, const struct operands *x)
{
    const int queries = c->kind == FEW ? 3 : L;
    const struct ba_attention a = {.size = sizeof(a),
                                   .B = 1,
                                   .H = H,
                                   .L = queries,
                                   .M = K - queries,
                                   .dh = DH,
                                   .causal = 1,
                                   MEMBERS(x->, q, k, v, lse),
                                   .o = c->out,
                                   .R = c->kind == REL_K || c->kind == REL_Q ? K : 0,
                                   .rel_k = c->kind == REL_K || c->kind == REL_Q ? x->table : NULL,
                                   .rel_q = c->kind == REL_Q ? x->table : NULL,
                                   .mix_logits = c->kind == MIXED ? x->mix : NULL,
                                   .mix_probs = c->kind == MIXED ? x->mix : NULL};
    const struct ba_attention_grad d = {.size = sizeof(d),
                                        .d_o = x->d_o,
                                        .d_q = c->out + N,
                                        .d_k = c->out + 2 * N,
                                        .d_v = c->out + 3 * N};

    c->status = ba_attention_forward(engine, &a, c->why, sizeof(c->why));
    if (c->status == BA_OK)
        c->status = ba_attention_backward(engine, &a, &d, c->why, sizeof(c->why));
}

static void recur(struct call *c, struct ba_engine *engine, const struct operands *x)
{
    const struct ba_rows rows = {.row = H * DH, .head = DH},
                         numbers_of_heads = {.row = H, .head = 1};
    struct ba_recurrence r = {
        .size = sizeof(r), .B = 1, .L = L, .H = H, .dk = DH, .dv = DH, .o = c->out};
    const struct ba_recurrence_grad d = {.size = sizeof(d),
                                         .d_o = x->d_o,
                                         .d_q = c->out + N,
                                         .d_k = c->out + 2 * N,
                                         .d_v = c->out + 3 * N};

    r.q = r.k = r.v = rows;
    r.q.at = x->q, r.k.at = x->k, r.v.at = x->v;
    if (c->kind == DELTA) {
        r.beta = numbers_of_heads;
        r.beta.at = x->beta;
    } else {
        r.g = rows;
        r.g.at = x->table;
        r.g_width = DH;
    }
    c->status = ba_recurrence_forward(engine, &r, c->why, sizeof(c->why));
    if (c->status == BA_OK)
        c->status = ba_recurrence_backward(engine, &r, &d, c->why, sizeof(c->why));
}

/* Opens the engine, too. */
static void *make_call(void *arg)
{
    struct call *const c = arg;
    struct operands x = {numbers(N, "q"),        numbers(N, "k"),      numbers(N, "v"),
                         numbers(N, "d_o"),      numbers(N, "table"),  numbers(H * H, "mix"),
                         numbers(L * H, "beta"), numbers(L * H, "lse")};
    const struct ba_engine_options o = {.size = sizeof(o), .backend = c->backend, .threads = 1};
    struct ba_engine *engine;

    for (int i = 0; c->kind == DECAYING && i < N; i++)
        x.table[i] = x.table[i] > 0 ? -x.table[i] : x.table[i];
    c->status = ba_engine_open(&engine, &o, c->why, sizeof(c->why));
    if (c->status == BA_OK && c->kind >= DELTA)
        recur(c, engine, &x);
    else if (c->status == BA_OK)
        attend(c, engine, &x);
    ba_engine_close(engine);
    return NULL;
}

/* The call on a stack of `bytes`; how many bytes of others it changed. */
static int on_stack(struct call *c, size_t bytes)
{
    const size_t all = OTHERS + GUARD + bytes;
    unsigned char *const m =
        mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attr;
    pthread_t thread;
    int changed = 0;

    cr_assert_neq(m, MAP_FAILED);
    memset(m, 0xaa, OTHERS);
    cr_assert_eq(mprotect(m + OTHERS, GUARD, PROT_NONE), 0);
    pthread_attr_init(&attr);
    cr_assert_eq(pthread_attr_setstack(&attr, m + OTHERS + GUARD, bytes), 0);
    cr_assert_eq(pthread_create(&thread, &attr, make_call, c), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    for (size_t i = 0; i < OTHERS; i++)
        changed += m[i] != 0xaa;
    munmap(m, all);
    return changed;
}

Test(library_stack, calls_need_128_kib)
{
    SKIP_SANITIZED("frames are larger under sanitizers");
    for (int i = 0; ba_backend_name(i); i++)
        for (enum kind kind = 0; kind < KINDS; kind++) {
            struct call got = {.backend = ba_backend_name(i), .kind = kind}, want = got;
            got.out = room((size_t)4 * N, sizeof(float));
            want.out = room((size_t)4 * N, sizeof(float));
            make_call(&want);
            cr_expect_eq(on_stack(&got, STACK), 0, "%s, %s: memory of others is overwritten",
                         got.backend, kind_name[kind]);
            expect_status(want.status, BA_OK, want.why, kind_name[kind]);
            expect_status(got.status, BA_OK, got.why, kind_name[kind]);
            cr_expect_arr_eq(got.out, want.out, (size_t)4 * N * sizeof(float), "%s, %s",
                             got.backend, kind_name[kind]);
        }
}
