/* SPDX-License-Identifier: MIT
 *
 * Features of heads as a step (parts/features.h). Directions are a given state of the layer, which
 * its queries and keys share. */
#include "steps.h"
#include "variants/parts/features.h"

enum { QUERIES, PRODUCTS }; /* numbers */
enum { OMEGA, TOP };        /* states */

static int heads_of(const struct step_call *c)
{
    return c->B * c->L * (c->in->n / c->steps->c->dh);
}

static struct directions directions_of(const struct step_call *c)
{
    return (struct directions){c->before[OMEGA], c->before[TOP] ? *c->before[TOP] : 0};
}

static void forward(const struct step_call *c)
{
    const struct directions of = directions_of(c);

    CHECK(c->in->row == c->in->n && c->out->row == c->out->n);
    features_forward(c->g, c->steps->c, &of, c->out->at, c->in->at, heads_of(c), c->s->n[QUERIES]);
}

static void backward(const struct step_call *c)
{
    const struct directions of = directions_of(c);

    features_backward(c->g, c->steps->c, &of, c->d_in->at, c->d_out->at, c->out->at, c->in->at,
                      heads_of(c));
}

static double flop(const struct step *s, int B, int L) { return 2.0 * B * L * s->n[PRODUCTS]; }

static void tables(const struct steps *t, const struct param *model, float *const state[])
{
    *state[steps_state(t, "top")] = features_top(t->c, state[steps_state(t, "omega")]);
}

int step_features(struct steps *t, int x, bool queries)
{
    static const struct step_kind kind = {.name = "features",
                                          .forward = forward,
                                          .backward = backward,
                                          .overwrites = true,
                                          .flop = flop};
    struct step *const s = STEP_READING(t, &kind, x);
    const int heads = t->value[x].width / t->c->dh, m = features_count(t->c);
    const int directions = (int)features_floats(t->c);

    steps_need(t, t->value[x].width % t->c->dh == 0,
               "step_features() of other than whole heads  -> dh columns for each");
    s->n[QUERIES] = queries;
    if (directions) {
        step_given(t, s, "omega", directions)->draw = features_draw;
        step_given(t, s, "top", 1)->in_files = false;
        t->tables = tables;
        s->n[PRODUCTS] = heads * m * t->c->dh;
    }
    return step_writes(t, s, heads * m);
}
