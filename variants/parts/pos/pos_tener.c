/* SPDX-License-Identifier: MIT
 *
 * TENER's directed, unscaled relative positions (Yan et al. 2019):
 *
 *   s    = (q + u) . k + (q + v) . R[dist]
 *   R[n] = [sin(n f), cos(n f)]
 *   f_j  = 10000^(-j/(d/2-1))
 *
 * R is not projected; the sine tells the two directions apart. The published program adds
 * k . R[dist] and has -dist in the query's term: tener_kr, tener_sign. */
#include "variants/parts/parts.h"

enum { TENER_U, TENER_V };
enum tener_sign { SIGN_PAPER, SIGN_CODE };
static const char *const sign_name[] = {"paper", "code", NULL};

struct tener {
    bool kr;
    enum tener_sign sign;
};

static const struct choice tener_choices[] = {
    ROW_FLAG(struct tener, kr, "tener_kr", "1: keys have a relative term, too", .scope = SCOPE_CORE,
             .setting = true, .absent = "0"),
    ROW_WORD(struct tener, sign, "tener_sign", sign_name,
             "sign of the distance in the query's term", .scope = SCOPE_CORE, .absent = "paper",
             SETTING),
    {0},
};

static const struct part_numbers tener_numbers = {tener_choices,
                                                  .size = NUMBERS_SIZE(struct tener)};

static const struct tener *tener_of(const struct config *c) { return config_numbers(c, SLOT_POS); }

static void tener_params(const struct config *c, const char *prefix, struct params *p)
{
    static const char *const names[] = {[TENER_U] = "bias_u", [TENER_V] = "bias_v"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        params_add(p, INIT_TABLE, 0, 2, (const int[]){c->H, c->dh}, "%sattn.%s", prefix, names[i]);
}

static void tener_reserve(const struct pos_call *t)
{
    const struct config *const c = t->c;
    struct attn *const a = t->a;

    a->R = t->K;
    a->Rf = c->causal ? 0 : t->K - 1;
    const size_t n = (size_t)(a->R + a->Rf) * (size_t)c->dh;
    a->rel_k = arena_f32(t->arena, PART_REL_POS, n);
    a->rel_q = tener_of(c)->kr ? arena_f32(t->arena, PART_REL_POS, n) : NULL;
    a->u = t->layer[TENER_U].data;
    a->w = t->layer[TENER_V].data;
}

/* R[n] into row [dh], whose last number is 0 if dh is odd; angles are double. */
static void encode(float *row, int dh, int n)
{
    const int half = dh / 2;

    row[dh - 1] = 0;
    for (int j = 0; j < half; j++) {
        const double angle = n * pow(10000, -(double)j / max_int(1, half - 1));
        row[j] = (float)sin(angle);
        row[half + j] = (float)cos(angle);
    }
}

static void tener_build_tables(const struct pos_call *t)
{
    const struct config *const c = t->c;
    struct attn *const a = t->a;
    const int sign = tener_of(c)->sign == SIGN_CODE ? -1 : 1;

    for (int r = 0; r < a->R + a->Rf; r++) {
        const int n = a->R - 1 - r;
        encode((float *)a->rel_k + (ptrdiff_t)r * c->dh, c->dh, sign * n);
        if (a->rel_q)
            encode((float *)a->rel_q + (ptrdiff_t)r * c->dh, c->dh, n);
    }
}

static void tener_terms_grad(const struct pos_call *t)
{
    t->d->d_u = t->layer[TENER_U].grad;
    t->d->d_w = t->layer[TENER_V].grad;
}

const struct pos pos_tener = {
    .name = "tener",
    .numbers = &tener_numbers,
    .layer_params = tener_params,
    .reserve = tener_reserve,
    .build_tables = tener_build_tables,
    .terms_grad = tener_terms_grad,
};
