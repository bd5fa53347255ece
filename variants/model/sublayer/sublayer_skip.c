/* SPDX-License-Identifier: MIT
 *
 * Gates that skip a sub-layer: equations in sublayer_skip.h. */
#include "sublayer_skip.h"

enum { WEIGHT, BIAS };

void skip_params(const struct config *c, const char *prefix, struct params *p)
{
    params_add(p, INIT_ZERO, 0, 2, (const int[]){1, c->D}, "%sweight", prefix);
    params_vector(p, INIT_ZERO, 0, 1, prefix, "bias");
}

static int team(const struct engine *g, int rows, int D)
{
    return team_for(g->threads, (ptrdiff_t)rows * D);
}

static float gate_of(const struct sublayer *s, const float *x)
{
    const float *const w = s->skip[WEIGHT].data;
    double sum = (double)s->skip[BIAS].data[0];

    for (int e = 0; e < s->c->D; e++)
        sum += (double)w[e] * (double)x[e];
    return s->c->cond == COND_HARD ? (float)(sum > 0) : (float)(1 / (1 + exp(-sum)));
}

void skip_add(const struct engine *g, struct sublayer *s, struct work *w, float *to, const float *x,
              int rows)
{
    const int D = s->c->D;

#pragma omp parallel for num_threads(team(g, rows, D))
    for (int i = 0; i < rows; i++) {
        const ptrdiff_t at = (ptrdiff_t)i * D;
        const float gate = gate_of(s, x + at);
        w->open[i] = gate;
        for (int e = 0; e < D; e++)
            to[at + e] = x[at + e] + gate * w->y[at + e];
    }
    s->n_open = 0;
    for (int i = 0; i < rows; i++)
        s->n_open += s->c->cond == COND_HARD ? (double)w->open[i] : 1;
    s->n_rows = rows;
}

double skip_flop(const struct sublayer *s, double all, double rows)
{
    const double share = s->skip && s->n_rows > 0 ? s->n_open / s->n_rows : 1;
    const double kv = s->kind->mixes ? 4.0 * rows * s->c->D * config_kv_width(s->c) : 0;

    return share * all + (1 - share) * kv + (s->skip ? 2.0 * rows * s->c->D : 0);
}

void skip_grad(const struct engine *g, const struct sublayer *s, const struct work *w, float *d_y,
               const float *d, float *stream, int rows)
{
    const int D = s->c->D;
    const float *const weight = s->skip[WEIGHT].data;
    float *const slope = w->d_open;

#pragma omp parallel for num_threads(team(g, rows, D))
    for (int i = 0; i < rows; i++) {
        const ptrdiff_t at = (ptrdiff_t)i * D;
        const float gate = w->open[i];
        double sum = (double)w->open_slope;
        for (int e = 0; e < D; e++) {
            sum += (double)d[at + e] * (double)w->y[at + e];
            d_y[at + e] = gate * d[at + e];
        }
        slope[i] = (float)sum * gate * (1 - gate);
        for (int e = 0; e < D; e++)
            stream[at + e] += slope[i] * weight[e];
    }
    for (int i = 0; i < rows; i++) {
        for (int e = 0; e < D; e++)
            s->skip[WEIGHT].grad[e] += slope[i] * w->x[(ptrdiff_t)i * D + e];
        s->skip[BIAS].grad[0] += slope[i];
    }
}
