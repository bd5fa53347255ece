/* SPDX-License-Identifier: MIT
 *
 * Attention through the library: the caller's struct, checked, becomes a struct attn. */
#include "fields.h"
#include "inner.h"

#include "variants/backends/attn_sums.h"

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
        SAME_IN_ATTENTION(SAME).Hkv = x->Hkv ? x->Hkv : x->H,
        .scale = x->scale != 0 ? x->scale : 1 / sqrtf((float)x->dh),
        .mask = x->masks ? engine->masks : NULL,
        .add = {x->add, x->add_batch, x->add_head, x->add_row},
        .fade = {x->fade, x->fade_batch, x->fade_head},
    };
}

/* *a is what the kernels take; its masks are the engine's. */
static enum status take_attention(struct ba_engine *engine, const struct ba_attention *from,
                                  bool backward, struct attn *a, struct texts *t, struct err *e)
{
    struct ba_attention x;

    TRY(take_struct(&x, sizeof(x), FIRST_SIZE(struct ba_attention, texts), from, "ba_attention",
                    e));
    TRY(check_sizes(&x, e));
    TRY(take_texts(t, x.texts, x.cu_seqlens, x.L,
                   x.B == 1 && !x.M && !x.K && !x.q_step && !x.add && !x.fade && !x.scores_out, e));
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

/* Text n alone. */
static struct attn text_of(const struct attn *a, const struct texts *t, int n)
{
    const ptrdiff_t at = t->cu[n];
    struct attn one = *a;

    one.L = t->cu[n + 1] - t->cu[n];
    one.q = a->q ? a->q + at * a->q_at.row : NULL;
    one.k = a->k ? a->k + at * a->k_at.row : NULL;
    one.v = a->v + at * a->v_at.row;
    one.o = a->o + at * a->o_at.row;
    one.lse = a->lse ? a->lse + at * a->H : NULL;
    return one;
}

/* Room for each text, and that each can be computed. */
static enum status prepare(struct ba_engine *engine, const struct attn *a, const struct texts *t,
                           bool backward, struct err *e)
{
    for (int n = 0; n < t->n; n++) {
        const struct attn one = text_of(a, t, n);
        const struct attn_impl *impl;
        TRY(engine_attn(&engine->g, &one, &impl, e));
        if (backward)
            TRY(engine_attn_backward(&engine->g, impl, e));
        const struct attn_need need =
            (backward ? impl->need_backward : impl->need)(&one, engine->g.threads);
        TRY(engine_room(engine, need.scores_bytes + need.scratch_bytes, e));
    }
    return OK;
}

static enum status forward(struct ba_engine *engine, const void *from, const void *no_grads,
                           struct err *e)
{
    const struct attn_impl *impl;
    struct texts t;
    struct attn a;

    TRY(take_attention(engine, from, false, &a, &t, e));
    TRY(prepare(engine, &a, &t, false, e));
    for (int n = 0; n < t.n; n++) {
        const struct attn one = text_of(&a, &t, n);
        TRY(engine_attn(&engine->g, &one, &impl, e));
        impl->forward(&engine->g, &one, engine->room);
    }
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

static enum status backward(struct ba_engine *engine, const void *from, const void *grads,
                            struct err *e)
{
    const struct attn_impl *impl;
    struct ba_attention_grad given, *const x = &given;
    struct texts t;
    struct attn a;

    TRY(take_attention(engine, from, true, &a, &t, e));
    TRY(take_struct(x, sizeof(*x), FIRST_SIZE(struct ba_attention_grad, d_sink_logit), grads,
                    "ba_attention_grad", e));
    TRY(check_grads(&a, x, e));
    const struct attn_grad all = {SAME_IN_ATTENTION_GRAD(SAME)};
    const char *const fault = attn_grad_fault(&a, &all);
    if (fault)
        return fail(e, E_USAGE, "%s", fault);
    TRY(prepare(engine, &a, &t, true, e));
    for (int n = 0; n < t.n; n++) {
        const struct attn one = text_of(&a, &t, n);
        struct attn_grad d = all;
        d.d_o += one.o - a.o;
        d.d_q = all.d_q ? all.d_q + (one.q - a.q) : NULL;
        d.d_k = all.d_k ? all.d_k + (one.k - a.k) : NULL;
        d.d_v += one.v - a.v;
        TRY(engine_attn(&engine->g, &one, &impl, e));
        impl->backward(&engine->g, &one, &d, engine->room);
    }
    return OK;
}

int ba_attention_backward(struct ba_engine *engine, const struct ba_attention *a,
                          const struct ba_attention_grad *d, char *why, size_t why_size)
{
    return called(engine, backward, a, d, why, why_size);
}
