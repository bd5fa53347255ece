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
 * entered the sub-layer. */
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
