/* SPDX-License-Identifier: MIT
 *
 * Conditional computation (Bapna, Arivazhagan and Firat 2020, "Controlling Computation versus
 * Quality for Neural Sequence Models", arXiv:2002.07106): each sub-layer has a gate of the stream x
 * that enters it, which decides how much of it a position takes.
 *
 *   soft   z = x + s(w.x + b) f(..)        s the logistic function
 *   hard   z = x + [w.x + b > 0] f(..)     forward only
 *
 * In training the loss has budget_coef (mean of s over sub-layers and positions - budget)^2
 * besides; the published noise is left out. With norms after the sum, the sum is normed as usual.
 */
#pragma once

#include "sublayer.h"

/* Append "layers.0.skip1.weight" [1,D] and bias after the prefix "layers.0.skip1.". */
void skip_params(const struct config *c, const char *prefix, struct params *p);

/* to = x + gate (.) w->y, and w->open [rows] = gate. to may be x. */
void skip_add(const struct engine *g, struct sublayer *s, struct work *w, float *to, const float *x,
              int rows);
/* From d of that sum to d_y; `stream`, which may be d, gets what goes to x through the gate. */
void skip_grad(const struct engine *g, const struct sublayer *s, const struct work *w, float *d_y,
               const float *d, float *stream, int rows);

/* Useful FLOP of a sub-layer of `all` for `rows` new rows: in the last forward closed positions
 * needed their keys and values only; before it all are open. */
double skip_flop(const struct sublayer *s, double all, double rows);
