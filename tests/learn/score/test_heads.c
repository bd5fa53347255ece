/* SPDX-License-Identifier: MIT
 *
 * What bench eval --attention says of heads: numerical ranks of known matrices, attention whose
 * probabilities are known, and the command. */
#include "harness/learn/score/heads.h"

#include "harness/learn/score/energy.h"
#include "tests/support/kernel/head_rows.h"
#include "tests/support/tmp_folder.h"
#include "tests/table/must_rows.h"
#include "variants/base/rng.h"

#include <dirent.h>

TestSuite(heads, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* ---- ranks -------------------------------------------------------------------------------- */

enum { ROWS = 37, COLS = 53 };

static double number(int i, int k)
{
    return rng_u32(3, (uint64_t)i, (uint64_t)k) / 2147483648.0 - 1;
}

static double square(double x) { return x * x; }

/* x = sum over r of sigma_r u_r v_r^T with orthonormal u (unit vectors turned by a reflection) and v
 * (likewise): its singular values are sigma. */
static void make(double *x, int rows, int cols, const double *sigma, int n)
{
    double a[64], b[64], aa = 0, bb = 0;

    for (int i = 0; i < rows; i++)
        aa += square(a[i] = number(1, i));
    for (int j = 0; j < cols; j++)
        bb += square(b[j] = number(2, j));
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            double sum = 0;
            for (int r = 0; r < n; r++)
                sum += sigma[r] * ((i == r) - 2 * a[i] * a[r] / aa) *
                       ((j == r) - 2 * b[j] * b[r] / bb);
            x[i * COLS + j] = sum;
        }
}

/* Energies 16, 9, 4, 1, 1 of 31: 0.5, 0.8, 0.93, 0.97, 1. */
Test(heads, rank_by_energy)
{
    static const double sigma[] = {1, 3, 1, 4, 2};
    static const struct {
        double share;
        int rank;
    } want[] = {{0, 0}, {0.5, 1}, {0.52, 2}, {0.8, 2}, {0.82, 3}, {0.9, 3}, {0.95, 4}, {0.99, 5}};
    double x[ROWS * COLS], turned[ROWS * COLS];

    make(x, ROWS, COLS, sigma, ARRAY_LEN(sigma));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++)
            turned[j * ROWS + i] = x[i * COLS + j];
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        cr_expect_eq(energy_rank(x, ROWS, COLS, COLS, want[i].share), want[i].rank, "%g",
                     want[i].share);
        cr_expect_eq(energy_rank(turned, COLS, ROWS, ROWS, want[i].share), want[i].rank, "%g",
                     want[i].share);
    }
}

Test(heads, rank_of_simple_matrices)
{
    double x[ROWS * COLS] = {0};

    cr_expect_eq(energy_rank(x, ROWS, COLS, COLS, 0.9), 0);
    for (int i = 0; i < ROWS * COLS; i++)
        x[i] = 1;
    NUMBERS({energy_rank(x, ROWS, COLS, COLS, 0.9), 1}, {energy_rank(x, 1, 1, COLS, 0.9), 1});
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLS; j++)
            x[i * COLS + j] = i == j;
    cr_expect_eq(energy_rank(x, ROWS, COLS, COLS, 0.9), 34); /* 0.9 * 37 = 33.3 */
}

/* ---- known attention ---------------------------------------------------------------------- */

enum { L = 8, M = 2, H = 2, DH = 4, K = M + L };

/* L queries of so many heads after M keys. */
static struct attn of_rows(int heads, const float *q, const float *k, const float *v, float *o)
{
    const int width = heads * DH;

    return (struct attn){.B = 1,
                         .H = heads,
                         MEMBERS(, L, M, q, k, v, o),
                         .dh = DH,
                         .Hkv = heads,
                         .causal = true,
                         .scale = 1,
                         .q_at = {L * width, width},
                         .k_at = {K * width, width},
                         .v_at = {K * width, width},
                         .o_at = {L * width, width}};
}

/* The rows of what was seen, which is forgotten. */
static void expect_written(struct heads *s, struct head_row *row, int most, int n)
{
    const char *const path = in_folder("h.csv");

    MUST(heads_seen(s, &failure));
    MUST(heads_write(s, path, &failure));
    heads_free(s);
    cr_assert_eq(read_rows(path, row, most), n);
}

/* Head 0 sees all alike, since its queries are 0; head 1 has a large product with the newest key only.
 * The second call has the heads in the other order. */
Test(heads, known_probabilities)
{
    float q[L * H * DH] = {0}, k[K * H * DH] = {0}, v[K * H * DH] = {0}, o[L * H * DH];
    struct heads s = {0};
    struct engine g;
    const struct attn_impl *impl;
    struct head_row row[5];

    for (int j = 0; j < K; j++)
        v[j * H * DH] = 1; /* all values are the same row */
    cr_assert_eq(engine_open(&g, "ref", 1, NULL, &failure), OK);
    heads_watch(&s, &g);
    heads_pass(&s, 0);
    for (int call = 0; call < 2; call++) {
        float bias[H * K] = {0};
        bias[(call == 0 ? 1 : 0) * K + K - 1] = 200; /* distance 0 is the last row */
        struct attn a = of_rows(H, q, k, v, o);
        a.R = a.bias_head = K, a.bias = bias;
        MUST(engine_attn(&g, &a, &impl, &failure));
        attn_seen(&g, (struct attn_place){.weights = bias, .nth = call, .layer = call, .tokens = 1},
                  &a);
    }
    expect_written(&s, row, 5, 4);
    double entropy = 0, keys90 = 0, apart = 0;
    for (int n = M + 1; n <= K; n++) {
        entropy += log(n) / L;
        keys90 += ceil(0.9 * n - 1e-9) / L;
        /* uniform over n keys and one of them: H(m) - H(uniform) / 2 */
        const double one = (1 + 1.0 / n) / 2, other = 1.0 / (2 * n);
        apart += (-one * log2(one) - (n - 1) * other * log2(other) - log2(n) / 2) / L;
    }
    for (int i = 0; i < 4; i++) {
        const bool uniform = i == 0 || i == 3;
        NUMBERS({row[i].layer, 1 + i / 2}, {row[i].attention, 1 + i / 2}, {row[i].head, 1 + i % 2},
                {row[i].queries, L}, {row[i].values, 1});
        cr_expect_float_eq(row[i].entropy, uniform ? entropy : 0, 1e-5, "%d: %g", i,
                           row[i].entropy);
        cr_expect_float_eq(row[i].keys90, uniform ? keys90 : 1, 1e-5, "%d: %g", i, row[i].keys90);
        cr_expect_float_eq(row[i].apart, apart, 1e-5, "%d: %g", i, row[i].apart);
        if (i < 2)
            cr_expect(isnan(row[i].before));
        else /* the likest head of the call before is the other one */
            cr_expect_float_eq(row[i].before, 0, 1e-6, "%g", row[i].before);
    }
    cr_expect_float_eq(row[0].visible, (M + 1 + K) / 2.0, 1e-9);
    cr_expect_eq(row[1].rank90, L); /* rows of the identity: 0.9 * 8 = 7.2 */
}

/* Attention that begins at token `first` of a call and sees every `tokens`-th of them, such as that
 * behind a pool: queries of the past, before token `from`, do not count. */
Test(heads, queries_of_the_past_are_left_out)
{
    static const struct {
        int from, tokens, first, left;
    } cases[] = {{0, 1, 0, L},     {3, 1, 0, L - 3}, {3, 1, 2, L - 1},    {3, 1, 5, L},
                 {6, 2, 0, L - 3}, {6, 2, 1, L - 2}, {7, 2, 2, L - 1},    {6, 2, 4, L},
                 {L - 1, 1, 0, 1}, {L, 1, 1, 1},     {2 * L, 2, 7, L - 1}};
    const float zeros[K * DH] = {0};
    float o[L * DH];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct attn a = of_rows(1, zeros, zeros, zeros, o);
        struct heads s = {0};
        struct engine g;
        struct head_row row[2];
        cr_assert_eq(engine_open(&g, "ref", 1, NULL, &failure), OK);
        heads_watch(&s, &g);
        heads_pass(&s, cases[i].from);
        attn_seen(&g,
                  (struct attn_place){
                      .weights = zeros, .first = cases[i].first, .tokens = cases[i].tokens},
                  &a);
        expect_written(&s, row, 2, 1);
        cr_expect_eq(row[0].queries, cases[i].left, "case %zu: %d", i, row[0].queries);
        /* the last query sees all keys, and each one before it one fewer */
        cr_expect_float_eq(row[0].visible, K - (cases[i].left - 1) / 2.0, 1e-9, "case %zu", i);
    }
}

/* ---- the command -------------------------------------------------------------------------- */

static void one_file(char path[FILE_PATH], const char *in)
{
    const char *const dir = in_folder(in);
    DIR *const d = opendir(dir);
    const struct dirent *entry;

    cr_assert(d);
    while ((entry = readdir(d)) && entry->d_name[0] == '.')
        ;
    cr_assert(entry);
    cr_assert_eq(file_join(path, dir, entry->d_name, NULL), OK);
    closedir(d);
}

#define TRAIN                                                                                      \
    " --layers 2 --d-model 16 --heads 2 --seq 16 --mem 16 --batch 2 --steps 2 --threads 1 --pin "  \
    "none -q "
#define EVAL "eval --seq 16 --mem 16 --bytes 400 --threads 1 --pin none -q --out r "

/* Of two layers with two heads, which a command has written to a folder: the text has 400
 * bytes, and a segment 16 after a past of 16. */
static void expect_rows_of_text(const char *in)
{
    struct head_row row[8];
    char path[FILE_PATH];

    one_file(path, in);
    cr_assert_eq(read_rows(path, row, 8), 4);
    for (int i = 0; i < 4; i++) {
        NUMBERS({row[i].layer, 1 + i / 2}, {row[i].attention, 1 + i / 2}, {row[i].head, 1 + i % 2},
                {row[i].queries, 399});
        /* 24 segments of 16 and one of 15, after 16, the first after none */
        NUMBERS({row[i].visible, (24 * 16 * 24.5 - 16 * 16 + 15 * 24) / 399, 1e-4},
                {isnan(row[i].before), i < 2});
        cr_expect(row[i].entropy > 0 && row[i].entropy <= log(32));
        cr_expect(row[i].keys90 <= row[i].visible && row[i].rank90 <= 16 && row[i].rank90 >= 1);
        cr_expect(row[i].apart > 0 && row[i].apart < 1);
    }
}

Test(heads, rows_of_a_trained_model)
{
    must_bench("train --variant xl" TRAIN "--ckpt xl");
    must_bench(EVAL "--ckpt xl --attention a --losses l");
    expect_rows_of_text("a");
    must_bench(EVAL "--ckpt xl");
    const struct perplexity_row *const plain = must_rows("r/latest", TABLE_PERPLEXITY, 1);
    must_bench(EVAL "--ckpt xl --attention a");
    const struct perplexity_row *const seen = must_rows("r/latest", TABLE_PERPLEXITY, 1);
    cr_expect_float_eq(seen->nll_nats_per_token, plain->nll_nats_per_token, 1e-4);
}

/* The same model in f32, which a narrow one is compared with, is not seen; nor is a past that is run again
 * in front of each segment. */
Test(heads, what_runs_again_does_not_count)
{
    must_bench("train --variant rope" TRAIN "--ckpt m");
    must_bench(EVAL "--ckpt m --dtype q8 --attention a");
    expect_rows_of_text("a");
    must_bench("train --variant vanilla" TRAIN "--ckpt m --force");
    must_bench(EVAL "--ckpt m --attention b");
    expect_rows_of_text("b");
}

/* A list that a text has no room for ends in dots, not in a part of a number. */
Test(heads, many_layers_without)
{
    enum { LAYERS = 99 };
    static const struct sublayer_kind kind = {.mixes = true};
    struct sublayer at[LAYERS];
    const struct lm m = {.sublayers = {.n = LAYERS, .at = at}};
    const struct heads none = {0};
    char note[256] = "", few[64] = "";

    for (int i = 0; i < LAYERS; i++)
        at[i] = (struct sublayer){.kind = &kind, .layer = i};
    heads_note(note, sizeof(note), &m, &none);
    cr_expect(strncmp(note, "--attention: no probabilities of layers 1, 2, ", 46) == 0, "%s", note);
    cr_expect(strlen(note) > 5 && strcmp(note + strlen(note) - 5, ", ...") == 0, "%s", note);
    heads_note(few, sizeof(few), &(struct lm){.sublayers = {.n = 3, .at = at}}, &none);
    cr_expect_str_eq(few, "--attention: no probabilities of layers 1, 2, 3");
}

Test(heads, what_has_none)
{
    must_bench("train --variant minlstm" TRAIN "--ckpt m");
    bench_exits(77, "this model has no attention with probabilities",
                EVAL "--ckpt m --attention a");
    must_bench("train --variant gla-hybrid --layers 4 --d-model 16 --heads 2 --seq 16 --mem 0 "
               "--batch 2 --steps 2 --threads 1 --pin none -q --ckpt h");
    bench_exits(
        0, "no probabilities of layers 1, 2, 3",
        "eval --ckpt h --seq 16 --mem 0 --bytes 400 --threads 1 --pin none --out r --attention a");
    must_bench("train --variant talking" TRAIN "--ckpt t");
    must_bench(EVAL "--ckpt t --attention a");
    bench_exits(2, "--attention is computed by ref", EVAL "--ckpt t --attention a --impl fused");
}
