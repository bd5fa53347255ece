/* SPDX-License-Identifier: MIT
 *
 * The lists of sub-layers of models: which, in what order, under what names, and which lists must
 * give the same result. */
#include "tests/support/model.h"

/* The names of the tensors of a model of `c`, one after the other. */
static void list_tensors(const struct config *c, char *text, size_t size)
{
    struct params p = {0};
    struct sublayers sublayers;

    sublayers_init(&sublayers, c, &p, 0);
    *text = '\0';
    for (int i = 0; i < p.n; i++) {
        cr_assert_lt(strlen(text) + strlen(p.v[i].name) + 2, size);
        strcat(strcat(text, i ? " " : ""), p.v[i].name);
    }
    sublayers_free(&sublayers);
    params_free(&p);
}

#define ATTN(l) l "attn.q.weight " l "attn.k.weight " l "attn.v.weight " l "attn.o.weight "
#define LN(l) l ".weight " l ".bias "
#define FF(l) l "1.weight " l "1.bias " l "2.weight " l "2.bias"

Test(sublayer_list, tensors_have_their_names)
{
    struct config c = config_default(variant_find("vanilla"), 8, 2, 4, 16, 1, 0);
    char text[1024];

    list_tensors(&c, text, sizeof(text));
    TEXTS({text, ATTN("layers.0.") LN("layers.0.ln1") LN("layers.0.ln2") FF("layers.0.ff.")});
    c.wiring = WIRING_REZERO;
    list_tensors(&c, text, sizeof(text));
    cr_expect_str_eq(text, ATTN("layers.0.") FF("layers.0.ff.") " layers.0.alpha");
    c.wiring = WIRING_MACARON_POST;
    list_tensors(&c, text, sizeof(text));
    cr_expect_str_eq(text, ATTN("layers.0.") LN("layers.0.ln0") LN("layers.0.ln1")
                               LN("layers.0.ln2") FF("layers.0.ff0.") " " FF("layers.0.ff."));
    c.gate = &gate_output; /* of each sub-layer, by its place from 1 */
    list_tensors(&c, text, sizeof(text));
    HAS(text, "layers.0.gate1.", "layers.0.gate2.", "layers.0.gate3.");
    c.gate = NULL;
    c.wiring = WIRING_PRE;
    strcpy(c.order, "fs");
    list_tensors(&c, text, sizeof(text));
    cr_expect_str_eq(text, LN("sub.0.ln") FF("sub.0.ff.") " " ATTN("sub.1.") "sub.1.ln.weight "
                                                                             "sub.1.ln.bias");
}

/* s^k (sf)^(N-k) f^k, k = 3N/8, at least 1. */
Test(sublayer_list, sandwich_order)
{
    static const struct {
        int N;
        const char *order;
    } cases[] = {{1, "sf"}, {2, "ssff"}, {3, "ssfsff"}, {6, "sssfsfsfsfff"}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct config c =
            config_default(variant_find("sandwich"), 8, 2, 4, 16, cases[i].N, 7);
        cr_expect_str_eq(c.order, cases[i].order);
        cr_expect_eq(config_check(&c, &failure), OK);
    }
    const struct config most = config_default(variant_find("sandwich"), 8, 2, 4, 16, 127, 7);
    const struct config more = config_default(variant_find("sandwich"), 8, 2, 4, 16, 128, 7);
    cr_expect_eq(strlen(most.order), 254);
    REFUSED(config_check(&more, &failure), E_USAGE, "128 layers are too many");
}

/* A copy of a model's weights under the names of an order of its own. */
static void copy_renamed(struct model *to, const struct model *from)
{
    static const char *const kinds[][3] = {
        {"attn.", "attn.", "0"}, {"ln1.", "ln.", "0"}, {"ff.", "ff.", "1"}, {"ln2.", "ln.", "1"}};

    for (int i = 0; i < from->lm.params.n; i++) {
        const struct param *const p = &from->lm.params.v[i];
        char name[96], rest[64] = "";
        int layer;
        snprintf(name, sizeof(name), "%s", p->name);
        if (sscanf(p->name, "layers.%d.%63s", &layer, rest) == 2)
            for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
                if (strncmp(rest, kinds[k][0], strlen(kinds[k][0])) == 0)
                    snprintf(name, sizeof(name), "sub.%d.%s%s", 2 * layer + atoi(kinds[k][2]),
                             kinds[k][1], rest + strlen(kinds[k][0]));
        const struct param *const same = params_find(&to->lm.params, name);
        cr_assert(same && same->n == p->n, "%s", name);
        memcpy(same->data, p->data, p->n * sizeof(float));
    }
}

/* An explicit order equal to the usual one gives the same result, to the last bit. */
Test(sublayer_list, an_order_of_layers_is_layers)
{
    enum { TEXT = 17 };
    for (int wiring = WIRING_POST; wiring <= WIRING_PRE; wiring++)
        for (enum mem_kind kind = MEM_HIDDEN; kind <= MEM_KV; kind++) {
            struct config c = config_default(variant_find("xl"), 12, 3, 5, 17, 3, 11);
            struct model plain, ordered;
            c.wiring = (enum wiring)wiring;
            model_open(&plain, &c, "ref", 1, kind, (struct extent){2, 5, 6});
            strcpy(c.order, "sfsfsf");
            model_open(&ordered, &c, "ref", 1, kind, (struct extent){2, 5, 6});
            copy_renamed(&ordered, &plain);
            float *want = model_stream(&plain, 0, 2, TEXT, 5);
            float *got = model_stream(&ordered, 0, 2, TEXT, 5);
            cr_expect_arr_eq(got, want, sizeof(float) * 2 * TEXT * 11);
            cr_expect_eq(plain.arena.used, ordered.arena.used);
        }
}

/* With alpha 0 the stream stays as the embedding made it; without, both sub-layers contribute. */
Test(sublayer_list, rezero_begins_as_the_identity)
{
    enum { D = 12, T = 5 };
    const struct config c = config_default(variant_find("rezero"), D, 3, 5, 17, 2, 11);
    struct model m;

    model_open(&m, &c, "ref", 1, MEM_HIDDEN, (struct extent){2, T, 4});
    const float *const E = m.lm.params.v[m.lm.at_embed].data;
    for (int i = 0; i < 2; i++) {
        double off = 0;
        for (int l = 0; l < 2; l++)
            *params_find(&m.lm.params, l ? "layers.1.alpha" : "layers.0.alpha")->data = (float)i;
        (void)model_stream(&m, 0, 2, T, T);
        for (int b = 0; b < 2; b++)
            for (int e = 0; e < T * D; e++) {
                const float in = c.emb_scale * E[token_of(&m, b, e / D) * D + e % D];
                off = fmax(off, fabs((double)(m.lm.h[b * T * D + e] - in)));
            }
        cr_expect(i ? off > 0.1 : off == 0, "alpha %d: off by %g", i, off);
    }
}
