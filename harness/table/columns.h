/* SPDX-License-Identifier: MIT
 *
 * The columns of every table, once: X(type, name, unit, meaning) makes the row, the header, the
 * writer, the reader, the printers and results/README.md. Types: text (127 bytes), line (1023),
 * page (8191), i64, real. Removing a column or changing its meaning needs a new major version in
 * record.c. */
#pragma once

#include "harness/plan/case.h"

/* Choices: the rows of harness/plan/case.h and variants/model/config/choices.h. They use the macro X that
 * the list of columns is expanded with. */
#define CHOICE_COLUMN(name, type, codec, field, option, unit, help, ...) X(type, name, unit, help)
#define MODEL_COLUMN(name, type, codec, field, option, metavar, shown, unit, help, empty, ...)     \
    X(type, name, unit, help empty)
#define CHOSEN_COLUMNS(X)                                                                          \
    CASE_CHOICES(CHOICE_COLUMN)                                                                    \
    MODEL_CHOICES(MODEL_COLUMN)                                                                    \
    X(line, settings, "", "settings of single parts, as --set reads them")                         \
    THREADS_CHOICE(CHOICE_COLUMN)

/* First in latency, memory and perplexity: what ran, where, and the line that repeats it. */
#define KEY_COLUMNS(X)                                                                             \
    X(text, schema, "", "table and version, e.g. bench-latency/2.0")                               \
    X(text, run_id, "", "name of the run's folder")                                                \
    X(text, host_id, "", "hash of the stable part of the machine (see env.csv)")                   \
    X(text, case_id, "", "hash of `repro`: the same in every run of the same case")                \
    X(text, started_at_utc, "", "when the case started, ISO 8601")                                 \
    X(text, status, "", "ok, skipped, failed, wrong, timeout, interrupted or suspect")             \
    X(line, status_detail, "", "why the status is not ok, or remarks on an ok row")                \
    CHOSEN_COLUMNS(X)                                                                              \
    X(text, impl, "",                                                                              \
      "implementations of attention and recurrences that ran, in the order of the layers, joined " \
      "by +")                                                                                      \
    X(text, gemm_from, "", "backend of the matrix products")                                       \
    X(text, rows_from, "", "backend of the row operations (softmax, norm, activation, gate)")      \
    X(text, isa_used, "", "highest instruction set level that was used")                           \
    X(i64, threads_seen, "", "threads that ran")                                                   \
    X(line, pin, "", "pinning policy")                                                             \
    X(line, cpus, "", "CPUs that the threads ran on")                                              \
    X(text, membind, "", "memory placement")                                                       \
    X(text, cache_mode, "", "hot or cold")                                                         \
    X(i64, seed, "", "seed of weights, inputs and order")                                          \
    X(line, repro, "", "options that reproduce exactly this row")

#define LATENCY_COLUMNS(X)                                                                         \
    KEY_COLUMNS(X)                                                                                 \
    X(i64, samples, "", "timed blocks")                                                            \
    X(i64, samples_disturbed, "", "blocks in which the kernel preempted a thread")                 \
    X(i64, inner_calls, "", "calls per block")                                                     \
    X(real, min_ns, "ns", "fastest block, per call: the mean of its inner_calls calls")            \
    X(real, median_ns, "ns", "median of these means of blocks: the headline")                      \
    X(real, p90_ns, "ns",                                                                          \
      "90th percentile of these means, not of single calls; empty below 64 samples")               \
    X(real, p99_ns, "ns", "99th percentile of them; empty below 662 samples")                      \
    X(real, max_ns, "ns", "slowest block, per call")                                               \
    X(real, mean_ns, "ns", "mean of these means")                                                  \
    X(real, stddev_ns, "ns", "standard deviation of these means")                                  \
    X(real, mad_ns, "ns", "median absolute deviation of these means")                              \
    X(real, ci95_low_ns, "ns",                                                                     \
      "95 % interval of the median, lower end; empty below 6 samples. Of one launch it holds "     \
      "within that launch; of several it counts how launches differ")                              \
    X(real, ci95_high_ns, "ns", "95 % interval of the median, upper end")                          \
    X(real, cpu_time_median_ns, "ns", "median CPU time per call, of the thread with most of it")   \
    X(i64, involuntary_switches, "", "preemptions during all timed blocks")                        \
    X(text, stop_reason, "", "why sampling ended: ci, time, interrupted or failed")                \
    X(real, drift_pct, "%", "change of the level from the first to the last samples")              \
    X(real, tokens_per_s, "1/s", "new tokens per second, by the median")                           \
    X(real, flop_count, "flop", "useful floating-point operations of a call")                      \
    X(real, gflop_per_s, "Gflop/s", "flop_count / median_ns")                                      \
    X(real, bytes_moved_min, "bytes",                                                              \
      "least traffic of a call: each operand once, and gathered rows")                             \
    X(real, gather_bytes, "bytes",                                                                 \
      "part of bytes_moved_min: rows copied into groups, and outputs copied back; empty without "  \
      "groups")                                                                                    \
    X(real, gather_pct, "%",                                                                       \
      "share of median_ns that these copies take; empty where they cannot be timed alone")         \
    X(real, gbyte_per_s, "GB/s", "bytes_moved_min / median_ns")                                    \
    X(real, peak_flops_pct, "%", "gflop_per_s, in % of the measured peak")                         \
    X(real, peak_bw_pct, "%", "gbyte_per_s, in % of the measured read bandwidth")                  \
    X(text, bound, "", "nearer limit of the roofline: compute or memory")                          \
    X(real, ref_median_ns, "ns", "median of the ref backend in the same group")                    \
    X(real, ratio_to_ref, "", "ref_median_ns / median_ns: above 1, faster than ref")               \
    X(real, max_abs_err, "", "largest difference from the reference output")                       \
    X(real, max_rel_err, "", "max_abs_err / largest reference magnitude")                          \
    X(real, err_limit, "", "upper bound of max_rel_err; max_abs_err has none of its own")          \
    X(real, bind_ns, "ns", "time to place weights, tables and work space")                         \
    X(i64, check_rows, "", "output rows compared with the reference, over all sequences")          \
    X(real, nmse, "", "mean square of the differences / mean square of the reference")             \
    X(real, nmse_limit, "", "upper bound of nmse: a row is wrong beyond either bound")             \
    X(i64, throttled_periods, "",                                                                  \
      "periods in which the CPU quota stopped the timed blocks of the group; empty without one")   \
    X(real, clock_ratio, "",                                                                       \
      "clock rate beside its blocks / that of the fastest tenth of all blocks of its group; rows " \
      "below 0.98 are marked")                                                                     \
    X(real, energy_j, "J",                                                                         \
      "median energy of the CPU packages per call, idle parts included; empty in virtual "         \
      "machines and where powercap cannot be read")                                                \
    X(real, energy_ci95_low_j, "J", "95 % interval of that median, lower end")                     \
    X(real, energy_ci95_high_j, "J", "95 % interval of that median, upper end")                    \
    X(i64, launches, "", "times that the case was started, each in a process of its own")          \
    X(real, between_launch_pct, "%",                                                               \
      "standard deviation of the launches' medians; empty for one launch")                         \
    X(real, layers_run, "layers", "layers that a token ran, on average; empty where all run all")  \
    X(real, layers_run_p90, "layers", "layers that nine of ten tokens do not exceed")              \
    X(real, first_token_ns, "ns",                                                                  \
      "of a request: time until the prompt is read, which gives the first new token; median over " \
      "all blocks")                                                                                \
    X(real, token_ns, "ns", "of a request: median time of each further token")                     \
    X(real, token_p99_ns, "ns",                                                                    \
      "99th percentile of single tokens in a block of calls; median over all blocks, preempted "   \
      "ones included")

#define MEMORY_COLUMNS(X)                                                                          \
    KEY_COLUMNS(X)                                                                                 \
    X(i64, arena_peak_bytes, "bytes",                                                              \
      "memory that the case reserved and what its library holds besides, padding included: "       \
      "exact; what it never touches is not resident")                                              \
    X(i64, weights_bytes, "bytes", "parameters")                                                   \
    X(i64, activations_bytes, "bytes", "residual stream, queries, keys, values, hidden rows")      \
    X(i64, memory_state_bytes, "bytes",                                                            \
      "cached context of mem_tokens tokens: KV cache, hidden rows or state")                       \
    X(i64, scores_bytes, "bytes", "materialised attention scores")                                 \
    X(i64, rel_pos_bytes, "bytes", "tables of relative positions")                                 \
    X(i64, gradients_bytes, "bytes", "gradients")                                                  \
    X(i64, optimizer_bytes, "bytes", "optimiser state")                                            \
    X(i64, backend_scratch_bytes, "bytes",                                                         \
      "work space of the backend and slack of caches, without what a library allocates itself")    \
    X(i64, model_predicted_bytes, "bytes",                                                         \
      "prediction in closed form: operands of attn; of other workloads, the cached context")       \
    X(i64, rss_peak_bytes, "bytes",                                                                \
      "peak resident memory of the measuring child after binding and checking")                    \
    X(i64, rss_before_bytes, "bytes", "the same before the case was bound")                        \
    X(i64, rss_delta_bytes, "bytes", "rss_peak_bytes - rss_before_bytes")                          \
    X(text, rss_method, "", "source of the resident numbers: vmhwm")                               \
    X(i64, cache_bytes, "bytes",                                                                   \
      "what the model must keep of mem_tokens tokens, for all sequences, to make the next "        \
      "without "                                                                                   \
      "running them again (keys and values, latents, rows, states), each row that a later query "  \
      "may see once; where it cannot, the tokens, 4 bytes each")

#define PERPLEXITY_COLUMNS(X)                                                                      \
    KEY_COLUMNS(X)                                                                                 \
    X(line, checkpoint, "", "file of the weights")                                                 \
    X(text, checkpoint_xxh3, "", "hash of its bytes")                                              \
    X(i64, train_step, "", "optimiser steps that made the weights")                                \
    X(line, corpus, "", "text that was scored")                                                    \
    X(text, corpus_xxh3, "", "hash of its bytes")                                                  \
    X(text, split, "", "part of the corpus: train, valid or test")                                 \
    X(text, unit, "", "unit of ppl: a token (such as a byte), or the value of --unit")             \
    X(i64, tokens_scored, "tokens", "tokens whose probabilities are in the mean")                  \
    X(i64, segments, "", "segments of seq_tokens")                                                 \
    X(real, nll_sum, "nats", "sum of the negative log-likelihood (nll), weighted as --count says") \
    X(i64, tokens, "tokens",                                                                       \
      "tokens that nll_sum is divided by; with --count hf fewer than tokens_scored")               \
    X(i64, words, "",                                                                              \
      "words of the text, separated by white space; empty where part of the text is dropped, "     \
      "and of a generated text")                                                                   \
    X(i64, bytes, "bytes",                                                                         \
      "bytes of the text, where each is a token those of nll_sum; empty where part of the "        \
      "text is dropped")                                                                           \
    X(i64, oov, "",                                                                                \
      "words outside the tokenizer's list, scored as <unk>: if above 0, do not compare with "      \
      "published numbers; empty without a list")                                                   \
    X(real, ppl_token, "", "exp(nll_sum / tokens)")                                                \
    X(real, ppl_word, "", "exp(nll_sum / words)")                                                  \
    X(real, ppl_byte, "", "exp(nll_sum / bytes)")                                                  \
    X(real, bits_per_byte, "bits",                                                                 \
      "nll_sum / (bytes ln 2): compares models with different tokens")                             \
    X(real, nll_nats_per_token, "nats", "mean negative log-likelihood")                            \
    X(real, ppl, "", "perplexity per unit")                                                        \
    X(real, bits_per_unit, "bits", "nll_sum / ln 2, per unit")                                     \
    X(real, ppl_ci95_low, "", "95 % interval of ppl, lower end")                                   \
    X(real, ppl_ci95_high, "", "95 % interval of ppl, upper end")                                  \
    X(real, ppl_delta_pct, "%",                                                                    \
      "ppl relative to f32 in the same run; empty for f32, and without it")                        \
    X(real, kl_nats, "nats",                                                                       \
      "mean Kullback-Leibler divergence of the next token's distribution from that of the same "   \
      "model in f32; empty for f32, and where no row of logits is a token's")                      \
    X(real, kl_p99_nats, "nats", "what it does not exceed for 99 of 100 tokens")                   \
    X(real, same_top_pct, "%", "tokens whose most likely word is that of the model in f32")        \
    X(real, ppl_floor, "", "ppl of the true source, the least possible, if the text is generated") \
    X(real, eval_ns, "ns", "time of the whole evaluation")                                         \
    X(real, tokens_per_s, "1/s", "tokens scored per second")                                       \
    X(real, layers_run, "layers", "layers that a token ran, on average; empty where all run all")  \
    X(real, layers_run_p90, "layers", "layers that nine of ten tokens do not exceed")              \
    X(real, accuracy, "",                                                                          \
      "share of tokens of targets, or of questions, whose right one is the likeliest")             \
    X(real, accuracy_ci95_low, "", "95 % interval of the share of questions, lower end")           \
    X(real, accuracy_ci95_high, "", "upper end")                                                   \
    X(real, acc_norm, "", "share of questions by log-likelihood per character")                    \
    X(real, acc_norm_ci95_low, "", "its 95 % interval, lower end")                                 \
    X(real, acc_norm_ci95_high, "", "upper end")                                                   \
    X(real, acc_bytes, "", "the share by log-likelihood per byte of UTF-8")                        \
    X(real, acc_bytes_ci95_low, "", "its 95 % interval, lower end")                                \
    X(real, acc_bytes_ci95_high, "", "upper end")                                                  \
    X(real, acc_tokens, "", "the share by log-likelihood per token")                               \
    X(real, acc_tokens_ci95_low, "", "its 95 % interval, lower end")                               \
    X(real, acc_tokens_ci95_high, "", "upper end")                                                 \
    X(real, exact_match, "", "share of questions whose right continuation is the greedy one")      \
    X(i64, answers_scored, "tokens", "scored tokens that a generated text calls answers")          \
    X(real, answer_nll_nats, "nats", "mean nll of the answers; empty without any")                 \
    X(real, answer_floor_nats, "nats", "mean nll of the answers under the true source")            \
    X(real, answer_blind_nats, "nats",                                                             \
      "mean nll of the answers under the true source without context")                             \
    X(real, nll_at_1, "nats",                                                                      \
      "mean nll of the first token of each segment, after mem_tokens of context")                  \
    X(real, nll_at_2, "nats", "the same of tokens 2 and 3 of each")                                \
    X(real, nll_at_4, "nats", "the same of tokens 4 to 7 of each")                                 \
    X(real, nll_at_8, "nats", "the same of tokens 8 to 15 of each")                                \
    X(real, nll_at_16, "nats", "the same of tokens 16 to 31 of each")                              \
    X(real, nll_at_32, "nats", "the same of tokens 32 to 63 of each")                              \
    X(real, nll_at_64, "nats", "the same of tokens 64 to 127 of each")                             \
    X(real, nll_at_128, "nats", "the same of tokens 128 to 255 of each")                           \
    X(real, nll_at_256, "nats", "the same of tokens 256 to 511 of each")                           \
    X(real, nll_at_512, "nats", "the same of tokens 512 to 1023 of each")                          \
    X(real, nll_at_1024, "nats", "the same from token 1024 on")                                    \
    X(line, source, "", "published name of the model; empty for models trained here")

/* The columns nll_at_N: place in a segment, from N to below the next N. Y(N, X) */
#define NLL_PLACES(Y, X)                                                                           \
    Y(1, X)                                                                                        \
    Y(2, X) Y(4, X) Y(8, X) Y(16, X) Y(32, X) Y(64, X) Y(128, X) Y(256, X) Y(512, X) Y(1024, X)
#define NLL_NUMBER(at, X) X(nll_at_##at, real, nll_at_##at)

/* What a score finds, X(name, how, column): the name in reports, and the column that is made of it: the
 * number itself, a count (empty where it is not known), or the perplexity that nats make. */
#define SCORE_NUMBERS(X)                                                                           \
    X(nll, real, nll_nats_per_token)                                                               \
    X(nll_low, ppl, ppl_ci95_low)                                                                  \
    X(nll_high, ppl, ppl_ci95_high)                                                                \
    X(nll_floor, ppl, ppl_floor)                                                                   \
    X(accuracy, real, accuracy)                                                                    \
    X(acc_norm, real, acc_norm)                                                                    \
    X(acc_bytes, real, acc_bytes)                                                                  \
    X(acc_tokens, real, acc_tokens)                                                                \
    X(exact_match, real, exact_match)                                                              \
    X(answers, count, answers_scored)                                                              \
    X(answer_nll, real, answer_nll_nats)                                                           \
    X(answer_floor, real, answer_floor_nats)                                                       \
    X(answer_blind, real, answer_blind_nats)                                                       \
    X(tokens_scored, count, tokens_scored)                                                         \
    X(nll_sum, real, nll_sum)                                                                      \
    X(tokens_counted, count, tokens)                                                               \
    X(words, count, words)                                                                         \
    X(text_bytes, count, bytes)                                                                    \
    X(oov, count, oov)                                                                             \
    X(segments, count, segments)                                                                   \
    X(eval_ns, real, eval_ns)                                                                      \
    X(kl, real, kl_nats)                                                                           \
    X(kl_p99, real, kl_p99_nats)                                                                   \
    X(same_top_pct, real, same_top_pct)                                                            \
    X(layers_run, real, layers_run)                                                                \
    X(layers_p90, real, layers_run_p90)                                                            \
    NLL_PLACES(NLL_NUMBER, X)

/* One row per run. */
#define ENV_COLUMNS(X)                                                                             \
    X(text, schema, "", "table and version, e.g. bench-env/2.0")                                   \
    X(text, run_id, "", "name of the run's folder")                                                \
    X(text, host_id, "", "hash of cpu_model, isa, cpu counts, caches, memory and hypervisor")      \
    X(text, started_at_utc, "", "when the run started, ISO 8601")                                  \
    X(text, finished_at_utc, "", "when the run ended; empty after a crash")                        \
    X(i64, exit_code, "", "exit code of the run; empty after a crash")                             \
    X(page, argv, "", "words of the command line, quoted as in an @file")                          \
    X(text, bench_version, "", "version of this program")                                          \
    X(text, git_commit, "", "commit it was built from, or nogit")                                  \
    X(i64, git_dirty, "0/1", "the work tree differed from that commit")                            \
    X(line, compiler, "", "compiler of this program")                                              \
    X(page, compiler_flags, "", "flags of the compiler")                                           \
    X(text, hostname, "", "name of the machine")                                                   \
    X(line, kernel, "", "operating system and release")                                            \
    X(text, cpu_model, "", "name of the CPU")                                                      \
    X(text, microcode, "", "microcode revision of the CPU")                                        \
    X(text, isa, "", "best instruction set level of CPU and operating system")                     \
    X(text, max_isa, "", "level allowed by --max-isa")                                             \
    X(text, hypervisor, "", "virtual machine monitor; empty on bare metal")                        \
    X(i64, packages, "", "CPU packages")                                                           \
    X(i64, numa_nodes, "", "NUMA nodes")                                                           \
    X(i64, cores, "", "physical cores")                                                            \
    X(i64, cpus, "", "logical CPUs")                                                               \
    X(i64, smt, "0/1", "cores run more than one hardware thread")                                  \
    X(i64, allowed_cores, "", "cores that the cpuset allows")                                      \
    X(i64, allowed_cpus, "", "logical CPUs that the cpuset allows")                                \
    X(line, cpuset, "", "list of the allowed logical CPUs")                                        \
    X(i64, l1d_bytes, "bytes", "one level 1 data cache")                                           \
    X(i64, l2_bytes, "bytes", "one level 2 cache")                                                 \
    X(i64, l3_bytes, "bytes", "one level 3 cache")                                                 \
    X(i64, l3_count, "", "level 3 caches")                                                         \
    X(i64, memory_bytes, "bytes", "physical memory")                                               \
    X(i64, memory_free_bytes, "bytes", "available when the run started")                           \
    X(text, huge_pages, "", "the kernel's transparent huge page setting")                          \
    X(text, governor, "", "frequency governor, or none if the kernel shows none")                  \
    X(text, boost, "", "turbo: on, off, or empty if the kernel does not tell")                     \
    X(real, load_1min, "", "load average when the run started")                                    \
    X(real, steal_pct, "%", "CPU time taken by the hypervisor during the run")                     \
    X(text, openmp, "", "OpenMP runtime")                                                          \
    X(text, openblas_version, "", "OpenBLAS version; empty if not built in")                       \
    X(text, openblas_threading, "", "openmp, pthread or serial")                                   \
    X(text, openblas_core, "", "kernels that OpenBLAS chose")                                      \
    X(line, openblas_config, "", "OpenBLAS's own description of its build")                        \
    X(text, onednn_version, "", "oneDNN version; empty if not built in")                           \
    X(line, env_overrides, "", "OMP_*, OPENBLAS_*, DNNL_* found: NAME=value;...")                  \
    X(text, onednn_threading, "", "threading runtime of oneDNN")                                   \
    X(text, hwloc_version, "", "hwloc version")                                                    \
    X(real, clock_resolution_ns, "ns", "resolution of the wall clock")                             \
    X(real, clock_overhead_ns, "ns", "cost of reading the wall clock")                             \
    X(i64, peak_threads, "", "threads of the peak measurements")                                   \
    X(real, peak_flop_per_s_ref, "flop/s", "measured peak, baseline instructions")                 \
    X(real, peak_flop_per_s_avx2, "flop/s", "measured peak, AVX2")                                 \
    X(real, peak_flop_per_s_avx512, "flop/s", "measured peak, AVX-512")                            \
    X(real, peak_flop_per_s_bf16, "flop/s", "measured peak of bf16, AVX512-BF16")                  \
    X(real, read_byte_per_s_l1, "bytes/s", "measured read bandwidth, level 1 cache")               \
    X(real, read_byte_per_s_l2, "bytes/s", "measured read bandwidth, level 2 cache")               \
    X(real, read_byte_per_s_l3, "bytes/s", "measured read bandwidth, level 3 cache")               \
    X(real, read_byte_per_s_dram, "bytes/s", "measured read bandwidth, main memory")               \
    X(real, aa_noise_pct, "%", "smallest difference that the run could show (A/A test)")           \
    X(real, cpu_quota, "CPUs", "what the control group may use of them; empty without a quota")    \
    X(i64, throttled_periods, "",                                                                  \
      "periods in which the quota stopped this run; empty without one")                            \
    X(i64, core_kinds, "", "kinds of cores among the allowed ones")                                \
    X(real, peak_flop_per_s_neon, "flop/s", "measured peak, NEON")                                 \
    X(text, libc, "", "C library; empty if it is not glibc")                                       \
    X(text, aslr, "", "address randomisation of the kernel: 0 none, 1, 2 full; empty if unknown")  \
    X(line, mitigations, "", "what the kernel does about the CPU's weaknesses: NAME=what;...")     \
    X(line, kernel_options, "",                                                                    \
      "options of the kernel's command line that change times; empty if it cannot be read")        \
    X(text, clock_source, "", "what the kernel's clock reads, such as tsc; empty if unknown")      \
    X(line, outside_kernels, "",                                                                   \
      "kernels from outside: NAME@VERSION FILE xxh3=HASH;..., processes also empty=INSIDE,TRIP")   \
    X(real, peak_flop_per_s_amx_bf16, "flop/s", "measured peak of bf16, tiles of AMX")

/* One row per report of a training run, beside the checkpoint: CHECKPOINT.train.csv. */
#define TRAIN_COLUMNS(X)                                                                           \
    X(text, schema, "", "table and version, e.g. bench-train/2.0")                                 \
    X(text, variant, "", "kind of attention")                                                      \
    X(text, backend, "", "backend that ran it")                                                    \
    X(i64, threads, "", "threads")                                                                 \
    X(i64, step, "", "optimiser steps taken")                                                      \
    X(i64, tokens, "tokens", "tokens seen so far")                                                 \
    X(real, loss_nats, "nats", "mean nll in training since the row before")                        \
    X(real, bits_per_token, "bits", "loss_nats / ln 2")                                            \
    X(real, grad_norm, "", "mean norm of the gradient, before clipping")                           \
    X(real, lr, "", "learning rate of the last step")                                              \
    X(real, tokens_per_s, "1/s", "training throughput since the row before")                       \
    X(real, valid_nats, "nats", "loss on the validation text; empty if it was not scored")         \
    X(real, valid_floor_nats, "nats",                                                              \
      "loss of the true source on the same tokens, if the text is generated")                      \
    X(real, valid_answer_nats, "nats", "valid_nats of the tokens that the source calls answers")   \
    X(real, valid_answer_floor_nats, "nats", "valid_floor_nats of the answers")                    \
    X(real, valid_accuracy, "",                                                                    \
      "share of the tokens of targets that are the most likely ones; empty without an encoder")    \
    X(i64, ranks, "", "processes that share the batch (MPI)")                                      \
    X(i64, nodes, "", "machines that they are on")                                                 \
    X(real, comm_ns, "ns", "mean wait of a step for gradients of other ranks")                     \
    X(real, overlap_pct, "%",                                                                      \
      "share of the time from the first sum of gradients to the last in which backward ran")       \
    X(real, grad_bytes, "bytes", "gradients that a rank sums with others in a step")               \
    X(real, task_loss, "", "loss of the actor-critic since the row before, if a task is learnt")   \
    X(real, entropy_nats, "nats", "mean entropy of the policy since the row before")               \
    X(real, task_return, "", "mean return of the episodes that ended since the row before")        \
    X(real, valid_return, "", "mean return of the validation's episodes")                          \
    X(real, valid_return_ci95_low, "", "95 % interval of valid_return")                            \
    X(real, valid_return_ci95_high, "", "")                                                        \
    X(real, random_return, "", "exact mean return of actions at random")                           \
    X(real, optimum_return, "", "exact mean return of the best policy, or a bound of it")          \
    X(real, ponder_steps, "",                                                                      \
      "steps and rest of a token, on average since the row before, where tokens halt (R of "       \
      "Graves 2016)")                                                                              \
    X(real, cpu_pct, "%",                                                                          \
      "CPU time of the thread with most of it, of the steps' time since the row before; the rest " \
      "went to other programs, or to waits")

/* One row per job of a study: a training, in study.csv of the study's run. */
#define STUDY_COLUMNS(X)                                                                           \
    X(text, schema, "", "table and version, e.g. bench-study/2.3")                                 \
    X(text, run_id, "", "name of the run's folder")                                                \
    X(text, host_id, "", "hash of the stable part of the machine (see env.csv)")                   \
    X(text, case_id, "", "hash of the job: the same in every run of the same study")               \
    X(text, started_at_utc, "", "when the job started, ISO 8601")                                  \
    X(text, status, "", "ok, skipped, failed, wrong (its loss was no number) or interrupted")      \
    X(line, status_detail, "", "why the status is not ok")                                         \
    X(text, role, "", "tune: to choose a learning rate; final: at the chosen one, and scored")     \
    X(text, contender, "", "name of what is compared in the study")                                \
    X(i64, baseline, "0/1", "1: others are compared with this one, or it with none")               \
    X(text, control, "", "contender that it is compared with; empty for none")                     \
    X(text, skeleton, "", "--skeleton, and what its model has otherwise; empty for own")           \
    X(text, size, "", "name of the size in the study")                                             \
    X(line, corpus, "", "name of the text, or of the task, in the study")                          \
    X(i64, seed, "", "seed of weights, dropout, hidden tokens, actions")                           \
    X(real, lr, "", "peak learning rate")                                                          \
    X(real, effect, "", "least difference of test_nats or test_return that counts; empty: any")    \
    X(text, rate_of, "", "contender whose rate it takes; empty for its own")                       \
    X(text, variant, "", "kind of attention")                                                      \
    X(text, backend, "", "backend that ran it")                                                    \
    X(i64, threads, "", "threads")                                                                 \
    X(i64, layers, "", "layers of the model")                                                      \
    X(i64, d_model, "", "width of the model")                                                      \
    X(i64, heads, "", "query heads")                                                               \
    X(i64, d_inner, "", "width of the feed-forward layer")                                         \
    X(i64, parameters, "", "trained parameters")                                                   \
    X(i64, seq_tokens, "tokens", "tokens per segment in training")                                 \
    X(i64, mem_tokens, "tokens", "tokens of context in training")                                  \
    X(i64, batch_size, "sequences", "sequences per step")                                          \
    X(i64, budget_tokens, "tokens",                                                                \
      "of the study's budgets, the one of this row; empty: it has none")                           \
    X(i64, steps, "", "optimiser steps")                                                           \
    X(i64, tokens, "tokens", "tokens seen; of a task, steps played")                               \
    X(real, train_nats, "nats", "mean nll in training over the last report")                       \
    X(real, valid_nats, "nats", "loss on the validation text after the last step")                 \
    X(real, train_s, "s", "time of the training, validation and saving included")                  \
    X(real, cpu_pct, "%",                                                                          \
      "CPU time of the thread with most of it, of the steps' time; the rest went to other "        \
      "programs, or to waits")                                                                     \
    X(line, checkpoint, "", "file of the weights")                                                 \
    X(text, test_case_id, "", "row of perplexity.csv with the compared score; empty for tune")     \
    X(text, unit, "", "what a token is, e.g. byte")                                                \
    X(i64, test_seq_tokens, "tokens", "tokens per segment of that score")                          \
    X(i64, test_mem_tokens, "tokens", "tokens of context of that score")                           \
    X(i64, test_tokens, "tokens", "tokens scored")                                                 \
    X(real, test_nats, "nats", "mean nll on the test text")                                        \
    X(real, test_unigram_nats, "nats", "entropy of its bytes; empty if it is generated")           \
    X(real, test_floor_nats, "nats",                                                               \
      "mean nll of the true source on the test text, if the text is generated")                    \
    X(real, test_answer_nats, "nats", "test_nats of the tokens that the source calls answers")     \
    X(real, test_answer_floor_nats, "nats", "test_floor_nats of the answers")                      \
    X(real, test_answer_blind_nats, "nats",                                                        \
      "mean nll of the answers under the true source without context")                             \
    X(real, valid_return, "", "mean return of a task's validation after the last step")            \
    X(i64, test_episodes, "", "episodes of a task that were scored")                               \
    X(real, test_return, "", "their mean return")                                                  \
    X(real, test_return_ci95_low, "", "95 % interval of test_return over episodes")                \
    X(real, test_return_ci95_high, "", "")                                                         \
    X(real, random_return, "", "exact mean return of actions at random")                           \
    X(real, optimum_return, "", "exact mean return of the best policy, or a bound of it")          \
    X(i64, solved, "0/1",                                                                          \
      "1: the return (tune: of the validation) is nine tenths of the way from random to optimum")  \
    X(line, repro, "", "command of the training")

/* One row per timed block, in samples.csv.zst or samples.csv. */
#define SAMPLE_COLUMNS(X)                                                                          \
    X(text, schema, "", "table and version, e.g. bench-samples/2.0")                               \
    X(text, run_id, "", "name of the run's folder")                                                \
    X(text, case_id, "", "row of latency.csv that the sample belongs to")                          \
    X(i64, sample, "", "number of the sample in its case, from 0")                                 \
    X(i64, round, "", "round in which it was taken: samples of one round are pairs")               \
    X(real, wall_ns, "ns", "wall time of the block")                                               \
    X(real, cpu_ns, "ns", "CPU time in the block of the thread with most of it")                   \
    X(i64, calls, "", "calls in the block")                                                        \
    X(i64, involuntary_switches, "", "preemptions during the block")                               \
    X(i64, disturbed, "0/1", "1: left out of the medians while enough samples remain")             \
    X(i64, launch, "", "number of the case's process that it was timed in, from 0")
