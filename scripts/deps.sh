#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# deps.sh [lint] [clang] [qemu] [site] [browser] [slurm] [mpi] [arm64] [debian13] [all]: install the Debian packages
# that are missing. Without arguments: those of the build, the tests and the plots. Silent if nothing is
# missing. With `list`, their names.
set -eu

packages=(libhwloc-dev libcsv-dev libcriterion-dev libjansson-dev librandom123-dev libxxhash-dev
          libpcre2-dev libutf8proc-dev libzstd-dev libopenblas-openmp-dev libdnnl-dev
          gnuplot-nox jq python3) # the last two for contrib/python and programs in tests
lint=(clang-format clang-tidy libomp-dev) # the last for clang's omp.h
# The sanitizers' libraries are called by the version of clang.
case $( (. /etc/os-release && echo "${VERSION_ID-}") 2>/dev/null) in
13) clang_rt=libclang-rt-19-dev ;;
*) clang_rt=libclang-rt-14-dev ;;
esac
clang=(clang libomp-dev $clang_rt)
qemu=(qemu-user)
site=(pandoc)
browser=(chromium chromium-driver python3-selenium)
slurm=(slurm-wlm munge python3-venv)
mpi=(libopenmpi-dev openmpi-bin)
arm64=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
debian13=(debootstrap)

for word in "$@"; do
    case $word in
    lint) packages+=("${lint[@]}") ;;
    clang) packages+=("${clang[@]}") ;;
    qemu) packages+=("${qemu[@]}") ;;
    site) packages+=("${site[@]}") ;;
    browser) packages+=("${browser[@]}") ;;
    slurm) packages+=("${slurm[@]}") ;;
    mpi) packages+=("${mpi[@]}") ;;
    arm64) packages+=("${arm64[@]}") ;;
    debian13) packages+=("${debian13[@]}") ;;
    list) printf '%s\n' "${packages[@]}" && exit ;;
    all) packages+=("${lint[@]}" "${clang[@]}" "${qemu[@]}" "${site[@]}" "${browser[@]}"
                    "${slurm[@]}" "${mpi[@]}" "${arm64[@]}" "${debian13[@]}") ;;
    *)
        echo "deps.sh: unknown word '$word'  -> lint, clang, qemu, site, browser, slurm, mpi, arm64, debian13, list, all" >&2
        exit 2
        ;;
    esac
done

if ! command -v dpkg-query >/dev/null; then
    echo "deps.sh: not a Debian system  -> install the equivalents of: ${packages[*]}" >&2
    exit 0
fi

missing=()
for p in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "deps.sh: not root and no sudo  -> as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi

echo "deps.sh: installing ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" </dev/null >>"$log" 2>&1
}
# The package lists of a fresh image are empty or old: refresh them only if they do not suffice.
if ! apt install --no-install-recommends "${missing[@]}" &&
    ! { apt update && apt install --no-install-recommends "${missing[@]}"; }; then
    tail -n 20 "$log" >&2
    echo "deps.sh: apt-get could not install ${missing[*]}  -> see above" >&2
    exit 1
fi
