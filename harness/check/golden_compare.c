/* SPDX-License-Identifier: MIT
 *
 * The pass rule of golden files: one tensor of a file against the computed one. */
#include "golden.h"

#include "harness/worker/agree.h"

static bool is_gradient(const char *tensor)
{
    return strncmp(tensor, GRADIENT, strlen(GRADIENT)) == 0;
}

static void check(struct run *r, const char *tensor, const char *skipped, double error,
                  double limit)
{
    const struct verdict v = {r->name, tensor, r->g->backend->name, skipped, error, limit};

    r->tally->tensors++;
    r->n_grad += is_gradient(tensor);
    if (skipped)
        r->tally->skipped++;
    else if (error <= limit) /* false for NaN */
        r->tally->passed++;
    else
        r->tally->failed++;
    r->report(r->arg, &v);
}

const char *golden_name(struct run *r, const char *fmt, ...)
{
    VPRINT(r->text, sizeof(r->text), fmt);
    return r->text;
}

static void compare_parts(struct run *r, const char *tensor, const float *got, size_t parts,
                          size_t n, bool last)
{
    const double tolerance = is_gradient(tensor) ? r->tolerance_grad : r->tolerance;
    const double tolerance_abs = is_gradient(tensor) ? r->tolerance_grad_abs : r->tolerance_abs;
    const struct tensor *t = safetensors_find(r->s, tensor);

    if (!t)
        return;
    const size_t each = t->n / parts;
    if (t->n % parts || each < n) {
        check(r, tensor, NULL, INFINITY, 0);
        return;
    }
    float *const want = need_room(parts * n + 1, sizeof(*want));
    for (size_t i = 0; i < parts; i++)
        memcpy(want + i * n, (const float *)t->data + i * each + (last ? each - n : 0),
               n * sizeof(*want));
    const struct bound bound = {.rel = tolerance, .nmse = INFINITY, .abs = tolerance_abs};
    const struct agreement a = agree(got, want, parts * n, bound);
    check(r, tensor, NULL, a.max_abs, a.limit);
    free(want);
}

void golden_compare_first(struct run *r, const char *tensor, const float *got, size_t parts,
                          size_t n)
{
    compare_parts(r, tensor, got, parts, n, false);
}

void golden_compare(struct run *r, const char *tensor, const float *got, size_t n)
{
    const struct tensor *t = safetensors_find(r->s, tensor);

    if (t && t->n != n)
        check(r, tensor, NULL, INFINITY, 0);
    else
        golden_compare_first(r, tensor, got, 1, n);
}

void golden_compare_memory(struct run *r, const char *tensor, const struct cache *c, int first,
                           int rows)
{
    const size_t n = (size_t)rows * (size_t)c->n, all = (size_t)c->B * n;
    float *const flat = need_room(all + 1, sizeof(*flat));

    for (int b = 0; b < c->B; b++)
        memcpy(flat + (size_t)b * n, cache_rows(c, b) + (ptrdiff_t)first * c->n, n * sizeof(*flat));
    if (c->keep < r->max.M)
        compare_parts(r, tensor, flat, (size_t)c->B, n, true);
    else
        golden_compare(r, tensor, flat, all);
    free(flat);
}

void golden_compare_whole(struct run *r, const char *tensor, const int32_t *got, size_t n)
{
    const struct tensor *t = safetensors_find(r->s, tensor);
    const int32_t *want = t ? t->data : NULL;
    size_t wrong = 0;

    if (!t)
        return;
    if (t->n != n || t->dtype != DTYPE_I32) {
        check(r, tensor, NULL, INFINITY, 0);
        return;
    }
    for (size_t i = 0; i < n; i++)
        wrong += got[i] != want[i];
    check(r, tensor, NULL, (double)wrong, 0.5);
}

void golden_compare_meta(struct run *r, const char *key, double got, double relative)
{
    double want = 0;
    struct err e;

    if (!safetensors_meta(r->s, key))
        return;
    if (safetensors_real(r->s, key, 0, &want, &e) != OK)
        check(r, key, NULL, INFINITY, 0);
    else
        check(r, key, NULL, fabs(got - want), relative * fabs(want));
}

void golden_compare_total(struct run *r, const float *nll, size_t n)
{
    double total = 0, most = 0;

    for (size_t i = 0; i < n; i++) {
        total += (double)nll[i];
        most = fmax(most, (double)nll[i]);
    }
    golden_compare_meta(r, "total_nll", total,
                        (double)n * fmax(r->tolerance * most, r->tolerance_abs) / total);
}

int golden_count_grad(const struct run *r)
{
    int n = 0;

    for (int i = 0; i < r->s->n_tensors; i++)
        n += is_gradient(r->s->tensors[i].name);
    return n;
}

void golden_compare_grad(struct run *r, const struct params *p)
{
    for (int i = 0; i < p->n; i++)
        golden_compare(r, golden_name(r, GRADIENT "%s", p->v[i].name), p->v[i].grad, p->v[i].n);
}

void golden_skip(struct run *r, bool unread)
{
    for (int i = 0; i < r->s->n_tensors; i++)
        if (unread ? !r->s->asked_tensor[i] : is_gradient(r->s->tensors[i].name)) {
            r->s->asked_tensor[i] = true;
            check(r, r->s->tensors[i].name, "no backward pass", 0, 0);
        }
}
