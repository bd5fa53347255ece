/* SPDX-License-Identifier: MIT
 *
 * Models on disk: the meaning of metadata, and error texts that name the file and the key or
 * tensor. */
#include "tests/support/edited_file.h"
#include "tests/support/loaded.h"
#include "tests/support/model.h"
#include "tests/support/tmp_folder.h"

static enum status read_config(const char *path, struct config *c, struct err *e)
{
    const struct safetensors s = tensors_of(path);

    return checkpoint_config(&s, "param.", c, e);
}

static struct config golden_config(const char *name)
{
    struct config c;

    MUST(read_config(kept_text("tests/golden/%s.safetensors", name), &c, &failure));
    return c;
}

/* ---- what is read ------------------------------------------------------------------------- */

Test(checkpoint, sizes_and_defaults)
{
    const struct config c = golden_config("lm_gtrxl_gru");

    cr_expect(c.variant == variant_find("gtrxl") && c.gate == gate_find("gru"));
    cr_expect(c.wiring == WIRING_REORDER && c.pos == c.variant->pos);
    NUMBERS({c.H, 2}, {c.D, 12}, {c.dh, 6}, {c.F, 24}, {c.N, 2}, {c.V, 23}, {c.mem_len, 8},
            {c.max_seq, 6}, {c.window, 0}, {c.clamp_len, 0}, {c.scale, 1 / sqrtf(6), 1e-7f},
            {c.emb_scale, sqrtf(12), 1e-6f}, {c.ln_eps, 1e-5f});
    cr_expect(c.causal && c.tied && c.out_bias && !c.attn_bias && !c.final_ln && !c.same_length);
    cr_expect(!c.uv_per_layer, "u and v are the model's");
}

Test(checkpoint, choices_of_the_golden_files)
{
    cr_expect_eq(golden_config("att_xl_interleaved").sinusoid, SINUSOID_INTERLEAVED);
    cr_expect_eq(golden_config("att_xl_mem").sinusoid, SINUSOID_CONCAT);
    cr_expect(golden_config("att_xl_mem").uv_per_layer, "u and v are the layer's");
    cr_expect_gt(golden_config("att_xl_clamp").clamp_len, 0);
    cr_expect_gt(golden_config("att_xl_same").window, 0);
    cr_expect(golden_config("lm_xl_same_length").same_length);
    cr_expect(golden_config("att_vanilla_bias").attn_bias);
    cr_expect(!golden_config("att_shaw_bidir_seedform").causal);
    cr_expect(golden_config("att_shaw_perhead").rel_per_head);
    const struct config keys = golden_config("att_shaw_keyonly");
    cr_expect(keys.rel_k && !keys.rel_v);
    const struct config full = golden_config("att_shaw_fulltable");
    cr_expect_eq(full.rel_rows, 2 * full.clip + 1);
    cr_expect(!golden_config("lm_xl_pre_untied").tied);
    cr_expect_eq(golden_config("lm_xl_pre_untied").wiring, WIRING_PRE);
    cr_expect_eq(golden_config("lm_vanilla_layerpos").pos, pos_find("learned_layer"));
    cr_expect_eq(golden_config("lm_vanilla_post").pos, pos_find("sinusoid"));
}

static const char edited[] = "edited.safetensors";

/* A golden file with one key changed, as a config. */
static enum status edited_config(const char *name, const char *key, const char *value,
                                 struct config *c, struct err *e)
{
    edited_file(in_folder(edited), kept_text("tests/golden/%s.safetensors", name),
                &(struct edit){.key = key, .value = value});
    return read_config(in_folder(edited), c, e);
}

Test(checkpoint, keys_that_may_be_absent, .init = folder_make, .fini = folder_remove)
{
    const struct config want = golden_config("lm_xl_post");

    EACH_TEXT (key, "clip", "rel_rows", "clamp_len", "window", "scale", "tied", "causal",
               "sinusoid", "attn_bias", "emb_scale") {
        struct config c;
        MUST(edited_config("lm_xl_post", key, NULL, &c, &failure));
        NUMBERS_OF(key, {c.causal, want.causal}, {c.tied, want.tied}, {c.window, want.window},
                   {c.clip, want.clip}, {c.rel_rows, want.rel_rows}, {c.scale, want.scale, 1e-7f},
                   {c.emb_scale, want.emb_scale, 1e-6f});
    }
}

Test(checkpoint, longest_segment_decides, .init = folder_make, .fini = folder_remove)
{
    struct config c;

    MUST(edited_config("lm_vanilla_post", "seq", "6,17,8", &c, &failure));
    cr_expect_eq(c.max_seq, 17);
}

/* ---- what is refused ---------------------------------------------------------------------- */

Test(checkpoint, nonsense_names_its_key, .init = folder_make, .fini = folder_remove)
{
    static const struct {
        const char *key, *value, *text;
    } cases[] = {
        {"variant", "nothing", ": unknown variant \"nothing\"  -> see: bench list variants"},
        {"variant", NULL, ": unknown variant \"none\"  -> see: bench list variants"},
        {"norm", "rms", ": unknown norm \"rms\"  -> use the program that the file was made with"},
        {"gate", "lstm", ": unknown gate \"lstm\"  -> use the program that the file was made with"},
        {"pos", "rotary",
         ": unknown pos \"rotary\"  -> use the program that the file was made with"},
        {"scheme", "rotary",
         ": unknown scheme \"rotary\"  -> use the program that the file was made with"},
        {"mixer", "hyena",
         ": unknown mixer \"hyena\"  -> use the program that the file was made with"},
        {"exit_tau", "0.75", ": metadata exit_tau is \"0.75\", which variant shaw does not obey"},
        {"clamp_len", "3", ": metadata clamp_len is \"3\", which variant shaw does not obey"},
        {"rope_pairs", "thirds", ": unknown rope_pairs \"thirds\""},
        {"kv_heads", "3", ": shaw: --kv-heads 3 does not divide --heads 2  -> use a divisor"},
        {"sinusoid", "t2t",
         ": unknown sinusoid \"t2t\"  -> use the program that the file was made with"},
        {"gate", "gru", ": shaw: norm post with a gate  -> gates belong to norm reorder"},
        {"norm", "reorder", ": shaw: norm reorder without a gate"},
        {"rel_rows", "6", ": shaw: 6 table rows for clip 4  -> use 5 (causal) or 9 (full)"},
        {"clip", "-1", "clip"},
        {"clip", "4.5", "clip"},
        {"n_head", "0", "n_head"},
        {"n_head", "two", "n_head"},
        {"n_head", NULL, "n_head"},
        {"d_model", NULL, "d_model"},
        {"d_head", "0", "d_head"},
        {"n_layer", "0", "n_layer"},
        {"n_layer", "1000000", "n_layer"},
        {"vocab", "-5", "vocab"},
        {"causal", "2", "causal"},
        {"tied", "yes", "tied"},
        {"window", "-1", "window"},
        {"window", "2147483647", "window"},
        {"clip", "268435457", "clip"},
        {"clamp_len", "-1", "clamp_len"},
        {"max_pos", "2147483647", "max_pos"},
        {"rnn_layers", "5", "rnn_layers"},
        {"rnn_window", "0", "rnn_window"},
        {"emb_scale", "1e39", "emb_scale"},
        {"scale", "-1", "scale"},
        {"halt_eps", "1", "halt_eps"},
        {"masks", "block=2,random=5000", "mask"},
        {"mask_head", "1", "mask_head"},
        {"mem", "99999999999999999999", "mem"},
        {"mem", "2000000000", "mem"},
        {"scale", "fast", "scale"},
        {"ln_eps", "", "ln_eps"},
        {"seq", "8,x,8", ": seq \"8,x,8\" is not a list of lengths"},
        {"seq", "", ": seq \"\" is not a list of lengths"},
        {"seq", "0", ": seq \"0\" is not a list of lengths"},
        {"seq", "2000000000", ": seq \"2000000000\" is not a list of lengths"},
        {"seq", "8,", ": seq \"8,\" is not a list of lengths"},
        {"d_head", "1000000", ": n_head 2 of d_head 1000000 is too wide"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct config c;
        const bool rope = strncmp(cases[i].key, "rope", 4) == 0; /* has keys of its own */
        const char *const file = rope ? "lm_rope" : "lm_shaw_post";
        REFUSED(edited_config(file, cases[i].key, cases[i].value, &c, &failure), E_IO,
                in_folder(edited), cases[i].text);
    }
}

/* ---- tensors ------------------------------------------------------------------------------ */

static enum status load(const char *path, struct err *e)
{
    const struct safetensors s = tensors_of(path);
    struct config c;
    struct lm m;

    cr_assert_eq(checkpoint_config(&s, "param.", &c, e), OK, "%s", e->msg);
    place_model(&m, &c);
    const struct params *const p = &m.params;
    const enum status st = checkpoint_load(&s, "param.", &m.params, e);
    for (int i = 0; st == OK && i < p->n; i++) {
        const char *const name = kept_text("param.%s", p->v[i].name);
        const struct tensor *t = safetensors_find(&s, name);
        cr_expect_arr_eq(p->v[i].data, t->data, t->n * sizeof(float), "%s", name);
    }
    return st;
}

static const char shaw[] = "tests/golden/lm_shaw_post.safetensors";

Test(checkpoint, values_arrive) { MUST(load(shaw, &failure)); }

Test(checkpoint, wrong_tensors, .init = folder_make, .fini = folder_remove)
{
    static const struct {
        struct edit edit;
        const char *text;
    } cases[] = {
        {{.drop = "param.out.bias"}, "tensor \"param.out.bias\" missing (file is variant shaw)"},
        {{.rename = "param.out.bias", .new_name = "out.bias"},
         "tensor \"param.out.bias\" missing (file is variant shaw)"},
        {{.retype = "param.out.bias"}, "tensor \"param.out.bias\" is not F32 [29]"},
        {{.reshape = "param.embed.weight"}, "tensor \"param.embed.weight\" is not F32 [29,16]"},
        {{.key = "norm_kind", .value = "rms"}, "tensor \"param.layers.0.ln1.bias\""},
        {{.key = "tied", .value = "0"}, "tensor \"param.out.weight\""},
        {{.key = "out_bias", .value = "0"}, "tensor \"param.out.bias\""},
        {{.key = "n_layer", .value = "1"}, "tensor \"param.layers.1."},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *const path = in_folder(edited);
        edited_file(path, shaw, &cases[i].edit);
        REFUSED(load(path, &failure), E_IO, path, cases[i].text);
    }
}

/* ---- there and back ----------------------------------------------------------------------- */

/* A file of a model with weights from the seed. */
static struct safetensors saved_model(struct model *m, const struct config *c)
{
    const struct provenance from = {.unit = "byte", .seed = 3};
    const char *const path = in_folder("model.safetensors");

    model_open(m, c, "ref", 1, MEM_NONE, (struct extent){1, 6, 0});
    MUST(checkpoint_save(path, c, &m->lm.params, &from, &failure));
    return tensors_of(path);
}

/* A saved model reads as the same model, with the same logits to the last bit. Every number of it by
 * itself: test_keys.c. */
static void there_and_back(const struct config *c)
{
    struct model m, n;
    struct config back;
    const struct safetensors s = saved_model(&m, c);

    MUST(checkpoint_config(&s, "", &back, &failure));
    cr_expect(back.variant == c->variant && back.mem_len == 4 && back.max_seq == 6);
    model_open(&n, &back, "ref", 1, MEM_NONE, (struct extent){1, 6, 0});
    for (int i = 0; i < n.lm.params.n; i++)
        n.lm.params.v[i].data[0] = NAN;
    MUST(checkpoint_load(&s, "", &n.lm.params, &failure));
    float *want = model_stream(&m, 0, 1, 6, 6), *got = model_stream(&n, 0, 1, 6, 6);
    cr_expect_arr_eq(got, want, (size_t)(6 * c->V) * sizeof(float), "%s", c->variant->name);
}

/* A key of another part, one that means nothing here, and a gate where there is none. */
Test(checkpoint, keys_that_nothing_obeys, .init = folder_make, .fini = folder_remove)
{
    static const char *const keys[][2] = {
        {"rope_base", "500"}, {"features", "8"}, {"wiring", "pre"}, {"out_gate", "sigmoid"}};
    struct config c = config_default(variant_find("rwkv6"), 12, 2, 6, 24, 2, 23);
    struct config back;
    struct model m;

    c.max_seq = 6;
    (void)saved_model(&m, &c);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        edited_file(in_folder(edited), in_folder("model.safetensors"),
                    &(struct edit){.key = keys[i][0], .value = keys[i][1]});
        const struct safetensors s = tensors_of(in_folder(edited));
        REFUSED(checkpoint_lm(&s, &back, &failure), E_IO, keys[i][0]);
    }
}

/* The gate of an output is a choice: a model may have another than its variant's own. */
Test(checkpoint, gates_that_an_option_chooses, .init = folder_make, .fini = folder_remove)
{
    static const struct {
        const char *variant;
        enum out_gate gate;
    } chosen[] = {
        {"vanilla", OUT_GATE_ELEMENTWISE}, {"gdn", OUT_GATE_SIGMOID}, {"gla", OUT_GATE_NONE}};

    for (size_t i = 0; i < ARRAY_LEN(chosen); i++) {
        struct config c = config_default(variant_find(chosen[i].variant), 12, 2, 6, 24, 2, 23),
                      back;
        struct model m;
        c.max_seq = 6;
        c.out_gate = chosen[i].gate;
        const struct safetensors s = saved_model(&m, &c);
        cr_expect_eq(checkpoint_lm(&s, &back, &failure), OK, "%s", failure.msg);
        cr_expect_eq(back.out_gate, chosen[i].gate, "%s", chosen[i].variant);
    }
}

Test(checkpoint, saved_models_read_the_same, .init = folder_make, .fini = folder_remove,
     .timeout = 240)
{
    struct form list[WIRINGS];
    const size_t n = all_wirings(list, false);

    for (size_t i = 0; i < n; i++)
        for (int turn = 0; turn < 4; turn++) {
            if (!sampled(i + (size_t)turn, 2))
                continue;
            struct config c = wired(&list[i], turn + 4 * (int)(i % 2));
            c.max_seq = 6;
            c.mem_len = 4;
            choose_where_it_can(&c, &c.clamp_len, turn == 1 ? 2 : 0);
            choose_where_it_can(&c, &c.window, turn == 2 ? 3 : 0);
            c.out_bias = turn != 3;
            c.sinusoid = turn == 2 ? SINUSOID_INTERLEAVED : SINUSOID_CONCAT;
            c.scale *= 1 + 0.1f * (float)turn;
            const struct pos *const own = c.pos;
            if (turn == 3 && !variant_mem(c.variant)->recurrent && !c.mixer)
                c.pos = pos_find("learned_layer");
            if (config_check(&c, NULL) != OK)
                c.pos = own;
            there_and_back(&c);
        }
}
