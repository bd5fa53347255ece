/* SPDX-License-Identifier: MIT
 *
 * Models that carry a state, with any mixer: the state is all of the past in segments of any
 * length, it can be set and forgotten, and neither it nor the work of a token grows. */
#include "tests/support/every_backend.h"
#include "tests/support/model.h"

enum { TEXT = 75, V = 11 };

/* Variants that carry nothing but states, by any mixer. */
static bool of_state(const struct variant *v)
{
    return variant_mem(v)->state && !variant_mem(v)->recurrent;
}

static struct config small(const struct variant *v)
{
    struct config c = config_default(v, 12, 4, 5, 17, 2, V);

    c.max_seq = TEXT;
    return c;
}

static float *without_past(const struct config *c, const char *backend, int L)
{
    return model_logits(c, backend, 1, MEM_NONE, (struct extent){2, L, 0}, TEXT, L);
}

TEST_EACH(int *b, state, goes_on, every_backend(), .timeout = 120)
{
    static const int lengths[] = {1, 3, 32, 64};

    for (int v = 0; variants[v]; v++) {
        const struct config c = small(variants[v]);
        if (!of_state(variants[v]))
            continue;
        float *one = without_past(&c, backend_ref.name, TEXT);
        for (size_t k = 0; k < ARRAY_LEN(lengths); k++)
            expect_segments(&c, backends[*b]->name, MEM_STATE, (struct extent){2, lengths[k], 0},
                            TEXT, one, variants[v]->name);
        float *cut = without_past(&c, backends[*b]->name, 32);
        cr_expect_gt(case_error(cut, one, 2 * TEXT * V), 1, "%s: without a state it forgets",
                     variants[v]->name);
    }
}

/* The first state that is its own, not given. */
static bool own_state(const struct sublayer *s, struct carried *out)
{
    int i = 0;

    while (s->kind->carries(s, i, out) && out->given)
        i++;
    return s->kind->carries(s, i, out) && out->n > 0;
}

/* Remembering row by row gives the state of the run; forgetting clears it. */
Test(state, remembers_and_forgets)
{
    for (int v = 0; variants[v]; v++) {
        const struct config c = small(variants[v]);
        struct model m;
        struct carried ran, told;
        if (!of_state(variants[v]))
            continue;
        model_open(&m, &c, "ref", 1, MEM_STATE, (struct extent){2, 8, 0});
        struct sublayer *const s = &m.lm.sublayers.at[0];
        float *x = normals(2 * 8 * 12, "rows", 0, 1), *z = fenced(2 * 8 * 12);
        cr_assert(own_state(s, &ran));
        const float *const start = copied(ran.at, ran.n);
        sublayer_forward(&m.g, s, &m.lm.sublayers.work[0], z, x, 2, 8);
        sublayer_commit(s, 8);
        cr_assert(own_state(s, &ran));
        const float *const keep = copied(ran.at, ran.n);
        sublayer_forget(s);
        cr_assert(own_state(s, &told));
        cr_expect_arr_neq(told.at, keep, told.n * sizeof(float), "%s", variants[v]->name);
        cr_expect_arr_eq(told.at, start, told.n * sizeof(float), "%s", variants[v]->name);
        sublayer_remember(&m.g, s, &m.lm.sublayers.work[0], x, 2, 8);
        cr_assert(own_state(s, &told));
        cr_expect_arr_eq(told.at, keep, told.n * sizeof(float), "%s", variants[v]->name);
    }
}

/* The state is the ledger's memory, of one size after any past; the work of a token is constant
 * too. */
Test(state, costs_the_same_after_any_past)
{
    for (int v = 0; variants[v]; v++) {
        const struct config c = small(variants[v]);
        size_t bytes[2], state = 0;
        double flop[2];
        if (!of_state(variants[v]))
            continue;
        for (int far = 0; far < 2; far++) {
            const int M = far ? 1000 : 10;
            struct model m;
            struct carried at;
            model_open(&m, &c, "ref", 1, MEM_STATE, (struct extent){2, 1, M});
            bytes[far] = m.arena.part[PART_MEMORY];
            flop[far] = lm_flop(&m.lm, 2, 1, M, 1);
            state = 0;
            for (int i = 0; i < m.lm.sublayers.n; i++) {
                const struct sublayer *const s = &m.lm.sublayers.at[i];
                for (int k = 0; s->kind->carries && s->kind->carries(s, k, &at); k++)
                    state += at.given ? 0 : at.n * sizeof(float);
            }
        }
        cr_expect(bytes[0] == bytes[1] && bytes[0] == state, "%s: %zu, %zu of %zu",
                  variants[v]->name, bytes[0], bytes[1], state);
        cr_expect_eq(flop[0], flop[1]);
    }
}

/* ---- stacks --------------------------------------------------------------------------------- */

static struct config stacked(const char *stack, int mem_len)
{
    struct config c = config_default(variant_find("gdn-hybrid"), 12, 2, 6, 17, 4, V);

    c.max_seq = TEXT;
    c.mem_len = mem_len;
    cr_assert_eq(choice_parse(&model_choices[CHOICE_stack], &c, stack, NULL), OK);
    cr_assert_eq(config_check(&c, NULL), OK);
    return c;
}

/* With a memory of all rows segments of any length are one pass, whatever the kind of memory. */
TEST_EACH(int *b, state, stacks_go_on, every_backend(), .timeout = 120)
{
    static const int lengths[] = {1, 3, 32};

    EACH_TEXT (stack, "gdn,gdn,gdn,rope", "rope,gdn", "nope,gdn,gdn", "gdn") {
        const struct config c = stacked(stack, TEXT);
        float *one = without_past(&c, backend_ref.name, TEXT);
        for (size_t k = 0; k < ARRAY_LEN(lengths); k++)
            for (enum mem_kind kind = MEM_HIDDEN; kind <= MEM_KV; kind++)
                expect_segments(&c, backends[*b]->name, kind, (struct extent){2, lengths[k], TEXT},
                                TEXT, one, stack);
    }
}

Test(state, stacks_are_written_and_read)
{
    char text[CHOICE_TEXT];
    struct config c = stacked("gdn,nope,gdn", 0);

    choice_print(text, &model_choices[CHOICE_stack], &c);
    cr_expect_str_eq(text, "gdn,nope,gdn");
    cr_expect(!config_attends(&c, 0) && config_attends(&c, 1) && !config_attends(&c, 3));
    cr_expect(config_attends(&c, 4));
    EACH_TEXT (bad, "gdn,gla", "gdn,,rope", "alibi,gdn", "gdn,") {
        struct config broken = c;
        cr_expect(choice_parse(&model_choices[CHOICE_stack], &broken, bad, &failure) == E_USAGE ||
                      config_check(&broken, &failure) == E_USAGE,
                  "%s", bad);
    }
    c.mixer = NULL;
    cr_expect_eq(config_check(&c, &failure), E_USAGE);
}
