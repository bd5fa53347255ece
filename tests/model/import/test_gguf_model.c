/* SPDX-License-Identifier: MIT
 *
 * What the keys of a GGUF file say in the words of config.json. */
#include "variants/model/import/gguf_model.h"
#include "variants/model/import/published.h"

#include "tests/support/gguf_file.h"
#include "tests/support/json.h"

TestSuite(gguf_model, .init = folder_make, .fini = folder_remove, .timeout = 120);

enum { U32 = 4, I32 = 5, F32 = 6, FLAG = 7, TEXT = 8, LIST = 9 };

/* Whole numbers, 0.5 or a list of four flags or of one 0.5, for "key"; the family has no tensors. */
struct said {
    const char *key;
    int value;
};
enum { A_LIST = -1, A_HALF = -2, A_LIST_OF_HALVES = -3, KEYS = 10 };

static json_t *config_of(const char *family, const struct said *keys)
{
    struct made m = {.n = 0};
    struct shards s;
    struct gguf_form form;
    json_t *config;
    int n = 0;

    while (n < KEYS && keys[n].key)
        n++;
    put_begin(&m, 0, n + 3);
    put_key(&m, "general.architecture", TEXT), put_text(&m, family);
    put_key(&m, "general.quantization_version", U32), put_number(&m, 2, 4);
    put_key(&m, "tokenizer.chat_template", TEXT), put_text(&m, "{{ messages }}");
    for (int i = 0; i < n; i++) {
        const int value = keys[i].value;
        put_key(&m, kept_text("%s.%s", family, keys[i].key),
                value == A_LIST || value == A_LIST_OF_HALVES ? LIST
                : value == A_HALF                            ? F32
                                                             : U32);
        if (value == A_LIST_OF_HALVES) {
            put_number(&m, F32, 4), put_number(&m, 1, 8), put_number(&m, 0x3f000000, 4);
        } else if (value == A_LIST) {
            put_number(&m, FLAG, 4), put_number(&m, 4, 8);
            for (int l = 0; l < 4; l++)
                put_number(&m, l != 2, 1);
        } else {
            put_number(&m, value == A_HALF ? 0x3f000000 : (uint64_t)value, 4);
        }
    }
    MUST(gguf_model_open(&s, &config, &form, made_file(&m), &failure));
    cr_expect(form.computed);
    shards_close(&s);
    return kept(config);
}

/* ---- several files ------------------------------------------------------------------------ */

/* File `no` of `count`, of two that have a tensor each; only the first says what it is. */
static void write_part(const char *name, int no, int count, int tensors)
{
    struct made m = {.n = 0};

    put_begin(&m, 1, no == 0 ? 4 : 3);
    if (no == 0)
        put_key(&m, "general.architecture", TEXT), put_text(&m, "llama");
    put_key(&m, "split.no", U32), put_number(&m, (uint64_t)no, 4);
    put_key(&m, "split.count", U32), put_number(&m, (uint64_t)count, 4);
    put_key(&m, "split.tensors.count", U32), put_number(&m, (uint64_t)tensors, 4);
    put_text(&m, no == 0 ? "token_embd.weight" : "output.weight");
    put_number(&m, 1, 4), put_number(&m, 4, 8);
    put_number(&m, 0, 4), put_number(&m, 0, 8);
    put_alignment(&m);
    for (int i = 0; i < 4; i++)
        put_number(&m, 0x3f800000, 4);
    folder_put(name, m.bytes, m.n);
}

static enum status open_first(const char *name, struct shards *s, json_t **config, struct err *e)
{
    struct gguf_form form;

    *e = (struct err){""};
    TRY(gguf_model_open(s, config, &form, in_folder(name), e));
    kept_copy(s, sizeof(*s)), kept(*config);
    return OK;
}

Test(gguf_model, split_into_two)
{
    struct shards s;
    json_t *config;

    write_part("m-00001-of-00002.gguf", 0, 2, 2);
    write_part("m-00002-of-00002.gguf", 1, 2, 2);
    MUST(open_first("m-00001-of-00002.gguf", &s, &config, &failure));
    cr_expect(shards_find(&s, "model.embed_tokens.weight") && shards_find(&s, "lm_head.weight"));
    cr_expect(json_is_false(json_object_get(config, "tie_word_embeddings")));
}

Test(gguf_model, parts_that_are_not_of_one_model)
{
    struct shards s;
    json_t *config;

    write_part("m-00001-of-00002.gguf", 0, 2, 2);
    REFUSED(open_first("m-00001-of-00002.gguf", &s, &config, &failure), E_IO,
            "m-00002-of-00002.gguf");
    write_part("m-00002-of-00002.gguf", 0, 2, 2);
    REFUSED(open_first("m-00001-of-00002.gguf", &s, &config, &failure), E_IO, "split.no");
    write_part("m-00002-of-00002.gguf", 1, 2, 2);
    write_part("m-00001-of-00002.gguf", 0, 2, 3);
    REFUSED(open_first("m-00001-of-00002.gguf", &s, &config, &failure), E_IO,
            "split.tensors.count");
    REFUSED(open_first("m-00002-of-00002.gguf", &s, &config, &failure), E_IO,
            "-00001-of-00002.gguf", "  -> ");
    write_part("other.gguf", 0, 2, 2);
    REFUSED(open_first("other.gguf", &s, &config, &failure), E_IO, "one of 2 files");
    cr_expect_null(config);
}

/* A tensor of four numbers, each in one of three files. */
struct placed {
    const char *name;
    float x[4];
    int in;
};

static void write_placed(const char *name, int no, int count, const struct placed *t, int n)
{
    struct made m = {.n = 0};
    int here = 0;

    for (int i = 0; i < n; i++)
        here += t[i].in == no;
    put_begin(&m, here, no == 0 ? 4 : 2);
    if (no == 0) {
        put_key(&m, "general.architecture", TEXT), put_text(&m, "phi3");
        put_key(&m, "phi3.rope.freq_base", F32), put_number(&m, 0x461c4000, 4); /* 10000 */
    }
    put_key(&m, "split.no", U32), put_number(&m, (uint64_t)no, 4);
    put_key(&m, "split.count", U32), put_number(&m, (uint64_t)count, 4);
    for (int i = 0, at = 0; i < n; i++)
        if (t[i].in == no) {
            put_text(&m, t[i].name);
            put_number(&m, 1, 4), put_number(&m, 4, 8);
            put_number(&m, 0, 4), put_number(&m, 32 * (uint64_t)at++, 8);
        }
    put_alignment(&m);
    for (int i = 0; i < n; i++)
        if (t[i].in == no)
            put(&m, t[i].x, sizeof(t[i].x)), put(&m, (char[16]){0}, 16);
    folder_put(name, m.bytes, m.n);
}

static const char *part_of(const char *name, int no, int count)
{
    return count > 1 ? kept_text("%s-%05d-of-%05d.gguf", name, no + 1, count) : "whole.gguf";
}

/* What the files say of the scaling. */
static char *scaling_of(const char *name, const struct placed *t, int n, int count)
{
    struct shards s;
    json_t *config;

    for (int no = 0; no < count; no++)
        write_placed(part_of(name, no, count), no, count, t, n);
    MUST(open_first(part_of(name, 0, count), &s, &config, &failure));
    cr_expect_eq(s.n_tensors, 1, "rope's tensors stay");
    return json_quoted(json_object_get(config, "rope_scaling"));
}

/* Tensors of rotary frequencies are found in whichever of three files they are, and the first may
 * have none at all. */
Test(gguf_model, rope_in_any_file)
{
    /* of llama3's scaling by 8 of 64 tokens, at frequencies 1, 1/10, 1/100 and 1/1000 */
    const double turns = 64 * 0.1 / (2 * acos(-1)), t = (turns - 1) / 3;
    struct placed freqs[] = {
        {"rope_freqs.weight", {1, (float)(1 / ((1 - t) / 8 + t)), 8, 8}, 0},
        {"token_embd.weight", {1, 2, 3, 4}, 0},
    };
    struct placed lists[] = {
        {"rope_factors_short.weight", {1, 1.5f, 2, 3}, 0},
        {"rope_factors_long.weight", {2, 4, 8, 16}, 0},
        {"token_embd.weight", {1, 2, 3, 4}, 0},
    };
    char *const of_freqs = scaling_of("whole", freqs, 2, 1);
    char *const of_lists = scaling_of("whole", lists, 3, 1);

    cr_expect(strstr(of_freqs, "llama3") && strstr(of_lists, "longrope"), "%s %s", of_freqs,
              of_lists);
    for (int at = 0; at < 27; at++) {
        for (int i = 0, left = at; i < 3; i++, left /= 3)
            lists[i].in = left % 3;
        for (int i = 0; i < 2; i++)
            freqs[i].in = lists[i].in;
        char *const a = scaling_of("part", freqs, 2, 3), *const b = scaling_of("part", lists, 3, 3);
        TEXTS({a, of_freqs}, {b, of_lists});
    }
}

/* Keys of the split that are no numbers. */
Test(gguf_model, split_by_no_number)
{
    EACH_TEXT (key, "split.count", "split.no", "split.tensors.count")
        for (int text = 0; text < 2; text++) {
            struct made m = {.n = 0};
            struct shards s;
            json_t *config;
            put_begin(&m, 0, 1);
            put_key(&m, key, text ? TEXT : I32);
            if (text)
                put_text(&m, "2");
            else
                put_number(&m, (uint64_t)-1, 4);
            (void)made_file(&m);
            REFUSED(open_first("model.gguf", &s, &config, &failure), E_IO, key, "  -> ");
        }
}

/* ---- keys --------------------------------------------------------------------------------- */

Test(gguf_model, keys)
{
    static const struct {
        const char *family;
        struct said keys[KEYS];
        const char *says; /* with tie_word_embeddings true and biases false */
    } cases[] = {
        {"llama",
         {{"expert_count", 0}, {"expert_used_count", 0}, {"embedding_length", 8}},
         "{'attention_bias':false,'hidden_size':8,'model_type':'llama'}"},
        {"llama",
         {{"expert_count", 4}, {"expert_used_count", 2}, {"feed_forward_length", 16}},
         "{'attention_bias':false,'intermediate_size':16,'model_type':'mixtral','num_experts':4,"
         "'num_experts_per_tok':2}"},
        {"qwen3moe",
         {{"expert_count", 4}, {"expert_gating_func", 1}, {"expert_feed_forward_length", 6}},
         "{'attention_bias':false,'model_type':'qwen3_moe','moe_intermediate_size':6,"
         "'norm_topk_prob':true,'num_experts':4}"},
        {"qwen2moe",
         {{"expert_count", 4}},
         "{'model_type':'qwen2_moe','num_experts':4,'qkv_bias':false}"},
        {"gpt-oss",
         {{"expert_count", 4},
          {"feed_forward_length", 16},
          {"expert_feed_forward_length", 16},
          {"rope.scaling.factor", 4}},
         "{'intermediate_size':16,'model_type':'gpt_oss','num_experts':4,"
         "'rope_scaling':{'factor':4,'rope_type':'linear'}}"},
        {"phi3", {{"attention.sliding_window", 0}}, "{'model_type':'phi3'}"},
        {"llama",
         {{"rope.dimension_count", 4},
          {"attention.head_count", 2},
          {"attention.key_length", 4},
          {"attention.value_length", 4}},
         "{'attention_bias':false,'head_dim':4,'model_type':'llama','num_attention_heads':2}"},
        {"gemma3",
         {{"attention.sliding_window", 5}, {"attention.sliding_window_pattern", A_LIST}},
         "{'layer_types':['sliding_attention','sliding_attention','full_attention',"
         "'sliding_attention'],'model_type':'gemma3_text','sliding_window':5}"},
        {"gemma3",
         {{"attention.sliding_window", 5}, {"attention.sliding_window_pattern", A_LIST_OF_HALVES}},
         "{'model_type':'gemma3_text','sliding_window':5,'sliding_window_pattern':[0.5]}"},
        {"gemma3",
         {{"attention.head_count", 4},
          {"embedding_length", 24},
          {"attention.key_length", 8},
          {"block_count", 62}},
         "{'head_dim':8,'hidden_size':24,'model_type':'gemma3_text','num_attention_heads':4,"
         "'num_hidden_layers':62,'query_pre_attn_scalar':6,'sliding_window_pattern':1}"},
        {"gemma2",
         {{"attention.head_count", 4},
          {"embedding_length", 24},
          {"attention.key_length", 8},
          {"block_count", 42}},
         "{'head_dim':8,'hidden_size':24,'model_type':'gemma2','num_attention_heads':4,"
         "'num_hidden_layers':42,'query_pre_attn_scalar':8}"},
        {"mamba2",
         {{"ssm.inner_size", 24},
          {"ssm.time_step_rank", 6},
          {"embedding_length", 48},
          {"feed_forward_length", 0}},
         "{'expand':0.5,'head_dim':4,'hidden_size':48,'intermediate_size':0,"
         "'model_type':'mamba2','num_heads':6}"},
        {"llama",
         {{"rope.scaling.factor", 4}, {"logit_scale", A_HALF}},
         "{'attention_bias':false,'logit_scale':0.5,'model_type':'llama',"
         "'rope_scaling':{'factor':4,'rope_type':'linear'}}"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *const config = config_of(cases[i].family, cases[i].keys);
        cr_expect(json_is_true(json_object_get(config, "tie_word_embeddings")));
        json_object_del(config, "tie_word_embeddings");
        cr_expect_str_eq(json_quoted(config), cases[i].says);
    }
}

/* What is wrong is said in the folder's words, and that it is. */
Test(gguf_model, words_of_the_folder)
{
    struct made m = {.n = 0};
    struct published p;

    put_begin(&m, 0, 1);
    put_key(&m, "general.architecture", TEXT), put_text(&m, "llama");
    const char *const path = made_file(&m);
    cr_expect_eq(published_open(&p, path, NULL), E_IO);
    REFUSED(published_open(&p, path, &failure), E_IO, "  -> ", "a GGUF file");
}
