/* SPDX-License-Identifier: MIT
 *
 * One model of a variant: defaults, and the choices that make no sense together. */
#include "choices.h"
#include "config_depth.h"
#include "exclusions.h"
#include "keys.h"
#include "variants/model/attention/around.h"
#include "variants/model/content/content.h"
#include "variants/model/layers/dense_layers.h"
#include "variants/model/layers/sublayer_list.h"
#include "variants/parts/collab.h"
#include "variants/parts/latent.h"
#include "variants/parts/masks.h"
#include "variants/parts/mem.h"
#include "variants/parts/norm.h"

const char *const wiring_name[WIRING_COUNT + 1] = {
    "post",     "pre",  "reorder",  "rezero", "macaron_pre", "macaron_post",
    "parallel", "peri", "res_post", "admin",  NULL};

const char *const cond_name[COND_KINDS + 1] = {"none", "soft", "hard", NULL};

const char *const exit_name[EXIT_KINDS + 1] = {"none",  "train",  "entropy", "patience",
                                               "votes", "window", NULL};

const char *const recur_name[RECUR_KINDS + 1] = {"shifted", "same", NULL};
const char *const slot_write_name[SLOT_WRITES + 1] = {"attend", "mean", NULL};
const char *const mem_start_name[MEM_STARTS + 1] = {"empty", "zeros", NULL};

const char *const transparent_name[TRANSPARENT_KINDS + 1] = {"none", "top", NULL};

const char *const cpe_layers_name[CPE_LAYERS + 1] = {"all", "first", NULL};
const char *const attn_bias_name[ATTN_BIASES + 1] = {"0", "1", "qkv", NULL};
const char *const direction_name[DIRECTION_COUNT + 1] = {"both", "causal", NULL};

const char *const halt_name[HALT_KINDS + 1] = {"none", "graves", "t2t", NULL};

const char *const score_residual_name[SCORE_RESIDUAL_COUNT + 1] = {"none", "sum", "mean", NULL};

const char *const out_gate_name[OUT_GATE_COUNT + 1] = {"none",  "elementwise", "headwise",
                                                       "swish", "sigmoid",     NULL};

const char *const rope_scaling_name[ROPE_SCALINGS + 1] = {"none",   "linear",   "ntk",     "yarn",
                                                          "llama3", "longrope", "dynamic", NULL};

/* Is its output gate one of attention, or one of recurrent mixers? */
static bool gates_attention(const struct config *c)
{
    return c->out_gate == OUT_GATE_ELEMENTWISE || c->out_gate == OUT_GATE_HEADWISE;
}

/* Linear attention has nothing but attention's maps around it. */
static bool is_recurrent(const struct config *c) { return c->mixer && c->mixer->kind->recurs; }

bool config_groups(const struct config *c)
{
    return !has_latents(c) && !has_collab(c) && !(c->mixer && c->mixer->content) &&
           !c->pos->no_content && (!is_recurrent(c) || c->stack.n);
}

const struct mem *variant_mem(const struct variant *v)
{
    return v->mem ? v->mem : v->bidirectional ? &mem_none : &mem_segment;
}

const struct mem *config_mem(const struct config *c)
{
    return config_is_hybrid(c) ? &mem_hybrid : variant_mem(c->variant);
}

struct config config_of_layers(const struct config *c, bool attends)
{
    struct config one = *c;

    if (c->stack.n && attends) {
        one.mixer = NULL;
        one.out_gate = gates_attention(c) ? c->out_gate : c->attn_gate;
        if (c->mixer->block)
            one.masks = (struct masks){.n = 1, .n_heads = 1, .at = {{.block = c->mixer->block(c)}}};
    } else if (config_is_hybrid(c)) {
        if (c->recurrent.H) {
            one.H = c->recurrent.H;
            one.dh = c->recurrent.dh;
            one.dv = c->recurrent.dv;
            one.scale = c->recurrent.scale;
        }
        one.kv_heads = one.H;
        one.layer_windows.n = 0;
        one.attn_extra = NULL;
    }
    return one;
}

struct config config_of_masks(const struct config *c)
{
    struct config one = *c;

    around_switch_on(&one, SLOT_term_man);
    one.window = one.layer_windows.n = 0;
    return one;
}

struct config config_of_many(const struct config *c)
{
    struct config one = *c;

    one.H *= 2;
    one.kv_heads *= 2;
    one.dh = (c->dh + 1) / 2;
    one.dv = c->dv ? (c->dv + 1) / 2 : 0;
    one.scale = c->scale * sqrtf((float)c->dh / (float)one.dh);
    return one;
}

bool wiring_norms_first(enum wiring w)
{
    return w == WIRING_PRE || w == WIRING_REORDER || w == WIRING_MACARON_PRE ||
           w == WIRING_PARALLEL || w == WIRING_PERI;
}

bool wiring_norms_after(enum wiring w)
{
    return w == WIRING_POST || w == WIRING_MACARON_POST || w == WIRING_ADMIN;
}

bool wiring_norms_output(enum wiring w) { return w == WIRING_PERI || w == WIRING_RES_POST; }

int variant_kv_heads(const struct variant *v, int H)
{
    int n = v->kv_heads ? v->kv_heads : H;

    while (n > 1 && H % n)
        n--;
    return n;
}

void variant_sizes(const struct variant *v, int D, int H, int *dh, int *F)
{
    *dh = D / H;
    *F = 4 * D;
    if (v->sizes)
        v->sizes(D, H, dh, F);
}

static struct recurrent_sizes recurrent_sizes(const struct variant *v, int D, int H)
{
    struct recurrent_sizes r = {.H = H};
    int F;

    variant_sizes(v, D, H, &r.dh, &F);
    r.dv = v->d_value ? v->d_value(D, H, r.dh) : r.dh;
    r.scale = v->unscaled ? 1 : (float)(1 / sqrt((double)r.dh));
    return r;
}

/* Half of the channels attend; the others have as many groups as there are heads, or fewer. */
static struct lsra lsra_usual(int D, int H)
{
    enum { TAPS = 15 };
    const int split = D / 2;
    int groups = max_int(1, min_int(H, D - split));

    while ((D - split) % groups)
        groups--;
    return (struct lsra){split, groups, TAPS, true, true};
}

struct config config_default(const struct variant *v, int D, int H, int dh, int F, int N, int V)
{
    enum { DEFAULT_CLIP = 16 };
    const int clip = v->shaw.clip ? v->shaw.clip : DEFAULT_CLIP;

    struct config c = {
        .variant = v,
        .is = v->is,
        .adaptive = {.div = 1},
        .rope_factor = v->rope_scaling ? ROPE_FACTOR : 1,
        .D = D,
        .H = H,
        .dh = dh,
        .kv_heads = variant_kv_heads(v, H),
        .dv = v->d_value ? v->d_value(D, H, dh) : 0,
        .F = F,
        .N = N,
        .V = V,
        .scale = v->unscaled ? 1 : (float)(1 / sqrt((double)max_int(1, v->products) * dh)),
        .causal = v->bidirectional ? DIRECTION_BOTH : DIRECTION_CAUSAL,
        .clip = clip,
        .rel_rows = v->bidirectional ? 2 * clip + 1 : clip + 1,
        .rel_k = true,
        .rel_v = !v->shaw.keys_only,
        .rel_per_head = v->shaw.per_head,
        .tied = !v->untied,
        .out_bias = true,
        .emb_scale = (float)sqrt(D),
        .logit_scale = 1,
        .res_scale = 1,
        .ln_bias = true,
        .ln_eps = v->norm_kind == NORM_UNBIASED ? 1e-6f : 1e-5f,
        .ffn_bias = !v->bare_ffn,
        .dense = {.ffn = &ffn_swiglu},
        .cpe_kernel = 4,
        .sep_kernel = 7,
        .rnn_window = 7,
        .rnn_cell = CELL_GRU,
        .rnn_carry = true,
        .step_base = 1,
        .aux_weight = 0.5f,
        .slots = {.n = v->slots,
                  .write = v->slot_write,
                  .temp = 1,
                  .bptt = v->slots > 0,
                  .replay = v->slots ? 2 : 0},
        .exit_tau = 0.5f,
        .budget = 0.5f,
        .budget_coef = 0.1f,
        .exit_patience = 2,
        .exit_window = 2,
        .halt_bias = 1,
        .halt_eps = 0.01f,
        .ponder_tau = 0.01f,
    };

    if (!c.ffn)
        c.ffn = &ffn_relu;
    c.head_eps = v->head_eps > 0 ? v->head_eps : 1e-5f;
    c.aux_targets = max_int(1, v->aux_targets);
    snprintf(c.subs, sizeof(c.subs), "%s", v->subs ? v->subs : USUAL_SUBS);
    if (strchr(c.subs, SUB_LSRA))
        c.lsra = lsra_usual(D, H);
    if (v->recurrent)
        c.recurrent = recurrent_sizes(v->recurrent, D, H);
    if (v->order)
        v->order(c.order, N);
    if (v->loops) {
        c.steps = N;
        c.N = 1;
    }
    CHECK(config_set_masks(&c, v, "", "", NULL) == OK);
    CHECK(head_windows_parse(&c.head_windows, v->head_windows ? v->head_windows : "", NULL) == OK);
    config_numbers_reset(&c);
    if (has_collab(&c)) /* each head has its share of what they have together */
        c.scale = (float)sqrt((double)H / collab_of(&c)->dk);
    return c;
}

const struct part_numbers *config_numbers_of(const struct config *c, enum part_slot slot)
{
    switch (slot) {
    case SLOT_FFN:
        return c->ffn ? c->ffn->numbers : NULL;
    case SLOT_MIXER:
        return c->mixer ? c->mixer->numbers : NULL;
    case SLOT_MEM:
        return c->variant ? variant_mem(c->variant)->numbers : NULL;
    case SLOT_EXTRA:
        return c->attn_extra ? c->attn_extra->numbers : NULL;
    case SLOT_POS:
        return c->pos ? c->pos->numbers : NULL;
    case SLOT_QKV_MAP:
        return c->qkv_map ? c->qkv_map->numbers : NULL;
    case SLOT_GATE:
        return c->gate ? c->gate->numbers : NULL;
    case SLOT_NORM:
        return norm_numbers[c->norm_kind];
    default:
        return around_of(slot)->numbers;
    }
}

/* Does its variant have what is in the slot? Every model has the numbers of all parts of attention. */
static bool is_usual(const struct config *c, enum part_slot slot)
{
    for (int i = 0; slot >= SLOT_AROUND && c->variant && i < MOST_AROUND; i++)
        if (c->variant->around[i] == around_of(slot))
            return true;
    return slot < SLOT_AROUND;
}

void config_numbers_reset(struct config *c)
{
    memset(c->numbers, 0, sizeof(c->numbers));
    for (enum part_slot s = 0; s < SLOT_COUNT; s++) {
        const struct part_numbers *const numbers = config_numbers_of(c, s);
        if (numbers && is_usual(c, s))
            numbers_usual(numbers, c, c->numbers[s].bytes);
    }
}

int config_memory(const struct config *c)
{
    const struct compressive *const m = compressive_of(c);

    return m->rows ? c->mem_len + m->rows + m->ratio - 1 : c->mem_len;
}

/* Every number within the bounds of its row: what follows may calculate with them. */
static enum status check_numbers(const struct config *c, struct err *e)
{
    const struct choice *row;

    for (int i = 0; (row = model_key(i)); i++)
        TRY(choice_check(row, c, e));
    for (enum part_slot s = 0; s < SLOT_COUNT; s++) {
        const struct part_numbers *const numbers = config_numbers_of(c, s);
        for (row = numbers ? numbers->choices : NULL; row && row->name; row++)
            TRY(choice_check(row, config_numbers(c, s), e));
    }
    return OK;
}

static enum status check_part_numbers(const struct config *c, struct err *e)
{
    for (enum part_slot s = 0; s < SLOT_COUNT; s++) {
        const struct part_numbers *const numbers = config_numbers_of(c, s);
        if (numbers && numbers->check && (s < SLOT_AROUND || around_has(c, s)))
            TRY(numbers->check(c, config_numbers(c, s), e));
    }
    return OK;
}

/* Slots of a cache are positions of the newest keys besides. */
static enum status check_streaming(const struct config *c, struct err *e)
{
    if (c->stream_sinks == 0 || c->window > 0)
        return OK;
    return fail(e, E_USAGE, "%s: stream_sinks %d without a window  -> use window 1 or more",
                c->variant->name, c->stream_sinks);
}

static enum status check_layer_masks(const struct config *c, struct err *e)
{
    for (int i = 0; i < c->layer_masks.n; i++)
        if (c->layer_masks.at[i] >= c->masks.n)
            return fail(e, E_USAGE, "%s: mask %.0f of a layer, of %d masks  -> count from 0",
                        c->variant->name, c->layer_masks.at[i], c->masks.n);
    return OK;
}

/* Cells of several tokens (sublayer_pool.c): up to so large ones, then every token has its row
 * again. */
static enum status check_cells(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name, *const pools = strchr(c->order, SUB_POOLED);
    const char *const joins = strchr(c->order, SUB_UNPOOLED);
    const char *const last = strrchr(c->order, SUB_POOLED);
    int levels = 0;

    for (const char *at = c->order; *at; at++)
        levels += *at == SUB_POOLED;
    if (!pools && !joins)
        return OK;
    if (!pools || !joins || last > joins || joins != strrchr(c->order, SUB_UNPOOLED) ||
        levels > POOL_LEVELS)
        return fail(e, E_USAGE,
                    "%s: order \"%.64s\" does not pool rows and then give them back  -> use 1 to "
                    "%d times p, behind them one u",
                    name, c->order, (int)POOL_LEVELS);
    return OK;
}

static enum status check_order(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;

    char order[MAX_ORDER] = "";
    if (c->variant->order)
        c->variant->order(order, c->N);
    if (c->variant->order && !*order)
        return fail(e, E_USAGE,
                    "%s: %d layers are too many for an order of their own  -> use at most %d", name,
                    c->N, (MAX_ORDER - 1) / 2);
    for (const char *at = c->order; *at; at++)
        if (!sublayer_letter(*at) || strchr("lxe", *at))
            return fail(
                e, E_USAGE,
                "%s: order \"%.64s\" has a '%c'  -> write s for attention, f for feed-forward",
                name, c->order, *at);
    if (*c->order && !strpbrk(c->order, "spu"))
        return fail(e, E_USAGE, "%s: order \"%.64s\" has no attention  -> add an s", name,
                    c->order);
    return check_cells(c, e);
}

enum status config_check_state(const struct config *c, int keys, struct err *e)
{
    const struct config layer = config_of_layers(c, false);
    const int dv = config_dv(&layer);

    if ((double)layer.H * keys * dv <= MAX_STATE)
        return OK;
    return fail(e, E_USAGE,
                "%s: n_head %d with states of %d by %d is too large  -> use at most %d together",
                c->variant->name, layer.H, keys, dv, (int)MAX_STATE);
}

static enum status check_stack(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;

    if (config_is_hybrid(c) && !is_recurrent(c))
        return fail(e, E_USAGE, "%s: a stack without a recurrent mixer  -> use a variant with one",
                    name);
    if (c->recurrent.H < 0 || c->recurrent.dh < 0 || c->recurrent.dv < 0)
        return fail(e, E_USAGE, "%s: sizes of recurrent layers below 0  -> use 1 or more", name);
    return OK;
}

/* Some gates of outputs are of recurrent mixers only, and keys that are queries of forms that choose
 * by content. */
static enum status check_mixer(const struct config *c, struct err *e)
{
    const char *const name = c->variant->name;
    const enum out_gate gate = c->out_gate;

    if (!is_recurrent(c) && !gates_attention(c) && gate != OUT_GATE_NONE)
        return fail(e, E_USAGE,
                    "%s: out_gate %s is of recurrent mixers  -> use elementwise, headwise", name,
                    out_gate_name[gate]);
    if (c->attn_gate != OUT_GATE_NONE && (!c->stack.n || gates_attention(c)))
        return fail(e, E_USAGE, "%s: attn_gate %s %s  -> use out_gate", name,
                    out_gate_name[c->attn_gate],
                    c->stack.n ? "beside one of all layers" : "without layers of two kinds");
    if (!c->mixer && !c->stack.n && c->share_qk)
        return fail(e, E_USAGE, "%s: share_qk without a mixer that chooses by content  -> use 0",
                    name);
    if (c->mixer && c->mixer->has_ffn && c->F < 1)
        return fail(e, E_USAGE,
                    "%s: mixer %s with a feed-forward network of width 0  -> use 1 or more", name,
                    c->mixer->name);
    if (c->stack.n)
        return check_stack(c, e);
    return c->mixer && c->mixer->content ? content_check(c, e) : OK;
}

int config_cluster_width(const struct config *c, int i)
{
    int width = c->adaptive.E ? c->adaptive.E : c->D;

    while (i-- > 0)
        width /= max_int(1, c->adaptive.div);
    return width;
}

/* Which numbers make no clusters. */
static enum status check_clusters(const struct config *c, struct err *e)
{
    const struct adaptive *const a = &c->adaptive;
    const char *const name = c->variant->name;

    if (!has_clusters(c))
        return OK;
    for (int i = 0; i < a->n; i++)
        if (a->cut[i] <= (i ? a->cut[i - 1] : 0) || (c->V && a->cut[i] >= c->V))
            return fail(e, E_USAGE,
                        "%s: cutoffs with %d are not increasing below the vocabulary of %d  -> "
                        "such as %d,%d",
                        name, a->cut[i], c->V, max_int(1, c->V / 8), max_int(2, c->V / 4));
    if (config_cluster_width(c, a->n) < 1)
        return fail(e, E_USAGE,
                    "%s: div_val %d: cluster %d of d_embed %d has no width  -> lower it", name,
                    a->div, a->n, config_cluster_width(c, 0));
    if (a->n_tie && a->n_tie != a->n + 1)
        return fail(e, E_USAGE, "%s: tie_projs of %d for %d clusters  -> one for each", name,
                    a->n_tie, a->n + 1);
    return OK;
}

/* A feed-forward network that reads the row before needs that row of the segment before. */
static enum status check_ffn(const struct config *c, struct err *e)
{
    if (!c->ffn || !c->ffn->build || config_mem(c)->state)
        return OK;
    return fail(e, E_USAGE, "%s: ffn %s without states of its past  -> use a variant that has them",
                c->variant->name, c->ffn->name);
}

static enum status check_part(const struct pos *p, const struct config *c, struct err *e)
{
    return p && p->check ? p->check(c, e) : OK;
}

/* Checks of numbers, one after the other. */
static enum status (*const checks[])(const struct config *c, struct err *e) = {
    exclusions_check, check_part_numbers, check_layer_masks,  check_clusters,     check_streaming,
    check_mixer,      check_ffn,          dense_layers_check, config_check_depth, check_order,
};

enum status config_check(const struct config *c, struct err *e)
{
    const char *name = c->variant->name;

    struct err why;

    if (check_numbers(c, &why) != OK)
        return fail(e, E_USAGE, "%s: %s", name, why.msg);
    if ((int64_t)c->H * c->dh > MAX_WIDTH)
        return fail(e, E_USAGE,
                    "%s: n_head %d of d_head %d is too wide  -> use at most %d together", name,
                    c->H, c->dh, (int)MAX_WIDTH);
    if ((int64_t)c->H * config_dv(c) > MAX_WIDTH)
        return fail(e, E_USAGE,
                    "%s: n_head %d of d_value %d is too wide  -> use at most %d together", name,
                    c->H, c->dv, (int)MAX_WIDTH);
    if (c->pos->sinusoids && c->D % 2)
        return fail(e, E_USAGE, "%s: --d-model %d is odd  -> sinusoids come in pairs, give %d",
                    name, c->D, c->D + 1);
    if ((c->wiring == WIRING_REORDER) != (c->gate != NULL))
        return fail(e, E_USAGE, "%s: norm %s %s a gate  -> gates belong to norm reorder", name,
                    wiring_name[c->wiring], c->gate ? "with" : "without");
    if (c->rel_rows != c->clip + 1 && c->rel_rows != 2 * c->clip + 1)
        return fail(e, E_USAGE, "%s: %d table rows for clip %d  -> use %d (causal) or %d (full)",
                    name, c->rel_rows, c->clip, c->clip + 1, 2 * c->clip + 1);
    if (c->kv_heads < 1 || c->H % c->kv_heads)
        return fail(e, E_USAGE, "%s: --kv-heads %d does not divide --heads %d  -> use a divisor",
                    name, c->kv_heads, c->H);
    if (c->norm_kind == NORM_UNBIASED && c->D < 2)
        return fail(e, E_USAGE, "%s: norm_kind unbiased of width %d  -> use --d-model 2 or more",
                    name, c->D);
    TRY(check_part(c->pos, c, e));
    TRY(check_part(c->attn_extra, c, e));
    TRY(masks_check(&c->masks, name, e));
    for (size_t i = 0; i < ARRAY_LEN(checks); i++)
        TRY(checks[i](c, e));
    return OK;
}
