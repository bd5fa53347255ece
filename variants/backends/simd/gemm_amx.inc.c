/* SPDX-License-Identifier: MIT
 *
 * Products of bf16 with the tiles of amx.h, one instruction for 16 x 16 sums of 32 products. Slivers of
 * b are those of gemm_pairs.inc.c; rows of a lie as they are multiplied, 16 lanes of each. */

static int whole_tiles(int rows) { return (rows + SIDE - 1) / SIDE * SIDE; }

/* Rows [i, i+R) of op(a), columns [p, p+k), rounded: for each 16 lanes of k those of each row, 0 up
 * to whole tiles. */
static void pack_a(float *dst, const struct gemm *g, int i, int R, int p, int k)
{
    const int rows = whole_tiles(R), lanes = lanes_for(k);

    for (int at = 0; at < lanes; at += SIDE, dst += rows * SIDE) {
        const int left = k - at * PER_LANE, first = p + at * PER_LANE;
        for (int r0 = 0; g->ta && r0 < rows; r0 += SIDE) {
            vf t[VL];
            pack_rows_along((float *)t, VL, g->a + first * g->lda + i + r0, g->lda, R - r0,
                            min_int(left, SIDE * PER_LANE));
            vtranspose(t);
            for (int r = 0; r < SIDE; r++)
                vst(dst + (r0 + r) * SIDE, t[r]);
        }
        for (int r = 0; !g->ta && r < rows; r++)
            vst(dst + r * SIDE, r < R ? vpairs_n(g->a + (i + r) * g->lda + first, left) : v0());
    }
}

/* The sums of R rows and `cols` columns, at `out` in rows of NR, into c as gemm_tile has it. */
static void put_sums(const struct gemm *g, float beta, const float *out, int R, float *c, int cols)
{
    for (int r = 0; r < R; r++, out += NR, c += g->ldc)
        for (int j = 0; j < cols; j += VL) {
            const vf x = vmul(vld(out + j), v1(g->alpha));
            const vf old = beta != 0.0f ? vld_upto(c + j, cols - j, v0()) : v0();
            vst_upto(c + j, cols - j, vfma(old, v1(beta), x));
        }
}

/* As gemm_tile, of up to two tiles by two. */
VEC_INLINE void amx_tile(bool tall, bool wide, int R, const struct gemm *g, int k, float beta,
                         const float *a, const float *b, float *c, int cols, struct ahead *ahead)
{
    _Alignas(64) float out[2 * SIDE * NR];
    const int step = (tall ? 2 : 1) * SIDE * SIDE;
    const bool in_place = g->alpha == 1.0f && beta == 0.0f && R % SIDE == 0 && cols % SIDE == 0;
    float *const to = in_place ? c : out;
    const ptrdiff_t row = (in_place ? g->ldc : NR) * (ptrdiff_t)sizeof(float);

    SETTLE();
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int p = 0, seen = 0; p < k; p += SIDE, a += step, b += SIDE * NR) {
        if (ahead && p % FETCH == 0) {
            fetch_ahead(ahead);
            for (const int end = min_int(seen + ahead->c_rows, R); seen < end; seen++)
                vprefetch_l1(c + seen * g->ldc, min_int(cols, NR));
        }
        _tile_loadd(4, a, SIDE * sizeof(float));
        _tile_loadd(6, b, NR * sizeof(float));
        _tile_dpbf16ps(0, 4, 6);
        if (wide) {
            _tile_loadd(7, b + SIDE, NR * sizeof(float));
            _tile_dpbf16ps(1, 4, 7);
        }
        if (tall) {
            _tile_loadd(5, a + SIDE * SIDE, SIDE * sizeof(float));
            _tile_dpbf16ps(2, 5, 6);
            if (wide)
                _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, to, row);
    if (wide)
        _tile_stored(1, to + SIDE, row);
    if (tall)
        _tile_stored(2, (char *)to + SIDE * row, row);
    if (tall && wide)
        _tile_stored(3, (char *)(to + SIDE) + SIDE * row, row);
    SETTLE();
    if (!in_place)
        put_sums(g, beta, out, R, c, cols);
}

static void gemm_tile_any(int R, const struct gemm *g, int k, float beta, const float *a,
                          const float *b, float *c, int cols, struct ahead *ahead)
{
    if (R > SIDE && cols > SIDE)
        amx_tile(true, true, R, g, k, beta, a, b, c, cols, ahead);
    else if (R > SIDE)
        amx_tile(true, false, R, g, k, beta, a, b, c, cols, ahead);
    else if (cols > SIDE)
        amx_tile(false, true, R, g, k, beta, a, b, c, cols, ahead);
    else
        amx_tile(false, false, R, g, k, beta, a, b, c, cols, ahead);
}
