/* SPDX-License-Identifier: MIT
 *
 * The scaling of rotary frequencies that a GGUF file has as divisors. */
#include "tests/support/json.h"
#include "variants/model/import/gguf_rope.h"

enum { PAIRS = 64 };

/* What converters write: by wavelengths, as floats. */
static void write_divisors(float *d, int n, double base, double factor, double original)
{
    const double pi = acos(-1);

    for (int f = 0; f < n; f++) {
        const double wave = 2 * pi * pow(base, (double)f / n);
        const double smooth = (original / wave - 1) / (4 - 1);
        d[f] = (float)(wave < original / 4   ? 1
                       : wave > original / 1 ? factor
                                             : 1 / ((1 - smooth) / factor + smooth));
    }
}

static enum status read_rope(json_t **out, const float *d, int n, double base, struct err *e)
{
    const struct tensor t = {
        .dtype = DTYPE_F32, .rank = 1, .shape = {n}, .n = (size_t)n, .data = d};

    *e = (struct err){""};
    return gguf_rope_scaling(out, &t, base, "file", e);
}

/* Factor and context come back as they went in, of Llama 3.1, of 3.2 and of others. */
Test(gguf_rope, numbers_come_back)
{
    static const struct {
        int n;
        double base, factor, original;
    } all[] = {{64, 5e5, 8, 8192}, {32, 5e5, 32, 8192}, {12, 5000, 8, 48}, {48, 1e6, 2.5, 4096}};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        float d[PAIRS];
        json_t *how;
        write_divisors(d, all[i].n, all[i].base, all[i].factor, all[i].original);
        MUST(read_rope(&how, d, all[i].n, all[i].base, &failure));
        kept(how);
        cr_expect_str_eq(text_at(how, "rope_type"), "llama3");
        cr_expect_eq(number_at(how, "factor"), all[i].factor);
        cr_expect_eq(number_at(how, "original_max_position_embeddings"), all[i].original);
    }
}

/* Divisors of 1 are no scaling; others than llama3's are refused by the tensor's name. */
Test(gguf_rope, what_it_is_not)
{
    float d[PAIRS];
    json_t *how;

    for (int f = 0; f < PAIRS; f++)
        d[f] = 1;
    cr_expect_eq(read_rope(&how, d, PAIRS, 1e4, &failure), OK);
    cr_expect_null(how);
    for (int wrong = 0; wrong < 4; wrong++) {
        write_divisors(d, PAIRS, 5e5, 8, 8192);
        d[wrong == 0 ? 0 : wrong == 1 ? PAIRS - 1 : 40] *= wrong == 2 ? NAN : 1.01f;
        for (int f = 0; wrong == 3 && f < PAIRS; f++)
            d[f] = 0.5f;
        cr_expect_eq(read_rope(&how, d, PAIRS, 5e5, &failure), E_IO, "%d", wrong);
        HAS(failure.msg, "rope_freqs.weight", "  -> ");
    }
}

static enum status read_lists(json_t *how, const char *one, const char *other, int *left,
                              struct err *e)
{
    static const float d[] = {1, 1.9f, 4.75f};
    struct tensor t[3] = {
        {.dtype = DTYPE_F32, .rank = 1, .shape = {3}, .n = 3, .data = d},
        {.dtype = DTYPE_F32, .rank = 1, .shape = {2}, .n = 2, .data = d},
        {.dtype = DTYPE_F32, .rank = 1, .shape = {1}, .n = 1, .data = d},
    };
    struct safetensors s = {.tensors = t, .n_tensors = 3};
    bool found;

    snprintf(t[0].name, sizeof(t[0].name), "%s", one);
    snprintf(t[1].name, sizeof(t[1].name), "output.weight");
    snprintf(t[2].name, sizeof(t[2].name), "%s", other);
    *e = (struct err){""};
    const enum status st = gguf_rope_lists(how, &found, &s, 1, "file", e);
    *left = s.n_tensors;
    cr_expect(st != OK || found == (s.n_tensors == 1));
    return st;
}

/* The lists of longrope become numbers and leave the file; one alone is refused. */
Test(gguf_rope, lists_of_longrope)
{
    static const char small[] = "rope_factors_short.weight", large[] = "rope_factors_long.weight";
    json_t *const how = kept(json_object()), *const none = kept(json_object());
    int left;

    MUST(read_lists(how, large, small, &left, &failure));
    const json_t *const list = json_object_get(how, "long_factor");
    NUMBERS({left, 1}, {json_array_size(list), 3},
            {json_array_size(json_object_get(how, "short_factor")), 1},
            {(float)json_real_value(json_array_get(list, 2)), 4.75f});
    cr_expect_eq(read_lists(none, "a", "b", &left, &failure), OK);
    cr_expect(left == 3 && json_object_size(none) == 0);
    REFUSED(read_lists(none, small, "b", &left, &failure), E_IO, large, "  -> ");
}

/* What keys of a file say, as config.json would: in order of names, or what the refusal says. */
Test(gguf_rope, keys)
{
    static const struct {
        const char *keys, *config, *refusal;
    } all[] = {
        {"{'a.rope.scaling.type':'none','a.rope.scaling.factor':4}", "{}", NULL},
        {"{'a.rope.scaling.original_context_length':4096,'a.rope.scaling.finetuned':true}", "{}",
         NULL},
        {"{'b.rope.scaling.factor':4,'a.rope.freq_base':4}", "{}", NULL},
        {"{'a.rope.scaling.factor':4}", "{'rope_scaling':{'factor':4,'rope_type':'linear'}}", NULL},
        {"{'a.rope.scale_linear':2}", "{'rope_scaling':{'factor':2,'rope_type':'linear'}}", NULL},
        {"{'a.rope.scaling.attn_factor':1.5}",
         "{'rope_scaling':{'attention_factor':1.5,'rope_type':'default'}}", NULL},
        {"{'a.rope.scaling.type':'yarn','a.rope.scaling.factor':4,'a.rope.scaling.attn_factor':1,"
         "'a.rope.scaling.original_context_length':64,'a.rope.scaling.yarn_beta_fast':16,"
         "'a.rope.scaling.yarn_log_multiplier':0.5}",
         "{'rope_scaling':{'beta_fast':16,'factor':4,'original_max_position_embeddings':64,"
         "'rope_type':'yarn','yarn_log_multiplier':0.5}}",
         NULL},
        {"{'a.rope.scaling.type':'yarn','a.rope.scaling.attn_factor':2}", NULL, "attn_factor"},
        {"{'a.rope.scaling.type':2,'a.rope.scaling.factor':4}", NULL, "rope.scaling.type"},
        {"{'a.rope.scaling.type':true}", NULL, "rope.scaling.type"},
        {"{'a.rope.scaling.type':'yarn','a.rope.scaling.yarn_log_multiplier':'0',"
         "'a.rope.scaling.yarn_ext_factor':true}",
         "{'rope_scaling':{'rope_type':'yarn','yarn_ext_factor':true,'yarn_log_multiplier':'0'}}",
         NULL},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct safetensors s = {0};
        struct err e = {""};
        json_t *const config = kept(json_object());
        const enum status st =
            gguf_rope_put(config, quoted_json(all[i].keys), "a", &s, 1, "file", &e);
        cr_expect_eq(st, all[i].refusal ? E_IO : OK, "%s: %s", all[i].keys, e.msg);
        char *const dump = json_quoted(config);
        cr_expect(all[i].refusal ? strstr(e.msg, all[i].refusal) != NULL
                                 : strcmp(dump, all[i].config) == 0,
                  "%s: %s %s", all[i].keys, dump, e.msg);
    }
}
