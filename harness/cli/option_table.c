/* SPDX-License-Identifier: MIT
 *
 * Every option of the program. Adding one is a field in struct options and a row here. */
#include "option_table.h"
#include "variants/model/config/skeleton.h"
#include "variants/model/optimise/optimizer.h"
#include "variants/model/sublayer/sublayer.h"
#include "workloads.h"

const char *const order_name[] = {"interleave", "given", NULL};
const char *const cache_name[] = {"hot", "cold", NULL};
const char *const isolate_name[] = {"exec", "fork", "none", NULL};
const char *const huge_pages_name[] = {"never", "madvise", NULL};
const char *const format_name[] = {"auto", "table", "csv", "jsonl", "json", "md",
                                   "tex",  "fom",   "svg", "png",   "pdf",  NULL};
const char *const count_name[] = {"stream", "hf", "lm-eval", NULL};
const char *const unit_name[] = {"token", "word", "byte", NULL};
const char *const detok_name[] = {"none", "wikitext", NULL};
const char *const id_type_name[] = {"auto", "uint16", "int32", "uint32", "int64", NULL};
const char *const join_name[] = {"none", "blank", NULL};
const char *const mem_begin_name[] = {"auto", "zeros", "empty", NULL};
static const char *const raw_name[] = {"none", "csv", "zst", NULL};
static const char *const progress_name[] = {"auto", "bar", "plain", "none", NULL};
static const char *const schedule_name[] = {"cosine", "linear", "wsd", "constant", NULL};
static const char *const objective_name[] = {"lm", "mlm", "seq2seq", NULL};
static const char *const init_name[] = {"usual", "depth", NULL};
const char *const export_name[] = {"json", "openmetrics", "junit", "fom",
                                   "hf",   "gguf",        "peft",  NULL};
static const char *const color_name[] = {"auto", "always", "never", NULL};
/* Without the levels that only some versions of the library know. */
static const char *const onednn_isa_words[] = {"sse41",
                                               "avx",
                                               "avx2",
                                               "avx2_vnni",
                                               "avx512_core",
                                               "avx512_core_vnni",
                                               "avx512_core_bf16",
                                               "avx512_core_amx",
                                               NULL};
#define HELP(id_, name_, scope_, context_, flags_, help_, ...) help_
static const char *const phase_words[] = {"fwd", "fwd_bwd", NULL};
/* The i-th word stands for -1 - i. */
static const char *const mem_words[] = {"all", NULL};
_Static_assert((int)MEM_ALL == -1, "its word is the first");
static const char *const mem_kind_words[] = {"auto", "hidden", "kv", "recompute", "state", NULL};
static const char *const pin_words[] = {"compact", "scatter", "p-cores", "e-cores", "none", NULL};
static const char *const membind_words[] = {"local", "interleave", NULL};

enum { BATCH_MAX = 1 << 20, THREADS_MAX = 4096 };

#define AT(field) .at = offsetof(struct options, field)
#define AXIS .group = GROUP_AXES
#define MEASURE .group = GROUP_MEASURE
#define PLACE .group = GROUP_PLACE
#define OUTPUT .group = GROUP_OUTPUT
#define OTHER .group = GROUP_OTHER
#define NAMES .kind = KIND_NAMES
#define INTS .kind = KIND_INTS
#define INT .kind = KIND_INT
#define DECIMAL .kind = KIND_DECIMAL
#define WORD .kind = KIND_WORD
#define FLAG .kind = KIND_FLAG

/* The commands that take an option. `list` takes what a sweep takes: list cases is its plan;
 * `slurm` hands it on. */
#define FOR(command) (1u << CMD_##command)
#define SWEEPS (FOR(SWEEP) | FOR(LIST) | FOR(SLURM))
#define PLANS (SWEEPS | FOR(COMPARE) | FOR(GATE)) /* from axes to cases */
#define MODELS (PLANS | FOR(TRAIN))
#define COMPUTES (MODELS | FOR(EVAL) | FOR(CHECK))
#define TIMES (PLANS | FOR(RERUN))
#define RUNS (FOR(SWEEP) | FOR(EVAL) | FOR(RERUN) | FOR(STUDY)) /* write the folder of a run */
#define RUNS_AND_PLANS (PLANS | FOR(EVAL) | FOR(RERUN))
#define PRINTS (RUNS_AND_PLANS | FOR(CHECK) | FOR(JUDGE) | FOR(DOCTOR) | FOR(BASELINE)) /* tables */
#define DRAWS (FOR(PLOT) | FOR(HISTORY)) /* figures */
#define ALL ((1u << COMMAND_COUNT) - 1)

/* eval takes the choices that a checkpoint may be scored with; training keeps no narrow cache. */
#define X(name_, type_, codec_, field_, option_, metavar_, shown_, unit_, help_, empty_, ...)      \
    {                                                                                              \
        .name = option_,                                                                           \
        .metavar = metavar_,                                                                       \
        .shown = shown_,                                                                           \
        .doc = help_,                                                                              \
        .kind = KIND_CHOICE,                                                                       \
        .flags = IN_RUN,                                                                           \
        .at = offsetof(struct options, chosen[CHOICE_##name_]),                                    \
        .row = &model_choices[CHOICE_##name_],                                                     \
        .only = CHOICE_##name_ == CHOICE_kv_dtype || CHOICE_##name_ == CHOICE_act_dtype ? PLANS    \
                                                                                        : MODELS,  \
        AXIS,                                                                                      \
    },

/* clang-format off */
const struct option_spec option_specs[] = {
    {"variant", 'V', "LIST", "base", AXIS, NAMES, .flags = IN_RUN, AT(variants),
     .only = MODELS | FOR(CHECK),
     .usual = SWEEPS | FOR(TRAIN) | FOR(COMPARE) | FOR(GATE),
     .doc = "variants, base (the classic four), all, or family:NAME, such as family:sparse",
     .docs = {{.only = FOR(TRAIN), .doc = "the variant to train; --from and --resume name their own", .shown = ""}}},
    {"backend", 'b', "LIST", "auto", AXIS, NAMES, .flags = IN_RUN, AT(backends),
     .only = MODELS | FOR(CHECK) | FOR(EVAL) | FOR(STUDY) | FOR(GENERATE),
     .usual = SWEEPS | FOR(EVAL) | FOR(COMPARE) | FOR(GATE),
     .doc = "backends that run them; auto: all that this CPU and build support; fast: those except "
            "ref",
     .docs = {{.only = FOR(TRAIN), .doc = "backend to train on (default: the fastest)"},
             {.only = FOR(EVAL), .doc = "backend to score on; of several, the fastest is used"},
             {.only = FOR(GENERATE), .doc = "backend to run on (default: the fastest)"}}},
    {"workload", 'w', "LIST", "layer", AXIS, NAMES, .flags = IN_RUN, AT(workloads),
     .words = workload_name, .only = PLANS,
     .usual = PLANS,
     .doc = WORKLOADS(HELP)},
    {"phase", 0, "LIST", "fwd", AXIS, NAMES, .flags = IN_RUN, AT(phases), .words = phase_words,
     .only = PLANS,
     .doc = "fwd, or fwd_bwd: attn, layer, cross and encdec with their backward pass"},
    {"seq", 's', "RANGE", "128..1024", AXIS, INTS, .flags = IN_RUN, AT(seq), 1, VALUE_MAX,
     .only = MODELS | FOR(EVAL),
     .usual = MODELS | FOR(EVAL),
     .doc = "tokens per segment (the length of a prefill)"},
    {"mem", 'm', "RANGE", "0,512", AXIS, INTS, .flags = IN_RUN, AT(mem), 0, VALUE_MAX,
     .words = mem_words, .only = MODELS | FOR(EVAL),
     .usual = MODELS | FOR(EVAL),
     .doc = "tokens of context before the segment; all: a recurrent state carried from the first "
            "token on",
     .docs = {{.only = FOR(TRAIN), .doc = "tokens of context before the segment, which layers with a memory keep "
                          "and others run again; all: a recurrent state carried from the first "
                          "token on"}}},
    {"mem-kind", 0, "LIST", "auto", AXIS, NAMES, .flags = IN_RUN, AT(mem_kinds),
     .words = mem_kind_words, .only = PLANS | FOR(EVAL),
     .doc = "where the context is: kv (a KV cache), state (a recurrent state), hidden (cached hidden "
            "states, projected again), recompute (run again each time). auto: as it is deployed, "
            "kv where the output is the same, a state where there is one; training: hidden"},
    {"batch", 'B', "RANGE", "1", AXIS, INTS, .flags = IN_RUN, AT(batch), 1, BATCH_MAX,
     .only = MODELS | FOR(EVAL),
     .usual = SWEEPS | FOR(TRAIN),
     .doc = "sequences run together",
     .docs = {{.only = FOR(EVAL), .doc = "streams to cut the text into, with --count stream"}}},
    {"layers", 'N', "RANGE", NULL, "4", AXIS, INTS, .flags = IN_RUN, AT(layers), 1, MAX_LAYERS,
     .only = MODELS,
     .usual = SWEEPS | FOR(TRAIN),
     .doc = "layers of the model in segment, decode and train; attn and layer run one",
     .docs = {{.only = FOR(TRAIN), .doc = "layers of the model"}}},
    {"d-model", 0, "N", "512", AXIS, INT, .flags = IN_RUN, AT(d_model), 1, MAX_WIDTH,
     .only = MODELS,
     .usual = SWEEPS | FOR(TRAIN),
     .doc = "width of the model"},
    {"heads", 0, "N", "8", AXIS, INT, .flags = IN_RUN, AT(heads), 1, MAX_WIDTH, .only = MODELS,
     .usual = SWEEPS | FOR(TRAIN),
     .doc = "query heads"},
    {"kv-heads", 0, "N", NULL, "the variant's own", AXIS, INT, .flags = IN_RUN, AT(kv_heads), 1,
     MAX_WIDTH, .only = MODELS,
     .doc = "key/value heads; divides --heads"},
    {"d-head", 0, "N", NULL, "d-model/heads", AXIS, INT, .flags = IN_RUN, AT(d_head), 1, MAX_WIDTH,
     .only = MODELS,
     .doc = "width of a head"},
    {"d-inner", 0, "N", NULL, "4*d-model", AXIS, INT, .flags = IN_RUN, AT(d_inner), 1, MAX_WIDTH,
     .only = MODELS,
     .doc = "width of the feed-forward layer"},
    {"vocab", 0, "N", "256", AXIS, INT, .flags = IN_RUN, AT(vocab), 1, 1 << 20, .only = PLANS,
     .doc = "vocabulary of the models, in workloads that run a whole one"},
    MODEL_CHOICES(X)
    {"set", 0, "NAME=N,...", NULL, "as published", AXIS, .kind = KIND_TEXT, .flags = IN_RUN,
     AT(settings), .only = MODELS,
     .doc = "settings of single parts, such as experts=8"},
    {"skeleton", 0, "NAME", "own", AXIS, WORD, .flags = IN_RUN, AT(skeleton),
     .words = skeleton_name, .only = MODELS,
     .usual = SWEEPS,
     .doc = "norms, feed-forward network, biases and tying the same for all variants, as far as their "
            "ideas allow: post (as vanilla), llama, or own"},
    {"threads", 't', "RANGE", NULL, "physical cores allowed", AXIS, INTS, .flags = IN_RUN,
     AT(threads), 1, THREADS_MAX, .only = MODELS | FOR(JUDGE) | FOR(EVAL) | FOR(TOPO) | FOR(DOCTOR) | FOR(STUDY) | FOR(GENERATE),
     .usual = MODELS | FOR(EVAL),
     .doc = "threads of a case",
     .docs = {{.only = FOR(TOPO), .doc = "threads to place"},
             {.only = FOR(TRAIN) | FOR(GENERATE), .doc = "threads"}}},
    {"filter", 0, "EXPR", AXIS, .kind = KIND_FILTER, .flags = IN_RUN, AT(filters),
     .only = PLANS | DRAWS | FOR(EXPORT),
     .usual = FOR(COMPARE) | FOR(GATE) | FOR(LIST),
     .doc = "only cases with key:value, !key:value, key<=N; all must hold",
     .docs = {{.only = DRAWS | FOR(EXPORT), .doc = "only rows with key:value, !key:value, key<=N; all must hold"},
             {.only = FOR(COMPARE), .doc = "only cases, or rows of the runs, with key:value, !key:value, "
                            "key<=N; all must hold"}}},
    {"impl", 0, "NAME", AXIS, .kind = KIND_TEXT, .flags = IN_CASE, AT(impl), .only = COMPUTES,
     .doc = "use only this attention implementation"},
    {"max-isa", 0, "ISA", ISA_BEST, AXIS, WORD, .flags = IN_CASE, AT(max_isa),
     .words = isa_name, .only = COMPUTES | FOR(JUDGE) | FOR(TOPO) | FOR(DOCTOR),
     .doc = "use no instructions beyond this level"},
    {"openblas-core", 0, "NAME", AXIS, .kind = KIND_TEXT, .flags = IN_CASE, AT(openblas_core),
     .only = COMPUTES | FOR(TOPO) | FOR(DOCTOR),
     .doc = "kernels for OpenBLAS to use, e.g. Haswell"},
    {"onednn-max-isa", 0, "ISA", AXIS, .kind = KIND_TEXT, .flags = IN_CASE, AT(onednn_max_isa),
     .words = onednn_isa_words, .only = COMPUTES | FOR(TOPO) | FOR(DOCTOR),
     .doc = "highest instruction set for oneDNN to use: sse41, avx2, avx512_core ..."},

    {"quick", 0, NULL, MEASURE, .kind = KIND_QUICK, AT(quick), .only = TIMES,
     .usual = PLANS,
     .doc = "short for --max-time 0.1 --min-samples 6 --warmup-ms 20; a sweep also takes "
            "--backend fast --seq 128 --bytes 4096 unless given"},
    {"min-samples", 0, "N", "15", MEASURE, INT, .flags = IN_RUN, AT(min_samples), 1, 1000000,
     .only = TIMES,
     .usual = FOR(COMPARE) | FOR(GATE),
     .doc = "samples before --target-ci may end a case"},
    {"max-time", 0, "S", "3", MEASURE, DECIMAL, .flags = IN_RUN | ABOVE, AT(max_time_s), 0, 86400,
     .only = SWEEPS | FOR(RERUN),
     .usual = FOR(SWEEP) | FOR(SLURM),
     .doc = "seconds of measuring per case"},
    {"launches", 0, "N", NULL, "3; 1 below --max-time 1", MEASURE, INT, .flags = IN_RUN,
     AT(launches), 1, LAUNCHES_MOST, .only = SWEEPS | FOR(RERUN),
     .doc = "start each case N times and share its samples among them, so that intervals count how "
            "launches differ; not with --isolate none"},
    {"target-ci", 0, "PCT", "1", MEASURE, DECIMAL, .flags = IN_RUN, AT(target_ci_pct), 0, 100,
     .only = SWEEPS | FOR(RERUN),
     .doc = "stop when the 95 % interval is within PCT % of the median"},
    {"block-ms", 0, "MS", "5", MEASURE, DECIMAL, .flags = IN_RUN | ABOVE, AT(block_ms), 0, 60000,
     .only = TIMES,
     .doc = "length of a timed block"},
    {"warmup-ms", 0, "MS", "300", MEASURE, DECIMAL, .flags = IN_RUN, AT(warmup_ms), 0, 600000,
     .only = TIMES,
     .doc = "warm-up of a case"},
    {"cool-down", 0, "S", "0", MEASURE, DECIMAL, .flags = IN_RUN, AT(cool_down_s), 0, 86400,
     .only = SWEEPS,
     .doc = "pause between groups, so that each begins with the same clock rate"},
    {"order", 0, "ORDER", "interleave", MEASURE, WORD, .flags = IN_RUN, AT(order),
     .words = order_name, .only = SWEEPS,
     .doc = "interleave (cases of one shape take turns) or given (one after the other)"},
    {"cache", 0, "MODE", "hot", MEASURE, WORD, .flags = IN_CASE, AT(cache), .words = cache_name,
     .only = PLANS,
     .doc = "caches at the start of a call: hot, or cold (flushed)"},
    {"seed", 0, "N", "1", MEASURE, .kind = KIND_SEED, .flags = IN_CASE, AT(seed),
     .only = PLANS | FOR(CHECK) | FOR(JUDGE) | FOR(TRAIN) | FOR(GENERATE),
     .usual = FOR(TRAIN),
     .doc = "seed of weights, inputs and order",
     .docs = {{.only = FOR(TRAIN), .doc = "seed of weights, dropout, hidden tokens and actions"},
             {.only = FOR(GENERATE), .doc = "seed of what is drawn"}}},
    {"no-check", 0, NULL, MEASURE, .kind = KIND_OFF, .flags = IN_RUN, AT(check), .only = TIMES,
     .doc = "skip the comparison with the reference; rows are marked unchecked"},
    {"check-time", 0, "S", NULL, "--max-time", MEASURE, DECIMAL, .flags = IN_RUN | ABOVE,
     AT(check_time_s), 0, 86400, .only = SWEEPS | FOR(RERUN),
     .doc = "time limit of a reference output. Forward of attn, and of layers with a single "
            "attention, is checked on a sample of rows if it would take longer: 64 or more of each "
            "sequence, first and last included. Whole models and gradients are always checked in "
            "full, however long that takes"},
    {"isolate", 0, "HOW", "exec", MEASURE, WORD, .flags = IN_RUN, AT(isolate),
     .words = isolate_name, .only = COMPUTES | FOR(RERUN) | FOR(TOPO) | FOR(DOCTOR),
     .doc = "process of a case: exec (a new program), fork (a copy), none (this one)",
     .docs = {{.only = FOR(TRAIN) | FOR(CHECK), .doc = "process to run in: exec (a new program), fork (a copy), "
                                       "none (this one)"}}},

    {"pin", 0, "POLICY", "compact", PLACE, .kind = KIND_TEXT, .flags = IN_CASE | OR_CPUS, AT(pin),
     .words = pin_words, .only = MODELS | FOR(EVAL) | FOR(TOPO) | FOR(DOCTOR) | FOR(GENERATE),
     .doc = "placement of threads: compact, scatter, p-cores or e-cores (where cores are unlike), none or a "
            "list of CPUs"},
    {"membind", 0, "WHERE", "local", PLACE, .kind = KIND_TEXT, .flags = IN_CASE | OR_CPUS,
     AT(membind), .words = membind_words, .only = MODELS | FOR(EVAL),
     .doc = "placement of memory: local, interleave or a NUMA node"},
    {"huge-pages", 0, "HOW", "madvise", PLACE, WORD, .flags = IN_CASE, AT(huge_pages),
     .words = huge_pages_name, .only = MODELS | FOR(EVAL),
     .doc = "huge pages: never, or madvise (ask for them)"},

    {"out", 'o', "DIR", "results", OUTPUT, .kind = KIND_PATH, AT(out),
     .only = RUNS | FOR(LIST) | FOR(EXPLAIN) | FOR(COMPARE) | FOR(BASELINE) | FOR(MERGE) | FOR(SLURM) | DRAWS |
         FOR(REPORT) | FOR(EXPORT),
     .usual = FOR(SWEEP) | FOR(EVAL) | FOR(COMPARE) | FOR(SLURM),
     .doc = "parent of the run's folder",
     .docs = {{.only = FOR(LIST) | FOR(EXPLAIN) | FOR(COMPARE) | FOR(BASELINE) | FOR(EXPORT), .doc = "folder of runs and "
                                                                      "baselines"},
             {.only = DRAWS, .doc = "folder of the figures", .shown = "RUN/plots"},
             {.only = FOR(REPORT), .doc = "the file to write", .shown = "RUN/report.html"}}},
    {"format", 0, "FORMAT", "auto", OUTPUT, WORD, AT(format), .words = format_name,
     .only = PRINTS | FOR(TOPO) | DRAWS | FOR(STUDY) | FOR(RECL) | FOR(GENERATE),
     .usual = SWEEPS | FOR(EVAL) | FOR(COMPARE) | FOR(GATE),
     .doc = "format of standard output: table, csv, jsonl, json; md and tex (LaTeX): what the "
            "table shows, to paste; auto: table on a terminal, "
            "csv otherwise; fom (sweep, eval, rerun, study): figures of merit, one a line, then "
            "success or failure",
     .docs = {{.only = FOR(HISTORY), .doc = "svg (auto), png, pdf, csv (the points of the figure), or "
                                            "table, md, tex: the times themselves"},
              {.only = FOR(PLOT), .doc = "svg (auto), png, pdf, or csv (the points of each figure)"},
              {.only = FOR(GENERATE), .doc = "auto, table: the text; csv, jsonl, json, md, tex: a row with "
                                             "the text, its token ids, why it ended, its speed"}}},
    {"columns", 0, "LIST", OUTPUT, NAMES, AT(columns), .only = PRINTS | FOR(GENERATE),
     .usual = FOR(LIST),
     .doc = "columns to print"},
    {"raw", 0, "HOW", "zst", OUTPUT, WORD, AT(raw), .words = raw_name,
     .only = RUNS | FOR(LIST) | FOR(MERGE) | FOR(SLURM),
     .doc = "file of all samples: none, csv, zst (compressed)"},
    {"resume", 0, "DIR", OUTPUT, .kind = KIND_RESUME, AT(resume),
     .only = FOR(SWEEP) | FOR(EVAL) | FOR(TRAIN) | FOR(STUDY),
     .usual = FOR(SWEEP) | FOR(EVAL) | FOR(TRAIN),
     .doc = "continue an interrupted run (the latest, or --resume=DIR) with its options; failed "
            "and timed-out rows are measured again, skipped and wrong rows stay",
     .docs = {{.only = FOR(TRAIN), .doc = "continue the training of --ckpt with its options"}}},
    {"progress", 0, "HOW", "auto", OUTPUT, WORD, AT(progress), .words = progress_name,
     .only = RUNS_AND_PLANS | FOR(TRAIN) | FOR(CHECK) | FOR(STUDY),
     .doc = "how to show progress: auto, bar, plain (lines), none"},
    {"color", 0, "WHEN", "auto", OUTPUT, WORD, AT(color), .words = color_name,
     .only = SWEEPS | FOR(RERUN),
     .doc = "when to use colours: auto, always, never"},
    {"quiet", 'q', NULL, OUTPUT, FLAG, AT(quiet), .only = ALL,
     .doc = "print only results and errors"},
    {"verbose", 'v', NULL, OUTPUT, .kind = KIND_COUNT, AT(verbose), .only = SWEEPS | FOR(RERUN) | FOR(CHECK),
     .doc = "also print implementations and numbers of samples",
     .docs = {{.only = FOR(CHECK), .doc = "also print what passed"}}},
    {"strict", 0, NULL, OUTPUT, FLAG, AT(strict), .only = RUNS_AND_PLANS | FOR(DOCTOR) | FOR(REPORT) | FOR(STUDY) |
         FOR(HISTORY),
     .doc = "warnings become exit code 4",
     .docs = {{.only = FOR(HISTORY), .doc = "exit code 3 if a step that three runs confirm made a case slower"}}},
    {"fail-fast", 0, NULL, OUTPUT, FLAG, AT(fail_fast), .only = SWEEPS,
     .doc = "stop at the first case that fails"},
    {"dry-run", 'n', NULL, OUTPUT, FLAG, AT(dry_run), .only = FOR(SWEEP) | FOR(LIST) | FOR(STUDY),
     .usual = FOR(SWEEP),
     .doc = "print the plan, run nothing"},
    {"save-baseline", 0, "NAME", OUTPUT, .kind = KIND_TEXT, AT(save_baseline), .only = FOR(SWEEP),
     .doc = "save the run as a baseline of this machine"},
    {"baseline", 0, "NAME", OUTPUT, .kind = KIND_TEXT, AT(baseline), .only = FOR(SWEEP),
     .doc = "compare the run with this baseline"},
    {"shard", 0, "I/N|auto", NULL, "1/1", OUTPUT, .kind = KIND_TEXT, .flags = IN_RUN, AT(shard),
     .only = FOR(SWEEP) | FOR(LIST) | FOR(STUDY),
     .doc = "run every N-th group from the I-th on (bench merge joins the shards); auto: take I "
            "and N from Slurm, MPI or GNU parallel"},
    {"partial", 0, NULL, OUTPUT, FLAG, AT(partial), .only = FOR(MERGE) | FOR(SLURM),
     .usual = FOR(SLURM),
     .doc = "merge even if shards are missing",
     .docs = {{.only = FOR(SLURM), .doc = "merge the finished shards even if others failed"}}},
    {"nodes", 0, "N", "1", OUTPUT, INT, AT(nodes), 1, 10000, .only = FOR(SLURM),
     .usual = FOR(SLURM),
     .doc = "nodes that measure at the same time, one shard each"},
    {"shards", 0, "N", "0", OUTPUT, INT, AT(shards), 0, 100000, .only = FOR(SLURM),
     .usual = FOR(SLURM),
     .doc = "tasks of the job array (0 = --nodes)"},
    {"force", 0, NULL, OUTPUT, FLAG, AT(force),
     .only = FOR(SWEEP) | FOR(TRAIN) | FOR(IMPORT) | FOR(EXPORT) | FOR(BASELINE) | DRAWS | FOR(REPORT),
     .usual = FOR(TRAIN),
     .doc = "overwrite what exists",
     .docs = {{.only = FOR(SWEEP) | FOR(BASELINE), .doc = "overwrite a baseline of that name"},
             {.only = FOR(TRAIN) | FOR(IMPORT), .doc = "overwrite the checkpoint"},
             {.only = FOR(EXPORT), .doc = "overwrite a model"},
             {.only = DRAWS, .doc = "overwrite figures in --out"},
             {.only = FOR(REPORT), .doc = "overwrite the file"}}},

    {"golden", 0, "FILE|DIR", OTHER, .kind = KIND_PATH, AT(golden), .only = FOR(CHECK),
     .doc = "golden files to run through every backend"},
    {"tokens", 0, "DIR|FILE", OTHER, .kind = KIND_PATH, .flags = IN_RUN, AT(tokens),
     .only = FOR(CHECK) | FOR(EVAL) | FOR(TRAIN),
     .doc = "tokenizer to test: it must produce the token ids of --golden FILE",
     .docs = {{.only = FOR(EVAL) | FOR(TRAIN), .doc = "ids of the text, made elsewhere: .npy, llm.c's .bin, or bare ids, "
                         "little-endian"}}},
    {"tokens-type", 0, "TYPE", "auto", OTHER, WORD, .flags = IN_RUN, AT(tokens_type),
     .words = id_type_name, .only = FOR(EVAL) | FOR(TRAIN),
     .doc = "what the bare ids of --tokens are: uint16 (nanoGPT), int32, uint32, int64; auto: int32, "
            "if they look like it"},
    {"tokenizer", 0, "DIR", OTHER, .kind = KIND_PATH, .flags = IN_RUN, AT(tokenizer),
     .only = FOR(EVAL) | FOR(GENERATE) | FOR(TRAIN),
     .usual = FOR(EVAL),
     .doc = "folder of the tokenizer: tokenizer.json, vocab.json with merges.txt, or vocab.txt "
            "(default: bytes are tokens)"},
    {"count", 0, "HOW", "stream", OTHER, WORD, .flags = IN_RUN, AT(count), .words = count_name,
     .only = FOR(EVAL),
     .usual = FOR(EVAL),
     .doc = "how published perplexities are counted (which windows of the text are scored): "
            "stream, hf, lm-eval; sets the options below, --seq and --mem unless given"},
    {"unit", 0, "UNIT", "token", OTHER, WORD, .flags = IN_RUN, AT(unit), .words = unit_name,
     .only = FOR(EVAL),
     .usual = FOR(EVAL),
     .doc = "perplexity per token, word or byte; --count lm-eval: word"},
    {"stride", 0, "N", NULL, "a window", OTHER, INT, .flags = IN_RUN, AT(stride), 0, VALUE_MAX,
     .only = FOR(EVAL),
     .doc = "with --count hf: tokens from the start of one window to the next"},
    {"bos", 0, "WHICH", "auto", OTHER, .kind = KIND_TEXT, .flags = IN_RUN, AT(bos),
     .only = FOR(EVAL),
     .doc = "token before the text: auto (as the tokenizer does), none, each (before every "
            "window), or a token id"},
    {"doc-sep", 0, "TEXT", "none", OTHER, .kind = KIND_PATH, .flags = IN_RUN, AT(doc_sep),
     .only = FOR(EVAL),
     .doc = "end of a document, where context is dropped: none, line, blank (an empty line), "
            "wikitext (a page), or a separator of your own"},
    {"detok", 0, "HOW", "none", OTHER, WORD, .flags = IN_RUN, AT(detok), .words = detok_name,
     .only = FOR(EVAL),
     .doc = "restore the text from before it was split into words: none, wikitext"},
    {"text-join", 0, "HOW", "none", OTHER, WORD, .flags = IN_RUN, AT(join), .words = join_name,
     .only = FOR(EVAL),
     .doc = "join lines of the text: none (as they are), or blank (two more line ends)"},
    {"mem-start", 0, "HOW", "auto", OTHER, WORD, .flags = IN_RUN, AT(mem_begin),
     .words = mem_begin_name, .only = FOR(EVAL),
     .doc = "memory at the start of a text: empty, zeros (rows of zeros, attended to), or auto (as "
            "the checkpoint says)"},
    {"ckpt", 0, "FILE", OTHER, .kind = KIND_PATH, .flags = IN_RUN, AT(ckpt),
     .only = SWEEPS | FOR(EVAL) | FOR(TRAIN) | FOR(GATE) | FOR(IMPORT) | FOR(GENERATE) | FOR(EXPORT),
     .usual = FOR(EVAL) | FOR(TRAIN),
     .doc = "model to score: a checkpoint, or the folder of a published model",
     .docs = {{.only = FOR(GENERATE), .doc = "model: a checkpoint, or the folder of a published model"},
             {.only = FOR(EXPORT), .doc = "--to hf, gguf, peft: model to write"},
             {.only = SWEEPS, .doc = "model to score; none: do not score the shipped ones"},
             {.only = FOR(TRAIN) | FOR(IMPORT), .doc = "checkpoint to write"}}},
    {"corpus", 0, "FILE", OTHER, .kind = KIND_PATH, .flags = IN_RUN, AT(corpus),
     .only = SWEEPS | FOR(EVAL) | FOR(TRAIN) | FOR(GATE),
     .usual = FOR(EVAL) | FOR(TRAIN),
     .doc = "text to score: a file, or a generated source, such as copy:lag=192,groups=4 "
            "(bench list sources)",
     .docs = {{.only = FOR(TRAIN), .doc = "text to train on: a file, or a generated source, such as "
                          "copy:lag=192,groups=4 (bench list sources)"}}},
    {"choices", 0, "FILE", OTHER, .kind = KIND_PATH, .flags = IN_RUN, AT(choices), .only = FOR(EVAL),
     .usual = FOR(EVAL),
     .doc = "questions of choice in place of a text, a line each: {\"context\": TEXT, \"continuations\": "
            "[TEXT, ...], \"gold\": N}, N from 0; --seq: tokens of one, at most [the model's]"},
    {"bytes", 0, "N", "0", OTHER, INT, .flags = IN_RUN, AT(bytes), 0, INT_MAX, .only = SWEEPS | FOR(EVAL) | FOR(GATE),
     .usual = FOR(EVAL),
     .doc = "score the first N bytes of the text, 0 = all"},
    {"losses", 0, "FOLDER", OTHER, .kind = KIND_PATH, .flags = IN_RUN, AT(losses), .only = FOR(EVAL),
     .doc = "write the loss of each token to this folder, one file a row (bench recl reads them); with "
            "--choices a CSV file of what each continuation has"},
    {"attention", 0, "FOLDER", OTHER, .kind = KIND_PATH, .flags = IN_RUN, AT(attention), .only = FOR(EVAL),
     .doc = "write entropy, rank and likeness of the heads to this folder, one file a row; attention is that of ref"},
    {"prompt", 0, "TEXT", OTHER, .kind = KIND_PATH, AT(prompt), .only = FOR(GENERATE),
     .doc = "text to continue"},
    {"prompt-file", 0, "FILE", OTHER, .kind = KIND_PATH, AT(prompt_file), .only = FOR(GENERATE),
     .doc = "file of the text to continue"},
    {"new-tokens", 0, "N", "64", OTHER, INT, AT(new_tokens), 1, 1 << 20, .only = FOR(GENERATE),
     .doc = "tokens to add, at most"},
    {"ignore-eos", 0, NULL, OTHER, FLAG, AT(ignore_eos), .only = FOR(GENERATE),
     .doc = "go on behind a token that ends a text"},
    {"temperature", 0, "T", "0", OTHER, DECIMAL, AT(temperature), 0, 100, .only = FOR(GENERATE),
     .doc = "logits are divided by T before a token is drawn; 0 = take the likeliest"},
    {"top-k", 0, "N", "0", OTHER, INT, AT(top_k), 0, 1 << 22, .only = FOR(GENERATE),
     .doc = "draw from the N likeliest tokens, 0 = all"},
    {"top-p", 0, "P", "1", OTHER, DECIMAL, .flags = ABOVE, AT(top_p), 0, 1, .only = FOR(GENERATE),
     .doc = "draw from the fewest likeliest tokens that have P of the probability together"},
    {"bench", 0, NULL, OTHER, FLAG, AT(bench), .only = FOR(CHECK),
     .doc = "also time each backend's operations next to those of the backend that it inherits from"},
    {"axis", 0, "COLUMN", OTHER, .kind = KIND_TEXT, AT(axis), .only = FOR(COMPARE),
     .usual = FOR(COMPARE),
     .doc = "compare inside one run, along this column: backend, variant, threads or another choice"},
    {"base", 0, "VALUE", OTHER, .kind = KIND_TEXT, AT(base),
     .only = FOR(COMPARE) | DRAWS | FOR(REPORT),
     .usual = FOR(COMPARE),
     .doc = "value of --axis to compare the others with",
     .docs = {{.only = DRAWS | FOR(REPORT), .doc = "backend to compare the others with (ref is drawn only if named "
                                   "here, or alone)"}}},
    {"exec", 0, "SIDE=PATH", OTHER, .kind = KIND_LINES, AT(exec), .only = FOR(COMPARE) | FOR(GATE),
     .usual = FOR(COMPARE) | FOR(GATE),
     .doc = "old=PATH and new=PATH, two programs measured in turns",
     .docs = {{.only = FOR(GATE), .doc = "old=PATH and new=PATH, two programs measured in turns; again=PATH: the old "
                              "one, linked once more, for A/A"}}},
    {"plain", 0, NULL, OTHER, FLAG, AT(plain), .only = FOR(GATE), .usual = FOR(GATE),
     .doc = "--exec gives any two command lines, whose whole run is timed"},
    {"threshold", 0, "PCT", "2", OTHER, DECIMAL, .flags = ABOVE,
     AT(threshold_pct), 0, 1000, .only = FOR(COMPARE) | FOR(GATE) | FOR(SWEEP) | FOR(STUDY),
     .usual = FOR(COMPARE) | FOR(GATE),
     .doc = "differences up to PCT % count as the same"},
    {"instructions", 0, NULL, OTHER, FLAG, AT(instructions), .only = FOR(GATE),
     .usual = FOR(GATE),
     .doc = "count instructions too (valgrind; ref and avx2, one thread)"},
    {"summary", 0, "FILE", OTHER, .kind = KIND_PATH, AT(summary), .only = FOR(GATE),
     .usual = FOR(GATE),
     .doc = "append the result to FILE as Markdown"},
    {"figure", 0, "LIST", OTHER, NAMES, AT(figures), .only = FOR(PLOT) | FOR(REPORT),
     .doc = "only these figures",
     .docs = {{.only = FOR(REPORT), .doc = "only these gnuplot figures"}}},
    {"size", 0, "WxH", OTHER, .kind = KIND_TEXT, AT(size), .only = DRAWS,
     .doc = "size of each figure in pixels of 1/96 inch (default: as large as it needs)"},
    {"dpi", 0, "N", "96", OTHER, INT, AT(dpi), 48, 1200, .only = DRAWS,
     .doc = "pixels per inch of a png"},
    {"term", 0, NULL, OTHER, FLAG, AT(term), .only = DRAWS,
     .doc = "draw in the terminal"},
    {"to", 0, "FORMAT", "json", OTHER, WORD, AT(to), .words = export_name, .only = FOR(EXPORT),
     .doc = "of runs: json, openmetrics, junit, or fom (figures of merit, one a line); of models: hf (a "
            "folder for transformers), gguf, or peft (a folder of train --lora)"},
    {"roofline", 0, NULL, OTHER, FLAG, AT(roofline), .only = FOR(TOPO),
     .doc = "measure peak GFLOP/s and GB/s"},
    {"steps", 0, "N", "1000", OTHER, INT, .flags = IN_TRAINING, AT(steps), 1, INT_MAX, .only = FOR(TRAIN),
     .usual = FOR(TRAIN),
     .doc = "total optimiser steps"},
    {"minutes", 0, "MIN", "0", OTHER, DECIMAL, .flags = IN_TRAINING, AT(minutes), 0, 100000, .only = FOR(TRAIN),
     .doc = "stop after this many minutes; the schedule follows the clock (0 = count steps)"},
    {"stop-at", 0, "N", "0", OTHER, INT, AT(stop_at), 0, INT_MAX, .only = FOR(TRAIN),
     .doc = "save and stop at this step; --resume continues (0 = at the end)"},
    {"lr", 0, "RATE", "0.001", OTHER, DECIMAL, .flags = IN_TRAINING | ABOVE, AT(lr), 0, 10, .only = FOR(TRAIN),
     .usual = FOR(TRAIN),
     .doc = "peak learning rate"},
    {"lr-warmup", 0, "N", "100", OTHER, INT, .flags = IN_TRAINING, AT(lr_warmup), 0, INT_MAX, .only = FOR(TRAIN),
     .doc = "steps of linear warm-up"},
    {"schedule", 0, "NAME", "cosine", OTHER, WORD, .flags = IN_TRAINING, AT(schedule), .words = schedule_name, .only = FOR(TRAIN),
     .doc = "cosine, linear, wsd (warm-up, stable, decay at the end) or constant"},
    {"lr-floor", 0, "F", "0.1", OTHER, DECIMAL, .flags = IN_TRAINING, AT(lr_floor), 0, 1, .only = FOR(TRAIN),
     .doc = "where the schedule ends, as a fraction of --lr"},
    {"lr-decay", 0, "F", "0.2", OTHER, DECIMAL, .flags = IN_TRAINING | ABOVE, AT(lr_decay), 0, 1, .only = FOR(TRAIN),
     .doc = "with wsd: the fraction of the training in which the rate falls"},
    {"grad-clip", 0, "NORM", "0.25", OTHER, DECIMAL, .flags = IN_TRAINING, AT(grad_clip), 0, 1000000, .only = FOR(TRAIN),
     .doc = "clip the gradient to this norm, 0 = never"},
    {"weight-decay", 0, "W", "0", OTHER, DECIMAL, .flags = IN_TRAINING, AT(weight_decay), 0, 10, .only = FOR(TRAIN),
     .doc = "weight decay"},
    {"weight-decay-of", 0, "LIST", "matrices,output", OTHER, NAMES, .flags = IN_TRAINING, AT(weight_decay_of),
     .words = param_group_name, .only = FOR(TRAIN),
     .doc = "parameters that decay: matrices, output (the map to logits), embeddings, norms, "
            "biases, others"},
    {"optimizer", 0, "NAME", "adamw", OTHER, WORD, .flags = IN_TRAINING, AT(optimizer), .words = optimizer_name, .only = FOR(TRAIN),
     .doc = "adamw, or muon (Muon for matrices of layers, AdamW for the rest)"},
    {"muon-scale", 0, "NAME", "adamw", OTHER, WORD, .flags = IN_TRAINING, AT(muon_scale), .words = muon_scale_name, .only = FOR(TRAIN),
     .doc = "size of Muon's steps: adamw (as large as AdamW's), or shape (by rows over columns)"},
    {"z-loss", 0, "COEF", "0", OTHER, DECIMAL, .flags = IN_TRAINING, AT(z_loss), 0, 10, .only = FOR(TRAIN),
     .doc = "add COEF (log of the sum of e^logit)^2 to the training loss; reported losses are "
            "without it"},
    {"objective", 0, "NAME", "lm", OTHER, WORD, .flags = IN_TRAINING, AT(objective), .words = objective_name, .only = FOR(TRAIN),
     .doc = "lm (predict the next token), mlm (fill in hidden tokens, seeing the whole segment), or "
            "seq2seq (with an encoder: predict the target of each source)"},
    {"mask-share", 0, "F", "0.15", OTHER, DECIMAL, .flags = IN_TRAINING | ABOVE, AT(mask_share), 0, 1, .only = FOR(TRAIN),
     .doc = "with mlm: share of the tokens that are hidden"},
    {"init", 0, "NAME", "usual", OTHER, WORD, .flags = IN_TRAINING, AT(init), .words = init_name, .only = FOR(TRAIN),
     .doc = "usual, or depth (weights of maps to the residual stream divided by the root of the "
            "number of sub-layers)"},
    {"dropout", 0, "P", "0", OTHER, DECIMAL, .flags = IN_TRAINING | BELOW, AT(dropout), 0, 1, .only = FOR(TRAIN),
     .doc = "probability of dropping an activation, below 1"},
    {"eval-every", 0, "N", "250", OTHER, INT, .flags = IN_TRAINING, AT(eval_every), 1, INT_MAX, .only = FOR(TRAIN),
     .usual = FOR(TRAIN),
     .doc = "steps between validations"},
    {"log-every", 0, "N", "50", OTHER, INT, AT(log_every), 1, INT_MAX, .only = FOR(TRAIN),
     .doc = "steps between rows of the training table, with the mean loss of these steps"},
    {"valid", 0, "FILE", OTHER, .kind = KIND_PATH, .flags = IN_TRAINING, AT(valid), .only = FOR(TRAIN),
     .usual = FOR(TRAIN),
     .doc = "text for validation (default: the last twentieth of --corpus)"},
    {"from", 0, "DIR|FILE", OTHER, .kind = KIND_PATH, .flags = IN_TRAINING, AT(from), .only = FOR(TRAIN) | FOR(EXPORT),
     .usual = FOR(TRAIN),
     .doc = "begin with the weights of a published model (its folder, or a GGUF file) or of a "
            "checkpoint, and with its sizes, choices and tokenizer",
     .docs = {{.only = FOR(EXPORT), .doc = "--to hf, gguf: published model whose files are written with other numbers (default: "
                                          "--ckpt, if it is one)"}}},
    {"train-only", 0, "LIST", OTHER, NAMES, .flags = IN_TRAINING, AT(train_only), .only = FOR(TRAIN),
     .doc = "train only parameters with such names, such as 'layers.*.attn.*'; the others stay as "
            "they are (default: all)"},
    {"lora", 0, "LIST|DIR", OTHER, .kind = KIND_PATH, .flags = IN_TRAINING | IN_RUN, AT(lora),
     .only = FOR(TRAIN) | FOR(EVAL) | FOR(GENERATE) | FOR(EXPORT),
     .doc = "train products of low rank that are added to the maps of --from: r=8,alpha=16,on='layers.*.attn.*' "
            "(default: alpha 2 r, on all maps between layers); bench export --to peft writes them",
     .docs = {{.only = FOR(EVAL) | FOR(GENERATE) | FOR(EXPORT),
               .doc = "folder of an adapter in peft's format (LoRA), added to the published model of --ckpt"}}},
    {"task", 0, "TASK", OTHER, .kind = KIND_TEXT, .flags = IN_TRAINING, AT(task), .only = FOR(TRAIN),
     .doc = "task to learn by trial and error in place of a text, such as tmaze:len=20 (bench list "
            "tasks)"},
    {"discount", 0, "G", "0.99", OTHER, DECIMAL, .flags = IN_TRAINING, AT(discount), 0, 1, .only = FOR(TRAIN),
     .doc = "with --task: what a reward one step later is worth"},
    {"trace", 0, "L", "0.95", OTHER, DECIMAL, .flags = IN_TRAINING, AT(trace), 0, 1, .only = FOR(TRAIN),
     .doc = "with --task: lambda of generalised advantages (0: one step, 1: the whole return)"},
    {"value-coef", 0, "COEF", "0.5", OTHER, DECIMAL, .flags = IN_TRAINING, AT(value_coef), 0, 1000, .only = FOR(TRAIN),
     .doc = "with --task: weight of the loss of the value"},
    {"entropy-coef", 0, "COEF", "0.01", OTHER, DECIMAL, .flags = IN_TRAINING, AT(entropy_coef), 0, 1000, .only = FOR(TRAIN),
     .doc = "with --task: weight of the entropy of the policy"},
    {"episodes", 0, "N", "1000", OTHER, INT, AT(episodes), 1, 1 << 24, .only = FOR(EVAL),
     .doc = "of a checkpoint that has learnt a task: episodes to play"},
    {"help", 'h', NULL, OTHER, FLAG, .flags = NO_ENV, AT(help), .only = ALL,
     .doc = "print this page"},
    {"help-all", 0, NULL, OTHER, FLAG, .flags = NO_ENV, AT(help_all), .only = ALL,
     .doc = "print this page with all options"},
    {"usage", 0, NULL, OTHER, FLAG, .flags = NO_ENV, AT(usage), .only = ALL,
     .doc = "print a short usage line"},
    {"version", 0, NULL, OTHER, FLAG, .flags = NO_ENV, AT(version), .only = ALL,
     .doc = "print build, compiler and libraries"},
};
/* clang-format on */
const int option_count = (int)ARRAY_LEN(option_specs);

_Static_assert(ARRAY_LEN(option_specs) <= OPTION_MAX, "options.given has a place for each");

int option_find(const char *name)
{
    for (int i = 0; i < option_count; i++)
        if (strcmp(option_specs[i].name, name) == 0)
            return i;
    return -1;
}

const char *option_doc(const struct option_spec *s, int command)
{
    for (int i = 0; command >= 0 && i < OWN_DOCS; i++)
        if (s->docs[i].only & 1u << command)
            return s->docs[i].doc;
    return s->doc;
}

const char *option_shown(const struct option_spec *s, int command)
{
    const char *const own = command_preset(command, s->name);

    for (int i = 0; command >= 0 && i < OWN_DOCS; i++)
        if (s->docs[i].only & 1u << command && s->docs[i].shown)
            return s->docs[i].shown;
    return own ? own : s->shown ? s->shown : s->preset;
}
