/* SPDX-License-Identifier: MIT
 *
 * The trained mask of mask attention networks (Fan et al. 2021, arXiv:2103.13597):
 *
 *   t_ij  = w . x_i + d[dist] + u of the head
 *   m_ij  = sigma(t_ij)
 *   p_ij  ~ m_ij e^(s_ij)
 *   s_ij += log m_ij
 *
 * The last two say the same. x_i is the row that query i is projected from; distances beyond `clip`
 * share a row, on either side. */
#include "sublayer_attention.h"

enum { OF_ROW, OF_DISTANCE, OF_HEAD };
enum { D_ROW, D_HEAD_ROW }; /* of backward: [B,L] [B,H,L] factors of the gradients of rows */

static void declare(const struct sublayer *s, const char *prefix, struct params *p)
{
    params_vector(p, INIT_ZERO, 0, attention_width(s->c), prefix, "attn.dman.w");
    params_vector(p, INIT_ZERO, 0, 2 * s->c->clip + 1, prefix, "attn.dman.p");
    params_vector(p, INIT_ZERO, 0, s->c->H, prefix, "attn.dman.u");
}

static void arrays(const struct sublayer *s, struct around_call n, size_t floats[AROUND_ARRAYS])
{
    if (!n.backward)
        return;
    floats[D_ROW] = (size_t)n.B * (size_t)n.L;
    floats[D_HEAD_ROW] = floats[D_ROW] * (size_t)s->c->H;
}

static double of_distance(const struct part_call *t, int dist)
{
    const int clip = t->s->c->clip;

    return (double)t->param[OF_DISTANCE].data[clip + clamp_int(dist, -clip, clip)];
}

/* The keys at distances -clip to clip of query i: all others have the value of the nearest of them.
 */
static struct range near_keys(const struct sublayer *s, const struct attn *a, int i)
{
    const int K = attn_keys(a), clip = s->c->clip, own = attn_dist(a, i, 0);

    if (a->q_step) /* distances in steps */
        return (struct range){0, K};
    const int from = clamp_int(own - clip, 0, K - 1);
    return (struct range){from, clamp_int(own + clip, from, K - 1) + 1};
}

/* The values at both ends of x [from, to) in all places before and after it. */
static void extend(float *x, struct range r, int n)
{
    for (int j = 0; j < r.from; j++)
        x[j] = x[r.from];
    for (int j = r.to; j < n; j++)
        x[j] = x[r.to - 1];
}

/* log sigma(t): t is rounded to a float before, an error of |t| 2^-24 at most, which the slope, at
 * most 1, does not enlarge; that of the operation is in harness/check/op_act.c. */
static void add(const struct part_call *t, const struct attn *a, struct seq_rows x)
{
    const struct param *const W = &t->param[OF_ROW];
    const int in = W->shape[0], all = t->n.all;

#pragma omp parallel for num_threads(t->g->threads)
    for (int row = 0; row < a->B * a->L; row++) {
        const int b = row / a->L, i = row % a->L;
        const struct range near = near_keys(t->s, a, i);
        const float *const x_i = x.at + b * x.stride + (ptrdiff_t)i * in;
        double of_row = 0;
        for (int e = 0; e < in; e++)
            of_row += (double)W->data[e] * (double)x_i[e];
        for (int h = 0; h < a->H; h++) {
            const double own = of_row + (double)t->param[OF_HEAD].data[h];
            float *const to = t->add + (((ptrdiff_t)b * a->H + h) * a->L + i) * all;
            for (int j = near.from; j < near.to; j++)
                to[j] = (float)(own + of_distance(t, attn_dist(a, i, j)));
            t->g->ops.act(&(struct act){.kind = ACT_LOG_SIGMOID,
                                        .y = to + near.from,
                                        .x = to + near.from,
                                        .rows = 1,
                                        .n = near.to - near.from,
                                        .threads = 1});
            extend(to, near, all);
        }
    }
}

/* ---- backward ----------------------------------------------------------------------------- */

/* The keys of query i in row r of the table of distances. */
static struct range keys_of(const struct sublayer *s, const struct attn *a, int i, int r)
{
    const int clip = s->c->clip, K = attn_keys(a), j = attn_dist(a, i, 0) - (r - clip);
    const int from = r == 2 * clip ? 0 : j, to = r == 0 ? K : j + 1;

    return (struct range){clamp_int(from, 0, K), clamp_int(to, 0, K)};
}

static double sum_of(const float *d, struct range r)
{
    double sum = 0;

    for (int j = r.from; j < r.to; j++)
        sum += (double)d[j];
    return sum;
}

/* dt = G in place becomes dt (.) y with y = 1 - e^add, of a query's n keys. Returns its sum.
 * Without sinks G sums to 0, so that any number c gives it as the sum of G (y - c): a c in the
 * middle of y leaves of G's own rounding the least. */
static double pass_back(float *dt, const float *add, struct range near, int n, bool sinks)
{
    double all = 0, with_y = 0, sizes = 0, sizes_with_y = 0;

    for (int j = near.from; j < near.to; j++) {
        const double y = -expm1((double)add[j]);
        const int from = j == near.from ? 0 : j, to = j == near.to - 1 ? n : j + 1;
        double sum = 0, size = 0;
        for (int k = from; k < to; k++) {
            sum += (double)dt[k];
            size += fabs((double)dt[k]);
            dt[k] *= (float)y;
        }
        all += sum;
        with_y += y * sum;
        sizes += size;
        sizes_with_y += y * size;
    }
    return sinks || sizes == 0 ? with_y : with_y - sizes_with_y / sizes * all;
}

/* dt = G (1 - m) in place of d_add, 1 - m = 1 - e^add; each sum by one thread. */
static void add_grad(const struct part_call *t, const struct attn *a, const struct attn_grad *d)
{
    const struct sublayer *const s = t->s;
    float *const d_row = t->d_at[D_ROW], *const d_head_row = t->d_at[D_HEAD_ROW];
    float *const dt = d->d_add;
    const ptrdiff_t rows = (ptrdiff_t)a->B * a->H * a->L, all = t->n.all;
    float *const d_head = t->param[OF_HEAD].grad, *const d_distance = t->param[OF_DISTANCE].grad;

#pragma omp parallel for num_threads(t->g->threads)
    for (ptrdiff_t x = 0; x < rows; x++)
        d_head_row[x] = (float)pass_back(dt + x * all, t->add + x * all,
                                         near_keys(s, a, (int)(x % a->L)), t->n.all, a->sinks > 0);
#pragma omp parallel for num_threads(t->g->threads)
    for (int x = 0; x < a->B * a->L; x++) {
        double sum = 0;
        for (int h = 0; h < a->H; h++)
            sum += (double)d_head_row[((ptrdiff_t)(x / a->L) * a->H + h) * a->L + x % a->L];
        d_row[x] = (float)sum;
    }
#pragma omp parallel for num_threads(t->g->threads)
    for (int h = 0; h < a->H; h++) {
        double sum = 0;
        for (ptrdiff_t x = 0; x < (ptrdiff_t)a->B * a->L; x++)
            sum += (double)d_head_row[(x / a->L * a->H + h) * a->L + x % a->L];
        d_head[h] += (float)sum;
    }
#pragma omp parallel for num_threads(t->g->threads)
    for (int r = 0; r < 2 * s->c->clip + 1; r++) {
        double sum = 0;
        for (ptrdiff_t x = 0; x < rows; x++)
            sum += sum_of(dt + x * all, keys_of(s, a, (int)(x % a->L), r));
        d_distance[r] += (float)sum;
    }
}

static void input_grad(const struct part_call *t, struct sublayer_input from, float *d_in, int skip)
{
    struct param row = t->param[OF_ROW]; /* a map to one number */

    row.rank = 2;
    row.shape[1] = row.shape[0];
    row.shape[0] = 1;
    project_map_grad(t->g, &row, NULL, t->d_at[D_ROW], from, t->n.K - t->n.L, d_in, skip, 1);
}

static double flop(const struct part_cost *t)
{
    return t->a->B * (3 * around_pairs(t->a) + 2.0 * t->a->L * attention_width(t->s->c));
}

const struct around_part term_man = {
    .said = "trained masks",
    .numbers = AROUND_SWITCH("dman", NULL, .absent = "0"),
    .form = "dman",
    .clips = true,
    .params = declare,
    .arrays = arrays,
    .flop = flop,
    .term = {.added = ADDS_TO_PAIRS, .add = add, .add_grad = add_grad, .input_grad = input_grad},
};
