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

/* Has the model the setting, with what this needs? */
static bool has_setting(const struct choice *s, const struct config *c)
{
    struct config needed = *c;

    NEED(settings_parse(&needed, setting_needs(s->name), false, NULL) == OK);
    return setting_applies(s, &needed);
}

/* The first value that the model does not have, in `changed` and in `text`; of a setting that it has not, any. */
static void other_value(char line[SETTING_LINE], char text[SETTINGS_TEXT], struct config *changed,
                        const struct choice *s, const struct config *c, bool has)
{
    for (int i = 0; setting_try(line, s, i); i++) {
        *changed = *c;
        if (settings_parse(changed, line, false, NULL) != OK)
            continue;
        if (!has)
            return;
        settings_print(text, changed, true, false);
        const char *const last = strrchr(line, ',');
        if (strstr(text, last ? last + 1 : line))
            return;
    }
    cr_assert_fail("%s has one value only", s->name);
}

Test(settings, every_setting_changes_a_variant_and_reads_its_own_text)
{
    const struct choice *s;
    enum { MOST = 512 };
    int having[MOST] = {0}, n = 0;

    for (int i = 0; variants[i / KINDS]; i++) {
        const struct variant *const v = variants[i / KINDS];
        const struct config plain = model_of(v, i % KINDS);
        char line[SETTING_LINE], text[SETTINGS_TEXT], back[SETTINGS_TEXT], own[SETTINGS_TEXT];
        if (i % KINDS == STRETCHED && plain.pos != &pos_rope)
            continue; /* as without stretching */
        settings_print(own, &plain, false, false);
        n = 0;
        for (struct settings all = {0}; (s = setting_next(&all)); n++) {
            const bool has = has_setting(s, &plain);
            struct config c, again = plain;
            cr_assert_lt(n, MOST);
            other_value(line, text, &c, s, &plain, has);
            if (!has && *setting_needs(s->name))
                continue;
            settings_print(text, &c, false, false);
            if (!has) {
                cr_expect_str_eq(text, own, "%s has no %s", v->name, s->name);
                continue;
            }
            having[n]++;
            const char *const last = strrchr(line, ',');
            cr_expect(strstr(text, last ? last + 1 : line), "%s %s", v->name, line);
            cr_assert_eq(settings_parse(&again, text, false, NULL), OK, "%s", text);
            settings_print(back, &again, false, false);
            cr_expect_str_eq(back, text);
        }
    }
    n = 0;
    /* a workload or an objective gives a model its encoder */
    for (struct settings all = {0}; (s = setting_next(&all)); n++)
        cr_expect(having[n] > 0 || strcmp(s->name, "enc_layers") == 0, "no variant has %s",
                  s->name);
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
