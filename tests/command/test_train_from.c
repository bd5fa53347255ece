/* SPDX-License-Identifier: MIT
 *
 * Training that goes on from published weights: what changes, what stays, and what is refused. */
#include "tests/support/loaded.h"
#include "tests/support/program.h"
#include "tests/support/published_folder.h"
#include "tests/support/words.h"

TestSuite(train_from, .init = folder_make, .fini = folder_remove, .timeout = 240);

#define GOLDEN "tests/golden-import/"
/* Few steps at a rate that is felt. */
#define SHORT                                                                                      \
    " --seq 16 --batch 2 --lr 0.01 --lr-warmup 0 --eval-every 2 -q --backend ref --threads 1"

/* 4000 ids below 60, which follow each other by a rule that can be learnt: nanoGPT's uint16. */
static void write_ids(const char *name, bool header)
{
    enum { N = 4000, HEADER = 512 };
    uint16_t ids[HEADER + N] = {0};
    const int32_t said[3] = {20240520, 1, N};

    memcpy(ids, said, sizeof(said));
    for (int i = 0; i < N; i++)
        ids[HEADER + i] = (uint16_t)(i * 7 % 60);
    folder_put(name, header ? ids : ids + HEADER, sizeof(*ids) * (header ? HEADER + N : N));
}

static const char *golden(const char *name)
{
    static char path[FILE_PATH];
    char here[FILE_PATH];

    cr_assert_not_null(realpath(GOLDEN, here));
    snprintf(path, FILE_PATH, "%.3000s/%s", here, name);
    return path;
}

static void expect_meta(const char *name, const char *key, const char *want)
{
    const struct safetensors s = tensors_of(in_folder(name));

    cr_expect_str_eq(safetensors_meta(&s, key), want);
}

/* Of every kind of published model: parameters of the pattern move, all others have the bits that
 * were published. */
Test(train_from, changes_what_it_is_told_to)
{
    static const char models[] =
        "gpt2_plain neox_parallel_f16 llama3_scaling mistral_window qwen2_bias qwen3_qknorm "
        "gemma2_capped gemma3_text phi3_window olmo2 mamba2 qwen3_5_text gpt_oss mixtral_window "
        "qwen2_moe qwen3_moe_dense deepseek_v2 qwen3_next gla_wide gated_deltanet_grouped "
        "txl_div4 txl_original_keys gguf_gpt2_f16/model.gguf";

    write_ids("ids.bin", true);
    for (char **model = words_of(models); *model; model++) {
        const char *const path = golden(*model);
        struct lm before, after;
        int moved = 0, kept = 0;
        must_bench("train --from %s --tokens ids.bin --train-only 'layers.1.*' --ckpt "
                   "out.safetensors --force --steps 3" SHORT,
                   path);
        load_model(&before, path);
        load_model(&after, in_folder("out.safetensors"));
        cr_assert_eq(before.params.n, after.params.n);
        for (int k = 0; k < before.params.n; k++) {
            const struct param *const a = &before.params.v[k], *const b = &after.params.v[k];
            const bool same = memcmp(a->data, b->data, a->n * sizeof(float)) == 0;
            const bool told = strncmp(a->name, "layers.1.", strlen("layers.1.")) == 0;
            cr_expect(told || same, "%s: %s moved", *model, a->name);
            moved += !same;
            kept += same;
        }
        cr_expect(moved > 3 && kept > 3, "%s: %d moved, %d kept", *model, moved, kept);
    }
}

/* ---- the publishers' gradients ------------------------------------------------------------- */

static const struct first_step {
    const char *model;
    double loss, norm;
    double magnified; /* of floats' rounding, in the norm */
} first_steps[] = {
    {"gpt2_plain", 7.78940494, 7.97932358, 1},
    {"gpt2_f16_prefix", 6.34759412, 7.55659806, 1},
    {"neox_parallel_f16", 7.25116901, 6.89276756, 1},
    {"neox_serial", 6.33751096, 10.5093563, 1},
    {"llama3_scaling", 6.6979066, 11.7285881, 1},
    {"llama_gqa_bf16", 6.65279491, 10.8714006, 1},
    {"mistral_window", 6.82427764, 14.3919134, 1},
    {"qwen2_bias", 6.93069154, 10.7607446, 1},
    {"qwen3_qknorm", 6.0127838, 9.12482117, 1},
    {"gemma2_capped", 4.62114579, 7.14324144, 1},
    {"gemma3_text", 4.72364744, 6.40537434, 1},
    {"phi3_window", 4.68887423, 5.76911744, 1},
    {"olmo2", 4.3686903, 6.66763049, 1},
    {"mamba2", 4.4974699, 5.05893591, 1},
    {"qwen3_5_text", 4.11525713, 44.7387733, 50},
    {"gpt_oss", 4.30260371, 3.63852294, 1},
    {"mixtral_window", 4.77693831, 4.07693996, 1},
    {"qwen2_moe", 4.37526417, 3.07550843, 1},
    {"qwen3_moe_normed", 4.32248122, 2.01391293, 1},
    {"qwen3_moe_dense", 4.68891562, 9.91049582, 1},
    {"deepseek_v2", 4.57208168, 10.0308704, 1},
    {"qwen3_next", 4.30334287, 1100.03162, 5000},
};

/* The gradient of all parameters of the published model, and of no other, by autograd of transformers
 * 5.24.0 in double precision (scripts/crosscheck/training.py, with this text). Sums of floats keep 2e-6
 * here. Weights that differ by 6e-8 of themselves move the two last norms there by 2e-5 and 5e-3 of
 * theirs, and the last loss by 6e-6. */
Test(train_from, first_step_is_the_publishers)
{
    write_ids("ids.bin", true);
    for (size_t i = 0; i < ARRAY_LEN(first_steps); i++) {
        const struct first_step *const want = &first_steps[i];
        const double unit = 2e-6;
        double loss = 0, norm = 0;
        must_bench(
            "train --from %s --tokens ids.bin --ckpt out.safetensors --force --steps 1 --seq 16 "
            "--mem 0 --batch 1 --lr 0.001 --lr-warmup 0 --log-every 1 -q --backend ref --threads 1",
            golden(want->model));
        struct ran r = run_shell("sed -n 2p out.safetensors.train.csv | cut -d, -f7,9");
        cr_expect_eq(sscanf(r.out.data, "%lf,%lf", &loss, &norm), 2, "%s", r.out.data);
        cr_expect_float_eq(loss / want->loss, 1, want->magnified > 100 ? 10 * unit : unit,
                           "%s: loss %.9g", want->model, loss);
        cr_expect_float_eq(norm / want->norm, 1, want->magnified * unit, "%s: norm %.9g",
                           want->model, norm);
    }
}

static double loss_of(const char *ckpt)
{
    struct ran r =
        must_bench("eval --ckpt %s --tokens ids.bin --tokens-type uint16 --seq 16 --mem 0 --format "
                   "csv --columns nll_nats_per_token --backend ref --threads 1 -q",
                   ckpt);
    const char *const row = strchr(r.out.data, '\n');

    cr_assert_not_null(row, "%s", r.out.data);
    return strtod(row + 1, NULL);
}

/* A text that follows a rule is learnt, and a training that was stopped goes on to the same bits. */
Test(train_from, learns_and_resumes)
{
    const char *const path = golden("llama_gqa_bf16");
    struct lm a, b;

    write_ids("ids.bin", false);
    for (int parts = 1; parts <= 2; parts++)
        must_bench("train --from %s --tokens ids.bin --tokens-type uint16 --ckpt %d.safetensors "
                   "--steps 40 --stop-at %d" SHORT,
                   path, parts, 40 / parts);
    must_bench("train --ckpt 2.safetensors --resume --stop-at 40 -q");
    load_model(&a, in_folder("1.safetensors"));
    load_model(&b, in_folder("2.safetensors"));
    for (int k = 0; k < a.params.n; k++)
        cr_expect_arr_eq(a.params.v[k].data, b.params.v[k].data, a.params.v[k].n * sizeof(float),
                         "%s", a.params.v[k].name);
    /* Random weights know nothing of 60 ids that come in turn: more than log 60 at first. */
    cr_expect_gt(loss_of(path), 4.0);
    cr_expect_lt(loss_of("1.safetensors"), 3.0);
}

#define WORDS "<eos>\n<unk>\na\ntext\nof\nsome\nwords\n"
#define TEXT "a text of some words\nand of some other words\nwords of a text\na text\n"

/* The model's own tokenizer makes the tokens, and stands beside the new checkpoint. */
Test(train_from, keeps_the_tokenizer)
{
    published_copy("gpt2_plain");
    published_write("vocab.txt", WORDS, strlen(WORDS));
    folder_put_text("text.txt", TEXT TEXT TEXT TEXT);
    must_bench("train --from model --corpus text.txt --ckpt out.safetensors --steps 2 --seq 4 "
               "--batch 2 -q");
    expect_meta("out.safetensors", "unit", "word");
    expect_meta("out.safetensors", "source", "model");
    expect_meta("out.safetensors", "tokenizer", "out.safetensors.tokenizer");
    must_bench("eval --ckpt out.safetensors --corpus text.txt --seq 4 --mem 0 -q");
    must_bench("eval --ckpt out.safetensors.best --corpus text.txt --seq 4 --mem 0 -q");
    must_bench("train --ckpt out.safetensors --resume --steps 3 -q");
    must_bench("train --from out.safetensors --corpus text.txt --ckpt again.safetensors --steps 1 "
               "--seq 4 --batch 2 -q");
}

/* What the weights decide, and what lacks something, by the option's name. */
Test(train_from, refuses)
{
    static const struct {
        const char *more, *says;
    } wrong[] = {
        {"", "--corpus"},
        {" --tokens ids.bin --variant xl", "--variant"},
        {" --tokens ids.bin --layers 3", "--layers"},
        {" --tokens ids.bin --norm post", "--norm"},
        {" --tokens ids.bin --set tied=1", "--set"},
        {" --tokens ids.bin --init depth", "--init"},
        {" --tokens ids.bin --objective mlm", "--objective"},
        {" --tokens ids.bin --train-only foo", "foo"},
        {" --tokens ids.bin --corpus README.md", "--corpus"},
        {" --tokens ids.bin --seq 41", "40"}, /* positions */
        {" --corpus copy:lag=8,groups=2", "copy"},
        {" --tokens-type uint16 --corpus ids.bin", "--tokens-type"},
    };

    write_ids("ids.bin", true);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct ran r =
            run_bench("train --from %s --ckpt out.safetensors --mem 0%s%s", golden("gpt2_plain"),
                      strstr(wrong[i].more, "--seq") ? "" : " --seq 8", wrong[i].more);
        cr_expect_neq(r.code, 0, "%s", wrong[i].more);
        cr_expect(strstr(r.err.data, wrong[i].says), "%s: %s", wrong[i].more, r.err.data);
    }
    struct ran r = run_bench("train --tokens ids.bin --ckpt out.safetensors -V rope");
    cr_expect(r.code != 0 && strstr(r.err.data, "--from"), "%s", r.err.data);
}

/* ---- texts ---------------------------------------------------------------------------------- */

#define OURS " --steps 2 --batch 2 --seq 8 --threads 1 --pin none --backend ref -q --ckpt "

/* What was trained on a generated source goes on with it, now and when it is resumed, and with the
 * memory that it had. */
Test(train_from, goes_on_with_its_own_source)
{
    EACH_TEXT (source, "copy:lag=6,alphabet=4,groups=2", "copy:lag=9,alphabet=30",
               "recall:", "flipflop:") {
        must_bench("train --variant xl --layers 1 --d-model 16 --heads 2 --mem 6 --corpus %s" OURS
                   "a.safetensors --force",
                   source);
        must_bench("train --from a.safetensors" OURS "b.safetensors --force");
        expect_meta("b.safetensors", "corpus", source);
        expect_meta("b.safetensors", "mem", "6");
        must_bench("train --ckpt b.safetensors --resume --steps 4 -q");
        expect_meta("b.safetensors", "corpus", source);
    }
}

/* A text has the symbols of the model, and a validation text none beyond: refused by name before
 * anything is lost. The models have 8 symbols: of a source, and of ids without a tokenizer. */
Test(train_from, refuses_symbols_that_the_model_lacks)
{
    static const struct {
        const char *line;
        int code;
        const char *says;
    } lines[] = {
        {"--from a.safetensors", 0, ""},
        {"--from a.safetensors --corpus copy:lag=3,alphabet=8", 0, ""},
        {"--from a.safetensors --corpus copy:lag=3,alphabet=9", 7, "alphabet=9"},
        {"--from a.safetensors --corpus copy:lag=3,alphabet=7", 7, "alphabet=7"},
        {"--from a.safetensors --corpus text", 7, "text"},
        {"--from a.safetensors --valid copy:lag=3,alphabet=8", 0, ""},
        {"--from a.safetensors --valid copy:lag=3,alphabet=9", 2, "--valid"},
        {"--from a.safetensors --valid copy:lag=3,alphabet=7", 0, ""},
        {"--from a.safetensors --valid text", 2, "--valid"},
        {"--from a.safetensors --tokens eight.bin --tokens-type uint16", 0, ""},
        {"--from a.safetensors --tokens ids.bin --tokens-type uint16", 7, "ids.bin"},
        {"--from a.safetensors --tokens eight.bin --tokens-type uint16 --valid ids.bin", 7,
         "ids.bin"},
        {"--from ids.safetensors --corpus text", 7, "text"},
        {"--from ids.safetensors --corpus copy:lag=3,alphabet=9", 7, "alphabet=9"},
        {"--from bytes.safetensors --corpus text", 0, ""},
        {"--from bytes.safetensors --corpus text --valid copy:lag=3,alphabet=9", 0, ""},
        {"--from bytes.safetensors --corpus copy:lag=3,alphabet=9", 7, "alphabet=9"},
        {"-V xl --corpus copy:lag=3,alphabet=8 --valid copy:lag=3,alphabet=8", 0, ""},
        {"-V xl --corpus copy:lag=3,alphabet=8 --valid copy:lag=3,alphabet=9", 2, "--valid"},
        {"-V xl --corpus copy:lag=3,alphabet=8 --valid text", 2, "--valid"},
        {"-V bert --objective mlm --corpus copy:lag=3,alphabet=8 --valid copy:lag=3,alphabet=8", 0,
         ""},
        /* Its ninth symbol is that which hides others. */
        {"-V bert --objective mlm --corpus copy:lag=3,alphabet=8 --valid copy:lag=3,alphabet=9", 2,
         "--valid"},
        {"-V vanilla --objective seq2seq --corpus reverse:n=8,alphabet=8 --valid "
         "reverse:n=8,alphabet=8",
         0, ""},
        {"-V vanilla --objective seq2seq --corpus reverse:n=8,alphabet=8 --valid "
         "reverse:n=8,alphabet=9",
         2, "--valid"},
    };
    uint16_t eight[4000];

    for (size_t i = 0; i < ARRAY_LEN(eight); i++)
        eight[i] = i % 8;
    folder_put("eight.bin", eight, sizeof(eight));
    write_ids("ids.bin", false);
    folder_put_text("text", TEXT TEXT TEXT TEXT);
    must_bench(
        "train -V xl --layers 1 --d-model 16 --heads 2 --mem 6 --corpus copy:lag=3,alphabet=8" OURS
        "a.safetensors");
    must_bench("train -V xl --layers 1 --d-model 16 --heads 2 --mem 6 --corpus text" OURS
               "bytes.safetensors");
    must_bench("train --from a.safetensors --tokens eight.bin --tokens-type uint16" OURS
               "ids.safetensors");
    must_bench("train --from a.safetensors" OURS "b.safetensors");
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct ran r = run_shell(
            "mkdir -p was; cp b.safetensors* was; $BENCH train %s" OURS
            "b.safetensors --force; code=$?; cmp -s b.safetensors was/b.safetensors; same=$?; cmp "
            "-s b.safetensors.opt was/b.safetensors.opt; exit $((code * 4 + same * 2 + $?))",
            lines[i].line);
        cr_expect_eq(r.code / 4, lines[i].code, "%s: %d, %s", lines[i].line, r.code, r.err.data);
        cr_expect(lines[i].code == 0 || r.code % 4 == 0, "%s: a file has changed", lines[i].line);
        cr_expect(strstr(r.err.data, lines[i].says), "%s: %s", lines[i].line, r.err.data);
        cr_expect(lines[i].code == 0 || strstr(r.err.data, "  -> "), "%s", r.err.data);
    }
}
