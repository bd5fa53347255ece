/* SPDX-License-Identifier: MIT
 *
 * DExTra, the map of DeLighT: its own numbers, and the list of its stages with their widths. */
#pragma once

#include "variants/variant.h"

/* Most group linear transforms of a layer; the widest that one may be, of the model's width. */
enum { MAX_DEXTRA_DEPTH = 30, MAX_DEXTRA_WIDTH = 64 };

/* Its own numbers in a config. Those of two are of the first and of the last layer; those between
 * lie on a line. */
enum { DEXTRA_PAPER, DEXTRA_CODE };
enum { GLT_RELU, GLT_GELU, GLT_GELU_TANH, GLT_SWISH };
struct dextra {
    int form;       /* the paper's or that of the authors' program */
    int depth[2];   /* group linear transforms */
    float width[2]; /* the widest of them, of D */
    int listed;     /* layers that a file gives a number each; 0 = only the two */
    int groups;     /* most groups */
    bool shuffle, norm;
    int act;
    /* Groups and width of each transform, of a file whose weights say them; 0 = as computed. */
    struct dextra_given {
        uint16_t groups, width;
    } given[MAX_DEXTRA_DEPTH];
};
extern const struct part_numbers dextra_numbers;
static inline const struct dextra *dextra_of(const struct config *c)
{
    return config_numbers(c, SLOT_QKV_MAP);
}
enum act_kind dextra_act(const struct config *c);

/* One group linear transform: in each of `groups` parts, [a_p, b_p] of width (a + b) / groups times
 * a matrix; a is the map's input, b the output of the stage before (0 = not read). */
struct stage {
    char name[16];
    int groups, a, b, out;
    bool reads_x; /* a is x itself; else the output of the first stage */
    bool shuffle, norm, act;
    int param; /* first of its parameters: weight, bias and the norm's two */
};
struct stages {
    int n;
    struct stage at[MAX_DEXTRA_DEPTH + 2];
};

/* Those of a model's nth attention. */
struct stages dextra_stages(const struct config *c, int nth);
