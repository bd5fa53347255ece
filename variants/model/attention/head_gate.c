/* SPDX-License-Identifier: MIT
 *
 * Gated outputs (Qiu et al. 2025, "Gated Attention", arXiv:2505.06708), by element or by head; x is
 * the row that a query is projected from:
 *
 *   o <- o (.) sigma(W_g x) */
#include "sublayer_attention.h"
#include "variants/parts/linear.h"

enum { GATE, GATED }; /* [B,L,H or H*dh] the gate, or its gradient; [B,L,H*dh] the gated output */

static bool on(const struct config *c) { return c->out_gate != OUT_GATE_NONE; }

static int width_of(const struct config *c)
{
    return c->out_gate == OUT_GATE_HEADWISE ? c->H : config_q_width(c);
}

static void declare(const struct sublayer *s, const char *prefix, struct params *p)
{
    params_map(p, width_of(s->c), attention_width(s->c), prefix, "attn.g.weight");
}

static void arrays(const struct sublayer *s, struct around_call n, size_t floats[AROUND_ARRAYS])
{
    const size_t rows = (size_t)n.B * (size_t)n.L;

    floats[GATE] = rows * (size_t)width_of(s->c);
    floats[GATED] = n.backward ? 0 : rows * (size_t)config_q_width(s->c);
}

static void output(const struct part_call *t, struct seq_rows x)
{
    const struct engine *const g = t->g;
    const ptrdiff_t HD = config_q_width(t->s->c), width = width_of(t->s->c);
    const ptrdiff_t rows = (ptrdiff_t)t->n.B * t->n.L, each = HD / width; /* that share a gate */
    const float *const o = t->w->array[AT_O];
    float *const gate = t->at[GATE], *const gated = t->at[GATED];

    CHECK(o && gate && gated);
    project_map(g, t->param, NULL, (struct seq_rows){gate, t->n.L * width}, x, t->n.B, t->n.L);
    linear_epilogue(g, (struct act){.kind = ACT_SIGMOID, .y = gate}, gate, (int)rows, (int)width);
#pragma omp parallel for num_threads(team_for(g->threads, rows *HD))
    for (ptrdiff_t y = 0; y < rows * width; y++)
        for (ptrdiff_t e = y * each; e < (y + 1) * each; e++)
            gated[e] = o[e] * gate[y];
}

static const float *gated_rows(const struct part_call *t) { return t->at[GATED]; }

/* do = d (.) s, d(W_g x) = d (.) o (.) s (1 - s), summed where heads share a gate. */
static void output_grad(const struct part_call *t, float *d_o)
{
    const ptrdiff_t width = t->param->shape[0], each = config_q_width(t->s->c) / width;
    const ptrdiff_t rows = (ptrdiff_t)t->n.B * t->n.L;
    const float *const o = t->w->array[AT_O], *const gate = t->at[GATE];
    float *const d_gate = t->d_at[GATE];
#pragma omp parallel for num_threads(team_for(t->g->threads, rows *width *each))
    for (ptrdiff_t y = 0; y < rows * width; y++) {
        float sum = 0;
        for (ptrdiff_t e = y * each; e < (y + 1) * each; e++) {
            sum += d_o[e] * o[e];
            d_o[e] *= gate[y];
        }
        d_gate[y] = sum * gate[y] * (1 - gate[y]);
    }
}

static void input_grad(const struct part_call *t, struct sublayer_input from, float *d_in, int skip)
{
    project_map_grad(t->g, t->param, NULL, t->d_at[GATE], from, t->n.K - t->n.L, d_in, skip, 1);
}

static double flop(const struct part_cost *t)
{
    return 2 * t->rows * attention_width(t->s->c) * width_of(t->s->c);
}

const struct around_part head_gate = {
    .on = on,
    .params = declare,
    .arrays = arrays,
    .flop = flop,
    .map = {.output = output,
            .rows = gated_rows,
            .output_grad = output_grad,
            .input_grad = input_grad},
};
