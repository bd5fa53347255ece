/* SPDX-License-Identifier: MIT
 *
 * The loss of each token of a scored text, as `bench eval --losses` writes it: a safetensors file
 * with a tensor "nll" [tokens] in nats, one "layers" [tokens] where positions may stop early (how many
 * the position ran that predicts the token), and what was scored in its metadata. */
#pragma once

#include "variants/base/safetensors.h"

struct losses {
    char checkpoint[256], variant[64]; /* as written; the hash tells checkpoints apart */
    char checkpoint_xxh3[17], corpus_xxh3[17];
    int seq, mem; /* tokens of a segment, and of past before it */
    const float *nll;
    const int32_t *layers; /* NULL = all run all; not read */
    size_t n;
    struct safetensors file; /* of one that was read; its memory is nll's */
};

enum status losses_write(const struct losses *l, const char *path, struct err *e);
/* E_IO names the file and what is wrong in it. Close in any case. */
enum status losses_read(struct losses *l, const char *path, struct err *e);
void losses_close(struct losses *l);
