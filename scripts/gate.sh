#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# gate.sh [BASE] [OPTION...]: is this tree slower than BASE (a commit; default: the merge base with
# origin/main)? Builds both with the same compiler, measures them in turns on this machine, and
# ends with the gate's exit code: 0 no regression, 3 a confirmed one, 4 not trustworthy (--strict),
# 5 wrong numbers. Options go to `bench gate`; a summary file of CI is appended to.
# OLD and NEW are programs that exist already: that side is not built.
set -eu
cd "$(dirname "$0")/.."
base=${1-}
[ $# -eq 0 ] || shift
old=${OLD-} new=${NEW-}

if [ -z "$old" ]; then
    tree=build/gate-base
    base=${base:-$(git merge-base HEAD origin/main)}
    git worktree remove --force "$tree" 2>/dev/null || rm -rf "$tree"
    git worktree prune
    git worktree add --quiet --detach "$tree" "$base"
    trap 'git worktree remove --force "$tree"' EXIT
    make -C "$tree"
    old=$tree/build/release/bench
fi
if [ -z "$new" ]; then
    make
    new=build/release/bench
fi

code=0
"$new" gate --exec old="$old" --exec new="$new" \
    @harness/sweeps/gate.args ${GITHUB_STEP_SUMMARY:+--summary "$GITHUB_STEP_SUMMARY"} "$@" || code=$?
exit "$code"
