/* SPDX-License-Identifier: MIT
 *
 * Product-key memory against all pairs of keys in double, gradients of the reference against finite
 * differences, every backend against the reference, equal scores, costs and configurations. */
#include "tests/support/kernel/ffn_case.h"

enum { D = 6, ROWS = 4, MOST_KEYS = 7 };

struct sizes_of {
    int heads, keys, half, top;
    bool ln, bias;
};
/* Norms are of 8 numbers: those of few divide by next to nothing now and then. */
static const struct sizes_of forms[] = {{1, 1, 1, 1, false, true},
                                        {2, 5, 3, 2, false, true},
                                        {2, 5, 8, 5, true, true},
                                        {1, 7, 8, 4, true, false},
                                        {2, 7, 8, 7, false, false}};

static struct config config_of(const struct sizes_of *f, int width)
{
    struct config c = ffn_config(&ffn_pkm, width, 1);

    set_number(&c, "pkm_heads", f->heads);
    set_number(&c, "pkm_keys", f->keys);
    set_number(&c, "pkm_half", f->half);
    set_number(&c, "pkm_top", f->top);
    set_choice(&c, "pkm_ln", f->ln ? "1" : "0");
    c.ffn_bias = f->bias;
    return c;
}

/* ---- the plain program -------------------------------------------------------------------- */

/* Half h of the query of row x. */
static void query(const struct ffn_case *t, const struct sizes_of *f, const float *x, int h,
                  double *q)
{
    const struct param *const ln = params_find(&t->p, "ff.pkm.ln.weight");
    double row[D];

    to_doubles(row, x, D);
    for (int e = 0; e < f->half; e++)
        q[e] = ffn_map(t, "ff.pkm.query", h * f->half + e, row, D);
    if (f->ln)
        layer_norm(q, f->half, ln->data, params_find(&t->p, "ff.pkm.ln.bias")->data, 1e-5);
}

static double key_score(const struct ffn_case *t, const struct sizes_of *f, const double *q, int h,
                        int key)
{
    double s = 0;

    for (int e = 0; e < f->half; e++)
        s += q[e] * ffn_at(t, "ff.pkm.keys", (size_t)((h * f->keys + key) * f->half + e));
    return s;
}

/* One head of one row: the `top` best of all pairs, best first, and what they add to y. */
static void head_by_hand(const struct ffn_case *t, const struct sizes_of *f, const float *x,
                         int head, int *index, double *y)
{
    double q[8], s[2][MOST_KEYS], sum = 0;
    bool taken[MOST_KEYS * MOST_KEYS] = {false};

    for (int h = 0; h < 2; h++) {
        query(t, f, x, 2 * head + h, q);
        for (int j = 0; j < f->keys; j++)
            s[h][j] = key_score(t, f, q, 2 * head + h, j);
    }
    for (int k = 0; k < f->top; k++) {
        index[k] = -1;
        for (int i = 0; i < f->keys * f->keys; i++)
            if (!taken[i] &&
                (index[k] < 0 || s[0][i / f->keys] + s[1][i % f->keys] >
                                     s[0][index[k] / f->keys] + s[1][index[k] % f->keys]))
                index[k] = i;
        taken[index[k]] = true;
        sum += exp(s[0][index[k] / f->keys] + s[1][index[k] % f->keys]);
    }
    for (int k = 0; k < f->top; k++)
        for (int d = 0; d < D; d++)
            y[d] += exp(s[0][index[k] / f->keys] + s[1][index[k] % f->keys]) / sum *
                    ffn_at(t, "ff.pkm.values", (size_t)(index[k] * D + d));
}

TEST_EACH(int *b, ffn_pkm, is_the_best_of_all_pairs, every_backend())
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        const struct sizes_of *const f = &forms[i];
        const struct config c = config_of(f, D);
        struct ffn_case t;
        float want[ROWS * D];
        ffn_open(&t, &c, backends[*b]->name, 1 + (int)i % 2, ROWS, false);
        ffn_forward(&t, i % 2);
        const struct ffn_choice chose = ffn_pkm.chose(&c, ROWS, t.work);
        cr_assert_eq(chose.n, (size_t)(ROWS * f->heads * f->top));
        for (int row = 0; row < ROWS; row++) {
            double y[D] = {0};
            for (int h = 0; h < f->heads; h++) {
                int index[MOST_KEYS];
                head_by_hand(&t, f, t.x + row * D, h, index, y);
                for (int k = 0; k < f->top; k++)
                    cr_expect_eq(chose.at[(row * f->heads + h) * f->top + k], index[k],
                                 "form %zu row %d", i, row);
            }
            to_floats(want + row * D, y, D);
        }
        cr_expect_lt(case_error(t.y, want, ROWS * D), 1, "%s, form %zu", backends[*b]->name, i);
    }
}

/* Of equal scores the value with the lower index is taken. */
Test(ffn_pkm, ties_go_to_the_lower_index)
{
    const struct config c = config_of(&forms[3], D);
    struct ffn_case t;

    ffn_open(&t, &c, "ref", 1, ROWS, false);
    for (int i = 0; i < t.p.n; i++)
        if (strstr(t.p.v[i].name, "keys"))
            memset(t.p.v[i].data, 0, t.p.v[i].n * sizeof(float));
    ffn_forward(&t, false);
    const struct ffn_choice chose = ffn_pkm.chose(&c, ROWS, t.work);
    for (int i = 0; i < ROWS * 4; i++)
        cr_expect_eq(chose.at[i], i % 4);
}

/* ---- gradients ---------------------------------------------------------------------------- */

Test(ffn_pkm, reference_is_the_derivative)
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        const struct config c = config_of(&forms[i], D);
        struct ffn_case t;
        ffn_open(&t, &c, "ref", 1, ROWS, false);
        ffn_differentiate(&t, kept_text("form %zu", i), 0x1p-12);
    }
}

TEST_EACH(int *b, ffn_pkm, backward_as_the_reference, every_backend())
{
    for (size_t i = 1; i < ARRAY_LEN(forms); i++) {
        const struct config c = config_of(&forms[i], D), wide = config_of(&forms[i], 150);
        ffn_compare(&c, backends[*b]->name, 1 + (int)i % 2, ROWS, i % 2 ? 0.25f : 0);
        ffn_compare(&wide, backends[*b]->name, 1 + (int)i % 2, 400, 0);
    }
}

/* ---- costs and configurations ------------------------------------------------------------- */

Test(ffn_pkm, flop_counts_products_and_chosen_values)
{
    const struct config c = config_of(&forms[1], D); /* 2 heads, 5 keys, halves of 3, the 2 best */

    cr_expect_eq(ffn_pkm.flop(&c, 10), 2.0 * 10 * (D * 12 + 12 * 5 + 2 * 2 * D));
}
