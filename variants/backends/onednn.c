/* SPDX-License-Identifier: MIT
 *
 * oneDNN: matrix products by its matmul primitive, everything else from the
 * best SIMD level. Like OpenBLAS it must run on OpenMP, to share one pool of
 * pinned threads with our own regions. */
#include "composed.h"
#include "onednn_attn.h"
#include "onednn_compat.h"
#include "onednn_product.h"

#include <stdio.h>
#include <string.h>

/* What the matmul primitive has no words for: an empty sum. */
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
    else if (g->m > 0 && g->n > 0)
        product_run(g);
}

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
                    "oneDNN loaded is the %s build; its threads cannot be pinned  "
                    "-> install "
                    "libdnnl-dev and run make again",
                    threading());
    return products_open(threads, e);
}

/* The instruction set that the library generates code for, e.g.
 * "avx512_core_bf16". */
static const char *core(void)
{
    static const char prefix[] = "cpu_isa_";
    const char *name = dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa());

    return strncmp(name, prefix, strlen(prefix)) == 0 ? name + strlen(prefix) : name;
}

/* The version is the loaded library's, not the header's; both are constant, so
 * is the text. */
static const char *config(void)
{
    static char text[128];
    const dnnl_version_t *v = dnnl_version();

    snprintf(text, sizeof(text), "oneDNN %d.%d.%d %s %s", v->major, v->minor, v->patch, threading(),
             core());
    return text;
}

static enum isa core_isa(void)
{
    const unsigned isa = dnnl_get_effective_cpu_isa();

    if ((isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core)
        return ISA_AVX512;
    return (isa & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2 ? ISA_AVX2 : ISA_BASE;
}

static const struct attn_impl *const attn_list[] = {&attn_batched, &attn_composed, NULL};

const struct backend backend_onednn = {
    .name = "onednn",
    .about = "matmul primitives; attention by products of all heads or "
             "composed of single ones",
    .inherits = "simd",
    .open = open_onednn,
    .core = core,
    .config = config,
    .core_isa = core_isa,
    .packed_floats = product_packed_floats,
    .pack = product_pack,
    .ran = products_ran,
    .held_bytes = products_held_bytes,
    .ops = {.gemm = gemm_onednn},
    .attn = attn_list,
};
