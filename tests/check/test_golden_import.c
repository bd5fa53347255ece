/* SPDX-License-Identifier: MIT
 *
 * Published models (tests/golden-import, and $BENCH_SHARED/import) through every usable backend,
 * every expected tensor accounted for, in one piece and cut into segments; and a wrong number, or a
 * wrong folder, does not pass. */
#include "golden_run.h"
#include "tests/support/every_backend.h"
#include "tests/support/published_folder.h"
#include "tests/support/words.h"

static const char models[] =
    "gpt2_plain gpt2_f16_prefix neox_parallel_f16 neox_serial llama_gqa_bf16 llama_tied_sharded "
    "llama3_scaling mistral_window qwen2_bias qwen3_qknorm txl_div1 txl_div4 txl_original_keys "
    "gemma2_capped gemma3_text olmo2 phi3_window mamba2 gated_deltanet_grouped gla_wide "
    "qwen3_5_text gguf_llama_q4_0 gguf_qwen3_q8_0 gguf_gpt2_f16 gguf_qwen2_q4_1 "
    "gguf_llama_rope_freqs gguf_phi3_longrope gguf_mamba2_q8_0 gguf_llama_mixed "
    "gguf_gpt_oss_mxfp4 gguf_olmo2_q8_0 gguf_gemma2_q8_0 gguf_gemma3_q8_0 gguf_qwen2moe_q8_0 "
    "gguf_qwen3moe_q8_0 gemma3_scaled gpt_oss gpt_oss_mxfp4 mixtral_window mixtral_stacked "
    "qwen2_moe qwen3_moe_normed qwen3_moe_dense deepseek_v2 deepseek_v2_lite qwen3_next";

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
    for (char **model = words_of(models); *model; model++)
        for (int threads = 1; threads <= 2; threads++) {
            /* Sums of losses, and the logits once more by segments where there is a memory. */
            const bool hidden = strncmp(*model, "txl", 3) == 0;
            const bool keys = !hidden;
            const bool zeros = hidden && strcmp(*model, "txl_original_keys") != 0;
            struct seen s;
            const char *const path = kept_text(PUBLISHED "/%s/expect.safetensors", *model);
            MUST(run_golden(backends[*b]->name, threads, path, &s));
            cr_expect_eq(s.failed, 0, "%s: %s", path, s.first);
            NUMBERS_OF(path, {s.t.tensors, expected(path) + 1 + keys + zeros},
                       {s.t.passed, s.t.tensors});
        }
}

/* ---- what must not pass ------------------------------------------------------------------- */

TestSuite(golden_import, .init = folder_make, .fini = folder_remove);

static enum status run_edited(const char *model, struct edit d, struct seen *s)
{
    published_copy(model);
    const char *const from = kept_text(PUBLISHED "/%s/expect.safetensors", model);
    edited_file(published_path("expect.safetensors"), from, &d);
    return run_golden("ref", 1, published_path("expect.safetensors"), s);
}

Test(golden_import, wrong_numbers)
{
    static const struct {
        struct edit d;
        int failures;
    } cases[] = {
        {{.nudge = "out.logits", .at = 7, .by = 0.01f}, 2},
        {{.nudge = "out.nll", .at = 3, .by = 0.01f}, 1},
        {{.nudge = "out.hidden.0", .at = 3, .by = 0.01f}, 1},
        {{.nudge = "out.hidden.2", .at = 3, .by = 0.01f}, 1},
        {{.key = "total_nll", .value = "534.774"}, 1},
    };
    struct seen s;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        MUST(run_edited("llama3_scaling", cases[i].d, &s));
        cr_expect_eq(s.failed, cases[i].failures, "%zu, %d: %s", i, s.failed, s.first);
    }
}

Test(golden_import, files_that_are_wrong)
{
    static const struct edit edits[] = {
        {.drop = "in.ids"},
        {.reshape = "in.ids"},
        {.key = "segments", .value = "17,1,21"},
        {.key = "segments", .value = "40,x"},
        {.key = "segments", .value = "0,40"},
    };
    struct seen s;

    for (size_t i = 0; i < ARRAY_LEN(edits); i++)
        cr_expect_eq(run_edited("gpt2_plain", edits[i], &s), E_IO, "%zu", i);
}
