#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# lint.sh [FILE...]: the rules of the tree that a compiler does not know, over these C files or all.
# Each finding is one line; exit 1 if there was any. `make lint` adds clang-tidy.
set -u
cd "$(dirname "$0")/.." || exit 2
shopt -s nullglob

files=("$@")
[ $# -gt 0 ] || files=(variants/*.[ch] variants/*/*.[ch] harness/*.[ch] tests/*.[ch])
found=0
say() { # each line of stdin is a finding
    while IFS= read -r line; do
        echo "lint: $line"
        found=1
    done
}

# Includes point one way: base <- backends <- parts <- variants <- harness <- tests.
# variant.h, part.h and params.h hold the types that parts fill in, so they belong to them.
level() {
    case $1 in
    variants/base/*) echo 0 ;;
    variants/backends/*) echo 1 ;;
    variants/parts/* | variants/variant.h | variants/parts/part.h | variants/parts/params.h) echo 2 ;;
    variants/*) echo 3 ;;
    harness/*) echo 4 ;;
    *) echo 5 ;;
    esac
}
say < <(grep -nHE '^ *# *include "' "${files[@]}" | sed -E 's/^([^:]*):([0-9]+):[^"]*"([^"]*)".*/\1 \2 \3/' |
    while read -r file line include; do
        target=$(realpath -m --relative-to=. "${file%/*}/$include")
        [ "$(level "$target")" -le "$(level "$file")" ] ||
            echo "$file:$line: includes $target  -> base <- backends <- parts <- variants <- harness <- tests"
    done)

# A variant is one line in the registry: no code in harness/ knows a name.
names=$(grep -hoE '\.name = "[a-z0-9_]+"' $(grep -lE '^const struct variant ' variants/*.c) |
    sed -E 's/.*"(.*)"/\1/' | paste -sd'|')
[ -n "$names" ] || say <<<"no variant found in variants/*.c  -> mend the pattern in $0"
in_harness=$(printf '%s\n' "${files[@]}" | grep '^harness/')
[ -z "$in_harness" ] || say < <(grep -nHE "\"($names)\"" $in_harness |
    sed 's/$/  -> harness\/ names no variant; ask the registry/')

say < <(grep -nHP '\t' "${files[@]}" | sed -E 's/^([^:]*:[0-9]+):.*/\1: tab  -> four spaces/')
for f in "${files[@]}"; do
    lines=$(wc -l <"$f")
    [ "$lines" -lt 400 ] || say <<<"$f: $lines lines  -> cut it below 400"
    head -n 1 "$f" | grep -q '^/\* SPDX-License-Identifier: MIT' ||
        say <<<"$f:1: no SPDX line  -> /* SPDX-License-Identifier: MIT"
done

say < <(clang-format --dry-run -Werror "${files[@]}" 2>&1 | grep -oP '^[^ ]+:\d+(?=:\d+: error)' | sort -u |
    sed 's/$/: not formatted  -> make format/')
exit $found
