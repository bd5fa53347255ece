#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# test.sh BUILD [CRITERION OPTION...]: run BUILD/run_tests, name every skip and every failure, end with
# "N passed, N failed, N skipped". Criterion's own last line leaves out skips: its TAP report has them.
# Exit code 1: a failure; 77: the filter matches no test.
# The suites find the program under test in $BENCH.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 2
case ${1:--} in
-*) echo "test.sh: no build folder  -> scripts/test.sh build/release [--filter 'SUITE/*']" >&2 && exit 2 ;;
esac
build=$1
shift
tap=$build/tests.tap
reports=$PWD/$build/sanitizer
rm -f "$reports".[0-9]*
: >"$tap"

# Tests do not depend on the caller's environment: variables of the libraries, options, the terminal,
# the locale, a start-up file. They get only what is named here.
mkdir -p "$build/home"
around=(PATH="$PATH" HOME="$PWD/$build/home" LC_ALL=C BENCH="$PWD/$build/bench")
for name in BENCH_SHARED FAULTS_ALL LD_LIBRARY_PATH PROPERTIES QEMU_LD_PREFIX REWRITE_SCREENS; do
    [ -z "${!name-}" ] || around+=("$name=${!name}")
done
# Suites run in parallel: spinning threads would take CPU time from the others.
around+=(OMP_WAIT_POLICY=passive)
# Reports go to files: a leak is found after Criterion has recorded the test's result, and a child of the
# program under test may have no stderr. Freed memory is kept poisoned until 16 MiB more are freed: with
# the default of 256 most memory is taken from the system anew.
around+=(ASAN_OPTIONS="log_path=$reports:detect_leaks=1:exitcode=23:quarantine_size_mb=16"
         UBSAN_OPTIONS="log_path=$reports:print_stacktrace=1"
         TSAN_OPTIONS="log_path=$reports:exitcode=23:ignore_noninstrumented_modules=1")
# LLVM's OpenMP runtime is not instrumented; it tells ThreadSanitizer through this library what its threads
# wait for, so nothing has to be suppressed.
if [ "${build##*/}" = thread-clang ]; then
    llvm=$(clang -print-resource-dir)
    around+=(OMP_TOOL_LIBRARIES="${llvm%/clang/*}/libarcher.so")
fi
umask 022
# One test more than CPUs: many of them wait, for a child or for a signal. nproc follows OMP_NUM_THREADS,
# which is not about tests.
cpus=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
env -i "${around[@]}" bash -c 'echo $$ >"$0"; exec "$@"' "$build/runner.pid" \
    "$build/run_tests" --tap="$tap" --short-filename --jobs $((cpus + 1)) "$@" </dev/null
rc=$?
# Tests run in children. Occasional leaks of the runner itself (status 23) are Criterion's.
if [ "$rc" -eq 23 ]; then
    rm -f "$reports.$(cat "$build/runner.pid")"
    rc=0
fi
n_reports=0
for report in "$reports".[0-9]*; do
    [ -s "$report" ] || continue
    cat "$report" >&2
    # The leak check also warns of threads that ended before it could stop them: no finding.
    if grep -qE 'ERROR: |runtime error: |CHECK failed|WARNING: ThreadSanitizer' "$report"; then
        n_reports=$((n_reports + 1))
    fi
done

# A runner that died early leaves tests without a line; a failure outside any test leaves only rc.
awk -v rc="$rc" -v n_reports="$n_reports" '
    /^1\.\.[0-9]+/  { planned = substr($1, 4) }
    /^not ok /      { failed++; sub(/^not ok - /, ""); test = $0; said[test] = ""; next }
    # Below a failure: where, then what (its first line tells enough), at most three.
    test != "" && /^  - .*:$|^  - .*\|\+$/ { sub(/^  - /, ""); sub(/ *\|\+$/, ""); at = $0; next }
    at != ""        { sub(/^ +/, ""); if (++told[test] <= 3) said[test] = said[test] "\n    " at " " $0; at = "" }
    # Left out by --filter: this is all that Criterion reports of it.
    /^ok .*# SKIP test was skipped$/ { left_out++; next }
    /^ok .*# SKIP / { skipped++; named++; sub(/^ok - /, ""); sub(/ *# SKIP /, ": "); why[$0]++; next }
    /^ok /          { passed++ }
    END {
        for (w in why) print "skipped " w (why[w] > 1 ? " (" why[w] " times)" : "") | "sort"
        close("sort")
        for (w in said) print "failed " w said[w]
        lost = planned - passed - failed - skipped - left_out
        if (lost > 0) { print "tests without a result: " lost; failed += lost }
        if (n_reports > 0) { print "sanitizer reports: " n_reports; failed += n_reports }
        if (rc != 0 && !failed) { print "the test runner ended with status " rc; failed = 1 }
        if (planned == 0) { print "no test ran"; failed++ }
        printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
        exit failed > 0 ? 1 : passed == 0 && !named ? 77 : 0
    }' "$tap" 2>&1 || exit $?
