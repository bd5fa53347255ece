#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# install.sh install BENCH | uninstall: put the program, its manual page, completion for bash, zsh and
# fish, and the files that it reads at run time (figures, report, sweeps, studies, shipped models) below
# $DESTDIR$PREFIX (PREFIX: /usr/local), or remove them. The program finds share/bench from its own
# place, so the folder may move as a whole.
set -eu
what=${1:-}
bench=${2:+$(realpath "$2")}
cd "$(dirname "$0")/.."
root=${DESTDIR-}${PREFIX:-/usr/local}
data=$root/share/bench
man=$root/share/man/man1/bench.1
bash=$root/share/bash-completion/completions/bench
zsh=$root/share/zsh/site-functions/_bench
fish=$root/share/fish/vendor_completions.d/bench.fish

case $what in
install)
    [ -n "$bench" ] || { echo "install.sh: no program  -> install.sh install build/release/bench" >&2; exit 2; }
    install -D -m 755 "$bench" "$root/bin/bench"
    ! command -v strip >/dev/null || strip --strip-debug "$root/bin/bench" # nine tenths of its size
    install -d -m 755 "$(dirname "$man")" "$(dirname "$bash")" "$(dirname "$zsh")" "$(dirname "$fish")"
    "$bench" help man >"$man"
    "$bench" completion bash >"$bash"
    "$bench" completion zsh >"$zsh"
    "$bench" completion fish >"$fish"
    chmod 644 "$man" "$bash" "$zsh" "$fish"
    for file in plots/* harness/sweeps/*.args harness/studies/*.study results/models/*.safetensors; do
        install -D -m 644 "$file" "$data/$file"
    done
    echo "installed $root/bin/bench"
    ;;
uninstall)
    rm -f "$root/bin/bench" "$man" "$bash" "$zsh" "$fish"
    rm -rf "$data"
    ;;
*)
    echo "install.sh: what?  -> install BENCH, or uninstall" >&2
    exit 2
    ;;
esac
