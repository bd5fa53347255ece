/* SPDX-License-Identifier: MIT
 *
 * The training step, and the binding before it. */
#include "train.h"

#include "harness/plan/case.h"
#include "score.h"

#include <math.h>
#include <string.h>

/* ---- model and texts ---------------------------------------------------------------------- */

static enum mem_kind trains_with(const struct mem *m, int mem)
{
    if (m->recurrent)
        return MEM_HIDDEN;
    return m->state && mem != 0 && !mem_reruns(m, MEM_STATE, mem) ? MEM_STATE : MEM_RECOMPUTE;
}

enum status train_config(struct config *to, const struct variant *v, const struct options *opt,
                         int vocab, struct err *e)
{
    const int mem = opt->mem.v[0];
    const int mem_len = v->mem->recurrent || v->mem->state ? max_int(0, mem) : 0;
    struct taken taken = {0};
    enum status st = config_from_options(to, v, opt, mem_len, opt->layers.v[0], vocab, SCOPE_MODEL,
                                         false, NULL, e);

    if (st == OK) {
        taken_add(&taken, to, SCOPE_MODEL);
        st = taken_check(&taken, opt, v->name, e);
    }
    if (st == OK)
        st = past_is_carried(to, mem, e);
    if (st != OK)
        return st;
    to->max_seq = opt->seq.v[0];
    if (trains_with(config_mem(to), mem) == MEM_RECOMPUTE) { /* the past is a part of the window */
        to->max_seq += mem;
        to->mem_len = 0;
    }
    /* A stream that is never normalised needs a norm at the end. */
    to->final_ln = wiring_norms_first(to->wiring) && !v->bare_top;
    if (!to->causal)
        return fail(e, E_UNSUPPORTED,
                    "%s is bidirectional: tokens see those that they are to predict  -> a causal "
                    "model",
                    v->name);
    return OK;
}

/* A generated text is as long as the run needs it, up to a bound; then it starts again. */
static size_t symbols_needed(const struct options *o)
{
    enum { LONGEST = 1 << 26, SHORTEST = 1 << 16 };
    const double need = (double)o->steps * o->batch.v[0] * o->seq.v[0] + 1;

    return o->minutes > 0 || need > LONGEST ? LONGEST : need < SHORTEST ? SHORTEST : (size_t)need;
}

static enum status open_texts(struct trainer *t, struct err *e)
{
    enum { VALID_SHARE = 20, MAX_VALID = 32768 };
    const struct options *o = t->opt;
    const bool generated = synthetic_named(o->corpus);
    enum status st = corpus_open(&t->corpus, o->corpus, SPLIT_TRAIN,
                                 o->bytes    ? (size_t)o->bytes
                                 : generated ? symbols_needed(o)
                                             : 0,
                                 e);

    if (st != OK)
        return st;
    t->text = (struct text_part){t->corpus.bytes, t->corpus.n};
    if (generated || o->valid) {
        st = corpus_open(&t->valid_corpus, o->valid ? o->valid : o->corpus, SPLIT_VALID, 0, e);
        t->valid = (struct text_part){t->valid_corpus.bytes, t->valid_corpus.n};
    } else {
        const size_t n = t->corpus.n / VALID_SHARE;
        t->text.n -= n;
        t->valid = (struct text_part){t->corpus.bytes + t->text.n, n};
    }
    if (st == OK && t->valid.n > MAX_VALID)
        t->valid.n = MAX_VALID;
    if (st == OK && (t->text.n / (size_t)t->B <= (size_t)t->L || t->valid.n < 2))
        st = fail(e, E_USAGE,
                  "text %s: %zu symbols are too few for --batch %d --seq %d  -> lower them",
                  t->corpus.name, t->corpus.n, t->B, t->L);
    return st;
}

/* ---- binding ------------------------------------------------------------------------------ */

static enum status bind_all(struct trainer *t, struct err *e)
{
    const int window = t->past + t->L;
    const struct extent max = {t->B, window, t->M}, one = {1, window, t->M};
    const size_t rows = (size_t)t->B * (size_t)window;
    struct arena *a = &t->arena;
    enum status st = lm_bind(&t->lm, &t->engine, t->kind, max, a, e);

    if (st == OK)
        st = lm_bind_grad(&t->lm, &t->engine, a, e);
    if (st != OK)
        return st;
    adam_bind(&t->adam, &t->lm.params, a);
    params_borrow(&t->valid_lm.params, &t->lm.params);
    st = lm_bind(&t->valid_lm, &t->engine, t->kind, one, a, e);
    t->tokens = arena_take(a, PART_ACTIVATIONS, rows * sizeof(int32_t));
    t->targets = arena_take(a, PART_ACTIVATIONS, rows * sizeof(int32_t));
    t->nll = arena_f32(a, PART_ACTIVATIONS, rows);
    return st;
}

static enum status place(void *arg, void *base, size_t size, struct err *e)
{
    const struct trainer *t = arg;

    return topo_membind(t->topo, t->opt->membind, t->team.first_cpu, base, size, e);
}

static enum status open_engine(struct trainer *t, struct err *e)
{
    const struct options *o = t->opt;
    enum status st = topo_open(&t->topo, NULL, e);

    if (st == OK)
        st = pin_team(&t->team, t->topo, o->pin, o->threads.v[0], e);
    if (st == OK)
        st = engine_open(&t->engine, o->backends.v[0], o->threads.v[0], o->impl, e);
    return st;
}

static enum status open_model(struct trainer *t, struct err *e)
{
    const struct options *o = t->opt;
    struct config c;
    enum status st = train_config(&c, variant_find(o->variants.v[0]), o, t->corpus.vocab, e);

    if (st == OK)
        st = lm_init(&t->lm, &c, e);
    t->M = c.mem_len;
    t->kind = trains_with(config_mem(&c), o->mem.v[0]);
    t->past = t->kind == MEM_RECOMPUTE ? o->mem.v[0] : 0;
    t->adam.weight_decay = o->weight_decay;
    if (st == OK)
        st = lm_init(&t->valid_lm, &c, e);
    if (st == OK)
        st = bind_all(t, e);
    if (st == OK)
        st = arena_place(&t->arena, (enum huge_pages)o->huge_pages, place, t, e);
    if (st == OK)
        st = bind_all(t, e);
    if (st != OK)
        return st;
    params_init_training(&t->lm.params, o->seed);
    adam_reset(&t->adam, &t->lm.params);
    t->lm.drop = (struct dropout){.p = (float)o->dropout, .seed = o->seed};
    lm_build_tables(&t->lm, &t->engine);
    return OK;
}

enum status trainer_open(struct trainer *t, const struct options *opt, struct err *e)
{
    *t = (struct trainer){
        .opt = opt, .B = opt->batch.v[0], .L = opt->seq.v[0], .best_valid = INFINITY};
    enum status st = open_engine(t, e);
    if (st == OK)
        st = open_texts(t, e);
    return st == OK ? open_model(t, e) : st;
}

void trainer_close(struct trainer *t)
{
    adam_free(&t->adam);
    lm_free(&t->lm);
    lm_free(&t->valid_lm);
    arena_release(&t->arena);
    corpus_close(&t->corpus);
    corpus_close(&t->valid_corpus);
    topo_close(t->topo);
}

/* ---- one step ----------------------------------------------------------------------------- */

double train_lr(const struct options *opt, int step, double progress)
{
    const double floor = 0.1, pi = 3.14159265358979;
    const double warm = step < opt->lr_warmup ? (double)step / opt->lr_warmup : 1;

    if (opt->schedule == LR_CONSTANT)
        return opt->lr * warm;
    return opt->lr * warm * (floor + (1 - floor) * 0.5 * (1 + cos(pi * fmin(1, progress))));
}

/* Tokens that are run again in front of the one at `at`. */
static int past_at(const struct trainer *t, size_t at)
{
    return at < (size_t)t->past ? (int)at : t->past;
}

size_t trainer_position(const struct trainer *t)
{
    const size_t part = (t->text.n - 1) / (size_t)t->B, segments = part / (size_t)t->L;

    return (size_t)t->adam.step % segments * (size_t)t->L;
}

/* Sequence b reads its own contiguous part of the text, one segment per step; at the end of the
 * parts all of them start again with empty memory. Returns the tokens of past of each. */
static int next_batch(struct trainer *t)
{
    const size_t part = (t->text.n - 1) / (size_t)t->B, at = trainer_position(t);
    const int past = past_at(t, at), n = past + t->L;

    if (at == 0)
        lm_forget(&t->lm);
    for (int b = 0; b < t->B; b++) {
        const uint8_t *from = t->text.at + (size_t)b * part + at - past;
        for (int i = 0; i < n; i++) {
            t->tokens[b * n + i] = from[i];
            t->targets[b * n + i] = from[i + 1];
        }
    }
    return past;
}

/* Mean nats of the new tokens of each sequence, the last of n. */
static double mean_of_new(const struct trainer *t, int n)
{
    double sum = 0;

    for (int b = 0; b < t->B; b++)
        for (int i = n - t->L; i < n; i++)
            sum += (double)t->nll[b * n + i];
    return sum / (t->B * t->L);
}

struct step_report trainer_step(struct trainer *t, double progress)
{
    const struct options *o = t->opt;
    struct step_report r = {.lr = train_lr(o, t->adam.step + 1, progress)};
    const int n = next_batch(t) + t->L;

    lm_forward(&t->lm, &t->engine, t->tokens, t->B, n, n, t->targets, t->nll);
    r.loss = mean_of_new(t, n);
    params_zero_grad(&t->lm.params);
    lm_backward(&t->lm, &t->engine, t->tokens, t->targets, t->B, n);
    lm_commit(&t->lm, t->L);
    r.grad_norm = grad_norm(&t->lm.params, t->engine.threads);
    const bool clip = o->grad_clip > 0 && r.grad_norm > o->grad_clip;
    adam_step(&t->adam, &t->lm.params, r.lr, clip ? o->grad_clip / r.grad_norm : 1,
              t->engine.threads);
    t->lm.drop.step = (uint64_t)t->adam.step;
    lm_build_tables(&t->lm, &t->engine);
    return r;
}

/* ---- validation --------------------------------------------------------------------------- */

/* Nats of n tokens of the validation text after `at` under the true source; those that are answers
 * go to `a`, as t->nll has them. */
static double synthetic_floor(const struct trainer *t, size_t at, int n, struct source_memo *memo,
                              struct answers *a)
{
    const struct synthetic *const s = &t->valid_corpus.synthetic;
    double sum = 0;

    for (int i = 0; i < n; i++) {
        const size_t target = at + (size_t)i + 1;
        const size_t reach =
            t->kind == MEM_STATE
                ? target
                : synthetic_reach(t->past > 0, t->lm.c.N, max_int(t->past, t->M), t->L, i);
        const double nll =
            synthetic_nll(s, t->valid.at, target, reach < target ? reach : target, memo);
        sum += nll;
        if (synthetic_answers(s, t->valid.at, target))
            answers_add(a, (double)t->nll[i], nll);
    }
    return sum;
}

struct validation trainer_validate(struct trainer *t)
{
    const size_t tokens = t->valid.n - 1;
    struct source_memo memo = {0};
    struct answers a = {0};
    double sum = 0, floor = 0;

    lm_build_tables(&t->valid_lm, &t->engine);
    lm_forget(&t->valid_lm);
    for (size_t at = 0; at < tokens; at += (size_t)t->L) {
        const int n = tokens - at < (size_t)t->L ? (int)(tokens - at) : t->L;
        const int past = past_at(t, at);
        const uint8_t *const from = t->valid.at + at;
        for (int i = 0; i < past + n; i++)
            t->tokens[i] = from[i - past];
        for (int i = 0; i < n; i++)
            t->targets[i] = from[i + 1];
        lm_forward(&t->valid_lm, &t->engine, t->tokens, 1, past + n, n, t->targets, t->nll);
        lm_commit(&t->valid_lm, n);
        for (int i = 0; i < n; i++)
            sum += (double)t->nll[i];
        if (t->valid_corpus.generated)
            floor += synthetic_floor(t, at, n, &memo, &a);
    }
    return (struct validation){.nll = sum / (double)tokens,
                               .floor = t->valid_corpus.generated ? floor / (double)tokens : NAN,
                               .answers = answers_mean(a)};
}
