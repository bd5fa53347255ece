/* SPDX-License-Identifier: MIT
 *
 * Under a ranking of variants: what their networks differ in besides what they are compared for. */
#include "tests/support/ranked.h"

TestSuite(ranking_networks, .init = folder_make, .fini = folder_remove, .timeout = 60);

/* A column of the lines, two values of it, and what makes variants alike in it, or "". */
static const struct fact {
    const char *column, *value[2], *option;
} facts[] = {
    {"kv_heads", {"2", "12"}, "--kv-heads N"},
    {"d_head", {"64", "96"}, ""},
    {"d_inner", {"2048", "3072"}, "--skeleton llama"},
    {"mask", {"window=64", ""}, ""},
    {"layer_windows", {"4096,0", ""}, ""},
    {"ffn", {"relu", "swiglu"}, "--skeleton llama"},
    {"norm_place", {"pre", "post"}, "--skeleton llama"},
    {"norm", {"layer", "rms"}, "--skeleton llama"},
};
enum { FACTS = ARRAY_LEN(facts) };

static void set(struct latency_row *row, const struct fact *fact, int which)
{
    const struct table *const t = &tables[TABLE_LATENCY];
    const struct column *const c = &t->columns[find_column(t, fact->column)];
    char *const at = (char *)row + c->offset;

    if (c->type == COLUMN_I64)
        *(int64_t *)at = atoll(fact->value[which]);
    else
        text_put(at, c->size, fact->value[which]);
}

/* Of two variants, which differ in these facts; the first also ran a shorter sequence, the first of
 * all, if `more`. Free it. */
static char *drawn_of(unsigned differing, const char *remark, bool more)
{
    static const char *const variant[] = {"llama", "window"};
    struct rankings r;

    struct rundir d = made_open("aaaa");
    for (int n_row = more ? -1 : 0; n_row < 2; n_row++) {
        const int i = max_int(0, n_row);
        const struct made_case c = {variant[i], "avx2",
                                    n_row < 0 ? "0"
                                    : i       ? "2"
                                              : "1",
                                    n_row < 0 ? 32 : 64, 1000 * (i + 1)};
        const struct key_row k = made_key(&d, &c, "host");
        struct latency_row row = ROW_OF(latency, LATENCY, &k);
        struct memory_row memory = ROW_OF(memory, MEMORY, &k);
        text_put(row.status_detail, LINE_SIZE, remark);
        row.median_ns = row.ci95_low_ns = row.ci95_high_ns = c.ns;
        memory.weights_bytes = 4 * (1234567 + i);
        for (int n = 0; n < FACTS; n++)
            set(&row, &facts[n], i && (differing >> n & 1));
        made_write(&d, TABLE_LATENCY, &row);
        made_write(&d, TABLE_MEMORY, &memory);
    }
    r = ranked_end(&d, RANKED_VARIANTS);
    cr_assert_eq(r.n, 1);
    char *text = PRINTED(f, rankings_print(f, &r, RANKED_VARIANTS, 100, false));
    folder_remove();
    folder_make();
    return text;
}

static char *drawn(unsigned differing, const char *remark)
{
    return drawn_of(differing, remark, false);
}

static bool has_word(const char *text, const char *word)
{
    const size_t n = strlen(word);

    for (const char *at = text; (at = strstr(at, word)); at += n)
        if ((at == text || strchr(" \n", at[-1])) && (!at[n] || strchr(" \n,", at[n])))
            return true;
    return false;
}

Test(ranking_networks, networks_that_are_alike_need_no_line)
{
    char *const text = drawn(0, "");

    cr_expect_not(strstr(text, "parameters"), "%s", text);
    cr_expect_not(strstr(text, "networks"), "%s", text);
}

Test(ranking_networks, a_variant_may_lack_the_first_shape)
{
    char *const text = drawn_of(1 << 5, "", true);

    cr_expect(has_word(text, "relu") && has_word(text, "swiglu"), "%s", text);
}

/* Each alone, and each beside another. */
Test(ranking_networks, every_difference_is_a_column)
{
    for (unsigned a = 0; a < FACTS; a++)
        for (unsigned b = a; b < FACTS; b++) {
            char *const text = drawn(1u << a | 1u << b, ""), *const said = strstr(text, "networks");
            cr_assert(strstr(text, "1 234 567") && strstr(text, "1 234 568"), "%s", text);
            for (unsigned k = 0; k < FACTS; k++) {
                const struct fact *const fact = &facts[k];
                const bool differs = k == a || k == b;
                cr_expect_eq(has_word(text, fact->column), differs, "%s: %s", fact->column, text);
                if (!differs)
                    continue;
                for (int i = 0; i < 2; i++)
                    cr_expect(has_word(text, *fact->value[i] ? fact->value[i] : "-"), "%s: %s",
                              fact->column, text);
                cr_expect_eq(said && has_word(said, fact->column), *fact->option != '\0', "%s: %s",
                             fact->column, text);
                cr_expect(!*fact->option || (said && strstr(said, fact->option)), "%s: %s",
                          fact->column, text);
            }
        }
}

/* What a skeleton leaves is a variant's idea. */
Test(ranking_networks, a_skeleton_is_not_advised_twice)
{
    enum { KV_HEADS = 1, FFN = 1 << 5 };
    char *const own = drawn(FFN, "own"), *const both = drawn(KV_HEADS | FFN, "own");

    HAS(own, "networks differ in ffn\n");
    HAS(both, "networks differ in kv_heads, ffn  -> --kv-heads N\n");
}
