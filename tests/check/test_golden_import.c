/* SPDX-License-Identifier: MIT
 *
 * Published models (tests/golden-import, and $BENCH_SHARED/import) through every usable backend,
 * every expected tensor accounted for, in one piece and cut into segments; and a wrong number, or a
 * wrong folder, does not pass. */
#include "harness/check/golden.h"
#include "tests/support/edited_file.h"
#include "tests/support/every_backend.h"
#include "tests/support/loaded.h"
#include "tests/support/published_folder.h"

static const char *const models[] = {
    "gpt2_plain",
    "gpt2_f16_prefix",
    "neox_parallel_f16",
    "neox_serial",
    "llama_gqa_bf16",
    "llama_tied_sharded",
    "llama3_scaling",
    "mistral_window",
    "qwen2_bias",
    "qwen3_qknorm",
    "txl_div1",
    "txl_div4",
    "txl_original_keys",
    "gemma2_capped",
    "gemma3_text",
    "olmo2",
    "phi3_window",
    "mamba2",
    "gated_deltanet_grouped",
    "gla_wide",
    "qwen3_5_text",
    "gguf_llama_q4_0",
    "gguf_qwen3_q8_0",
    "gguf_gpt2_f16",
    "gguf_qwen2_q4_1",
    "gguf_llama_rope_freqs",
    "gguf_phi3_longrope",
    "gguf_mamba2_q8_0",
    "gguf_llama_mixed",
    "gguf_gpt_oss_mxfp4",
    "gguf_olmo2_q8_0",
    "gguf_gemma2_q8_0",
    "gguf_gemma3_q8_0",
    "gguf_qwen2moe_q8_0",
    "gguf_qwen3moe_q8_0",
    "gemma3_scaled",
    "gpt_oss",
    "gpt_oss_mxfp4",
    "mixtral_window",
    "mixtral_stacked",
    "qwen2_moe",
    "qwen3_moe_normed",
    "qwen3_moe_dense",
    "deepseek_v2",
    "deepseek_v2_lite",
    "qwen3_next",
};

struct seen {
    int failed;
    char first[128];
};

static void look(void *arg, const struct verdict *v)
{
    struct seen *s = arg;

    if (!v->skipped && !(v->error <= v->limit) && s->failed++ == 0)
        snprintf(s->first, sizeof(s->first), "%s %s", v->file, v->tensor);
}

static enum status run(const char *backend, int threads, const char *path, struct tally *t,
                       struct seen *s, struct err *e)
{
    struct engine g;
    const enum status st = engine_open(&g, backend, threads, NULL, e);

    *t = (struct tally){0};
    *s = (struct seen){0};
    if (st == E_UNSUPPORTED)
        cr_skip_test("%s", e->msg);
    return st == OK ? golden_run(&g, path, t, look, s, e) : st;
}

/* Tensors that a file expects. */
static int expected(const char *path)
{
    const struct safetensors s = tensors_of(path);
    int n = 0;

    for (int i = 0; i < s.n_tensors; i++)
        n += strncmp(s.tensors[i].name, "out.", 4) == 0;
    return n;
}

TEST_EACH(int *b, golden_import, every_model_on_every_backend, every_backend(), .timeout = 120)
{
    for (size_t i = 0; i < ARRAY_LEN(models); i++)
        for (int threads = 1; threads <= 2; threads++) {
            /* Sums of losses, and the logits once more by segments where there is a memory. */
            const bool hidden = strncmp(models[i], "txl", 3) == 0;
            const bool keys = !hidden;
            const bool zeros = hidden && strcmp(models[i], "txl_original_keys") != 0;
            char path[FILE_PATH];
            struct tally t;
            struct seen s;
            snprintf(path, sizeof(path), PUBLISHED "/%s/expect.safetensors", models[i]);
            MUST(run(backends[*b]->name, threads, path, &t, &s, &failure));
            cr_expect_eq(t.failed, 0, "%s", s.first);
            cr_expect_eq(t.tensors, expected(path) + 1 + keys + zeros, "%s: %d", path, t.tensors);
            cr_expect_eq(t.passed, t.tensors, "%s", path);
        }
}

/* ---- what must not pass ------------------------------------------------------------------- */

TestSuite(golden_import, .init = folder_make, .fini = folder_remove);

static void expect_failures(const struct edit *d, int failures)
{
    char from[FILE_PATH];
    struct tally t;
    struct seen s;

    published_copy("llama3_scaling");
    snprintf(from, sizeof(from), PUBLISHED "/llama3_scaling/expect.safetensors");
    edited_file(published_path("expect.safetensors"), from, d);
    MUST(run("ref", 1, published_path("expect.safetensors"), &t, &s, &failure));
    cr_expect_eq(t.failed, failures, "%d: %s", t.failed, s.first);
}

Test(golden_import, wrong_numbers)
{
    expect_failures(&(struct edit){.nudge = "out.logits", .at = 7, .by = 0.01f}, 2);
    expect_failures(&(struct edit){.nudge = "out.nll", .at = 3, .by = 0.01f}, 1);
    expect_failures(&(struct edit){.nudge = "out.hidden.0", .at = 3, .by = 0.01f}, 1);
    expect_failures(&(struct edit){.nudge = "out.hidden.2", .at = 3, .by = 0.01f}, 1);
    expect_failures(&(struct edit){.key = "total_nll", .value = "534.774"}, 1);
}

static void expect_refused(const struct edit *d)
{
    char from[FILE_PATH];
    struct tally t;
    struct seen s;

    published_copy("gpt2_plain");
    snprintf(from, sizeof(from), PUBLISHED "/gpt2_plain/expect.safetensors");
    edited_file(published_path("expect.safetensors"), from, d);
    cr_expect_eq(run("ref", 1, published_path("expect.safetensors"), &t, &s, &failure), E_IO);
}

Test(golden_import, files_that_are_wrong)
{
    expect_refused(&(struct edit){.drop = "in.ids"});
    expect_refused(&(struct edit){.reshape = "in.ids"});
    expect_refused(&(struct edit){.key = "segments", .value = "17,1,21"});
    expect_refused(&(struct edit){.key = "segments", .value = "40,x"});
    expect_refused(&(struct edit){.key = "segments", .value = "0,40"});
}
