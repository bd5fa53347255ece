/* SPDX-License-Identifier: MIT
 *
 * Running golden files: the path of a file from its metadata to the comparisons. */
#include "golden.h"

#include "variants/model/checkpoint/checkpoint.h"

/* ---- weights and states that are inputs -------------------------------------------------------- */

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

    if (!t && (w->init == INIT_ZERO || (w->init == INIT_CONST && w->init_arg == 0))) {
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

/* Fill the buffers among the parameters from in.NAME, or from the input that has the last part of
 * their name, with or without their layer behind it; one that is 0 at first may be left out. */
static enum status fill_buffers(const struct run *r, const struct params *p, struct err *e)
{
    for (int i = 0; i < p->n; i++)
        if (p->v[i].buffer)
            TRY(fill_buffer(r, &p->v[i], e));
    return OK;
}

/* The file's tensor of an array of a layer: all layers may be given one, but each carries its own.
 * An array of the second sub-layer of a layer, "ff_shift", is "shift" where it stands alone. */
static bool carried_input(const struct run *r, const struct sublayers *s, int i,
                          const struct carried *c, char name[TENSOR_NAME])
{
    const bool alone = s->n == 1;

    snprintf(name, TENSOR_NAME, "in.%s.%d", c->name, s->at[i].layer);
    if (!alone && safetensors_find(r->s, name))
        return true;
    snprintf(name, TENSOR_NAME, "in.%s",
             c->name + (alone && strncmp(c->name, "ff_", 3) == 0 ? 3 : 0));
    return (alone || c->given) && safetensors_find(r->s, name);
}

/* Fill what layers are given or carry, from in.NAME. */
static enum status fill_carried(const struct run *r, const struct sublayers *s, struct err *e)
{
    char name[TENSOR_NAME];
    enum status st = OK;
    struct carried c;

    for (int i = 0; i < s->n; i++)
        for (int k = 0;
             st == OK && s->at[i].kind->carries && s->at[i].kind->carries(&s->at[i], k, &c); k++) {
            if (c.n == 0 || !carried_input(r, s, i, &c, name))
                continue;
            const struct tensor *const t = golden_need(r, name, DTYPE_F32, c.n, &st, e);
            if (t)
                memcpy(c.at, t->data, c.n * sizeof(float));
        }
    return st;
}

/* ---- what nothing reads ------------------------------------------------------------------- */

/* Keys that say nothing about what is computed, some of them with one value only. */
static bool is_free(const char *key, const char *text)
{
    static const struct {
        const char *key, *only;
    } keys[] = {
        {"name", NULL},         {"generator", NULL}, {"round", NULL},    {"margin", NULL},
        {"grad_loss", NULL},    {"n_tokens", NULL},  {"mean_nll", NULL}, {"ppl", NULL},
        {"qk_gain", NULL},      {"variant", NULL},   {"sinusoid", NULL}, {"form", "softmax"},
        {"head_weight", "all"}, {"no_q_bias", "1"},  {"pool", "mean"},   {"pool_size", "2"}};

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strcmp(keys[i].key, key) == 0)
            return !keys[i].only || strcmp(keys[i].only, text) == 0;
    return false;
}

/* What would decide something if anything read it must not be ignored; a part of a model may say
 * what the model would be. */
static enum status refuse_unread_keys(const struct run *r, struct err *e)
{
    const struct safetensors *const s = r->s;

    for (int i = 0; i < s->n_meta; i++) {
        const char *const key = s->meta[2 * i], *const text = s->meta[2 * i + 1];
        if (!s->asked_meta[i] && !golden_says_nothing(text) && !is_free(key, text) &&
            !(r->c.variant && checkpoint_agrees(s, key, &r->c)))
            return safetensors_fail(s, e,
                                    "metadata %.64s is \"%.64s\", which nothing in a file of kind "
                                    "%.64s obeys  -> use the program that the file was made for",
                                    key, text, safetensors_meta(s, "kind"));
    }
    return OK;
}

/* Tensors but those of results, or those. */
static enum status refuse_unread_tensors(const struct run *r, bool results, struct err *e)
{
    const struct safetensors *const s = r->s;

    for (int i = 0; i < s->n_tensors; i++)
        if (!s->asked_tensor[i] && text_begins(s->tensors[i].name, "out.") == results)
            return safetensors_fail(
                s, e, "tensor \"%s\" is %s  -> use the program that the file was made for",
                s->tensors[i].name,
                results ? "a result of nothing that the model computes"
                        : "an input of nothing that the model has");
    return OK;
}

/* ---- one file ----------------------------------------------------------------------------- */

static enum status bind(struct run *r, const struct golden_kind *kind, struct err *e)
{
    engine_bind(&r->engine, &r->arena);
    r->g = &r->engine;
    return kind->bind(r, e);
}

/* Bind over a counting and a placed arena, and load all weights; a file that has them has to fit
 * before room for them is taken. */
static enum status place(struct run *r, const struct golden_kind *kind, struct err *e)
{
    TRY(bind(r, kind, e));
    if (!kind->load)
        TRY(checkpoint_fits(r->s, "param.", r->weights, e));
    TRY(arena_place(&r->arena, HUGE_NEVER, NULL, NULL, e));
    memset(r->arena.base, 0xff, r->arena.size); /* NaN: nothing may count on zeros */
    TRY(bind(r, kind, e));
    if (kind->load) {
        TRY(kind->load(r, e));
    } else {
        TRY(checkpoint_load(r->s, "param.", r->weights, e));
        TRY(fill_buffers(r, r->weights, e));
    }
    return fill_carried(r, r->list, e);
}

/* Rows of the widest kind, and pairs of a query and a key. */
static enum status check_sizes(const struct run *r, struct err *e)
{
    const struct config *const c = &r->c;
    const double keys = r->max.L + r->max.M, heads = (double)r->max.B * c->H;
    const int widest = max_int(max_int(c->D, c->F), max_int(c->V, c->H * c->dh));

    TRY(golden_few(r, r->max.B * keys * widest, e));
    return golden_few(r, heads * r->max.L * keys, e);
}

static enum status run_kind(struct run *r, const struct golden_kind *kind, struct err *e)
{
    const int before = r->tally->tensors;
    const bool has_grad = r->grad;

    TRY(kind->read(r, e));
    TRY(check_sizes(r, e));
    TRY(place(r, kind, e));
    if (!kind->load)
        TRY(refuse_unread_keys(r, e));
    TRY(refuse_unread_tensors(r, false, e));
    TRY(kind->forward(r, e));
    if (r->y)
        golden_compare(r, "out.y", r->y, r->n_y);
    if (!r->grad)
        golden_skip(r, false);
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
    if (has_grad && !r->grad)
        golden_skip(r, true);
    TRY(refuse_unread_tensors(r, true, e));
    if (r->tally->tensors == before)
        return safetensors_fail(
            r->s, e,
            "no out.* tensor that the model computes, so nothing was compared  -> add one");
    r->tally->files++;
    return OK;
}

/* The first kind that claims the file; NULL = none. */
static const struct golden_kind *find_kind(const struct safetensors *s)
{
    const char *const name = safetensors_meta(s, "kind");

    for (int i = 0; name && golden_kinds[i]; i++)
        if ((!golden_kinds[i]->name || strcmp(name, golden_kinds[i]->name) == 0) &&
            (!golden_kinds[i]->claims || golden_kinds[i]->claims(s)))
            return golden_kinds[i];
    return NULL;
}

static enum status unknown_kind(const struct safetensors *s, struct err *e)
{
    const char *const name = safetensors_meta(s, "kind");
    char known[128] = "";

    for (int i = 0; golden_kinds[i]; i++)
        if (golden_kinds[i]->name && !strstr(known, golden_kinds[i]->name))
            text_append(known, sizeof(known), "%s%s", *known ? ", " : "", golden_kinds[i]->name);
    const enum status st =
        safetensors_fail(s, e, "kind \"%.64s\" is none of %s  -> %s", name ? name : "", known,
                         golden_is_all ? "give a golden file" : "`make golden` reads others");
    return name && !golden_is_all ? E_UNSUPPORTED : st;
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

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        TRY(safetensors_real(r->s, keys[i].key, 0, keys[i].to, e));
    return OK;
}

/* Gradients of results, which a file without gradients need not use. */
static void pass_cotangents(const struct safetensors *s)
{
    static const char *const names[] = {"in.dy", "in.dy_global", "in.dscores_out", "in.do",
                                        "in.dstate_s"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        (void)safetensors_find(s, names[i]);
}

static enum status run_file(struct run *r, struct err *e)
{
    const struct golden_kind *const kind = find_kind(r->s);
    struct err why;

    TRY(read_tolerances(r, e));
    if (!kind)
        return unknown_kind(r->s, e);
    r->data = need_room(1, kind->size + 1);
    r->grad = golden_count_grad(r) > 0;
    if (!r->grad)
        pass_cotangents(r->s);
    const enum status st = run_kind(r, kind, &why);
    if (kind->release)
        kind->release(r);
    if (st == E_IO)
        return fail(e, st, "%s", why.msg);
    /* Else of what runs it, which does not know of files. */
    return st == OK ? OK : safetensors_fail(r->s, e, "%s", why.msg);
}

enum status golden_run(const struct engine *g, const char *path, struct tally *t,
                       verdict_fn *report, void *arg, struct err *e)
{
    struct safetensors s;
    struct run r = {.g = g,
                    .engine = *g,
                    .s = &s,
                    .tally = t,
                    .report = report,
                    .arg = arg,
                    .name = path_name(path),
                    .weights = &r.params,
                    .list = &r.sublayers};

    TRY(safetensors_open(&s, path, e));
    const enum status st = run_file(&r, e);
    sublayers_free(&r.sublayers);
    params_free(&r.params);
    arena_release(&r.arena);
    free(r.data);
    safetensors_close(&s);
    return st;
}
