#!/bin/sh
# SPDX-License-Identifier: MIT
# build_info.sh CC FLAGS: the header that harness/cli/build.c includes, on stdout.
# The commit is "nogit" if this folder is not the top of a git work tree with a commit.
set -eu
cd "$(dirname "$0")/.."

git_here() { git -c safe.directory="$PWD" "$@" 2>/dev/null; }

commit=nogit
dirty=false
if [ "$(git_here rev-parse --show-prefix || echo outside)" = "" ]; then
    if commit=$(git_here rev-parse --short=7 --verify HEAD); then
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
