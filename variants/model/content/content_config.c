/* SPDX-License-Identifier: MIT
 *
 * What makes no sense together with attention by content: it chooses its pairs itself. */
#include "content.h"

const char *content_looks_ahead(const struct config *c)
{
    const struct content *const form = c->mixer->content;

    return form->looks_ahead ? form->looks_ahead(c) : NULL;
}

bool content_is_alone(const struct config *c) { return c->V == 0; }

enum status content_check(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;
    const struct pos *const pos = c->pos;

    if (!c->mixer)
        return c->share_qk
                   ? fail(e, E_USAGE, "%s: share_qk without a mixer that chooses by content  -> 0",
                          name)
                   : OK;
    if (c->causal ? !c->mixer->content->past : !c->mixer->content->both)
        return fail(e, E_USAGE, "%s: %s attention is not defined for %s  -> causal %d", name,
                    direction_name[c->causal], c->mixer->name, !c->causal);
    if (c->window || c->same_length || c->masks.n || c->layer_windows.n || c->head_windows.n ||
        c->kv_heads != c->H || c->around.soft_cap != 0 || *c->order || c->steps)
        return fail(e, E_USAGE,
                    "%s: mixer %s with windows, masks, a soft cap, shared heads, steps or an order "
                    "of sub-layers  -> none of them",
                    name, c->mixer->name);
    if (pos->reserve || pos->enter || pos->layer_params || c->attn_extra || c->qkv_map ||
        c->score_residual != SCORE_RESIDUAL_NONE || config_has_around(c) || c->layer_rope_base.n)
        return fail(e, E_USAGE, "%s: positions %s or terms of attention with mixer %s  -> none",
                    name, pos->name, c->mixer->name);
    const char *const why = content_looks_ahead(c);
    if (why && !content_is_alone(c))
        return fail(e, E_USAGE, "%s: no language model: %s  -> attention or a layer alone", name,
                    why);
    return OK;
}
