/* SPDX-License-Identifier: MIT
 *
 * Feature maps of queries and keys. The exponentials of random features have arguments <= 0, where
 * ELU + 1 is the exponential: the row operation ELU1 computes both. */
#include "features.h"
#include "linear.h"
#include "variants/base/rng.h"

static bool is_random(const struct config *c) { return c->mixer->features > FEATURES_ELU; }
static bool is_taylor(const struct config *c) { return c->mixer->features == FEATURES_TAYLOR; }
static bool both_signs(const struct config *c) { return c->mixer->features == FEATURES_COSH; }
static bool is_trig(const struct config *c) { return c->mixer->features == FEATURES_TRIG; }
static bool is_relu(const struct config *c) { return c->mixer->features == FEATURES_RELU; }
static bool is_exp(const struct config *c) { return is_random(c) && !is_trig(c) && !is_relu(c); }

static bool has_random(const struct config *c) { return c->mixer && is_random(c); }
static bool has_least(const struct config *c) { return c->mixer && is_relu(c); }

static const struct choice linear_choices[] = {
    ROW_INT(struct linear, features, "features", 1, 1 << 16, "random ones of a head",
            .scope = SCOPE_LAYER, .setting = true, .applies = has_random, .rows_of = "omega"),
    ROW_REAL(struct linear, eps, "lin_eps", 0, FLT_MAX, "what the divisors begin with",
             .absent = "0", SETTING),
    ROW_REAL(struct linear, least, "feature_eps", 0, FLT_MAX, "what each feature begins with",
             .applies = has_least, .absent = "0", SETTING),
    ROW_FLAG(struct linear, apart, "omega_of_heads", NULL, .of_input = "omega", .axis = 2),
    {0},
};

static void linear_usual(const struct config *c, void *numbers)
{
    *(struct linear *)numbers = (struct linear){
        .features = is_random(c) && c->dh > 2 ? (int)(c->dh * log(c->dh)) : 1, /* as published */
        .eps = c->mixer->eps,
        .least = is_relu(c) ? 1e-3f : 0,
    };
}

static enum status linear_check(const struct config *c, const void *numbers, struct err *e)
{
    const struct linear *const l = numbers;

    if (l->eps > 0 && is_random(c))
        return fail(e, E_USAGE,
                    "%s: lin_eps %g with mixer %s, whose features have a scale of their own in "
                    "each row  -> use 0",
                    c->variant->name, (double)l->eps, c->mixer->name);
    if (l->apart && c->kv_heads != c->H)
        return fail(e, E_USAGE,
                    "%s: kv_heads %d with directions of each head  -> give as many as heads",
                    c->variant->name, c->kv_heads);
    const struct config layer = config_of_layers(c, false);
    return config_check_state(c, features_count(&layer), e);
}

const struct part_numbers linear_numbers = {linear_choices, .size = NUMBERS_SIZE(struct linear),
                                            .check = linear_check, .usual = linear_usual};

int features_count(const struct config *c)
{
    return is_taylor(c)                  ? 1 + c->dh * (c->dh + 3) / 2
           : !is_random(c)               ? c->dh
           : both_signs(c) || is_trig(c) ? 2 * linear_of(c)->features
                                         : linear_of(c)->features;
}

/* Of directions: one for all heads, or each its own. */
static int sets(const struct config *c) { return linear_of(c)->apart ? c->H : 1; }

size_t features_floats(const struct config *c)
{
    return is_random(c) ? (size_t)(sets(c) * linear_of(c)->features) * (size_t)c->dh : 0;
}

/* ---- directions --------------------------------------------------------------------------- */

/* Make w orthogonal to the n rows before it, with length `length`. Twice, to remove what rounding
 * left. */
static void orthogonalize(float *w, int n, int dh, double length)
{
    for (int again = 0; again < 2; again++)
        for (int k = 1; k <= n; k++) {
            const float *other = w - (ptrdiff_t)k * dh;
            const double share = dot_in_order(w, other, dh) / dot_in_order(other, other, dh);
            for (int e = 0; e < dh; e++)
                w[e] = (float)((double)w[e] - share * (double)other[e]);
        }
    const double factor = length / sqrt(dot_in_order(w, w, dh));
    for (int e = 0; e < dh; e++)
        w[e] = (float)((double)w[e] * factor);
}

void features_draw(const struct config *c, float *directions)
{
    enum { SEED = 1 };
    const int dh = c->dh;

    rng_normal(directions, features_floats(c), SEED, rng_stream("features.directions"), 0, 1);
    for (int r = 0; r < sets(c) * linear_of(c)->features; r++) {
        float *const w = directions + (ptrdiff_t)r * dh;
        double square = 0; /* squared length of another Gaussian vector */
        for (int e = 0; e < dh; e++) {
            float x;
            const uint64_t stream = rng_stream("features.lengths") + (uint64_t)r * (uint64_t)dh;
            rng_normal(&x, 1, SEED, stream + (uint64_t)e, 0, 1);
            square += (double)x * (double)x;
        }
        orthogonalize(w, r % linear_of(c)->features % dh, dh, sqrt(square));
    }
}

/* w . x' - |x'|^2 / 2 = |w|^2 / 2 - |w - x'|^2 / 2 */
float features_top(const struct config *c, const float *directions)
{
    float top = 0;

    for (int r = 0; r < sets(c) * linear_of(c)->features; r++) {
        const float *const w = directions + (ptrdiff_t)r * c->dh;
        top = fmaxf(top, (float)(dot_in_order(w, w, c->dh) / 2));
    }
    return top;
}

/* ---- forward ----------------------------------------------------------------------------------
 */

static float input_scale(const struct config *c)
{
    return (float)pow(c->dh, -0.25);
} /* x' = this x */

/* f = beta f + sign x' w^T of rows of heads; each set of directions has its heads, which lie
 * between those of the other sets. */
static void product(const struct engine *g, const struct config *c, const struct directions *of,
                    float *f, const float *x, int rows, int half, float beta)
{
    const int n = sets(c), r = linear_of(c)->features, m = features_count(c);

    for (int h = 0; h < n; h++)
        mm(g, NT, rows / n, r, c->dh, half ? -input_scale(c) : input_scale(c),
           x + (ptrdiff_t)h * c->dh, (ptrdiff_t)n * c->dh, of->w + (ptrdiff_t)h * r * c->dh, c->dh,
           beta, f + (ptrdiff_t)h * m + (ptrdiff_t)half * r, (ptrdiff_t)n * m);
}

/* Fill rows of f with -|x'|^2 / 2 - top. */
static void begin(const struct engine *g, const struct config *c, const struct directions *of,
                  float *f, const float *x, int rows)
{
    const int m = features_count(c);
    const float half = input_scale(c) * input_scale(c) / 2;

#pragma omp parallel for num_threads(team_for(g->threads, (size_t)rows *(size_t)m))
    for (int i = 0; i < rows; i++) {
        const float *x_i = x + (ptrdiff_t)i * c->dh;
        float square = 0;
        for (int e = 0; e < c->dh; e++)
            square += x_i[e] * x_i[e];
        for (int r = 0; r < m; r++)
            f[(ptrdiff_t)i * m + r] = -half * square - of->top;
    }
}

/* Subtract each row's maximum. */
static void subtract_row_max(const struct engine *g, float *f, int rows, int m)
{
#pragma omp parallel for num_threads(team_for(g->threads, (size_t)rows *(size_t)m))
    for (int i = 0; i < rows; i++) {
        float *f_i = f + (ptrdiff_t)i * m, most = f_i[0];
        for (int r = 1; r < m; r++)
            most = f_i[r] > most ? f_i[r] : most;
        for (int r = 0; r < m; r++)
            f_i[r] -= most;
    }
}

static void scale(const struct engine *g, float *f, float factor, size_t n)
{
#pragma omp parallel for simd num_threads(team_for(g->threads, n))
    for (size_t i = 0; i < n; i++)
        f[i] *= factor;
}

/* Rows of f hold w . x' where the directions are. */
static void finish_trig(const struct engine *g, const struct config *c, float *f, const float *x,
                        int rows)
{
    const int n = linear_of(c)->features;
    const float half = input_scale(c) * input_scale(c) / 2, root = sqrtf((float)n);

#pragma omp parallel for num_threads(team_for(g->threads, (size_t)rows *(size_t)n))
    for (int i = 0; i < rows; i++) {
        const float *const x_i = x + (ptrdiff_t)i * c->dh;
        float *const f_i = f + (ptrdiff_t)i * 2 * n, square = 0;
        for (int e = 0; e < c->dh; e++)
            square += x_i[e] * x_i[e];
        const float factor = expf(half * square) / root;
        for (int r = 0; r < n; r++) {
            const float angle = f_i[r];
            f_i[r] = factor * sinf(angle);
            f_i[n + r] = factor * cosf(angle);
        }
    }
}

static void finish_relu(const struct engine *g, const struct config *c, float *f, size_t n)
{
    const float factor = 1 / sqrtf((float)linear_of(c)->features), least = linear_of(c)->least;

#pragma omp parallel for simd num_threads(team_for(g->threads, n))
    for (size_t i = 0; i < n; i++)
        f[i] = factor * (f[i] > 0 ? f[i] : 0) + least;
}

static void taylor_forward(const struct engine *g, const struct config *c, float *f, const float *x,
                           int rows)
{
    const int m = features_count(c);
    const float by = input_scale(c), root = sqrtf(0.5f);

#pragma omp parallel for num_threads(team_for(g->threads, (double)rows *m))
    for (int i = 0; i < rows; i++) {
        float *const f_i = f + (ptrdiff_t)i * m, *const own = f_i + 1, *pair = own + c->dh;
        f_i[0] = 1;
        for (int a = 0; a < c->dh; a++) {
            own[a] = by * x[(ptrdiff_t)i * c->dh + a];
            for (int b = 0; b < a; b++)
                *pair++ = own[a] * own[b];
            *pair++ = root * own[a] * own[a];
        }
    }
}

/* Those that are no exponentials. */
static void plain_forward(const struct engine *g, const struct config *c,
                          const struct directions *of, float *f, const float *x, int rows)
{
    product(g, c, of, f, x, rows, 0, 0);
    if (is_trig(c))
        finish_trig(g, c, f, x, rows);
    else
        finish_relu(g, c, f, (size_t)rows * (size_t)features_count(c));
}

void features_forward(const struct engine *g, const struct config *c, const struct directions *of,
                      float *f, const float *x, int rows, bool query)
{
    if (is_taylor(c)) {
        taylor_forward(g, c, f, x, rows);
        return;
    }
    if (is_random(c) && !is_exp(c)) {
        plain_forward(g, c, of, f, x, rows);
        return;
    }
    const float most = 40; /* e^40 is far below the largest float, also in products with keys */
    const int m = features_count(c);

    if (is_random(c)) {
        begin(g, c, of, f, x, rows);
        for (int half = 0; half <= both_signs(c); half++)
            product(g, c, of, f, x, rows, half, 1);
        if (query)
            subtract_row_max(g, f, rows, m);
    }
    linear_epilogue(g, (struct act){.kind = ACT_ELU1, .y = f}, is_random(c) ? f : x, rows, m);
    if (is_random(c) && !query)
        scale(g, f, expf(fminf(of->top, most)) / sqrtf((float)m), (size_t)rows * (size_t)m);
}

/* ---- backward ---------------------------------------------------------------------------------
 *
 * With t = d_f (.) f, and the sign of each half:
 *
 *   EXP, COSH   d_x' = sum_r +-t_r w_r - (sum_r t_r) x'
 *   TRIG        d_x' = sum_r (d_sin f_cos - d_cos f_sin) w_r + (sum_r t_r) x'
 *   RELU        d_x' = sum_r d_f / sqrt(m) w_r           where the feature is above its least
 *   TAYLOR      d_x'_a = d_f_a + sum_b d_f_ab x'_b       and sqrt(2) d_f_aa x'_a */

static void through_taylor(const struct engine *g, const struct config *c, float *d_x,
                           const float *d_f, const float *f, int rows)
{
    const int m = features_count(c), dh = c->dh;
    const float by = input_scale(c), root = sqrtf(2);

#pragma omp parallel for num_threads(team_for(g->threads, (double)rows *m))
    for (int i = 0; i < rows; i++) {
        const float *const own = f + (ptrdiff_t)i * m + 1, *const d = d_f + (ptrdiff_t)i * m + 1;
        const float *pair = d + dh;
        float *const to = d_x + (ptrdiff_t)i * dh;
        for (int a = 0; a < dh; a++) {
            to[a] = by * d[a];
            for (int b = 0; b < a; b++, pair++) {
                to[a] += by * *pair * own[b];
                to[b] += by * *pair * own[a];
            }
            to[a] += by * root * *pair++ * own[a];
        }
    }
}

/* d_f becomes t; d_x its part that does not involve the directions. */
static void through_exp(const struct engine *g, const struct config *c, float *d_x, float *d_f,
                        const float *f, const float *x, int rows)
{
    const int m = features_count(c);
    const float square = input_scale(c) * input_scale(c);

#pragma omp parallel for num_threads(team_for(g->threads, (size_t)rows *(size_t)m))
    for (int i = 0; i < rows; i++) {
        const ptrdiff_t at = (ptrdiff_t)i * m, from = (ptrdiff_t)i * c->dh;
        float sum = 0;
        for (int r = 0; r < m; r++) {
            d_f[at + r] *= f[at + r];
            sum += d_f[at + r];
        }
        for (int e = 0; e < c->dh; e++)
            d_x[from + e] = -square * sum * x[from + e];
    }
}

static void through_trig(const struct engine *g, const struct config *c, float *d_x, float *d_f,
                         const float *f, const float *x, int rows)
{
    const int n = linear_of(c)->features;
    const float square = input_scale(c) * input_scale(c);

#pragma omp parallel for num_threads(team_for(g->threads, (size_t)rows *(size_t)n))
    for (int i = 0; i < rows; i++) {
        const float *const f_i = f + (ptrdiff_t)i * 2 * n;
        float *const d_i = d_f + (ptrdiff_t)i * 2 * n, sum = 0;
        for (int r = 0; r < n; r++) {
            const float d_sin = d_i[r], d_cos = d_i[n + r];
            sum += d_sin * f_i[r] + d_cos * f_i[n + r];
            d_i[r] = d_sin * f_i[n + r] - d_cos * f_i[r];
        }
        for (int e = 0; e < c->dh; e++)
            d_x[(ptrdiff_t)i * c->dh + e] = square * sum * x[(ptrdiff_t)i * c->dh + e];
    }
}

static void through_relu(const struct engine *g, const struct config *c, float *d_x, float *d_f,
                         const float *f, int rows)
{
    const size_t n = (size_t)rows * (size_t)features_count(c);
    const float factor = 1 / sqrtf((float)linear_of(c)->features), least = linear_of(c)->least;

#pragma omp parallel for simd num_threads(team_for(g->threads, n))
    for (size_t i = 0; i < n; i++)
        d_f[i] = f[i] > least ? factor * d_f[i] : 0;
    memset(d_x, 0, (size_t)rows * (size_t)c->dh * sizeof(float));
}

void features_backward(const struct engine *g, const struct config *c, const struct directions *of,
                       float *d_x, float *d_f, const float *f, const float *x, int rows)
{
    if (is_taylor(c)) {
        through_taylor(g, c, d_x, d_f, f, rows);
        return;
    }
    if (!is_random(c)) {
        g->ops.act_grad(&(struct act_grad){.kind = ACT_ELU1,
                                           .d_x = d_x,
                                           .d_y = d_f,
                                           .x = x,
                                           .rows = rows,
                                           .n = c->dh,
                                           .threads = g->threads});
        return;
    }
    if (is_trig(c))
        through_trig(g, c, d_x, d_f, f, x, rows);
    else if (is_relu(c))
        through_relu(g, c, d_x, d_f, f, rows);
    else
        through_exp(g, c, d_x, d_f, f, x, rows);
    const int n = sets(c), r = linear_of(c)->features, m = features_count(c);
    for (int half = 0; half <= both_signs(c); half++)
        for (int h = 0; h < n; h++)
            mm(g, NN, rows / n, c->dh, r, half ? -input_scale(c) : input_scale(c),
               d_f + (ptrdiff_t)h * m + (ptrdiff_t)half * r, (ptrdiff_t)n * m,
               of->w + (ptrdiff_t)h * r * c->dh, c->dh, 1, d_x + (ptrdiff_t)h * c->dh,
               (ptrdiff_t)n * c->dh);
}
