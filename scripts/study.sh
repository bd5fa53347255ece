#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# study.sh PART...: the reference study. Trains models of the same size on the same text in the same
# way and scores them; hours of work. The parts:
#
#   books   every variant on novels, then `gates`
#   gates   every residual gate, in smaller models, on the same novels
#   eval    scores of all of these over memory and segment lengths
#   copy    every variant on generated texts that repeat at a known distance, with scores
#   long    one larger model for longer, with scores
#   tables  books.csv, gates.csv, copy.csv and README.md from what is there
#   all     books, eval, copy, long, tables
#
# What is done is skipped and what was begun goes on, so that an interrupted study is just started
# again. Each run keeps its log and, in a .cmd file, the command that made it; a training that was
# made by another command than today's is an error and not taken for it. One line a run.
#
# Settings: BENCH (./bench), STUDY_DIR (build/study: models, logs, scores), TABLES_DIR
# (results/reference/study), BENCH_SHARED (../shared: corpora/books.*), STEPS (4500), STEPS_COPY
# (3000), STEPS_LONG (15000), EVAL_BYTES (0 = the whole test text), MODELS and GATES (what is
# compared), SEEDS (3) runs of those in SEEDED and one of the others, LAGS (32 128 512).
set -eu
cd "$(dirname "$0")/.."
top=$PWD

bench=$(realpath "${BENCH:-./bench}")
work=${STUDY_DIR:-build/study}
tables=$(realpath -m "${TABLES_DIR:-results/reference/study}")
texts=$(realpath -m "${BENCH_SHARED:-../shared}")/corpora
eval_bytes=${EVAL_BYTES:-0}
read -ra models <<<"${MODELS:-vanilla shaw xl gtrxl}"
read -ra gates <<<"${GATES:-gru input output highway sigtanh residual}"
read -ra lags <<<"${LAGS:-32 128 512}"
seeded=" ${SEEDED:-vanilla xl} "
gated=gtrxl large=xl # the variant with a choice of gates, the variant of `long`
failed=0
declare -A d_inner

die() { # CODE WORD...
    echo "study.sh: ${*:2}" >&2
    exit "$1"
}

# ---- texts -----------------------------------------------------------------------------------

need_texts() {
    local part from
    mkdir -p text
    for part in train valid test; do
        [ ! -f "text/books.$part.txt" ] || continue
        from=$texts/books.$part.txt
        [ "$part" != train ] || from+=.xz
        [ -f "$from" ] || die 77 "no $from  -> BENCH_SHARED=DIR, a folder that has corpora/"
        case $from in
        *.xz) xz -dc "$from" ;;
        *) cat "$from" ;;
        esac >text/new
        mv text/new "text/books.$part.txt"
    done
}

# ---- models ----------------------------------------------------------------------------------

# A task's text, sizes and schedule. Only `long` has a learning rate of its own.
describe() { # TASK
    layers=4 width=128 heads=4 memory=128 steps=${STEPS:-4500}
    text=(--corpus text/books.train.txt --valid text/books.valid.txt)
    rate=(--lr 1e-3 --lr-warmup 100)
    case $1 in
    gates) layers=2 width=64 ;;
    copy*)
        layers=2 width=64 memory=${1#copy} steps=${STEPS_COPY:-3000}
        text=(--corpus "copy:lag=$memory,p=0.9,alphabet=16") ;;
    long)
        width=256 heads=8 steps=${STEPS_LONG:-15000}
        rate=(--lr 8e-4 --lr-warmup 400) ;;
    esac
    shape=(--layers "$layers" --d-model "$width" --heads "$heads")
}

of_model() { # VARIANT or VARIANT:GATE -> its options in `model`
    model=(--variant "${1%%:*}")
    [[ $1 != *:* ]] || model+=(--gate "${1#*:}")
}

# A checkpoint is the length of its header (8 bytes), the header, and 4 bytes for each parameter.
header_bytes() { od -An -tu8 -N8 "$1" | tr -d ' '; }
parameters() { echo $((($(stat -c %s "$1") - 8 - $(header_bytes "$1")) / 4)); }
meta() { # FILE KEY
    tail -c +9 "$1" | head -c "$(header_bytes "$1")" | grep -oE "\"$2\":\"[^\"]*\"" | cut -d'"' -f4
}

probe() { # MODEL D_INNER: parameters of such a model
    of_model "$1"
    "$bench" train "${model[@]}" "${shape[@]}" --d-inner "$2" --corpus "$sample" --seq 128 --mem 0 \
        --batch 1 --steps 1 --ckpt probe/m.safetensors --force --quiet >&2 || return
    parameters probe/m.safetensors
}

# The largest model at a feed-forward layer of twice the width says how many parameters all get; the
# others' feed-forward layers grow until they have as many. Parameters are a line in d_inner.
equalise() { # MODEL...: sets d_inner
    local m at target=0 off
    declare -A low high
    mkdir -p probe
    local sample=${text[1]} # of the same alphabet; a file's first bytes will do
    if [ -f "$sample" ]; then
        head -c 8192 "$sample" >probe/text
        sample=probe/text
    fi
    for m in "$@"; do
        low[$m]=$(probe "$m" $((2 * width)))
        high[$m]=$(probe "$m" $((4 * width)))
        [ "${low[$m]}" -le "$target" ] || target=${low[$m]}
    done
    for m in "$@"; do
        at=$(((high[$m] - low[$m]) / (2 * width))) # parameters of one unit
        d_inner[$m]=$((2 * width + ((target - low[$m]) / at + 4) / 8 * 8))
        off=$((low[$m] + (d_inner[$m] - 2 * width) * at - target))
        [ $((${off#-} * 100)) -le "$target" ] ||
            die 1 "$m cannot have $target parameters within 1 %  -> other sizes in describe()"
    done
}

# ---- runs ------------------------------------------------------------------------------------

# Run bench, show one line. A run that fails is left to its log; an interrupt ends the study.
logged() { # NAME LOG OUTPUT WORD...
    local start=$SECONDS code=0 name=$1 log=$2 output=$3
    shift 3
    "$bench" "$@" >"$output" 2>>"$log" || code=$?
    took="$(((SECONDS - start) / 60))m$(printf %02d $(((SECONDS - start) % 60)))s"
    [ "$code" -lt 128 ] || exit "$code"
    [ "$code" -ne 0 ] || return 0
    echo "$name  failed (exit code $code) after $took  -> $work/$log"
    failed=1
    return 1
}

# One row for runs.csv. The last line of the curve knows the tokens, backend and threads.
run_row() { # TASK MODEL SEED F
    local curve backend f=$4
    curve=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        END { print $at["tokens"] "," $at["backend"] "," $at["threads"] }' "$f.train.csv")
    backend=${curve#*,}
    echo "task,variant,gate,seed,layers,d_model,d_inner,params,steps,tokens,train_s,\
backend,threads,version,checkpoint,command"
    echo "$1,$(meta "$f" variant),$(meta "$f" gate),$3,$layers,$width,$(meta "$f" d_inner),\
$(parameters "$f"),$(meta "$f" step),${curve%%,*},$(meta "$f.opt" trained_s),$backend,\
\"$version\",$f,\"$(cat "$f.cmd")\""
}

train() { # TASK MODEL SEED
    local f="$1/${2/:/-}.seed$3.safetensors" took='already there' resume=()
    of_model "$2"
    local words=(train "${model[@]}" "${shape[@]}" ${d_inner[$2]:+--d-inner "${d_inner[$2]}"}
        "${text[@]}" --seq 128 --mem "$memory" --batch 16 --steps "$steps" "${rate[@]}"
        --seed "$3" --ckpt "$f")
    mkdir -p "$1"
    if [ -f "$f" ]; then
        [ "bench ${words[*]}" = "$(cat "$f.cmd")" ] ||
            die 1 "$work/$f: its $f.cmd is another command  -> remove it, or STUDY_DIR=DIR"
        resume=(--resume)
    fi
    echo "bench ${words[*]}" >"$f.cmd"
    if [ ! -f "$f" ] || [ "$(meta "$f" step)" -lt "$steps" ]; then
        rm -f "$f.run.csv"
        logged "$f" "$f.log" /dev/null "${words[@]}" "${resume[@]}" || return 0
    fi
    [ -f "$f.run.csv" ] || { run_row "$1" "$2" "$3" "$f" >new.csv && mv new.csv "$f.run.csv"; }
    printf '%-36s %8d parameters  d_inner %4d  %5d steps  %s\n' "$f" "$(parameters "$f")" \
        "$(meta "$f" d_inner)" "$(meta "$f" step)" "$took"
}

# Rows of a checkpoint into F.NAME.csv.
score() { # F NAME OPTION...
    local f=$1 name=$2 out="$1.$2.csv" took
    shift 2
    local words=(eval --ckpt "$f" --bytes "$eval_bytes" "$@")
    [ -f "$f.run.csv" ] || return 0 # its training failed
    if [ "$out" -nt "$f" ] && [ "bench ${words[*]}" = "$(cat "$out.cmd")" ]; then
        echo "$out  already there"
        return
    fi
    rm -f "$out"
    echo "bench ${words[*]}" >"$out.cmd"
    logged "$out" "$f.log" new.csv "${words[@]}" --format csv --raw none --out runs || return 0
    mv new.csv "$out"
    echo "$out  $took"
}

score_books() { # F
    score "$1" mem --corpus text/books.test.txt --seq 128 --mem 0,64,128,256,512,1024
    # 128 tokens in front of 256 are in the rows above.
    score "$1" seq --corpus text/books.test.txt --seq 32,64,256 --mem 256
}

one_header() {
    awk 'NR == 1 { head = $0; print }
        FNR > 1 { print }
        FNR == 1 && $0 != head {
            print "study.sh: " FILENAME ": other columns  -> remove it, run its part" >"/dev/stderr"
            exit 1
        }' "$@"
}

# All rows of runs and of scores, each in one table. Only checkpoints that are there count.
collect() {
    local runs=(*/*.run.csv) scores=(*/*.safetensors.mem.csv */*.safetensors.seq.csv)
    if [ ${#runs[@]} -eq 0 ] || [ ${#scores[@]} -eq 0 ]; then
        die 77 "nothing is trained and scored in $work  -> study.sh all"
    fi
    one_header "${runs[@]}" >new.csv
    mv new.csv runs.csv
    one_header "${scores[@]}" >new.csv
    mv new.csv perplexity.csv
}

# ---- parts -----------------------------------------------------------------------------------

# The first seed of all comes first: an unfinished study has something to say of each.
part_books() {
    local m seed
    need_texts
    describe books
    equalise "${models[@]}"
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
    equalise "${gates[@]/#/$gated:}"
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
    equalise "${models[@]}"
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
    need_texts
    describe long
    d_inner=()
    train long "$large" 1
    score_books "long/$large.seed1.safetensors"
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
mkdir -p "$work"
work=$(realpath --relative-base="$PWD" "$work")
cd "$work"
exec 9>lock
flock -n 9 || die 1 "another study runs in $work  -> wait for it, or STUDY_DIR=DIR"
shopt -s nullglob
version=$("$bench" --version | head -n 1)
for part in "$@"; do
    case $part in
    books) part_books ;;
    gates) part_gates ;;
    eval) part_eval ;;
    copy) part_copy ;;
    long) part_long ;;
    tables)
        collect
        "$top/scripts/study_tables.sh" . "$tables" ;;
    esac
done
exit "$failed"
