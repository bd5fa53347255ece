/* SPDX-License-Identifier: MIT
 *
 * Backward of fused attention's rarer terms (forward: attn_extra.inc.c), included by
 * attn_grad_group.inc.c: gradients of the added scores, and sinks. */

/* Can G have a sum other than 0 along a row of keys? Then row 0, which far keys share and which was
 * subtracted from the table, contributes once with that sum. */
static bool row_sums_matter(const struct backward *c)
{
    return c->x.far_shared && c->a->rel_k && (c->a->sinks || c->d->d_scores_out);
}

/* One query's g against keys [j, j+n) in d_fade. Both sums of the same numbers, in double: what is
 * summed over keys before position t then cancels but for the pairs on either side of it. */
static void add_fade_grad(const struct backward *c, const struct item *x, int i, const float *g,
                          int j, int n)
{
    double *const head = c->d->d_fade + attn_fade_at(c->a, x->b, x->h);
    double sum = 0;

#pragma omp simd reduction(+ : sum)
    for (int e = 0; e < n; e++) {
        const double d = (double)(LOG2E * g[e]);
        sum += d;
        head[j + e] -= d;
    }
    head[c->a->M + x->i0 + i] += sum;
}

/* One query's g against keys [j, j+n): g = gain g + d_scores_out, which is also added to d_add and
 * d_fade. */
static void add_score_grad(const struct backward *c, const struct item *x, int i, float *g, int j,
                           int n)
{
    const struct attn *a = c->a;
    const uint64_t *bits = x->seen ? seen_row(x->seen, i) : NULL;
    const int query = x->i0 + i;
    const bool in_place = c->d->d_add == c->d->d_scores_out;
    const ptrdiff_t at = attn_scores_at(a, x->b, x->h, query) + j;
    const float *arrives = c->d->d_scores_out ? c->d->d_scores_out + at : NULL;
    float *to = c->d->d_add;

    if (to)
        to += attn_dense_at(&a->add, x->b, x->h, query) + j;
    if (a->gain != 0)
        scale_row(g, a->gain, n);
    for (int v = 0; v < n; v += VL) {
        const uint64_t seen = visible_lanes(a, x->window, bits, query, j + v);
        const vmask lanes = vlanes(seen & lanes_between(0, n - v));
        if (arrives)
            vst(g + v, vfma(v1(LN2), vld_m(arrives + v, lanes, v0()), vld(g + v)));
        if (to) {
            const vf old = in_place ? v0() : vld_m(to + v, lanes, v0());
            vst_m(to + v, lanes, vfma(v1(LOG2E), vld(g + v), old));
        }
    }
    if (c->d->d_fade)
        add_fade_grad(c, x, i, g, j, n);
}

/* p and g of group `at` against sinks [j, j+n), and their contribution to dQ. */
static void grad_sink_group(const struct item *x, const struct item *y, struct grad_work *w, int at,
                            int j, int n)
{
    const int vectors = (n + VL - 1) / VL;
    int seen[TILES];

    for (int t = 0; t < TILES; t++)
        seen[t] = n;
    sink_scores(x, at, j, n, seen, v1(-INFINITY));
    sink_scores(y, at, j, n, seen, v0());
    for (int m = 0; m < ROWS; m++)
        make_gradients(w, at + m, m, 0, vectors);
    value_tiles(false, false, in_place(w->x.o + at * w->x.ld, w->x.ld, NULL), w->y.s[0] + VL, LD, j,
                seen, &y->sink_v);
}

/* The sinks of an item's queries; its groups must be loaded. */
static void grad_sinks(const struct item *x, const struct item *y, struct grad_work *w,
                       struct term_sums t)
{
    const int d = x->f->d_pad, dv = x->f->v_pad, sinks = x->f->a->sinks;

    for (int j = 0; j < sinks; j += KEYS) {
        const int n = min_int(KEYS, sinks - j);
        for (int g = 0; g < x->n; g += ROWS)
            grad_sink_group(x, y, w, g, j, n);
        for (int s = 0; s < n; s += TILE_ROWS) {
            const ptrdiff_t at = j + s;
            outer(t.sink_k + at * d, d / VL, w->g[0] + VL + s, LD, x->n, x->qu);
            outer(t.sink_v + at * dv, dv / VL, w->p[0] + VL + s, LD, x->n, y->qu);
        }
        for (int s = 0; s < n; s += VL)
            for (int i = 0; i < x->n; i++) {
                float *const to = t.sink_logit + j + s;
                vst_upto(to, n - s, vadd(vld_upto(to, n - s, v0()), vld(w->g[i] + VL + s)));
            }
    }
}

/* Row 0's contribution to dQ, see row_sums_matter. */
static void add_far_row(const struct item *x, struct grad_work *w)
{
    const struct attn *a = x->f->a;
    const float *far_k = a->rel_k + x->h * a->rel_head;

    for (int i = 0; i < x->n; i++)
        for (int e = 0; e < a->dh; e += VL) {
            float *to = w->y.o + i * w->y.ld + e;
            vst(to,
                vfma(v1(vsum(vld(w->total[i]))), vld_upto(far_k + e, a->dh - e, v0()), vld(to)));
        }
}
