/* SPDX-License-Identifier: MIT
 *
 * Steps of token shifts: rows mixed with the row before by learned weights, and maps side by side.
 */
#include "steps.h"

enum { X, D_, M }; /* inputs */
enum { FROM, N };  /* numbers */

static void mixes_forward(const struct step_call *c)
{
    const int n = c->in[X].n;

#pragma omp parallel for num_threads(step_team(c))
    for (int i = 0; i < c->B * c->L; i++)
        for (int r = 0; r < c->s->n[N]; r++) {
            const float *const w = c->param[0]->data + (ptrdiff_t)(c->s->n[FROM] + r) * n;
            const float *const x = matrix_row(&c->in[X], i), *const d = matrix_row(&c->in[D_], i);
            const float *const m = c->in[M].at ? matrix_row(&c->in[M], i) + r * n : NULL;
            float *const y = matrix_row(&c->out[0], i) + r * n;
            for (int e = 0; e < n; e++)
                y[e] = x[e] + d[e] * (w[e] + (m ? m[e] : 0));
        }
}

static void mixes_backward(const struct step_call *c)
{
    const int n = c->in[X].n;

    for (int i = 0; i < c->B * c->L; i++)
        for (int r = 0; r < c->s->n[N]; r++) {
            const ptrdiff_t at = (ptrdiff_t)(c->s->n[FROM] + r) * n;
            const float *const w = c->param[0]->data + at, *const d = matrix_row(&c->in[D_], i);
            const float *const m = c->in[M].at ? matrix_row(&c->in[M], i) + r * n : NULL;
            const float *const d_y = matrix_row(&c->d_out[0], i) + r * n;
            float *const d_x = matrix_row(&c->d_in[X], i), *const d_w = c->param[0]->grad + at;
            float *const d_d = matrix_row(&c->d_in[D_], i);
            float *const d_m = m ? matrix_row(&c->d_in[M], i) + r * n : NULL;
            for (int e = 0; e < n; e++) {
                d_x[e] += d_y[e];
                d_d[e] += d_y[e] * (w[e] + (m ? m[e] : 0));
                d_w[e] += d_y[e] * d[e];
                if (m)
                    d_m[e] += d_y[e] * d[e];
            }
        }
}

int step_mixes(struct steps *t, int x, int d, int m, struct mix_weights w)
{
    static const struct step_kind mixes = {
        .name = "mixes", .forward = mixes_forward, .backward = mixes_backward};
    struct step *const s = STEP_READING(t, &mixes, x, d, m);
    const int n = t->value[x].width;

    s->n[FROM] = w.from;
    s->n[N] = w.n;
    step_shares(s, w.param);
    return step_writes(t, s, w.n * n);
}

/* ---- maps side by side --------------------------------------------------------------------- */

static struct gemm block(const struct step_call *c, int i)
{
    const struct param *const w = c->param[0];
    const int width = w->shape[1], rank = w->shape[2];

    return mm_of(c->g, NT, c->B * c->L, width, rank, 1, c->in->at + i * rank, c->in->row,
                 w->data + (ptrdiff_t)i * width * rank, rank, 0, c->out->at + i * width,
                 c->out->row);
}

static void blocks_forward(const struct step_call *c)
{
    for (int i = 0; i < c->param[0]->shape[0]; i++) {
        const struct gemm p = block(c, i);
        c->g->ops.gemm(&p);
    }
}

static void blocks_backward(const struct step_call *c)
{
    for (int i = 0; i < c->param[0]->shape[0]; i++) {
        const struct gemm p = block(c, i);
        const float *const d_y = c->d_out->at + i * p.n;

        mm(c->g, TN, p.n, p.k, p.m, 1, d_y, c->d_out->row, p.a, p.lda, 1,
           c->param[0]->grad + (ptrdiff_t)i * p.n * p.k, p.k);
        mm(c->g, NN, p.m, p.k, p.n, 1, d_y, c->d_out->row, p.b, p.ldb, 1, c->d_in->at + i * p.k,
           c->d_in->row);
    }
}

static double blocks_flop(const struct step *s, int B, int L)
{
    return 2.0 * B * L * s->width[0] * s->result / s->n[N];
}

int step_blocks(struct steps *t, int x, int n, int width, const char *name)
{
    static const struct step_kind blocks = {.name = "blocks",
                                            .forward = blocks_forward,
                                            .backward = blocks_backward,
                                            .flop = blocks_flop};
    struct step *const s = STEP_READING(t, &blocks, x);
    const int rank = t->value[x].width / n;

    steps_need(t, rank * n == t->value[x].width,
               "step_blocks() of parts of blocks  -> n that divides the width");
    s->n[N] = n;
    step_tensor(t, s, INIT_TABLE, 0, 3, (const int[]){n, width, rank}, name);
    return step_writes(t, s, n * width);
}
