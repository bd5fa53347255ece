/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: any text, read by the grammar that the first byte names. What is accepted and
 * can be printed must read back as the same. */
#include "harness/learn/source/synthetic.h"
#include "harness/plan/filter.h"
#include "harness/plan/plan.h"
#include "structure.h"
#include "variants/parts/masks.h"

/* Each case of the plan that can run makes a plan of itself alone. Lists are left to the other
 * grammars: their product is as large as one likes. */
static void plan(const char *text)
{
    struct options o = {0}, one = {0};
    struct plan p = {0}, again = {0};
    struct err e;

    if (strpbrk(text, ",@") || strstr(text, "..") || strstr(text, "all"))
        return;
    if (options_parse_line(&o, text, &e) == OK && plan_make(&p, &o, &e) == OK)
        for (int i = 0; i < p.n && i < 4; i++) {
            if (p.cases[i].unsupported)
                continue;
            CHECK(options_parse_line(&one, p.cases[i].repro, &e) == OK);
            CHECK(plan_make(&again, &one, &e) == OK && again.n == 1);
            CHECK(strcmp(again.cases[0].case_id, p.cases[i].case_id) == 0);
            plan_free(&again);
            options_free(&one);
        }
    plan_free(&p);
    options_free(&o);
}

static void range(const char *text)
{
    struct ints v = {0};
    struct err e;

    if (range_parse(&v, "--seq", text, 1, VALUE_MAX, &e) == OK)
        for (int i = 0; i < v.n; i++)
            CHECK(v.v[i] >= 1 && v.v[i] <= VALUE_MAX);
    free(v.v);
}

static void masks(const char *text)
{
    char printed[MASK_TEXT], heads[MASK_TEXT], again[MASK_TEXT], again_heads[MASK_TEXT];
    struct masks m, back;
    struct err e;

    if (masks_parse(&m, text, "", &e) != OK)
        return;
    masks_print(printed, heads, &m);
    CHECK(masks_parse(&back, printed, heads, &e) == OK);
    masks_print(again, again_heads, &back);
    CHECK(strcmp(printed, again) == 0 && strcmp(heads, again_heads) == 0);
}

static void settings(const char *text)
{
    for (int v = 0; variants[v]; v++) {
        struct config c = config_default(variants[v], 32, 2, 16, 64, 2, 16), back;
        char printed[SETTINGS_TEXT], again[SETTINGS_TEXT];
        struct err e;
        c.mem_len = 16;
        config_numbers_reset(&c);
        back = c;
        if (settings_parse(&c, text, false, &e) != OK)
            continue;
        settings_print(printed, &c, false, false);
        CHECK(settings_parse(&back, printed, false, &e) == OK);
        settings_print(again, &back, false, false);
        CHECK(strcmp(printed, again) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct filter filter;
    struct synthetic source;
    struct err e;

    if (size == 0)
        return 0;
    char *const text = strndup((const char *)bytes + 1, size - 1);
    CHECK(text != NULL);
    switch (bytes[0] % 6) {
    case 0:
        plan(text);
        break;
    case 1:
        range(text);
        break;
    case 2:
        (void)filter_parse(&filter, text, &e);
        break;
    case 3:
        masks(text);
        break;
    case 4:
        settings(text);
        break;
    default:
        if (synthetic_named(text))
            (void)synthetic_parse(&source, text, &e);
    }
    free(text);
    return 0;
}
