/* SPDX-License-Identifier: MIT
 *
 * Backward of fused attention for one group of an item's rows, included by attn_grad.inc.c: its
 * operands and constants, and p and g against a block of keys with their contribution to dQ. */

/* Queries and dO of group g, and the constants of its rows. A row that sees nothing, or lies after
 * the last query, gets p = 0. */
static void load_group(const struct item *x, const struct item *y, struct grad_work *w, int g)
{
    const struct attn *a = x->f->a;
    const bool far_k = x->f->far_shared && a->rel_k, far_v = x->f->far_shared && a->rel_v;
    const ptrdiff_t table = x->h * a->rel_head;
    const int dv = x->f->dv;

    fetch_queries(x, g);
    fetch_queries(y, g);
    for (int i = g; i < g + ROWS; i++) {
        const bool real = i < x->n;
        const size_t row = ((size_t)x->b * (size_t)a->H + (size_t)x->h) * (size_t)a->L;
        const float lse = real ? LOG2E * a->lse[row + (size_t)(x->i0 + i)] : -INFINITY;
        const float *o = a->o + x->b * a->o_at.batch + (x->i0 + i) * a->o_at.row + x->h * dv;
        vf far = v0(), delta = v0();

        for (int e = 0; e < x->f->v_pad; e += VL) {
            vf seen = real ? vld_upto(o + e, dv - e, v0()) : v0();
            if (far_v)
                seen = vsub(seen, vld_upto(a->rel_v + table + e, dv - e, v0()));
            delta = vfma(vld(w->y.qu + i * w->y.ld + e), seen, delta);
        }
        for (int e = 0; e < x->f->d_pad; e += VL) {
            if (far_k)
                far = vfma(vld(x->qw.at + i * x->qw.ld + e),
                           vld_upto(a->rel_k + table + e, a->dh - e, v0()), far);
            vst(w->x.o + i * w->x.ld + e, v0());
            vst(w->y.o + i * w->y.ld + e, v0());
        }
        far = vmul(v1(attn_gain(a)), far);
        w->lse[i] = lse == -INFINITY ? INFINITY : lse - x->f->factor * vsum(far);
        w->delta[i] = y->f->factor * vsum(delta);
        vst(w->total[i], v0());
    }
}

/* From the scores in row m of x.s and y.s to p and g of the item's query i, for `vectors` vectors
 * from key x of the block on; g also replaces y.s. */
static void make_gradients(struct grad_work *w, int i, int m, int x, int vectors)
{
    float *p = w->p[i] + VL + x, *g = w->g[i] + VL + x, *d = w->y.s[m] + VL;
    const float *s = w->x.s[m] + VL;
    const vf lse = v1(w->lse[i]), delta = v1(w->delta[i]);

    for (int v = 0; v < vectors * VL; v += VL) {
        const vf prob = vexp2(vsub(vld(s + v), lse));
        const vf grad = vmul(prob, vsub(vld(d + v), delta));
        vst(p + v, prob);
        vst(g + v, grad);
        vst(d + v, grad);
    }
    vst(d + vectors * VL, v0());
}

#include "attn_grad_extra.inc.c"

/* Gradients of the other terms from a row of g against keys [from, from+n). */
static void adjust_gradients(const struct backward *c, const struct item *x, struct grad_work *w,
                             int i, int m, int j, int from, int n)
{
    float *d = w->y.s[m] + VL, *g = w->g[i] + VL + (from - j);
    vf total = vld(w->total[i]);

    add_score_grad(c, x, i, d, from, n);
    for (int v = 0; c->a->soft_cap != 0 && v < n; v += VL)
        vst(d + v, vmul(vld(d + v), vld(w->x.band[m] + VL + v)));
    for (int v = 0; v < n; v += VL) {
        vst(g + v, vld(d + v));
        total = vadd(total, vld(d + v));
    }
    vst(w->total[i], total);
}

/* p and g of group `at` against keys [from, to) of the block that begins with key j, and their
 * contribution to dQ. */
static void grad_keys(const struct backward *c, const struct item *x, const struct item *y,
                      struct grad_work *w, int at, int j, int from, int to)
{
    const int n = to - from;
    int seen[TILES];

    group_scores(x, at, from, n, v1(-INFINITY), seen);
    group_scores(y, at, from, n, v0(), seen);
    for (int m = 0; m < ROWS; m++) {
        make_gradients(w, at + m, m, from - j, (n + VL - 1) / VL);
        if (c->adjusts && at + m < x->n)
            adjust_gradients(c, x, w, at + m, m, j, from, n);
    }
    if (!c->a->no_content)
        value_tiles(false, false, in_place(w->x.o + at * w->x.ld, w->x.ld, NULL), w->y.s[0] + VL,
                    LD, from, seen, &y->v);
    if (y->rel_v.at)
        add_positions(y, at, from, n);
}

/* Group `at` against the block's keys [j, j+n). */
static void grad_group(const struct backward *c, const struct item *x, const struct item *y,
                       struct grad_work *w, int at, int j, int n)
{
    const int vectors = (n + VL - 1) / VL;
    struct range r = {0, j};
    int from = j, to = j;

    if (!x->seen) {
        visible(x, x->i0 + at, min_int(ROWS, x->n - at), &from, &to);
        from = max_int(j, from / VL * VL);
        to = min_int(j + n, to);
    }
    for (int i = at; i < at + ROWS; i++) {
        fill_outside(w->p[i] + VL, from - j, to - j, vectors + 1, v0());
        fill_outside(w->g[i] + VL, from - j, to - j, vectors + 1, v0());
    }
    if (from < to)
        grad_keys(c, x, y, w, at, j, from, to);
    while (x->seen && next_visited(x->seen, at, j + n, &r))
        grad_keys(c, x, y, w, at, j, r.from, r.to);
}

/* Does any group see one of the keys [j, j+n)? */
static bool visits(const struct item *x, int j, int n)
{
    bool any = !x->seen;

    for (int g = 0; !any && g < x->n; g += ROWS) {
        struct range r = {0, j};
        any = next_visited(x->seen, g, j + n, &r);
    }
    return any;
}
