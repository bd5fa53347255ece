/* SPDX-License-Identifier: MIT
 *
 * Products of low rank: trained, written for peft, read from it, merged. */
#include "tests/support/loaded.h"
#include "tests/support/program.h"
#include "tests/support/published_folder.h"
#include "tests/support/words.h"
#include "variants/model/import/adapter.h"

/* Of the golden files, while the test is in a folder of its own. */
static char source[FILE_PATH];
static void begin(void)
{
    cr_assert_not_null(getcwd(source, sizeof(source)));
    folder_make();
}

TestSuite(lora, .init = begin, .fini = folder_remove, .timeout = 240);

#define FROM "\"$SRC\"/" PUBLISHED "/"
#define SHORT                                                                                      \
    " --tokens ids.bin --valid ids.bin --seq 16 --mem 0 --batch 1 --lr 0.001 --lr-warmup 0 "       \
    "--schedule constant --grad-clip 0 --log-every 1 -q --backend ref --threads 1 --force "
#define EVAL                                                                                       \
    "eval --tokens ids.bin --seq 16 --mem 0 --backend ref -q --format csv --columns "              \
    "nll_nats_per_token --out r "

static double loss_of(const char *options)
{
    struct ran r = must_bench(EVAL "%s", options);
    const char *const row = strchr(r.out.data, '\n');

    cr_assert_not_null(row, "%s", r.out.data);
    return strtod(row + 1, NULL);
}

static void load_adapted(struct lm *m, const char *model, const char *adapter)
{
    struct weights w;

    MUST(weights_open_adapted(&w, kept_text("%s/" PUBLISHED "/%s", source, model), adapter,
                              &failure));
    place_model(m, &w.config);
    MUST(weights_load(&w, &m->params, &failure));
    weights_close(&w);
}

/* The checkpoint is the published model with its adapter; what has none, such as the output, has the published
 * bits. */
static void check_merged(const char *model)
{
    struct lm before, with, after;
    int adapted = 0;

    load_adapted(&before, model, NULL);
    load_adapted(&with, model, in_folder("out"));
    load_model(&after, in_folder("t.safetensors"));
    for (int k = 0; k < before.params.n; k++) {
        const struct param *const x = &before.params.v[k], *const y = &after.params.v[k];
        const float *const want = with.params.v[k].data;
        const bool moved = memcmp(x->data, y->data, x->n * sizeof(float)) != 0;
        adapted += moved;
        cr_expect_eq(moved, memcmp(x->data, want, x->n * sizeof(float)) != 0, "%s: %s", model,
                     x->name);
        cr_expect(!moved || x->group == PARAM_MATRICES, "%s: %s moved", model, x->name);
        for (size_t i = 0; i < x->n; i++)
            cr_assert_float_eq((double)y->data[i], (double)want[i], 1e-6, "%s: %s [%zu]", model,
                               x->name, i);
    }
    cr_expect_gt(adapted, 3, "%s", model);
}

/* Of maps that are stored alone, joined with others, transposed, by heads; wrapped with images. */
Test(lora, is_merged_and_read_again)
{
    static const char models[] = "llama_gqa_bf16 gpt2_plain phi3_long neox_serial qwen3_next "
                                 "deepseek_v2 gemma3_images mamba2 lfm2 txl_original_keys";

    put_ids();
    for (char **model = words_of(models); *model; model++) {
        must_bench("train --from " FROM
                   "%s --lora r=3,alpha=5 --steps 3 --ckpt t.safetensors" SHORT,
                   *model);
        must_bench("export --to peft out --force --ckpt t.safetensors");
        check_merged(*model);
        const double trained = loss_of("--ckpt t.safetensors");
        const double base = loss_of(kept_text("--ckpt " FROM "%s", *model));
        const double read = loss_of(kept_text("--lora out --ckpt " FROM "%s", *model));
        cr_expect_float_eq(read / trained, 1, 1e-6, "%s: %.9g, trained %.9g", *model, read,
                           trained);
        cr_expect(fabs(base / trained - 1) > 1e-5, "%s: nothing was trained", *model);
    }
    const char *const hash = "%s --columns checkpoint_xxh3 --ckpt " FROM "txl_original_keys %s";
    cr_expect_str_neq(must_bench(hash, EVAL, "").out.data,
                      must_bench(hash, EVAL, "--lora out").out.data,
                      "scores of the two would be taken for one another");
    must_bench("export --to hf whole --ckpt " FROM "txl_original_keys --lora out -q");
    cr_expect_float_eq(loss_of("--ckpt whole") / loss_of("--ckpt t.safetensors"), 1, 1e-6);
}

/* Loss and norm of three steps of AdamW from the same A, by peft 0.21.2 and transformers 5.24.0 in double precision
 * (scripts/crosscheck/lora.py, with this text). */
Test(lora, steps_are_those_of_peft)
{
    static const struct {
        const char *model;
        double loss[3], norm[3];
    } by_peft[] = {
        {"llama_gqa_bf16",
         {6.67437061, 6.03214934, 6.33326218},
         {3.15653987, 1.46561051, 2.25081016}},
        {"olmo2", {4.46747986, 4.43107696, 4.76527683}, {1.16601214, 2.18309747, 2.56226522}},
        /* several of ours in one published map; transposed */
        {"phi3_long", {4.41066927, 4.47056128, 4.58593488}, {1.55075488, 1.45973497, 1.45769164}},
        {"gpt2_plain", {7.76971055, 7.17449342, 8.465032}, {1.88471956, 1.53588138, 1.65869271}},
    };

    put_ids();
    for (size_t i = 0; i < ARRAY_LEN(by_peft); i++) {
        must_bench("train --from " FROM
                   "%s --lora r=3,alpha=5,on=layers.* --steps 3 --ckpt t.safetensors" SHORT,
                   by_peft[i].model);
        struct rows rows = must_read_table(in_folder("t.safetensors.train.csv"), TABLE_TRAIN);
        const struct train_row *const row = rows.row;
        for (int n = 0; n < 3; n++) {
            cr_expect_float_eq(row[n].loss_nats / by_peft[i].loss[n], 1, 2e-6, "%s: loss %.9g",
                               by_peft[i].model, row[n].loss_nats);
            cr_expect_float_eq(row[n].grad_norm / by_peft[i].norm[n], 1, 2e-6, "%s: norm %.9g",
                               by_peft[i].model, row[n].grad_norm);
        }
        rows_free(&rows);
    }
}

/* A is drawn from the seed. */
Test(lora, begins_from_the_seed)
{
    put_ids();
    for (int seed = 1; seed <= 2; seed++) {
        must_bench("train --from " FROM
                   "llama_gqa_bf16 --lora r=2 --steps 1 --seed %d --ckpt t.safetensors" SHORT,
                   seed);
        must_bench("export --to peft a%d --ckpt t.safetensors", seed);
    }
    must_shell("! cmp -s a1/" ADAPTER_TENSORS " a2/" ADAPTER_TENSORS);
}

/* Stopped and resumed, alpha and maps by default, Muon and decay with it. */
Test(lora, resumes)
{
    put_ids();
    must_bench("train --from " FROM
               "llama_gqa_bf16 --lora r=2,on=layers.1.*,on=out* --optimizer muon "
               "--weight-decay 0.1 --steps 4 --ckpt t.safetensors" SHORT);
    must_bench("train --from " FROM
               "llama_gqa_bf16 --lora r=2,on=layers.1.*,on=out* --optimizer muon "
               "--weight-decay 0.1 --steps 2 --ckpt u.safetensors" SHORT);
    must_bench("train --resume --ckpt u.safetensors --steps 4 -q");
    must_shell("cmp t.safetensors u.safetensors");
    bench_exits(2, "cannot resume u.safetensors: made with another --lora  -> give",
                "train --resume --ckpt u.safetensors --steps 5 --lora r=2 -q");
    bench_exits(
        2, "made with --lora r=2,on=layers.1.*,on=out*, now r=2,alpha=3,on=layers.1.*,on=out*",
        "train --resume --ckpt u.safetensors --steps 5 --lora r=2,alpha=3,on=layers.1.*,on=out* "
        "-q");
    struct safetensors s = tensors_of(in_folder("t.safetensors"));
    int n = 0;
    for (int i = 0; i < s.n_tensors; i++)
        if (strstr(s.tensors[i].name, ".lora_")) {
            cr_expect(text_begins(s.tensors[i].name, "model.layers.1.") ||
                          text_begins(s.tensors[i].name, "lm_head"),
                      "%s", s.tensors[i].name);
            n++;
        }
    cr_expect_eq(n, 16, "%d", n);
    cr_expect_str_eq(safetensors_meta(&s, "lora_alpha"), "4"); /* twice r */
    /* Muon, which has one moment, steps them */
    s = tensors_of(in_folder("t.safetensors.opt"));
    cr_expect(safetensors_find(&s, "m.model.layers.1.self_attn.q_proj.lora_A"));
    cr_expect_null(safetensors_find(&s, "v.model.layers.1.self_attn.q_proj.lora_A"));
}

/* ---- adapters of others -------------------------------------------------------------------- */

static struct tensor tensor(const char *name, int rows, int columns)
{
    struct tensor t = {.dtype = DTYPE_F32,
                       .rank = 2,
                       .shape = {rows, columns},
                       .n = (size_t)rows * (size_t)columns};
    float *const x = kept(calloc(t.n, sizeof(*x)));

    for (size_t i = 0; i < t.n; i++)
        x[i] = (float)((double)(i * 7 % 11) / 50 - 0.1);
    t.data = x;
    snprintf(t.name, sizeof(t.name), "base_model.model.%s.weight", name);
    return t;
}

/* An adapter of these tensors, its config a patch of an usual one. */
static void put_adapter(const struct tensor *t, int n, const char *patch)
{
    json_t *const config =
        json_pack("{s:s, s:f, s:i}", "peft_type", "LORA", "lora_alpha", 6.0, "r", 2);
    json_t *const more = json_loads(patch, 0, NULL);

    cr_assert_not_null(more, "%s", patch);
    json_object_update(config, more);
    must_shell("mkdir -p a");
    MUST(safetensors_write(in_folder("a/" ADAPTER_TENSORS), t, n, NULL, 0, &failure));
    cr_assert_eq(json_dump_file(config, in_folder("a/" ADAPTER_CONFIG), 0), 0);
    json_decref(config);
    json_decref(more);
}

/* The change of a parameter that the tensors' product, by this scale, makes of rows from `first` on. */
static void check_change(const char *model, const char *param, const struct tensor *t, double scale,
                         int first)
{
    struct lm before, after;

    load_adapted(&before, model, NULL);
    load_adapted(&after, model, in_folder("a"));
    for (int k = 0; k < before.params.n; k++) {
        const struct param *const x = &before.params.v[k], *const y = &after.params.v[k];
        const float *const a = t[0].data, *const b = t[1].data;
        const bool told = strcmp(x->name, param) == 0;
        cr_expect(told || first || memcmp(x->data, y->data, x->n * sizeof(float)) == 0, "%s moved",
                  x->name);
        for (int i = 0, in = told ? x->shape[1] : 0; told && i < (int)x->n; i++) {
            double sum = 0;
            for (int r = 0; r < t[0].shape[0]; r++)
                sum += (double)b[(first + i / in) * t[0].shape[0] + r] * (double)a[r * in + i % in];
            cr_assert_float_eq((double)(y->data[i] - x->data[i]), scale * sum, 2e-6, "%s [%d]",
                               x->name, i);
        }
    }
}

Test(lora, scales_and_places)
{
    struct lm m;
    load_adapted(&m, "llama_gqa_bf16", NULL);
    const struct param *const q = params_find(&m.params, "layers.0.attn.q.weight");
    const int D = q->shape[1], out = q->shape[0];
    const struct tensor t[] = {tensor("model.layers.0.self_attn.q_proj.lora_A", 2, D),
                               tensor("model.layers.0.self_attn.q_proj.lora_B", out, 2)};
    static const struct {
        const char *patch;
        double scale;
    } of[] = {
        {"{}", 3},
        {"{\"use_rslora\": true}", 6 / M_SQRT2},
        {"{\"alpha_pattern\": {\"k_proj\": 1, \"q_proj\": 4, \".*\": 9}}", 2},
        {"{\"alpha_pattern\": {\"layers\\\\.1\\\\.self_attn.q_proj\": 4, \"layers.0.*\": 10}}", 5},
        {"{\"alpha_pattern\": {\"_proj\": 4, \"roj\": 8}, \"use_dora\": false}", 3},
        {"{\"alora_invocation_tokens\": null, \"init_lora_weights\": \"gaussian\", \"r\": 9}", 3},
    };

    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        put_adapter(t, 2, of[i].patch);
        check_change("llama_gqa_bf16", q->name, t, of[i].scale, 0);
    }
    /* one published map that three of ours are rows of; one that is transposed */
    load_adapted(&m, "phi3_long", NULL);
    const struct param *const v = params_find(&m.params, "layers.1.attn.v.weight");
    const struct param *const k = params_find(&m.params, "layers.1.attn.k.weight");
    const int rows = params_find(&m.params, "layers.1.attn.q.weight")->shape[0] + k->shape[0];
    const struct tensor joined[] = {
        tensor("model.layers.1.self_attn.qkv_proj.lora_A", 1, v->shape[1]),
        tensor("model.layers.1.self_attn.qkv_proj.lora_B", rows + v->shape[0], 1)};
    put_adapter(joined, 2, "{}");
    check_change("phi3_long", v->name, joined, 6, rows);
    load_adapted(&m, "gpt2_plain", NULL);
    const struct param *const ff = params_find(&m.params, "layers.0.ff.1.weight");
    const struct tensor turned[] = {tensor("transformer.h.0.mlp.c_fc.lora_A", 2, ff->shape[1]),
                                    tensor("transformer.h.0.mlp.c_fc.lora_B", ff->shape[0], 2)};
    put_adapter(turned, 2, "{\"fan_in_fan_out\": true}");
    check_change("gpt2_plain", ff->name, turned, 3, 0);
}

Test(lora, refuses)
{
    struct tensor t[] = {tensor("model.layers.0.self_attn.q_proj.lora_A", 2, 32),
                         tensor("model.layers.0.self_attn.q_proj.lora_B", 32, 2),
                         tensor("model.layers.0.self_attn.q_proj.lora_magnitude_vector", 2, 2)};
    struct lm m;

    put_ids();
    load_adapted(&m, "llama_gqa_bf16", NULL);
    t[0] = tensor("model.layers.0.self_attn.q_proj.lora_A", 2, m.c.D);
    t[1] = tensor("model.layers.0.self_attn.q_proj.lora_B", m.c.H * m.c.dh, 2);
#define TRAIN "train --from " FROM "llama_gqa_bf16 --ckpt t.safetensors" SHORT
#define READ EVAL "--ckpt " FROM "llama_gqa_bf16 --lora a"
    bench_exits(
        2,
        "--lora trains what it adds to the maps of --from, and no more  -> leave --train-only out",
        TRAIN "--lora r=2 --train-only '*'");
    bench_exits(2, "and no more  -> add --from MODEL",
                "train --ckpt t.safetensors --lora r=2 --corpus ids.bin --variant xl");
    bench_exits(2, "--lora rank=2: no such word  -> --lora r=8,alpha=16,on=PATTERN",
                TRAIN "--lora rank=2");
    bench_exits(2, "--lora r \"0\"", TRAIN "--lora r=0");
    bench_exits(2, "--lora alpha 0 is too small", TRAIN "--lora alpha=0");
    bench_exits(2, "--lora on=\"layers.9.*\" covers no parameter",
                TRAIN "--lora on=layers.0.*,on=layers.9.*");
    bench_exits(6, "--lora: no map to adapt", TRAIN "--lora 'on=*ln*'");
    bench_exits(7, "cannot open", READ);
    put_adapter(t, 1, "{}");
    bench_exits(7, "lacks lora_A or lora_B", READ);
    put_adapter(t, 3, "{}");
    bench_exits(7, "q_proj.lora_magnitude_vector.weight belongs to no map of the model", READ);
    put_adapter(t, 2, "{\"peft_type\": \"LOHA\"}");
    bench_exits(7, "peft_type is not LORA", READ);
    put_adapter(t, 2, "{\"lora_alpha\": \"x\"}");
    bench_exits(7, "lora_alpha is not a positive number", READ);
    put_adapter(t, 2, "{\"layer_replication\": [[0, 1]]}");
    bench_exits(7, "layer_replication is more than products that are added", READ);
    put_adapter(t, 2, "{\"init_lora_weights\": \"pissa\"}");
    bench_exits(7, "init_lora_weights belongs to weights that it has changed", READ);
    static const char *const patterns[] = {"{\"\\\\d\": 1}", "{\"(?!k)_proj\": 1}", "{\"(q\": 1}",
                                           "{\"q_proj\": \"x\"}"};
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        put_adapter(t, 2, kept_text("{\"alpha_pattern\": %s}", patterns[i]));
        bench_exits(7, "alpha_pattern has a pattern that is not read, or no number", READ);
    }
    ((float *)t[1].data)[3] = NAN;
    put_adapter(t, 2, "{}");
    bench_exits(7, "has a product that is not finite", READ);
    t[1] = tensor("model.layers.0.self_attn.q_proj.lora_B", m.c.H * m.c.dh - 1, 2);
    put_adapter(t, 2, "{}");
    bench_exits(7, "has lora_A or lora_B of another shape", READ);
    bench_exits(6, "model.gguf is not one  -> use the folder",
                EVAL "--lora a --ckpt " FROM "gguf_llama_q4_0/model.gguf");
    must_bench("import " FROM "llama_gqa_bf16 --ckpt i.safetensors -q");
    bench_exits(6, "i.safetensors is not one  -> use the folder",
                EVAL "--lora a --ckpt i.safetensors");
    bench_exits(7, "has no products of low rank  -> bench train --lora",
                "export --to peft out --ckpt i.safetensors");
    static const char *const unnamed[] = {"i.safetensors",
                                          "\"$SRC\"/" PUBLISHED "/gguf_llama_q4_0/model.gguf"};
    for (size_t i = 0; i < ARRAY_LEN(unnamed); i++) {
        must_bench("train --from %s --ckpt t.safetensors --lora r=2 --steps 1" SHORT, unnamed[i]);
        bench_exits(7, "is by a name of ours  -> train --from the folder that was published",
                    "export --to peft out --ckpt t.safetensors");
    }
    bench_exits(6, "--lora on=..: layers.0.attn.decay_a.weight is not of one map of the file",
                "train --from " FROM
                "rwkv7 --ckpt t.safetensors --lora on=layers.0.attn.decay_a*" SHORT);
    bench_exits(2, "export --to json does not take --lora  -> leave it out", "export --lora a");
    bench_exits(2, "export --to peft needs a model", "export --to peft out");
    bench_exits(2, "export --to peft does not take --from  -> leave it out",
                "export --to peft out --ckpt t.safetensors --from x");
    must_shell("mkdir out; echo >out/" ADAPTER_CONFIG);
    bench_exits(7, "exists  -> --force overwrites it", "export --to peft out --ckpt t.safetensors");
    must_bench("train --variant vanilla --task tmaze:len=4 --ckpt task --steps 1 --seq 4 --batch 2 "
               "--layers 1 --d-model 16 --heads 2 -q");
    bench_exits(2, "--lora does not apply to eval of a task", "eval --ckpt task --lora a");
    bench_exits(2, "--lora does not apply to an episode of a task",
                "generate --ckpt task --lora a");
}
