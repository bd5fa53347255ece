/* SPDX-License-Identifier: MIT
 *
 * Golden files of published models with a memory of hidden states (kind = import, out.nll.0):
 * segment after segment from an empty memory, and from one of zeros where the file has that, too.
 */
#include "golden_import.h"

#include "variants/model/lm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct memory_run {
    struct weights weights;
    struct lm m;
    const struct tensor *ids;  /* [B,1+T] */
    struct import_cuts cuts;   /* of T */
    int32_t *tokens, *targets; /* [B,L] */
    float *nll;                /* [B*L] */
    const char *begins;        /* in names of tensors: "" = with an empty memory, "zeros." */
    char name[IMPORT_NAME];
};

static bool claims(const struct safetensors *s) { return safetensors_find(s, "out.nll.0"); }

static enum status read(struct run *r, struct err *e)
{
    struct memory_run *o = r->data;

    TRY(import_open(r, &o->weights, o->name, e));
    TRY(import_ids(r, &o->ids, e));
    TRY(import_cuts(r, &o->cuts, o->ids->shape[1] - 1, e));
    r->max = (struct extent){o->ids->shape[0], 1, config_memory(&r->c)};
    for (int i = 0; i < o->cuts.n; i++)
        r->max.L = max_int(r->max.L, o->cuts.at[i]);
    TRY(golden_rows(r, e));
    if (!mem_can(config_mem(&r->c), MEM_HIDDEN) || r->max.M < 1)
        return safetensors_fail(r->s, e, "segments of a model without a memory");
    if (r->c.same_length)
        r->c.window = r->c.mem_len;
    r->weights = &o->m.params;
    return lm_init(&o->m, &r->c, e);
}

static enum status bind(struct run *r, struct err *e)
{
    struct memory_run *o = r->data;
    const size_t rows = (size_t)r->max.B * (size_t)r->max.L;

    o->m.all_logits = true;
    o->tokens = arena_take(&r->arena, PART_ACTIVATIONS, rows * sizeof(*o->tokens));
    o->targets = arena_take(&r->arena, PART_ACTIVATIONS, rows * sizeof(*o->targets));
    o->nll = arena_f32(&r->arena, PART_ACTIVATIONS, rows);
    return lm_bind(&o->m, r->g, MEM_HIDDEN, r->max, &r->arena, e);
}

static enum status load(struct run *r, struct err *e)
{
    struct memory_run *o = r->data;

    TRY(weights_load(&o->weights, &o->m.params, e));
    lm_build_tables(&o->m, r->g);
    return OK;
}

/* What layer l remembers after segment s is out.mem.s.l [B,M,D]. */
static void compare_memory(struct run *r, const struct lm *m, const char *begins, int s)
{
    for (int l = 0, at; (at = sublayers_remembering(&m->sublayers, l)) >= 0; l++) {
        const struct cache *const c = &m->sublayers.at[at].memory;
        char name[48];
        snprintf(name, sizeof(name), "out.%smem.%d.%d", begins, s, l);
        golden_compare_memory(r, name, c, 0, c->M);
    }
}

/* Segment s, whose first token is the `first` of the text; the sum of its losses. */
static double run_segment(struct run *r, struct memory_run *o, int s, int first)
{
    const int B = r->max.B, L = o->cuts.at[s], T = o->ids->shape[1];
    const int32_t *const ids = o->ids->data;
    double sum = 0;
    char name[48];

    for (int b = 0; b < B; b++)
        for (int t = 0; t < L; t++) {
            o->tokens[b * L + t] = ids[(ptrdiff_t)b * T + first + t];
            o->targets[b * L + t] = ids[(ptrdiff_t)b * T + first + t + 1];
        }
    lm_forward(&o->m, r->g, o->tokens, B, L, L, o->targets, o->nll);
    lm_all(&o->m, r->g, B * L);
    snprintf(name, sizeof(name), "out.%slogprobs.%d", o->begins, s);
    golden_compare(r, name, o->m.logits, (size_t)B * (size_t)L * (size_t)r->c.V);
    snprintf(name, sizeof(name), "out.%snll.%d", o->begins, s);
    golden_compare(r, name, o->nll, (size_t)B * (size_t)L);
    for (int i = 0; i < B * L; i++)
        sum += (double)o->nll[i];
    lm_commit(&o->m, L);
    compare_memory(r, &o->m, o->begins, s);
    return sum;
}

static double run_all(struct run *r, struct memory_run *o, const char *begins)
{
    double sum = 0;

    o->begins = begins;
    for (int s = 0, first = 0; s < o->cuts.n; first += o->cuts.at[s++])
        sum += run_segment(r, o, s, first);
    return sum;
}

static enum status forward(struct run *r, struct err *e)
{
    struct memory_run *o = r->data;

    golden_compare_meta(r, "total_nll", run_all(r, o, ""), IMPORT_TOTAL);
    if (!safetensors_find(r->s, "out.zeros.nll.0"))
        return OK;
    TRY(lm_zeros(&o->m, r->g, r->max.B, e));
    golden_compare_meta(r, "total_nll_zeros", run_all(r, o, "zeros."), IMPORT_TOTAL);
    return OK;
}

static void release(struct run *r)
{
    struct memory_run *o = r->data;

    lm_free(&o->m);
    weights_close(&o->weights);
    r->name = "";
}

const struct golden_kind golden_import_memory = {
    .name = "import",
    .claims = claims,
    .size = sizeof(struct memory_run),
    .read = read,
    .bind = bind,
    .load = load,
    .forward = forward,
    .release = release,
};
