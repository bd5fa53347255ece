/* SPDX-License-Identifier: MIT
 *
 * See attn_sums.h. */
#include "attn_sums.h"

struct attn_sums attn_sums_of(const struct attn *a)
{
    const size_t rows = (size_t)a->R + (size_t)a->Rf, dh = (size_t)a->dh, H = (size_t)a->H;
    const size_t vector = a->no_content ? 0 : dh, sinks = (size_t)a->sinks;
    struct attn_sums s = {
        .n = {[SUM_U] = vector,
              [SUM_W] = vector,
              [SUM_REL_K] = a->rel_k ? rows * dh : 0,
              [SUM_REL_V] = a->rel_v ? rows * dh : 0,
              [SUM_REL_Q] = a->rel_q ? rows * dh : 0,
              [SUM_BIAS] = a->bias ? rows : 0,
              [SUM_SINK_K] = a->sink_k ? sinks * dh : 0,
              [SUM_SINK_V] = a->sink_v ? sinks * (size_t)attn_dv(a) : 0,
              [SUM_SINK_LOGIT] = a->sink_logit ? sinks : 0,
              [SUM_MIX_LOGITS] = a->mix_logits ? H : 0,
              [SUM_MIX_PROBS] = a->mix_probs ? H : 0},
        .head = {[SUM_U] = a->dh,
                 [SUM_W] = a->dh,
                 [SUM_REL_K] = a->rel_head,
                 [SUM_REL_V] = a->rel_head,
                 [SUM_REL_Q] = a->rel_head,
                 [SUM_BIAS] = a->bias_head,
                 [SUM_SINK_K] = (ptrdiff_t)a->sinks * a->dh,
                 [SUM_SINK_V] = (ptrdiff_t)a->sinks * attn_dv(a),
                 [SUM_SINK_LOGIT] = a->sinks,
                 [SUM_MIX_LOGITS] = a->H,
                 [SUM_MIX_PROBS] = a->H},
    };

    for (int w = 0; w < SUM_COUNT; w++) {
        s.at[w] = s.each;
        s.each += s.n[w];
    }
    s.each = round_up(s.each, 16);
    return s;
}

float *attn_sum_target(const struct attn_grad *d, enum attn_sum which)
{
    float *const targets[SUM_COUNT] = {
        [SUM_U] = d->d_u,
        [SUM_W] = d->d_w,
        [SUM_REL_K] = d->d_rel_k,
        [SUM_REL_V] = d->d_rel_v,
        [SUM_REL_Q] = d->d_rel_q,
        [SUM_BIAS] = d->d_bias,
        [SUM_SINK_K] = d->d_sink_k,
        [SUM_SINK_V] = d->d_sink_v,
        [SUM_SINK_LOGIT] = d->d_sink_logit,
        [SUM_MIX_LOGITS] = d->d_mix_logits,
        [SUM_MIX_PROBS] = d->d_mix_probs,
    };

    return targets[which];
}

static bool shares_sequences(const struct attn *a, const struct attn_grad *d)
{
    return d->d_add && a->add.batch == 0;
}

static bool shares_heads(const struct attn *a, const struct attn_grad *d)
{
    return d->d_add && a->add.head == 0;
}

int attn_parts(const struct attn *a, const struct attn_grad *d, int units)
{
    return (shares_sequences(a, d) ? 1 : a->B) * (shares_heads(a, d) ? 1 : units);
}

struct attn_part attn_part_at(const struct attn *a, const struct attn_grad *d, int units, int part)
{
    const int per_sequence = shares_heads(a, d) ? 1 : units;
    const int b = part / per_sequence, u = part % per_sequence;
    struct attn_part p = {b, b + 1, u, u + 1};

    if (shares_sequences(a, d))
        p.b1 = a->B;
    if (shares_heads(a, d))
        p.u1 = units;
    return p;
}

const char *attn_grad_fault(const struct attn *a, const struct attn_grad *d)
{
    const ptrdiff_t K = attn_keys(a), head = K * a->L;

    if ((d->d_add && !a->add.at) || (d->d_fade && !a->fade.at))
        return "d_add or d_fade without its operand  -> leave it out";
    if (d->d_add && d->d_add == d->d_scores_out && /* in place */
        (a->add.row != K || a->add.head != head || a->add.batch != head * a->H))
        return "d_add is d_scores_out, and add has gaps or repeats  -> give them arrays of their "
               "own";
    return NULL;
}

void attn_grad_check(const struct attn *a, const struct attn_grad *d)
{
    const char *const fault = attn_grad_fault(a, d);

    if (fault)
        check_failed(fault, __FILE__, __LINE__);
}
