/* SPDX-License-Identifier: MIT
 *
 * Training in mixed precision: what is rounded, what stays f32, and who cannot. */
#include "tests/support/failure.h"
#include "tests/support/open_trainer.h"
#include "tests/support/sanitized.h"

static struct options parse(const char *backend, const char *dtype)
{
    return training_parse(
        "--variant xl --backend %s --dtype %s --threads 2 --seq 16 --mem 24 --steps 60 "
        "--lr-warmup 3 --corpus copy:lag=5,p=0.9,alphabet=7",
        backend, dtype);
}

/* In mixed precision the loss stays near that of f32, and is another; the weights stay floats. */
Test(train_dtype, learns_as_f32)
{
    enum { STEPS = SANITIZED ? 20 : 60 };
    double loss[ELEM_BF16 + 1];

    for (enum elem elem = ELEM_F32; elem <= ELEM_BF16; elem++) {
        struct trainer t;
        struct options o = parse("ref", elem_name[elem]);
        training_open(&t, &o);
        cr_expect_eq(t.engine.rounds, elem == ELEM_BF16);
        for (int i = 0; i < STEPS; i++)
            loss[elem] = trainer_step(&t, (double)i / STEPS).loss;
        for (int i = 0; i < t.lm.params.n; i++)
            cr_expect(t.lm.params.v[i].elem == ELEM_F32 && t.lm.params.v[i].data);
    }
    cr_expect_float_eq(loss[ELEM_BF16], loss[ELEM_F32], 0.01 * loss[ELEM_F32], "%g, not %g",
                       loss[ELEM_BF16], loss[ELEM_F32]);
    cr_expect_neq(loss[ELEM_BF16], loss[ELEM_F32]);
}

Test(train_dtype, types_that_cannot_be_trained)
{
    static const char *const refused[][3] = {
        {"openblas", "bf16", "do not round both operands"},
        {"onednn", "bf16", "do not round both operands"},
        {"ref", "q8", "not trained in q8"},
        {"ref", "q4", "not trained in q4"},
        {"ref", "q4_1", "not trained in q4_1"},
    };

    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct trainer t;
        if (!backend_find(refused[i][0]))
            continue;
        struct options o = parse(refused[i][0], refused[i][1]);
        REFUSED(trainer_open(&t, &o, &failure), E_UNSUPPORTED, refused[i][2]);
    }
}
