/* SPDX-License-Identifier: MIT
 *
 * Position schemes far beyond their tables and golden files, each against its equation in double:
 * every backend, the reference included, reads the numbers that are made here, so none of them can
 * judge these. Places are around the ends of tables, and where a float no longer tells angles
 * apart. (Rotary ones: test_rope.c; a number per distance: test_pos_bias.c.) */
#include "tests/support/in_double.h"
#include "tests/support/kernel/fenced.h"
#include "tests/support/laid.h"
#include "tests/support/named.h"
#include "tests/support/set_choice.h"

static const int64_t far[] = {0, 1, 77, 127, 128, 129, 4095, 4096, 65535, 65536};
enum { FARTHEST = 65536 };

/* ---- sinusoids ----------------------------------------------------------------------------- */

/* Coordinate e of position p: pairs of a sine and a cosine of p 10000^(-2f/D). The angle of a
 * double is off by 2^-52 of itself. */
static void expect_sinusoid(const float *row, int D, int64_t p, bool interleaved)
{
    for (int e = 0; e < D; e++) {
        const int f = interleaved ? e / 2 : e % (D / 2);
        const bool cosine = interleaved ? e % 2 : e >= D / 2;
        const long double angle = (long double)p / powl(10000, 2.0L * f / D);
        const long double want = cosine ? cosl(angle) : sinl(angle);
        const double bound = U + (double)(p < 0 ? -p : p) * 0x1p-51;
        cr_expect_leq(in_bounds((double)row[e], (double)want, bound), 1,
                      "position %d, coordinate %d of %d", (int)p, e, D);
    }
}

Test(positions, sinusoids)
{
    static const int widths[] = {2, 12, 130};

    for (size_t w = 0; w < ARRAY_LEN(widths); w++)
        for (int order = SINUSOID_CONCAT; order <= SINUSOID_INTERLEAVED; order++) {
            struct config c = config_default(variant_find("vanilla"), widths[w], 1, 4, 8, 1, 0);
            const size_t n = pos_sinusoid.n_pos_encoding(&c, 3);
            float *const rows = fenced(n);
            c.sinusoid = (enum sinusoid)order;
            for (size_t k = 0; k < ARRAY_LEN(far); k++) {
                pos_sinusoid.pos_encoding(&c, far[k], 3, rows);
                for (int t = 0; t < 3; t++)
                    expect_sinusoid(rows + t * c.D, c.D, far[k] + t, order == SINUSOID_INTERLEAVED);
            }
            cr_expect(guards_intact(rows, n));
        }
}

/* Trained frequencies: h_t += [sin t w, cos t w]. */
Test(positions, trained_frequencies)
{
    enum { D = 6, B = 2 };
    const struct config c = config_default(variant_find("freq"), D, 1, 4, 8, 1, 7);
    float w[D / 2] = {1.25f, -0.0375f, 0.0003f};
    const struct param model = {.data = w, .n = D / 2};
    const size_t n = (size_t)B * (FARTHEST + 1) * D;
    float *const h = fenced(n);

    for (size_t e = 0; e < n; e++)
        h[e] = 0;
    c.pos->embed(&c, &model, NULL, 0, h, B, FARTHEST + 1);
    for (int b = 0; b < B; b++)
        for (size_t k = 0; k < ARRAY_LEN(far); k++)
            for (int e = 0; e < D; e++) {
                const long double angle = (long double)far[k] * (long double)w[e % (D / 2)];
                const long double want = e < D / 2 ? sinl(angle) : cosl(angle);
                const double got =
                    (double)h[((size_t)b * (FARTHEST + 1) + (size_t)far[k]) * D + (size_t)e];
                cr_expect_leq(in_bounds(got, (double)want, U + (double)far[k] * 0x1p-51), 1,
                              "position %d, coordinate %d", (int)far[k], e);
            }
}

/* Words that turn: r cos(w t + phi), r sin(w t + phi). */
Test(positions, words_that_turn)
{
    enum { D = 4, V = 3, B = 2 };
    const struct config c = config_default(variant_find("complex"), D, 1, 4, 8, 1, V);
    float radius[] = {1, -2, 0.5f, 3, 1.5f, 0.25f}, w[] = {0.1f, -1, 2, 0.003f, 0.7f, 1e-4f},
          phase[] = {0, 1, -1, 3, 0.5f, -2};
    const struct param words[] = {{.data = radius}, {.data = w}, {.data = phase}};
    const int L = FARTHEST + 1;
    int32_t *const tokens = room((size_t)(B * L), sizeof(*tokens));
    float *const h = fenced((size_t)B * (size_t)L * D);

    for (int i = 0; i < B * L; i++)
        tokens[i] = (i * 7 + i / 11) % V;
    c.pos->from_tokens(&c, words, tokens, 0, h, B, L, 2);
    for (int b = 0; b < B; b++)
        for (size_t k = 0; k < ARRAY_LEN(far); k++)
            for (int f = 0; f < D / 2; f++) {
                const int at = tokens[b * L + far[k]] * (D / 2) + f;
                const long double angle =
                    (long double)far[k] * (long double)w[at] + (long double)phase[at];
                const float *const got = h + ((size_t)(b * L) + (size_t)far[k]) * D + f;
                const double r = (double)radius[at];
                const double bound = (2 * U + (double)far[k] * 0x1p-50) * fabs(r);
                cr_expect_leq(in_bounds((double)got[0], r * (double)cosl(angle), bound), 1);
                cr_expect_leq(in_bounds((double)got[D / 2], r * (double)sinl(angle), bound), 1);
            }
}

/* ---- tables by distance -------------------------------------------------------------------- */

/* Row of head h for distance n in a table that clips where it ends. */
static const float *row_at(const struct laid *t, const float *table, int h, int64_t n)
{
    const int64_t r = t->a.R - 1 - n, last = t->a.R + t->a.Rf - 1;

    return table + h * t->a.rel_head + (r < 0 ? 0 : r > last ? last : r) * t->c.dh;
}

/* Row e of head h of W [H*dh,D] times x, and the size of its terms. */
static double mapped(const struct laid *t, const float *W, int h, int e, const double *x,
                     double *size)
{
    const float *const w = W + (ptrdiff_t)(h * t->c.dh + e) * t->c.D;
    double sum = 0;

    *size = 0;
    for (int i = 0; i < t->c.D; i++) {
        sum += (double)w[i] * x[i];
        *size += fabs((double)w[i] * x[i]);
    }
    return sum;
}

/* W_r times the sinusoid of the distance, which the clamp limits. Encodings are rounded to floats,
 * and so is the result. */
static void expect_xl(const struct laid *t, int64_t n)
{
    const int64_t limit = t->c.clamp_len ? t->c.clamp_len : FARTHEST;
    const int64_t at = n > limit ? limit : n < -limit ? -limit : n;
    const float *const W = data_of(&t->params, "layers.0.attn.r.weight");
    double x[64], size;

    for (int e = 0; e < t->c.D; e++) {
        const int half = t->c.D / 2;
        const long double angle = (long double)at / powl(10000, 2.0L * (e % half) / t->c.D);
        x[e] = (double)(e < half ? sinl(angle) : cosl(angle));
    }
    for (int h = 0; h < t->c.H; h++)
        for (int e = 0; e < t->c.dh; e++) {
            const double want = mapped(t, W, h, e, x, &size);
            const double got = (double)row_at(t, t->a.rel_k, h, n)[e];
            for (int i = 0; i < t->c.D; i++) /* sinusoids of nearly 0 may be off by U, too */
                size += fabs((double)W[(ptrdiff_t)(h * t->c.dh + e) * t->c.D + i]);
            cr_expect_leq(in_bounds(got, want, 3 * U * size), 1, "distance %d, head %d, %d", (int)n,
                          h, e);
        }
}

Test(positions, xl_codes)
{
    static const int clamps[] = {0, 1, 128, 4096};

    for (size_t i = 0; i < ARRAY_LEN(clamps); i++)
        for (int causal = 0; causal < 2; causal++) {
            struct config c = config_default(variant_find("xl"), 6, 2, 3, 8, 1, 0);
            struct laid t;
            c.clamp_len = clamps[i];
            c.causal = (enum direction)causal;
            open_laid(&t, c, FARTHEST + 1, 0);
            for (size_t k = 0; k < ARRAY_LEN(far); k++) {
                expect_xl(&t, far[k]);
                if (!causal)
                    expect_xl(&t, -far[k]);
            }
        }
}

/* R[n] = [sin n f, cos n f], f_j = 10000^(-j/(d/2-1)), the same for all heads; an odd width ends in
 * a 0. The program of the authors turns the sign of the query's term and has one of the key. */
static void expect_tener(const struct laid *t, const float *table, int64_t n, int sign)
{
    const int half = t->c.dh / 2;
    const float *const row = row_at(t, table, 0, n);

    for (int e = 0; e < 2 * half; e++) {
        const long double f = half > 1 ? powl(10000, -(long double)(e % half) / (half - 1)) : 1;
        const long double angle = sign * (long double)n * f;
        const long double want = e < half ? sinl(angle) : cosl(angle);
        cr_expect_leq(in_bounds((double)row[e], (double)want, U + fabs((double)n) * 0x1p-50), 1,
                      "distance %d, %d", (int)n, e);
    }
    if (t->c.dh % 2)
        cr_expect_eq(row[t->c.dh - 1], 0);
}

Test(positions, tener_codes)
{
    static const int widths[] = {2, 7, 16};

    for (size_t i = 0; i < ARRAY_LEN(widths); i++)
        for (int causal = 0; causal < 2; causal++)
            for (int code = 0; code < 2; code++) {
                struct config c = config_default(variant_find("tener"), 6, 2, widths[i], 8, 1, 0);
                struct laid t;
                c.causal = (enum direction)causal;
                set_choice(&c, "tener_kr", code ? "1" : "0");
                set_choice(&c, "tener_sign", code ? "code" : "paper");
                open_laid(&t, c, FARTHEST + 1, 0);
                for (size_t k = 0; k < ARRAY_LEN(far); k++)
                    for (int side = 1; side >= (causal ? 1 : -1); side -= 2) {
                        expect_tener(&t, t.a.rel_k, side * far[k], code ? -1 : 1);
                        if (code)
                            expect_tener(&t, t.a.rel_q, side * far[k], 1);
                    }
                cr_expect_eq(t.a.rel_q != NULL, code);
            }
}

/* He et al. 2021, equation 3: the relative distance of token i from token j. */
static int64_t delta(int64_t i, int64_t j, int k)
{
    return i - j <= -k ? 0 : i - j >= k ? 2 * k - 1 : i - j + k;
}

/* Keys' positions are by delta(i, j); queries' by delta(j, i), in the program by delta(i, j). */
static void expect_deberta(const struct laid *t, bool code, int64_t n)
{
    static const char *const maps[] = {"layers.0.attn.pos_k.weight", "layers.0.attn.pos_q.weight"};
    const float *const E = data_of(&t->params, "layers.0.attn.rel_embed.weight");
    double x[64], size;

    for (int which = 0; which < 2; which++) {
        const bool turned = which == 1 && !code;
        const float *const W = data_of(&t->params, "%s", maps[which]);
        const int64_t at = turned ? delta(0, n, t->c.clip) : delta(n, 0, t->c.clip);
        for (int i = 0; i < t->c.D; i++)
            x[i] = (double)E[at * t->c.D + i];
        for (int h = 0; h < t->c.H; h++)
            for (int e = 0; e < t->c.dh; e++) {
                const double want = mapped(t, W, h, e, x, &size);
                const float *const table = which ? t->a.rel_q : t->a.rel_k;
                cr_expect_leq(in_bounds((double)row_at(t, table, h, n)[e], want, 2 * U * size), 1,
                              "term %d, distance %d, head %d, %d", which, (int)n, h, e);
            }
    }
}

Test(positions, deberta_tables)
{
    static const int clips[] = {1, 16, 128, 4096};

    for (size_t i = 0; i < ARRAY_LEN(clips); i++)
        for (int code = 0; code < 2; code++) {
            struct config c = config_default(variant_find("deberta"), 6, 2, 3, 8, 1, 0);
            struct laid t;
            c.clip = clips[i];
            c.rel_rows = c.clip + 1;
            set_choice(&c, "p2c", code ? "code" : "paper");
            open_laid(&t, c, FARTHEST + 1, 0);
            for (size_t k = 0; k < ARRAY_LEN(far); k++)
                expect_deberta(&t, code, far[k]);
        }
}

/* The normed row of position p times a map: one rounding of each normed number, one of the result.
 */
static void tupe_row(const struct laid *t, const char *map, int h, int p, double *out, double *size)
{
    const float *const row =
        data_of(&t->params, "layers.0.attn.tupe.pos.weight") + (ptrdiff_t)p * t->c.D;
    double x[64];

    to_doubles(x, row, t->c.D);
    layer_norm(x, t->c.D, data_of(&t->params, "layers.0.attn.tupe.ln.weight"),
               data_of(&t->params, "layers.0.attn.tupe.ln.bias"), (double)t->c.ln_eps);
    for (int e = 0; e < t->c.dh; e++)
        out[e] = mapped(t, data_of(&t->params, "%s", map), h, e, x, &size[e]);
}

/* T_h[i,j] = scale (LN(p_i) U_q) . (LN(p_j) U_k), of positions, not of distances. */
Test(positions, tupe_scores)
{
    static const int places[] = {0, 1, 77, 127, 128, 129};
    struct config c = config_default(variant_find("tupe"), 6, 2, 3, 8, 1, 0);
    struct laid t;

    c.max_seq = 130;
    open_laid(&t, c, 130, 0);
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        for (size_t j = 0; j < ARRAY_LEN(places); j++)
            for (int h = 0; h < c.H; h++) {
                double q[3], k[3], q_size[3], k_size[3], want = 0, size = 0;
                tupe_row(&t, "layers.0.attn.tupe.q.weight", h, places[i], q, q_size);
                tupe_row(&t, "layers.0.attn.tupe.k.weight", h, places[j], k, k_size);
                for (int e = 0; e < c.dh; e++) {
                    want += (double)c.scale * q[e] * k[e];
                    size += (double)c.scale * q_size[e] * k_size[e];
                }
                const double got =
                    (double)t.a.add.at[h * t.a.add.head + places[i] * t.a.add.row + places[j]];
                cr_expect_leq(in_bounds(got, want, 8 * U * size), 1,
                              "head %d, %d to %d: %g, not %g", h, places[i], places[j], got, want);
            }
}

/* Numbers by distance on both sides. */
static double by_distance(const struct laid *t, int h, int64_t n)
{
    const double x = (double)n;

    if (t->c.pos == &pos_gaussian)
        return -fabs((double)data_of(&t->params, "layers.0.attn.gauss.w")[h] * x * x +
                     (double)data_of(&t->params, "layers.0.attn.gauss.b")[h]);
    const double centre = h % 2 ? 0 : 1; /* the heads look at the last token and at their own */
    return -(x - centre) * (x - centre) / 2;
}

Test(positions, gaussian_biases)
{
    static const struct pos *const schemes[] = {&pos_gaussian, &pos_hardcoded};

    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        for (int causal = 0; causal < 2; causal++) {
            struct config c = config_default(variant_find("xl"), 6, 3, 3, 8, 1, 0);
            struct laid t;
            c.pos = schemes[i];
            c.causal = (enum direction)causal;
            config_numbers_reset(&c);
            open_laid(&t, c, FARTHEST + 1, 0);
            for (size_t k = 0; k < ARRAY_LEN(far); k++)
                for (int side = 1; side >= (causal ? 1 : -1); side -= 2)
                    for (int h = 0; h < c.H; h++) {
                        const int64_t n = side * far[k];
                        const double want = by_distance(&t, h, n);
                        const double got = (double)t.a.bias[h * t.a.bias_head + t.a.R - 1 - n];
                        cr_expect_leq(in_bounds(got, want, 2 * U * fabs(want)), 1,
                                      "%s, head %d, distance %d", c.pos->name, h, (int)n);
                    }
        }
}
