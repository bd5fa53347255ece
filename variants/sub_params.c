/* SPDX-License-Identifier: MIT
 *
 * Which sub-layers a model has, and what their tensors are called. */
#include "parts/norm.h"
#include "sub_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct letter {
    char letter;
    const struct sub_kind *kind;
    float scale;
} letters[] = {
    {'s', &sub_attention, 1},
    {'f', &sub_ffn, 1},
    {'h', &sub_ffn, 0.5f},
};

static const struct letter *letter_find(char letter)
{
    for (size_t i = 0; i < ARRAY_LEN(letters); i++)
        if (letters[i].letter == letter)
            return &letters[i];
    return NULL;
}

bool sub_letter(char letter) { return letter_find(letter) != NULL; }

static bool macaron(enum wiring w) { return w == WIRING_MACARON_PRE || w == WIRING_MACARON_POST; }

/* What the tensors of one sub-layer begin with. */
struct names {
    char prefix[32], ff[48], gate[64], norm[16];
};

/* The k-th sub-layer of layer l. */
static struct names in_layer(enum wiring w, int l, int k)
{
    struct names n;

    snprintf(n.prefix, sizeof(n.prefix), "layers.%d.", l);
    snprintf(n.ff, sizeof(n.ff), "%sff%s.", n.prefix, macaron(w) && k == 0 ? "0" : "");
    snprintf(n.gate, sizeof(n.gate), "%sgate%d.", n.prefix, k + 1);
    snprintf(n.norm, sizeof(n.norm), "ln%d", macaron(w) ? k : k + 1);
    return n;
}

/* The i-th of a model with an order of its own. */
static struct names in_order(int i)
{
    struct names n;

    snprintf(n.prefix, sizeof(n.prefix), "sub.%d.", i);
    snprintf(n.ff, sizeof(n.ff), "%sff.", n.prefix);
    snprintf(n.gate, sizeof(n.gate), "%sgate.", n.prefix);
    snprintf(n.norm, sizeof(n.norm), "ln");
    return n;
}

static void begin(struct subs *s, int i, const struct config *c, char letter)
{
    const struct letter *const kind = letter_find(letter);
    int nth = 0;

    CHECK(kind);
    for (int k = 0; k < i; k++)
        nth += s->at[k].kind == kind->kind;
    s->at[i] = (struct sub){.kind = kind->kind,
                            .c = c,
                            .wiring = c->wiring,
                            .scale = kind->scale,
                            .nth = nth,
                            .at_own = -1,
                            .at_norm = -1,
                            .at_gate = -1,
                            .at_alpha = -1};
}

static void declare_own(struct sub *s, const struct names *n, struct params *p)
{
    s->at_own = p->n;
    s->kind->params(s->c, n->prefix, n->ff, p);
}

/* The parameters of sub-layers [first, first + count), in the order of checkpoints: what mixes
 * positions, norms, the others, what joins them to the stream. */
static void declare(struct subs *s, int first, int count, const struct names *n, struct params *p)
{
    struct sub *const at = s->at + first;
    const struct config *c = at->c;

    for (int k = 0; k < count; k++)
        if (at[k].kind->mixes)
            declare_own(&at[k], &n[k], p);
    for (int k = 0; k < count && c->wiring != WIRING_REZERO; k++) {
        at[k].at_norm = p->n;
        norm_params(c, n[k].prefix, n[k].norm, p);
    }
    for (int k = 0; k < count; k++)
        if (!at[k].kind->mixes)
            declare_own(&at[k], &n[k], p);
    for (int k = 0; k < count && c->gate; k++) {
        at[k].at_gate = p->n;
        c->gate->params(c, n[k].gate, p);
    }
    if (c->wiring == WIRING_REZERO) /* begins near nothing: a fresh layer is nearly the identity */
        at->at_alpha = params_vector(p, INIT_ZERO, 0, 1, n->prefix, "alpha");
    for (int k = 1; k < count; k++)
        at[k].at_alpha = at->at_alpha;
}

static enum status make_room(struct subs *s, int n, struct err *e)
{
    s->n = n;
    s->at = calloc((size_t)n, sizeof(*s->at));
    s->work = calloc((size_t)n, sizeof(*s->work));
    if (s->at && s->work)
        return OK;
    subs_free(s);
    return fail(e, E_NOMEM, "no memory for %d sub-layers  -> lower --layers", n);
}

enum status subs_init(struct subs *s, const struct config *c, struct params *p, int at_model,
                      struct err *e)
{
    enum { LAYER_MOST = 4 };
    const char *const layer = macaron(c->wiring) ? "hsh" : "sf";
    const int count = *c->order ? 1 : (int)strlen(layer);
    const int n = *c->order ? (int)strlen(c->order) : count * c->N;
    const enum status st = make_room(s, n, e);

    if (st != OK)
        return st;
    s->at_model = at_model;
    for (int i = 0; i < n; i += count) {
        struct names names[LAYER_MOST];
        for (int k = 0; k < count; k++) {
            begin(s, i + k, c, *c->order ? c->order[i] : layer[k]);
            names[k] = *c->order ? in_order(i) : in_layer(c->wiring, i / count, k);
        }
        declare(s, i, count, names, p);
    }
    return OK;
}

enum status subs_init_operator(struct subs *s, const struct config *c, struct params *p,
                               int at_model, struct err *e)
{
    const enum status st = make_room(s, 1, e);

    if (st != OK)
        return st;
    s->at_model = at_model;
    begin(s, 0, c, 's');
    s->at->wiring = WIRING_POST; /* so far as it reaches: source rows are what they are */
    declare_own(s->at, &(struct names){.prefix = ""}, p);
    return OK;
}

void subs_free(struct subs *s)
{
    free(s->at);
    free(s->work);
    *s = (struct subs){0};
}
