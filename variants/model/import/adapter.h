/* SPDX-License-Identifier: MIT
 *
 * Adapters in the files of peft: products of low rank that are added to the maps of a published model
 * (LoRA, Hu et al. 2021, arXiv:2106.09685).
 *
 *   W += s B A      s = lora_alpha / r, with use_rslora lora_alpha / sqrt(r)
 *
 * adapter_model.safetensors has them by the modules of the publisher's program,
 * base_model.model.MODULE.lora_A.weight [r,in] and .lora_B.weight [out,r]; adapter_config.json has
 * lora_alpha, and by patterns of modules alpha_pattern. */
#pragma once

#include "opened.h"
#include "variants/model/optimise/lora.h"

#include <jansson.h>

#define ADAPTER_CONFIG "adapter_config.json"
#define ADAPTER_TENSORS "adapter_model.safetensors"

struct adapter {
    json_t *config;
    struct safetensors file;
};

/* Its products are added to what published_load reads of p from now on; published_close closes it. E_IO where a
 * tensor of it belongs to no map of the model, or its config says what is no such product;
 * E_UNSUPPORTED where `path` is no published folder. */
enum status adapter_open(struct published *p, const char *path, const char *dir, struct err *e);
void adapter_close(struct adapter *a); /* NULL = none */

/* Add the product of a piece, whose published tensor is t, to its values. E_IO where it is not finite. */
enum status adapter_add(const struct published *p, const struct piece *to, const struct tensor *t,
                        struct err *e);

/* Where a map of the model of `published` (struct published) stands in the module that peft adapts; false
 * where there is no such module. */
lora_place adapter_place;

/* Write the products of a checkpoint (optimise/lora.h) into a folder that is there. E_IO where it has none, or
 * not by published names. */
enum status adapter_write(const struct safetensors *checkpoint, const char *dir, struct err *e);
