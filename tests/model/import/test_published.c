/* SPDX-License-Identifier: MIT
 *
 * Published models: containers that are damaged or do not belong together, and what is refused
 * before which numbers. Configs are test_published_config's; that the numbers are right is
 * tests/check's. */
#include "tests/support/loaded.h"
#include "tests/support/published_folder.h"

TestSuite(published, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* What names itself may not obey a terminal. */
Test(published, names_of_models)
{
    struct published p;

    published_copy("llama_gqa_bf16");
    published_set("_name_or_path", json_string("a\x1b[2Jb"));
    MUST(published_try(&p, &failure));
    cr_expect(*p.source == 'a' && !strchr(p.source, '\x1b'), "%s", p.source);
    published_set("model_type", json_string("x\x1b[2J"));
    published_refused("model_type", "model_type");
    cr_expect_eq(published_try(&p, &failure), E_IO);
    cr_expect(!strchr(failure.msg, '\x1b'), "%s", failure.msg);
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* Is every number of this row or column 0? */
static bool is_blank(const struct param *w, size_t first, size_t step, size_t n)
{
    size_t i = 0;

    while (i < n && w->data[first + i * step] == 0)
        i++;
    return i == n;
}

/* A number of ours that no file has would be 0, or the same for all. */
static void expect_numbers(const struct param *w, const char *model)
{
    const size_t columns = w->rank > 1 ? (size_t)w->shape[w->rank - 1] : 1, rows = w->n / columns;
    bool alike = w->rank == 1 && w->n > 1;

    for (size_t i = 0; i < rows; i++)
        cr_expect(!is_blank(w, i * columns, 1, columns), "%s: row %zu of %s", model, i, w->name);
    for (size_t i = 0; rows > 1 && i < columns; i++)
        cr_expect(!is_blank(w, i, columns, rows), "%s: column %zu of %s", model, i, w->name);
    for (size_t i = 0; i < w->n; i++)
        alike = alike && w->data[i] == w->data[0];
    cr_expect(!alike, "%s: %s", model, w->name);
}

static void expect_published_numbers(const char *path, const char *model)
{
    struct lm m;

    load_model(&m, path);
    for (int i = 0; i < m.params.n; i++)
        expect_numbers(&m.params.v[i], model);
}

/* Of every kind of model: training would change what no file has, and write another kind. */
Test(published, every_number_is_published)
{
    DIR *const all = opendir(PUBLISHED);
    const struct dirent *entry;
    int n = 0;

    cr_assert_not_null(all);
    while ((entry = readdir(all))) {
        const char *path = kept_text(PUBLISHED "/%s/model.gguf", entry->d_name);
        if (access(path, F_OK) != 0)
            path = kept_text(PUBLISHED "/%s", entry->d_name);
        const bool filled = strcmp(entry->d_name, "rwkv7") == 0; /* low-rank maps, to one rank */
        if (*entry->d_name == '.' || filled || !published_is(path))
            continue;
        expect_published_numbers(path, entry->d_name);
        n++;
    }
    closedir(all);
    cr_expect_geq(n, 40);
}

/* ---- files -------------------------------------------------------------------------------- */

Test(published, configs_that_are_none)
{
    enum { MOST = 1 << 20 };
    published_copy("llama_gqa_bf16");
    const struct bytes own = published_read("config.json");
    char *const padded = memset(room(1, MOST + 1), ' ', MOST + 1);
    memcpy(padded, own.data, own.n);
    published_write("config.json", padded, MOST);
    published_accepted("a large one");
    published_write("config.json", padded, MOST + 1);
    published_refused("a larger one", "larger than any that is published");
    published_write("config.json", "[1]", 3);
    published_refused("a list", "config.json");
    published_write("config.json", "{", 1);
    published_refused("no JSON", "config.json");
    static const char twice[] = "{\"model_type\":\"llama\",\"model_type\":\"gpt2\"}";
    published_write("config.json", twice, strlen(twice));
    published_refused("a key twice", "config.json");
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

Test(published, tensors_with_other_names_and_types)
{
    static const struct {
        const char *base, *name, *renamed, *retyped, *says; /* NULL: it is accepted */
    } rows[] = {
        {"llama_gqa_bf16", "model.norm.weight", "model.norm.wait", NULL, "model.norm.weight"},
        /* a mask by its name, without its dot a stranger */
        {"gpt2_plain", "h.0.attn.bias", "h.0.xattn.bias", NULL, "h.0.xattn.bias"},
        {"gpt2_plain", "h.0.attn.bias", "h.0.rotary_emb.inv_freq", NULL, NULL},
        /* with a prefix that the others do not have */
        {"gpt2_plain", "h.0.attn.bias", "transformer.ln_f.weight", NULL, "transformer.ln_f.weight"},
        /* tied, and of no such shape */
        {"gpt2_plain", "h.0.attn.bias", "lm_head.weight", NULL,
         "ties \"lm_head.weight\" to \"wte.weight\", which has other sizes"},
        {"gpt2_plain", "ln_f.weight", NULL, "I32", "ln_f.weight"},
        {"gpt2_plain", "h.0.attn.bias", NULL, "F8_E4M3", NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *const what = rows[i].renamed ? rows[i].renamed : rows[i].retyped;
        published_copy(rows[i].base);
        change_tensor(rows[i].name, rows[i].renamed, rows[i].retyped);
        if (rows[i].says)
            published_refused(what, rows[i].says);
        else
            published_accepted(what);
    }
}

/* One more tensor, with the bytes and the shape of another; then `nan` as its first number, or
 * another first number. */
static void add_copy(const char *file, const char *of, const char *name, const float *first)
{
    struct bytes b;
    size_t data;
    json_t *const header = published_header(&b, file, &data);
    json_t *const entry = json_deep_copy(json_object_get(header, of));
    const json_t *const span = json_object_get(entry, "data_offsets");
    const size_t from = (size_t)json_integer_value(json_array_get(span, 0));
    const size_t n = (size_t)json_integer_value(json_array_get(span, 1)) - from;
    const size_t at = b.n - data;

    b.data = kept(realloc(b.data, b.n + n));
    cr_assert_not_null(b.data);
    memcpy(b.data + b.n, b.data + data + from, n);
    if (first)
        memcpy(b.data + b.n, first, sizeof(*first));
    b.n += n;
    json_object_set_new(entry, "data_offsets",
                        json_pack("[I,I]", (json_int_t)at, (json_int_t)(at + n)));
    json_object_set_new(header, name, entry);
    published_put_header(file, header, &b, data);
}

static void expect_load(const char *what, enum status wanted, const char *says)
{
    struct published p;
    struct lm m;

    cr_assert_eq(published_try(&p, &failure), OK, "%s: %s", what, failure.msg);
    place_model(&m, &p.config);
    cr_expect_eq(published_load(&p, &m.params, &failure), wanted, "%s: %s", what, failure.msg);
    cr_expect(wanted == OK || strstr(failure.msg, says), "%s: \"%s\" does not say %s", what,
              failure.msg, says);
}

/* Of two tensors that are one in the model, versions of the publisher's program read one or the
 * other: they must be equal. All three kinds of ties. */
Test(published, tied_tensors_that_are_there_twice)
{
    static const struct {
        const char *base, *of, *twice;
    } ties[] = {
        {"gpt2_plain", "wte.weight", "lm_head.weight"},
        {"txl_div4", "transformer.word_emb.emb_layers.1.weight", "crit.out_layers.1.weight"},
        {"txl_div4", "transformer.word_emb.emb_projs.2", "crit.out_projs.2"},
        {"txl_original_keys", "r_w_bias", "layers.1.dec_attn.r_w_bias"},
    };
    const float values[] = {NAN, INFINITY, 0.123f};

    for (size_t i = 0; i < ARRAY_LEN(ties); i++) {
        published_copy(ties[i].base);
        struct bytes b;
        size_t data;
        json_t *const header = published_header(&b, "model.safetensors", &data);
        const bool there = json_object_get(header, ties[i].twice);
        cr_assert(!there, "%s", ties[i].twice);
        published_put_header("model.safetensors", header, &b, data);
        add_copy("model.safetensors", ties[i].of, ties[i].twice, NULL);
        expect_load(ties[i].twice, OK, "");
        for (size_t k = 0; k < ARRAY_LEN(values); k++) {
            published_copy(ties[i].base);
            add_copy("model.safetensors", ties[i].of, ties[i].twice, &values[k]);
            expect_load(ties[i].twice, E_IO, ties[i].twice);
        }
    }
    published_copy("gpt2_plain"); /* not tied: read, and it may be another */
    add_copy("model.safetensors", "wte.weight", "lm_head.weight", &values[2]);
    published_set("tie_word_embeddings", json_false());
    expect_load("untied", OK, "");
    published_copy("gpt2_plain");
    add_copy("model.safetensors", "wte.weight", "lm_head.weight", NULL);
    change_tensor("lm_head.weight", NULL, "I32");
    published_refused("of whole numbers", "other types");
}

/* Only numbers that are needed have to be finite. */
Test(published, values_that_are_not_finite)
{
    static const char *const names[] = {"ln_f.bias", "h.0.attn.bias"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const float bad = INFINITY;
        struct bytes b;
        size_t data;
        published_copy("gpt2_plain");
        json_t *const header = published_header(&b, "model.safetensors", &data);
        const json_t *const offsets =
            json_object_get(json_object_get(header, names[i]), "data_offsets");
        memcpy(b.data + data + json_integer_value(json_array_get(offsets, 0)), &bad, sizeof(bad));
        published_put_header("model.safetensors", header, &b, data);
        expect_load(names[i], i ? OK : E_IO, names[i]);
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

/* Each tensor in the other of the two files, both of which are there. */
static void exchange_files(void)
{
    static const char first[] = "model-00001-of-00002.safetensors",
                      second[] = "model-00002-of-00002.safetensors";
    json_t *const index = published_json(index_name);
    const char *tensor;
    json_t *file;

    json_object_foreach(json_object_get(index, "weight_map"), tensor, file)
        json_string_set(file, strcmp(json_string_value(file), first) == 0 ? second : first);
    published_put_json(index_name, index);
}

Test(published, indices)
{
    EACH_TEXT (word, "../w.safetensors", "/w.safetensors", ".w.safetensors", "a\\w.safetensors",
               "w.bin", "") {
        published_copy("llama_tied_sharded");
        change_index("model.norm.weight", word);
        published_refused(word, "plain file names");
    }
    published_copy("llama_tied_sharded");
    change_index("nothing.weight", "model-00001-of-00002.safetensors");
    published_refused("a tensor that is not there", "nothing.weight");
    published_copy("llama_tied_sharded");
    change_index("model.norm.weight", "model-00003-of-00002.safetensors");
    published_refused("a file that is not there", "model-00003-of-00002");
    published_copy("llama_tied_sharded");
    exchange_files();
    published_refused("files exchanged", "lacks it");
    published_copy("llama_tied_sharded");
    published_write(index_name, "{}", 2);
    published_refused("no map", "weight_map");
}

static void rename_file(const char *from, const char *to)
{
    cr_assert_eq(rename(published_path(from), published_path(to)), 0, "%s", from);
}

/* Without an index: one shard of one is the model; more need it. */
Test(published, shards_without_an_index)
{
    static const char one[] = "model-00001-of-00001.safetensors";

    published_copy("llama_tied_sharded");
    published_remove(index_name);
    published_refused("two shards",
                      "has model-00001-of-00002.safetensors and no model.safetensors.index.json");
    published_copy("llama_gqa_bf16");
    rename_file("model.safetensors", one);
    expect_load("one shard of one", OK, "");
    published_write("consolidated.safetensors", "x", 1);
    expect_load("one shard beside another file", OK, "");
    struct bytes b = published_read(one);
    published_write("pytorch_model-00001-of-00001.safetensors", b.data, b.n);
    published_refused("two of one", "no model.safetensors.index.json");
    published_copy("llama_gqa_bf16");
    published_remove("expect.safetensors");
    rename_file("model.safetensors", "weights.safetensors");
    published_refused("another name", "has weights.safetensors and no model.safetensors");
    published_copy("llama_gqa_bf16");
    rename_file("model.safetensors", "model.bin");
    published_refused("a pickle", "pickles");
}

/* What a clone without Git LFS has, and what is no such file at all. */
Test(published, files_that_are_something_else)
{
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:"
                                  "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"
                                  "\nsize 12345\n";
    static const char page[] = "<!DOCTYPE html><html><body>401</body></html>";
    static const char *const files[] = {"config.json", "model.safetensors.index.json",
                                        "model-00002-of-00002.safetensors"};

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        published_copy("llama_tied_sharded");
        published_write(files[i], pointer, strlen(pointer));
        published_refused(files[i], "a pointer of Git LFS");
        published_write(files[i], page, strlen(page));
        published_refused(files[i], i < 2 ? "not JSON" : "not a safetensors file");
        published_write(files[i], "", 0);
        published_refused(files[i], "is empty");
    }
    published_copy("llama_gqa_bf16");
    published_write("model.safetensors", pointer, strlen(pointer));
    published_refused("model.safetensors", "a pointer of Git LFS");
    rename_file("model.safetensors", "model-00001-of-00001.safetensors");
    published_refused("one shard", "a pointer of Git LFS");
}

/* The index wins over a single file beside it, and a tensor is in one file only. */
Test(published, several_files)
{
    published_copy("llama_tied_sharded");
    published_write("model.safetensors", "x", 1);
    published_accepted("a single file beside the index");
    struct bytes b = published_read("model-00002-of-00002.safetensors");
    published_write("other.safetensors", b.data, b.n);
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
    cr_expect_eq(published_open(&p, published_path("model.safetensors"), &failure), OK, "%s",
                 failure.msg);
    published_close(&p);
}

/* Qwen3-Next's files have them, and its scores do not. */
Test(published, layers_that_guess_further_tokens)
{
    published_copy("qwen3_next");
    add_copy("model.safetensors", "model.norm.weight", "mtp.norm.weight", NULL);
    published_accepted("layers that guess further tokens");
    published_copy("qwen3_moe_normed");
    add_copy("model.safetensors", "model.norm.weight", "mtp.norm.weight", NULL);
    published_refused("another family's", "\"mtp.norm.weight\" belongs to nothing");
}
