/* SPDX-License-Identifier: MIT
 *
 * The products of a chunk of keys: tiles in registers, pairs of readers and writers with the decays
 * between them, and the triangular systems of erases. Included by recur_chunk.inc.c, whose chunk
 * they work on. */

/* ---- tiles -------------------------------------------------------------------------------- */

/* What a tile of TILE_ROWS rows adds: a's rows times n rows of b, which are ld floats apart. */
struct term {
    const float *a;
    ptrdiff_t row, step;
    const float *b;
    int n;
};

/* to = from (NULL = 0) times decay[row] (NULL = 1) + terms; `from` may be `to`. */
VEC_INLINE void tile_as(int C, ptrdiff_t ld, float *to, const float *from, const float *decay,
                        const struct term *term, int terms, int v)
{
    vf acc[TILE_ROWS][TILE_COLS];

    UNROLL
    for (int r = 0; r < TILE_ROWS; r++)
        UNROLL
    for (int c = 0; c < C; c++) {
        acc[r][c] = from ? vld(from + r * ld + v + c * VL) : v0();
        if (decay)
            acc[r][c] = vmul(acc[r][c], v1(decay[r]));
    }
    for (int i = 0; i < terms; i++)
        tile_fma(TILE_ROWS, C, acc, term[i].n, term[i].a, term[i].row, term[i].step, term[i].b + v,
                 ld, VL);
    UNROLL
    for (int r = 0; r < TILE_ROWS; r++)
        UNROLL
    for (int c = 0; c < C; c++)
        vst(to + r * ld + v + c * VL, acc[r][c]);
}

/* All columns of a group of TILE_ROWS rows. */
static void tiles(ptrdiff_t ld, float *to, const float *from, const float *decay,
                  const struct term *term, int terms)
{
    for (int v = 0, left; v < ld; v += VL * (left >= TILE_COLS && left != TILE_COLS + 1 ? TILE_COLS
                                             : left == 1                                ? 1
                                                                                        : 2)) {
        left = (int)(ld - v) / VL;
        if (left == 1)
            tile_as(1, ld, to, from, decay, term, terms, v);
        else if (left < TILE_COLS || left == TILE_COLS + 1)
            tile_as(2, ld, to, from, decay, term, terms, v);
        else
            tile_as(TILE_COLS, ld, to, from, decay, term, terms, v);
    }
}

/* ---- pairs -------------------------------------------------------------------------------- */

/* VL readers from row t on and VL writers from lane j on, whose channels decay by themselves. */
VEC_INLINE void carried(const struct chunk *c, float *A, const float *x, const float *from,
                        float *to, int t, int j, bool before)
{
    const ptrdiff_t dkp = c->dkp;
    const float *const w = c->w + t * dkp;
    vf acc[VL];

    x += t * dkp;
    UNROLL
    for (int i = 0; i < VL; i++)
        acc[i] = v0();
    for (int n = 0; n < c->r->dk; n++) {
        vf y = vld(from + n * CHUNK + j);
        UNROLL
        for (int i = 0; i < VL; i++) {
            const vf by = v1(w[i * dkp + n]);
            if (before)
                acc[i] = vfma(v1(x[i * dkp + n]), y, acc[i]);
            y = t == j ? vmul_m(y, vfirst(i), by) : vmul(y, by);
            if (!before)
                acc[i] = vfma(v1(x[i * dkp + n]), y, acc[i]);
        }
        vst(to + n * CHUNK + j, y);
    }
    UNROLL
    for (int i = 0; i < VL; i++) {
        const float *const seen = c->E + (t + i + !before) * CHUNK + j;
        vst(A + (t + i) * CHUNK + j, vmul(acc[i], vld(seen)));
    }
}

static void channel_pairs(const struct chunk *c, float *A, const float *x, const float *yt,
                          float *yd, bool before)
{
    for (int j = 0; j < CHUNK; j += VL)
        for (int t = 0; t < CHUNK; t += VL) {
            const float *const from = t <= j ? yt : yd;
            if (t < j)
                for (int i = t; i < t + VL; i++)
                    vst(A + i * CHUNK + j, v0());
            else if (t == j && before)
                carried(c, A, x, from, yd, j, j, true);
            else if (t == j)
                carried(c, A, x, from, yd, j, j, false);
            else if (before)
                carried(c, A, x, from, yd, t, j, true);
            else
                carried(c, A, x, from, yd, t, j, false);
        }
}

/* to [rows,CHUNK] = a times bt [n,CHUNK]; `rows` is a multiple of CHUNK. */
static void dots(float *to, int rows, const float *a, ptrdiff_t row, const float *bt, int n)
{
    enum { R = TILE_ROWS };

    for (int t = 0; t < rows; t += R) {
        vf acc[R][TILE_COLS];
        UNROLL
        for (int i = 0; i < R; i++)
            UNROLL
        for (int l = 0; l < LANES; l++)
            acc[i][l] = v0();
        tile_fma(R, LANES, acc, n, a + t * row, row, 1, bt, CHUNK, VL);
        UNROLL
        for (int i = 0; i < R; i++)
            UNROLL
        for (int l = 0; l < LANES; l++)
            vst(to + (t + i) * CHUNK + l * VL, acc[i][l]);
    }
}

/* Pairs times the decays between them; 0 where they do not count. */
static void weigh(const struct chunk *c, float *A, bool before)
{
    const float *const E = c->E + (before ? 0 : CHUNK);

    for (int i = 0; i < CHUNK * CHUNK; i += VL)
        vst(A + i, vmul(vld(A + i), vld(E + i)));
}

/* A[t,j] of readers x and writers across yt: those before row t, or up to it; 0 elsewhere. yd
 * becomes the writers with their decays up to the chunk's end. */
static void pairs(const struct chunk *c, float *A, const float *x, const float *yt, float *yd,
                  bool before)
{
    if (by_channel(c->r)) {
        channel_pairs(c, A, x, yt, yd, before);
        return;
    }
    dots(A, CHUNK, x, c->dkp, yt, c->r->dk);
    weigh(c, A, before);
    for (int n = 0; n < c->r->dk; n++)
        for (int l = 0; l < CHUNK; l += VL)
            vst(yd + n * CHUNK + l, vmul(vld(yt + n * CHUNK + l), vld(c->E + c->n * CHUNK + l)));
}

/* ---- systems ------------------------------------------------------------------------------ */

/* X_t += sum_{j<t} A[t,j] X_j, in order of t. */
static void substitute(const struct chunk *c, float *X, const float *A)
{
    const ptrdiff_t ld = c->ld;

    for (int v = 0; v < ld; v += VL)
        for (int t = 0; t < c->n; t += VL) {
            vf x[VL];
            UNROLL
            for (int i = 0; i < VL; i++)
                x[i] = vld(X + (t + i) * ld + v);
            for (int j = 0; j < t; j++) {
                const vf other = vld(X + j * ld + v);
                UNROLL
                for (int i = 0; i < VL; i++)
                    x[i] = vfma(v1(A[(t + i) * CHUNK + j]), other, x[i]);
            }
            UNROLL
            for (int j = 0; j < VL; j++)
                UNROLL
            for (int i = j + 1; i < VL; i++)
                x[i] = vfma(v1(A[(t + i) * CHUNK + t + j]), x[j], x[i]);
            UNROLL
            for (int i = 0; i < VL; i++)
                vst(X + (t + i) * ld + v, x[i]);
        }
}
