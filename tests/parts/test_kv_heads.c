/* SPDX-License-Identifier: MIT
 *
 * Query heads that share key/value heads: the model equals the one whose weights repeat each shared
 * head, forward and backward; its memory is smaller by the ratio of heads. */
#include "tests/support/command_line.h"
#include "tests/support/every_backend.h"
#include "tests/support/model.h"

enum { HEADS = 6, DH = 4, D = 12, V = 11, BATCH = 2, L = 5, MEM = 7, TOKENS = 23 };
static const struct extent bound = {BATCH, L, MEM};

static struct config grouped(const struct variant *v, int kv_heads)
{
    struct config c = config_default(v, D, HEADS, DH, 17, 2, V);

    c.kv_heads = kv_heads;
    c.clip = 3;
    c.rel_rows = 4;
    c.max_seq = TOKENS;
    c.attn_bias = true;
    c.attn_bias = config_check(&c, NULL) == OK; /* some have none */
    return c;
}

static enum mem_kind kind_of(const struct variant *v)
{
    return variant_mem(v)->recurrent ? MEM_HIDDEN : MEM_NONE;
}

/* Weights of `to`, which has all heads, from those of `from`, which has few. */
static void repeat_heads(struct params *to, const struct params *from)
{
    cr_assert_eq(to->n, from->n);
    for (int i = 0; i < to->n; i++) {
        const struct param *w = &to->v[i], *few = &from->v[i];
        cr_assert_str_eq(w->name, few->name);
        if (w->n == few->n) {
            memcpy(w->data, few->data, w->n * sizeof(float));
            continue;
        }
        const size_t head = w->n / HEADS, group = w->n / few->n;
        for (size_t h = 0; h < HEADS; h++)
            memcpy(w->data + h * head, few->data + h / group * head, head * sizeof(float));
    }
}

/* Variants whose heads attend by the same code, ignoring how the layer continues, sizes and
 * defaults. */
static bool attend_alike(const struct variant *v, const struct variant *w)
{
    return v->pos == w->pos && variant_mem(v) == variant_mem(w) && v->mixer == w->mixer &&
           v->attn_extra == w->attn_extra && v->score_residual == w->score_residual &&
           v->qkv_map == w->qkv_map && !v->mask == !w->mask;
}

/* Every kind of attention on backend b, with the divisors in turn. */
static void each_sharing(int b, void (*test)(const struct variant *, int, const char *))
{
    static const int divisors[] = {1, 2, 3};

    if (backend_usable(backends[b], &failure) != OK)
        cr_skip_test("%s", failure.msg);
    for (int v = 0, kinds = 0; variants[v]; v++) {
        const struct config c = grouped(variants[v], HEADS);
        bool again = !config_groups(&c) || variants[v]->bidirectional;
        for (int w = 0; w < v; w++)
            again = again || attend_alike(variants[v], variants[w]);
        if (!again)
            test(variants[v], divisors[(kinds++ + b) % 3], backends[b]->name);
    }
}

static void repeat(const struct variant *v, int kv_heads, const char *backend)
{
    const struct config few = grouped(v, kv_heads), all = grouped(v, HEADS);

    for (int kind = kind_of(v); kind <= (variant_mem(v)->recurrent ? MEM_KV : MEM_NONE); kind++) {
        struct model got, want;
        model_open(&got, &few, backend, 1, (enum mem_kind)kind, bound);
        model_open(&want, &all, "ref", 1, (enum mem_kind)kind, bound);
        repeat_heads(&want.lm.params, &got.lm.params);
        float *x = model_stream(&got, 0, BATCH, TOKENS, L);
        float *y = model_stream(&want, 0, BATCH, TOKENS, L);
        cr_expect_lt(case_error(x, y, BATCH * TOKENS * V), 1, "%s, %d of %d heads, %s, %s", v->name,
                     kv_heads, HEADS, backend, mem_kind_name[kind]);
    }
}

TEST_EACH(int *b, kv_heads, repeated_heads_are_the_same_model, every_backend(), .timeout = 120)
{
    each_sharing(*b, repeat);
}

/* ---- backward ------------------------------------------------------------------------------ */

static void open_trained(struct model *m, const struct config *c, const char *backend)
{
    model_open_trained(m, c, backend, 1, kind_of(c->variant), bound);
}

/* One segment becomes memory, the gradient is the next one's. */
static void learn(struct model *m)
{
    int32_t tokens[BATCH * L], targets[BATCH * L];

    lm_build_tables(&m->lm, &m->g);
    for (int first = 0; first <= L; first += L) {
        for (int i = 0; i < BATCH * L; i++) {
            tokens[i] = token_of(m, i / L, first + i % L);
            targets[i] = token_of(m, i / L, first + i % L + 1);
        }
        lm_forward(&m->lm, &m->g, tokens, BATCH, L, L, targets, m->nll);
        if (first == 0)
            lm_commit(&m->lm, L);
    }
    params_zero_grad(&m->lm.params);
    lm_backward(&m->lm, &m->g, tokens, targets, BATCH, L);
}

static double largest_gradient(const struct params *p)
{
    double largest = 0;

    for (int i = 0; i < p->n; i++)
        for (size_t x = 0; x < p->v[i].n; x++)
            largest = fmax(largest, fabs((double)p->v[i].grad[x]));
    return largest;
}

/* The gradient of a shared head is the sum of those of its repetitions. Relative to the largest
 * number of its parameter, or a fiftieth of the largest of all where that is more, as in the check
 * of a case: the rest of a sum that cancels is no more precise than its terms. */
static void expect_sums(const struct params *got, const struct params *want, const char *who,
                        const char *backend)
{
    const double negligible = largest_gradient(want) / 50;

    for (int i = 0; i < got->n; i++) {
        const struct param *few = &got->v[i], *all = &want->v[i];
        const size_t group = all->n / few->n; /* 1: heads do not share it */
        const size_t head = group > 1 ? all->n / HEADS : all->n;
        double worst = 0, largest = negligible;
        for (size_t x = 0; x < few->n; x++) {
            double sum = 0;
            for (size_t r = 0; r < group; r++)
                sum += (double)all->grad[(x / head * group + r) * head + x % head];
            worst = fmax(worst, fabs((double)few->grad[x] - sum));
            largest = fmax(largest, fabs(sum));
        }
        cr_expect_leq(worst, 1e-4 * largest, "%s, %s: %s: %g of %g", who, backend, few->name, worst,
                      largest);
    }
}

static void sum_over_the_group(const struct variant *v, int kv_heads, const char *backend)
{
    const struct config few = grouped(v, kv_heads), all = grouped(v, HEADS);
    struct model got, want;

    open_trained(&got, &few, backend);
    open_trained(&want, &all, "ref");
    repeat_heads(&want.lm.params, &got.lm.params);
    learn(&got);
    learn(&want);
    expect_sums(&got.lm.params, &want.lm.params, v->name, backend);
}

TEST_EACH(int *b, kv_heads, gradients_are_sums_over_the_group, every_backend(), .timeout = 120)
{
    each_sharing(*b, sum_over_the_group);
}

/* ---- sizes --------------------------------------------------------------------------------- */

Test(kv_heads, memory_shrinks_with_them)
{
    for (int k = 1; k <= HEADS; k++) {
        const struct config c = grouped(variant_find("rope"), k);
        struct model m;
        if (HEADS % k)
            continue;
        model_open(&m, &c, "ref", 1, MEM_KV, bound);
        const size_t rows = (size_t)(c.N * BATCH * MEM);
        cr_expect_eq(m.arena.part[PART_MEMORY], rows * 2 * (size_t)(k * DH) * sizeof(float));
        const struct param *W = params_find(&m.lm.params, "layers.1.attn.v.weight");
        cr_expect(W && W->shape[0] == k * DH && W->shape[1] == D);
        model_open(&m, &c, "ref", 1, MEM_HIDDEN, bound);
        cr_expect_eq(m.arena.part[PART_MEMORY], rows * D * sizeof(float), "hidden states do not");
    }
}

/* Two rows fewer of W_k and W_v for each row of keys: products of 2 D dh each. */
Test(kv_heads, products_shrink_with_them)
{
    const struct config few = grouped(variant_find("rope"), 2);
    const struct config all = grouped(variant_find("rope"), HEADS);
    struct model a, b;

    model_open(&a, &few, "ref", 1, MEM_HIDDEN, bound);
    model_open(&b, &all, "ref", 1, MEM_HIDDEN, bound);
    const double keys = BATCH * (MEM + L), saved = (HEADS - 2) * DH;
    cr_expect_float_eq(lm_flop(&b.lm, BATCH, L, MEM, L) - lm_flop(&a.lm, BATCH, L, MEM, L),
                       few.N * 2 * (2 * keys * D * saved), 1e-6);
    /* dW and, through the norm in front, dX */
    cr_expect_float_eq(lm_grad_flop(&b.lm, BATCH, L, MEM) - lm_grad_flop(&a.lm, BATCH, L, MEM),
                       few.N * 4 * (2 * keys * D * saved), 1e-6);
}

/* ---- choosing ------------------------------------------------------------------------------ */

Test(kv_heads, defaults_divide)
{
    const struct variant *one = variant_find("mqa"), *two = variant_find("gqa");

    for (int H = 1; H <= 64; H++) {
        NUMBERS({variant_kv_heads(variant_find("xl"), H), H}, {variant_kv_heads(one, H), 1},
                {variant_kv_heads(two, H), H % 2 ? 1 : 2});
    }
}

/* A value equal to the variant's own is left out of the repro line. */
Test(kv_heads, option_reaches_the_cell_and_its_line)
{
    static const struct {
        const char *line;
        int kv_heads;
        bool said;
    } cases[] = {
        {"--variant xl --backend ref --seq 8 --mem 0 --heads 6 --d-head 4", 6, false},
        {"--variant xl --backend ref --seq 8 --mem 0 --heads 6 --d-head 4 --kv-heads 3", 3, true},
        {"--variant xl --backend ref --seq 8 --mem 0 --heads 6 --d-head 4 --kv-heads 6", 6, false},
        {"--variant gqa --backend ref --seq 8 --mem 0 --heads 6 --d-head 4", 2, false},
        {"--variant gqa --backend ref --seq 8 --mem 0 --heads 6 --d-head 4 --kv-heads 6", 6, true},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct plan p = planned("%s", cases[i].line);
        cr_assert_eq(p.n, 1);
        NUMBERS_OF(p.cases[0].repro, {p.cases[0].config.kv_heads, cases[i].kv_heads},
                   {strstr(p.cases[0].repro, "--kv-heads") != NULL, cases[i].said});
        const struct plan q = planned("%s", p.cases[0].repro);
        cr_expect(q.n == 1 && strcmp(q.cases[0].case_id, p.cases[0].case_id) == 0);
        cr_expect_eq(q.cases[0].config.kv_heads, cases[i].kv_heads);
    }
}

Test(kv_heads, option_must_divide)
{
    struct plan p;

    REFUSED(try_plan(&p, "--variant xl --backend ref --kv-heads 3", &failure), E_USAGE,
            "xl: --kv-heads 3 does not divide --heads 8  -> use a divisor");
}

/* Recurrent mixers have a state per head: alone they refuse it, among others they keep theirs. */
Test(kv_heads, option_is_for_attention)
{
    struct plan p;

    REFUSED(try_plan(&p, "-V gla -b ref --seq 4 --mem 0 --kv-heads 2", &failure), E_USAGE, "gla");
    p = planned("-V gla,rope -b ref --seq 4 --mem 0 --kv-heads 2");
    cr_assert_eq(p.n, 2);
    NUMBERS({p.cases[0].config.kv_heads, 8}, {p.cases[1].config.kv_heads, 2});
}
