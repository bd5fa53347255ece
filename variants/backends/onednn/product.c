/* SPDX-License-Identifier: MIT
 *
 * From an operation's arguments to the key of its primitive. */
#include "product.h"
#include "cache.h"

/* The epilogue that the primitive includes. */
struct epilogue {
    const float *bias;
    bool relu;
};

static struct key key_of(const struct gemm *g, const struct heads *heads,
                         const struct epilogue *epilogue, bool packed)
{
    const uint32_t second = packed ? FORM_PACKED : g->tb ? FORM_TB : 0;
    const uint32_t type = g->elem == ELEM_BF16 ? FORM_BF16 : 0;

    CHECK(!elem_in_blocks(g->elem) && (!type || (g->tb && !g->ta && !heads->n)));

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
        .alpha = bits_of_float(g->alpha),
        .beta = bits_of_float(g->beta),
        .form = (g->ta ? FORM_TA : 0) | second | type | (epilogue->bias ? FORM_BIAS : 0) |
                (epilogue->relu ? FORM_RELU : 0),
        .slots = cache_slots(g->threads),
    };
}

/* The primitive and the b that it takes. */
static struct primitive *find(const struct gemm *g, const struct heads *heads,
                              const struct epilogue *epilogue, const void **b)
{
    struct key key = key_of(g, heads, epilogue, g->b_packed != NULL);
    struct primitive *p = cache_get(&key);

    *b = g->b_narrow ? g->b_narrow : g->b_packed ? g->b_packed : g->b;
    if (!primitive_runs(p) &&
        g->b_packed) { /* the packed form does not suit every product of these weights */
        key = key_of(g, heads, epilogue, false);
        p = cache_get(&key);
        *b = g->b;
    }
    return p;
}

static void fill_with_nan(const struct gemm *g, const struct heads *heads)
{
    for (int h = 0; h < max_int(1, heads->n); h++)
        for (int i = 0; i < g->m; i++)
            for (int j = 0; j < g->n; j++)
                g->c[h * heads->c + i * g->ldc + j] = NAN;
}

void product_run(const struct gemm *g) { product_run_heads(g, &(struct heads){0}); }

void product_run_heads(const struct gemm *g, const struct heads *heads)
{
    const void *b;
    struct primitive *p = find(g, heads, &(struct epilogue){0}, &b);

    if (!primitive_runs(p) || !cache_run(p, g->a, b, NULL, g->c))
        fill_with_nan(g, heads);
}

bool product_run_after(const struct gemm *g, const float *bias, bool relu)
{
    const struct heads one = {0};
    const void *b;
    struct primitive *p = find(g, &one, &(struct epilogue){bias, relu}, &b);

    if (!primitive_runs(p))
        return false;
    if (!cache_run(p, g->a, b, bias, g->c))
        fill_with_nan(g, &one);
    return true;
}

bool product_norm(const struct norm *o)
{
    const struct key key = {
        .m = o->rows,
        .n = o->n,
        .threads = o->threads,
        .alpha = bits_of_float(o->eps),
        .form = FORM_NORM,
        .slots = cache_slots(o->threads),
    };
    struct primitive *p = cache_get(&key);

    return primitive_runs(p) && cache_run(p, o->x, o->weight, o->bias, o->y);
}
