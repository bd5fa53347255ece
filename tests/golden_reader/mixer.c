/* SPDX-License-Identifier: MIT
 *
 * Golden files of mixers (kind = attention with a mixer, or the mixer's name): the bare operator
 * with its state in and out, forward and backward. */
#include "reader.h"

#include "variants/model/checkpoint/checkpoint.h"
#include "variants/model/config/settings.h"

/* Rows in front of a file's own: those remembered after a state, which are run again without a
 * gradient of their outputs, or global rows, which have results of their own. */
struct joined {
    int M; /* their number; 0 = not joined */
    bool global;
    const struct tensor *x, *dy;
    struct tensor all, d_all; /* [B,M+L,D] */
    int base;                 /* stream position of the first row */
    int count;                /* rows in the sum that an average begins with */
    struct attn seen;         /* the last attention that ran, if its probabilities are wanted */
};

static enum status bind(struct run *r, struct err *e)
{
    return golden_bind_sublayer(r, r->max.M ? MEM_HIDDEN : MEM_STATE, e);
}

/* The i-th array of the sub-layer, with the name of its tensor in the file: "shift" where it stands
 * alone, "ff_shift" where a layer has two. */
static bool carried(const struct run *r, int i, const char *prefix, struct carried *out,
                    char name[TENSOR_NAME])
{
    const struct sublayer *const s = r->sublayers.at;

    if (!s->kind->carries || !s->kind->carries(s, i, out))
        return false;
    snprintf(name, TENSOR_NAME, "%s%s", prefix,
             out->name + (strncmp(out->name, "ff_", 3) == 0 ? 3 : 0));
    return true;
}

/* [B,rows+L,D] of `mem`, or of zeros where there is none, and of x. */
static struct tensor join(const struct run *r, int rows, const struct tensor *mem,
                          const struct tensor *x)
{
    const size_t D = (size_t)r->c.D, M = (size_t)rows * D, L = (size_t)r->max.L * D;
    float *const to = calloc((size_t)r->max.B * (M + L), sizeof(*to));

    NEED(to);
    for (size_t b = 0; b < (size_t)r->max.B; b++) {
        if (mem)
            memcpy(to + b * (M + L), (const float *)mem->data + b * M, M * sizeof(float));
        memcpy(to + b * (M + L) + M, (const float *)x->data + b * L, L * sizeof(float));
    }
    return (struct tensor){.dtype = DTYPE_F32, .n = (size_t)r->max.B * (M + L), .data = to};
}

/* Put these rows in front of x and dy. */
static void use_joined(struct run *r, const struct tensor *x, const struct tensor *dy)
{
    struct joined *const o = r->data;

    o->all = join(r, o->M, x, r->x);
    r->x = &o->all;
    if (r->dy) {
        o->d_all = join(r, o->M, dy, r->dy);
        r->dy = &o->d_all;
    }
    r->max.L += o->M;
}

static void join_state_and_memory(struct run *r)
{
    struct joined *const o = r->data;

    if (!r->mem || !safetensors_find(r->s, "in.state_s"))
        return;
    *o = (struct joined){.M = r->max.M, .x = r->x, .dy = r->dy};
    use_joined(r, r->mem, NULL);
    r->max.M = 0;
    r->mem = NULL;
}

/* in.g [B,G,D], which the model is told the number of. */
static enum status join_global(struct run *r, struct err *e)
{
    struct joined *const o = r->data;
    const struct tensor *const g = safetensors_find(r->s, "in.g");
    const struct tensor *dy = NULL;
    enum status st = OK;
    char rows[16];

    if (!g)
        return OK;
    if (r->max.M || g->rank != 3 || g->shape[1] < 1 || g->shape[1] > GOLDEN_WIDE)
        return safetensors_fail(r->s, e, "in.g is not [batch, rows, d_model] without a past");
    *o = (struct joined){.M = g->shape[1], .global = true, .x = r->x, .dy = r->dy};
    const size_t n = (size_t)r->max.B * (size_t)o->M * (size_t)r->c.D;
    golden_need(r, "in.g", DTYPE_F32, n, &st, e);
    if (r->dy)
        dy = golden_need(r, "in.dy_global", DTYPE_F32, n, &st, e);
    snprintf(rows, sizeof(rows), "%d", o->M);
    TRY(st);
    TRY(config_set(&r->c, "global_rows", rows, e));
    use_joined(r, g, dy);
    return golden_rows(r, e);
}

static void compare_global(struct run *r, const char *name, const float *rows)
{
    const struct joined *const o = r->data;
    const size_t D = (size_t)r->c.D, M = (size_t)o->M * D, all = (size_t)r->max.L * D;
    float *const first = calloc((size_t)r->max.B * M, sizeof(*first));

    NEED(first);
    for (size_t b = 0; b < (size_t)r->max.B; b++)
        memcpy(first + b * M, rows + b * all, M * sizeof(float));
    golden_compare(r, name, first, (size_t)r->max.B * M);
    free(first);
}

/* Only the rows that the file has results of under their usual name. */
static void without_joined(struct run *r, float *rows, const char *of_global)
{
    const struct joined *const o = r->data;
    const size_t D = (size_t)r->c.D, M = (size_t)o->M * D, L = (size_t)r->max.L * D - M;

    if (o->global)
        compare_global(r, of_global, rows);
    for (size_t b = 0; b < (size_t)r->max.B; b++)
        memmove(rows + b * L, rows + b * (M + L) + M, L * sizeof(float));
}

static void backward(struct run *r)
{
    const struct joined *const o = r->data;

    golden_backward_sublayer(r);
    if (!o->M)
        return;
    without_joined(r, r->d_x, GRADIENT "g");
    r->x = o->x;
}

static void release(struct run *r)
{
    struct joined *const o = r->data;

    free((void *)o->all.data);
    free((void *)o->d_all.data);
}

static void see(void *seen, const struct engine *g, const struct attn_place *at,
                const struct attn *a)
{
    *(struct attn *)seen = *a;
}

static bool counts(const struct run *r) { return r->c.mixer && r->c.mixer->counts; }

static enum status run_forward(struct run *r, struct err *e)
{
    struct sublayer *const s = r->sublayers.at;
    struct joined *const o = r->data;
    const struct attn_watch watch = {see, &o->seen};
    struct engine g = *r->g;

    golden_tables(r, r->max.L + r->max.M);
    if (s->kind->recurs || counts(r))
        sublayer_steps_seek(s, counts(r) ? o->count : o->base);
    else
        s->memory.seen = o->base; /* rows that have been forgotten */
    const struct sublayer_input from = golden_enter(r);
    if (safetensors_find(r->s, "out.probs"))
        g.watch = &watch;
    s->kind->forward(&g, s, r->sublayers.work, from, (struct act){.y = r->y});
    return OK;
}

static enum status forward(struct run *r, struct err *e)
{
    TRY(run_forward(r, e));
    without_joined(r, r->y, "out.y_global");
    return OK;
}

static void finish(struct run *r)
{
    const struct joined *const o = r->data;
    struct sublayer *const s = r->sublayers.at;
    struct work *const w = r->sublayers.work;
    struct carried c;
    char name[TENSOR_NAME];

    if (o->seen.B)
        golden_probs(r, &o->seen, 1, s->state.attention.impl, w->scratch);
    golden_shown(r, s, w);
    sublayer_commit(s, r->max.L);
    for (int i = 0; carried(r, i, "out.", &c, name); i++)
        if (!c.given)
            golden_compare(r, name, c.at, c.n);
}

/* Outputs may be as wide as all heads. */
static enum status read_width(const struct run *r, int *width, struct err *e)
{
    const bool wide = r->c.mixer->wide;
    const int own = wide ? r->c.H * r->c.dh : r->c.D;
    const enum status st = safetensors_int(r->s, "d_out", own, 1, GOLDEN_NUMBERS, width, e);

    return st != OK || *width == own
               ? st
               : safetensors_fail(r->s, e, "d_out is %d  -> use %d, the width of its output",
                                  *width, own);
}

static enum status read(struct run *r, struct err *e)
{
    struct joined *const o = r->data;
    struct err why;
    int width = 0;

    TRY(golden_config(r, e));
    TRY(golden_extent(r, e));
    TRY(read_width(r, &width, e));
    TRY(golden_inputs(r, width, e));
    if (!safetensors_find(r->s, "param.attn.v0")) /* it is the first layer, if that matters */
        (void)config_set(&r->c, "moves_first", "0", &why);
    join_state_and_memory(r);
    TRY(join_global(r, e));
    TRY(golden_whole(r, "base", &o->base, e));
    TRY(golden_mask_random(r, o->base + r->max.M + r->max.L, e));
    sublayers_init_bare(&r->sublayers, &r->c, SUB_ATTENTION, &r->params, 0);
    return counts(r) ? golden_whole(r, "count", &o->count, e) : OK;
}

static bool claims_operator(const struct safetensors *s)
{
    const char *const kind = safetensors_meta(s, "kind");

    return checkpoint_mixes(s) && (strcmp(kind, "attention") == 0 || mixer_find(kind));
}

const struct golden_kind golden_mixer = {
    .size = sizeof(struct joined),
    .claims = claims_operator,
    MEMBERS(, read, bind, forward, backward, finish, release),
};

/* ---- feed-forward networks that are steps --------------------------------------------------- */

static const struct ffn *channel_mix(const struct safetensors *s)
{
    const char *const name = safetensors_meta(s, "ffn");
    const struct ffn *const ffn = name ? ffn_find(name) : NULL;

    return ffn && ffn->build ? ffn : NULL;
}

static bool claims_ffn(const struct safetensors *s) { return channel_mix(s) != NULL; }

static enum status read_ffn(struct run *r, struct err *e)
{
    TRY(golden_part(r, golden_variant(r), "DF", e));
    r->c.ffn = channel_mix(r->s);
    TRY(checkpoint_check(r->s, &r->c, e));
    TRY(golden_inputs(r, r->c.D, e));
    sublayers_init_bare(&r->sublayers, &r->c, 'f', &r->params, 0);
    return OK;
}

const struct golden_kind golden_channel_mix = {
    .name = "ffn",
    .size = sizeof(struct joined),
    .claims = claims_ffn,
    .read = read_ffn,
    .bind = bind,
    .forward = run_forward,
    .backward = golden_backward_sublayer,
    .finish = finish,
};
