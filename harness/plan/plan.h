/* SPDX-License-Identifier: MIT
 *
 * From options to cells. Pure: no measuring, no files, no clock; `bench list cells` prints its
 * result. A cell is one row of the tables; a group is the cells of one shape, which are measured
 * together, round-robin. */
#ifndef PLAN_H
#define PLAN_H

#include "harness/cli/options.h"
#include "variants/model/settings.h"
#include "variants/model/sublayer.h"

enum workload { WORK_ATTN, WORK_LAYER, WORK_SEGMENT, WORK_DECODE, WORK_TRAIN, WORK_COUNT };
extern const char *const workload_name[WORK_COUNT];
enum phase { PHASE_FWD, PHASE_FWD_BWD, PHASE_COUNT };
extern const char *const phase_name[PHASE_COUNT];

struct bench_case {
    /* what runs */
    const struct variant *variant;
    const struct backend *backend;
    enum workload workload;
    enum phase phase;
    enum mem_kind mem_kind; /* resolved: never auto; MEM_NONE for attn */
    int seq, mem, batch, layers, d_model, heads, d_head, d_inner; /* seq = 1 for decode */
    const struct gate *gate; /* NULL where the variant has none */
    int kv_heads;
    enum wiring wiring;
    const struct ffn *ffn;
    enum norm_kind norm_kind;
    const char *mask, *mask_heads; /* "" = the variant's own, or it has none */
    int rnn_cell, halt;            /* enum cell_kind, enum halt_kind; -1: does not apply */
    const char *settings;          /* as settings_parse reads them; those that apply count */
    int clip, clamp_len;           /* -1: does not apply to the variant */
    int same_length;               /* 0, 1, -1: does not apply */
    int threads;
    /* how it runs, from the options that are not axes */
    const struct options *opt;
    /* identity */
    int index, group;
    char case_id[17]; /* 16 hex digits: XXH3 of the repro line */
    char *repro;      /* "--variant xl --backend ref ...": options that make exactly this cell */
};

struct plan {
    struct bench_case *cases;
    int n, groups;
};

/* The cartesian product of the axes, filtered, deduplicated, in measuring order: groups of one
 * shape (workload, phase, seq, mem, batch, layers, widths, threads), inside them variant, gate,
 * clip, rnn_cell, halt, mem_kind, backend. E_USAGE or E_UNSUPPORTED that says what to do. Keeps
 * pointers into `opt`. Zero cells is not an error here. */
enum status plan_make(struct plan *p, const struct options *opt, struct err *e);
void plan_free(struct plan *p);

enum { CHOICE_MAX = 64 }; /* registries are shorter */

/* How many variants, from the first on, a word stands for: "base", "all"; 0 = it is no such word.
 */
int set_of_variants(const char *name);

/* The variants, backends and gates that the options name, each once, in the order given; "all" and
 * "base" are variants, "auto" every backend that this CPU and build can use. E_USAGE for unknown
 * names, E_UNSUPPORTED for a named backend that cannot be used here. No gates: n = 0. */
enum status lookup_variants(const struct variant *out[CHOICE_MAX], int *n,
                            const struct options *opt, struct err *e);
enum status lookup_backends(const struct backend *out[CHOICE_MAX], int *n,
                            const struct options *opt, struct err *e);
enum status lookup_gates(const struct gate *out[CHOICE_MAX], int *n, const struct options *opt,
                         struct err *e);

/* E_USAGE unless --impl is a name that one of the backends chosen has; where another of them lacks
 * it, that one's rows are skipped. The reference ignores --impl, so where it is alone a name of any
 * backend will do: its line in a table of several repeats it. */
enum status lookup_impl(const struct options *opt, struct err *e);

/* The i-th backend that a build may lack, and how to mend that; NULL behind the last. */
const char *optional_backend(int i, const char **mend);

/* The backend to use where only one is wanted, of a list that ends with NULL: the best SIMD level
 * that is usable, else a library. */
const struct backend *lookup_fastest(const struct backend *const *list);

/* The malloc'ed option line that makes exactly this cell; `preset` are options without any given.
 * NULL when there is no memory. */
char *case_repro(const struct bench_case *c, const struct options *preset);

/* Is the workload a whole model: embedding, N layers, output? */
bool workload_is_model(enum workload w);

/* Does its phase say something that the workload does not? */
bool case_names_phase(const struct bench_case *c);

/* Layers of a model where --layers was not given. */
enum { DEFAULT_LAYERS = 4 };

/* The model that a cell measures (V = 256 for whole models, 0 otherwise). */
struct config case_config(const struct bench_case *c);

/* Its choices as tables have them; "" where one does not apply. */
struct case_words {
    const char *ffn, *norm_kind, *rnn_cell, *halt;
    char mask[MASK_TEXT], mask_heads[MASK_TEXT], settings[SETTINGS_TEXT];
};
void case_describe(struct case_words *w, const struct bench_case *c);
/* Choose what the variant has by default: the cell's variant, workload and sizes have been set. */
void case_usual_choices(struct bench_case *c);
/* Of its settings those that are not what they were without; "" where all are. */
void case_own_settings(char text[SETTINGS_TEXT], const struct bench_case *c);

#endif
