/* SPDX-License-Identifier: MIT
 *
 * From `bench eval --losses` to `bench recl`: a shipped model whose source repeats what stood 192
 * tokens back gains up to there and not beyond; what does not belong together is refused. */
#include "tests/support/edited_file.h"
#include "tests/support/loaded.h"
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

#include <dirent.h>

static char model[FILE_PATH];

static void setup(void)
{
    char *const path = kept(realpath("results/models/xl.safetensors", NULL));

    cr_assert_not_null(path);
    snprintf(model, sizeof(model), "%s", path);
    folder_make();
}

TestSuite(recl_command, .init = setup, .fini = folder_remove, .timeout = 120);

#define EVAL "eval --ckpt %s --seq 64 --bytes 1500 --threads 1 --pin none --losses l -q --out runs "

static void must_eval(const char *more, int code)
{
    bench_exits(code, NULL, EVAL "%s", model, more);
}

/* The first losses file of the folder l. */
static void first_file(char path[FILE_PATH])
{
    const char *const losses = in_folder("l");
    DIR *const dir = opendir(losses);
    cr_assert_not_null(dir);
    const struct dirent *entry;
    while ((entry = readdir(dir)) && entry->d_name[0] == '.') // NOLINT: one thread
        ;
    cr_assert_not_null(entry);
    cr_assert_eq(file_join(path, losses, entry->d_name, NULL), OK);
    closedir(dir);
}

Test(recl_command, a_source_of_known_lag)
{
    must_eval("--mem 0,64,128,192,256", 0);
    struct ran r = must_bench("recl l --format csv");
    HAS(r.out.data, "checkpoint,variant,recl_0.1,recl_0.5,recl_1,gain_0.1,note\n",
        ",xl,192,192,192,");
}

/* The mean of what is written is the score. */
Test(recl_command, losses_are_those_of_the_score)
{
    char path[FILE_PATH];
    double sum = 0;

    must_eval("--mem 64", 0);
    first_file(path);
    const struct safetensors s = tensors_of(path);
    const struct tensor *const t = safetensors_find(&s, "nll");
    cr_assert(t && t->n == 1499);
    cr_expect_null(safetensors_find(&s, "layers"), "all positions run all layers");
    for (size_t i = 0; i < t->n; i++)
        sum += (double)((const float *)t->data)[i];
    struct rows rows = must_read("runs/latest", TABLE_PERPLEXITY);
    const struct perplexity_row *const row = rows.row;
    cr_expect_float_eq(sum / 1499, row->nll_nats_per_token, 1e-9);
}

/* Where positions may stop, how many layers each ran: their mean is the row's, and so is what nine of
 * ten do not exceed. */
Test(recl_command, layers_stand_beside_losses)
{
    char path[FILE_PATH];
    double sum = 0, ran[4] = {0};

    must_bench("train --variant universal --layers 3 --d-model 16 --heads 2 --seq 16 --mem 0 "
               "--batch 2 --steps 3 --threads 1 --pin none -q --ckpt u");
    must_bench("eval --ckpt u --seq 16 --mem 0 --bytes 500 --threads 1 --pin none --losses l -q "
               "--out runs");
    first_file(path);
    const struct safetensors s = tensors_of(path);
    const struct tensor *const t = safetensors_find(&s, "layers");
    cr_assert(t && t->dtype == DTYPE_I32 && t->n == 499);
    for (size_t i = 0; i < t->n; i++) {
        cr_assert(((const int32_t *)t->data)[i] >= 1 && ((const int32_t *)t->data)[i] <= 3);
        sum += ((const int32_t *)t->data)[i];
        ran[((const int32_t *)t->data)[i]]++;
    }
    struct rows rows = must_read("runs/latest", TABLE_PERPLEXITY);
    const struct perplexity_row *const row = rows.row;
    cr_expect_float_eq(sum / 499, row->layers_run, 1e-9);
    cr_expect_eq(row->layers_run_p90, ran[1] >= 0.9 * 499            ? 1
                                      : ran[1] + ran[2] >= 0.9 * 499 ? 2
                                                                     : 3);
}

Test(recl_command, what_does_not_belong_together)
{
    char path[FILE_PATH];

    bench_exits(2, NULL, "recl");
    bench_exits(7, NULL, "recl none_such");
    must_eval("--mem 64", 0);
    bench_exits(2, NULL, "recl l"); /* one context is not a way up */
    must_eval("--mem 0 --seq 32", 0);
    bench_exits(2, NULL, "recl l");
    first_file(path);
    const char *const kept = in_folder("kept");
    edited_file(kept, path, &(struct edit){.key = "corpus_xxh3"});
    cr_assert_eq(rename(kept, path), 0);
    bench_exits(7, "corpus_xxh3", "recl l");
}
