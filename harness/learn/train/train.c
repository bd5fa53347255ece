/* SPDX-License-Identifier: MIT
 *
 * The training step, and the binding before it. */
#include "train.h"

#include "harness/learn/score/score.h"
#include "schedule.h"
#include "train_from.h"
#include "train_state.h"
#include "train_texts.h"
#include "variants/model/import/weights.h"

/* ---- ranks -------------------------------------------------------------------------------- */

/* What several processes that train a model together must have: a batch that they divide, CPUs of
 * their own, a model that they can compute as one process would. */
enum { PLACE_TEXT = 320 };

/* Does the list of CPUs, "0-3,8", have this one? */
static bool has_cpu(const char *list, int cpu)
{
    int lo, hi, used;

    for (; sscanf(list, "%d%n", &lo, &used) == 1; list += *list == ',') {
        list += used;
        hi = lo;
        if (*list == '-' && sscanf(list, "-%d%n", &hi, &used) == 1)
            list += used;
        if (cpu >= lo && cpu <= hi)
            return true;
    }
    return false;
}

static bool share_a_cpu(const char *a, const char *b)
{
    enum { CPUS = 4096 };

    for (int cpu = 0; cpu < CPUS; cpu++)
        if (has_cpu(a, cpu) && has_cpu(b, cpu))
            return true;
    return false;
}

/* E_USAGE: some that are pinned run on each other. Collective. */
static enum status ranks_have_places(const struct ranks *r, const struct team *team, struct err *e)
{
    char mine[PLACE_TEXT] = "", *const all = need_room((size_t)r->count, PLACE_TEXT);
    enum status st = OK;

    if (gethostname(mine, 60) != 0)
        mine[0] = '\0';
    const size_t host = strlen(mine) + 1; /* the CPUs stand behind it */
    snprintf(mine + host, PLACE_TEXT - host, "%s", team->first_cpu < 0 ? "" : team->cpus);
    ranks_gather(r, mine, PLACE_TEXT, all);
    for (int i = 0; i < r->count && st == OK; i++) {
        const char *const other = all + (size_t)i * PLACE_TEXT;
        if (i != r->index && strcmp(mine, other) == 0 && share_a_cpu(mine + host, other + host))
            st = fail(e, E_USAGE,
                      "ranks %d and %d run on the same CPUs of %s (%s and %s)  -> place them with "
                      "mpirun --map-by or --bind-to, lower --threads, or use --pin none",
                      r->index, i, mine, mine + host, other + host);
    }
    free(all);
    return st;
}

static enum status ranks_fit_batch(const struct options *o, const struct ranks *r, struct err *e)
{
    if (o->batch.v[0] % r->count)
        return fail(e, E_USAGE, "%d ranks do not divide --batch %d  -> use a multiple of %d",
                    r->count, o->batch.v[0], r->count);
    return OK;
}

/* E_UNSUPPORTED: the model cannot be divided. */
static enum status ranks_divide(const struct config *c, const struct options *o,
                                const struct ranks *r, struct err *e)
{
    const char *const undivided = drive_of(c)->undivided;

    if (undivided)
        return fail(e, E_UNSUPPORTED, "%s: %s are not divided among ranks  -> use one rank",
                    c->variant->name, undivided);
    if (o->dropout > 0 && c->ffn->by_expert)
        return fail(e, E_UNSUPPORTED,
                    "%s: --dropout draws masks expert by expert, whose rows %d ranks divide  -> "
                    "use --dropout 0, or one rank",
                    c->variant->name, r->count);
    return OK;
}

/* ---- model and texts ---------------------------------------------------------------------- */

static enum mem_kind trains_with(const struct mem *m, int mem)
{
    if (m->recurrent)
        return MEM_HIDDEN;
    return m->state && mem != 0 && !mem_reruns(m, MEM_STATE, mem) ? MEM_STATE : MEM_RECOMPUTE;
}

/* Models that see what follows fill in hidden tokens, the others predict the next one. */
static enum status check_direction(const struct config *c, const struct options *o, struct err *e)
{
    const char *const name = c->variant->name;

    if (o->objective == OBJECTIVE_LM)
        return c->causal ? OK
                         : fail(e, E_UNSUPPORTED,
                                "%s is bidirectional here: tokens see those that they are to "
                                "predict  -> add --objective mlm, or choose a causal variant",
                                name);
    if (c->causal && config_can_look_ahead(c))
        return fail(e, E_UNSUPPORTED,
                    "--objective mlm: tokens of %s do not see what follows a hidden one  -> add "
                    "--direction both",
                    name);
    if (c->causal)
        return fail(e, E_UNSUPPORTED,
                    "--objective mlm: %s is causal only, and its tokens do not see what follows a "
                    "hidden one  -> choose one that sees both in bench list variants",
                    name);
    return OK;
}

enum status train_config(struct config *to, const struct variant *v, const struct options *opt,
                         int vocab, struct err *e)
{
    const int mem = opt->mem.v[0];
    /* A state has no length; what a task's checkpoint says of it is read when the task is played. */
    const int carried = mem == MEM_ALL && opt->task ? 1 : max_int(0, mem);
    const int mem_len = variant_mem(v)->recurrent || variant_mem(v)->state ? carried : 0;
    struct taken taken = {0};
    const int words = vocab + (opt->objective == OBJECTIVE_MLM); /* the last one hides others */

    if (opt->objective != OBJECTIVE_LM && mem != 0)
        return fail(e, E_USAGE,
                    "--objective %s: a text is seen whole, without a past  -> use --mem 0",
                    opt->objective == OBJECTIVE_MLM ? "mlm" : "seq2seq");
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
    to->max_seq = to->enc_layers ? max_int(opt->seq.v[0], train_pair(opt).source) : opt->seq.v[0];
    if (opt->task) /* the value of what follows a segment */
        to->max_seq++;
    if (trains_with(config_mem(to), mem) == MEM_RECOMPUTE) { /* the past is a part of the window */
        to->max_seq += mem;
        to->mem_len = 0;
    }
    return to->enc_layers ? OK : check_direction(to, opt, e);
}

/* ---- binding ------------------------------------------------------------------------------ */

static enum status bind_all(void *arg, struct err *e)
{
    struct trainer *const t = arg;
    const int window = t->past + t->L + (t->play ? 1 : 0);
    const int before = t->pairs.target ? t->pairs.source : t->M;
    const struct extent max = {t->B, window, before}, one = {t->play ? t->B : 1, window, before};
    const size_t rows = (size_t)t->B * (size_t)window;
    const struct params model = lora_model(&t->lora, &t->lm.params);
    struct arena *a = &t->arena;

    engine_bind(&t->engine, a);
    TRY(lm_bind(&t->lm, &t->engine, t->kind, max, a, e));

    TRY(lm_bind_grad(&t->lm, &t->engine, a, e));
    optimizer_bind(&t->optimizer, &t->lm.params, a);
    lora_bind(&t->lora, &t->lm.params, a);
    params_borrow(&t->valid_lm.params, &model);
    TRY(lm_bind(&t->valid_lm, &t->engine, t->kind, one, a, e));
    t->tokens = arena_take(a, PART_ACTIVATIONS, rows * sizeof(int32_t));
    t->targets = arena_take(a, PART_ACTIVATIONS, rows * sizeof(int32_t));
    t->nll = arena_f32(a, PART_ACTIVATIONS, rows);
    t->places = arena_take(a, PART_ACTIVATIONS, (size_t)t->B * (size_t)t->hidden * sizeof(int32_t));
    t->source =
        arena_take(a, PART_ACTIVATIONS, (size_t)t->B * (size_t)t->pairs.source * sizeof(int32_t));
    t->lm.source = t->valid_lm.source = t->source;
    if (t->reads->bind)
        t->reads->bind(t, a);
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

struct trainer_frozen trainer_frozen(const struct trainer *t)
{
    struct trainer_frozen text = {""};
    double n = 0;

    for (int i = 0; i < t->lm.params.n; i++)
        n += t->lm.params.v[i].frozen ? 0 : (double)t->lm.params.v[i].n;
    if (t->opt->train_only.n > 0 || t->lora.n > 0)
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
    TRY(train_from_only(&t->lm.params, "train-only ", &o->train_only, e));
    TRY(train_from_lora(t, e));
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
    if (o->from && (!o->resume || t->lora.n > 0))
        TRY(train_from_load(t, e));
    else if (!o->from)
        params_init_training(&t->lm.params, o->seed,
                             o->init == INITIAL_BY_DEPTH ? 1 / sqrtf((float)t->lm.sublayers.n) : 1,
                             t->engine.threads);
    lora_begin(&t->lora, &t->lm.params, o->seed, t->engine.threads);
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
    if (!t->opt->task)
        TRY(train_texts_open(t, e));
    TRY(t->reads->open(t, e));
    TRY(open_model(t, e));
    if (t->play)
        TRY(player_check(&t->lm, e));
    return t->ranks.count > 1 ? ranks_divide(&t->lm.c, t->opt, &t->ranks, e) : OK;
}

static const struct train_kind *const objectives[] = {[OBJECTIVE_LM] = &train_next,
                                                      [OBJECTIVE_MLM] = &train_masked,
                                                      [OBJECTIVE_SEQ2SEQ] = &train_pairs};

enum status trainer_open_ranked(struct trainer *t, const struct options *opt,
                                const struct ranks *ranks, struct err *e)
{
    memset(t, 0, sizeof(*t)); /* a literal of it would be a frame of its size */
    t->opt = opt;
    t->reads = opt->task ? &train_play : objectives[opt->objective];
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
    const uint64_t mine = train_state_hash(&t->lm.params);
    uint64_t first = mine;

    ranks_from_first(&t->ranks, &first, sizeof(first));
    return !ranks_any(&t->ranks, first != mine);
}

void trainer_close(struct trainer *t)
{
    optimizer_free(&t->optimizer);
    lora_free(&t->lora);
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

struct step_report trainer_step(struct trainer *t, double progress)
{
    const struct options *o = t->opt;
    struct step_report r = {
        .lr = train_lr(o, t->optimizer.step + 1, progress), .entropy = NAN, .returned = NAN};

    params_zero_grad(&t->lm.params);
    t->lm.progress = progress;
    t->reads->gradient(t, &r);
    const double ponder = lm_layers_run(&t->lm).ponder;
    r.ponder = ponder > 0 ? ponder : NAN;
    lora_gradient(&t->lora, &t->lm.params, &t->engine);
    r.grad_norm = grad_norm(&t->lm.params, t->engine.threads);
    const bool clip = o->grad_clip > 0 && r.grad_norm > o->grad_clip;
    optimizer_step(&t->optimizer, &t->lm.params, &t->engine, r.lr,
                   clip ? o->grad_clip / r.grad_norm : 1);
    lora_merge(&t->lora, &t->lm.params, &t->engine);
    t->lm.drop.step = (uint64_t)t->optimizer.step;
    lm_build_tables(&t->lm, &t->engine);
    return r;
}

struct validation trainer_validate(struct trainer *t) { return t->reads->validate(t); }
