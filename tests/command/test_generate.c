/* SPDX-License-Identifier: MIT
 *
 * bench generate: the likeliest text is that of forward passes over all of it, whichever way the
 * past is kept; a seed repeats a drawn text; what has no meaning is refused. */
#include "tests/support/json.h"
#include "tests/support/loaded.h"
#include "tests/support/program.h"
#include "tests/support/tiny_tokenizer.h"

TestSuite(generate, .init = folder_make, .fini = folder_remove, .timeout = 300);

#define PROMPT "she sells "
#define GENERATE "generate --ckpt m --threads 1 --pin none -q --prompt '" PROMPT "' "

static void train(const char *variant)
{
    must_shell("test -f t || for i in $(seq 200); do echo 'she sells sea shells by the sea shore'; "
               "done >t");
    must_bench(
        "train --variant %s --corpus t --ckpt m --force --steps 60 --lr 0.01 --lr-warmup 5 --seq "
        "32 --mem 32 --batch 2 --layers 1 --d-model 32 --heads 2 --threads 1 --pin none -q",
        variant);
}

/* The largest logit behind n tokens, by one forward pass without a past of the model `c`, whose
 * weights are w's. */
static int32_t likeliest(const struct weights *w, const struct config *c, const int32_t *ids, int n)
{
    struct engine g;
    struct lm m;
    int32_t best = 0;

    bind_model(&m, &g, c, MEM_NONE, (struct extent){1, n, 0});
    MUST(weights_load(w, &m.params, &failure));
    lm_build_tables(&m, &g);
    lm_forward(&m, &g, ids, 1, n, 1, NULL, NULL);
    for (int i = 1; i < c->V; i++)
        best = m.logits[i] > m.logits[best] ? i : best;
    return best;
}

/* A text of 34 tokens by the model in the file m, which saw 64, in these types. */
static void expect_text(const char *options, enum elem dtype, enum row_elem rows)
{
    enum { NEW = 24 };
    struct weights w;
    int32_t ids[sizeof(PROMPT) + NEW] = {0};
    const int n = (int)strlen(PROMPT);
    struct ran r = must_bench(GENERATE "--new-tokens %d %s", NEW, options);
    cr_assert_eq(r.out.n, strlen(PROMPT) + NEW + 1, "%s", r.out.data);
    cr_expect_eq(r.err.n, 0, "%s", r.err.data);
    MUST(weights_open(&w, in_folder("m"), &failure));
    struct config c = w.config;
    c.dtype = dtype;
    c.act_dtype = rows;
    for (int i = 0; i < n + NEW; i++) {
        ids[i] = (unsigned char)r.out.data[i];
        cr_expect_eq(ids[i], i < n ? PROMPT[i] : likeliest(&w, &c, ids, i), "%s: byte %d of %s",
                     options, i, r.out.data);
    }
    weights_close(&w);
}

static void expect_likeliest(const char *variant, const char *past)
{
    train(variant);
    expect_text("", ELEM_F32, ROWS_F32);
    bench_exits(0, past, "generate --ckpt m --threads 1 --prompt a --new-tokens 2");
}

Test(generate, likeliest_by_cached_keys) { expect_likeliest("xl", "past: kv"); }
Test(generate, likeliest_by_a_state) { expect_likeliest("gla", "past: state"); }
Test(generate, likeliest_by_running_again) { expect_likeliest("tupe", "past: recompute"); }
Test(generate, likeliest_with_positions_from_the_start) { expect_likeliest("vanilla", "past: kv"); }

Test(generate, narrow_types)
{
    train("xl");
    expect_text("--dtype q8 --backend ref", ELEM_Q8, ROWS_F32);
    expect_text("--dtype q4_1 --act-dtype q8 --backend ref", ELEM_Q4_1, ROWS_Q8);
    struct ran r = must_bench(
        GENERATE
        "--new-tokens 3 --kv-dtype q8 --dtype bf16 --backend ref --format csv --columns choices");
    cr_expect_str_eq(r.out.data, "choices\n--dtype bf16 --kv-dtype q8\n");
}

static char *drawn(const char *options)
{
    return must_bench(GENERATE "--new-tokens 40 %s", options).out.data;
}

Test(generate, a_seed_repeats_a_text)
{
    train("xl");
    char *const one = drawn("--temperature 1.5 --seed 7"),
                *const again = drawn("--temperature 1.5 --seed 7"),
                *const other = drawn("--temperature 1.5 --seed 8"), *const greedy = drawn(""),
                *const first = drawn("--temperature 1.5 --seed 7 --top-k 1");
    struct ran r = run_shell("printf '" PROMPT "' >p && \"$BENCH\" generate --ckpt m --threads 1 "
                             "--pin none -q --prompt-file p --new-tokens 40");

    TEXTS({one, again}, {first, greedy}, {r.out.data, greedy});
    cr_expect_str_neq(one, other);
    cr_expect_str_neq(one, greedy);
}

/* Learn lines of "the cat" that end with <|end|>, which a file beside the tokenizer names. */
static void train_with_an_end(void)
{
    cr_assert_eq(mkdir(in_folder("tiny"), 0777), 0);
    tiny_put_json("tiny/tokenizer.json", tiny_tokenizer());
    folder_put_text("tiny/generation_config.json", "{\"eos_token_id\":[7,260]}");
    must_shell("for i in $(seq 300); do printf 'hehe the cat<|end|>'; done >t");
    must_bench("train --variant llama --corpus t --tokenizer tiny --ckpt m --steps 60 --lr 0.01 "
               "--lr-warmup 5 --seq 32 --batch 2 --layers 1 --d-model 32 --heads 2 --threads 1 "
               "--pin none -q");
}

static json_t *row(const char *options)
{
    struct ran r = must_bench("generate --ckpt m --threads 1 --pin none -q --prompt 'hehe t' "
                              "--new-tokens 12 --format json %s",
                              options);
    json_t *const rows = json_of(r.out.data), *const first = json_array_get(rows, 0);

    cr_assert(json_is_object(first) && json_array_size(rows) == 1, "%s", r.out.data);
    return first;
}

/* The end is the next token behind the text, and not part of it. */
Test(generate, a_token_ends_a_text)
{
    train_with_an_end();
    json_t *const ended = row(""), *const on = row("--ignore-eos");
    const char *const text = text_at(ended, "text");
    const size_t n = json_array_size(json_object_get(ended, "new_ids"));

    TEXTS({text_at(ended, "ended"), "end_token"}, {text_at(ended, "prompt"), "hehe t"},
          {text_at(ended, "model"), "m"}, {text_at(on, "ended"), "length"});
    cr_expect(json_is_null(json_object_get(ended, "seed")));
    cr_expect_eq(json_integer_value(json_object_get(ended, "new_tokens")), (json_int_t)n);
    cr_expect(n > 0 && n < 12 && !strstr(text, "<|end|>"), "%zu: %s", n, text);
    cr_expect_eq(json_array_size(json_object_get(on, "new_ids")), 12);
    cr_expect_eq(json_integer_value(json_array_get(json_object_get(on, "new_ids"), n)), 260);
    cr_expect(strncmp(text_at(on, "text"), text, strlen(text)) == 0 &&
                  strncmp(text_at(on, "text") + strlen(text), "<|end|>", 7) == 0,
              "%s, %s", text_at(on, "text"), text);

    bench_exits(0, "then the end of the text",
                "generate --ckpt m --threads 1 --pin none --prompt 'hehe t'");
    folder_put_text("m.tokenizer/generation_config.json", "{\"eos_token_id\":7}");
    cr_expect_str_eq(text_at(row(""), "ended"), "length");

    /* one that the model cannot choose */
    folder_put_text("m.tokenizer/generation_config.json", "{\"eos_token_id\":[260,261]}");
    bench_exits(7, "token 261", "generate --ckpt m --threads 1 --pin none --prompt 'hehe t'");
    row("--ignore-eos");
}

/* Bytes that are no UTF-8 stand as ids only. */
Test(generate, a_row_of_bytes)
{
    train("xl");
    struct ran r = must_shell("printf 'she\\377' >p && \"$BENCH\" generate --ckpt m --threads 1 "
                              "--pin none -q --prompt-file p --new-tokens 3 --temperature 1 --seed "
                              "9 --format jsonl --columns prompt,prompt_ids,seed,ended");
    cr_expect_str_eq(r.out.data, "{\"prompt\":\"she\xef\xbf\xbd\",\"prompt_ids\":[115,104,101,255],"
                                 "\"seed\":9,\"ended\":\"length\"}\n");
}

Test(generate, what_is_refused)
{
    static const struct {
        const char *line, *says;
        int code;
    } lines[] = {
        {"generate --prompt a", "--ckpt FILE", 2},
        {"generate --ckpt m", "--prompt", 2},
        {"generate --ckpt m --prompt a --prompt-file p", "one prompt", 2},
        {"generate --ckpt m --prompt a --top-k 3", "--top-k", 2},
        {"generate --ckpt m --prompt a --top-p 0.5", "--top-p", 2},
        {"generate --ckpt m --prompt a --seed 5", "--seed", 2},
        {"generate --ckpt m --prompt a --temperature 1 --top-k 257", "--top-k 257", 2},
        {"generate --ckpt m --prompt a --temperature 1 --top-p 0", "top-p", 2},
        {"generate --ckpt m --prompt a --columns text", "--format json", 2},
        {"generate --ckpt m --prompt a --format json --columns word", "word", 2},
        {"generate --ckpt m --prompt a --format fom", "--format fom", 2},
        {"generate --ckpt m --prompt a --dtype q8,q4", "--dtype has 2 values", 2},
        {"generate --ckpt m --prompt a --dtype q9", "q9", 2},
        {"generate --ckpt m --prompt a --exit-tau 0.1", "--exit-tau", 2},
        {"generate --ckpt m --prompt a --act-dtype q8", "act", 2},
        {"generate --ckpt no_such --prompt a", "no_such", 7},
        {"generate --ckpt m --prompt-file no_such", "no_such", 7},
        {"generate --ckpt $MODELS/xl.safetensors --prompt a", "symbol", 2},
    };
    char *const models = kept(realpath("results/models", NULL));

    cr_assert_not_null(models);
    setenv("MODELS", models, 1);
    train("xl");
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct ran r = bench_exits(lines[i].code, lines[i].says, "%s", lines[i].line);
        expect_said(&r, "  -> ");
        cr_expect_eq(r.out.n, 0, "%s", r.out.data);
    }
}

/* A token in front and a prompt behind it stand in one array, which grows: a published tokenizer
 * that has one, and prompts of many tokens. */
Test(generate, a_token_in_front_of_long_prompts)
{
    char *const file = kept(realpath("tests/golden-tokens/small/model.gguf", NULL));
    char prompt[200] = "";

    cr_assert_not_null(file);
    must_shell("for i in $(seq 200); do echo 'she sells sea shells by the sea shore'; done >t");
    must_bench("train --variant llama --corpus t --tokenizer %s --ckpt m --steps 2 --seq 32 "
               "--batch 2 --layers 1 --d-model 32 --heads 2 --threads 1 --pin none -q",
               file);
    for (int words = 1; words <= 20; words++) {
        strcat(prompt, "shells ");
        must_bench("generate --ckpt m --tokenizer %s --threads 1 --pin none -q --new-tokens 4 "
                   "--prompt '%s'",
                   file, prompt);
    }
}
