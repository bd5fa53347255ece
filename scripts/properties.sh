#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# properties.sh [BUILD]: ask every variant what it promises (tests/model/test_properties.c, dropout's seeds) and
# print a table of variants and properties: "yes", or why a property does not hold by design. A property that
# fails is no row: the tests say so, on stderr.
set -eu
cd "$(dirname "$0")/.."
answers=$(mktemp)
trap 'rm -f "$answers"' EXIT
PROPERTIES=$answers scripts/test.sh "${1:-build/release}" \
    --filter '@(properties/*|train_recipe/dropout*)' >&2
awk -F '\t' '
    FNR == NR       { if ($1 ~ /^    X\(/) { sub(/^    X\(/, "", $1); sub(/,.*/, "", $1); order[++n] = $1 } next }
    !($2 in column) { column[$2] = ++columns; name[columns] = $2 }
    { name_of[$1]; gsub(/\|/, "\\|", $3); at[$1, column[$2]] = $3 }
    END {
        line = "| variant |"; rule = "|---|"
        for (c = 1; c <= columns; c++) { line = line " " name[c] " |"; rule = rule "---|" }
        print line "\n" rule
        for (i = 1; i <= n; i++) {
            v = order[i]; line = "| " v " |"
            for (c = 1; c <= columns; c++)
                line = line " " ((v, c) in at ? at[v, c] : "**no**") " |"
            print line
        }
    }' variants/list.h <(sed 's/-/_/' "$answers" | LC_ALL=C sort -t "$(printf '\t')" -k 2,2 -s)
