/* SPDX-License-Identifier: MIT
 *
 * LongRoPE of published models (Ding et al. 2024, arXiv:2402.13753): a divisor for the frequency of
 * each pair, in two lists, for texts up to the length of the training and beyond. */
#include "llama.h"

#define SHORT "short_factor"
#define LONG "long_factor"
#define FACTOR "factor"
#define ATTENTION "attention_factor"
#define ORIGINAL "original_max_position_embeddings"
#define CONTEXT "max_position_embeddings"

enum { MOST_CONTEXT = 1 << 24 };

/* A number of the object; 0 where it is absent or null. */
static double number_at(struct config_json *j, const struct longrope *l, const char *key,
                        double least, double most)
{
    return json_is_null(json_object_get(l->how, key))
               ? 0
               : import_number_in(j, l->how, l->name, key, 0, least, most);
}

/* A divisor for each pair, as text of `ours`. */
static void put_list(struct config_json *j, const struct longrope *l, const char *key,
                     const char *ours)
{
    const json_t *const list = json_object_get(l->how, key);
    char text[CHOICE_TEXT] = "";
    size_t i;
    const json_t *one;

    if (!json_is_array(list) || json_array_size(list) != (size_t)l->pairs) {
        import_refuse(j,
                      "%s longrope: %s has %zu numbers, %d pairs are rotated  -> give one for each",
                      l->name, key, json_array_size(list), l->pairs);
        return;
    }
    if (l->pairs > MAX_ROPE_PAIRS) {
        import_refuse(j, "longrope of %d pairs: not supported  -> use %d or less", l->pairs,
                      (int)MAX_ROPE_PAIRS);
        return;
    }
    json_array_foreach(list, i, one)
    {
        const double x = json_number_value(one);
        if (!(x > 1e-6 && x <= 1e6))
            import_refuse(
                j, "%s longrope: number %zu of %s is none above 0  -> give a complete config",
                l->name, i, key);
        else
            text_item(text, sizeof(text), "%.9g", x);
    }
    config_json_put(j, ours, "%s", text);
}

/* Which length the texts of the training had. What stands beside the object wins in the publisher's
 * program, even if it is only the family's usual one: it must be the same. */
static double original_of(struct config_json *j, const struct longrope *l)
{
    const double within = number_at(j, l, ORIGINAL, 2, MOST_CONTEXT);
    const bool said = config_json_at(j, ORIGINAL);
    const double beside =
        said ? config_json_whole(j, ORIGINAL, 2, 2, MOST_CONTEXT) : l->usual_original;

    if (within != floor(within))
        config_json_refuse(j, ORIGINAL " %g of %s is not a whole number  -> use a published config",
                           within, l->name);
    if (within > 0 && beside > 0 && within != beside)
        config_json_refuse(j, ORIGINAL " %g%s, %g of %s  -> use one of them", beside,
                           said ? "" : " where it is absent", within, l->name);
    if (within > 0 || beside > 0)
        return within > 0 ? within : beside;
    return config_json_whole(j, CONTEXT, REQUIRED, 2, MOST_CONTEXT);
}

void import_put_longrope(struct config_json *j, const struct longrope *l)
{
    const double attention = number_at(j, l, ATTENTION, 1e-6, 1e6);
    const double said = number_at(j, l, FACTOR, 1, 1 << 20), original = original_of(j, l);
    const bool counts = attention == 0 && said == 0; /* the quotient of the two lengths */
    const bool compares = attention == 0 && said > 0 &&
                          (config_json_at(j, ORIGINAL) || l->usual_original) &&
                          config_json_at(j, CONTEXT);
    const int context =
        counts || compares ? config_json_whole(j, CONTEXT, j->usual_context, 1, MOST_CONTEXT) : 0;
    const double ratio = context / original;

    if (compares && said != ratio)
        import_refuse(j, "factor %g of %s, " CONTEXT " %d of " ORIGINAL " %g  -> use one of them",
                      said, l->name, context, original);
    config_json_put(j, "rope_scaling", "longrope");
    config_json_put(j, "rope_factor", "%.9g", fmax(said > 0 ? said : counts ? ratio : 1, 1));
    config_json_put(j, "rope_original", "%.0f", original);
    config_json_put(j, "rope_mscale", "%.9g", attention);
    put_list(j, l, SHORT, "rope_short");
    put_list(j, l, LONG, "rope_long");
}
