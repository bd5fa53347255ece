/* SPDX-License-Identifier: MIT
 *
 * A text that goes on: the tokens of a prompt, then those that a model chooses, each from all
 * before it. */
#pragma once

#include "harness/cli/options.h"
#include "harness/util/fileio.h"

struct generated {
    struct bytes text; /* what follows the prompt, malloc'ed */
    int32_t *ids;      /* [prompt + tokens], malloc'ed */
    int prompt;        /* tokens of it, those in front of a text included */
    int tokens;        /* that follow */
    int chosen;        /* these, and the one that ended the text */
    enum ended {
        ENDED_LENGTH, /* as long as was asked for */
        ENDED_TOKEN,  /* one of tokenizer_ends, which is not part of the text */
        ENDED_SIGNAL
    } ended;
    double prompt_ns, decode_ns;
    const char *how; /* the past is kept: a name of mem_kind_name */
};

/* The options are those of bench generate; `prompt` is its text. E_USAGE where the model defines no
 * next token, or its tokens are no text. */
enum status generate_run(struct generated *out, const struct options *o, const struct bytes *prompt,
                         struct err *e);
