#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# snippets.sh [--whole]: put the files and rows of CONTRIBUTING.md into a copy of this tree, build there, and
# run `bench check` of what they add.
#   --whole  also those that change struct config (a part of attention): what includes it is compiled again
# The other objects are those of build/release. Without --whole lists are read anew only by what has them as
# arrays.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
whole=
[ "${1-}" != --whole ] || whole=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -a Makefile scripts variants harness "$work"

# A line each: "file PATH FILE" for a block of C behind the words "The file `PATH`", FILE being its text;
# "row LIST PATH ROW" and "field PATH FIELD" (to be added to the file before it) from the words.
mkdir "$work/page"
awk -v to="$work/page" '
    /^```c$/ {
        at = ""
        for (rest = text; match(rest, /The file `[^`]+`/); rest = substr(rest, RSTART + RLENGTH))
            at = substr(rest, RSTART + 10, RLENGTH - 11)
        for (rest = text; match(rest, /`X\([^`]*\)` of `[A-Z_]+` \(`[^`]+`\)/); rest = substr(rest, RSTART + RLENGTH)) {
            split(substr(rest, RSTART, RLENGTH), word, "`")
            print "row " word[4] " " word[6] " " word[2]
        }
        if (match(text, /the file above with `[^`]+`/))
            print "field " last " " substr(text, RSTART + 21, RLENGTH - 22)
        if (at != "")
            print "file " at " " (file = to "/" ++n)
        last = at != "" ? at : last
        inside = 1
        text = ""
        next
    }
    /^```$/ { inside = 0; file = ""; next }
    inside  { if (file != "") print >file; next }
    { text = text " " $0 }' CONTRIBUTING.md >"$work/page/steps"

files=0
while read -r what one two rest; do
    [ -n "$whole" ] || case $one$two in *attention/* | *around_parts*) continue ;; esac
    case $what in
    file)
        [ ! -e "$work/$one" ] || { echo "snippets.sh: $one is there already  -> another name" >&2 && exit 1; }
        cp "$two" "$work/$one"
        files=$((files + 1))
        ;;
    row) # behind the last row of the list
        awk -v list="$one" -v row="$rest" '
            $0 ~ "^#define " list "\\(X\\)" { inside = 1 }
            inside && !/\\$/ { $0 = $0 " \\\n    " row; inside = 0; done = 1 }
            { print }
            END { exit !done }' "$work/$two" >"$work/page/list"
        mv "$work/page/list" "$work/$two"
        ;;
    field) [ -z "$whole" ] || sed -i "s/^};\$/    $two ${rest//&/\\&}\n};/" "$work/$one" ;;
    esac
done <"$work/page/steps"
[ "$files" -ge 3 ] || { echo "snippets.sh: $files files found in CONTRIBUTING.md  -> \"The file \`PATH\`\", then \`\`\`c" >&2 && exit 1; }

bin=build/release
old=(-o Makefile)
! grep -q -e -Werror "$bin/flags" || export WERROR=1 # the same flags as those objects
mkdir -p "$work/$bin"
for part in variants harness flags build_info.h; do
    cp -a "$bin/$part" "$work/$bin/"
done
if [ -z "$whole" ]; then
    for list in variants/registry variants/registry_check variants/backends/backend harness/plan/lookup; do
        rm "$work/$bin/$list.o"
    done
    old+=(-o variants/list.h -o variants/parts/parts.h -o variants/backends/list.h)
fi
make -sk -C "$work" -j "$(nproc)" "${old[@]}" all >"$work/make.log" 2>&1 || { cat "$work/make.log" >&2 && exit 1; }
if grep -E 'warning:' "$work/make.log" >&2; then exit 1; fi

cd "$work"
words() { sed -nE "s/^row $1 [^ ]* X\(([a-z_]+).*/\1/p" page/steps | paste -sd,; }
./bench check --variant "$(words VARIANTS)" --backend ref,"$(words BACKENDS)"

# What is forgotten or left from the file that was copied is named when the program starts.
refused() { # SED SAYS
    cp variants/fading.c page/fading.c
    sed -i "$1" variants/fading.c
    make -s "${old[@]}" all >make.log 2>&1 || { cat make.log >&2 && exit 1; }
    rc=0
    ./bench list backends >/dev/null 2>said || rc=$?
    [ "$rc" -eq 6 ] && grep -qF -- "$2" said || { echo "snippets.sh: exit code $rc, not refused: $2" >&2 && cat said >&2 && exit 1; }
    cp page/fading.c variants/fading.c
}
refused 's/ \.kind = &sublayer_steps,//' 'mixer fading has no kind  -> .kind = &sublayer_steps'
refused 's/mix_output(t, step_recur(t, r))/step_recur(t, r)/' 'steps of mixer fading: build() names no result  -> '
refused 's/\.name = "fading", \./.name = "gla", ./' 'mixer fading has the name "gla", as gla has  -> another .name'
