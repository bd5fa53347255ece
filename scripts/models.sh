#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# models.sh [DIR [VARIANT...]]: train one small model of every base variant, or of those named, on
# the default source, with the defaults of `bench train` and its seed, into DIR (results/models).
# The same commit and threads give the same files. A minute or two a variant.
set -eu
cd "$(dirname "$0")/.."
make

dir=${1:-results/models}
steps=3000 # 6.1 million symbols: enough for those that can see the lag
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$dir"
[ $# -eq 0 ] || shift
if [ $# -eq 0 ]; then
    mapfile -t names < <(./bench list cases --variant base --backend ref --workload attn --seq 1 \
        --mem 0 --format csv --columns variant | tail -n +2)
    set -- "${names[@]}"
fi
for v in "$@"; do
    ./bench train --variant "$v" --steps "$steps" --eval-every 200 --ckpt "$work/$v.safetensors"
    mv "$work/$v.safetensors.best" "$dir/$v.safetensors"
done
