/* SPDX-License-Identifier: MIT
 *
 * Golden files whose metadata says anything: each key of each kind of file, removed or with a value
 * that it cannot have, or that nothing else in the file agrees with; each tensor missing; sizes
 * whose products no int holds. Such a file runs, or is refused by its name; it stops nothing. */
#include "harness/check/golden.h"
#include "tests/support/each.h"
#include "tests/support/edited_file.h"
#include "tests/support/loaded.h"
#include "tests/support/tmp_folder.h"
#include "tests/support/words.h"

static void ignore(void *arg, const struct verdict *v) { (void)arg, (void)v; }

static void survive_edit(const struct engine *g, const char *from, const struct edit *edit)
{
    struct tally t = {0};
    struct err e = {""};

    const char *const path = in_folder("edited.safetensors");
    edited_file(path, from, edit);
    const enum status st = golden_run(g, path, &t, ignore, NULL, &e);
    cr_expect(st == OK || (st == E_IO && strstr(e.msg, path)), "%s with %s=%s, without %s: %s",
              from, edit->key ? edit->key : "", edit->value ? edit->value : "(removed)",
              edit->drop ? edit->drop : "nothing", e.msg);
}

static void survive(const struct engine *g, const char *from, const char *key, const char *value)
{
    survive_edit(g, from, &(struct edit){.key = key, .value = value});
}

/* Keys that nothing is made from. */
static bool describes(const char *key)
{
    static const char words[] =
        "generator margin mean_nll total_nll ppl n_tokens name grad_loss round form";

    return is_word_of(words, key) || strncmp(key, "tolerance", 9) == 0;
}

/* One file of each kind, and of those that have keys of their own. */
static const char *const files[] = {
    "att_xl_mem",    "att_shaw_mem",
    "att_tupe_rel",  "att_deberta",
    "mask_bigbird",  "span_xl",
    "favor_state",   "synth_dense",
    "lm_gtrxl_gru",  "lm_compressive_conv",
    "lm_ut_act",     "lm_delight",
    "lm_sandwich",   "lm_vanilla_layerpos",
    "moe_top2",      "norm_rms",
    "dextra_paper",  "rnn_plain_tail",
    "funnel_causal", "rec_mlstm",
    "rec_bonus",     "predictive_evolving",
};

static struct safetensors one_file(int n, struct engine *g, char path[FILE_PATH])
{
    snprintf(path, FILE_PATH, "tests/golden/%s.safetensors", files[n]);
    MUST(engine_open(g, "ref", 1, NULL, &failure));
    return tensors_of(path);
}

static struct criterion_test_params each_file(void) { return every_number(ARRAY_LEN(files)); }

TEST_EACH(int *file, golden_hostile, any_key_may_say_anything, each_file(), .init = folder_make,
          .fini = folder_remove, .timeout = 120)
{
    /* Keys that most files lack. */
    static const char *const further[] = {"span_ramp", "talking", "persistent", "masks", "mixer",
                                          "steps",     "ut",      "order",      "blocks"};
    char path[FILE_PATH];
    struct engine g;
    const struct safetensors s = one_file(*file, &g, path);

    EACH_TEXT (word, NULL, "-1", "0", "3", "65536", "2147483647") {
        for (int i = 0; i < s.n_meta; i++)
            if (!describes(s.meta[2 * i]))
                survive(&g, path, s.meta[2 * i], word);
        for (size_t i = 0; i < ARRAY_LEN(further); i++)
            survive(&g, path, further[i], word);
    }
    for (int i = 0; variants[i]; i++)
        survive(&g, path, "variant", variants[i]->name);
    for (int i = 0; positions[i]; i++)
        survive(&g, path, "scheme", positions[i]->name);
    for (int i = 0; mixers[i]; i++)
        survive(&g, path, "mixer", mixers[i]->name);
}

TEST_EACH(int *file, golden_hostile, any_tensor_may_be_missing, each_file(), .init = folder_make,
          .fini = folder_remove, .timeout = 120)
{
    char path[FILE_PATH];
    struct engine g;
    const struct safetensors s = one_file(*file, &g, path);

    for (int i = 0; i < s.n_tensors; i++)
        survive_edit(&g, path, &(struct edit){.drop = s.tensors[i].name});
}

/* ---- sizes whose product no int holds ------------------------------------------------------ */

/* A file of attention of one head of width 1 over `seq` tokens. */
static enum status run_of_length(int seq, struct err *e)
{
    enum { LONGEST = 1 << 16 };
    static const float x[LONGEST], one = 1;
    const struct tensor tensors[] = {
        {"in.x", DTYPE_F32, 3, {1, seq, 1}, (size_t)seq, x, "", 0},
        {"param.attn.q.weight", DTYPE_F32, 2, {1, 1}, 1, &one, "", 0},
        {"param.attn.k.weight", DTYPE_F32, 2, {1, 1}, 1, &one, "", 0},
        {"param.attn.v.weight", DTYPE_F32, 2, {1, 1}, 1, &one, "", 0},
        {"param.attn.o.weight", DTYPE_F32, 2, {1, 1}, 1, &one, "", 0},
        {"out.y", DTYPE_F32, 3, {1, seq, 1}, (size_t)seq, x, "", 0},
    };
    char length[16];
    const char *const meta[][2] = {
        {"kind", "attention"}, {"variant", "vanilla"}, {"scheme", "none"}, {"norm", "none"},
        {"n_head", "1"},       {"d_model", "1"},       {"d_head", "1"},    {"d_inner", "0"},
        {"n_layer", "1"},      {"batch", "1"},         {"gate", "none"},   {"seq", length},
    };
    struct engine g;
    struct tally t = {0};

    snprintf(length, sizeof(length), "%d", seq);
    const char *const path = in_folder("large.safetensors");
    cr_assert_eq(
        safetensors_write(path, tensors, ARRAY_LEN(tensors), *meta, (int)ARRAY_LEN(meta), e), OK,
        "%s", e->msg);
    cr_assert_eq(engine_open(&g, "ref", 1, NULL, e), OK, "%s", e->msg);
    return golden_run(&g, path, &t, ignore, NULL, e);
}

/* 256 KiB of numbers, and 2^32 pairs of a query and a key. */
Test(golden_large, more_pairs_than_an_int_counts, .init = folder_make, .fini = folder_remove,
     .timeout = 240)
{
    MUST(run_of_length(8, &failure));
    REFUSED(run_of_length(1 << 16, &failure), E_IO, "large.safetensors");
}
