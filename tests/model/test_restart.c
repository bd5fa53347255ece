/* SPDX-License-Identifier: MIT
 *
 * Positions at the input that begin anew with each segment, though its memory stays. */
#include "tests/support/model.h"

enum { BATCH = 2, SEGMENT = 6, ROWS = BATCH * SEGMENT };

static struct config restarting(bool anew)
{
    struct config c = config_default(variant_find("restart"), 12, 3, 4, 17, 2, 11);

    c.max_seq = SEGMENT;
    c.pos_restart = anew;
    return c;
}

/* Of the second segment; with a memory of M rows, and the first as it was or forgotten. */
static float *second(const struct config *c, int M, bool forgotten)
{
    struct model m;

    model_open(&m, c, "ref", 1, MEM_HIDDEN, (struct extent){BATCH, SEGMENT, M});
    model_segment(&m, 0, BATCH, 0, SEGMENT, SEGMENT);
    lm_commit(&m.lm, SEGMENT);
    if (forgotten)
        lm_forget(&m.lm);
    model_segment(&m, 0, BATCH, SEGMENT, SEGMENT, SEGMENT);
    return copied(m.lm.logits, (size_t)(ROWS * c->V));
}

/* Without rows of memory nothing but positions is left of the first segment. */
Test(restart, a_segment_begins_at_position_0)
{
    for (int anew = 0; anew < 2; anew++) {
        const struct config c = restarting(anew);
        float *const on = second(&c, 0, false), *const alone = second(&c, 0, true);
        const bool same = memcmp(on, alone, sizeof(*on) * (size_t)(ROWS * c.V)) == 0;
        cr_expect_eq(same, anew, "anew %d", anew);
    }
}

Test(restart, its_memory_stays)
{
    const struct config c = restarting(true);
    float *const on = second(&c, SEGMENT, false), *const alone = second(&c, SEGMENT, true);

    cr_expect_gt(case_error(on, alone, (size_t)(ROWS * c.V)), 1);
}

/* Where a call begins and ends changes nothing: all of the past is remembered here. */
Test(restart, calls_need_not_be_segments)
{
    const struct config c = restarting(true);
    const struct extent max = {BATCH, SEGMENT + 1, 2 * SEGMENT};
    const size_t n = (size_t)(BATCH * 3 * SEGMENT * c.V);
    float *const whole = model_logits(&c, "ref", 1, MEM_HIDDEN, max, 3 * SEGMENT, SEGMENT);

    for (int L = 1; L <= SEGMENT + 1; L += 2) { /* the longest crosses into the next segment */
        struct config all = c;
        all.mem_len = 2 * SEGMENT;
        float *const parts = model_logits(&all, "ref", 1, MEM_HIDDEN, max, 2 * SEGMENT, L);
        for (int b = 0; b < BATCH; b++) {
            const size_t rows = (size_t)(2 * SEGMENT * c.V);
            const double off =
                case_error(parts + (size_t)b * rows, whole + (size_t)b * n / BATCH, rows);
            cr_expect_lt(off, 1, "parts of %d: %g", L, off);
        }
    }
}
