/* SPDX-License-Identifier: MIT
 *
 * Buffers with guard words, and the comparison of their contents. */
#include "guarded.h"

float *guarded(size_t n)
{
    float *p = need_room(n + 2 * GUARD, sizeof(*p));

    for (size_t i = 0; i < n + 2 * GUARD; i++)
        p[i] = GUARD_VALUE;
    return p + GUARD;
}

void release(float *p) { free(p - GUARD); }

bool guards_intact(const float *p, size_t n)
{
    for (size_t i = 0; i < GUARD; i++)
        if (p[-1 - (ptrdiff_t)i] != GUARD_VALUE || p[n + i] != GUARD_VALUE)
            return false;
    return true;
}

/* The first n standard normal numbers of `name`, kept for later operands of that name: drawing them
 * takes longer than most operations. */
static const float *first_normals(size_t n, const char *name)
{
    static struct {
        uint64_t stream;
        float *z;
        size_t n;
    } kept[64];
    const uint64_t stream = rng_stream(name);
    size_t i = 0;

    while (i < ARRAY_LEN(kept) && kept[i].z && kept[i].stream != stream)
        i++;
    CHECK(i < ARRAY_LEN(kept));
    if (!kept[i].z || kept[i].n < n) {
        const size_t more = n + n / 2 + 16;
        free(kept[i].z);
        kept[i].z = need_room(more, sizeof(float));
        kept[i].n = more;
        kept[i].stream = stream;
        rng_normal(kept[i].z, more, SEED, stream, 0, 1);
    }
    return kept[i].z;
}

float *normal(size_t n, const char *name, float mean, float sd)
{
    const float *const z = first_normals(n, name);
    float *const p = guarded(n);

    for (size_t i = 0; i < n; i++)
        p[i] = mean + sd * z[i];
    return p;
}

float *positive(size_t n, const char *name)
{
    float *p = normal(n, name, 0, 1);

    for (size_t i = 0; i < n; i++)
        p[i] = fabsf(p[i]) + 0.125f;
    return p;
}

void quantise(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = rintf(x[i] * 0x1p+13f) * 0x1p-13f;
}

double in_bounds(double got, double want, double bound)
{
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0.0 : INFINITY;
    return got == want ? 0.0 : fabs(got - want) / (bound + SMALLEST);
}
