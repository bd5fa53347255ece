/* SPDX-License-Identifier: MIT
 *
 * Running golden files: the kinds of files, and the path of a file from its metadata to the
 * comparisons. */
#include "golden_inner.h"

#include "variants/model/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first kind that claims a file runs it. */
static const struct golden_kind *const kinds[] = {
    &golden_mixer, &golden_operator, &golden_lm,  &golden_norm,
    &golden_ffn,   &golden_map,      &golden_rnn, &golden_funnel, &golden_recur,
};

/* ---- metadata and inputs ------------------------------------------------------------------ */

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

enum status golden_extent(struct run *r, struct err *e)
{
    enum status st;

    if ((st = golden_whole(r, "batch", &r->max.B, e)) != OK ||
        (st = golden_whole(r, "seq", &r->max.L, e)) != OK)
        return st;
    return golden_whole(r, "mem", &r->max.M, e);
}

enum status golden_inputs(struct run *r, int width, struct err *e)
{
    const size_t rows = (size_t)r->max.B * (size_t)r->max.L, D = (size_t)r->c.D;
    enum status st = OK;

    r->n_y = rows * (size_t)width;
    r->x = golden_need(r, "in.x", DTYPE_F32, rows * D, &st, e);
    if (r->max.M && !r->mem)
        r->mem =
            golden_need(r, "in.mem", DTYPE_F32, (size_t)r->max.B * (size_t)r->max.M * D, &st, e);
    if (r->grad)
        r->dy = golden_need(r, "in.dy", DTYPE_F32, r->n_y, &st, e);
    return st;
}

/* ---- one file ----------------------------------------------------------------------------- */

/* A parameter of the file that the model lacks would not be tested. */
static enum status no_strangers(const struct run *r, const struct params *p, struct err *e)
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

/* Bind over a counting and a placed arena, and load all weights from the file. */
static enum status place(struct run *r, const struct golden_kind *kind, struct err *e)
{
    enum status st = kind->bind(r, e);

    if (st == OK)
        st = arena_place(&r->arena, HUGE_NEVER, NULL, NULL, e);
    if (st == OK)
        st = kind->bind(r, e);
    if (st == OK)
        st = checkpoint_load(r->s, "param.", r->weights, e);
    return st == OK ? no_strangers(r, r->weights, e) : st;
}

static enum status run_kind(struct run *r, const struct golden_kind *kind, struct err *e)
{
    enum status st;

    if ((st = kind->read(r, e)) != OK || (st = place(r, kind, e)) != OK ||
        (st = kind->forward(r, e)) != OK)
        return st;
    if (r->y)
        golden_compare(r, "out.y", r->y, r->n_y);
    if (!r->grad)
        golden_skip_grad(r, "no backward pass");
    else if (kind->backward) {
        params_zero_grad(r->weights);
        kind->backward(r);
        golden_compare(r, GRADIENT "x", r->d_x, r->x->n);
        golden_compare_grad(r, r->weights);
    }
    if (kind->finish)
        kind->finish(r);
    if (r->n_grad != golden_count_grad(r))
        return fail(e, E_IO, "%s: has %d gradients, %d of them of something the model has",
                    r->s->path, golden_count_grad(r), r->n_grad);
    r->tally->files++;
    return OK;
}

static enum status find_kind(const struct run *r, const struct golden_kind **out, struct err *e)
{
    const char *const name = safetensors_meta(r->s, "kind");
    char known[128] = "";

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const size_t at = strlen(known);
        *out = kinds[i];
        if (name && (!kinds[i]->name || strcmp(name, kinds[i]->name) == 0) &&
            (!kinds[i]->claims || kinds[i]->claims(r->s)))
            return OK;
        if (!kinds[i]->claims)
            snprintf(known + at, sizeof(known) - at, "%s%s", at ? ", " : "", kinds[i]->name);
    }
    return fail(e, E_IO, "%s: kind \"%s\" is none of %s  -> is it a golden file?", r->s->path,
                name ? name : "", known);
}

static enum status read_tolerances(struct run *r, struct err *e)
{
    const struct {
        const char *key;
        double *to;
    } keys[] = {
        {"tolerance", &r->tolerance},
        {"tolerance_abs", &r->tolerance_abs},
        {"tolerance_grad", &r->tolerance_grad},
        {"tolerance_grad_abs", &r->tolerance_grad_abs},
    };
    enum status st = OK;

    for (size_t i = 0; st == OK && i < ARRAY_LEN(keys); i++)
        st = safetensors_real(r->s, keys[i].key, 0, keys[i].to, e);
    return st;
}

enum status golden_run(const struct engine *g, const char *path, struct tally *t,
                       verdict_fn *report, void *arg, struct err *e)
{
    struct safetensors s;
    struct run r = {.g = g, .s = &s, .tally = t, .report = report, .arg = arg};
    const struct golden_kind *kind = NULL;
    enum status st = safetensors_open(&s, path, e);

    if (st != OK)
        return st;
    if ((st = read_tolerances(&r, e)) == OK && (st = find_kind(&r, &kind, e)) == OK) {
        r.own = calloc(1, kind->size + 1);
        CHECK(r.own);
        r.weights = &r.params;
        r.grad = golden_count_grad(&r) > 0;
        st = run_kind(&r, kind, e);
        if (kind->release)
            kind->release(&r);
        sublayers_free(&r.sublayers);
        params_free(&r.params);
        arena_release(&r.arena);
        free(r.own);
    }
    safetensors_close(&s);
    return st;
}
