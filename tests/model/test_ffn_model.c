/* SPDX-License-Identifier: MIT
 *
 * Whole models with every kind of feed-forward network and of norm: every backend as the reference,
 * forward and backward; and the option that chooses one. Saved and read again: test_keys.c. */
#include "tests/support/command_line.h"
#include "tests/support/every_backend.h"
#include "tests/support/trained.h"

/* Every FFN with the kinds of norm in turn, xl and vanilla in turn. Returns false after the last.
 */
static bool model_of(struct config *c, int i)
{
    if (!ffns[i / NORM_KIND_COUNT] || ffns[i / NORM_KIND_COUNT]->build) /* the last ones */
        return false;
    *c = config_default(variant_find(i % 2 ? "xl" : "vanilla"), 12, 3, 4, 17, 2, 11);
    c->ffn = ffns[i / NORM_KIND_COUNT];
    c->norm_kind = (enum norm_kind)(i % NORM_KIND_COUNT);
    config_numbers_reset(c);
    c->wiring = i % 3 ? WIRING_PRE : WIRING_POST;
    c->final_ln = i % 3;
    c->ffn_bias = i % 5;
    if (c->ffn == &ffn_swish)
        set_choice(c, "swish_beta", i % 2 ? "1" : "0");
    if (c->ffn == &ffn_moe) {
        set_number(c, "moe_k", 1 + i % 2);
        set_number(c, "capacity", i % 3 ? 0 : 5);
        set_number(c, "aux_coef", 0.125);
        set_choice(c, "dense_layers", i % 4 == 1 ? "0" : i % 4 == 2 ? "1" : "");
        if (i % 4 == 2) {
            set_number(c, "dense_inner", 9);
            set_choice(c, "dense_ffn", "geglu");
        }
    }
    c->max_seq = L;
    return true;
}

TEST_EACH(int *b, ffn_model, as_the_reference, all_but_ref(), .timeout = 240)
{
    struct config c;

    for (int i = 0; model_of(&c, i); i++)
        if (sampled((size_t)(i + *b), 2))
            as_reference(&c, backends[*b]->name);
}

/* ---- the option --------------------------------------------------------------------------- */

Test(ffn_model, the_option_reaches_cells_and_their_line)
{
    struct plan p =
        planned("-V vanilla,xl -b ref -w attn,layer,segment --seq 8 --mem 0 --ffn swiglu");
    cr_expect_eq(p.n, 6);
    for (int i = 0; i < p.n; i++) {
        const bool attn = p.cases[i].workload == WORK_ATTN; /* has none */
        cr_expect_str_eq(p.cases[i].config.ffn->name, attn ? "relu" : "swiglu");
        cr_expect_eq(strstr(p.cases[i].repro, " --ffn swiglu") != NULL, !attn);
    }
    p = planned("-V xl -b ref -w layer --seq 8 --mem 0 --ffn relu");
    cr_expect(p.n == 1 && !strstr(p.cases[0].repro, "--ffn")); /* the variant's own */
}

Test(ffn_model, the_option_knows_every_kind)
{
    for (int i = 0; ffns[i]; i++) {
        struct options o;
        struct plan p;
        must_plan(&p, &o,
                  kept_text("-V %s -b ref -w layer --seq 8 --mem 0 --ffn %s",
                            ffns[i]->build ? "linear" : "vanilla", ffns[i]->name));
        cr_expect(p.n == 1 && p.cases[0].config.ffn == ffns[i]);
    }
    struct options o;
    REFUSED(parse_words(&o, "--ffn swigl", &failure), E_USAGE,
            "unknown --ffn \"swigl\"  -> did you mean swiglu?");
}
