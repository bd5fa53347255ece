/* SPDX-License-Identifier: MIT
 *
 * LoRA (Hu et al. 2021, arXiv:2106.09685): a map W0 [out,in] stays as it is, and a product of low rank
 * that is added to it is trained:
 *
 *   W  = W0 + s B A        s = alpha / rank, A [rank,in], B [out,rank]
 *   dA = s B^T dW
 *   dB = s dW A^T
 *
 * A begins uniform in +-1/sqrt(in), B as 0, as in peft. A and B are parameters behind the model's; W is
 * made again after each step, so a model runs and is saved as any other is. */
#pragma once

#include "variants/parts/params.h"

struct lora {
    int rank; /* 0 = none */
    double alpha;
    int model, n; /* the model's parameters, before those of n maps: A, B, A, B, .. */
    int *map;     /* [n] indices */
    float **base; /* [n] W0 */
};

/* The parameters of the model alone, and A and B alone. */
struct params lora_model(const struct lora *l, const struct params *p);
struct params lora_added(const struct lora *l, const struct params *p);

/* Freeze the model and add A and B, NAME.lora_A and NAME.lora_B, of each map that one of n patterns
 * covers, without patterns of all maps between layers; before p is placed. Rank and alpha are set.
 * E_USAGE naming a pattern that covers none. */
enum status lora_add(struct lora *l, struct params *p, const char *const *on, int n, struct err *e);
/* Room for W0 (PART_WEIGHTS), over a counting and over a placed arena. */
void lora_bind(struct lora *l, const struct params *p, struct arena *a);
/* The model's values are W0 from now on; A and B begin from the seed. */
void lora_begin(const struct lora *l, const struct params *p, uint64_t seed, int threads);
/* Gradients of A and B from those of W, which are whole. */
void lora_gradient(const struct lora *l, const struct params *p, const struct engine *g);
/* W of A and B. */
void lora_merge(const struct lora *l, const struct params *p, const struct engine *g);
void lora_free(struct lora *l);
