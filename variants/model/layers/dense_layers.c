/* SPDX-License-Identifier: MIT
 *
 * Layers without experts, as DeepSeek-V2 begins with one (DeepSeek-AI 2024, arXiv:2405.04434). */
#include "dense_layers.h"
#include "variants/parts/parts.h"

/* Where a model has an order of its own, a sub-layer is no layer. */
bool dense_layers_possible(const struct config *c)
{
    return c->ffn && c->ffn->by_expert && !*c->order;
}

bool dense_layers_any(const struct config *c)
{
    return dense_layers_possible(c) && c->dense.layers.n > 0;
}

bool dense_layers_has(const struct config *c, int layer)
{
    const struct layer_ranges *const r = &c->dense.layers;
    int i = 0;

    while (i < r->n && r->at[i].last < layer)
        i++;
    return dense_layers_possible(c) && i < r->n && r->at[i].first <= layer;
}

struct config config_of_dense(const struct config *c)
{
    struct config one = *c;

    one.ffn = c->dense.ffn;
    one.F = c->dense.inner ? c->dense.inner : c->F;
    memset(&one.numbers[SLOT_FFN], 0, sizeof(one.numbers[SLOT_FFN]));
    return one;
}

/* ---- texts -------------------------------------------------------------------------------- */

void dense_layers_print(char text[CHOICE_TEXT], const void *config)
{
    const struct layer_ranges *const r = &((const struct config *)config)->dense.layers;

    *text = '\0';
    for (int i = 0; i < r->n; i++) {
        text_item(text, CHOICE_TEXT, "%d", r->at[i].first);
        if (r->at[i].last > r->at[i].first)
            text_append(text, CHOICE_TEXT, "-%d", r->at[i].last);
    }
}

/* "2" or "2-4" at the beginning of the text, and what is behind it; NULL where there is neither. */
static const char *parse_range(struct layer_range *to, const char *text)
{
    char *end;
    const long first = strtol(text, &end, 10);
    long last = first;

    if (end == text || *text < '0' || *text > '9')
        return NULL;
    if (*end == '-') {
        const char *const at = end + 1;
        last = strtol(at, &end, 10);
        if (*at < '0' || *at > '9')
            return NULL;
    }
    if (first >= MAX_LAYERS || last < first || last >= MAX_LAYERS)
        return NULL;
    *to = (struct layer_range){(short)first, (short)last};
    return end;
}

/* Neighbours become one range, so that the same layers have one text. */
enum status dense_layers_parse(void *config, const char *text, struct err *e)
{
    struct layer_ranges r = {0};

    for (const char *at = *text ? text : NULL; at;) {
        struct layer_range next;
        const char *const end = parse_range(&next, at);
        struct layer_range *const before = r.n ? &r.at[r.n - 1] : NULL;
        const bool behind = !before || (end && next.first > before->last);
        const bool joins = before && end && behind && next.first == before->last + 1;
        if (!end || !behind || (*end != ',' && *end != '\0') || (!joins && r.n == MAX_LAYER_RANGES))
            return fail(e, E_USAGE,
                        "dense_layers \"%.60s\": not up to %d layers or ranges in order, from 0 to "
                        "%d  -> write for example 0-2,5",
                        text, (int)MAX_LAYER_RANGES, MAX_LAYERS - 1);
        if (joins)
            before->last = next.last;
        else
            r.at[r.n++] = next;
        at = *end == ',' ? end + 1 : NULL;
    }
    ((struct config *)config)->dense.layers = r;
    return OK;
}

const char *const dense_ffn_name[] = {"relu",  "gelu",       "gelu_tanh", "glu",      "reglu",
                                      "geglu", "geglu_tanh", "swiglu",    "bilinear", NULL};

void dense_ffn_print(char text[CHOICE_TEXT], const void *config)
{
    snprintf(text, CHOICE_TEXT, "%s", ((const struct config *)config)->dense.ffn->name);
}

enum status dense_ffn_parse(void *config, const char *text, struct err *e)
{
    if (word_index(text, dense_ffn_name) < 0)
        return fail(e, E_USAGE,
                    "dense_ffn \"%.60s\": unknown, or with numbers of its own  -> use for example "
                    "swiglu, geglu, relu, gelu",
                    text);
    ((struct config *)config)->dense.ffn = ffn_find(text);
    return OK;
}

enum status dense_layers_check(const struct config *c, struct err *e)
{
    const struct layer_ranges *const r = &c->dense.layers;

    if (dense_layers_possible(c) && r->n == 0 && (c->dense.inner || c->dense.ffn != &ffn_swiglu))
        return fail(e, E_USAGE, "%s: dense_inner or dense_ffn without dense_layers  -> say which",
                    c->variant->name);
    if (!dense_layers_any(c) || r->at[r->n - 1].last < c->N)
        return OK;
    return fail(e, E_USAGE, "%s: dense_layers up to %d of %d layers  -> use at most %d",
                c->variant->name, r->at[r->n - 1].last, c->N, c->N - 1);
}
