/* SPDX-License-Identifier: MIT
 *
 * A sub-layer's memory whose oldest rows are compressed, sublayer_compress.c, and what trains the
 * compression, sublayer_reconstruct.c. For sublayer.c; the state is `compressed` of struct sub. */
#ifndef SUBLAYER_COMPRESS_H
#define SUBLAYER_COMPRESS_H

#include "sublayer.h"
#include "variants/parts/linear.h"
#include "variants/parts/norm.h"

/* Does it compress? Where its memory is too short for both parts it does not. */
bool compresses(const struct sublayer *s);

/* The weights of the convolution: "layers.0." makes "layers.0.compress.weight". */
void compressed_params(const struct config *c, const char *prefix, struct params *p);
/* Take room, the cache having been bound. */
void compressed_bind(struct sublayer *s, struct extent max, struct arena *a);
/* L new rows stand behind the memory: compress what will leave for them. */
void compressed_prepare(const struct engine *g, struct sublayer *s, int B, int L);
/* And then, for cache_commit: the new rows become memory. */
void compressed_commit(struct sublayer *s, int L);
/* How many rows fill the memory, whatever the segments they come in. */
int compressed_reach(const struct sublayer *s);
double compressed_flop(const struct sublayer *s, int B, int L);

/* Of the rows between the two: how many leave, the first of sequence b, and the gradient of the
 * convolution of its n groups, added to that of the weights. */
int compressed_leaving(const struct sublayer *s, int L);
const float *compressed_old(const struct sublayer *s, int b);
void compressed_convolve_grad(const struct engine *g, const struct sublayer *s, const float *d_y,
                              const float *old, int n);

/* What the compression loses to attention, after a forward pass with kept work space and before its
 * commit: the mean square, over all sequences, rows, heads and coordinates, of the difference
 * between reading what leaves and reading what it was compressed to. Both are read with this
 * sub-layer's own q, k and v without biases, positions or mask. */
double sublayer_reconstruction(const struct engine *g, struct sublayer *s, struct work *w, int B,
                               int L);
/* Its gradient, added to those of the convolution and of nothing else. */
void sublayer_reconstruction_grad(const struct engine *g, struct sublayer *s, struct work *w, int B,
                                  int L);
/* Floats of work space in w->d_scratch that both need. */
size_t sublayer_reconstruction_floats(const struct sublayer *s, struct extent max);

#endif
