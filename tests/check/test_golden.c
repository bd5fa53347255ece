/* SPDX-License-Identifier: MIT
 *
 * Golden files through every usable backend, every expected tensor accounted for; and a wrong file,
 * or a wrong number in it, does not pass. */
#include "golden_run.h"
#include "tests/support/every_backend.h"

#include <dirent.h>

enum { FILES_MAX = 512, FILES_AT_LEAST = 290 };
static const char golden[] = "tests/golden";

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int golden_files(char *paths[FILES_MAX])
{
    DIR *const dir = opendir(golden);
    int n = 0;

    cr_assert(dir, "no %s: run from the top of the repository", golden);
    for (const struct dirent *d; (d = readdir(dir)) && n < FILES_MAX;)
        if (strstr(d->d_name, ".safetensors"))
            paths[n++] = kept(need_text("%s/%s", golden, d->d_name));
    closedir(dir);
    qsort(paths, (size_t)n, sizeof(*paths), by_name);
    cr_assert_geq(n, FILES_AT_LEAST, "%d golden files", n);
    return n;
}

/* ---- all of them -------------------------------------------------------------------------- */

/* What a file expects, tensors and numbers; gradients are counted separately. */
static void expected(const char *path, int *values, int *gradients)
{
    const struct safetensors s = tensors_of(path);

    *values = *gradients = 0;
    for (int i = 0; i < s.n_tensors; i++) {
        if (strncmp(s.tensors[i].name, "out.grad.", 9) == 0)
            (*gradients)++;
        else if (strncmp(s.tensors[i].name, "out.", 4) == 0 ||
                 strcmp(s.tensors[i].name, "in.slopes") == 0)
            (*values)++;
    }
    *values += safetensors_meta(&s, "total_nll") != NULL;
}

TEST_EACH(int *b, golden, every_file_on_every_backend, every_backend(), .timeout = 120)
{
    char *paths[FILES_MAX];
    const int n = golden_files(paths);

    for (int i = 0; i < n; i++)
        for (int threads = 1; threads <= 2; threads++) {
            struct seen s;
            int values, gradients;
            expected(paths[i], &values, &gradients);
            MUST(run_golden(backends[*b]->name, threads, paths[i], &s));
            const struct tally *const t = &s.t;
            cr_expect_eq(t->failed, 0, "%s: %s", paths[i], s.first);
            cr_expect(t->files == 1 && s.n == t->tensors && s.failed == t->failed);
            NUMBERS_OF(paths[i], {t->tensors, values + gradients});
            cr_expect(t->passed >= values && t->passed + t->skipped == t->tensors);
        }
}

/* ---- what must not pass ------------------------------------------------------------------- */

static enum status run_edited(const char *file, struct edit d, const char **path, struct seen *s)
{
    const char *const from = kept_text("%s/%s", golden, file);
    *path = in_folder("edited.safetensors");
    edited_file(*path, from, &d);
    return run_golden("ref", 1, *path, s);
}

static int failures(const char *file, struct edit d, struct seen *s)
{
    const char *path;

    MUST(run_edited(file, d, &path, s));
    return s->t.failed;
}

Test(golden, a_changed_number_is_caught, .init = folder_make, .fini = folder_remove)
{
    static const float by[] = {0.01f, -0.01f, NAN};
    static const struct {
        const char *file, *tensor;
        size_t at;
    } cases[] = {
        {"att_xl_mem.safetensors", "out.y", 0},
        {"att_xl_mem.safetensors", "out.probs", 5},
        {"lm_shaw_post.safetensors", "out.logits.1", 3},
        {"lm_gtrxl_gru.safetensors", "out.nll.0", 1},
        {"lm_xl_post.safetensors", "out.mem.1.0", 2},
    };
    struct seen s;

    for (size_t i = 0; i < ARRAY_LEN(by) * ARRAY_LEN(cases); i++) {
        const size_t c = i / ARRAY_LEN(by);
        const struct edit d = {
            .nudge = cases[c].tensor, .at = cases[c].at, .by = by[i % ARRAY_LEN(by)]};
        cr_expect_eq(failures(cases[c].file, d, &s), 1, "%s %s: %d tensors failed", cases[c].file,
                     d.nudge, s.t.failed);
        cr_expect_str_eq(s.first, d.nudge);
    }
}

static void expect_difference(const char *file, struct edit d)
{
    struct seen s;

    cr_expect_gt(failures(file, d, &s), 0, "%s: %s%s makes no difference", file,
                 d.nudge ? d.nudge : "", d.key ? d.key : "");
}

/* The expectation is unchanged, the input is not, where many outputs change; and the other way. */
Test(golden, a_changed_number_of_any_kind_is_caught, .init = folder_make, .fini = folder_remove)
{
    static const struct {
        const char *file, *tensor;
        float by;
    } cases[] = {
        {"att_xl_mem.safetensors", "in.x", 0.3f},
        {"att_xl_mem.safetensors", "in.mem", 0.3f},
        {"att_xl_mem.safetensors", "param.attn.r.weight", 0.3f},
        {"att_xl_mem.safetensors", "param.attn.bias_v", 0.3f},
        {"att_shaw_mem.safetensors", "param.attn.rel_v", 0.3f},
        {"lm_gtrxl_gru.safetensors", "param.layers.0.gate1.bg", 0.3f},
        {"lm_vanilla_layerpos.safetensors", "param.layers.0.pos.weight", 0.3f},
        {"lm_xl_pre_untied.safetensors", "param.out.weight", 0.3f},
        {"norm_rms.safetensors", "in.x", 0.01f},
        {"norm_rms.safetensors", "out.y", 0.01f},
        {"norm_scale.safetensors", "param.norm.g", 0.01f},
        {"norm_unbiased.safetensors", "out.grad.norm.bias", 0.01f},
        {"ffn_gelu.safetensors", "param.ff.1.bias", 0.01f},
        {"ffn_swish.safetensors", "param.ff.beta", 0.01f},
        {"ffn_swish.safetensors", "out.grad.ff.beta", 0.01f},
        {"ffn_geglu.safetensors", "param.ff.g.weight", 0.01f},
        {"ffn_swiglu.safetensors", "in.dy", 0.01f},
        {"moe_top1.safetensors", "out.aux", 0.01f},
        {"moe_top2.safetensors", "param.ff.e.2.bias", 0.01f},
        {"moe_top2.safetensors", "out.grad.ff.router.weight", 0.01f},
        {"rnn_plain_tail.safetensors", "in.tail", 0.01f},
        {"rnn_gru.safetensors", "param.rnn.b_hh", 0.01f},
        {"rnn_lstm.safetensors", "out.grad.rnn.w_hh", 0.01f},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_difference(cases[i].file,
                          (struct edit){.nudge = cases[i].tensor, .by = cases[i].by});
}

/* Routes are whole numbers: one that is off by one fails; so does other routing. */
Test(golden, another_route_is_caught, .init = folder_make, .fini = folder_remove)
{
    static const char top1[] = "moe_top1.safetensors";

    expect_difference("moe_top1_capacity.safetensors",
                      (struct edit){.key = "capacity", .value = "2"});
    expect_difference("moe_top2.safetensors", (struct edit){.key = "capacity", .value = "4"});
    expect_difference(top1, (struct edit){.nudge = "param.ff.router.weight", .by = 3});
}

static void expect_refused(const char *file, struct edit d, const char *part)
{
    const char *path;
    struct seen s;

    cr_expect_eq(run_edited(file, d, &path, &s), E_IO, "%s, %s", file, part);
    cr_expect_eq(s.t.files, 0);
    cr_expect(strstr(failure.msg, path) && strstr(failure.msg, part),
              "\"%s\" does not name %s and %s", failure.msg, path, part);
}

Test(golden, missing_or_misfit_tensors, .init = folder_make, .fini = folder_remove)
{
    static const char att[] = "att_xl_mem.safetensors", lm[] = "lm_shaw_post.safetensors";

    expect_refused(att, (struct edit){.drop = "in.x"}, "\"in.x\"");
    expect_refused(att, (struct edit){.drop = "in.mem"}, "\"in.mem\"");
    expect_refused(att, (struct edit){.drop = "param.attn.q.weight"}, "\"param.attn.q.weight\"");
    expect_refused(att, (struct edit){.drop = "param.attn.bias_u"}, "bias_u");
    expect_refused(att, (struct edit){.reshape = "param.attn.o.weight"}, "\"param.attn.o.weight\"");
    expect_refused(att, (struct edit){.retype = "in.x"}, "\"in.x\"");
    expect_refused(att, (struct edit){.retype = "param.attn.k.weight"}, "\"param.attn.k.weight\"");
    expect_refused(lm, (struct edit){.drop = "in.tokens.1"}, "\"in.tokens.1\"");
    /* A tensor of the file that the model lacks would leave the file half tested. */
    expect_refused(att, (struct edit){.key = "scheme", .value = "none"}, "\"param.attn.");
    expect_refused(lm, (struct edit){.key = "scheme", .value = "none"}, "clip");
    expect_refused(att, (struct edit){.rename = "in.dy", .new_name = "in.sy"}, "\"in.dy\"");
    expect_refused(lm, (struct edit){.key = "masks", .value = "spiral=3"}, "\"spiral=3\"");
    expect_refused(lm, (struct edit){.drop = "in.targets.0"}, "\"in.targets.0\"");
    expect_refused(lm, (struct edit){.reshape = "param.embed.weight"}, "\"param.embed.weight\"");
    expect_refused(lm, (struct edit){.drop = "param.layers.1.ln2.bias"},
                   "\"param.layers.1.ln2.bias\"");
    expect_refused(lm, (struct edit){.rename = "in.tokens.0", .new_name = "in.token.0"},
                   "\"in.tokens.0\"");
}

Test(golden, metadata_that_does_not_fit, .init = folder_make, .fini = folder_remove)
{
    static const char att[] = "att_xl_mem.safetensors", lm[] = "lm_shaw_post.safetensors";
    static const struct {
        const char *file, *key, *value, *part;
    } cases[] = {
        {att, "kind", "video", "kind \"video\""},
        {att, "kind", NULL, "kind"},
        {att, "variant", "nothing", "\"param.attn."}, /* it has no scheme: the name decides */
        {att, "seq", "nine", "seq"},
        {att, "seq", "7", "in.x"},
        {att, "seq", NULL, "seq"},
        {att, "mem", "1", "in.mem"},
        {att, "batch", "3", "in.x"},
        {att, "batch", "-1", "batch"},
        {att, "batch", NULL, "batch"},
        {att, "d_model", "0", "d_model"},
        {att, "d_model", "10", "in.x"},
        {att, "n_head", "1", "param.attn"},
        {att, "tolerance", "small", "tolerance"},
        {lm, "vocab", "3", "segment 0"},
        {lm, "vocab", "99", "param.embed.weight"},
        {lm, "wiring", "pre", "wiring"},
        {lm, "n_seg", "9", "in.tokens"},
        {lm, "batch", "0", "batch"},
        {lm, "seq", "2", "segment 0"},
        {lm, "n_layer", "3", "param.layers.2."},
        {lm, "norm", "power", "norm \"power\""},
        {lm, "gate", "gru", "gate"},
        {"norm_rms.safetensors", "norm_kind", "batch", "norm_kind \"batch\""},
        {"norm_rms.safetensors", "norm_kind", NULL, "norm_kind"},
        {"norm_rms.safetensors", "norm_kind", "layer", "norm.bias"},
        {"norm_rms.safetensors", "d_model", "0", "d_model"},
        {"dextra_paper.safetensors", "depth", NULL, "depth"},
        {"dextra_paper.safetensors", "depth", "31", "depth"},
        {"ffn_gelu.safetensors", "ffn", "gelu2", "ffn \"gelu2\""},
        {"ffn_gelu.safetensors", "ffn", "geglu", "ff.g.weight"},
        {"ffn_gelu.safetensors", "d_inner", "14", "ff.1.weight"},
        {"ffn_gelu.safetensors", "seq", "3", "in.x"},
        {"moe_top1.safetensors", "experts", "5", "ff.router.weight"},
        {"moe_top1.safetensors", "moe_k", "5", "moe_k"},
        {"rnn_gru.safetensors", "rnn_cell", "gru2", "rnn_cell \"gru2\""},
        {"rnn_gru.safetensors", "rnn_cell", "lstm", "rnn.w_ih"},
        {"rnn_plain_tail.safetensors", "rnn_window", "3", "in.tail"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_refused(cases[i].file, (struct edit){.key = cases[i].key, .value = cases[i].value},
                       cases[i].part);
}

/* What nothing reads, in every kind of file: a key, and a result. */
Test(golden, what_nothing_reads_is_refused, .init = folder_make, .fini = folder_remove,
     .timeout = 120)
{
    char *paths[FILES_MAX];
    const int n = golden_files(paths);

    for (int i = 0; i < n; i++) {
        const char *const file = strrchr(paths[i], '/') + 1;
        char result[TENSOR_NAME] = "";
        const struct safetensors s = tensors_of(paths[i]);
        for (int k = 0; k < s.n_tensors; k++)
            if (strncmp(s.tensors[k].name, "out.", 4) == 0 &&
                strncmp(s.tensors[k].name, "out.grad.", 9) != 0)
                snprintf(result, sizeof(result), "%s", s.tensors[k].name);
        expect_refused(file, (struct edit){.key = "slope_power", .value = "2"}, "slope_power");
        expect_refused(file, (struct edit){.rename = result, .new_name = "out.nothing"},
                       "\"out.nothing\"");
    }
}

/* Files that must be refused, each named for what is wrong with it. */
Test(golden, shared_files_to_refuse)
{
    static const struct {
        const char *file, *part;
    } cases[] = {{"unknown_key", "slope_power"},
                 {"unknown_input_lm", "in.mask_random"},
                 {"norm_and_wiring_disagree", "wiring"}};
    const char *const shared = getenv("BENCH_SHARED");

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct seen s;
        const char *const path = kept_text("%s/goldens4/refuse/%s.safetensors",
                                           shared ? shared : "../shared", cases[i].file);
        if (access(path, R_OK) != 0)
            cr_skip_test("no golden files in $BENCH_SHARED/goldens4");
        REFUSED(run_golden("ref", 1, path, &s), E_IO, cases[i].part);
    }
}

/* An input that only other models have. */
Test(golden, inputs_of_other_models_are_refused, .init = folder_make, .fini = folder_remove)
{
    static const struct {
        const char *file, *input, *as;
    } cases[] = {
        {"favor_state.safetensors", "in.state_z", "in.state_m"},
        {"lin_elu_state.safetensors", "in.state_s", "in.sum"},
        {"clustered.safetensors", "in.planes", "in.omega"},
        {"lm_hash.safetensors", "in.table", "in.mask_random"},
        {"ffn_rwkv6.safetensors", "in.shift", "in.conv"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_refused(cases[i].file,
                       (struct edit){.rename = cases[i].input, .new_name = cases[i].as}, "in");
}

/* Tokens outside the vocabulary must not be looked up. */
Test(golden, token_outside_the_vocabulary, .init = folder_make, .fini = folder_remove)
{
    const struct safetensors s = tensors_of("tests/golden/lm_xl_post.safetensors");
    struct seen seen;
    const int32_t bad[] = {-1, 1 << 20};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        for (int which = 0; which < 2; which++) {
            struct tensor *list = room((size_t)s.n_tensors, sizeof(*list));
            int32_t *copy = NULL;
            memcpy(list, s.tensors, (size_t)s.n_tensors * sizeof(*list));
            for (int k = 0; k < s.n_tensors; k++)
                if (is_named(list[k].name, which ? "in.targets.1" : "in.tokens.1")) {
                    copy = room(list[k].n, sizeof(*copy));
                    memcpy(copy, list[k].data, list[k].n * sizeof(*copy));
                    copy[1] = bad[i];
                    list[k].data = copy;
                }
            const char *const path = in_folder("edited.safetensors");
            cr_assert_eq(safetensors_write(path, list, s.n_tensors, (const char *const *)s.meta,
                                           s.n_meta, &failure),
                         OK);
            REFUSED(run_golden("ref", 1, path, &seen), E_IO,
                    "segment 1 has a token outside the vocabulary");
        }
}

Test(golden, no_file)
{
    struct seen s;

    REFUSED(run_golden("ref", 1, "/dev/null/none.safetensors", &s), E_IO,
            "/dev/null/none.safetensors");
}
