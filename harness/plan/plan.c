/* SPDX-License-Identifier: MIT
 *
 * The cartesian product. Axes that do not apply to a workload or a variant have one value there, so
 * no case is made twice. */
#include "plan.h"
#include "filter.h"
#include "variants/model/config/control.h"

#include <xxhash.h>

enum { MAX_CASES = 1000000 };

/* Why a case is unsupported. */
struct reason {
    const char *row;                                     /* NULL = it is not: what its row says */
    enum { BY_WORKLOAD, BY_MEM, BY_KIND, BY_LAYERS } by; /* the option whose value decides it */
    const char *advice;                                  /* what to use in place of it */
};
#define WHY(row_, by_, advice_) ((struct reason){"unsupported: " row_, by_, advice_})

/* The state of plan_make. */
struct maker {
    struct plan *plan;
    const struct options *opt;
    struct options preset;
    const struct variant *variants[MAX_LOOKUP];
    const struct backend *backends[MAX_LOOKUP];
    int n_variants, n_backends;
    struct filter *filters;
    bool any;       /* a case was made, even if a filter removed it */
    struct err why; /* the error if none is; "" = no case was unsupported */
    enum status st; /* and its status */
};

/* Does a list mean this backend for a case? `auto` and `fast` mean one that adds a type only for
 * cases of that type. */
static bool asks_backend(const struct options *opt, const struct bench_case *c)
{
    return names_have(&opt->backends, c->backend->name) ||
           backend_acting(c->backend, c->config.dtype) == c->backend;
}

/* The kind that `auto` stands for. A training step runs the context of a sum again, as `train` does. */
static enum mem_kind usual_kind(const struct mem *m, const struct bench_case *c)
{
    return workload_has(c->workload, WORK_TRAINS) && m->sums && c->mem != MEM_ALL
               ? MEM_RECOMPUTE
               : mem_usual(m, c->phase == PHASE_FWD_BWD);
}

/* Do so many layers show nothing of it? A stack that was asked for says itself which attend. */
static bool hidden(const struct options *opt, const struct bench_case *c)
{
    const bool stacked = workload_is_model(c->workload) && opt->chosen[CHOICE_stack].n > 0;

    return workload_context(c->workload) != CONTEXT_ROWS && !stacked &&
           control_hides(c->variant, c->layers);
}

/* Do its layers run in a model only, and this is one alone? */
static bool apart(const struct bench_case *c)
{
    return c->variant->whole && workload_scope(c->workload) == SCOPE_LAYER;
}

/* The kinds of memory of a variant among those asked for, in the order of the enum. */
static int memory_kinds(enum mem_kind out[MEM_KIND_COUNT], const struct options *opt,
                        const struct bench_case *c)
{
    const bool any = names_have(&opt->mem_kinds, "auto"), all = c->mem == MEM_ALL;
    const enum context context = workload_context(c->workload);
    int n = 0;

    if ((all && workload_rows[c->workload].not_all) || (context == CONTEXT_PROMPT && c->mem == 0) ||
        apart(c) || hidden(opt, c))
        return 0;
    if (context == CONTEXT_SOURCE || context == CONTEXT_KEYS) {
        out[0] = MEM_NONE; /* texts are whole; a mixer has no core of this kind */
        return context == CONTEXT_SOURCE || !c->variant->mixer;
    }
    /* The context of cross attention is cached or not, whatever the variant does with its past. */
    const struct mem *const of = context == CONTEXT_ROWS ? &mem_segment : variant_mem(c->variant);
    for (enum mem_kind k = MEM_NONE + 1; k < MEM_KIND_COUNT; k++)
        if (mem_can(of, k) && (!all || k == MEM_STATE) &&
            (names_have(&opt->mem_kinds, mem_kind_name[k]) || (any && k == usual_kind(of, c))))
            out[n++] = k;
    return n;
}

/* The kind that was asked for although the variant has none of them. */
static enum mem_kind kind_in_vain(const struct options *opt, enum workload w)
{
    enum mem_kind k = MEM_NONE;

    while (workload_context(w) != CONTEXT_KEYS && k + 1 < MEM_KIND_COUNT &&
           !names_have(&opt->mem_kinds, mem_kind_name[k]))
        k++;
    return k;
}

/* Why a variant has no kind of memory for these options. */
static struct reason why_no_memory(const struct options *opt, const struct bench_case *c)
{
    static const char state[] = "give a number of tokens, or a variant with a state in --workload "
                                "layer, segment, decode or train";
    const struct workload_row *const w = &workload_rows[c->workload];
    const struct mem *const mem = variant_mem(c->variant);

    if (apart(c))
        return WHY("its layers run in a model only", BY_WORKLOAD, "use segment, decode or train");
    if (hidden(opt, c))
        return w->scope == SCOPE_MODEL
                   ? WHY("it acts between layers: --layers 6 shows it", BY_LAYERS, "use --layers 6")
                   : WHY("it acts between layers: --workload segment shows it", BY_WORKLOAD,
                         "use --workload segment --layers 6");
    if (c->mem == MEM_ALL && w->not_all)
        return (struct reason){w->not_all, BY_MEM, w->advice};
    if (c->mem == 0 && w->context == CONTEXT_PROMPT)
        return (struct reason){w->not_zero, BY_MEM, w->advice};
    if (c->mem == MEM_ALL)
        return mem_can(mem, MEM_STATE) ? WHY("all of the past is in a state", BY_MEM, state)
               : mem->state ? WHY("its attention remembers a number of tokens", BY_MEM, state)
                            : WHY("it carries no state", BY_MEM, state);
    if (w->context == CONTEXT_ROWS)
        return WHY("its context is cached or projected in each call", BY_KIND,
                   "use hidden, kv or auto");
    if (w->context == CONTEXT_KEYS)
        return c->variant->mixer->attends
                   ? WHY("its core runs in a layer only", BY_WORKLOAD, "use layer")
                   : WHY("it has no attention", BY_WORKLOAD, "use layer");
    if (mem->recurrent)
        return WHY("it keeps rows of its past, not this kind of memory", BY_KIND,
                   "use hidden, kv or auto");
    if (mem->state)
        return WHY("it carries a state, not this kind of memory", BY_KIND,
                   "use state, recompute or auto");
    return WHY("it keeps no memory, this kind caches it", BY_KIND,
               mem->cached ? "use kv, recompute or auto" : "use recompute or auto");
}

/* Could the model be one without an encoder, but not with one? `why` says so. */
static bool never_encodes(const struct bench_case *c, struct err *why)
{
    struct config plain = c->config;
    struct err other;

    plain.enc_layers = 0;
    return config_check(&plain, &other) == OK && config_check(&c->config, why) != OK;
}

/* Why a model cannot run a case, such as one whose queries see the keys after them. */
static struct reason why_not_here(const struct bench_case *c, struct err *why)
{
    const struct workload_row *const w = &workload_rows[c->workload];
    const bool sees_all = !c->config.causal;

    if (w->context == CONTEXT_SOURCE && never_encodes(c, why))
        return WHY("it cannot be an encoder and a decoder", BY_WORKLOAD, NULL);
    if (w->context == CONTEXT_ROWS && !config_can_cross(&c->config))
        return WHY("its scores are more than q.k", BY_WORKLOAD, "use a variant such as vanilla");
    if (w->context == CONTEXT_ROWS && sees_all && !c->variant->bidirectional)
        return WHY("a context has no direction", BY_WORKLOAD, "use a variant such as vanilla");
    if (w->context == CONTEXT_SOURCE || w->context == CONTEXT_ROWS)
        return c->mem ? (struct reason){0} : (struct reason){w->not_zero, BY_MEM, w->advice};
    if (sees_all && w->scope == SCOPE_MODEL)
        return WHY("it is bidirectional, without a next token", BY_WORKLOAD,
                   c->variant->mixer ? "use --workload layer and --mem 0"
                                     : "use --workload attn or layer and --mem 0");
    return sees_all && c->mem ? WHY("it is bidirectional, without a past", BY_MEM, "use --mem 0")
                              : (struct reason){0};
}

/* The error of a plan whose cases are all unsupported for this reason. `why`: more than the row says. */
static void note(struct maker *m, const struct bench_case *c, struct reason of, enum status st,
                 const char *why)
{
    static const char *const option[] = {"workload", "mem", "mem-kind", "layers"};
    const char *const name = workload_name[c->workload];
    char number[MEM_TEXT];

    mem_text(number, of.by == BY_MEM ? c->mem : c->layers);
    const char *const value = of.by == BY_WORKLOAD ? name
                              : of.by == BY_KIND   ? m->opt->mem_kinds.v[0]
                                                   : number;
    m->st = st;
    if (*why)
        fail(&m->why, m->st, "--workload %s: %s", name, why);
    else
        fail(&m->why, m->st, "--%s %s does not apply to %s%s%s: %s  -> %s", option[of.by], value,
             c->variant->name, of.by == BY_WORKLOAD ? "" : " in --workload ",
             of.by == BY_WORKLOAD ? "" : name, of.row + strlen("unsupported: "), of.advice);
}

/* Why a case cannot have weights of its element type. */
static const char *why_not_narrow(const struct bench_case *c)
{
    if (c->config.dtype == ELEM_F32)
        return NULL;
    const enum context context = workload_context(c->workload);
    return context == CONTEXT_ROWS ? "unsupported: projections of another text are f32"
           : context == CONTEXT_KEYS && elem_in_blocks(c->config.dtype)
               ? "unsupported: attention alone has no weights"
           : c->phase == PHASE_FWD        ? NULL
           : context == CONTEXT_KEYS      ? "unsupported: attention is trained in f32"
           : c->config.dtype == ELEM_BF16 ? NULL
                                          : "unsupported: weights are not trained in 8 bits or 4";
}

/* Why a case cannot cache keys and values in its element type. */
static const char *why_not_narrow_kv(const struct bench_case *c)
{
    if (c->config.kv_dtype == ELEM_F32)
        return NULL;
    return c->phase != PHASE_FWD ? "unsupported: training reads keys and values as f32"
           : workload_context(c->workload) == CONTEXT_ROWS
               ? "unsupported: keys and values of another text are f32"
           : c->mem_kind == MEM_KV || workload_context(c->workload) == CONTEXT_KEYS
               ? NULL
               : "unsupported: no keys and values are cached";
}

static bool passes(const struct maker *m, const struct bench_case *c)
{
    for (int i = 0; i < m->opt->filters.n; i++)
        if (!filter_match(&m->filters[i], c))
            return false;
    return true;
}

static enum status push(struct maker *m, struct bench_case *c, struct err *e)
{
    struct plan *const p = m->plan;

    m->any = m->any || !c->unsupported;
    if (!passes(m, c))
        return OK;
    if (!c->unsupported)
        TRY(config_check(&c->config, e));
    TRY(GROW(p->cases, p->n, e));
    c->repro = case_repro(c, &m->preset);
    snprintf(c->case_id, sizeof(c->case_id), "%016llx",
             (unsigned long long)XXH3_64bits(c->repro, strlen(c->repro)));
    c->index = p->n;
    p->cases[p->n++] = *c;
    return OK;
}

/* Number of values of a choice for the cases of one variant and shape; it may apply only where a
 * choice before it has another value than its first. */
static int value_count(struct maker *m, const struct bench_case *c, int i)
{
    const int n = m->opt->chosen[i].n;
    const enum scope scope = workload_scope(c->workload);

    for (int k = 0; k <= i && n; k++)
        for (int v = 0; v < max_int(m->opt->chosen[k].n, 1); v++) {
            int at[MODEL_CHOICE_COUNT] = {0};
            struct bench_case with = *c;
            at[k] = v;
            if (case_configure(&with, at, NULL) == OK &&
                choice_applies(&model_choices[i], &with.config, scope)) {
                taken_add(&m->plan->taken, &with.config, scope);
                return n;
            }
        }
    return 1;
}

/* Is it the case again that has the first value of a choice that does not apply to it? */
static bool is_again(const struct bench_case *c, const int at[MODEL_CHOICE_COUNT])
{
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        if (at[i] > 0 &&
            !choice_applies(&model_choices[i], &c->config, workload_scope(c->workload)))
            return true;
    return false;
}

/* The cases of one variant and one shape; `c` has the shape. The backend varies fastest, then the
 * kind of memory, then the choices of the model from the last to the first. */
static enum status add_variant(struct maker *m, struct bench_case c, const struct variant *v,
                               struct err *e)
{
    const struct options *const opt = m->opt;
    const enum scope scope = workload_scope(c.workload);
    enum mem_kind kinds[MEM_KIND_COUNT];
    int count[MODEL_CHOICE_COUNT], at[MODEL_CHOICE_COUNT] = {0};

    c.variant = v;
    int n_kinds = memory_kinds(kinds, opt, &c);
    if (n_kinds == 0) {
        const struct reason why = why_no_memory(opt, &c);
        c.unsupported = why.row;
        kinds[n_kinds++] = kind_in_vain(opt, c.workload);
        const bool mistaken = why.by == BY_MEM || why.by == BY_KIND || c.mem == MEM_ALL;
        if (!*m->why.msg)
            note(m, &c, why, mistaken ? E_USAGE : E_UNSUPPORTED, "");
    }
    int n = n_kinds * m->n_backends;
    for (int i = 0; i < n_kinds && c.phase != PHASE_FWD && !c.unsupported; i++)
        if (kinds[i] == MEM_KV) /* the weights that make keys and values change */
            return fail(
                e, E_USAGE,
                "--mem-kind kv has no backward pass: its weights change  -> use hidden or auto");
    TRY(case_configure(&c, at, e));
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        n *= count[i] = value_count(m, &c, i);
    taken_add(&m->plan->taken, &c.config, scope);
    const char *const none = c.unsupported;
    for (int i = 0; i < n; i++) {
        int rest = i;
        c.backend = m->backends[rest % m->n_backends];
        rest /= m->n_backends;
        c.mem_kind = kinds[rest % n_kinds];
        rest /= n_kinds;
        for (int k = MODEL_CHOICE_COUNT - 1; k >= 0; rest /= count[k--])
            at[k] = rest % count[k];
        TRY(case_configure(&c, at, e));
        if (is_again(&c, at) || !asks_backend(opt, &c))
            continue;
        struct err more = {""};
        const struct reason here = none ? (struct reason){0} : why_not_here(&c, &more);
        if (here.row)
            note(m, &c, here, E_UNSUPPORTED, more.msg);
        m->any = m->any || (!none && !here.row); /* of another type it is */
        const char *const narrow = why_not_narrow(&c);
        c.unsupported = none ? none : here.row ? here.row : narrow ? narrow : why_not_narrow_kv(&c);
        TRY(push(m, &c, e));
    }
    return OK;
}

static enum status add_group(struct maker *m, struct bench_case c, struct err *e)
{
    const int before = m->plan->n;

    c.group = m->plan->groups;
    for (int i = 0; i < m->n_variants; i++)
        TRY(add_variant(m, c, m->variants[i], e));
    m->plan->groups += m->plan->n > before;
    return OK;
}

/* All shapes of a workload in one phase; seq varies fastest. */
static enum status add_phase(struct maker *m, enum workload w, enum phase phase, struct err *e)
{
    const struct options *const opt = m->opt;
    /* Values of axes that do not apply or were not given. */
    int single = 1, usual_layers = DEFAULT_LAYERS, usual_threads = opt->default_threads;
    const struct ints one = {&single, 1}, own_layers = {&usual_layers, 1};
    const struct ints own_threads = {&usual_threads, 1};
    const struct ints seq = workload_has(w, WORK_ONE_TOKEN) ? one : opt->seq;
    const struct ints threads = opt->threads.n ? opt->threads : own_threads;
    const struct ints layers = !workload_is_model(w) ? one
                               : opt->layers.n       ? opt->layers
                                                     : own_layers;
    const struct ints *const axes[] = {&threads, &opt->batch, &layers, &opt->mem, &seq};
    double n = 1;

    for (size_t i = 0; i < ARRAY_LEN(axes); i++)
        n *= axes[i]->n;
    double inside = (double)m->n_variants * m->n_backends * opt->mem_kinds.n;
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        inside *= max_int(opt->chosen[i].n, 1);
    if (n * inside > MAX_CASES)
        return fail(e, E_USAGE, "about %.2g %s cases, more than %d  -> use shorter lists",
                    n * inside, workload_name[w], MAX_CASES);
    for (int i = 0; i < (int)n; i++) {
        int at[ARRAY_LEN(axes)], rest = i;
        for (int k = (int)ARRAY_LEN(axes) - 1; k >= 0; k--) {
            at[k] = axes[k]->v[rest % axes[k]->n];
            rest /= axes[k]->n;
        }
        const struct bench_case c = {
            .workload = w,
            .phase = phase,
            .threads = at[0],
            .batch = at[1],
            .layers = at[2],
            .mem = at[3],
            .seq = at[4],
            .opt = opt,
        };
        TRY(add_group(m, c, e));
    }
    return OK;
}

static enum status add_workload(struct maker *m, enum workload w, struct err *e)
{
    const struct names *const phases = &m->opt->phases;

    if (workload_has(w, WORK_TRAINS))
        return add_phase(m, w, PHASE_FWD_BWD, e);
    for (int i = 0; i < phases->n; i++) {
        const enum phase p = (enum phase)word_index(phases->v[i], phase_name);
        if (p != PHASE_FWD && !workload_has(w, WORK_PHASES))
            return fail(e, E_USAGE,
                        "--phase %s does not apply to --workload %s, which is forward only  -> use "
                        "attn, layer, cross or encdec, or --workload train",
                        phase_name[p], workload_name[w]);
        TRY(add_phase(m, w, p, e));
    }
    return OK;
}

static enum status make(struct maker *m, struct err *e)
{
    const struct options *const opt = m->opt;

    TRY(options_parse_line(&m->preset, "", e));
    m->filters = need_room((size_t)opt->filters.n + 1, sizeof(*m->filters));
    TRY(lookup_variants(m->variants, &m->n_variants, opt, e));
    TRY(lookup_backends(m->backends, &m->n_backends, opt, e));
    for (int i = 0; i < opt->filters.n; i++) {
        TRY(filter_parse(&m->filters[i], opt->filters.v[i], e));
        TRY(filter_check(&m->filters[i], e));
    }
    for (int i = 0; i < opt->workloads.n; i++)
        TRY(add_workload(m, (enum workload)word_index(opt->workloads.v[i], workload_name), e));
    CHECK(m->any || *m->why.msg);
    if (!m->any)
        return fail(e, m->st, "%s", m->why.msg);
    return opt->shard ? plan_keep_shard(m->plan, opt->shard, e) : OK;
}

enum status plan_make(struct plan *p, const struct options *opt, struct err *e)
{
    struct maker m = {
        .plan = p,
        .opt = opt,
    };

    *p = (struct plan){0};
    const enum status st = make(&m, e);
    free(m.filters);
    options_free(&m.preset);
    if (st != OK)
        plan_free(p);
    return st;
}

enum status plan_asked(struct plan *p, const struct options *opt, struct err *e)
{
    TRY(plan_make(p, opt, e));
    const enum status st = taken_check(&p->taken, opt, opt->variants.v[0], e);
    if (st != OK)
        plan_free(p);
    return st;
}

int plan_drop_unsupported(struct plan *p)
{
    int kept = 0;

    for (int i = 0; i < p->n; i++) {
        if (p->cases[i].unsupported)
            free(p->cases[i].repro);
        else
            p->cases[kept++] = p->cases[i];
    }
    const int dropped = p->n - kept;
    p->n = kept;
    return dropped;
}

void plan_free(struct plan *p)
{
    for (int i = 0; i < p->n; i++)
        free(p->cases[i].repro);
    free(p->cases);
    *p = (struct plan){0};
}
