/* SPDX-License-Identifier: MIT
 *
 * Scores a text, segment by segment. */
#include "score.h"
#include "counting.h"
#include "divergence.h"
#include "texts.h"

#include "harness/machine/clock.h"
#include "harness/plan/case.h"
#include "heads.h"
#include "losses.h"
#include "masked.h"
#include "pairs.h"
#include "score_notes.h"
#include "window_sums.h"

#include "variants/model/lm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The logits of a long segment over so many words would be larger than the model. */
enum { LARGE_VOCABULARY = 1 << 13, ROWS_AT_ONCE = 64 };

struct stream {
    struct scorer *s;
    struct weights weights; /* until the model has them */
    struct lm lm;
    bool compares;      /* with the same model in f32: */
    struct lm exact;    /* that model */
    const float *state; /* what its logits are made of, for the positions that are scored */
    struct divergence apart;
    int64_t comparing_ns; /* that both took */
    struct arena arena;
    struct corpus corpus;
    struct texts text;
    enum mem_kind kind;
    bool zeros; /* memory begins so */
    int batch;
    int L, M;                   /* M may be MEM_ALL */
    int past;                   /* most tokens that are run again in front of a segment */
    int32_t *tokens, *targets;  /* [batch,past+L] */
    float *nll;                 /* [batch,L] */
    float *losses;              /* of all tokens, or NULL */
    int32_t *ran;               /* how many layers each of these ran; NULL without losses */
    bool stops;                 /* some may not run all */
    double mask_share;          /* of tokens that are hidden and scored; 0 = the next one is */
    int32_t *places;            /* [L] of hidden tokens; NULL = none are */
    uint64_t window;            /* its number */
    struct pairs pairs;         /* target 0: no encoder and decoder */
    int32_t *source;            /* [pairs.source] */
    struct layers_count layers; /* that positions ran where they may stop */
    struct heads heads;         /* watched for --attention */
    double place[SCORE_PLACES], placed[SCORE_PLACES]; /* sum of nll, and tokens */
};

/* ---- binding ------------------------------------------------------------------------------ */

/* Pairs are scored one by one, each whole. */
static enum status configure_pairs(struct stream *t, struct err *e)
{
    const enum status st = score_pairs_check(t->s->opt, t->M, e);

    if (st != OK || pairs_of(&t->pairs, &t->corpus, e) != OK)
        return E_USAGE;
    if (t->L != t->pairs.target)
        return fail(e, E_USAGE, "targets of %s have %d symbols  -> use --seq %d", t->corpus.name,
                    t->pairs.target, t->pairs.target);
    t->batch = 1;
    return OK;
}

static enum status configure(struct stream *t, const struct weights *w, struct config *c,
                             struct err *e)
{
    const char *const ckpt = t->s->opt->ckpt;
    const int begin = t->s->opt->mem_begin;

    *c = w->config;
    enum status st = config_at_eval(c, t->s->opt, NULL, e);
    if (st == OK)
        st = score_mem_kind(&t->kind, c, t->s->opt, t->M, e);
    if (st != OK)
        return st;
    if ((st = texts_fit(&t->text, t->s->opt, t->corpus.name, c->V - (t->mask_share > 0), e)) != OK)
        return st;
    if (t->mask_share > 0 && (st = score_masked_check(t->s->opt, t->M, e)) != OK)
        return st;
    if (c->enc_layers && (st = configure_pairs(t, e)) != OK)
        return st;
    t->zeros = begin ? begin == MEM_BEGIN_ZEROS : c->mem_start == MEM_START_ZEROS;
    const bool reruns = mem_reruns(config_mem(c), t->kind, t->M);
    t->past = reruns ? t->M : 0;
    if (c->pos->positions && t->L + t->past > c->pos->positions(c))
        return fail(e, E_USAGE,
                    "checkpoint %s has positions for %d tokens, --seq %d --mem %d needs "
                    "%d  -> lower them",
                    ckpt, c->pos->positions(c), t->L, t->M, t->L + t->M);
    if (!reruns) /* else the past is part of the window, as it was in training */
        c->mem_len = max_int(0, t->M);
    see_past(c, t->M);
    return OK;
}

/* Its numbers are narrower than f32 somewhere, and it has one row of logits a token. */
static bool is_comparable(const struct lm *m)
{
    const struct config *const c = &m->c;

    return (c->dtype != ELEM_F32 || c->kv_dtype != ELEM_F32 || c->act_dtype != ROWS_F32) &&
           lm_has_logits(m) && !m->drive->heads;
}

static enum status init_exact(struct stream *t, struct err *e)
{
    struct config c = t->lm.c;

    c.dtype = c.kv_dtype = ELEM_F32;
    c.act_dtype = ROWS_F32;
    t->compares = true;
    enum status st = lm_init(&t->exact, &c, e);
    if (st == OK)
        st = params_hold(&t->exact.params, c.dtype, c.act_dtype, &t->s->engine, e);
    t->exact.block = t->lm.block;
    return st;
}

static enum status bind_all(void *arg, struct err *e)
{
    struct stream *const t = arg;
    const bool reruns = mem_reruns(config_mem(&t->lm.c), t->kind, t->M);
    const int window = t->L + t->past;
    const struct extent max = {t->batch, window,
                               t->pairs.target ? t->pairs.source
                               : reruns        ? 0
                                               : max_int(0, t->M)};
    struct arena *a = &t->arena;
    const enum mem_kind kind = reruns || t->pairs.target ? MEM_NONE : t->kind;

    engine_bind(&t->s->engine, a);
    enum status st = lm_bind(&t->lm, &t->s->engine, kind, max, a, e);

    if (st == OK && t->compares)
        st = lm_bind(&t->exact, &t->s->engine, kind, max, a, e);
    t->tokens =
        arena_take(a, PART_ACTIVATIONS, (size_t)t->batch * (size_t)window * sizeof(int32_t));
    t->targets =
        arena_take(a, PART_ACTIVATIONS, (size_t)t->batch * (size_t)window * sizeof(int32_t));
    t->nll = arena_f32(a, PART_ACTIVATIONS, (size_t)t->batch * (size_t)t->L);
    t->places = t->mask_share > 0
                    ? arena_take(a, PART_ACTIVATIONS, (size_t)t->L * sizeof(*t->places))
                    : NULL;
    t->source = arena_take(a, PART_ACTIVATIONS, (size_t)t->pairs.source * sizeof(*t->source));
    t->lm.source = t->exact.source = t->source;
    return st;
}

static enum status place(void *arg, void *base, size_t size, struct err *e)
{
    const struct scorer *const s = ((const struct stream *)arg)->s;

    return topo_membind(s->topo, s->opt->membind, s->team.first_cpu, base, size, e);
}

static enum status open_stream(struct stream *t, const struct weights *w, struct err *e)
{
    const struct options *o = t->s->opt;
    struct engine *const g = &t->s->engine;
    struct config c;

    TRY(configure(t, w, &c, e));
    TRY(lm_init(&t->lm, &c, e));
    TRY(params_hold(&t->lm.params, c.dtype, c.act_dtype, g, e));
    if (c.V > LARGE_VOCABULARY)
        t->lm.block = ROWS_AT_ONCE;
    if (is_comparable(&t->lm))
        TRY(init_exact(t, e));
    TRY(lm_place(&t->arena, (enum huge_pages)o->huge_pages, bind_all, place, t, e));
    TRY(lm_load(&t->lm, w, g, e));
    if (t->compares)
        TRY(lm_load(&t->exact, w, g, e));
    /* What cannot be is said before anything is scored. */
    return t->zeros ? lm_zeros(&t->lm, g, t->batch, e) : OK;
}

/* ---- scoring ------------------------------------------------------------------------------ */

/* The place of token i of a segment, from 0. */
static int place_of(int i)
{
    int at = 0;

    for (i++; i > 1 && at < SCORE_PLACES - 1; i /= 2)
        at++;
    return at;
}

static void count_layers(struct stream *t)
{
    const struct layers_run run = lm_layers_run(&t->lm);

    layers_count(&t->layers, &run);
}

/* The past of a document's first token. */
static void begin_one(struct stream *t, struct lm *m)
{
    struct err never;

    lm_forget(m);
    if (t->zeros)
        CHECK(lm_zeros(m, &t->s->engine, t->batch, &never) == OK);
}

static void begin(struct stream *t)
{
    begin_one(t, &t->lm);
    if (t->compares)
        begin_one(t, &t->exact);
}

/* A see_logits: those of rows [at, at + n) beside those in f32. */
static void compare(void *arg, const float *logits, int at, int n)
{
    struct stream *const t = arg;
    const struct engine *const g = &t->s->engine;
    const int64_t start = clock_wall_ns();

    lm_score(&t->exact, g, t->state + (ptrdiff_t)at * t->lm.c.D, NULL, NULL, n);
    divergence_add(&t->apart, t->exact.logits, logits, n, t->lm.c.V, g->threads);
    t->comparing_ns += clock_wall_ns() - start;
}

/* nll of the last `scored` of `read` tokens of B streams; with 0 only what is remembered counts. */
static enum status forward(struct stream *t, int B, int read, int scored, struct err *e)
{
    const struct engine *const g = &t->s->engine;
    const int64_t start = clock_wall_ns();

    if (t->compares) {
        t->exact.picked = t->lm.picked;
        t->exact.n_picked = t->lm.n_picked;
        t->state = lm_hidden(&t->exact, g, t->tokens, B, read, scored ? scored : 1);
        t->lm.see_logits = scored ? compare : NULL;
        t->lm.see_arg = t;
        t->comparing_ns += clock_wall_ns() - start;
        if (divergence_room(&t->apart, (size_t)B * (size_t)scored, e) != OK)
            return E_NOMEM;
    }
    heads_pass(&t->heads, read - scored);
    lm_forward(&t->lm, g, t->tokens, B, read, scored ? scored : 1, scored ? t->targets : NULL,
               scored ? t->nll : NULL);
    count_layers(t);
    return t->s->opt->attention ? heads_seen(&t->heads, e) : OK;
}

/* What a window adds: nats, what they are divided by, tokens with a probability. */
struct summand {
    double sum, tokens, scored;
};

/* The hidden tokens of a window. */
static enum status run_masked(struct stream *t, const struct window *w, struct summand *to,
                              struct err *e)
{
    const int first = w->read - w->scored; /* what stands in front of a text is not hidden */
    const int hidden = w->scored ? masked_count(t->mask_share, w->scored) : 0;

    *to = (struct summand){.tokens = hidden, .scored = hidden};
    if (!hidden)
        return OK;
    memcpy(t->tokens, t->text.ids + w->at, sizeof(int32_t) * (size_t)w->read);
    masked_hide(hidden, MASKED_SCORED, t->window++, t->lm.c.V - 1, t->tokens + first, w->scored,
                t->places, t->targets);
    for (int i = 0; i < hidden; i++)
        t->places[i] += first;
    t->lm.picked = t->places;
    t->lm.n_picked = hidden;
    begin(t);
    const enum status st = forward(t, 1, w->read, w->read, e);
    for (int i = 0; i < hidden && st == OK; i++) {
        const int k = place_of(t->places[i] - first);
        to->sum += (double)t->nll[i];
        t->place[k] += (double)t->nll[i];
        t->placed[k]++;
    }
    return st;
}

/* One window; its streams are `part` ids apart. */
static enum status run_window(struct stream *t, const struct window *w, size_t part,
                              struct summand *to, struct err *e)
{
    const int32_t *const ids = t->text.ids + w->at;
    double sum = 0;

    if (w->fresh)
        begin(t);
    for (int b = 0; b < t->batch; b++) {
        const int32_t *const from = ids + (size_t)b * part;
        memcpy(t->tokens + b * w->read, from, sizeof(int32_t) * (size_t)w->read);
        memcpy(t->targets + b * w->scored, from + w->read - w->scored + 1,
               sizeof(int32_t) * (size_t)w->scored);
        if (t->text.over >= 0)
            t->tokens[b * w->read] = t->text.over;
    }
    const enum status st = forward(t, t->batch, w->read, w->scored, e);
    if (st != OK)
        return st;
    if (t->M != 0) { /* else segments are seen alone, whatever a model could carry */
        lm_commit(&t->lm, w->fresh_ids);
        if (t->compares)
            lm_commit(&t->exact, w->fresh_ids);
    }
    if (t->losses) {
        const size_t at = w->at + (size_t)(w->read - w->scored);
        memcpy(t->losses + at, t->nll, sizeof(float) * (size_t)w->scored);
        const struct layers_run run = lm_layers_run(&t->lm);
        t->stops = layers_last(&run, t->ran + at, w->scored);
    }
    for (int i = 0; i < t->batch * w->scored; i++) {
        const int k = place_of(i % w->scored);
        sum += (double)t->nll[i];
        t->place[k] += (double)t->nll[i];
        t->placed[k]++;
    }
    *to = (struct summand){
        .sum = w->weight == w->scored || !w->scored ? sum : sum / w->scored * w->weight,
        .tokens = w->weight * t->batch,
        .scored = (double)w->scored * t->batch};
    return OK;
}

/* Nats of the n tokens after `at` under the true source; those that are answers go to `a`. */
static double synthetic_segment(const struct stream *t, size_t at, int n, struct source_memo *memo,
                                struct answers *a)
{
    const struct synthetic *const s = &t->corpus.synthetic;
    double sum = 0;

    for (int i = 0; i < n; i++) {
        const size_t target = at + (size_t)i + 1;
        const size_t reach =
            t->M != 0 && lm_reaches_all(&t->lm)
                ? target
                : synthetic_reach(t->past > 0, t->lm.c.N, max_int(0, t->M), t->L, i);
        const double nll =
            synthetic_nll(s, t->corpus.bytes, target, reach < target ? reach : target, memo);
        sum += nll;
        if (synthetic_answers(s, t->corpus.bytes, target))
            answers_add(a, (double)t->nll[i], nll,
                        synthetic_nll(s, t->corpus.bytes, target, 0, memo));
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

/* Is the text that of its source, symbol by symbol? */
static bool has_floor(const struct stream *t)
{
    return t->corpus.generated && t->text.of_bytes && t->text.n == t->corpus.n &&
           t->text.n_docs == 1 && t->batch == 1 && t->s->opt->count == COUNT_STREAM &&
           t->mask_share == 0;
}

/* All pairs, in place of windows. */
static enum status score_pairs(struct stream *t, struct window_sums *sums, double *total,
                               double *floor, double *right, struct answers *a, struct err *e)
{
    enum status st = OK;
    int64_t told_ns = clock_wall_ns();

    for (size_t i = 0; i < t->pairs.n && st == OK; i++) {
        double sum = 0;
        pairs_read(&t->pairs, t->corpus.bytes, i, t->source, t->tokens, t->targets);
        st = forward(t, 1, t->L, t->L, e);
        if (st == OK)
            *right += lm_has_logits(&t->lm) ? pairs_right(t->lm.logits, t->targets, t->L, t->lm.c.V)
                                            : NAN;
        for (int k = 0; k < t->L && st == OK; k++) {
            sum += (double)t->nll[k];
            t->place[place_of(k)] += (double)t->nll[k];
            t->placed[place_of(k)]++;
        }
        if (st == OK)
            st = window_sums_add(sums, sum, t->L, e);
        *total += sum;
        *floor += pairs_floor(&t->pairs, &t->corpus, i, t->nll, a);
        tell(t->s, (double)i / (double)t->pairs.n, &told_ns);
    }
    return st;
}

static enum status score_all(struct stream *t, struct score *r, struct err *e)
{
    const struct options *const o = t->s->opt;
    const struct rule rule = {.count = (enum count)o->count,
                              .P = t->L,
                              .past = t->past,
                              .stride = o->stride,
                              .batch = t->batch};
    const bool pairs = t->pairs.target > 0, floors = pairs || has_floor(t);
    const int64_t start = clock_wall_ns();
    int64_t told_ns = start;
    struct source_memo memo = {0};
    struct answers a = {0};
    struct window_sums sums = {0};
    double total = 0, floor = 0, right = 0, tokens = 0, scored = 0;
    struct windows windows;
    struct window w;
    enum status st = OK;

    if (pairs) {
        st = score_pairs(t, &sums, &total, &floor, &right, &a, e);
        tokens = scored = (double)t->pairs.n * t->L;
    }
    for (size_t d = 0; d < t->text.n_docs && st == OK && !pairs; d++) {
        windows_begin(&windows, &rule, &t->text.docs[d]);
        while (st == OK && windows_next(&windows, &w)) {
            struct summand one;
            st = t->mask_share > 0 ? run_masked(t, &w, &one, e)
                                   : run_window(t, &w, windows.part, &one, e);
            if (st != OK)
                break;
            st = window_sums_add(&sums, one.sum, one.tokens, e);
            total += one.sum;
            tokens += one.tokens;
            scored += one.scored;
            tell(t->s, (double)w.at / (double)t->text.n, &told_ns);
            if (floors)
                floor +=
                    synthetic_segment(t, w.at + (size_t)(w.read - w.scored), w.scored, &memo, &a);
        }
    }
    if (st == OK && tokens < 1)
        st =
            fail(e, E_USAGE, "text %s has no token to score  -> give a longer one", t->corpus.name);
    const bool next = t->mask_share == 0 && !pairs;
    const bool whole = t->batch == 1 && next, words = strcmp(t->text.unit, "word") == 0 && next;
    *r = (struct score){.nll = total / tokens,
                        .sum = total,
                        .words = words   ? tokens
                                 : whole ? t->text.words
                                         : NAN,
                        .bytes = whole ? t->text.bytes : NAN,
                        .oov = t->text.oov,
                        .unit = pairs               ? PAIRS_UNIT
                                : t->mask_share > 0 ? masked_unit(t->text.unit)
                                                    : t->text.unit,
                        .floor = floors ? floor / tokens : NAN,
                        .accuracy = pairs ? right / tokens : NAN,
                        .answers = answers_mean(a),
                        .tokens = tokens,
                        .scored = scored,
                        .segments = (double)sums.count,
                        .eval_ns = (double)(clock_wall_ns() - start - t->comparing_ns),
                        .apart = divergence_means(&t->apart),
                        .layers_run = layers_mean(&t->layers),
                        .layers_p90 = layers_p90(&t->layers)};
    snprintf(r->note, sizeof(r->note), "%s", t->text.note);
    for (int i = 0; i < SCORE_PLACES; i++)
        r->nll_at[i] = t->placed[i] > 0 ? t->place[i] / t->placed[i] : NAN;
    if (t->compares && t->lm.c.kv_dtype == ELEM_Q8)
        score_note_keys(r->note, sizeof(r->note), &t->exact);
    if (t->s->opt->attention)
        score_note_heads(r->note, sizeof(r->note), &t->lm, &t->heads);
    window_sums_interval(&sums, r->nll, r->tokens, &r->nll_low, &r->nll_high);
    window_sums_free(&sums);
    return st;
}

/* After scoring: what --losses asks for. */
static enum status write_losses(const struct stream *t, const char *ckpt_xxh3, struct err *e)
{
    const struct options *const o = t->s->opt;
    struct losses l = {.seq = t->L, .mem = t->M, .nll = t->losses, .n = t->text.n - 1};

    if (!t->losses)
        return OK;
    l.layers = t->stops ? t->ran : NULL;
    snprintf(l.checkpoint, sizeof(l.checkpoint), "%s", o->ckpt);
    snprintf(l.variant, sizeof(l.variant), "%s", t->lm.c.variant->name);
    snprintf(l.checkpoint_xxh3, sizeof(l.checkpoint_xxh3), "%s", ckpt_xxh3);
    snprintf(l.corpus_xxh3, sizeof(l.corpus_xxh3), "%s", t->corpus.xxh3);
    return losses_write(&l, o->losses, e);
}

/* With the tokenizer of the options, or that of the checkpoint, if tokens are not given. */
static enum status make_text(struct stream *t, const struct weights *w, struct err *e)
{
    const struct options *const o = t->s->opt;
    char folder[PUBLISHED_PATH] = "";
    enum status st = OK;

    if (!o->tokenizer && !o->tokens && !t->corpus.generated)
        st = weights_tokenizer(w, folder, e);
    return st == OK ? texts_make(&t->text, &t->corpus, o, *folder ? folder : o->tokenizer, e) : st;
}

enum status score_run(struct scorer *s, enum split split, struct err *e)
{
    const struct options *o = s->opt;
    struct stream *const t = calloc(1, sizeof(*t));
    const int threads = o->threads.v[0];
    char ckpt_xxh3[17] = "";

    NEED(t);
    t->s = s;
    t->L = o->seq.v[0];
    t->M = o->mem.v[0];
    t->batch = max_int(1, s->batch);
    enum status st = pin_team(&s->team, s->topo, o->pin, threads, e);

    if (st == OK)
        st = engine_open(&s->engine, o->backends.v[0], threads,
                         strcmp(o->backends.v[0], backend_ref.name) == 0 ? NULL : o->impl, e);
    if (st == OK && o->attention)
        heads_watch(&t->heads, &s->engine);
    if (st == OK)
        st = corpus_open(&t->corpus, o->corpus, split, (size_t)o->bytes, e);
    if (st == OK)
        st = weights_open(&t->weights, o->ckpt, e);
    t->mask_share = t->weights.mask_share;
    if (st == OK)
        st = make_text(t, &t->weights, e);
    if (st == OK && o->losses)
        weights_xxh3(&t->weights, ckpt_xxh3);
    if (st == OK)
        st = open_stream(t, &t->weights, e);
    weights_close(&t->weights);
    if (st == OK && o->losses) {
        t->losses = calloc(t->text.n + 1, sizeof(*t->losses));
        t->ran = calloc(t->text.n + 1, sizeof(*t->ran));
        if (!t->losses || !t->ran)
            st = fail(e, E_NOMEM, "no memory for the losses of %zu tokens", t->text.n);
    }
    if (st == OK)
        st = score_all(t, &s->score, e);
    if (st == OK) {
        lm_impl(&t->lm, false, s->impl);
        st = write_losses(t, ckpt_xxh3, e);
    }
    if (st == OK && o->attention)
        st = heads_write(&t->heads, o->attention, e);
    free(t->losses);
    free(t->ran);
    divergence_free(&t->apart);
    heads_free(&t->heads);
    texts_free(&t->text);
    lm_free(&t->lm);
    lm_free(&t->exact);
    arena_release(&t->arena);
    corpus_close(&t->corpus);
    free(t);
    return st;
}
