/* SPDX-License-Identifier: MIT
 *
 * What attention does around its core: forms that change nothing give the plain model's logits,
 * values of layers follow their lists, and what makes no sense together is refused. Golden files
 * test the equations. */
#include "tests/support/model.h"
#include "tests/support/named.h"
#include "variants/model/attention/head_capsules.h"

enum { TEXT = 21, SEGMENT = 7, MEMORY = 14 };

/* Every element of the tensors whose names end so. */
static void set_weights(struct lm *m, const char *end, float times, float plus)
{
    int found = 0;

    for (struct param *p = m->params.v; p < m->params.v + m->params.n; p++) {
        if (!ends_in(p->name, end))
            continue;
        found++;
        for (size_t e = 0; e < p->n; e++)
            p->data[e] = times * p->data[e] + plus;
    }
    cr_assert_gt(found, 0, "no tensor %s", end);
}

static struct config plain(void)
{
    return config_default(variant_find("rope"), 24, 2, 6, 32, 3, 17);
}

static float *logits(const struct config *c, void (*change)(struct lm *m))
{
    struct model m;

    model_open(&m, c, "ref", 1, MEM_HIDDEN, (struct extent){2, SEGMENT, MEMORY});
    if (change)
        change(&m.lm);
    return model_stream(&m, 0, 2, TEXT, SEGMENT);
}

/* The same logits up to the rounding of what is neutral: 1e-6 of the largest. */
static void expect_plain(const char *what, const struct config *c, void (*change)(struct lm *m),
                         const struct config *like)
{
    const size_t n = (size_t)(2 * TEXT * like->V);
    float *got = logits(c, change), *want = logits(like, NULL);

    cr_expect_lt(case_error(got, want, n), 0.01, "%s is not neutral", what);
}

static void never_forgets(struct lm *m)
{
    set_weights(m, "attn.f.weight", 0, 0);
    set_weights(m, "attn.f.bias", 0, 60);
}

static void own_values(struct lm *m)
{
    cr_assert_null(params_find(&m->params, "layers.0.attn.v_mix"));
    for (int l = 1; l < 3; l++)
        memcpy(data_of(&m->params, "layers.%d.attn.v_mix", l), (const float[]){1, 0},
               2 * sizeof(float));
}

static void half_open(struct lm *m)
{
    set_weights(m, "attn.g.weight", 0, 0);
    set_weights(m, "attn.o.weight", 2, 0);
}

static void empty_sink(struct lm *m) { set_weights(m, "attn.sink", 0, -200); }

static void no_vectors(struct lm *m) { set_weights(m, "attn.cope.weight", 0, 0); }

Test(sublayer_attention_around, neutral_forms_are_plain)
{
    struct config c = plain();
    const struct config like = c;

    set_choice(&c, "forget", "1");
    expect_plain("forget", &c, never_forgets, &like);
    c = like, set_choice(&c, "value_residual", "1");
    expect_plain("value_residual", &c, own_values, &like);
    c = like, c.soft_cap = 1e6f;
    expect_plain("soft_cap", &c, NULL, &like);
    c = like, c.logit_cap = 1e6f;
    expect_plain("logit_cap", &c, NULL, &like);
    c = like, c.attn_extra = &extra_sink;
    config_numbers_reset(&c);
    expect_plain("sink", &c, empty_sink, &like);
    for (enum out_gate o = OUT_GATE_ELEMENTWISE; o <= OUT_GATE_HEADWISE; o++) {
        c = like, c.out_gate = o;
        expect_plain("out_gate", &c, half_open, &like);
    }
    c = like, c.layer_windows = (struct layer_list){2, {MEMORY + SEGMENT, 0}};
    expect_plain("layer_windows", &c, NULL, &like);
    c = like, c.layer_rope_base = (struct layer_list){2, {10000, 10000}};
    expect_plain("layer_rope_base", &c, NULL, &like);
}

Test(sublayer_attention_around, no_positions_where_the_base_is_0)
{
    struct config like = plain(), c = like;

    like.pos = &pos_none;
    config_numbers_reset(&like);
    c.layer_rope_base = (struct layer_list){1, {0}};
    expect_plain("base 0", &c, NULL, &like);
    c = like, set_choice(&c, "cope", "5");
    expect_plain("cope", &c, no_vectors, &like);
}

/* Vectors from `n` - 1 on are alike, and `d` of each number apart from the first of `vectors`. */
static void cope_vectors(struct lm *m, int n, int vectors)
{
    for (int i = 0; i < m->params.n; i++) {
        struct param *const p = &m->params.v[i];
        const int d = m->c.dh;
        if (!strstr(p->name, "cope"))
            continue;
        for (int x = 0; x < vectors * d; x++) {
            const int e = min_int(x / d, n - 1) * d + x % d;
            p->data[x] = (float)((e * 7 + i) % 11) / 4 - 1;
        }
    }
}

static void four_vectors(struct lm *m) { cope_vectors(m, 4, 4); }
static void fourth_repeated(struct lm *m) { cope_vectors(m, 4, 9); }
static void fifth_differs(struct lm *m) { cope_vectors(m, 5, 9); }

/* Positions end at the last vector: further ones that are the same change nothing, one that differs
 * does. A text of 21 tokens has positions near 10 = 21 / 2, hence before, between, at and after. */
Test(sublayer_attention_around, positions_end_at_the_last_vector)
{
    struct config few = plain();

    few.pos = &pos_none;
    config_numbers_reset(&few);
    struct config many = few;
    set_choice(&few, "cope", "4");
    set_choice(&many, "cope", "9");
    const size_t n = (size_t)(2 * TEXT * few.V);
    float *const want = logits(&few, four_vectors), *const same = logits(&many, fourth_repeated),
                 *const other = logits(&many, fifth_differs);
    cr_expect_lt(case_error(same, want, n), 0.01);
    cr_expect_gt(case_error(other, want, n), 1);
}

/* ---- EM routing, in double ------------------------------------------------------------------ */

enum { EM_H = 5, EM_N = 3, EM_WIDTH = 2, EM_D = EM_N * EM_WIDTH, EM_ITERS = 3 };
struct em {
    double V[EM_H * EM_D], beta_a[EM_N], beta_u[EM_N];
};

/* sum over e of y_e by the equations of head_capsules_em.c. */
static double em_sum(const struct em *x, double lambda, double eps, const float *d_y)
{
    double R[EM_H][EM_N], a[EM_N], mean[EM_D], var[EM_D], sum = 0;

    for (int t = 1; t <= EM_ITERS; t++) {
        for (int h = 0; h < EM_H; h++) {
            double all = 0;
            for (int n = 0; n < EM_N; n++) {
                R[h][n] = t == 1 ? 1 : a[n];
                for (int e = n * EM_WIDTH; t > 1 && e < (n + 1) * EM_WIDTH; e++)
                    R[h][n] *=
                        exp(-pow(x->V[h * EM_D + e] - mean[e], 2) / (2 * var[e])) / sqrt(var[e]);
                all += R[h][n];
            }
            for (int n = 0; n < EM_N; n++)
                R[h][n] /= all;
        }
        for (int n = 0; n < EM_N; n++) {
            double S = 0, cost = 0;
            for (int h = 0; h < EM_H; h++)
                S += R[h][n];
            for (int e = n * EM_WIDTH; e < (n + 1) * EM_WIDTH; e++) {
                mean[e] = var[e] = 0;
                for (int h = 0; h < EM_H; h++)
                    mean[e] += R[h][n] * x->V[h * EM_D + e] / S;
                for (int h = 0; h < EM_H; h++)
                    var[e] += R[h][n] * pow(x->V[h * EM_D + e] - mean[e], 2) / S;
                var[e] += eps;
                cost += x->beta_u[n] + log(var[e]) / 2;
            }
            a[n] = 1 / (1 + exp(-lambda * (1 - pow(0.95, t)) * (x->beta_a[n] - S * cost)));
        }
    }
    for (int e = 0; e < EM_D; e++)
        sum += (double)d_y[e] * a[e / EM_WIDTH] * mean[e];
    return sum;
}

/* Both betas are far from 0. In double a difference is good to 1e-8, sums of floats of this size to
 * 200 U of the largest. */
Test(sublayer_attention_around, em_routing_is_its_equations)
{
    float V[EM_H * EM_D], beta_a[EM_N], beta_u[EM_N], shares[EM_ITERS * EM_H * EM_N];
    float y[EM_D], room[EM_H * EM_N], d_V[EM_H * EM_D], sums[256], d_y[EM_D], d_kept[EM_D];
    float d[256];
    struct em x;
    const struct vote p = {.H = EM_H,
                           .N = EM_N,
                           .D = EM_D,
                           .width = EM_WIDTH,
                           .iters = EM_ITERS,
                           .lambda = 1.5f,
                           .eps = 0.125f,
                           MEMBERS(, beta_a, beta_u, shares, sums),
                           .votes = V};

    cr_assert_leq(EM_ITERS * agreement_em.sums(EM_D, EM_N), 256);
    for (int i = 0; i < EM_H * EM_D; i++)
        x.V[i] = (double)(V[i] = (float)(i * 37 % 29) / 16 - 1);
    for (int n = 0; n < EM_N; n++) {
        x.beta_a[n] = (double)(beta_a[n] = 0.5f - (float)n / 4);
        x.beta_u[n] = (double)(beta_u[n] = 0.25f + (float)n / 2);
    }
    for (int e = 0; e < EM_D; e++)
        d_kept[e] = d_y[e] = 1 - (float)e / 4;
    agreement_em.forward(&p, y, room);
    double got = 0;
    for (int e = 0; e < EM_D; e++)
        got += (double)d_kept[e] * (double)y[e];
    cr_expect_leq(fabs(got - em_sum(&x, 1.5, 0.125, d_kept)), 200 * U);
    agreement_em.backward(&p, d_V, d_y, d, room);
    const float *const d_beta = d + 2 * (EM_D + EM_N);
    struct {
        const char *name;
        double *x;
        const float *d;
        int n;
    } all[] = {{"votes", x.V, d_V, EM_H * EM_D},
               {"beta_a", x.beta_a, d_beta, EM_N},
               {"beta_u", x.beta_u, d_beta + EM_N, EM_N}};
    for (size_t o = 0; o < ARRAY_LEN(all); o++)
        for (int i = 0; i < all[o].n; i++) {
            const double at = all[o].x[i], step = 1e-5;
            all[o].x[i] = at + step;
            const double up = em_sum(&x, 1.5, 0.125, d_kept);
            all[o].x[i] = at - step;
            const double down = em_sum(&x, 1.5, 0.125, d_kept);
            all[o].x[i] = at;
            cr_expect_leq(fabs((double)all[o].d[i] - (up - down) / (2 * step)), 200 * U * 4,
                          "%s[%d]: %g, not %g", all[o].name, i, (double)all[o].d[i],
                          (up - down) / (2 * step));
        }
}

/* ---- work space ----------------------------------------------------------------------------- */

/* Note in `users` who has each float; outside of them there is no array. */
static void use(int *users, const float *base, size_t n, const float *at, size_t floats)
{
    cr_assert(!floats || (at >= base && at + floats <= base + n));
    for (size_t i = 0; i < floats; i++)
        users[at - base + (ptrdiff_t)i]++;
}

/* The arrays of all parts fill their work space, and each float belongs to one of them. */
static void expect_apart(const struct sublayer *s, struct extent max, bool backward)
{
    const struct around_call n = {max.B, max.L, max.M + max.L, max.M + max.L, backward};
    const size_t all = around_array(s, max, backward).n_kept;
    float *const base = room(all, sizeof(*base));
    int *const users = room(all, sizeof(*users));
    struct work w = {0};

    cr_assert(s->n_parts > 1);
    *(backward ? &w.d_array[AT_AROUND] : &w.array[AT_AROUND]) = base;
    use(users, base, all, base, around_add_floats(s->c, n) + 2 * around_sums_count(s->c, n));
    for (int i = 0; i < s->n_parts; i++) {
        const struct part_call t =
            around_part_call(&(struct part_call){.s = s, .w = &w, .n = n}, i);
        size_t floats[AROUND_ARRAYS] = {0};
        if (s->parts[i].part->arrays)
            s->parts[i].part->arrays(s, n, floats);
        for (int k = 0; k < AROUND_ARRAYS; k++)
            use(users, base, all, backward ? t.d_at[k] : t.at[k], floats[k]);
    }
    for (size_t i = 0; i < all; i++)
        cr_expect_eq(users[i], 1, "float %zu has %d users", i, users[i]);
}

static void expect_parts_apart(const char *const keys[][2], enum out_gate gate)
{
    struct config c = plain();
    struct params p = {0};
    struct sublayers s = {0};

    c.out_gate = gate;
    for (int i = 0; keys[i][0]; i++)
        set_choice(&c, keys[i][0], keys[i][1]);
    sublayers_init_bare(&s, &c, SUB_ATTENTION, &p, 0);
    expect_apart(s.at, (struct extent){2, 5, 3}, false);
    expect_apart(s.at, (struct extent){2, 5, 3}, true);
    sublayers_free(&s);
    params_free(&p);
}

Test(sublayer_attention_around, arrays_of_parts_do_not_overlap)
{
    static const char *const fades[][2] = {
        {"qk_norm", "1"}, {"forget", "1"}, {"value_residual", "1"}, {0}};
    static const char *const differs[][2] = {
        {"qk_norm", "1"}, {"diff", "1"}, {"value_residual", "1"}, {0}};
    static const char *const masks[][2] = {{"dman", "1"}, {0}};
    static const char *const predicts[][2] = {{"pred_form", "evolving"},
                                              {"pred_alpha", "0.5"},
                                              {"pred_beta", "0.5"},
                                              {"pred_rows", "3"},
                                              {"pred_cols", "3"},
                                              {"value_residual", "1"},
                                              {0}};

    expect_parts_apart(fades, OUT_GATE_ELEMENTWISE);
    expect_parts_apart(differs, OUT_GATE_HEADWISE);
    expect_parts_apart(masks, OUT_GATE_HEADWISE);
    expect_parts_apart(predicts, OUT_GATE_NONE);
}

/* The window of a layer is that of all or its own, whichever is shorter. */
Test(sublayer_attention_around, windows_of_layers)
{
    struct config c = plain();

    c.layer_windows = (struct layer_list){3, {4, 0, 9}};
    cr_expect(config_window(&c, 0) == 4 && config_window(&c, 1) == 0 && config_window(&c, 5) == 9);
    c.window = 6;
    cr_expect(config_window(&c, 3) == 4 && config_window(&c, 4) == 6 && config_window(&c, 2) == 6);
}
