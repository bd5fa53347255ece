/* SPDX-License-Identifier: MIT
 *
 * Layouts and primitives, described to oneDNN: first each call that versions 2 and 3 spell
 * differently, then what is common. */
#include "compat.h"

#if DNNL_VERSION_MAJOR < 3

/* ---- version 2: descriptions are values --------------------------------------------------- */

static const dnnl_memory_desc_t *desc(const struct layout *l) { return &l->md; }

static dnnl_status_t describe(struct layout *l, int n, const dnnl_dims_t dims,
                              dnnl_data_type_t type, const dnnl_dims_t strides)
{
    return dnnl_memory_desc_init_by_strides(&l->md, n, dims, type, strides);
}

static dnnl_status_t describe_any(struct layout *l, int n, const dnnl_dims_t dims)
{
    return dnnl_memory_desc_init_by_tag(&l->md, n, dims, dnnl_f32, dnnl_format_tag_any);
}

dnnl_status_t layout_copy(struct layout *to, const struct layout *from)
{
    *to = *from;
    return dnnl_success;
}

void layout_free(struct layout *l) { (void)l; }

dnnl_status_t layout_query(struct layout *l, const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, what, 0);

    if (!md)
        return dnnl_invalid_arguments;
    l->md = *md;
    return dnnl_success;
}

/* The nth choice. */
static dnnl_status_t pick(dnnl_primitive_desc_t *pd, const_dnnl_op_desc_t op,
                          const_dnnl_primitive_attr_t attr, dnnl_engine_t engine, int nth)
{
    dnnl_primitive_desc_iterator_t at = NULL;
    dnnl_status_t st = dnnl_primitive_desc_iterator_create(&at, op, attr, engine, NULL);

    while (st == dnnl_success && nth-- > 0)
        st = dnnl_primitive_desc_iterator_next(at);
    if (st == dnnl_success && !(*pd = dnnl_primitive_desc_iterator_fetch(at)))
        st = dnnl_out_of_memory;
    if (at)
        dnnl_primitive_desc_iterator_destroy(at);
    return st == dnnl_iterator_ends ? dnnl_unimplemented : st;
}

static dnnl_status_t pick_matmul(dnnl_primitive_desc_t *pd, const struct matmul *m,
                                 const_dnnl_primitive_attr_t attr, dnnl_engine_t engine, int nth)
{
    dnnl_matmul_desc_t op;
    const dnnl_status_t st = dnnl_matmul_desc_init(&op, &m->src.md, &m->weights.md,
                                                   m->biased ? &m->bias.md : NULL, &m->dst.md);

    return st == dnnl_success ? pick(pd, &op, attr, engine, nth) : st;
}

static dnnl_status_t pick_norm(dnnl_primitive_desc_t *pd, const struct layout *data, float eps,
                               const_dnnl_primitive_attr_t attr, dnnl_engine_t engine, int nth)
{
    dnnl_layer_normalization_desc_t op;
    const dnnl_status_t st = dnnl_layer_normalization_forward_desc_init(
        &op, dnnl_forward_inference, &data->md, NULL, eps, dnnl_use_scale | dnnl_use_shift);

    return st == dnnl_success ? pick(pd, &op, attr, engine, nth) : st;
}

static dnnl_status_t scale_by(dnnl_primitive_attr_t attr, dnnl_post_ops_t post, float alpha)
{
    return dnnl_primitive_attr_set_output_scales(attr, 1, 0, &alpha);
}

static dnnl_status_t then_sum(dnnl_post_ops_t post, float beta)
{
    return dnnl_post_ops_append_sum(post, beta);
}

static dnnl_status_t then_relu(dnnl_post_ops_t post)
{
    return dnnl_post_ops_append_eltwise(post, 1, dnnl_eltwise_relu, 0, 0);
}

#else

/* ---- version 3: descriptions are objects -------------------------------------------------- */

static const_dnnl_memory_desc_t desc(const struct layout *l) { return l->md; }

static dnnl_status_t describe(struct layout *l, int n, const dnnl_dims_t dims,
                              dnnl_data_type_t type, const dnnl_dims_t strides)
{
    return dnnl_memory_desc_create_with_strides(&l->md, n, dims, type, strides);
}

static dnnl_status_t describe_any(struct layout *l, int n, const dnnl_dims_t dims)
{
    return dnnl_memory_desc_create_with_tag(&l->md, n, dims, dnnl_f32, dnnl_format_tag_any);
}

dnnl_status_t layout_copy(struct layout *to, const struct layout *from)
{
    return dnnl_memory_desc_clone(&to->md, from->md);
}

void layout_free(struct layout *l)
{
    if (l->md)
        dnnl_memory_desc_destroy(l->md);
    l->md = NULL;
}

dnnl_status_t layout_query(struct layout *l, const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(pd, what, 0);

    return md ? dnnl_memory_desc_clone(&l->md, md) : dnnl_invalid_arguments;
}

/* The nth choice, from the first. */
static dnnl_status_t pick(dnnl_primitive_desc_t *pd, int nth)
{
    dnnl_status_t st = dnnl_success;

    while (st == dnnl_success && nth-- > 0)
        st = dnnl_primitive_desc_next_impl(*pd);
    if (st == dnnl_success)
        return st;
    dnnl_primitive_desc_destroy(*pd);
    *pd = NULL;
    return st == dnnl_last_impl_reached ? dnnl_unimplemented : st;
}

static dnnl_status_t pick_matmul(dnnl_primitive_desc_t *pd, const struct matmul *m,
                                 const_dnnl_primitive_attr_t attr, dnnl_engine_t engine, int nth)
{
    const dnnl_status_t st = dnnl_matmul_primitive_desc_create(
        pd, engine, m->src.md, m->weights.md, m->biased ? m->bias.md : NULL, m->dst.md, attr);

    return st == dnnl_success ? pick(pd, nth) : st;
}

static dnnl_status_t pick_norm(dnnl_primitive_desc_t *pd, const struct layout *data, float eps,
                               const_dnnl_primitive_attr_t attr, dnnl_engine_t engine, int nth)
{
    const dnnl_status_t st = dnnl_layer_normalization_forward_primitive_desc_create(
        pd, engine, dnnl_forward_inference, data->md, data->md, NULL, eps,
        dnnl_use_scale | dnnl_use_shift, attr);

    return st == dnnl_success ? pick(pd, nth) : st;
}

/* Scales of attributes are arguments of each call here; a linear function is not. */
static dnnl_status_t scale_by(dnnl_primitive_attr_t attr, dnnl_post_ops_t post, float alpha)
{
    return dnnl_post_ops_append_eltwise(post, dnnl_eltwise_linear, alpha, 0);
}

static dnnl_status_t then_sum(dnnl_post_ops_t post, float beta)
{
    return dnnl_post_ops_append_sum(post, beta, 0, dnnl_data_type_undef);
}

static dnnl_status_t then_relu(dnnl_post_ops_t post)
{
    return dnnl_post_ops_append_eltwise(post, dnnl_eltwise_relu, 0, 0);
}

#endif

/* ---- layouts ------------------------------------------------------------------------------ */

/* The stride of a dimension of one is free; these let the library see a plain matrix. */
dnnl_status_t layout_strided(struct layout *l, int rows, int cols, ptrdiff_t row, ptrdiff_t col)
{
    const dnnl_dims_t dims = {rows, cols};

    if (rows == 1 && col == 1)
        row = cols;
    if (cols == 1 && row == 1)
        col = 1;
    return describe(l, 2, dims, dnnl_f32, (const dnnl_dims_t){row, col});
}

dnnl_status_t layout_bf16(struct layout *l, int rows, int cols, bool transposed)
{
    const dnnl_dims_t dims = {rows, cols}, plain = {cols, 1}, other = {1, rows};

    return describe(l, 2, dims, dnnl_bf16, transposed ? other : plain);
}

/* The kernels for one matrix per head support certain orders of the dimensions and compare all
 * strides with them, including that of the first dimension. */
dnnl_status_t layout_heads(struct layout *l, int heads, ptrdiff_t head, int rows, int cols,
                           ptrdiff_t row, ptrdiff_t col)
{
    const dnnl_dims_t dims = {1, heads, rows, cols};

    return describe(l, 4, dims, dnnl_f32,
                    (const dnnl_dims_t){(ptrdiff_t)heads * rows * cols, head, row, col});
}

dnnl_status_t layout_vector(struct layout *l, int n)
{
    return describe(l, 1, (const dnnl_dims_t){n}, dnnl_f32, (const dnnl_dims_t){1});
}

dnnl_status_t layout_any(struct layout *l, int rows, int cols)
{
    return describe_any(l, 2, (const dnnl_dims_t){rows, cols});
}

size_t layout_bytes(const struct layout *l) { return dnnl_memory_desc_get_size(desc(l)); }

bool layout_equal(const struct layout *a, const struct layout *b)
{
    return dnnl_memory_desc_equal(desc(a), desc(b)) != 0;
}

dnnl_status_t layout_memory(dnnl_memory_t *memory, const struct layout *l, dnnl_engine_t engine,
                            void *at)
{
    return dnnl_memory_create(memory, desc(l), engine, at);
}

/* ---- primitives --------------------------------------------------------------------------- */

static dnnl_status_t own_scratch(dnnl_primitive_attr_t *attr)
{
    const dnnl_status_t st = dnnl_primitive_attr_create(attr);

    return st == dnnl_success
               ? dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user)
               : st;
}

dnnl_status_t matmul_describe(dnnl_primitive_desc_t *pd, const struct matmul *m,
                              dnnl_engine_t engine, int nth)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t post = NULL;
    dnnl_status_t st = own_scratch(&attr);

    if (st == dnnl_success)
        st = dnnl_post_ops_create(&post);
    if (st == dnnl_success && m->alpha != 1)
        st = scale_by(attr, post, m->alpha);
    if (st == dnnl_success && m->beta != 0)
        st = then_sum(post, m->beta);
    if (st == dnnl_success && m->relu)
        st = then_relu(post);
    if (st == dnnl_success)
        st = dnnl_primitive_attr_set_post_ops(attr, post);
    if (st == dnnl_success)
        st = pick_matmul(pd, m, attr, engine, nth);
    if (post)
        dnnl_post_ops_destroy(post);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return st;
}

dnnl_status_t norm_describe(dnnl_primitive_desc_t *pd, const struct layout *data, float eps,
                            dnnl_engine_t engine, int nth)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t st = own_scratch(&attr);

    if (st == dnnl_success)
        st = pick_norm(pd, data, eps, attr, engine, nth);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return st;
}

dnnl_status_t reorder_describe(dnnl_primitive_desc_t *pd, const struct layout *dst,
                               const struct layout *src, dnnl_engine_t engine)
{
    return dnnl_reorder_primitive_desc_create(pd, desc(src), engine, desc(dst), engine, NULL);
}

bool generates(unsigned isa)
{
#if defined(__x86_64__)
    return ((unsigned)dnnl_get_effective_cpu_isa() & isa) == isa;
#else
    return false;
#endif
}
