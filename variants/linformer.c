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
 * Blocks attend one after the other. The rows of a block's own tokens then stand behind the far rows
 * of those before it, so that a block is plain causal attention with a past. */
#include "variants/model/attention/sublayer_attention.h"

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

static const struct part_numbers linformer_numbers = {
    choices, .size = NUMBERS_SIZE(struct linformer), .check = check, .usual = usual};

static const struct linformer *numbers(const struct config *c)
{
    return config_numbers(c, SLOT_MIXER);
}

/* ---- the maps ----------------------------------------------------------------------------- */

/* Of the rows of a call, those of memory included: groups, rows of each, rows before the first. */
struct cut {
    int n, size, lead;
};

static struct cut cut_of(const struct step_call *c)
{
    const struct grouping of = c->steps->groups;
    const int rows = c->M + c->length;
    const int64_t first = c->position - c->M;

    if (!of.size)
        return (struct cut){.n = 1, .size = rows};
    return (struct cut){grouping_whole(of, first, rows), of.size, grouping_lead(of, first)};
}

/* Row i of sequence b. */
static float *row_at(const struct matrix *m, int b, ptrdiff_t i)
{
    return m->at + b * m->batch + i * m->row;
}

/* Far rows [rank,width] = W [:, :n] x [n,width], of each group of each sequence. */
static void map_forward(const struct step_call *c)
{
    const struct param *const W = c->param[0];
    const struct cut of = cut_of(c);
    const int rank = W->shape[0];

    for (int i = 0; i < of.n * c->B; i++) {
        const int u = i / c->B, b = i % c->B;
        mm(c->g, NN, rank, c->in->n, of.size, 1, W->data, W->shape[1],
           row_at(c->in, b, of.lead + u * of.size), c->in->row, 0, row_at(c->out, b, u * rank),
           c->out->row);
    }
}

static void map_backward(const struct step_call *c)
{
    const struct param *const W = c->param[0];
    const struct cut of = cut_of(c);
    const int rank = W->shape[0], width = c->in->n;

    for (int i = 0; i < of.n * c->B; i++) {
        const int u = of.n - 1 - i / c->B, b = i % c->B, from = of.lead + u * of.size;
        const float *const d = row_at(c->d_out, b, u * rank);
        mm(c->g, TN, of.size, width, rank, 1, W->data, W->shape[1], d, width, 1,
           row_at(c->d_in, b, from), width);
        mm(c->g, NT, rank, of.size, width, 1, d, width, row_at(c->in, b, from), width, 1, W->grad,
           W->shape[1]);
    }
}

static struct sublayer_cost map_cost(const struct steps *t, const struct step *s, struct extent now)
{
    const struct grouping of = t->groups;
    const int groups = of.size ? (now.M + now.L) / of.size - (t->cached ? now.M / of.size : 0) : 1;
    const double tokens = of.size ? groups * of.size : now.L;

    return (struct sublayer_cost){.maps = 2.0 * now.B * of.rows * s->result * tokens};
}

static int mapped(struct steps *t, int x, int map)
{
    static const struct step_kind kind = {
        .name = "map of rows", .forward = map_forward, .backward = map_backward, .cost = map_cost};
    struct step *const s = STEP_READING(t, &kind, x);

    step_shares(s, map);
    return step_writes_to(t, s, steps_far(t, t->value[x].width));
}

/* ---- blocks ------------------------------------------------------------------------------- */

enum { WHOLE, BLOCKS };                        /* part */
enum { FAR, OWN = ATTEND_ADD + 1 - ATTEND_K }; /* inputs, from ATTEND_K on: keys and values */

/* The largest block of a call, or a whole text. */
static struct attn core(const struct steps *t, int part, struct extent now)
{
    const struct grouping of = t->groups;
    const int L = min_int(now.L, of.size);
    struct attn a = attn_of_config(t->c, now.B, now.L, 0);

    if (part == BLOCKS)
        return attn_of_config(t->c, now.B, L, (now.M + now.L) / of.size * of.rows + of.size - L);
    a.K = of.rows;
    a.k_at.batch = a.v_at.batch = a.K * a.k_at.row;
    return a;
}

/* One block: its rows [from, to) of those of a call, and the far rows before it. */
struct block {
    int from, to, far;
};

/* That of row i. Rows before the first whole one are a block without far rows. */
static struct block block_at(const struct step_call *c, int i)
{
    const struct cut of = cut_of(c);
    const int nth = i < of.lead ? -1 : (i - of.lead) / of.size;
    const int from = of.lead + nth * of.size;

    return (struct block){.from = max_int(0, from),
                          .to = min_int(from + of.size, c->M + c->length),
                          .far = c->far + max_int(0, nth) * c->steps->groups.rows};
}

/* Rows of keys or values from the i-th on: of far ones, those before a call, too. */
static struct matrix rows_from(const struct step_call *c, const struct matrix *in, int which, int i)
{
    struct matrix m = in[ATTEND_K + which];

    m.at += (i - (which < OWN ? c->far : 0)) * m.row;
    return m;
}

static void copy_rows(const struct matrix *to, const struct matrix *from, int B, int rows)
{
    for (int b = 0; b < B; b++)
        memcpy(row_at(to, b, 0), row_at(from, b, 0), sizeof(float) * (size_t)(rows * to->row));
}

/* Put its rows behind the far ones before it, over `covered` others; or put those back. */
static void cover(const struct step_call *c, const struct block *u, int covered, bool back)
{
    for (int v = 0; v < 2; v++) {
        const struct matrix far = rows_from(c, c->in, FAR + v, u->far),
                            own = rows_from(c, c->in, OWN + v, u->from);
        const ptrdiff_t n = covered * far.row;
        const struct matrix kept = {(float *)c->scratch + v * c->B * n, far.row, far.n, n, 0};
        copy_rows(back ? &far : &kept, back ? &kept : &far, c->B, covered);
        if (!back)
            copy_rows(&far, &own, c->B, u->to - u->from);
    }
}

/* The attention of its new queries. */
static struct attn operands(const struct step_call *c, const struct block *u)
{
    const int first = max_int(u->from, c->M) - c->M;
    struct attn a =
        attn_of_config(c->s->c, c->B, u->to - c->M - first, u->far + c->M + first - u->from);

    a.q = matrix_row(&c->in[ATTEND_Q], first);
    a.o = matrix_row(&c->out[ATTEND_RESULT], first);
    a.q_at.batch = a.o_at.batch = c->in[ATTEND_Q].batch;
    a.k = rows_from(c, c->in, FAR, 0).at;
    a.v = rows_from(c, c->in, FAR + 1, 0).at;
    a.k_at.batch = a.v_at.batch = c->in[ATTEND_K].batch;
    a.lse = c->out[ATTEND_LSE].at ? matrix_row(&c->out[ATTEND_LSE], (ptrdiff_t)first * c->B) : NULL;
    return a;
}

static void blocks_forward(const struct step_call *c)
{
    const struct grouping of = c->steps->groups;
    const int far = c->far + cut_of(c).n * of.rows;
    const size_t kept = step_beside(c->B, of.size, c->in[ATTEND_K].n);
    struct block u;

    for (int i = c->M; i < c->M + c->length; i = u.to) {
        u = block_at(c, i);
        const int covered = clamp_int(far - u.far, 0, u.to - u.from);
        cover(c, &u, covered, false);
        const struct attn a = operands(c, &u);
        step_part_forward(c, &a, i - c->M, kept);
        cover(c, &u, covered, true);
    }
}

/* From the last block to the first, whose far rows are read no more. Gradients of keys and values are
 * those of far rows, then of its own. */
static void blocks_backward(const struct step_call *c)
{
    struct block u;

    for (int end = c->M + c->length; end > c->M; end = u.from) {
        struct matrix one[2];
        u = block_at(c, end - 1);
        cover(c, &u, 0, false);
        const struct attn a = operands(c, &u);
        step_part_backward(c, &a, (struct attn_grad){0}, one);
        for (int v = 0; v < 2; v++) {
            const struct matrix d_far = rows_from(c, c->d_in, FAR + v, 0),
                                d_own = rows_from(c, c->d_in, OWN + v, u.from);
            matrix_add_rows(&d_far, &one[v], c->B, u.far);
            one[v].at += u.far * one[v].row;
            matrix_add_rows(&d_own, &one[v], c->B, u.to - u.from);
        }
    }
}

static size_t blocks_scratch(const struct engine *g, const struct step *s, struct extent max,
                             bool backward)
{
    const int size = numbers(s->c)->block, far = (max.M + max.L) / size * numbers(s->c)->rank;

    return step_beside(max.B, size + (backward ? far : 0), s->width[ATTEND_K]);
}

static struct sublayer_cost blocks_cost(const struct steps *t, const struct step *s,
                                        struct extent now)
{
    const struct grouping of = t->groups;
    struct sublayer_cost sum = {0};

    for (int i = now.M, to; i < now.M + now.L; i = to) {
        const int u = i / of.size, before = u * of.rows + i % of.size;
        to = min_int((u + 1) * of.size, now.M + now.L);
        const struct attn a = attn_of_config(t->c, now.B, to - i, before);
        sum.forward += attn_flop(&a);
        sum.backward += attn_grad_flop(&a);
    }
    return sum;
}

static int attend_blocks(struct steps *t, struct attend a, int k, int v)
{
    static const struct step_kind kind = {.name = "attend in blocks",
                                          .forward = blocks_forward,
                                          .backward = blocks_backward,
                                          .scratch = blocks_scratch,
                                          .cost = blocks_cost};
    const int o = step_attend_as(t, &kind, a);

    step_reads(t, &t->step[t->n - 1], k);
    step_reads(t, &t->step[t->n - 1], v);
    return o;
}

/* ---- the layer ---------------------------------------------------------------------------- */

/* Tokens that a map has columns for. */
static int columns(const struct config *c)
{
    const int places = c->max_pos ? c->max_pos : c->max_seq;

    return numbers(c)->block ? numbers(c)->block : max_int(1, places);
}

static int map_of(struct steps *t, const char *name)
{
    const int shape[] = {numbers(t->c)->rank, columns(t->c)};
    const int map = steps_tensor(t, INIT_LINEAR, 0, 2, shape, name);

    if (t->declares)
        params_wide(t->declares, t->declares->n - 1);
    return map;
}

static void build(struct steps *t)
{
    const struct linformer *const n = numbers(t->c);
    const int maps = steps_projections(t, ""), width = config_kv_width(t->c);

    steps_end_with(t, maps);
    t->groups = (struct grouping){n->block, n->rank, n->block};
    t->no_past = n->block ? NULL : "rows of a whole text have no past  -> use --mem 0";
    t->longest = n->block ? 0 : columns(t->c);
    const int of_k = map_of(t, "proj_k.weight"),
              of_v = n->own_v ? map_of(t, "proj_v.weight") : of_k;
    const int q = step_project(t, STEPS_INPUT, maps, ATTN_Q);
    const int v = steps_remembered(t, width, NULL), k = steps_remembered(t, width, NULL);
    step_project_to(t, v, STEPS_INPUT, maps, ATTN_V);
    step_project_to(t, k, STEPS_INPUT, maps, ATTN_K);
    const int far_v = mapped(t, v, of_v), far_k = mapped(t, k, of_k);
    const struct attend a = {.q = q,
                             .k = far_k,
                             .v = far_v,
                             .width = config_q_width(t->c),
                             .part = n->block ? BLOCKS : WHOLE,
                             .core = core};
    t->result = n->block ? attend_blocks(t, a, k, v) : step_attend(t, a);
}

const struct mixer mixer_linformer = {.name = "linformer",
                                      .numbers = &linformer_numbers,
                                      .kind = &sublayer_condensed,
                                      .build = build,
                                      .both = true};

const struct variant variant_linformer = {
    .name = "linformer",
    .paper = "Wang et al. 2020, arXiv:2006.04768",
    .about = "blocks before a query's own are mapped to fewer rows; causal",
    .control = "vanilla",
    .pos = &pos_none,
    .mixer = &mixer_linformer,
};

const struct variant variant_linformer_bi = {
    .name = "linformer-bi",
    .paper = "Wang et al. 2020, arXiv:2006.04768",
    .about = "keys and values of a whole text are mapped to fewer rows",
    .control = "bert",
    .pos = &pos_learned,
    .ffn = &ffn_gelu,
    .mixer = &mixer_linformer,
    .attn_bias = ATTN_BIASED,
    .bidirectional = true,
};
