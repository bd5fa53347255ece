/* SPDX-License-Identifier: MIT
 *
 * The list of a model's tensors: shapes and names as declared, values a function of seed and name
 * alone. */
#include "tests/support/loaded.h"

Test(params, keep_names_shapes_and_order)
{
    struct params p = {0};
    struct arena counting = {0};
    const int cube[] = {2, 3, 4};

    cr_expect_eq(params_matrix(&p, 5, 7, "layers.3.", "attn.q.weight"), 0);
    cr_expect_eq(params_vector(&p, INIT_ONE, 0, 6, "", "ln"), 1);
    cr_expect_eq(params_add(&p, INIT_TABLE, 0, 3, cube, "t.%d", 9), 2);
    cr_expect(p.v[0].rank == 2 && p.v[0].shape[0] == 5 && p.v[0].shape[1] == 7 && p.v[0].n == 35);
    cr_expect(p.v[1].rank == 1 && p.v[1].n == 6 && p.v[2].rank == 3 && p.v[2].n == 24);
    cr_expect_eq(params_find(&p, "layers.3.attn.q.weight"), &p.v[0]);
    cr_expect_eq(params_find(&p, "t.9"), &p.v[2]);
    cr_expect_null(params_find(&p, "t."));
    params_place(&p, &counting);
    cr_expect_eq(counting.part[PART_WEIGHTS], sizeof(float) * (35 + 6 + 24));
    params_free(&p);
    cr_expect(p.n == 0 && !p.v);
}

/* More than one growth of the list, in another order and among other neighbours: same numbers. */
Test(params, values_depend_on_seed_and_name_only)
{
    enum { N = 100 };
    struct params p = {0}, q = {0};
    char name[16];

    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "x.%d", i);
        params_matrix(&p, 3, 5, "", name);
        snprintf(name, sizeof(name), "x.%d", N - 1 - i);
        params_vector(&q, INIT_ZERO, 0, 2, "other.", name);
        params_matrix(&q, 3, 5, "", name);
    }
    place_params(&p), place_params(&q);
    params_init(&p, 7, 1), params_init(&q, 7, 3);
    for (int i = 0; i < N; i++) {
        const struct param *same = params_find(&q, p.v[i].name);
        cr_assert_not_null(same);
        cr_expect_arr_eq(p.v[i].data, same->data, 15 * sizeof(float), "%s", same->name);
        cr_expect_neq(p.v[i].data[0], p.v[(i + 1) % N].data[0]);
    }
    const float before = p.v[0].data[0];
    params_init(&q, 8, 1);
    cr_expect_neq(params_find(&q, "x.0")->data[0], before);
    params_init(&q, 7, 1);
    cr_expect_eq(params_find(&q, "x.0")->data[0], before);
}

/* Mean and deviation of n draws: five standard errors of each, one in a million; the seed is fixed,
 * so it passes always or never. */
static void expect_spread(const struct param *p, double mean, double sd)
{
    double sum = 0, square = 0;
    const double n = (double)p->n;

    for (size_t i = 0; i < p->n; i++)
        sum += (double)p->data[i];
    for (size_t i = 0; i < p->n; i++)
        square += ((double)p->data[i] - mean) * ((double)p->data[i] - mean);
    NUMBERS_OF(p->name, {sum / n, mean, 5 * sd / sqrt(n)},
               {sqrt(square / n), sd, 5 * sd / sqrt(2 * n)});
}

Test(params, each_rule_has_its_spread)
{
    struct params p = {0};
    const int shape[] = {400, 25};

    params_add(&p, INIT_LINEAR, 0, 2, shape, "%s", "linear");
    params_add(&p, INIT_EMBED, 0, 2, shape, "%s", "embed");
    params_add(&p, INIT_TABLE, 0, 2, shape, "%s", "table");
    params_add(&p, INIT_ONE, 0, 2, shape, "%s", "one");
    params_add(&p, INIT_ZERO, 0, 2, shape, "%s", "zero");
    params_add(&p, INIT_CONST, 2, 2, shape, "%s", "const");
    place_params(&p);
    params_init(&p, 1, 1);
    expect_spread(&p.v[0], 0, 0.2); /* 1 / sqrt(25) */
    expect_spread(&p.v[1], 0, 0.2);
    expect_spread(&p.v[2], 0, 0.2);
    expect_spread(&p.v[3], 1, 0.02);
    expect_spread(&p.v[4], 0, 0.02);
    expect_spread(&p.v[5], 2, 0);
}

/* Rows from one end to the other, with powers of their own; logarithms of 1, 2, 3. */
Test(params, ramps_and_counts)
{
    static const float halves[] = {0, 0.5f, 1}, squares[] = {4, 3.75f, 3};
    static const float open[] = {0, 1.f / 3, 2.f / 3};
    const int rows[] = {2, 3};
    struct params p = {0};

    params_ramp(&p, params_add(&p, INIT_RAMP, 0, 2, rows, "%s", "ramp"),
                (struct ramp){.from = 4, .to = 3, .power = {1, 2}});
    params_ramp(&p, params_vector(&p, INIT_ZERO, 0, 3, "", "open"),
                (struct ramp){.to = 1, .power = {1}, .open = true});
    params_ramp(&p, params_vector(&p, INIT_ZERO, 0, 1, "", "one"),
                (struct ramp){.from = 7, .to = 1, .power = {1}});
    params_add(&p, INIT_LOG_COUNT, 0, 2, rows, "%s", "count");
    place_params(&p);
    params_init(&p, 1, 1);
    for (int i = 0; i < 3; i++) {
        NUMBERS({p.v[0].data[i], 4 - halves[i], 1e-6f}, {p.v[0].data[3 + i], squares[i], 1e-6f},
                {p.v[1].data[i], open[i], 1e-6f}, {p.v[3].data[i], log(1 + i), 1e-6f},
                {p.v[3].data[3 + i], p.v[3].data[i]});
    }
    cr_expect_eq(p.v[2].data[0], 7);
}

/* Norms, biases and tables begin as in papers; maps as in a benchmark. */
Test(params, what_training_begins_with)
{
    enum { ROWS = 40, N = 64 };
    static const enum init kinds[] = {INIT_OFF, INIT_ZERO, INIT_ONE, INIT_TABLE, INIT_LINEAR};
    static const double mean[] = {0, 0, 1, 0, 0}, sd[] = {0, 0, 0, 0.02, 0.125};
    struct params p = {0}, q = {0};

    for (struct params *each = &p; each; each = each == &p ? &q : NULL)
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
            params_add(each, kinds[k], 0, 2, (const int[]){ROWS, N}, "t%zu", k);
    place_params(&p), place_params(&q);
    params_init(&p, 7, 1), params_init_training(&q, 7, 1, 1);
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        double off = 0, square = 0, spread = 0;
        for (int i = 0; i < ROWS * N; i++) {
            const double x = (double)q.v[k].data[i] - mean[k];
            off += x, square += x * x;
            spread += fabs((double)p.v[k].data[i] - mean[k]);
        }
        cr_expect(fabs(off) / (ROWS * N) <= 0.1 * sd[k], "t%zu: %g", k, off);
        cr_expect(fabs(sqrt(square / (ROWS * N)) - sd[k]) <= 0.05 * sd[k], "t%zu: %g", k, square);
        cr_expect(spread > ROWS * N * 0.01, "a benchmark's t%zu: %g", k, spread);
    }
    cr_expect_arr_eq(p.v[4].data, q.v[4].data, ROWS * N * sizeof(float));
}

/* Values, gradients and the packed form of three matrices as one; odd widths, a neighbour on each
 * side, and the same values as single matrices. */
Test(params, a_stack_is_one_matrix)
{
    enum { IN = 7 };
    static const int out[] = {5, 4, 9};
    struct params p = {0}, alone = {0};
    struct arena counting = {0};
    char name[] = "w0";

    for (int i = 0; i < 3; i++) {
        name[1] = (char)('0' + i);
        params_matrix(&p, out[i], IN, "", name);
        params_matrix(&alone, out[i], IN, "", name);
    }
    params_vector(&p, INIT_ONE, 0, 3, "", "behind");
    params_stack(&p, 0, 3);
    params_place(&p, &counting);
    cr_expect_eq(counting.part[PART_WEIGHTS], sizeof(float) * (18 * IN + 3));
    place_params(&p), place_params(&alone);
    params_init(&p, 7, 1), params_init(&alone, 7, 1);
    NUMBERS({param_out(&p.v[0]), 18}, {param_out(&p.v[1]), 4});
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(p.v[i].n, (size_t)(out[i] * IN));
        cr_expect_arr_eq(p.v[i].data, alone.v[i].data, p.v[i].n * sizeof(float));
        cr_expect(i == 0 || p.v[i].data == p.v[i - 1].data + p.v[i - 1].n);
    }
    cr_expect(p.v[3].data >= p.v[2].data + p.v[2].n);
}

/* Two lists, one with the matrices stacked and one with them in one tensor, pack to the same. */
static void pack_one(struct params *p, const struct engine *g, struct arena *a)
{
    *a = (struct arena){0};
    for (int pass = 0; pass < 2; pass++) {
        params_place(p, a);
        params_place_grad(p, a);
        params_place_packed(p, g, 64, a);
        if (pass == 0)
            MUST(arena_place(a, HUGE_NEVER, NULL, NULL, &failure));
    }
    for (int i = 0; i < p->n; i++)
        for (size_t j = 0; j < p->v[i].n; j++)
            p->v[i].data[j] = (float)(100 * i) + (float)j;
    kept_copy(p, sizeof(*p));
}

static void expect_same_packed(const struct engine *g)
{
    struct params stack = {0}, whole = {0};
    struct arena a, b;

    params_matrix(&stack, 3, 33, "", "w0");
    params_matrix(&stack, 14, 33, "", "w1");
    params_stack(&stack, 0, 2);
    params_matrix(&whole, 17, 33, "", "w");
    pack_one(&stack, g, &a), pack_one(&whole, g, &b);
    memcpy(whole.v[0].data, stack.v[0].data, whole.v[0].n * sizeof(float));
    cr_expect_eq(stack.v[1].grad, stack.v[0].grad + stack.v[0].n);
    params_pack(&stack, g), params_pack(&whole, g);
    cr_expect_null(stack.v[1].packed);
    cr_expect_eq(stack.v[0].packed != NULL, whole.v[0].packed != NULL);
    if (stack.v[0].packed) {
        const struct gemm like = {.tb = true, .m = 64, .n = 17, .k = 33};
        const size_t n = g->packed_floats(&like);
        cr_expect_eq(a.part[PART_SCRATCH], n * sizeof(float));
        cr_expect_arr_eq(stack.v[0].packed, whole.v[0].packed, n * sizeof(float), "%s",
                         g->backend->name);
    }
}

Test(params, a_stack_packs_as_one_matrix)
{
    int packed = 0;

    for (int i = 0; backends[i]; i++) {
        struct engine g;
        if (engine_open(&g, backends[i]->name, 1, NULL, &failure) != OK)
            continue;
        packed += g.packed_floats != NULL;
        expect_same_packed(&g);
    }
    cr_expect(packed > 0 || cpu_isa() == ISA_BASE, "no backend packs");
}
