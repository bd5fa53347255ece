#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# debian13.sh [quick | bench [OPTION...]]: this tree on Debian 13, built by its gcc and its clang with warnings
# as errors: `make demo` and every suite with each; with `quick`, gcc's golden files and the suites of what
# differs there. `bench` runs what gcc built there the last time.
# Debian 13 is a chroot in $DEBIAN13 (build/debian13), made by debootstrap from the mirror that this machine's
# own packages come from, and kept: the next run builds what has changed. Needs root. Skipped by name where
# something for it is missing, or a limit of time is reached. The last line sums the suites' tests, builds,
# demos and golden files (one each).
set -u
cd "$(dirname "$0")/.." || exit 2
root=${DEBIAN13:-$PWD/build/debian13}
what=${1:-all}
# Suites of what differs there: compilers, libraries, gnuplot.
suites='engine|rows|grad_rows|split|attn_known|attn_hostile|attn_narrow|onednn*|acts*|norms*|rnn_cells|mask|rng|elem|golden|cpu*'
suites+='|env|topo|quota|gnuplot|plot_files|csv_read|json_text|runjson'
case $what in
quick) end=$((SECONDS + 1200)) ;;
all | bench) end=$((SECONDS + 4 * 3600)) ;;
*) echo "debian13.sh: unknown word '$what'  -> quick, bench" >&2 && exit 2 ;;
esac

passed=0 failed=0 skipped=0
total() {
    echo "$passed passed, $failed failed, $skipped skipped"
    exit $((failed > 0))
}
skip() {
    echo "skipped debian13: $1"
    skipped=$((skipped + 1))
    total
}

# Both return 124 when the time is over: SECONDS, or what is left of the whole.
within() { # SECONDS COMMAND...
    local left=$((end - SECONDS)) most=$1 rc
    [ "$left" -gt 0 ] || return 124
    timeout --signal KILL $((most < left ? most : left)) "${@:2}"
    rc=$?
    return $((rc == 137 ? 124 : rc))
}
# Its own processes and mounts, which end with it; its root is one, as on a machine.
inside() { # SECONDS COMMAND
    # shellcheck disable=SC2016 # the inner shell's
    within "$1" unshare --mount --pid --fork --kill-child bash -c '
        mount --bind "$1" "$1" && mount -t proc proc "$1/proc" && mount --bind /sys "$1/sys" && mount --rbind /dev "$1/dev" || exit 1
        exec chroot "$1" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb WERROR=1 \
            ${http_proxy:+"http_proxy=$http_proxy"} bash -c "cd /root/bench && $2"' inside "$root" "$2" </dev/null
}
if [ "$what" = bench ]; then
    shift
    [ -x "$root/root/bench/build/release/bench" ] ||
        { echo "debian13.sh: no program in $root  -> scripts/debian13.sh quick" >&2 && exit 2; }
    inside 14400 "build/release/bench ${*@Q}"
    exit
fi

step() { # NAME COMMAND
    local name=$1 start=$SECONDS rc p f s
    echo "== $name"
    inside 3600 "$2" >"$log" 2>&1
    rc=$?
    if [ $rc -eq 124 ]; then
        tail -n 3 "$log"
        skip "the limit of time was reached in $name"
    fi
    if [ $rc -eq 0 ]; then
        passed=$((passed + 1))
        # What was skipped or left out, and what was said last.
        sed 's/.*\r//' "$log" | grep -E '^(skipped |left out)'
        tail -n 1 "$log" | sed 's/.*\r//'
    else
        failed=$((failed + 1))
        tail -n 100 "$log"
        echo "failed $name"
    fi
    read -r p f s < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$log" | tail -n 1)
    # The suites' own count stands for the step.
    [ -z "${p-}" ] || passed=$((passed + p - (rc == 0))) failed=$((failed + f - (rc != 0 && f > 0))) skipped=$((skipped + s))
    echo "   took $((SECONDS - start)) s"
}

[ "$( (. /etc/os-release && echo "$ID ${VERSION_ID-}") 2>/dev/null)" != "debian 13" ] ||
    skip "this machine is one  -> make test"
[ "$(id -u)" -eq 0 ] || skip "needs root"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
within 300 scripts/deps.sh debian13 >"$log" 2>&1
command -v debootstrap >/dev/null || skip "no debootstrap  -> scripts/deps.sh debian13"
unshare --mount --pid --fork --kill-child true 2>/dev/null || skip "no namespaces of mounts and processes here"

# Written last: a chroot without `complete` was cut off.
if [ ! -e "$root/complete" ]; then
    start=$SECONDS
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' | head -n 1)
    [ -n "$mirror" ] || skip "the sources of apt name no mirror of Debian"
    rm -rf --one-file-system "$root"
    mkdir -p "$root"
    # In mounts of its own: killed, it leaves none.
    within 600 unshare --mount debootstrap --variant=minbase --include=git,gcc,make,ca-certificates trixie "$root" "$mirror" >"$log" 2>&1 ||
        { tail -n 5 "$log" && rm -rf --one-file-system "$root" && skip "Debian 13 cannot be had from $mirror, or not in time"; }
    mkdir -p "$root/root/bench/scripts"
    cp scripts/deps.sh "$root/root/bench/scripts/"
    inside 600 'scripts/deps.sh clang' >"$log" 2>&1 ||
        { tail -n 5 "$log" && rm -rf --one-file-system "$root" && skip "Debian 13's packages cannot be had from $mirror, or not in time"; }
    touch "$root/complete"
    echo "made $root in $((SECONDS - start)) s"
fi

# The tree as it is, without what was built; objects of the last time stay.
tree=$root/root/bench
mkdir -p "$tree"
find "$tree" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
find "$root/tmp" -mindepth 1 -delete # of one that was killed
tar -c --exclude=./build --exclude=./config.mk --exclude=./bench . 2>"$log" | tar -x --no-same-owner -C "$tree" ||
    { cat "$log" && exit 1; }
inside 600 'scripts/deps.sh clang' >"$log" 2>&1 || { tail -n 5 "$log" && skip "a package is missing in $root"; }
inside 60 'gcc --version | head -n 1; clang --version | head -n 1'

if [ $what = all ]; then
    step "build with gcc" 'make CC=gcc tests'
    step "demo with gcc" 'make CC=gcc demo'
    step "suites with gcc" 'make CC=gcc test'
    step "build with clang" 'make CC=clang tests'
    step "demo with clang" 'make CC=clang demo'
    step "suites with clang" 'make CC=clang test'
else
    # Without what debuggers read, and only the tests' folders that have these suites; clang's warnings alone.
    without='cli command compare export learn measure model parts plan scripts steps tokens util worker'
    step "build with gcc" "make CC=gcc CFLAGS_release='-O2 -g0' WITHOUT='$without' tests"
    step "golden files with gcc" 'build/release/golden check --golden tests/golden'
    step "suites with gcc" "scripts/test.sh build/release --filter '@($suites)/*'"
    step "warnings of clang" "make CC=clang CFLAGS_release='-O1 -fsyntax-only' objects"
fi
total
