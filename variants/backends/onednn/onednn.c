/* SPDX-License-Identifier: MIT
 *
 * oneDNN: matrix products by its matmul primitive, layer norms of many rows by its own primitive,
 * everything else from the best SIMD level. Like OpenBLAS it must use OpenMP, to share one pool of
 * pinned threads with our own regions. */
#include "cache.h"
#include "graph.h"
#include "product.h"
#include "variants/backends/composed/composed.h"
#include "variants/backends/recur.h"

/* c = beta c, for k = 0, which the matmul primitive does not accept. */
static void scale(const struct gemm *g)
{
    for (int i = 0; i < g->m; i++)
        for (int j = 0; j < g->n; j++) {
            float *c = &g->c[i * g->ldc + j];
            *c = g->beta == 0 ? 0 : g->beta * *c; /* beta = 0 never reads c */
        }
}

static void gemm_onednn(const struct gemm *g)
{
    if (g->k == 0)
        scale(g);
    else if (g->m > 0 && g->n > 0 && !gemm_of_overlapping_rows(g))
        product_run(g);
}

/* ---- fused with row operations ------------------------------------------------------------ */

extern const struct backend backend_onednn; /* below */

static void act_inherited(const struct act *o)
{
    const struct backend *b = backend_parent(&backend_onednn);

    while (!b->ops.act)
        b = backend_parent(b);
    b->ops.act(o);
}

static void norm_inherited(const struct norm *o)
{
    const struct backend *b = backend_parent(&backend_onednn);

    while (!b->ops.norm)
        b = backend_parent(b);
    b->ops.norm(o);
}

/* Bias and ReLU are fused into the primitive: 0.97 to 1.02, half of them below 0.99, of the time of
 * product and row operation one after the other (2.6.3, AVX-512, 128 to 1024 rows, packed weights
 * 512x512 to 2048x512). Operations with a second matrix are not: a residual took 1.00 to 1.04 as
 * `sum`, 1.01 to 1.04 as a `binary_add` of the whole shape. Nor are gates: those that
 * post-operations can express (logistic, times x, plus y) took 1.01 to 1.09, and a primitive with
 * one destination cannot also store the pre-activation. So there is no gemm_gate. */
static void gemm_act_onednn(const struct gemm *g, const struct act *epilogue)
{
    const bool expressible = (epilogue->kind == ACT_NONE || epilogue->kind == ACT_RELU) &&
                             !epilogue->factor; /* others: inherited */
    const bool plain = g->alpha == 1 && (g->beta == 0 || epilogue->y == g->c);
    struct gemm p = *g;

    p.c = epilogue->y;
    if (expressible && plain && !epilogue->add && g->m > 0 && g->n > 0 && g->k > 0 &&
        product_run_after(&p, epilogue->bias, epilogue->kind == ACT_RELU))
        return;
    gemm_onednn(g);
    act_inherited(epilogue);
}

/* The primitive's time relative to the AVX-512 rows, widths 256 to 1024: 0.71 to 0.96 from 128 rows
 * on, 0.75 to 1.03 at 64, but 1.3 to 8 for a few rows, because a call costs 0.4 us before it
 * begins. It does not support `add`: with a separate addition before it it took 1.0 to 1.3. The
 * other row operations are inherited: the library's softmax took 2.2 to 3.8 times as long and has
 * no masks; its ReLU alone took 0.7 to 0.9 from 64 rows on, but here a bias always comes with it.
 * The library has no norms other than LAYER. */
static void norm_onednn(const struct norm *o)
{
    enum { MIN_FLOATS = 1 << 14 }; /* floats */

    const bool expressible = o->kind == NORM_LAYER && !o->add && o->bias && o->heads <= 1;

    if (!expressible || (ptrdiff_t)o->rows * o->n < MIN_FLOATS || !product_norm(o))
        norm_inherited(o);
}

/* ---- the library -------------------------------------------------------------------------- */

static const char *threading(void)
{
    switch (dnnl_version()->cpu_runtime) {
    case DNNL_RUNTIME_OMP:
        return "openmp";
    case DNNL_RUNTIME_TBB:
        return "tbb";
    case DNNL_RUNTIME_SEQ:
        return "sequential";
    default:
        return "unknown";
    }
}

static enum status open_onednn(int threads, struct err *e)
{
    if (dnnl_version()->cpu_runtime != DNNL_RUNTIME_OMP)
        return fail(e, E_UNSUPPORTED,
                    "oneDNN loaded is the %s build; its threads cannot be pinned  -> install "
                    "libdnnl-dev and run make again",
                    threading());
    return cache_open(threads, e);
}

/* The instruction set that the library generates code for, e.g. "avx512_core_bf16". */
static const char *core(void)
{
    static const char prefix[] = "cpu_isa_";
    const char *name = dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa());

    return strncmp(name, prefix, strlen(prefix)) == 0 ? name + strlen(prefix) : name;
}

/* The version is that of the loaded library, not of the header; the text is constant. */
static const char *config(void)
{
    static char text[128];
    const dnnl_version_t *v = dnnl_version();

    snprintf(text, sizeof(text), "oneDNN %d.%d.%d %s %s", v->major, v->minor, v->patch, threading(),
             core());
    return text;
}

static enum isa core_isa(enum elem elem)
{
#if defined(__aarch64__)
    return cpu_isa_unmasked();
#else
    if (elem == ELEM_BF16 && generates(dnnl_cpu_isa_avx512_core_amx))
        return ISA_AMX_BF16;
    if (elem == ELEM_BF16 && generates(dnnl_cpu_isa_avx512_core_bf16))
        return ISA_AVX512_BF16;
    if (generates(dnnl_cpu_isa_avx512_core))
        return ISA_AVX512;
    return generates(dnnl_cpu_isa_avx2) ? ISA_AVX2 : ISA_BASE;
#endif
}

/* oneDNN 3 takes a scale for each 32 numbers, but with rows of f32 or int8 in reference loops, a
 * thousand times as slow as a product of f32. */
static const char *lacks(enum elem elem)
{
    if (elem_in_blocks(elem))
        return "it has no fast product with a scale for each 32 numbers";
    return elem == ELEM_BF16 && !generates(dnnl_cpu_isa_avx512_core)
               ? "its products with bf16 need AVX-512"
               : NULL;
}

static size_t held_bytes(void) { return cache_held_bytes() + graph_held_bytes(); }

/* As a graph where --impl asks for it, and not before it was measured to be faster. */
static const struct attn_impl *const attn_list[] = {&attn_batched, &attn_composed, &attn_graph,
                                                    NULL};

const struct backend backend_onednn = {
    .name = "onednn",
    .about = "matmul and layer-norm primitives; attention by products of all heads or composed",
    .inherits = "simd",
    .open = open_onednn,
    .core = core,
    .config = config,
    .core_isa = core_isa,
    .packed_floats = cache_packed_floats,
    .pack = cache_pack,
    .ran = cache_ran,
    .makes_kernels = true,
    .held_bytes = held_bytes,
    .lacks = lacks,
    .gemm_act = gemm_act_onednn,
    .ops = {.gemm = gemm_onednn, .norm = norm_onednn},
    .attn = attn_list,
    .recur = recur_composed,
};
