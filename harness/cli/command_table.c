/* SPDX-License-Identifier: MIT
 *
 * Every command of the program. Adding one is a row here, its function in main.c, and its bit in
 * the rows of the options that it takes (option_table.c). */
#include "command_table.h"

#include <limits.h>
#include <string.h>

#define X(word) #word,
const char *const list_words[] = {LISTS(X) NULL};
#undef X
const char *const baseline_words[] = {"save", "list", "show", "rm", NULL};
const char *const completion_words[] = {"bash", "zsh", "fish", NULL};

/* clang-format off */
const struct command_spec command_specs[COMMAND_COUNT] = {
    [CMD_SWEEP] = {
        .name = "sweep", NULL, 0,
        "measure every case of the options, write the tables (the default)",
        "A case is one variant, backend, workload, shape and number of threads. Each case is first "
        "compared with a reference; cases of one shape are then timed in turns. Rows go to the "
        "screen and to a new folder in --out.",
        {{"bench --variant xl --mem 512", "one variant on every backend, 512 tokens of context"},
         {"bench --variant xl,rope,window --workload decode --mem 512..4096 --quick",
          "three variants, one token at a time, with growing context"},
         {"bench @harness/sweeps/headline.args --variant xl",
          "options from a file; those beside it replace them"}},
        .preset = {{"backend", "fast"}}},
    [CMD_LIST] = {
        .name = "list", "WHAT [WORD]", 2,
        "list what is built in, or the cases that a sweep would measure",
        "WHAT is variants, families, parts, backends, cases, columns, rows, sources, tasks, systems, baselines or "
        "models. variants takes a family or names as WORD; rows runs each variant once beside its control, the same model without its idea; parts lists what a model may have, and what that excludes; models lists the checkpoints and the published models in the folder WORD.",
        {{"bench list variants sparse", "the variants of a family, their options and papers"},
         {"bench list cases --variant xl --seq 128..1024", "the plan of a sweep; nothing runs"},
         {"bench list columns --format md", "what every column of the tables means"}},
        .choices = list_words,
        .preset = {{"backend", "fast"}}},
    [CMD_CHECK] = {
        .name = "check", NULL, 0, "check correctness against the reference or golden files",
        "Checks every operation and every chosen variant on every chosen backend, over awkward "
        "shapes. Exit code 5 if numbers are wrong.",
        {{"bench check", "the four base variants on all backends"},
         {"bench check --variant xl --backend avx2 --format csv", "each result as a row"},
         {"bench check --golden tests/golden", "golden files, on every backend"}}},
    [CMD_JUDGE] = {
        .name = "judge", "FILE", 1, "judge a kernel from a file: right, complete, honest, fast",
        "FILE is a shared object (docs/kernels.md), by its path, or a process, exec:COMMAND. Edge shapes that --seed "
        "chooses run in results that begin poisoned and end at a page that cannot be touched, and a large case "
        "again and again, with new numbers. Exit code 5 if numbers are wrong or not whole, or it ends; 3 if "
        "its times are not to be trusted.",
        {{"bench judge ./mine.so", "what is wrong with it, if anything"},
         {"bench judge ./mine.so --seed 7 --format json", "other cases; the rows for programs"}}},
    [CMD_EVAL] = {
        .name = "eval", NULL, 0, "score a checkpoint on a text: perplexity",
        "Sizes and choices come from the checkpoint. --seq, --mem, --dtype and --kv-dtype may be "
        "lists; each combination is a row. Rows of other types are compared with f32, which is "
        "then scored too.",
        {{"bench eval --ckpt xl.safetensors --corpus book.txt", "its perplexity on that text"},
         {"bench eval --ckpt xl.safetensors --mem 0,128,512", "with three lengths of context"},
         {"bench eval --ckpt xl.safetensors --bytes 64Ki --format csv", "on the first 64 KiB"},
         {"bench eval --ckpt SmolLM2-135M --choices questions.jsonl --dtype f32,q8",
          "the share of right answers, and what 8 bits change"}},
        .preset = {{"seq", "128"}}},
    [CMD_TRAIN] = {
        .name = "train", NULL, 0, "train a model of a variant and write a checkpoint",
        "Each axis takes one value. Ctrl-C saves; --resume continues to the same numbers and needs "
        "only the checkpoint.",
        {{"bench train --variant xl --ckpt xl.safetensors", "on the generated source"},
         {"bench train --variant xl --corpus book.txt --steps 4000 --ckpt xl.safetensors",
          "on a text"},
         {"bench train --from SmolLM2 --corpus book.txt --ckpt tuned.safetensors",
          "on, from published weights"},
         {"bench train --ckpt xl.safetensors --resume", "continue, with the same options"}},
        .preset = {{"seq", "128"}, {"mem", "256"}, {"batch", "16"}, {"layers", "2"},
         {"d-model", "64"}, {"heads", "4"}}},
    [CMD_STUDY] = {
        .name = "study", "FILE|RUN", 1,
        "train variants with several seeds: better, worse, not shown",
        "FILE has lines of KEY = VALUE, # begins a comment; options are those of bench train and "
        "bench eval:\n\n"
        "  variants = LIST            names of bench list variants, base, all,\n"
        "                             family:NAME\n"
        "  variant = NAME[: OPTIONS]  one, with options:\n"
        "                             gated: --variant gtrxl --gate highway\n"
        "  baseline = NAME            what the others are compared with; stands\n"
        "                             after the variants [the first]; control: each\n"
        "                             with its own (bench list variants)\n"
        "  size = NAME: OPTIONS       small: --layers 2 --d-model 64 --heads 4;\n"
        "                             again for more\n"
        "  corpus = NAME: TEXTS       files to train, validate and test on, one\n"
        "                             file (its last twentieth does both), or a\n"
        "                             generated source; again for more\n"
        "  task = NAME: TASK          in place of texts, one of bench list tasks;\n"
        "                             again for more\n"
        "  rates = LIST               learning rates; the best by validation is\n"
        "                             the variant's; auto, or auto RATE, where it\n"
        "                             begins: halves and doubles the best until\n"
        "                             both neighbours are worse [3e-3]\n"
        "  rates-of = NAME: NAMES     variants that take the rate of the first\n"
        "  seeds = N                  of each variant at its rate [3]\n"
        "  baseline-seeds = N         of the baseline [6]\n"
        "  tune-seeds = N             that every rate is tried with [1]\n"
        "  steps = N, or tokens = N   of each training\n"
        "  budgets = RANGE            or several numbers of tokens, 0.25Mi..8Mi*2:\n"
        "                             one training with --schedule wsd, which\n"
        "                             ends at each of them\n"
        "  tune-tokens = N            of those that choose rates [as many]\n"
        "  effect = X                 least difference that counts [0.005 nats;\n"
        "                             of tasks any]\n"
        "  sd = X                     of seeds in earlier runs: says first which\n"
        "                             difference the study can show\n"
        "  train = OPTIONS            others of bench train:\n"
        "                             --seq 128 --mem 128 --lr-warmup 50\n"
        "  eval = OPTIONS             --seq, --mem, --bytes of the scores; the\n"
        "                             first of each is compared [as trained];\n"
        "                             of tasks --episodes\n"
        "  equal-parameters = yes|no  choose --d-inner so that all have the same\n"
        "                             number, within 1 %; what cannot has its\n"
        "                             usual one, and says so [no]\n"
        "  skeleton = post|llama|own  norms, feed-forward network and biases of all\n"
        "                             (bench help train: --skeleton) [own]\n\n"
        "Each training is a row of study.csv in the run's folder. The table shows the loss on the "
        "test text against that of the baseline, or of the control, in pairs of seeds, with its 95 % "
        "interval; p is corrected "
        "for the number of comparisons (Holm), and a difference counts below 0.05 with an interval "
        "beyond effect. Of tasks it shows "
        "the mean return, and how many seeds solve the task: nine tenths of the way from actions "
        "at random to the best policy. Time is "
        "training time per token; variants train in turns, seed by seed, and times are compared "
        "within a seed. With RUN, the folder of a study, its table so far is printed.",
        {{"bench study rates.study --dry-run", "its jobs, and about how long they take"},
         {"bench study rates.study --shard 1/2 --out shard1", "half of it; bench merge joins them"},
         {"bench study results/latest --format md", "the verdicts again, as Markdown"}}},
    [CMD_RECL] = {
        .name = "recl", "FOLDER", 1, "find the effective context length of each model of a group",
        "FOLDER has the losses that bench eval --losses wrote, of one or more checkpoints on the "
        "same text with the same lengths of --mem. The relative effective context length (Dai et "
        "al. 2019, section 4.3) is the length from which the next one lowers the perplexity by "
        "less than 1 %, relative to the best of the group at the shorter length; recl_0.1 counts "
        "only the tenth of the tokens that are hardest there.",
        {{"bench eval --ckpt xl.safetensors --seq 32 --mem 0..512+32 --losses losses",
          "losses of one model; the same for others"},
         {"bench recl losses", "a row each"},
         {"bench recl losses --format csv", "the same as a table for programs"}}},
    [CMD_GENERATE] = {
        .name = "generate", NULL, 0, "continue a text with a checkpoint",
        "Prints the prompt and what the model adds. --temperature 0 takes the likeliest token each "
        "time; above it tokens are drawn, the same ones for a seed. Models with caches or states "
        "read each token once, others run their window again. A text ends "
        "at --new-tokens, or where the model chooses a token that ends one. Each list takes one "
        "value. A checkpoint that has learnt a task plays the episode of number --seed, a line "
        "for each step: what it sees, what it does, what that pays.",
        {{"bench generate --ckpt xl.safetensors --prompt Once", "the likeliest continuation"},
         {"bench generate --ckpt SmolLM2-135M --prompt Once --temperature 1 --seed 7",
          "a drawn one, of a published model"},
         {"bench generate --ckpt xl.safetensors --prompt-file start.txt -q",
          "of a file, and nothing but the text"},
         {"bench generate --ckpt SmolLM2-135M --prompt Once --format json",
          "for programs: with the ids of tokens and why it ended"}}},
    [CMD_IMPORT] = {
        .name = "import", "DIR", 1, "convert a published model to a checkpoint",
        "DIR has config.json of a published model (docs/checkpoints.md lists them), "
        "model.safetensors or model.safetensors.index.json and its files, and its tokenizer; or it is a GGUF "
        "file. bench eval and sweeps read both as they are; this writes the same model in the format of "
        "bench train, in F32, to --ckpt, and its tokenizer to a folder beside it.\n\n"
        "Pickles (pytorch_model.bin and the like) can run code and are never read. Convert them with "
        "software that you trust, in Python:\n\n"
        "  sd = torch.load(F, map_location=\"cpu\", weights_only=True)\n"
        "  sd = {k: v.clone().contiguous() for k, v in sd.items()}\n"
        "  save_file(sd, \"model.safetensors\")",
        {{"bench import SmolLM2-135M --ckpt smollm.safetensors", "write it as a checkpoint"},
         {"bench eval --ckpt SmolLM2-135M --corpus book.txt", "score it without converting"},
         {"bench list models .", "models that can be read here, and why others cannot"}}},
    [CMD_RERUN] = {
        .name = "rerun", "CASE_ID [RUN]", 2, "measure one row again",
        "CASE_ID is a value of the column case_id, or its first digits. Without RUN, the newest "
        "run in --out that has the case is used.",
        {{"bench rerun 5f0c6e2d", "one row of the newest run that has it"},
         {"bench rerun 5f0c6e2d --max-time 20", "the same, measured longer"},
         {"bench rerun 5f0c6e2d results/latest", "the row of this run"}}},
    [CMD_EXPLAIN] = {
        .name = "explain", "CASE_ID [RUN]", 2, "how the time of one row came about",
        "CASE_ID is a value of the column case_id of latency.csv, or its first digits. Without RUN, "
        "the newest run in --out that has the case is used. FLOP, bytes, the distance to the nearer "
        "roof and the fastest backend of the case say why it is slow; reasons to doubt the row "
        "stand at the end: preempted, few, wide, launches, drift, clock.",
        {{"bench explain 5f0c6e2d", "launches, what decides the interval, FLOP, the nearer roof"},
         {"bench explain 5f0c6e2d results/latest", "the row of this run"},
         {"bench explain 5f0c6e2d --out runs", "the newest run below another folder"}}},
    [CMD_TOPO] = {
        .name = "topo", NULL, 0, "show where threads go, and why; --roofline: the peaks",
        "The tree of packages, NUMA nodes and caches is drawn by hwloc's lstopo; --format csv counts them.",
        {{"bench topo", "cores, allowed CPUs, and the pin plan"},
         {"bench topo --threads 1,2,4 --pin scatter", "where 1, 2 and 4 threads would run"},
         {"bench topo --roofline", "peak GFLOP/s and GB/s"}}},
    [CMD_DOCTOR] = {
        .name = "doctor", NULL, 0,
        "check whether this machine is fit to measure on, and what to fix",
        "Settings are read, never changed. The last finding is measured: a case against itself "
        "gives the smallest difference that a sweep can show here.",
        {{"bench doctor", "findings, each with the command that fixes it"},
         {"bench doctor --strict", "exit code 4 if there is a warning"},
         {"bench doctor --threads 2 --pin 0,2", "check this placement"}}},
    [CMD_COMPARE] = {
        .name = "compare", "[RUN [RUN]]", 2,
        "compare two runs, one --axis of a run, or two programs (--exec)",
        "A run is a folder or the name of a baseline. One run is compared with the run before it that has "
        "its cases. --exec measures, so it takes the options "
        "that choose and time cases. Runs are only read; --filter chooses their rows.",
        {{"bench compare results/old results/new", "two runs, case by case"},
         {"bench compare --axis backend --base avx2 results/latest", "inside one run"},
         {"bench compare --exec old=build/old/bench --exec new=./bench --variant xl",
          "two programs, measured in turns"}},
        .preset = {{"backend", "fast"}}},
    [CMD_GATE] = {
        .name = "gate", NULL, 0, "time two programs in turns; exit code 3 if the new one is slower",
        "The old program against itself (A/A) tells the noise, which may raise the threshold. "
        "Cases that look slower or faster are measured again. The defaults are those of "
        "@harness/sweeps/gate.args: some minutes.",
        {{"bench gate --exec old=build/old/bench --exec new=./bench",
          "is this program slower than that one?"},
         {"bench gate --exec old=OLD --exec new=NEW --summary summary.md", "with a report for CI"},
         {"bench gate --exec old=OLD --instructions --variant xl --backend avx2",
          "count instructions too"},
         {"bench gate --plain --exec old='tool a' --exec new='tool b'", "any two commands"}},
        .preset = {{"threshold", "5"}, {"backend", "fast"}, {"workload", "attn,layer"},
         {"seq", "64"}, {"mem", "64"}, {"d-model", "128"}, {"heads", "4"}, {"threads", "1"},
         {"min-samples", "15"}, {"block-ms", "5"}, {"warmup-ms", "20"}}},
    [CMD_BASELINE] = {
        .name = "baseline", "WHAT", 3, "save, list, show or remove (rm) runs kept for this machine",
        "WHAT is save NAME [RUN], list, show NAME or rm NAME.",
        {{"bench baseline save main", "keep the latest run"},
         {"bench baseline list", "baselines of this and other machines"},
         {"bench compare main results/latest", "compare with it"}},
        .choices = baseline_words},
    [CMD_MERGE] = {
        .name = "merge", "DIR...", INT_MAX, "join the shards of a sweep or study",
        "Joins a sweep or study that was split with --shard I/N, on one machine or several, into "
        "one run. Each row keeps its machine (host_id); bench compare forms no ratios across "
        "machines.",
        {{"bench --shard 1/2 --out shard1", "the first half of the groups"},
         {"bench --shard 2/2 --out shard2", "the second"},
         {"bench merge shard1/latest shard2/latest", "join them into one run"}}},
    [CMD_SLURM] = {
        .name = "slurm", "[STUDY]", 1,
        "print a Slurm job script: shards on nodes, then merge and report",
        "Takes the options of bench sweep or, with the file of a study, those of bench study, and "
        "checks them; nothing is submitted. Each task of the job array is one shard on its own "
        "node. All nodes must share the file system of the folders and files.",
        {{"bench slurm --variant all --seq 128..4096 --nodes 16 >job.sh", "then: sbatch job.sh"},
         {"bench slurm harness/studies/base.study --nodes 4 --shards 8", "eight shards, four at a time"},
         {"bench slurm @harness/sweeps/headline.args --nodes 2 --partial",
          "merge the finished shards even if a task failed"}},
        .preset = {{"backend", "fast"}}},
    [CMD_PLOT] = {
        .name = "plot", "[RUN...]", INT_MAX,
        "draw figures of runs (gnuplot); --term draws in the terminal",
        "Without RUN, draws the latest run. Files go to RUN/plots unless --out names a folder.",
        {{"bench plot", "every figure of the latest run"},
         {"bench plot results/latest --figure latency-seq --format png", "one figure, as PNG"},
         {"bench plot --term --filter backend:avx2", "some rows, in the terminal"}}},
    [CMD_HISTORY] = {
        .name = "history", "[RUN...]", INT_MAX,
        "draw the times of each case over several runs, by date "
        "and commit",
        "Without RUN, draws all runs in results/. The figure goes to the plots folder of the last "
        "RUN unless --out names a folder. A report of several runs has it too.\n\n"
        "From four runs of a case on one machine on, steps of its level are said on stderr: where, by "
        "how much, between which commits. A history without steps shows one in at most 5 % of all "
        "cases.",
        {{"bench history", "every case that at least two runs in results/ have"},
         {"bench history --format table", "the times themselves: a column a run, a row a case"},
         {"bench history results/old results/new --term", "two runs, in the terminal"},
         {"bench report results/old results/new -o history.html", "as a page that opens offline"}}},
    [CMD_REPORT] = {
        .name = "report", "[RUN...]", INT_MAX, "write runs as one page of HTML that opens offline",
        "Without RUN, reports on the latest run. The page is report.html in the folder of the (last) "
        "run unless --out names a file.",
        {{"bench report", "the latest run"},
         {"bench report results/old results/new -o both.html", "several runs"},
         {"bench report results/latest --figure latency-seq", "only some figures"}}},
    [CMD_EXPORT] = {
        .name = "export", "[RUN|DIR|FILE]", 1, "print a run in the format of another program; write a model",
        "Without RUN, prints the latest run. A run is a folder or the name of a baseline.\n\n"
        "--to hf and --to gguf write the model --ckpt, which was trained from the published model --from, as the "
        "files of that model, to DIR or FILE: its names, config and tokenizer, with other numbers. --to peft writes what "
        "train --lora has added to it.",
        {{"bench export --to openmetrics results/latest >bench.prom", "for Prometheus"},
         {"bench export --to junit >report.xml", "a test report; wrong rows are failures"},
         {"bench export --filter variant:xl", "one JSON document with environment and rows"},
         {"bench export --to hf out --ckpt tuned.safetensors --from SmolLM2", "a folder for transformers"}}},
    [CMD_HELP] = {
        .name = "help", "[COMMAND]", 1,
        "print the options and examples of a command; man: the manual page",
        "bench COMMAND --help prints the same page.",
        {{"bench help plot", "the page of plot"},
         {"bench help man >bench.1", "the manual page, in troff"},
         {"bench --version", "build, compiler, libraries"}}},
    [CMD_COMPLETION] = {
        .name = "completion", "SHELL", 1, "print the completion for bash, zsh or fish", "",
        {{"source <(bench completion bash)", "in ~/.bashrc"},
         {"bench completion zsh >~/.zfunc/_bench", "put it in a folder of $fpath"},
         {"bench completion fish >~/.config/fish/completions/bench.fish", "for fish"}},
        .choices = completion_words},
    [CMD_WORKER] = {.name = "worker", .words = "WORD", .n_words = INT_MAX},
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
    if (strcmp(name, WORKER_EARLIER) == 0)
        return CMD_WORKER;
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(command_specs[i].name, name) == 0)
            return i;
    return -1;
}
