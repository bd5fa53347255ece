#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# install.sh install BENCH [LIBRARY] | uninstall: put the program, its manual page, completion for bash, zsh
# and fish, and the files that it reads at run time (figures, report, sweeps, studies, shipped models) below
# $DESTDIR$PREFIX (PREFIX: /usr/local), or remove them; with the library its header, its file for
# pkg-config and its Python package. Program and library find what they need from their own places, so the folder may
# move as a whole.
set -eu
what=${1:-}
bench=${2:+$(realpath "$2")}
library=${3:+$(realpath "$3")}
cd "$(dirname "$0")/.."
root=${DESTDIR-}${PREFIX:-/usr/local}
data=$root/share/bench
man=$root/share/man/man1/bench.1
bash=$root/share/bash-completion/completions/bench
zsh=$root/share/zsh/site-functions/_bench
fish=$root/share/fish/vendor_completions.d/bench.fish
include=$root/include
shared=$root/lib/libbenchattn.so # a link to the version
package=$root/lib/pkgconfig/benchattn.pc
python=$root/share/benchattn

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
    if [ -n "$library" ]; then
        name=$(basename "$library")
        install -D -m 644 "$library" "$root/lib/$name"
        ! command -v strip >/dev/null || strip --strip-unneeded "$root/lib/$name"
        ln -sf "$name" "$shared"
        install -d -m 755 "$include"
        install -m 644 variants/backends/library/bench{attn,kernel}.h "$include"
        for file in contrib/python/benchattn{,_adapters}/*.py; do
            install -D -m 644 "$file" "$python/${file#contrib/python/}"
        done
        version=$("$bench" --version | sed -nE '1s/^bench ([^ ]+).*/\1/p')
        install -d -m 755 "$(dirname "$package")"
        sed "s/@VERSION@/$version/" variants/backends/library/benchattn.pc.in >"$package"
        chmod 644 "$package"
        echo "installed $root/lib/$name"
    fi
    ;;
uninstall)
    rm -f "$root/bin/bench" "$man" "$bash" "$zsh" "$fish" "$include"/bench{attn,kernel}.h "$shared" "$shared".[0-9]* "$package"
    rm -rf "$data" "$python"
    ;;
*)
    echo "install.sh: what?  -> install BENCH [LIBRARY], or uninstall" >&2
    exit 2
    ;;
esac
