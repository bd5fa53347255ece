/* SPDX-License-Identifier: MIT
 *
 * Attention as oneDNN's graph has it (version 3): products, scale, mask and softmax are described to
 * it as operations, it joins them into one partition, and compiles and runs that as it likes. What
 * it cannot do: return the log-sum-exp, which a backward pass needs; mask by anything but a matrix
 * that is added to the scores. So training never gets here. One program for each shape, compiled by
 * its first call and kept. */
#include "graph.h"

#include "cache.h"

#if ONEDNN_HAS_GRAPH

#include <pthread.h>
#include <stdatomic.h>

/* ---- work space of the library, counted --------------------------------------------------- */

enum { LINE = 64 };

static struct {
    pthread_mutex_t busy;
    dnnl_engine_t engine;
    struct program *programs;
    size_t masks; /* bytes */
    atomic_size_t now, most;
} state = {.busy = PTHREAD_MUTEX_INITIALIZER};

/* Its size stands before it. */
static void *take(size_t size, size_t alignment)
{
    const size_t bytes = round_up(size, LINE) + LINE;
    char *at = alignment <= LINE ? aligned_alloc(LINE, bytes) : NULL;

    if (!at)
        return NULL;
    memcpy(at, &bytes, sizeof(bytes));
    const size_t now = atomic_fetch_add(&state.now, bytes) + bytes;
    size_t most = atomic_load(&state.most);
    while (most < now && !atomic_compare_exchange_weak(&state.most, &most, now))
        continue;
    return at + LINE;
}

static void give_back(void *p)
{
    size_t bytes;

    if (!p)
        return;
    char *const at = (char *)p - LINE;
    memcpy(&bytes, at, sizeof(bytes));
    atomic_fetch_sub(&state.now, bytes);
    free(at);
}

size_t graph_held_bytes(void) { return state.masks + atomic_load(&state.most); }

/* ---- a program ---------------------------------------------------------------------------- */

enum { QUERIES, KEYS, VALUES, OUTPUTS, OPERANDS_OF_ATTN };

/* All that a program depends on, compared as bytes: no padding. */
struct shape {
    struct stride at[OPERANDS_OF_ATTN];
    int B, H, Hkv, L, M, K, dh, window, causal, masked, threads;
    float scale;
};
_Static_assert(sizeof(struct shape) ==
                   OPERANDS_OF_ATTN * sizeof(struct stride) + 11 * sizeof(int) + sizeof(float),
               "no padding");

/* Tensors of the graph: those that the caller has, then those between operations. */
enum { Q, K, V, SCALE, MASK, O, S, SCALED, MASKED, P, TENSORS };

struct program {
    struct shape shape;
    struct program *next;
    dnnl_graph_compiled_partition_t run; /* NULL: the library has none */
    dnnl_stream_t stream;
    dnnl_graph_logical_tensor_t is[TENSORS];
    dnnl_graph_tensor_t tensor[TENSORS];
    int inputs[MASK + 1], n_inputs; /* in the order in which the partition wants them */
    float *mask;                    /* [L,K], or NULL */
};

/* Query heads that share keys are a dimension of their own: q is [B, Hkv, H/Hkv, L, dh]. */
static dnnl_status_t describe(struct program *p, int id, int heads, int rows, int cols,
                              const struct stride *at)
{
    const struct shape *s = &p->shape;
    const int64_t group = heads / s->Hkv;
    const bool shared = s->H != s->Hkv;
    const dnnl_dims_t plain = {s->B, heads, rows, cols};
    const dnnl_dims_t grouped = {s->B, s->Hkv, group, rows, cols};
    const dnnl_dims_t of_plain = {at ? at->batch : (int64_t)heads * rows * cols,
                                  at ? cols : (int64_t)rows * cols, at ? at->row : cols, 1};
    const dnnl_dims_t of_grouped = {of_plain[0], group * of_plain[1], of_plain[1], of_plain[2], 1};

    return dnnl_graph_logical_tensor_init_with_strides(
        &p->is[id], (size_t)id, dnnl_f32, shared ? 5 : 4, shared ? grouped : plain,
        shared ? of_grouped : of_plain, dnnl_graph_tensor_property_variable);
}

/* The same for every sequence and head. */
static dnnl_status_t describe_common(struct program *p, int id, int rows, int cols)
{
    const bool shared = p->shape.H != p->shape.Hkv;
    const dnnl_dims_t dims = {1, 1, shared ? 1 : rows, shared ? rows : cols, cols};

    return dnnl_graph_logical_tensor_init_with_dims(
        &p->is[id], (size_t)id, dnnl_f32, shared ? 5 : 4, dims, dnnl_graph_layout_type_strided,
        dnnl_graph_tensor_property_variable);
}

static dnnl_status_t describe_all(struct program *p)
{
    const struct shape *s = &p->shape;
    dnnl_status_t st = describe(p, Q, s->H, s->L, s->dh, &s->at[QUERIES]);

    if (st == dnnl_success)
        st = describe(p, K, s->Hkv, s->K, s->dh, &s->at[KEYS]);
    if (st == dnnl_success)
        st = describe(p, V, s->Hkv, s->K, s->dh, &s->at[VALUES]);
    if (st == dnnl_success)
        st = describe(p, O, s->H, s->L, s->dh, &s->at[OUTPUTS]);
    for (int id = S; id <= P && st == dnnl_success; id++)
        st = describe(p, id, s->H, s->L, s->K, NULL);
    if (st == dnnl_success)
        st = describe_common(p, SCALE, 1, 1);
    return st == dnnl_success ? describe_common(p, MASK, s->L, s->K) : st;
}

/* One operation of two inputs, or of one where b < 0. */
static dnnl_status_t add_op(dnnl_graph_graph_t graph, struct program *p, dnnl_graph_op_kind_t kind,
                            int a, int b, int out)
{
    const uint8_t yes = 1;
    const int64_t last = -1;
    dnnl_graph_op_t op = NULL;
    dnnl_status_t st = dnnl_graph_op_create(&op, (size_t)out, kind, "");

    if (st == dnnl_success)
        st = dnnl_graph_op_add_input(op, &p->is[a]);
    if (st == dnnl_success && b >= 0)
        st = dnnl_graph_op_add_input(op, &p->is[b]);
    if (st == dnnl_success)
        st = dnnl_graph_op_add_output(op, &p->is[out]);
    if (st == dnnl_success && b == K)
        st = dnnl_graph_op_set_attr_bool(op, dnnl_graph_op_attr_transpose_b, &yes, 1);
    if (st == dnnl_success && kind == dnnl_graph_op_softmax)
        st = dnnl_graph_op_set_attr_s64(op, dnnl_graph_op_attr_axis, &last, 1);
    if (st == dnnl_success)
        st = dnnl_graph_add_op(graph, op);
    if (op)
        dnnl_graph_op_destroy(op);
    return st;
}

static dnnl_status_t add_ops(dnnl_graph_graph_t graph, struct program *p)
{
    dnnl_status_t st = add_op(graph, p, dnnl_graph_op_matmul, Q, K, S);

    if (st == dnnl_success)
        st = add_op(graph, p, dnnl_graph_op_multiply, S, SCALE, SCALED);
    if (st == dnnl_success && p->shape.masked)
        st = add_op(graph, p, dnnl_graph_op_add, SCALED, MASK, MASKED);
    if (st == dnnl_success)
        st = add_op(graph, p, dnnl_graph_op_softmax, p->shape.masked ? MASKED : SCALED, -1, P);
    if (st == dnnl_success)
        st = add_op(graph, p, dnnl_graph_op_matmul, P, V, O);
    return st == dnnl_success ? dnnl_graph_graph_finalize(graph) : st;
}

/* Compile the graph if the library takes it as one partition. */
static dnnl_status_t compile(struct program *p, dnnl_graph_partition_t partition)
{
    const dnnl_graph_logical_tensor_t *in[MASK + 1], *const out = &p->is[O];
    dnnl_graph_logical_tensor_t port[MASK + 1];
    size_t n = 0;
    dnnl_status_t st = dnnl_graph_partition_get_input_ports_num(partition, &n);

    if (st == dnnl_success && n > ARRAY_LEN(port))
        st = dnnl_unimplemented;
    if (st == dnnl_success)
        st = dnnl_graph_partition_get_input_ports(partition, n, port);
    for (size_t i = 0; i < n && st == dnnl_success; i++) {
        p->inputs[i] = (int)port[i].id;
        in[i] = &p->is[port[i].id];
    }
    p->n_inputs = (int)n;
    if (st == dnnl_success)
        st = dnnl_graph_compiled_partition_create(&p->run, partition);
    if (st == dnnl_success)
        st = dnnl_graph_partition_compile(partition, p->run, n, in, 1,
                                          (const dnnl_graph_logical_tensor_t *[]){out},
                                          state.engine);
    return st;
}

static dnnl_status_t compile_graph(struct program *p)
{
    dnnl_graph_graph_t graph = NULL;
    dnnl_graph_partition_t partition = NULL;
    uint8_t supported = 0;
    size_t n = 0;
    dnnl_status_t st = dnnl_graph_graph_create(&graph, dnnl_cpu);

    if (st == dnnl_success)
        st = add_ops(graph, p);
    if (st == dnnl_success)
        st = dnnl_graph_graph_filter(graph, dnnl_graph_partition_policy_fusion);
    if (st == dnnl_success)
        st = dnnl_graph_graph_get_partition_num(graph, &n);
    if (st == dnnl_success && n != 1)
        st = dnnl_unimplemented;
    if (st == dnnl_success)
        st = dnnl_graph_graph_get_partitions(graph, 1, &partition);
    if (st == dnnl_success)
        st = dnnl_graph_partition_is_supported(partition, &supported);
    if (st == dnnl_success)
        st = supported ? compile(p, partition) : dnnl_unimplemented;
    if (partition)
        dnnl_graph_partition_destroy(partition);
    if (graph)
        dnnl_graph_graph_destroy(graph);
    return st;
}

static void fill_mask(struct program *p)
{
    const struct shape *s = &p->shape;
    const size_t bytes = round_up(sizeof(float) * (size_t)s->L * (size_t)s->K, LINE);

    p->mask = aligned_alloc(LINE, bytes);
    NEED(p->mask);
    state.masks += bytes;
    for (int i = 0; i < s->L; i++)
        for (int j = 0; j < s->K; j++) {
            const int dist = s->M + i - j;
            const bool seen = (!s->causal || dist >= 0) && (s->window == 0 || dist < s->window);
            p->mask[(ptrdiff_t)i * s->K + j] = seen ? 0 : -INFINITY;
        }
}

static dnnl_status_t open_engine(void)
{
    dnnl_graph_allocator_t counted = NULL;
    dnnl_status_t st = dnnl_graph_allocator_create(&counted, take, give_back);

    if (st == dnnl_success)
        st = dnnl_graph_make_engine_with_allocator(&state.engine, dnnl_cpu, 0, counted);
    if (counted)
        dnnl_graph_allocator_destroy(counted);
    return st;
}

static dnnl_status_t program_make(struct program *p)
{
    static const int callers[] = {Q, K, V, SCALE, MASK, O};
    dnnl_status_t st = state.engine ? dnnl_success : open_engine();

    if (st == dnnl_success)
        st = describe_all(p);
    if (st == dnnl_success)
        st = compile_graph(p);
    if (st == dnnl_success)
        st = dnnl_stream_create(&p->stream, state.engine, dnnl_stream_default_flags);
    if (st == dnnl_success && p->shape.masked)
        fill_mask(p);
    for (size_t i = 0; i < ARRAY_LEN(callers) && st == dnnl_success; i++)
        st = dnnl_graph_tensor_create(&p->tensor[callers[i]], &p->is[callers[i]], state.engine,
                                      callers[i] == SCALE  ? (void *)&p->shape.scale
                                      : callers[i] == MASK ? (void *)p->mask
                                                           : NULL);
    return st;
}

/* Made now, unless an earlier call did. */
static struct program *program_for(const struct shape *s, dnnl_status_t *st)
{
    struct program *p = state.programs;

    while (p && memcmp(&p->shape, s, sizeof(*s)) != 0)
        p = p->next;
    *st = dnnl_success;
    if (p)
        return p;
    p = calloc(1, sizeof(*p));
    NEED(p);
    p->shape = *s;
    *st = program_make(p);
    if (*st != dnnl_success) {
        if (p->run)
            dnnl_graph_compiled_partition_destroy(p->run);
        p->run = NULL;
    }
    p->next = state.programs;
    state.programs = p;
    return p;
}

/* ---- attention ---------------------------------------------------------------------------- */

/* Values of another width than keys: one of the kernels that the library chooses from (3.7.2, where
 * sequences times heads exceed threads) takes the width of the one for that of the other. */
static bool accepts(const struct attn *a, const char **why_not)
{
    return attn_supports(a, TERM_WINDOW | TERM_SHARED_KEYS, why_not);
}

/* From sequence b on. */
static dnnl_status_t run(const struct program *p, const struct attn *a, int b)
{
    const void *const at[TENSORS] = {[Q] = a->q + b * a->q_at.batch,
                                     [K] = a->k + b * a->k_at.batch,
                                     [V] = a->v + b * a->v_at.batch,
                                     [O] = a->o + b * a->o_at.batch};
    static const int moving[] = {Q, K, V, O};
    const_dnnl_graph_tensor_t in[MASK + 1];
    dnnl_status_t st = dnnl_success;

    for (size_t i = 0; i < ARRAY_LEN(moving) && st == dnnl_success; i++)
        st = dnnl_graph_tensor_set_data_handle(p->tensor[moving[i]], (void *)at[moving[i]]);
    for (int i = 0; i < p->n_inputs; i++)
        in[i] = p->tensor[p->inputs[i]];
    if (st == dnnl_success)
        st = dnnl_graph_compiled_partition_execute(p->run, p->stream, (size_t)p->n_inputs, in, 1,
                                                   (const_dnnl_graph_tensor_t[]){p->tensor[O]});
    return st == dnnl_success ? dnnl_stream_wait(p->stream) : st;
}

static void fill_with_nan(const struct attn *a)
{
    for (int b = 0; b < a->B; b++)
        for (int i = 0; i < a->L; i++)
            for (int c = 0; c < a->H * a->dh; c++)
                a->o[b * a->o_at.batch + i * a->o_at.row + c] = NAN;
}

/* With shared heads one sequence at a time: of several whose rows have gaps the library (3.7.2)
 * leaves outputs unwritten. */
static void forward(const struct engine *g, const struct attn *a, void *scratch)
{
    const int at_once = a->H == a->Hkv ? a->B : 1;
    const struct shape s = {.at = {a->q_at, a->k_at, a->v_at, a->o_at},
                            .B = at_once,
                            .H = a->H,
                            .Hkv = a->Hkv,
                            .L = a->L,
                            .M = a->M,
                            .K = attn_keys(a),
                            .dh = a->dh,
                            .window = a->window,
                            .causal = a->causal,
                            .masked = a->causal || a->window > 0,
                            .threads = g->threads,
                            .scale = a->scale};
    const int threads = omp_get_max_threads();
    dnnl_status_t st;

    pthread_mutex_lock(&state.busy);
    omp_set_num_threads(g->threads);
    struct program *const p = program_for(&s, &st);
    for (int b = 0; p->run && b < a->B && st == dnnl_success; b += at_once)
        st = run(p, a, b);
    omp_set_num_threads(threads);
    pthread_mutex_unlock(&state.busy);
    if (p->run && st == dnnl_success)
        return;
    cache_failed(a->L, s.K, a->dh, p->run ? "cannot run" : "has no",
                 p->run ? dnnl_status2str(st) : "attention as one partition");
    fill_with_nan(a);
}

#else

size_t graph_held_bytes(void) { return 0; }

static bool accepts(const struct attn *a, const char **why_not)
{
    *why_not = "needs oneDNN 3";
    return false;
}

static void forward(const struct engine *g, const struct attn *a, void *scratch)
{
    CHECK(!"declined");
}

#endif

static struct attn_need need(const struct attn *a, int threads) { return (struct attn_need){0}; }

const struct attn_impl attn_graph = {
    .name = "graph-sdpa", .accepts = accepts, .need = need, .forward = forward};
