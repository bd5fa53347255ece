/* SPDX-License-Identifier: MIT
 *
 * The lists of list.h and parts.h as arrays, and finding by name. */
#include "list.h"
#include "variants/parts/parts.h"

#define X(name, family) extern const struct variant variant_##name;
VARIANTS(X)
#undef X
#define X(name, family) &variant_##name,
const struct variant *const variants[] = {VARIANTS(X) NULL};
#undef X

#define X(name, family) FAMILY_##family,
static const enum family family_of[] = {VARIANTS(X)};
#undef X

#define X(family, name, about) [FAMILY_##family] = name,
const char *const family_name[FAMILY_COUNT + 1] = {FAMILIES(X) NULL};
#undef X
#define X(family, name, about) [FAMILY_##family] = about,
const char *const family_about[FAMILY_COUNT] = {FAMILIES(X)};
#undef X

enum family variant_family(int i) { return family_of[i]; }

const struct variant *variant_find(const char *name)
{
    for (int i = 0; variants[i]; i++)
        if (strcmp(variants[i]->name, name) == 0 ||
            (variants[i]->alias && strcmp(variants[i]->alias, name) == 0))
            return variants[i];
    return NULL;
}

static const void *variant_at(int i) { return variants[i]; }
const struct registry variant_registry = {"variant", variant_at};

/* A registry of parts: the array, and what finds in it. */
#define REGISTRY(type, array)                                                                      \
    static const void *type##_at(int i) { return array[i]; }                                       \
    const struct registry type##_registry = {#type, type##_at};                                    \
    const struct type *type##_find(const char *name)                                               \
    {                                                                                              \
        return registry_find(&type##_registry, name);                                              \
    }

#define X(name) &gate_##name,
const struct gate *const gates[] = {GATES(X) NULL};
#undef X
REGISTRY(gate, gates)

#define X(name) &ffn_##name,
const struct ffn *const ffns[] = {FFNS(X) NULL};
#undef X
REGISTRY(ffn, ffns)

#define X(name) &pos_##name,
const struct pos *const positions[] = {POSITIONS(X) NULL};
#undef X
REGISTRY(pos, positions)

#define X(name) &mixer_##name,
const struct mixer *const mixers[] = {MIXERS(X) NULL};
#undef X
REGISTRY(mixer, mixers)
