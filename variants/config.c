/* SPDX-License-Identifier: MIT
 *
 * One model of a variant: defaults, and the choices that make no sense together. */
#include "sub_list.h"

#include <math.h>
#include <string.h>

const char *const wiring_name[WIRING_COUNT] = {"post",   "pre",         "reorder",
                                               "rezero", "macaron_pre", "macaron_post"};

bool wiring_norms_first(enum wiring w)
{
    return w == WIRING_PRE || w == WIRING_REORDER || w == WIRING_MACARON_PRE;
}

bool wiring_norms_after(enum wiring w) { return w == WIRING_POST || w == WIRING_MACARON_POST; }

int variant_kv_heads(const struct variant *v, int H)
{
    int n = v->kv_heads ? v->kv_heads : H;

    while (n > 1 && H % n)
        n--;
    return n;
}

struct config config_default(const struct variant *v, int D, int H, int dh, int F, int N, int V)
{
    enum { DEFAULT_CLIP = 16 };

    struct config c = {
        .variant = v,
        .pos = v->pos,
        .gate = v->gate,
        .ffn = v->ffn,
        .wiring = v->wiring,
        .norm_kind = v->norm_kind,
        .D = D,
        .H = H,
        .dh = dh,
        .kv_heads = variant_kv_heads(v, H),
        .F = F,
        .N = N,
        .V = V,
        .scale = (float)(1 / sqrt(dh)),
        .causal = true,
        .clip = DEFAULT_CLIP,
        .rel_rows = DEFAULT_CLIP + 1,
        .rel_k = true,
        .rel_v = true,
        .rope_dim = dh - dh % 2,
        .rope_base = 10000,
        .rope_pairs = ROPE_HALVES,
        .t5_buckets = 32,
        .t5_max_distance = 128,
        .tied = true,
        .out_bias = true,
        .emb_scale = (float)sqrt(D),
        .ln_eps = 1e-5f,
        .ffn_bias = true,
        .experts = 4,
        .moe_k = 1,
        .aux_coef = 0.01f,
    };

    if (v->order)
        v->order(c.order, N);
    return c;
}

static enum status check_positions(const struct config *c, struct err *e)
{
    if (c->pos->past_only && !c->causal)
        return fail(e, E_USAGE, "%s: %s positions know no future  -> causal attention",
                    c->variant->name, c->pos->name);
    return c->pos->check ? c->pos->check(c, e) : OK;
}

/* Sub-layers in an order of their own have tensors named for a norm each, and nothing else. */
static enum status check_order(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;

    if (c->variant->order && !*c->order)
        return fail(e, E_USAGE,
                    "%s: %d layers are too many for an order of their own  -> at most %d", name,
                    c->N, (ORDER_MOST - 1) / 2);
    for (const char *at = c->order; *at; at++)
        if (!sub_letter(*at))
            return fail(e, E_USAGE,
                        "%s: order \"%.64s\" has a '%c'  -> s attention, f feed-forward", name,
                        c->order, *at);
    if (*c->order && !strchr(c->order, 's'))
        return fail(e, E_USAGE, "%s: order \"%.64s\" has no attention  -> an s somewhere", name,
                    c->order);
    if (*c->order && c->wiring != WIRING_PRE && c->wiring != WIRING_POST)
        return fail(e, E_USAGE, "%s: norm %s with an order of sub-layers  -> norm pre or post",
                    name, wiring_name[c->wiring]);
    return OK;
}

static enum status check_ffn(const struct config *c, struct err *e)
{
    const char *name = c->variant->name;

    if (c->norm_kind == NORM_UNBIASED && c->D < 2)
        return fail(e, E_USAGE, "%s: norm_kind unbiased of width %d  -> --d-model 2 or more", name,
                    c->D);
    if (!c->ffn->aux) /* what routes nothing has no such loss */
        return OK;
    if (c->experts < 1 || c->moe_k < 1 || c->moe_k > c->experts)
        return fail(e, E_USAGE,
                    "%s: %d of %d experts for each row  -> 1 or more, at most all of them", name,
                    c->moe_k, c->experts);
    if (c->capacity < 0)
        return fail(e, E_USAGE, "%s: capacity %d  -> rows that an expert takes, 0 = any number",
                    name, c->capacity);
    return OK;
}

enum status config_check(const struct config *c, struct err *e)
{
    const char *name = c->variant->name;

    if (c->D < 1 || c->H < 1 || c->dh < 1)
        return fail(e, E_USAGE, "%s: d_model %d, heads %d, d_head %d  -> all must be 1 or more",
                    name, c->D, c->H, c->dh);
    if (c->pos->sinusoids && c->D % 2)
        return fail(e, E_USAGE, "%s: --d-model %d is odd  -> sinusoids come in pairs, give %d",
                    name, c->D, c->D + 1);
    if ((c->wiring == WIRING_REORDER) != (c->gate != NULL))
        return fail(e, E_USAGE, "%s: norm %s %s a gate  -> gates belong to norm reorder", name,
                    wiring_name[c->wiring], c->gate ? "with" : "without");
    if (c->clip < 0)
        return fail(e, E_USAGE, "%s: --clip %d is negative  -> 0 or more", name, c->clip);
    if (c->rel_rows != c->clip + 1 && c->rel_rows != 2 * c->clip + 1)
        return fail(e, E_USAGE, "%s: %d table rows for clip %d  -> %d (causal) or %d (full)", name,
                    c->rel_rows, c->clip, c->clip + 1, 2 * c->clip + 1);
    if (c->kv_heads < 1 || c->H % c->kv_heads)
        return fail(e, E_USAGE, "%s: --kv-heads %d does not divide --heads %d  -> a divisor", name,
                    c->kv_heads, c->H);
    enum status st = check_positions(c, e);
    if (st == OK)
        st = check_ffn(c, e);
    return st == OK ? check_order(c, e) : st;
}
