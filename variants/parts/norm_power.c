/* SPDX-License-Identifier: MIT
 *
 * PowerNorm (Shen et al. 2020, "PowerNorm: Rethinking Batch Normalization in Transformers",
 * arXiv:2003.07845). Per channel, with stored statistics phi and nu, q the mean of u^2 over the
 * batch's rows and g = d_y (.) w:
 *
 *   u    = x, or with groups x / sqrt(mean of x^2 in its group of channels + eps)
 *   z    = u / sqrt(phi + eps)
 *   y    = w z + b
 *   phi' = alpha phi + (1-alpha) q
 *
 *   paper:  d_u = (g - nu z) / sqrt(phi + eps)
 *           nu' = nu (1 - (1-alpha) mean(z^2)) + (1-alpha) mean(g z)
 *   code:   d_u = (g - (1-alpha) nu z) / sqrt(q + eps)
 *           nu' = nu + mean((g - (1-alpha) nu z) z)
 *
 * Forward reads the old statistics, in training too, so that a row knows nothing of later ones;
 * backward leaves phi' - phi and nu' - nu as their steps. d_u is defined so: it is the derivative
 * where nu is 0 and the form is the paper's. The published warm-up, in which the batch's own q
 * divides, is left out. Where norms come first and memory lies between the rows, q of the code's
 * d_u is that of a sequence. */
#include "norm.h"

enum power_backward { POWER_PAPER, POWER_CODE };
struct power {
    float alpha;
    int groups; /* 0 = u is x */
    enum power_backward form;
};
enum { WEIGHT, BIAS, PHI, NU };

static const char *const form_name[] = {"paper", "code", NULL};

static const struct choice choices[] = {
    ROW_INT(struct power, groups, "pn_group", 0, 1 << 20,
            "groups of channels that PowerNorm scales first, 0 = none", .scope = SCOPE_LAYER,
            .setting = true, .absent = "0"),
    ROW_REAL(struct power, alpha, "pn_alpha", 0, 1,
             "share of PowerNorm's statistics that a step keeps", .scope = SCOPE_LAYER,
             .absent = "0.9", SETTING),
    ROW_WORD(struct power, form, "pn_backward", form_name, "PowerNorm's backward pass",
             .scope = SCOPE_LAYER, .absent = "paper", SETTING),
    {0},
};

static const struct power *power_of(const struct config *c) { return config_numbers(c, SLOT_NORM); }

static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    const struct power *const p = numbers;

    if (p->groups && c->D % p->groups)
        return fail(e, E_USAGE, "%s: pn_group %d does not divide --d-model %d  -> use a divisor",
                    c->variant->name, p->groups, c->D);
    return OK;
}

const struct part_numbers power_numbers = {choices, PRESET(struct power, .alpha = 0.9f), check};

void power_params(const struct config *c, const char *prefix, const char *name, struct params *p)
{
    params_add(p, INIT_ONE, 0, 1, &c->D, "%s%s.weight", prefix, name);
    params_add(p, INIT_ZERO, 0, 1, &c->D, "%s%s.bias", prefix, name);
    const int phi = params_add(p, INIT_CONST, 1, 1, &c->D, "%s%s.phi", prefix, name);
    params_bound(p, phi, 0, INFINITY);
    params_buffer(p, phi);
    params_buffer(p, params_add(p, INIT_CONST, 0, 1, &c->D, "%s%s.nu", prefix, name));
}

static int team(const struct engine *g, const struct config *c, int rows)
{
    return team_for(g->threads, (ptrdiff_t)rows * c->D);
}

/* What multiplies n channels of one row; add may be NULL. */
static float factor_of(const float *x, const float *add, int n, float eps)
{
    float squares = 0;

    if (add) {
#pragma omp simd reduction(+ : squares)
        for (int e = 0; e < n; e++)
            squares += (x[e] + add[e]) * (x[e] + add[e]);
    } else {
#pragma omp simd reduction(+ : squares)
        for (int e = 0; e < n; e++)
            squares += x[e] * x[e];
    }
    return 1 / sqrtf(squares / (float)n + eps);
}

/* ---- forward ------------------------------------------------------------------------------ */

enum { CHANNELS = 64, ROWS = 16 }; /* of a block, so that 1/sqrt(phi) is computed once for it */

struct channels {
    const struct config *c;
    const struct param *w;
    int first, n;
};

/* Rows [i0, i1) of these channels, u = r x. */
static void apply_block(const struct channels *k, float *y, const float *x, const float *add,
                        int i0, int i1, const float r[ROWS])
{
    const float *const phi = k->w[PHI].data + k->first, *const bias = k->w[BIAS].data + k->first;
    const float *const weight = k->w[WEIGHT].data + k->first;
    float scale[CHANNELS];

    for (int e = 0; e < k->n; e++)
        scale[e] = weight[e] / sqrtf(phi[e] + k->c->ln_eps);
    for (int i = i0; i < i1; i++) {
        const ptrdiff_t at = (ptrdiff_t)i * k->c->D + k->first;
        const float by = r[i - i0];
        if (add) {
#pragma omp simd
            for (int e = 0; e < k->n; e++)
                y[at + e] = (x[at + e] + add[at + e]) * by * scale[e] + bias[e];
        } else {
#pragma omp simd
            for (int e = 0; e < k->n; e++)
                y[at + e] = x[at + e] * by * scale[e] + bias[e];
        }
    }
}

void power_apply(const struct engine *g, const struct config *c, const struct param *w, float *y,
                 const float *x, const float *add, int rows)
{
    const int groups = power_of(c)->groups, width = groups ? c->D / groups : c->D;

#pragma omp parallel for num_threads(team(g, c, rows))
    for (int i0 = 0; i0 < rows; i0 += ROWS) {
        const int i1 = min_int(i0 + ROWS, rows);
        for (int first = 0; first < c->D; first += width) {
            float r[ROWS];
            for (int i = i0; i < i1; i++) {
                const ptrdiff_t at = (ptrdiff_t)i * c->D + first;
                r[i - i0] = groups ? factor_of(x + at, add ? add + at : NULL, width, c->ln_eps) : 1;
            }
            for (int e = first; e < first + width; e += CHANNELS) {
                const struct channels k = {c, w, e, min_int(CHANNELS, first + width - e)};
                apply_block(&k, y, x, add, i0, i1, r);
            }
        }
    }
}

/* ---- backward ----------------------------------------------------------------------------- */

enum { COLUMNS = 16 };

/* Sums over rows of a few channels: of u^2, d_y and d_y u. */
struct sums {
    double squares[COLUMNS], d_y[COLUMNS], d_yu[COLUMNS];
};

static void add_rows(const struct channels *k, struct sums *s, const float *d_y, const float *x,
                     const float *stats, int rows)
{
    *s = (struct sums){0};
    for (int i = 0; i < rows; i++) {
        const ptrdiff_t at = (ptrdiff_t)i * k->c->D + k->first;
        const float r = stats[(ptrdiff_t)NORM_STATS * i];
        for (int e = 0; e < k->n; e++) {
            const double u = (double)(x[at + e] * r), d = (double)d_y[at + e];
            s->squares[e] += u * u;
            s->d_y[e] += d;
            s->d_yu[e] += d * u;
        }
    }
}

/* Gradients of weight and bias, and the part of the steps that these rows of `of` have. */
static void add_grad(const struct channels *k, const struct sums *s, int rows, int of)
{
    const struct power *const p = power_of(k->c);
    const double rest = 1 - (double)p->alpha, eps = (double)k->c->ln_eps;

    for (int e = 0; e < k->n; e++) {
        const int at = k->first + e;
        const double phi = (double)k->w[PHI].data[at], nu = (double)k->w[NU].data[at];
        const double weight = (double)k->w[WEIGHT].data[at], root = sqrt(phi + eps);
        const double gz = weight * s->d_yu[e] / root, zz = s->squares[e] / (phi + eps);
        const double step = p->form == POWER_CODE ? gz - rest * nu * zz : rest * (gz - nu * zz);
        k->w[WEIGHT].grad[at] += (float)(s->d_yu[e] / root);
        k->w[BIAS].grad[at] += (float)s->d_y[e];
        k->w[PHI].grad[at] += (float)(rest * (s->squares[e] - phi * rows) / of);
        k->w[NU].grad[at] += (float)(step / of);
    }
}

/* d_u of these channels, in place of d_x. */
static void columns_grad(const struct channels *k, const struct sums *s, float *d_x,
                         const float *d_y, const float *x, const float *stats, int rows)
{
    const struct power *const p = power_of(k->c);
    const bool code = p->form == POWER_CODE;
    const float eps = k->c->ln_eps;
    float of_g[COLUMNS], of_u[COLUMNS]; /* d_u = of_g d_y - of_u u */

    for (int e = 0; e < k->n; e++) {
        const float root = sqrtf(k->w[PHI].data[k->first + e] + eps);
        const float by = code ? sqrtf((float)(s->squares[e] / rows) + eps) : root;
        const float nu = (code ? 1 - p->alpha : 1) * k->w[NU].data[k->first + e];
        of_g[e] = k->w[WEIGHT].data[k->first + e] / by;
        of_u[e] = nu / root / by;
    }
    for (int i = 0; i < rows; i++) {
        const ptrdiff_t at = (ptrdiff_t)i * k->c->D + k->first;
        const float r = stats[(ptrdiff_t)NORM_STATS * i];
        for (int e = 0; e < k->n; e++)
            d_x[at + e] = of_g[e] * d_y[at + e] - of_u[e] * r * x[at + e];
    }
}

/* From d_u to d_x of n channels of one row: u = r x, r = 1 / sqrt(mean(x^2) + eps). */
static void through_factor(float *d, const float *x, float r, int n)
{
    const float pull = dot_in_lanes(d, x, n) * r * r / (float)n;
#pragma omp simd
    for (int e = 0; e < n; e++)
        d[e] = r * (d[e] - pull * x[e]);
}

void power_backward(const struct engine *g, const struct config *c, const struct param *w,
                    float *d_x, const float *d_y, const float *x, float *stats, int rows, int of)
{
    const int groups = power_of(c)->groups, width = groups ? c->D / groups : c->D;

    for (int first = 0; first < c->D; first += width) {
        const int end = first + width;
#pragma omp parallel for num_threads(team(g, c, rows))
        for (int i = 0; i < rows; i++)
            stats[(ptrdiff_t)NORM_STATS * i] =
                groups ? factor_of(x + (ptrdiff_t)i * c->D + first, NULL, width, c->ln_eps) : 1;
#pragma omp parallel for num_threads(team(g, c, rows))
        for (int e = first; e < end; e += COLUMNS) {
            const struct channels k = {c, w, e, min_int(COLUMNS, end - e)};
            struct sums s;
            add_rows(&k, &s, d_y, x, stats, rows);
            if (of)
                add_grad(&k, &s, rows, of);
            columns_grad(&k, &s, d_x, d_y, x, stats, rows);
        }
#pragma omp parallel for num_threads(team(g, c, rows))
        for (int i = 0; i < (groups ? rows : 0); i++)
            through_factor(d_x + (ptrdiff_t)i * c->D + first, x + (ptrdiff_t)i * c->D + first,
                           stats[(ptrdiff_t)NORM_STATS * i], width);
    }
}
