/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: bytes become a call of the library's recurrence, forward and backward. Of calls
 * with numbers of ordinary size whose states do not grow, outputs are those of the equations and
 * gradients those of ref. */
#include "library_call.h"

enum { OPERANDS = 8 };
static const struct {
    size_t operand, grad;
    float size;
} recurrence_rows[OPERANDS] = {
#define ROWS(x, size)                                                                              \
    {                                                                                              \
        OF(ba_recurrence, x), OF(ba_recurrence_grad, d_##x), size                                  \
    }
    ROWS(q, 1),    ROWS(k, 0.25f), ROWS(v, 1),     ROWS(g, -1),
    ROWS(beta, 1), ROWS(a, 0.25f), ROWS(b, 0.25f), ROWS(i, 1),
#undef ROWS
};

static struct ba_recurrence recurrence_numbers(struct input *in)
{
    struct ba_recurrence r = {.size = sizeof(r)};
    const int kind = byte(in);

    r.B = around(in, 1 + kind % 2);
    r.Hs = around(in, (kind >> 1) % 4);
    r.H = around(in, (r.Hs > 0 && r.Hs < 4 ? r.Hs : 1) * (1 + byte(in) % 3));
    r.L = kind % 16 == 8 ? around(in, 60 + byte(in) % 20) : number(in, 9);
    r.M = kind & 16 ? 0 : number(in, 9);
    r.dk = kind & 32 ? 1 : number(in, 20);
    r.dv = number(in, 20);
    r.g_width = chance(in, 2) ? around(in, byte(in) % 2 ? r.dk : 1) : 0;
    r.scale = real(in);
    r.norm = chance(in, 3) ? number(in, 2) : 0;
    r.eps = r.norm == BA_NORM_SUM && chance(in, 2) ? real(in) : chance(in, 64) ? 1 : 0;
    r.texts = chance(in, 64) ? number(in, 1) : 0;
    return r;
}

static void recurrence_arrays(struct input *in, struct ba_recurrence *r, struct call *c)
{
    const double B = r->B, H = r->H, Hs = r->Hs ? r->Hs : r->H, dk = r->dk, dv = r->dv, L = r->L;
    const double T = L + r->M, width[OPERANDS] = {dk, dk, dv, r->g_width, 1, dk, dk, 1};
    const bool norm = r->norm != 0, gate = norm && r->g_width <= 1 && chance(in, 2);
    const int erase = norm && !chance(in, 16) ? 0 : byte(in) % 4;
    const bool ones = r->dk == 1 && chance(in, 2);
    const bool there[OPERANDS] = {!ones && (L > 0 || chance(in, 4)),
                                  !ones,
                                  !chance(in, 64),
                                  r->g_width || chance(in, 64),
                                  erase == 1,
                                  erase == 2,
                                  erase == 2,
                                  gate || chance(in, 64)};
    const double state = B * Hs * dk * dv;

    for (int i = 0; i < OPERANDS; i++) {
        struct ba_rows *const x = (void *)((char *)r + recurrence_rows[i].operand);
        const double n = i ? T : L, heads = i ? Hs : H;
        if (!there[i])
            continue;
        x->per = chance(in, 6) ? number(in, 3) : byte(in) % 2;
        const double parts = ceil(heads / (x->per > 0 ? (double)x->per : 1));
        x->head = stride(in, width[i]);
        x->row = stride(in, width[i] * parts);
        x->batch = stride(in, width[i] * parts * n);
        add_array(c, true, recurrence_rows[i].operand + OF(ba_rows, at),
                  n > 0 ? reach(B, x->batch, n, x->row, parts, x->head, width[i]) : 0, READ,
                  recurrence_rows[i].size);
    }
    add_array(c, erase == 3, OF(ba_recurrence, u), H * dk, READ, 1);
    const bool before = chance(in, 2);
    add_array(c, before, OF(ba_recurrence, s0), state, READ, 1);
    add_array(c, before && norm, OF(ba_recurrence, z0), B * Hs * dk, READ, 1);
    add_array(c, before && gate, OF(ba_recurrence, m0), B * Hs, READ, 1);
    add_array(c, !chance(in, 4), OF(ba_recurrence, s1), state, WRITTEN, 0);
    add_array(c, norm && !chance(in, 4), OF(ba_recurrence, z1), B * Hs * dk, WRITTEN, 0);
    add_array(c, gate && !chance(in, 4), OF(ba_recurrence, m1), B * Hs, WRITTEN, 0);
    add_array(c, L > 0 || chance(in, 4), OF(ba_recurrence, o), B * L * H * dv, WRITTEN, 0);
    add_array(c, !chance(in, 8), OF(ba_recurrence, den), B * L * H, WRITTEN, 0);
}

static void recurrence_grad_arrays(struct input *in, const struct call *r, struct call *d)
{
    static const struct {
        size_t operand, grad;
        enum role role;
    } rest[] = {{OF(ba_recurrence, u), OF(ba_recurrence_grad, d_u), ADDED},
                {OF(ba_recurrence, s0), OF(ba_recurrence_grad, d_s0), WRITTEN},
                {OF(ba_recurrence, z0), OF(ba_recurrence_grad, d_z0), WRITTEN},
                {OF(ba_recurrence, o), OF(ba_recurrence_grad, d_o), READ},
                {OF(ba_recurrence, s1), OF(ba_recurrence_grad, d_s1), READ}};
    const struct array *x;

    for (int i = 0; i < OPERANDS; i++)
        if ((x = find_array(r, recurrence_rows[i].operand)) && !chance(in, 6))
            add_array(d, true, recurrence_rows[i].grad, x->n, WRITTEN, 0);
    for (size_t i = 0; i < ARRAY_LEN(rest); i++)
        if ((x = find_array(r, rest[i].operand)) && !chance(in, 6))
            add_array(d, true, rest[i].grad, x->n, rest[i].role, 1);
}

/* Are divisors away from 0, and no output so large that rounding is? */
static bool is_steady(const struct ba_recurrence *r, const struct call *c)
{
    const struct array *const den = find_array(c, OF(ba_recurrence, den));
    const struct array *const o = find_array(c, OF(ba_recurrence, o));

    for (size_t i = 0; r->norm && den && i < (size_t)den->n; i++)
        if (fabs(value(den, 0, i)) < 0.1)
            return false;
    return (!r->norm || den) && (!o || largest_of(o, 0) < 100);
}

static void judge_states(const struct ba_recurrence *r, const struct call *c)
{
    const struct array *const o = find_array(c, OF(ba_recurrence, o));
    const size_t states = (size_t)r->B * (size_t)(r->Hs ? r->Hs : r->H) * (size_t)r->dk;
    const struct array *const s1 = find_array(c, OF(ba_recurrence, s1));
    const size_t n = o ? (size_t)o->n : 0;
    double *const want = calloc(n + 1, 8), *const s = calloc(states * (size_t)r->dv, 8);

    answered.judged++;
    judge_recurrence(r, &(struct judged_recurrence){.o = want, .s1 = s});
    for (size_t i = 0; i < n; i++)
        CHECK(near(value(o, 1, i), want[i], largest_of(o, 0)));
    for (size_t i = 0; s1 && i < (size_t)s1->n; i++)
        CHECK(near(value(s1, 1, i), s[i], largest_of(s1, 0)));
    free(want), free(s);
}

PASSES(ba_recurrence)

static void recurrence(struct input *in, struct ba_engine *const pair[2])
{
    struct ba_recurrence r = recurrence_numbers(in), s;
    struct ba_recurrence_grad d = {.size = sizeof(d)}, e = d;
    struct call c = {.n = 0}, cd = {.n = 0};

    recurrence_arrays(in, &r, &c);
    recurrence_grad_arrays(in, &c, &cd);
    const double work = (double)r.B * r.H * ((double)r.M + r.L) * ((double)r.dk + 8) * r.dv;
    place_arrays(&c, work);
    place_arrays(&cd, c.fits ? 0 : INFINITY);
    s = r;
    enter(&c, 0, &r), enter(&c, 1, &s);
    enter(&cd, 0, &d), enter(&cd, 1, &e);
    if (!c.fits) {
        /* Refused after all else: the gradient of what is not there. */
        *(r.i.at ? &d.d_beta : &d.d_i) = (float *)memory.forbidden;
        CHECK(call(backward, pair[1], &r, &d) != BA_OK || (r.i.at && r.beta.at));
        return;
    }
    /* A state that is scaled by exp(m0) without an m0 has no meaning. */
    const bool known = !(s.i.at && s.s0 && !s.m0);
    if (!taken(forward, pair, &c, (void *[]){&r, &s}, (void *[]){NULL, NULL})) {
        CHECK(!taken(backward, pair, &cd, (void *[]){&r, &s}, (void *[]){&d, &e}));
        return;
    }
    const bool steady = in->tame && known && is_steady(&r, &c);
    if (steady)
        expect_alike(&c);
    if (steady && work < JUDGED)
        judge_states(&s, &c);
    if (taken(backward, pair, &cd, (void *[]){&r, &s}, (void *[]){&d, &e}) && steady &&
        r.norm != BA_NORM_MLSTM) /* whose bound has a corner */
        expect_alike(&cd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return try_call(recurrence, bytes, size);
}
