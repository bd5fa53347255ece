#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# gate.sh [BASE] [OPTION...]: is this tree slower than BASE, a commit (default: the merge base with
# origin/main)? Builds both with the same compiler, measures them in turns on this machine, and
# ends with the gate's exit code: 0 no regression, 3 a confirmed one, 4 not trustworthy (--strict),
# 5 wrong numbers. Options go to `bench gate`; a summary file of CI is appended to.
#   scripts/gate.sh HEAD~1 --variant xl       these cases, against the commit before
#   OLD=PROGRAM NEW=PROGRAM scripts/gate.sh   of programs that exist already: no build of that side
# The builds of the last three bases stay in build/gate-COMMIT, so that the next gate has them.
set -eu
cd "$(dirname "$0")/.."
case ${1-} in
-h | --help)
    sed -n '3,/^set/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
-* | '') base='' ;;
*)
    base=$1
    shift
    ;;
esac
old=${OLD-} new=${NEW-} kept=3

if [ -z "$old" ]; then
    commit=$(git rev-parse --verify --quiet "${base:-$(git merge-base HEAD origin/main)}^{commit}") || {
        echo "gate.sh: no commit ${base:-in common with origin/main}  -> name one: scripts/gate.sh HEAD~1" >&2
        exit 2
    }
    old_name=${commit:0:8}
    tree=build/gate-$old_name
    old=$tree/build/release/bench
fi
[ -n "$new" ] || new_name=$(git rev-parse --short=8 HEAD)$(git diff --quiet HEAD -- || echo ' modified')
echo "gate: old ${old_name-$old}, new ${new_name-$new}"

if [ -n "${tree-}" ]; then
    git worktree prune
    [ -e "$tree/Makefile" ] || git worktree add --quiet --force --detach "$tree" "$commit"
    touch "$tree"
    [ -x "$old" ] || echo "gate: $old is built first, and kept: some minutes"
    make -C "$tree"
    mapfile -t trees < <(ls -dt build/gate-*/)
    for extra in "${trees[@]:kept}"; do
        git worktree remove --force "$extra" 2>/dev/null || rm -rf "$extra"
    done
fi
if [ -z "$new" ]; then
    make
    new=build/release/bench
fi

code=0
"$new" gate --exec old="$old" --exec new="$new" \
    @harness/sweeps/gate.args ${GITHUB_STEP_SUMMARY:+--summary "$GITHUB_STEP_SUMMARY"} "$@" || code=$?
exit "$code"
