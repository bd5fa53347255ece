/* SPDX-License-Identifier: MIT
 *
 * --skeleton: norms, feed-forward network, biases and tying the same for all variants but where they
 * are the idea, or where the model could not be. */
#include "tests/support/command_line.h"
#include "tests/support/program.h"
#include "variants/model/config/control.h"
#include "variants/model/config/skeleton.h"

TestSuite(skeleton, .timeout = 120);

static void expect_rest(const char *line, enum skeleton kind, const char *want)
{
    const struct config c = model_of_line(line);
    char rest[SKELETON_TEXT];

    skeleton_rest(rest, &c, kind);
    cr_expect_str_eq(rest, want, "%s: %s", line, rest);
}

Test(skeleton, sets_all_that_is_no_idea)
{
    const struct config c = model_of_line("xl --skeleton llama"),
                        v = model_of_line("llama --skeleton post");

    cr_expect(c.wiring == WIRING_PRE && c.norm_kind == NORM_RMS && c.ffn == &ffn_swiglu);
    cr_expect(!c.ffn_bias && !c.attn_bias && !c.tied && !c.out_bias && c.F == 4 * c.D);
    cr_expect(v.wiring == WIRING_POST && v.ffn_bias && v.tied && v.out_bias);
    expect_rest("xl --skeleton llama", SKELETON_LLAMA, "");
    expect_rest("bert --skeleton post", SKELETON_POST, "");
    expect_rest("rwkv7 --skeleton llama", SKELETON_LLAMA, "");
}

/* What a variant differs in from its control stays, and is said. */
Test(skeleton, leaves_ideas)
{
    expect_rest("llama --skeleton post", SKELETON_POST, "norm=rms ffn=swiglu");
    expect_rest("scalenorm --skeleton llama", SKELETON_LLAMA, "norm=scale");
    expect_rest("gtrxl --skeleton llama", SKELETON_LLAMA, "norm_place=reorder");
    expect_rest("switch --skeleton llama", SKELETON_LLAMA, "ffn=moe");
    expect_rest("macaron --skeleton post", SKELETON_POST, "norm_place=macaron_pre");
    expect_rest("delight --skeleton llama --d-model 64", SKELETON_LLAMA, "d_inner=16");
    expect_rest("funnel --skeleton llama", SKELETON_LLAMA, "norm_place=post"); /* pools are post */
}

Test(skeleton, typed_options_come_first)
{
    const struct config c =
        model_of_line("xl --skeleton llama --ffn gelu --set tied=1 --d-inner 100");

    cr_expect(c.wiring == WIRING_PRE && c.ffn == &ffn_gelu && c.tied && c.F == 100);
    expect_rest("xl --skeleton llama --ffn gelu --set tied=1 --d-inner 100", SKELETON_LLAMA,
                "ffn=gelu tied=1 d_inner=100");
    cr_expect_eq(model_of_line("macaron --skeleton llama --norm pre").wiring, WIRING_PRE);
}

/* Every variant with every skeleton is a model, of which each row is the skeleton's, or its own where
 * that is its idea, the skeleton's excludes another part, or the model has no use for it: a checkpoint
 * that says otherwise is refused. */
Test(skeleton, all_variants_have_one)
{
    static const int rows[] = {CHOICE_norm_place, CHOICE_norm, CHOICE_ffn};

    for (int i = 0; variants[i]; i++)
        for (int kind = SKELETON_POST; kind < SKELETON_COUNT; kind++) {
            const struct config own = model_of_line(variants[i]->name);
            const bool controlled = variants[i]->control;
            const struct config control = controlled ? control_config(&own, 4) : own;
            const char *const line =
                kept_text("%s --skeleton %s", variants[i]->name, skeleton_name[kind]);
            const struct config c = model_of_line(line),
                                like = model_of_line(kind == SKELETON_POST ? "xl --skeleton post"
                                                                           : "xl --skeleton llama");
            cr_expect_eq(config_check(&c, &failure), OK, "%s: %s", line, failure.msg);
            cr_expect(c.tied == like.tied || c.pos->from_tokens, "%s", line);
            EACH_TEXT (setting, "ff_bias", "attn_bias", "out_bias", "ln_eps") {
                const struct choice *const row = row_of_key(setting);
                cr_expect(
                    choice_equal(row, &c, choice_applies(row, &c, SCOPE_MODEL) ? &like : &own),
                    "%s: %s", line, row->name);
            }
            for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
                const struct choice *const row = &model_choices[rows[k]];
                const bool idea = !choice_equal(row, &own, &control);
                struct config with = c;
                char text[CHOICE_TEXT];
                if (!choice_applies(row, &c, SCOPE_MODEL)) {
                    cr_expect(choice_equal(row, &c, &own), "%s: %s has no use", line, row->name);
                    continue;
                }
                if (choice_equal(row, &c, &like))
                    continue;
                cr_expect(choice_equal(row, &c, &own), "%s: %s is neither", line, row->name);
                choice_print(text, row, &like);
                cr_assert_eq(choice_parse(row, &with, text, &failure), OK);
                config_numbers_reset(&with);
                cr_expect(idea || config_check(&with, &failure) != OK, "%s: %s could be %s", line,
                          row->name, text);
            }
        }
}

/* The line of a case makes its model again, without the name of the skeleton. */
Test(skeleton, lines_spell_it_out)
{
    struct plan one;

    struct plan p =
        planned("-V xl,switch,lite,rwkv6 -b ref -w segment --seq 8 --mem 8 --skeleton llama");
    for (int i = 0; i < p.n; i++) {
        const struct bench_case *const c = &p.cases[i];
        char rest[2][SKELETON_TEXT];
        one = planned("%s", c->repro);
        cr_assert_eq(one.n, 1);
        cr_expect_str_eq(one.cases[0].repro, c->repro);
        cr_expect(case_same_problem(&one.cases[0], c), "%s", c->repro);
        cr_expect_eq(one.cases[0].config.F, c->config.F, "%s", c->repro);
        skeleton_rest(rest[0], &c->config, SKELETON_LLAMA);
        skeleton_rest(rest[1], &one.cases[0].config, SKELETON_LLAMA);
        cr_expect_str_eq(rest[0], rest[1]);
        cr_expect_eq(case_has_own(c), i > 0, "%s has %s", c->variant->name, rest[0]);
    }
}

Test(skeleton, own_is_as_without)
{
    struct plan p = planned("-V all -b ref -w segment --layers 6 --seq 8 --mem 8");
    struct plan q = planned("-V all -b ref -w segment --layers 6 --seq 8 --mem 8 --skeleton own");
    cr_assert_eq(p.n, q.n);
    for (int i = 0; i < p.n; i++) {
        cr_expect_str_eq(p.cases[i].case_id, q.cases[i].case_id);
        cr_expect(!case_has_own(&p.cases[i]));
    }
}

Test(skeleton, attention_alone_has_none)
{
    struct options o;
    struct plan p;

    cr_assert_eq(parse_words(&o, "-V xl -w attn --skeleton llama", &failure), OK);
    REFUSED(plan_asked(&p, &o, &failure), E_USAGE,
            "--skeleton llama does not apply to attention alone  -> ");
}
