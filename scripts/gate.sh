#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# gate.sh [BASE] [OPTION...]: is this tree slower than BASE, a commit (default: the merge base with
# origin/main)? Builds both with the same compiler, measures them in turns on this machine, and
# ends with the gate's exit code: 0 no regression, 3 a confirmed one, 4 not trustworthy (--strict),
# 5 wrong numbers; 7: a side is no bench, or does not build. Options go to `bench gate`; a summary
# file of CI is appended to.
#   scripts/gate.sh HEAD~1 --variant xl       these cases, against the commit before
#   OLD=PROGRAM NEW=PROGRAM scripts/gate.sh   of programs that exist already: no build of that side
# The builds of the last five bases stay in build/gate-COMMIT, so that the next gate has them. BASE is also
# linked a second time, with its objects in another order (relink.sh): the threshold then holds what layout does.
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
old=${OLD-} new=${NEW-} again='' kept=5

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

# SIDE PROGRAM: before anything is built or measured, since the rest takes minutes.
need_bench() {
    [[ $("$2" --version 2>/dev/null </dev/null) == 'bench '* ]] && return
    echo "gate.sh: $1 is not a bench ($2 --version does not say so)  -> give a program that make built" >&2
    exit 7
}
# SIDE [MAKE OPTION...]
build() {
    make "${@:2}" && return
    echo "gate.sh: $1 does not build  -> name a commit that does, or give a program: OLD=, NEW=" >&2
    exit 7
}
[ -n "${tree-}" ] || need_bench old "$old"
[ -z "$new" ] || need_bench new "$new"
if [ -n "${tree-}" ]; then
    git worktree prune
    [ -e "$tree/Makefile" ] || git worktree add --quiet --force --detach "$tree" "$commit"
    touch "$tree"
    [ -x "$old" ] || echo "gate: $old is built first, and kept: some minutes"
    build old -C "$tree"
    if [ -z "$new" ]; then # this tree's: it knows the option
        again=$tree/build/release/again
        [ "$again" -nt "$old" ] || scripts/relink.sh "$tree" 1 "$again"
    fi
    mapfile -t trees < <(ls -dt build/gate-*/)
    for extra in "${trees[@]:kept}"; do
        git worktree remove --force "$extra" 2>/dev/null || rm -rf "$extra"
    done
fi
if [ -z "$new" ]; then
    build new
    new=build/release/bench
fi
built=$SECONDS

code=0
"$new" gate --exec old="$old" --exec new="$new" ${again:+--exec again="$again"} \
    @harness/sweeps/gate.args ${GITHUB_STEP_SUMMARY:+--summary "$GITHUB_STEP_SUMMARY"} "$@" || code=$?
echo "gate: old ${old_name-$old}, new ${new_name-$new}: exit code $code; building took $built s, measuring $((SECONDS - built)) s"
exit "$code"
