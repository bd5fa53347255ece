#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# layout.sh [COUNT] [OPTION...]: does layout alarm the gate? Links the bench of this tree COUNT times (10), its
# objects in another order each time (relink.sh), and gates each against it, as gate.sh does; then one that is 3 %
# slower (make SLOW=3). Options go to `bench gate`. A line each: what was gated, the exit code, the counts. Exit code
# 1 if a relinked one was slower or faster, or the slower one was not found.
set -eu
cd "$(dirname "$0")/.."
count=10
if [[ ${1-} =~ ^[0-9]+$ ]]; then
    count=$1
    shift
fi
make >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/relink.sh . 1 "$work/again"

bad=0
gate() { # NAME PROGRAM WANTED OPTION...
    local code=0 line
    line=$(build/release/bench gate --exec old=build/release/bench --exec again="$work/again" --exec new="$2" \
        @harness/sweeps/gate.args --progress none "${@:4}" 2>&1 >/dev/null | grep '^gate: ' && exit "${PIPESTATUS[0]}") || code=$?
    echo "$1 exit code $code: ${line#gate: }"
    [ "$code" -eq "$3" ] && { [ "$3" -ne 0 ] || [[ $line == *' 0 slower, 0 faster, '* ]]; } || bad=1
}
for ((i = 2; i <= count + 1; i++)); do
    scripts/relink.sh . "$i" "$work/bench"
    gate "relinked, order $i:" "$work/bench" 0 "$@"
done
make SLOW=3 >&2
ln -sfn build/release/bench bench
gate '3 % slower:' build/slow/bench 3 "$@"
exit "$bad"
