/* SPDX-License-Identifier: MIT
 *
 * OpenBLAS: matrix products by cblas_sgemm, everything else from the best SIMD level. Only the
 * OpenMP build is accepted: it shares libgomp (or libomp) with our own parallel regions, so there
 * is one pool that is pinned once; the threads of the pthread build cannot be pinned. */
#include "recur.h"
#include "variants/backends/composed/composed.h"

#include <cblas.h>

static void product(const struct gemm *g)
{
    if (g->m == 1 && !g->ta) { /* one row: sgemv reads the matrix faster */
        cblas_sgemv(CblasRowMajor, g->tb ? CblasNoTrans : CblasTrans, g->tb ? g->n : g->k,
                    g->tb ? g->k : g->n, g->alpha, g->b, (blasint)g->ldb, g->a, 1, g->beta, g->c,
                    1);
        return;
    }
    cblas_sgemm(CblasRowMajor, g->ta ? CblasTrans : CblasNoTrans, g->tb ? CblasTrans : CblasNoTrans,
                g->m, g->n, g->k, g->alpha, g->a, (blasint)g->lda, g->b, (blasint)g->ldb, g->beta,
                g->c, (blasint)g->ldc);
}

/* 0.3.29 takes as many threads as OpenMP would, whatever openblas_set_num_threads said: a second one
 * on the only CPU of a case waits for the first in every product. */
static void gemm_openblas(const struct gemm *g)
{
    const int threads = omp_get_max_threads();

    if (gemm_of_overlapping_rows(g))
        return;
    omp_set_num_threads(g->threads);
    product(g);
    omp_set_num_threads(threads);
}

static enum status open_openblas(int threads, struct err *e)
{
    enum { PARALLEL_OPENMP = 2 }; /* openblas_get_parallel(): 0 sequential, 1 pthread, 2 OpenMP */

    if (openblas_get_parallel() != PARALLEL_OPENMP)
        return fail(e, E_UNSUPPORTED,
                    "OpenBLAS loaded is the %s build; its threads cannot be pinned  -> apt install "
                    "libopenblas-openmp-dev, make",
                    openblas_get_parallel() == 1 ? "pthread" : "sequential");
    openblas_set_num_threads(threads);
    return OK;
}

static const char *core(void) { return openblas_get_corename(); }

static const char *config(void) { return openblas_get_config(); }

/* The ISA level of the kernels that OpenBLAS chose for this CPU. */
static enum isa core_isa(enum elem elem)
{
#if defined(__aarch64__)
    return cpu_isa_unmasked(); /* all its kernels for arm64 are of NEON or above */
#else
    static const char *const avx512[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
    static const char *const avx2[] = {"Haswell", "Zen"};
    const char *name = openblas_get_corename();

    for (size_t i = 0; i < ARRAY_LEN(avx512); i++)
        if (strcmp(name, avx512[i]) == 0)
            return ISA_AVX512;
    for (size_t i = 0; i < ARRAY_LEN(avx2); i++)
        if (strcmp(name, avx2[i]) == 0)
            return ISA_AVX2;
    return ISA_BASE;
#endif
}

static const char *lacks(enum elem elem)
{
    static const char *const why[ELEM_COUNT] = {
        [ELEM_BF16] = "cblas_sbgemm is not in the OpenBLAS that distributions build",
        [ELEM_Q8] = "OpenBLAS has no product with 8-bit weights",
        [ELEM_Q4] = "OpenBLAS has no product with 4-bit weights",
        [ELEM_Q4_1] = "OpenBLAS has no product with 4-bit weights",
    };

    return why[elem];
}

static const struct attn_impl *const attn_list[] = {&attn_composed, NULL};

const struct backend backend_openblas = {
    .name = "openblas",
    .about = "cblas_sgemm; attention composed in causal row blocks",
    .inherits = "simd",
    .open = open_openblas,
    .core = core,
    .config = config,
    .core_isa = core_isa,
    .lacks = lacks,
    .ops = {.gemm = gemm_openblas},
    .attn = attn_list,
    .recur = recur_composed,
};
