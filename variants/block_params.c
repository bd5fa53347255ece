/* SPDX-License-Identifier: MIT
 *
 * The tensors of one layer: declared by its parts in one order, found again by the same order. */
#include "block_inner.h"

#include <stdio.h>

static void attn_params(const struct config *c, const char *prefix, struct params *p)
{
    const int HD = c->H * c->dh;

    params_matrix(p, HD, c->D, prefix, "attn.q.weight");
    params_matrix(p, HD, c->D, prefix, "attn.k.weight");
    params_matrix(p, HD, c->D, prefix, "attn.v.weight");
    params_matrix(p, c->D, HD, prefix, "attn.o.weight");
    if (c->attn_bias) {
        params_vector(p, INIT_ZERO, 0, HD, prefix, "attn.q.bias");
        params_vector(p, INIT_ZERO, 0, HD, prefix, "attn.k.bias");
        params_vector(p, INIT_ZERO, 0, HD, prefix, "attn.v.bias");
        params_vector(p, INIT_ZERO, 0, c->D, prefix, "attn.o.bias");
    }
}

static void norm_params(const struct config *c, const char *prefix, const char *name,
                        struct params *p)
{
    params_add(p, INIT_ONE, 0, 1, &c->D, "%s%s.weight", prefix, name);
    params_add(p, INIT_ZERO, 0, 1, &c->D, "%s%s.bias", prefix, name);
}

static void gate_params(const struct config *c, const char *prefix, int which, struct params *p)
{
    char at[32];

    CHECK(snprintf(at, sizeof(at), "%sgate%d.", prefix, which) < (int)sizeof(at));
    c->gate->params(c, at, p);
}

int block_operator_params(const struct config *c, const char *prefix, struct params *p)
{
    const int first = p->n;

    attn_params(c, prefix, p);
    if (c->pos->layer_params)
        c->pos->layer_params(c, prefix, p);
    return first;
}

int block_params(const struct config *c, const char *prefix, struct params *p)
{
    const int first = block_operator_params(c, prefix, p);

    norm_params(c, prefix, "ln1", p);
    norm_params(c, prefix, "ln2", p);
    c->ffn->params(c, prefix, p);
    if (c->gate) {
        gate_params(c, prefix, 1, p);
        gate_params(c, prefix, 2, p);
    }
    return first;
}

static const struct param *next(const struct param **at, int n)
{
    const struct param *first = *at;

    *at += n;
    return first;
}

/* How many parameters a part adds: ask it. */
static int count(void (*add)(const struct config *, const char *, struct params *),
                 const struct config *c)
{
    struct params tmp = {0};

    if (add)
        add(c, "", &tmp);
    const int n = tmp.n;
    params_free(&tmp);
    return n;
}

void block_attach(struct block *b, const struct config *c, const struct params *p, int model_first,
                  int first)
{
    const struct param *at = &p->v[first];

    *b = (struct block){.c = c, .model = &p->v[model_first]};
    b->attn = next(&at, count(attn_params, c));
    b->pos = next(&at, count(c->pos->layer_params, c));
    if (at == p->v + p->n) /* the bare operator */
        return;
    b->ln1 = next(&at, 2);
    b->ln2 = next(&at, 2);
    b->ff = next(&at, count(c->ffn->params, c));
    if (c->gate) {
        const int n = count(c->gate->params, c);
        b->gate1 = next(&at, n);
        b->gate2 = next(&at, n);
    }
}
