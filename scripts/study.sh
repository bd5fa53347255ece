#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# study.sh PART...: the reference study. Trains models of the same size on the same text in the same
# way and scores them; hours of work. The parts:
#
#   books   every variant on novels, then `gates`
#   gates   every residual gate, in smaller models, on the same novels
#   eval    scores of all of these over memory and segment lengths
#   copy    every variant on generated texts that repeat at a known distance, with scores
#   long    one larger model for longer, and then for a third of that again, with scores
#   tables  tables, figures and README.md from the existing results
#   all     books, eval, copy, long, tables
#
# Finished runs are skipped and interrupted ones continued: to continue a study, start it again. Each
# run keeps its log and, in a .cmd file, its command; a training made by a different command is an
# error. Prints one line per run.
#
# Settings: BENCH (./bench), STUDY_DIR (build/study: models, logs, scores), TABLES_DIR
# (results/reference/study), BENCH_SHARED (../shared: corpora/books.*), STEPS (2500), STEPS_GATES
# (1000), STEPS_COPY (1200), STEPS_LONG (12000), EVAL_BYTES (262144; 0 = the whole test text), MODELS
# and GATES (what is compared), SEEDS (3) runs of those in SEEDED and one of the others, LAGS (32 128
# 512).
set -eu
cd "$(dirname "$0")/.."
top=$PWD
. scripts/study_common.sh

bench=$(realpath "${BENCH:-./bench}")
work=${STUDY_DIR:-build/study}
tables=$(realpath -m "${TABLES_DIR:-results/reference/study}")
texts=$(realpath -m "${BENCH_SHARED:-../shared}")/corpora
eval_bytes=${EVAL_BYTES:-262144} threads=()
read -ra models <<<"${MODELS:-vanilla shaw xl gtrxl}"
read -ra gates <<<"${GATES:-gru input output highway sigtanh residual}"
read -ra lags <<<"${LAGS:-32 128 512}"
seeded=" ${SEEDED:-vanilla xl} "
gated=gtrxl large=xl # the variant with a choice of gates, the variant of `long`
long=${STEPS_LONG:-12000}

# ---- tasks ----------------------------------------------------------------------------------

# A task's text, sizes and schedule. The wider the models of a task, the lower its learning rate.
describe() { # TASK
    layers=4 width=128 heads=4 memory=128 steps=${STEPS:-2500}
    text=(--corpus text/books.train.txt --valid text/books.valid.txt)
    rate=(--lr 2e-3 --lr-warmup 100)
    case $1 in
    gates)
        layers=2 width=64 steps=${STEPS_GATES:-1000}
        rate=(--lr 3e-3 --lr-warmup 100) ;;
    copy*)
        layers=2 width=64 memory=${1#copy} steps=${STEPS_COPY:-1200}
        rate=(--lr 3e-3 --lr-warmup 100)
        text=(--corpus "copy:lag=$memory,p=0.9,alphabet=16") ;;
    long)
        width=192 heads=6 steps=$long
        rate=(--lr 1.5e-3 --lr-warmup 200) ;;
    longer) # continues `long`
        width=192 heads=6 steps=$((long + long / 3))
        rate=(--lr 1e-3 --lr-warmup 100) ;;
    esac
    shape=(--layers "$layers" --d-model "$width" --heads "$heads")
}

# Sizes as equalise() sets them; this study compares only these.
must_equalise() { # MODEL...
    local m
    equalise "$@"
    for m in "${!unequal[@]}"; do die 1 "${unequal[$m]}  -> other sizes in describe()"; done
}

score_books() { # F
    score "$1" mem --corpus text/books.test.txt --seq 128 --mem 0,64,128,256,512,1024
    # 128 tokens before 256 are in the rows above.
    score "$1" seq --corpus text/books.test.txt --seq 32,64,256 --mem 256
    # At most one training segment in all: a window cannot use more.
    score "$1" window --corpus text/books.test.txt --seq 32 --mem 96
}

# ---- parts -----------------------------------------------------------------------------------

# The first seed of all comes first, so that an unfinished study covers every model.
part_books() {
    local m seed
    need_texts
    describe books
    must_equalise "${models[@]}"
    for ((seed = 1; seed <= ${SEEDS:-3}; seed++)); do
        for m in "${models[@]}"; do
            if [ "$seed" -eq 1 ] || [[ $seeded == *" $m "* ]]; then train books "$m" "$seed"; fi
        done
    done
    part_gates
}

part_gates() {
    local m
    need_texts
    describe gates
    must_equalise "${gates[@]/#/$gated:}"
    for m in "${gates[@]/#/$gated:}"; do train gates "$m" 1; done
}

part_eval() {
    local f
    need_texts
    for f in books/*.safetensors gates/*.safetensors; do
        [ ! -f "$f" ] || score_books "$f"
    done
    collect
}

part_copy() {
    local lag m f
    describe "copy${lags[0]}"
    must_equalise "${models[@]}"
    for lag in "${lags[@]}"; do
        describe "copy$lag"
        for m in "${models[@]}"; do train "copy$lag" "$m" 1; done
        for m in "${models[@]}"; do
            f=copy$lag/$m.seed1.safetensors
            score "$f" mem "${text[@]}" --seq 128 --mem "0,$((lag / 2)),$lag,$((2 * lag))"
        done
    done
    collect
}

part_long() {
    local f=$large.seed1.safetensors
    need_texts
    d_inner=()
    describe long
    train long "$large" 1
    describe longer
    train longer "$large" 1 "long/$f"
    f=longer/$f
    score_books "$f"
    local eval_bytes=0
    score "$f" whole --corpus text/books.test.txt --seq 128 --mem 512
    collect
}

# ---- main ------------------------------------------------------------------------------------

[ $# -gt 0 ] || die 2 "which part?  -> books, gates, eval, copy, long, tables, or all of them: all"
[ "$*" != all ] || set -- books eval copy long tables
for part in "$@"; do
    case $part in
    books | gates | eval | copy | long | tables) ;;
    *) die 2 "unknown part '$part'  -> books, gates, eval, copy, long, tables or all" ;;
    esac
done
open_work
for part in "$@"; do
    case $part in
    books) part_books ;;
    gates) part_gates ;;
    eval) part_eval ;;
    copy) part_copy ;;
    long) part_long ;;
    tables)
        collect
        "$top/scripts/study_tables.sh" "$bench" . "$tables" ;;
    esac
done
exit "$failed"
