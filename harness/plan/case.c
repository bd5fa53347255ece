/* SPDX-License-Identifier: MIT
 *
 * Cases: their choices as text, and the models that they measure. */
#include "case.h"

#include "variants/model/config/control.h"
#include "variants/model/config/skeleton.h"

const char *const phase_name[PHASE_COUNT + 1] = {"fwd", "fwd_bwd", NULL};
const char *const mem_word[] = {"all", NULL};

void mem_text(char text[MEM_TEXT], int64_t mem)
{
    if (mem < 0)
        snprintf(text, MEM_TEXT, "%s", mem_word[0]);
    else
        snprintf(text, MEM_TEXT, "%lld", (long long)mem);
}

bool case_names_phase(const struct bench_case *c)
{
    return c->phase != PHASE_FWD && !workload_has(c->workload, WORK_TRAINS);
}

/* ---- choices ------------------------------------------------------------------------------ */

static const void *backend_at(int i) { return backends[i]; }
static const struct registry backend_registry = {"backend", backend_at};

#define X(name_, type_, codec_, field_, option_, unit_, help_, ...)                                \
    [CASE_##name_] = {.name = #name_,                                                              \
                      .option = option_,                                                           \
                      .unit = unit_,                                                               \
                      .help = help_,                                                               \
                      .codec = CODEC_##codec_,                                                     \
                      .at = offsetof(struct bench_case, field_),                                   \
                      __VA_ARGS__},
const struct choice case_choices[CASE_CHOICE_COUNT] = {CASE_CHOICES(X) THREADS_CHOICE(X)};
#undef X

_Static_assert((int)SETTINGS_TEXT <= (int)CHOICE_TEXT, "settings are not cut");

/* The row of the i-th choice; NULL for settings. */
static const struct choice *row_at(int i)
{
    return i < CASE_BEFORE_MODEL    ? &case_choices[i]
           : i < SETTINGS_CHOICE    ? &model_choices[i - CASE_BEFORE_MODEL]
           : i == THREADS_CHOICE_AT ? &case_choices[CASE_threads]
                                    : NULL;
}

struct chosen chosen_at(int i)
{
    const struct choice *const row = row_at(i);

    if (!row)
        return (struct chosen){"settings", "set", false};
    return (struct chosen){row->name, row->option,
                           row->codec == CODEC_INT || row->codec == CODEC_FLAG};
}

const char *chosen_word(int i, int k)
{
    const struct choice *const row = row_at(i);

    return row ? choice_word(row, k) : NULL;
}

void case_print(char text[CHOICE_TEXT], int i, const struct bench_case *c)
{
    const enum scope scope = workload_scope(c->workload);

    if (i < CASE_BEFORE_MODEL || i == THREADS_CHOICE_AT)
        choice_print(text, row_at(i), c);
    else if (i < SETTINGS_CHOICE)
        model_choice_print(text, i - CASE_BEFORE_MODEL, &c->config, scope);
    else
        settings_print(text, &c->config, false, scope == SCOPE_CORE);
}

static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if ((*a == '-' ? '_' : *a) != (*b == '-' ? '_' : *b))
            return false;
    return *a == *b;
}

int chosen_find(const char *name)
{
    /* Column names take precedence: an option may be spelled like another column. */
    for (int i = 0; i < CHOICE_COLUMNS; i++)
        if (same_name(name, chosen_at(i).name))
            return i;
    for (int i = 0; i < CHOICE_COLUMNS; i++)
        if (same_name(name, chosen_at(i).option))
            return i;
    return -1;
}

/* Rows that are remembered are the same ones, however; a context that is run again is drawn as input. */
static bool holds_rows(const struct bench_case *c)
{
    return c->mem_kind == MEM_HIDDEN || c->mem_kind == MEM_KV;
}

bool case_same_problem(const struct bench_case *a, const struct bench_case *b)
{
    return (a->mem_kind == b->mem_kind || (holds_rows(a) && holds_rows(b))) &&
           a->config.kv_heads == b->config.kv_heads &&
           model_choices_equal(&a->config, &b->config, workload_scope(a->workload));
}

/* ---- models ------------------------------------------------------------------------------- */

enum status config_from_options(struct config *to, const struct variant *v,
                                const struct options *opt, int mem_len, int layers, int vocab,
                                enum scope scope, bool encodes, bool decodes,
                                const int at[MODEL_CHOICE_COUNT], struct err *e)
{
    const int D = opt->d_model, H = opt->heads;
    bool typed[MODEL_CHOICE_COUNT] = {false};
    int dh, F;

    variant_sizes(v, D, H, &dh, &F);
    *to = config_default(v, D, H, opt->d_head ? opt->d_head : dh, opt->d_inner ? opt->d_inner : F,
                         layers, vocab);
    if (opt->kv_heads && config_groups(to))
        to->kv_heads = opt->kv_heads;
    to->mem_len = mem_len;
    to->enc_layers = encodes ? layers : 0;
    if (decodes)
        model_choices_decode(to);
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++) {
        const struct names *const given = &opt->chosen[i];
        typed[i] = given->n > 0;
        if (given->n && choice_applies(&model_choices[i], to, scope))
            TRY(choice_parse(&model_choices[i], to, given->v[at ? at[i] : 0], e));
    }
    if (scope != SCOPE_CORE)
        skeleton_apply(to, (enum skeleton)opt->skeleton, typed, opt->d_inner > 0);
    to->final_ln = scope == SCOPE_MODEL && model_ends_in_norm(to);
    config_numbers_reset(to);
    TRY(settings_parse(to, opt->settings, scope == SCOPE_CORE, e));
    if (scope != SCOPE_CORE)
        TRY(settings_fit(to, e));
    model_choices_settle(to);
    return OK;
}

enum status config_at_eval(struct config *c, const struct options *opt,
                           const int at[MODEL_CHOICE_COUNT], struct err *e)
{
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++) {
        const struct choice *const row = &model_choices[i];
        const struct names *const given = &opt->chosen[i];
        if (row->at_eval && given->n && choice_applies(row, c, SCOPE_MODEL))
            TRY(choice_parse(row, c, given->v[at ? at[i] : 0], e));
    }
    return config_check(c, e);
}

void taken_add(struct taken *t, const struct config *c, enum scope scope)
{
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        t->choice[i] = t->choice[i] || choice_applies(&model_choices[i], c, scope);
    t->kv_heads = t->kv_heads || config_groups(c);
    t->skeleton = t->skeleton || scope != SCOPE_CORE;
    t->vocab = t->vocab || scope == SCOPE_MODEL;
    int i = 0;
    const struct choice *row;
    for (struct settings all = {0}; (row = setting_next(&all)); i++)
        t->setting[i] = t->setting[i] || setting_applies(row, c);
}

enum status taken_check(const struct taken *t, const struct options *opt, const char *who,
                        struct err *e)
{
    const char *const what_then =
        "-> leave it out, or choose a variant and --workload that have it";

    if (options_typed(opt, "kv-heads") && opt->kv_heads && !t->kv_heads)
        return fail(e, E_USAGE, "--kv-heads %d does not apply to %s  %s", opt->kv_heads, who,
                    what_then);
    if (options_typed(opt, "vocab") && !t->vocab)
        return fail(e, E_USAGE,
                    "--vocab %d does not apply: no whole model runs  -> leave it out, or use "
                    "--workload segment, decode, train or another that runs one",
                    opt->vocab);
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        if (opt->chosen[i].n && !t->choice[i] && options_typed(opt, model_choices[i].option))
            return fail(e, E_USAGE, "--%s %s does not apply to %s  %s", model_choices[i].option,
                        opt->chosen[i].v[0], who, what_then);
    if (options_typed(opt, "skeleton") && opt->skeleton && !t->skeleton)
        return fail(e, E_USAGE,
                    "--skeleton %s does not apply to attention alone  -> leave it out, or choose "
                    "another --workload",
                    skeleton_name[opt->skeleton]);
    const struct choice *const row = settings_untaken(opt->settings, t->setting);
    if (row && options_typed(opt, "set"))
        return fail(e, E_USAGE, "--set %s does not apply to %s  %s", row->name, who,
                    "-> leave it out, or see: bench list settings");
    return OK;
}

bool case_has_own(const struct bench_case *c)
{
    char rest[SKELETON_TEXT] = "";

    if (workload_scope(c->workload) != SCOPE_CORE)
        skeleton_rest(rest, &c->config, (enum skeleton)c->opt->skeleton);
    return *rest;
}

bool case_lacks_positions(const struct bench_case *c)
{
    return !workload_is_model(c->workload) && c->variant->control &&
           control_embeds_positions(&c->config);
}

enum status case_configure(struct bench_case *c, const int at[MODEL_CHOICE_COUNT], struct err *e)
{
    const enum scope scope = workload_scope(c->workload);
    const enum context context = workload_context(c->workload);
    const bool sourced = context == CONTEXT_SOURCE; /* of M tokens, which are no past */
    const enum status st =
        config_from_options(&c->config, c->variant, c->opt, sourced ? 0 : case_kept(c), c->layers,
                            scope == SCOPE_MODEL ? c->opt->vocab : 0, scope, sourced,
                            workload_has(c->workload, WORK_DECODES), at, e);

    c->config.max_seq = sourced                     ? max_int(c->seq, c->mem)
                        : context == CONTEXT_PROMPT ? case_kept(c)
                        : c->mem_kind == MEM_RECOMPUTE || config_mem(&c->config)->cached
                            ? c->seq + c->mem
                            : c->seq;
    return st;
}

struct config case_usual_config(const struct bench_case *c)
{
    struct config usual = config_default(c->variant, c->config.D, c->config.H, c->config.dh,
                                         c->config.F, c->layers, c->config.V);

    usual.mem_len = c->config.mem_len;
    if (workload_has(c->workload, WORK_DECODES))
        model_choices_decode(&usual);
    config_numbers_reset(&usual);
    return usual;
}

void case_usual(struct bench_case *usual, const struct bench_case *c, const struct options *preset)
{
    const int D = c->config.D, H = c->config.H;
    int dh, F;

    *usual = *c;
    usual->phase = workload_has(c->workload, WORK_TRAINS) ? PHASE_FWD_BWD : PHASE_FWD;
    usual->batch = preset->batch.v[0];
    usual->layers = workload_is_model(c->workload) ? DEFAULT_LAYERS : 1;
    usual->config = case_usual_config(c);
    usual->config.D = preset->d_model;
    usual->config.H = preset->heads;
    usual->config.dh = D % H == 0 ? D / H : -1;
    usual->config.F = 4 * D;
    /* What is usual elsewhere is said of a variant that has others. */
    variant_sizes(c->variant, D, H, &dh, &F);
    if (c->config.dh == usual->config.dh && c->config.dh != dh)
        usual->config.dh = dh;
    if (c->config.F == usual->config.F && c->config.F != F)
        usual->config.F = F;
    if (workload_is_model(c->workload))
        usual->config.V = preset->vocab;
}

bool case_differs(char text[CHOICE_TEXT], int i, const struct bench_case *c,
                  const struct config *usual)
{
    const enum scope scope = workload_scope(c->workload);
    char own[CHOICE_TEXT];

    model_choice_print(text, i, &c->config, scope);
    model_choice_print(own, i, usual, scope);
    return strcmp(text, own) != 0;
}

void case_label(const struct bench_case *c, char *buf, size_t size)
{
    const struct config usual = case_usual_config(c);
    const enum scope scope = workload_scope(c->workload);
    char extra[320] = "", text[CHOICE_TEXT];

    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        if (case_differs(text, i, c, &usual))
            text_append(extra, sizeof(extra), " %s=%.40s", model_choices[i].name, text);
    if (c->config.kv_heads != usual.kv_heads)
        text_append(extra, sizeof(extra), " kv_heads=%d", c->config.kv_heads);
    settings_print(text, &c->config, true, scope == SCOPE_CORE);
    if (*text)
        text_append(extra, sizeof(extra), " %.60s", text);
    if (c->mem_kind != MEM_NONE)
        text_append(extra, sizeof(extra), " %s", mem_kind_name[c->mem_kind]);
    const bool phase = case_names_phase(c);
    mem_text(text, c->mem);
    snprintf(buf, size, "%s %s%s%s seq=%d mem=%s%s %s", c->variant->name,
             workload_name[c->workload], phase ? " " : "", phase ? phase_name[c->phase] : "",
             c->seq, text, extra, c->backend->name);
}
