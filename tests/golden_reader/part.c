/* SPDX-License-Identifier: MIT
 *
 * Golden files of single parts: a norm (kind = norm) and a feed-forward network (kind = ffn),
 * forward and backward. */
#include "reader.h"

#include "variants/model/checkpoint/checkpoint.h"
#include "variants/parts/ffn/moe.h"
#include "variants/parts/norm.h"

#define NORM "norm"

struct part_run {
    int rows;
    const struct tensor *tokens, *freq; /* of the rows; of the vocabulary; NULL = none */
    float *x, *work, *more, *stats;
};

/* ---- what the file describes -------------------------------------------------------------- */

/* The config of a part, whose name is under `key`. */
static enum status read_part(struct run *r, const char *key, struct err *e)
{
    struct part_run *o = r->data;
    struct config *c = &r->c;

    TRY(golden_part(r, NULL, "D", e));
    c->ffn = NULL; /* the file's */
    TRY(safetensors_int(r->s, "d_inner", 1, 0, GOLDEN_WIDE, &c->F, e));
    TRY(golden_eps(r, e));
    TRY(golden_whole(r, "vocab", &c->V, e));
    TRY(checkpoint_parts(r->s, "param.", c, e));
    if (!safetensors_meta(r->s, key))
        return safetensors_fail(r->s, e, "metadata %s is missing  -> give a golden file", key);
    TRY(checkpoint_check(r->s, c, e));
    o->rows = r->max.B * r->max.L;
    return golden_inputs(r, c->D, e);
}

static enum status read_norm(struct run *r, struct err *e)
{
    TRY(read_part(r, "norm_kind", e));
    TRY(golden_norm_mode(r, e));
    norm_params(&r->c, "", NORM, &r->params);
    return OK;
}

/* The tokens of the rows, and how frequent each of the vocabulary is, for a network that they
 * choose something of. */
static enum status read_tokens(struct run *r, struct err *e)
{
    struct part_run *const o = r->data;
    enum status st = OK;

    o->tokens = golden_need(r, "in.tokens", DTYPE_I32, (size_t)o->rows, &st, e);
    for (int i = 0; st == OK && i < o->rows; i++)
        if (((const int32_t *)o->tokens->data)[i] < 0 ||
            ((const int32_t *)o->tokens->data)[i] >= r->c.V)
            return safetensors_fail(r->s, e, "a token is outside the vocabulary of %d", r->c.V);
    if (safetensors_find(r->s, "in.freq"))
        o->freq = golden_need(r, "in.freq", DTYPE_I32, (size_t)r->c.V, &st, e);
    return st;
}

static enum status read_ffn(struct run *r, struct err *e)
{
    const struct config *const c = &r->c;

    TRY(read_part(r, "ffn", e));
    if (!c->ffn)
        return safetensors_fail(r->s, e, "metadata ffn is missing  -> give a golden file");
    if (c->F < 1 && !c->ffn->no_hidden)
        return safetensors_fail(
            r->s, e, "metadata d_inner is 0  -> give the number of hidden units of ffn %s",
            c->ffn->name);
    c->ffn->params(c, "ff.", &r->params);
    return c->ffn->read_tokens ? read_tokens(r, e) : OK;
}

/* ---- the run ------------------------------------------------------------------------------ */

static enum status bind(struct run *r, struct err *e)
{
    struct part_run *o = r->data;
    struct arena *a = &r->arena;
    const struct config *c = &r->c;

    golden_bind_part(r, r->x->n);
    o->x = arena_f32(a, PART_ACTIVATIONS, r->x->n);
    o->stats = arena_f32(a, PART_SCRATCH, NORM_STATS * (size_t)o->rows);
    if (c->ffn) {
        o->work = arena_f32(a, PART_ACTIVATIONS, c->ffn->work(c, o->rows, true));
        o->more = arena_f32(a, PART_SCRATCH, c->ffn->work_grad(c, o->rows));
    }
    return OK;
}

static enum status norm_forward(struct run *r, struct err *e)
{
    const struct part_run *o = r->data;

    memcpy(o->x, r->x->data, r->x->n * sizeof(float));
    norm_apply(r->g, &r->c, r->params.v, r->y, o->x, NULL, o->rows);
    return OK;
}

static void norm_grad(struct run *r)
{
    const struct part_run *o = r->data;

    norm_backward(r->g, &r->c, r->params.v, r->d_x, r->dy->data, o->x, o->stats, o->rows, o->rows);
}

/* After the backward pass. */
static void norm_buffers(struct run *r)
{
    for (const struct param *w = r->params.v; w < r->params.v + r->params.n; w++) {
        char name[96];
        for (size_t k = 0; w->buffer && k < w->n; k++)
            w->data[k] += w->grad[k];
        snprintf(name, sizeof(name), "out.%s", w->name + strlen(NORM "."));
        if (w->buffer)
            golden_compare(r, name, w->data, w->n);
    }
}

static const struct dropout none = {0};

struct counted {
    int32_t freq, token;
};

static int more_frequent(const void *a, const void *b)
{
    const struct counted *const x = a, *const y = b;

    return x->freq != y->freq ? (x->freq < y->freq) - (x->freq > y->freq)
                              : (x->token > y->token) - (x->token < y->token);
}

/* The experts of tokens in a table that balances them: from the most frequent token on, equal ones
 * in order, each goes to the first expert with the fewest occurrences so far. */
static void balance(const int32_t *freq, int V, int experts, int32_t *table)
{
    struct counted *const all = calloc((size_t)V + 1, sizeof(*all));
    int64_t *const load = calloc((size_t)experts, sizeof(*load));

    NEED(all && load);
    for (int v = 0; v < V; v++)
        all[v] = (struct counted){freq[v], v};
    qsort(all, (size_t)V, sizeof(*all), more_frequent);
    for (int i = 0; i < V; i++) {
        int to = 0;
        for (int e = 1; e < experts; e++)
            to = load[e] < load[to] ? e : to;
        table[all[i].token] = to;
        load[to] += all[i].freq;
    }
    free(load);
    free(all);
}

/* A table that balances tokens of these frequencies. */
static void compare_table(struct run *r, const struct tensor *freq)
{
    if (!freq)
        return;
    int32_t *const table = calloc(freq->n + 1, sizeof(*table));
    NEED(table);
    balance(freq->data, r->c.V, moe_of(&r->c)->experts, table);
    golden_compare_whole(r, "out.table", table, freq->n);
    free(table);
}

static enum status ffn_forward(struct run *r, struct err *e)
{
    const struct part_run *o = r->data;
    const struct config *c = &r->c;

    memcpy(o->x, r->x->data, r->x->n * sizeof(float));
    if (o->tokens)
        c->ffn->read_tokens(c, r->params.v, o->tokens->data, o->rows, o->work);
    c->ffn->forward(r->g, c, r->params.v, r->y, o->x, o->rows, o->work, true,
                    (struct act){.y = r->y}, &none);
    if (c->ffn->aux) {
        const float aux = (float)c->ffn->aux(c, o->rows, o->work);
        golden_compare(r, "out.aux", &aux, 1);
    }
    if (c->ffn->chose) {
        const struct ffn_choice chosen = c->ffn->chose(c, o->rows, o->work);
        golden_compare_whole(r, chosen.name, chosen.at, chosen.n);
    }
    compare_table(r, o->freq);
    return OK;
}

static void ffn_backward(struct run *r)
{
    const struct part_run *o = r->data;

    r->c.ffn->backward(r->g, &r->c, r->params.v, r->d_x, r->dy->data, o->x, o->rows, o->work,
                       o->more, &none);
}

const struct golden_kind golden_norm = {
    .name = "norm",
    .size = sizeof(struct part_run),
    .read = read_norm,
    .bind = bind,
    .forward = norm_forward,
    .backward = norm_grad,
    .finish = norm_buffers,
};

const struct golden_kind golden_ffn = {
    .name = "ffn",
    .size = sizeof(struct part_run),
    .read = read_ffn,
    .bind = bind,
    .forward = ffn_forward,
    .backward = ffn_backward,
};
