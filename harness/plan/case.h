/* SPDX-License-Identifier: MIT
 *
 * A case: one row of the tables. It owns the model that it measures; the texts of the options are
 * parsed once, when the case is made. */
#pragma once

#include "harness/cli/options.h"
#include "harness/cli/workloads.h"
#include "variants/model/config/settings.h"
#include "variants/model/sublayer/sublayer.h"

enum phase { PHASE_FWD, PHASE_FWD_BWD, PHASE_COUNT };
extern const char *const phase_name[PHASE_COUNT + 1]; /* NULL-terminated */
extern const char *const mem_word[];                  /* "all" NULL: see CODEC_INT */

struct bench_case {
    /* what runs */
    const struct variant *variant;
    const struct backend *backend;
    enum workload workload;
    enum phase phase;
    enum mem_kind mem_kind;               /* resolved: never auto; MEM_NONE for attn */
    int seq, mem, batch, layers, threads; /* seq = 1 for decode; mem may be MEM_ALL; a request has a
                                           * prompt of mem tokens, and adds seq */
    struct config config;                 /* V = 0 unless a whole model runs */
    /* how it runs, from the options that are not axes */
    const struct options *opt;
    const char
        *unsupported; /* why the variant cannot run it, NULL = it can: a row without numbers */
    /* identity */
    int index, group;
    char case_id[17]; /* 16 hex digits: XXH3 of the repro line */
    char *repro;      /* "--variant xl --backend ref ...": options that make exactly this case */
};

/* Choices of a case other than its model: X(name, type, codec, field, option, unit, help, ...) as
 * in variants/model/config/choices.h. The order is that of repro lines, where threads follow the choices
 * of the model. */
/* clang-format off */
#define CASE_CHOICES(X)                                                                            \
    X(variant, text, ENTRY, variant, "variant", "", "kind of attention", .list = &variant_registry) \
    X(backend, text, ENTRY, backend, "backend", "", "backend that ran it", .list = &backend_registry) \
    X(workload, text, WORD, workload, "workload", "", "what a measured call runs",                  \
      .words = workload_name)                                                                      \
    X(seq_tokens, i64, INT, seq, "seq", "tokens", "new tokens per sequence", .scope = SCOPE_CORE) \
    X(mem_tokens, i64, INT, mem, "mem", "tokens",                                                  \
      "tokens of context before them; empty: all, in a recurrent state",               \
      .words = mem_word, .scope = SCOPE_CORE)                                                      \
    X(phase, text, WORD, phase, "phase", "", "fwd or fwd_bwd", .words = phase_name)                \
    X(mem_kind, text, WORD, mem_kind, "mem-kind", "", "where the context is: hidden, kv, recompute or state; empty for attn",   \
      .words = mem_kind_name)                                                                      \
    X(batch_size, i64, INT, batch, "batch", "sequences", "sequences run together", .scope = SCOPE_CORE) \
    X(layers, i64, INT, layers, "layers", "", "layers of the model", .scope = SCOPE_CORE)          \
    X(d_model, i64, INT, config.D, "d-model", "", "width of the model", .scope = SCOPE_CORE)       \
    X(heads, i64, INT, config.H, "heads", "", "query heads", .scope = SCOPE_CORE)                  \
    X(kv_heads, i64, INT, config.kv_heads, "kv-heads", "", "key/value heads", .scope = SCOPE_CORE) \
    X(d_head, i64, INT, config.dh, "d-head", "", "width of a head", .scope = SCOPE_CORE)           \
    X(d_inner, i64, INT, config.F, "d-inner", "", "width of the feed-forward layer", .scope = SCOPE_CORE) \
    X(vocab, i64, INT, config.V, "vocab", "tokens", "vocabulary of a whole model; 0 where none runs", .scope = SCOPE_CORE)
#define THREADS_CHOICE(X) X(threads, i64, INT, threads, "threads", "", "threads asked for", .scope = SCOPE_CORE)
/* clang-format on */

#define X(name, ...) CASE_##name,
enum { CASE_CHOICES(X) CASE_BEFORE_MODEL, CASE_threads = CASE_BEFORE_MODEL, CASE_CHOICE_COUNT };
#undef X
extern const struct choice case_choices[CASE_CHOICE_COUNT];

/* All choices of a case, in the order of repro lines and columns: its own, those of its model,
 * settings, threads. */
enum {
    SETTINGS_CHOICE = CASE_BEFORE_MODEL + MODEL_CHOICE_COUNT,
    THREADS_CHOICE_AT,
    CHOICE_COLUMNS
};
struct chosen {
    const char *name, *option; /* settings: "settings" "set" */
    bool number;
};
struct chosen chosen_at(int i);
/* The k-th word that the i-th choice takes; NULL after the last, and where it takes no words. */
const char *chosen_word(int i, int k);
/* The value of the i-th choice; "" if it does not apply. */
void case_print(char text[CHOICE_TEXT], int i, const struct bench_case *c);
/* The choice with that column or option name, '-' and '_' being equal; -1 if there is none. */
int chosen_find(const char *name);

/* Does the phase add information that the workload does not imply? */
bool case_names_phase(const struct bench_case *c);

/* Do two cases compute the same? They may differ in backend and in how the past is reached. */
bool case_same_problem(const struct bench_case *a, const struct bench_case *b);

/* "xl layer seq=128 mem=512 gate=input avx2", for messages. */
void case_label(const struct bench_case *c, char *buf, size_t size);

/* Layers of a model without --layers. */
enum { DEFAULT_LAYERS = 4 };

/* A model of the variant with the sizes and choices that the options give: of each choice value
 * number at[i], the first if `at` is NULL. Choices that do not apply at that scope keep the
 * variant's value. `mem_len` is the past that a layer keeps; `encodes`: with an encoder of as many
 * layers, unless a setting says how many; `decodes`: for one token at a time. */
enum status config_from_options(struct config *to, const struct variant *v,
                                const struct options *opt, int mem_len, int layers, int vocab,
                                enum scope scope, bool encodes, bool decodes,
                                const int at[MODEL_CHOICE_COUNT], struct err *e);

/* Of a checkpoint's model: the choices that no parameter depends on, where options give them; the
 * others stay. `at` as above. E_USAGE where the model cannot be. */
enum status config_at_eval(struct config *c, const struct options *opt,
                           const int at[MODEL_CHOICE_COUNT], struct err *e);

/* The options of models that a plan or a training uses. One that nothing uses is an error where it
 * is typed: those of @files and of the environment are for the variants that have them. */
struct taken {
    bool choice[MODEL_CHOICE_COUNT], kv_heads, vocab, setting[SETTINGS_MOST], skeleton;
};
void taken_add(struct taken *t, const struct config *c, enum scope scope);
/* E_USAGE names the first option that is given and not taken; `who` is a variant that has it not.
 */
enum status taken_check(const struct taken *t, const struct options *opt, const char *who,
                        struct err *e);

/* Tokens of past as text, of a case or of a row of a table, where all of it is I64_EMPTY. */
enum { MEM_TEXT = 24 };
void mem_text(char text[MEM_TEXT], int64_t mem);

/* Rows of past that are drawn to begin with: a state of all of it is as any other. */
static inline int case_past(const struct bench_case *c)
{
    return c->mem == MEM_ALL ? c->seq : c->mem;
}

/* Has its model norms, a feed-forward network or biases other than --skeleton says? */
bool case_has_own(const struct bench_case *c);
/* Is its idea positions that are added to the embedding, which the workload lacks? */
bool case_lacks_positions(const struct bench_case *c);

/* Rows of past that a layer keeps: in a request all but the last new token are read. */
static inline int case_kept(const struct bench_case *c)
{
    return workload_context(c->workload) == CONTEXT_PROMPT ? c->mem + c->seq - 1 : case_past(c);
}

/* Does it see more tokens at once than the published model that it measures was made for? */
static inline bool case_beyond(const struct bench_case *c)
{
    const struct options *const o = c->opt;

    return c->variant == o->published && o->longest > 0 && c->mem != MEM_ALL &&
           (double)c->seq + c->mem > o->longest;
}

/* Fill c->config; variant, workload, mem, seq, mem_kind and layers must be set. */
enum status case_configure(struct bench_case *c, const int at[MODEL_CHOICE_COUNT], struct err *e);

/* The same case without options: its model as the variant has it. */
void case_usual(struct bench_case *usual, const struct bench_case *c, const struct options *preset);

/* The model of the case as its variant has it, with the case's sizes and memory. */
struct config case_usual_config(const struct bench_case *c);
/* The value of the i-th choice of the model, if it differs from that of `usual`. */
bool case_differs(char text[CHOICE_TEXT], int i, const struct bench_case *c,
                  const struct config *usual);

/* " --option text" of the i-th choice. */
void repro_choice(FILE *f, int i, const char *text);
/* The malloc'ed option line that makes exactly this case; `preset` are options without any given. */
char *case_repro(const struct bench_case *c, const struct options *preset);
