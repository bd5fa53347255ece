#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# gate.sh [BASE] [OPTION...]: is this tree slower than BASE (a commit; default: the merge base with
# origin/main)? Builds both with the same compiler, measures them in turns on this machine, and
# ends with the gate's exit code: 0 no regression, 3 a confirmed one, 4 not trustworthy (--strict),
# 5 wrong numbers. Options go to `bench gate`; a summary file of CI is appended to.
set -eu
cd "$(dirname "$0")/.."
base=${1:-$(git merge-base HEAD origin/main)}
[ $# -eq 0 ] || shift

tree=build/gate-base
git worktree remove --force "$tree" 2>/dev/null || rm -rf "$tree"
git worktree prune
git worktree add --quiet --detach "$tree" "$base"
trap 'git worktree remove --force "$tree"' EXIT

make
make -C "$tree"

code=0
./bench gate --exec old="$tree/build/release/bench" --exec new=build/release/bench \
    @harness/sweeps/gate.args ${GITHUB_STEP_SUMMARY:+--summary "$GITHUB_STEP_SUMMARY"} "$@" || code=$?
exit "$code"
