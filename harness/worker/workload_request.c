/* SPDX-License-Identifier: MIT
 *
 * The workload request: a model reads a prompt of --mem tokens, which gives the first new token, and
 * adds --seq - 1 more, one by one, with its caches or states. Where the memory is recompute, it runs
 * all tokens again for each. The new tokens are given, not chosen: every backend reads the same. The
 * output is what each of them was chosen by: logits, or its loss where words are in clusters. */
#include "workload.h"

static int prompt_of(const struct job *j) { return j->bcase->mem; }
static int new_tokens(const struct job *j) { return j->bcase->seq; }
static bool reruns(const struct job *j) { return j->kind == MEM_RECOMPUTE; }
/* Tokens that are read, all together: not the last. */
static int tokens_read(const struct job *j) { return prompt_of(j) + new_tokens(j) - 1; }
static bool has_logits(const struct job *j) { return lm_has_logits(&j->lm.lm); }
static int width(const struct job *j) { return has_logits(j) ? j->config.V : 1; }

/* What is run for the t-th new token: the tokens from `first` up to `end`. */
struct span {
    int first, end;
};

static struct span span_of(const struct job *j, int t)
{
    const int end = prompt_of(j) + t;

    return (struct span){t == 0 || reruns(j) ? 0 : end - 1, end};
}

/* ---- binding ------------------------------------------------------------------------------- */

static enum status declare(struct job *j, struct err *e)
{
    const int B = j->bcase->batch, read = tokens_read(j);

    j->shape = reruns(j) ? (struct extent){B, read, 0} : (struct extent){B, prompt_of(j), read};
    j->params = &j->lm.lm.params;
    return lm_init(&j->lm.lm, &j->config, e);
}

static enum status bind(struct job *j, struct err *e)
{
    struct lm_job *const t = &j->lm;
    struct arena *const a = &j->arena;
    const struct extent s = j->shape;

    t->lm.block = s.B; /* one position of each sequence has logits */
    TRY(lm_bind(&t->lm, &j->engine, j->kind, s, a, e));
    const size_t n = job_elements(s.B, tokens_read(j), 1);
    t->tokens = arena_take(a, PART_ACTIVATIONS, n * sizeof(int32_t));
    t->run = arena_take(a, PART_ACTIVATIONS, n * sizeof(int32_t));
    t->targets = arena_take(a, PART_ACTIVATIONS, job_elements(s.B, 1, 1) * sizeof(int32_t));
    t->nll = arena_f32(a, PART_ACTIVATIONS, job_elements(s.B, 1, 1));
    t->all = arena_f32(a, PART_ACTIVATIONS, job_elements(s.B, new_tokens(j), width(j)));
    j->n_marks = new_tokens(j) + 1;
    j->mark_ns = arena_take(a, PART_SCRATCH, (size_t)j->n_marks * sizeof(*j->mark_ns));
    job_set_output(j, t->all, new_tokens(j), width(j));
    return OK;
}

static void fill(struct job *j)
{
    struct lm_job *const t = &j->lm;

    lm_build_tables(&t->lm, &j->engine);
    job_draw_tokens(j, "tokens", t->tokens, job_elements(j->shape.B, tokens_read(j), 1));
    job_draw_tokens(j, "targets", t->targets, (size_t)j->shape.B);
}

/* ---- running ------------------------------------------------------------------------------- */

static void mark(const struct job *j, int i)
{
    if (j->clock_ns)
        j->mark_ns[i] = j->clock_ns();
}

/* Of each sequence the tokens of a span, without gaps. */
static const int32_t *tokens_of(const struct job *j, struct span s)
{
    const struct lm_job *const t = &j->lm;
    const int n = s.end - s.first;

    for (int b = 0; b < j->shape.B; b++)
        memcpy(t->run + (ptrdiff_t)b * n, t->tokens + (ptrdiff_t)b * tokens_read(j) + s.first,
               sizeof(*t->run) * (size_t)n);
    return t->run;
}

/* The t-th row of each sequence of the output. */
static void keep(const struct job *j, int t)
{
    const struct lm_job *const o = &j->lm;
    const ptrdiff_t n = width(j);

    for (int b = 0; b < j->shape.B; b++)
        memcpy(o->all + ((ptrdiff_t)b * new_tokens(j) + t) * n,
               has_logits(j) ? o->lm.logits + b * n : o->nll + b, sizeof(*o->all) * (size_t)n);
}

static void forward(struct job *j)
{
    struct lm_job *const o = &j->lm;

    mark(j, 0);
    lm_forget(&o->lm);
    for (int t = 0; t < new_tokens(j); t++) {
        const struct span s = span_of(j, t);
        const int n = s.end - s.first;
        lm_forward(&o->lm, &j->engine, tokens_of(j, s), j->shape.B, n, 1,
                   has_logits(j) ? NULL : o->targets, has_logits(j) ? NULL : o->nll);
        keep(j, t);
        if (!reruns(j))
            lm_commit(&o->lm, n);
        mark(j, t + 1);
    }
}

/* ---- costs --------------------------------------------------------------------------------- */

static double flop(const struct job *j)
{
    double sum = 0;

    for (int t = 0; t < new_tokens(j); t++) {
        const struct span s = span_of(j, t);
        sum += lm_flop(&j->lm.lm, j->shape.B, s.end - s.first, s.first, 1);
    }
    return sum;
}

/* What is remembered of so many tokens. */
static size_t memory_of(const struct job *j, int tokens)
{
    return job_memory_bytes(j, &j->lm.lm.sublayers, tokens) + 4 * lm_carried(&j->lm.lm, j->shape.B);
}

/* Each operand once for every new token: of rows that are remembered those that are there by then, of
 * states all. */
static double bytes(const struct job *j)
{
    const double weights = job_bytes_of_weights(j) - (double)j->arena.part[PART_MEMORY];
    double sum = 4.0 * (double)j->n_out;

    for (int t = 0; t < new_tokens(j); t++) {
        const struct span s = span_of(j, t);
        sum += weights - lm_unread_bytes(&j->lm.lm, j->shape.B * (s.end - s.first));
        if (s.first > 0)
            sum += (double)memory_of(j, s.first);
    }
    return sum;
}

static size_t predicted_bytes(const struct job *j) { return memory_of(j, j->shape.M); }

static void impl(const struct job *j, char names[IMPL_TEXT]) { lm_impl(&j->lm.lm, false, names); }

static void close_request(struct job *j) { lm_free(&j->lm.lm); }

/* Rows that attention by content copies differ from token to token: they are not counted. */
const struct workload_ops workload_request = {
    .err_limit = 1e-4,
    .declare = declare,
    .bind = bind,
    .fill = fill,
    .forward = forward,
    .flop = flop,
    .bytes = bytes,
    .predicted_bytes = predicted_bytes,
    .impl = impl,
    .close = close_request,
};
