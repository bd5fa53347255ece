/* SPDX-License-Identifier: MIT
 *
 * recur_chunk.inc.c backward: from the last chunk to the first, with the states before the chunks
 * from a first pass. The equations are those of composed/recur_chunked_grad.c, with the eraser's
 * rows e = -beta k or a:
 *
 *              X_t     = R_t + sum_{j<t} A_e[t,j] X_j
 *              dX_j   += A_e[t,j] dX_t               from the last row; then dR = dX
 *              dA_e    = dR X^T
 *              d(e P)  = dR S_0^T
 *              dS_0   += (e P)^T dR
 *   own key    R       = beta V + (e P) S_0
 *              dV      = beta dR
 *              dbeta   = dR . v - de . k
 *              dk     -= beta de
 *   rank one   R       = A_ak V + (e P) S_0
 *              dV     += A_ak^T dR
 *              dA_ak   = dR V^T */

struct grads {
    float *d_S, *d_Sb;           /* [dkp,ld] behind the chunk, before it */
    float *d_z, *d_z0;           /* [dkp] likewise */
    float *d_O, *d_W, *d_X, *v;  /* [CHUNK,ld]; v as given */
    float *wt, *xt, *ot;         /* [ld,CHUNK] W, X and d_O across */
    float *q, *k, *e, *b, *rows; /* [CHUNK,dkp] gradients of readers and writers; work space */
    float *R;                    /* [CHUNK,dkp] decays of a writer up to the chunk's end */
    float *lanes;                /* [dkp,CHUNK] work space */
    float *A, *Ae, *Aek;         /* [CHUNK,CHUNK] of d_A; of the eraser with b (own: k), with k */
    float *G;                    /* [CHUNK+1,dkp] */
    float *kept;                 /* S, z and m before each chunk, and behind the last */
    float d_n[CHUNK];            /* of the normalisers */
};

/* ---- work space --------------------------------------------------------------------------- */

static int chunks_before(const struct recur *r) { return (r->M + CHUNK - 1) / CHUNK; }

static int chunks_of(const struct recur *r)
{
    return chunks_before(r) + (r->L + CHUNK - 1) / CHUNK;
}

/* Floats of a state that is kept: S, z, and m as a double. */
static size_t kept_floats(const struct chunk *c) { return (size_t)(c->dkp * c->ld + c->dkp) + PAD; }

static size_t grads_layout(struct grads *d, const struct chunk *c, char *at)
{
    const struct recur *r = c->r;
    const size_t dkp = (size_t)c->dkp, ld = (size_t)c->ld, square = CHUNK * CHUNK;
    const struct {
        float **to;
        size_t n;
    } arrays[] = {{&d->d_S, dkp * ld},
                  {&d->d_Sb, dkp * ld},
                  {&d->d_z, dkp},
                  {&d->d_z0, dkp},
                  {&d->d_O, CHUNK * ld},
                  {&d->d_W, CHUNK * ld},
                  {&d->d_X, CHUNK * ld},
                  {&d->v, CHUNK * ld},
                  {&d->wt, CHUNK * ld},
                  {&d->xt, CHUNK * ld},
                  {&d->ot, CHUNK * ld},
                  {&d->q, CHUNK * dkp},
                  {&d->k, CHUNK * dkp},
                  {&d->e, CHUNK * dkp},
                  {&d->b, CHUNK * dkp},
                  {&d->rows, CHUNK * dkp},
                  {&d->R, CHUNK * dkp},
                  {&d->lanes, CHUNK * dkp},
                  {&d->A, square},
                  {&d->Ae, square},
                  {&d->Aek, square},
                  {&d->G, (CHUNK + 1) * dkp},
                  {&d->kept, kept_floats(c) * (size_t)(chunks_of(r) + 1)}};
    size_t used = 0;

    for (size_t i = 0; i < ARRAY_LEN(arrays); i++) {
        *arrays[i].to = at ? (float *)(at + used) : NULL;
        used += round_up(arrays[i].n * sizeof(float), 64);
    }
    return used;
}

static size_t grads_bytes(const struct recur *r)
{
    struct chunk c;
    struct grads d;
    const size_t bytes = chunk_layout(&c, r, NULL);

    c.ld = padded(r->dv);
    return bytes + grads_layout(&d, &c, NULL);
}

static void clear(float *at, ptrdiff_t n) { memset(at, 0, sizeof(float) * (size_t)n); }

/* ---- pieces ------------------------------------------------------------------------------- */

/* to += a times b, both [CHUNK,dkp], for its first n rows. */
static void add_product(const struct chunk *c, float *to, const float *a, const float *b)
{
    for (ptrdiff_t i = 0; i < c->n * c->dkp; i += VL)
        vst(to + i, vfma(vld(a + i), vld(b + i), vld(to + i)));
}

/* to [rows,width] += A b, or A^T b; A [CHUNK,CHUNK], b [CHUNK,width]. */
static void add_pairs(const struct chunk *c, float *to, const float *A, bool transposed,
                      const float *b, ptrdiff_t width)
{
    for (int t = 0; t < c->n; t += TILE_ROWS) {
        const struct term term = transposed ? (struct term){A + t, 1, CHUNK, b, c->n}
                                            : (struct term){A + t * CHUNK, CHUNK, 1, b, c->n};
        tiles(width, to + t * width, to + t * width, NULL, &term, 1);
    }
}

/* d->rows [CHUNK,dkp] = rows, given across, times S^T. */
static void through_state(const struct chunk *c, struct grads *d, const float *S, const float *rt,
                          const float *by_channel_of_z, const float *by_row)
{
    dots(d->lanes, (int)c->dkp, S, c->ld, rt, c->columns);
    for (ptrdiff_t x = 0; by_channel_of_z && x < c->dkp; x++)
        for (int l = 0; l < CHUNK; l += VL) {
            float *const at = d->lanes + x * CHUNK + l;
            const vf row = by_row ? vld(by_row + l) : v1(1);
            vst(at, vfma(v1(by_channel_of_z[x]), row, vld(at)));
        }
    for (ptrdiff_t x = 0; x < c->dkp; x += VL)
        pack_across(d->rows + x, c->dkp, d->lanes + x * CHUNK, CHUNK, VL, CHUNK, 1);
}

/* A reader's part through S_0, for d_out [CHUNK,ld] and the same across. */
static void read_back(struct chunk *c, struct grads *d, float *d_x, const float *x, bool before,
                      const float *d_out, const float *across_out, bool normalised)
{
    through_state(c, d, c->S, across_out, normalised ? c->z : NULL, d->d_n);
    decay_reader(c, d->rows, before);
    for (ptrdiff_t i = 0; i < c->n * c->dkp; i += VL)
        vst(d_x + i, vadd(vld(d_x + i), vld(c->x + i)));
    decay_reader(c, x, before);
    for (ptrdiff_t n = 0; n < c->dkp; n += TILE_ROWS) {
        const struct term term = {c->x + n, 1, c->dkp, d_out, c->n};
        tiles(c->ld, d->d_Sb + n * c->ld, d->d_Sb + n * c->ld, NULL, &term, 1);
    }
}

/* A writer's part through S_C. yd: across, with its decays. */
static void write_back(struct chunk *c, struct grads *d, float *d_y, const float *yd,
                       const float *rt, float *d_rows, bool normalised)
{
    through_state(c, d, d->d_S, rt, normalised ? d->d_z : NULL, NULL);
    add_product(c, d_y, d->R, d->rows);
    for (int j = 0; j < c->n; j += TILE_ROWS) {
        const struct term term = {yd + j, 1, CHUNK, d->d_S, c->r->dk};
        tiles(c->ld, d_rows + j * c->ld, d_rows + j * c->ld, NULL, &term, 1);
    }
}

/* VL channels of pairs whose channels decay by themselves. The writers' decays are carried along
 * for the readers, and back for the writers. */
VEC_INLINE void carried_back(const struct chunk *c, const float *d_A, const float *x,
                             const float *y, bool before, float *d_x, float *d_y)
{
    const ptrdiff_t dkp = c->dkp;
    vf yd[CHUNK];

    for (int t = 0; t < c->n; t++) {
        const vf w = vld(c->w + t * dkp);
        vf sum = vld(d_x + t * dkp);
        for (int j = 0; j < t; j++) {
            const vf by = v1(d_A[t * CHUNK + j]);
            if (before)
                sum = vfma(by, yd[j], sum);
            yd[j] = vmul(yd[j], w);
            if (!before)
                sum = vfma(by, yd[j], sum);
        }
        yd[t] = vld(y + t * dkp);
        if (!before)
            sum = vfma(v1(d_A[t * CHUNK + t]), yd[t], sum);
        vst(d_x + t * dkp, sum);
    }
    for (int j = 0; j < c->n; j++) {
        vf sum = v0();
        for (int t = c->n - 1; t > j; t--) {
            const vf w = vld(c->w + t * dkp), by = v1(d_A[t * CHUNK + j]);
            if (before)
                sum = vfma(by, vld(x + t * dkp), vmul(sum, w));
            else
                sum = vmul(w, vfma(by, vld(x + t * dkp), sum));
        }
        if (!before)
            sum = vfma(v1(d_A[j * CHUNK + j]), vld(x + j * dkp), sum);
        vst(d_y + j * dkp, vadd(vld(d_y + j * dkp), sum));
    }
}

/* What the gradient d_A of pairs(x, y) gives to x and y; d_A is overwritten. */
static void pairs_back(const struct chunk *c, float *d_A, const float *x, const float *y,
                       bool before, float *d_x, float *d_y)
{
    weigh(c, d_A, before);
    if (!by_channel(c->r)) {
        add_pairs(c, d_x, d_A, false, y, c->dkp);
        add_pairs(c, d_y, d_A, true, x, c->dkp);
        return;
    }
    for (ptrdiff_t n = 0; n < c->dkp; n += VL) {
        struct chunk part = *c;
        part.w += n;
        if (before)
            carried_back(&part, d_A, x + n, y + n, true, d_x + n, d_y + n);
        else
            carried_back(&part, d_A, x + n, y + n, false, d_x + n, d_y + n);
    }
}

/* G[t + shift] += sign x . dx */
static void decay_back(const struct chunk *c, struct grads *d, float sign, const float *x,
                       const float *d_x, int shift)
{
    float *const G = d->G + shift * c->dkp;

    for (ptrdiff_t i = 0; c->r->g_width && i < c->n * c->dkp; i += VL)
        vst(G + i, vfma(vmul(v1(sign), vld(x + i)), vld(d_x + i), vld(G + i)));
}

/* Row t of a gradient; fetches that of the next chunk. */
static float *grad_row(const struct chunk *c, float *d, const struct recur_rows *rows, int t, int h,
                       int width)
{
    if (c->fetched)
        vprefetch(recur_grad_at(d, rows, c->b, t + c->next, h), width);
    return recur_grad_at(d, rows, c->b, t, h);
}

/* to += by x */
static void add_row(float *to, const float *x, int n, float by)
{
    for (int i = 0; i < n; i += VL)
        vst_upto(to + i, n - i,
                 vfma(v1(by), vld_upto(x + i, n - i, v0()), vld_upto(to + i, n - i, v0())));
}

static float dot(const float *x, const float *y, ptrdiff_t n)
{
    vf sum = v0();

    for (ptrdiff_t i = 0; i < n; i += VL)
        sum = vfma(vld(x + i), vld(y + i), sum);
    return vsum(sum);
}

/* ---- outputs ------------------------------------------------------------------------------ */

/* d_O and d_n of head h; c->x holds its decayed queries. */
static void numerators(const struct chunk *c, const struct recur_grad *out, struct grads *d, int h)
{
    const struct recur *r = c->r;

    for (int t = 0; t < CHUNK; t++) {
        float *const row = d->d_O + t * c->ld;
        clear(row, c->ld);
        d->d_n[t] = 0;
        if (t >= c->n)
            continue;
        const ptrdiff_t at = ((ptrdiff_t)c->b * r->L + c->t0 - r->M + t) * r->H + h;
        const float by = r->norm ? 1 / r->den[at] : 1;
        if (c->fetched)
            vprefetch(out->d_o + (at + (ptrdiff_t)c->next * r->H) * r->dv, r->dv);
        add_row(row, out->d_o + at * r->dv, r->dv, by);
        if (!r->norm)
            continue;
        const float n = normaliser(c, t);
        float sum = 0;
        for (int e = 0; e < r->dv; e++)
            sum -= row[e] * r->o[at * r->dv + e];
        if (r->norm == RECUR_MLSTM)
            sum = fabsf(n) > least_divisor(c, t) ? copysignf(1, n) * sum : 0;
        d->d_n[t] = sum;
    }
}

static void bonus_back(const struct chunk *c, const struct recur_grad *out, struct grads *d, int h)
{
    const struct recur *r = c->r;

    for (int t = 0; t < c->n; t++) {
        const float e = dot(d->d_O + t * c->ld, c->V + t * c->ld, c->ld);
        float *const d_k = out->d_k ? recur_grad_at(out->d_k, &r->k, c->b, c->t0 + t, c->hs) : NULL;
        for (int x = 0; x < r->dk; x++) {
            const float u = r->u[h * r->dk + x];
            const float q = c->q[t * c->dkp + x], k = c->k[t * c->dkp + x];
            d->q[t * c->dkp + x] += e * u * k;
            if (d_k)
                d_k[x] += e * u * q;
            if (out->d_u)
                out->d_u[h * r->dk + x] += e * q * k;
        }
    }
}

static void head_back(struct chunk *c, const struct recur_grad *out, struct grads *d, int h)
{
    const struct recur *r = c->r;
    const bool before = r->u;

    ask(c, h);
    numerators(c, out, d, h);
    across(d->ot, d->d_O, c->ld);
    clear(d->q, CHUNK * c->dkp);
    add_pairs(c, d->d_W, c->A, true, d->d_O, c->ld);
    dots(d->A, CHUNK, d->d_O, c->ld, d->wt, c->columns);
    for (int i = 0; r->norm && i < CHUNK * CHUNK; i += VL)
        vst(d->A + i, vadd(vld(d->A + i), v1(d->d_n[i / CHUNK])));
    pairs_back(c, d->A, c->q, c->k, before, d->q, d->k);
    if (r->a.at) {
        add_pairs(c, d->d_X, c->Ab, true, d->d_O, c->ld);
        dots(d->A, CHUNK, d->d_O, c->ld, d->xt, c->columns);
        pairs_back(c, d->A, c->q, c->rb, before, d->q, d->b);
    }
    read_back(c, d, d->q, c->q, before, d->d_O, d->ot, r->norm);
    for (int t = 0; r->norm && t < c->n; t++)
        add_row(d->d_z0, c->x + t * c->dkp, (int)c->dkp, d->d_n[t]);
    decay_back(c, d, 1, c->q, d->q, before ? 0 : 1);
    if (r->u)
        bonus_back(c, out, d, h);
    for (int t = 0; out->d_q && r->q.at && t < c->n; t++)
        add_row(grad_row(c, out->d_q, &r->q, c->t0 - r->M + t, h, r->dk), d->q + t * c->dkp, r->dk,
                r->scale);
}

/* ---- erasing ------------------------------------------------------------------------------ */

/* X_j += A[t,j] X_t for j < t, from the last row. */
static void substitute_back(const struct chunk *c, float *X, const float *A)
{
    for (int v = 0; v < c->ld; v += VL) {
        vf x[CHUNK];
        UNROLL
        for (int t = 0; t < CHUNK; t++)
            x[t] = vld(X + t * c->ld + v);
        UNROLL
        for (int t = CHUNK - 1; t > 0; t--)
            UNROLL
        for (int j = 0; j < t; j++)
            x[j] = vfma(v1(A[t * CHUNK + j]), x[t], x[j]);
        UNROLL
        for (int t = 0; t < CHUNK; t++)
            vst(X + t * c->ld + v, x[t]);
    }
}

static void erase_back(struct chunk *c, struct grads *d)
{
    const bool free_form = c->r->a.at;
    float *const d_R = free_form ? d->d_X : d->d_W;

    substitute_back(c, d_R, d->Ae);
    across(d->ot, d_R, c->ld);
    dots(d->A, CHUNK, d_R, c->ld, free_form ? d->xt : d->wt, c->columns);
    for (int t = 0; t < CHUNK; t++)
        d->A[t * CHUNK + t] = 0; /* an eraser does not read its own row */
    if (free_form) {
        pairs_back(c, d->A, c->e, c->rb, true, d->e, d->b);
        add_pairs(c, d->d_W, d->Aek, true, d_R, c->ld);
        dots(d->A, CHUNK, d_R, c->ld, d->wt, c->columns);
        pairs_back(c, d->A, c->e, c->k, true, d->e, d->k);
        decay_back(c, d, -1, c->rb, d->b, 1);
    } else {
        pairs_back(c, d->A, c->e, c->k, false, d->e, d->k);
    }
    read_back(c, d, d->e, c->e, free_form, d_R, d->ot, false);
    decay_back(c, d, 1, c->e, d->e, free_form ? 0 : 1);
}

/* ---- one chunk ---------------------------------------------------------------------------- */

/* What a writer's row is multiplied by on its way to the chunk's end, and G's part of the state. */
static void begin_chunk(const struct chunk *c, struct grads *d, const float *behind)
{
    const struct recur *r = c->r;
    const ptrdiff_t dkp = c->dkp, ld = c->ld;
    float *const G = d->G + c->n * dkp;

    for (int j = c->n - 1; j >= 0; j--)
        for (ptrdiff_t x = 0; x < dkp; x += VL) {
            vf by = v1(c->E[c->n * CHUNK + j]);
            if (by_channel(r))
                by = j == c->n - 1
                         ? v1(1)
                         : vmul(vld(d->R + (j + 1) * dkp + x), vld(c->w + (j + 1) * dkp + x));
            vst(d->R + j * dkp + x, by);
        }
    clear(d->G, (c->n + 1) * dkp);
    for (ptrdiff_t x = 0; x < r->dk; x++) {
        const float w = by_channel(r) ? c->P[c->n * dkp + x] : c->P[c->n];
        for (ptrdiff_t e = 0; e < ld; e += VL)
            vst(d->d_Sb + x * ld + e, vmul(v1(w), vld(d->d_S + x * ld + e)));
        d->d_z0[x] = w * d->d_z[x];
        if (by_channel(r))
            G[x] = dot(behind + x * ld, d->d_S + x * ld, ld);
    }
    if (r->g_width == 1)
        G[0] = dot(behind, d->d_S, dkp * ld);
    if (r->norm)
        G[0] += r->g_width == 1 ? dot(behind + dkp * ld, d->d_z, dkp) : 0;
    for (ptrdiff_t x = 0; r->norm && by_channel(r) && x < r->dk; x++)
        G[x] += behind[dkp * ld + x] * d->d_z[x];
    clear(d->d_W, CHUNK * ld);
    clear(d->d_X, CHUNK * ld);
    clear(d->k, CHUNK * dkp);
    clear(d->e, CHUNK * dkp);
    clear(d->b, CHUNK * dkp);
}

/* The log decays of key `at`, from what all readers and writers behind it gave. */
static void log_decay_back(const struct chunk *c, float *to, const float *G, int at)
{
    const struct recur *r = c->r;
    const float *const g = recur_at(&r->g, c->b, at, c->hs);

    if (by_channel(r)) {
#pragma omp simd
        for (int x = 0; x < r->dk; x++)
            to[x] += recur_resets(r, g[x]) ? 0 : G[x];
        return;
    }
    vf sum = v0();
    for (ptrdiff_t x = 0; x < c->dkp; x += VL)
        sum = vadd(sum, vld(G + x));
    *to += recur_resets(r, *g) ? 0 : vsum(sum);
}

/* Row t of operands that belong to keys. */
static void key_back(const struct chunk *c, const struct recur_grad *out, const struct grads *d,
                     int t)
{
    const struct recur *r = c->r;
    const ptrdiff_t dkp = c->dkp;
    const float *const k = d->k + t * dkp, *const e = d->e + t * dkp,
                       *const G = d->G + (t + 1) * dkp;
    const float *const d_W = d->d_W + t * c->ld;
    const int at = c->t0 + t;
    const float beta = r->beta.at ? *recur_at(&r->beta, c->b, at, c->hs) : 1;

    if (out->d_k && r->k.at) {
        float *const to = grad_row(c, out->d_k, &r->k, at, c->hs, r->dk);
        add_row(to, k, r->dk, 1);
        if (r->beta.at)
            add_row(to, e, r->dk, -beta);
    }
    if (out->d_v)
        add_row(grad_row(c, out->d_v, &r->v, at, c->hs, r->dv), d_W, r->dv, beta);
    if (out->d_beta && r->beta.at)
        *recur_grad_at(out->d_beta, &r->beta, c->b, at, c->hs) +=
            dot(d_W, d->v + t * c->ld, c->ld) - dot(e, c->k + t * dkp, dkp);
    if (out->d_a && r->a.at)
        add_row(grad_row(c, out->d_a, &r->a, at, c->hs, r->dk), e, r->dk, 1);
    if (out->d_b && r->a.at)
        add_row(grad_row(c, out->d_b, &r->b, at, c->hs, r->dk), d->b + t * dkp, r->dk, 1);
    if (out->d_i && r->i.at)
        *recur_grad_at(out->d_i, &r->i, c->b, at, c->hs) += dot(k, c->k + t * dkp, dkp);
    if (out->d_g && r->g_width)
        log_decay_back(c, grad_row(c, out->d_g, &r->g, at, c->hs, r->g_width), G, at);
}

/* From d_S behind the chunk to d_S before it; `behind` is the state there. */
static void chunk_back(struct chunk *c, const struct recur_grad *out, struct grads *d,
                       const float *behind)
{
    const struct recur *r = c->r;
    const int heads = r->H / r->Hs;

    memcpy(d->Ae, r->a.at ? c->Ab : c->A, CHUNK * CHUNK * sizeof(float));
    memcpy(d->Aek, c->A, CHUNK * CHUNK * sizeof(float));
    begin_chunk(c, d, behind);
    across(d->wt, c->V, c->ld);
    if (r->a.at)
        across(d->xt, c->X, c->ld);
    if (r->beta.at)
        gather(c, d->v, c->ld, &r->v, c->t0, c->hs, 0, r->dv, NULL);
    if (c->t0 < r->M)
        decay_writers(c);
    for (int h = c->hs * heads; c->t0 >= r->M && h < (c->hs + 1) * heads; h++)
        head_back(c, out, d, h);
    write_back(c, d, d->k, c->kd, d->wt, d->d_W, r->norm);
    if (r->a.at)
        write_back(c, d, d->b, c->bd, d->xt, d->d_X, false);
    if (r->a.at || r->beta.at)
        erase_back(c, d);
    decay_back(c, d, -1, c->k, d->k, 1);
    for (int t = c->n - 1; r->g_width && t > 0; t--) /* g_s is part of every G_t with t >= s */
        for (ptrdiff_t x = 0; x < c->dkp; x += VL) {
            float *const G = d->G + t * c->dkp + x;
            vst(G, vadd(vld(G), vld(G + c->dkp)));
        }
    for (int t = 0; t < c->n; t++)
        key_back(c, out, d, t);
    float *const S = d->d_S, *const z = d->d_z;
    d->d_S = d->d_Sb;
    d->d_Sb = S;
    d->d_z = d->d_z0;
    d->d_z0 = z;
}

/* ---- all keys of one state ---------------------------------------------------------------- */

/* Keys [*t0, *t0 + n) of the i-th chunk; none has keys before the queries and of the queries. */
static int chunk_keys(const struct recur *r, int i, int *t0)
{
    const int before = chunks_before(r);
    const int at = i < before ? i * CHUNK : r->M + (i - before) * CHUNK;

    *t0 = at;
    return min_int(CHUNK, (i < before ? r->M : r->M + r->L) - at);
}

static void reverse(struct chunk *c, const struct recur_grad *out, struct grads *d)
{
    const struct recur *r = c->r;
    const int chunks = chunks_of(r);
    const ptrdiff_t size = c->dkp * c->ld, state = recur_state(r, c->b, c->hs);
    const size_t step = kept_floats(c);
    int t0;

    load_state(c);
    c->next = CHUNK;
    for (int i = 0; i <= chunks; i++) {
        float *const to = d->kept + (size_t)i * step;
        memcpy(to, c->S, sizeof(float) * (size_t)size);
        memcpy(to + size, c->z, sizeof(float) * (size_t)c->dkp);
        memcpy(to + size + c->dkp, &c->m[0], sizeof(double));
        if (i == chunks)
            break;
        const int n = chunk_keys(r, i, &t0);
        c->fetched = clamp_int((t0 < r->M ? r->M : r->M + r->L) - t0 - CHUNK, 0, CHUNK);
        enter(c, t0, n);
        solve(c);
        decay_writers(c);
        leave(c);
    }
    clear(d->d_S, size);
    clear(d->d_Sb, size);
    clear(d->d_z, c->dkp);
    clear(d->d_z0, c->dkp);
    for (int x = 0; out->d_s1 && x < r->dk; x++)
        memcpy(d->d_S + x * c->ld, out->d_s1 + (state * r->dk + x) * r->dv,
               sizeof(float) * (size_t)r->dv);
    for (int i = chunks - 1; i >= 0; i--) {
        float *const from = d->kept + (size_t)i * step;
        const int n = chunk_keys(r, i, &t0);
        c->S = from;
        c->z = from + size;
        memcpy(&c->m[0], from + size + c->dkp, sizeof(double));
        c->next = -CHUNK;
        c->fetched = t0 - CHUNK < (t0 < r->M ? 0 : r->M) ? 0 : CHUNK;
        enter(c, t0, n);
        solve(c);
        chunk_back(c, out, d, from + step);
    }
    for (int x = 0; out->d_s0 && x < r->dk; x++)
        memcpy(out->d_s0 + (state * r->dk + x) * r->dv, d->d_S + x * c->ld,
               sizeof(float) * (size_t)r->dv);
    if (out->d_z0)
        memcpy(out->d_z0 + state * r->dk, d->d_z, sizeof(float) * (size_t)r->dk);
}

static void chunk_backward(const struct engine *g, const struct recur *r,
                           const struct recur_grad *d, void *scratch)
{
    const int parts = recur_parts(r, d);
    const size_t bytes = grads_bytes(r);

    recur_clear(r, d);
#pragma omp parallel for schedule(dynamic, 1) num_threads(parts > 1 ? g->threads : 1)
    for (int i = 0; i < parts; i++) {
        char *const room = (char *)scratch + bytes * (size_t)omp_get_thread_num();
        const struct recur_part part = recur_part(r, d, i);
        const int heads = part.h1 - part.h0;
        for (int state = 0; state < heads * (part.b1 - part.b0); state++) {
            struct chunk c;
            struct grads grads;
            const size_t used = chunk_layout(&c, r, room);
            c.b = part.b0 + state / heads;
            c.hs = part.h0 + state % heads;
            c.columns = r->dv;
            c.ld = padded(r->dv);
            grads_layout(&grads, &c, room + used);
            reverse(&c, d, &grads);
        }
    }
}
