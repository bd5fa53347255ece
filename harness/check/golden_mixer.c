/* SPDX-License-Identifier: MIT
 *
 * Golden files of mixers (kind = attention with a mixer): the bare operator with its state in and
 * out, forward and backward. */
#include "golden_inner.h"

#include "variants/model/checkpoint.h"

#include <stdio.h>
#include <string.h>

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

/* Refuse inputs that nothing reads. */
static enum status known_inputs(const struct run *r, struct err *e)
{
    enum { MAX_CARRIED = 8 };
    const char *known[3 + MAX_CARRIED + 1] = {"in.x", "in.mem", "in.dy"};
    char name[MAX_CARRIED][TENSOR_NAME];
    struct carried c;

    for (int i = 0; i < MAX_CARRIED && carried(r, i, "in.", &c, name[i]); i++)
        known[3 + i] = name[i];
    return golden_known_inputs(r, known, e);
}

static enum status load_carried(struct run *r, struct err *e)
{
    enum status st = OK;
    struct carried c;
    char name[TENSOR_NAME];

    for (int i = 0; st == OK && carried(r, i, "in.", &c, name); i++)
        if (safetensors_find(r->s, name)) {
            const struct tensor *t = golden_need(r, name, DTYPE_F32, c.n, &st, e);
            if (st == OK)
                memcpy(c.at, t->data, c.n * sizeof(float));
        }
    return st;
}

static enum status forward(struct run *r, struct err *e)
{
    struct sublayer *const s = r->sublayers.at;
    enum status st = known_inputs(r, e);
    int base = 0; /* stream position of the first row */

    if (st != OK)
        return st;
    if (r->c.pos->pos_encoding)
        r->c.pos->pos_encoding(&r->c, 0, r->max.L + r->max.M, r->sublayers.pos_encoding);
    sublayers_build_tables(&r->sublayers, r->g);
    if ((st = load_carried(r, e)) != OK)
        return st;
    sublayers_build_tables(&r->sublayers,
                           r->g); /* given parameters may have tables built from them */
    if ((st = golden_whole(r, "base", &base, e)) != OK)
        return st;
    if (s->kind == &sublayer_steps)
        sublayer_steps_seek(s, base);
    else
        s->memory.seen = base; /* rows that have been forgotten */
    const struct sublayer_input from = golden_enter(r);
    s->kind->forward(r->g, s, r->sublayers.work, from, (struct act){.y = r->y});
    return OK;
}

static void probs(struct run *r, const struct sublayer *s, const struct work *w)
{
    const struct attn a = s->kind->ends_in(s, w, r->max.B, r->max.L);

    golden_probs(r, &a, 1, s->of.attention.impl, w->scratch);
}

static void finish(struct run *r)
{
    struct sublayer *const s = r->sublayers.at;
    struct work *const w = r->sublayers.work;
    struct carried c;
    char name[TENSOR_NAME];

    if (s->kind->ends_in)
        probs(r, s, w);
    if (s->kind->shows && s->kind->shows(s, w, r->max, &c)) {
        snprintf(name, sizeof(name), "out.%s", c.name);
        golden_compare(r, name, c.at, c.n);
    }
    sublayer_commit(s, r->max.L);
    for (int i = 0; carried(r, i, "out.", &c, name); i++)
        if (!c.given)
            golden_compare(r, name, c.at, c.n);
}

static enum status read(struct run *r, struct err *e)
{
    enum status st;

    if ((st = checkpoint_config(r->s, "param.", &r->c, e)) != OK ||
        (st = golden_extent(r, e)) != OK || (st = golden_inputs(r, r->c.D, e)) != OK)
        return st;
    return sublayers_init_operator(&r->sublayers, &r->c, &r->params, 0, e);
}

const struct golden_kind golden_mixer = {
    .name = "attention",
    .claims = checkpoint_mixes,
    .read = read,
    .bind = bind,
    .forward = forward,
    .backward = golden_backward_sublayer,
    .finish = finish,
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
    const struct variant *v = NULL;
    int D = 0, F = 0;
    enum status st;

    if ((st = golden_variant(r, &v, e)) != OK || (st = golden_extent(r, e)) != OK ||
        (st = golden_size(r, "d_model", GOLDEN_WIDE, &D, e)) != OK ||
        (st = golden_size(r, "d_inner", GOLDEN_WIDE, &F, e)) != OK)
        return st;
    r->c = config_default(v, D, 1, D, F, 1, 0);
    r->c.ffn = channel_mix(r->s);
    if ((st = checkpoint_check(r->s, &r->c, e)) != OK || (st = golden_inputs(r, D, e)) != OK)
        return st;
    return sublayers_init_bare(&r->sublayers, &r->c, 'f', &r->params, 0, e);
}

const struct golden_kind golden_channel_mix = {
    .name = "ffn",
    .claims = claims_ffn,
    .read = read_ffn,
    .bind = bind,
    .forward = forward,
    .backward = golden_backward_sublayer,
    .finish = finish,
};
