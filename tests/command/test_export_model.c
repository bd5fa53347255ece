/* SPDX-License-Identifier: MIT
 *
 * bench export --to hf and --to gguf, as a user calls them: a model that was trained, given back. */
#include "tests/support/program.h"
#include "tests/support/published_folder.h"

TestSuite(export_model, .init = folder_make, .fini = folder_remove, .timeout = 240);

#define FROM "\"$SRC\"/" PUBLISHED "/"
#define EVAL                                                                                       \
    "eval --tokens ids.bin --seq 16 --mem 0 --backend ref -q --format csv --columns ppl --out r "

/* t.safetensors */
static void train(const char *from, const char *options)
{
    must_bench("train --from " FROM
               "%s --tokens ids.bin --valid ids.bin --seq 8 --mem 0 --batch 2 --steps 2 "
               "--lr 0.01 --backend ref --threads 1 --force --ckpt t.safetensors -q %s",
               from, options);
}

/* What was exported scores as what was trained, and not as what it came from. */
static void give_back(const char *from, const char *to)
{
    train(from, "");
    must_bench("export --to %s out --force --ckpt t.safetensors --from " FROM "%s", to, from);
    const struct ran trained = must_bench(EVAL "--ckpt t.safetensors");
    const struct ran written = must_bench(EVAL "--ckpt out");
    const struct ran before = must_bench(EVAL "--ckpt " FROM "%s", from);
    cr_expect_str_eq(written.out.data, trained.out.data, "%s", from);
    cr_expect_str_neq(written.out.data, before.out.data, "%s", from);
    must_shell("rm -r out");
}

Test(export_model, of_a_training)
{
    put_ids();
    give_back("llama_gqa_bf16", "hf");
    give_back("llama_tied_sharded", "hf");
    give_back("qwen2_moe", "hf");
    give_back("txl_original_keys", "hf");
    give_back("llava_images", "hf");
    give_back("gguf_llama_q4_0/model.gguf", "gguf");
    give_back("gguf_gpt_oss_mxfp4/model.gguf", "gguf");
}

/* Nothing changed: the same files, with what lies beside them. */
Test(export_model, of_what_nothing_changed)
{
    must_shell("cp -r " FROM
               "llama_tied_sharded m; rm m/expect.safetensors; echo '{}' >m/tokenizer.json; "
               "echo a >m/merges.txt; echo x >m/notes.md");
    must_bench("export --to hf out --ckpt m");
    must_shell("rm m/notes.md; diff -r m out");
    must_bench("export --to gguf o.gguf --ckpt " FROM "gguf_phi3_longrope/model.gguf");
    must_shell("cmp o.gguf " FROM "gguf_phi3_longrope/model.gguf");
    /* lengths of a checkpoint are not the model's */
    must_bench("import m --ckpt i.safetensors -q");
    must_bench("export --to hf again --ckpt i.safetensors --from m -q");
    must_shell("diff -r m again");
}

/* Programs would round F32 to the type that config.json names; an index's sum is of the former types. */
Test(export_model, config_says_the_type)
{
    put_ids();
    train("llama_gqa_bf16", "--train-only layers.0.attn.q.weight");
    must_bench("export --to hf out --ckpt t.safetensors --from " FROM "llama_gqa_bf16");
    must_shell("grep -q '\"torch_dtype\": \"float32\"' out/config.json && "
               "grep -q '\"rope_theta\": 1000000.0' out/config.json");
    train("llava_images",
          "--train-only layers.0.attn.q.weight"); /* of the whole and of its part for texts */
    must_shell("sed 's/\"float32\"/\"bfloat16\"/' \"$SRC\"/" PUBLISHED
               "/llava_images/config.json >c.json; "
               "cp -r " FROM "llava_images images; cp c.json images/config.json");
    must_bench("export --to hf out --force --ckpt t.safetensors --from images");
    must_shell("test $(grep -c float32 out/config.json) = 2");
    train("llama_tied_sharded", "--train-only layers.0.attn.q.weight");
    must_bench("export --to hf out --force --ckpt t.safetensors --from " FROM "llama_tied_sharded");
    must_shell("grep -q weight_map out/*.index.json && ! grep -q total_size out/*.index.json");
}

Test(export_model, refuses_what_has_no_sense)
{
    must_shell("mkdir there; echo '{}' >there/config.json; echo >x");
    must_bench("import " FROM "llama_gqa_bf16 --ckpt t.safetensors -q");
    bench_exits(2,
                "export --to hf needs a model, and where to write it  -> bench export --to hf DIR",
                "export --to hf out");
    bench_exits(
        2, "export --to gguf needs a model, and where to write it  -> bench export --to gguf FILE",
        "export --to gguf --ckpt t.safetensors");
    bench_exits(2, "t.safetensors has no names and no config of a published model  -> --from",
                "export --to hf out --ckpt t.safetensors");
    bench_exits(2, "export --to json does not take --ckpt  -> leave it out",
                "export --ckpt t.safetensors");
    bench_exits(2, "export --to fom does not take --from  -> leave it out",
                "export --to fom --from t.safetensors");
    bench_exits(2, "export --to json does not take --force  -> leave it out", "export --force");
    bench_exits(2, "export --to hf does not take --filter  -> leave it out",
                "export --to hf out --ckpt t.safetensors --filter variant:xl");
    bench_exits(2, "export --to gguf does not take --out  -> leave it out",
                "export --to gguf x.gguf --ckpt t.safetensors --out r");
    bench_exits(6, "is a folder  -> --to hf",
                "export --to gguf x.gguf --ckpt t.safetensors --from " FROM "llama_gqa_bf16");
    bench_exits(6, "is a GGUF file  -> --to gguf",
                "export --to hf out --ckpt t.safetensors --from " FROM
                "gguf_llama_q4_0/model.gguf");
    bench_exits(7, "t.safetensors is another model than",
                "export --to hf out --ckpt t.safetensors --from " FROM "gpt2_plain");
    bench_exits(7, "config.json exists  -> --force overwrites it",
                "export --to hf there --ckpt t.safetensors --from " FROM "llama_gqa_bf16");
    bench_exits(7, "x exists  -> --force overwrites it",
                "export --to gguf x --ckpt " FROM "gguf_llama_q4_0/model.gguf");
    bench_exits(7, "checkpoint missing",
                "export --to hf out --ckpt missing --from " FROM "llama_gqa_bf16");
    bench_exits(7, "cannot create", "export --to hf no/such/folder --ckpt " FROM "llama_gqa_bf16");
    bench_exits(7, "cannot write no/such/x.gguf",
                "export --to gguf no/such/x.gguf --ckpt " FROM "gguf_llama_q4_0/model.gguf");
}
