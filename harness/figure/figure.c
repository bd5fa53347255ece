/* SPDX-License-Identifier: MIT
 *
 * The list of figures. */
#include "figure.h"

#define LINES                                                                                      \
    .facet = ROLE_TASK | ROLE_SIZE | ROLE_CONDITION, .need = 2,                                    \
    .series = ROLE_MEMORY | ROLE_MODEL | ROLE_TUNED
#define TIMES                                                                                      \
    .table = TABLE_LATENCY, .y = "median_ns", .low = "ci95_low_ns", .high = "ci95_high_ns",        \
    .nothing = "latency.csv has no row with a time"
#define SCORES                                                                                     \
    .table = TABLE_PERPLEXITY, .y = "ppl", .low = "ppl_ci95_low", .high = "ppl_ci95_high",         \
    .z = "ppl_floor"
#define NO_SCORE .nothing = "perplexity.csv has no scored row"

const struct figure figures[] = {
    {.name = "variants",
     .title = "Time of variants",
     .caption = "Median time of a call of each variant on its fastest backend, with its 95 % "
                "interval; where most samples were preempted, CPU time, with the interval of the "
                "ratio to the first. Marks on a logarithmic axis where bars would not fit.",
     .table = TABLE_LATENCY,
     .nothing = "latency.csv has no two variants of one shape",
     .fill = variant_bars},
    {.name = "latency-seq",
     .title = "Latency against sequence length",
     .caption = "Median time of a call; the band is its 95 % interval. Both axes are logarithmic: "
                "the printed slope is the exponent of the sequence length.",
     LINES,
     TIMES,
     .x = "seq_tokens",
     .counted = "sequence lengths",
     .slopes = true},
    {.name = "latency-mem",
     .title = "Latency against context length",
     .caption = "Median time of a call; the band is its 95 % interval.",
     LINES,
     TIMES,
     .x = "mem_tokens",
     .counted = "context lengths"},
    {.name = "latency-threads",
     .title = "Speed-up over threads",
     .caption =
         "Time with one thread over time with n, and that divided by n. The serial fraction s of "
         "Amdahl's law, 1 / (s + (1 - s) / n), is fitted by least squares of the times.",
     LINES,
     TIMES,
     .x = "threads",
     .counted = "thread counts",
     .more = threads_speedup},
    {.name = "samples",
     .title = "Samples of a case",
     .caption = "Time of a call, in the order in which the blocks were timed, with the median and "
                "its 95 % interval: shows a drift, two levels or outliers. Preempted samples are "
                "left out of the median while enough others remain.",
     .folded = true,
     .nothing = "no row of latency.csv has samples",
     .fill = sample_strips},
    {.name = "memory-parts",
     .table = TABLE_MEMORY,
     .title = "Memory by part",
     .caption = "Bytes of the arena, exact, at the largest shape of each workload.",
     .nothing = "memory.csv has no row with bytes",
     .fill = memory_parts},
    {.name = "roofline",
     .title = "Roofline",
     .caption = "Useful arithmetic against the least possible traffic. The lines are ceilings "
                "measured in the same run.",
     .table = TABLE_LATENCY,
     .y = "gflop_per_s",
     .series = ROLE_MEMORY | ROLE_MODEL,
     .need = 1,
     .nothing = "latency.csv has no row with FLOP and bytes at the thread count of the peaks",
     .point = roofline_point,
     .more = roofline_ceilings},
    {.name = "perplexity-mem",
     .title = "Perplexity against context length",
     .caption = "Lower is better; the band is a 95 % interval. Dotted: what the true source "
                "reaches, where the text is generated.",
     LINES,
     SCORES,
     NO_SCORE,
     .x = "mem_tokens",
     .counted = "context lengths"},
    {.name = "perplexity-time",
     .title = "Perplexity against time per token",
     .caption = "Lower and further left is better; the numbers are context lengths, or the types "
                "that one checkpoint was scored with. Bars: 95 % intervals; of a study, means and "
                "intervals over seeds. Ringed: no other point is better in both.",
     .facet = ROLE_TASK | ROLE_SIZE | ROLE_CONDITION,
     .series = ROLE_MEMORY | ROLE_MODEL,
     .need = 2,
     SCORES,
     NO_SCORE,
     .label = "mem_tokens",
     .counted = "points",
     .point = perplexity_time,
     .more = perplexity_front},
    {.name = "perplexity-bytes",
     .title = "Perplexity against memory",
     .caption =
         "Bytes are those of the arena of the same model and shape. Lower and further left is "
         "better; the numbers are context lengths. Ringed: no other point is better in both.",
     LINES,
     SCORES,
     .label = "mem_tokens",
     .nothing = "memory.csv has no row of a model and shape that perplexity.csv scores",
     .counted = "points",
     .point = perplexity_bytes,
     .more = perplexity_front},
    {.name = "backends",
     .title = "Backends, time relative to the base",
     .caption = "Below 1 is faster than the base. Whiskers combine both 95 % intervals as if they "
                "were independent; bench compare, which pairs the samples, is sharper.",
     .nothing = "latency.csv has no two backends of one shape, one of them the base",
     .fill = backend_bars},
    {.name = "changes",
     .title = "Changes with their 95 % intervals",
     .caption = "Left of one is faster. Grey: what counts as the same.",
     .nothing = "the folder has no table of compare or gate with times (--format csv)",
     .fill = change_intervals},
    {.name = "study",
     .title = "Quality against time, differences from the baseline or the control",
     .caption = "Loss on the test text minus that of the baseline, or of the control that is "
                "named, over the ratio of training times per token; means over seeds with their 95 "
                "% intervals (Welch). Lower and further left is better. Grey: one seed standard "
                "deviation of baselines.",
     .table = TABLE_STUDY,
     .nothing = "the folder has no study whose contenders have three seeds, each with a score, "
                "and what they are compared with",
     .fill = study_differences},
    {.name = "budgets",
     .title = "Loss after each budget",
     .caption = "Mean loss of the seeds of a study on its test text after each number of tokens, "
                "each the end of a training, with 95 % intervals. Lower is better. Lines that "
                "cross say that one budget does not foretell another.",
     .table = TABLE_STUDY,
     .nothing = "the folder has no study with budgets",
     .fill = study_over_budgets},
    {.name = "quality",
     .title = "Quality against time and state",
     .caption =
         "Mean loss of the seeds of a study on its test text, over what each variant takes in the "
         "same folder: time per token after the longest context, and the state that is kept of it "
         "(variants that run their context again keep none). Lower and further left is better. "
         "Ringed: no other point is better in both; with many points the others have no names.",
     .table = TABLE_LATENCY,
     .nothing = "the folder has no study of texts beside times of its variants",
     .fill = quality_costs,
     .more = quality_front},
    {.name = "abilities",
     .title = "What was learnt, from none of it (0) to all (1)",
     .caption =
         "Loss on the answers of generated texts: 0 is that of the true source without context, 1 "
         "its floor with all context. Returns of tasks: 0 is that of actions at random, 1 that of "
         "the best policy. The mean over seeds, with the least and the most below. Reached: within "
         "2 % of the floor's perplexity; of a task, by all seeds, nine tenths of the way.",
     .table = TABLE_STUDY,
     .nothing = "the folder has no study of a generated text with answers, or of tasks",
     .fill = study_abilities},
    {.name = "returns",
     .title = "Returns of tasks while they are learnt",
     .caption = "Mean return of the episodes of a validation over the steps played until then; the "
                "mean over the seeds of each contender at its best rate, in a band from the least "
                "to the most of them. Dotted: the best policy; dashed: actions at random.",
     .table = TABLE_STUDY,
     .nothing = "the folder has no study of tasks with its trainings (jobs/*.train.csv)",
     .follow = study_returns},
    {.name = "training",
     .title = "Training",
     .table = TABLE_TRAIN,
     .caption = "Lines: training loss; points: validation; dotted: what the true source reaches on "
                "the validation text, where it is generated. Of a study the mean over the seeds of "
                "each contender, with the least and the most of them. Losses of the first steps "
                "may lie above the figure.",
     .nothing =
         "the folder has no curve of a training run (*.train.csv, or those of a study in jobs/)",
     .follow = training_curves},
    {.name = "eval-speed",
     .title = "Time per predicted token",
     .caption = "A sliding window recomputes its whole context for each token, a memory does not. "
                "Slowdown: the window's time divided by that of each other (markers), the same "
                "ratio of useful arithmetic (thin lines), and the published ratio on a GPU.",
     .table = TABLE_LATENCY,
     .x = "mem_tokens",
     .series = ROLE_SIZE | ROLE_CONDITION | ROLE_MODEL,
     .need = 2,
     .counted = "context lengths",
     .nothing = "latency.csv has no decode times of a recomputed window and of a memory with the "
                "same context (ref does not count)",
     .point = speed_point,
     .series_name = speed_name,
     .more = speed_slowdown},
    {.name = "history",
     .title = "Times of a case over several runs",
     .caption = "Median time of a call with its 95 % interval in each run, by date.",
     .several = true,
     .fill = case_history},
};
const int figure_count = (int)ARRAY_LEN(figures);

const struct figure *plot_figure(const char *name)
{
    const struct figure *f = figures;

    while (strcmp(f->name, name) != 0)
        f++;
    return f;
}

enum status plot_check_names(const struct names *wanted, struct err *e)
{
    const char *names[ARRAY_LEN(figures) + 1] = {0};

    for (int i = 0; i < figure_count; i++)
        names[i] = figures[i].name;
    for (int k = 0; k < wanted->n; k++)
        if (word_index(wanted->v[k], names) < 0)
            return unknown_word(e, "figure", wanted->v[k], names, "bench plot --help");
    return OK;
}

bool plot_is_wanted(const struct figure *f, const struct names *names)
{
    return names_have(names, f->name) || (names->n == 0 && !f->several);
}
