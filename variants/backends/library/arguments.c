/* SPDX-License-Identifier: MIT
 *
 * Checks of arguments that attention and recurrences share. */
#include "inner.h"

enum status take_struct(void *to, size_t size, size_t first, const void *from, const char *name,
                        struct err *e)
{
    size_t theirs = 0;

    memset(to, 0, size);
    if (!from)
        return fail(e, E_USAGE, "struct %s is NULL  -> pass one", name);
    memcpy(&theirs, from, sizeof(theirs));
    if (theirs < first || theirs % sizeof(void *) != 0)
        return fail(e, E_USAGE, "size of struct %s is %zu  -> set it to sizeof(struct %s)", name,
                    theirs, name);
    memcpy(to, from, theirs < size ? theirs : size);
    for (size_t i = size; i < theirs; i++)
        if (((const char *)from)[i] != 0)
            return fail(e, E_UNSUPPORTED,
                        "struct %s has members that this version does not know  -> leave them 0, "
                        "or install a newer library",
                        name);
    return OK;
}

enum status check_numbers(const struct number *all, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (all[i].is < all[i].least || all[i].is > all[i].most)
            return fail(e, E_USAGE, "%s is %lld  -> use %lld to %lld", all[i].name,
                        (long long)all[i].is, (long long)all[i].least, (long long)all[i].most);
    return OK;
}

enum status check_product(const char *name, int64_t x, int64_t y, int64_t z, struct err *e)
{
    if (x * y > INT_MAX || x * y * z > INT_MAX)
        return fail(e, E_USAGE, "%s is more than %d  -> divide the call", name, INT_MAX);
    return OK;
}

enum status check_pointers(const struct pointer *all, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        if (all[i].missing)
            return fail(e, E_USAGE, "%s is NULL%s  -> pass an array", all[i].name, all[i].why);
        if (all[i].needless)
            return fail(e, E_USAGE, "%s%s  -> leave it out", all[i].name, all[i].why);
    }
    return OK;
}

enum status check_strides(const struct places *p, const char *name, struct err *e)
{
    for (int x = 0; x < 3; x++)
        if (p->stride[x] < 0 || p->stride[x] > INT64_MAX / 8 / LIMIT_LENGTH)
            return fail(e, E_USAGE, "a stride of %s is %td  -> use 0 to %lld", name, p->stride[x],
                        (long long)(INT64_MAX / 8 / LIMIT_LENGTH));
    return OK;
}

/* From the closest places to those farthest apart, each stride has to pass what lies within. */
enum status check_no_overlap(const struct places *p, const char *name, struct err *e)
{
    ptrdiff_t extent = p->width;
    bool done[3] = {false};

    for (int turn = 0; turn < 3; turn++) {
        int next = -1;
        for (int x = 0; x < 3; x++)
            if (!done[x] && p->count[x] > 1 && p->stride[x] != 0 &&
                (next < 0 || p->stride[x] < p->stride[next]))
                next = x;
        if (next < 0)
            return OK;
        done[next] = true;
        if (p->stride[next] < extent)
            return fail(e, E_USAGE, "rows of %s overlap: %td apart, %td long  -> copy it", name,
                        p->stride[next], extent);
        extent += p->stride[next] * (p->count[next] - 1);
    }
    return OK;
}

enum status take_texts(struct texts *t, int texts, const int32_t *cu_seqlens, int L, bool alone,
                       struct err *e)
{
    const struct number number = {"texts", texts, cu_seqlens != NULL,
                                  cu_seqlens ? LIMIT_LENGTH : 0};

    TRY(check_numbers(&number, 1, e));
    *t = (struct texts){1, t->whole, {0, L}};
    if (!cu_seqlens)
        return OK;
    if (!alone)
        return fail(
            e, E_USAGE,
            "cu_seqlens beside B above 1, M, K, q_step or terms of pairs  -> leave them out");
    for (int n = 0; n < texts; n++)
        if (cu_seqlens[n + 1] <= cu_seqlens[n])
            return fail(e, E_USAGE, "cu_seqlens[%d] is %d, after %d  -> a token or more a text",
                        n + 1, cu_seqlens[n + 1], cu_seqlens[n]);
    if (cu_seqlens[0] != 0 || cu_seqlens[texts] != L)
        return fail(e, E_USAGE, "cu_seqlens is from %d to %d  -> from 0 to L, which is %d",
                    cu_seqlens[0], cu_seqlens[texts], L);
    t->n = texts;
    t->cu = cu_seqlens;
    return OK;
}
