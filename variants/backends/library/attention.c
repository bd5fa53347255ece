/* SPDX-License-Identifier: MIT
 *
 * Attention through the library: the caller's struct, checked, becomes a struct attn. */
#include "inner.h"

#include "variants/backends/attn_sums.h"

#include <limits.h>
#include <math.h>

/* ---- numbers and arrays ------------------------------------------------------------------- */

static enum status check_sizes(const struct ba_attention *a, struct err *e)
{
    const bool tables = a->rel_k || a->rel_v || a->rel_q || a->bias;
    const struct number numbers[] = {
        {"B", a->B, 1, LIMIT_LENGTH},
        {"H", a->H, 1, LIMIT_WIDTH},
        {"L", a->L, 1, LIMIT_LENGTH},
        {"M", a->M, 0, LIMIT_LENGTH},
        {"dh", a->dh, 1, LIMIT_WIDTH},
        {"Hkv", a->Hkv, 0, a->H},
        {"K", a->K, 0, LIMIT_LENGTH},
        {"dv", a->dv, 0, LIMIT_WIDTH},
        {"causal", a->causal, 0, 1},
        {"no_content", a->no_content, 0, 1},
        {"window", a->window, 0, LIMIT_LENGTH},
        {"R", a->R, tables, tables ? LIMIT_LENGTH : 0},
        {"Rf", a->Rf, 0, tables ? LIMIT_LENGTH : 0},
        {"n_masks", a->n_masks, a->masks != NULL, a->masks ? LIMIT_MASKS : 0},
        {"q_step", a->q_step, 0, LIMIT_WIDTH},
        {"k_step", a->k_step, a->q_step != 0, a->q_step ? LIMIT_WIDTH : 0},
        {"q_first", a->q_first, a->q_step ? -LIMIT_LENGTH : 0, a->q_step ? LIMIT_LENGTH : 0},
        {"sinks", a->sinks, 0, LIMIT_WIDTH},
        {"base", a->base, 0, INT64_MAX / 8},
        {"rel_head", a->rel_head, 0, INT64_MAX / 8 / LIMIT_WIDTH},
        {"bias_head", a->bias_head, 0, INT64_MAX / 8 / LIMIT_WIDTH},
        {"reserved", a->reserved, 0, 0},
    };
    const int64_t keys = a->K ? a->K : (int64_t)a->M + a->L;

    TRY(check_numbers(numbers, ARRAY_LEN(numbers), e));
    TRY(check_product("B H L", a->B, a->H, a->L, e));
    TRY(check_product("B H K", a->B, a->H, keys, e));
    TRY(check_product("H dh or H dv", a->H, max_int(a->dh, a->dv), 1, e));
    TRY(check_product("L q_step", a->L, a->q_step, 1, e));
    TRY(check_product("K k_step", keys, a->k_step, 1, e));
    if ((int64_t)a->L * a->q_step + keys * a->k_step > INT_MAX / 2)
        return fail(e, E_USAGE, "L q_step + K k_step is more than %d  -> divide the call",
                    INT_MAX / 2);
    for (int h = 0; a->window_of_head && h < a->H; h++)
        TRY(check_numbers(&(struct number){"window_of_head", a->window_of_head[h], 0, LIMIT_LENGTH},
                          1, e));
    if (!isfinite(a->scale) || !isfinite(a->gain) || !isfinite(a->soft_cap))
        return fail(e, E_USAGE, "scale, gain or soft_cap is not finite  -> use numbers");
    return OK;
}

static enum status check_arrays(const struct ba_attention *a, struct err *e)
{
    const struct pointer pointers[] = {
        {!a->q && !a->no_content, false, "q", ""},
        {!a->k && !a->no_content, false, "k", ""},
        {!a->v, false, "v", ""},
        {!a->o, false, "o", ""},
        {false, a->w && !a->rel_k, "w", " without rel_k"},
        {false, a->sink_k && !a->sinks, "sink_k", " without sinks"},
        {false, a->sink_v && !a->sinks, "sink_v", " without sinks"},
        {false, a->window && a->window_of_head, "window", " beside window_of_head"},
        {false, a->mask_of_head && !a->masks, "mask_of_head", " without masks"},
        {false, a->rel_head && !a->rel_k && !a->rel_v && !a->rel_q, "rel_head", " without tables"},
        {false, a->bias_head && !a->bias, "bias_head", " without bias"},
    };
    const ptrdiff_t rows = (ptrdiff_t)a->R + a->Rf;
    const struct places tables = {{a->H}, {a->rel_head}, rows * a->dh};
    const struct places biases = {{a->H}, {a->bias_head}, rows};
    const struct places add = {{a->B, a->H, a->L}, {a->add_batch, a->add_head, a->add_row}, 0};
    const struct places fade = {{a->B, a->H}, {a->fade_batch, a->fade_head}, 0};

    TRY(check_pointers(pointers, ARRAY_LEN(pointers), e));
    TRY(check_no_overlap(&tables, "rel_head", e));
    TRY(check_no_overlap(&biases, "bias_head", e));
    TRY(check_strides(&add, "add", e));
    return check_strides(&fade, "fade", e);
}

/* ---- strides ------------------------------------------------------------------------------ */

/* Rows [B, n] of `width` numbers; what is 0 becomes that of an array without gaps. */
static struct places rows_of(struct stride *at, struct ba_stride from, int B, int n, int width)
{
    at->row = from.row ? from.row : width;
    at->batch = from.batch ? from.batch : at->row * n;
    return (struct places){{B, n}, {at->batch, at->row}, width};
}

/* As they were passed, before anything is computed of them. */
static enum status check_given_strides(const struct ba_attention *x, struct err *e)
{
    const struct {
        const char *name;
        struct ba_stride at;
    } all[] = {{"q", x->q_at}, {"k", x->k_at}, {"v", x->v_at}, {"o", x->o_at}};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        TRY(check_strides(&(struct places){.stride = {all[i].at.batch, all[i].at.row}}, all[i].name,
                          e));
    return OK;
}

/* Only what is written may not overlap: gradients lie as their operands do. */
static enum status set_strides(struct attn *a, const struct ba_attention *x, bool backward,
                               struct err *e)
{
    const int K = attn_keys(a), dv = attn_dv(a);
    const struct {
        const char *name;
        struct places at;
        bool written;
    } all[] = {
        {"q", rows_of(&a->q_at, x->q_at, a->B, a->L, a->H * a->dh), backward && !a->no_content},
        {"k", rows_of(&a->k_at, x->k_at, a->B, K, a->Hkv * a->dh), backward && !a->no_content},
        {"v", rows_of(&a->v_at, x->v_at, a->B, K, a->Hkv * dv), backward},
        {"o", rows_of(&a->o_at, x->o_at, a->B, a->L, a->H * dv), true},
    };

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        TRY(check_strides(&all[i].at, all[i].name, e));
        if (all[i].written)
            TRY(check_no_overlap(&all[i].at, all[i].name, e));
    }
    return OK;
}

/* ---- the call ----------------------------------------------------------------------------- */

static struct attn attn_of(const struct ba_engine *engine, const struct ba_attention *x)
{
    return (struct attn){
        .B = x->B,
        .H = x->H,
        .L = x->L,
        .M = x->M,
        .dh = x->dh,
        .Hkv = x->Hkv ? x->Hkv : x->H,
        .K = x->K,
        .dv = x->dv,
        .window = x->window,
        .R = x->R,
        .Rf = x->Rf,
        .causal = x->causal,
        .scale = x->scale != 0 ? x->scale : 1 / sqrtf((float)x->dh),
        .q = x->q,
        .k = x->k,
        .v = x->v,
        .u = x->u,
        .w = x->w,
        .rel_k = x->rel_k,
        .rel_v = x->rel_v,
        .rel_head = x->rel_head,
        .bias = x->bias,
        .bias_head = x->bias_head,
        .o = x->o,
        .lse = x->lse,
        .base = x->base,
        .mask = x->masks ? engine->masks : NULL,
        .mask_of_head = x->mask_of_head,
        .window_of_head = x->window_of_head,
        .q_step = x->q_step,
        .k_step = x->k_step,
        .q_first = x->q_first,
        .no_content = x->no_content,
        .soft_cap = x->soft_cap,
        .rel_q = x->rel_q,
        .add = {x->add, x->add_batch, x->add_head, x->add_row},
        .fade = {x->fade, x->fade_batch, x->fade_head},
        .scores_out = x->scores_out,
        .gain = x->gain,
        .mix_logits = x->mix_logits,
        .mix_probs = x->mix_probs,
        .sinks = x->sinks,
        .sink_k = x->sink_k,
        .sink_v = x->sink_v,
        .sink_logit = x->sink_logit,
    };
}

/* *a is what the kernels take; its masks are the engine's. */
static enum status take_attention(struct ba_engine *engine, const struct ba_attention *from,
                                  bool backward, struct attn *a, struct err *e)
{
    struct ba_attention x;

    TRY(take_struct(&x, sizeof(x), FIRST_SIZE(struct ba_attention, reserved), from, "ba_attention",
                    e));
    TRY(check_sizes(&x, e));
    TRY(check_arrays(&x, e));
    TRY(check_given_strides(&x, e));
    TRY(take_masks(engine, &x, e));
    *a = attn_of(engine, &x);
    const char *const fault = attn_fault(a);
    if (fault)
        return fail(e, E_USAGE, "%s", fault);
    TRY(check_mask_rows(a, x.n_masks, e));
    return set_strides(a, &x, backward, e);
}

static enum status forward(struct ba_engine *engine, const void *from, const void *no_grads,
                           struct err *e)
{
    const struct attn_impl *impl;
    struct attn a;

    (void)no_grads;
    TRY(take_attention(engine, from, false, &a, e));
    TRY(engine_attn(&engine->g, &a, &impl, e));
    const struct attn_need need = impl->need(&a, engine->g.threads);
    TRY(engine_room(engine, need.scores_bytes + need.scratch_bytes, e));
    impl->forward(&engine->g, &a, engine->room);
    return OK;
}

int ba_attention_forward(struct ba_engine *engine, const struct ba_attention *a, char *why,
                         size_t why_size)
{
    return called(engine, forward, a, NULL, why, why_size);
}

/* ---- backward ----------------------------------------------------------------------------- */

static enum status check_grads(const struct attn *a, const struct ba_attention_grad *d,
                               struct err *e)
{
    const char *const absent = " without its operand";
    const struct pointer pointers[] = {
        {!a->lse, false, "lse", ", which backward reads"},
        {!d->d_o, false, "d_o", ""},
        {!d->d_q && !a->no_content, d->d_q && a->no_content, "d_q", ", by no_content"},
        {!d->d_k && !a->no_content, d->d_k && a->no_content, "d_k", ", by no_content"},
        {!d->d_v, false, "d_v", ""},
        {false, d->d_u && !a->u, "d_u", absent},
        {false, d->d_w && !a->w, "d_w", absent},
        {false, d->d_rel_k && !a->rel_k, "d_rel_k", absent},
        {false, d->d_rel_v && !a->rel_v, "d_rel_v", absent},
        {false, d->d_rel_q && !a->rel_q, "d_rel_q", absent},
        {false, d->d_bias && !a->bias, "d_bias", absent},
        {false, d->d_add && !a->add.at, "d_add", absent},
        {false, d->d_fade && !a->fade.at, "d_fade", absent},
        {false, d->d_mix_logits && !a->mix_logits, "d_mix_logits", absent},
        {false, d->d_mix_probs && !a->mix_probs, "d_mix_probs", absent},
        {false, d->d_sink_k && !a->sink_k, "d_sink_k", absent},
        {false, d->d_sink_v && !a->sink_v, "d_sink_v", absent},
        {false, d->d_sink_logit && !a->sink_logit, "d_sink_logit", absent},
    };

    TRY(check_pointers(pointers, ARRAY_LEN(pointers), e));
    /* Sequences and heads that share numbers are computed one after the other; others may not
     * meet. Those of a fade are not shared. */
    const struct places add = {
        {a->B, a->H, a->L}, {a->add.batch, a->add.head, a->add.row}, attn_keys(a)};
    const struct places fade = {{a->B, a->H}, {a->fade.batch, a->fade.head}, attn_keys(a)};
    if (d->d_fade && ((a->B > 1 && !a->fade.batch) || (a->H > 1 && !a->fade.head)))
        return fail(e, E_USAGE, "d_fade of a fade that repeats  -> give each head its own");
    if (d->d_fade)
        TRY(check_no_overlap(&fade, "fade", e));
    return d->d_add ? check_no_overlap(&add, "add", e) : OK;
}

static struct attn_grad grad_of(const struct ba_attention_grad *d)
{
    return (struct attn_grad){.d_o = d->d_o,
                              .d_scores_out = d->d_scores_out,
                              .d_q = d->d_q,
                              .d_k = d->d_k,
                              .d_v = d->d_v,
                              .d_u = d->d_u,
                              .d_w = d->d_w,
                              .d_rel_k = d->d_rel_k,
                              .d_rel_v = d->d_rel_v,
                              .d_rel_q = d->d_rel_q,
                              .d_bias = d->d_bias,
                              .d_add = d->d_add,
                              .d_fade = d->d_fade,
                              .d_mix_logits = d->d_mix_logits,
                              .d_mix_probs = d->d_mix_probs,
                              .d_sink_k = d->d_sink_k,
                              .d_sink_v = d->d_sink_v,
                              .d_sink_logit = d->d_sink_logit};
}

static enum status backward(struct ba_engine *engine, const void *from, const void *grads,
                            struct err *e)
{
    const struct attn_impl *impl;
    struct ba_attention_grad x;
    struct attn a;

    TRY(take_attention(engine, from, true, &a, e));
    TRY(take_struct(&x, sizeof(x), FIRST_SIZE(struct ba_attention_grad, d_sink_logit), grads,
                    "ba_attention_grad", e));
    TRY(check_grads(&a, &x, e));
    TRY(engine_attn(&engine->g, &a, &impl, e));
    TRY(engine_attn_backward(&engine->g, impl, e));
    const struct attn_grad d = grad_of(&x);
    const char *const fault = attn_grad_fault(&a, &d);
    if (fault)
        return fail(e, E_USAGE, "%s", fault);
    const struct attn_need need = impl->need_backward(&a, engine->g.threads);
    TRY(engine_room(engine, need.scores_bytes + need.scratch_bytes, e));
    impl->backward(&engine->g, &a, &d, engine->room);
    return OK;
}

int ba_attention_backward(struct ba_engine *engine, const struct ba_attention *a,
                          const struct ba_attention_grad *d, char *why, size_t why_size)
{
    return called(engine, backward, a, d, why, why_size);
}
