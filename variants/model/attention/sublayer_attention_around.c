/* SPDX-License-Identifier: MIT
 *
 * Around the core of attention (struct around). x are its source rows, h a head:
 *
 *   qk_norm         q <- rms(q_h) (.) w_q
 *                   k <- rms(k_h) (.) w_k          before they are rotated
 *                   (Henry et al. 2020, arXiv:2010.04245; Qwen3 2025, arXiv:2505.09388)
 *   forget          s_ij += sum over t in (j, i] of log f_t
 *                   f_t   = sigma(W_f x_t + b_f) per head
 *                   (Lin et al. 2025, "Forgetting Transformer", arXiv:2503.02130). One sum for
 *                   each row, of which the core sees differences.
 *   value_residual  v <- m_0 v + m_1 v of the first attention, in all others
 *                   (Zhou et al. 2024, arXiv:2410.17897)
 *   diff            o   = (1 - l_0) rms((P_1 - l P_2) v)
 *                   l   = e^(l_q1.l_k1) - e^(l_q2.l_k2) + l_0
 *                   l_0 = 0.8 - 0.6 e^(-0.3 layer)
 *                   P_1 and P_2: softmaxes of 2h and 2h+1 of 2H heads of queries and keys
 *                   (Ye et al. 2024, "Differential Transformer", arXiv:2410.05258)
 *   out_gate        o <- o (.) sigma(W_g x), by element or by head
 *                   (Qiu et al. 2025, "Gated Attention", arXiv:2505.06708)
 *
 * Keys and values are remembered as the core reads them, and log f beside them. */
#include "sublayer_attention_around.h"
#include "variants/base/loops.h"
#include "variants/model/sublayer/sublayer_inner.h"

#include <math.h>
#include <string.h>

bool around_adds(const struct config *c)
{
    return c->around.cope || c->around.local || c->around.man || c->around.predict.form ||
           c->around.camtl.on;
}

bool around_hands_on(const struct config *c) { return c->around.predict.form; }

int around_task_width(const struct config *c)
{
    return c->around.camtl.on ? c->around.camtl.task : 0;
}

size_t around_add_floats(const struct config *c, struct around_call n)
{
    const size_t pairs = (size_t)n.B * (size_t)n.all * (size_t)n.L;

    if (c->around.camtl.on)
        return pairs;
    return around_adds(c) ? (size_t)c->H * pairs : 0;
}

struct dense around_dense(const struct config *c, struct around_call n, const float *at)
{
    const ptrdiff_t row = n.all, head = row * n.L;

    if (c->around.camtl.on)
        return (struct dense){.at = at, .batch = head, .row = row};
    return (struct dense){.at = at, .batch = c->H * head, .head = head, .row = row};
}

size_t around_sums_count(const struct config *c, struct around_call n)
{
    return c->around.forget ? (size_t)n.B * (size_t)c->H * (size_t)n.all : 0;
}

struct fade around_sums(const struct config *c, struct around_call n, const double *at)
{
    return (struct fade){.at = at, .batch = (ptrdiff_t)c->H * n.all, .head = n.all};
}

/* ---- parameters --------------------------------------------------------------------------- */

bool around_mixes_values(const struct sublayer *s)
{
    return s->c->around.value_residual && (s->bare || s->nth > 0);
}

static bool has_param(const struct sublayer *s, enum around_param which)
{
    const struct around *const a = &s->c->around;

    switch (which) {
    case AROUND_Q_NORM:
    case AROUND_K_NORM:
        return a->qk_norm;
    case AROUND_F:
    case AROUND_F_BIAS:
        return a->forget;
    case AROUND_V_MIX:
        return around_mixes_values(s);
    case AROUND_G:
        return a->out_gate != OUT_GATE_NONE;
    case AROUND_LAMBDA_Q1:
    case AROUND_LAMBDA_K1:
    case AROUND_LAMBDA_Q2:
    case AROUND_LAMBDA_K2:
    case AROUND_DIFF_NORM:
        return a->diff;
    case AROUND_COPE:
        return a->cope > 0;
    case AROUND_LOCAL_W:
    case AROUND_LOCAL_PLACE:
    case AROUND_LOCAL_WIDTH:
        return a->local;
    case AROUND_MAN_ROW:
    case AROUND_MAN_DISTANCE:
    case AROUND_MAN_HEAD:
        return a->man;
    case AROUND_AGG:
        return a->agg;
    case AROUND_PREDICT_W:
    case AROUND_PREDICT_B:
        return predicts(s);
    case AROUND_CAMTL_A:
    case AROUND_CAMTL_GAMMA:
    case AROUND_CAMTL_GAMMA_BIAS:
    case AROUND_CAMTL_BETA:
    case AROUND_CAMTL_BETA_BIAS:
        return a->camtl.on;
    case AROUND_PARAMS:
        break;
    }
    return false;
}

const struct param *around_param(const struct sublayer *s, enum around_param which)
{
    int at = 0;

    CHECK(has_param(s, which));
    for (enum around_param before = 0; before < which; before++)
        at += has_param(s, before);
    return s->around + at;
}

/* Width of the gate. */
static int gate_width(const struct config *c)
{
    return c->around.out_gate == OUT_GATE_HEADWISE ? c->H : config_q_width(c);
}

void around_params(const struct sublayer *s, const char *prefix, struct params *p)
{
    const struct config *c = s->c;
    const int in = attention_width(c), two = 2;

    if (c->around.qk_norm) {
        params_vector(p, INIT_ONE, 0, c->dh, prefix, "attn.q_norm.weight");
        params_vector(p, INIT_ONE, 0, c->dh, prefix, "attn.k_norm.weight");
    }
    if (c->around.forget) {
        params_map(p, c->H, in, prefix, "attn.f.weight");
        params_vector(p, INIT_ZERO, 0, c->H, prefix, "attn.f.bias");
    }
    if (around_mixes_values(s))
        params_vector(p, INIT_CONST, 0.5f, two, prefix, "attn.v_mix");
    if (c->around.out_gate != OUT_GATE_NONE)
        params_map(p, gate_width(c), in, prefix, "attn.g.weight");
    if (c->around.diff) {
        static const char *const names[] = {"attn.lambda_q1", "attn.lambda_k1", "attn.lambda_q2",
                                            "attn.lambda_k2"};
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            params_vector(p, INIT_NORMAL, 0.1f, c->dh, prefix, names[i]);
        params_vector(p, INIT_ONE, 0, config_maps(c) * c->dh, prefix, "attn.norm.weight");
    }
    if (c->around.cope)
        params_add(p, INIT_OFF, 0, 2, (const int[]){c->around.cope, c->dh}, "%sattn.cope.weight",
                   prefix);
    if (c->around.local) {
        params_add(p, INIT_LINEAR, 0, 3, (const int[]){c->H, c->dh, c->dh}, "%sattn.gauss.w",
                   prefix);
        params_add(p, INIT_ZERO, 0, 2, (const int[]){c->H, c->dh}, "%sattn.gauss.up", prefix);
        params_add(p, INIT_ZERO, 0, 2, (const int[]){c->H, c->dh}, "%sattn.gauss.ud", prefix);
    }
    if (c->around.man) {
        params_vector(p, INIT_ZERO, 0, in, prefix, "attn.dman.w");
        params_vector(p, INIT_ZERO, 0, 2 * c->clip + 1, prefix, "attn.dman.p");
        params_vector(p, INIT_ZERO, 0, c->H, prefix, "attn.dman.u");
    }
    if (predicts(s)) {
        const struct predict *const t = &c->around.predict;
        params_add(p, INIT_CENTRE, (float)(c->causal ? t->rows - 1 : t->rows / 2), 4,
                   (const int[]){c->H, c->H, t->rows, t->cols}, "%sattn.pred.weight", prefix);
        params_vector(p, INIT_ZERO, 0, c->H, prefix, "attn.pred.bias");
    }
    if (c->around.camtl.on) {
        const int n = c->around.camtl.size, task = c->around.camtl.task;
        params_add(p, INIT_EYE, 0, 3, (const int[]){camtl_blocks(c), n, n}, "%sattn.camtl.a",
                   prefix);
        params_matrix(p, n, task, prefix, "attn.camtl.gamma.weight");
        params_vector(p, INIT_ONE, 0, n, prefix, "attn.camtl.gamma.bias");
        params_matrix(p, n, task, prefix, "attn.camtl.beta.weight");
        params_vector(p, INIT_ZERO, 0, n, prefix, "attn.camtl.beta.bias");
    }
    if (c->around.agg) {
        const int n = c->around.capsules;
        params_add(p, INIT_LINEAR, 0, 4, (const int[]){c->H, n, c->D / n, c->dh},
                   "%sattn.agg.weight", prefix);
    }
}

/* ---- work space --------------------------------------------------------------------------- */

static float *take(float *base, size_t *at, bool wanted, ptrdiff_t rows, ptrdiff_t n)
{
    float *const p = wanted && base ? base + *at : NULL;

    *at += wanted ? (size_t)rows * (size_t)n : 0;
    return p;
}

static struct around_work lay_out(const struct sublayer *s, float *base, struct around_call n,
                                  bool backward, size_t *floats)
{
    const struct config *const c = s->c;
    const struct around *const a = &c->around;
    const int HD = config_q_width(c), kv_width = config_kv_width(c);
    const int iters = a->agg ? a->agg_iters : 0;
    const bool gated = a->out_gate != OUT_GATE_NONE, norms = a->qk_norm;
    size_t at = 0;
    const struct around_work x = {
        .sums_f = (double *)(void *)take(base, &at, a->forget, n.B * n.all, 2 * c->H),
        .raw_q = take(base, &at, norms && !backward, n.B * n.L, HD),
        .raw_k = take(base, &at, norms && !backward, n.B * n.K, kv_width),
        .raw_v = take(base, &at, around_mixes_values(s) && !backward, n.B * n.K, kv_width),
        .fade = take(base, &at, a->forget, n.B * n.K, c->H),
        .add = take(base, &at, around_adds(c), 1, (ptrdiff_t)around_add_floats(c, n)),
        .x = take(base, &at, a->cope, n.L, n.all),
        .by_vector = take(base, &at, a->cope, n.L, a->cope),
        .d_by_vector = take(base, &at, a->cope && backward, n.L, a->cope),
        .d_row = take(base, &at, a->man && backward, n.B, n.L),
        .d_head_row = take(base, &at, a->man && backward, n.B * c->H, n.L),
        .film = take(base, &at, a->camtl.on, n.B, 2 * a->camtl.size),
        .mixture = take(base, &at, predicts(s), n.B * n.all * n.L, c->H),
        .lse = take(base, &at, predicts_twice(s) && !backward, n.B * n.L, c->H),
        .zeros = take(base, &at, predicts_twice(s) && backward, n.B * n.L, HD),
        .votes = take(base, &at, a->agg, n.B * n.L, c->H * c->D),
        .shares = take(base, &at, a->agg && !backward, n.B * n.L, iters * c->H * a->capsules),
        .sums = take(base, &at, a->agg, n.B * n.L, (backward ? 2 : iters) * c->D),
        .agreed = take(base, &at, a->agg, n.B * n.L, c->H * a->capsules),
        .gate = take(base, &at, gated, n.B * n.L, gate_width(c)),
        .gated = take(base, &at, gated && !backward, n.B * n.L, HD),
        .o = {take(base, &at, a->diff && !backward, n.B * n.L, HD),
              take(base, &at, a->diff, n.B * n.L, HD)},
        .mixed = take(base, &at, a->diff && !backward, n.B * n.L, HD),
        .spare = take(base, &at, a->diff, n.B * n.K, HD),
        .d_v = take(base, &at, (a->diff || predicts_twice(s)) && backward, n.B * n.K, kv_width),
        .stats = take(base, &at, (norms || a->diff) && backward, n.B * n.K * config_maps(c) * c->H,
                      NORM_STATS),
    };

    if (floats)
        *floats = at;
    return x;
}

struct around_work around_work_of(const struct sublayer *s, float *base, struct around_call n,
                                  bool backward)
{
    return lay_out(s, base, n, backward, NULL);
}

static struct around_call largest(const struct sublayer *s, struct extent max)
{
    return (struct around_call){.B = max.B,
                                .L = max.L,
                                .K = s->mem == MEM_KV ? max.L : max.M + max.L,
                                .all = max.M + max.L};
}

struct array around_array(const struct sublayer *s, struct extent max)
{
    size_t n = 0;

    lay_out(s, NULL, largest(s, max), false, &n);
    return (struct array){n, n, false, PART_ACTIVATIONS};
}

struct array around_array_grad(const struct sublayer *s, struct extent max)
{
    size_t n = 0;

    lay_out(s, NULL, largest(s, max), true, &n);
    return (struct array){0, n, true, PART_ACTIVATIONS};
}

/* The first attention's values [B,K,Hkv,dh], which it leaves for all others. */
struct array around_first_values(const struct sublayer *s, struct extent max, bool backward)
{
    const size_t rows = (size_t)max.B * (size_t)(max.M + max.L);
    const size_t n = rows * (size_t)config_kv_width(s->c);

    if (!s->c->around.value_residual || s->mem == MEM_KV)
        return (struct array){0};
    return (struct array){backward ? 0 : n, n, true, PART_ACTIVATIONS};
}

/* ---- norms -------------------------------------------------------------------------------- */

/* x [B,rows,heads,dh] <- its norm, leaving x in `raw`. */
static void norm_heads(const struct engine *g, const struct sublayer *s, const struct param *weight,
                       struct seq_rows x, float *raw, int B, int rows, int heads)
{
    const int dh = s->c->dh;
    const size_t n = (size_t)rows * (size_t)heads * (size_t)dh;

    CHECK(raw);
    for (int b = 0; b < B; b++) {
        float *const at = x.at + b * x.stride, *const from = raw + (size_t)b * n;
        memcpy(from, at, n * sizeof(float));
        g->ops.norm(&(struct norm){.kind = NORM_RMS,
                                   .y = at,
                                   .x = from,
                                   .weight = weight->data,
                                   .rows = rows * heads,
                                   .n = dh,
                                   .eps = s->c->head_eps,
                                   .threads = g->threads});
    }
}

void around_queries(const struct engine *g, const struct sublayer *s, const struct work *w,
                    struct around_call n, struct seq_rows q)
{
    if (s->c->around.qk_norm)
        norm_heads(g, s, around_param(s, AROUND_Q_NORM), q,
                   around_work_of(s, w->own[AT_AROUND], n, false).raw_q, n.B, n.L,
                   config_maps(s->c) * s->c->H);
}

void around_keys(const struct engine *g, const struct sublayer *s, const struct work *w,
                 struct around_call n, struct seq_rows k)
{
    if (s->c->around.qk_norm)
        norm_heads(g, s, around_param(s, AROUND_K_NORM), k,
                   around_work_of(s, w->own[AT_AROUND], n, false).raw_k, n.B, n.K,
                   config_maps(s->c) * s->c->kv_heads);
}

/* ---- values ------------------------------------------------------------------------------- */

/* The first attention's values of the n.K rows that end at stream position `end`. */
static struct seq_rows first_values(const struct sublayer *s, const struct work *w,
                                    struct around_call n, int64_t end)
{
    const int kv_width = config_kv_width(s->c);
    const struct cache *const cache = &s->first->of.attention.values;

    if (s->mem != MEM_KV)
        return (struct seq_rows){w->own[AT_V0], (ptrdiff_t)n.K * kv_width};
    const ptrdiff_t row = (ptrdiff_t)(end - n.K - cache_base(cache));
    CHECK(row >= 0);
    return (struct seq_rows){cache_rows(cache, 0) + row * kv_width, cache_stride(cache)};
}

void around_values(const struct engine *g, const struct sublayer *s, const struct work *w,
                   struct around_call n, struct seq_rows v, int64_t end)
{
    const ptrdiff_t row = (ptrdiff_t)n.K * config_kv_width(s->c);

    if (!s->c->around.value_residual)
        return;
    if (!around_mixes_values(s)) { /* a cache is read where it is */
        for (int b = 0; b < n.B && s->mem != MEM_KV; b++)
            memcpy(w->own[AT_V0] + b * row, v.at + b * v.stride, sizeof(float) * (size_t)row);
        return;
    }
    const struct seq_rows first = first_values(s, w, n, end);
    const float *const m = around_param(s, AROUND_V_MIX)->data;
    float *const raw = around_work_of(s, w->own[AT_AROUND], n, false).raw_v;
    CHECK(raw);
    for (int b = 0; b < n.B; b++) {
        float *const at = v.at + b * v.stride, *const kept = raw + b * row;
        const float *const v0 = first.at + b * first.stride;
#pragma omp parallel for simd num_threads(team_for(g->threads, row))
        for (ptrdiff_t e = 0; e < row; e++) {
            kept[e] = at[e];
            at[e] = m[0] * at[e] + m[1] * v0[e];
        }
    }
}

/* ---- forgetting --------------------------------------------------------------------------- */

/* log sigma(y), as it is remembered. */
static float log_sigma(double y) { return (float)(fmin(y, 0) - log1p(exp(-fabs(y)))); }

/* log f of sequence b's key j: remembered ones from the cache, the last n.K from this call. */
static double log_f(const struct sublayer *s, const struct around_work *x, struct around_call n,
                    int b, int h, int j)
{
    const int H = s->c->H, fresh = j - (n.all - n.K);

    if (fresh >= 0)
        return (double)log_sigma((double)x->fade[((ptrdiff_t)b * n.K + fresh) * H + h]);
    return (double)cache_rows(&s->of.attention.fades, b)[(ptrdiff_t)j * H + h];
}

void around_fade(const struct engine *g, struct sublayer *s, const struct work *w,
                 struct around_call n, struct seq_rows x)
{
    const int H = s->c->H;
    struct cache *const cache = &s->of.attention.fades;

    if (!s->c->around.forget)
        return;
    const struct around_work to = around_work_of(s, w->own[AT_AROUND], n, false);
    CHECK(to.fade && to.sums_f);
    project_map(g, around_param(s, AROUND_F), around_param(s, AROUND_F_BIAS),
                (struct seq_rows){to.fade, (ptrdiff_t)n.K * H}, x, n.B, n.K);
    if (s->mem == MEM_KV)
        cache_reserve(cache, n.K);
    for (int b = 0; b < n.B && s->mem == MEM_KV; b++) {
        float *const at = cache_rows(cache, b) + (ptrdiff_t)cache->M * H;
        for (ptrdiff_t e = 0; e < (ptrdiff_t)n.K * H; e++)
            at[e] = log_sigma((double)to.fade[b * (ptrdiff_t)n.K * H + e]);
    }
    for (int b = 0; b < n.B; b++)
        for (int h = 0; h < H; h++) {
            double *const sums = to.sums_f + ((ptrdiff_t)b * H + h) * n.all;
            double sum = 0;
            for (int j = 0; j < n.all; j++) {
                sum += log_f(s, &to, n, b, h, j);
                sums[j] = sum;
            }
        }
}

void around_set_scores(const struct sublayer *s, const struct work *w, struct around_call n,
                       struct attn *a)
{
    if (s->c->around.predict.form && w->above)
        a->scores_out = w->own[AT_SCORES];
    a->gain = a->gain != 0 ? a->gain : predict_gain(s);
    if (s->c->around.forget)
        a->fade = around_sums(s->c, n, around_work_of(s, w->own[AT_AROUND], n, false).sums_f);
    if (predicts_twice(s))
        a->add = (struct dense){w->own[AT_SCORES], (ptrdiff_t)s->c->H * n.L * n.all,
                                (ptrdiff_t)n.L * n.all, n.all};
    else if (s->c->around.predict.form ? predicts(s) : around_adds(s->c))
        a->add = around_dense(s->c, n, around_work_of(s, w->own[AT_AROUND], n, false).add);
}

/* ---- differences -------------------------------------------------------------------------- */

void around_split(const struct engine *g, const struct sublayer *s, const struct work *w,
                  struct around_call n, struct seq_rows x, int rows, int heads, bool back)
{
    const ptrdiff_t dh = s->c->dh, width = 2 * heads * dh, all = (ptrdiff_t)n.B * rows;
    float *const base = back ? w->d_own[AT_AROUND] : w->own[AT_AROUND];

    if (!s->c->around.diff)
        return;
    float *const spare = around_work_of(s, base, n, back).spare;
    CHECK(spare);
#pragma omp parallel for num_threads(team_for(g->threads, all *width))
    for (ptrdiff_t r = 0; r < all; r++) {
        float *const row = x.at + r / rows * x.stride + r % rows * width;
        float *const copy = spare + r * width;
        memcpy(copy, row, sizeof(float) * (size_t)width);
        for (int h = 0; h < 2 * heads; h++) {
            const ptrdiff_t pair = h * dh, map = (h % 2 * heads + h / 2) * dh;
            memcpy(row + (back ? pair : map), copy + (back ? map : pair),
                   sizeof(float) * (size_t)dh);
        }
    }
}

struct attn around_map(const struct sublayer *s, const struct work *w, struct around_call n,
                       const struct attn *a, int map)
{
    struct attn one = *a;

    if (!s->c->around.diff)
        return one;
    one.q += (ptrdiff_t)map * a->H * a->dh;
    one.k += (ptrdiff_t)map * a->Hkv * a->dh;
    one.o = around_work_of(s, w->own[AT_AROUND], n, false).o[map];
    if (one.lse)
        one.lse += (ptrdiff_t)map * a->B * a->H * a->L;
    return one;
}

double around_lambda_init(const struct sublayer *s)
{
    const double given = (double)s->c->lambda_init;

    return given != 0 ? given : 0.8 - 0.6 * exp(-0.3 * s->layer);
}

float around_lambda(const struct sublayer *s, double part[2])
{
    for (int map = 0; map < 2; map++) {
        const float *const q = around_param(s, AROUND_LAMBDA_Q1 + 2 * (unsigned)map)->data;
        const float *const k = around_param(s, AROUND_LAMBDA_K1 + 2 * (unsigned)map)->data;
        double sum = 0;
        for (int e = 0; e < s->c->dh; e++)
            sum += (double)q[e] * (double)k[e];
        part[map] = exp(sum);
    }
    return (float)(part[0] - part[1] + around_lambda_init(s));
}

void around_difference(const struct engine *g, const struct sublayer *s, const struct work *w,
                       struct around_call n)
{
    const struct config *const c = s->c;
    const ptrdiff_t all = (ptrdiff_t)n.B * n.L * config_q_width(c);
    const struct around_work x = around_work_of(s, w->own[AT_AROUND], n, false);
    double part[2];

    if (!c->around.diff)
        return;
    const float lambda = around_lambda(s, part), rest = (float)(1 - around_lambda_init(s));
    float *const o = w->own[AT_O];
    CHECK(x.mixed && x.o[0] && x.o[1]);
#pragma omp parallel for simd num_threads(team_for(g->threads, all))
    for (ptrdiff_t e = 0; e < all; e++)
        x.mixed[e] = x.o[0][e] - lambda * x.o[1][e];
    g->ops.norm(&(struct norm){.kind = NORM_RMS,
                               .y = o,
                               .x = x.mixed,
                               .weight = around_param(s, AROUND_DIFF_NORM)->data,
                               .rows = n.B * n.L * c->H,
                               .n = 2 * c->dh,
                               .eps = c->head_eps,
                               .threads = g->threads});
#pragma omp parallel for simd num_threads(team_for(g->threads, all))
    for (ptrdiff_t e = 0; e < all; e++)
        o[e] *= rest;
}

/* ---- gated outputs ------------------------------------------------------------------------ */

void around_gate(const struct engine *g, const struct sublayer *s, const struct work *w,
                 struct around_call n, struct seq_rows x)
{
    const struct config *const c = s->c;
    const struct around_work to = around_work_of(s, w->own[AT_AROUND], n, false);
    const ptrdiff_t HD = config_q_width(c), width = gate_width(c), rows = (ptrdiff_t)n.B * n.L;

    if (c->around.out_gate == OUT_GATE_NONE)
        return;
    const ptrdiff_t each = HD / width; /* elements that share a gate */
    const float *const o = w->own[AT_O];
    CHECK(o && to.gate && to.gated);
    project_map(g, around_param(s, AROUND_G), NULL, (struct seq_rows){to.gate, n.L * width}, x, n.B,
                n.L);
    g->ops.act(&(struct act){.kind = ACT_SIGMOID,
                             .y = to.gate,
                             .x = to.gate,
                             .rows = (int)rows,
                             .n = (int)width,
                             .threads = g->threads});
#pragma omp parallel for num_threads(team_for(g->threads, rows *HD))
    for (ptrdiff_t y = 0; y < rows * width; y++)
        for (ptrdiff_t e = y * each; e < (y + 1) * each; e++)
            to.gated[e] = o[e] * to.gate[y];
}

const float *around_output(const struct sublayer *s, const struct work *w, struct around_call n)
{
    return s->c->around.out_gate == OUT_GATE_NONE
               ? w->own[AT_O]
               : around_work_of(s, w->own[AT_AROUND], n, false).gated;
}

double around_flop(const struct sublayer *s, double rows, double projected)
{
    const struct config *const c = s->c;
    const double in = attention_width(c);

    return (c->around.out_gate != OUT_GATE_NONE ? 2 * rows * in * gate_width(c) : 0) +
           (c->around.forget ? 2 * projected * in * c->H : 0) + capsules_flop(c, rows);
}
