/* SPDX-License-Identifier: MIT
 *
 * Causal depth-wise convolutions as lists of steps. Row t of D channels reads itself and the k - 1
 * rows before it, with a weight for each row and channel:
 *
 *   u_t = sum over s < k: w[s] (.) x_(t-k+1+s)         rows before the stream are zeros here
 *
 * cpe: the conditional position encoding of Chu et al. 2021 (arXiv:2102.10882), f = u + b, without
 * a norm: zeros before the stream tell where it begins. sep: the separable convolution of So et al.
 * 2019 (arXiv:1901.11117), f = W u + b. Both remember the k - 1 rows before a segment as they
 * entered the sub-layer.
 *
 * branches: the convolutions of that paper's decoder (figure 3), with sep_k as above:
 *
 *   h = relu(sep_11(x)) + [sep_7(x); 0]        2 D channels, D / 2 of the second branch
 *   f = sep_7(LN(h))                           rows of LN(h) before the stream are zeros
 *
 * It depends on 16 rows before a segment, which it remembers and runs again in front of the
 * segment: those of them that miss rows of their own are too far away to be read. */
#include "sublayer_inner.h"

void conv_cpe(struct steps *t)
{
    t->result = step_taps(t, t->c->cpe_kernel, "weight", "bias");
    t->last = NULL;
}

void conv_sep(struct steps *t)
{
    t->result = step_taps(t, t->c->sep_kernel, "depth", NULL);
    t->last = "point.weight";
    t->last_bias = "point.bias";
}

/* ---- branches ------------------------------------------------------------------------------- */

enum { WIDE_TAPS = 11, NARROW_TAPS = 7, LAST_TAPS = 7 };

int conv_branches_reach(void) { return max_int(WIDE_TAPS, NARROW_TAPS) - 1 + LAST_TAPS - 1; }

void conv_branches(struct steps *t)
{
    const int D = t->c->D;
    const int wide =
        step_affine(t, step_window(t, STEPS_INPUT, WIDE_TAPS, "wide.depth"), 2 * D, "wide.point");
    const int narrow = step_affine(t, step_window(t, STEPS_INPUT, NARROW_TAPS, "narrow.depth"),
                                   max_int(1, D / 2), "narrow.point");
    const int h = step_plus(t, step_apply(t, wide, CURVE_RELU, 1), narrow);
    const struct head_norm n = {.width = 2 * D, .layer = true, .bias = true, .eps = t->c->ln_eps};

    t->result = step_window(t, step_norm(t, h, n), LAST_TAPS, "last.depth");
    t->last = "last.point.weight";
    t->last_bias = "last.point.bias";
}
