/* SPDX-License-Identifier: MIT
 *
 * Linformer: Wang et al. 2020, "Linformer: Self-Attention with Linear Complexity".
 *
 *   o = softmax(scale q (E k)^T) (F v)        E, F [r, T] learned, for texts of up to T tokens
 *
 * Every row of E k is of the whole text, so this is for whole texts (linformer-bi). The causal form
 * maps complete blocks of c tokens to r rows each, E, F [r, c] (after Zhu et al. 2021, "Long-Short
 * Transformer", arXiv:2107.02192): a query sees these rows of all blocks before its own, and of its
 * own block the tokens up to itself. Remembered are r K/c rows, and those of the block that is not
 * complete.
 *
 * Blocks run one after the other. The rows of a block's own tokens stand behind the far rows of those
 * before it, in the place of its own far rows, so that a block is plain causal attention with a past. */
#include "variant.h"
#include "variants/model/attention/sublayer_attention.h"
#include "variants/model/condensed/condensed.h"
#include "variants/model/sublayer/sublayer_seen.h"
#include "variants/parts/parts.h"

#include <string.h>

struct linformer {
    int rank, block; /* rows that T or `block` tokens become; 0 = of the whole text */
    bool own_v;      /* values have a map of their own */
};

static const struct choice choices[] = {
    ROW_INT(struct linformer, rank, "rank", 1, 1 << 16, "rows that a block or a text is mapped to",
            .scope = SCOPE_LAYER, .setting = true, .tiny = "1|2"),
    ROW_INT(struct linformer, block, "lin_block", 0, 1 << 20,
            "tokens of a block; 0 = the whole text", .scope = SCOPE_LAYER, .setting = true,
            .absent = "0", .tiny = "4"),
    ROW_FLAG(struct linformer, own_v, "proj_v", "1: values have a map of their own",
             .scope = SCOPE_LAYER, .setting = true, .tensor = "attn.proj_v.weight",
             .tiny = "1|1|0|0"),
    {0},
};

static void usual(const struct config *c, void *numbers)
{
    *(struct linformer *)numbers = c->variant->bidirectional
                                       ? (struct linformer){.rank = 128, .own_v = true}
                                       : (struct linformer){.rank = 16, .block = 64, .own_v = true};
}

static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    const struct linformer *const l = numbers;

    if (c->causal && !l->block)
        return fail(e, E_USAGE, "%s: rows of the whole text in causal attention  -> use lin_block",
                    c->variant->name);
    if (!c->causal && l->block)
        return fail(e, E_USAGE, "%s: lin_block %d with a view of the future  -> use 0",
                    c->variant->name, l->block);
    return OK;
}

static const struct part_numbers linformer_numbers = {choices, NUMBERS_SIZE(struct linformer),
                                                      usual, check};

static const struct linformer *numbers(const struct config *c)
{
    return config_numbers(c, SLOT_MIXER);
}

static struct grouping grouping(const struct config *c)
{
    return (struct grouping){numbers(c)->block, numbers(c)->rank, true};
}

/* Tokens that a map has columns for. */
static int columns(const struct config *c)
{
    const int places = c->max_pos ? c->max_pos : c->max_seq;

    return numbers(c)->block ? numbers(c)->block : max_int(1, places);
}

/* Arrays of backward: gradients of one block's rows [B,room,Hkv,dh]. */
enum { LI_ONE_K = CO_FORM, LI_ONE_V };

static void params(const struct sublayer *s, const char *prefix, const char *inner,
                   struct params *p)
{
    const struct config *const c = s->c;

    project_params(s, c->D, c->D, prefix, p);
    params_wide(p, params_matrix(p, numbers(c)->rank, columns(c), prefix, "attn.proj_k.weight"));
    if (numbers(c)->own_v)
        params_wide(p,
                    params_matrix(p, numbers(c)->rank, columns(c), prefix, "attn.proj_v.weight"));
}

static const struct param *map_of(const struct sublayer *s, bool values)
{
    return condensed_weights(s) + (values && numbers(s->c)->own_v);
}

/* ---- binding ------------------------------------------------------------------------------ */

/* Attention of L queries to `far` rows and those of so many tokens up to them. */
static struct attn core(const struct config *c, int B, int L, int far, int before)
{
    struct attn a = attn_of_config(c, B, L, far + before);

    if (numbers(c)->block)
        return a;
    a.M = 0;
    a.K = numbers(c)->rank;
    a.k_at.batch = a.v_at.batch = a.K * a.k_at.row;
    return a;
}

static enum status bind(struct sublayer *s, const struct engine *g, struct extent max,
                        struct arena *a, struct err *e)
{
    const struct config *const c = s->c;
    const struct grouping of = grouping(c);
    const int L = of.size ? min_int(max.L, of.size) : max.L;
    const int M = sublayer_remembers(s) ? max.M : 0;

    if (!of.size && (M || s->mem == MEM_KV || s->mem == MEM_HIDDEN))
        return fail(e, E_UNSUPPORTED, "%s: rows of a whole text have no past  -> use --mem 0",
                    c->variant->name);
    if (!of.size && max.L > columns(c))
        return fail(e, E_UNSUPPORTED, "%s: a text of %d, maps of %d tokens  -> use a shorter one",
                    c->variant->name, max.L, columns(c));
    condensed_bind(s, of, max, a);
    struct attention *const t = &s->state.attention;
    t->prepared =
        core(c, max.B, L, of.size ? (M + max.L) / of.size * of.rows : 0, max_int(0, of.size - L));
    return engine_attn(g, &t->prepared, &t->impl, e);
}

/* Far rows of a whole text are those of one group, which has no size. */
static void whole(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    const size_t n = (size_t)max.B * (size_t)numbers(s->c)->rank * (size_t)config_kv_width(s->c);

    if (!grouping(s->c).size)
        out[CO_FAR_K] = out[CO_FAR_V] = (struct array){n, n, false, PART_ACTIVATIONS};
}

static void arrays(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    condensed_arrays(s, grouping(s->c), max, out);
    whole(s, max, out);
}

static void arrays_grad(const struct sublayer *s, struct extent max, struct array out[SUB_ARRAYS])
{
    sublayer_arrays_grad(s, max, out);
    out[LI_ONE_K] = out[CO_FAR_K];
    out[LI_ONE_V] = out[CO_FAR_V];
}

static size_t caches(const struct sublayer *s, int M)
{
    return condensed_cached(s, grouping(s->c), M);
}

/* ---- the maps ----------------------------------------------------------------------------- */

/* to [rank,width] = W [:, :n] x [n,width] of each sequence. */
static void map(const struct engine *g, const struct param *W, struct seq_rows to,
                struct seq_rows x, int B, int n, int width)
{
    for (int b = 0; b < B; b++)
        mm(g, NN, W->shape[0], width, n, 1, W->data, W->shape[1], x.at + b * x.stride, width, 0,
           to.at + b * to.stride, width);
}

/* d_x += W^T d_to; accumulates W's gradient. */
static void map_grad(const struct engine *g, const struct param *W, struct seq_rows d_x,
                     struct seq_rows d_to, struct seq_rows x, int B, int n, int width)
{
    for (int b = 0; b < B; b++) {
        const float *const d = d_to.at + b * d_to.stride;
        mm(g, TN, n, width, W->shape[0], 1, W->data, W->shape[1], d, width, 1,
           d_x.at + b * d_x.stride, width);
        mm(g, NT, W->shape[0], n, width, 1, d, width, x.at + b * x.stride, width, 1, W->grad,
           W->shape[1]);
    }
}

static struct seq_rows row_of(struct seq_rows x, int row, int width)
{
    return (struct seq_rows){x.at + (ptrdiff_t)row * width, x.stride};
}

/* ---- blocks ------------------------------------------------------------------------------- */

/* One block: its tokens [from, to) of the rows of a call, and the far rows before it. */
struct block {
    int from, to, far;
    bool complete; /* it becomes far rows, too */
};

/* The block of row i. Rows before the first whole one are a block without far rows. */
static struct block block_at(const struct stretch *t, struct grouping of, int i)
{
    const int lead = stretch_lead(t, of.size), nth = i < lead ? -1 : (i - lead) / of.size;
    const int from = lead + nth * of.size, to = from + of.size;

    return (struct block){.from = max_int(0, from),
                          .to = min_int(to, t->rows),
                          .far = t->n_far + max_int(0, nth) * of.rows,
                          .complete = nth >= 0 && to <= t->rows};
}

static void copy_rows(struct seq_rows to, struct seq_rows from, int B, int rows, int width)
{
    for (int b = 0; b < B; b++)
        memcpy(to.at + b * to.stride, from.at + b * from.stride,
               sizeof(float) * (size_t)rows * (size_t)width);
}

/* Its own rows behind the far ones, and the attention of its queries, those from row `first` of all
 * on; the call has L. */
static struct attn attend(const struct sublayer *s, const struct work *w, const struct stretch *t,
                          const struct block *u, int B, int L)
{
    const struct config *const c = s->c;
    const int width = config_kv_width(c), new = t->rows - L, first = max_int(u->from, new);
    const ptrdiff_t at = (ptrdiff_t)(first - new) * config_q_width(c);
    struct attn a = core(c, B, u->to - first, u->far, first - u->from);

    copy_rows(row_of(t->far_k, u->far, width), row_of(t->k, u->from, width), B, u->to - u->from,
              width);
    copy_rows(row_of(t->far_v, u->far, width), row_of(t->v, u->from, width), B, u->to - u->from,
              width);
    a.q = w->array[CO_Q] + at;
    a.o = w->array[CO_O] + at;
    a.q_at.batch = a.o_at.batch = (ptrdiff_t)L * config_q_width(c);
    a.k = t->far_k.at;
    a.v = t->far_v.at;
    a.k_at.batch = a.v_at.batch = t->far_k.stride;
    a.lse = w->array[CO_LSE] ? w->array[CO_LSE] + (ptrdiff_t)(first - new) * B * c->H : NULL;
    return a;
}

/* Its far rows, in the place of its own. */
static void condense(const struct engine *g, const struct sublayer *s, const struct stretch *t,
                     const struct block *u, int B)
{
    const int width = config_kv_width(s->c), n = u->to - u->from;

    if (!u->complete)
        return;
    map(g, map_of(s, false), row_of(t->far_k, u->far, width), row_of(t->k, u->from, width), B, n,
        width);
    map(g, map_of(s, true), row_of(t->far_v, u->far, width), row_of(t->v, u->from, width), B, n,
        width);
}

static void run_blocks(const struct engine *g, const struct sublayer *s, const struct work *w,
                       const struct stretch *t, int B, int L, bool queries)
{
    struct block u;

    for (int i = 0; i < t->rows; i = u.to) {
        u = block_at(t, grouping(s->c), i);
        if (queries && u.to > t->rows - L) {
            const struct attn a = attend(s, w, t, &u, B, L);
            sublayer_attend(g, s, w, 0, u.to - a.L - (t->rows - L), &a);
        }
        condense(g, s, t, &u, B);
    }
}

/* The gradients of one block's rows: of the far ones, and of its own tokens. */
static void share(struct seq_rows d, struct seq_rows d_far, struct seq_rows one,
                  const struct block *u, int B, int width)
{
    condensed_add(d_far, one, B, u->far, width);
    condensed_add(row_of(d, u->from, width), row_of(one, u->far, width), B, u->to - u->from, width);
}

/* From the last block to the first: the gradients of a block's far rows come from those after it,
 * and its own rows then replace them. */
static void blocks_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                        const struct stretch *t, int B, int L)
{
    const int width = config_kv_width(s->c), new = t->rows - L;
    const struct seq_rows d_k = {w->d_array[CO_K], t->k.stride},
                          d_v = {w->d_array[CO_V], t->v.stride};
    const struct seq_rows far_k = {w->d_array[CO_FAR_K], t->far_k.stride},
                          far_v = {w->d_array[CO_FAR_V], t->far_v.stride};
    const struct seq_rows one_k = {w->d_array[LI_ONE_K], t->far_k.stride},
                          one_v = {w->d_array[LI_ONE_V], t->far_v.stride};
    struct block u;

    condensed_clear(d_k, B), condensed_clear(d_v, B), condensed_clear(far_k, B),
        condensed_clear(far_v, B);
    for (int end = t->rows; end > 0; end = u.from) {
        u = block_at(t, grouping(s->c), end - 1);
        if (u.complete) {
            map_grad(g, map_of(s, false), row_of(d_k, u.from, width), row_of(far_k, u.far, width),
                     row_of(t->k, u.from, width), B, u.to - u.from, width);
            map_grad(g, map_of(s, true), row_of(d_v, u.from, width), row_of(far_v, u.far, width),
                     row_of(t->v, u.from, width), B, u.to - u.from, width);
        }
        if (u.to <= new)
            continue;
        const struct attn a = attend(s, w, t, &u, B, L);
        const struct attn_grad d = {.d_o = w->d_array[CO_O] + (a.o - w->array[CO_O]),
                                    .d_q = w->d_array[CO_Q] + (a.q - w->array[CO_Q]),
                                    .d_k = one_k.at,
                                    .d_v = one_v.at};
        s->state.attention.impl->backward(g, &a, &d, w->d_scratch);
        share(d_k, far_k, one_k, &u, B, width);
        share(d_v, far_v, one_v, &u, B, width);
    }
}

/* ---- a whole text ------------------------------------------------------------------------- */

static struct seq_rows far_of(const struct config *c, float *at)
{
    return (struct seq_rows){at, (ptrdiff_t)numbers(c)->rank * config_kv_width(c)};
}

static struct attn whole_operands(const struct sublayer *s, const struct work *w, int B, int L)
{
    struct attn a = core(s->c, B, L, 0, 0);

    a.q = w->array[CO_Q];
    a.k = w->array[CO_FAR_K];
    a.v = w->array[CO_FAR_V];
    a.o = w->array[CO_O];
    a.lse = w->array[CO_LSE];
    return a;
}

static void run_whole(const struct engine *g, const struct sublayer *s, const struct work *w,
                      const struct stretch *t, int B, int L)
{
    const int width = config_kv_width(s->c);
    const struct attn a = whole_operands(s, w, B, L);

    map(g, map_of(s, false), far_of(s->c, w->array[CO_FAR_K]), t->k, B, L, width);
    map(g, map_of(s, true), far_of(s->c, w->array[CO_FAR_V]), t->v, B, L, width);
    sublayer_attend(g, s, w, 0, 0, &a);
}

static void whole_grad(const struct engine *g, const struct sublayer *s, const struct work *w,
                       const struct stretch *t, int B, int L)
{
    const int width = config_kv_width(s->c);
    const struct attn a = whole_operands(s, w, B, L);
    const struct attn_grad d = {.d_o = w->d_array[CO_O],
                                .d_q = w->d_array[CO_Q],
                                .d_k = w->d_array[CO_FAR_K],
                                .d_v = w->d_array[CO_FAR_V]};
    const struct seq_rows d_k = {w->d_array[CO_K], t->k.stride},
                          d_v = {w->d_array[CO_V], t->v.stride};

    condensed_clear(d_k, B), condensed_clear(d_v, B);
    s->state.attention.impl->backward(g, &a, &d, w->d_scratch);
    map_grad(g, map_of(s, false), d_k, far_of(s->c, d.d_k), t->k, B, L, width);
    map_grad(g, map_of(s, true), d_v, far_of(s->c, d.d_v), t->v, B, L, width);
}

/* ---- the kind ----------------------------------------------------------------------------- */

static void forward(const struct engine *g, struct sublayer *s, struct work *w,
                    struct sublayer_input from, struct act epilogue)
{
    const struct stretch t = condensed_project(g, s, w, from, grouping(s->c), true);

    if (numbers(s->c)->block)
        run_blocks(g, s, w, &t, from.B, from.L, true);
    else
        run_whole(g, s, w, &t, from.B, from.L);
    project_out(g, s, w, w->array[CO_O], from.B * from.L, epilogue);
}

static void backward(const struct engine *g, struct sublayer *s, const struct work *w,
                     struct sublayer_input from, float *d_in, const float *d_y, int skip)
{
    const struct stretch t = condensed_again(s, w, from, grouping(s->c));

    condensed_out_grad(g, s, w, d_y, from.B * from.L);
    if (numbers(s->c)->block)
        blocks_grad(g, s, w, &t, from.B, from.L);
    else
        whole_grad(g, s, w, &t, from.B, from.L);
    condensed_in_grad(g, s, w, from, d_in, skip);
}

static void remember(const struct engine *g, struct sublayer *s, struct work *w,
                     struct sublayer_input from)
{
    const struct stretch t = condensed_project(g, s, w, from, grouping(s->c), false);

    run_blocks(g, s, w, &t, from.B, from.L, false);
}

/* ---- cost --------------------------------------------------------------------------------- */

/* Of L queries after M tokens that begin with a block. */
static struct sublayer_cost cost(const struct sublayer *s, int B, int L, int M)
{
    const struct config *const c = s->c;
    const struct grouping of = grouping(c);
    const double per_row = 4.0 * B * numbers(c)->rank * config_kv_width(c);
    const int cached_rows = s->mem == MEM_KV ? M / max_int(1, of.size) * of.size : 0;
    struct sublayer_cost sum = {.maps = condensed_maps_flop(s, B, L, M)};

    if (!of.size) {
        const struct attn a = core(c, B, L, 0, 0);
        return (struct sublayer_cost){attn_flop(&a), attn_grad_flop(&a), sum.maps + per_row * L};
    }
    for (int i = M; i < M + L;) {
        const int from = i / of.size * of.size, to = min_int(from + of.size, M + L);
        const struct attn a = core(c, B, to - i, from / of.size * of.rows, i - from);
        sum.forward += attn_flop(&a);
        sum.backward += attn_grad_flop(&a);
        i = to;
    }
    const int whole = (M + L) / of.size * of.size;
    sum.maps += per_row * (whole - cached_rows);
    return sum;
}

static const struct sublayer_kind linformer = {.name = "linformer",
                                               CONDENSED,
                                               .params = params,
                                               .caches = caches,
                                               .bind = bind,
                                               .arrays = arrays,
                                               .arrays_grad = arrays_grad,
                                               .forward = forward,
                                               .backward = backward,
                                               .remember = remember,
                                               .cost = cost};

const struct mixer mixer_linformer = {
    .name = "linformer", .numbers = &linformer_numbers, .kind = &linformer, .both = true};

const struct variant variant_linformer = {
    .name = "linformer",
    .paper = "Wang et al. 2020, arXiv:2006.04768",
    .about = "blocks before a query's own are mapped to fewer rows; causal",
    .control = "vanilla",
    .pos = &pos_none,
    .mem = &mem_segment,
    .ffn = &ffn_relu,
    .mixer = &mixer_linformer,
    .wiring = WIRING_POST,
};

const struct variant variant_linformer_bi = {
    .name = "linformer-bi",
    .paper = "Wang et al. 2020, arXiv:2006.04768",
    .about = "keys and values of a whole text are mapped to fewer rows",
    .control = "bert",
    .pos = &pos_learned,
    .mem = &mem_none,
    .ffn = &ffn_gelu,
    .mixer = &mixer_linformer,
    .wiring = WIRING_POST,
    .attn_bias = ATTN_BIASED,
    .bidirectional = true,
};
