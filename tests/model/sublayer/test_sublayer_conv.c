/* SPDX-License-Identifier: MIT
 *
 * Convolutions as sub-layers against their equation in double, with rows of an earlier segment and
 * without; what the letters of a layer make. Gradients: test_grad_lm.c; that cuts of a text do not
 * matter: test_properties.c; golden files compare whole models. */
#include "tests/support/bound_layer.h"

enum { D = 6, B = 2, L = 7, N = B * L * D };

struct conv {
    struct bound t;
    float *past; /* [B,M,D] */
    int M;
};

static void open_conv(struct conv *v, const char *backend, char letter, int kernel, int M)
{
    struct config c = config_default(variant_find("cpe"), D, 2, 3, 5, 1, 0);
    struct bound *const t = &v->t;

    c.cpe_kernel = c.sep_kernel = kernel;
    bound_open_letter(t, c, letter, backend, 2, (struct extent){B, L, M}, 1);
    v->past = normals(N, "past", 0, 1), v->M = M;
    for (int i = 0; letter == 'b' && i < 2 * D; i++) /* far from where ReLU has no slope */
        ((float *)bound_param(t, "wide.point.bias"))[i] = i % 3 ? 8 : -8;
    if (M) {
        params_pack(&t->l.p, &t->l.g);
        sublayer_remember(&t->l.g, t->l.list.at, t->l.list.work, v->past, B, M);
    }
    bound_run(t, 0, L);
}

/* Row i of sequence b, counted from the first new one; zeros before all rows. */
static double row_at(const struct conv *v, int b, int i, int e)
{
    if (i >= 0)
        return (double)v->t.x[(b * L + i) * D + e];
    return i >= -v->M ? (double)v->past[(b * v->M + v->M + i) * D + e] : 0;
}

static double sum_at(const struct conv *v, int kernel, int b, int i, int e)
{
    double sum = 0;

    for (int s = 0; s < kernel; s++)
        sum += (double)v->t.l.p.v[0].data[s * D + e] * row_at(v, b, i - kernel + 1 + s, e);
    return sum;
}

/* Channel o of a separable convolution of the input. */
static double branch_at(const struct conv *v, const char *name, int taps, int b, int i, int o)
{
    char depth[32], weight[32], bias[32];
    double y;

    snprintf(depth, sizeof(depth), "%s.depth", name);
    snprintf(weight, sizeof(weight), "%s.point.weight", name);
    snprintf(bias, sizeof(bias), "%s.point.bias", name);
    y = (double)bound_param(&v->t, bias)[o];
    for (int k = 0; k < D; k++)
        for (int s = 0; s < taps; s++)
            y += (double)bound_param(&v->t, weight)[o * D + k] *
                 (double)bound_param(&v->t, depth)[s * D + k] * row_at(v, b, i - taps + 1 + s, k);
    return y;
}

/* LN(relu(sep_11) + [sep_7; 0]) of a row, zeros before all rows. */
static void joined_at(const struct conv *v, int b, int i, double h[2 * D])
{
    memset(h, 0, 2 * D * sizeof(*h));
    if (i < -v->M)
        return;
    for (int o = 0; o < 2 * D; o++) {
        h[o] = fmax(0, branch_at(v, "wide", 11, b, i, o));
        h[o] += o < D / 2 ? branch_at(v, "narrow", 7, b, i, o) : 0;
    }
    layer_norm(h, 2 * D, bound_param(&v->t, "norm.weight"), bound_param(&v->t, "norm.bias"),
               (double)v->t.l.c.ln_eps);
}

static double branches_by_hand(const struct conv *v, int b, int i, int e)
{
    double y = (double)bound_param(&v->t, "last.point.bias")[e], h[2 * D];

    for (int s = 0; s < 7; s++) {
        joined_at(v, b, i - 6 + s, h);
        for (int o = 0; o < 2 * D; o++)
            y += (double)bound_param(&v->t, "last.point.weight")[e * 2 * D + o] *
                 (double)bound_param(&v->t, "last.depth")[s * 2 * D + o] * h[o];
    }
    return y;
}

static double by_hand(const struct conv *v, char letter, int kernel, int b, int i, int e)
{
    if (letter == 'b')
        return branches_by_hand(v, b, i, e);
    if (letter == 'c')
        return sum_at(v, kernel, b, i, e) + (double)v->t.l.p.v[1].data[e];
    double y = (double)v->t.l.p.v[2].data[e];
    for (int k = 0; k < D; k++)
        y += (double)v->t.l.p.v[1].data[e * D + k] * sum_at(v, kernel, b, i, k);
    return y;
}

static const int kernels[] = {1, 4, L + 4};

TEST_EACH(int *at, sublayer_conv, is_its_equation, every_backend())
{
    for (const char *letter = "cwb"; *letter; letter++)
        for (size_t k = 0; k < ARRAY_LEN(kernels); k++)
            for (int M = 0; M <= 3; M += 3) {
                /* with M it remembers the kernel - 1 newest of these rows */
                struct conv v;
                float want[N];
                open_conv(&v, backends[*at]->name, *letter, kernels[k], M);
                for (int i = 0; i < N; i++)
                    want[i] = (float)by_hand(&v, *letter, kernels[k], i / D / L, i / D % L, i % D);
                cr_expect_lt(case_error(v.t.y, want, N), 1, "%c, %s, kernel %d, M %d", *letter,
                             backends[*at]->name, kernels[k], M);
            }
}

/* ---- letters ------------------------------------------------------------------------------ */

static int with_name(const struct lm *m, const char *part)
{
    int n = 0;

    for (int i = 0; i < m->params.n; i++)
        n += strstr(m->params.v[i].name, part) != NULL;
    return n;
}

/* A sub-layer for each letter; attention that comes again has the weights of before. */
Test(sublayer_conv, letters_make_the_sublayers_of_a_layer)
{
    struct config c = config_default(variant_find("evolved"), 12, 3, 5, 17, 2, 11);
    struct lm m;

    cr_assert_eq(lm_init(&m, &c, NULL), OK);
    cr_assert_eq(m.sublayers.n, 8);
    NUMBERS({with_name(&m, "attn.q"), 4}, {with_name(&m, ".mattn.q"), 2},
            {with_name(&m, "branches.last.depth"), 2}, {with_name(&m, ".ff.ln."), 4},
            {m.sublayers.at[0].c->H, 6}, {m.sublayers.at[0].c->dh, 3}, {m.sublayers.at[2].c->H, 3},
            {m.sublayers.at[2].c->dh, 5});
    cr_expect_neq(m.sublayers.at[2].at[OWN_weights], m.sublayers.at[0].at[OWN_weights]);
    cr_expect_neq(m.sublayers.at[2].at[OWN_norm], m.sublayers.at[0].at[OWN_norm]);
    lm_free(&m);

    c = config_default(variant_find("sepconv"), 12, 3, 5, 17, 2, 11);
    cr_assert_eq(lm_init(&m, &c, NULL), OK);
    cr_assert_eq(m.sublayers.n, 8);
    NUMBERS({sublayers_attentions(&m.sublayers), 4},
            {m.sublayers.at[2].at[OWN_weights], m.sublayers.at[0].at[OWN_weights]},
            {m.sublayers.at[2].at[OWN_norm], m.sublayers.at[0].at[OWN_norm]},
            {with_name(&m, "attn.q"), 2}, {with_name(&m, "sep.depth"), 2},
            {with_name(&m, ".lnw."), 4});
    cr_expect_neq(m.sublayers.at[4].at[OWN_weights], m.sublayers.at[0].at[OWN_weights]);
    lm_free(&m);
}

Test(sublayer_conv, the_first_layer_alone_may_have_one)
{
    struct config c = config_default(variant_find("cpe"), 12, 3, 5, 17, 3, 11);
    struct lm m;

    for (int first = 0; first < 2; first++) {
        set_choice(&c, "cpe_layers", first ? "first" : "all");
        cr_assert_eq(lm_init(&m, &c, NULL), OK);
        NUMBERS({m.sublayers.n, first ? 7 : 9}, {with_name(&m, "cpe.weight"), first ? 1 : 3},
                {m.sublayers.at[m.sublayers.n - 1].layer, 2});
        lm_free(&m);
    }
}

Test(sublayer_conv, letters_without_sense)
{
    static const char *const subs[] = {"fcw", "sff", "scwc", "shf", "srf", "mf", "mmsf", "sbbf"};

    for (size_t i = 0; i < ARRAY_LEN(subs); i++) {
        struct config c = config_default(variant_find("cpe"), 12, 3, 5, 17, 2, 11);
        set_choice(&c, "subs", subs[i]);
        cr_expect_eq(config_check(&c, &failure), E_USAGE, "%s", subs[i]);
    }
}
