/* SPDX-License-Identifier: MIT
 *
 * Rarer terms of fused attention: changes to a group's scores between the products and the softmax,
 * and the sinks, which a group processes before any key. None of it is in a tile's loops.
 *
 * If far keys share row 0 of a key table, all scores of a row are lower by the same number
 * (attn.inc.c): it is added back where scores are output, and subtracted from the sinks' scores. */

/* q_i . rel_k[0] in base 2: the offset of the scores of the item's query i. Pairs: as load_far left
 * it. */
static float far_score(const struct item *t, int i)
{
    const struct attn *a = t->f->a;
    float far = 0.0f;

    if (!t->f->far_shared || !a->rel_k)
        return 0.0f;
    if (PER_LANE == 2)
        return t->w->far[i];
    const float *far_k = a->rel_k + t->h * a->rel_head;
    for (int e = 0; e < a->dh; e++)
        far += t->qw.at[i * t->qw.ld + e] * far_k[e];
    return far * t->f->factor;
}

/* One query's scores against keys [j, j+n): s = cap(s) + add + fade, output, s *= gain. `slope`
 * receives cap'; a cap excludes the band that is there otherwise. */
static void adjust_scores(const struct item *t, int i, float *s, float *slope, int j, int n)
{
    const struct attn *a = t->f->a;
    const int query = t->i0 + i;

    if (a->soft_cap != 0)
        cap_row(s, slope, LOG2E * a->soft_cap, n);
    if (a->add.at)
        add_dense(s, a->add.at + attn_dense_at(&a->add, t->b, t->h, query) + j, n);
    if (a->fade.at)
        add_fade(s, a, t->b, t->h, query, j, n);
    if (a->scores_out)
        output_scores(a, a->scores_out + attn_scores_at(a, t->b, t->h, query), s, far_score(t, i),
                      t->window, t->seen ? seen_row(t->seen, i) : NULL, query, j, n);
    if (a->gain != 0)
        scale_row(s, a->gain, n);
}

/* w->s = scores of group g against sinks [j, j+n), n <= KEYS, j a multiple of VL; the rest of the
 * last vector is `hidden`. */
static void sink_scores(const struct item *t, int g, int j, int n, const int seen[TILES], vf hidden)
{
    const struct attn *a = t->f->a;
    const int vectors = (n + VL - 1) / VL;
    float(*s)[LD] = t->w->s;

    scores(s[0] + VL, group_of(t->qu, g), t->f->dk, t->sink_k + (ptrdiff_t)j * t->f->dk, vectors,
           seen, NULL, 0, t->f->factor);
    for (int m = 0; m < ROWS; m++) {
        const vf far = v1(attn_gain(a) * far_score(t, g + m));
        for (int x = 0; x < n; x += VL)
            vst(s[m] + VL + x, vsub(vld(s[m] + VL + x), far));
        if (a->sink_logit)
            add_dense(s[m] + VL, a->sink_logit + (ptrdiff_t)t->h * a->sinks + j, n);
        fill_outside(s[m] + VL, 0, n, vectors, hidden);
    }
}

/* State of group g's rows after the sinks, before any key. */
static void init_rows(const struct item *t, int g)
{
    struct work *w = t->w;
    float alpha[VL];

    for (int m = g; m < g + ROWS; m++) {
        w->top[m] = LOWEST;
        vst(w->sum[m], v0());
        for (int e = 0; e < t->f->v_pad; e += VL)
            vst(w->o + m * w->ld + e, v0());
    }
    for (int j = 0; j < t->f->a->sinks; j += KEYS) {
        const int n = min_int(KEYS, t->f->a->sinks - j);
        int seen[TILES];
        for (int x = 0; x < TILES; x++)
            seen[x] = n;
        sink_scores(t, g, j, n, seen, v1(-INFINITY));
        softmax_block(w, g, (n + VL - 1) / VL, false, alpha, false);
        add_values(false, in_place(w->o + g * w->ld, w->ld, alpha), weights_of(w), j, seen,
                   &t->sink_v);
    }
}
