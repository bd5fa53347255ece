/* SPDX-License-Identifier: MIT
 *
 * Work space of a list of sub-layers. At inference those of one kind share all of it. In training
 * each keeps what its backward pass reads; the first of a kind uses the shared arrays for it. */
#include "sublayer_list.h"
#include "variants/model/sublayer/sublayer_inner.h"

static struct work *first_of_kind(const struct sublayers *s, int i)
{
    int k = 0;

    while (s->at[k].kind != s->at[i].kind)
        k++;
    return &s->work[k];
}

static float *take(struct arena *a, enum part part, size_t n)
{
    return n ? arena_f32(a, part, n) : NULL;
}

/* The longest sequence before one sub-layer. */
static struct extent extent_of(const struct sublayer *s, struct extent max)
{
    max.L = max_int(rows_before(s, max.L), 1 + s->pools);
    return max;
}

void sublayer_arrays_grad(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    s->kind->arrays(s, max, out);
    for (int i = 0; i < SUB_ARRAYS; i++) {
        out[i].n_kept = out[i].n ? out[i].n_kept : 0;
        out[i].n = 0;
        out[i].shared = true;
    }
}

/* The largest arrays that any sub-layer of the i-th's kind asks for. */
static void arrays_of_kind(const struct sublayers *s, int i, bool backward,
                           struct array out[SUB_ARRAYS])
{
    const struct sublayer_kind *const kind = s->at[i].kind;
    void (*const arrays_grad)(const struct sublayer *, struct extent, struct array *) =
        kind->arrays_grad ? kind->arrays_grad : sublayer_arrays_grad;

    for (int k = 0; k < SUB_ARRAYS; k++)
        out[k] = (struct array){0};
    for (int j = 0; j < s->n; j++) {
        struct array one[SUB_ARRAYS] = {{0}};
        if (s->at[j].kind != kind)
            continue;
        (backward ? arrays_grad : kind->arrays)(&s->at[j], extent_of(&s->at[j], s->max), one);
        for (int k = 0; k < SUB_ARRAYS; k++) {
            one[k].n = one[k].n > out[k].n ? one[k].n : out[k].n;
            one[k].n_kept = one[k].n_kept > out[k].n_kept ? one[k].n_kept : out[k].n_kept;
            out[k] = one[k];
        }
    }
}

static void *scratch_of_kind(const struct sublayers *s, int i, const struct engine *g,
                             bool backward, struct arena *a)
{
    const struct sublayer_kind *const kind = s->at[i].kind;
    struct attn_need most = {0};

    if (!kind->scratch)
        return NULL;
    for (int j = 0; j < s->n; j++) {
        if (s->at[j].kind != kind)
            continue;
        most = larger_need(kind->scratch(&s->at[j], g, backward), most);
    }
    /* Scores first: they are the larger part and the ledger has a column for them. */
    void *const at = arena_take(a, PART_SCRATCH, most.scores_bytes + most.scratch_bytes);
    a->part[PART_SCRATCH] -= most.scores_bytes;
    a->part[PART_SCORES] += most.scores_bytes;
    return at;
}

static size_t rows_floats(const struct sublayers *s, int rows)
{
    return (size_t)s->max.B * (size_t)rows * (size_t)s->at->c->D;
}

/* Source rows of a sub-layer after its norm. If only rows of the segment are read, the room is also
 * taken with a norm after the sum, which does not use it. */
static size_t normed_floats(const struct sublayers *s, int i)
{
    const struct sublayer *const sublayer = &s->at[i];
    int keep = 0; /* of any of its kind */

    if (!wiring_norms_first(sublayer->wiring) &&
        (sublayer->wiring != WIRING_POST || sublayer->kind->keeps))
        return 0;
    for (int j = 0; j < s->n; j++)
        if (s->at[j].kind == sublayer->kind)
            keep = max_int(keep, s->at[j].memory.keep);
    return rows_floats(s, keep + s->max.L);
}

static size_t gate_floats(const struct sublayers *s, bool backward)
{
    const struct gate *const gate = s->at->c->gate;

    if (!gate || s->at->at[OWN_gate] < 0)
        return 0;
    return rows_floats(s, s->max.L) * (size_t)(backward ? gate->work_grad : gate->work);
}

static size_t open_floats(const struct sublayers *s)
{
    return s->at->skip ? (size_t)s->max.B * (size_t)s->max.L : 0;
}

/* Link each sub-layer to the previous and next of its kind. */
static void link_kinds(struct sublayers *s)
{
    for (int i = 0; i < s->n; i++)
        for (int k = i - 1; k >= 0 && !s->work[i].below; k--)
            if (s->at[k].kind == s->at[i].kind) {
                s->work[i].below = &s->work[k];
                s->work[k].above = &s->work[i];
            }
}

static bool pools_any(const struct sublayers *s)
{
    bool any = false;

    for (int i = 0; i < s->n; i++)
        any = any || s->at[i].joins;
    return any;
}

static bool reads_entered(const struct sublayers *s) { return s->at->wiring == WIRING_PARALLEL; }

void works_bind(struct sublayers *s, const struct engine *g, struct arena *a)
{
    const size_t stream = rows_floats(s, s->max.L);

    for (int i = 0; i < s->n; i++) {
        struct work *const w = &s->work[i];
        struct array wanted[SUB_ARRAYS];
        if (first_of_kind(s, i) != w) {
            *w = *first_of_kind(s, i);
            w->below = w->above = NULL;
            continue;
        }
        *w = (struct work){.pos_encoding = s->pos_encoding};
        w->n = take(a, PART_ACTIVATIONS, normed_floats(s, i));
        arrays_of_kind(s, i, false, wanted);
        for (int k = 0; k < SUB_ARRAYS; k++)
            w->array[k] = take(a, wanted[k].part, wanted[k].n);
        w->y = i ? s->work[0].y : take(a, PART_ACTIVATIONS, stream);
        w->gate = i ? s->work[0].gate : take(a, PART_ACTIVATIONS, gate_floats(s, false));
        w->scratch = scratch_of_kind(s, i, g, false, a);
    }
    s->mid = s->at->wiring == WIRING_REORDER ? take(a, PART_ACTIVATIONS, stream) : NULL;
    s->unpooled = pools_any(s) ? take(a, PART_ACTIVATIONS, stream) : NULL;
    s->entered = reads_entered(s) ? take(a, PART_ACTIVATIONS, stream) : NULL;
    for (int i = 0; i < s->n; i++)
        s->work[i].open = take(a, PART_SCRATCH, open_floats(s));
    link_kinds(s);
}

/* ---- training ----------------------------------------------------------------------------- */

/* What sub-layer i keeps for its backward pass. */
static void bind_kept(struct sublayers *s, int i, struct arena *a)
{
    const struct sublayer *const sublayer = &s->at[i];
    const size_t stream = rows_floats(s, s->max.L);
    const bool own_n = first_of_kind(s, i) == &s->work[i];
    const bool operand = sublayer->wiring == WIRING_REORDER || sublayer->alpha || sublayer->skip ||
                         sublayer->norm_out; /* y itself is read by backward */
    struct work *const w = &s->work[i];
    struct array wanted[SUB_ARRAYS];

    w->x = i == 1 && s->mid ? s->mid : take(a, PART_ACTIVATIONS, stream);
    if (wiring_norms_first(sublayer->wiring) && !own_n)
        w->n = take(a, PART_ACTIVATIONS, normed_floats(s, i));
    if (wiring_norms_after(sublayer->wiring))
        w->sum = take(a, PART_ACTIVATIONS, stream);
    if (operand && i) {
        w->y = take(a, PART_ACTIVATIONS, stream);
        w->gate = take(a, PART_ACTIVATIONS, gate_floats(s, false));
    }
    arrays_of_kind(s, i, false, wanted);
    for (int k = 0; k < SUB_ARRAYS; k++)
        if (!wanted[k].shared && !(own_n && wanted[k].n == wanted[k].n_kept))
            w->array[k] = take(a, wanted[k].part, wanted[k].n_kept);
}

/* The longest source of a sub-layer, memory included. */
static int source_rows(const struct sublayers *s)
{
    int keep = s->max.M;

    for (int i = 0; i < s->n; i++)
        keep = max_int(keep, s->at[i].memory.keep);
    return keep + s->max.L;
}

/* Work space of backward, shared by all. */
static void bind_shared(struct sublayers *s, struct arena *a)
{
    const struct extent max = s->max;
    const int source = source_rows(s), stats = NORM_STATS * max_int(max.B * max.L, source);
    const struct work all = {
        .d_y = take(a, PART_ACTIVATIONS, rows_floats(s, max.L)),
        .d_gate = take(a, PART_ACTIVATIONS, gate_floats(s, true)),
        .stats = take(a, PART_SCRATCH, (size_t)stats),
        .d_open = take(a, PART_SCRATCH, open_floats(s)),
    };
    s->d_unpooled = pools_any(s) ? take(a, PART_ACTIVATIONS, rows_floats(s, max.L)) : NULL;
    s->d_left = reads_entered(s) ? take(a, PART_ACTIVATIONS, rows_floats(s, max.L)) : NULL;
    float *const of_rows = take(a, PART_ACTIVATIONS, rows_floats(s, max.L));
    float *const of_source = take(a, PART_ACTIVATIONS, rows_floats(s, source));

    for (int i = 0; i < s->n; i++) {
        struct work *const w = &s->work[i];
        const bool memory = s->at[i].kind->keeps && wiring_norms_first(s->at[i].wiring);
        w->d_y = all.d_y;
        w->d_gate = all.d_gate;
        w->stats = all.stats;
        w->d_open = all.d_open;
        w->d_in = memory ? of_source : of_rows;
    }
}

/* Likewise per kind. */
static void bind_shared_by_kind(struct sublayers *s, const struct engine *g, struct arena *a)
{
    for (int i = 0; i < s->n; i++) {
        struct work *const w = &s->work[i], *const first = first_of_kind(s, i);
        struct array wanted[SUB_ARRAYS];
        arrays_of_kind(s, i, true, wanted);
        for (int k = 0; k < SUB_ARRAYS; k++)
            w->d_array[k] =
                first == w ? take(a, wanted[k].part, wanted[k].n_kept) : first->d_array[k];
        w->d_scratch = first == w ? scratch_of_kind(s, i, g, true, a) : first->d_scratch;
    }
}

void works_bind_grad(struct sublayers *s, const struct engine *g, struct arena *a)
{
    const size_t before = a->used;

    bind_shared(s, a);
    bind_shared_by_kind(s, g, a);
    s->space = a->base ? (float *)(a->base + before) : NULL;
    s->n_space = (a->used - before) / sizeof(float);
    for (int i = 0; i < s->n; i++)
        bind_kept(s, i, a);
    s->kept = true;
}
