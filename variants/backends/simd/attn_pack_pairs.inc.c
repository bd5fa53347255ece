/* SPDX-License-Identifier: MIT
 *
 * Keys and values for the kernels of attn_tile.inc.c, as pairs of bf16: of neighbours in a head of
 * a key, of neighbouring keys in values. */

/* A panel of `rows` keys, VL at most, of n numbers. The factor enters with the scores. */
static void pack_panel(float *dst, const float *src, ptrdiff_t ld, int rows, int n, float factor)
{
    pack_pairs_across(false, dst, VL, src, ld, rows, n);
}

/* The same of bf16. */
static void pack_panel_bf16(float *dst, const uint16_t *src, ptrdiff_t ld, int rows, int n,
                            float factor)
{
    pack_pairs_across(true, dst, VL, src, ld, rows, n);
}

/* Values of keys [r, r+n), d numbers each, r even, into strips of a matrix of `rows`. */
static void pack_key_values(float *dst, int rows, const float *src, ptrdiff_t ld, int d, int r,
                            int n)
{
    const int vectors = (d + VL - 1) / VL;

    for (int v = 0; v < vectors; v++) {
        const ptrdiff_t step = strip_step(vectors, v);
        float *const to = dst + strip_at(vectors, lanes_for(rows), v, r / 2);
        const float *const from = src + r * ld + v * VL;
        const int left = d - v * VL;

        for (int x = 0; x < n; x += 2) {
            const vf lo = vld_upto(from + x * ld, left, v0());
            const vf hi = x + 1 < n ? vld_upto(from + (x + 1) * ld, left, v0()) : v0();
            vst(to + x / 2 * step, vzip_pairs(vpairs(lo, hi)));
        }
    }
}

/* The same of bf16. */
static void pack_key_values_bf16(float *dst, int rows, const uint16_t *src, ptrdiff_t ld, int d,
                                 int r, int n)
{
    const int vectors = (d + VL - 1) / VL;

    for (int v = 0; v < vectors; v++) {
        const ptrdiff_t step = strip_step(vectors, v);
        float *const to = dst + strip_at(vectors, lanes_for(rows), v, r / 2);
        const uint16_t *const from = src + r * ld + v * VL;
        const int left = min_int(d - v * VL, VL);

        for (int x = 0; x < n; x += 2) {
            const vf lo = vld_bf16_n(from + x * ld, left);
            const vf hi = x + 1 < n ? vld_bf16_n(from + (x + 1) * ld, left) : v0();
            vst(to + x / 2 * step, vzip_pairs(vpairs(lo, hi)));
        }
    }
}
