/* SPDX-License-Identifier: MIT
 *
 * Pool groups of several tokens, as rows of a temporarily shorter stream. In a sub-layer that
 * pools, queries are means of two rows each, and its output rows are groups of twice as many
 * tokens; before one that joins each token gets a row again:
 *
 *   x_t = u_t + top_(group of t)      u: the stream before pooling
 *
 * Causal, which is not published: a group is complete with its last token, and a token reads the
 * newest complete one, or zeros: only whole groups count, so a row never depends on later tokens.
 * As published, not causal: a token reads the group that it is in, and a last row without a second
 * is a group alone. */
#include "sublayer_list.h"
#include "variants/model/attention/sublayer_attention.h"
#include "variants/model/sublayer/sublayer_inner.h"

static void add_rows(float *dst, const float *x, int n)
{
    for (int e = 0; e < n; e++)
        dst[e] += x[e];
}

/* ---- fewer rows --------------------------------------------------------------------------- */

float *pool_rows(const struct sublayer *s, struct work *w, const float *x, int B, int L)
{
    const int D = s->c->D, groups = pool_groups(s->c, L, 1);
    float *const y = w->array[AT_POOLED];

    for (int b = 0; b < B; b++)
        for (int i = 0; i < groups; i++) {
            const float *const one = x + ((ptrdiff_t)b * L + 2 * i) * D;
            const float *const other = 2 * i + 1 < L ? one + D : one;
            for (int e = 0; e < D; e++)
                y[((ptrdiff_t)b * groups + i) * D + e] = (one[e] + other[e]) / 2;
        }
    return y;
}

/* From the last row to the first, so that none is overwritten before it is read. */
void pool_rows_grad(const struct sublayer *s, const struct work *w, float *d, int B, int L)
{
    const int D = s->c->D, groups = pool_groups(s->c, L, 1);
    const float *const d_asking = w->d_array[AT_POOLED];

    for (int b = B - 1; b >= 0; b--)
        for (int j = L - 1; j >= 0; j--) {
            const ptrdiff_t group = ((ptrdiff_t)b * groups + j / 2) * D;
            float *const to = d + ((ptrdiff_t)b * L + j) * D;
            const float share = j / 2 >= groups ? 0 : (j | 1) < L ? 0.5f : 1;
            for (int e = 0; e < D; e++)
                to[e] = share != 0 ? share * (d[group + e] + d_asking[group + e]) : 0;
        }
}

/* ---- a row for each token ----------------------------------------------------------------- */

/* The group that token t reads; -1 = none. */
static int group_of(const struct sublayers *s, int t, int level)
{
    return s->at->c->causal ? ((t + 1) >> level) - 1 : t >> level;
}

/* x from [B,groups,D] to [B,L,D], from the last row to the first as above. */
static void join(const struct sublayers *s, int level, const float *unpooled, float *x, int B,
                 int L)
{
    const int D = s->at->c->D, groups = pool_groups(s->at->c, L, level);

    for (int b = B - 1; b >= 0; b--)
        for (int t = L - 1; t >= 0; t--) {
            const int group = group_of(s, t, level);
            const ptrdiff_t at = ((ptrdiff_t)b * L + t) * D;
            const float *const top = x + ((ptrdiff_t)b * groups + group) * D;
            for (int e = 0; e < D; e++)
                x[at + e] = unpooled[at + e] + (group < 0 ? 0 : top[e]);
        }
}

/* d from [B,L,D] to [B,groups,D]: sums over the tokens that read a group, from the first row on. */
static void join_grad(const struct sublayers *s, int level, float *d, int B, int L)
{
    const int D = s->at->c->D, groups = pool_groups(s->at->c, L, level);

    for (int b = 0; b < B; b++)
        for (int t = 0, before = -1; t < L; t++) {
            const int group = group_of(s, t, level);
            float *const to = d + ((ptrdiff_t)b * groups + group) * D;
            const float *const from = d + ((ptrdiff_t)b * L + t) * D;
            if (group < 0)
                continue;
            if (group > before)
                memmove(to, from, sizeof(float) * (size_t)D);
            else
                add_rows(to, from, D);
            before = group;
        }
}

/* ---- before a sub-layer ------------------------------------------------------------------- */

static bool begins(const struct sublayer *s) { return s->pools && s->level == 1; }

/* The stream before pooling: in training that sub-layer keeps it. */
static const float *unpooled_rows(const struct sublayers *s, int i)
{
    while (!begins(&s->at[i]))
        i--;
    return s->kept ? s->work[i].x : s->unpooled;
}

void pool_enter(const struct sublayers *s, int i, float *x, int B, int L)
{
    const struct sublayer *const sublayer = &s->at[i];

    if (sublayer->joins)
        join(s, s->at[i - 1].level, unpooled_rows(s, i), x, B, L);
    if (begins(sublayer) && !s->kept)
        memcpy(s->unpooled, x, sizeof(float) * (size_t)B * (size_t)L * (size_t)sublayer->c->D);
}

void pool_enter_grad(const struct sublayers *s, int i, float *d, int B, int L)
{
    const struct sublayer *const sublayer = &s->at[i];
    const size_t D = (size_t)sublayer->c->D, n = (size_t)B * (size_t)L * D;

    if (sublayer->pools && rows_after(sublayer, L) == 0) /* these rows were not used */
        memset(d, 0, sizeof(float) * (size_t)B * (size_t)rows_before(sublayer, L) * D);
    if (sublayer->joins) {
        memcpy(s->d_unpooled, d, n * sizeof(float));
        join_grad(s, s->at[i - 1].level, d, B, L);
    }
    if (begins(sublayer))
        for (size_t k = 0; k < n; k++)
            d[k] += s->d_unpooled[k];
}
