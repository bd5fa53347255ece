/* SPDX-License-Identifier: MIT
 *
 * Preferred places (Yang et al. 2018, "Modeling Localness for Self-Attention Networks",
 * arXiv:1810.10182). For query i of a head:
 *
 *   y     = tanh(W q_i)
 *   P     = S sigma(u_p . y)
 *   D     = S sigma(u_d . y)
 *   s_ij -= (x_ij - P)^2 / (2 (D / 2)^2)
 *
 * relative: x is the distance and S a span of tokens, so that segments may be cut anywhere;
 * published: x is j and S the number of keys. */
#include "around.h"

enum { W, PLACE, WIDTH };

enum localness { LOCAL_NONE, LOCAL_RELATIVE, LOCAL_PUBLISHED };
struct local {
    enum localness form;
    float span; /* tokens, of LOCAL_RELATIVE */
};

static const struct local *local_of(const struct config *c)
{
    return config_numbers(c, SLOT_term_localness);
}

static bool is_local(const struct config *c) { return local_of(c)->form != LOCAL_NONE; }

static const char *const form_name[] = {"none", "relative", "published", NULL};

static const struct choice choices[] = {
    ROW_WORD(struct local, form, "gauss_form", form_name, "width and place of the bell",
             .absent = "none", .least = 1, .applies = is_local, SETTING),
    ROW_REAL(struct local, span, "gauss_span", 0, MAX_DISTANCE, "tokens, of the form relative",
             .absent = "0", .applies = is_local, SETTING),
    {0},
};

static const struct part_numbers numbers = {choices, PRESET(struct local, LOCAL_RELATIVE, 64)};

static bool counts_from_text(const struct config *c)
{
    return local_of(c)->form == LOCAL_PUBLISHED;
}

static void declare(const struct sublayer *s, const char *prefix, struct params *p)
{
    const int H = s->c->H, dh = s->c->dh;

    params_wide(
        p, params_add(p, INIT_LINEAR, 0, 3, (const int[]){H, dh, dh}, "%sattn.gauss.w", prefix));
    params_add(p, INIT_ZERO, 0, 2, (const int[]){H, dh}, "%sattn.gauss.up", prefix);
    params_add(p, INIT_ZERO, 0, 2, (const int[]){H, dh}, "%sattn.gauss.ud", prefix);
}

/* One head: its weights, and the query that is looked at. */
struct head {
    const struct attn *a;
    const float *W, *place, *width;
    int h;
    bool relative;
    double S;
};

static struct head head_of(const struct part_call *t, const struct attn *a, int h)
{
    const ptrdiff_t dh = a->dh;
    const struct local *const own = local_of(t->s->c);
    const bool relative = own->form == LOCAL_RELATIVE;

    return (struct head){.a = a,
                         .W = t->param[W].data + h * dh * dh,
                         .place = t->param[PLACE].data + h * dh,
                         .width = t->param[WIDTH].data + h * dh,
                         .h = h,
                         .relative = relative,
                         .S = relative ? (double)own->span : attn_keys(a)};
}

static ptrdiff_t query_at(const struct head *t, int b, int i)
{
    return b * t->a->q_at.batch + i * t->a->q_at.row + (ptrdiff_t)t->h * t->a->dh;
}

/* y_e of a query */
static double hidden(const struct head *t, const float *q, int e)
{
    const float *const w = t->W + (ptrdiff_t)e * t->a->dh;
    double sum = 0;

    for (int k = 0; k < t->a->dh; k++)
        sum += (double)w[k] * (double)q[k];
    return tanh(sum);
}

struct bell {
    double P, D;
};

static struct bell bell_of(const struct head *t, const float *q)
{
    double p = 0, z = 0;

    for (int e = 0; e < t->a->dh; e++) {
        const double y = hidden(t, q, e);
        p += (double)t->place[e] * y;
        z += (double)t->width[e] * y;
    }
    return (struct bell){t->S / (1 + exp(-p)), t->S / (1 + exp(-z))};
}

/* x_ij - P */
static double off(const struct head *t, struct bell at, int i, int j)
{
    return (t->relative ? attn_dist(t->a, i, j) : j) - at.P;
}

static void add(const struct part_call *t, const struct attn *a, struct seq_rows rows)
{
#pragma omp parallel for num_threads(t->g->threads)
    for (int row = 0; row < a->B * a->H * a->L; row++) {
        const int i = row % a->L, b = row / a->L / a->H;
        const struct head head = head_of(t, a, row / a->L % a->H);
        const struct bell at = bell_of(&head, a->q + query_at(&head, b, i));
        for (int j = 0; j < t->n.all; j++) {
            const double x = off(&head, at, i, j) / at.D;
            t->add[(ptrdiff_t)row * t->n.all + j] = (float)(-2 * x * x);
        }
    }
}

/* ---- backward ----------------------------------------------------------------------------- */

/* Then through the logistic functions:
 *   dP = sum_j G (x - P) 4/D^2
 *   dD = sum_j G (x - P)^2 4/D^3 */
static struct bell bell_grad(const struct head *t, struct bell at, int i, const float *G, int all)
{
    struct bell d = {0, 0};

    for (int j = 0; j < all; j++) {
        const double x = off(t, at, i, j) / at.D;
        d.P += (double)G[j] * x;
        d.D += (double)G[j] * x * x;
    }
    d.P *= 4 / at.D * at.P * (1 - at.P / t->S);
    d.D *= 4 / at.D * at.D * (1 - at.D / t->S);
    return d;
}

static void query_grad(const struct param *p, const struct head *t, const float *q, struct bell d,
                       float *d_q)
{
    const ptrdiff_t dh = t->a->dh, of_head = t->h * dh;
    float *const d_W = p[W].grad + of_head * dh;
    float *const d_place = p[PLACE].grad + of_head;
    float *const d_width = p[WIDTH].grad + of_head;

    for (int e = 0; e < dh; e++) {
        const double y = hidden(t, q, e);
        const double d_y = d.P * (double)t->place[e] + d.D * (double)t->width[e];
        const float d_sum = (float)(d_y * (1 - y * y));
        d_place[e] += (float)(d.P * y);
        d_width[e] += (float)(d.D * y);
        for (int k = 0; k < dh; k++) {
            d_W[e * dh + k] += d_sum * q[k];
            d_q[k] += d_sum * t->W[e * dh + k];
        }
    }
}

static void add_grad(const struct part_call *t, const struct attn *a, const struct attn_grad *d)
{
    const int all = t->n.all;

#pragma omp parallel for num_threads(t->g->threads)
    for (int h = 0; h < a->H; h++) {
        const struct head head = head_of(t, a, h);
        for (int row = 0; row < a->B * a->L; row++) {
            const int b = row / a->L, i = row % a->L;
            const ptrdiff_t at = query_at(&head, b, i);
            const float *const G = d->d_add + (((ptrdiff_t)b * a->H + h) * a->L + i) * all;
            const struct bell bell = bell_of(&head, a->q + at);
            query_grad(t->param, &head, a->q + at, bell_grad(&head, bell, i, G, all), d->d_q + at);
        }
    }
}

static double flop(const struct part_cost *t)
{
    return t->a->B * (3 * around_pairs(t->a) + 2.0 * t->a->H * t->a->L * t->a->dh * (t->a->dh + 2));
}

const struct around_part term_localness = {
    .said = "preferred places",
    .numbers = &numbers,
    /* with a memory it is not known where the text begins */
    .special = {"counted from the text's beginning", counts_from_text, EXCLUDES(HAS_MEMORY)},
    .params = declare,
    .flop = flop,
    .term = {.added = ADDS_TO_PAIRS, .add = add, .add_grad = add_grad},
};
