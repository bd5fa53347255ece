/* SPDX-License-Identifier: MIT
 *
 * See gguf_rope.h. llama3's scaling by s, of a frequency w that turns c w / 2 pi times in the c tokens
 * of the original context: below `low` turns it is divided by s, above `high` by 1, and between them
 *
 *   1/d = (1 - t)/s + t,  t = (turns - low) / (high - low)
 *
 * Published models have low 1 and high 4, and c and s follow from the divisors d. */
#include "gguf_rope.h"

#define PI 3.14159265358979323846

static const double LOW = 1, HIGH = 4;

static double divisor(double w, double original, double factor)
{
    const double turns = original * w / (2 * PI);
    const double t = fmin(fmax((turns - LOW) / (HIGH - LOW), 0), 1);

    return 1 / ((1 - t) / factor + t);
}

static double frequency(double base, size_t f, size_t n) { return pow(base, -(double)f / n); }

/* Are these the divisors, to the rounding of floats? */
static bool fits(const float *d, size_t n, double base, double original, double factor)
{
    bool all = original >= 1;

    for (size_t f = 0; f < n; f++) {
        const double want = divisor(frequency(base, f, n), original, factor);
        all = all && fabs((double)d[f] - want) <= 1e-5 * want;
    }
    return all;
}

/* By one that is neither kept nor divided by all of the factor; where there is none, a power of two
 * that makes none; 0 = no context does. */
static double context_of(const float *d, size_t n, double base, double factor)
{
    enum { SHORTEST = 16, LONGEST = 1 << 24 };

    for (size_t f = 0; f < n; f++)
        if ((double)d[f] > 1.001 && (double)d[f] < 0.999 * factor) {
            const double t = (1 / (double)d[f] - 1 / factor) / (1 - 1 / factor);
            return round(2 * PI * (LOW + t * (HIGH - LOW)) / frequency(base, f, n));
        }
    for (int c = SHORTEST; c <= LONGEST; c *= 2)
        if (fits(d, n, base, c, factor))
            return c;
    return 0;
}

enum status gguf_rope_scaling(json_t **scaling, const struct tensor *t, double base,
                              const char *path, struct err *e)
{
    float *const d = need_room(t->n + 1, sizeof(*d));
    double factor = 1, least = INFINITY;

    *scaling = NULL;
    if (tensor_is_readable(t->dtype))
        tensor_floats(d, t, 0, t->n);
    for (size_t f = 0; f < t->n; f++) {
        factor = fmax(factor, (double)d[f]);
        least = fmin(least, (double)d[f]);
    }
    const double original = factor > 1 ? context_of(d, t->n, base, factor) : 0;
    const bool none = factor == 1 && least == 1;
    const bool known = tensor_is_readable(t->dtype) && isfinite(factor) && t->rank == 1 &&
                       (none || fits(d, t->n, base, original, factor));
    free(d);
    if (!known)
        return fail(e, E_IO,
                    "checkpoint %s: tensor \"" GGUF_ROPE_FREQS
                    "\" is not of llama3's scaling  -> use the folder it was made of",
                    path);
    if (none)
        return OK;
    *scaling = json_pack("{s:s,s:f,s:f,s:f,s:f}", "rope_type", "llama3", "factor", factor,
                         "low_freq_factor", LOW, "high_freq_factor", HIGH,
                         "original_max_position_embeddings", original);
    return OK;
}

/* ---- tensors of the files ----------------------------------------------------------------- */

struct safetensors *gguf_rope_find(struct safetensors *files, int n, const char *name, int *at)
{
    for (int k = 0; k < n; k++)
        for (*at = 0; *at < files[k].n_tensors; ++*at)
            if (strcmp(files[k].tensors[*at].name, name) == 0)
                return &files[k];
    return NULL;
}

void gguf_rope_remove(struct safetensors *s, int at)
{
    CHECK(!s->asked_tensor);
    s->n_tensors--;
    memmove(s->tensors + at, s->tensors + at + 1,
            (size_t)(s->n_tensors - at) * sizeof(*s->tensors));
}

/* The numbers of a tensor as a list. */
static json_t *list_of(const struct tensor *t)
{
    json_t *const list = json_array();

    for (size_t i = 0; i < t->n; i++) {
        float x;
        tensor_floats(&x, t, i, 1);
        json_array_append_new(list, json_real(isfinite(x) ? (double)x : 0));
    }
    return list;
}

enum status gguf_rope_lists(json_t *scaling, bool *found, struct safetensors *files, int n,
                            const char *path, struct err *e)
{
    static const struct {
        const char *tensor, *key;
    } lists[] = {{"rope_factors_short.weight", "short_factor"},
                 {"rope_factors_long.weight", "long_factor"}};
    int there = 0, at;

    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        struct safetensors *const s = gguf_rope_find(files, n, lists[k].tensor, &at);
        const struct tensor *const t = s ? &s->tensors[at] : NULL;
        if (!t)
            continue;
        if (t->rank != 1 || tensor_block(t->dtype) != 1 || !tensor_is_readable(t->dtype))
            return fail(e, E_IO,
                        "checkpoint %s: tensor \"%s\" is not a list of numbers  -> use the "
                        "folder it was made of",
                        path, t->name);
        json_object_set_new(scaling, lists[k].key, list_of(t));
        gguf_rope_remove(s, at);
        there++;
    }
    *found = there > 0;
    if (there == 1)
        return fail(e, E_IO,
                    "checkpoint %s: one of \"%s\" and \"%s\" without the other  -> use a whole "
                    "file",
                    path, lists[0].tensor, lists[1].tensor);
    return OK;
}
