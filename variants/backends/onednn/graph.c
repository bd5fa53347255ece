/* SPDX-License-Identifier: MIT
 *
 * Scaled dot-product attention as fused by the library: product, scale, mask, softmax and product
 * are described as a graph, the library makes one partition of it, and that is compiled once per
 * shape. The mask is an operand: a causal one is a matrix of 0 and -infinity, created with the
 * partition and kept; the whole square is computed. The library does not report its work space, so
 * neither `need` nor held_bytes counts it. */
#include "graph.h"

#if HAVE_GRAPH_SDPA

#include "cache.h"

#include <math.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl_graph.h>
#include <pthread.h>

/* Tensor ids: five operands, the result, and the intermediate results. */
enum { Q, K, V, SCALE, MASK, OUT, SCORES, SCALED, MASKED, PROBABILITIES, TENSORS, INPUTS = OUT };

/* One compiled attention. The pointers in `like` are not used. */
struct sdpa {
    struct attn like;
    int threads;
    struct sdpa *next;
    dnnl_graph_compiled_partition_t run; /* NULL: the library splits it into several partitions */
    dnnl_stream_t stream;
    int n_in, in_id[INPUTS];           /* in the partition's order */
    dnnl_graph_tensor_t in[INPUTS], o; /* in[i] is operand in_id[i] */
    float *mask;                       /* [L,M+L], or NULL */
};

/* All of them; each runs in one thread at a time. */
static struct {
    pthread_mutex_t making;
    struct sdpa *first;
} made = {.making = PTHREAD_MUTEX_INITIALIZER};

static bool masked(const struct attn *a) { return a->causal && a->L > 1; }

/* ---- the graph ---------------------------------------------------------------------------- */

struct graph {
    dnnl_graph_logical_tensor_t tensor[TENSORS];
    dnnl_graph_graph_t graph;
    int n_ops;
};

static dnnl_status_t describe_strided(struct graph *g, int id, const struct attn *a, int rows,
                                      struct stride at)
{
    return dnnl_graph_logical_tensor_init_with_strides(
        &g->tensor[id], (size_t)id, dnnl_f32, 4, (const dnnl_dims_t){a->B, a->H, rows, a->dh},
        (const dnnl_dims_t){at.batch, a->dh, at.row, 1}, dnnl_graph_tensor_property_variable);
}

static dnnl_status_t describe_dense(struct graph *g, int id, int n_dims, const dnnl_dims_t dims)
{
    return dnnl_graph_logical_tensor_init_with_dims(&g->tensor[id], (size_t)id, dnnl_f32, n_dims,
                                                    dims, dnnl_graph_layout_type_strided,
                                                    dnnl_graph_tensor_property_variable);
}

static dnnl_status_t describe_tensors(struct graph *g, const struct attn *a)
{
    const int keys = a->M + a->L;
    dnnl_status_t st = describe_strided(g, Q, a, a->L, a->q_at);

    if (st == dnnl_success)
        st = describe_strided(g, K, a, keys, a->k_at);
    if (st == dnnl_success)
        st = describe_strided(g, V, a, keys, a->v_at);
    if (st == dnnl_success)
        st = describe_strided(g, OUT, a, a->L, a->o_at);
    if (st == dnnl_success)
        st = describe_dense(g, SCALE, 1, (const dnnl_dims_t){1});
    if (st == dnnl_success)
        st = describe_dense(g, MASK, 4, (const dnnl_dims_t){1, 1, a->L, keys});
    for (int id = SCORES; id <= PROBABILITIES && st == dnnl_success; id++)
        st = describe_dense(g, id, 4, (const dnnl_dims_t){a->B, a->H, a->L, keys});
    return st;
}

/* Append out = kind(a, b), b < 0 if there is none. The graph copies the operation. */
static dnnl_status_t append(struct graph *g, dnnl_graph_op_kind_t kind, int out, int a, int b)
{
    const uint8_t yes = 1;
    const int64_t last = -1;
    dnnl_graph_op_t op = NULL;
    dnnl_status_t st = dnnl_graph_op_create(&op, (size_t)g->n_ops++, kind, "");

    if (st == dnnl_success && out == SCORES)
        st = dnnl_graph_op_set_attr_bool(op, dnnl_graph_op_attr_transpose_b, &yes, 1);
    if (st == dnnl_success && out == PROBABILITIES)
        st = dnnl_graph_op_set_attr_s64(op, dnnl_graph_op_attr_axis, &last, 1);
    if (st == dnnl_success)
        st = dnnl_graph_op_add_input(op, &g->tensor[a]);
    if (st == dnnl_success && b >= 0)
        st = dnnl_graph_op_add_input(op, &g->tensor[b]);
    if (st == dnnl_success)
        st = dnnl_graph_op_add_output(op, &g->tensor[out]);
    if (st == dnnl_success)
        st = dnnl_graph_add_op(g->graph, op);
    if (op)
        dnnl_graph_op_destroy(op);
    return st;
}

static dnnl_status_t build_graph(struct graph *g, const struct attn *a)
{
    const int before = masked(a) ? MASKED : SCALED;
    dnnl_status_t st = dnnl_graph_graph_create(&g->graph, dnnl_cpu);

    if (st == dnnl_success)
        st = append(g, dnnl_graph_op_matmul, SCORES, Q, K);
    if (st == dnnl_success)
        st = append(g, dnnl_graph_op_multiply, SCALED, SCORES, SCALE);
    if (st == dnnl_success && masked(a))
        st = append(g, dnnl_graph_op_add, MASKED, SCALED, MASK);
    if (st == dnnl_success)
        st = append(g, dnnl_graph_op_softmax, PROBABILITIES, before, -1);
    if (st == dnnl_success)
        st = append(g, dnnl_graph_op_matmul, OUT, PROBABILITIES, V);
    if (st == dnnl_success)
        st = dnnl_graph_graph_finalize(g->graph);
    return st == dnnl_success
               ? dnnl_graph_graph_filter(g->graph, dnnl_graph_partition_policy_fusion)
               : st;
}

/* The partition of all operations; dnnl_unimplemented if the library splits them. */
static dnnl_status_t single_partition(const struct graph *g, dnnl_graph_partition_t *partition)
{
    size_t n = 0;
    uint8_t supported = 0;
    dnnl_status_t st = dnnl_graph_graph_get_partition_num(g->graph, &n);

    if (st == dnnl_success && n != 1)
        return dnnl_unimplemented;
    if (st == dnnl_success)
        st = dnnl_graph_graph_get_partitions(g->graph, 1, partition);
    if (st == dnnl_success)
        st = dnnl_graph_partition_is_supported(*partition, &supported);
    return st == dnnl_success && !supported ? dnnl_unimplemented : st;
}

/* ---- one compiled attention --------------------------------------------------------------- */

static dnnl_status_t compile(struct sdpa *s, const struct graph *g,
                             dnnl_graph_partition_t partition)
{
    dnnl_graph_logical_tensor_t port[INPUTS];
    const dnnl_graph_logical_tensor_t *in[INPUTS], *out[] = {&g->tensor[OUT]};
    size_t n = 0;
    dnnl_status_t st = dnnl_graph_partition_get_input_ports_num(partition, &n);

    if (st == dnnl_success && n > INPUTS)
        return dnnl_unimplemented;
    if (st == dnnl_success)
        st = dnnl_graph_partition_get_input_ports(partition, n, port);
    if (st != dnnl_success)
        return st;
    s->n_in = (int)n;
    for (size_t i = 0; i < n; i++) {
        s->in_id[i] = (int)port[i].id;
        in[i] = &g->tensor[port[i].id];
    }
    st = dnnl_graph_compiled_partition_create(&s->run, partition);
    return st == dnnl_success
               ? dnnl_graph_partition_compile(partition, s->run, n, in, 1, out, cache_engine())
               : st;
}

static dnnl_status_t make_tensors(struct sdpa *s, const struct graph *g)
{
    const dnnl_engine_t engine = cache_engine();
    dnnl_status_t st = dnnl_stream_create(&s->stream, engine, dnnl_stream_default_flags);

    for (int i = 0; i < s->n_in && st == dnnl_success; i++)
        st = dnnl_graph_tensor_create(&s->in[i], &g->tensor[s->in_id[i]], engine, NULL);
    return st == dnnl_success ? dnnl_graph_tensor_create(&s->o, &g->tensor[OUT], engine, NULL) : st;
}

static float *make_mask(const struct attn *a)
{
    const int keys = a->M + a->L;
    float *mask = cache_alloc(sizeof(float) * (size_t)a->L * (size_t)keys);

    for (int i = 0; i < a->L; i++)
        for (int j = 0; j < keys; j++)
            mask[(ptrdiff_t)i * keys + j] = j <= a->M + i ? 0 : -INFINITY;
    return mask;
}

static bool same_stride(const struct stride *a, const struct stride *b)
{
    return a->batch == b->batch && a->row == b->row;
}

/* For two that accepts() has accepted. */
static bool same_shape(const struct attn *a, const struct attn *b)
{
    return a->B == b->B && a->H == b->H && a->L == b->L && a->M == b->M && a->dh == b->dh &&
           a->causal == b->causal && a->scale == b->scale && same_stride(&a->q_at, &b->q_at) &&
           same_stride(&a->k_at, &b->k_at) && same_stride(&a->v_at, &b->v_at) &&
           same_stride(&a->o_at, &b->o_at);
}

static struct sdpa *make(const struct attn *a, int threads)
{
    struct sdpa *s = cache_alloc(sizeof(*s));
    struct graph g = {0};
    dnnl_graph_partition_t partition = NULL;
    dnnl_status_t st = describe_tensors(&g, a);

    s->like = *a;
    s->threads = threads;
    if (st == dnnl_success)
        st = build_graph(&g, a);
    if (st == dnnl_success)
        st = single_partition(&g, &partition);
    if (st == dnnl_success)
        st = compile(s, &g, partition);
    if (st == dnnl_success)
        st = make_tensors(s, &g);
    if (st == dnnl_success && masked(a))
        s->mask = make_mask(a);
    if (st != dnnl_success) {
        s->run = NULL;
        cache_error("oneDNN has no fused attention for L=%d, M=%d, dh=%d (%s)  -> leave out "
                    "--impl graph_sdpa",
                    a->L, a->M, a->dh, dnnl_status2str(st));
    }
    if (partition)
        dnnl_graph_partition_destroy(partition);
    if (g.graph)
        dnnl_graph_graph_destroy(g.graph);
    return s;
}

static struct sdpa *find(const struct attn *a, int threads)
{
    pthread_mutex_lock(&made.making);
    struct sdpa *s = made.first;
    while (s && (s->threads != threads || !same_shape(&s->like, a)))
        s = s->next;
    if (!s) {
        s = make(a, threads);
        s->next = made.first;
        made.first = s;
    }
    pthread_mutex_unlock(&made.making);
    return s;
}

static dnnl_status_t execute(const struct sdpa *s, const struct attn *a)
{
    const float *const at[INPUTS] = {
        [Q] = a->q, [K] = a->k, [V] = a->v, [SCALE] = &s->like.scale, [MASK] = s->mask};
    const_dnnl_graph_tensor_t in[INPUTS], o = s->o;
    dnnl_status_t st = dnnl_graph_tensor_set_data_handle(s->o, a->o);

    for (int i = 0; i < s->n_in && st == dnnl_success; i++) {
        in[i] = s->in[i];
        st = dnnl_graph_tensor_set_data_handle(s->in[i], (void *)at[s->in_id[i]]);
    }
    if (st == dnnl_success)
        st = dnnl_graph_compiled_partition_execute(s->run, s->stream, (size_t)s->n_in, in, 1, &o);
    return st == dnnl_success ? dnnl_stream_wait(s->stream) : st;
}

/* ---- the implementation ------------------------------------------------------------------- */

static bool accepts(const struct attn *a, const char **why_not)
{
    return attn_supports(a, 0, why_not); /* none of the terms */
}

static struct attn_need need(const struct attn *a, int threads)
{
    (void)a, (void)threads;
    return (struct attn_need){0}; /* see the file comment */
}

static void fill_with_nan(const struct attn *a)
{
    for (int b = 0; b < a->B; b++)
        for (int i = 0; i < a->L; i++)
            for (int e = 0; e < a->H * a->dh; e++)
                a->o[b * a->o_at.batch + i * a->o_at.row + e] = NAN;
}

static void forward(const struct engine *g, const struct attn *a, void *scratch)
{
    const int threads = omp_get_max_threads();

    (void)scratch;
    omp_set_num_threads(g->threads); /* fixed at compilation, read again at execution */
    struct sdpa *s = find(a, g->threads);
    if (!s->run || execute(s, a) != dnnl_success) {
        if (s->run)
            cache_error("oneDNN cannot run its fused attention  -> leave out --impl graph_sdpa");
        fill_with_nan(a);
    }
    omp_set_num_threads(threads);
}

const struct attn_impl attn_graph_sdpa = {
    .name = "graph_sdpa",
    .accepts = accepts,
    .need = need,
    .forward = forward,
};

#endif
