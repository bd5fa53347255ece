#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bisect.sh GOOD [OPTION...]: which commit made it slower? An oracle for `git bisect run`. GOOD is a program
# that was built at the good commit; options go to `bench gate`, such as the cases that became slower.
# Builds this tree and gates it against GOOD. A commit is bad only if three gates in a row say so:
#   0 not slower, 1 slower three times, 125 (git skips the commit) not built, not measured, or gates that
#   disagree, 128 (git stops) bad usage, or interrupted.
# Copy it and GOOD out of the tree first, since git changes the tree:
#   git checkout v1 && make && cp build/release/bench scripts/bisect.sh /tmp
#   git bisect start main v1 && git bisect run /tmp/bisect.sh /tmp/bench --variant xl --workload layer
set -u
confirmations=3

good=${1-}
if [ -z "$good" ] || [ ! -x "$good" ]; then
    echo "bisect.sh: no program \"$good\"  -> bisect.sh GOOD [OPTION...], GOOD built at the good commit" >&2
    exit 128
fi
shift
new=build/release/bench
make >&2 || exit 125

for ((slower = 0; slower < confirmations; slower++)); do
    code=0
    "$new" gate --exec old="$good" --exec new="$new" "$@" || code=$?
    case $code in
    3) ;;
    0)
        [ "$slower" -eq 0 ] || exit 125
        exit 0
        ;;
    2 | 130 | 143) exit 128 ;;
    *) exit 125 ;;
    esac
done
exit 1
