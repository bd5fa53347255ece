/* SPDX-License-Identifier: MIT
 *
 * Recurrences through the library: the caller's struct, checked, becomes a struct recur. */
#include "fields.h"
#include "inner.h"

#include "variants/backends/recur.h"

/* ---- operands ----------------------------------------------------------------------------- */

static struct recur_rows rows_of(const struct ba_rows *x)
{
    return (struct recur_rows){x->at, x->batch, x->row, x->head, (int)x->per};
}

static struct recur recur_of(const struct ba_recurrence *x)
{
#define ROWS(field) .field = rows_of(&x->field),
    return (struct recur){SAME_IN_RECURRENCE(SAME) ROWS_IN_RECURRENCE(ROWS).Hs =
                              x->Hs ? x->Hs : x->H,
                          .scale = x->scale != 0 ? x->scale : 1, .eps = x->eps};
#undef ROWS
}

/* ---- checks ------------------------------------------------------------------------------- */

static enum status check_sizes(const struct ba_recurrence *x, struct err *e)
{
    const struct number numbers[] = {
        {"B", x->B, 1, LIMIT_LENGTH},
        {"L", x->L, x->M == 0, LIMIT_LENGTH},
        {"M", x->M, 0, LIMIT_LENGTH},
        {"H", x->H, 1, LIMIT_LENGTH},
        {"Hs", x->Hs, 0, x->H},
        {"dk", x->dk, 1, LIMIT_WIDTH},
        {"dv", x->dv, 1, LIMIT_WIDTH},
        {"g_width", x->g_width, 0, x->dk},
        {"norm", x->norm, 0, RECUR_NORMS - 1},
    };
    const int64_t K = (int64_t)x->M + x->L;

    TRY(check_numbers(numbers, ARRAY_LEN(numbers), e));
    TRY(check_product("B H K", x->B, x->H, K, e));
    TRY(check_product("dk dv", x->dk, x->dv + 64, 1, e));
    if (x->Hs && x->H % x->Hs != 0)
        return fail(e, E_USAGE, "Hs %d does not divide H %d  -> use a divisor", x->Hs, x->H);
    if (x->g_width > 1 && x->g_width < x->dk)
        return fail(e, E_USAGE, "g_width is %d  -> use 0, 1 or dk, which is %d", x->g_width, x->dk);
    if (!isfinite(x->scale) || !isfinite(x->eps))
        return fail(e, E_USAGE, "scale or eps is not finite  -> use numbers");
    return OK;
}

static enum status check_arrays(const struct ba_recurrence *x, struct err *e)
{
    const bool erases = x->beta.at || x->a.at || x->b.at, norm = x->norm != BA_NORM_NONE;
    const struct pointer pointers[] = {
        {!x->v.at, false, "v", ""},
        {!x->o && x->L, false, "o", ""},
        {!x->q.at && x->L && x->dk > 1, false, "q", ", with dk above 1"},
        {!x->k.at && x->dk > 1, false, "k", ", with dk above 1"},
        {!x->g.at && x->g_width, x->g.at && !x->g_width, "g", ", by g_width"},
        {false, x->beta.at && (x->a.at || x->b.at), "beta", " beside a and b"},
        {!x->a.at && x->b.at, false, "a", ", with b"},
        {!x->b.at && x->a.at, false, "b", ", with a"},
        {false, x->u && x->i.at, "u", " beside a write gate"},
        {false, norm && erases, "norm", " beside an erase"},
        {false, norm && x->u, "norm", " beside a bonus"},
        {false, x->i.at && !norm, "i", " without a normaliser"},
        {false, x->i.at && x->g_width > 1, "i", " beside decays per channel"},
        {false, x->i.at && x->norm == BA_NORM_SUM && x->eps != 0, "eps", " beside a write gate"},
        {false, x->eps != 0 && x->norm != BA_NORM_SUM, "eps", " without a sum"},
        {false, x->z0 && !norm, "z0", " without a normaliser"},
        {false, x->z1 && !norm, "z1", " without a normaliser"},
        {false, x->m0 && !x->i.at, "m0", " without a write gate"},
        {false, x->m1 && !x->i.at, "m1", " without a write gate"},
    };

    return check_pointers(pointers, ARRAY_LEN(pointers), e);
}

/* Gradients lie as their operands do. */
static enum status check_rows(const struct recur *r, const struct recur_grad *d, struct err *e)
{
    const int K = r->M + r->L;
    const struct {
        const char *name;
        const struct recur_rows *rows;
        const float *d;
        int length, heads, width;
    } all[] = {
        {"q", &r->q, d ? d->d_q : NULL, r->L, r->H, r->dk},
        {"k", &r->k, d ? d->d_k : NULL, K, r->Hs, r->dk},
        {"v", &r->v, d ? d->d_v : NULL, K, r->Hs, r->dv},
        {"g", &r->g, d ? d->d_g : NULL, K, r->Hs, r->g_width},
        {"beta", &r->beta, d ? d->d_beta : NULL, K, r->Hs, 1},
        {"a", &r->a, d ? d->d_a : NULL, K, r->Hs, r->dk},
        {"b", &r->b, d ? d->d_b : NULL, K, r->Hs, r->dk},
        {"i", &r->i, d ? d->d_i : NULL, K, r->Hs, 1},
    };

    for (size_t n = 0; n < ARRAY_LEN(all); n++) {
        const struct recur_rows *const x = all[n].rows;
        const int per = max_int(1, x->per);
        const struct places at = {{r->B, all[n].length, (all[n].heads + per - 1) / per},
                                  {x->batch, x->row, x->head},
                                  all[n].width};
        if (x->at)
            TRY(check_strides(&at, all[n].name, e));
        else if (all[n].d)
            return fail(e, E_USAGE, "d_%s without its operand  -> leave it out", all[n].name);
        if (all[n].d)
            TRY(check_no_overlap(&at, all[n].name, e));
    }
    return OK;
}

static enum status take_recurrence(const struct ba_recurrence *from, struct recur *r,
                                   struct texts *t, struct err *e)
{
    struct ba_recurrence x;

    TRY(take_struct(&x, sizeof(x), FIRST_SIZE(struct ba_recurrence, den), from, "ba_recurrence",
                    e));
#define PER(field) {"per of " #field, x.field.per, 0, LIMIT_LENGTH},
    const struct number per[] = {ROWS_IN_RECURRENCE(PER)};
#undef PER
    TRY(check_sizes(&x, e));
    TRY(take_texts(t, x.texts, x.cu_seqlens, x.L, x.B == 1 && x.M == 0, e));
    TRY(check_numbers(per, ARRAY_LEN(per), e));
    TRY(check_arrays(&x, e));
    *r = recur_of(&x);
    return OK;
}

/* ---- texts -------------------------------------------------------------------------------- */

static struct recur_rows rows_from(struct recur_rows x, ptrdiff_t t)
{
    x.at = x.at ? x.at + t * x.row : NULL;
    return x;
}

/* Number n of parts of an array that may not be there. */
static const float *of(const float *x, ptrdiff_t n) { return x ? x + n : NULL; }
static float *to(float *x, ptrdiff_t n) { return x ? x + n : NULL; }

/* Text n alone. Where one text is everything there may be sequences and keys before them. */
static struct recur text_of(const struct recur *r, const struct texts *t, int n)
{
    const ptrdiff_t at = t->cu[n], keys = (ptrdiff_t)n * r->Hs * r->dk,
                    heads = (ptrdiff_t)n * r->Hs;
    struct recur one = *r;

#define FROM(field) one.field = rows_from(r->field, at);
    ROWS_IN_RECURRENCE(FROM)
#undef FROM
    one.L = t->cu[n + 1] - t->cu[n];
    one.o = to(r->o, at * r->H * r->dv);
    one.den = to(r->den, at * r->H);
    one.s0 = of(r->s0, keys * r->dv);
    one.s1 = to(r->s1, keys * r->dv);
    one.z0 = of(r->z0, keys);
    one.z1 = to(r->z1, keys);
    one.m0 = of(r->m0, heads);
    one.m1 = to(r->m1, heads);
    return one;
}

static struct recur_grad grad_of_text(const struct recur *r, const struct recur_grad *d,
                                      const struct texts *t, int n)
{
    const ptrdiff_t at = t->cu[n], keys = (ptrdiff_t)n * r->Hs * r->dk;

#define FROM(field) .d_##field = to(d->d_##field, at * r->field.row),
    return (struct recur_grad){ROWS_IN_RECURRENCE(FROM).d_u = d->d_u,
                               .d_o = of(d->d_o, at * r->H * r->dv),
                               .d_s1 = of(d->d_s1, keys * r->dv), .d_s0 = to(d->d_s0, keys * r->dv),
                               .d_z0 = to(d->d_z0, keys)};
#undef FROM
}

/* Room for each text. */
static enum status prepare(struct ba_engine *engine, const struct recur *r, const struct texts *t,
                           bool backward, struct err *e)
{
    for (int n = 0; n < t->n; n++) {
        const struct recur one = text_of(r, t, n);
        TRY(engine_room(
            engine,
            engine_recur(&engine->g, &one, backward)->need(&one, engine->g.threads, backward), e));
    }
    return OK;
}

/* ---- calls -------------------------------------------------------------------------------- */

static enum status forward(struct ba_engine *engine, const void *from, const void *no_grads,
                           struct err *e)
{
    struct texts t;
    struct recur r;

    TRY(take_recurrence(from, &r, &t, e));
    TRY(check_rows(&r, NULL, e));
    TRY(prepare(engine, &r, &t, false, e));
    for (int n = 0; n < t.n; n++) {
        const struct recur one = text_of(&r, &t, n);
        engine_recur(&engine->g, &one, false)->forward(&engine->g, &one, engine->room);
    }
    return OK;
}

int ba_recurrence_forward(struct ba_engine *engine, const struct ba_recurrence *r, char *why,
                          size_t why_size)
{
    return called(engine, forward, r, NULL, why, why_size);
}

static enum status check_grads(const struct recur *r, const struct ba_recurrence_grad *d,
                               struct err *e)
{
    const struct pointer pointers[] = {
        {!d->d_o && r->L, false, "d_o", ""},
        {r->norm != RECUR_PLAIN && r->L && !r->den, false, "den", ", which backward reads"},
        {false, d->d_u && !r->u, "d_u", " without its operand"},
        {false, d->d_z0 && !r->norm, "d_z0", " without a normaliser"},
        {false, r->s0 && r->s0 == r->s1, "s1", ", which is s0, before backward"},
        {false, r->z0 && r->z0 == r->z1, "z1", ", which is z0, before backward"},
        {false, r->m0 && r->m0 == r->m1, "m1", ", which is m0, before backward"},
    };

    return check_pointers(pointers, ARRAY_LEN(pointers), e);
}

static enum status backward(struct ba_engine *engine, const void *from, const void *grads,
                            struct err *e)
{
    struct ba_recurrence_grad given, *const x = &given;
    struct texts t;
    struct recur r;

    TRY(take_recurrence(from, &r, &t, e));
    TRY(take_struct(x, sizeof(*x), FIRST_SIZE(struct ba_recurrence_grad, d_z0), grads,
                    "ba_recurrence_grad", e));
    TRY(check_grads(&r, x, e));
    const struct recur_grad d = {SAME_IN_RECURRENCE_GRAD(SAME)};
    TRY(check_rows(&r, &d, e));
    TRY(prepare(engine, &r, &t, true, e));
    for (int n = 0; n < t.n; n++) {
        const struct recur one = text_of(&r, &t, n);
        const struct recur_grad d_one = grad_of_text(&r, &d, &t, n);
        engine_recur(&engine->g, &one, true)->backward(&engine->g, &one, &d_one, engine->room);
    }
    return OK;
}

int ba_recurrence_backward(struct ba_engine *engine, const struct ba_recurrence *r,
                           const struct ba_recurrence_grad *d, char *why, size_t why_size)
{
    return called(engine, backward, r, d, why, why_size);
}
