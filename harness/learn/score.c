/* SPDX-License-Identifier: MIT
 *
 * Scoring. */
#include "score.h"

#include "harness/machine/clock.h"

#include "variants/model/lm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct stream {
    const struct scorer *s;
    struct lm lm;
    struct arena arena;
    struct corpus corpus;
    enum mem_kind kind;
    int L, M;                  /* M may be MEM_ALL */
    int past;                  /* most tokens that are run again in front of a segment */
    int32_t *tokens, *targets; /* [past+L] */
    float *nll;                /* [L] */
    double place[SCORE_PLACES], placed[SCORE_PLACES]; /* sum of nll, and tokens */
};

enum status past_is_carried(const struct config *c, int M, struct err *e)
{
    if (M != MEM_ALL || mem_can(config_mem(c), MEM_STATE))
        return OK;
    return fail(e, E_USAGE, "--mem all is not for %s, which carries no state  -> a number",
                c->variant->name);
}

enum status score_mem_kind(enum mem_kind *kind, const struct config *c, const struct options *opt,
                           int M, struct err *e)
{
    const struct mem *const mem = config_mem(c);
    const char *word = opt->mem_kinds.n > 0 ? opt->mem_kinds.v[0] : "auto";

    if (past_is_carried(c, M, e) != OK)
        return E_USAGE;
    if (M == MEM_ALL && strcmp(word, mem_kind_name[MEM_RECOMPUTE]) == 0)
        return fail(e, E_USAGE, "--mem all --mem-kind %s: all is in a state  -> --mem-kind state",
                    word);
    *kind = mem_usual(mem, false);
    if (strcmp(word, "auto") == 0)
        return OK;
    for (int k = 0; k < MEM_KIND_COUNT; k++)
        if (strcmp(mem_kind_name[k], word) == 0 && mem_can(mem, (enum mem_kind)k)) {
            *kind = (enum mem_kind)k;
            return OK;
        }
    return fail(e, E_USAGE, "--mem-kind %s is not for %s  -> %s", word, c->variant->name,
                mem->state       ? "state or recompute"
                : mem->recurrent ? "hidden or kv"
                                 : "recompute");
}

/* ---- binding ------------------------------------------------------------------------------ */

static enum status configure(struct stream *t, const struct safetensors *file, struct config *c,
                             struct err *e)
{
    const struct corpus *text = &t->corpus;
    enum status st = checkpoint_lm(file, c, e);

    if (st == OK)
        st = score_mem_kind(&t->kind, c, t->s->opt, t->M, e);
    if (st != OK)
        return st;
    if (c->V != text->vocab)
        return fail(e, E_IO,
                    "checkpoint %s: vocabulary of %d, text %s has %d %ss  -> the text it was "
                    "made for",
                    file->path, c->V, text->name, text->vocab, text->unit);
    const bool reruns = mem_reruns(config_mem(c), t->kind, t->M);
    t->past = reruns ? t->M : 0;
    if (c->pos->positions && t->L + t->past > c->pos->positions(c))
        return fail(e, E_USAGE,
                    "checkpoint %s has positions for %d tokens, --seq %d --mem %d needs "
                    "%d  -> lower them",
                    file->path, c->pos->positions(c), t->L, t->M, t->L + t->M);
    if (!reruns) /* else the past is part of the window, as it was in training */
        c->mem_len = max_int(0, t->M);
    if (c->same_length && t->M > 0)
        c->window = t->M;
    return OK;
}

static enum status bind_all(struct stream *t, struct err *e)
{
    const bool reruns = mem_reruns(config_mem(&t->lm.c), t->kind, t->M);
    const int window = t->L + t->past;
    const struct extent max = {1, window, reruns ? 0 : max_int(0, t->M)};
    struct arena *a = &t->arena;
    /* A state that decays has no length: it is carried, or dropped if no past was asked for. */
    const enum mem_kind kind = reruns || (t->kind == MEM_STATE && t->M == 0) ? MEM_NONE : t->kind;
    const enum status st = lm_bind(&t->lm, &t->s->engine, kind, max, a, e);

    t->tokens = arena_take(a, PART_ACTIVATIONS, (size_t)window * sizeof(int32_t));
    t->targets = arena_take(a, PART_ACTIVATIONS, (size_t)window * sizeof(int32_t));
    t->nll = arena_f32(a, PART_ACTIVATIONS, (size_t)t->L);
    return st;
}

static enum status place(void *arg, void *base, size_t size, struct err *e)
{
    const struct scorer *s = arg;

    return topo_membind(s->topo, s->opt->membind, s->team.first_cpu, base, size, e);
}

static enum status open_stream(struct stream *t, struct safetensors *file, struct err *e)
{
    const struct options *o = t->s->opt;
    struct config c;
    enum status st = configure(t, file, &c, e);

    if (st == OK)
        st = lm_init(&t->lm, &c, e);
    if (st == OK)
        st = bind_all(t, e);
    if (st == OK)
        st = arena_place(&t->arena, (enum huge_pages)o->huge_pages, place, (void *)t->s, e);
    if (st == OK)
        st = bind_all(t, e);
    if (st == OK)
        st = checkpoint_load(file, "", &t->lm.params, e);
    if (st == OK)
        lm_build_tables(&t->lm, &t->s->engine);
    return st;
}

/* ---- scoring ------------------------------------------------------------------------------ */

/* Of token i of a segment, from 0. */
static int place_of(int i)
{
    int at = 0;

    for (i++; i > 1 && at < SCORE_PLACES - 1; i /= 2)
        at++;
    return at;
}

/* Sum of the nll of bytes at+1 .. at+n. */
static double segment(struct stream *t, size_t at, int n)
{
    const struct engine *g = &t->s->engine;
    const int past = at < (size_t)t->past ? (int)at : t->past;
    const uint8_t *text = t->corpus.bytes + at;
    double sum = 0;

    for (int i = 0; i < past + n; i++)
        t->tokens[i] = text[i - past];
    for (int i = 0; i < n; i++)
        t->targets[i] = text[i + 1];
    lm_forward(&t->lm, g, t->tokens, 1, past + n, n, t->targets, t->nll);
    lm_commit(&t->lm, n);
    for (int i = 0; i < n; i++) {
        const int k = place_of(i);
        sum += (double)t->nll[i];
        t->place[k] += (double)t->nll[i];
        t->placed[k]++;
    }
    return sum;
}

void score_interval(struct score *r, const double *sum, const int *n, size_t segments)
{
    double square = 0;

    for (size_t i = 0; i < segments; i++) {
        const double off = sum[i] - n[i] * r->nll;
        square += off * off;
    }
    const double half =
        segments > 1
            ? 1.959964 * sqrt(square * (double)segments / (double)(segments - 1)) / r->tokens
            : NAN;
    r->nll_low = r->nll - half;
    r->nll_high = r->nll + half;
}

/* Nats of the n tokens after `at` under the true source; those that are answers go to `a`. */
static double synthetic_segment(const struct stream *t, size_t at, int n, struct source_memo *memo,
                                struct answers *a)
{
    const struct synthetic *const s = &t->corpus.synthetic;
    double sum = 0;

    for (int i = 0; i < n; i++) {
        const size_t target = at + (size_t)i + 1;
        const size_t reach = t->lm.kind == MEM_STATE ? target
                                                     : synthetic_reach(t->past > 0, t->lm.c.N,
                                                                       max_int(0, t->M), t->L, i);
        const double nll =
            synthetic_nll(s, t->corpus.bytes, target, reach < target ? reach : target, memo);
        sum += nll;
        if (synthetic_answers(s, t->corpus.bytes, target))
            answers_add(a, (double)t->nll[i], nll);
    }
    return sum;
}

/* Tell the share that is done, but not so often that it takes time. */
static void tell(const struct scorer *s, double share, int64_t *told_ns)
{
    const int64_t now = clock_wall_ns(), again_ns = 250000000;

    if (!s->at || now - *told_ns < again_ns)
        return;
    s->at(s->arg, share);
    *told_ns = now;
}

static void score_all(struct stream *t, struct score *r, double *sum, int *n)
{
    const size_t tokens = t->corpus.n - 1;
    const int64_t start = clock_wall_ns();
    int64_t told_ns = start;
    size_t segments = 0;
    struct source_memo memo = {0};
    struct answers a = {0};
    double total = 0, floor = 0;

    for (size_t at = 0; at < tokens; at += (size_t)t->L, segments++) {
        n[segments] = tokens - at < (size_t)t->L ? (int)(tokens - at) : t->L;
        sum[segments] = segment(t, at, n[segments]);
        total += sum[segments];
        tell(t->s, (double)at / (double)tokens, &told_ns);
        if (t->corpus.generated)
            floor += synthetic_segment(t, at, n[segments], &memo, &a);
    }
    *r = (struct score){.nll = total / (double)tokens,
                        .floor = t->corpus.generated ? floor / (double)tokens : NAN,
                        .answers = answers_mean(a),
                        .tokens = (double)tokens,
                        .segments = (double)segments,
                        .eval_ns = (double)(clock_wall_ns() - start)};
    for (int i = 0; i < SCORE_PLACES; i++)
        r->nll_at[i] = t->placed[i] > 0 ? t->place[i] / t->placed[i] : NAN;
    score_interval(r, sum, n, segments);
}

enum status score_run(struct scorer *s, enum split split, struct err *e)
{
    const struct options *o = s->opt;
    struct stream t = {.s = s, .L = o->seq.v[0], .M = o->mem.v[0]};
    struct safetensors file = {0};
    const int threads = o->threads.v[0];
    double *sum = NULL;
    int *n = NULL;
    enum status st = pin_team(&s->team, s->topo, o->pin, threads, e);

    if (st == OK)
        st = engine_open(&s->engine, o->backends.v[0], threads,
                         strcmp(o->backends.v[0], backend_ref.name) == 0 ? NULL : o->impl, e);
    if (st == OK)
        st = corpus_open(&t.corpus, o->corpus, split, (size_t)o->bytes, e);
    if (st == OK)
        st = safetensors_open(&file, o->ckpt, e);
    if (st == OK) {
        st = open_stream(&t, &file, e);
        safetensors_close(&file);
    }
    if (st == OK) {
        const size_t most = t.corpus.n / (size_t)t.L + 1;
        sum = calloc(most, sizeof(*sum));
        n = calloc(most, sizeof(*n));
        if (!sum || !n)
            st = fail(e, E_NOMEM, "no memory for the losses of %zu segments", most);
    }
    if (st == OK && sum && n) {
        score_all(&t, &s->score, sum, n);
        const char *backward;
        sublayers_impl(&t.lm.sublayers, &s->impl, &backward);
    }
    free(sum);
    free(n);
    lm_free(&t.lm);
    arena_release(&t.arena);
    corpus_close(&t.corpus);
    return st;
}
