/* SPDX-License-Identifier: MIT
 *
 * Models of a variant: defaults, and numbers beyond their bounds. Choices that contradict each other:
 * test_refusals.c. */
#include "tests/support/failure.h"
#include "variants/model/config/keys.h"
#include "variants/parts/collab.h"

static struct config of(const char *variant)
{
    return config_default(variant_find(variant), 48, 3, 20, 90, 2, 256);
}

/* What a variant leaves out, and what it says, of memory and of the feed-forward network. */
Test(config, what_is_left_out_is_the_original_transformers)
{
    static const struct {
        const char *variant;
        const struct mem *mem;
        const struct ffn *ffn;
    } of_variant[] = {
        {"rope", &mem_segment, &ffn_relu},
        {"vanilla", &mem_prefix, &ffn_relu},
        {"llama", &mem_segment, &ffn_swiglu},
        {"gla", &mem_state, &ffn_swiglu},
        {"clustered", &mem_none, NULL},
        {"poolingformer", &mem_none, &ffn_gelu},
        {"poolingformer-bi", &mem_none, &ffn_gelu},
    };

    for (size_t i = 0; i < ARRAY_LEN(of_variant); i++) {
        const struct config c = of(of_variant[i].variant);
        cr_expect_eq(config_mem(&c), of_variant[i].mem, "%s", of_variant[i].variant);
        cr_expect(!of_variant[i].ffn || c.ffn == of_variant[i].ffn, "%s", of_variant[i].variant);
    }
    for (int i = 0; variants[i]; i++)
        cr_expect(!variants[i]->bidirectional || !variant_mem(variants[i])->recurrent, "%s",
                  variants[i]->name);
}

Test(config, defaults_are_the_variants)
{
    for (int i = 0; variants[i]; i++) {
        const struct variant *v = variants[i];
        const struct config c = config_default(v, 48, 3, 20, 90, 2, 256);
        cr_expect_eq(config_check(&c, &failure), OK, "%s", failure.msg);
        cr_expect(c.variant == v && c.pos == v->pos && c.gate == v->gate && c.wiring == v->wiring);
        cr_expect(c.D == 48 && c.H == 3 && c.dh == 20 && c.F == 90 && c.V == 256);
        cr_expect(v->loops ? c.N == 1 && c.steps == 2 : c.N == 2 && c.steps == 0);
        const float width =
            has_collab(&c) ? (float)collab_of(&c)->dk / 3 : 20 * (float)max_int(1, v->products);
        cr_expect_float_eq(c.scale, v->unscaled ? 1 : 1 / sqrtf(width), 1e-7f);
        cr_expect_float_eq(c.emb_scale, sqrtf(48), 1e-6f);
        cr_expect_eq(c.ln_eps, v->norm_kind == NORM_UNBIASED ? 1e-6f : 1e-5f);
        cr_expect_eq(c.head_eps, strncmp(v->name, "rwkv", 4) == 0 ? 64e-5f : 1e-5f, "%s", v->name);
        cr_expect(!c.causal == v->bidirectional && c.tied != v->untied && c.out_bias && c.rel_k);
        cr_expect(c.rel_v != v->shaw.keys_only && c.rel_per_head == v->shaw.per_head);
        cr_expect(c.attn_bias == v->attn_bias && !c.final_ln && !c.uv_per_layer && !c.same_length);
        cr_expect(c.clip == (v->shaw.clip ? v->shaw.clip : 16));
        cr_expect(c.rel_rows == (c.causal ? c.clip + 1 : 2 * c.clip + 1) && c.clamp_len == 0 &&
                  c.window == v->window);
    }
}

Test(config, registries_find_by_name_and_alias)
{
    cr_expect_eq(variant_find("rpr"), variant_find("shaw"));
    cr_expect_null(variant_find("shaw2"));
    for (int i = 0; variants[i]; i++)
        cr_expect_eq(variant_find(variants[i]->name), variants[i]);
    for (int i = 0; gates[i]; i++)
        cr_expect_eq(gate_find(gates[i]->name), gates[i]);
    for (int i = 0; positions[i]; i++)
        cr_expect_eq(pos_find(positions[i]->name), positions[i]);
    cr_expect(!gate_find("none") && !pos_find("") && pos_find("none"));
}

/* One less than the least of a whole number, or one more than the greatest. */
static void expect_bounds(const struct config *usual, const struct choice *row, ptrdiff_t base)
{
    for (int beyond = 0; beyond < 2; beyond++) {
        struct config c = *usual;
        int *const at = (int *)(void *)((char *)&c + base + row->at);
        if (beyond && row->most >= INT_MAX)
            continue;
        *at = (int)(beyond ? row->most + 1 : row->least - 1);
        REFUSED(config_check(&c, &failure), E_USAGE, row->name);
    }
}

/* Of each model and each of its parts, whatever set them. */
Test(config, numbers_are_within_bounds)
{
    const struct choice *row;
    int n = 0;

    for (int i = 0; variants[i]; i++) {
        const struct config usual = of(variants[i]->name);
        for (int k = 0; (row = model_key(k)); k++)
            if (row->codec == CODEC_INT && choice_applies(row, &usual, SCOPE_MODEL))
                expect_bounds(&usual, row, 0), n++;
        for (enum part_slot s = 0; s < SLOT_COUNT; s++) {
            const struct part_numbers *const numbers = config_numbers_of(&usual, s);
            for (row = numbers ? numbers->choices : NULL; row && row->name; row++)
                if (row->codec == CODEC_INT)
                    expect_bounds(&usual, row,
                                  usual.numbers[s].bytes - (const unsigned char *)&usual),
                        n++;
        }
    }
    cr_expect_gt(n, 50);
}

/* Each size is allowed; a state of all of them is not. */
Test(config, states_have_a_size)
{
    EACH_TEXT (name, "gla", "linear", "mamba", "gdn-hybrid") {
        const struct variant *const v = variant_find(name);
        const struct config c = config_default(v, 1 << 15, 1, 1 << 18, 90, 4, 256);
        REFUSED(config_check(&c, &failure), E_USAGE, name, "states of");
    }
}

Test(config, sinusoids_need_an_even_width)
{
    for (int i = 0; variants[i]; i++) {
        struct config c = of(variants[i]->name);
        c.D = 47;
        c.lsra.heads = c.lsra.split ? 1 : 0; /* groups of one width */
        config_numbers_reset(&c);
        const char *const text = kept_text(
            "%s: --d-model 47 is odd  -> sinusoids come in pairs, give 48", c.variant->name);
        if (c.pos->sinusoids || c.steps)
            REFUSED(config_check(&c, &failure), E_USAGE, text);
        else if (!strchr(c.subs, 'l')) /* whose parts divide the width it has by default */
            cr_expect_eq(config_check(&c, NULL), OK, "%s", c.variant->name);
    }
}
