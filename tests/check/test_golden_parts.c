/* SPDX-License-Identifier: MIT
 *
 * Golden files of parts, by prefix of their names, through one backend with one and two threads:
 * every tensor that a file expects is compared, and a number changed in it is caught. */

#include "harness/check/golden.h"
#include "tests/support/attn_case.h"
#include "tests/support/edited_file.h"
#include "tests/support/every_backend.h"
#include "tests/support/tmp_folder.h"

#include <criterion/parameterized.h>
#include <dirent.h>

#define FOLDER "tests/golden"

struct seen {
    int n, failed;
    char first[128]; /* the first failure */
};

static void look(void *arg, const struct verdict *v)
{
    struct seen *s = arg;

    s->n++;
    if (!v->skipped && v->error <= v->limit)
        return;
    if (s->failed++ == 0)
        snprintf(s->first, sizeof(s->first), "%s: %g, at most %g", v->tensor, v->error, v->limit);
}

static int expected_tensors(const char *path)
{
    struct safetensors s;
    struct err e;
    int n = 0;

    cr_assert_eq(safetensors_open(&s, path, &e), OK, "%s", e.msg);
    for (int i = 0; i < s.n_tensors; i++)
        n += strncmp(s.tensors[i].name, "out.", 4) == 0;
    safetensors_close(&s);
    return n;
}

/* Returns the number of files. */
static int golden_parts(const char *backend, const char *prefix)
{
    DIR *dir = opendir(FOLDER);
    int files = 0;

    cr_assert(dir, "no " FOLDER ": run from the top of the repository");
    for (const struct dirent *d; (d = readdir(dir));) {
        if (strncmp(d->d_name, prefix, strlen(prefix)) != 0)
            continue;
        char path[FILE_PATH];
        cr_assert_eq(file_join(path, FOLDER, d->d_name, NULL), OK);
        for (int threads = 1; threads <= 2; threads++) {
            const struct engine g = open_engine(backend, threads);
            struct seen s = {0};
            struct tally t = {0};
            struct err e = {""};
            cr_assert_eq(golden_run(&g, path, &t, look, &s, &e), OK, "%s", e.msg);
            cr_expect_eq(s.failed, 0, "%s on %s: %s", path, backend, s.first);
            cr_expect_eq(s.n, expected_tensors(path), "%s: %d tensors compared", path, s.n);
        }
        files++;
    }
    closedir(dir);
    return files;
}

/* The reference fails the edited file. Between folder_make and folder_remove. */
static void caught(const char *file, struct edit d)
{
    char from[FILE_PATH], path[FILE_PATH];
    const struct engine g = open_engine("ref", 1);
    struct seen s = {0};
    struct tally t = {0};
    struct err e = {""};

    cr_assert_eq(file_join(from, FOLDER, file, NULL), OK);
    folder_path(path, "edited.safetensors");
    edited_file(path, from, &d);
    cr_assert_eq(golden_run(&g, path, &t, look, &s, &e), OK, "%s", e.msg);
    cr_expect_gt(s.failed, 0, "%s: it makes no difference", file);
}

ParameterizedTestParameters(golden_parts, every_file_on_every_backend) { return every_backend(); }
ParameterizedTest(int *b, golden_parts, every_file_on_every_backend)
{
    cr_expect_geq(golden_parts(backends[*b]->name, "norm_"), 3);
    cr_expect_geq(golden_parts(backends[*b]->name, "ffn_"), 7);
    cr_expect_geq(golden_parts(backends[*b]->name, "moe_"), 3);
    cr_expect_geq(golden_parts(backends[*b]->name, "rnn_"), 3);
}

Test(golden_parts, a_changed_number_is_caught, .init = folder_make, .fini = folder_remove)
{
    static const struct {
        const char *file, *tensor;
    } cases[] = {
        {"norm_rms.safetensors", "in.x"},
        {"norm_rms.safetensors", "out.y"},
        {"norm_scale.safetensors", "param.norm.g"},
        {"norm_unbiased.safetensors", "out.grad.norm.bias"},
        {"ffn_gelu.safetensors", "param.ff.1.bias"},
        {"ffn_swish.safetensors", "param.ff.beta"},
        {"ffn_swish.safetensors", "out.grad.ff.beta"},
        {"ffn_geglu.safetensors", "param.ff.g.weight"},
        {"ffn_swiglu.safetensors", "in.dy"},
        {"moe_top1.safetensors", "out.aux"},
        {"moe_top2.safetensors", "param.ff.e.2.bias"},
        {"moe_top2.safetensors", "out.grad.ff.router.weight"},
        {"rnn_plain_tail.safetensors", "in.tail"},
        {"rnn_gru.safetensors", "param.rnn.b_hh"},
        {"rnn_lstm.safetensors", "out.grad.rnn.w_hh"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        caught(cases[i].file, (struct edit){.nudge = cases[i].tensor, .by = 0.01f});
}

/* Routes are whole numbers: one that is off by one fails; so does other routing. */
Test(golden_parts, another_route_is_caught, .init = folder_make, .fini = folder_remove)
{
    caught("moe_top1_capacity.safetensors", (struct edit){.key = "capacity", .value = "2"});
    caught("moe_top2.safetensors", (struct edit){.key = "capacity", .value = "4"});
    caught("moe_top1.safetensors", (struct edit){.nudge = "param.ff.router.weight", .by = 3});
}

Test(golden_parts, metadata_that_does_not_fit, .init = folder_make, .fini = folder_remove)
{
    static const struct {
        const char *file, *key, *value, *part;
    } cases[] = {
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

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char from[FILE_PATH], path[FILE_PATH];
        const struct engine g = open_engine("ref", 1);
        const struct edit d = {.key = cases[i].key, .value = cases[i].value};
        struct seen s = {0};
        struct tally t = {0};
        struct err e = {""};
        cr_assert_eq(file_join(from, FOLDER, cases[i].file, NULL), OK);
        folder_path(path, "edited.safetensors");
        edited_file(path, from, &d);
        cr_expect_eq(golden_run(&g, path, &t, look, &s, &e), E_IO, "%s", cases[i].part);
        cr_expect(strstr(e.msg, cases[i].part), "\"%s\" does not name %s", e.msg, cases[i].part);
    }
}
