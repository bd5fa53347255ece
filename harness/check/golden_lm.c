/* SPDX-License-Identifier: MIT
 *
 * Golden files of whole language models (kind = lm), segment after segment with their memory. */
#include "golden.h"

#include "variants/model/lm/lm.h"

struct lm_run {
    struct lm m;
    enum mem_kind kind;
    float *nll;
    int segments;
    bool keeps;       /* the file has losses of what layers keep for the backward pass */
    int grad_segment; /* the segment whose gradients the file has; -1 = none */
    int tokens;       /* of a sequence in all segments */
    float *all_nll;   /* [batch,tokens] in all, segment after segment */
    size_t n_nll;
    const char *begins; /* in names of tensors: "" = with an empty memory, "zeros." */
};

static enum status bind(struct run *r, struct err *e)
{
    struct lm_run *o = r->data;

    o->m.all_logits = true;
    TRY(lm_bind(&o->m, r->g, o->kind, r->max, &r->arena, e));
    const bool can_grad = sublayers_can_grad(&o->m.sublayers, r->g, NULL) == OK;
    r->grad = r->grad && o->grad_segment >= 0 && can_grad;
    if (r->grad || (o->keeps && can_grad))
        TRY(lm_bind_grad(&o->m, r->g, &r->arena, e));
    o->nll = arena_f32(&r->arena, PART_ACTIVATIONS, (size_t)r->max.B * (size_t)r->max.L);
    o->all_nll = arena_f32(&r->arena, PART_ACTIVATIONS, (size_t)r->max.B * (size_t)o->tokens);
    return OK;
}

/* Rows [first, first + rows) of what the l-th sub-layer of its kind remembers after segment s are
 * out.WORD.s.l [B,rows,D]. */
static void compare_rows(struct run *r, const struct sublayer *sublayer, const char *word,
                         int segment, int first, int rows)
{
    const int l = sublayer->c->stack.n ? sublayer->layer : sublayer->nth;

    golden_compare_memory(r, golden_name(r, "out.%s.%d.%d", word, segment, l), &sublayer->memory,
                          first, rows);
}

/* Each kind has its own name for what it remembers; compressed rows come first. */
static void compare_memory(struct run *r, const struct lm *m, int segment)
{
    for (int l = 0, at; (at = sublayers_remembering(&m->sublayers, l)) >= 0; l++) {
        const struct sublayer *sublayer = &m->sublayers.at[at];
        const int compressed = sublayer->memory.compressed;
        const int rows = sublayer->memory.M;
        if (!sublayer->memory.n)
            continue;
        /* Rows that it remembers beside its caches are, in files, a list of their own. */
        const int beside =
            sublayer->kind->caches ? sublayer->kind->keeps(sublayer, MEM_KV, m->c.mem_len) : -1;
        if (beside >= 0) {
            const int plain = min_int(rows, m->c.mem_len), tail = min_int(rows, beside);
            compare_rows(r, sublayer, sublayer->kind->memory, segment, rows - plain, plain);
            compare_rows(r, sublayer, "tail", segment, rows - tail, tail);
            continue;
        }
        compare_rows(r, sublayer, sublayer->kind->memory, segment, compressed, rows - compressed);
        compare_rows(r, sublayer, "cmem", segment, 0, compressed);
    }
}

/* The sub-layers that each position took, [sub-layers,B,L]. */
static void compare_gates(struct run *r, const struct lm *m, int segment, size_t n)
{
    const size_t all = (size_t)m->sublayers.n * n;
    int32_t *const taken = need_room(all + 1, sizeof(*taken));

    for (size_t i = 0; m->c.cond && i < all; i++)
        taken[i] = m->sublayers.work[i / n].open[i % n] > 0;
    if (m->c.cond)
        golden_compare_whole(r, golden_name(r, "out.gates.%d", segment), taken, all);
    free(taken);
}

/* What runs the layers gives out.NAME.s besides states and logits. */
static void compare_results(struct run *r, const struct lm *m, int segment)
{
    struct drive_result of;

    for (int i = 0; lm_result(m, i, &of); i++) {
        const char *const name = golden_name(r, "out.%s.%d", of.name, segment);
        if (of.whole)
            golden_compare_whole(r, name, of.whole, of.n);
        else
            golden_compare(r, name, of.real ? of.real : &of.number, of.n);
    }
}

/* out.NAME.s.l, l the layer of steps, otherwise counted over sub-layers that carry state. */
static void compare_carried(struct run *r, const struct lm *m, int segment)
{
    struct carried c;
    int l = 0;

    for (int i = 0; i < m->sublayers.n; i++) {
        const struct sublayer *const s = &m->sublayers.at[i];
        for (int k = 0; s->kind->carries && s->kind->carries(s, k, &c); k++) {
            if (!c.given && c.n)
                golden_compare(
                    r, golden_name(r, "out.%s.%d.%d", c.name, segment, s->build ? s->layer : l),
                    c.at, c.n);
        }
        l += s->kind->carries != NULL;
    }
}

struct segment {
    int L;
    const int32_t *tokens, *targets; /* [B,L] */
};

static struct segment segment_of(struct run *r, int segment, enum status *st, struct err *e)
{
    const int B = r->max.B, V = r->c.V;
    const char *const name = golden_name(r, "in.tokens.%d", segment);
    const struct tensor *tokens = safetensors_find(r->s, name);
    const int L = tokens && tokens->rank == 2 ? tokens->shape[1] : 0;
    tokens = golden_need(r, name, DTYPE_I32, (size_t)B * (size_t)L, st, e);
    const struct tensor *targets = golden_need(r, golden_name(r, "in.targets.%d", segment),
                                               DTYPE_I32, (size_t)B * (size_t)L, st, e);
    if (*st == OK && (L < 1 || L > r->max.L))
        *st = safetensors_fail(r->s, e, "segment %d has %d tokens, its metadata says at most %d",
                               segment, L, r->max.L);
    if (*st != OK)
        return (struct segment){0};
    const struct segment in = {L, tokens->data, targets->data};
    for (int t = 0; *st == OK && t < B * L; t++)
        if (in.tokens[t] < 0 || in.tokens[t] >= V || in.targets[t] < 0 || in.targets[t] >= V)
            *st = safetensors_fail(r->s, e, "segment %d has a token outside the vocabulary of %d",
                                   segment, V);
    return in;
}

static enum status run_segment(struct run *r, struct lm_run *o, int segment, struct err *e)
{
    struct lm *m = &o->m;
    const int B = m->max.B;
    enum status st = OK;

    const struct segment in = segment_of(r, segment, &st, e);
    const int L = in.L;
    const int32_t *const token = in.tokens, *const target = in.targets;
    TRY(st);
    lm_seek(m, 0); /* in files, positions begin anew with each segment */
    lm_forward(m, r->g, token, B, L, L, target, o->nll);
    lm_all(m, r->g, B * L);
    golden_compare(r, golden_name(r, "out.%slogits.%d", o->begins, segment), m->logits,
                   (size_t)B * (size_t)L * (size_t)m->c.V);
    golden_compare(r, golden_name(r, "out.%snll.%d", o->begins, segment), o->nll,
                   (size_t)B * (size_t)L);
    if (*o->begins) {
        lm_commit(m, L);
        return OK;
    }
    memcpy(o->all_nll + o->n_nll, o->nll, (size_t)(B * L) * sizeof(float));
    o->n_nll += (size_t)(B * L);
    if (m->sublayers.kept) { /* else layers share the work space that it is computed from */
        const float aux = (float)lm_aux(m, B, L);
        golden_compare(r, golden_name(r, "out.aux.%d", segment), &aux, 1);
    }
    compare_gates(r, m, segment, (size_t)B * (size_t)L);
    if (m->sublayers.kept) {
        const float lost = (float)lm_reconstruction(m, r->g, B, L);
        golden_compare(r, golden_name(r, "out.reconstruction.%d", segment), &lost, 1);
    }
    if (r->grad && segment == o->grad_segment) {
        params_zero_grad(&m->params);
        lm_backward(m, r->g, token, target, B, L);
        golden_compare_grad(r, &m->params);
    }
    lm_commit(m, L);
    compare_results(r, m, segment);
    if (m->kind == MEM_HIDDEN)
        compare_memory(r, m, segment);
    compare_carried(r, m, segment);
    return OK;
}

static enum status read(struct run *r, struct err *e)
{
    struct lm_run *o = r->data;
    struct config *c = &r->c;
    struct extent *max = &r->max;
    enum status st = OK;

    TRY(golden_config(r, e));
    TRY(golden_size(r, "batch", GOLDEN_WIDE, &max->B, e));
    TRY(golden_whole(r, "n_seg", &o->segments, e));
    TRY(safetensors_int(r->s, "grad_segment", -1, -1, GOLDEN_WIDE, &o->grad_segment, e));
    if (c->V < 1)
        return safetensors_fail(r->s, e,
                                "metadata vocab is missing  -> add the size of the vocabulary");
    if (c->same_length)
        c->window = c->mem_len;
    max->L = c->max_seq;
    max->M = config_memory(c);
    TRY(golden_rows(r, e));
    for (int s = 0; st == OK && s < o->segments; s++)
        o->tokens += segment_of(r, s, &st, e).L;
    TRY(st);
    TRY(golden_mask_random(r, o->tokens, e));
    if (max->M && !mem_can(config_mem(c), MEM_HIDDEN))
        return safetensors_fail(r->s, e,
                                "mem %d with variant %s, which has no memory  -> use mem 0", max->M,
                                c->variant->name);
    TRY(lm_init(&o->m, c, e));
    r->weights = &o->m.params;
    r->list = &o->m.sublayers;
    (void)safetensors_meta(r->s, "total_nll"); /* compared with the losses */
    o->keeps =
        safetensors_find(r->s, "out.aux.0") || safetensors_find(r->s, "out.reconstruction.0");
    /* A stream goes on, whatever is kept of it: with mem 0 positions in it still count on. */
    o->kind = mem_can(config_mem(c), MEM_HIDDEN) || drive_of(c)->carried ? MEM_HIDDEN
              : sublayers_carry(&o->m.sublayers) && c->mixer             ? MEM_STATE
                                                                         : MEM_NONE;
    return OK;
}

static enum status forward(struct run *r, struct err *e)
{
    struct lm_run *o = r->data;

    lm_build_tables(&o->m, r->g);
    o->begins = "";
    for (int s = 0; s < o->segments; s++)
        TRY(run_segment(r, o, s, e));
    golden_compare_total(r, o->all_nll, o->n_nll);
    if (!safetensors_find(r->s, "out.zeros.nll.0"))
        return OK;
    o->begins = "zeros.";
    TRY(lm_zeros(&o->m, r->g, r->max.B, e));
    for (int s = 0; s < o->segments; s++)
        TRY(run_segment(r, o, s, e));
    return OK;
}

static void release(struct run *r)
{
    struct lm_run *o = r->data;

    lm_free(&o->m);
}

const struct golden_kind golden_lm = {
    .name = "lm",
    .size = sizeof(struct lm_run),
    .read = read,
    .bind = bind,
    .forward = forward,
    .release = release,
};
