/* SPDX-License-Identifier: MIT
 *
 * The gates of GTrXL, g(x, y): x is the stream, y the sub-module's output after its ReLU.
 * Matrices are [D,D] without bias; bg is the only bias. */
#include "gate.h"

void gate_project(const struct engine *g, const struct config *c, const struct param *w, float *dst,
                  const float *src, int rows, float beta)
{
    g->ops.gemm(&(struct gemm){.tb = true,
                               .m = rows,
                               .n = c->D,
                               .k = c->D,
                               .alpha = 1,
                               .beta = beta,
                               .a = src,
                               .lda = c->D,
                               .b = w->data,
                               .ldb = c->D,
                               .b_packed = w->packed,
                               .c = dst,
                               .ldc = c->D,
                               .threads = g->threads});
}

static void blend(const struct engine *g, const struct config *c, struct gate_op op, int rows)
{
    op.rows = rows;
    op.n = c->D;
    op.threads = g->threads;
    g->ops.gate(&op);
}

/* ---- residual: x + y --------------------------------------------------------------------- */

static void no_params(const struct config *c, const char *prefix, struct params *p)
{
    (void)c, (void)prefix, (void)p;
}

static void residual_forward(const struct engine *g, const struct config *c, const struct param *w,
                             float *out, const float *x, float *y, int rows, float *work)
{
    (void)w, (void)work;
    g->ops.act(
        &(struct act){.y = out, .x = x, .add = y, .rows = rows, .n = c->D, .threads = g->threads});
}

const struct gate gate_residual = {.name = "residual",
                                   .params = no_params,
                                   .forward = residual_forward,
                                   .backward = gate_residual_backward};

/* ---- input: sigma(W_g x) (.) x + y ------------------------------------------------------- */

static void input_params(const struct config *c, const char *prefix, struct params *p)
{
    params_matrix(p, c->D, c->D, prefix, "wg.weight");
}

static void input_forward(const struct engine *g, const struct config *c, const struct param *w,
                          float *out, const float *x, float *y, int rows, float *work)
{
    gate_project(g, c, &w[WG], work, x, rows, 0);
    blend(g, c, (struct gate_op){.kind = GATE_INPUT, .out = out, .x = x, .y = y, .a = work}, rows);
}

const struct gate gate_input = {.name = "input",
                                .n_matrices = 1,
                                .params = input_params,
                                .work = 1,
                                .forward = input_forward,
                                .backward = gate_input_backward};

/* ---- output: x + sigma(W_g x - b_g) (.) y ------------------------------------------------ */

static void biased_params(const struct config *c, const char *prefix, struct params *p)
{
    input_params(c, prefix, p);
    params_vector(p, INIT_CONST, 1, c->D, prefix, "bg");
}

static void output_forward(const struct engine *g, const struct config *c, const struct param *w,
                           float *out, const float *x, float *y, int rows, float *work)
{
    gate_project(g, c, &w[WG], work, x, rows, 0);
    blend(g, c,
          (struct gate_op){
              .kind = GATE_OUTPUT, .out = out, .x = x, .y = y, .a = work, .b = w[BG].data},
          rows);
}

const struct gate gate_output = {.name = "output",
                                 .n_matrices = 1,
                                 .params = biased_params,
                                 .work = 1,
                                 .forward = output_forward,
                                 .backward = gate_output_backward};

/* ---- highway: t (.) x + (1-t) (.) y, t = sigma(W_g x + b_g) ------------------------------ */

static void highway_forward(const struct engine *g, const struct config *c, const struct param *w,
                            float *out, const float *x, float *y, int rows, float *work)
{
    gate_project(g, c, &w[WG], work, x, rows, 0);
    blend(g, c,
          (struct gate_op){
              .kind = GATE_HIGHWAY, .out = out, .x = x, .y = y, .a = work, .b = w[BG].data},
          rows);
}

const struct gate gate_highway = {.name = "highway",
                                  .n_matrices = 1,
                                  .params = biased_params,
                                  .work = 1,
                                  .forward = highway_forward,
                                  .backward = gate_highway_backward};

/* ---- sigtanh: x + sigma(W_g y - b_g) (.) tanh(U_g y) ------------------------------------- */

static void sigtanh_params(const struct config *c, const char *prefix, struct params *p)
{
    params_matrix(p, c->D, c->D, prefix, "wg.weight");
    params_matrix(p, c->D, c->D, prefix, "ug.weight");
    params_vector(p, INIT_CONST, 1, c->D, prefix, "bg");
}

static void sigtanh_forward(const struct engine *g, const struct config *c, const struct param *w,
                            float *out, const float *x, float *y, int rows, float *work)
{
    float *a = work, *u = work + (ptrdiff_t)rows * c->D;

    gate_project(g, c, &w[ST_WG], a, y, rows, 0);
    gate_project(g, c, &w[ST_UG], u, y, rows, 0);
    blend(g, c,
          (struct gate_op){
              .kind = GATE_SIGTANH, .out = out, .x = x, .a = a, .c = u, .b = w[ST_BG].data},
          rows);
}

const struct gate gate_sigtanh = {.name = "sigtanh",
                                  .n_matrices = 2,
                                  .params = sigtanh_params,
                                  .work = 2,
                                  .forward = sigtanh_forward,
                                  .backward = gate_sigtanh_backward};

/* ---- gru: (1-z) (.) x + z (.) tanh(W_g y + U_g (r (.) x)) --------------------------------
 *      r = sigma(W_r y + U_r x), z = sigma(W_z y + U_z x - b_g) */

static void gru_params(const struct config *c, const char *prefix, struct params *p)
{
    static const char *const names[] = {"wr.weight", "ur.weight", "wz.weight",
                                        "uz.weight", "wg.weight", "ug.weight"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        params_matrix(p, c->D, c->D, prefix, names[i]);
    params_vector(p, INIT_CONST, 2, c->D, prefix, "bg");
}

static void gru_forward(const struct engine *g, const struct config *c, const struct param *w,
                        float *out, const float *x, float *y, int rows, float *work)
{
    float *rx = work;                         /* pre-activation of r, then r (.) x */
    float *z = rx + (ptrdiff_t)rows * c->D;   /* pre-activation of z */
    float *cand = z + (ptrdiff_t)rows * c->D; /* pre-activation of the candidate */

    gate_project(g, c, &w[GRU_WR], rx, y, rows, 0);
    gate_project(g, c, &w[GRU_UR], rx, x, rows, 1);
    blend(g, c, (struct gate_op){.kind = GATE_RESET, .out = rx, .x = x, .a = rx}, rows);
    gate_project(g, c, &w[GRU_WZ], z, y, rows, 0);
    gate_project(g, c, &w[GRU_UZ], z, x, rows, 1);
    gate_project(g, c, &w[GRU_WG], cand, y, rows, 0);
    gate_project(g, c, &w[GRU_UG], cand, rx, rows, 1);
    blend(g, c,
          (struct gate_op){
              .kind = GATE_UPDATE, .out = out, .x = x, .a = z, .c = cand, .b = w[GRU_BG].data},
          rows);
}

const struct gate gate_gru = {.name = "gru",
                              .n_matrices = 6,
                              .params = gru_params,
                              .work = 3,
                              .forward = gru_forward,
                              .backward = gate_gru_backward,
                              .work_grad = 1};
