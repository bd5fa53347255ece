/* SPDX-License-Identifier: MIT
 *
 * What of the options of a score applies to a model. */
#include "harness/learn/source/counting.h"
#include "scoring.h"

enum status past_is_carried(const struct config *c, int M, struct err *e)
{
    if (M != MEM_ALL || mem_can(config_mem(c), MEM_STATE))
        return OK;
    return fail(e, E_USAGE, "--mem all does not apply to %s, %s  -> give a number",
                c->variant->name,
                config_mem(c)->state ? "whose attention remembers a number of tokens"
                                     : "which carries no state");
}

/* Can a text that moves on be scored so? Cached keys that begin at position 0 do not move with it. */
static bool can_slide(const struct mem *m, int kind)
{
    return mem_can(m, (enum mem_kind)kind) && (kind != MEM_KV || !m->cached);
}

/* "hidden or kv" */
static void kinds_print(char *to, size_t size, const struct mem *m)
{
    *to = '\0';
    for (int k = MEM_NONE + 1; k < MEM_KIND_COUNT; k++)
        if (can_slide(m, k))
            text_append(to, size, "%s%s", *to ? " or " : "", mem_kind_name[k]);
}

enum status score_mem_kind(enum mem_kind *kind, const struct config *c, const struct options *opt,
                           int M, struct err *e)
{
    const struct mem *const mem = config_mem(c);
    const char *word = opt->mem_kinds.n > 0 ? opt->mem_kinds.v[0] : "auto";

    TRY(past_is_carried(c, M, e));
    if (M == MEM_ALL && strcmp(word, mem_kind_name[MEM_RECOMPUTE]) == 0)
        return fail(e, E_USAGE,
                    "--mem all does not apply to --mem-kind %s  -> use --mem-kind state", word);
    *kind = mem_slides(mem);
    if (strcmp(word, "auto") == 0)
        return OK;
    for (int k = 0; k < MEM_KIND_COUNT; k++)
        if (strcmp(mem_kind_name[k], word) == 0 && can_slide(mem, k)) {
            *kind = (enum mem_kind)k;
            return OK;
        }
    char kinds[64];
    kinds_print(kinds, sizeof(kinds), mem);
    return fail(e, E_USAGE, "--mem-kind %s does not apply to %s  -> use %s", word, c->variant->name,
                kinds);
}

/* What only streams of next tokens have, by the name of its option; NULL = none is given. */
static const char *of_next_tokens(const struct options *o)
{
    return o->count != COUNT_STREAM ? "count"
           : o->unit != UNIT_TOKEN  ? "unit"
           : o->losses              ? "losses"
           : counting_batch(o) != 1 ? "batch"
                                    : NULL;
}

const struct scoring *scoring_of(const struct config *c, double mask_share)
{
    return mask_share > 0 ? &scoring_masked : c->enc_layers ? &scoring_pairs : &scoring_stream;
}

bool score_reads_whole(const struct config *c, double mask_share)
{
    return scoring_of(c, mask_share)->reads != NULL;
}

enum status score_whole_check(const struct config *c, double mask_share, const struct options *o,
                              int M, struct err *e)
{
    const struct scoring *const mode = scoring_of(c, mask_share);
    const char *const next = of_next_tokens(o);

    if (mode->reads && next)
        return fail(e, E_USAGE, "checkpoint %.300s %s, --%s is of %s  -> leave it out", o->ckpt,
                    mode->reads, next, mode->next_is);
    if (mode->reads && M != 0)
        return fail(e, E_USAGE, "checkpoint %.300s %s%s, without a past  -> use --mem 0", o->ckpt,
                    mode->reads, mode->whole);
    return OK;
}

void see_past(struct config *c, int M)
{
    if (c->same_length && M > 0)
        c->window = M;
}
