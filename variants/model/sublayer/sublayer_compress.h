/* SPDX-License-Identifier: MIT
 *
 * A sub-layer's memory whose oldest rows are compressed, sublayer_compress.c, and the training of
 * the compression, sublayer_reconstruct.c. For sublayer_forward.c; the state is `compressed` of struct
 * sublayer. */
#pragma once

#include "sublayer.h"
#include "variants/parts/linear.h"
#include "variants/parts/mem.h"
#include "variants/parts/norm.h"

/* Does it compress? Not if its memory is too short for both parts. */
bool compresses(const struct sublayer *s);

/* The weights of the convolution: "layers.0." makes "layers.0.compress.weight". */
void compressed_params(const struct config *c, const char *prefix, struct params *p);
/* Take memory; the cache must be bound. */
void compressed_bind(struct sublayer *s, struct extent max, struct arena *a);
/* L new rows follow the memory: compress the rows that they will displace. */
void compressed_prepare(const struct engine *g, struct sublayer *s, int B, int L);
/* Then, instead of cache_commit: the new rows become memory. */
void compressed_commit(struct sublayer *s, int L);
/* Rows that fill the memory, for any segment length. */
int compressed_reach(const struct sublayer *s);
double compressed_flop(const struct sublayer *s, int B, int L);

/* For sublayer_reconstruct.c: the number of leaving rows, the first one of sequence b, and the
 * gradient of the convolution of n groups, added to that of its weights. */
int compressed_leaving(const struct sublayer *s, int L);
const float *compressed_old(const struct sublayer *s, int b);
void compressed_convolve_grad(const struct engine *g, const struct sublayer *s, const float *d_y,
                              const float *old, int n);

/* The reconstruction loss, after a forward pass with kept work space and before its commit: the
 * mean square, over all sequences, rows, heads and coordinates, of the difference between
 * attention's reading of the leaving rows and of their compressed rows. Both use this sub-layer's
 * q, k and v without biases, positions or mask. */
double sublayer_reconstruction(const struct engine *g, struct sublayer *s, struct work *w, int B,
                               int L);
/* Its gradient, added to that of the convolution's weights only. */
void sublayer_reconstruction_grad(const struct engine *g, struct sublayer *s, struct work *w, int B,
                                  int L);
/* Floats of work space in w->d_scratch for both functions. */
size_t sublayer_reconstruction_floats(const struct sublayer *s, struct extent max);
