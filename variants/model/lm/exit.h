/* SPDX-License-Identifier: MIT
 *
 * Early exit. After layer l < N each running position looks at the logits of its state, as the
 * output would compute them, and stops:
 *
 *   entropy   where H(p) / ln V < exit_tau            (Xin et al. 2020, DeeBERT, arXiv:2004.12993)
 *   patience  where the largest logit has been the same for exit_patience layers in a row
 *                                                     (Zhou et al. 2020, arXiv:2006.04152)
 *   votes     where exit_patience l^exit_power of the l layers have had the same largest logit
 *                                                     (Sun et al. 2021, arXiv:2105.13792)
 *   window    where H(p) / ln V < exit_tau for it and the exit_window positions before it; one that
 *             has stopped is certain              (Li et al. 2021, SENTEE, arXiv:2105.13878)
 *
 * SENTEE's windows reach to both sides; positions that follow are not known here, nor are those of
 * earlier calls.
 *
 * The state of a position that stopped is copied upward; later layers still use it for keys and
 * values (Elbayad et al. 2020, arXiv:1910.10073). The feed-forward network and the output between
 * layers are computed for running positions only; attention for all positions while any runs, since
 * its queries are one range; once all have stopped, the layers above only remember. In training
 * nothing stops: layer l of N has the weight l / (1 + .. + N) in the loss. */
#pragma once

#include "drive.h"

struct early_exit {
    struct sublayers *sublayers;
    const struct config *c;
    float *h;      /* [B,L,D] the stream; kept: after the last layer */
    float *before; /* [B,L,D] before a sub-layer */
    float *rows,
        *after;        /* [B,L,D] states of the running positions, without gaps; what they become */
    float *prediction; /* [B*L,V] of these; by entropy only, else NULL */
    float *lse;        /* [B*L] of their logits */
    int32_t *tokens;   /* [B*L] of theirs */
    int32_t *steps;    /* [B*L] layers that each position ran in the last forward */
    int32_t *at;       /* [B*L] places of the running positions */
    int32_t *last, *same; /* [B*L] the largest logit, and for how many layers */
    int32_t *votes;       /* [N,B*L] the largest logits of all layers; by votes only, else NULL */
    int32_t *unsure;      /* [B*L] 1: entropy was at least exit_tau; by windows only, else NULL */
    int n, n_rows;        /* running positions; all of the last forward */
    double heads;         /* rows of logits that were looked at */
    /* Training only. */
    float *d,
        *nll;    /* [B,L,D] gradient of the state after a layer before the last; [B*L] its loss */
    double loss; /* of all layers; NAN = of none since the last forward */
};
