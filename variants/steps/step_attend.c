/* SPDX-License-Identifier: MIT
 *
 * A step that attends: it runs the core that the backend has chosen for its layer, on rows that
 * other steps have made. */
#include "steps.h"
#include "variants/parts/masks.h"

enum { PART = STEP_PART, LAST, UNSEEN }; /* numbers */

struct attn step_attention(const struct steps *t, const struct step *s, struct extent now,
                           const struct attn *sight)
{
    struct attn a = s->core(t, s->n[PART], now);

    if (!sight)
        return a;
    a.window = sight->window;
    a.mask = sight->mask;
    a.mask_of_head = sight->mask_of_head;
    return a;
}

static bool has_values(const struct step *s) { return s->in[ATTEND_V] >= 0; }

struct attn step_operands(const struct step_call *c)
{
    const struct extent now = {c->B, c->length, c->M};
    struct attn a = step_attention(c->steps, c->s, now, c->sight);

    if (c->sight) {
        a.base = c->position - c->M;
        masks_draw(&c->steps->c->masks, c->place->nth, &a);
    }
    a.q = c->in[ATTEND_Q].at;
    a.k = c->in[ATTEND_K].at;
    a.v = c->in[has_values(c->s) ? ATTEND_V : ATTEND_K].at;
    a.k_at.batch = c->in[ATTEND_K].batch;
    a.v_at.batch = c->in[has_values(c->s) ? ATTEND_V : ATTEND_K].batch;
    a.o = c->out[ATTEND_RESULT].at;
    a.lse = c->out[ATTEND_LSE].at;
    if (a.add.at)
        a.add.at = c->param[0] ? c->param[0]->data : c->in[ATTEND_ADD].at;
    return a;
}

static void forward(const struct step_call *c)
{
    const struct attn a = step_operands(c);
    struct attn_place place = *c->place;

    if (a.L == 0)
        return;
    place.part = c->s->n[PART];
    place.first = c->s->n[LAST] ? c->length - a.L : 0;
    if (!c->s->n[UNSEEN])
        attn_seen(c->g, place, &a);
    c->core->forward(c->g, &a, c->scratch);
}

/* Of keys that are values, too: their gradient as values. */
static size_t scratch(const struct engine *g, const struct step *s, struct extent max,
                      bool backward)
{
    const size_t rows = (size_t)max.B * (size_t)(max.M + max.L);

    return backward && !has_values(s) ? sizeof(float) * rows * (size_t)s->width[ATTEND_K] : 0;
}

static void backward(const struct step_call *c)
{
    const struct attn a = step_operands(c);
    const ptrdiff_t rows = has_values(c->s) ? 0 : (ptrdiff_t)a.B * attn_keys(&a);
    float *const as_values = c->scratch, *const d_k = c->d_in[ATTEND_K].at;
    const struct attn_grad d = {
        .d_o = c->d_out->at,
        .d_q = c->d_in[ATTEND_Q].at,
        .d_k = c->d_in[ATTEND_K].at,
        .d_v = has_values(c->s) ? c->d_in[ATTEND_V].at : as_values,
        .d_add = c->param[0] ? c->param[0]->grad : c->d_in[ATTEND_ADD].at,
    };

    if (a.L == 0)
        return;
    if (c->d_in[ATTEND_ADD].at) /* the core adds to it */
        memset(d.d_add, 0, sizeof(float) * (size_t)a.B * (size_t)a.add.batch);
    c->core->backward(c->g, &a, &d, as_values + rows * a.k_at.row);
    for (ptrdiff_t i = 0; i < rows; i++)
        for (int e = 0; e < attn_dv(&a); e++)
            d_k[i * a.k_at.row + e] += as_values[i * a.k_at.row + e];
}

/* ---- several attentions of one step ---------------------------------------------------------- */

void step_part_forward(const struct step_call *c, const struct attn *a, int first, size_t beside)
{
    struct attn_place place = *c->place;

    place.first = first;
    attn_seen(c->g, place, a);
    c->core->forward(c->g, a, (char *)c->scratch + beside);
}

size_t step_beside(int B, int rows, int width)
{
    const size_t floats = 2 * (size_t)B * (size_t)rows * (size_t)width;

    return round_up(sizeof(float) * floats, ARENA_ALIGN);
}

void step_part_backward(const struct step_call *c, const struct attn *a, struct attn_grad d,
                        struct matrix one[2])
{
    const struct matrix *const k = &c->in[ATTEND_K];

    for (int v = 0; v < 2; v++) {
        one[v] = k[v];
        one[v].at = (float *)c->scratch + v * c->B * k->batch;
    }
    d.d_o = c->d_out->at + (a->o - c->out->at);
    d.d_q = c->d_in->at + (a->q - c->in->at);
    d.d_k = one[0].at;
    d.d_v = one[1].at;
    c->core->backward(c->g, a, &d,
                      (char *)c->scratch + step_beside(c->B, (int)(k->batch / k->row), k->n));
}

void matrix_add_rows(const struct matrix *to, const struct matrix *from, int B, int rows)
{
    for (int b = 0; b < B; b++)
        for (ptrdiff_t i = 0; i < rows; i++)
            for (int e = 0; e < to->n; e++)
                to->at[b * to->batch + i * to->row + e] +=
                    from->at[b * from->batch + i * from->row + e];
}

/* ---- building ----------------------------------------------------------------------------- */

int step_attend(struct steps *t, struct attend a)
{
    static const struct step_kind attend = {.name = "attend",
                                            .forward = forward,
                                            .backward = backward,
                                            .scratch = scratch,
                                            .overwrites = true};

    return step_attend_as(t, &attend, a);
}

int step_attend_as(struct steps *t, const struct step_kind *kind, struct attend a)
{
    const int in[] = {[ATTEND_Q] = a.q, [ATTEND_K] = a.k, [ATTEND_V] = a.v, [ATTEND_ADD] = a.add};
    struct step *const s = steps_add(t, kind);

    s->core = a.core;
    s->n[PART] = a.part;
    s->n[LAST] = a.last;
    s->n[UNSEEN] = a.unseen;
    for (size_t i = 0; i < ARRAY_LEN(in); i++)
        step_reads(t, s, in[i] ? in[i] : NO_VALUE);
    if (a.table)
        step_shares(s, a.table);
    const int o = steps_value_of(t, a.width, a.rows, false);
    const int lse = steps_value_of(t, t->c->H, a.rows, false);
    t->value[lse].of_backward = true;
    step_writes_to(t, s, o);
    step_writes_to(t, s, lse);
    return o;
}

bool steps_core(const struct steps *t, struct extent max, struct attn *a)
{
    bool has = false;

    for (const struct step *s = t->step + t->n - 1; s >= t->step; s--) {
        if (!s->core)
            continue;
        const struct attn one = step_attention(t, s, max, NULL);
        if (!has)
            *a = one;
        has = true;
        a->L = max_int(a->L, one.L);
        a->K = a->K ? max_int(a->K, one.K) : 0;
        a->Hkv = min_int(a->Hkv, one.Hkv);
    }
    return has;
}

struct attn_need steps_core_need(const struct steps *t, const struct attn_impl *core,
                                 const struct engine *g, struct extent max,
                                 const struct attn *sight, bool backward)
{
    struct attn_need most = {0};

    for (const struct step *s = t->step; s < t->step + t->n; s++) {
        if (!s->core)
            continue;
        const struct attn a = step_attention(t, s, max, sight);
        struct attn_need one = (backward ? core->need_backward : core->need)(&a, g->threads);
        one.scratch_bytes += s->kind->scratch ? s->kind->scratch(g, s, max, backward) : 0;
        if (one.scores_bytes + one.scratch_bytes > most.scores_bytes + most.scratch_bytes)
            most = one;
    }
    return most;
}
