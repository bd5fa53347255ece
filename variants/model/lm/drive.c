/* SPDX-License-Identifier: MIT
 *
 * The list of drives, and the plain one: layers one after the other, once. */
#include "drive.h"
#include "lm.h"

static const struct drive *const drives[] = {&drive_depth,    &drive_blend, &drive_exit,
                                             &drive_feedback, &drive_slots, &drive_encoder,
                                             &drive_auxiliary};

const struct drive *drive_of(const struct config *c)
{
    for (size_t i = 0; i < ARRAY_LEN(drives); i++)
        if (drives[i]->has(c))
            return drives[i];
    return &drive_plain;
}

/* ---- layers that positions ran ---------------------------------------------------------------- */

bool layers_last(const struct layers_run *r, int32_t *to, int n)
{
    CHECK(r->n == 0 || r->n >= n);
    for (int i = 0; i < n && r->n; i++)
        to[i] = r->of[r->n - n + i] * r->each;
    return r->n > 0;
}

void layers_count(struct layers_count *all, const struct layers_run *r)
{
    for (int i = 0; i < r->n; i++) {
        const int layers = r->of[i] * r->each;
        CHECK(layers >= 0 && layers <= MAX_LAYERS);
        all->of[layers]++;
    }
}

static double counted(const struct layers_count *all)
{
    double n = 0;

    for (int k = 0; k <= MAX_LAYERS; k++)
        n += all->of[k];
    return n;
}

double layers_mean(const struct layers_count *all)
{
    double sum = 0;

    for (int k = 0; k <= MAX_LAYERS; k++)
        sum += k * all->of[k];
    return sum / counted(all); /* 0/0 is NAN */
}

double layers_p90(const struct layers_count *all)
{
    const double n = counted(all);
    double below = 0;

    for (int k = 0; k <= MAX_LAYERS && n > 0; k++) {
        below += all->of[k];
        if (below >= 0.9 * n)
            return k;
    }
    return NAN;
}

/* ---- what drives share ------------------------------------------------------------------------ */

void arrays_take(struct arena *a, enum part part, size_t n, float **const *to)
{
    for (; *to; to++)
        **to = arena_f32(a, part, n);
}

void layer_forward(struct sublayers *s, const struct engine *g, int l, float *z, float *x, int B,
                   int L)
{
    const int first = sublayers_first(s, l);

    sublayers_part_forward(s, g, first, sublayers_first(s, l + 1) - first, z, x, B, L);
}

void layer_backward(struct sublayers *s, const struct engine *g, int l, float *d, int B, int L)
{
    const int first = sublayers_first(s, l);

    sublayers_part_backward(s, g, first, sublayers_first(s, l + 1) - first, d, B, L);
}

float *layer_state(const struct sublayers *s, int l, float *h)
{
    const int first = sublayers_first(s, l);

    return s->kept && first < s->n ? s->work[first].x : h;
}

/* ---- the plain drive ------------------------------------------------------------------------ */

float *plain_input(const struct lm *m, float *out) { return sublayers_input(&m->sublayers, out); }

static void forward(struct lm *m, const struct engine *g, float *out, int B, int L)
{
    sublayers_forward(&m->sublayers, g, out, plain_input(m, out), B, L);
}

/* The least index of a parameter of sub-layers [from, n), and the largest of those before `from`;
 * own parameters are listed sub-layer after sub-layer, those of the model before them. -1 = there
 * is none.
 */
static void list_bounds(const struct sublayers *s, int from, int *least, int *below)
{
    *least = *below = -1;
    for (int i = 0; i < s->n; i++) {
        const struct sublayer *const t = &s->at[i];
        for (enum own_group k = 0; k < OWN_GROUPS; k++)
            if (t->at[k] >= 0 && i >= from)
                *least = *least < 0 ? t->at[k] : min_int(*least, t->at[k]);
            else if (t->at[k] >= 0)
                *below = max_int(*below, t->at[k]);
    }
}

/* Layer after layer, told of what each completes: nothing where a layer below shares its
 * parameters. */
void layers_backward(struct lm *m, const struct engine *g, before_layer *before,
                     const int32_t *target, int B, int L)
{
    struct sublayers *const s = &m->sublayers;

    for (int end = s->n; end > 0;) {
        const int layer = s->at[end - 1].layer, first = sublayers_first(s, layer);
        int least, below;
        if (before)
            before(m, g, target, layer + 1, B, L);
        sublayers_part_backward(s, g, first, end - first, m->d_h, B, L);
        end = first;
        if (!m->complete)
            continue;
        list_bounds(s, first, &least, &below);
        if (least > below && least > 0)
            m->complete(m->complete_arg, least);
    }
}

void plain_backward(struct lm *m, const struct engine *g, const int32_t *target, int B, int L)
{
    layers_backward(m, g, NULL, target, B, L);
}

double plain_flop(const struct lm *m, int B, int L, int M)
{
    return sublayers_flop(&m->sublayers, B, L, M);
}

double plain_grad_flop(const struct lm *m, int B, int L, int M)
{
    return sublayers_grad_flop(&m->sublayers, B, L, M);
}

const struct drive drive_plain = {
    .input = plain_input,
    .forward = forward,
    .backward = plain_backward,
    .flop = plain_flop,
    .grad_flop = plain_grad_flop,
};
