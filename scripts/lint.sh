#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# lint.sh [FILE...]: rules that the compiler does not check, for these C files or all.
# Each finding is one line; exit 1 if there was any. Of all files it also prints how many lines they have, and had at the
# last tag: what grows is seen. `make lint` adds clang-tidy.
set -u
cd "$(dirname "$0")/.." || exit 2
shopt -s nullglob

files=("$@")
[ $# -gt 0 ] || mapfile -t files < <(find variants harness tests -name "*.[ch]" | sort)
found=0
say() { # each line of stdin is a finding
    while IFS= read -r line; do
        echo "lint: $line"
        found=1
    done
}

# Includes point one way: a folder includes folders of a lower level and itself. Folders of harness/ and
# variants/model/ on one level are peers, which do not include each other. variant.h holds the types that
# parts fill in, so it belongs to them; commands.h what all commands are declared in.
levels=(
    'variants/base/*' 'variants/backends/*' 'variants/parts/*|variants/variant.h' 'variants/steps/*'
    'variants/model/sublayer/*' 'variants/model/attention/*' 'variants/model/content/*|variants/model/condensed/*'
    'variants/model/layers/*' 'variants/model/config/*' 'variants/model/lm/*' 'variants/model/optimise/*'
    'variants/model/checkpoint/*' 'variants/model/import/*([^/])' 'variants/model/import/*' 'variants/*'
    'harness/util/*' 'harness/cli/*|harness/tokens/*' 'harness/plan/*' 'harness/table/*' 'harness/machine/*'
    'harness/worker/*' 'harness/measure/*' 'harness/learn/source/*|harness/compare/*|harness/figure/*|harness/check/*|harness/export/*'
    'harness/learn/task/*' 'harness/learn/score/*' 'harness/learn/train/*' 'harness/learn/study/*'
    'harness/command/commands.h|harness/command/child_requests.*'
    'harness/command/check/*|harness/command/list/*|harness/command/learn/*' 'harness/command/*' 'harness/*'
)
declare -A level_of=() # by path: thousands of includes name a few hundred
level() { # PATH: sets REPLY
    local i pattern
    REPLY=${level_of[$1]-}
    [ -z "$REPLY" ] || return 0
    for ((i = 0; i < ${#levels[@]}; i++)); do
        IFS='|' read -ra patterns <<<"${levels[i]}"
        for pattern in "${patterns[@]}"; do
            # shellcheck disable=SC2053 # a pattern
            [[ $1 != $pattern ]] || break 2
        done
    done
    REPLY=$i level_of[$1]=$i
}
say < <(grep -nHE '^ *# *include "' "${files[@]}" | sed -E 's/^([^:]*):([0-9]+):[^"]*"([^"]*)".*/\1 \2 \3/' |
    while read -r file line include; do
        from=${file%/*} target=$include
        [ ! -e "$from/$include" ] || target=$from/$include
        [ -e "$target" ] || continue # generated
        to=${target%/*}
        level "$file"
        mine=$REPLY
        level "$target"
        its=$REPLY
        if [ "$its" -gt "$mine" ]; then
            echo "$file:$line: includes $target  -> the order of folders: see CONTRIBUTING.md"
        elif [ "$its" -eq "$mine" ] && [ "$from" != "$to" ] && [[ $file == harness/* || $file == variants/model/* ]]; then
            echo "$file:$line: includes $target, a peer  -> move what both need below them"
        fi
    done)

# harness/ uses registries and the table of choices: it names no variant, gate, feed-forward network,
# position scheme, norm, halt, recurrent cell or mask. Some words have a second meaning in harness/.
own_words='none|sinusoid|layer|scale|pre|glu|summary|man|linear|set|stride'
names=$({
    sed -n '/define VARIANTS/,/clang-format on/p' variants/list.h
    sed -nE '/define (GATES|FFNS|POSITIONS)/,/[^\\]$/p' variants/parts/parts.h
} | grep -oE 'X\([a-z0-9_]+[,)]' | sed -E 's/X\((.*)./\1/')
names+=$'\n'$(cat variants/model/*/*.c variants/parts/*.c variants/backends/*.c variants/backends/ref/*.c |
    tr '\n' ' ' | grep -oE '(wiring|norm_kind|halt|rnn_cell)_name\[[A-Z_ +1]*\] = \{[^}]*\}' |
    grep -oE '"[a-z0-9_]+"' | tr -d '"')
names+=$'\nwindow\ndilation\nblock\nstride\nfixed\nglobal'
names=$(printf '%s\n' $names | sort -u | grep -vxE "$own_words" | paste -sd'|')
[[ $names == *gru*xl* ]] || say <<<"the lists of names were not found  -> correct the patterns in $0"
in_harness=$(printf '%s\n' "${files[@]}" | grep '^harness/')
[ -z "$in_harness" ] || say < <(grep -nHE "\"($names)\"" $in_harness |
    grep -v 'sentencepiece\[\] = ' | # what GGUF files call it
    sed 's/$/  -> harness\/ names no part; ask the registry/')

# Fields of struct config that belong to one part, drives and kinds of sub-layers are as good as its name.
# Golden readers put a file's values into place part by part. Two lines in learn/ ask for one: whether
# layers may be left out, what --mem means to the window.
fields='exit|exit_(tau|patience)|halt|halt_eps|ponder_tau|slots|feedback|transparent|cond|budget|budget_coef'
fields+='|rnn_(layers|window|cell|carry)|cpe_(kernel|layers)|sep_kernel|lsra|clip|rel_(rows|per_head)|clamp_len'
fields+='|same_length|sinusoid|uv_per_layer|layer_rope_base|rope_(scaling|factor)|stream_sinks|lazy_group|mla'
fields+='|lambda_init|share_qk|adaptive'
may='harness/check/golden_(import\.c|lm\.c:.*c(\.cond|->same_length))'
may+='|harness/learn/score/(perplexity_print\.c:.*v->exit|score_fit\.c:.*c->same_length)'
may+='|harness/tokens/' # its hash tables have slots
drives=$(sed -nE 's/^const struct drive drive_([a-z]+) = .*/\1/p' variants/model/*/*.c | paste -sd'|')
[[ $drives == *depth*slots* ]] || say <<<"the drives were not found  -> correct the pattern in $0"
[ -z "$in_harness" ] ||
    say < <(grep -nHE "\b(c|config|v|variant)(\.|->)($fields)\b|\bdrive_($drives)\b|&sublayer_" \
        $in_harness | grep -vE "^($may)" | sed 's/$/  -> harness\/ names no part; give the model a function/')

# base.h has what nearly every file needs of the C library; these headers lead to it.
say < <(grep -lE '^#include "(variants/(base/base|parts/[a-z_]+|variant|backends/backend)|harness/(util/(fileio|grow|text)|table/run|plan/plan))\.h"' \
    "${files[@]}" | xargs -r grep -nHE '^#include <(float|limits|math|stdarg|stdbool|stddef|stdint|stdio|stdlib|string)\.h>' |
    grep -v '/dropout\.h:' | sed -E 's/^([^:]*:[0-9]+):.*/\1: base.h includes it already  -> leave it out/')

# Messages say what a thing is not, in the usual order.
say < <(grep -nHE '"[^"]*\b(is|are) no [a-z]' "${files[@]}" | grep -vE 'there (is|are) no |is no longer' |
    sed -E 's/^([^:]*:[0-9]+):.*/\1: "is no X" in a text  -> "is not a X"/')

say < <(grep -nHP '\t' "${files[@]}" | sed -E 's/^([^:]*:[0-9]+):.*/\1: tab  -> four spaces/')
for f in "${files[@]}"; do
    mapfile -t text <"$f"
    lines=${#text[@]}
    # A file is one concept: under 400 lines as a rule, and cutting by position is worse than more.
    [ "$lines" -lt 600 ] || say <<<"$f: $lines lines  -> which concepts are in it?"
    [[ ${text-} == '/* SPDX-License-Identifier: MIT'* ]] ||
        say <<<"$f:1: no SPDX line  -> /* SPDX-License-Identifier: MIT"
    # The library's headers are for any compiler.
    [[ $f != *.h || $f == */library/bench*.h || " ${text[*]/%/ |}" == *' #pragma once |'* ]] ||
        say <<<"$f: no #pragma once  -> write it below the first comment"
done

# A suite that is chosen or left out by a name that none has would run, or not, unnoticed.
say < <(comm -23 <(grep -hE "^(once|no_compiler|suites)\+?=|FILTER=" .ci/run scripts/arm64.sh scripts/debian13.sh |
    sed -E "s/^[^'\"]*['\"]//; s/['\"].*//" | tr '|' '\n' | grep -xE '[a-z0-9_]+' | sort -u) \
    <(grep -rhoE '^[A-Za-z_]+\([^)]*' --include='test_*.c' tests | grep -oE '[a-z0-9_]+' | sort -u) |
    sed 's/.*/& of .ci\/run or scripts\/: no such suite  -> its name, or none/')

say < <(clang-format --dry-run -Werror "${files[@]}" 2>&1 | grep -oP '^[^ ]+:\d+(?=:\d+: error)' | sort -u |
    sed 's/$/: not formatted  -> make format/')

lines() { # FOLDER [TAG]: of its C files, now or at a tag
    if [ $# -eq 1 ]; then
        git ls-files -z "$1/*.c" "$1/*.h" | xargs -0 cat | wc -l
    else
        git archive "$2" "$1" | tar -xO --wildcards '*.[ch]' | wc -l
    fi
}
if [ $# -eq 0 ] && git rev-parse -q --verify HEAD >/dev/null; then
    tag=$(git describe --tags --abbrev=0 2>/dev/null)
    for folder in variants harness tests; do
        echo "lines of $folder: $(lines $folder)${tag:+, $(lines $folder "$tag") at $tag}"
    done
fi
exit $found
