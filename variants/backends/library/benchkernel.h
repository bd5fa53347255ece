/* SPDX-License-Identifier: MIT
 *
 * A kernel of yours in bench: a shared object that exports one table, `bench_kernel`.
 *
 *     cc -O3 -march=native -shared -fPIC mine.c -o mine.so
 *     bench judge ./mine.so
 *     bench --backend ./mine.so,fast
 *
 * What the table does not have, or `why` refuses, the fastest backend of this CPU computes. Calls come
 * from one thread, one after the other; arrays are those of benchattn.h, in float unless named. A
 * function must have written all of its results, and nothing else, when it returns. */
#ifndef BENCHKERNEL_H
#define BENCHKERNEL_H

#include "benchattn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BK_ABI 1

/* The threads of a call, pinned by the caller. `run` calls work(arg, i) on thread i for every i <
 * threads, and returns when all have. Threads of the kernel's own must be no more. */
struct bk_team {
    size_t size;
    int threads;
    void (*run)(const struct bk_team *team, void (*work)(void *arg, int thread), void *arg);
};

enum bk_type { BK_F32, BK_BF16 };

/* y = x W^T + bias, with x [rows,in], W [out,in], y [rows,out]. Rows are x_row, w_row, y_row numbers
 * apart. Where W is bf16, numbers of x may be rounded to it as well; sums are of floats. */
struct bk_linear {
    size_t size;
    int rows, in, out;
    int w_type; /* enum bk_type */
    const float *x;
    const void *w;
    const float *bias; /* [out], or NULL */
    float *y;
    ptrdiff_t x_row, w_row, y_row;
};

enum bk_function {
    BK_LINEAR,              /* const struct bk_linear * */
    BK_ATTENTION_FORWARD,   /* const struct ba_attention * */
    BK_ATTENTION_BACKWARD,  /* likewise */
    BK_RECURRENCE_FORWARD,  /* const struct ba_recurrence * */
    BK_RECURRENCE_BACKWARD, /* likewise */
    BK_FUNCTIONS
};

/* All but size, abi, name and version may be NULL. */
struct bk_kernel {
    size_t size; /* sizeof(struct bk_kernel) */
    int abi;     /* BK_ABI */
    const char *name, *version;
    /* What `open` returns is the first argument of the others; NULL with a sentence in `why` [why_size]
     * where the kernel cannot run here. `close` is called at the end. */
    void *(*open)(const struct bk_team *team, char *why, size_t why_size);
    void (*close)(void *state);
    /* NULL, or a sentence why the function does not take this call: what it would be called with.
     * Asked for the largest call, before arrays have numbers; later ones may be shorter. */
    const char *(*why)(void *state, enum bk_function function, const void *call);
    void (*linear)(void *state, const struct bk_team *team, const struct bk_linear *l);
    void (*attention_forward)(void *state, const struct bk_team *team,
                              const struct ba_attention *a);
    void (*attention_backward)(void *state, const struct bk_team *team,
                               const struct ba_attention *a, const struct ba_attention_grad *d);
    void (*recurrence_forward)(void *state, const struct bk_team *team,
                               const struct ba_recurrence *r);
    void (*recurrence_backward)(void *state, const struct bk_team *team,
                                const struct ba_recurrence *r, const struct ba_recurrence_grad *d);
};

BA_API extern const struct bk_kernel bench_kernel;

/* For `why`: what an attention has that `has` does not name, or NULL. */
enum { BK_GROUPS = 1, BK_WINDOW = 2, BK_BIAS = 4, BK_WIDE_VALUES = 8, BK_MASK = 16 };
static inline const char *bk_attention_lacks(const struct ba_attention *a, int has)
{
    if (a->Hkv && a->Hkv != a->H && !(has & BK_GROUPS))
        return "does not support shared key/value heads";
    if ((a->window || a->window_of_head) && !(has & BK_WINDOW))
        return "does not support a window";
    if (a->bias && !(has & BK_BIAS))
        return "does not support a bias";
    if (a->dv && a->dv != a->dh && !(has & BK_WIDE_VALUES))
        return "does not support values of another width than keys";
    if (a->masks && !(has & BK_MASK))
        return "does not support a mask";
    if (a->u || a->w || a->rel_k || a->rel_v || a->rel_q || a->sinks || a->add || a->fade ||
        a->scores_out || a->mix_logits || a->mix_probs || a->soft_cap != 0 || a->gain != 0 ||
        a->no_content || a->q_step || a->texts)
        return "does not support terms of scores besides";
    return NULL;
}

#ifdef __cplusplus
}
#endif
#endif
