/* SPDX-License-Identifier: MIT
 *
 * Words in clusters: rare ones have narrow embeddings, and share an entry of the softmax over
 * frequent ones (Grave et al. 2016, arXiv:1609.04309; as input, Baevski and Auli 2018,
 * arXiv:1809.10853; Dai et al. 2019, arXiv:1901.02860). Cluster i has words [e_i, e_{i+1}), of
 * width E_i = E / div^i rounded down; with div 1 all clusters are rows of one table.
 *
 *   embedding  h = emb_scale P_i E_i[x - e_i]                                  i = cluster of x
 *   head       z = (h Q_0) [W_0; W_cl]^T + [b_0; b_cl]     softmax over e_1 + n entries
 *   log p(x)   of the head, for x < e_1; otherwise its entry e_1 + i - 1, plus
 *              (log softmax((h Q_i) W_i^T + b_i))[x - e_i]
 *
 * W = E when tied; Q_i = P_i where tie says so. With div 1 and E = D there are neither P nor Q.
 * Every row computes the head; a row computes a tail only if its target lies in it. */
#pragma once

#include "variants/variant.h"

/* Indices of parameters; -1 = none. */
struct cluster {
    int first, n, width; /* words, and E_i */
    int row;             /* of its tables and bias where it begins */
    int embed, embed_proj, out, out_proj, bias;
};

struct adaptive_words {
    const struct config *c;
    const struct params *params;
    int n;
    struct cluster at[MAX_CLUSTERS];
    int cluster, cluster_bias; /* of the entries for clusters */
    int head;                  /* entries of the head */
    /* Work space. Rows of a cluster lie together, in the order of the batch: begin[i] on. */
    int32_t *rows, *in_cluster; /* [B*L] their numbers; targets within their cluster */
    int32_t *head_target;       /* [B*L] */
    int begin[MAX_CLUSTERS + 1];
    float *head_z, *head_logits; /* [B*L,E_0], [B*L,head] */
    float *x, *z, *logits;       /* [B*L,D], [B*L,widest E_i], [B*L,largest tail] */
    float *bias, *d_bias;        /* [head] */
    float *nll;                  /* [B*L] of tails */
    /* Of the last passes: rows by cluster; all tails of all rows where there were no targets. */
    int n_in[MAX_CLUSTERS], n_out[MAX_CLUSTERS], n_rows;
};

static inline int adaptive_rows(const struct adaptive_words *t, int i)
{
    return t->begin[i + 1] - t->begin[i];
}
/* The rows of a table that a cluster has. */
static inline const float *adaptive_table(const struct adaptive_words *t, int param,
                                          const struct cluster *k)
{
    return t->params->v[param].data + (ptrdiff_t)k->row * k->width;
}

/* Append the parameters: those of the input, those of the output. */
void adaptive_embed_params(struct adaptive_words *t, const struct config *c, struct params *p);
void adaptive_out_params(struct adaptive_words *t, struct params *p);
/* Count or place work space for so many rows. */
void adaptive_bind(struct adaptive_words *t, const struct config *c, const struct params *p,
                   size_t rows, struct arena *a);

/* h [rows,D] */
void adaptive_embed(struct adaptive_words *t, const struct engine *g, const int32_t *tokens,
                    float *h, int rows);
/* nll [rows] of the targets, from h [rows,D]. */
void adaptive_nll(struct adaptive_words *t, const struct engine *g, const float *h,
                  const int32_t *target, float *nll, int rows);
/* log p [rows,V] of all words. */
void adaptive_all(struct adaptive_words *t, const struct engine *g, const float *h, float *log_p,
                  int rows);

/* Of rows of n logits; _grad: they become the gradient, see struct nll_grad. */
void nll_of_rows(const struct engine *g, float *nll, const float *logits, const int32_t *target,
                 int rows, int n);
void nll_of_rows_grad(const struct engine *g, float *logits, const int32_t *target, int rows, int n,
                      float scale, float z);

/* After adaptive_nll of h: d [rows,D] of `share` of the mean nll; adds to the weights' gradients.
 * z is of struct nll_grad, for head and tails each. */
void adaptive_out_grad(struct adaptive_words *t, const struct engine *g, const float *h, float *d,
                       double share, float z, int rows);
/* From d_h [rows,D] of the embedding. */
void adaptive_embed_grad(struct adaptive_words *t, const struct engine *g, const int32_t *tokens,
                         const float *d_h, int rows);

/* Sort rows by the clusters of their words. */
void adaptive_sort(struct adaptive_words *t, const int32_t *words, int rows);
/* to[k] = from[row k of cluster i], D floats each. */
void adaptive_gather(const struct adaptive_words *t, const struct engine *g, int i, float *to,
                     const float *from, float scale);

/* FLOP of the input and of the output as of the last passes; of all words for a row. */
double adaptive_in_flop(const struct adaptive_words *t);
double adaptive_out_flop(const struct adaptive_words *t);
double adaptive_row_flop(const struct adaptive_words *t);
/* Bytes of weights that the last passes did not read. */
double adaptive_unread(const struct adaptive_words *t, int rows);
