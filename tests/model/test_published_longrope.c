/* SPDX-License-Identifier: MIT
 *
 * longrope of published configs: what contradicts itself or is no list is refused, older names are
 * taken. What it computes: tests/golden-import/phi3_long. */
#include <criterion/criterion.h>

#include "tests/support/published_folder.h"

TestSuite(published_longrope, .init = folder_make, .fini = folder_remove, .timeout = 120);

#define LLAMA "llama_gqa_bf16"

/* Divisors of each pair: contradictions, and what is as if it were said twice. */
Test(published_longrope, rotary_settings_of_longrope)
{
#define LISTS "'short_factor':[1,1.1,1.05,1.3],'long_factor':[1,1.9,4.75,8.4]"
#define LONGROPE "'rope_type':'longrope'," LISTS
    static const struct patch patches[] = {
        {"phi3_long", "{'rope_parameters':{" LONGROPE ",'factor':4}}",
         "factor 4 of rope_parameters, max_position_embeddings 128 of"},
        {"phi3_long", "{'rope_parameters':{" LONGROPE ",'factor':8}}", NULL},
        {"phi3_long", "{'rope_parameters':{" LONGROPE ",'factor':4,'attention_factor':1.5}}", NULL},
        {"phi3_long", "{'rope_parameters':{" LONGROPE ",'original_max_position_embeddings':32}}",
         "original_max_position_embeddings 16, 32 of rope_parameters"},
        {"phi3_long", "{'rope_parameters':{" LONGROPE ",'attention_factor':-1}}",
         "attention_factor"},
        {"phi3_long", "{'rope_parameters':{" LONGROPE ",'beta_fast':32}}", "beta_fast"},
        {"phi3_long", "{'rope_parameters':{" LONGROPE ",'short_mscale':1.2}}", "short_mscale"},
        {"phi3_long", "{'rope_scaling':{'type':'su'," LISTS "},'rope_parameters':null}", NULL},
        {"phi3_long", "{'rope_scaling':{'type':'yarn'," LISTS "},'rope_parameters':null}", NULL},
        {"phi3_long", "{'rope_scaling':{'type':'yarn','factor':8},'rope_parameters':null}",
         "short_factor has 0 numbers, 4 pairs"},
        {"phi3_long",
         "{'rope_parameters':{'rope_type':'longrope','short_factor':[1,1,1,1],'long_factor':[1,2,3]"
         "}}",
         "long_factor has 3 numbers, 4 pairs"},
        {"phi3_long",
         "{'rope_parameters':{'rope_type':'longrope','short_factor':[1,1,0,1],'long_factor':[1,2,3,"
         "4]}}",
         "number 2 of short_factor"},
        {"phi3_long",
         "{'rope_parameters':{'rope_type':'longrope','short_factor':[1,1,1,1],'long_factor':[1,2,3,"
         "'4']}}",
         "number 3 of long_factor"},
        {LLAMA, "{'rope_scaling':{'type':'su'," LISTS "}}", "su: not supported"},
        {LLAMA, "{'rope_scaling':{" LONGROPE ",'factor':4}}", NULL},
    };
#undef LONGROPE
#undef LISTS

    TRY_PATCHES(patches);
}
