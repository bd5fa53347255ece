#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# variants.sh PART...: cost and benefit of every variant. One small model of each registered variant,
# all with the same number of parameters, trained on the same tokens; then its cost per token.
# The parts:
#
#   books   trains and scores all of them on novels
#   copy    the same on a generated text that repeats at a known distance
#   speed   time for a token and bytes of state, in segments and token by token, over memory lengths
#   tables  variants/*.csv, figures and variants.md from the existing results
#   all     all of these
#
# No variant is left out: one that cannot be trained or timed gets a row with the reason. Finished runs
# are skipped and interrupted ones continued. Each run keeps its log and, in a .cmd file, its command.
# Prints one line per run.
#
# Settings: BENCH (./bench), VARIANTS_DIR (build/variants: models, logs, tables), TABLES_DIR
# (results/reference: variants.md and variants/), BENCH_SHARED (../shared: corpora/books.*), MODELS
# (those that `bench list variants` names), STEPS (1000), STEPS_COPY (700), EVAL_BYTES (262144; 0 =
# the whole text), SEEDS (3) trainings of those in SEEDED and one of the others, JOBS (one for each
# CPU) parallel trainings, each on a CPU of its own, BACKEND (the widest of the hand-written
# ones) and ROUNDS (6) of the timings, SWEEP (time per case).
set -eu
cd "$(dirname "$0")/.."
top=$PWD
. scripts/study_common.sh

bench=$(realpath "${BENCH:-./bench}")
work=${VARIANTS_DIR:-build/variants}
tables=$(realpath -m "${TABLES_DIR:-results/reference}")
texts=$(realpath -m "${BENCH_SHARED:-../shared}")/corpora
eval_bytes=${EVAL_BYTES:-262144} threads=(--threads 1)
partial=1 # tables of positions end at the trained segment length
seeded=" ${SEEDED:-vanilla xl} "
lag=96 # less than the memory, more than a window of 64
read -ra sweep <<<"${SWEEP:---max-time 0.5 --min-samples 5 --warmup-ms 50}"

# A task's text, sizes and schedule.
describe() { # TASK
    layers=2 width=64 heads=4 memory=128 rate=(--lr 3e-3 --lr-warmup 100)
    shape=(--layers "$layers" --d-model "$width" --heads "$heads")
    case $1 in
    books)
        steps=${STEPS:-1000}
        text=(--corpus text/books.train.txt --valid text/books.valid.txt) ;;
    copy)
        steps=${STEPS_COPY:-700}
        text=(--corpus "copy:lag=$lag,p=0.9,alphabet=16") ;;
    esac
}

# ---- models ----------------------------------------------------------------------------------

# The program's registry, and the widest hand-written backend that runs here.
ask_bench() {
    "$bench" list variants --format csv >list.csv
    read -ra models <<<"${MODELS:-$(tail -n +2 list.csv | cut -d, -f1 | tr '\n' ' ')}"
    backend=${BACKEND:-$("$bench" list backends --format csv |
        awk -F, '$2 == "yes" && /hand-written/ { found = $1 } END { print found }')}
    [ -n "$backend" ] || backend=ref
}

# Sizes for a task; TASK.sizes.csv gets the reason for unequal ones.
size_models() { # TASK
    local m
    [ "$1" != books ] || need_texts
    describe "$1"
    equalise "${models[@]}"
    echo "variant,reason" >"$1.sizes.csv"
    for m in "${!unequal[@]}"; do
        echo "$m,\"${unequal[$m]//\"/}\"" >>"$1.sizes.csv"
        echo "$1: ${unequal[$m]}"
    done
}

# ---- jobs ------------------------------------------------------------------------------------

cpus_allowed() { # one a line
    taskset -pc $$ | sed 's/.*: //' | tr , '\n' |
        awk -F- '{ for (i = $1; i <= (NF > 1 ? $2 : $1); i++) print i }'
}

# Runs COMMAND with each name, as many in parallel as there are CPUs in the pipe.
for_each() { # COMMAND NAME...
    local command=$1 name cpu pid pids=()
    shift
    rm -f cpus
    mkfifo cpus
    exec 8<>cpus
    cpus_allowed | head -n "${JOBS:-1000}" >&8
    for name in "$@"; do
        read -r cpu <&8
        (
            trap 'echo "$cpu" >&8' EXIT
            taskset -pc "$cpu" "$BASHPID" >cpus.said
            # shellcheck disable=SC2086 # its words
            "$command" $name
            exit "$failed"
        ) 9>&- &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        code=0
        wait "$pid" || code=$?
        [ "$code" -lt 128 ] || exit "$code"
        [ "$code" -eq 0 ] || failed=1
    done
    exec 8>&-
    rm -f cpus cpus.said
}

# A failed training leaves the end of its log, for the table.
train_and_score() { # TASK MODEL SEED
    local f="$1/$2.seed$3.safetensors"
    describe "$1"
    train "$@"
    rm -f "$f.why"
    [ -f "$f.run.csv" ] || { tail -n 1 "$f.log" | sed 's/^bench: //' >"$f.why"; }
    [ "$1" != books ] || text=(--corpus text/books.test.txt)
    score "$f" mem "${text[@]}" --seq 128 --mem "0,$memory,$((4 * memory))"
}

# The first seed of all comes first, so that an unfinished study covers every variant.
train_all() { # TASK
    local m seed names=()
    size_models "$1"
    for ((seed = 1; seed <= ${SEEDS:-3}; seed++)); do
        for m in "${models[@]}"; do
            if [ "$seed" -eq 1 ] || [[ $seeded == *" $m "* ]]; then names+=("$1 $m $seed"); fi
        done
    done
    for_each train_and_score "${names[@]}"
}

# ---- speed -----------------------------------------------------------------------------------

# The model trained on the books, in its own sweep because d_inner differs.
time_model() { # MODEL ROUND
    local f="speed/$1.round$2" took code
    local words=(sweep --variant "$1" --backend "$backend" --workload segment,decode --seq 128
        --mem "$memory,$((4 * memory)),$((16 * memory))" "${shape[@]}"
        ${d_inner[$1]:+--d-inner "${d_inner[$1]}"} --threads 1 --ckpt none "${sweep[@]}")
    if [ -f "$f.memory.csv" ] && [ "bench ${words[*]}" = "$(cat "$f.cmd")" ]; then
        echo "$f  already there"
        return
    fi
    mkdir -p speed
    rm -rf "$f".* speed/runs
    echo "bench ${words[*]}" >"$f.cmd"
    logged "$f.log" /dev/null "${words[@]}" --format csv --raw none --out speed/runs ||
        left_out "$f" "$f.log"
    [ -f speed/runs/latest/latency.csv ] || return 0
    cp speed/runs/latest/env.csv env.csv
    cp speed/runs/latest/latency.csv "$f.latency.csv"
    cp speed/runs/latest/memory.csv "$f.memory.csv"
    echo "$f  $took"
}

# Rounds over all variants, so that a slow period does not affect one variant alone.
part_speed() {
    local m round
    size_models books
    for ((round = 1; round <= ${ROUNDS:-6}; round++)); do
        for m in "${models[@]}"; do time_model "$m" "$round"; done
    done
}

collect_speed() {
    local what files
    for what in latency memory; do
        files=(speed/*."$what.csv")
        [ ${#files[@]} -gt 0 ] || die 77 "nothing is timed in $work  -> variants.sh speed"
        one_header "${files[@]}" >new.csv
        mv new.csv "$what.csv"
    done
}

# ---- main ------------------------------------------------------------------------------------

[ $# -gt 0 ] || die 2 "which part?  -> books, copy, speed, tables, or all of them: all"
[ "$*" != all ] || set -- books copy speed tables
for part in "$@"; do
    case $part in
    books | copy | speed | tables) ;;
    *) die 2 "unknown part '$part'  -> books, copy, speed, tables or all" ;;
    esac
done
open_work
ask_bench
for part in "$@"; do
    case $part in
    books | copy) train_all "$part" ;;
    speed) part_speed ;;
    tables)
        collect
        collect_speed
        "$top/scripts/variants_tables.sh" . "$tables" ;;
    esac
done
exit "$failed"
