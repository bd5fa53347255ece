/* SPDX-License-Identifier: MIT
 *
 * Keys and values for the kernels of attn_tile.inc.c, as floats. */

/* A panel of `rows` keys, VL at most, of n numbers, multiplied by a factor. */
static void pack_panel(float *dst, const float *src, ptrdiff_t ld, int rows, int n, float factor)
{
    pack_across(dst, VL, src, ld, rows, n, factor);
}

/* The same of bf16, a part of their columns at a time. */
static void pack_panel_bf16(float *dst, const uint16_t *src, ptrdiff_t ld, int rows, int n,
                            float factor)
{
    enum { PART = 64 };
    float part[VL * PART];

    for (int p = 0; p < n; p += PART) {
        const int columns = min_int(PART, n - p);
        for (int i = 0; i < rows; i++)
            widen(part + i * PART, ELEM_BF16, src + i * ld, p, columns);
        pack_across(dst + (ptrdiff_t)p * VL, VL, part, PART, rows, columns, factor);
    }
}

/* Values of keys [r, r+n), d numbers each, into strips of a matrix of `rows`. */
static void pack_key_values(float *dst, int rows, const float *src, ptrdiff_t ld, int d, int r,
                            int n)
{
    pack_values(dst, rows, src, ld, d, r, n, NULL);
}

/* The same of bf16. */
static void pack_key_values_bf16(float *dst, int rows, const uint16_t *src, ptrdiff_t ld, int d,
                                 int r, int n)
{
    const int vectors = (d + VL - 1) / VL;

    for (int v = 0; v < vectors; v++) {
        const ptrdiff_t step = strip_step(vectors, v);
        float *const to = dst + strip_at(vectors, rows, v, r);
        const uint16_t *const from = src + r * ld + v * VL;
        const int left = d - v * VL;

        for (int x = 0; x < n; x++)
            vst(to + x * step,
                left < VL ? vld_bf16_n(from + x * ld, left) : vld_bf16(from + x * ld));
    }
}

/* A panel of `rows` heads of keys in q8, `ld` words apart, a part of their columns at a time. */
static void pack_panel_q8(float *dst, const uint32_t *heads, ptrdiff_t ld, int rows, int n,
                          float factor)
{
    enum { PART = 64 };
    float part[VL * PART];

    for (int p = 0; p < n; p += PART) {
        const int columns = min_int(PART, n - p);
        for (int i = 0; i < rows; i++) {
            const uint32_t *const head = heads + i * ld;
            const int8_t *const q = q8_head_numbers(head) + p;
            const vf scale = v1(q8_head_scale(head));
            for (int e = 0; e < columns; e += VL)
                vst(part + i * PART + e, vmul(scale, vld_int8_n(q + e, min_int(VL, columns - e))));
        }
        pack_across(dst + (ptrdiff_t)p * VL, VL, part, PART, rows, columns, factor);
    }
}

/* pack_key_values of heads in q8. */
static void pack_key_values_q8(float *dst, int rows, const uint32_t *heads, ptrdiff_t ld, int d,
                               int r, int n)
{
    const int vectors = (d + VL - 1) / VL;

    for (int v = 0; v < vectors; v++) {
        const ptrdiff_t step = strip_step(vectors, v);
        float *const to = dst + strip_at(vectors, rows, v, r);
        const int left = min_int(VL, d - v * VL);

        for (int x = 0; x < n; x++) {
            const uint32_t *const head = heads + (r + x) * ld;
            vst(to + x * step,
                vmul(v1(q8_head_scale(head)), vld_int8_n(q8_head_numbers(head) + v * VL, left)));
        }
    }
}
