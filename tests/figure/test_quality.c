/* SPDX-License-Identifier: MIT
 *
 * Quality against cost: which costs a contender has, and which points are named. */
#include "tests/support/figure_rows.h"

TestSuite(plot_quality, .init = folder_make, .fini = folder_remove, .timeout = 240);

static struct study_row trained[200];
static size_t n_trained;

static void put_times(struct rundir *r, int variant, const char *workload, int seq, int mem,
                      const char *backend, double ns, int64_t state)
{
    struct key_row k = key_of(r, variants[variant]->name, backend, seq, mem);

    text_put(k.workload, TEXT_SIZE, workload);
    put_latency(r, &k, ns, 1, 1);
    struct memory_row memory = ROW_OF(memory, MEMORY, &k);
    memory.memory_state_bytes = state;
    made_write(r, TABLE_MEMORY, &memory);
}

/* Three seeds whose losses are `nats`, and a tenth less and more. */
static void train(const char *contender, int variant, double nats)
{
    for (int seed = 0; seed < 3; seed++) {
        struct study_row *const s = study_put(trained, &n_trained, contender, "s", "novel", seed);
        text_put(s->variant, TEXT_SIZE, variants[variant]->name);
        text_put(s->unit, TEXT_SIZE, "byte");
        s->test_nats = nats + 0.1 * (seed - 1);
    }
}

static struct plot finish(struct rundir *r)
{
    put_env(r, 1);
    made_table(kept_text("%s/%s", r->path, tables[TABLE_STUDY].file), TABLE_STUDY, trained,
               n_trained);
    return must_plot(r->path, "quality");
}

static const struct plot_point *named(const struct plot *p, int column, int kind, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (p->point[i].column == column && p->point[i].kind == kind &&
            strcmp(p->point[i].label, name) == 0)
            return &p->point[i];
    return NULL;
}

Test(plot_quality, costs_are_those_after_the_longest_context)
{
    const char *const decode = workload_name[WORK_DECODE], *const first = variants[0]->name,
                      *const second = variants[1]->name;
    struct rundir r = made_open("aaaa");
    for (int v = 0; v < 2; v++) {
        put_times(&r, v, "segment", 10, 0, "one", 10, 1); /* of a shorter context */
        put_times(&r, v, "segment", 10, 64, "one", v ? 30e3 : 50e3, 7777);
        put_times(&r, v, "segment", 10, 64, "two", 40e3, 7777);
        put_times(&r, v, decode, 1, 64, "one", v ? 4e3 : 2e3, v ? 2048 : 0);
    }
    train(first, 0, log(2));
    train(second, 1, 2 * log(2));
    train("another", 1, 3 * log(2)); /* its costs are not known */
    struct plot p = finish(&r);
    cr_assert_eq(p.columns.n, 3, "two times and a state");
    TEXTS({p.columns.v[0].text, "segment: 10 tokens after 64"},
          {p.columns.v[1].text, "decode: one token after 64"},
          {p.columns.v[2].text, "state kept of 64 tokens"});
    const struct plot_point *const a = named(&p, 0, 0, first), *const b = named(&p, 0, 0, second);
    cr_assert(a && b && !named(&p, 0, 0, "another"));
    /* microseconds a token, on the fastest backend */
    NUMBERS({a->x, 4, 1e-12}, {a->y, 1, 1e-12}, {b->x, 3, 1e-12}, {b->y, 2, 1e-12});
    cr_expect(a->low < 1 && a->high > 1);
    cr_expect(named(&p, 0, 1, first) && named(&p, 0, 1, second), "both on the front");
    cr_expect(named(&p, 1, 1, first) && !named(&p, 1, 1, second), "faster, and better");
    cr_expect(!named(&p, 2, 0, first), "it keeps nothing");
    cr_expect_float_eq(named(&p, 2, 0, second)->x, 2, 1e-12, "KiB");
    cr_expect_str_eq(p.y_title, "test loss (bits per byte)");
}

/* Of many points those of the front have names, and those that everybody knows. */
Test(plot_quality, many_points_are_named_where_it_matters)
{
    enum { MANY = 30 };
    int names = 0, points = 0;

    struct rundir r = made_open("aaaa");
    for (int v = 0; v < MANY; v++) {
        put_times(&r, v, "segment", 1, 64, "one", 1e3 * (1 + v), 0);
        train(variants[v]->name, v, v == 20 ? 0.5 : 1 + 0.01 * v);
    }
    struct plot p = finish(&r);
    for (int i = 0; i < p.n; i++) {
        points += p.point[i].kind == 0;
        names += p.point[i].kind == 0 && *p.point[i].label;
    }
    NUMBERS({points, MANY}, {names, BASE_VARIANTS + 1});
    cr_expect(named(&p, 0, 0, variants[20]->name) && named(&p, 0, 0, variants[3]->name));
}

/* gnuplot reads an empty field as that of the row above. */
Test(plot_quality, a_point_without_a_name_has_a_blank_one)
{
    enum { MANY = 30 };
    struct rundir r = made_open("aaaa");
    for (int v = 0; v < MANY; v++) {
        put_times(&r, v, "segment", 1, 64, "one", 1e3 * (1 + v), 0);
        train(variants[v]->name, v, 1 + 0.01 * v);
    }
    struct plot p = finish(&r);
    char *const csv = PRINTED(f, plot_print_csv(f, &p));
    cr_expect_null(strstr(csv, ",\n"), "an empty name");
    HAS(csv, ",\302\240\n");
}
