/* SPDX-License-Identifier: MIT
 *
 * Scores a text, part by part: opens the model and the text, runs the mode that reads them (scoring.h),
 * and writes what was seen beside. */
#include "scoring.h"

#include "harness/learn/source/counting.h"
#include "harness/machine/clock.h"
#include "losses.h"

#include "variants/model/lm/key_steps.h"

/* The logits of a long segment over so many words would be larger than the model. */
enum { LARGE_VOCABULARY = 1 << 13, ROWS_AT_ONCE = 64 };

/* ---- binding ------------------------------------------------------------------------------ */

static enum status configure(struct scored *t, struct config *c, struct err *e)
{
    const struct options *const o = t->s->opt;
    const int begin = o->mem_begin;

    *c = t->weights.config;
    TRY(config_at_eval(c, o, NULL, e));
    TRY(score_mem_kind(&t->kind, c, o, t->M, e));
    TRY(texts_fit(&t->text, o, t->corpus.name, c->V - (t->mask_share > 0), e));
    TRY(score_whole_check(c, t->mask_share, o, t->M, e));
    t->mode = o->choices ? &scoring_questions : scoring_of(c, t->mask_share);
    if (t->mode->open)
        TRY(t->mode->open(t, e));
    t->zeros = begin ? begin == MEM_BEGIN_ZEROS : c->mem_start == MEM_START_ZEROS;
    const bool reruns = mem_reruns(config_mem(c), t->kind, t->M);
    t->past = reruns ? t->M : 0;
    if (c->pos->positions && t->L + t->past > c->pos->positions(c))
        return fail(e, E_USAGE,
                    "checkpoint %s has positions for %d tokens, --seq %d --mem %d needs "
                    "%d  -> lower them",
                    o->ckpt, c->pos->positions(c), t->L, t->M, t->L + t->M);
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

static enum status init_exact(struct scored *t, struct err *e)
{
    struct config c = t->lm.c;

    c.dtype = c.kv_dtype = ELEM_F32;
    c.act_dtype = ROWS_F32;
    t->compares = true;
    TRY(lm_init(&t->exact, &c, e));
    TRY(params_hold(&t->exact.params, c.dtype, c.act_dtype, &t->engine, e));
    t->exact.block = t->lm.block;
    return OK;
}

static enum status bind_all(void *arg, struct err *e)
{
    struct scored *const t = arg;
    const bool reruns = mem_reruns(config_mem(&t->lm.c), t->kind, t->M),
               pairs = t->pairs.target > 0;
    const int window = t->L + t->past;
    const int before = pairs ? t->pairs.source : reruns ? 0 : max_int(0, t->M);
    const struct extent max = {t->batch, window, before};
    const size_t rows = (size_t)t->batch * (size_t)window;
    struct arena *a = &t->arena;
    const enum mem_kind kind = reruns || pairs ? MEM_NONE : t->kind;

    engine_bind(&t->engine, a);
    TRY(lm_bind(&t->lm, &t->engine, kind, max, a, e));
    if (t->compares)
        TRY(lm_bind(&t->exact, &t->engine, kind, max, a, e));
    t->tokens = arena_take(a, PART_ACTIVATIONS, rows * sizeof(*t->tokens));
    t->targets = arena_take(a, PART_ACTIVATIONS, rows * sizeof(*t->targets));
    t->nll = arena_f32(a, PART_ACTIVATIONS, (size_t)t->batch * (size_t)t->L);
    t->places = arena_take(a, PART_ACTIVATIONS, (size_t)t->L * sizeof(*t->places));
    t->source = arena_take(a, PART_ACTIVATIONS, (size_t)t->pairs.source * sizeof(*t->source));
    t->lm.source = t->exact.source = t->source;
    return OK;
}

static enum status place(void *arg, void *base, size_t size, struct err *e)
{
    const struct scored *const t = arg;

    return topo_membind(t->s->topo, t->s->opt->membind, t->team.first_cpu, base, size, e);
}

static enum status open_model(struct scored *t, struct err *e)
{
    const enum huge_pages huge = (enum huge_pages)t->s->opt->huge_pages;
    struct engine *const g = &t->engine;
    struct config c;

    TRY(configure(t, &c, e));
    TRY(lm_init(&t->lm, &c, e));
    TRY(params_hold(&t->lm.params, c.dtype, c.act_dtype, g, e));
    t->lm.all_logits = t->mode->see != NULL;
    if (c.V > LARGE_VOCABULARY)
        t->lm.block = ROWS_AT_ONCE;
    if (is_comparable(&t->lm))
        TRY(init_exact(t, e));
    TRY(lm_place(&t->arena, huge, bind_all, place, t, e));
    TRY(lm_load(&t->lm, &t->weights, g, e));
    if (t->compares)
        TRY(lm_load(&t->exact, &t->weights, g, e));
    /* What cannot be is said before anything is scored. */
    return t->zeros ? lm_zeros(&t->lm, g, t->batch, e) : OK;
}

/* ---- scoring ------------------------------------------------------------------------------ */

double scored_nll(struct scored *t, int i, int place)
{
    const double nll = (double)t->nll[i];
    int at = 0;

    for (place++; place > 1 && at < SCORE_PLACES - 1; place /= 2)
        at++;
    t->place[at] += nll;
    t->placed[at]++;
    return nll;
}

static void begin_one(struct scored *t, struct lm *m)
{
    struct err never;

    lm_forget(m);
    if (t->zeros)
        CHECK(lm_zeros(m, &t->engine, t->batch, &never) == OK);
}

void scored_begin(struct scored *t)
{
    begin_one(t, &t->lm);
    if (t->compares)
        begin_one(t, &t->exact);
}

/* A see_logits: for the mode, and those of rows [at, at + n) beside those in f32. */
static void see(void *arg, const float *logits, int at, int n)
{
    struct scored *const t = arg;
    const struct engine *const g = &t->engine;

    if (t->mode->see)
        t->mode->see(t, logits, at, n);
    if (!t->compares)
        return;
    const int64_t start = clock_wall_ns();

    lm_score(&t->exact, g, t->state + (ptrdiff_t)at * t->lm.c.D, NULL, NULL, n);
    divergence_add(&t->apart, t->exact.logits, logits, n, t->lm.c.V, g->threads);
    t->comparing_ns += clock_wall_ns() - start;
}

enum status scored_forward(struct scored *t, int B, int read, int scored, struct err *e)
{
    const struct engine *const g = &t->engine;
    const int64_t start = clock_wall_ns();

    if (t->compares) {
        t->exact.picked = t->lm.picked;
        t->exact.n_picked = t->lm.n_picked;
        t->state = lm_hidden(&t->exact, g, t->tokens, B, read, scored ? scored : 1);
        t->comparing_ns += clock_wall_ns() - start;
        TRY(divergence_room(&t->apart, (size_t)B * (size_t)scored, e));
    }
    heads_pass(&t->heads, read - scored);
    t->lm.see_logits = scored && (t->compares || t->mode->see) ? see : NULL;
    t->lm.see_arg = t;
    lm_forward(&t->lm, g, t->tokens, B, read, scored ? scored : 1, scored ? t->targets : NULL,
               scored ? t->nll : NULL);
    if (scored && t->mode->see && !lm_has_logits(&t->lm)) { /* lm_forward shows none */
        lm_all(&t->lm, g, B * scored);
        t->mode->see(t, t->lm.logits, 0, B * scored);
    }
    const struct layers_run run = lm_layers_run(&t->lm);
    layers_count(&t->layers, &run);
    return t->s->opt->attention ? heads_seen(&t->heads, e) : OK;
}

bool scored_next_window(struct scored *t, double *done)
{
    while (!windows_next(&t->windows, &t->window)) {
        if (t->doc == t->text.n_docs)
            return false;
        windows_begin(&t->windows, &t->rule, &t->text.docs[t->doc++]);
    }
    *done = (double)t->window.at / (double)t->text.n;
    return true;
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

/* The sums of all windows or pairs. */
static enum status add_all(struct scored *t, struct window_sums *sums, struct summand *all,
                           struct err *e)
{
    int64_t told_ns = clock_wall_ns();
    double done;

    while (t->mode->next(t, &done)) {
        struct summand one;
        tell(t->s, done, &told_ns);
        TRY(t->mode->score(t, &one, e));
        TRY(window_sums_add(sums, one.sum, one.tokens, e));
        all->sum += one.sum;
        all->tokens += one.tokens;
        all->scored += one.scored;
        all->floor += one.floor;
        all->right += one.right;
    }
    return all->tokens >= 1
               ? OK
               : fail(e, E_USAGE, "text %s has no token to score  -> give a longer one",
                      t->corpus.name);
}

/* Where rounding its cached keys to q8 leaves few steps to numbers beside a head's largest one. */
static void note_keys(char *note, size_t size, const struct lm *exact)
{
    enum { FEW = 8 };
    const struct key_steps k = key_steps(exact);

    if (k.steps < FEW)
        text_append(note, size,
                    "%skeys of attention %d, head %d: beside the largest number the others have "
                    "%.2g steps of 127 in q8  -> --kv-dtype bf16",
                    *note ? "; " : "", k.attention, k.head, k.steps);
}

/* Beside the sums. */
static void report_text(struct scored *t, struct report *r, const struct summand *all)
{
    const struct texts *const text = &t->text;
    const bool next = !t->mode->reads, whole = next && t->batch == 1;
    const struct answers a = answers_mean(t->answers);
    const struct divergence_means apart = divergence_means(&t->apart);
    int k = 0;

    const bool prose = whole && !t->corpus.generated;
    r->words = next && strcmp(text->unit, "word") == 0 ? all->tokens : prose ? text->words : NAN;
    r->text_bytes = !whole ? NAN : text->of_bytes ? all->tokens : text->bytes;
    r->oov = text->oov;
    r->answers = a.tokens;
    r->answer_nll = a.nll;
    r->answer_floor = a.floor;
    r->answer_blind = a.blind;
    r->kl = apart.kl;
    r->kl_p99 = apart.kl_p99;
    r->same_top_pct = apart.same_pct;
    r->layers_run = layers_mean(&t->layers);
    r->layers_p90 = layers_p90(&t->layers);
#define X(n, ...)                                                                                  \
    r->nll_at_##n = t->place[k] / t->placed[k];                                                    \
    k++;
    NLL_PLACES(X, )
#undef X
    r->acc_norm = r->acc_bytes = r->acc_tokens = r->exact_match = NAN;
    if (t->mode->report)
        t->mode->report(t, r);
    snprintf(r->token_is, sizeof(r->token_is), "%s%s", t->mode->token, text->unit);
    snprintf(r->note, sizeof(r->note), "%s", text->note);
    if (t->compares && t->lm.c.kv_dtype == ELEM_Q8)
        note_keys(r->note, sizeof(r->note), &t->exact);
    if (t->s->opt->attention)
        heads_note(r->note, sizeof(r->note), &t->lm, &t->heads);
}

static enum status score_all(struct scored *t, struct err *e)
{
    struct report *const r = &t->s->report;
    const int64_t start = clock_wall_ns();
    struct window_sums sums = {0};
    struct summand all = {0};
    const enum status st = add_all(t, &sums, &all, e);

    r->eval_ns = (double)(clock_wall_ns() - start - t->comparing_ns);
    r->nll_sum = all.sum;
    r->nll = all.sum / all.tokens;
    r->nll_floor = all.floor / all.tokens;
    r->accuracy = all.right / all.tokens;
    r->tokens_counted = all.tokens;
    r->tokens_scored = all.scored;
    r->segments = (double)sums.count;
    window_sums_interval(&sums, r->nll, all.tokens, &r->nll_low, &r->nll_high);
    window_sums_free(&sums);
    if (st == OK)
        report_text(t, r, &all);
    return st;
}

/* ---- files -------------------------------------------------------------------------------- */

static enum status open_losses(struct scored *t, struct err *e)
{
    const size_t n = t->text.n + 1;

    weights_xxh3(&t->weights, t->ckpt_xxh3);
    t->losses = calloc(n, sizeof(*t->losses));
    t->ran = calloc(n, sizeof(*t->ran));
    return t->losses && t->ran
               ? OK
               : fail(e, E_NOMEM, "no memory for the losses of %zu tokens", t->text.n);
}

static enum status write_losses(const struct scored *t, struct err *e)
{
    struct losses l = {.seq = t->L,
                       .mem = t->M,
                       .nll = t->losses,
                       .n = t->text.n - 1,
                       .layers = t->stops ? t->ran : NULL};

    snprintf(l.checkpoint, sizeof(l.checkpoint), "%s", t->s->opt->ckpt);
    snprintf(l.variant, sizeof(l.variant), "%s", t->lm.c.variant->name);
    snprintf(l.checkpoint_xxh3, sizeof(l.checkpoint_xxh3), "%s", t->ckpt_xxh3);
    snprintf(l.corpus_xxh3, sizeof(l.corpus_xxh3), "%s", t->corpus.xxh3);
    return losses_write(&l, t->s->opt->losses, e);
}

/* ---- a score ------------------------------------------------------------------------------ */

/* With the tokenizer of the options, or that of the checkpoint, if tokens are not given. */
static enum status make_text(struct scored *t, struct err *e)
{
    const struct options *const o = t->s->opt;
    char folder[PUBLISHED_PATH] = "";

    if (!o->tokenizer && !o->tokens && !t->corpus.generated)
        TRY(weights_tokenizer(&t->weights, folder, e));
    const char *const tokenizer = *folder ? folder : o->tokenizer;
    if (!o->choices)
        return texts_make(&t->text, &t->corpus, o, tokenizer, e);
    TRY(questions_make(&t->questions, &t->text, &t->corpus, o, tokenizer, t->L, e));
    int longest = 1;
    for (size_t i = 0; i < t->text.n_docs; i++)
        longest = max_int(longest, (int)(t->text.docs[i].end - t->text.docs[i].begin) - 1);
    t->L = longest;
    return OK;
}

static enum status open_engine(struct scored *t, struct err *e)
{
    const struct options *const o = t->s->opt;
    const char *const backend = o->backends.v[0];
    const int threads = o->threads.v[0];

    TRY(pin_team(&t->team, t->s->topo, o->pin, threads, e));
    TRY(engine_open(&t->engine, backend, threads,
                    strcmp(backend, backend_ref.name) == 0 ? NULL : o->impl, e));
    if (o->attention)
        heads_watch(&t->heads, &t->engine);
    return OK;
}

static enum status run(struct scored *t, enum split split, struct err *e)
{
    const struct options *const o = t->s->opt;
    struct report *const r = &t->s->report;

    TRY(open_engine(t, e));
    TRY(corpus_open(&t->corpus, o->choices ? o->choices : o->corpus, split, (size_t)o->bytes, e));
    TRY(weights_open_adapted(&t->weights, o->ckpt, o->lora, e));
    t->mask_share = t->weights.mask_share;
    TRY(make_text(t, e));
    if (o->losses && !o->choices)
        TRY(open_losses(t, e));
    TRY(open_model(t, e));
    weights_close(&t->weights);
    t->rule = (struct rule){.count = (enum count)o->count,
                            .P = t->L,
                            .past = t->past,
                            .stride = o->stride,
                            .batch = t->batch};
    TRY(score_all(t, e));
    report_describe(r, &t->engine, &t->team);
    lm_impl(&t->lm, false, r->impl);
    if (o->losses)
        TRY(o->choices ? scoring_questions_write(t, o->losses, e) : write_losses(t, e));
    return o->attention ? heads_write(&t->heads, o->attention, e) : OK;
}

enum status score_run(struct scorer *s, enum split split, struct err *e)
{
    struct scored *const t = need_room(1, sizeof(*t));

    t->s = s;
    t->L = s->opt->seq.v[0];
    t->M = s->opt->mem.v[0];
    t->batch = counting_batch(s->opt);
    const enum status st = run(t, split, e);

    weights_close(&t->weights);
    free(t->losses);
    free(t->ran);
    divergence_free(&t->apart);
    heads_free(&t->heads);
    texts_free(&t->text);
    questions_free(&t->questions);
    lm_free(&t->lm);
    lm_free(&t->exact);
    arena_release(&t->arena);
    corpus_close(&t->corpus);
    free(t);
    return st;
}
