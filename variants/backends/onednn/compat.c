/* SPDX-License-Identifier: MIT
 *
 * Layouts and primitives, described to oneDNN. */
#include "compat.h"

/* ---- layouts ------------------------------------------------------------------------------ */

static dnnl_status_t describe_strides(struct layout *l, int n, const dnnl_dims_t dims,
                                      const dnnl_dims_t strides)
{
    return dnnl_memory_desc_init_by_strides(&l->md, n, dims, dnnl_f32, strides);
}

/* The stride of a dimension of one is free; these let the library see a plain matrix. */
dnnl_status_t layout_strided(struct layout *l, int rows, int cols, ptrdiff_t row, ptrdiff_t col)
{
    const dnnl_dims_t dims = {rows, cols};

    if (rows == 1 && col == 1)
        row = cols;
    if (cols == 1 && row == 1)
        col = 1;
    return describe_strides(l, 2, dims, (const dnnl_dims_t){row, col});
}

dnnl_status_t layout_bf16(struct layout *l, int rows, int cols, bool transposed)
{
    const dnnl_dims_t dims = {rows, cols}, plain = {cols, 1}, other = {1, rows};

    return dnnl_memory_desc_init_by_strides(&l->md, 2, dims, dnnl_bf16, transposed ? other : plain);
}

/* The kernels for one matrix per head support certain orders of the dimensions and compare all
 * strides with them, including that of the first dimension. */
dnnl_status_t layout_heads(struct layout *l, int heads, ptrdiff_t head, int rows, int cols,
                           ptrdiff_t row, ptrdiff_t col)
{
    const dnnl_dims_t dims = {1, heads, rows, cols};

    return describe_strides(l, 4, dims,
                            (const dnnl_dims_t){(ptrdiff_t)heads * rows * cols, head, row, col});
}

dnnl_status_t layout_vector(struct layout *l, int n)
{
    return describe_strides(l, 1, (const dnnl_dims_t){n}, (const dnnl_dims_t){1});
}

dnnl_status_t layout_any(struct layout *l, int rows, int cols)
{
    return dnnl_memory_desc_init_by_tag(&l->md, 2, (const dnnl_dims_t){rows, cols}, dnnl_f32,
                                        dnnl_format_tag_any);
}

dnnl_status_t layout_query(struct layout *l, const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, what, 0);

    if (!md)
        return dnnl_invalid_arguments;
    l->md = *md;
    return dnnl_success;
}

size_t layout_bytes(const struct layout *l) { return dnnl_memory_desc_get_size(&l->md); }

bool layout_equal(const struct layout *a, const struct layout *b)
{
    return dnnl_memory_desc_equal(&a->md, &b->md) != 0;
}

dnnl_status_t layout_memory(dnnl_memory_t *memory, const struct layout *l, dnnl_engine_t engine,
                            void *at)
{
    return dnnl_memory_create(memory, &l->md, engine, at);
}

/* ---- primitives --------------------------------------------------------------------------- */

/* The nth choice. */
static dnnl_status_t pick(dnnl_primitive_desc_t *pd, const_dnnl_op_desc_t desc,
                          const_dnnl_primitive_attr_t attr, dnnl_engine_t engine, int nth)
{
    dnnl_primitive_desc_iterator_t at = NULL;
    dnnl_status_t st = dnnl_primitive_desc_iterator_create(&at, desc, attr, engine, NULL);

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
    dnnl_matmul_desc_t desc;
    const dnnl_status_t st = dnnl_matmul_desc_init(&desc, &m->src.md, &m->weights.md,
                                                   m->biased ? &m->bias.md : NULL, &m->dst.md);

    return st == dnnl_success ? pick(pd, &desc, attr, engine, nth) : st;
}

static dnnl_status_t pick_norm(dnnl_primitive_desc_t *pd, const struct layout *data, float eps,
                               const_dnnl_primitive_attr_t attr, dnnl_engine_t engine, int nth)
{
    dnnl_layer_normalization_desc_t desc;
    const dnnl_status_t st = dnnl_layer_normalization_forward_desc_init(
        &desc, dnnl_forward_inference, &data->md, NULL, eps, dnnl_use_scale | dnnl_use_shift);

    return st == dnnl_success ? pick(pd, &desc, attr, engine, nth) : st;
}

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
        st = dnnl_primitive_attr_set_output_scales(attr, 1, 0, &m->alpha);
    if (st == dnnl_success && m->beta != 0)
        st = dnnl_post_ops_append_sum(post, m->beta);
    if (st == dnnl_success && m->relu)
        st = dnnl_post_ops_append_eltwise(post, 1, dnnl_eltwise_relu, 0, 0);
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
    return dnnl_reorder_primitive_desc_create(pd, &src->md, engine, &dst->md, engine, NULL);
}
