/* SPDX-License-Identifier: MIT
 *
 * Latent attention: both forms are the same function, with every kind of memory, window and mask;
 * the cache holds one latent per row; products are counted as they are made; sizes that make no
 * sense are refused. Golden files test the equations. */
#include "tests/support/alone.h"
#include "tests/support/every_backend.h"
#include "tests/support/model.h"
#include "tests/support/named.h"
#include "variants/parts/latent.h"

enum { SEQUENCES = 2, SEGMENT = 7, MEMORY = 12, TEXT = 23 };
static const struct extent largest = {SEQUENCES, SEGMENT, MEMORY};

/* Sizes that all differ and are no whole vectors. */
static struct config awkward(int q_rank, enum mla_form form)
{
    struct config c = config_default(variant_find("mla"), 26, 3, 9, 17, 2, 13);

    set_number(&c, "d_nope", 5);
    set_number(&c, "d_rope", 4);
    set_number(&c, "kv_rank", 11);
    set_number(&c, "q_rank", q_rank);
    c.dv = 7;
    c.mla = form;
    c.max_seq = TEXT;
    MUST(config_check(&c, &failure));
    return c;
}

/* ---- one layer: a derived bound ----------------------------------------------------------- */

/* f [B,L,D] of random rows after MEMORY others, on the reference. To be closed. */
static void run_layer(struct alone *y, const struct config *c, float *out)
{
    *y = (struct alone){.g = open_engine("ref", 1), .c = *c, .max = largest, .kind = MEM_HIDDEN};
    sublayers_init_bare(&y->list, &y->c, SUB_ATTENTION, &y->p, 0);
    alone_place(y);
    c->pos->pos_encoding(c, 0, MEMORY + SEGMENT, y->list.pos_encoding);
    sublayers_build_tables(&y->list, &y->g);
    float *const x = normals((size_t)SEQUENCES * MEMORY * (size_t)c->D, "x", 0, 1);
    const int half = MEMORY / 2;
    sublayer_remember(&y->g, y->list.at, y->list.work, x, SEQUENCES, half);
    sublayer_remember(&y->g, y->list.at, y->list.work, x + half * c->D, SEQUENCES, MEMORY - half);
    const struct sublayer_input from =
        sublayer_source(&y->g, y->list.at, y->list.work, x, SEQUENCES, SEGMENT);
    y->list.at->kind->forward(&y->g, y->list.at, y->list.work, from, (struct act){.y = out});
}

/* Largest Euclidean length of the first n of rows `step` apart. */
static double longest(const float *x, size_t rows, size_t step, int n)
{
    double most = 0;

    for (size_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int e = 0; e < n; e++)
            sum += (double)x[i * step + (size_t)e] * (double)x[i * step + (size_t)e];
        most = fmax(most, sqrt(sum));
    }
    return most;
}

/* In the last run, the first value of so many columns. */
static const float *value_of(const struct alone *y, int width)
{
    const struct steps *const t = &y->list.at->state.steps.steps;
    const struct work *const w = y->list.work;
    const struct steps_run r = {
        .B = SEQUENCES, .L = SEGMENT, .M = MEMORY, .values = w->array[0], .kept = w->x != NULL};
    int i = STEPS_INPUT + 1;

    while (t->value[i].width != width)
        i++;
    return steps_matrix(t, &r, i).at;
}

/* How far the two forms may be apart. The reference adds in double, so each number that it stores
 * is off by U of the sum of its terms' magnitudes, |a||b| at most for a product of a and b.
 *
 *   scores   k_h is rounded in one form, q~_h in the other: each moves a score by no more than
 *            d = s U |q| sqrt(d_nope) |w_uk| |c|, with w_uk the longest row of W_uk; 2 d between
 *            them. A softmax whose scores move by 2 d gives weights that move by the factor
 *            e^(4 d), together by less than 5 d of their sum.
 *   o        |v| <= |w_uv| |c|: 5 d of it from the weights, and two roundings in each form (v and
 *            o; o~ and o), 4 U.
 *   y        a row of W_o times sqrt(H dv) of the largest error in o, and a rounding in each form.
 */
static double bound_of(const struct alone *y, const struct config *c)
{
    const struct latent *const l = latent_of(c);
    const float *const up = data_of(&y->p, "attn.kv_b.weight"), *const out =
                                                                    data_of(&y->p, "attn.o.weight");
    const size_t head = (size_t)((l->nope + c->dv) * l->rank), D = (size_t)c->D;
    const int width = c->H * c->dv;
    const double q = longest(value_of(y, c->H * c->dh), (size_t)SEQUENCES * SEGMENT * (size_t)c->H,
                             (size_t)c->dh, l->nope);
    const double latent =
        longest(value_of(y, latent_width(c)), (size_t)SEQUENCES * (MEMORY + SEGMENT),
                (size_t)latent_width(c), l->rank);
    double w_uk = 0, w_uv = 0;

    for (int h = 0; h < c->H; h++) {
        const float *const of = up + (size_t)h * head;
        w_uk = fmax(w_uk, longest(of, (size_t)l->nope, (size_t)l->rank, l->rank));
        w_uv = fmax(w_uv, longest(of + l->nope * l->rank, (size_t)c->dv, (size_t)l->rank, l->rank));
    }
    const double d = (double)c->scale * U * q * sqrt(l->nope) * w_uk * latent;
    const double v = w_uv * latent, rows = longest(out, D, (size_t)width, width) * sqrt(width);
    return rows * v * (5 * d + 4 * U + 2 * U);
}

Test(sublayer_latent, forms_differ_by_roundings_only)
{
    for (int turn = 0; turn < 4; turn++) {
        struct config one = awkward(turn % 2 * 6, MLA_EXPANDED), other = one;
        float got[SEQUENCES * SEGMENT * 26], want[SEQUENCES * SEGMENT * 26];
        struct alone y, z;
        one.window = other.window = turn / 2 * 5;
        other.mla = MLA_ABSORBED;
        run_layer(&y, &one, want);
        run_layer(&z, &other, got);
        const double bound = bound_of(&y, &one);
        double worst = 0, largest_of = 0;
        for (size_t i = 0; i < ARRAY_LEN(got); i++) {
            worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
            largest_of = fmax(largest_of, fabs((double)want[i]));
        }
        cr_expect_leq(worst, bound, "turn %d: %.3g of %.3g", turn, worst, bound);
        cr_expect_lt(bound, 1e-4 * largest_of, "turn %d: the bound says nothing", turn);
        cr_expect_gt(worst, 0, "turn %d: the forms are one", turn);
    }
}

/* ---- models ------------------------------------------------------------------------------- */

static float *logits(const struct config *c, const char *backend, enum mem_kind kind, int segment)
{
    return model_logits(c, backend, 2, kind, largest, TEXT, segment);
}

TEST_EACH(int *b, sublayer_latent, forms_agree_in_models, every_backend(), .timeout = 120)
{
    static const char *const masks[] = {"", "window=6", "stride=3;fixed=4,summary=1"};
    const char *const backend = backends[*b]->name;

    for (size_t k = 0; k < 2 * ARRAY_LEN(masks); k++) {
        struct config c = awkward(k % 2 ? 6 : 0, MLA_EXPANDED);
        cr_assert_eq(config_set_masks(&c, c.variant, masks[k / 2], "", NULL), OK);
        c.window = MEMORY - (int)k; /* the same keys in any segments */
        c.soft_cap = k == 0 ? 2 : 0;
        const size_t n = (size_t)SEQUENCES * TEXT * (size_t)c.V;
        float *const want = logits(&c, "ref", MEM_HIDDEN, SEGMENT);
        for (int form = 0; form < MLA_FORMS; form++)
            for (int kv = 0; kv < 2; kv++)
                for (int token = 0; token < 2; token++) {
                    c.mla = (enum mla_form)form;
                    float *const got =
                        logits(&c, backend, kv ? MEM_KV : MEM_HIDDEN, token ? 1 : SEGMENT);
                    cr_expect_lt(case_error(got, want, n), 1, "%s, %s, masks %s, kv %d, token %d",
                                 backend, mla_form_name[form], masks[k / 2], kv, token);
                }
    }
}

/* ---- cost --------------------------------------------------------------------------------- */

Test(sublayer_latent, the_cache_has_one_row_for_all_heads)
{
    for (int form = 0; form < MLA_FORMS; form++) {
        const struct config c = awkward(0, (enum mla_form)form);
        /* layers, rows, kv_rank + d_rope */
        cr_expect_eq(floats_remembered(&c, MEM_KV, largest.L, MEMORY), 2 * MEMORY * (11 + 4));
    }
}

/* One layer, B 2, L 3, M 4: P = 3 * 4 + 6 = 18 pairs, 6 new rows and 14 of memory and new. The
 * cache saves nothing of what expanded keys and values cost. */
Test(sublayer_latent, flop_is_what_is_computed)
{
    static const double o = 2. * 6 * 26 * 3 * 7, q = 2. * 6 * 26 * 27;
    static const double low = 2. * 6 * (26 + 27) * 6, latents = 2. * 26 * 15;

    for (int turn = 0; turn < 8; turn++) {
        const bool absorbs = turn & 1, kv = turn & 2, compressed = turn & 4;
        const struct config c = awkward(compressed ? 6 : 0, absorbs ? MLA_ABSORBED : MLA_EXPANDED);
        struct model m;
        model_open(&m, &c, "ref", 1, kv ? MEM_KV : MEM_HIDDEN, largest);
        const double core = 2. * 3 * 18 * (absorbs ? 2 * 15 + 2 * 11 : 2 * 9 + 2 * 7);
        const double up = 2. * (absorbs ? 6 : 14) * 11 * 3 * (5 + 7);
        const double want = core + up + o + (compressed ? low : q) + latents * (kv ? 6 : 14);
        const struct sublayer *const s = m.lm.sublayers.at;
        cr_expect_eq(sublayer_flop(s, 2, 3, 4), want, "turn %d: %.0f, not %.0f", turn,
                     sublayer_flop(s, 2, 3, 4), want);
        if (!kv) /* norms come first, so memory is reached: twice the products of forward */
            cr_expect_eq(sublayer_grad_flop(s, 2, 3, 4), 2 * want, "turn %d", turn);
    }
}
