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
 * made again after each step, so a model runs and is saved as any other is. What is adapted may be a map
 * that a publisher stores, of which several of the model's are parts. */
#pragma once

#include "variants/parts/params.h"

/* One of the model's maps, by its index: where its rows stand in what is adapted. Columns are the same. */
struct lora_part {
    int of, *row;
    float *base; /* W0 */
};
struct lora_map {
    char name[56];
    int out, n;
    bool turned; /* published as [in,out] */
    struct lora_part *part;
};
struct lora {
    int rank; /* 0 = none */
    double alpha;
    int model; /* the model's parameters, before those of the maps: A, B, A, B, .. */
    int n;
    struct lora_map *map;
    float *part_b; /* the rows of a B that a part has */
};

/* Say where the rows of a map of the model stand in what is adapted; it is itself at first. False: nowhere. */
typedef bool lora_place(const void *arg, const struct param *w, struct lora_map *in, int *row);

/* Add A and B, NAME.lora_A and NAME.lora_B, of each map that is not frozen, then freeze the model; before p
 * is placed. Rank and alpha are set. If no parameter is frozen, of all maps between layers that `place`
 * knows. E_UNSUPPORTED: there is no such map; a map was left to train that `place` does not know. */
enum status lora_add(struct lora *l, struct params *p, lora_place *place, const void *arg,
                     struct err *e);
/* The parameters of the model alone. */
struct params lora_model(const struct lora *l, const struct params *p);
/* Room for W0 (PART_WEIGHTS) and work space, over a counting and over a placed arena. */
void lora_bind(struct lora *l, const struct params *p, struct arena *a);
/* The model's values are W0 from now on; A and B begin from the seed. */
void lora_begin(const struct lora *l, const struct params *p, uint64_t seed, int threads);
/* Gradients of A and B from those of W, which are whole. */
void lora_gradient(const struct lora *l, const struct params *p, const struct engine *g);
/* W of A and B. */
void lora_merge(const struct lora *l, const struct params *p, const struct engine *g);
void lora_free(struct lora *l);
