/* SPDX-License-Identifier: MIT
 *
 * Querying the library's layout, and copying into it by a reorder primitive. */
#include "pack.h"

static bool preferred(struct layout *l, dnnl_engine_t engine, int n, int k)
{
    enum { TYPICAL_ROWS = 128 };
    struct matmul mm = {.alpha = 1};
    dnnl_primitive_desc_t pd = NULL;
    const bool known = layout_strided(&mm.src, TYPICAL_ROWS, k, k, 1) == dnnl_success &&
                       layout_any(&mm.weights, k, n) == dnnl_success &&
                       layout_strided(&mm.dst, TYPICAL_ROWS, n, n, 1) == dnnl_success &&
                       matmul_describe(&pd, &mm, engine, 0) == dnnl_success &&
                       layout_query(l, pd, dnnl_query_weights_md) == dnnl_success;

    if (pd)
        dnnl_primitive_desc_destroy(pd);
    layout_free(&mm.src);
    layout_free(&mm.weights);
    layout_free(&mm.dst);
    return known;
}

static bool is_strided(const struct layout *l, int rows, int cols, ptrdiff_t row, ptrdiff_t col)
{
    struct layout plain = {0};
    const bool equal =
        layout_strided(&plain, rows, cols, row, col) == dnnl_success && layout_equal(l, &plain);

    layout_free(&plain);
    return equal;
}

const struct packing *packing_for(struct packing **list, dnnl_engine_t engine, int n, int k)
{
    for (const struct packing *p = *list; p; p = p->next)
        if (p->n == n && p->k == k)
            return p;
    struct packing *p = calloc(1, sizeof(*p));
    NEED(p);
    p->n = n;
    p->k = k;
    p->plain = !preferred(&p->layout, engine, n, k) || is_strided(&p->layout, k, n, n, 1) ||
               is_strided(&p->layout, k, n, 1, k);
    p->next = *list;
    return *list = p;
}

dnnl_status_t packing_fill(float *dst, const struct packing *p, dnnl_engine_t engine,
                           const struct gemm *like)
{
    dnnl_exec_arg_t arg[] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
    struct layout from = {0};
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t run = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_status_t st =
        layout_strided(&from, p->k, p->n, like->tb ? 1 : like->ldb, like->tb ? like->ldb : 1);

    if (st == dnnl_success)
        st = reorder_describe(&pd, &p->layout, &from, engine);
    if (st == dnnl_success)
        st = dnnl_primitive_create(&run, pd);
    if (st == dnnl_success)
        st = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
    if (st == dnnl_success)
        st = layout_memory(&arg[0].memory, &from, engine, (void *)like->b);
    if (st == dnnl_success)
        st = layout_memory(&arg[1].memory, &p->layout, engine, dst);
    if (st == dnnl_success)
        st = dnnl_primitive_execute(run, stream, ARRAY_LEN(arg), arg);
    if (st == dnnl_success)
        st = dnnl_stream_wait(stream);
    dnnl_memory_destroy(arg[0].memory);
    dnnl_memory_destroy(arg[1].memory);
    dnnl_stream_destroy(stream);
    dnnl_primitive_destroy(run);
    dnnl_primitive_desc_destroy(pd);
    layout_free(&from);
    return st;
}
