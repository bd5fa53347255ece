/* SPDX-License-Identifier: MIT
 *
 * Published models on the command line: bench import, bench list models, bench check --golden of
 * their folders, and faults of theirs as exit codes. */
#include "harness/util/lock.h"
#include "tests/support/loaded.h"
#include "tests/support/published_folder.h"
#include "tests/support/tiny_tokenizer.h"
#include "tests/table/must_rows.h"

TestSuite(import, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* The logits of a few tokens, of weights narrowed to that type. */
static float *logits_in(enum elem dtype, const char *path, size_t *n)
{
    enum { L = 5 };
    static const int32_t tokens[L] = {3, 1, 4, 1, 5};
    struct engine g;
    struct weights w;
    struct lm m;

    MUST(weights_open(&w, path, &failure));
    w.config.dtype = dtype;
    bind_model(&m, &g, &w.config, MEM_NONE, (struct extent){1, L, 0});
    MUST(weights_load(&w, &m.params, &failure));
    weights_close(&w);
    lm_build_tables(&m, &g);
    lm_forward(&m, &g, tokens, 1, L, L, NULL, NULL);
    *n = (size_t)L * (size_t)m.c.V;
    return m.logits;
}

static float *logits_of(const char *path, size_t *n) { return logits_in(ELEM_F32, path, n); }

/* Weights of a GGUF file in Q4_1, all maps and embeddings, are found again exactly when they are
 * narrowed to q4_1: not a bit of the logits changes. In q4, which has no shift, they do. */
Test(import, q4_1_of_a_file_stays_exact)
{
    size_t n, same_n, other_n;

    published_copy("gguf_qwen2_q4_1");
    const char *const path = published_path("model.gguf");
    float *const plain = logits_of(path, &n), *const same = logits_in(ELEM_Q4_1, path, &same_n);
    float *const other = logits_in(ELEM_Q4, path, &other_n);
    cr_assert(n == same_n && n == other_n);
    cr_expect(memcmp(plain, same, n * sizeof(*plain)) == 0);
    cr_expect(memcmp(plain, other, n * sizeof(*plain)) != 0);
}

/* What import writes is the same model, bit by bit, and says where it is from. */
Test(import, is_the_same_model)
{
    EACH_TEXT (base, "gpt2_plain", "neox_parallel_f16", "llama3_scaling", "mistral_window",
               "qwen2_bias", "qwen3_qknorm") {
        size_t n, same_n;
        published_copy(base);
        published_write("tokenizer.json", "{}", 2);
        must_bench("import model --ckpt out.safetensors --force");
        const char *path = in_folder("out.safetensors");
        float *const a = logits_of(published_path(""), &n), *const b = logits_of(path, &same_n);
        cr_expect(n == same_n && memcmp(a, b, n * sizeof(*a)) == 0, "%s", base);
        const struct safetensors s = tensors_of(path);
        TEXTS({safetensors_meta(&s, "source"), "model"}, {safetensors_meta(&s, "unit"), "token"},
              {safetensors_meta(&s, "tokenizer"), "out.safetensors.tokenizer"});
        path = in_folder("out.safetensors.tokenizer/tokenizer.json");
        cr_expect_eq(access(path, R_OK), 0);
    }
}

/* A checkpoint stays unless --force is given, whatever is beside it; the state of a training that
 * is overwritten goes, and so does the tokenizer of an earlier model. */
Test(import, overwrites_only_by_force)
{
    static const char *const beside[] = {"c.opt", "c.opt.new", "c.best",
                                         "c.tokenizer/tokenizer.json"};
    static const char old[] = "the weights of a training";

    published_copy("gpt2_plain");
    published_write("vocab.txt", "a\n", 2);
    must_shell("printf 'the weights of a training' >c && mkdir c.tokenizer && touch c.opt "
               "c.opt.new c.best c.tokenizer/tokenizer.json");
    bench_exits(7, "c exists  -> ", "import model --ckpt c");
    cr_expect_str_eq(folder_read("c").data, old);
    for (size_t i = 0; i < ARRAY_LEN(beside); i++)
        cr_expect(folder_has(beside[i]), "%s is gone", beside[i]);
    must_bench("import model --ckpt c --force");
    for (size_t i = 0; i < ARRAY_LEN(beside); i++)
        cr_expect_not(folder_has(beside[i]), "%s is left", beside[i]);
    cr_expect(folder_has("c.tokenizer/vocab.txt"));
    cr_expect_not(folder_has("c.lock"), "the lock is left");
}

/* A pipe or a device stays what it is, --force or not. */
Test(import, no_file_in_place_of_a_pipe)
{
    static const char train[] = "train --variant xl --seq 4 --mem 4 --batch 1 --corpus "
                                "model/config.json --ckpt pipe --force";
    struct stat is;

    published_copy("gpt2_plain");
    const char *const path = in_folder("pipe");
    cr_assert_eq(mkfifo(path, 0666), 0);
    EACH_TEXT (line, "import model --ckpt pipe --force", "import model --ckpt pipe", train) {
        bench_exits(7, NULL, "%s", line);
        cr_expect(stat(path, &is) == 0 && S_ISFIFO(is.st_mode), "%s", line);
    }
}

/* As while a training writes it: --force does not break the lock. */
Test(import, not_into_a_training)
{
    struct lock l;

    published_copy("gpt2_plain");
    const char *path = in_folder("c.lock");
    MUST(lock_take(&l, path, "c", &failure));
    bench_exits(6, "in use by process", "import model --ckpt c --force");
    cr_expect_not(folder_has("c"), "it is written");
    lock_release(&l);
}

Test(import, faults)
{
    static const struct {
        const char *line;
        int code;
    } lines[] = {{"import", 2},
                 {"import model", 2},
                 {"import nowhere --ckpt out.safetensors", 7},
                 {"import model --ckpt no/folder/out.safetensors", 7}};

    published_copy("llama_gqa_bf16");
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        bench_exits(lines[i].code, NULL, "%s", lines[i].line);
    published_set("num_hidden_layers", json_integer(3));
    bench_exits(7, "model.layers.2.", "import model --ckpt out.safetensors");
    cr_expect_not(folder_has("out.safetensors"), "a wrong model is written");
}

/* Each model in a folder, and why one cannot be read. */
Test(import, list_of_models)
{
    published_copy("qwen3_qknorm");
    struct ran r = must_bench("list models . --format csv --columns "
                              "model,family,variant,layers,width,heads,vocabulary,context,why_not");
    cr_expect_str_eq(r.out.data, "model,family,variant,layers,width,heads,vocabulary,context,"
                                 "why_not\nmodel,qwen3,qknorm,2,24,4,92,128,\n");
    published_set("model_type", json_string("opt"));
    r = must_bench("list models model --format csv --columns model,variant,why_not");
    HAS(r.out.data, "opt");
    published_copy("gguf_llama_q4_0");
    r = must_bench("list models model --format csv --columns model,family");
    HAS(r.out.data, "\nmodel.gguf,llama\n");
    r = must_bench("list models model/model.gguf --format csv --columns family");
    cr_expect_str_eq(r.out.data, "family\nllama\n");
    bench_exits(7, NULL, "list models nowhere");
}

static void score_beyond(int seq, int mem, int made_for, bool beyond)
{
    char row[96] = "status,tokens,status_detail\nok,39,\n", said[96] = "";

    published_set("max_position_embeddings", json_integer(made_for));
    struct ran r = run_bench("eval --ckpt model --tokens ids -b ref --threads 1 --seq %d --mem %d "
                             "-q --format csv --columns status,tokens,status_detail",
                             seq, mem);
    if (beyond) {
        snprintf(row, sizeof(row),
                 "status,tokens,status_detail\nok,39,\"beyond its context: 39 tokens at once, made "
                 "for %d\"\n",
                 made_for);
        snprintf(said, sizeof(said), "warning: 39 tokens at once, the model was made for %d",
                 made_for);
    }
    expect_exit(&r, 0);
    cr_expect_str_eq(r.out.data, row, "--seq %d --mem %d: %s", seq, mem, r.out.data);
    expect_said(&r, said);
    cr_expect(beyond || !strstr(r.err.data, "at once"), "--seq %d: %s", seq, r.err.data);
}

/* A text that is seen further back than the model was made for is scored, with a word. */
Test(import, scored_beyond_the_context)
{
    int32_t ids[40];

    for (int i = 0; i < 40; i++)
        ids[i] = 7 * i % 88;
    published_copy("qwen2_bias");
    published_write("../ids", ids, sizeof(ids));
    score_beyond(64, 0, 16, true), score_beyond(8, 64, 16, true);
    score_beyond(8, 8, 16, false), score_beyond(16, 0, 16, false);
    score_beyond(64, 0, 38, true), score_beyond(64, 0, 39, false);
}

/* A list of words reads others as <unk>, and the row says how many. */
Test(import, words_out_of_the_vocabulary)
{
    static const char line[] =
        "eval --ckpt %s/ours.safetensors --tokenizer %s --corpus text "
        "-b ref --threads 1 --seq 4 --mem 0 --format csv --columns tokens,oov";
    char *const dir = kept(realpath("tests/counted/words", NULL));

    cr_assert(dir);
    folder_put_text("text", "the windmill and the zyx\nand <unk> to qed\n");
    struct ran r = must_bench(line, dir, dir);
    cr_expect_str_eq(r.out.data, "tokens,oov\n10,3\n");
    expect_said(&r, "warning: 3 words are not in the vocabulary");
    folder_put_text("text", "the <unk> and the <unk>\n");
    r = must_bench(line, dir, dir);
    cr_expect_str_eq(r.out.data, "tokens,oov\n5,0\n");
    cr_expect(!strstr(r.err.data, "vocabulary"), "%s", r.err.data);
}

/* A model's folder, or one that has several, is a golden file. */
Test(import, golden_folders)
{
    published_copy("llama_gqa_bf16");
    struct ran r = must_bench("check --backend ref --golden model");
    HAS(r.out.data, "1 file");
    r = must_bench("check --backend ref --golden .");
    HAS(r.out.data, "1 file");
    published_set("rope_theta", json_real(10000)); /* of a million */
    bench_exits(5, NULL, "check --backend ref --golden model");
    published_remove("expect.safetensors");
    bench_exits(7, NULL, "check --backend ref --golden .");
}

/* A folder is scored with its own tokenizer, and so is what import makes of it: documents as
 * lm-evaluation-harness counts them, to 2e-6 of what its program computes with these weights. */
Test(import, eval_of_a_folder)
{
    static const double nats = 3647.337280073256;

    published_copy("gpt2_plain");
    EACH_TEXT (file, "config.json", "tokenizer.json", "model.safetensors")
        must_shell("cp $SRC/tests/counted/pairs/%s model", file);
    must_shell("cp $SRC/tests/counted/text.txt .");
    folder_put_text("model/tokenizer_config.json", "{\"add_bos_token\":false}");
    must_bench("import model --ckpt ours.safetensors");
    cr_expect_eq(access(in_folder("ours.safetensors.tokenizer/tokenizer_config.json"), F_OK), 0,
                 "what says how a text begins goes along");
    for (int ours = 0; ours < 2; ours++) {
        const char *const ckpt = ours ? "ours.safetensors" : "model", *const run = ours ? "b" : "a";
        must_bench("eval --ckpt %s --corpus text.txt --count lm-eval --seq 32 --mem 0 --backend "
                   "ref --threads 1 --out %s -q",
                   ckpt, run);
        const char *const path = kept_text("%s/latest", run);
        const struct perplexity_row *const row = must_rows(path, TABLE_PERPLEXITY, 1);
        NUMBERS({row->nll_sum, nats, 2e-6 * nats}, {row->tokens, 419}, {row->words, 213},
                {row->bytes, 859});
        TEXTS({row->source, "model"}, {row->unit, "word"}, {row->variant, "learned"});
    }
    struct ran r = run_bench("eval --ckpt model --corpus text.txt --seq 33 --mem 0 --out c");
    expect_said(&r, "positions for 32");
    cr_expect_neq(r.code, 0);
}

/* What no row could be scored with is said once, and nothing is left behind. */
Test(import, eval_without_a_tokenizer)
{
    static const char said[] = "has no tokenizer  -> ";

    published_copy("llama_gqa_bf16");
    folder_put_text("text", "the cat");
    struct ran r = run_shell("mkdir -p r/earlier && ln -s earlier r/latest");
    r = bench_exits(7, NULL, "eval --ckpt model --corpus text --seq 4,8 --mem 0 --out r");
    const char *const first = strstr(r.err.data, said);
    cr_assert(first, "%s", r.err.data);
    cr_expect_null(strstr(first + 1, said), "%s", r.err.data);
    cr_expect_null(strstr(r.err.data, "wrote "), "%s", r.err.data);
    cr_expect_str_eq(r.out.data, "");
    r = run_shell("ls r; readlink r/latest");
    cr_expect_str_eq(r.out.data, "earlier\nlatest\nearlier\n");
    r = bench_exits(7, NULL, "generate --ckpt model --prompt the");
    cr_expect(strstr(r.err.data, said) && r.out.n == 0, "%s", r.err.data);
}

/* Ids that the model does not have. */
Test(import, a_tokenizer_of_another_model)
{
    published_copy("llama_gqa_bf16"); /* 99 words */
    tiny_put_json("model/tokenizer.json", tiny_tokenizer());
    folder_put_text("text", "the cat");
    struct ran r = bench_exits(7, "260", "eval --ckpt model --corpus text --seq 4 --mem 0");
    expect_said(&r, "99");
}

static bool row_has(const struct ran *r, const char *row, const char *word)
{
    const char *const at = strstr(r->out.data, row), *const end = at ? strchr(at, '\n') : NULL;

    cr_assert_not_null(end, "%s of %s", row, r->out.data);
    const char *const found = strstr(at, word);
    return found && found < end;
}

static void time_beyond(int made_for, bool beyond)
{
    published_set("max_position_embeddings", json_integer(made_for));
    /* The second shard scores nothing. */
    struct ran r = must_bench("--ckpt model --corpus model/config.json --shard 2/2 --variant "
                              "llama,vanilla --workload segment --backend ref --seq 8,16 --mem 0,9 "
                              "--threads 1 --pin none --max-time 0.01 --warmup-ms 1 --raw none -q "
                              "--format csv --columns variant,seq_tokens,mem_tokens,status_detail");
    cr_expect_eq(strstr(r.err.data, "warning: 1 case of more tokens at once than the 16 that the "
                                    "model was made for") != NULL,
                 beyond, "%s", r.err.data);
    cr_expect_eq(row_has(&r, "llama,16,9,", "beyond"), beyond);
    cr_expect_not(row_has(&r, "llama,16,0,", "beyond"));
    cr_expect_not(row_has(&r, "vanilla,16,9,", "beyond"), "no model of the checkpoint");
}

/* Cases of more tokens than the model was made for are timed, with a word. */
Test(import, timed_beyond_the_context)
{
    published_copy("qwen2_bias");
    published_write("tokenizer.json", "{}", 2);
    time_beyond(16, true);
    time_beyond(25, false);
}

/* A config that is wrong is said before anything is scored. */
Test(import, eval_reads_the_folder)
{
    static const char text[] = "some text of a few words, and then some more of it";

    published_copy("llama_gqa_bf16");
    published_write("text", text, strlen(text));
    published_set("num_hidden_layers", json_integer(3));
    bench_exits(7, "model.layers.2.", "eval --ckpt model --corpus model/text --seq 8");
}

/* What was not chosen is the model's: its variant, sizes and choices. */
Test(import, a_sweep_has_its_sizes)
{
    published_copy("qwen3_qknorm");
    struct ran r = bench_exits(0, "1 case in 1 group",
                               "list cases --ckpt model --workload segment --backend ref --seq 8 "
                               "--mem 0 --threads 1 --format csv");
    HAS(r.out.data, "--variant qknorm --backend ref --workload segment --seq 8 --mem 0 "
                    "--mem-kind kv --layers 2 --d-model 24 --heads 4 --d-head 12 "
                    "--d-inner 40 --vocab 92 --set out_bias=0,emb_scale=1,ln_eps=1e-06,"
                    "head_eps=1e-06,rope_base=1000000 --threads 1");
    r = bench_exits(0, "2 cases in 1 group",
                    "list cases --ckpt model --variant rope,xl --layers 3 --workload segment "
                    "--backend ref --seq 8 --mem 0 --threads 1");
    HAS(r.out.data, "--variant xl --backend ref --workload segment --seq 8 --mem 0 "
                    "--mem-kind kv --layers 3 --d-model 24 --heads 4 --d-head 12 "
                    "--d-inner 40 --vocab 92 --set out_bias=0,emb_scale=1,"
                    "ln_eps=1e-06 --threads 1");
    published_set("num_hidden_layers", json_integer(3));
    bench_exits(7, "model.layers.2.", "list cases --ckpt model");
}
