# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# study_common.sh: functions of study.sh and variants.sh, to be sourced: texts, models of equal size,
# trainings and scores that are skipped when finished and continued when interrupted. It runs nothing
# by itself. The script that sources it sets bench, work, texts, eval_bytes, threads (options
# of trainings and scores), and by its own describe() of a task layers, width, heads, memory, steps,
# text, rate and shape.

program=${0##*/}
failed=0  # a run failed
partial=0 # 1: a score counts only with all memory lengths
declare -A d_inner unequal

die() { # CODE WORD...
    echo "$program: ${*:2}" >&2
    exit "$1"
}

# The folder of models, logs and scores becomes the current one, for this process alone.
open_work() {
    mkdir -p "$work"
    work=$(realpath --relative-base="$PWD" "$work")
    cd "$work"
    exec 9>lock
    flock -n 9 || die 1 "another $program runs in $work  -> wait for it, or another folder"
    shopt -s nullglob
    version=$("$bench" --version | head -n 1)
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
    "$bench" train "${model[@]}" "${shape[@]}" --d-inner "$2" --corpus "$sample" --seq 128 \
        --mem "$memory" --batch 1 --steps 1 --ckpt probe/m.safetensors --force --quiet \
        >probe/said 2>&1 || return
    parameters probe/m.safetensors
}

# The width nearest to `target` parameters, a multiple of 8 if that is within 1 %.
choose_width() { # MODEL: needs low, high, target of equalise
    local at off step d
    at=$(((high[$1] - low[$1]) / (2 * width))) # parameters of one unit
    if [ "$at" -le 0 ]; then
        unequal[$1]="$1 has ${low[$1]} parameters for any d_inner, the others $target"
        return
    fi
    for step in 8 4 2 1; do
        d=$((2 * width + ((target - low[$1]) / at + step / 2) / step * step))
        off=$((low[$1] + (d - 2 * width) * at - target))
        d_inner[$1]=$d
        [ $((${off#-} * 100)) -gt "$target" ] || return 0
    done
    unequal[$1]="$1 cannot have $target parameters within 1 %"
}

# The largest model at a feed-forward layer of twice the width sets the number of parameters; the
# others' feed-forward layers grow until they have as many. Parameters are a line in d_inner.
equalise() { # MODEL...: sets d_inner, and unequal to the reason if that fails
    local m target=0
    local -A low high
    d_inner=()
    unequal=()
    mkdir -p probe
    local sample=${text[1]} # of the same alphabet; a file's first bytes suffice
    if [ -f "$sample" ]; then
        head -c 8192 "$sample" >probe/text
        sample=probe/text
    fi
    for m in "$@"; do
        if ! low[$m]=$(probe "$m" $((2 * width))) || ! high[$m]=$(probe "$m" $((4 * width))); then
            unequal[$m]="$m: $(tail -n 1 probe/said)"
            continue
        fi
        [ "${low[$m]}" -le "$target" ] || target=${low[$m]}
    done
    for m in "$@"; do
        [ -n "${unequal[$m]:-}" ] || choose_width "$m"
    done
}

# ---- runs ------------------------------------------------------------------------------------

# Run bench: sets `code` and `took`, false if it failed. An interrupt ends the study.
logged() { # LOG OUTPUT WORD...
    local start=$SECONDS log=$1 output=$2
    code=0
    shift 2
    "$bench" "$@" >"$output" 2>>"$log" || code=$?
    took="$(((SECONDS - start) / 60))m$(printf %02d $(((SECONDS - start) % 60)))s"
    [ "$code" -lt 128 ] || exit "$code"
    [ "$code" -eq 0 ]
}

# A failed run is reported with its log; the others continue. What a model is not made for (exit code 6)
# is no failure.
left_out() { # NAME LOG
    if [ "$code" -eq 6 ]; then
        echo "$1  not possible: $(tail -n 1 "$2")"
        return
    fi
    echo "$1  failed (exit code $code) after $took  -> $work/$2"
    failed=1
}

# One row for runs.csv. The last line of the curve has the tokens, backend and threads.
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

train() { # TASK MODEL SEED [FROM]: a new training continues the checkpoint FROM
    local f="$1/${2/:/-}.seed$3.safetensors" took='already there' resume=() code end
    of_model "$2"
    local words=(train "${model[@]}" "${shape[@]}" ${d_inner[$2]:+--d-inner "${d_inner[$2]}"}
        "${text[@]}" --seq 128 --mem "$memory" --batch 16 --steps "$steps" "${rate[@]}"
        "${threads[@]}" --seed "$3" --ckpt "$f")
    mkdir -p "$1"
    if [ -f "$f" ]; then
        [ "bench ${words[*]}" = "$(cat "$f.cmd")" ] ||
            die 1 "$work/$f: its $f.cmd is another command  -> remove it, or another folder"
        resume=(--resume)
    elif [ $# -gt 3 ]; then
        for end in .best .opt .train.csv ''; do cp "$4$end" "$f$end"; done # the mark of a started training comes last
        resume=(--resume)
    fi
    echo "bench ${words[*]}" >"$f.cmd"
    # An F.opt.new is from a last save that was cut short.
    if [ ! -f "$f" ] || [ "$(meta "$f" step)" -lt "$steps" ] || [ -f "$f.opt.new" ]; then
        rm -f "$f.run.csv"
        logged "$f.log" /dev/null "${words[@]}" "${resume[@]}" ||
            { left_out "$f" "$f.log" && return 0; }
    fi
    [ -f "$f.run.csv" ] ||
        { run_row "$1" "$2" "$3" "$f" >"$f.new" && mv "$f.new" "$f.run.csv"; }
    printf '%-36s %8d parameters  d_inner %4d  %5d steps  %s\n' "$f" "$(parameters "$f")" \
        "$(meta "$f" d_inner)" "$(meta "$f" step)" "$took"
}

# Rows of a checkpoint into F.NAME.csv. Exit code 1 is a table in which some rows failed.
score() { # F NAME OPTION...
    local f=$1 name=$2 out="$1.$2.csv" took code
    shift 2
    local words=(eval --ckpt "$f" --bytes "$eval_bytes" "$@" "${threads[@]}")
    [ -f "$f.run.csv" ] || return 0 # its training failed
    if [ "$out" -nt "$f" ] && [ "bench ${words[*]}" = "$(cat "$out.cmd")" ]; then
        echo "$out  already there"
        return
    fi
    rm -f "$out"
    echo "bench ${words[*]}" >"$out.cmd"
    logged "$f.log" "$f.new" "${words[@]}" --format csv --raw none --out runs ||
        [ "$partial$code" = 11 ] || { left_out "$out" "$f.log" && return 0; }
    mv "$f.new" "$out"
    echo "$out  $took"
}

# ---- tables ----------------------------------------------------------------------------------

one_header() {
    awk -v program="$program" 'NR == 1 { head = $0; print }
        FNR > 1 { print }
        FNR == 1 && $0 != head {
            print program ": " FILENAME ": other columns  -> remove it, run its part" >"/dev/stderr"
            exit 1
        }' "$@"
}

# All rows of runs and of scores, each in one table. Only existing checkpoints count.
collect() {
    local runs=(*/*.run.csv) scores=(*/*.safetensors.{mem,seq,window,whole}.csv)
    if [ ${#runs[@]} -eq 0 ] || [ ${#scores[@]} -eq 0 ]; then
        die 77 "nothing is trained and scored in $work  -> run the earlier parts first"
    fi
    one_header "${runs[@]}" >new.csv
    mv new.csv runs.csv
    one_header "${scores[@]}" >new.csv
    mv new.csv perplexity.csv
}

# Functions of awk for lines of CSV with quotes.
# shellcheck disable=SC2034,SC2016
csv_awk='
function fields(line, f,   n, i, c, quoted) {
    split("", f)
    n = 1
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        if (c == "\"") quoted = !quoted
        else if (c == "," && !quoted) n++
        else f[n] = f[n] c
    }
    return n
}
function header(line, at,   f, i, n) {
    n = fields(line, f)
    for (i = 1; i <= n; i++) at[f[i]] = i
}'

# The columns of a run together with its scores, one row per score.
join_scores() {
    awk "$csv_awk"'
    BEGIN {
        keys = split("task variant gate seed layers d_model d_inner params steps tokens train_s", key, " ")
        vals = split("seq_tokens mem_tokens mem_kind tokens_scored bits_per_unit ppl ppl_floor", val, " ")
        for (i = 1; i <= keys; i++) line = line key[i] ","
        for (i = 1; i <= vals; i++) line = line val[i] (i < vals ? "," : "")
        print line
    }
    FNR == 1 { split("", at); header($0, at); next }
    FILENAME == "runs.csv" {
        fields($0, f)
        line = ""
        for (i = 1; i <= keys; i++) line = line f[at[key[i]]] ","
        run[f[at["checkpoint"]]] = line
        next
    }
    {
        fields($0, f)
        line = run[f[at["checkpoint"]]]
        if (line == "" || f[at["status"]] != "ok") next
        for (i = 1; i <= vals; i++) line = line f[at[val[i]]] (i < vals ? "," : "")
        print line
    }' runs.csv perplexity.csv
}
