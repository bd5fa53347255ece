/* SPDX-License-Identifier: MIT
 *
 * What attention does around its core: forms that change nothing give the plain model's logits,
 * values of layers follow their lists, and what makes no sense together is refused. Golden files
 * test the equations. */
#include "tests/support/model.h"
#include "variants/model/attention/around.h"
#include "variants/parts/parts.h"

enum { TEXT = 21, SEGMENT = 7, MEMORY = 14 };

/* Every element of the tensors whose names end so. */
static void set_weights(struct lm *m, const char *end, float times, float plus)
{
    int found = 0;

    for (int i = 0; i < m->params.n; i++) {
        struct param *const p = &m->params.v[i];
        const size_t n = strlen(p->name), k = strlen(end);
        if (n < k || strcmp(p->name + n - k, end) != 0)
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
    float *all = model_stream(&m, 0, 2, TEXT, SEGMENT);
    model_close(&m);
    return all;
}

/* The same logits up to the rounding of what is neutral: 1e-6 of the largest. */
static void expect_plain(const char *what, const struct config *c, void (*change)(struct lm *m),
                         const struct config *like)
{
    const size_t n = (size_t)(2 * TEXT * like->V);
    float *got = logits(c, change), *want = logits(like, NULL);

    cr_expect_lt(case_error(got, want, n), 0.01, "%s is not neutral", what);
    free(got), free(want);
}

static void never_forgets(struct lm *m)
{
    set_weights(m, "attn.f.weight", 0, 0);
    set_weights(m, "attn.f.bias", 0, 60);
}

static void own_values(struct lm *m)
{
    for (int l = 1; l < 3; l++) {
        char name[40];
        snprintf(name, sizeof(name), "layers.%d.attn.v_mix", l);
        const struct param *const mix = params_find(&m->params, name);
        cr_assert(mix && !params_find(&m->params, "layers.0.attn.v_mix"));
        mix->data[0] = 1;
        mix->data[1] = 0;
    }
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
    const struct around_call n = {max.B, max.L, max.M + max.L, max.M + max.L};
    const size_t all = around_array(s, max, backward).n_kept;
    float *const base = calloc(all, sizeof(*base));
    int *const users = calloc(all, sizeof(*users));
    struct work w = {0};

    cr_assert(base && users && s->n_parts > 1);
    *(backward ? &w.d_array[AT_AROUND] : &w.array[AT_AROUND]) = base;
    use(users, base, all, base, around_add_floats(s->c, n) + 2 * around_sums_count(s->c, n));
    for (int i = 0; i < s->n_parts; i++) {
        const struct part_call t = around_part_call(NULL, s, &w, n, i);
        size_t floats[AROUND_ARRAYS] = {0};
        if (s->parts[i].part->arrays)
            s->parts[i].part->arrays(s, n, backward, floats);
        for (int k = 0; k < AROUND_ARRAYS; k++)
            use(users, base, all, backward ? t.d_at[k] : t.at[k], floats[k]);
    }
    for (size_t i = 0; i < all; i++)
        cr_expect_eq(users[i], 1, "float %zu has %d users", i, users[i]);
    free(base), free(users);
}

static void expect_parts_apart(const char *const keys[][2], enum out_gate gate)
{
    struct config c = plain();
    struct params p = {0};
    struct sublayers s = {0};

    c.out_gate = gate;
    for (int i = 0; keys[i][0]; i++)
        set_choice(&c, keys[i][0], keys[i][1]);
    cr_assert_eq(sublayers_init_operator(&s, &c, &p, 0, NULL), OK);
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

static struct config with(const char *variant)
{
    return config_default(variant_find(variant), 24, 2, 6, 32, 3, 17);
}

static void expect_refused(const char *what, const struct config *c)
{
    struct err e = {""};

    cr_expect_eq(config_check(c, &e), E_USAGE, "%s is accepted", what);
}

Test(sublayer_attention_around, contradictions_are_refused)
{
    struct config c = with("fox");

    cr_expect_eq(config_check(&c, NULL), OK);
    c.attn_extra = &extra_sink;
    expect_refused("forgetting with a sink", &c);
    c = with("fox"), c.causal = false;
    expect_refused("forgetting the future", &c);
    c = with("diff"), set_choice(&c, "forget", "1");
    expect_refused("differences that forget", &c);
    c = with("cope"), c.pos = &pos_rope;
    config_numbers_reset(&c);
    expect_refused("contextual and rotary positions", &c);
    c = with("linear"), set_choice(&c, "qk_norm", "1");
    expect_refused("normed keys of a mixer", &c);
    c = with("compressive"), c.mem_len = 16;
    config_numbers_reset(&c);
    set_choice(&c, "qk_norm", "1");
    expect_refused("normed keys of compressed memory", &c);
    c = with("xl"), c.layer_rope_base = (struct layer_list){1, {100}};
    expect_refused("bases without rotation", &c);
    c = with("universal"), c.layer_windows = (struct layer_list){1, {4}};
    expect_refused("windows of steps", &c);
}
