/* SPDX-License-Identifier: MIT
 *
 * Numbers by --set: each changes a variant, is read back from its own text, stands in the help, and
 * is refused with what would do. */
#include "tests/support/command_line.h"
#include "tests/support/program.h"
#include "tests/support/setting_tries.h"

TestSuite(settings, .timeout = 300);

/* A model of the variant with a past of 64 rows: a layer alone, a language model, one with sub-layers side by
 * side, or rotations as llama3 stretches them, or linearly where layers have bases of their own. */
enum { ALONE, LANGUAGE, STRETCHED, KINDS };
static struct config model_of(const struct variant *v, int kind)
{
    const int vocabulary = kind == ALONE ? 0 : 16;
    struct config c = config_default(v, 24, 2, 12, 48, 2, vocabulary);

    if (kind == STRETCHED && c.pos == &pos_rope)
        c.rope_scaling = v->layer_rope_base.n ? ROPE_LINEAR : ROPE_LLAMA3;
    if (kind == STRETCHED && c.wiring == WIRING_PRE)
        c.wiring = WIRING_PARALLEL;
    c.mem_len = 64;
    config_numbers_reset(&c);
    return c;
}

/* The first value that the model does not have. */
static void other_value(char line[SETTING_LINE], const struct choice *s, const struct config *c)
{
    for (int i = 0; setting_try(line, s, i); i++) {
        struct config needed = *c, changed = *c;
        if (settings_parse(&changed, line, false, NULL) != OK)
            continue;
        NEED(settings_parse(&needed, setting_needs(s->name), false, NULL) == OK);
        char text[SETTINGS_TEXT];
        settings_print(text, &changed, true, false);
        const char *const last = strrchr(line, ',');
        if (!setting_applies(s, &needed) || strstr(text, last ? last + 1 : line))
            return;
    }
    cr_assert_fail("%s has one value only", s->name);
}

Test(settings, every_setting_changes_a_variant_and_reads_its_own_text)
{
    const struct choice *s;

    for (struct settings all = {0}; (s = setting_next(&all));) {
        int having = 0;
        for (int i = 0; variants[i / KINDS]; i++) {
            const int v = i / KINDS;
            struct config c = model_of(variants[v], i % KINDS), again = c;
            if (i % KINDS == STRETCHED && c.pos != &pos_rope)
                continue; /* as without stretching */
            char line[SETTING_LINE], text[SETTINGS_TEXT], back[SETTINGS_TEXT];
            settings_print(back, &c, false, false);
            other_value(line, s, &c);
            cr_assert_eq(settings_parse(&c, line, false, NULL), OK, "%s", line);
            settings_print(text, &c, false, false);
            struct config needed = again;
            NEED(settings_parse(&needed, setting_needs(s->name), false, NULL) == OK);
            if (!setting_applies(s, &needed)) {
                if (!*setting_needs(s->name))
                    cr_expect_str_eq(text, back, "%s has no %s", variants[v]->name, s->name);
                continue;
            }
            having++;
            const char *const last = strrchr(line, ',');
            cr_expect(strstr(text, last ? last + 1 : line), "%s %s", variants[v]->name, line);
            cr_assert_eq(settings_parse(&again, text, false, NULL), OK, "%s", text);
            settings_print(back, &again, false, false);
            cr_expect_str_eq(back, text);
        }
        /* a workload or an objective gives a model its encoder */
        cr_expect(having > 0 || strcmp(s->name, "enc_layers") == 0, "no variant has %s", s->name);
    }
}

Test(settings, help_names_every_setting)
{
    struct ran r = run_bench("help sweep --help-all");

    const struct choice *s;
    for (struct settings all = {0}; (s = setting_next(&all));)
        cr_expect(strstr(r.out.data, s->name), "--help does not know %s", s->name);
}

Test(settings, settings_are_refused_with_what_would_do)
{
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"-V xl --set expert=2", "--set \"expert=2\": no setting expert  -> use one of "},
        {"-V xl --set experts", "--set \"experts\": cannot read \"experts\""},
        {"-V xl --set experts=2,", "--set \"experts=2,\": cannot read \"\""},
        {"-V xl --set experts=0", "--set experts=0: "},
        {"-V switch --set moe_k=5", "switch: 5 of 4 experts"},
        {"-V mla --set d_rope=30", "mla: d_nope 64 and d_rope 30 of a head of width 96"},
        {"-V mla --set d_nope=65,d_rope=31", "rope: 31 coordinates to rotate"},
        {"-V mla --set d_rope=1", "--set d_rope=1: "},
        {"-V mla --set kv_rank=0", "--set kv_rank=0: "},
        {"-V mla --set d_value=2000000", "--set d_value=2000000: "},
        {"-V compressive --set cmem=64 --mem 64",
         "--set cmem=64 of 64 rows of memory  -> use fewer"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct plan p;
        cr_expect_eq(try_plan(&p, cases[i].line, &failure), E_USAGE, "%s", cases[i].line);
        cr_expect(strncmp(failure.msg, cases[i].text, strlen(cases[i].text)) == 0, "%s gives: %s",
                  cases[i].line, failure.msg);
    }
}
