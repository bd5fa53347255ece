/* SPDX-License-Identifier: MIT
 *
 * Persistent vectors (Sukhbaatar et al. 2019): trained keys and values [H,n,dh] that every query
 * sees, whatever its position. Their initial spread is that of projected keys and values. */
#include "parts.h"

enum { KEYS, VALUES };

struct persistent {
    int n; /* keys and values per head */
};

static const struct choice persistent_choices[] = {
    ROW_INT(struct persistent, n, "persistent", 1, 1 << 20, "learned keys of a head",
            .scope = SCOPE_CORE, .setting = true, .tiny = "5"),
    {0},
};

static void persistent_usual(const struct config *c, void *numbers)
{
    *(struct persistent *)numbers = (struct persistent){.n = c->F};
}

static const struct part_numbers persistent_numbers = {
    persistent_choices, .size = NUMBERS_SIZE(struct persistent), .usual = persistent_usual};

static const struct persistent *persistent_of(const struct config *c)
{
    return config_numbers(c, SLOT_EXTRA);
}

static void persistent_params(const struct config *c, const char *prefix, struct params *p)
{
    static const char *const names[] = {[KEYS] = "pers_k", [VALUES] = "pers_v"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        params_add(p, INIT_NORMAL, 1, 3, (const int[]){c->H, persistent_of(c)->n, c->dh},
                   "%sattn.%s", prefix, names[i]);
}

static void persistent_reserve(const struct pos_call *t)
{
    struct attn *const a = t->a;

    a->sinks = persistent_of(t->c)->n;
    a->sink_k = t->layer[KEYS].data;
    a->sink_v = t->layer[VALUES].data;
}

static void persistent_terms_grad(const struct pos_call *t)
{
    t->d->d_sink_k = t->layer[KEYS].grad;
    t->d->d_sink_v = t->layer[VALUES].grad;
}

const struct pos extra_persistent = {
    .name = "persistent",
    .numbers = &persistent_numbers,
    .sinks = true,
    .excludes = EXCLUDES(HAS_term_forget),
    .layer_params = persistent_params,
    .reserve = persistent_reserve,
    .terms_grad = persistent_terms_grad,
};
