/* SPDX-License-Identifier: MIT
 *
 * The gates of GTrXL, g(x, y): x is the residual stream, y the sub-module's output after its ReLU.
 * Matrices are [D,D] without bias; b_g is the only bias. */
#include "gate.h"
#include "linear.h"

struct bias {
    float start;
};

static const struct choice choices[] = {
    ROW_REAL(struct bias, start, "gate_bias", -FLT_MAX, FLT_MAX,
             "b_g of gates before training: the more, the less of y", .scope = SCOPE_LAYER,
             SETTING),
    {0},
};

static void usual(const struct config *c, void *numbers)
{
    *(struct bias *)numbers = (struct bias){c->gate == &gate_gru ? 2 : 1};
}

static const struct part_numbers numbers = {choices, .size = NUMBERS_SIZE(struct bias),
                                            .usual = usual};

static void add_bias(const struct config *c, const char *prefix, struct params *p)
{
    const struct bias *const b = config_numbers(c, SLOT_GATE);

    params_vector(p, INIT_CONST, b->start, c->D, prefix, "bg");
}

/* work [rows,D] = src W_g^T, the last pre-activation of a gate, followed by the gate. */
static void project_and_blend(const struct engine *g, const struct param *w, float *work,
                              const float *src, int rows, struct gate_op op)
{
    const struct gemm p = linear_product(g, w, work, src, rows);

    op.a = work;
    op.ld = p.ldc;
    op.rows = rows;
    op.n = p.n;
    op.threads = g->threads;
    engine_gemm_gate(g, &p, &op);
}

/* The forward pass of a gate of x alone, and the hooks of such a gate. */
#define GATE_OF_X(name, which, bias)                                                               \
    static void name##_forward(const struct engine *g, const struct config *c,                     \
                               const struct param *w, float *out, const float *x, float *y,        \
                               int rows, float *work)                                              \
    {                                                                                              \
        project_and_blend(                                                                         \
            g, &w[WG], work, x, rows,                                                              \
            (struct gate_op){.kind = (which), .out = out, .x = x, .y = y, .b = (bias)});           \
    }
#define OF_X(name)                                                                                 \
    .n_matrices = 1, .work = 1, .forward = name##_forward, .backward = gate_##name##_backward

/* ---- residual: x + y ---------------------------------------------------------------------- */

static void no_params(const struct config *c, const char *prefix, struct params *p) {}

static void residual_forward(const struct engine *g, const struct config *c, const struct param *w,
                             float *out, const float *x, float *y, int rows, float *work)
{
    linear_epilogue(g, (struct act){.y = out, .add = y}, x, rows, c->D);
}

const struct gate gate_residual = {.name = "residual",
                                   .params = no_params,
                                   .forward = residual_forward,
                                   .backward = gate_residual_backward};

/* ---- input: sigma(W_g x) (.) x + y -------------------------------------------------------- */

static void input_params(const struct config *c, const char *prefix, struct params *p)
{
    params_map(p, c->D, c->D, prefix, "wg.weight");
}

GATE_OF_X(input, GATE_INPUT, NULL)
const struct gate gate_input = {.name = "input", .params = input_params, OF_X(input)};

/* ---- output: x + sigma(W_g x - b_g) (.) y ------------------------------------------------- */

static void biased_params(const struct config *c, const char *prefix, struct params *p)
{
    input_params(c, prefix, p);
    add_bias(c, prefix, p);
}

GATE_OF_X(output, GATE_OUTPUT, w[BG].data)
const struct gate gate_output = {
    .name = "output", .numbers = &numbers, .params = biased_params, OF_X(output)};

/* ---- highway: t (.) x + (1-t) (.) y, t = sigma(W_g x + b_g) ------------------------------- */

GATE_OF_X(highway, GATE_HIGHWAY, w[BG].data)
const struct gate gate_highway = {
    .name = "highway", .numbers = &numbers, .params = biased_params, OF_X(highway)};

/* ---- sigtanh: x + sigma(W_g y - b_g) (.) tanh(U_g y) -------------------------------------- */

static void sigtanh_params(const struct config *c, const char *prefix, struct params *p)
{
    const int first = params_map(p, c->D, c->D, prefix, "wg.weight");

    params_map(p, c->D, c->D, prefix, "ug.weight");
    params_stack(p, first, 2);
    add_bias(c, prefix, p);
}

static void sigtanh_forward(const struct engine *g, const struct config *c, const struct param *w,
                            float *out, const float *x, float *y, int rows, float *work)
{
    linear_apply(g, &w[ST_WG], work, y, rows);
    g->ops.gate(&(struct gate_op){.kind = GATE_SIGTANH,
                                  .out = out,
                                  .x = x,
                                  .a = work,
                                  .c = work + c->D,
                                  .b = w[ST_BG].data,
                                  .ld = 2 * (ptrdiff_t)c->D,
                                  .rows = rows,
                                  .n = c->D,
                                  .threads = g->threads});
}

const struct gate gate_sigtanh = {.name = "sigtanh",
                                  .numbers = &numbers,
                                  .n_matrices = 2,
                                  .params = sigtanh_params,
                                  .work = 2,
                                  .forward = sigtanh_forward,
                                  .backward = gate_sigtanh_backward};

/* ---- gru: (1-z) (.) x + z (.) tanh(W_g y + U_g (r (.) x)) --------------------------------
 *      r = sigma(W_r y + U_r x)
 *      z = sigma(W_z y + U_z x - b_g) */

static void gru_params(const struct config *c, const char *prefix, struct params *p)
{
    static const char *const names[] = {"wr.weight", "wz.weight", "wg.weight",
                                        "ur.weight", "uz.weight", "ug.weight"};
    const int first = p->n;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        params_map(p, c->D, c->D, prefix, names[i]);
    params_stack(p, first + GRU_WR, 3);
    params_stack(p, first + GRU_UR, 2);
    add_bias(c, prefix, p);
}

/* Columns of P [rows,3D] += src U^T, followed by the gate that reads them. */
static void gru_add(const struct engine *g, const struct config *c, const struct param *u,
                    float *columns, const float *src, int rows, struct gate_op op)
{
    struct gemm p = linear_product(g, u, columns, src, rows);

    p.beta = 1;
    p.ldc = op.ld = 3 * (ptrdiff_t)c->D;
    op.rows = rows;
    op.n = c->D;
    op.threads = g->threads;
    engine_gemm_gate(g, &p, &op);
}

static void gru_forward(const struct engine *g, const struct config *c, const struct param *w,
                        float *out, const float *x, float *y, int rows, float *work)
{
    const struct gru_work k = gru_work(c, work, rows);

    linear_apply(g, &w[GRU_WR], k.r, y, rows);
    gru_add(g, c, &w[GRU_UR], k.r, x, rows,
            (struct gate_op){.kind = GATE_RESET, .out = k.rx, .x = x, .a = k.r});
    gru_add(
        g, c, &w[GRU_UG], k.cand, k.rx, rows,
        (struct gate_op){
            .kind = GATE_UPDATE, .out = out, .x = x, .a = k.z, .c = k.cand, .b = w[GRU_BG].data});
}

const struct gate gate_gru = {.name = "gru",
                              .numbers = &numbers,
                              .n_matrices = 6,
                              .params = gru_params,
                              .work = 4,
                              .forward = gru_forward,
                              .backward = gate_gru_backward,
                              .work_grad = 1};
