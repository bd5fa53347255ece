#!/bin/sh
# SPDX-License-Identifier: MIT
# build_info.sh CC FLAGS: the header that harness/cli/build.c includes, on stdout.
# The commit is "nogit" if this folder is not the top of a git work tree with a commit.
set -eu
cd "$(dirname "$0")/.."

git_here() { git -c safe.directory="$PWD" "$@" 2>/dev/null; }

# The shortest name from 7 digits on that no reader of tables takes for a number: 2092200 and 20922e5 are
# some, in hexadecimal too.
short_commit() {
    digits=7
    while name=$(git_here rev-parse --short=$digits --verify HEAD); do
        case $name in
        *[a-df]*) break ;;
        esac
        [ $digits -lt 40 ] || break
        digits=$((digits + 1))
    done
    [ -n "$name" ] && printf %s "$name"
}

commit=nogit
dirty=false
if [ "$(git_here rev-parse --show-prefix || echo outside)" = "" ]; then
    if commit=$(short_commit); then
        [ -z "$(git_here status --porcelain)" ] || dirty=true
    else
        commit=nogit
    fi
fi

text() { printf '#define %s "%s"\n' "$1" "$(printf %s "$2" | sed 's/[\\"]/\\&/g')"; }
text BUILD_COMMIT "$commit"
printf '#define BUILD_DIRTY %s\n' "$dirty"
# shellcheck disable=SC2086 # CC may be several words: "ccache gcc"
text BUILD_COMPILER "$($1 --version | head -n 1)"
text BUILD_FLAGS "$2"
