/* SPDX-License-Identifier: MIT
 *
 * What a training may do differently: how weights begin, the loss, the optimiser. */
#include "tests/support/open_trainer.h"
#include "tests/support/property.h"
#include "tests/support/tmp_folder.h"

TestSuite(train_recipe, .init = folder_make, .fini = folder_remove);

static struct options parse(const char *variant, const char *more)
{
    return training_parse("--seq 16 --mem 24 --steps 12 --lr-warmup 3 --corpus "
                          "copy:lag=5,p=0.9,alphabet=7 --variant %s%s",
                          variant, more);
}

/* With --init depth, what is added to the residual stream begins smaller by the root of the number
 * of sub-layers, and nothing else changes: of every variant that is trained. */
Test(train_recipe, init_by_depth)
{
    for (int v = 0; variants[v]; v++) {
        struct options o[2];
        struct trainer t[2];
        int residual = 0;
        for (int i = 0; i < 2; i++)
            o[i] = parse(variants[v]->name, "");
        o[1].init = INITIAL_BY_DEPTH;
        for (int i = 0; i < 2; i++)
            if (trainer_open(&t[i], &o[i], &failure) != OK)
                t[i].lm.params.n = 0; /* not trained at this memory */
        const float by = 1 / sqrtf((float)t[0].lm.sublayers.n);
        for (int i = 0; i < t[0].lm.params.n; i++) {
            const struct param *const a = &t[0].lm.params.v[i], *const b = &t[1].lm.params.v[i];
            residual += a->residual;
            for (size_t k = 0; k < a->n; k++)
                cr_assert_eq(b->data[k], a->residual ? by * a->data[k] : a->data[k], "%s %s",
                             variants[v]->name, a->name);
        }
        cr_expect(t[0].lm.params.n == 0 || residual > 0, "%s", variants[v]->name);
    }
}

/* The gradient is that of nll + z lse^2: linear in z, and z matters. */
Test(train_recipe, z_loss_is_a_part_of_the_gradient)
{
    static const char *const names[] = {"vanilla", "gemma", "exit"};

    for (size_t v = 0; v < ARRAY_LEN(names); v++) {
        struct options o[3];
        struct trainer t[3];
        double off = 0, most = 0, moved = 0, loss[3];
        for (int i = 0; i < 3; i++) {
            o[i] = parse(names[v], "");
            o[i].z_loss = 0.5 * i;
            training_open(&t[i], &o[i]);
            loss[i] = training_steps(&t[i], 1);
        }
        cr_expect(loss[0] == loss[1] && loss[0] == loss[2], "%s: the loss is without it", names[v]);
        for (int p = 0; p < t[0].lm.params.n; p++)
            for (size_t k = 0; k < t[0].lm.params.v[p].n; k++) {
                const double g0 = (double)t[0].lm.params.v[p].grad[k],
                             g1 = (double)t[1].lm.params.v[p].grad[k],
                             g2 = (double)t[2].lm.params.v[p].grad[k];
                off = fmax(off, fabs(g2 - 2 * g1 + g0));
                moved = fmax(moved, fabs(g1 - g0));
                most = fmax(most, fabs(g2));
            }
        cr_expect(moved > 0.01 * most, "%s: by %g of %g", names[v], moved, most);
        /* Roundings of sums over some hundred rows. */
        cr_expect_lt(off, 1e-5 * most, "%s: %g of %g", names[v], off, most);
    }
}

/* ---- dropout ------------------------------------------------------------------------------ */

/* The losses of some steps from the same weights, on the same text, with the masks of a seed. */
static void losses(double *loss, int n, const char *variant, int seed, const char *more)
{
    struct options o, first;
    struct trainer t, like;

    o = parse(variant, kept_text(" --seed %d%s", seed, more)), first = parse(variant, " --seed 1");
    o.mem.v[0] = first.mem.v[0] = 0;
    training_open(&t, &o), training_open(&like, &first);
    for (int i = 0; i < t.lm.params.n; i++)
        memcpy(t.lm.params.v[i].data, like.lm.params.v[i].data, t.lm.params.v[i].n * sizeof(float));
    lm_build_tables(&t.lm, &t.engine);
    for (int i = 0; i < n; i++)
        loss[i] = training_steps(&t, 1);
}

/* The masks of a training are those of its seed, from the first step on: of every variant that is
 * trained. Text and weights are the same, so that without dropout nothing depends on the seed. */
Test(train_recipe, dropout_has_the_seed_of_the_training, .timeout = 240)
{
    enum { STEPS = 3 };

    for (int v = 0; variants[v]; v++) {
        const char *const name = variants[v]->name;
        double plain[2][STEPS], dropped[3][STEPS];
        struct trainer t;
        struct options o = parse(name, " --dropout 0.3");
        o.mem.v[0] = 0;
        const bool trained = trainer_open(&t, &o, &failure) == OK;
        property(variants[v], "seeds of dropout", trained ? "yes" : "not trained");
        if (!trained)
            continue;
        for (int seed = 0; seed < 2; seed++)
            losses(plain[seed], STEPS, name, 1 + seed, "");
        for (int i = 0; i < 3; i++) /* the first one twice */
            losses(dropped[i], STEPS, name, 1 + i % 2, " --dropout 0.3");
        for (int i = 0; i < STEPS; i++) {
            cr_expect_eq(plain[0][i], plain[1][i], "%s, step %d without dropout", name, i);
            cr_expect_eq(dropped[0][i], dropped[2][i], "%s, step %d: the same seed", name, i);
            cr_expect_neq(dropped[0][i], dropped[1][i], "%s, step %d: another seed", name, i);
        }
    }
}

/* A text of one letter and weights that are put back: steps differ by their masks. */
Test(train_recipe, every_step_has_masks_of_its_own)
{
    enum { STEPS = 4, LETTERS = 5000 };
    char letters[LETTERS], line[FILE_PATH + 64];
    double loss[2][STEPS];

    memset(letters, 'a', sizeof(letters));
    const char *const path = in_folder("letters");
    cr_assert_eq(file_replace(path, letters, sizeof(letters), NULL), OK);
    for (int dropped = 0; dropped < 2; dropped++) {
        struct trainer t, like;
        snprintf(line, sizeof(line), " --corpus %s%s", path, dropped ? " --dropout 0.3" : "");
        struct options o = parse("vanilla", line), first = parse("vanilla", line);
        o.mem.v[0] = first.mem.v[0] = 0;
        training_open(&t, &o), training_open(&like, &first);
        for (int i = 0; i < STEPS; i++) {
            loss[dropped][i] = training_steps(&t, 1);
            for (int k = 0; k < t.lm.params.n; k++)
                memcpy(t.lm.params.v[k].data, like.lm.params.v[k].data,
                       t.lm.params.v[k].n * sizeof(float));
            lm_build_tables(&t.lm, &t.engine);
        }
    }
    for (int i = 1; i < STEPS; i++) {
        cr_expect_eq(loss[0][i], loss[0][0], "step %d without dropout", i);
        for (int k = 0; k < i; k++)
            cr_expect_neq(loss[1][i], loss[1][k], "steps %d and %d", i, k);
    }
}

/* ---- parts of a model ---------------------------------------------------------------------- */

/* The norm that clips is that of what is trained, whatever gradient the rest has. */
Test(train_recipe, what_is_frozen_clips_nothing)
{
    struct trainer t;
    double trained = 0, frozen = 0;
    int n = 0;

    struct options o = parse("xl", " --train-only layers.1.ff.2.bias --grad-clip 0.001");
    training_open(&t, &o);
    const double norm = trainer_step(&t, 0).grad_norm;
    for (int i = 0; i < t.lm.params.n; i++)
        for (size_t k = 0; k < t.lm.params.v[i].n; k++) {
            const struct param *const p = &t.lm.params.v[i];
            *(p->frozen ? &frozen : &trained) += (double)p->grad[k] * (double)p->grad[k];
            n += !p->frozen;
            /* A tenth of the clipped gradient, rounded twice. */
            const double want = 0.1 * 0.001 / norm * (double)p->grad[k];
            cr_expect(p->frozen || fabs((double)t.optimizer.m[i][k] - want) <= 1e-6 * fabs(want));
        }
    cr_expect_eq(n, 16);
    cr_expect_float_eq(norm, sqrt(trained), 1e-9 * norm, "%g, not %g", norm, sqrt(trained));
    cr_expect(frozen > 9 * trained && norm > 0.001, "%g, %g", sqrt(frozen), sqrt(trained));
}

/* Classifiers of layer l of N are trained in the first l/2N of the training: of two layers and twelve
 * steps the first layer's in three, told by its gradient; those of the last layer in all. */
Test(train_recipe, losses_of_layers_end_in_the_course)
{
    enum { STEPS = 12 };
    struct trainer t;

    struct options o = parse("alrfou", "");
    training_open(&t, &o);
    cr_assert(o.steps == STEPS && t.lm.c.N == 2 && t.lm.c.aux_targets == 2);
    for (int step = 1; step <= STEPS; step++) {
        training_steps(&t, 1);
        for (int l = 0; l < 2; l++) {
            double sum = 0;
            const char *const name = kept_text("aux.%d.1.weight", l);
            const struct param *const p = params_find(&t.lm.params, name);
            cr_assert(p, "%s", name);
            for (size_t k = 0; k < p->n; k++)
                sum += fabs((double)p->grad[k]);
            cr_expect_eq(sum > 0, l == 1 || step <= 3, "%s, step %d: %g", name, step, sum);
        }
    }
}

/* ---- Muon --------------------------------------------------------------------------------- */

/* Saved in the middle, it ends in the same bits; a state of the other optimiser is refused. */
Test(train_recipe, muon_continues_to_the_same_bits)
{
    const char *const path = in_folder("half.safetensors");
    EACH_TEXT (name, "vanilla", "xl", "switch", "gla", "compressive") {
        const struct options o = parse(name, " --optimizer muon --weight-decay 0.1"),
                             other = parse(name, " --weight-decay 0.1");
        struct trainer wrong;
        struct err e = {""};
        expect_goes_on(&o, path, 3, 6, name);
        training_open(&wrong, &other);
        cr_expect_eq(trainer_load(&wrong, path, &e), E_USAGE, "%s", name);
        HAS(e.msg, "--optimizer");
    }
}

/* The same numbers for any number of threads. */
Test(train_recipe, muon_and_threads)
{
    struct options o[2];
    struct trainer t[2];

    for (int i = 0; i < 2; i++) {
        o[i] = parse("xl", i ? " --optimizer muon --threads 3" : " --optimizer muon");
        training_open(&t[i], &o[i]);
        training_steps(&t[i], 4);
    }
    expect_same_weights(&t[0], &t[1], "threads");
}

/* It learns what AdamW learns: the symbol before is repeated with a probability of 0.9, so that
 * whoever finds out loses 0.57 nats a token, whoever does not ln 7 = 1.95. */
Test(train_recipe, muon_learns)
{
    EACH_TEXT (more, "", " --optimizer muon", " --optimizer muon --muon-scale shape") {
        struct trainer t;
        double last = 0;
        const char *const line = kept_text(
            " --corpus copy:lag=1,p=0.9,alphabet=7 --steps 120 --lr 0.02 --mem 0%s", more);
        struct options o = parse("xl", line);
        training_open(&t, &o);
        training_steps(&t, 100);
        for (int k = 0; k < 20; k++)
            last += training_steps(&t, 1) / 20;
        cr_expect_lt(last, 1.2, "%s: %g", line, last);
    }
}
