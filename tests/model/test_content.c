/* SPDX-License-Identifier: MIT
 *
 * Attention by content: where its choice leaves everything it is full attention; what looks ahead
 * is no language model; centroids move as a step says; pairs are counted. Golden files test the
 * equations, and the tests of all variants segments, caches, causality and gradients. */
#include "tests/support/every_backend.h"
#include "tests/support/model.h"
#include "variants/model/content/groups.h"
#include "variants/model/content/lsh.h"
#include "variants/model/content/routing.h"

enum { TEXT = 21 };
static const struct extent one_pass = {2, TEXT, 0};

static struct config small(const char *variant)
{
    struct config c = config_default(variant_find(variant), 24, 3, 7, 17, 2, 13);

    c.max_seq = TEXT;
    config_numbers_reset(&c);
    return c;
}

/* The same model with plain attention, and a view of the future if that one has it. */
static struct config plain(const struct config *like)
{
    struct config c = *like;

    c.variant = variant_find("rope");
    c.mixer = NULL;
    c.share_qk = false;
    return c;
}

static void expect_same(const struct config *c, const char *backend, const char *what)
{
    const struct config full = plain(c);

    cr_assert_eq(config_check(c, &failure), OK, "%s: %s", what, failure.msg);
    cr_assert_eq(config_check(&full, &failure), OK, "%s: %s", what, failure.msg);
    float *const got = model_logits(c, backend, 2, MEM_NONE, one_pass, TEXT, TEXT);
    float *const want = model_logits(&full, backend, 2, MEM_NONE, one_pass, TEXT, TEXT);
    const size_t n = (size_t)(2 * TEXT * c->V);
    cr_expect_lt(case_error(got, want, n), 1, "%s on %s", what, backend);
}

/* ---- limits ------------------------------------------------------------------------------- */

TEST_EACH(int *b, content, nothing_left_out_is_full_attention, every_backend(), .timeout = 120)
{
    const char *const backend = backends[*b]->name;

    struct config c = small("routing");
    c.share_qk = false;
    set_number(&c, "clusters_of_head", 1);
    set_number(&c, "route_window", 0);
    expect_same(&c, backend, "one cluster");
    set_number(&c, "route_window", TEXT);
    expect_same(&c, backend, "one cluster, a window of all");
    c = small("sinkhorn");
    set_number(&c, "sort_block", TEXT);
    expect_same(&c, backend, "one block");
    c = small("clustered");
    set_number(&c, "cluster_top", TEXT);
    expect_same(&c, backend, "all keys on top");
    c = small("informer");
    set_number(&c, "top_u", TEXT);
    expect_same(&c, backend, "all queries active");
}

/* And where it leaves something out, it is another function. */
Test(content, something_left_out_is_not)
{
    struct config c = small("routing"), full;

    c.share_qk = false;
    full = plain(&c);
    float *const got = model_logits(&c, "ref", 1, MEM_NONE, one_pass, TEXT, TEXT);
    float *const want = model_logits(&full, "ref", 1, MEM_NONE, one_pass, TEXT, TEXT);
    cr_expect_gt(case_error(got, want, (size_t)(2 * TEXT * c.V)), 100);
}

/* ---- centroids ---------------------------------------------------------------------------- */

/* The length of the step of the first layer's centroids after a backward pass, and whether the
 * moved ones are as long as a mean of unit vectors may be. */
static double step_of(float decay)
{
    struct config c = small("routing");
    struct model m;
    double squares = 0;

    ((struct routing *)c.numbers[SLOT_MIXER].bytes)->mu_decay = decay;
    model_open_trained(&m, &c, "ref", 1, MEM_NONE, one_pass);
    params_zero_grad(&m.lm.params);
    int32_t tokens[2 * TEXT];
    for (int i = 0; i < 2 * TEXT; i++)
        tokens[i] = i * 5 % c.V;
    float nll[2 * TEXT];
    lm_forward(&m.lm, &m.g, tokens, 2, TEXT, TEXT, tokens, nll);
    lm_backward(&m.lm, &m.g, tokens, tokens, 2, TEXT);
    const struct param *const mu = params_find(&m.lm.params, "layers.0.mu");
    cr_assert(mu && mu->buffer);
    for (size_t i = 0; i < mu->n; i++)
        squares += (double)mu->grad[i] * (double)mu->grad[i];
    return sqrt(squares);
}

/* A step is 1 - decay of the way to the mean directions. */
Test(content, centroids_move_by_a_share_of_the_way)
{
    const double all = step_of(0), tenth = step_of(0.9f);

    cr_expect_gt(all, 0.1);
    cr_expect_float_eq(tenth, 0.1 * all, 1e-5 * all);
    cr_expect_eq(step_of(1), 0);
}

/* ---- pairs -------------------------------------------------------------------------------- */

Test(content, pairs_of_one_group_are_those_of_a_window)
{
    const struct groups all = {.n = 1}, window = {.n = 1, .newest = 3, .own_counts = true},
                        last = {.n = 1, .newest = 3, .self_last = true};

    cr_expect_eq(groups_pairs(&all, 5, 2), 3 + 4 + 5 + 6 + 7);
    cr_expect_eq(groups_pairs(&window, 5, 0), 1 + 2 + 3 + 3 + 3);
    cr_expect_eq(groups_pairs(&last, 5, 0), 1 + 1 + 2 + 3 + 3);
}

/* ---- gathers ------------------------------------------------------------------------------ */

static double moved(const char *variant, const char *numbers, int L, int M)
{
    struct config c = config_default(variant_find(variant), 24, 3, 7, 17, 1, 13);

    c.max_seq = L;
    config_numbers_reset(&c);
    MUST(settings_parse(&c, numbers, false, &failure));
    return content_moved_rows(&c, L, M);
}

/* By hand: 32 rows in 4 groups of 8. routing copies each row's query, key and value, and its
 * output. reformer sees its own row last: in each group the last key is not read, and the first
 * row's value is its output. With 64 rows before, of which a query sees 3 and its own, a group has
 * 3 keys more, and no row is alone. */
Test(content, rows_that_gathers_move)
{
    NUMBERS(
        {moved("routing", "clusters_of_head=4", 32, 0), 4 * 32},
        {moved("routing", "clusters_of_head=4,route_window=4", 32, 64), 2 * 32 + 2 * (32 + 4 * 3)},
        {moved("reformer", "lsh_half=2", 32, 0), 4 * (2 * 7 + 2 * 7 + 1)},
        {moved("reformer", "lsh_half=2,lsh_window=3", 32, 64), 4 * (2 * 8 + 2 * (3 + 8 - 1))});
    /* own keys and values, and mixed ones before all blocks but the first */
    NUMBERS({moved("sinkhorn", "sort_block=8", 32, 0), 2 * (32 + 3 * 8)},
            {moved("informer", "top_u=5", 32, 0), 2 * 5},
            {moved("clustered", "clusters=5", 32, 0), 32});
    /* several rounds read rows where they are */
    cr_expect_eq(moved("reformer", "lsh_rounds=2", 32, 0), 0);
}

/* Forms that copy rows while they compute: nothing says how long the copies alone take. */
Test(content, gathers_that_cannot_be_timed_alone)
{
    EACH_TEXT (form, "sinkhorn", "informer", "clustered") {
        const struct config c = small(form);
        struct model m;
        model_open(&m, &c, "ref", 1, MEM_NONE, one_pass);
        model_segment(&m, 0, 2, 0, TEXT, TEXT);
        cr_expect_gt(sublayers_moves(&m.lm.sublayers, 2, TEXT, 0), 0, "%s", form);
        cr_expect_not(sublayers_gather(&m.lm.sublayers, &m.g, 2, TEXT), "%s", form);
    }
}

/* Of real groups: what is copied is counted by the rows of each. */
Test(content, gathers_of_real_groups)
{
    enum { ROWS = 32, GROUPS = 4, DH = 7, HEADS = 3 };
    struct config c = config_default(variant_find("routing"), 24, HEADS, DH, 17, 1, 13);
    struct model m;

    c.max_seq = ROWS;
    cr_assert_eq(settings_parse(&c, "clusters_of_head=4,route_window=0", false, &failure), OK);
    model_open(&m, &c, "ref", 1, MEM_NONE, (struct extent){1, ROWS, 0});
    model_segment(&m, 0, 1, 0, ROWS, ROWS);
    struct sublayers *const s = &m.lm.sublayers;
    /* each row is in one group, however large these are: 16 bytes a number and head */
    cr_expect_eq(sublayers_moves(s, 1, ROWS, 0), 4.0 * DH * HEADS * 4 * ROWS);
    float before[ROWS * HEADS * DH];
    const float *const o = s->work[0].array[CT_O];
    memcpy(before, o, sizeof(before));
    cr_expect(sublayers_gather(s, &m.g, 1, ROWS));
    /* nothing was computed in between: every output came back from the last group that ran there */
    cr_expect_neq(memcmp(before, o, sizeof(before)), 0);
    sublayers_gather(s, &m.g, 1, ROWS);
    model_segment(&m, 0, 1, 0, ROWS, ROWS);
    cr_expect_eq(memcmp(before, o, sizeof(before)), 0, "a forward after it is as before");
}
