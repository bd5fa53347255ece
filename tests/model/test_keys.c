/* SPDX-License-Identifier: MIT
 *
 * Every row that says something of a model, there and back: one value is changed in a model that
 * takes it, the model is saved and loaded, and all rows are compared. A row that is not written,
 * not read, or written as another loses the change. */
#include "tests/support/loaded.h"
#include "tests/support/set_choice.h"
#include "tests/support/tmp_folder.h"
#include "variants/model/attention/around.h"
#include "variants/model/config/keys.h"
#include "variants/parts/latent.h"

TestSuite(keys, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* ---- there and back ----------------------------------------------------------------------- */

/* A file of the model. */
static struct safetensors saved(const struct config *c)
{
    const char *const path = in_folder("model.safetensors");
    const struct provenance from = {.unit = "byte", .corpus = "text", .step = 3, .seed = 5};
    struct lm m;

    place_model(&m, c);
    params_init(&m.params, 1, 1);
    MUST(checkpoint_save(path, c, &m.params, &from, &failure));
    return tensors_of(path);
}

static void expect_row(const struct choice *row, const void *got, const void *want,
                       const struct config *c, const char *changed)
{
    char text[2][CHOICE_TEXT];

    if (row->tensor) { /* may have no text */
        const bool *const a = (const bool *)((const char *)got + row->at);
        const bool *const b = (const bool *)((const char *)want + row->at);
        cr_expect_eq(*a, *b, "%s with %s: %s", c->variant->name, changed, row->name);
        return;
    }
    choice_print(text[0], row, got);
    choice_print(text[1], row, want);
    cr_expect_str_eq(text[0], text[1], "%s with %s: %s is %s, was %s", c->variant->name, changed,
                     row->name, text[0], text[1]);
}

/* Tensors say it, and of the fields of struct config only those of the positions that read them. */
static bool is_in_tensors(const struct choice *row, const struct config *c)
{
    return row->at == offsetof(struct config, uv_per_layer) ? c->pos == &pos_xl
                                                            : c->pos == &pos_shaw;
}

static void there_and_back(const struct config *c, const char *changed)
{
    const struct safetensors s = saved(c);
    struct config back;
    struct lm m;
    const struct choice *row;

    cr_assert_eq(checkpoint_config(&s, "", &back, &failure), OK, "%s with %s: %s", c->variant->name,
                 changed, failure.msg);
    MUST(lm_init(&m, &back, &failure));
    cr_expect_eq(checkpoint_fits(&s, "", &m.params, &failure), OK, "%s with %s: %s",
                 c->variant->name, changed, failure.msg);
    lm_free(&m);
    cr_expect(back.variant == c->variant && back.pos == c->pos && back.mixer == c->mixer &&
                  back.attn_extra == c->attn_extra && back.qkv_map == c->qkv_map,
              "%s with %s: other parts", c->variant->name, changed);
    cr_expect_eq(back.dtype, ELEM_F32, "files are f32, whatever ran");
    for (int i = 0; (row = model_key(i)); i++) /* rows said elsewhere come back too */
        if ((!row->tensor || is_in_tensors(row, c)) && row != &model_choices[CHOICE_dtype] &&
            row != &model_choices[CHOICE_kv_dtype] && row != &model_choices[CHOICE_act_dtype])
            expect_row(row, &back, c, c, changed);
    for (enum part_slot slot = 0; slot < SLOT_COUNT; slot++) {
        const struct part_numbers *const numbers = config_numbers_of(c, slot);
        for (row = numbers ? numbers->choices : NULL; row && row->name; row++)
            expect_row(row, config_numbers(&back, slot), config_numbers(c, slot), c, changed);
    }
}

/* What training writes is what scoring reads. */
static void expect_language_model(const struct config *c, const char *changed)
{
    const struct safetensors s = saved(c);
    struct config back;

    cr_expect_eq(checkpoint_lm(&s, &back, &failure), OK, "%s with %s: %s", c->variant->name,
                 changed, failure.msg);
}

/* What no option chooses is as the variant has it, or the key is named in which it is not. */
Test(keys, another_part_is_of_another_variant)
{
    static const struct {
        const char *variant, *key, *value;
    } cases[] = {{"rope", "forget", "1"}, {"fox", "forget", "0"}, {"rope", "realformer", "sum"}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct config c = config_default(variant_find(cases[i].variant), 12, 2, 6, 16, 2, 11);
        struct config back;
        c.max_seq = 8;
        set_choice(&c, cases[i].key, cases[i].value);
        const struct safetensors s = saved(&c);
        cr_expect_neq(checkpoint_lm(&s, &back, &failure), OK, "%s", cases[i].key);
        HAS(failure.msg, kept_text("metadata %s is not that", cases[i].key));
    }
}

/* ---- changes ------------------------------------------------------------------------------ */

static struct config small(const struct variant *v)
{
    struct config c = config_default(v, 12, 2, 6, 16, 2, 11);

    c.mem_len = variant_mem(v)->recurrent || variant_mem(v)->state ? 6 : 0;
    c.max_seq = 8;
    config_numbers_reset(&c);
    return c;
}

static double number_at(const struct choice *row, const void *at)
{
    return row->codec == CODEC_INT    ? *(const int *)at
           : row->codec == CODEC_REAL ? (double)*(const float *)at
                                      : *(const double *)at;
}

/* The i-th other value of the row as text; "" after the last. */
static void other_value(char text[CHOICE_TEXT], const struct choice *row, const void *base, int i)
{
    static const char *const texts[] = {
        "9",         "sf",   "sffs",    "window=3", "window=3;stride=2",
        "0,1,1",     "3,3",  "1.5,1.5", "nope",     "rope,nope",
        "2/3/4/0.5", "yarn", "none",    "both",     "2,0;5",
        "1,0.5",     "0",    "max",     "trig",     "q8",
        "geglu"};
    const void *const at = (const char *)base + row->at;

    *text = '\0';
    if (row->codec == CODEC_FLAG) {
        snprintf(text, CHOICE_TEXT, "%s", i ? "" : *(const bool *)at ? "0" : "1");
    } else if (row->codec <= CODEC_WIDE) {
        const double n = number_at(row, at);
        const double others[] = {n + 1, n - 1, n - 2, 2 * n, 2 * n - 1, n / 2, n * 1.25 + 0.125, 1};
        if (i < (int)ARRAY_LEN(others))
            snprintf(text, CHOICE_TEXT, "%.9g", others[i]);
    } else if (row->codec >= CODEC_LIST) {
        snprintf(text, CHOICE_TEXT, "%s", i < (int)ARRAY_LEN(texts) ? texts[i] : "");
    } else if (choice_word(row, i)) {
        snprintf(text, CHOICE_TEXT, "%s", choice_word(row, i));
    }
}

/* What has to change with it. */
static void follow(struct config *c, const struct choice *row)
{
    if (row->at == offsetof(struct config, clip))
        c->rel_rows = c->clip + 1;
    if (row->at == offsetof(struct config, H))
        c->kv_heads = c->H;
    if (row->at == offsetof(struct config, max_pos)) /* no fewer than a text has */
        c->max_pos += c->max_seq + c->mem_len;
    struct latent *const latent = (struct latent *)c->numbers[SLOT_MIXER].bytes;
    if (strcmp(row->name, "d_nope") == 0)
        latent->rope = c->dh - latent->nope;
    if (strcmp(row->name, "d_rope") == 0)
        latent->nope = c->dh - latent->rope;
    if (strcmp(row->name, "route_within") == 0)
        set_number(c, "route_groups", 4);
    if (row->at == offsetof(struct config, recurrent) || /* widths of norms */
        row->at == offsetof(struct config, norm_kind))
        config_numbers_reset(c);
}

/* Other values of the row at `base`, a part of `c`, that make a model: each goes there and back. */
static int change(const struct config *c, const struct choice *row, ptrdiff_t base)
{
    char text[CHOICE_TEXT], before[CHOICE_TEXT], changed[2 * CHOICE_TEXT];
    int n = 0;

    for (int i = 0;; i++) {
        struct config other = *c;
        char *const at = (char *)&other + base;
        if (row->tensor && i == 0) {
            *(bool *)(at + row->at) = !*(bool *)(at + row->at);
            snprintf(text, sizeof(text), "the other");
        } else {
            other_value(text, row, at, i);
            choice_print(before, row, at);
            if (row->tensor || !*text)
                break;
            if (choice_parse(row, at, text, &(struct err){""}) != OK)
                continue;
            choice_print(text, row, at);
            if (strcmp(text, before) == 0)
                continue;
        }
        follow(&other, row);
        if (config_check(&other, NULL) != OK ||
            (row->tensor && base == 0 && !is_in_tensors(row, c)))
            continue;
        snprintf(changed, sizeof(changed), "%s=%s", row->name, text);
        there_and_back(&other, changed);
        if (row->setting && setting_applies(row, &other) && other.causal && !other.enc_layers)
            expect_language_model(&other, changed);
        n++;
    }
    return n;
}

/* ---- tests -------------------------------------------------------------------------------- */

static bool has(const struct config *c, const struct choice *row)
{
    return choice_applies(row, c, SCOPE_MODEL);
}

/* In the first variant that has it, of those that take another value. */
Test(keys, every_row_of_a_model)
{
    const struct choice *row;

    for (int i = 0; (row = model_key(i)); i++) {
        int n = 0;
        for (int v = 0; variants[v] && n == 0; v++) {
            struct config c = small(variants[v]);
            if (row->at == offsetof(struct config, masks)) /* two: heads may take either */
                cr_assert_eq(
                    config_set_masks(&c, variants[v], "block=3;fixed=3,summary=1", "", NULL), OK);
            c.enc_layers = strcmp(row->name, "enc_layers") == 0;
            if (strcmp(row->name, "div_val") == 0 || strcmp(row->name, "tie_projs") == 0)
                c.adaptive = (struct adaptive){.n = 2, .cut = {3, 6}, .div = 1};
            if (strncmp(row->name, "dense_", strlen("dense_")) == 0 &&
                strcmp(row->name, "dense_layers") != 0)
                c.dense.layers = (struct layer_ranges){1, {{0, 0}}};
            if (strcmp(row->name, "one_norm") == 0)
                c.wiring = WIRING_PARALLEL;
            if (row == &model_choices[CHOICE_act_dtype])
                c.dtype = ELEM_Q8;
            n = has(&c, row) && config_check(&c, NULL) == OK ? change(&c, row, 0) : 0;
        }
        cr_expect_gt(n, 0, "nothing takes another %s", row->name);
    }
}

/* Rows of parts that have gone there and back. */
enum { MOST = 192 };
struct seen {
    const struct choice *row[MOST];
    int n;
};

static bool is_seen(const struct seen *s, const struct choice *row)
{
    int k = 0;

    while (k < s->n && s->row[k] != row)
        k++;
    return k < s->n;
}

static void change_parts(struct seen *s, const struct config *c)
{
    for (enum part_slot slot = 0; slot < SLOT_COUNT; slot++) {
        const struct part_numbers *const numbers = config_numbers_of(c, slot);
        if (slot >= SLOT_AROUND && !around_has(c, slot))
            continue;
        for (const struct choice *row = numbers ? numbers->choices : NULL; row && row->name;
             row++) {
            if (is_seen(s, row) || row->elsewhere || row->of_input)
                continue; /* no key says it */
            cr_assert_lt(s->n, MOST);
            if (change(c, row, c->numbers[slot].bytes - (const unsigned char *)c) > 0)
                s->row[s->n++] = row;
            else
                cr_expect(!has(c, row), "%s takes no other %s", c->variant->name, row->name);
        }
    }
}

Test(keys, every_row_of_a_part)
{
    struct seen seen = {0};

    for (int v = 0; variants[v]; v++) {
        const struct config c = small(variants[v]);
        change_parts(&seen, &c);
    }
    for (int i = 0; ffns[i]; i++) { /* no variant has each of them */
        struct config c = small(variant_find(ffns[i]->build ? "linear" : "vanilla"));
        c.ffn = ffns[i];
        config_numbers_reset(&c);
        change_parts(&seen, &c);
    }
    cr_expect_gt(seen.n, 20);
    cr_expect(is_seen(&seen, row_of_key("swish_beta")) && is_seen(&seen, row_of_key("cmem")));
}

/* Parts that are not a row: every variant, and each of them in a variant that takes it. */
Test(keys, every_part)
{
    static const struct pos *const extras[] = {&extra_talking, &extra_persistent, &extra_span};

    for (int v = 0; variants[v]; v++) {
        const struct config c = small(variants[v]);
        there_and_back(&c, "nothing else");
        if (c.causal)
            expect_language_model(&c, "nothing else");
    }
    for (int i = 0; positions[i]; i++) {
        struct config c = small(variant_find("vanilla"));
        if (positions[i] == &pos_recent) /* of a feedback memory, which has it above */
            continue;
        c.pos = positions[i];
        c.tied = !c.pos->from_tokens; /* words without rows for the output */
        config_numbers_reset(&c);
        there_and_back(&c, positions[i]->name);
    }
    for (size_t i = 0; i < ARRAY_LEN(extras); i++) {
        struct config c = small(variant_find("xl"));
        c.attn_extra = extras[i];
        config_numbers_reset(&c);
        there_and_back(&c, extras[i]->name);
    }
    for (int i = 0; mixers[i]; i++) {
        int v = 0;
        while (variants[v] && variants[v]->mixer != mixers[i])
            v++;
        if (variants[v]) /* above */
            continue;
        const bool synthesizes = strncmp(mixers[i]->name, "synth", 5) == 0;
        struct config c = small(variant_find(synthesizes          ? "synthesizer"
                                             : mixers[i]->attends ? "mla"
                                                                  : "linear"));
        c.mixer = mixers[i];
        config_numbers_reset(&c);
        there_and_back(&c, mixers[i]->name);
    }
}
