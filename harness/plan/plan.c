/* SPDX-License-Identifier: MIT
 *
 * The cartesian product. Axes that do not apply to a workload or a variant have one value there, so
 * no case is made twice. */
#include "plan.h"
#include "filter.h"
#include "harness/util/grow.h"
#include "harness/util/suggest.h"
#include "variants/model/control.h"
#include "variants/parts/parts.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MAX_CASES = 1000000 };

/* The state of plan_make. */
struct maker {
    struct plan *plan;
    const struct options *opt;
    struct options preset;
    const struct variant *variants[MAX_LOOKUP];
    const struct backend *backends[MAX_LOOKUP];
    int n_variants, n_backends;
    int one, layers, threads; /* values of axes that do not apply or were not given */
    struct filter *filters;
    bool any;                    /* a case was made, even if a filter removed it */
    const struct variant *ahead; /* one whose model does not fit a case; NULL = none */
    bool crosses;                /* there are cases of cross attention */
    struct err not_encdec;       /* why a model is none of an encoder and a decoder; "" = all are */
};

static bool asks_kind(const struct options *opt, const char *name)
{
    for (int i = 0; i < opt->mem_kinds.n; i++)
        if (strcmp(opt->mem_kinds.v[i], name) == 0)
            return true;
    return false;
}

/* Does a list mean this backend for a case? `auto` and `fast` mean one that adds a type only for
 * cases of that type. */
static bool asks_backend(const struct options *opt, const struct bench_case *c)
{
    for (int i = 0; i < opt->backends.n; i++)
        if (strcmp(opt->backends.v[i], c->backend->name) == 0)
            return true;
    return backend_acting(c->backend, c->config.dtype) == c->backend;
}

/* The kind that `auto` stands for. A training step runs the context of a sum again, as `train` does. */
static enum mem_kind usual_kind(const struct mem *m, const struct bench_case *c)
{
    return c->workload == WORK_TRAIN && m->sums && c->mem != MEM_ALL
               ? MEM_RECOMPUTE
               : mem_usual(m, c->phase == PHASE_FWD_BWD);
}

/* Do so many layers show nothing of it? A stack that was asked for says itself which attend. */
static bool hidden(const struct options *opt, const struct variant *v, enum workload w, int layers)
{
    const bool stacked = workload_is_model(w) && opt->chosen[CHOICE_stack].n > 0;

    return (v->whole && w == WORK_LAYER) ||
           (w != WORK_CROSS && !stacked && control_hides(v, layers));
}

/* The kinds of memory of a variant among those asked for, in the order of the enum. */
static int memory_kinds(enum mem_kind out[MEM_KIND_COUNT], const struct options *opt,
                        const struct variant *v, const struct bench_case *c)
{
    const bool any = asks_kind(opt, "auto");
    const enum workload w = c->workload;
    const int layers = c->layers, mem = c->mem;
    int n = 0;

    const bool no_prompt = w == WORK_REQUEST && (mem == 0 || mem == MEM_ALL);
    if (no_prompt || (mem == MEM_ALL && w == WORK_ATTN) || hidden(opt, v, w, layers))
        return 0;

    if (w == WORK_ENCDEC) { /* its texts are whole */
        out[0] = MEM_NONE;
        return mem != MEM_ALL;
    }
    if (w == WORK_ATTN) {
        if (!v->mixer) /* a mixer has no core of this kind */
            out[n++] = MEM_NONE;
        return n;
    }
    /* The context of cross attention is cached or not, whatever the variant does with its past. */
    const struct mem *const of = w == WORK_CROSS ? &mem_segment : v->mem;
    for (enum mem_kind k = MEM_NONE + 1; k < MEM_KIND_COUNT; k++)
        if (mem_can(of, k) && (mem != MEM_ALL || k == MEM_STATE) &&
            (asks_kind(opt, mem_kind_name[k]) || (any && k == usual_kind(of, c))))
            out[n++] = k;
    return n;
}

/* The kind that was asked for although the variant has none of them. */
static enum mem_kind kind_in_vain(const struct options *opt, enum workload w)
{
    enum mem_kind k = MEM_NONE;

    while (w != WORK_ATTN && k + 1 < MEM_KIND_COUNT && !asks_kind(opt, mem_kind_name[k]))
        k++;
    return k;
}

/* Why a variant has no kind of memory for these options: for a row, in few words. */
static const char *why_unsupported(const struct options *opt, const struct variant *v,
                                   enum workload w, int layers, int mem)
{
    if (v->whole && w == WORK_LAYER)
        return "unsupported: its layers run in a model only";
    if (hidden(opt, v, w, layers))
        return workload_is_model(w)
                   ? "unsupported: it acts between layers: --layers 6 shows it"
                   : "unsupported: it acts between layers: --workload segment shows it";
    if (w == WORK_REQUEST && (mem == 0 || mem == MEM_ALL))
        return mem ? "unsupported: a prompt has a number of tokens"
                   : "unsupported: there is no prompt";
    if (mem == MEM_ALL)
        return w == WORK_ATTN               ? "unsupported: attention alone carries no state"
               : w == WORK_ENCDEC           ? "unsupported: a source has a length"
               : mem_can(v->mem, MEM_STATE) ? "unsupported: all of the past is in a state"
               : v->mem->state ? "unsupported: its attention remembers a number of tokens"
                               : "unsupported: it carries no state";
    if (w == WORK_ATTN)
        return v->mixer->attends ? "unsupported: its core runs in a layer only"
                                 : "unsupported: it has no attention";
    if (v->mem->recurrent)
        return "unsupported: it keeps rows of its past, not this kind of memory";
    return v->mem->state ? "unsupported: it carries a state, not this kind of memory"
                         : "unsupported: it keeps no memory, this kind caches it";
}

/* Why a model cannot attend to a context, or to none. */
static const char *why_not_cross(const struct bench_case *c)
{
    if (!config_can_cross(&c->config))
        return "unsupported: its scores are more than q.k";
    if (!c->config.causal && !c->variant->bidirectional)
        return "unsupported: a context has no direction";
    return c->mem ? NULL : "unsupported: there is no context";
}

/* Why a model cannot have an encoder, although it could be without one, which is said in `why`; or
 * reads no text with it. */
static const char *why_not_encdec(const struct bench_case *c, struct err *why)
{
    struct config plain = c->config;
    struct err other;

    plain.enc_layers = 0;
    if (config_check(&plain, &other) == OK && config_check(&c->config, why) != OK)
        return "unsupported: it cannot be an encoder and a decoder";
    return c->mem ? NULL : "unsupported: there is no source: --mem gives its length";
}

/* Why a case cannot have weights of its element type. */
static const char *why_not_narrow(const struct bench_case *c)
{
    if (c->config.dtype == ELEM_F32)
        return NULL;
    return c->workload == WORK_CROSS ||
                   (c->workload == WORK_ATTN && elem_in_blocks(c->config.dtype))
               ? "unsupported: attention alone has no weights"
           : c->phase == PHASE_FWD        ? NULL
           : c->workload == WORK_ATTN     ? "unsupported: attention is trained in f32"
           : c->config.dtype == ELEM_BF16 ? NULL
                                          : "unsupported: weights are not trained in 8 bits or 4";
}

/* Why a case cannot cache keys and values in its element type. */
static const char *why_not_narrow_kv(const struct bench_case *c)
{
    if (c->config.kv_dtype == ELEM_F32)
        return NULL;
    return c->phase != PHASE_FWD ? "unsupported: training reads keys and values as f32"
           : c->mem_kind == MEM_KV || c->workload == WORK_ATTN
               ? NULL
               : "unsupported: no keys and values are cached";
}

static const char *why_not_any_narrow(const struct bench_case *c)
{
    const char *const weights = why_not_narrow(c);

    return weights ? weights : why_not_narrow_kv(c);
}

/* Why a model cannot run a case, such as one whose queries see the keys after them. */
static const char *why_not_here(const struct bench_case *c, struct err *why)
{
    if (c->workload == WORK_ENCDEC)
        return why_not_encdec(c, why);
    if (c->workload == WORK_CROSS)
        return why_not_cross(c);
    if (c->config.causal)
        return NULL;
    if (workload_is_model(c->workload))
        return "unsupported: it is bidirectional, without a next token";
    return c->mem ? "unsupported: it is bidirectional, without a past" : NULL;
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
    const enum status st = c->unsupported ? OK : config_check(&c->config, e);
    if (st != OK)
        return st;
    if (GROW(p->cases, p->n, e) != OK)
        return E_NOMEM;
    c->repro = case_repro(c, &m->preset);
    if (!c->repro)
        return fail(e, E_NOMEM, "no memory for %d cases  -> use shorter ranges", p->n);
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
    int n_kinds = memory_kinds(kinds, opt, v, &c);
    int count[MODEL_CHOICE_COUNT], at[MODEL_CHOICE_COUNT] = {0};

    c.variant = v;
    if (n_kinds == 0) {
        c.unsupported = why_unsupported(opt, v, c.workload, c.layers, c.mem);
        kinds[n_kinds++] = kind_in_vain(opt, c.workload);
    }
    int n = n_kinds * m->n_backends;
    for (int i = 0; i < n_kinds && c.phase != PHASE_FWD && !c.unsupported; i++)
        if (kinds[i] == MEM_KV) /* the weights that make keys and values change */
            return fail(
                e, E_USAGE,
                "--mem-kind kv has no backward pass: its weights change  -> use hidden or auto");
    enum status st = case_configure(&c, at, e);
    for (int i = 0; i < MODEL_CHOICE_COUNT && st == OK; i++)
        n *= count[i] = value_count(m, &c, i);
    taken_add(&m->plan->taken, &c.config, scope);
    const char *const none = c.unsupported;
    for (int i = 0; i < n && st == OK; i++) {
        int rest = i;
        c.backend = m->backends[rest % m->n_backends];
        rest /= m->n_backends;
        c.mem_kind = kinds[rest % n_kinds];
        rest /= n_kinds;
        for (int k = MODEL_CHOICE_COUNT - 1; k >= 0; rest /= count[k--])
            at[k] = rest % count[k];
        st = case_configure(&c, at, e);
        if (st == OK && (is_again(&c, at) || !asks_backend(opt, &c)))
            continue;
        const char *const ahead = none ? NULL : why_not_here(&c, &m->not_encdec);
        c.unsupported = none ? none : ahead ? ahead : why_not_any_narrow(&c);
        m->ahead = ahead ? v : m->ahead;
        m->any = m->any || (!none && !ahead); /* of another type it is */
        m->crosses = m->crosses || c.workload == WORK_CROSS;
        if (st == OK)
            st = push(m, &c, e);
    }
    return st;
}

static enum status add_group(struct maker *m, struct bench_case c, struct err *e)
{
    const int before = m->plan->n;
    enum status st = OK;

    c.group = m->plan->groups;
    for (int i = 0; i < m->n_variants && st == OK; i++)
        st = add_variant(m, c, m->variants[i], e);
    m->plan->groups += m->plan->n > before;
    return st;
}

/* All shapes of a workload in one phase; seq varies fastest. */
static enum status add_phase(struct maker *m, enum workload w, enum phase phase, struct err *e)
{
    const struct options *const opt = m->opt;
    const struct ints one = {&m->one, 1}, own_layers = {&m->layers, 1};
    const struct ints own_threads = {&m->threads, 1};
    const struct ints seq = w == WORK_DECODE ? one : opt->seq;
    const struct ints threads = opt->threads.n ? opt->threads : own_threads;
    const struct ints layers = !workload_is_model(w) ? one
                               : opt->layers.n       ? opt->layers
                                                     : own_layers;
    const struct ints *const axes[] = {&threads, &opt->batch, &layers, &opt->mem, &seq};
    double n = 1;
    enum status st = OK;

    for (size_t i = 0; i < ARRAY_LEN(axes); i++)
        n *= axes[i]->n;
    double inside = (double)m->n_variants * m->n_backends * opt->mem_kinds.n;
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        inside *= max_int(opt->chosen[i].n, 1);
    if (n * inside > MAX_CASES)
        return fail(e, E_USAGE, "about %.2g %s cases, more than %d  -> use shorter lists",
                    n * inside, workload_name[w], MAX_CASES);
    for (int i = 0; i < (int)n && st == OK; i++) {
        int at[ARRAY_LEN(axes)], rest = i;
        for (int k = (int)ARRAY_LEN(axes) - 1; k >= 0; k--) {
            at[k] = axes[k]->v[rest % axes[k]->n];
            rest /= axes[k]->n;
        }
        st = add_group(m,
                       (struct bench_case){
                           .workload = w,
                           .phase = phase,
                           .threads = at[0],
                           .batch = at[1],
                           .layers = at[2],
                           .mem = at[3],
                           .seq = at[4],
                           .opt = opt,
                       },
                       e);
    }
    return st;
}

/* --phase is an axis of attn, layer, cross and encdec; train is both, the others are forward. */
static enum status add_workload(struct maker *m, enum workload w, struct err *e)
{
    const struct names *const phases = &m->opt->phases;
    const bool axis = w == WORK_ATTN || w == WORK_LAYER || w == WORK_CROSS || w == WORK_ENCDEC;
    enum status st = OK;

    if (w == WORK_TRAIN)
        return add_phase(m, w, PHASE_FWD_BWD, e);
    for (int i = 0; i < phases->n && st == OK; i++)
        for (int p = 0; p < PHASE_COUNT && st == OK; p++)
            if (strcmp(phases->v[i], phase_name[p]) == 0)
                st = axis || p == PHASE_FWD
                         ? add_phase(m, w, (enum phase)p, e)
                         : fail(e, E_USAGE,
                                "--phase %s does not apply to --workload %s, which is forward only "
                                " -> use attn, layer, cross or encdec, or --workload train",
                                phase_name[p], workload_name[w]);
    return st;
}

/* The workload of all cases, or -1. */
static int only_workload(const struct options *opt)
{
    return opt->workloads.n == 1 ? word_index(opt->workloads.v[0], workload_name) : -1;
}

/* The error for a variant that acts between layers, of which there are too few; OK: it is another. */
static enum status too_few_layers(const struct maker *m, const struct variant *v, struct err *e)
{
    const int w = only_workload(m->opt);
    const bool models = w >= 0 && workload_is_model((enum workload)w);
    const int layers = !models ? 1 : m->opt->layers.n ? m->opt->layers.v[0] : m->layers;

    if (w < 0 || !hidden(m->opt, v, (enum workload)w, layers))
        return OK;
    if (models)
        return fail(e, E_UNSUPPORTED,
                    "--layers %d does not apply to %s, which acts between layers: so few are those "
                    "of %s  -> use --layers 6",
                    layers, v->name, v->control);
    return fail(e, E_UNSUPPORTED,
                "--workload %s does not apply to %s, which acts between layers: one of them is "
                "that of %s  -> use --workload segment --layers 6",
                workload_name[w], v->name, v->control);
}

/* The error for a plan of unsupported cases only, although every axis has values: the cause is
 * --mem-kind, or --workload attn. */
static enum status no_such_memory(const struct maker *m, struct err *e)
{
    const struct variant *const v = m->variants[0];

    if (m->ahead && m->crosses)
        return fail(e, E_UNSUPPORTED,
                    "--workload cross does not apply to %s here: it needs a context, and scores of "
                    "q.k alone  -> use a variant such as vanilla, and --mem 1 or more",
                    m->ahead->name);
    if (*m->not_encdec.msg)
        return fail(e, E_UNSUPPORTED, "--workload encdec: %s", m->not_encdec.msg);
    if (m->ahead && only_workload(m->opt) == WORK_ENCDEC)
        return fail(
            e, E_UNSUPPORTED,
            "--workload encdec needs a source  -> --mem gives the length of it, --seq that of "
            "its translation");
    if (m->ahead)
        return fail(e, E_UNSUPPORTED,
                    "%s is bidirectional here: it has no context before its text and no next token "
                    " -> use --workload %slayer and --mem 0",
                    m->ahead->name, m->ahead->mixer ? "" : "attn or ");
    if (only_workload(m->opt) == WORK_REQUEST && m->opt->mem.n == 1 && m->opt->mem.v[0] <= 0)
        return fail(
            e, E_USAGE,
            "--workload request reads a prompt of --mem tokens, not of %s  -> use --mem 512",
            m->opt->mem.v[0] ? "all" : "0");
    if (m->opt->mem.n == 1 && m->opt->mem.v[0] == MEM_ALL)
        return fail(
            e, E_USAGE,
            "--mem all does not apply to %s%s%s: it needs a recurrent state  -> give a number of "
            "tokens, or a variant with a state in --workload layer, segment, decode or train",
            v->name, asks_kind(m->opt, "auto") ? "" : " and --mem-kind ",
            asks_kind(m->opt, "auto") ? "" : m->opt->mem_kinds.v[0]);
    if (v->whole && m->opt->workloads.n == 1 &&
        strcmp(m->opt->workloads.v[0], workload_name[WORK_LAYER]) == 0)
        return fail(e, E_UNSUPPORTED,
                    "--workload layer does not apply to %s, whose layers run in a model only  -> "
                    "use segment, decode or train",
                    v->name);
    if (too_few_layers(m, v, e) != OK)
        return E_UNSUPPORTED;
    if (v->mixer && m->opt->workloads.n == 1 &&
        strcmp(m->opt->workloads.v[0], workload_name[WORK_ATTN]) == 0)
        return fail(
            e, E_UNSUPPORTED, "--workload attn does not apply to %s, %s  -> use layer", v->name,
            v->mixer->attends ? "whose core runs in a layer only" : "which has no attention");
    if (v->mem->state)
        return fail(e, E_USAGE,
                    "--mem-kind %s does not apply to %s, which carries a state  -> use state, "
                    "recompute or auto",
                    m->opt->mem_kinds.v[0], v->name);
    if (v->mem->recurrent)
        return fail(e, E_USAGE,
                    "--mem-kind recompute does not apply to %s, which keeps its memory  -> use "
                    "hidden, kv or auto",
                    v->name);
    return fail(e, E_USAGE, "--mem-kind %s does not apply to %s, which keeps no memory  -> use %s",
                m->opt->mem_kinds.v[0], v->name,
                v->mem->cached ? "kv, recompute or auto" : "recompute or auto");
}

static enum status make(struct maker *m, struct err *e)
{
    const struct options *const opt = m->opt;
    enum status st = lookup_variants(m->variants, &m->n_variants, opt, e);

    if (st == OK)
        st = lookup_backends(m->backends, &m->n_backends, opt, e);
    for (int i = 0; i < opt->filters.n && st == OK; i++)
        if ((st = filter_parse(&m->filters[i], opt->filters.v[i], e)) == OK)
            st = filter_check(&m->filters[i], e);
    for (int i = 0; i < opt->workloads.n && st == OK; i++)
        for (int w = 0; w < WORK_COUNT && st == OK; w++)
            if (strcmp(opt->workloads.v[i], workload_name[w]) == 0)
                st = add_workload(m, (enum workload)w, e);
    if (st == OK && !m->any)
        st = no_such_memory(m, e);
    return st;
}

enum status plan_make(struct plan *p, const struct options *opt, struct err *e)
{
    struct maker m = {
        .plan = p,
        .opt = opt,
        .one = 1,
        .layers = DEFAULT_LAYERS,
        .threads = opt->default_threads,
    };
    enum status st = options_parse_line(&m.preset, "", e);

    *p = (struct plan){0};
    if (st == OK && opt->filters.n) {
        m.filters = calloc((size_t)opt->filters.n, sizeof(*m.filters));
        if (!m.filters)
            st = fail(e, E_NOMEM, "no memory for filters");
    }
    if (st == OK)
        st = make(&m, e);
    if (st == OK && opt->shard)
        st = plan_keep_shard(p, opt->shard, e);
    free(m.filters);
    options_free(&m.preset);
    if (st != OK)
        plan_free(p);
    return st;
}

enum status plan_asked(struct plan *p, const struct options *opt, struct err *e)
{
    enum status st = plan_make(p, opt, e);

    if (st == OK)
        st = taken_check(&p->taken, opt, opt->variants.v[0], e);
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
