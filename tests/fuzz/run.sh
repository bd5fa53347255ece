#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Run fuzz targets: tests/fuzz/run.sh BUILD SECONDS TARGET...
# The seconds are those of all targets together; as many run at once as there are cores. Inputs found so
# far stay in build/corpus/TARGET, those that fail in BUILD/TARGET-*. The last line counts; exit 1 if
# anything was found.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$1 seconds=$2
shift 2
bench=$PWD/$build/bench
corpus=build/corpus
log=$build/fuzz.log
passed=0 found=0
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1

# Seeds that the program makes itself: models of one step, a run's folder, tables. They are made
# anew when the program is newer. It has the sanitizers, too: where it fails, that is a find.
no_seed() { # NAME
    found=$((found + 1))
    tail -n 5 "$log"
    echo "fuzz seed $1: FOUND  -> $log"
}

seeds_of_model() {
    local v
    for v in vanilla shaw xl gtrxl rope alibi t5 linear performer compressive switch talking span \
        universal funnel delight sandwich window macaron llama; do
        [ "$corpus/model/$v" -nt "$bench" ] ||
            "$bench" train --variant $v --steps 1 --d-model 8 --heads 2 --d-inner 8 --layers 2 --seq 8 --mem 8 \
                --batch 1 --corpus copy:lag=3,alphabet=16 -q --threads 1 --force --ckpt "$corpus/model/$v" >>"$log" 2>&1 ||
            no_seed "model/$v"
        rm -f "$corpus/model/$v".*
    done
}

seeds_of_run() {
    local d=$build/seed-run f
    [ "$corpus/run/sweep" -nt "$bench" ] && return
    rm -rf "$d"
    if ! "$bench" --variant xl,rope --backend ref,avx2 --workload attn --seq 4,8 --mem 0 --d-model 16 --heads 2 --ckpt none \
        --max-time 0.001 --min-samples 3 --warmup-ms 0 --block-ms 0.1 --raw csv -q --threads 1 --out "$d" >>"$log" 2>&1; then
        no_seed run/sweep
        return
    fi
    for f in "$d"/latest/{latency,memory,perplexity,env,samples}.csv "$d"/latest/run.json; do
        echo "== ${f##*/}"
        head -c 6000 "$f"
    done >"$corpus/run/sweep"
}

# The first byte of an input chooses the table: latency, memory, perplexity, env, samples, train.
seeds_of_tables() {
    local d=$build/seed-run/latest i=0 f
    for f in latency memory perplexity env samples; do
        { printf "\\x0$i" && head -n 3 "$d/$f.csv"; } >"$corpus/tables/$f" 2>>"$log"
        i=$((i + 1))
    done
}

seeds_of_gguf() {
    local d
    for d in tests/golden-import/gguf_*; do
        cp "$d/model.gguf" "$corpus/gguf/${d##*/}"
    done
}

# One target; 1 if something was found.
fuzz() { # TARGET SECONDS
    local t=$1 seeds=() code runs
    [ -d "tests/fuzz/seeds/$t" ] && seeds+=("tests/fuzz/seeds/$t")
    case $t in golden | safetensors) seeds+=(tests/golden) ;; esac
    "$build/fuzz_$t" -max_total_time="$2" -timeout=60 -rss_limit_mb=3000 -max_len=200000 \
        -print_final_stats=1 -artifact_prefix="$build/$t-" "$corpus/$t" "${seeds[@]}" >"$build/fuzz_$t.log" 2>&1
    code=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/fuzz_$t.log")
    if [ $code -eq 0 ]; then
        echo "fuzz $t: ${runs:-0} runs, nothing found"
    else
        tail -n 30 "$build/fuzz_$t.log"
        echo "fuzz $t: FOUND after ${runs:-some} runs  -> $build/fuzz_$t INPUT repeats it"
        return 1
    fi
}

for t in "$@"; do
    mkdir -p "$corpus/$t"
done
: >"$log"
case " $* " in *" model "*) seeds_of_model ;; esac
case " $* " in *" gguf "*) seeds_of_gguf ;; esac
case " $* " in *" run "* | *" tables "*) seeds_of_run ;; esac
case " $* " in *" tables "*) seeds_of_tables ;; esac

each=$((seconds / $#))
running=()
finish() {
    local pid
    for pid in "${running[@]}"; do
        if wait "$pid"; then passed=$((passed + 1)); else found=$((found + 1)); fi
    done
    running=()
}
for t in "$@"; do
    fuzz "$t" "$((each > 0 ? each : 1))" &
    running+=($!)
    [ ${#running[@]} -lt "$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)" ] || finish
done
finish
echo "$passed passed, $found failed, 0 skipped"
[ $found -eq 0 ]
