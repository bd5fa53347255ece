/* SPDX-License-Identifier: MIT
 *
 * See lookup.h. */
#include "lookup.h"

#include "variants/backends/list.h"
#include "variants/backends/outside.h"

#include <errno.h>
#include <unistd.h>

static const struct {
    const char *name, *repair;
} optional_backends[] = {
#define X(name, built, package) {#name, "install " package " and run make again"},
    BACKENDS(X)
#undef X
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

static const char in_family[] = "family:";

/* The family that the word names, or -1. */
static int family_of_word(const char *word)
{
    const size_t n = strlen(in_family);

    return strncmp(word, in_family, n) == 0 ? word_index(word + n, family_name) : -1;
}

bool is_variant_set(const char *word)
{
    return strcmp(word, "all") == 0 || strcmp(word, "base") == 0 || family_of_word(word) >= 0;
}

bool variant_set_has(const char *word, int i)
{
    const int family = family_of_word(word);

    return family >= 0
               ? (int)variant_family(i) == family
               : strcmp(word, "all") == 0 || (strcmp(word, "base") == 0 && i < BASE_VARIANTS);
}

const char *variant_set_word(int i)
{
    static const char *const plain[] = {"base", "all"};
    static char text[64];
    const int family = i - (int)ARRAY_LEN(plain);

    if (i < (int)ARRAY_LEN(plain))
        return plain[i];
    if (family >= FAMILY_COUNT)
        return NULL;
    snprintf(text, sizeof(text), "%s%s", in_family, family_name[family]);
    return text;
}

enum status unknown_variant(const char *word, struct err *e)
{
    const char *names[MAX_LOOKUP + 1] = {0};
    const size_t n = strlen(in_family);

    if (strncmp(word, in_family, n) == 0)
        return unknown_word(e, "family", word + n, family_name, "bench list variants");
    for (int k = 0; variants[k] && k < MAX_LOOKUP; k++)
        names[k] = variants[k]->name;
    return unknown_word(e, "variant", word, names, "bench list variants");
}

enum status lookup_variants(const struct variant *out[MAX_LOOKUP], int *n,
                            const struct options *opt, struct err *e)
{
    const void *chosen[MAX_LOOKUP];

    *n = 0;
    for (int i = 0; i < opt->variants.n; i++) {
        const char *const name = opt->variants.v[i];
        const struct variant *const one = variant_find(name);
        if (!one && !is_variant_set(name))
            return unknown_variant(name, e);
        for (int k = 0; !one && variants[k]; k++)
            if (variant_set_has(name, k))
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

enum status outside_usable(const char *path, const struct options *opt, struct err *e)
{
    const bool process = backend_is_process(path);

    if (process && (strlen(path) > 100 || strpbrk(path, "\t,")))
        return fail(e, E_USAGE, "a command has a comma or over 100 characters: %s  -> a script",
                    path);
    if (!process && (strlen(path) > 63 || strpbrk(path, " \t,")))
        return fail(e, E_USAGE,
                    "the path of a kernel has blanks or over 63 characters: %s  -> ln -s it", path);
    if (!process && access(path, R_OK) != 0)
        return fail(e, E_IO, "cannot read kernel %s: %s  -> name a shared object", path,
                    strerror(errno));
    return opt->isolate != ISOLATE_NONE
               ? OK
               : fail(e, E_USAGE, "--isolate none would load %s into this process  -> leave it out",
                      path);
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
                add(chosen, n, &backend_ref); /* the only one here */
            continue;
        }
        if (!one && i > 0 && backend_is_process(opt->backends.v[i - 1]))
            return fail(
                e, E_USAGE,
                "unknown backend %s, and a comma ends the command before it  -> put it in a script",
                name);
        if (!one)
            return unknown_backend(name, e);
        TRY(backend_is_outside(name) ? outside_usable(name, opt, e) : backend_usable(one, e));
        add(chosen, n, one);
    }
    for (int i = 0; i < *n; i++)
        out[i] = chosen[i];
    return OK;
}

/* Of its own list of attention or the inherited one, as the engine uses it. Several backends may use
 * one name. */
static void add_implementations(const char **names, int *n, const struct backend *b)
{
    while (b && !b->attn)
        b = backend_parent(b);
    for (const struct attn_impl *const *impl = b ? b->attn : NULL; impl && *impl; impl++)
        if (word_index((*impl)->name, names) < 0) {
            CHECK(*n < MAX_LOOKUP);
            names[(*n)++] = (*impl)->name;
        }
}

enum status lookup_impl(const struct options *opt, struct err *e)
{
    const struct backend *chosen[MAX_LOOKUP + 1] = {0};
    const char *names[MAX_LOOKUP + 1] = {0};
    int n = 0, n_names = 0;

    if (!opt->impl)
        return OK;
    TRY(lookup_backends(chosen, &n, opt, e));
    const bool reference_alone = n == 1 && chosen[0] == &backend_ref;
    const struct backend *const *const of = reference_alone ? backends : chosen;
    for (int i = 0; of[i]; i++)
        add_implementations(names, &n_names, of[i]);
    return word_index(opt->impl, names) >= 0
               ? OK
               : unknown_word(e, "implementation", opt->impl, names, NULL);
}

const struct backend *lookup_fastest(const struct backend *const *list, enum elem elem)
{
    const struct backend *best = list[0];
    struct err ignored;

    /* The best SIMD level, but for those that only add another type, else the last library of the
     * list. */
    for (int i = 1; list[i]; i++)
        if (list[i]->needs >= best->needs && (list[i]->adds == ELEM_F32 || list[i]->adds == elem) &&
            backend_usable(list[i], &ignored) == OK)
            best = list[i];
    return best;
}
