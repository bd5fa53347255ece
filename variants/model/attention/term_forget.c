/* SPDX-License-Identifier: MIT
 *
 * Forgetting (Lin et al. 2025, "Forgetting Transformer", arXiv:2503.02130), x the source rows:
 *
 *   f_t   = sigma(W_f x_t + b_f)                  per head
 *   s_ij += sum over t in (j, i] of log f_t
 *
 * One sum for each row, of which the core sees differences. log f is remembered beside keys and
 * values. */
#include "sublayer_attention.h"
#include "variants/parts/linear.h"

enum { F, F_BIAS };
enum { FADE }; /* [B,K,H] y, of which log f = -log(1 + e^-y), or its gradient */

static int cached(const struct config *c) { return c->H; }

static void declare(const struct sublayer *s, const char *prefix, struct params *p)
{
    params_map(p, s->c->H, attention_width(s->c), prefix, "attn.f.weight");
    params_vector(p, INIT_ZERO, 0, s->c->H, prefix, "attn.f.bias");
}

static void arrays(const struct sublayer *s, struct around_call n, size_t floats[AROUND_ARRAYS])
{
    floats[FADE] = (size_t)n.B * (size_t)n.K * (size_t)s->c->H;
}

/* log sigma(y), as it is remembered. */
static float log_sigma(double y) { return (float)(fmin(y, 0) - log1p(exp(-fabs(y)))); }

/* log f of sequence b's key j: remembered ones from the cache, the last n.K from this call. */
static double log_f(const struct part_call *t, int b, int h, int j)
{
    const int H = t->s->c->H, fresh = j - (t->n.all - t->n.K);

    if (fresh >= 0)
        return (double)log_sigma((double)t->at[FADE][((ptrdiff_t)b * t->n.K + fresh) * H + h]);
    return (double)cache_rows(&t->s->state.attention.beside, b)[(ptrdiff_t)j * H + h];
}

static void source(const struct part_call *t, struct seq_rows x)
{
    const int H = t->s->c->H, all = t->n.all;
    const ptrdiff_t fresh = (ptrdiff_t)t->n.K * H;
    const struct cache *const cache = &t->s->state.attention.beside;

    CHECK(t->at[FADE] && t->sums);
    project_map(t->g, &t->param[F], &t->param[F_BIAS], (struct seq_rows){t->at[FADE], fresh}, x,
                t->n.B, t->n.K);
    for (int b = 0; b < t->n.B && t->s->mem == MEM_KV; b++) {
        float *const at = cache_rows(cache, b) + (ptrdiff_t)cache->M * H;
        for (ptrdiff_t e = 0; e < fresh; e++)
            at[e] = log_sigma((double)t->at[FADE][b * fresh + e]);
    }
    for (int b = 0; b < t->n.B; b++)
        for (int h = 0; h < H; h++) {
            double *const sums = t->sums + ((ptrdiff_t)b * H + h) * all;
            double sum = 0;
            for (int j = 0; j < all; j++) {
                sum += log_f(t, b, h, j);
                sums[j] = sum;
            }
        }
}

/* dlog f_t = sum of d_fade_j over j >= t;  dy = dlog f sigma(-y) */
static void add_grad(const struct part_call *t, const struct attn *a, const struct attn_grad *d)
{
    const int H = t->s->c->H;

    CHECK(t->n.all == t->n.K);
    for (int b = 0; b < t->n.B; b++)
        for (int h = 0; h < H; h++) {
            const double *const sums = d->d_fade + ((ptrdiff_t)b * H + h) * t->n.all;
            double sum = 0;
            for (int i = t->n.all - 1; i >= 0; i--) {
                const ptrdiff_t at = ((ptrdiff_t)b * t->n.K + i) * H + h;
                sum += sums[i];
                t->d_at[FADE][at] = (float)(sum / (1 + exp((double)t->at[FADE][at])));
            }
        }
}

static void input_grad(const struct part_call *t, struct sublayer_input from, float *d_in, int skip)
{
    linear_bias_grad(t->g, &t->param[F_BIAS], t->d_at[FADE], t->n.B * t->n.K);
    project_map_grad(t->g, &t->param[F], NULL, t->d_at[FADE], from, 0, d_in, skip, 1);
}

static double flop(const struct part_cost *t)
{
    return 2 * t->projected * attention_width(t->s->c) * t->s->c->H;
}

const struct around_part term_forget = {
    .said = "forgetting",
    .numbers = AROUND_SWITCH("forget", NULL, .absent = "0"),
    .excludes = EXCLUDES(HAS_FUTURE, HAS_STEPS), /* each layer sums gates over the past */
    .params = declare,
    .arrays = arrays,
    .flop = flop,
    .term = {.added = ADDS_SUMS,
             .cached = cached,
             .source = source,
             .add_grad = add_grad,
             .input_grad = input_grad},
};
