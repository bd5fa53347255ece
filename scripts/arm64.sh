#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# arm64.sh [quick]: cross-build for arm64 and run golden files, `bench check` and the suites of what differs
# there under qemu; with `quick`, golden files and the suites that take seconds. Debian's libraries of arm64
# lie in $ARM64 (build/sysroot-arm64), taken from the package lists of this machine and kept. Skipped by name
# where something for it is missing. The last line sums the suites' tests, golden files and checks (one
# each). On an arm64 machine: make test.
set -u
cd "$(dirname "$0")/.." || exit 2
root=${ARM64:-$PWD/build/sysroot-arm64}
what=${1:-all}
# Suites of what differs there. Left out: those that measure, limit, interrupt or kill what they start, and
# those whose time limits are for real machines (recur: `bench check` and golden files have recurrences).
suites='cpu|peak|engine|openblas*|onednn*|attn_known|attn_hostile|acts*|norms*|rows|grad_rows|rnn_cells'
suites+='|int8|mask|rng|elem|library_abi|library_engine|library_attention|library_recurrence|library_conv'
# Those that take minutes under an emulator, beside others more than their limits:
[ "$what" = quick ] || suites+='|split|attn_narrow|library_*|attn_terms|attn_terms_grad|plan|options|topo|env'
case $what in
quick | all) ;;
*) echo "arm64.sh: unknown word '$what'  -> quick" >&2 && exit 2 ;;
esac

skip() {
    echo "skipped arm64: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

[ "$(uname -m)" != aarch64 ] || skip "this machine is one  -> make test"
scripts/deps.sh arm64
command -v aarch64-linux-gnu-gcc >/dev/null || skip "no cross compiler  -> install gcc-aarch64-linux-gnu"
qemu=$(command -v qemu-aarch64) || skip "no emulator  -> install qemu-user"

# Packages of arm64 are unpacked into a folder: this machine's own list of packages stays as it is. Written
# last: a folder without `complete` was cut off.
libraries() {
    local apt=$root/apt options=() o
    for o in APT::Architecture=arm64 APT::Architectures=arm64 APT::Install-Recommends=0 \
        APT::Sandbox::User= Debug::NoLocking=1 Dir::State="$apt" Dir::State::status="$apt/status" \
        Dir::Cache="$apt"; do
        options+=(-o "$o")
    done
    rm -rf "$root"
    mkdir -p "$apt/lists/partial" "$apt/archives/partial"
    touch "$apt/status"
    timeout 300 apt-get "${options[@]}" update &&
        timeout 600 apt-get "${options[@]}" install -y --download-only libc6-dev libgomp1 libstdc++6 \
            $(scripts/deps.sh list | grep '^lib') || return 1
    for o in "$apt"/archives/*.deb; do
        dpkg -x "$o" "$root" || return 1
    done
    rm -rf "$apt"
    touch "$root/complete"
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
[ -e "$root/complete" ] || libraries >"$log" 2>&1 ||
    { tail -n 5 "$log" && skip "Debian's packages of arm64 cannot be had"; }

flags=()
[ "$what" != quick ] || flags=(CFLAGS_release='-O2 -g0' # and only the tests' folders that have these suites
    WITHOUT='check cli command compare export figure learn measure model parts plan scripts steps table tokens util')
make SYSROOT="$root" "${flags[@]}" CC="$(command -v ccache) aarch64-linux-gnu-gcc" tests || exit 1
build=build/release-aarch64

# Programs start programs: the kernel has to know who runs arm64's. What is registered here goes at the end.
export QEMU_LD_PREFIX=$root
formats=/proc/sys/fs/binfmt_misc
if ! "$build/bench" help >/dev/null 2>&1; then
    [ -e $formats/register ] || mount -t binfmt_misc none $formats 2>/dev/null
    name=bench-arm64-$$
    trap 'rm -f "$log"; [ ! -e $formats/$name ] || echo -1 >$formats/$name' EXIT
    head='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    printf '%s' ":$name:M::$head:$mask:$qemu:F" 2>/dev/null >$formats/register
    "$build/bench" help >/dev/null 2>&1 ||
        skip "the kernel starts no arm64 programs  -> as root, or install qemu-user-binfmt"
fi

# What the environment asks of the libraries is for this machine's CPU; threads that spin take the core
# from others.
unset OPENBLAS_CORETYPE ONEDNN_MAX_CPU_ISA DNNL_MAX_CPU_ISA
export OMP_WAIT_POLICY=passive
passed=0 failed=0 skipped=0
step() { # NAME COMMAND...
    echo "== $1"
    if "${@:2}"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "$1 failed"; fi
}
step golden "$build/golden" check --isolate none --golden tests/golden
[ $what = quick ] || step check "$build/bench" check --isolate fork
scripts/test.sh "$build" --filter "@($suites)/*" 2>&1 | tee "$log"
read -r p f s < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p' "$log" | tail -n 1)
passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1})) skipped=$((skipped + ${s:-0}))
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
