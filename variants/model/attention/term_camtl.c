/* SPDX-License-Identifier: MIT
 *
 * Scores with a part that depends on a task (Pilault et al. 2021, arXiv:2009.09139). z is the
 * vector of a sequence's task, A_j one of m matrices [n,n], i and k absolute places:
 *
 *   gamma = W_g z + b_g
 *   beta  = W_b z + b_b
 *   S_ik += A_j[i mod n, k mod n] gamma[k mod n] + beta[k mod n]      where j = i/n = k/n
 *
 * It is the same for all heads. Plain loops: they cost L n of L L pairs. */
#include "around.h"

enum { MATRICES, GAMMA, GAMMA_BIAS, BETA, BETA_BIAS };
enum { FILM }; /* [B,2,n] gamma and beta, or their gradients */

struct camtl {
    bool on;
    int blocks, size; /* blocks 0 = as many as the longest window needs */
    int task;         /* width of a task's vector */
};

static const struct camtl *camtl_of(const struct config *c)
{
    return config_numbers(c, SLOT_term_camtl);
}

static bool on(const struct config *c) { return camtl_of(c)->on; }

static const struct choice choices[] = {
    ROW_FLAG(struct camtl, on, "camtl", NULL, .absent = "0"),
    ROW_INT(struct camtl, blocks, "camtl_m", 0, MAX_WIDTH,
            "matrices, one for each block of places; 0 = as many as the longest window needs",
            .absent = "0", .scope = SCOPE_LAYER, .applies = on, SETTING),
    ROW_INT(struct camtl, size, "camtl_n", 0, 1 << 12,
            "places of a block whose scores depend on the task", .scope = SCOPE_LAYER,
            .setting = true, .applies = on, .absent = "0"),
    ROW_INT(struct camtl, task, "task_dim", 0, MAX_WIDTH, "numbers of a task's vector",
            .scope = SCOPE_LAYER, .setting = true, .applies = on, .absent = "0"),
    {0},
};

static enum status check(const struct config *c, const void *numbers, struct err *e)
{
    const struct camtl *const t = numbers;
    const int64_t places = (int64_t)c->max_seq + c->mem_len;

    if (t->task >= 1 && t->size >= 1 && (!t->blocks || places <= (int64_t)t->blocks * t->size))
        return OK;
    return fail(e, E_USAGE,
                "%s: tasks of %d numbers, %d blocks of %d places for %d of a window  -> use 1 or "
                "more, as many places",
                c->variant->name, t->task, t->blocks, t->size, (int)places);
}

static const struct part_numbers numbers = {
    choices, PRESET(struct camtl, true, .size = 64, .task = 16), check};

static int task_width(const struct config *c) { return camtl_of(c)->task; }

static int blocks_of(const struct config *c)
{
    const struct camtl *const t = camtl_of(c);

    const int places = max_int(1, c->max_seq + c->mem_len);

    return t->blocks ? t->blocks : (places + t->size - 1) / t->size;
}

static void declare(const struct sublayer *s, const char *prefix, struct params *p)
{
    const int n = camtl_of(s->c)->size, task = task_width(s->c);

    params_add(p, INIT_EYE, 0, 3, (const int[]){blocks_of(s->c), n, n}, "%sattn.camtl.a", prefix);
    params_wide(p, params_matrix(p, n, task, prefix, "attn.camtl.gamma.weight"));
    params_vector(p, INIT_ONE, 0, n, prefix, "attn.camtl.gamma.bias");
    params_wide(p, params_matrix(p, n, task, prefix, "attn.camtl.beta.weight"));
    params_vector(p, INIT_ZERO, 0, n, prefix, "attn.camtl.beta.bias");
}

static void arrays(const struct sublayer *s, struct around_call n, size_t floats[AROUND_ARRAYS])
{
    floats[FILM] = (size_t)n.B * 2 * (size_t)camtl_of(s->c)->size;
}

/* y [n] = W z + b of one sequence. */
static void map_task(const struct param *W, const struct param *b, float *y, const float *z)
{
    const int n = W->shape[0], e = W->shape[1];

    for (int i = 0; i < n; i++) {
        double sum = (double)b->data[i];
        for (int k = 0; k < e && z; k++)
            sum += (double)W->data[(ptrdiff_t)i * e + k] * (double)z[k];
        y[i] = (float)sum;
    }
}

static const float *task_of(const struct sublayer *s, int b)
{
    const float *const task = s->state.attention.task;

    return task ? task + (ptrdiff_t)b * task_width(s->c) : NULL;
}

/* The keys in the block of the query at place i. */
static struct range block_of(const struct sublayer *s, int i, int K)
{
    const int n = camtl_of(s->c)->size, first = i / n * n;

    return (struct range){min_int(first, K), min_int(first + n, K)};
}

static void add(const struct part_call *t, const struct attn *a, struct seq_rows x)
{
    const struct sublayer *const s = t->s;
    const struct param *const p = t->param;
    const ptrdiff_t size = camtl_of(s->c)->size;
    const float *const A = p[MATRICES].data;
    const int all = t->n.all;

    CHECK(all <= blocks_of(s->c) * size);
    for (int b = 0; b < a->B; b++) {
        float *const gamma = t->at[FILM] + b * 2 * size, *const beta = gamma + size;
        map_task(&p[GAMMA], &p[GAMMA_BIAS], gamma, task_of(s, b));
        map_task(&p[BETA], &p[BETA_BIAS], beta, task_of(s, b));
        for (int i = 0; i < a->L; i++) {
            const ptrdiff_t row = a->M + i; /* of the stacked matrices [m n, n] */
            const struct range keys = block_of(s, a->M + i, all);
            float *const to = t->add + ((ptrdiff_t)b * a->L + i) * all;
            memset(to, 0, sizeof(float) * (size_t)all);
            for (int j = keys.from; j < keys.to; j++)
                to[j] = A[row * size + j % size] * gamma[j % size] + beta[j % size];
        }
    }
}

/* ---- backward ----------------------------------------------------------------------------- */

/* From d_y [n] to the weights, and to the task if its gradient is wanted. */
static void map_task_grad(const struct param *W, const struct param *b, const float *d_y,
                          const float *z, float *d_z)
{
    const int n = W->shape[0], e = W->shape[1];

    for (int i = 0; i < n; i++) {
        b->grad[i] += d_y[i];
        for (int k = 0; k < e && z; k++) {
            W->grad[(ptrdiff_t)i * e + k] += d_y[i] * z[k];
            if (d_z)
                d_z[k] += d_y[i] * W->data[(ptrdiff_t)i * e + k];
        }
    }
}

/* d->d_add is summed over heads. */
static void add_grad(const struct part_call *t, const struct attn *a, const struct attn_grad *d)
{
    const struct sublayer *const s = t->s;
    const struct param *const p = t->param, *const A = &p[MATRICES];
    const ptrdiff_t size = camtl_of(s->c)->size;
    float *const d_task = s->state.attention.d_task, *const d_film = t->d_at[FILM];

    memset(d_film, 0, sizeof(float) * (size_t)(a->B * 2 * size));
    for (int b = 0; b < a->B; b++) {
        const float *const gamma = t->at[FILM] + b * 2 * size, *const z = task_of(s, b);
        float *const d_gamma = d_film + b * 2 * size, *const d_beta = d_gamma + size;
        float *const d_z = d_task ? d_task + (ptrdiff_t)b * task_width(s->c) : NULL;
        for (int i = 0; i < a->L; i++) {
            const ptrdiff_t row = (a->M + i) * size;
            const struct range keys = block_of(s, a->M + i, t->n.all);
            const float *const G = d->d_add + ((ptrdiff_t)b * a->L + i) * t->n.all;
            for (int j = keys.from; j < keys.to; j++) {
                A->grad[row + j % size] += G[j] * gamma[j % size];
                d_gamma[j % size] += G[j] * A->data[row + j % size];
                d_beta[j % size] += G[j];
            }
        }
        map_task_grad(&p[GAMMA], &p[GAMMA_BIAS], d_gamma, z, d_z);
        map_task_grad(&p[BETA], &p[BETA_BIAS], d_beta, z, d_z);
    }
}

const struct around_part term_camtl = {
    .said = "scores of a task",
    .numbers = &numbers,
    .form = "camtl",
    .params = declare,
    .arrays = arrays,
    .term = {.added = ADDS_TO_PAIRS_OF_ALL, .task = task_width, .add = add, .add_grad = add_grad},
};
