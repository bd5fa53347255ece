/* SPDX-License-Identifier: MIT
 *
 * Golden files of published models (kind = import): ids in, logits, losses and states out, as the
 * publisher's program computes them. The file lies in the model's folder. The text is run whole,
 * and, where the model has a memory, cut into segments with cached keys and values or a state, which
 * must give the same. */
#include "golden.h"

#include "harness/util/fileio.h"
#include "variants/base/gguf.h"
#include "variants/model/import/weights.h"

enum { IMPORT_NAME = 128, IMPORT_CUTS = 64 };

/* The sum of losses may differ by a part of 2e-6: what is published is rounded no worse. */
#define IMPORT_TOTAL 2e-6

/* Lengths of the segments that a text is cut into; n = 0: none. */
struct import_cuts {
    int n, at[IMPORT_CUTS];
};

struct import_run {
    struct weights weights;
    struct lm whole, kept, cached; /* at once; likewise with its states; by segments */
    bool keeps, segments;          /* are the latter two run? */
    enum mem_kind carries;         /* what segments leave behind */
    const struct tensor *ids;      /* [B,T] */
    int32_t *targets;              /* [B,T], the last of each 0 */
    float *nll, *logits;           /* [B*T], [B,T,V] */
    struct import_cuts cuts;
    char name[IMPORT_NAME];
};

/* ---- reading ------------------------------------------------------------------------------ */

/* The model, its config in r->c, and the folder's name in verdicts. */
static enum status import_open(struct run *r, struct weights *w, char name[IMPORT_NAME],
                               struct err *e)
{
    char dir[FILE_PATH], file[FILE_PATH + sizeof(PUBLISHED_GGUF)];

    file_parent(dir, r->s->path);
    snprintf(name, IMPORT_NAME, "%.127s", path_name(dir));
    r->name = name;
    snprintf(file, sizeof(file), "%s/" PUBLISHED_GGUF, dir);
    const enum status st = weights_open(w, gguf_is(file) ? file : dir, e);
    r->c = w->config;
    return st;
}

/* A text of T tokens. */
static enum status import_cuts(const struct run *r, struct import_cuts *cuts, int T, struct err *e)
{
    const char *at = safetensors_meta(r->s, "segments");
    int sum = 0;

    while (at && *at && cuts->n < IMPORT_CUTS) {
        char *end;
        const long n = strtol(at, &end, 10);
        if (end == at || n < 1 || n > T)
            break;
        sum += cuts->at[cuts->n++] = (int)n;
        at = *end == ',' ? end + 1 : end;
    }
    if (at && (*at || sum != T))
        return safetensors_fail(r->s, e, "segments \"%.40s\" are not parts of %d tokens",
                                safetensors_meta(r->s, "segments"), T);
    return OK;
}

/* in.ids [B,T], in the vocabulary. */
static enum status import_ids(const struct run *r, const struct tensor **ids, struct err *e)
{
    const struct tensor *const t = *ids = safetensors_find(r->s, "in.ids");

    if (!t || t->dtype != DTYPE_I32 || t->rank != 2 || t->n < 1)
        return safetensors_fail(r->s, e, "in.ids [B,T] is missing or not I32");
    for (size_t i = 0; i < t->n; i++)
        if (((const int32_t *)t->data)[i] < 0 || ((const int32_t *)t->data)[i] >= r->c.V)
            return safetensors_fail(r->s, e, "in.ids has a token outside the vocabulary of %d",
                                    r->c.V);
    return OK;
}

static enum status import_read(struct run *r, struct err *e)
{
    struct import_run *o = r->data;

    TRY(import_open(r, &o->weights, o->name, e));
    TRY(import_ids(r, &o->ids, e));
    r->max = (struct extent){o->ids->shape[0], o->ids->shape[1], 0};
    r->c.text_len = r->max.L;
    TRY(golden_rows(r, e));
    TRY(import_cuts(r, &o->cuts, r->max.L, e));
    if (r->c.pos->positions && r->max.L > r->c.pos->positions(&r->c))
        return safetensors_fail(r->s, e, "%d tokens, the model has positions for %d", r->max.L,
                                r->c.pos->positions(&r->c));
    struct config cached = r->c;
    cached.mem_len = r->max.L;
    o->carries = mem_can(config_mem(&r->c), MEM_KV)      ? MEM_KV
                 : mem_can(config_mem(&r->c), MEM_STATE) ? MEM_STATE
                                                         : MEM_NONE;
    o->segments = o->cuts.n > 0 && o->carries != MEM_NONE;
    r->weights = &o->whole.params;
    TRY(lm_init(&o->whole, &r->c, e));
    TRY(lm_init(&o->kept, &r->c, e));
    return lm_init(&o->cached, o->segments ? &cached : &r->c, e);
}

/* ---- running ------------------------------------------------------------------------------ */

static enum status bind(struct run *r, struct err *e)
{
    struct import_run *o = r->data;
    const size_t rows = (size_t)r->max.B * (size_t)r->max.L;
    const struct extent cut = {r->max.B, r->max.L, o->segments ? r->max.L : 0};

    TRY(lm_bind(&o->whole, r->g, MEM_NONE, r->max, &r->arena, e));
    params_borrow(&o->kept.params, &o->whole.params);
    params_borrow(&o->cached.params, &o->whole.params);
    TRY(lm_bind(&o->kept, r->g, MEM_NONE, r->max, &r->arena, e));
    o->keeps = sublayers_can_grad(&o->kept.sublayers, r->g, NULL) == OK;
    if (o->keeps)
        TRY(lm_bind_grad(&o->kept, r->g, &r->arena, e));
    if (o->segments)
        TRY(lm_bind(&o->cached, r->g, o->carries, cut, &r->arena, e));
    o->targets = arena_take(&r->arena, PART_ACTIVATIONS, rows * sizeof(*o->targets));
    o->nll = arena_f32(&r->arena, PART_ACTIVATIONS, rows);
    o->logits = arena_f32(&r->arena, PART_ACTIVATIONS, rows * (size_t)r->c.V);
    return OK;
}

static enum status load(struct run *r, struct err *e)
{
    struct import_run *o = r->data;

    TRY(weights_load(&o->weights, &o->whole.params, e));
    lm_build_tables(&o->whole, r->g);
    lm_build_tables(&o->kept, r->g);
    if (o->segments)
        lm_build_tables(&o->cached, r->g);
    return OK;
}

/* The losses of all tokens but the first of each sequence, and their sum. */
static void compare_losses(struct run *r, const struct import_run *o)
{
    const int T = r->max.L;
    double total = 0;

    for (int b = 0; b < r->max.B; b++) /* close the gap that the last target leaves */
        for (int t = 0; t < T - 1; t++) {
            o->nll[b * (T - 1) + t] = o->nll[b * T + t];
            total += (double)o->nll[b * (T - 1) + t];
        }
    golden_compare(r, "out.nll", o->nll, (size_t)r->max.B * (size_t)(T - 1));
    golden_compare_meta(r, "total_nll", total, IMPORT_TOTAL);
}

/* The embedding, the stream after each layer but the last, and what the output reads. */
static void compare_states(struct run *r, struct import_run *o)
{
    const struct lm *const m = &o->kept;
    const size_t n = (size_t)r->max.B * (size_t)r->max.L * (size_t)r->c.D;

    lm_forward(&o->kept, r->g, o->ids->data, r->max.B, r->max.L, r->max.L, NULL, NULL);
    for (int l = 0; l <= r->c.N; l++)
        golden_compare(r, golden_name(r, "out.hidden.%d", l),
                       l < r->c.N ? m->sublayers.work[sublayers_first(&m->sublayers, l)].x : m->h,
                       n);
}

static void compare_segments(struct run *r, struct import_run *o)
{
    const int32_t *const ids = o->ids->data;
    const int B = r->max.B, T = r->max.L, V = r->c.V;
    int32_t *const part = o->targets; /* room for [B,L] */

    for (int i = 0, at = 0; i < o->cuts.n; at += o->cuts.at[i++]) {
        const int L = o->cuts.at[i];
        for (int b = 0; b < B; b++)
            memcpy(part + (ptrdiff_t)b * L, ids + (ptrdiff_t)b * T + at, sizeof(*ids) * (size_t)L);
        lm_forward(&o->cached, r->g, part, B, L, L, NULL, NULL);
        lm_commit(&o->cached, L);
        for (int b = 0; b < B; b++)
            memcpy(o->logits + ((ptrdiff_t)b * T + at) * V, o->cached.logits + (ptrdiff_t)b * L * V,
                   sizeof(float) * (size_t)L * (size_t)V);
    }
    golden_compare(r, "out.logits", o->logits, (size_t)B * (size_t)T * (size_t)V);
}

static enum status forward(struct run *r, struct err *e)
{
    struct import_run *o = r->data;
    const int32_t *const ids = o->ids->data;
    const int B = r->max.B, T = r->max.L;

    for (int i = 0; i < B * T; i++)
        o->targets[i] = (i + 1) % T ? ids[i + 1] : 0;
    lm_forward(&o->whole, r->g, ids, B, T, T, o->targets, o->nll);
    golden_compare(r, "out.logits", o->whole.logits, (size_t)B * (size_t)T * (size_t)r->c.V);
    compare_losses(r, o);
    if (o->keeps)
        compare_states(r, o);
    if (o->segments)
        compare_segments(r, o);
    return OK;
}

static void release(struct run *r)
{
    struct import_run *o = r->data;

    lm_free(&o->whole);
    lm_free(&o->kept);
    lm_free(&o->cached);
    weights_close(&o->weights);
    r->name = "";
}

const struct golden_kind golden_import = {
    .name = "import",
    .size = sizeof(struct import_run),
    .read = import_read,
    .bind = bind,
    .load = load,
    .forward = forward,
    .release = release,
};

/* ---- with a memory of hidden states ---------------------------------------------------------- */

/* out.nll.0: segment after segment from an empty memory, and from one of zeros where the file has
 * that, too. */
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

static bool has_memory(const struct safetensors *s) { return safetensors_find(s, "out.nll.0"); }

static enum status memory_read(struct run *r, struct err *e)
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

static enum status memory_bind(struct run *r, struct err *e)
{
    struct memory_run *o = r->data;
    const size_t rows = (size_t)r->max.B * (size_t)r->max.L;

    o->m.all_logits = true;
    o->tokens = arena_take(&r->arena, PART_ACTIVATIONS, rows * sizeof(*o->tokens));
    o->targets = arena_take(&r->arena, PART_ACTIVATIONS, rows * sizeof(*o->targets));
    o->nll = arena_f32(&r->arena, PART_ACTIVATIONS, rows);
    return lm_bind(&o->m, r->g, MEM_HIDDEN, r->max, &r->arena, e);
}

static enum status memory_load(struct run *r, struct err *e)
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
        golden_compare_memory(r, golden_name(r, "out.%smem.%d.%d", begins, s, l), c, 0, c->M);
    }
}

/* Segment s, whose first token is the `first` of the text; the sum of its losses. */
static double run_segment(struct run *r, struct memory_run *o, int s, int first)
{
    const int B = r->max.B, L = o->cuts.at[s], T = o->ids->shape[1];
    const int32_t *const ids = o->ids->data;
    double sum = 0;

    for (int b = 0; b < B; b++)
        for (int t = 0; t < L; t++) {
            o->tokens[b * L + t] = ids[(ptrdiff_t)b * T + first + t];
            o->targets[b * L + t] = ids[(ptrdiff_t)b * T + first + t + 1];
        }
    lm_forward(&o->m, r->g, o->tokens, B, L, L, o->targets, o->nll);
    lm_all(&o->m, r->g, B * L);
    golden_compare(r, golden_name(r, "out.%slogprobs.%d", o->begins, s), o->m.logits,
                   (size_t)B * (size_t)L * (size_t)r->c.V);
    golden_compare(r, golden_name(r, "out.%snll.%d", o->begins, s), o->nll, (size_t)B * (size_t)L);
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

static enum status memory_forward(struct run *r, struct err *e)
{
    struct memory_run *o = r->data;

    golden_compare_meta(r, "total_nll", run_all(r, o, ""), IMPORT_TOTAL);
    if (!safetensors_find(r->s, "out.zeros.nll.0"))
        return OK;
    TRY(lm_zeros(&o->m, r->g, r->max.B, e));
    golden_compare_meta(r, "total_nll_zeros", run_all(r, o, "zeros."), IMPORT_TOTAL);
    return OK;
}

static void memory_release(struct run *r)
{
    struct memory_run *o = r->data;

    lm_free(&o->m);
    weights_close(&o->weights);
    r->name = "";
}

const struct golden_kind golden_import_memory = {
    .name = "import",
    .claims = has_memory,
    .size = sizeof(struct memory_run),
    .read = memory_read,
    .bind = memory_bind,
    .load = memory_load,
    .forward = memory_forward,
    .release = memory_release,
};
