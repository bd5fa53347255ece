/* SPDX-License-Identifier: MIT
 *
 * Running golden files: what every kind of them shares, the pass rule above all. */
#include "golden_inner.h"

#include "harness/worker/agree.h"

#include "variants/model/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- verdicts ----------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void check(struct run *r, const char *tensor, const char *skipped, double error,
                  double limit)
{
    const struct verdict v = {
        base_name(r->s->path), tensor, r->g->backend->name, skipped, error, limit};

    r->tally->tensors++;
    r->n_grad += strncmp(tensor, GRADIENT, strlen(GRADIENT)) == 0;
    if (skipped)
        r->tally->skipped++;
    else if (error <= limit) /* false for NaN */
        r->tally->passed++;
    else
        r->tally->failed++;
    r->report(r->arg, &v);
}

void golden_compare_first(struct run *r, const char *tensor, const float *got, size_t parts,
                          size_t n)
{
    const bool grad = strncmp(tensor, GRADIENT, strlen(GRADIENT)) == 0;
    const double tolerance = grad ? r->tolerance_grad : r->tolerance;
    const double tolerance_abs = grad ? r->tolerance_grad_abs : r->tolerance_abs;
    const struct tensor *t = safetensors_find(r->s, tensor);

    if (!t)
        return;
    const size_t each = t->n / parts;
    if (t->n % parts || each < n) {
        check(r, tensor, NULL, INFINITY, 0);
        return;
    }
    for (size_t i = 0; i < parts * n; i++) {
        const float want = ((const float *)t->data)[i / n * each + i % n];
        const double d = fabs((double)got[i] - (double)want);
        if (d > worst || isnan(d))
            worst = d;
        largest = fmax(largest, fabs((double)want));
    }
    check(r, tensor, NULL, worst, fmax(tolerance * largest, tolerance_abs));
}

void golden_compare(struct run *r, const char *tensor, const float *got, size_t n)
{
    const struct tensor *t = safetensors_find(r->s, tensor);

    if (t && t->n != n)
        check(r, tensor, NULL, INFINITY, 0);
    else
        golden_compare_first(r, tensor, got, 1, n);
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

static int count_grad(const struct safetensors *s)
{
    int n = 0;

    for (int i = 0; i < s->n_tensors; i++)
        n += strncmp(s->tensors[i].name, GRADIENT, strlen(GRADIENT)) == 0;
    return n;
}

void golden_compare_grad(struct run *r, const struct params *p)
{
    for (int i = 0; i < p->n; i++) {
        char name[96];
        snprintf(name, sizeof(name), GRADIENT "%s", p->v[i].name);
        golden_compare(r, name, p->v[i].grad, p->v[i].n);
    }
}

bool golden_has_grad(const struct run *r) { return count_grad(r->s) > 0; }

void golden_skip_grad(struct run *r, const char *why)
{
    for (int i = 0; i < r->s->n_tensors; i++)
        if (strncmp(r->s->tensors[i].name, GRADIENT, strlen(GRADIENT)) == 0)
            check(r, r->s->tensors[i].name, why, 0, 0);
}

const struct tensor *golden_need(const struct run *r, const char *name, enum dtype dtype, size_t n,
                                 enum status *st, struct err *e)
{
    const struct tensor *t = safetensors_find(r->s, name);

    if (*st == OK && (!t || t->dtype != dtype || t->n != n))
        *st = fail(e, E_IO, "%s: tensor \"%s\" is missing or does not fit its metadata", r->s->path,
                   name);
    return t;
}

enum status golden_whole(const struct run *r, const char *key, int *out, struct err *e)
{
    return safetensors_int(r->s, key, 0, 0, 1 << 16, out, e);
}

enum status golden_no_strangers(const struct run *r, const struct params *p, struct err *e)
{
    static const char prefix[] = "param.";

    for (int i = 0; i < r->s->n_tensors; i++) {
        const char *name = r->s->tensors[i].name;
        const bool ours =
            strncmp(name, prefix, strlen(prefix)) != 0 || params_find(p, name + strlen(prefix));
        if (!ours)
            return fail(e, E_IO,
                        "%s: parameter \"%s\" is not built in  -> is it for a newer program?",
                        r->s->path, name);
    }
    return OK;
}

enum status golden_known_inputs(const struct run *r, const char *const *known, struct err *e)
{
    for (int i = 0; i < r->s->n_tensors; i++) {
        const char *const name = r->s->tensors[i].name;
        const char *const *k = known;
        if (strncmp(name, "in.", 3) != 0)
            continue;
        while (*k && strcmp(name, *k) != 0)
            k++;
        if (!*k)
            return fail(e, E_IO, "%s: input \"%s\" is not built in  -> is it for a newer program?",
                        r->s->path, name);
    }
    return OK;
}

enum status golden_place(const struct run *r, golden_bind *bind, void *arg, struct arena *a,
                         struct params *p, struct err *e)
{
    enum status st = bind(arg, r->g, e);

    if (st == OK)
        st = arena_place(a, HUGE_NEVER, NULL, NULL, e);
    if (st == OK)
        st = bind(arg, r->g, e);
    if (st == OK)
        st = checkpoint_load(r->s, "param.", p, e);
    return st == OK ? golden_no_strangers(r, p, e) : st;
}

void golden_remember(const struct run *r, struct sublayers *sublayers, struct extent m, float *x,
                     const float *rows)
{
    const size_t D = (size_t)sublayers->at->c->D;

    for (int done = 0; done < m.M; done += m.L) {
        const int n = min_int(m.L, m.M - done);
        for (int b = 0; b < m.B; b++)
            memcpy(x + (size_t)(b * n) * D, rows + (size_t)(b * m.M + done) * D,
                   sizeof(float) * (size_t)n * D);
        sublayer_remember(r->g, sublayers->at, sublayers->work, x, m.B, n);
    }
}

/* ---- one file ----------------------------------------------------------------------------- */

static bool said(const char *value) { return value && strcmp(value, "none") != 0; }

static enum status run_kind(struct run *r, struct err *e)
{
    const char *kind = safetensors_meta(r->s, "kind");
    const char *mixer = safetensors_meta(r->s, "mixer"), *synth = safetensors_meta(r->s, "synth");

    if (kind && strcmp(kind, "attention") == 0)
        return said(mixer) || said(synth) ? golden_mixer(r, e) : golden_operator(r, e);
    if (kind && strcmp(kind, "lm") == 0)
        return golden_lm(r, e);
    if (kind && (strcmp(kind, "norm") == 0 || strcmp(kind, "ffn") == 0))
        return golden_part(r, e);
    if (kind && strcmp(kind, "dextra") == 0)
        return golden_map(r, e);
    if (kind && safetensors_meta(r->s, "blocks"))
        return golden_funnel(r, e);
    if (kind && strcmp(kind, "local_rnn") == 0)
        return golden_rnn(r, e);
    return fail(
        e, E_IO,
        "%s: kind \"%s\" is none of attention, lm, norm, ffn, dextra, funnel, local_rnn  -> is "
        "it a golden file?",
        r->s->path, kind ? kind : "");
}

enum status golden_run(const struct engine *g, const char *path, struct tally *t,
                       verdict_fn *report, void *arg, struct err *e)
{
    struct safetensors s;
    struct run r = {.g = g, .s = &s, .tally = t, .report = report, .arg = arg};
    enum status st = safetensors_open(&s, path, e);

    if (st != OK)
        return st;
    st = safetensors_real(&s, "tolerance", 0, &r.tolerance, e);
    if (st == OK)
        st = safetensors_real(&s, "tolerance_abs", 0, &r.tolerance_abs, e);
    if (st == OK)
        st = safetensors_real(&s, "tolerance_grad", 0, &r.tolerance_grad, e);
    if (st == OK)
        st = safetensors_real(&s, "tolerance_grad_abs", 0, &r.tolerance_grad_abs, e);
    if (st == OK)
        st = run_kind(&r, e);
    if (st == OK && r.n_grad != count_grad(&s))
        st = fail(e, E_IO, "%s: has %d gradients, %d of them of something the model has", path,
                  count_grad(&s), r.n_grad);
    if (st == OK)
        t->files++;
    safetensors_close(&s);
    return st;
}
