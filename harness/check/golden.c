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
    &golden_mixer,  &golden_channel_mix, &golden_operator,      &golden_lm,
    &golden_norm,   &golden_ffn,         &golden_map,           &golden_rnn,
    &golden_funnel, &golden_recur,       &golden_layer,         &golden_cross,
    &golden_hier,   &golden_seq2seq,     &golden_import_memory, &golden_import,
};

/* ---- metadata and inputs ------------------------------------------------------------------ */

const struct tensor *golden_need(const struct run *r, const char *name, enum dtype dtype, size_t n,
                                 enum status *st, struct err *e)
{
    const struct tensor *t = safetensors_find(r->s, name);

    if (*st == OK && (!t || t->dtype != dtype || t->n != n))
        *st = safetensors_fail(r->s, e, "tensor \"%s\" is missing or does not fit its metadata",
                               name);
    return *st == OK ? t : NULL;
}

enum status golden_whole(const struct run *r, const char *key, int *out, struct err *e)
{
    return safetensors_int(r->s, key, 0, 0, GOLDEN_WIDE, out, e);
}

enum status golden_size(const struct run *r, const char *key, int most, int *out, struct err *e)
{
    if (!safetensors_meta(r->s, key))
        return safetensors_fail(r->s, e, "metadata %s is missing  -> add a whole number in 1..%d",
                                key, most);
    return safetensors_int(r->s, key, 0, 1, most, out, e);
}

enum status golden_variant(const struct run *r, const struct variant **out, struct err *e)
{
    const char *const name = safetensors_meta(r->s, "variant");

    *out = name ? variant_find(name) : NULL;
    return *out
               ? OK
               : safetensors_fail(r->s, e, "unknown variant \"%.64s\"  -> see: bench list variants",
                                  name ? name : "");
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
            return safetensors_fail(
                r->s, e, "unknown input \"%s\"  -> use the program that the file was made for",
                name);
    }
    return OK;
}

enum status golden_rows(const struct run *r, struct err *e)
{
    const struct extent m = r->max;

    if (m.L > GOLDEN_WIDE || m.M > GOLDEN_WIDE || (int64_t)m.B * (m.L + m.M) > GOLDEN_ROWS)
        return safetensors_fail(r->s, e,
                                "batch %d, seq %d, mem %d  -> use at most %d tokens in all", m.B,
                                m.L, m.M, (int)GOLDEN_ROWS);
    return OK;
}

enum status golden_few(const struct run *r, double numbers, struct err *e)
{
    if (numbers > GOLDEN_NUMBERS)
        return safetensors_fail(
            r->s, e, "its sizes need arrays of %g numbers  -> lower them until %d are enough",
            numbers, (int)GOLDEN_NUMBERS);
    return OK;
}

enum status golden_extent(struct run *r, struct err *e)
{
    enum status st;

    if ((st = golden_size(r, "batch", GOLDEN_WIDE, &r->max.B, e)) != OK ||
        (st = golden_size(r, "seq", GOLDEN_WIDE, &r->max.L, e)) != OK)
        return st;
    if ((st = golden_whole(r, "mem", &r->max.M, e)) != OK)
        return st;
    return golden_rows(r, e);
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

static const struct tensor *find_buffer(const struct run *r, const char *name)
{
    const char *const dot = strrchr(name, '.');
    char full[TENSOR_NAME];

    snprintf(full, sizeof(full), "in.%s", name);
    const struct tensor *t = safetensors_find(r->s, full);
    if (t || !dot)
        return t;
    if (strncmp(name, "layers.", strlen("layers.")) == 0) { /* or in.NAME.LAYER */
        const int digits = (int)strspn(name + strlen("layers."), "0123456789");
        snprintf(full, sizeof(full), "in%s.%.*s", dot, digits, name + strlen("layers."));
        if ((t = safetensors_find(r->s, full)))
            return t;
    }
    snprintf(full, sizeof(full), "in.%s", dot + 1);
    return safetensors_find(r->s, full);
}

static enum status fill_buffer(const struct run *r, const struct param *w, struct err *e)
{
    const struct tensor *const t = find_buffer(r, w->name);

    if (!t && w->init == INIT_CONST && w->init_arg == 0) {
        memset(w->data, 0, w->n * sizeof(float));
        return OK;
    }
    if (!t || t->n != w->n)
        return safetensors_fail(r->s, e, "input \"%s\" is missing or does not fit its metadata",
                                w->name);
    for (size_t i = 0; i < w->n; i++) {
        const float x = t->dtype == DTYPE_I32 ? (float)((const int32_t *)t->data)[i]
                                              : ((const float *)t->data)[i];
        if (w->bounded && !(x >= w->least && x <= w->most))
            return safetensors_fail(r->s, e,
                                    "input \"%s\" has %g at %zu  -> use numbers from %g to %g",
                                    w->name, (double)x, i, (double)w->least, (double)w->most);
        w->data[i] = x;
    }
    return OK;
}

enum status golden_buffers(const struct run *r, const struct params *p, struct err *e)
{
    enum status st = OK;

    for (int i = 0; st == OK && i < p->n; i++)
        if (p->v[i].buffer)
            st = fill_buffer(r, &p->v[i], e);
    return st;
}

/* ---- one file ----------------------------------------------------------------------------- */

/* Bind over a counting and a placed arena, and load all weights; a file that has them has to fit
 * before room for them is taken. */
static enum status place(struct run *r, const struct golden_kind *kind, struct err *e)
{
    enum status st = kind->bind(r, e);

    if (st == OK && !kind->load)
        st = checkpoint_fits(r->s, "param.", r->weights, e);
    if (st == OK)
        st = arena_place(&r->arena, HUGE_NEVER, NULL, NULL, e);
    if (st == OK)
        st = kind->bind(r, e);
    if (st == OK)
        st = kind->load ? kind->load(r, e) : checkpoint_load(r->s, "param.", r->weights, e);
    return st;
}

/* Rows of the widest kind, and pairs of a query and a key. */
static enum status check_sizes(const struct run *r, struct err *e)
{
    const struct config *const c = &r->c;
    const double keys = r->max.L + r->max.M, heads = (double)r->max.B * c->H;
    const int widest = max_int(max_int(c->D, c->F), max_int(c->V, c->H * c->dh));
    const enum status st = golden_few(r, r->max.B * keys * widest, e);

    return st == OK ? golden_few(r, heads * r->max.L * keys, e) : st;
}

static enum status run_kind(struct run *r, const struct golden_kind *kind, struct err *e)
{
    const int before = r->tally->tensors;
    enum status st;

    if ((st = kind->read(r, e)) != OK || (st = check_sizes(r, e)) != OK ||
        (st = place(r, kind, e)) != OK || (st = kind->forward(r, e)) != OK)
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
        return safetensors_fail(r->s, e, "has %d gradients, %d of them of something the model has",
                                golden_count_grad(r), r->n_grad);
    if (r->tally->tensors == before)
        return safetensors_fail(
            r->s, e,
            "no out.* tensor that the model computes, so nothing was compared  -> add one");
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
    return safetensors_fail(r->s, e, "kind \"%.64s\" is none of %s  -> give a golden file",
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
    const char *const slash = strrchr(path, '/');
    struct run r = {.g = g,
                    .s = &s,
                    .tally = t,
                    .report = report,
                    .arg = arg,
                    .name = slash ? slash + 1 : path};
    const struct golden_kind *kind = NULL;
    struct err why;
    enum status st = safetensors_open(&s, path, e);

    if (st != OK)
        return st;
    if ((st = read_tolerances(&r, e)) == OK && (st = find_kind(&r, &kind, e)) == OK) {
        r.own = calloc(1, kind->size + 1);
        NEED(r.own);
        r.weights = &r.params;
        r.grad = golden_count_grad(&r) > 0;
        st = run_kind(&r, kind, &why);
        if (kind->release)
            kind->release(&r);
        sublayers_free(&r.sublayers);
        params_free(&r.params);
        arena_release(&r.arena);
        free(r.own);
        if (st == E_IO)
            fail(e, st, "%s", why.msg);
        else if (st != OK) /* of what runs it, which does not know of files */
            st = safetensors_fail(&s, e, "%s", why.msg);
    }
    safetensors_close(&s);
    return st;
}
