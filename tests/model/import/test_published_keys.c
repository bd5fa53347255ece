/* SPDX-License-Identifier: MIT
 *
 * Each key of config.json: without it, with its usual value spelled out, and with another value, a
 * model computes what the publisher's program does (tests/golden-import/keys.json, by
 * scripts/crosscheck/keys.py), or is refused. */
#include "tests/support/loaded.h"
#include "tests/support/published_folder.h"
#include "variants/model/config/keys.h"

TestSuite(published_keys, .init = folder_make, .fini = folder_remove, .timeout = 240);

enum { TOKENS = 24 };

/* The sum of losses of a text of the copy, and its config; NAN = it is refused, e says why. */
static double loss(struct config *c, struct err *e)
{
    int32_t ids[TOKENS], targets[TOKENS];
    float nll[TOKENS];
    struct engine g;
    struct weights w;
    struct lm m;
    double sum = 0;

    for (int i = 0; i < TOKENS; i++) {
        ids[i] = i * 7 % 60;
        targets[i] = (i + 1) * 7 % 60;
    }
    *e = (struct err){""};
    if (weights_open(&w, published_path(""), e) != OK)
        return NAN;
    *c = w.config;
    w.config.text_len = TOKENS;
    bind_model(&m, &g, &w.config, MEM_NONE, (struct extent){1, TOKENS, 0});
    const enum status st = weights_load(&w, &m.params, e);
    lm_build_tables(&m, &g);
    lm_forward(&m, &g, ids, 1, TOKENS, TOKENS, targets, nll);
    for (int i = 0; i < TOKENS; i++)
        sum += (double)nll[i];
    weights_close(&w);
    return st == OK ? sum : NAN;
}

/* Of floats in a sum of losses, and where the gated delta rule magnifies their rounding. */
static double limit_of(const char *base)
{
    return strncmp(base, "qwen3_5", 7) == 0 || strcmp(base, "qwen3_next") == 0 ? 2e-5 : 1e-6;
}

/* The first number of a model that another does not have alike; NULL = they are the same. */
static const char *differs(const struct config *a, const struct config *b)
{
    const struct choice *row;

    for (int i = 0; (row = model_key(i)); i++)
        if (!row->tensor && !choice_equal(row, a, b))
            return row->name;
    for (enum part_slot slot = 0; slot < SLOT_COUNT; slot++) {
        const struct part_numbers *const numbers = config_numbers_of(a, slot);
        for (row = numbers ? numbers->choices : NULL; row && row->name; row++)
            if (!choice_equal(row, config_numbers(a, slot), config_numbers(b, slot)))
                return row->name;
    }
    return NULL;
}

struct row {
    const char *base, *key;
    struct config c; /* of the model that was tried last */
};

/* With that value, NULL = without the key. What the publisher's program does not take is refused;
 * what it takes may be, by name, where `may` says so. */
static void expect_loss(struct row *r, const json_t *value, const json_t *want, bool may)
{
    char *const text = value ? kept(json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT)) : NULL;
    const char *const what = text ? text : "absent";

    published_set(r->key, json_incref((json_t *)value));
    const double got = loss(&r->c, &failure), x = json_number_value(want);
    if (json_is_null(want) || (may && isnan(got))) {
        cr_expect(isnan(got), "%s with %s %s: %.9g", r->base, r->key, what, got);
        cr_expect(json_is_null(want) || strstr(failure.msg, r->key), "%s with %s %s: %s", r->base,
                  r->key, what, failure.msg);
    } else
        cr_expect(fabs(got - x) <= limit_of(r->base) * x, "%s with %s %s: %.9g, not %.9g %s",
                  r->base, r->key, what, got, x, failure.msg);
}

Test(published_keys, do_what_they_do_in_the_publishers_program)
{
    enum { AT_LEAST = 150 };
    json_t *const rows = json_of_file(PUBLISHED "/keys.json");
    const json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct row r = {json_string_value(json_array_get(row, 0)),
                        json_string_value(json_array_get(row, 1)),
                        {0}};
        const json_t *const usual = json_array_get(row, 2), *const absent = json_array_get(row, 3);
        published_copy(r.base);
        expect_loss(&r, NULL, absent, false);
        const struct config without = r.c;
        if (!json_is_null(absent)) {
            expect_loss(&r, usual, absent, false);
            const char *const other = differs(&without, &r.c);
            cr_expect(!other, "%s without %s: another %s", r.base, r.key, other);
        }
        if (!json_is_null(json_array_get(row, 4)))
            expect_loss(&r, json_array_get(row, 4), json_array_get(row, 5), true);
    }
    cr_expect_geq(i, AT_LEAST);
}
