/* SPDX-License-Identifier: MIT
 *
 * Perplexity rows: a checkpoint on a text, one row per (segment length, memory length), each scored
 * in a child. Used by `bench eval`, and by a sweep if a checkpoint of its variant exists. */
#pragma once

#include "harness/measure/estimate.h"
#include "harness/measure/session.h"

/* Before anything is measured: can the given checkpoint be used for this plan? */
enum status sweep_perplexity_check(const struct options *o, const struct plan *plan, struct err *e);

/* Seconds that the rows which the run lacks will take; NAN = unknown. */
double sweep_perplexity_s(struct session *s, const struct plan *plan, const struct speeds *speeds);

/* Rows for every variant of the plan that has weights: --ckpt, or
 * results/models/VARIANT.safetensors; none without weights. */
enum status sweep_perplexity(struct session *s, const struct plan *plan, struct err *e);

/* Rows of a session that has begun: `o` is of a `bench eval` of one --ckpt and --corpus. Those that
 * the run has are not scored again. `first`: the case_id of the first --seq at the first --mem. */
enum status perplexity_rows(struct session *s, const struct options *o, char first[17],
                            struct err *e);

/* Before it: options that --count decides, counting.h; and f32 before other types. */
enum status perplexity_presets(struct options *o, struct err *e);

/* The rows of `bench eval`: --ckpt on --corpus, for each --seq and --mem. Begins and ends the run.
 */
enum status perplexity_eval(struct session *s, struct err *e);

/* A row for people, with the choices of its model that `opt` gives (NULL = none); `first`: below a
 * heading. */
void perplexity_print(FILE *f, const struct perplexity_row *row, const struct options *opt,
                      bool first, enum format format);
/* The next row in the console's format. */
void perplexity_print_row(struct console *c, const struct perplexity_row *row);
