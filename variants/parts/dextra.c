/* SPDX-License-Identifier: MIT
 *
 * DExTra, forward and backward. A group linear transform is one product per group and operand: [x,
 * y] is never concatenated, the matrix is read in two pieces of columns. It is followed by the
 * bias, the shuffle (element q of group p moves to q * groups + p), the norm of each new group, and
 * the activation. The stages are computed in dextra_stages.c.
 *
 * It is no list of steps: 30 transforms of up to four steps each are more than a list has room
 * for, and it is a part of attention, which has no list. */
#include "dextra.h"
#include "linear.h"
#include "norm.h"
#include "parts.h"

static int dextra_width(const struct config *c) { return c->H * c->dh; }

static void dextra_params(const struct config *c, int nth, const char *prefix, struct params *p)
{
    const struct stages s = dextra_stages(c, nth);

    for (int i = 0; i < s.n; i++) {
        const struct stage *t = &s.at[i];
        const int g = t->groups, in = t->a + t->b, n = t->out / g;
        const bool glt = strncmp(t->name, "glt", 3) == 0;
        const int shape[] = {g, n, in / g}; /* the maps before and after the groups are plain
                                             * matrices */
        params_add(p, INIT_LINEAR, 0, glt ? 3 : 2, glt ? shape : shape + 1, "%sdextra.%s.weight",
                   prefix, t->name);
        params_add(p, INIT_ZERO, 0, 1, &t->out, "%sdextra.%s.bias", prefix, t->name);
        if (!t->norm)
            continue;
        params_add(p, INIT_ONE, 0, 1, &n, "%sdextra.%s.ln.weight", prefix, t->name);
        params_add(p, INIT_ZERO, 0, 1, &n, "%sdextra.%s.ln.bias", prefix, t->name);
    }
}

static double dextra_flop(const struct config *c, int nth, int rows)
{
    const struct stages s = dextra_stages(c, nth);
    double flop = 0;

    for (int i = 0; i < s.n; i++)
        flop += 2.0 * rows * (s.at[i].a + s.at[i].b) * s.at[i].out / s.at[i].groups;
    return flop;
}

/* ---- work space --------------------------------------------------------------------------- */

/* Results of a stage, all [rows,out]: the sum after its shuffle, its norm, the activation of that.
 * A step that is absent shares the array of the step before it. */
struct result {
    float *sum, *normed, *y;
};

static float *take(float **at, size_t n)
{
    float *const from = *at;

    *at += n;
    return from;
}

/* Lay out `work`; returns its end. The last y is at its beginning. */
static float *lay_out(const struct stages *s, int rows, float *work, struct result result[])
{
    float *at = work + (size_t)rows * (size_t)s->at[s->n - 1].out;

    for (int i = 0; i < s->n; i++) {
        const struct stage *t = &s->at[i];
        const size_t n = (size_t)rows * (size_t)t->out;
        result[i].y = i == s->n - 1 ? work : take(&at, n);
        result[i].normed = t->act ? take(&at, n) : result[i].y;
        result[i].sum = t->norm ? take(&at, n) : result[i].normed;
    }
    return at;
}

static size_t widest(const struct stages *s)
{
    int most = 0;

    for (int i = 0; i < s->n; i++)
        most = max_int(most, max_int(s->at[i].out, s->at[i].b));
    return (size_t)most;
}

static size_t dextra_work(const struct config *c, int nth, int rows)
{
    const struct stages s = dextra_stages(c, nth);
    size_t n = (size_t)s.at[s.n - 1].out;

    for (int i = 0; i < s.n; i++) {
        const struct stage *t = &s.at[i];
        n += (size_t)t->out * ((i < s.n - 1) + (size_t)t->act + (size_t)t->norm);
    }
    return (size_t)rows * (n + widest(&s)); /* widest: before a shuffle */
}

/* Two alternating gradients, one before a shuffle, that of the first stage, statistics of norms. */
static size_t dextra_work_grad(const struct config *c, int nth, int rows)
{
    const struct stages s = dextra_stages(c, nth);
    int groups = 1;

    for (int i = 0; i < s.n; i++)
        groups = max_int(groups, s.at[i].groups);
    return (size_t)rows * (3 * widest(&s) + (size_t)s.at[0].out + NORM_STATS * (size_t)groups);
}

/* ---- one stage ---------------------------------------------------------------------------- */

/* Move element q of group p of every row to q * groups + p, or back. */
static void shuffle(float *y, const float *x, int rows, int n, int groups, bool back, int threads)
{
    const int each = n / groups;

#pragma omp parallel for num_threads(team_for(threads, (size_t)rows *(size_t)n))
    for (int row = 0; row < rows; row++) {
        const float *from = x + (size_t)row * (size_t)n;
        float *to = y + (size_t)row * (size_t)n;
        for (int p = 0; p < groups; p++)
            for (int q = 0; q < each; q++)
                if (back)
                    to[p * each + q] = from[q * groups + p];
                else
                    to[q * groups + p] = from[p * each + q];
    }
}

/* An operand of a stage: its rows x [rows,width] and its first column in the matrix. */
struct operand {
    const float *x;
    float *d_x;
    int width, column;
    float beta; /* factor of the old d_x */
};

/* z [rows,out] = (z +) the product of each group's part of one operand with its columns. */
static void product(const struct engine *g, const struct stage *t, const struct param *w, float *z,
                    struct operand in, int rows)
{
    const int groups = t->groups, n = t->out / groups, k = in.width / groups;
    const ptrdiff_t ld = (t->a + t->b) / groups;

    for (int p = 0; p < groups; p++)
        mm(g, NT, rows, n, k, 1, in.x + p * k, in.width, w->data + p * n * ld + in.column, ld,
           in.column ? 1 : 0, z + p * n, t->out);
}

/* From d_z [rows,out]: adds to the matrix's gradient and computes in.d_x. */
static void product_backward(const struct engine *g, const struct stage *t, const struct param *w,
                             const float *d_z, struct operand in, int rows)
{
    const int groups = t->groups, n = t->out / groups, k = in.width / groups;
    const ptrdiff_t ld = (t->a + t->b) / groups;

    for (int p = 0; p < groups; p++) {
        const ptrdiff_t at = p * n * ld + in.column;
        mm(g, TN, n, k, rows, 1, d_z + p * n, t->out, in.x + p * k, in.width, 1, w->grad + at, ld);
        mm(g, NN, rows, k, n, 1, d_z + p * n, t->out, w->data + at, ld, in.beta, in.d_x + p * k,
           in.width);
    }
}

/* Everything after the product z, which may alias result.sum. */
static void finish(const struct engine *g, const struct config *c, const struct stage *t,
                   const struct param *w, float *z, struct result result, int rows)
{
    linear_epilogue(g, (struct act){.y = z, .bias = w[1].data}, z, rows, t->out);
    if (t->shuffle)
        shuffle(result.sum, z, rows, t->out, t->groups, false, g->threads);
    if (t->norm)
        layer_norm(g, &w[2], result.normed, result.sum, rows * t->groups, t->out / t->groups,
                   c->ln_eps);
    if (t->act)
        linear_epilogue(g, (struct act){.kind = dextra_act(c), .y = result.y}, result.normed, rows,
                        t->out);
}

/* From d_y, in place, to the gradient of the product: d_y or, with a shuffle, d_z. */
static float *finish_backward(const struct engine *g, const struct config *c, const struct stage *t,
                              const struct param *w, float *d_y, float *d_z, struct result result,
                              float *stats, int rows)
{
    if (t->act)
        g->ops.act_grad(&(struct act_grad){.kind = dextra_act(c),
                                           .d_x = d_y,
                                           .d_y = d_y,
                                           .x = result.normed,
                                           .rows = rows,
                                           .n = t->out,
                                           .threads = g->threads});
    if (t->norm)
        layer_norm_grad(g, &w[2], d_y, d_y, result.sum, stats, rows * t->groups, t->out / t->groups,
                        c->ln_eps);
    if (t->shuffle)
        shuffle(d_z, d_y, rows, t->out, t->groups, true, g->threads);
    else
        d_z = d_y;
    linear_bias_grad(g, &w[1], d_z, rows);
    return d_z;
}

/* ---- the map ------------------------------------------------------------------------------ */

static void dextra_forward(const struct engine *g, const struct config *c, int nth,
                           const struct param *w, const float *x, int rows, float *work)
{
    const struct stages s = dextra_stages(c, nth);
    struct result result[ARRAY_LEN(s.at)] = {0};
    float *const unshuffled = lay_out(&s, rows, work, result);

    for (int i = 0; i < s.n; i++) {
        const struct stage *t = &s.at[i];
        const struct param *own = w + t->param;
        float *const z = t->shuffle ? unshuffled : result[i].sum;
        product(g, t, own, z, (struct operand){.x = t->reads_x ? x : result[0].y, .width = t->a},
                rows);
        if (t->b)
            product(
                g, t, own, z,
                (struct operand){.x = result[i - 1].y, .width = t->b, .column = t->a / t->groups},
                rows);
        finish(g, c, t, own, z, result[i], rows);
    }
}

static void dextra_backward(const struct engine *g, const struct config *c, int nth,
                            const struct param *w, float *d_x, float *d_y, const float *x, int rows,
                            const float *work, float *grad_work)
{
    const struct stages s = dextra_stages(c, nth);
    struct result result[ARRAY_LEN(s.at)];
    const size_t n = (size_t)rows * widest(&s), n_first = (size_t)rows * (size_t)s.at[0].out;
    float *const turn[2] = {grad_work, grad_work + n}, *const d_unshuffled = grad_work + 2 * n;
    float *const d_first = grad_work + 3 * n, *const stats = d_first + n_first;

    lay_out(&s, rows, (float *)work, result);
    memset(d_x, 0, sizeof(float) * (size_t)rows * (size_t)c->D);
    memset(d_first, 0, sizeof(float) * n_first);
    for (int i = s.n - 1; i >= 0; i--) {
        const struct stage *t = &s.at[i];
        const struct param *own = w + t->param;
        const float *d_z = finish_backward(g, c, t, own, d_y, d_unshuffled, result[i], stats, rows);
        const struct operand a = {.x = t->reads_x ? x : result[0].y,
                                  .d_x = t->reads_x ? d_x : d_first,
                                  .width = t->a,
                                  .beta = 1};
        product_backward(g, t, own, d_z, a, rows);
        if (t->b) {
            const struct operand b = {.x = result[i - 1].y,
                                      .d_x = turn[i % 2],
                                      .width = t->b,
                                      .column = t->a / t->groups};
            product_backward(g, t, own, d_z, b, rows);
        }
        d_y = t->b ? turn[i % 2] : d_first; /* without b, the stage before it is the first */
    }
}

const struct qkv_map qkv_map_dextra = {
    .name = "dextra",
    .numbers = &dextra_numbers,
    .width = dextra_width,
    .params = dextra_params,
    .flop = dextra_flop,
    .work = dextra_work,
    .work_grad = dextra_work_grad,
    .forward = dextra_forward,
    .backward = dextra_backward,
};
