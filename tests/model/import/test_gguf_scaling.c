/* SPDX-License-Identifier: MIT
 *
 * Keys of rope.scaling in a GGUF file: one that is absent is its usual value spelled out, and another
 * value arrives in the config, or is refused by its name. */
#include "variants/model/config/settings.h"
#include "variants/model/import/published.h"

#include "tests/support/gguf_file.h"

TestSuite(gguf_scaling, .init = folder_make, .fini = folder_remove, .timeout = 120);

enum { U32 = 4, F32 = 6, FLAG = 7, TEXT = 8 };
enum { COUNT_AT = 16, KEYS_AT = 24, ALIGNMENT = 32 };

/* A key behind "FAMILY.rope."; a text, or a number, whole where the key asks for one. */
struct key {
    const char *name, *text;
    double x;
};

static bool is_whole(const char *name) { return strstr(name, "context_length") != NULL; }
static bool is_flag(const char *name) { return strstr(name, "finetuned") != NULL; }

static void put_one(struct made *m, const char *family, const struct key *k)
{
    const float narrow = (float)k->x;

    put_key(m, kept_text("%s.rope.%s", family, k->name),
            k->text             ? TEXT
            : is_whole(k->name) ? U32
            : is_flag(k->name)  ? FLAG
                                : F32);
    if (k->text)
        put_text(m, k->text);
    else if (is_whole(k->name))
        put_number(m, (uint64_t)k->x, 4);
    else if (is_flag(k->name))
        put_number(m, (uint64_t)k->x, 1);
    else
        put(m, &narrow, sizeof(narrow));
}

/* The file of a golden folder. Its own keys of the scaling get another family's name, which nothing
 * reads; the new ones stand in front, with as many bytes as keep tensors aligned. */
static const char *file_with(const char *golden, const char *family, const struct key *keys, int n)
{
    static struct made m;
    const struct bytes all = must_load(kept_text("tests/golden-import/%s/model.gguf", golden));
    const char *const name = kept_text("%s.rope.scaling.", family);
    uint64_t count = 0;

    cr_assert_gt(all.n, KEYS_AT);
    for (char *at; (at = memmem(all.data, all.n, name, strlen(name)));)
        *at = '-';
    memcpy(&count, all.data + COUNT_AT, sizeof(count));
    m = (struct made){.n = 0};
    put(&m, all.data, COUNT_AT);
    put_number(&m, count + (uint64_t)n + 1, 8);
    for (int i = 0; i < n; i++)
        put_one(&m, family, &keys[i]);
    put_key(&m, "pad", TEXT);
    const uint64_t pad = (ALIGNMENT - (m.n + 8 - KEYS_AT) % ALIGNMENT) % ALIGNMENT;
    put_number(&m, pad, 8);
    for (uint64_t i = 0; i < pad; i++)
        put_number(&m, 'p', 1);
    put(&m, all.data + KEYS_AT, all.n - KEYS_AT);
    return made_file(&m);
}

static enum status open_with(struct published *p, const char *golden, const char *family,
                             const struct key *keys, int n, struct err *e)
{
    *e = (struct err){""};
    return published_open(p, file_with(golden, family, keys, n), e);
}

/* All that a scaling is: settings of the model, 0 without them. */
static const char *const fields[] = {"rope_factor",    "rope_original",  "rope_mscale",
                                     "rope_beta_fast", "rope_beta_slow", "rope_truncate"};
struct scaling {
    int kind;
    double at[ARRAY_LEN(fields)];
};

static struct scaling scaling_of(struct published *p)
{
    struct scaling s = {.kind = (int)p->config.rope_scaling};
    char text[SETTINGS_TEXT];

    settings_print(text, &p->config, false, false);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const char *const at = strstr(text, fields[i]);
        s.at[i] = at ? strtod(at + strlen(fields[i]) + 1, NULL) : 0;
    }
    s.at[0] = (double)p->config.rope_factor;
    published_close(p);
    return s;
}

/* They are the same, but for this field, if any, which has this value. */
static void expect_alike(const struct scaling *a, const struct scaling *b, const char *key,
                         const char *field, double x)
{
    cr_expect_eq(a->kind, b->kind, "%s: kind %d, not %d", key, a->kind, b->kind);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const double want = field && strcmp(fields[i], field) == 0 ? x : b->at[i];
        cr_expect_eq(a->at[i], want, "%s: %s is %g, not %g", key, fields[i], a->at[i], want);
    }
}

#define LONGROPE "gguf_phi3_longrope", "phi3"
#define LLAMA "gguf_llama_q4_0", "llama"
#define GPT_OSS "gguf_gpt_oss_mxfp4", "gpt-oss"
#define YARN                                                                                       \
    {                                                                                              \
        {"scaling.type", "yarn", 0}, {"scaling.factor", NULL, 4},                                  \
            {"scaling.original_context_length", NULL, 32},                                         \
    }
#define LINEAR                                                                                     \
    {                                                                                              \
        {"scaling.type", "linear", 0}, {"scaling.factor", NULL, 4},                                \
    }

/* field: what another value changes, to that value; NULL: nothing, and the value is refused where
 * `refused`. */
static const struct row {
    const char *golden, *family;
    struct key base[3], usual, other;
    const char *field;
    bool refused;
} rows[] = {
    {LONGROPE, {{0}}, {"scaling.attn_factor", NULL, 1}, {.x = 1.5}, "rope_mscale", false},
    {LONGROPE, {{0}}, {"scaling.factor", NULL, 1}, {.x = 8}, "rope_factor", false},
    {LONGROPE,
     {{0}},
     {"scaling.original_context_length", NULL, 4096},
     {.x = 16},
     "rope_original",
     false},
    {LONGROPE, {{0}}, {"scaling.type", "longrope", 0}, {.text = "yarn"}, NULL, true},
    {LONGROPE, {{0}}, {"scaling.type", "none", 0}, {.text = "linear"}, NULL, true},
    {LONGROPE, {{0}}, {"scaling.finetuned", NULL, 0}, {.x = 1}, NULL, false},
    {LLAMA, YARN, {"scaling.attn_factor", NULL, 1}, {.x = 1.5}, NULL, true},
    {LLAMA, YARN, {"scaling.finetuned", NULL, 0}, {.x = 1}, NULL, false},
    {LLAMA, YARN, {"scaling.yarn_ext_factor", NULL, 1}, {.x = 0.5}, NULL, true},
    {LLAMA, YARN, {"scaling.yarn_attn_factor", NULL, 1}, {.x = 1.5}, NULL, true},
    {LLAMA, YARN, {"scaling.yarn_log_multiplier", NULL, 0}, {.x = 0.1}, NULL, true},
    {LLAMA, YARN, {"scaling.yarn_beta_fast", NULL, 32}, {.x = 16}, "rope_beta_fast", false},
    {LLAMA, YARN, {"scaling.yarn_beta_slow", NULL, 1}, {.x = 2}, "rope_beta_slow", false},
    {GPT_OSS, YARN, {"scaling.yarn_beta_fast", NULL, 32}, {.x = 16}, "rope_beta_fast", false},
    {GPT_OSS, YARN, {"scaling.yarn_beta_slow", NULL, 1}, {.x = 2}, "rope_beta_slow", false},
    {LLAMA, LINEAR, {"scaling.attn_factor", NULL, 1}, {.x = 1.5}, NULL, true},
    {LLAMA, LINEAR, {"scaling.original_context_length", NULL, 128}, {.x = 32}, NULL, false},
    {LLAMA,
     {{"scaling.factor", NULL, 4}},
     {"scaling.type", "linear", 0},
     {.text = "no"},
     NULL,
     true},
    {LLAMA, {{"scale_linear", NULL, 4}}, {"scaling.type", "linear", 0}, {.text = "no"}, NULL, true},
    {LLAMA, {{0}}, {"scaling.type", "none", 0}, {.text = "no"}, NULL, true},
    {LLAMA, {{0}}, {"scaling.attn_factor", NULL, 1}, {.x = 1.5}, NULL, true},
    {LLAMA, {{0}}, {"scaling.finetuned", NULL, 0}, {.x = 1}, NULL, false},
    {LLAMA, {{0}}, {"scaling.original_context_length", NULL, 128}, {.x = 32}, NULL, false},
};

Test(gguf_scaling, absent_is_its_usual_value)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *const r = &rows[i];
        struct key keys[4];
        struct published p;
        int n = 0;
        for (; n < 3 && r->base[n].name; n++)
            keys[n] = r->base[n];
        cr_assert_eq(open_with(&p, r->golden, r->family, keys, n, &failure), OK, "row %zu: %s", i,
                     failure.msg);
        const struct scaling absent = scaling_of(&p);
        keys[n] = r->usual;
        cr_assert_eq(open_with(&p, r->golden, r->family, keys, n + 1, &failure), OK, "row %zu: %s",
                     i, failure.msg);
        const struct scaling usual = scaling_of(&p);
        expect_alike(&usual, &absent, r->usual.name, NULL, 0);
        keys[n] = r->other;
        keys[n].name = r->usual.name;
        const enum status st = open_with(&p, r->golden, r->family, keys, n + 1, &failure);
        cr_expect_eq(st, r->refused ? E_IO : OK, "row %zu, %s: %s", i, r->usual.name, failure.msg);
        if (st != OK)
            continue;
        const struct scaling other = scaling_of(&p);
        expect_alike(&other, &absent, r->usual.name, r->field, r->other.x);
    }
}
