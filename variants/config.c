/* SPDX-License-Identifier: MIT
 *
 * One model of a variant: defaults, and the choices that make no sense together. */
#include "variant.h"

#include <math.h>

const char *const norm_name[NORM_COUNT] = {"post", "pre", "reorder"};

struct config config_default(const struct variant *v, int D, int H, int dh, int F, int N, int V)
{
    enum { DEFAULT_CLIP = 16 };

    return (struct config){
        .variant = v,
        .pos = v->pos,
        .gate = v->gate,
        .ffn = v->ffn,
        .norm = v->norm,
        .D = D,
        .H = H,
        .dh = dh,
        .F = F,
        .N = N,
        .V = V,
        .scale = (float)(1 / sqrt(dh)),
        .causal = true,
        .clip = DEFAULT_CLIP,
        .rel_rows = DEFAULT_CLIP + 1,
        .rel_k = true,
        .rel_v = true,
        .tied = true,
        .out_bias = true,
        .emb_scale = (float)sqrt(D),
        .ln_eps = 1e-5f,
    };
}

enum status config_check(const struct config *c, struct err *e)
{
    const char *name = c->variant->name;

    if (c->D < 1 || c->H < 1 || c->dh < 1)
        return fail(e, E_USAGE, "%s: d_model %d, heads %d, d_head %d  -> all must be 1 or more",
                    name, c->D, c->H, c->dh);
    if (c->pos->codes && c->D % 2)
        return fail(e, E_USAGE, "%s: --d-model %d is odd  -> sinusoids come in pairs, give %d",
                    name, c->D, c->D + 1);
    if ((c->norm == NORM_REORDER) != (c->gate != NULL))
        return fail(e, E_USAGE, "%s: norm %s %s a gate  -> gates belong to norm reorder", name,
                    norm_name[c->norm], c->gate ? "with" : "without");
    if (c->clip < 0)
        return fail(e, E_USAGE, "%s: --clip %d is negative  -> 0 or more", name, c->clip);
    if (c->rel_rows != c->clip + 1 && c->rel_rows != 2 * c->clip + 1)
        return fail(e, E_USAGE, "%s: %d table rows for clip %d  -> %d (causal) or %d (full)", name,
                    c->rel_rows, c->clip, c->clip + 1, 2 * c->clip + 1);
    return OK;
}
