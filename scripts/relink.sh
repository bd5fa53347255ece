#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# relink.sh TREE ORDER PROGRAM: link the bench that was built in TREE once more, as PROGRAM, its objects in
# another order: ORDER is any whole number. What then differs in time is layout: every function and table is
# elsewhere (functions still begin on cache lines, as in any two builds), and none has changed.
set -eu
if [ $# -ne 3 ]; then
    sed -n '3,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
tree=$1 order=$2 program=$(realpath -m "$3")

# The line with which make would link it, if an object were newer.
line=$(make -C "$tree" -n V=1 -W build/release/harness/main.o 2>/dev/null | grep -E -- ' -o build/release/bench( |$)' | tail -n 1) || {
    echo "relink.sh: make links no build/release/bench in $tree  -> build it there first" >&2
    exit 7
}
line=$(awk -v order="$order" -v program="$program" '{
    srand(order)
    for (i = 1; i <= NF; i++)
        if ($i ~ /\.o$/)
            at[++n] = i
    for (i = n; i > 1; i--) {
        k = 1 + int(rand() * i)
        held = $at[i]
        $at[i] = $at[k]
        $at[k] = held
    }
    for (i = 2; i <= NF; i++)
        if ($(i - 1) == "-o")
            $i = "\"" program "\""
    print
}' <<<"$line")
cd "$tree"
bash -c "$line"
