/* SPDX-License-Identifier: MIT
 *
 * Causal depth-wise convolutions as kinds of sub-layers. Row t of D channels reads itself and the
 * k - 1 rows before it, with a weight for each row and channel:
 *
 *   u_t = sum over s < k: w[s] (.) x_(t-k+1+s)         rows before the stream are zeros here
 *
 * cpe: the conditional position encoding of Chu et al. 2021 (arXiv:2102.10882), f = u + b, without
 * a norm: zeros before the stream tell where it begins. sep: the separable convolution of So et al.
 * 2019 (arXiv:1901.11117), f = W u + b. Both remember the k - 1 rows before a segment as they
 * entered the sub-layer. */
#include "sublayer.h"
#include "variants/base/loops.h"
#include "variants/parts/linear.h"

#include <math.h>
#include <string.h>

enum { TAPS, BIAS, POINT = 1, POINT_BIAS }; /* parameters of cpe, and of sep */
enum { SUM };                               /* [B,L,D] u, of sep */
enum { D_SUM };                             /* its gradient */

static bool is_sep(const struct sublayer *s) { return s->kind == &sublayer_sep; }

static int kernel_of(const struct sublayer *s)
{
    return is_sep(s) ? s->c->sep_kernel : s->c->cpe_kernel;
}

static void taps_params(int kernel, int D, const char *inner, const char *name, struct params *p)
{
    params_add(p, INIT_UNIFORM_BOTH, 1 / sqrtf((float)kernel), 2, (const int[]){kernel, D}, "%s%s",
               inner, name);
}

static void cpe_params(const struct sublayer *s, const char *prefix, const char *inner,
                       struct params *p)
{
    (void)prefix;
    taps_params(s->c->cpe_kernel, s->c->D, inner, "weight", p);
    params_vector(p, INIT_ZERO, 0, s->c->D, inner, "bias");
}

static void sep_params(const struct sublayer *s, const char *prefix, const char *inner,
                       struct params *p)
{
    (void)prefix;
    taps_params(s->c->sep_kernel, s->c->D, inner, "depth", p);
    params_residual(p, params_map(p, s->c->D, s->c->D, inner, "point.weight"));
    params_vector(p, INIT_ZERO, 0, s->c->D, inner, "point.bias");
}

static int keeps(int kernel, enum mem_kind mem)
{
    return mem == MEM_HIDDEN || mem == MEM_KV ? kernel - 1 : -1;
}

/* Independent of attention's memory. */
static int cpe_keeps(const struct config *c, enum mem_kind mem, int M)
{
    (void)M;
    return keeps(c->cpe_kernel, mem);
}

static int sep_keeps(const struct config *c, enum mem_kind mem, int M)
{
    (void)M;
    return keeps(c->sep_kernel, mem);
}

static void conv_arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const size_t n = is_sep(s) ? (size_t)max.B * (size_t)max.L * (size_t)s->c->D : 0;

    out[SUM] = (struct array){n, n, false, PART_ACTIVATIONS};
}

static void conv_arrays_grad(const struct sublayer *s, struct extent max,
                             struct array out[SUB_ARRAYS])
{
    const size_t n = is_sep(s) ? (size_t)max.B * (size_t)max.L * (size_t)s->c->D : 0;

    out[D_SUM] = (struct array){0, n, true, PART_ACTIVATIONS};
}

/* ---- the convolution ---------------------------------------------------------------------- */

static int team(const struct engine *g, struct sublayer_input from, int D)
{
    return team_for(g->threads, (ptrdiff_t)from.B * from.L * D);
}

/* u [B,L,D] + bias, which may be NULL. */
static void convolve(const struct engine *g, const struct sublayer *s, struct sublayer_input from,
                     const float *bias, float *u)
{
    const int D = s->c->D, k = kernel_of(s);
    const float *const w = s->weights[TAPS].data;

#pragma omp parallel for num_threads(team(g, from, D))
    for (int row = 0; row < from.B * from.L; row++) {
        const int b = row / from.L, last = from.M + row % from.L;
        const float *const x = from.at.at + b * from.at.stride;
        float *const to = u + (ptrdiff_t)row * D;
        for (int e = 0; e < D; e++)
            to[e] = bias ? bias[e] : 0;
        for (int j = max_int(0, last - k + 1); j <= last; j++) {
            const float *const tap = w + (ptrdiff_t)(j - last + k - 1) * D;
            const float *const x_j = x + (ptrdiff_t)j * D;
#pragma omp simd
            for (int e = 0; e < D; e++)
                to[e] += tap[e] * x_j[e];
        }
    }
}

/* d_in [B,M+L-skip,D] from d_u. */
static void input_grad(const struct engine *g, const struct sublayer *s, struct sublayer_input from,
                       float *d_in, const float *d_u, int skip)
{
    const int D = s->c->D, k = kernel_of(s), rows = from.M + from.L - skip;
    const float *const w = s->weights[TAPS].data;

#pragma omp parallel for num_threads(team(g, from, D))
    for (int row = 0; row < from.B * rows; row++) {
        const int b = row / rows, j = skip + row % rows; /* read by new rows j - M and later */
        float *const to = d_in + (ptrdiff_t)row * D;
        memset(to, 0, sizeof(*to) * (size_t)D);
        for (int i = max_int(0, j - from.M); i < min_int(from.L, j - from.M + k); i++) {
            const float *const tap = w + (ptrdiff_t)(j - from.M - i + k - 1) * D;
            const float *const d = d_u + ((ptrdiff_t)b * from.L + i) * D;
#pragma omp simd
            for (int e = 0; e < D; e++)
                to[e] += tap[e] * d[e];
        }
    }
}

/* Sums over rows in their order, whatever the number of threads. */
static void taps_grad(const struct engine *g, const struct sublayer *s, struct sublayer_input from,
                      const float *d_u)
{
    const int D = s->c->D, k = kernel_of(s);

#pragma omp parallel for num_threads(team(g, from, D))
    for (int tap = 0; tap < k; tap++) {
        float *const to = s->weights[TAPS].grad + (ptrdiff_t)tap * D;
        for (int b = 0; b < from.B; b++)
            for (int i = max_int(0, k - 1 - tap - from.M); i < from.L; i++) {
                const float *const d = d_u + ((ptrdiff_t)b * from.L + i) * D;
                const float *const x =
                    from.at.at + b * from.at.stride + (ptrdiff_t)(from.M + i - k + 1 + tap) * D;
#pragma omp simd
                for (int e = 0; e < D; e++)
                    to[e] += d[e] * x[e];
            }
    }
}

/* ---- the two kinds ------------------------------------------------------------------------ */

static void cpe_forward(const struct engine *g, struct sublayer *s, struct work *w,
                        struct sublayer_input from, struct act epilogue)
{
    convolve(g, s, from, s->weights[BIAS].data, w->y);
    epilogue.x = w->y;
    epilogue.rows = from.B * from.L;
    epilogue.n = s->c->D;
    epilogue.threads = g->threads;
    g->ops.act(&epilogue);
}

static void cpe_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                         struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    (void)w;
    linear_bias_grad(g, &s->weights[BIAS], d_y, from.B * from.L);
    taps_grad(g, s, from, d_y);
    input_grad(g, s, from, d_in, d_y, skip);
}

static void sep_forward(const struct engine *g, struct sublayer *s, struct work *w,
                        struct sublayer_input from, struct act epilogue)
{
    convolve(g, s, from, NULL, w->array[SUM]);
    linear_forward(g, &s->weights[POINT], &s->weights[POINT_BIAS], w->y, w->array[SUM],
                   from.B * from.L, epilogue);
}

static void sep_backward(const struct engine *g, struct sublayer *s, const struct work *w,
                         struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    const int rows = from.B * from.L;
    float *const d_u = w->d_array[D_SUM];

    linear_bias_grad(g, &s->weights[POINT_BIAS], d_y, rows);
    linear_weight_grad(g, &s->weights[POINT], d_y, w->array[SUM], rows);
    linear_input_grad(g, &s->weights[POINT], d_u, d_y, rows, 0);
    taps_grad(g, s, from, d_u);
    input_grad(g, s, from, d_in, d_u, skip);
}

static double conv_flop(const struct sublayer *s, int B, int L, int M)
{
    const double rows = (double)B * L, D = s->c->D;

    (void)M;
    return 2 * rows * D * kernel_of(s) + (is_sep(s) ? 2 * rows * D * D : 0);
}

static double conv_grad_flop(const struct sublayer *s, int B, int L, int M)
{
    return 2 * conv_flop(s, B, L, M);
}

#define CONV                                                                                       \
    .mixes = true, .place = DROP_CONV, .arrays = conv_arrays, .arrays_grad = conv_arrays_grad,     \
    .flop = conv_flop, .grad_flop = conv_grad_flop

const struct sublayer_kind sublayer_cpe = {
    .name = "cpe",
    .memory = "tail",
    CONV,
    .params = cpe_params,
    .keeps = cpe_keeps,
    .forward = cpe_forward,
    .backward = cpe_backward,
};

const struct sublayer_kind sublayer_sep = {
    .name = "sep",
    .memory = "tail2",
    CONV,
    .params = sep_params,
    .keeps = sep_keeps,
    .forward = sep_forward,
    .backward = sep_backward,
};
