/* SPDX-License-Identifier: MIT
 *
 * The training step, and the binding before it. */
#include "train.h"

#include "harness/plan/case.h"
#include "harness/util/suggest.h"
#include "harness/util/units.h"
#include "schedule.h"
#include "score.h"
#include "train_from.h"
#include "train_masked.h"
#include "train_pairs.h"
#include "train_play.h"
#include "train_ranks.h"
#include "train_tokens.h"
#include "variants/model/admin.h"
#include "variants/model/weights.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

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
    /* A state has no length; what a task's checkpoint says of it is read when the task is played. */
    const int carried = mem == MEM_ALL && opt->task ? 1 : max_int(0, mem);
    const int mem_len = v->mem->recurrent || v->mem->state ? carried : 0;
    struct taken taken = {0};
    const int words = vocab + (opt->objective == OBJECTIVE_MLM); /* the last one hides others */

    if (opt->from) {
        TRY(train_from_config(to, opt, e));
        to->mem_len = mem_len;
        model_choices_settle(to);
    } else {
        TRY(config_from_options(to, v, opt, mem_len, opt->layers.v[0], words, SCOPE_MODEL,
                                opt->objective == OBJECTIVE_SEQ2SEQ, false, NULL, e));
    }
    taken_add(&taken, to, SCOPE_MODEL);
    TRY(taken_check(&taken, opt, v->name, e));
    TRY(past_is_carried(to, mem, e));
    to->max_seq = to->enc_layers ? max_int(opt->seq.v[0], pairs_asked(opt).source) : opt->seq.v[0];
    if (opt->task) /* the value of what follows a segment */
        to->max_seq++;
    if (trains_with(config_mem(to), mem) == MEM_RECOMPUTE) { /* the past is a part of the window */
        to->max_seq += mem;
        to->mem_len = 0;
    }
    return to->enc_layers ? OK : masked_check(to, opt, e);
}

/* A generated text is as long as the run needs it, up to a bound; then it starts again. */
static size_t symbols_needed(const struct options *o)
{
    enum { LONGEST = 1 << 26, SHORTEST = 1 << 16 };
    const bool pairs = o->objective == OBJECTIVE_SEQ2SEQ;
    const double each = o->seq.v[0] + (pairs ? pairs_asked(o).source + 1 : 0);
    const double need = (double)o->steps * o->batch.v[0] * each + 1;

    return o->minutes > 0 || need > LONGEST ? LONGEST : need < SHORTEST ? SHORTEST : (size_t)need;
}

/* Are the bytes or symbols of the texts those of the model? */
static enum status check_symbols(const struct trainer *t, struct err *e)
{
    const int V = t->corpus.vocab;

    if (t->valid_corpus.vocab > V)
        return fail(e, E_USAGE,
                    "--valid %.300s has %d symbols, text %.300s has %d  -> give one of as many",
                    t->valid_corpus.name, t->valid_corpus.vocab, t->corpus.name, V);
    return t->opt->from ? train_from_fits(t, e) : OK;
}

static enum status open_texts(struct trainer *t, struct err *e)
{
    enum { VALID_SHARE = 20 };
    const struct options *o = t->opt;
    const char *const file = o->tokens ? o->tokens : o->corpus;
    const bool generated = !o->tokens && synthetic_named(file);

    TRY(train_tokens_find(t, e));
    TRY(corpus_open(&t->corpus, file, SPLIT_TRAIN,
                    o->bytes    ? (size_t)o->bytes
                    : generated ? symbols_needed(o)
                                : 0,
                    e));
    t->text = (struct text_part){.at = t->corpus.bytes, .n = t->corpus.n};
    if (!train_tokens_are_bytes(t)) {
        TRY(train_tokens_open(t, e));
    } else if (generated || o->valid) {
        TRY(corpus_open(&t->valid_corpus, o->valid ? o->valid : o->corpus, SPLIT_VALID, 0, e));
        t->valid = (struct text_part){.at = t->valid_corpus.bytes, .n = t->valid_corpus.n};
    } else {
        const size_t n = t->corpus.n / VALID_SHARE;
        t->text.n -= n;
        t->valid = (struct text_part){.at = t->corpus.bytes + t->text.n, .n = n};
    }
    if (train_tokens_are_bytes(t))
        TRY(check_symbols(t, e));
    if (o->objective == OBJECTIVE_MLM)
        masked_open(t);
    if (o->objective == OBJECTIVE_SEQ2SEQ)
        TRY(pairs_open(t, e));
    if (t->valid.n > VALID_TOKENS)
        t->valid.n = VALID_TOKENS;
    if (t->text.n / (size_t)t->all_B <= (size_t)t->L || t->valid.n < 2)
        return fail(e, E_USAGE,
                    "text %s: %zu %ss are too few for --batch %d --seq %d  -> lower them",
                    t->corpus.name, t->text.n, t->corpus.unit, t->all_B, t->L);
    return OK;
}

/* ---- binding ------------------------------------------------------------------------------ */

static enum status bind_all(void *arg, struct err *e)
{
    struct trainer *const t = arg;
    const int window = t->past + t->L + (t->play ? 1 : 0);
    const int before = t->pairs.target ? t->pairs.source : t->M;
    const struct extent max = {t->B, window, before}, one = {t->play ? t->B : 1, window, before};
    const size_t rows = (size_t)t->B * (size_t)window;
    struct arena *a = &t->arena;

    engine_bind(&t->engine, a);
    TRY(lm_bind(&t->lm, &t->engine, t->kind, max, a, e));

    TRY(lm_bind_grad(&t->lm, &t->engine, a, e));
    optimizer_bind(&t->optimizer, &t->lm.params, a);
    params_borrow(&t->valid_lm.params, &t->lm.params);
    TRY(lm_bind(&t->valid_lm, &t->engine, t->kind, one, a, e));
    t->tokens = arena_take(a, PART_ACTIVATIONS, rows * sizeof(int32_t));
    t->targets = arena_take(a, PART_ACTIVATIONS, rows * sizeof(int32_t));
    t->nll = arena_f32(a, PART_ACTIVATIONS, rows);
    t->places = arena_take(a, PART_ACTIVATIONS, (size_t)t->B * (size_t)t->hidden * sizeof(int32_t));
    t->source =
        arena_take(a, PART_ACTIVATIONS, (size_t)t->B * (size_t)t->pairs.source * sizeof(int32_t));
    t->lm.source = t->valid_lm.source = t->source;
    if (t->play)
        play_bind(t, a);
    return OK;
}

static enum status place(void *arg, void *base, size_t size, struct err *e)
{
    const struct trainer *t = arg;

    return topo_membind(t->topo, t->opt->membind, t->team.first_cpu, base, size, e);
}

static enum status open_engine(struct trainer *t, struct err *e)
{
    const struct options *o = t->opt;

    TRY(topo_open(&t->topo, NULL, e));
    TRY(pin_team(&t->team, t->topo, o->pin, o->threads.v[0], e));
    return engine_open(&t->engine, o->backends.v[0], o->threads.v[0], o->impl, e);
}

/* Only parameters that one of the patterns covers change; of none, all. */
static enum status train_only(struct params *p, const struct names *patterns, struct err *e)
{
    for (int i = 0; i < p->n; i++)
        p->v[i].frozen = patterns->n > 0;
    for (int k = 0; k < patterns->n; k++) {
        bool any = false;
        for (int i = 0; i < p->n; i++)
            if (fnmatch(patterns->v[k], p->v[i].name, 0) == 0) {
                p->v[i].frozen = false;
                any = true;
            }
        if (!any)
            return fail(e, E_USAGE,
                        "--train-only \"%.60s\" covers no parameter  -> such as %s, or "
                        "'layers.*.attn.*'",
                        patterns->v[k], p->v[p->n - 1].name);
    }
    return OK;
}

struct trainer_frozen trainer_frozen(const struct trainer *t)
{
    struct trainer_frozen text = {""};
    double n = 0;

    for (int i = 0; i < t->lm.params.n; i++)
        n += t->lm.params.v[i].frozen ? 0 : (double)t->lm.params.v[i].n;
    if (t->opt->train_only.n > 0)
        snprintf(text.s, sizeof(text.s), ", %s of them trained", units_count(n).s);
    return text;
}

/* A bit for each group of parameters. */
static unsigned groups_of(const struct names *names)
{
    unsigned groups = 0;

    for (int i = 0; i < names->n; i++)
        groups |= 1u << word_index(names->v[i], param_group_name);
    return groups;
}

static enum status open_model(struct trainer *t, struct err *e)
{
    const struct options *o = t->opt;
    struct config c;

    TRY(train_config(&c, variant_find(o->variants.v[0]), o, t->corpus.vocab, e));
    TRY(lm_init(&t->lm, &c, e));
    TRY(train_only(&t->lm.params, &o->train_only, e));
    TRY(engine_train_in(&t->engine, c.dtype, e));
    t->M = c.mem_len;
    t->kind = c.enc_layers ? MEM_NONE : trains_with(config_mem(&c), o->mem.v[0]);
    t->past = t->kind == MEM_RECOMPUTE ? o->mem.v[0] : 0;
    t->optimizer.kind = (enum optimizer_kind)o->optimizer;
    t->optimizer.scale = (enum muon_scale)o->muon_scale;
    t->optimizer.weight_decay = o->weight_decay;
    t->optimizer.decays = groups_of(&o->weight_decay_of);
    TRY(lm_init(&t->valid_lm, &c, e));
    TRY(lm_place(&t->arena, (enum huge_pages)o->huge_pages, bind_all, place, t, e));
    if (o->from && !o->resume)
        TRY(train_from_load(t, e));
    else if (!o->from)
        params_init_training(&t->lm.params, o->seed,
                             o->init == INITIAL_BY_DEPTH ? 1 / sqrtf((float)t->lm.sublayers.n) : 1,
                             t->engine.threads);
    optimizer_reset(&t->optimizer, &t->lm.params);
    t->lm.z_loss = (float)o->z_loss;
    t->lm.drop = (struct dropout){.p = (float)o->dropout, .seed = o->seed, .part = t->ranks.index};
    lm_build_tables(&t->lm, &t->engine);
    return OK;
}

/* ---- ranks -------------------------------------------------------------------------------- */

static void mean_over_ranks(void *arg, double *x, int n)
{
    const struct trainer *const t = arg;

    ranks_sum(&t->ranks, x, n);
    for (int i = 0; i < n; i++)
        x[i] /= t->ranks.count;
}

static enum status open_place(struct trainer *t, struct err *e)
{
    TRY(ranks_fit_batch(t->opt, &t->ranks, e));
    return open_engine(t, e);
}

static enum status open_rest(struct trainer *t, struct err *e)
{
    TRY(t->opt->task ? play_open(t, e) : open_texts(t, e));
    TRY(open_model(t, e));
    if (t->play)
        TRY(player_check(&t->lm, e));
    return t->ranks.count > 1 ? ranks_divide(&t->lm.c, t->opt, &t->ranks, e) : OK;
}

enum status trainer_open_ranked(struct trainer *t, const struct options *opt,
                                const struct ranks *ranks, struct err *e)
{
    memset(t, 0, sizeof(*t)); /* a literal of it would be a frame of its size */
    t->opt = opt;
    t->ranks = *ranks;
    t->all_B = opt->batch.v[0];
    t->B = opt->batch.v[0] / ranks->count;
    t->L = opt->seq.v[0];
    t->best_valid = INFINITY;
    t->first = ranks->index * t->B;
    t->sum.ranks = &t->ranks;
    TRY(ranks_agree(ranks, open_place(t, e), e));
    if (ranks->count > 1) {
        TRY(ranks_agree(ranks, ranks_have_places(&t->ranks, &t->team, e), e));
        t->engine.mean = mean_over_ranks;
        t->engine.mean_arg = t;
    }
    return ranks_agree(ranks, open_rest(t, e), e);
}

bool trainer_agrees(const struct trainer *t)
{
    XXH64_hash_t mine = 0, first;

    for (int i = 0; i < t->lm.params.n; i++)
        mine =
            XXH3_64bits_withSeed(t->lm.params.v[i].data, t->lm.params.v[i].n * sizeof(float), mine);
    first = mine;
    ranks_from_first(&t->ranks, &first, sizeof(first));
    return !ranks_any(&t->ranks, first != mine);
}

void trainer_close(struct trainer *t)
{
    optimizer_free(&t->optimizer);
    free(t->play);
    lm_free(&t->lm);
    lm_free(&t->valid_lm);
    arena_release(&t->arena);
    corpus_close(&t->corpus);
    corpus_close(&t->valid_corpus);
    texts_free(&t->tokens_made);
    texts_free(&t->valid_made);
    topo_close(t->topo);
}

/* ---- one step ----------------------------------------------------------------------------- */

/* Tokens that are run again in front of the one at `at`. */
static int past_at(const struct trainer *t, size_t at)
{
    return at < (size_t)t->past ? (int)at : t->past;
}

size_t trainer_position(const struct trainer *t)
{
    if (t->play)
        return (size_t)play_at(t);
    const size_t part = (t->text.n - 1) / (size_t)t->all_B, segments = part / (size_t)t->L;

    return (size_t)t->optimizer.step % segments * (size_t)t->L;
}

/* With an empty memory, or one of zeros, if the weights are of a model that begins so. */
static void begin_text(const struct trainer *t, struct lm *m, int B)
{
    struct err never;

    if (t->M > 0 && m->c.mem_start == MEM_START_ZEROS)
        CHECK(lm_zeros(m, &t->engine, B, &never) == OK); /* it was, when it was opened */
    else
        lm_forget(m);
}

/* Sequence b reads its own contiguous part of the text, one segment per step; at the end of the
 * parts all of them start again with empty memory. Returns the tokens of past of each. */
static int next_batch(struct trainer *t)
{
    const size_t part = (t->text.n - 1) / (size_t)t->all_B, at = trainer_position(t);
    const int past = past_at(t, at), n = past + t->L;

    if (at == 0)
        begin_text(t, &t->lm, t->B);
    for (int b = 0; b < t->B; b++) {
        const size_t from = (size_t)(t->first + b) * part + at - (size_t)past;
        for (int i = 0; i < n; i++) {
            t->tokens[b * n + i] = text_token(&t->text, from + (size_t)i);
            t->targets[b * n + i] = text_token(&t->text, from + (size_t)i + 1);
        }
    }
    return past;
}

void trainer_commit(const struct trainer *t, struct lm *m, int n)
{
    if (t->opt->mem.v[0] != 0)
        lm_commit(m, n);
}

/* Mean nats of the tokens of all sequences that have losses; of a text the new ones, the last of n.
 */
static double mean_of_new(const struct trainer *t, int n)
{
    const int scored = t->hidden ? t->hidden : n, from = t->hidden ? 0 : n - t->L;
    double sum = 0;

    for (int b = 0; b < t->B; b++)
        for (int i = from; i < scored; i++)
            sum += (double)t->nll[b * scored + i];
    ranks_sum(&t->ranks, &sum, 1);
    return sum / (t->all_B * (scored - from));
}

static void text_gradient(struct trainer *t, struct step_report *r)
{
    int n = t->L;

    if (t->hidden)
        masked_batch(t);
    else if (t->pairs.target)
        pairs_batch(t);
    else
        n += next_batch(t);
    if (t->optimizer.step == 0)
        admin_profile(&t->lm, &t->engine, t->tokens, t->B, n);
    lm_forward(&t->lm, &t->engine, t->tokens, t->B, n, n, t->targets, t->nll);
    r->loss = mean_of_new(t, n);
    grad_sum_begin(&t->sum, &t->lm);
    lm_backward(&t->lm, &t->engine, t->tokens, t->targets, t->B, n);
    grad_sum_end(&t->sum);
    trainer_commit(t, &t->lm, t->L);
}

struct step_report trainer_step(struct trainer *t, double progress)
{
    const struct options *o = t->opt;
    struct step_report r = {
        .lr = train_lr(o, t->optimizer.step + 1, progress), .entropy = NAN, .returned = NAN};

    params_zero_grad(&t->lm.params);
    t->lm.progress = progress;
    if (t->play)
        play_gradient(t, &r);
    else
        text_gradient(t, &r);
    const double ponder = lm_layers_run(&t->lm).ponder;
    r.ponder = ponder > 0 ? ponder : NAN;
    r.grad_norm = grad_norm(&t->lm.params, t->engine.threads);
    const bool clip = o->grad_clip > 0 && r.grad_norm > o->grad_clip;
    optimizer_step(&t->optimizer, &t->lm.params, &t->engine, r.lr,
                   clip ? o->grad_clip / r.grad_norm : 1);
    t->lm.drop.step = (uint64_t)t->optimizer.step;
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
            t->opt->mem.v[0] != 0 && lm_reaches_all(&t->valid_lm)
                ? target
                : synthetic_reach(t->past > 0, t->lm.c.N, max_int(t->past, t->M), t->L, i);
        const double nll =
            synthetic_nll(s, t->valid.at, target, reach < target ? reach : target, memo);
        sum += nll;
        if (synthetic_answers(s, t->valid.at, target))
            answers_add(a, (double)t->nll[i], nll, synthetic_nll(s, t->valid.at, target, 0, memo));
    }
    return sum;
}

struct validation trainer_validate(struct trainer *t)
{
    if (t->play)
        return play_validate(t);
    if (t->hidden)
        return masked_validate(t);
    if (t->pairs.target)
        return pairs_validate(t);
    const size_t tokens = t->valid.n - 1;
    const bool windows = t->kind == MEM_RECOMPUTE; /* none needs the one before */
    int window = 0;
    struct source_memo memo = {0};
    struct answers a = {0};
    double sum = 0, floor = 0;

    lm_build_tables(&t->valid_lm, &t->engine);
    begin_text(t, &t->valid_lm, 1);
    for (size_t at = 0; at < tokens; at += (size_t)t->L, window++) {
        if (windows && window % t->ranks.count != t->ranks.index)
            continue;
        const int n = tokens - at < (size_t)t->L ? (int)(tokens - at) : t->L;
        const int past = past_at(t, at);
        for (int i = 0; i < past + n; i++)
            t->tokens[i] = text_token(&t->valid, at + (size_t)i - (size_t)past);
        for (int i = 0; i < n; i++)
            t->targets[i] = text_token(&t->valid, at + (size_t)i + 1);
        lm_forward(&t->valid_lm, &t->engine, t->tokens, 1, past + n, n, t->targets, t->nll);
        trainer_commit(t, &t->valid_lm, n);
        for (int i = 0; i < n; i++)
            sum += (double)t->nll[i];
        if (t->valid_corpus.generated)
            floor += synthetic_floor(t, at, n, &memo, &a);
    }
    if (windows) {
        double all[] = {sum, floor, a.nll, a.floor, a.blind, a.tokens};
        ranks_sum(&t->ranks, all, (int)ARRAY_LEN(all));
        sum = all[0];
        floor = all[1];
        a = (struct answers){all[2], all[3], all[4], all[5]};
    }
    return (struct validation){.nll = sum / (double)tokens,
                               .returned = NAN,
                               .returned_error = NAN,
                               .floor = t->valid_corpus.generated ? floor / (double)tokens : NAN,
                               .accuracy = NAN,
                               .answers = answers_mean(a)};
}
