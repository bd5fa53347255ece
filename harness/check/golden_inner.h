/* SPDX-License-Identifier: MIT
 *
 * What the kinds of golden files share. */
#ifndef GOLDEN_INNER_H
#define GOLDEN_INNER_H

#include "golden.h"
#include "variants/base/safetensors.h"
#include "variants/model/sublayer_list.h"

#define GRADIENT "out.grad."

/* One file on one engine. */
struct run {
    const struct engine *g;
    const struct safetensors *s;
    struct tally *tally;
    verdict_fn *report;
    void *arg;
    double tolerance, tolerance_abs, tolerance_grad, tolerance_grad_abs;
    int n_grad; /* gradients judged */
};

/* Judge `got` by the file's tensor, if it has one. Pass rule: max|g-e| <=
 * max(tolerance * max|e|, tolerance_abs); gradients have tolerances of their own. */
void golden_compare(struct run *r, const char *tensor, const float *got, size_t n);
/* Only the first n numbers of each of `parts` equal parts of the file's tensor. */
void golden_compare_first(struct run *r, const char *tensor, const float *got, size_t parts,
                          size_t n);
void golden_compare_grad(struct run *r, const struct params *p);
/* Whole numbers must be equal: the error is how many are not. */
void golden_compare_whole(struct run *r, const char *tensor, const int32_t *got, size_t n);
bool golden_has_grad(const struct run *r);
/* Report every gradient of the file as skipped. */
void golden_skip_grad(struct run *r, const char *why);

/* The file's tensor, or E_IO in *st where it is missing, of another type or of another size. */
const struct tensor *golden_need(const struct run *r, const char *name, enum dtype dtype, size_t n,
                                 enum status *st, struct err *e);
enum status golden_whole(const struct run *r, const char *key, int *out, struct err *e);
/* E_IO naming a parameter of the file that is none of the model's: what it stands for would go
 * unseen. */
enum status golden_no_strangers(const struct run *r, const struct params *p, struct err *e);

/* E_IO naming an input of the file that is none of `known` (NULL-terminated): what it feeds would
 * go unseen, and the file be judged by half. */
enum status golden_known_inputs(const struct run *r, const char *const *known, struct err *e);

/* Bind over a counting and a placed arena, and load the weights from the file, which has no others.
 */
typedef enum status golden_bind(void *arg, const struct engine *g, struct err *e);
enum status golden_place(const struct run *r, golden_bind *bind, void *arg, struct arena *a,
                         struct params *p, struct err *e);

/* Let the only sub-layer remember rows [B,M,D] as it does in use: in segments of at most L. `x`
 * [B,L,D] is work space. */
void golden_remember(const struct run *r, struct sublayers *sublayers, struct extent m, float *x,
                     const float *rows);

/* Judge the probabilities [B,H,L,sinks+K] of an attention whose operands are set: they are never
 * asked of an implementation, but read off its output. */
void golden_probs(struct run *r, struct attn a, const struct attn_impl *impl, void *scratch);

enum status golden_operator(struct run *r, struct err *e);
enum status golden_mixer(struct run *r, struct err *e);
enum status golden_lm(struct run *r, struct err *e);
enum status golden_part(struct run *r, struct err *e);
enum status golden_rnn(struct run *r, struct err *e);
enum status golden_map(struct run *r, struct err *e);
enum status golden_funnel(struct run *r, struct err *e);

#endif
