/* SPDX-License-Identifier: MIT
 *
 * Generates a text token by token. Models with caches or states read each token once; others run
 * their window again for each token, as they are trained and scored. */
#include "generate.h"
#include "harness/machine/clock.h"
#include "harness/tokens/tokenizer.h"
#include "harness/util/signals.h"
#include "sampler.h"
#include "score.h"
#include "subject.h"

#include "variants/model/import/weights.h"

enum { PIECE = 128 }; /* tokens of the prompt that are read at once */

struct generator {
    const struct options *o;
    struct subject subject;
    struct tokenizer *tokenizer; /* NULL: tokens are bytes */
    struct ids ids;              /* the prompt, then what was chosen */
    struct ends ends;            /* none where none is obeyed */
    struct engine engine;
    struct lm lm;
    struct arena arena;
    struct sampler sampler;
    enum mem_kind kind;
    bool reruns, zeros;
    int window; /* tokens that are run at once, at most */
    int past;   /* rows of memory */
};

/* ---- tokens and text ---------------------------------------------------------------------- */

static enum status read_bytes(struct generator *t, const struct bytes *text, struct err *e)
{
    enum { BYTES = 256 };

    if (t->subject.config.V != BYTES || strcmp(t->subject.unit, "byte") != 0)
        return fail(e, E_USAGE,
                    "checkpoint %s has %d tokens (%s) that are not text  -> use a model of a text, "
                    "or add its --tokenizer",
                    t->o->ckpt, t->subject.config.V, t->subject.unit);
    for (size_t i = 0; i < text->n; i++)
        TRY(ids_append(&t->ids, (unsigned char)text->data[i], e));
    return OK;
}

/* A list of words ends every text with <eos>, which a line that goes on does not have. */
static void go_on(struct generator *t, const struct bytes *text)
{
    if (tokenizer_lists_words(t->tokenizer) && t->ids.n > 0 && text->n > 0 &&
        !strchr("\r\n", text->data[text->n - 1]))
        t->ids.n--;
}

/* One that the model cannot choose would never end a text. */
static enum status find_ends(struct generator *t, const char *folder, struct err *e)
{
    TRY(tokenizer_ends(t->tokenizer, folder, &t->ends, e));
    for (int i = 0; i < t->ends.n; i++)
        if (t->ends.id[i] >= t->subject.config.V)
            return fail(e, E_IO,
                        "%s: texts end by token %d (eos_token_id), the model has %d tokens  -> "
                        "--ignore-eos, or its own files",
                        t->o->ckpt, t->ends.id[i], t->subject.config.V);
    return OK;
}

static enum status read_prompt(struct generator *t, const struct weights *w,
                               const struct bytes *text, struct err *e)
{
    char folder[PUBLISHED_PATH] = "";
    const char *dir = t->o->tokenizer;
    int n;

    TRY(weights_tokenizer(w, folder, e));
    if (!dir && *folder)
        dir = folder;
    if (!dir)
        return read_bytes(t, text, e);
    TRY(tokenizer_open(&t->tokenizer, dir, e));
    if (tokenizer_vocab(t->tokenizer) > t->subject.config.V)
        return fail(e, E_IO,
                    "tokenizer of %s has %d tokens, the model %d  -> use the tokenizer that it was "
                    "published with",
                    t->o->ckpt, tokenizer_vocab(t->tokenizer), t->subject.config.V);
    const int32_t *const front = tokenizer_prefix(t->tokenizer, &n);
    for (int i = 0; i < n; i++)
        TRY(ids_append(&t->ids, front[i], e));
    if (!t->o->ignore_eos)
        TRY(find_ends(t, folder, e));
    TRY(tokenizer_encode(t->tokenizer, text->data, text->n, &t->ids, e));
    go_on(t, text);
    return OK;
}

static enum status text_of(const struct generator *t, size_t n, struct bytes *out, struct err *e)
{
    if (t->tokenizer)
        return tokenizer_show(t->tokenizer, t->ids.v, n, out, e);
    out->data = malloc(n + 1);
    if (!out->data)
        return fail(e, E_NOMEM, "no memory for a text of %zu bytes", n);
    for (size_t i = 0; i < n; i++)
        out->data[i] = (char)t->ids.v[i];
    out->data[out->n = n] = '\0';
    return OK;
}

/* What the tokens behind the first `prompt` add to the text of those. */
static enum status text_behind(const struct generator *t, size_t prompt, struct bytes *out,
                               struct err *e)
{
    struct bytes before = {0};
    size_t same = 0;

    TRY(text_of(t, prompt, &before, e));
    const enum status st = text_of(t, t->ids.n, out, e);
    if (st == OK) {
        while (same < before.n && same < out->n && before.data[same] == out->data[same])
            same++;
        memmove(out->data, out->data + same, out->n - same + 1);
        out->n -= same;
    }
    free(before.data);
    return st;
}

/* ---- the model ---------------------------------------------------------------------------- */

/* What no weight decides is as the options say, one value each. */
static enum status take_choices(struct config *c, const struct options *o, struct err *e)
{
    struct taken taken = {0};

    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        if (o->chosen[i].n > 1)
            return fail(e, E_USAGE, "--%s has %d values, a text is of one model  -> give one",
                        model_choices[i].option, o->chosen[i].n);
    TRY(config_at_eval(c, o, NULL, e));
    taken_add(&taken, c, SCOPE_MODEL);
    return taken_check(&taken, o, c->variant->name, e);
}

/* How far back it sees: as far as it was made for, which is all of the text where nothing says. */
static enum status configure(struct generator *t, struct config *c, struct err *e)
{
    const struct mem *const mem = config_mem(c);
    const int all = (int)t->ids.n + t->o->new_tokens;

    if (c->variant->bidirectional || !c->causal)
        return fail(e, E_USAGE, "%s has no next token: it sees whole texts  -> use a causal model",
                    c->variant->name);
    if (t->o->top_k > c->V)
        return fail(e, E_USAGE, "--top-k %d of %d tokens  -> lower it", t->o->top_k, c->V);
    const int sees = t->subject.context ? t->subject.context + c->mem_len : all;
    const bool moves = all > sees || (c->pos->positions && all > c->pos->positions(c));
    t->kind = moves ? mem_slides(mem) : mem_usual(mem, false);
    t->zeros = c->mem_start == MEM_START_ZEROS;
    t->reruns = t->kind == MEM_RECOMPUTE;
    t->past = t->reruns || t->kind == MEM_STATE ? 0 : t->zeros ? c->mem_len : min_int(all, sees);
    t->window = t->reruns ? min_int(all, sees) : min_int((int)t->ids.n, PIECE);
    if (c->pos->positions)
        t->window = min_int(t->window, c->pos->positions(c));
    if (c->kv_dtype != ELEM_F32 && t->kind != MEM_KV)
        return fail(e, E_USAGE, "--kv-dtype %s: %s caches no keys and values  -> leave it out",
                    elem_name[c->kv_dtype], c->variant->name);
    if (!t->reruns)
        c->mem_len = t->past;
    c->text_len = min_int(all, sees);
    see_past(c, t->past);
    return OK;
}

static enum status bind_all(void *arg, struct err *e)
{
    struct generator *const t = arg;

    engine_bind(&t->engine, &t->arena);
    return lm_bind(&t->lm, &t->engine, t->reruns ? MEM_NONE : t->kind,
                   (struct extent){1, t->window, t->past}, &t->arena, e);
}

static enum status open_model(struct generator *t, const struct weights *w, struct err *e)
{
    struct config c = w->config;

    TRY(take_choices(&c, t->o, e));
    TRY(configure(t, &c, e));
    TRY(lm_init(&t->lm, &c, e));
    TRY(params_hold(&t->lm.params, c.dtype, c.act_dtype, &t->engine, e));
    t->lm.block = 1;
    t->lm.all_logits = true;
    TRY(lm_place(&t->arena, (enum huge_pages)t->o->huge_pages, bind_all, NULL, t, e));
    TRY(lm_load(&t->lm, w, &t->engine, e));
    if (t->zeros)
        TRY(lm_zeros(&t->lm, &t->engine, 1, e));
    return sampler_open(&t->sampler, c.V, e);
}

/* ---- running ------------------------------------------------------------------------------ */

/* The logits behind the last of n tokens, which become the past. */
static void run(struct generator *t, const int32_t *ids, int n)
{
    lm_forward(&t->lm, &t->engine, ids, 1, n, 1, NULL, NULL);
    lm_commit(&t->lm, n);
}

/* Those that were not read yet, or the window's again. */
static void read_on(struct generator *t, size_t *at)
{
    if (t->reruns) {
        const int n = min_int((int)t->ids.n, t->window);
        lm_forget(&t->lm);
        run(t, t->ids.v + t->ids.n - n, n);
        *at = t->ids.n;
    }
    while (*at < t->ids.n) {
        const int n = min_int((int)(t->ids.n - *at), t->window);
        run(t, t->ids.v + *at, n);
        *at += (size_t)n;
    }
    lm_all(&t->lm, &t->engine, 1);
}

static bool ends_text(const struct generator *t, int32_t id)
{
    bool ends = false;

    for (int i = 0; i < t->ends.n; i++)
        ends = ends || t->ends.id[i] == id;
    return ends;
}

/* The next token, from the logits behind all before it. */
static enum status choose(struct generator *t, int nth, int32_t *id, struct err *e)
{
    *id = sampler_next(&t->sampler, t->lm.logits,
                       rng_uniform(t->o->seed, rng_stream("generate"), (uint64_t)nth));
    if (*id < 0)
        return fail(e, E_IO,
                    "checkpoint %s: logits of token %zu are not finite  -> use a model that did "
                    "not diverge",
                    t->o->ckpt, t->ids.n);
    if (t->tokenizer && !ends_text(t, *id) && *id >= tokenizer_vocab(t->tokenizer))
        return fail(e, E_IO,
                    "checkpoint %s chose token %d, which its tokenizer lacks  -> give --top-k or "
                    "another --tokenizer",
                    t->o->ckpt, *id);
    return OK;
}

static enum status choose_on(struct generator *t, struct generated *out, struct err *e)
{
    const volatile int *const stop = signals_watch();
    const int64_t start = clock_wall_ns();
    size_t at = 0;
    int32_t id;

    while (out->ended == ENDED_LENGTH && out->chosen < t->o->new_tokens) {
        if (*stop) {
            out->ended = ENDED_SIGNAL;
            continue;
        }
        read_on(t, &at);
        if (out->chosen == 0)
            out->prompt_ns = (double)(clock_wall_ns() - start);
        TRY(choose(t, out->chosen++, &id, e));
        if (ends_text(t, id))
            out->ended = ENDED_TOKEN;
        else
            TRY(ids_append(&t->ids, id, e));
    }
    out->decode_ns = (double)(clock_wall_ns() - start) - out->prompt_ns;
    return OK;
}

static enum status make(struct generator *t, struct generated *out, const struct bytes *prompt,
                        struct weights *w, struct err *e)
{
    TRY(subject_engine(&t->subject, &t->engine, e));
    TRY(subject_checkpoint(&t->subject, e));
    if (t->subject.config.enc_layers)
        return fail(e, E_UNSUPPORTED,
                    "checkpoint %.300s has an encoder and goes on from a source, no prompt  -> "
                    "bench eval --ckpt scores it",
                    t->o->ckpt);
    TRY(weights_open_adapted(w, t->o->ckpt, t->o->lora, e));
    TRY(read_prompt(t, w, prompt, e));
    if (t->ids.n == 0)
        return fail(e, E_USAGE, "the prompt has no token  -> give a longer one");
    out->prompt = (int)t->ids.n;
    TRY(open_model(t, w, e));
    weights_close(w);
    TRY(choose_on(t, out, e));
    return text_behind(t, (size_t)out->prompt, &out->text, e);
}

enum status generate_run(struct generated *out, const struct options *o, const struct bytes *prompt,
                         struct err *e)
{
    struct generator *const t = need_room(1, sizeof(*t));
    struct weights w = {0};

    t->o = o;
    t->subject.opt = o;
    t->subject.ckpt = o->ckpt;
    t->sampler =
        (struct sampler){.temperature = o->temperature, .top_k = o->top_k, .top_p = o->top_p};
    *out = (struct generated){0};
    const enum status st = make(t, out, prompt, &w, e);
    weights_close(&w);
    out->how = mem_kind_name[t->kind];
    out->tokens = (int)t->ids.n - out->prompt;
    out->ids = t->ids.v;
    sampler_close(&t->sampler);
    lm_free(&t->lm);
    arena_release(&t->arena);
    tokenizer_close(t->tokenizer);
    free(t);
    return st;
}
