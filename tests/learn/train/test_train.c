/* SPDX-License-Identifier: MIT
 *
 * Training: one step against its equations, continuation to the same bits, any number of
 * threads to the same numbers, and files that describe themselves. */
#include "harness/learn/score/score.h"
#include "harness/plan/lookup.h"
#include "tests/support/open_trainer.h"
#include "tests/support/sanitized.h"
#include "tests/support/tmp_folder.h"
#include "tests/support/trains.h"

TestSuite(train, .init = folder_make, .fini = folder_remove);

/* ---- the trainer -------------------------------------------------------------------------- */

static struct options parse(const char *variant, const char *backend, int threads)
{
    return training_parse("--variant %s --backend %s --threads %d --seq 16 --mem 24 --steps 12 "
                          "--lr-warmup 3 --corpus copy:lag=5,p=0.9,alphabet=7",
                          variant, backend, threads);
}

Test(train, continues_to_the_same_bits)
{
    const char *const path = in_folder("half.safetensors");
    for (int v = 0; variants[v]; v++)
        if (trains(variants[v]) && sampled((size_t)v, 3)) {
            struct options o =
                parse(variants[v]->name, lookup_fastest(backends, ELEM_F32)->name, 1);
            o.steps = 8;
            o.dropout = v % 2 ? 0.2 : 0;
            expect_goes_on(&o, path, 3, 8, variants[v]->name);
        }
}

Test(train, threads_do_not_change_the_loss)
{
    for (int b = 0; backends[b]; b++) {
        if (backends[b]->adds != ELEM_F32 || backend_usable(backends[b], &failure) != OK)
            continue;
        double loss[2];
        for (int threads = 1; threads <= 2; threads++) {
            struct trainer t;
            struct options o = parse(variants[0]->name, backends[b]->name, threads);
            /* A backend without backward says so. */
            const bool trains_here = trainer_open(&t, &o, &failure) == OK;
            loss[threads - 1] = trains_here ? training_steps(&t, 12) : NAN;
        }
        if (!isnan(loss[0]))
            cr_expect_float_eq(loss[0], loss[1], 1e-5, "%s: %.9g, %.9g", backends[b]->name, loss[0],
                               loss[1]);
    }
}

Test(train, learns_the_source_that_it_can_see)
{
    struct trainer t;
    enum { STEPS = 700 };
    int v = 0;

    SKIP_SANITIZED("hundreds of steps that other tests take, too");
    while (!variant_mem(variants[v])->recurrent) /* one that distinguishes distances */
        v++;
    struct options o = parse(variants[v]->name, "ref", 1);
    o.lr = 0.01;
    o.steps = STEPS;
    training_open(&t, &o);
    t.valid.n = 2000;
    training_steps(&t, STEPS);
    const struct validation got = trainer_validate(&t);
    const double valid = got.nll, floor = got.floor;
    /* From ln 7 = 1.95 most of the way down to the floor near 0.5, and not below it: the floor was
     * computed on the same tokens, but a trained model may be lucky on a few. */
    cr_expect_lt(valid, floor + 0.2, "%.3f, floor %.3f", valid, floor);
    cr_expect_gt(valid, floor - 0.05, "%.3f, floor %.3f", valid, floor);
}

/* Factors published as 0 at the start are 0, and a step changes them. What was validated before leaves
 * nothing behind. */
Test(train, factors_begin_at_nothing_and_validation_repeats)
{
    int factors = 0;

    for (int v = 0; variants[v]; v++) {
        if (!trains(variants[v]))
            continue;
        struct trainer t;
        struct options o = parse(variants[v]->name, "ref", 1);
        training_open(&t, &o);
        t.valid.n = 100;
        const double first = trainer_validate(&t).nll;
        cr_expect_eq(trainer_validate(&t).nll, first, "%s", variants[v]->name);
        for (int i = 0; i < t.lm.params.n; i++)
            if (t.lm.params.v[i].init == INIT_OFF) {
                factors++;
                cr_expect_eq(t.lm.params.v[i].data[0], 0, "%s", variants[v]->name);
            }
        training_steps(&t, 1);
        for (int i = 0; i < t.lm.params.n; i++)
            if (t.lm.params.v[i].init == INIT_OFF)
                cr_expect_neq(t.lm.params.v[i].data[0], 0, "%s", variants[v]->name);
    }
    cr_expect_gt(factors, 0);
}

/* ---- one step ----------------------------------------------------------------------------- */

/* What a step starts from. */
struct before {
    float *data, *m, *v;
};

static void remember(struct before *to, const struct trainer *t, int i)
{
    const size_t n = t->lm.params.v[i].n;
    float *const all = room(3 * n, sizeof(float));

    *to = (struct before){all, all + n, all + 2 * n};
    memcpy(to->data, t->lm.params.v[i].data, n * sizeof(float));
    memcpy(to->m, t->optimizer.m[i], n * sizeof(float));
    memcpy(to->v, t->optimizer.v[i], n * sizeof(float));
}

/* The largest error, in parts of its limit; NaN stays. */
static void worst(double *error, float got, double want, double limit)
{
    const double off = fabs((double)got - want) / limit;

    if (!(off <= *error))
        *error = off;
}

/* Parameter i after AdamW in double from the gradients that the step left, which are not scaled.
 * Limits: a handful of roundings of each term; 1 - 0.999 in float is off by 1.3e-5 of itself; and
 * where the terms of m cancel, its rounding is amplified by the division by sqrt(v). */
static void expect_stepped(const struct trainer *t, int i, const struct before *b, double lr,
                           double scale)
{
    const struct param *const p = &t->lm.params.v[i];
    const double decay = p->rank > 1 && p->init == INIT_LINEAR ? t->opt->weight_decay : 0;
    const int step = t->optimizer.step;
    double first = 0, second = 0, value = 0;

    for (size_t k = 0; k < p->n; k++) {
        const double g = scale * (double)p->grad[k];
        const double m = 0.9 * (double)b->m[k] + 0.1 * g;
        const double v = 0.999 * (double)b->v[k] + 0.001 * g * g;
        const double direction =
            m / (1 - pow(0.9, step)) / (sqrt(v / (1 - pow(0.999, step))) + 1e-8);
        double x = (double)b->data[k] * (1 - lr * decay) - lr * direction;
        if (p->bounded)
            x = fmin(fmax(x, (double)p->least), (double)p->most);
        worst(&first, t->optimizer.m[i][k], m, 1e-6 * (fabs((double)b->m[k]) + fabs(g)) + 1e-40);
        worst(&second, t->optimizer.v[i][k], v, 2e-5 * v + 1e-40);
        worst(&value, p->data[k], x, 1e-6 * fabs(x) + 3e-5 * lr);
    }
    cr_expect(first <= 1 && second <= 1 && value <= 1,
              "%s: first moment, second moment and value are off by %.3g %.3g %.3g of their limit",
              p->name, first, second, value);
}

/* The third of four steps, behind a warm-up of two, from moments of two others, with and without
 * clipping. */
static void expect_one_step(const char *variant, double clip)
{
    enum { MOST_PARAMS = 256, STEP = 3, WARM = 2 };
    struct before before[MOST_PARAMS];
    struct trainer t;
    double square = 0;

    struct options o = parse(variant, "ref", 1);
    o.grad_clip = clip;
    o.weight_decay = 0.1;
    o.lr = 0.01;
    o.lr_warmup = WARM;
    training_open(&t, &o);
    cr_assert_leq(t.lm.params.n, MOST_PARAMS);
    training_steps(&t, STEP - 1);
    for (int i = 0; i < t.lm.params.n; i++)
        remember(&before[i], &t, i);
    const struct step_report r = trainer_step(&t, 0.5);
    for (int i = 0; i < t.lm.params.n; i++)
        for (size_t k = 0; k < t.lm.params.v[i].n; k++)
            square += (double)t.lm.params.v[i].grad[k] * (double)t.lm.params.v[i].grad[k];
    const double norm = sqrt(square), lr = 0.01 * 0.55; /* half of the cosine */
    cr_expect_float_eq(r.grad_norm, norm, 1e-9 * norm, "%s", variant);
    cr_expect_float_eq(r.lr, lr, 1e-12, "%s: rate %g, not %g", variant, r.lr, lr);
    cr_expect_eq(norm > clip, clip < 1, "%s: a norm of %g is clipped to %g", variant, norm, clip);
    for (int i = 0; i < t.lm.params.n; i++)
        expect_stepped(&t, i, &before[i], lr, norm > clip ? clip / norm : 1);
}

Test(train, a_step_is_its_equations)
{
    for (int v = 0; v < BASE_VARIANTS; v++) {
        expect_one_step(variants[v]->name, 0.03);
        expect_one_step(variants[v]->name, 1000);
    }
}

/* ---- texts -------------------------------------------------------------------------------- */

/* Without learning, the second pass over a text of three segments has the losses of the first:
 * other segments, the same memory, and nothing kept from the end of the text. */
Test(train, a_text_that_starts_again_begins_without_memory)
{
    enum { SEGMENTS = 3 };
    double loss[2 * SEGMENTS];

    for (int v = 0; v < BASE_VARIANTS; v++) {
        struct trainer t;
        struct options o = parse(variants[v]->name, "ref", 1);
        o.lr = 0;
        training_open(&t, &o);
        t.text.n = (size_t)(t.B * SEGMENTS * t.L + 1);
        for (int i = 0; i < 2 * SEGMENTS; i++)
            loss[i] = training_steps(&t, 1);
        for (int i = 0; i < SEGMENTS; i++)
            cr_expect_eq(loss[i], loss[SEGMENTS + i], "%s, segment %d", variants[v]->name, i);
        cr_expect(loss[0] != loss[1] && loss[1] != loss[2], "%s", variants[v]->name);
    }
}

/* Where the past is run again, a step is on the tokens before each segment as well, as many as
 * there are up to M; its loss is that of the new ones, as scoring the window gives it. */
Test(train, windows_reach_back)
{
    enum { STEPS = 5 };

    EACH_TEXT (name, "vanilla", "linear", "aan") {
        struct trainer t;
        struct options o = parse(name, "ref", 1);
        o.lr = 0;
        training_open(&t, &o);
        cr_assert(t.past == 24 && t.M == 0 && t.lm.c.max_seq == 16 + 24, "%s", name);
        const size_t part = (t.text.n - 1) / (size_t)t.B;
        for (int step = 0; step < STEPS; step++) {
            const int at = step * t.L, past = min_int(at, 24), n = past + t.L;
            double valid = 0;
            const double loss = training_steps(&t, 1);
            for (int b = 0; b < t.B; b++) {
                const uint8_t *const from = t.text.at + (size_t)b * part + at - past;
                int32_t tokens[40], targets[40];
                for (int i = 0; i < n; i++) {
                    cr_assert_eq(t.tokens[b * n + i], from[i], "%s %d", name, step);
                    tokens[i] = from[i];
                }
                for (int i = 0; i < t.L; i++)
                    targets[i] = from[past + i + 1];
                lm_build_tables(&t.valid_lm, &t.engine);
                lm_forward(&t.valid_lm, &t.engine, tokens, 1, n, t.L, targets, t.nll);
                for (int i = 0; i < t.L; i++)
                    valid += (double)t.nll[i] / (t.B * t.L);
            }
            /* Sums of the same floats in another order. */
            cr_expect_float_eq(loss, valid, 1e-9 * valid, "%s, step %d: %.12g, not %.12g", name,
                               step, loss, valid);
        }
    }
}

/* A state that is carried for ever, and its positions, go on from the files. */
Test(train, all_of_the_past_is_carried)
{
    static const char *const names[] = {"linear", "performer", "aan", "retnet"};

    const char *const path = in_folder("half.safetensors");
    for (size_t v = 0; v < ARRAY_LEN(names); v++) {
        struct trainer t;
        struct options o = parse(names[v], "ref", 1);
        o.mem.v[0] = MEM_ALL;
        training_open(&t, &o);
        cr_expect(t.kind == MEM_STATE && t.past == 0 && t.lm.c.max_seq == 16, "%s", names[v]);
        training_steps(&t, 3);
        cr_expect_eq(t.lm.position, 3 * 16);
        o.dropout = 0.1;
        expect_goes_on(&o, path, 3, 8, names[v]);
    }
}

Test(train, all_of_the_past_needs_a_state)
{
    static const char *const names[] = {"vanilla", "xl", "gdn-hybrid"};

    for (size_t v = 0; v < ARRAY_LEN(names); v++) {
        struct config c;
        struct options o = parse(names[v], "ref", 1);
        o.mem.v[0] = MEM_ALL;
        REFUSED(train_config(&c, variant_find(names[v]), &o, 7, &failure), E_USAGE, names[v],
                "  -> ");
    }
}

/* Files of other windows: those of versions that did not run the past again, too. */
Test(train, other_windows_are_refused)
{
    static const struct {
        const char *name;
        int mem;
        enum status st;
    } cases[] = {{"vanilla", 24, E_USAGE},
                 {"vanilla", 0, OK},
                 {"vanilla", 8, E_USAGE},
                 {"linear", 24, E_USAGE},
                 {"linear", MEM_ALL, OK}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct trainer t;
        const char *const path = in_folder("windows.safetensors");
        struct options o = parse(cases[i].name, "ref", 1);
        o.mem.v[0] = strcmp(cases[i].name, "linear") == 0 ? MEM_ALL : 0;
        training_open(&t, &o);
        training_steps(&t, 2);
        training_save(&t, path);
        o.mem.v[0] = cases[i].mem;
        training_open(&t, &o);
        if (cases[i].st == OK)
            training_load(&t, path);
        else
            REFUSED(trainer_load(&t, path, &failure), cases[i].st, "windows", "  -> ");
    }
}

/* The last twentieth of a file validates and is not learned from. */
Test(train, a_file_is_cut_into_two_parts)
{
    enum { N = 4000 };
    struct trainer t;
    char text[N];

    memset(text, 'a', N);
    memset(text + N - N / 20, 'z', N / 20);
    folder_put("text", text, N);
    struct options o = parse(variants[0]->name, "ref", 1);
    o.corpus = in_folder("text");
    training_open(&t, &o);
    cr_expect(t.text.n == N - N / 20 && t.valid.n == N / 20);
    for (size_t i = 0; i < t.text.n; i++)
        cr_assert_eq(t.text.at[i], 'a');
    for (size_t i = 0; i < t.valid.n; i++)
        cr_assert_eq(t.valid.at[i], 'z');
}

/* ---- files -------------------------------------------------------------------------------- */

/* Masks depend on both. */
static void expect_other_options_refused(const struct options *saved, const char *path)
{
    struct options now = *saved;
    struct trainer t;

    now.dropout = 0.25;
    training_open(&t, &now);
    training_save(&t, path);
    cr_expect_eq(trainer_load(&t, path, &failure), OK, "%s", failure.msg);
    now.dropout = 0.125;
    training_open(&t, &now);
    REFUSED(trainer_load(&t, path, &failure), E_USAGE, "made with --dropout 0.25, now 0.125");
    now.dropout = 0.25;
    now.seed++;
    training_open(&t, &now);
    REFUSED(trainer_load(&t, path, &failure), E_USAGE, "made with --seed ");
}

Test(train, files_that_do_not_belong_together_are_refused)
{
    struct options o, wide;
    struct trainer t, other;

    const char *const path = in_folder("a.safetensors");
    const char *const state = kept_text("%s.opt", path);
    o = parse(variants[0]->name, "ref", 1);
    training_open(&t, &o);
    training_steps(&t, 1);
    training_save(&t, path);
    training_steps(&t, 1);
    MUST(trainer_save_weights(&t, path, &failure));
    REFUSED(trainer_load(&t, path, &failure), E_IO, "step 2", "step 1", state);

    wide = parse(variants[0]->name, "ref", 1);
    wide.d_model = 32;
    training_open(&other, &wide);
    REFUSED(trainer_load(&other, path, &failure), E_USAGE, "cannot resume");
    expect_other_options_refused(&o, path);
    cr_assert_eq(unlink(state), 0);
    cr_expect_eq(trainer_load(&t, path, &failure), E_IO);
}

/* Validation of the weights in memory gives the same as eval of the file. */
Test(train, a_checkpoint_scores_as_it_did_in_training)
{
    for (int v = 0; variants[v]; v++) {
        if (!trains(variants[v]) || !sampled((size_t)v + 1, 3))
            continue;
        struct trainer t;
        struct scorer s = {0};

        const char *const path = in_folder("scored.safetensors");
        struct options o = parse(variants[v]->name, "ref", 1);
        training_open(&t, &o);
        training_steps(&t, 3);
        t.valid.n = 500;
        const double valid = trainer_validate(&t).nll;
        MUST(trainer_save_weights(&t, path, &failure));

        /* The same symbols: a file of the model's own vocabulary is not bytes, so score the source.
         */
        o.ckpt = path;
        s.opt = &o;
        s.topo = t.topo;
        o.bytes = (int)t.valid.n;
        o.batch.n = 0; /* that of the training */
        MUST(score_run(&s, SPLIT_VALID, &failure));
        cr_expect_float_eq(s.report.nll, valid, 1e-9, "%s", variants[v]->name);
    }
}
