/* SPDX-License-Identifier: MIT
 *
 * Every command of the program. Adding one is a row here, its function in main.c, and its bit in
 * the rows of the options that it takes (option_table.c). */
#include "command_table.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

const char *const list_words[] = {"variants", "families",  "backends", "cases",  "columns",
                                  "sources",  "baselines", "systems",  "models", NULL};
const char *const baseline_words[] = {"save", "list", "show", "rm", NULL};
const char *const completion_words[] = {"bash", "zsh", "fish", NULL};

/* clang-format off */
const struct command_spec command_specs[COMMAND_COUNT] = {
    [CMD_SWEEP] = {
        "sweep", NULL, 0, "measure every case of the options, write the tables (the default)",
        "A case is one variant, backend, workload, shape and number of threads. Each is compared "
        "with a reference first; those of one shape are timed in turns. The rows go to the "
        "screen and to a folder of their own in --out.",
        {{"bench --variant xl --mem 512", "one variant on every backend, 512 tokens of context"},
         {"bench --variant xl,rope,window --workload decode --mem 512..4096 --quick",
          "three variants, one token at a time, with growing context"},
         {"bench @harness/sweeps/headline.args --variant xl",
          "options from a file; what stands beside it replaces what it says"}},
        NULL,
        {{NULL, NULL}}},
    [CMD_LIST] = {
        "list", "WHAT [DIR]", 2, "what is built in, and the cases that a sweep would measure",
        "WHAT is variants, families, backends, cases, columns, sources, systems, baselines, or models: "
        "those in DIR, checkpoints of ours and published ones.",
        {{"bench list variants", "variants, their options and papers"},
         {"bench list cases --variant xl --seq 128..1024", "the plan of a sweep; nothing runs"},
         {"bench list columns --format md", "what every column of the tables means"}},
        list_words,
        {{NULL, NULL}}},
    [CMD_CHECK] = {
        "check", NULL, 0, "correctness only, against the reference or golden files",
        "Every operation, and every variant chosen, on every backend chosen, over awkward shapes. "
        "Exit code 5 if numbers are wrong.",
        {{"bench check", "the four base variants on all backends"},
         {"bench check --variant xl --backend avx2 --format csv", "each result as a row"},
         {"bench check --golden tests/golden", "golden files, on every backend"}},
        NULL,
        {{NULL, NULL}}},
    [CMD_EVAL] = {
        "eval", NULL, 0, "perplexity of a checkpoint on a text",
        "Sizes and choices come from the checkpoint. --seq, --mem, --dtype and --kv-dtype may be "
        "lists: a row each. Other types are compared with f32, which is scored with them.",
        {{"bench eval --ckpt xl.safetensors --corpus book.txt", "its perplexity on that text"},
         {"bench eval --ckpt xl.safetensors --mem 0,128,512", "over lengths of context"},
         {"bench eval --ckpt xl.safetensors --bytes 64Ki --format csv", "of the first 64 KiB"}},
        NULL,
        {{"seq", "128"}}},
    [CMD_TRAIN] = {
        "train", NULL, 0, "train a model of a variant on a text, write a checkpoint",
        "One value of each axis. Ctrl-C saves; --resume goes on to the same numbers and needs the "
        "checkpoint only.",
        {{"bench train --variant xl --ckpt xl.safetensors", "on the generated source"},
         {"bench train --variant xl --corpus book.txt --steps 4000 --ckpt xl.safetensors",
          "on a text"},
         {"bench train --ckpt xl.safetensors --resume", "continue, with the same options"}},
        NULL,
        {{"seq", "128"}, {"mem", "256"}, {"batch", "16"}, {"layers", "2"}, {"d-model", "64"},
         {"heads", "4"}}},
    [CMD_STUDY] = {
        "study", "FILE|RUN", 1, "train variants with several seeds and rates; better, worse or noise",
        "FILE has lines of KEY = VALUE, # begins a comment; options are those of bench train and "
        "bench eval:\n\n"
        "  variants = LIST            names of bench list variants, base, all,\n"
        "                             family:NAME\n"
        "  variant = NAME: OPTIONS    one with options:\n"
        "                             gated: --variant gtrxl --gate highway\n"
        "  baseline = NAME            what the others are compared with; stands\n"
        "                             after the variants [the first]\n"
        "  size = NAME: OPTIONS       small: --layers 2 --d-model 64 --heads 4;\n"
        "                             again for more\n"
        "  corpus = NAME: TEXTS       files to train, validate and test on, or\n"
        "                             one generated source; again for more\n"
        "  rates = LIST               learning rates; the best by validation is\n"
        "                             the variant's\n"
        "  seeds = N                  of each variant at its rate [3]\n"
        "  baseline-seeds = N         of the baseline [5]\n"
        "  tune-seeds = N             that every rate is tried with [1]\n"
        "  steps = N, or tokens = N   of each training\n"
        "  train = OPTIONS            others of bench train:\n"
        "                             --seq 128 --mem 128 --lr-warmup 50\n"
        "  eval = OPTIONS             --seq, --mem, --bytes of the scores; the\n"
        "                             first of each is compared [as trained]\n"
        "  equal-parameters = yes|no  choose --d-inner so that all have the same\n"
        "                             number [no]\n\n"
        "Each training is a row of study.csv in the run's folder. The table shows the loss on the "
        "test text against the baseline's with Welch's 95 % interval over seeds; p is corrected "
        "for the number of comparisons (Holm), and a difference counts below 0.05. Time is that "
        "of training, per token; variants train in turns, seed by seed, and seeds are paired. RUN "
        "is the folder of a study: its table so far.",
        {{"bench study rates.study --dry-run", "its jobs, and about how long they take"},
         {"bench study rates.study --shard 1/2 --out shard1", "half of it; bench merge joins them"},
         {"bench study results/latest --format md", "the verdicts again, as Markdown"}},
        NULL,
        {{NULL, NULL}}},
    [CMD_RECL] = {
        "recl", "FOLDER", 1, "how far back each model of a group gains from seeing more",
        "FOLDER has the losses of bench eval --losses: two or more checkpoints, or one, on the same "
        "text over the same lengths of --mem. The relative effective context length (Dai et al. "
        "2019, section 4.3) is the length after which the next one lowers the perplexity by less "
        "than 1 %, below the best of the group at the shorter length; recl_0.1 is of the tenth of "
        "tokens that are hardest there.",
        {{"bench eval --ckpt xl.safetensors --seq 32 --mem 0..512+32 --losses losses",
          "losses of one model; the same for others"},
         {"bench recl losses", "a row each"},
         {"bench recl losses --format csv", "the same as a table for programs"}},
        NULL,
        {{NULL, NULL}}},
    [CMD_IMPORT] = {
        "import", "DIR", 1, "a published model as a checkpoint of ours",
        "DIR has config.json of a gpt2, gpt_neox, llama, mistral, qwen2, qwen3 or transfo-xl model, "
        "model.safetensors or model.safetensors.index.json and its files, and its tokenizer. bench "
        "eval and sweeps read such folders as they are; this writes the same model in the format of "
        "bench train, in F32, to --ckpt, and its tokenizer to a folder beside it.\n\n"
        "Pickles (pytorch_model.bin and the like) can run code and are never read. Convert them with "
        "software that you trust, in Python:\n\n"
        "  sd = torch.load(F, map_location=\"cpu\", weights_only=True)\n"
        "  sd = {k: v.clone().contiguous() for k, v in sd.items()}\n"
        "  save_file(sd, \"model.safetensors\")",
        {{"bench import SmolLM2-135M --ckpt smollm.safetensors", "write it in our format"},
         {"bench eval --ckpt SmolLM2-135M --corpus book.txt", "score it without"},
         {"bench list models .", "what can be read here, and what not"}},
        NULL,
        {{NULL, NULL}}},
    [CMD_RERUN] = {
        "rerun", "CASE_ID [RUN]", 2, "measure one row again",
        "CASE_ID is a value of the column case_id, or its first digits. Without a RUN the newest "
        "one in --out that has it.",
        {{"bench rerun 5f0c6e2d", "one row of the newest run that has it"},
         {"bench rerun 5f0c6e2d --max-time 20", "the same, measured longer"},
         {"bench rerun 5f0c6e2d results/latest", "of this run"}},
        NULL,
        {{NULL, NULL}}},
    [CMD_TOPO] = {
        "topo", NULL, 0, "the machine, and where threads go; --roofline measures its peaks", "",
        {{"bench topo", "cores, caches, NUMA nodes, and the pin plan"},
         {"bench topo --threads 1,2,4 --pin scatter", "where so many threads would run"},
         {"bench topo --roofline", "peak GFLOP/s and GB/s"}},
        NULL,
        {{NULL, NULL}}},
    [CMD_DOCTOR] = {
        "doctor", NULL, 0, "is this machine fit to measure on? what to fix",
        "Settings are read, never changed. The last finding is measured: one case against itself, "
        "the smallest difference that a sweep can show here.",
        {{"bench doctor", "findings, each with the command that fixes it"},
         {"bench doctor --strict", "exit code 4 if there is a warning"},
         {"bench doctor --threads 2 --pin 0,2", "for this placement"}},
        NULL,
        {{NULL, NULL}}},
    [CMD_COMPARE] = {
        "compare", "[RUN [RUN]]", 2, "two runs, one --axis of a run, or two programs (--exec)",
        "A run is a folder or the name of a baseline. Options that choose and measure cases are "
        "for --exec, which measures; runs are read, and --filter chooses their rows.",
        {{"bench compare results/old results/new", "two runs, case by case"},
         {"bench compare --axis backend --base avx2 results/latest", "inside one run"},
         {"bench compare --exec old=build/old/bench --exec new=./bench --variant xl",
          "two programs, measured in turns"}},
        NULL,
        {{NULL, NULL}}},
    [CMD_GATE] = {
        "gate", NULL, 0, "two programs in turns; exit code 3 if the new one is slower",
        "An A/A test sets the threshold; whatever looks slower or faster is measured again.",
        {{"bench gate --exec old=build/old/bench @harness/sweeps/gate.args",
          "is this program slower than that one?"},
         {"bench gate --exec old=OLD --exec new=NEW --summary summary.md", "with a report for CI"},
         {"bench gate --exec old=OLD --instructions --variant xl --backend avx2",
          "count instructions too"}},
        NULL,
        {{"threshold", "5"}}},
    [CMD_BASELINE] = {
        "baseline", "WHAT", 3, "save, list, show or rm a run kept for this machine",
        "WHAT is save NAME [RUN], list, show NAME or rm NAME.",
        {{"bench baseline save main", "keep the latest run"},
         {"bench baseline list", "those of this and other machines"},
         {"bench compare main results/latest", "compare with it"}},
        baseline_words,
        {{NULL, NULL}}},
    [CMD_MERGE] = {
        "merge", "DIR...", INT_MAX, "join the shards of a sweep or study",
        "A sweep or study split with --shard I/N, on one machine or several, becomes one run. Rows of "
        "unlike machines stay what they are: host_id tells them apart, and bench compare forms no ratio "
        "of two.",
        {{"bench --shard 1/2 --out shard1", "the first half of the groups"},
         {"bench --shard 2/2 --out shard2", "the second"},
         {"bench merge shard1/latest shard2/latest", "one run of both"}},
        NULL,
        {{NULL, NULL}}},
    [CMD_SLURM] = {
        "slurm", "[STUDY]", 1, "print a Slurm job script: shards on nodes, then merge and report",
        "Options are those of bench sweep, or with the file of a study those of bench study; they are "
        "checked, nothing is submitted. Each task of the array is one shard on a node of its own. "
        "Folders and files are on a file system that all nodes share.",
        {{"bench slurm --variant all --seq 128..4096 --nodes 16 >job.sh", "then: sbatch job.sh"},
         {"bench slurm harness/studies/base.study --nodes 4 --shards 8", "eight shards, four at a time"},
         {"bench slurm @harness/sweeps/headline.args --nodes 2 --partial",
          "merge what there is even if a task failed"}},
        NULL,
        {{NULL, NULL}}},
    [CMD_PLOT] = {
        "plot", "[RUN...]", INT_MAX, "figures of runs (gnuplot); --term draws in the terminal",
        "Without a RUN the latest. Files go to RUN/plots unless --out names a folder.",
        {{"bench plot", "every figure of the latest run"},
         {"bench plot results/latest --figure latency-seq --format png", "one, as PNG"},
         {"bench plot --term --filter backend:avx2", "some rows, in the terminal"}},
        NULL,
        {{NULL, NULL}}},
    [CMD_HISTORY] = {
        "history", "[RUN...]", INT_MAX, "times of each case over several runs, by date and commit",
        "Without a RUN all runs in results/. The figure goes to the plots folder of the last RUN "
        "unless --out names one. A report of several runs has it too.",
        {{"bench history", "every case that two runs in results/ have"},
         {"bench history results/old results/new --term", "two runs, in the terminal"},
         {"bench report results/old results/new -o history.html", "as a page that opens offline"}},
        NULL,
        {{NULL, NULL}}},
    [CMD_REPORT] = {
        "report", "RUN...", INT_MAX, "runs as one page of HTML: -o FILE", "",
        {{"bench report results/latest -o report.html", "one run"},
         {"bench report results/old results/new -o both.html", "several runs"},
         {"bench report results/latest -o report.html --figure latency-seq --force",
          "only some figures; replaces the file"}},
        NULL,
        {{NULL, NULL}}},
    [CMD_EXPORT] = {
        "export", "[RUN]", 1, "a run in the format of another program, on standard output",
        "Without a RUN the latest. A run is a folder or the name of a baseline.",
        {{"bench export --to github-action-benchmark results/latest >output.json",
          "tool customSmallerIsBetter of that action"},
         {"bench export --to junit >report.xml", "a test report; wrong rows are failures"},
         {"bench export --filter variant:xl", "one JSON document with environment and rows"}},
        NULL,
        {{NULL, NULL}}},
    [CMD_HELP] = {
        "help", "[COMMAND]", 1, "the options and examples of a command; man: the manual page",
        "bench COMMAND --help prints the same page.",
        {{"bench help plot", "what plot takes"},
         {"bench help man >bench.1", "the manual page, in troff"},
         {"bench --version", "build, compiler, libraries"}},
        NULL,
        {{NULL, NULL}}},
    [CMD_COMPLETION] = {
        "completion", "SHELL", 1, "completion for bash, zsh or fish", "",
        {{"source <(bench completion bash)", "in ~/.bashrc"},
         {"bench completion zsh >~/.zfunc/_bench", "a folder of $fpath"},
         {"bench completion fish >~/.config/fish/completions/bench.fish", "for fish"}},
        completion_words,
        {{NULL, NULL}}},
    [CMD_CELL] = {"cell", "WORD", INT_MAX, NULL, NULL, {{NULL, NULL}}, NULL, {{NULL, NULL}}},
};
/* clang-format on */

const char *command_preset(int command, const char *option)
{
    for (int i = 0; command >= 0 && i < COMMAND_PRESETS; i++)
        if (command_specs[command].preset[i].option &&
            strcmp(command_specs[command].preset[i].option, option) == 0)
            return command_specs[command].preset[i].value;
    return NULL;
}

int command_find(const char *name)
{
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(command_specs[i].name, name) == 0)
            return i;
    return -1;
}
