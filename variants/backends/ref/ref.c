/* SPDX-License-Identifier: MIT
 *
 * The reference that all other backends are checked against: products and attention (row operations
 * are in rows.c). Written as the equations, with double accumulators. Each number is summed by one
 * thread in one order, so results do not depend on the number of threads. */
#include "ref.h"
#include "variants/backends/recur.h"

/* ---- dense products ----------------------------------------------------------------------- */

double ref_dot(const double *x, const float *y, int n)
{
    double sum = 0;

#pragma omp simd reduction(+ : sum)
    for (int e = 0; e < n; e++)
        sum += x[e] * (double)y[e];
    return sum;
}

static double dot_wide(const double *x, const double *y, int n)
{
    double sum = 0;

#pragma omp simd reduction(+ : sum)
    for (int e = 0; e < n; e++)
        sum += x[e] * y[e];
    return sum;
}

void ref_add(double *sum, double x, const float *y, int n)
{
#pragma omp simd
    for (int e = 0; e < n; e++)
        sum[e] += x * (double)y[e];
}

/* What one thread computes at a time: a block of rows and columns, from so many products. */
enum { GEMM_ROWS = 4, GEMM_COLUMNS = 64, GEMM_PRODUCTS = 256 };
struct block {
    int i0, rows, j0, columns;
    double row[GEMM_ROWS][GEMM_PRODUCTS]; /* of op(a) */
    double sum[GEMM_ROWS][GEMM_COLUMNS];
};

/* Column j of sum += the products of all rows with y: four times ref_dot. */
static void dot_rows(struct block *x, int j, const float *y, int n)
{
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;

#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (int e = 0; e < n; e++) {
        const double wide = (double)y[e];
        s0 += x->row[0][e] * wide;
        s1 += x->row[1][e] * wide;
        s2 += x->row[2][e] * wide;
        s3 += x->row[3][e] * wide;
    }
    x->sum[0][j] += s0;
    x->sum[1][j] += s1;
    x->sum[2][j] += s2;
    x->sum[3][j] += s3;
}

/* Numbers [p0, p0+n) of row j of op(b), b transposed; `to` has room for those of another type. */
static const float *row_of_b(float *to, const struct gemm *g, int j, int p0, int n)
{
    if (g->elem == ELEM_F32 && !g->rounds)
        return g->b + j * g->ldb + p0;
    if (g->rounds) {
        memcpy(to, g->b + j * g->ldb + p0, sizeof(*to) * (size_t)n);
        bf16_round(to, (size_t)n);
        return to;
    }
    elem_widen(g->elem, to, (const char *)g->b_narrow + (size_t)j * elem_row_bytes(g->elem, g->k),
               p0, n);
    return to;
}

/* sum += the products [p0, p0+n) of rows that are rounded to q8: those of a block are integers, whose
 * sum times both scales is added. p0 begins a block. */
static void add_quantised(struct block *x, const struct gemm *g, int p0, int n)
{
    struct q8_block rows[GEMM_ROWS][GEMM_PRODUCTS / Q8_BLOCK];

    CHECK(elem_in_blocks(g->elem) && g->tb && !g->ta);
    for (int i = 0; i < x->rows; i++)
        q8_round_row(rows[i], g->a + (x->i0 + i) * g->lda + p0, n);
    for (int j = 0; j < x->columns; j++) {
        const char *const row =
            (const char *)g->b_narrow + (size_t)(x->j0 + j) * elem_row_bytes(g->elem, g->k);
        for (int p = 0; p < n; p += Q8_BLOCK) {
            struct q8_block b;
            elem_block(g->elem, &b, row, (p0 + p) / Q8_BLOCK);
            const double shift = (double)elem_shift(g->elem, row, (p0 + p) / Q8_BLOCK);
            for (int i = 0; i < x->rows; i++) {
                const struct q8_block *const a = &rows[i][p / Q8_BLOCK];
                int sum = 0, all = 0;
                for (int e = 0; e < Q8_BLOCK; e++) {
                    sum += a->q[e] * b.q[e];
                    all += a->q[e];
                }
                x->sum[i][j] += (double)a->scale * ((double)b.scale * sum + shift * all);
            }
        }
    }
}

/* sum += the products [p0, p0+n). */
static void add_products(struct block *x, const struct gemm *g, int p0, int n)
{
    const ptrdiff_t row = g->ta ? 1 : g->lda, step = g->ta ? g->lda : 1;
    float widened[GEMM_PRODUCTS], rounded_row[GEMM_COLUMNS];

    CHECK(g->elem == ELEM_F32 || (g->tb && !g->ta));
    for (int i = 0; i < x->rows; i++)
        for (int p = 0; p < n; p++) {
            const float a = g->a[(x->i0 + i) * row + (p0 + p) * step];
            x->row[i][p] = (double)(g->elem == ELEM_BF16 || g->rounds ? bf16_float(bf16_of(a)) : a);
        }
    for (int j = 0; g->tb && j < x->columns; j++) {
        const float *const b = row_of_b(widened, g, x->j0 + j, p0, n);
        if (x->rows == GEMM_ROWS)
            dot_rows(x, j, b, n);
        for (int i = 0; x->rows < GEMM_ROWS && i < x->rows; i++)
            x->sum[i][j] += ref_dot(x->row[i], b, n);
    }
    for (int p = 0; !g->tb && p < n; p++) {
        const float *b = g->b + (p0 + p) * g->ldb + x->j0;
        if (g->rounds) {
            memcpy(rounded_row, b, sizeof(*b) * (size_t)x->columns);
            bf16_round(rounded_row, (size_t)x->columns);
            b = rounded_row;
        }
        for (int i = 0; i < x->rows; i++)
            ref_add(x->sum[i], x->row[i][p], b, x->columns);
    }
}

/* c[i][j] = alpha * sum_p op(a)[i][p] op(b)[p][j] + beta * c[i][j] */
static void gemm_ref(const struct gemm *g)
{
#pragma omp parallel for num_threads(g->threads) collapse(2)
    for (int i0 = 0; i0 < g->m; i0 += GEMM_ROWS)
        for (int j0 = 0; j0 < g->n; j0 += GEMM_COLUMNS) {
            struct block x = {.i0 = i0,
                              .rows = min_int(GEMM_ROWS, g->m - i0),
                              .j0 = j0,
                              .columns = min_int(GEMM_COLUMNS, g->n - j0)};
            for (int p = 0; p < g->k; p += GEMM_PRODUCTS)
                (g->quantises ? add_quantised : add_products)(&x, g, p,
                                                              min_int(GEMM_PRODUCTS, g->k - p));
            for (int i = 0; i < x.rows; i++)
                for (int j = 0; j < x.columns; j++) {
                    float *c = g->c + (i0 + i) * g->ldc + j0 + j;
                    const double sum = (double)g->alpha * x.sum[i][j];
                    *c = (float)(g->beta == 0 ? sum : sum + (double)g->beta * (double)*c);
                }
        }
}

/* ---- attention ---------------------------------------------------------------------------- */

/* Is there a row of slopes? */
static bool has_slope(const struct attn *a) { return a->soft_cap != 0 || a->weigh; }

struct ref_row ref_row_at(const struct attn *a, int h, double *at)
{
    const bool mixes = attn_mixes(a), slopes = has_slope(a);
    const ptrdiff_t n = (mixes ? a->H : 1) * ref_ld(a);
    double *const rest = at + (mixes ? 3 : 1) * n;

    return (struct ref_row){.h = h,
                            .heads = mixes ? a->H : 1,
                            .s = at,
                            .p = at + mixes * n,
                            .w = at + 2 * mixes * n,
                            .slope = slopes ? rest : NULL,
                            .wide = slopes ? rest + n : rest};
}

size_t ref_row_doubles(const struct attn *a)
{
    const size_t n = (attn_mixes(a) ? (size_t)a->H : 1) * (size_t)ref_ld(a);

    return ((attn_mixes(a) ? 3 : 1) + has_slope(a)) * n +
           REF_OPERANDS * (size_t)max_int(a->dh, attn_dv(a));
}

bool ref_next(const struct attn *a, int h, int heads, int i, struct range *r)
{
    const int K = attn_keys(a);
    const bool over = r->from >= K; /* the sinks came last */

    if (r->to < K && attn_next_keys(a, h, heads, i, r))
        return true;
    *r = (struct range){K, K + a->sinks};
    return !over && a->sinks > 0;
}

/* x as a float, in bf16. */
static double rounded(double x) { return (double)bf16_float(bf16_of((float)x)); }

/* q + u and q + w of head h. */
static void widen_query(const struct attn *a, int b, int h, int i, double *q_u, double *q_w)
{
    const ptrdiff_t he = (ptrdiff_t)h * a->dh;
    const float *q = a->q + b * a->q_at.batch + i * a->q_at.row + he;

    for (int e = 0; e < a->dh; e++)
        q_u[e] = (double)q[e] + (a->u ? (double)a->u[he + e] : 0);
    for (int e = 0; a->rel_k && e < a->dh; e++)
        q_w[e] = (double)q[e] + (a->w ? (double)a->w[he + e] : 0);
    for (int e = 0; a->bf16 && e < a->dh; e++) {
        q_u[e] = rounded(q_u[e]);
        q_w[e] = a->rel_k ? rounded(q_w[e]) : 0;
    }
}

/* cap(y) and, unless `slope` is NULL, its derivative. */
static double capped(const struct attn *a, double y, double *slope)
{
    const double t = tanh(y / (double)a->soft_cap);

    if (slope)
        *slope = 1 - t * t;
    return (double)a->soft_cap * t;
}

/* Key j of a key head, if it is floats, else NULL; as doubles in `to` where that is needed. */
static const float *wide_key(const struct attn *a, int b, int kv, int j, double *to)
{
    const ptrdiff_t row = b * a->k_at.batch + j * a->k_at.row;
    const ptrdiff_t at = row + (ptrdiff_t)kv * a->dh;
    const uint32_t *const head = a->k_q8 ? a->k_q8 + row + kv * q8_head_words(a->dh) : NULL;

    CHECK(head || a->k_bf16 || a->k);
    for (int e = 0; (a->rel_q || !a->k) && e < a->dh; e++)
        to[e] = (double)(head        ? q8_head_number(head, e)
                         : a->k_bf16 ? bf16_float(a->k_bf16[at + e])
                                     : a->k[at + e]);
    return a->k ? a->k + at : NULL;
}

/* The scores s of head h and the keys of `r`, and their cap'. */
static void scores(const struct attn *a, int b, int h, int i, struct range r, double *wide,
                   double *s, double *slope)
{
    const int kv = h / (a->H / a->Hkv);
    const double *q_u = wide, *q_w = wide + a->dh;
    double *k_wide = wide + 2 * (ptrdiff_t)a->dh;
    const double *fade = a->fade.at ? a->fade.at + attn_fade_at(a, b, h) : NULL;

    for (int j = r.from; j < r.to; j++) {
        const int row = attn_table_row(a, i, j);
        const ptrdiff_t table = h * a->rel_head + (ptrdiff_t)row * a->dh;
        double x = 0;
        if (!a->no_content) {
            const float *const k = wide_key(a, b, kv, j, k_wide);
            x = k ? ref_dot(q_u, k, a->dh) : dot_wide(q_u, k_wide, a->dh);
            if (a->rel_k)
                x += ref_dot(q_w, a->rel_k + table, a->dh);
            if (a->rel_q)
                x += ref_dot(k_wide, a->rel_q + table, a->dh);
        }
        x *= (double)a->scale;
        if (a->soft_cap != 0)
            x = capped(a, x, slope + j);
        x += a->bias ? (double)a->bias[h * a->bias_head + row] : 0;
        if (fade)
            x += fade[a->M + i] - fade[j];
        s[j] = a->add.at ? x + (double)a->add.at[attn_dense_at(&a->add, b, h, i) + j] : x;
    }
}

static double sink_score(const struct attn *a, int b, int h, int i, int n)
{
    const float *q = a->q + b * a->q_at.batch + i * a->q_at.row + (ptrdiff_t)h * a->dh;
    const float *u = a->u ? a->u + (ptrdiff_t)h * a->dh : NULL;
    const ptrdiff_t sink = (ptrdiff_t)h * a->sinks + n;
    double x = 0;

    for (int e = 0; a->sink_k && e < a->dh; e++) {
        const double q_u = (double)q[e] + (u ? (double)u[e] : 0);
        x += (a->bf16 ? rounded(q_u) : q_u) * (double)a->sink_k[sink * a->dh + e];
    }
    return (double)a->scale * x + (a->sink_logit ? (double)a->sink_logit[sink] : 0);
}

static void fill(double *x, int n, double value)
{
    for (int j = 0; j < n; j++)
        x[j] = value;
}

/* The input of head h's softmax, in p: gain * scores where visible, 0 elsewhere or -inf as `weigh`
 * has it, and the scores of the sinks. Returns the maximum. */
static double logits(const struct attn *a, int b, int h, int i, double *p)
{
    const int K = attn_keys(a);
    const ptrdiff_t row = ((ptrdiff_t)b * a->H + h) * a->L + i;
    const double hidden = a->weigh ? -INFINITY : 0;
    double max = -INFINITY;
    int done = 0;

    for (struct range r = {0}; ref_next(a, h, 1, i, &r); done = r.to) {
        fill(p + done, r.from - done, hidden);
        for (int j = r.from; j < r.to; j++) {
            if (j < K && a->scores_out)
                a->scores_out[row * K + j] = (float)p[j];
            p[j] = j < K ? (double)attn_gain(a) * p[j] : sink_score(a, b, h, i, j - K);
            if (p[j] > max || isnan(p[j]))
                max = p[j];
        }
    }
    fill(p + done, (int)ref_ld(a) - done, hidden);
    return max;
}

static void softmax_row(const struct attn *a, int b, int h, int i, double *p, double *keep)
{
    const double max = logits(a, b, h, i, p);
    double sum = 0;

    if (a->weigh) {
        a->weigh->forward(p, keep, attn_keys(a));
        return;
    }
    for (struct range r = {0}; ref_next(a, h, 1, i, &r);)
        for (int j = r.from; j < r.to; j++) {
            p[j] = exp(p[j] - max);
            sum += p[j];
        }
    for (struct range r = {0}; ref_next(a, h, 1, i, &r);)
        for (int j = r.from; j < r.to; j++)
            p[j] /= sum;
    if (a->lse)
        a->lse[((ptrdiff_t)b * a->H + h) * a->L + i] = (float)(max + log(sum));
}

/* to[g][j] = sum over h of matrix[g][h] from[h][j]; a copy if there is no matrix. */
static void mix(const struct attn *a, const float *matrix, double *to, const double *from, int i)
{
    const ptrdiff_t ld = ref_ld(a);

    for (struct range r = {0}; ref_next(a, 0, a->H, i, &r);)
        for (int g = 0; g < a->H; g++)
            for (int j = r.from; j < r.to; j++) {
                double sum = 0;
                for (int h = 0; matrix && h < a->H; h++)
                    sum += (double)matrix[g * a->H + h] * from[h * ld + j];
                to[g * ld + j] = matrix ? sum : from[g * ld + j];
            }
}

void ref_probabilities(const struct attn *a, int b, int i, const struct ref_row *row)
{
    const ptrdiff_t ld = ref_ld(a);
    const int K = attn_keys(a);

    for (int x = 0; x < row->heads; x++) {
        double *s = row->s + x * ld;
        if (!a->no_content)
            widen_query(a, b, row->h + x, i, row->wide, row->wide + a->dh);
        for (struct range r = {0}; attn_next_keys(a, row->h, row->heads, i, &r);)
            scores(a, b, row->h + x, i, r, row->wide, s, ref_slope(row, x * ld));
        memset(s + K, 0, sizeof(*s) * (size_t)a->sinks);
        for (int n = 0; row->slope && n < a->sinks; n++)
            row->slope[x * ld + K + n] = 1;
    }
    if (attn_mixes(a))
        mix(a, a->mix_logits, row->p, row->s, i);
    for (int x = 0; x < row->heads; x++)
        softmax_row(a, b, row->h + x, i, row->p + x * ld, ref_slope(row, x * ld));
    if (attn_mixes(a))
        mix(a, a->mix_probs, row->w, row->p, i);
}

/* o_i of head row->h + x. */
static void output(const struct attn *a, int b, int i, const struct ref_row *row, int x)
{
    const int h = row->h + x;
    const double *w = row->w + x * ref_ld(a);
    const int dv = attn_dv(a);
    float *o = a->o + b * a->o_at.batch + i * a->o_at.row + (ptrdiff_t)h * dv;

    for (int e0 = 0; e0 < dv; e0 += REF_PART) {
        const int n = min_int(REF_PART, dv - e0);
        double out[REF_PART] = {0};
        for (struct range r = {0}; ref_next(a, row->h, row->heads, i, &r);)
            for (int j = r.from; j < r.to; j++) {
                const struct ref_value v = ref_value_at(a, b, h, i, j, e0);
                if (v.self)
                    ref_add(out, w[j], v.self, n);
                for (int e = 0; v.own_bf16 && e < n; e++)
                    out[e] += w[j] * (double)bf16_float(v.own_bf16[e]);
                for (int e = 0; v.own_q8 && e < n; e++)
                    out[e] += w[j] * (double)q8_head_number(v.own_q8, e0 + e);
                if (v.rel)
                    ref_add(out, w[j], v.rel, n);
            }
        for (int e = 0; e < n; e++)
            o[e0 + e] = (float)out[e];
    }
}

static bool accepts_all(const struct attn *a, const char **why_not) { return true; }

static struct attn_need need_ref(const struct attn *a, int threads)
{
    const size_t row = round_up(sizeof(double) * ref_row_doubles(a), 64);

    return (struct attn_need){.scores_bytes = (size_t)threads * row};
}

/* One query of one head, or of all heads where they mix. */
static void query(const struct attn *a, int b, int h, int i, double *work)
{
    const struct ref_row row = ref_row_at(a, h, work);

    ref_probabilities(a, b, i, &row);
    for (int x = 0; x < row.heads; x++)
        output(a, b, i, &row, x);
}

static void no_output(const struct attn *a, int b, int h, int heads, int i)
{
    const int dv = attn_dv(a);
    float *o = a->o + b * a->o_at.batch + i * a->o_at.row + (ptrdiff_t)h * dv;

    memset(o, 0, sizeof(*o) * (size_t)(heads * dv));
}

static void forward_ref(const struct engine *g, const struct attn *a, void *scratch)
{
    const size_t bytes = need_ref(a, 1).scores_bytes;
    const int heads = attn_mixes(a) ? a->H : 1;

#pragma omp parallel for num_threads(g->threads) collapse(3)
    for (int b = 0; b < a->B; b++)
        for (int h = 0; h < a->H; h += heads)
            for (int i = 0; i < a->L; i++) {
                char *mine = (char *)scratch + (size_t)omp_get_thread_num() * bytes;
                if (g->wanted && !g->wanted[(ptrdiff_t)b * a->L + i])
                    no_output(a, b, h, heads, i);
                else
                    query(a, b, h, i, (double *)(void *)mine);
            }
}

const struct attn_impl attn_ref = {
    .name = "ref",
    .accepts = accepts_all,
    .need = need_ref,
    .forward = forward_ref,
    .need_backward = ref_need_backward,
    .backward = ref_backward,
};

static const struct attn_impl *const attn_list[] = {&attn_ref, NULL};
static const struct recur_impl *const recur_list[] = {&recur_ref, NULL};

const struct backend backend_ref = {
    .name = "ref",
    .about = "plain C, double accumulators: the reference for all others",
    .lacks = lacks_nothing,
    .rounds = true,
    .ops = {.gemm = gemm_ref,
            .softmax = softmax_ref,
            .norm = norm_ref,
            .act = act_ref,
            .glu = glu_ref,
            .gate = gate_ref,
            .rnn_cell = rnn_cell_ref,
            .nll = nll_ref,
            .softmax_grad = softmax_grad_ref,
            .norm_grad = norm_grad_ref,
            .act_grad = act_grad_ref,
            .glu_grad = glu_grad_ref,
            .gate_grad = gate_grad_ref,
            .rnn_cell_grad = rnn_cell_grad_ref,
            .nll_grad = nll_grad_ref},
    .attn = attn_list,
    .recur = recur_list,
};
