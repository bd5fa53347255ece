/* SPDX-License-Identifier: MIT
 *
 * config.json of published models: numbers of ours that follow from its keys. What is refused:
 * test_published_config.c. */
#include "tests/support/published_folder.h"
#include "tests/support/set_choice.h"

TestSuite(published_numbers, .init = folder_make, .fini = folder_remove, .timeout = 120);

/* What a config becomes where keys are off the values that most models have, null or absent; numbers
 * by their names in files. */
Test(published_numbers, follow_from_keys)
{
    static const struct {
        const char *base, *set, *drop, *key, *want;
    } rows[] = {
        {"rwkv7", "{}", NULL, "head_eps", "8e-05"},
        {"rwkv7", "{\"norm_eps\":0.5}", NULL, "head_eps", "4"},
        {"rwkv7", "{\"norm_eps\":0.5}", NULL, "ln_eps", "0.5"},
        {"rwkv7", "{\"norm_eps\":0.5}", "head_dim", "head_eps", "4"},
        {"gemma2_capped", "{\"attn_logit_softcapping\":null}", NULL, "soft_cap", "0"},
        {"gemma2_capped", "{\"attn_logit_softcapping\":7}", NULL, "soft_cap", "7"},
        {"gemma2_capped", "{}", "attn_logit_softcapping", "soft_cap", "50"},
        {"gemma2_capped", "{\"final_logit_softcapping\":null}", NULL, "logit_cap", "0"},
        {"gemma2_capped", "{\"final_logit_softcapping\":7}", NULL, "logit_cap", "7"},
        {"gemma2_capped", "{}", "final_logit_softcapping", "logit_cap", "30"},
        {"gemma2_capped", "{\"query_pre_attn_scalar\":16}", NULL, "scale", "0.25"},
        {"gemma2_capped", "{\"query_pre_attn_scalar\":16}", "query_pre_attn_scalar", "scale",
         "0.0625"},
        {"gemma3_text", "{\"final_logit_softcapping\":7}", NULL, "logit_cap", "7"},
        {"gemma3_text", "{}", "final_logit_softcapping", "logit_cap", "0"},
        {"gemma3_text", "{}", "attn_logit_softcapping", "soft_cap", "0"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct published p;
        published_copy(rows[i].base);
        json_t *const config = published_json("config.json");
        json_object_update(config, json_of(rows[i].set));
        if (rows[i].drop)
            json_object_del(config, rows[i].drop);
        published_put_json("config.json", config);
        cr_assert_eq(published_try(&p, &failure), OK, "row %zu: %s", i, failure.msg);
        struct config want = p.config;
        set_choice(&want, rows[i].key, rows[i].want);
        cr_expect(memcmp(&want, &p.config, sizeof(want)) == 0, "row %zu: %s is not %s", i,
                  rows[i].key, rows[i].want);
    }
}
