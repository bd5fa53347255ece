/* SPDX-License-Identifier: MIT
 *
 * What the files of a job share: job_bind.c builds what runs forward, job.c runs it, job_grad.c has
 * what a cell with a backward pass has in addition. */
#ifndef JOB_INNER_H
#define JOB_INNER_H

#include "job.h"

/* x[0..n) = N(0,1) from the cell's seed, by name. */
void job_draw(const struct job *j, const char *name, float *x, size_t n);

/* Declare the parameters; count or place; fill inputs and memory, the weights having their values.
 */
enum status job_declare(struct job *j, struct err *e);
enum status job_bind_forward(struct job *j, struct err *e);
void job_fill_forward(struct job *j);

/* The sub-layers of a layer or a model. */
static inline const struct sublayers *job_sublayers(const struct job *j)
{
    return j->bcase->workload == WORK_LAYER ? &j->layer.sublayers : &j->lm.lm.sublayers;
}

/* The gradients of one attention call, each with its name and its length; 0 = no such term. The
 * first are written, the others added to. */
enum { ATTN_OPERANDS = 14, ATTN_WRITTEN = 3 };
struct operand {
    const char *name;
    float **at;
    size_t n;
};
void job_operands(struct operand out[ATTN_OPERANDS], struct attn_job *t);
/* By any implementation; what is added to starts from zero. */
void job_attn_backward(struct attn_job *t, const struct attn_impl *impl, const struct engine *g,
                       void *scratch);

/* Count or place, after the forward's bind. */
enum status job_bind_grad(struct job *j, struct err *e);
/* The gradients that come from above, and the optimiser's empty moments. */
void job_fill_grad(struct job *j);

/* After forward: all gradients from nothing, by engine `g`. */
void job_backward(struct job *j, const struct engine *g);
/* One measured run of a cell with a backward pass. */
void job_run_grad(struct job *j);

double job_grad_flop(const struct job *j);
double job_grad_bytes(const struct job *j); /* of operands that forward does not have */

#endif
