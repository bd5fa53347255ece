#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The step of action.yml: GATE_OLD, GATE_NEW, GATE_PLAIN and GATE_ARGS are its inputs. Runs in the checkout,
# appends the table to the job's summary, and ends with the gate's exit code, which is also an output.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
read -ra args <<<"${GATE_ARGS-}"
summary=()
[ -z "${GITHUB_STEP_SUMMARY-}" ] || summary=(--summary "$GITHUB_STEP_SUMMARY")

# The program that gates: the one on the path, else this tree's.
find_bench() {
    bench=$(command -v bench) && return
    bench=$top/build/release/bench
    [ -x "$bench" ] || { make -C "$top" deps && make -C "$top"; } >&2
}

code=0
if [ "${GATE_PLAIN-}" = true ]; then
    find_bench
    "$bench" gate --plain --exec old="$GATE_OLD" --exec new="${GATE_NEW-}" "${summary[@]}" "${args[@]}" || code=$?
elif [ -x "$GATE_OLD" ]; then
    find_bench
    "$bench" gate --exec old="$GATE_OLD" --exec new="${GATE_NEW:-$bench}" "${summary[@]}" "${args[@]}" || code=$?
elif [ -x scripts/gate.sh ]; then # appends to the summary itself
    NEW=${GATE_NEW-} scripts/gate.sh "$GATE_OLD" "${args[@]}" || code=$?
else
    echo "action: old \"$GATE_OLD\" is no program  -> give its path; of a command line: plain: true" >&2
    code=7
fi
[ -z "${GITHUB_OUTPUT-}" ] || echo "code=$code" >>"$GITHUB_OUTPUT"
exit "$code"
