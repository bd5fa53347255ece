/* SPDX-License-Identifier: MIT
 *
 * Products with narrow weights round exactly where and as elem.h says: products of one term, whose
 * result is the operand itself, bit for bit. Sums are in harness/check/op_products.c. */
#include "tests/support/every_backend.h"
#include "tests/support/kernel/by_weights.h"
#include "tests/support/open_engine.h"

enum { HALVES = 1 << 16, FEW = 5 };

static bool can(int b, enum elem elem)
{
    if (backend_usable(backends[b], NULL) != OK)
        return false;
    const struct engine g = open_engine(backends[b]->name, 1);
    return !g.lacks[elem];
}

/* -0 + 0 is 0. */
static bool same(float got, float want) { return isnan(want) ? isnan(got) : got == want; }

static float of_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* c = a w^T, w = 1, `rows` rows at a time: few are multiplied in place, many are packed. */
static void expect_rounded(const struct engine *g, const float *a, int n, int rows)
{
    const uint16_t one = bf16_of(1);
    float *const c = room((size_t)n, sizeof(*c));

    for (int at = 0; at < n; at += rows) {
        struct gemm p = by_weights(g, min_int(rows, n - at), 1, 1, a + at, c + at);
        p.elem = ELEM_BF16, p.b_narrow = &one;
        g->ops.gemm(&p);
    }
    for (int i = 0; i < n; i++) {
        const float want = bf16_float(bf16_of(a[i]));
        cr_assert(same(c[i], want), "%s, %d rows: %a for %a, not %a", g->backend->name, rows,
                  (double)c[i], (double)a[i], (double)want);
    }
}

TEST_EACH(int *b, narrow, rows_are_rounded, every_narrow_backend(), .timeout = 120)
{
    static const uint32_t lows[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    static float a[HALVES];

    if (!can(*b, ELEM_BF16))
        cr_skip_test("%s has no bf16 here", backends[*b]->name);
    const struct engine g = open_engine(backends[*b]->name, 1);
    for (size_t l = 0; l < ARRAY_LEN(lows); l++) {
        for (uint32_t half = 0; half < HALVES; half++)
            a[half] = of_bits(half << 16 | lows[l]);
        expect_rounded(&g, a, HALVES, HALVES);
        expect_rounded(&g, a, HALVES, FEW);
    }
}

/* Every weight comes out as it is, in every place of a row. */
TEST_EACH(int *b, narrow, weights_are_widened, every_narrow_backend(), .timeout = 120)
{
    enum { N = 67, K = 75, MOST = N * 4 * 3 * 36 };
    static unsigned char weights[MOST];
    static float wide[N][K], eye[K][K], c[K][N];
    const float first = -1.5f;

    for (enum elem elem = ELEM_BF16; elem < ELEM_COUNT; elem++) {
        const size_t row = elem_row_bytes(elem, K);
        if (!can(*b, elem))
            continue;
        const struct engine g = open_engine(backends[*b]->name, 1);
        for (int j = 0; j < N; j++) {
            for (int p = 0; p < K; p++)
                wide[j][p] = first + (float)sin(j + 0.3 * p);
            elem_narrow(elem, weights + (size_t)j * row, wide[j], K);
            elem_widen(elem, wide[j], weights + (size_t)j * row, 0, K);
        }
        for (int p = 0; p < K; p++)
            eye[p][p] = 1;
        for (int rows = FEW; rows <= K; rows += K - FEW) {
            for (int at = 0; at < K; at += rows) {
                struct gemm x = by_weights(&g, min_int(rows, K - at), N, K, eye[at], c[at]);
                x.elem = elem, x.b_narrow = weights;
                g.ops.gemm(&x);
            }
            for (int p = 0; p < K; p++)
                for (int j = 0; j < N; j++)
                    cr_assert_eq(c[p][j], wide[j][p], "%s %s, %d rows: %a at %d,%d, not %a",
                                 g.backend->name, elem_name[elem], rows, (double)c[p][j], p, j,
                                 (double)wide[j][p]);
        }
    }
}

/* Rows of q8: the product with a weight of 1 in one place and 0 elsewhere is the rounded number
 * itself, in every place of a row, near ties, of every size, and of what is not finite. */
static void fill_rows(float *a, int rows, int k)
{
    for (int i = 0; i < rows; i++)
        for (int p = 0; p < k; p++) {
            const int kind = (i + p / Q8_BLOCK) % 5;
            const double x = sin(1.3 * p + i), tie = (p * 7 + i) % 254 - 126.5;
            a[i * k + p] = (float)(kind == 0     ? p % Q8_BLOCK ? tie : 127 /* ties */
                                   : kind == 1   ? ldexp(x, (i * 5) % 200 - 100)
                                   : kind == 2   ? x * x * x
                                   : kind == 3   ? ldexp(x, -140) /* no scale */
                                   : p % 29 == 3 ? (i % 2 ? INFINITY : NAN)
                                                 : x);
        }
}

TEST_EACH(int *b, narrow, rows_are_quantised, every_narrow_backend(), .timeout = 120)
{
    enum { ROWS = 77, K = 333, BLOCKS = (K + Q8_BLOCK - 1) / Q8_BLOCK };
    static float a[ROWS * K], eye[K], c[ROWS * K];
    static struct q8_block weights[K][BLOCKS];

    if (!can(*b, ELEM_Q8))
        cr_skip_test("%s has no q8", backends[*b]->name);
    const struct engine g = open_engine(backends[*b]->name, 1);
    fill_rows(a, ROWS, K);
    for (int p = 0; p < K; p++) {
        memset(eye, 0, sizeof(eye));
        eye[p] = 127; /* the scale is 1 */
        elem_narrow(ELEM_Q8, weights[p], eye, K);
    }
    for (int rows = 1; rows <= ROWS; rows = rows == ROWS ? ROWS + 1 : min_int(3 * rows, ROWS))
        for (int at = 0; at < ROWS; at += rows) {
            const int m = min_int(rows, ROWS - at);
            struct gemm x = by_weights(&g, m, K, K, a + at * K, c + at * K);
            x.elem = ELEM_Q8, x.b_narrow = weights, x.quantises = true;
            g.ops.gemm(&x);
            for (int i = at; i < at + m; i++) {
                struct q8_block row[BLOCKS];
                q8_round_row(row, a + i * K, K);
                bool finite = true;
                for (int q = 0; q < BLOCKS; q++)
                    finite = finite && isfinite(row[q].scale);
                for (int p = 0; p < K; p++) {
                    const struct q8_block *const in = &row[p / Q8_BLOCK];
                    const float want =
                        finite ? in->scale * (float)(127 * in->q[p % Q8_BLOCK]) : NAN;
                    cr_assert(same(c[i * K + p], want), "%s, %d rows: %a for %a at %d,%d, not %a",
                              g.backend->name, rows, (double)c[i * K + p], (double)a[i * K + p], i,
                              p, (double)want);
                }
            }
        }
}
