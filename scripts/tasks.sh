#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tasks.sh [BENCH]: ten tasks of a new user, one command each, as Markdown: the command, and what it
# prints on a terminal of 100 columns. docs/tasks.md is its output on one machine.
#   --tiny [BENCH]  the same commands with sizes that take milliseconds, for tests
#   --list          the questions and the commands alone
# OLD is the program that task 3 compares with (default: BENCH itself).
set -eu
export LC_ALL=C
repo=$(cd "$(dirname "$0")/.." && pwd)
tiny=
list=
case ${1-} in
--tiny) tiny=1 && shift ;;
--list) list=1 ;;
esac

# What is asked, the command, and what --tiny adds to it: the last value of an option counts.
quick='--max-time 0.003 --min-samples 3 --warmup-ms 0 --ckpt none'
small="--d-model 16 --heads 2 --d-head 8 --backend ref $quick"
tasks=(
    'Which variant for 128 new tokens after 2048 of context?'
    './bench --variant base,rope,gqa,window --seq 128 --mem 2048 --quick --ckpt none'
    "$small"
    'Which backend is fastest here?'
    './bench --variant xl --mem 512 --quick'
    "$small --seq 16,32"
    'Is my change slower than the program before it?'
    './bench gate --exec old=build/old/bench --exec new=./bench --variant xl --seq 128 --mem 512'
    "--d-model 16 --heads 2 --backend ref --min-samples 3 --warmup-ms 0 --threshold 900"
    'How fast is it on 4 threads?'
    './bench --variant xl --mem 512 --threads 4 --pin none --quick --ckpt none'
    "$small --seq 16"
    'How fast is a model of my sizes, for a prompt and for each token after it?'
    './bench --variant llama --workload segment,decode --layers 2 --d-model 768 --heads 12 --seq 512 --mem 0,512 --quick --ckpt none'
    "--layers 1 $small"
    'A sweep was interrupted. How does it go on?'
    './bench --resume'
    ''
    'What do I paste into an issue?'
    './bench --variant xl --mem 512 --quick --ckpt none --format md'
    "$small --seq 16,32"
    'What does it look like?'
    './bench plot --figure latency-seq --term'
    ''
    'What do I send to a colleague?'
    './bench report results/latest -o report.html'
    ''
    'How good is this checkpoint, with more and with less context?'
    './bench eval --ckpt results/models/xl.safetensors --mem 0,128,256 --bytes 16Ki'
    '--seq 16 --bytes 256'
)

if [ "$list" ]; then
    for ((i = 0; i < ${#tasks[@]}; i += 3)); do printf '# %s\n%s\n' "${tasks[i]}" "${tasks[i + 1]}"; done
    exit
fi

bench=$(realpath "${1:-$repo/bench}")
folder=$(mktemp -d "${TMPDIR:-/tmp}/bench_tasks_XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir -p results build/old
ln -s "$bench" bench
ln -s "$(realpath "${OLD:-$bench}")" build/old/bench
ln -s "$repo/results/models" results/models

# A terminal, but neither colours nor a line that is rewritten.
on_terminal() {
    env TERM=dumb BENCH_PROGRESS=none script -qec "stty cols 100; $1" /dev/null </dev/null >typed 2>&1 || code=$?
    tr -d '\r' <typed
}

# The sweep that task 6 continues ends after its first groups.
interrupt_one() {
    local words='--variant xl,rope --backend avx2 --quick --ckpt none'
    [ -z "$tiny" ] || words="--variant xl,rope --seq 4..64 --mem 0 $small --max-time 0.1 --target-ci 0"
    # shellcheck disable=SC2086 # words
    timeout -s INT "$([ "$tiny" ] && echo 0.6 || echo 12)" ./bench $words >/dev/null 2>&1 || true
}

cat <<END
# Ten tasks

A new user's questions, and the command that answers each. Recorded by \`scripts/tasks.sh\` on
$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs, $(date -u +%Y-%m-%d).
Times with \`~\` are those of a busy machine.
END
for ((i = 0; i < ${#tasks[@]}; i += 3)); do
    command=${tasks[i + 1]} code=0
    [ "$command" != './bench --resume' ] || interrupt_one
    [ -z "$tiny" ] || command="$command ${tasks[i + 2]}"
    output=$(on_terminal "$command" && exit "$code") || code=$?
    printf '\n## %d. %s\n\n    $ %s\n%s\n' $((i / 3 + 1)) "${tasks[i]}" "${tasks[i + 1]}" "$(sed 's/^/    /; s/ *$//' <<<"$output")"
    if [ "$code" -ne 0 ]; then
        printf 'tasks.sh: exit code %d of: %s\n%s\n' "$code" "$command" "$output" >&2
        exit 1
    fi
done
