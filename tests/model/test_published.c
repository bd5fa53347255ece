/* SPDX-License-Identifier: MIT
 *
 * Published models: containers that are damaged or do not belong together, and what is refused
 * before which numbers. Configs are test_published_config's; that the numbers are right is
 * tests/check's. */
#include "tests/support/published_folder.h"
#include "variants/model/lm.h"
#include "variants/model/weights.h"

#include <math.h>
#include <sys/stat.h>

TestSuite(published, .init = folder_make, .fini = folder_remove, .timeout = 60);

/* What names itself may not obey a terminal. */
Test(published, names_of_models)
{
    struct published p;
    struct err e;

    published_copy("llama_gqa_bf16");
    published_set("_name_or_path", json_string("a\x1b[2Jb"));
    cr_assert_eq(published_try(&p, &e), OK, "%s", e.msg);
    cr_expect(*p.source == 'a' && !strchr(p.source, '\x1b'), "%s", p.source);
    published_close(&p);
    published_set("model_type", json_string("x\x1b[2J"));
    published_refused("model_type", "model_type");
    cr_expect_eq(published_try(&p, &e), E_IO);
    cr_expect(!strchr(e.msg, '\x1b'), "%s", e.msg);
}

/* ---- files -------------------------------------------------------------------------------- */

Test(published, configs_that_are_none)
{
    published_copy("llama_gqa_bf16");
    published_write("config.json", "[1]", 3);
    published_refused("a list", "config.json");
    published_write("config.json", "{", 1);
    published_refused("no JSON", "config.json");
    static const char twice[] = "{\"model_type\":\"llama\",\"model_type\":\"gpt2\"}";
    published_write("config.json", twice, strlen(twice));
    published_refused("a key twice", "config.json");
    const size_t large = (1 << 20) + 1;
    char *const spaces = malloc(large);
    cr_assert_not_null(spaces);
    memset(spaces, ' ', large);
    published_write("config.json", spaces, large);
    free(spaces);
    published_refused("a large one", "config.json");
    published_remove("config.json");
    published_refused("none", "config.json");
}

/* Weights of other formats are named, never opened. */
Test(published, pickles)
{
    published_copy("llama_gqa_bf16");
    published_remove("model.safetensors");
    published_refused("nothing", "model.safetensors");
    published_write("pytorch_model.bin", "x", 1);
    published_refused("a pickle", "pytorch_model.bin");
    published_refused("a pickle", "bench import --help");
}

Test(published, truncated_and_overlapping)
{
    struct bytes b;
    size_t data;

    published_copy("gpt2_plain");
    b = published_read("model.safetensors");
    published_write("model.safetensors", b.data, b.n - 4);
    published_refused("cut", "model.safetensors");
    published_write("model.safetensors", b.data, 5);
    published_refused("cut early", "model.safetensors");
    free(b.data);
    published_copy("gpt2_plain");
    json_t *const header = published_header(&b, "model.safetensors", &data);
    json_t *const offsets = json_object_get(json_object_get(header, "ln_f.weight"), "data_offsets");
    const json_int_t by = json_integer_value(json_array_get(offsets, 0)) < 4 ? 4 : -4;
    for (size_t i = 0; i < 2; i++)
        json_array_set_new(offsets, i,
                           json_integer(json_integer_value(json_array_get(offsets, i)) + by));
    published_put_header("model.safetensors", header, &b, data);
    published_refused("overlapping", "back to back");
}

/* One tensor's entry under another name, or with another type. */
static void change_tensor(const char *name, const char *renamed, const char *retyped)
{
    struct bytes b;
    size_t data;
    json_t *const header = published_header(&b, "model.safetensors", &data);
    json_t *const entry = json_incref(json_object_get(header, name));

    cr_assert_not_null(entry, "%s", name);
    if (retyped)
        json_object_set_new(entry, "dtype", json_string(retyped));
    if (renamed) {
        json_object_del(header, name);
        json_object_set(header, renamed, entry);
    }
    json_decref(entry);
    published_put_header("model.safetensors", header, &b, data);
}

Test(published, tensors_that_are_not_needed)
{
    published_copy("llama_gqa_bf16");
    change_tensor("model.norm.weight", "model.norm.wait", NULL);
    published_refused("missing", "model.norm.weight");
    published_copy("gpt2_plain"); /* a mask by its name, without its dot a stranger */
    change_tensor("h.0.attn.bias", "h.0.xattn.bias", NULL);
    published_refused("a stranger", "h.0.xattn.bias");
    published_copy("gpt2_plain");
    change_tensor("h.0.attn.bias", "h.0.rotary_emb.inv_freq", NULL);
    published_accepted("a buffer");
    published_copy("gpt2_plain");
    change_tensor("h.0.attn.bias", "transformer.ln_f.weight", NULL);
    published_refused("with a prefix that the others do not have", "transformer.ln_f.weight");
    published_copy("gpt2_plain"); /* tied: the embedding once more */
    change_tensor("h.0.attn.bias", "lm_head.weight", NULL);
    published_accepted("a tied output");
}

Test(published, types)
{
    published_copy("gpt2_plain");
    change_tensor("ln_f.weight", NULL, "I32");
    published_refused("whole numbers", "ln_f.weight");
    published_copy("gpt2_plain");
    change_tensor("h.0.attn.bias", NULL, "F8_E4M3");
    published_accepted("a mask of a type that is not known");
}

static enum status load_it(const struct published *p, struct err *e)
{
    struct arena a = {0};
    struct lm m;

    cr_assert_eq(lm_init(&m, &p->config, e), OK, "%s", e->msg);
    params_place(&m.params, &a);
    cr_assert_eq(arena_place(&a, HUGE_NEVER, NULL, NULL, e), OK, "%s", e->msg);
    params_place(&m.params, &a);
    const enum status st = published_load(p, &m.params, e);
    lm_free(&m);
    arena_release(&a);
    return st;
}

/* Only numbers that are needed have to be finite. */
Test(published, values_that_are_not_finite)
{
    static const char *const names[] = {"ln_f.bias", "h.0.attn.bias"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const float bad = INFINITY;
        struct published p;
        struct bytes b;
        struct err e;
        size_t data;
        published_copy("gpt2_plain");
        json_t *const header = published_header(&b, "model.safetensors", &data);
        const json_t *const offsets =
            json_object_get(json_object_get(header, names[i]), "data_offsets");
        memcpy(b.data + data + json_integer_value(json_array_get(offsets, 0)), &bad, sizeof(bad));
        published_put_header("model.safetensors", header, &b, data);
        cr_assert_eq(published_try(&p, &e), OK, "%s", e.msg);
        cr_expect_eq(load_it(&p, &e), i ? OK : E_IO, "%s", names[i]);
        cr_expect(i || strstr(e.msg, "ln_f.bias"), "%s", e.msg);
        published_close(&p);
    }
}

/* ---- several files ------------------------------------------------------------------------ */

static const char index_name[] = "model.safetensors.index.json";

static void change_index(const char *tensor, const char *file)
{
    json_t *const index = published_json(index_name);

    json_object_set_new(json_object_get(index, "weight_map"), tensor, json_string(file));
    published_put_json(index_name, index);
}

Test(published, indices)
{
    static const char *const wrong[] = {"../w.safetensors", "/w.safetensors", ".w.safetensors",
                                        "a\\w.safetensors", "w.bin",          ""};

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        published_copy("llama_tied_sharded");
        change_index("model.norm.weight", wrong[i]);
        published_refused(wrong[i], "plain file names");
    }
    published_copy("llama_tied_sharded");
    change_index("nothing.weight", "model-00001-of-00002.safetensors");
    published_refused("a tensor that is not there", "nothing.weight");
    published_copy("llama_tied_sharded");
    change_index("model.norm.weight", "model-00003-of-00002.safetensors");
    published_refused("a file that is not there", "model-00003-of-00002");
    published_copy("llama_tied_sharded");
    published_write(index_name, "{}", 2);
    published_refused("no map", "weight_map");
}

/* The index wins over a single file beside it, and a tensor is in one file only. */
Test(published, several_files)
{
    published_copy("llama_tied_sharded");
    published_write("model.safetensors", "x", 1);
    published_accepted("a single file beside the index");
    struct bytes b = published_read("model-00002-of-00002.safetensors");
    published_write("other.safetensors", b.data, b.n);
    free(b.data);
    published_accepted("a file that the index does not name");
    change_index("model.norm.weight", "other.safetensors");
    published_refused("in two files", "two files");
}

/* A file in the folder stands for it, if it is not one of ours. */
Test(published, which_paths_are_published)
{
    published_copy("llama_gqa_bf16");
    cr_expect(published_is(published_path("")));
    cr_expect(published_is(published_path("model.safetensors")));
    cr_expect(!published_is(published_path("nothing.safetensors")));
    cr_expect(!published_is("tests/golden/lm_xl_post.safetensors"));
    struct published p;
    struct err e;
    cr_expect_eq(published_open(&p, published_path("model.safetensors"), &e), OK, "%s", e.msg);
    published_close(&p);
}
