/* SPDX-License-Identifier: MIT
 *
 * From names on the command line to entries of the registries. */
#include "harness/util/suggest.h"
#include "plan.h"

#include <string.h>

/* Backends that a build may lack, and how to get them. */
static const struct {
    const char *name, *repair;
} optional_backends[] = {
    {"openblas", "install libopenblas-openmp-dev and run make again"},
    {"onednn", "install libdnnl-dev and run make again"},
};

const char *optional_backend(int i, const char **repair)
{
    if (i >= (int)ARRAY_LEN(optional_backends))
        return NULL;
    *repair = optional_backends[i].repair;
    return optional_backends[i].name;
}

/* Append `item` unless present. */
static void add(const void **out, int *n, const void *item)
{
    for (int i = 0; i < *n; i++)
        if (out[i] == item)
            return;
    CHECK(*n < MAX_LOOKUP);
    out[(*n)++] = item;
}

int set_of_variants(const char *name)
{
    return strcmp(name, "all") == 0 ? MAX_LOOKUP : strcmp(name, "base") == 0 ? BASE_VARIANTS : 0;
}

enum status lookup_variants(const struct variant *out[MAX_LOOKUP], int *n,
                            const struct options *opt, struct err *e)
{
    const void *chosen[MAX_LOOKUP];

    *n = 0;
    for (int i = 0; i < opt->variants.n; i++) {
        const char *const name = opt->variants.v[i];
        const int set = set_of_variants(name);
        const struct variant *const one = variant_find(name);
        if (set == 0 && !one) {
            const char *names[MAX_LOOKUP + 1] = {0};
            for (int k = 0; variants[k] && k < MAX_LOOKUP; k++)
                names[k] = variants[k]->name;
            return unknown_word(e, "variant", name, names, "bench list variants");
        }
        for (int k = 0; k < set && variants[k]; k++)
            add(chosen, n, variants[k]);
        if (one)
            add(chosen, n, one);
    }
    for (int i = 0; i < *n; i++)
        out[i] = chosen[i];
    return OK;
}

/* The error for a name that the registry does not have: not built in, or misspelled. */
static enum status unknown_backend(const char *name, struct err *e)
{
    const char *names[MAX_LOOKUP + 3] = {0};
    const char *optional, *repair;
    int n = 0;

    for (int i = 0; (optional = optional_backend(i, &repair)); i++)
        if (strcmp(name, optional) == 0)
            return fail(e, E_UNSUPPORTED, "backend %s was not built in  -> %s", name, repair);
    for (; backends[n] && n < MAX_LOOKUP; n++)
        names[n] = backends[n]->name;
    names[n++] = "auto";
    names[n] = "fast";
    return unknown_word(e, "backend", name, names, "bench list backends");
}

enum status lookup_backends(const struct backend *out[MAX_LOOKUP], int *n,
                            const struct options *opt, struct err *e)
{
    const void *chosen[MAX_LOOKUP];

    *n = 0;
    for (int i = 0; i < opt->backends.n; i++) {
        const char *const name = opt->backends.v[i];
        const struct backend *const one = backend_find(name);
        const bool fast = strcmp(name, "fast") == 0;
        if (fast || strcmp(name, "auto") == 0) {
            for (int k = 0; backends[k]; k++)
                if (backend_usable(backends[k], NULL) == OK &&
                    !(fast && backends[k] == &backend_ref))
                    add(chosen, n, backends[k]);
            if (*n == 0)
                return fail(e, E_UNSUPPORTED,
                            "--backend fast: only ref is usable here  -> --backend ref");
            continue;
        }
        if (!one)
            return unknown_backend(name, e);
        const enum status st = backend_usable(one, e);
        if (st != OK)
            return st;
        add(chosen, n, one);
    }
    for (int i = 0; i < *n; i++)
        out[i] = chosen[i];
    return OK;
}

/* Its own list of attention or the inherited one, as the engine uses it. */
static const struct attn_impl *const *attention_of(const struct backend *b)
{
    while (b && !b->attn)
        b = backend_parent(b);
    return b ? b->attn : NULL;
}

/* Several backends may use one name. */
static void add_implementations(const char **names, int *n, const struct backend *b)
{
    const struct attn_impl *const *impl = attention_of(b);

    for (; impl && *impl; impl++) {
        int i = 0;
        while (i < *n && strcmp(names[i], (*impl)->name) != 0)
            i++;
        if (i < *n)
            continue;
        CHECK(*n < MAX_LOOKUP);
        names[(*n)++] = (*impl)->name;
    }
}

enum status lookup_impl(const struct options *opt, struct err *e)
{
    const struct backend *chosen[MAX_LOOKUP] = {0};
    const char *names[MAX_LOOKUP + 1] = {0};
    int n = 0, n_names = 0;

    if (!opt->impl)
        return OK;
    const enum status st = lookup_backends(chosen, &n, opt, e);
    if (st != OK)
        return st;
    const bool reference_alone = n == 1 && chosen[0] == &backend_ref;
    for (int i = 0; !reference_alone && i < n; i++)
        add_implementations(names, &n_names, chosen[i]);
    for (int i = 0; reference_alone && backends[i]; i++)
        add_implementations(names, &n_names, backends[i]);
    for (int i = 0; i < n_names; i++)
        if (strcmp(names[i], opt->impl) == 0)
            return OK;
    return unknown_word(e, "implementation", opt->impl, names, NULL);
}

const struct backend *lookup_fastest(const struct backend *const *list)
{
    const struct backend *best = list[0];
    struct err ignored;

    /* The best SIMD level, else the last library of the list. */
    for (int i = 1; list[i]; i++)
        if (list[i]->needs >= best->needs && backend_usable(list[i], &ignored) == OK)
            best = list[i];
    return best;
}
