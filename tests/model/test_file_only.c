/* SPDX-License-Identifier: MIT
 *
 * Every number of a model that files have can be said on a command line, by an option or by --set,
 * or stands here with the reason why not. */
#include "variants/model/attention/around.h"
#include "variants/model/config/keys.h"
#include "variants/parts/norm.h"

#include <criterion/criterion.h>

static const char a_size[] = "a size that has an option of its own";
static const char a_variant[] = "says which variant it is: --variant";
static const char an_input[] = "the shape of what a golden file gives in place of what is drawn";
static const char a_consequence[] = "follows from options";

static const struct {
    const char *name, *why;
} others[] = {
    {"d_model", a_size},
    {"n_head", a_size},
    {"d_head", a_size},
    {"d_inner", a_size},
    {"n_layer", a_size},
    {"vocab", "the text has so many symbols"},
    {"mem", a_size},
    {"seq", a_size},
    {"kv_heads", a_size},
    {"steps", "--layers of a variant that repeats one"},
    {"final_ln", a_consequence}, /* --norm */
    {"rel_rows", a_consequence}, /* --clip and --direction */
    {"mem_start", "--mem-start of bench eval; trainings and cases begin with an empty memory"},
    {"transparent", a_variant},
    {"feedback", a_variant},
    {"minlstm", a_variant},
    {"diff", a_variant},
    {"qk_norm", a_variant},
    {"value_residual", a_variant},
    {"ssmax", a_variant},
    {"camtl", a_variant},
    {"forget", a_variant},
    {"dman", a_variant},
    {"agg", a_variant},
    {"tupe_share", "each layer has its own table wherever tupe_bias is 1"},
    {"sample_rows", an_input},
    {"sort_noise_batch", an_input},
    {"sort_noise", an_input},
    {"omega_of_heads", an_input},
    {"rope_short", "a number for each rotated pair, found by the authors of a model"},
    {"rope_long", "likewise"},
    {"moves_first",
     "a layer of a golden file that stands alone; in models the first layer says it"},
};

static bool seen[ARRAY_LEN(others)];

static void expect_row(const struct choice *row)
{
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (strcmp(others[i].name, row->name) == 0) {
            cr_expect(!row->setting && !row->option, "%s: %s, but it can be said", row->name,
                      others[i].why);
            seen[i] = true;
            return;
        }
    cr_expect(row->setting || row->option, "only files can say %s", row->name);
    cr_expect(!row->setting || row->help, "%s has no help", row->name);
}

static void expect_numbers(const struct part_numbers *numbers)
{
    for (const struct choice *row = numbers ? numbers->choices : NULL; row && row->name; row++)
        expect_row(row);
}

Test(file_only, numbers_have_an_option_or_a_reason)
{
#define EXTRA(name) &extra_##name,
#define QKV_MAP(name) &qkv_map_##name,
#define MEM(name) &mem_##name,
    static const struct pos *const extras[] = {EXTRAS(EXTRA)};
    static const struct qkv_map *const maps[] = {QKV_MAPS(QKV_MAP)};
    static const struct mem *const mems[] = {MEMS(MEM)};
    const struct choice *row;

    for (int i = 0; (row = model_key(i)); i++)
        expect_row(row);
    for (enum part_slot s = SLOT_AROUND; s < SLOT_COUNT; s++)
        expect_numbers(around_of(s)->numbers);
    for (int i = 0; ffns[i]; i++)
        expect_numbers(ffns[i]->numbers);
    for (int i = 0; mixers[i]; i++)
        expect_numbers(mixers[i]->numbers);
    for (int i = 0; gates[i]; i++)
        expect_numbers(gates[i]->numbers);
    for (int i = 0; positions[i]; i++)
        expect_numbers(positions[i]->numbers);
    for (size_t i = 0; i < ARRAY_LEN(extras); i++)
        expect_numbers(extras[i]->numbers);
    for (size_t i = 0; i < ARRAY_LEN(maps); i++)
        expect_numbers(maps[i]->numbers);
    for (size_t i = 0; i < ARRAY_LEN(mems); i++)
        expect_numbers(mems[i]->numbers);
    for (int i = 0; i < NORM_KIND_COUNT; i++)
        expect_numbers(norm_numbers[i]);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        cr_expect(seen[i], "no model has %s", others[i].name);
}
