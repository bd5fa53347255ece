/* SPDX-License-Identifier: MIT
 *
 * See attn_sums.h. */
#include "attn_sums.h"

/* X(which, field of the operand, numbers per head, numbers between heads in the gradient). */
#define SUMS(X)                                                                                    \
    X(SUM_U, u, vector, a->dh)                                                                     \
    X(SUM_W, w, vector, a->dh)                                                                     \
    X(SUM_REL_K, rel_k, a->rel_k ? table : 0, a->rel_head)                                         \
    X(SUM_REL_V, rel_v, a->rel_v ? table : 0, a->rel_head)                                         \
    X(SUM_REL_Q, rel_q, a->rel_q ? table : 0, a->rel_head)                                         \
    X(SUM_BIAS, bias, a->bias ? rows : 0, a->bias_head)                                            \
    X(SUM_SINK_K, sink_k, a->sink_k ? sink_keys : 0, (ptrdiff_t)sink_keys)                         \
    X(SUM_SINK_V, sink_v, a->sink_v ? sink_values : 0, (ptrdiff_t)sink_values)                     \
    X(SUM_SINK_LOGIT, sink_logit, a->sink_logit ? sinks : 0, a->sinks)                             \
    X(SUM_MIX_LOGITS, mix_logits, a->mix_logits ? H : 0, a->H)                                     \
    X(SUM_MIX_PROBS, mix_probs, a->mix_probs ? H : 0, a->H)
#define NUMBERS(which, field, per_head, apart) [which] = per_head,
#define APART(which, field, per_head, apart) [which] = apart,
#define TARGET(which, field, per_head, apart) [which] = d->d_##field,

struct attn_sums attn_sums_of(const struct attn *a)
{
    const size_t rows = (size_t)a->R + (size_t)a->Rf, dh = (size_t)a->dh, H = (size_t)a->H;
    const size_t table = rows * dh, vector = a->no_content ? 0 : dh, sinks = (size_t)a->sinks;
    const size_t sink_keys = sinks * dh, sink_values = sinks * (size_t)attn_dv(a);
    struct attn_sums s = {.n = {SUMS(NUMBERS)}, .head = {SUMS(APART)}};

    for (int w = 0; w < SUM_COUNT; w++) {
        s.at[w] = s.each;
        s.each += s.n[w];
    }
    s.each = round_up(s.each, 16);
    return s;
}

float *attn_sum_target(const struct attn_grad *d, enum attn_sum which)
{
    float *const targets[SUM_COUNT] = {SUMS(TARGET)};

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
