#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tasks.sh [BENCH]: ten tasks of a new user, one command each, as Markdown: the command, and some lines
# of what it prints on a terminal of 100 columns. docs/tasks.md is its output on one machine.
#   --tiny [BENCH]    the same commands with sizes that take milliseconds, for tests
#   --list            the questions and the commands alone
#   --only N [BENCH]  the Nth alone, without the head of the page
# OLD is the program that task 3 compares with, which is then not built (default: BENCH itself).
set -eu
export LC_ALL=C
repo=$(cd "$(dirname "$0")/.." && pwd)
tiny=
list=
only=
case ${1-} in
--tiny) tiny=1 && shift ;;
--list) list=1 ;;
--only) only=$2 && shift 2 ;;
esac

# What is asked, the command, what --tiny adds to it (the last value of an option counts), which lines
# of its output are shown, and patterns that must be found in it, a line each.
quick='--max-time 0.003 --min-samples 3 --warmup-ms 0 --ckpt none'
small="--d-model 16 --heads 2 --d-head 8 --backend ref $quick"
tasks=(
    'Which variant for 128 new tokens after 2048 of context?'
    './bench --variant base,rope,gqa,window --skeleton llama --seq 128 --mem 2048 --quick --ckpt none'
    "$small"
    '^variants by|^  (gqa|window|rope|xl|networks) '
    '^variants by time: layer'

    'Which backend is fastest here?'
    './bench --variant xl --mem 512 --quick'
    "$small --seq 16,32"
    '^backends by|^  (avx|one|open|ref)|^wrote'
    $' xl \n^wrote results/'

    'Is my change slower than the program before it?'
    'scripts/gate.sh HEAD~1 --variant xl --workload layer'
    "--d-model 16 --heads 2 --backend ref --filter backend:ref --min-samples 3 --warmup-ms 0 --threshold 900"
    '^xl |^ +old +new|^(avx|one|open|ref).* us |^gate: [0-9]'
    '^gate: [0-9]+ cases?, '

    'How fast is it on 4 threads?'
    './bench --variant xl --mem 512 --threads 4 --pin none --quick --ckpt none'
    "$small --seq 16"
    '^layer |^ +seq|^ +128 '
    '^layer .* threads=4'

    'How fast is a model of my sizes, for a prompt and for each token after it?'
    './bench --variant llama --workload segment,decode --layers 2 --d-model 768 --heads 12 --seq 512 --mem 0,512 --quick --ckpt none'
    "--layers 1 $small"
    '^segment|^decode|llama.* avx512 |^ .* ref '
    $'^segment .* layers=\n^decode .* layers='

    'A sweep was interrupted. How does it go on?'
    './bench --resume'
    ''
    '^[0-9]+ cases|^ +1024 |^(Use|Probably|No) |^[$]|complete'
    $'^variants by time: layer\n is complete, nothing to resume'

    'What do I paste into an issue?'
    './bench --variant xl --seq 128,512 --mem 512 --quick --ckpt none --format md'
    "$small --variant xl,rope --seq 16,32"
    '^bench |^[*][*]|^[|] (seq|512)|^[|]-|by time|^(Use|Probably|No) '
    $'^bench [0-9.]+ [(].*[)]  .*CPU\n^[*][*]layer \n^(variants|backends) by time'

    'What does it look like?'
    './bench plot --figure latency-seq --term'
    ''
    '.'
    'sequence length'

    'What do I send to a colleague?'
    './bench report'
    ''
    '[.]html'
    'report[.]html'

    'How good is this checkpoint, with more and with less context?'
    './bench eval --ckpt results/models/xl.safetensors --mem 0,128,256 --bytes 16Ki'
    '--seq 16 --bytes 256'
    '^xl|^ +seq|^ +(16|128) '
    $' bits/symbol \n^ +[0-9]+ +256 '
)

if [ "$list" ]; then
    for ((i = 0; i < ${#tasks[@]}; i += 5)); do printf '# %s\n%s\n' "${tasks[i]}" "${tasks[i + 1]}"; done
    exit
fi

bench=$(realpath "${1:-$repo/bench}")
folder=$(mktemp -d "${TMPDIR:-/tmp}/bench_tasks_XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir -p results
ln -s "$bench" bench
ln -s "$repo/scripts" scripts
ln -s "$repo/results/models" results/models
OLD=$(realpath "${OLD:-$bench}")
export OLD NEW=$bench

# A terminal, but neither colours nor a line that is rewritten.
on_terminal() {
    env TERM=dumb BENCH_PROGRESS=none script -qec "stty cols 100; $1" /dev/null </dev/null >typed 2>&1 || code=$?
    tr -d '\r' <typed
}

# The sweep that task 6 continues ends after its first groups.
interrupt_one() {
    local words='--variant xl,rope --backend avx2 --max-time 1 --ckpt none'
    [ -z "$tiny" ] || words="--variant xl,rope --seq 4..64 --mem 0 $small --max-time 0.1 --target-ci 0"
    # shellcheck disable=SC2086 # words
    timeout -s INT "$([ "$tiny" ] && echo 0.6 || echo 10)" ./bench $words >/dev/null 2>&1 || true
}

# At most ten of the lines that match, of a picture 24; dots for what is left out.
abridged() {
    awk -v show="$1" '$0 ~ show && n < (show == "." ? 24 : 10) { print; n++; gap = 0; next }
        !gap { print "..."; gap = 1 }' | sed 's/^/    /; s/ *$//'
}

[ "$only" ] || cat <<END
# Ten tasks

A new user's questions, and the command that answers each, with some lines of what it prints. Recorded by
\`scripts/tasks.sh\` on $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs, $(date -u +%Y-%m-%d).
Times with \`~\` were disturbed by other programs.
END
for ((i = 0; i < ${#tasks[@]}; i += 5)); do
    [ "${only:-$((i / 5 + 1))}" = $((i / 5 + 1)) ] || continue
    command=${tasks[i + 1]} code=0
    [ "$command" != './bench --resume' ] || interrupt_one
    [ -z "$tiny" ] || command="$command ${tasks[i + 2]}"
    output=$(on_terminal "$command" && exit "$code") || code=$?
    # Once more: there is nothing left.
    [ "${tasks[i + 1]}" != './bench --resume' ] || output+=$'\n$ ./bench --resume\n'$(on_terminal "$command")
    printf '\n## %d. %s\n\n    $ %s\n%s\n' $((i / 5 + 1)) "${tasks[i]}" "${tasks[i + 1]}" "$(abridged "${tasks[i + 3]}" <<<"$output")"
    if [ "$code" -ne 0 ]; then
        printf 'tasks.sh: exit code %d of: %s\n%s\n' "$code" "$command" "$output" >&2
        exit 1
    fi
    while IFS= read -r pattern; do
        grep -Eq -- "$pattern" <<<"$output" && continue
        printf 'tasks.sh: no line like "%s" from: %s\n%s\n' "$pattern" "$command" "$output" >&2
        exit 1
    done <<<"${tasks[i + 4]}"
done
