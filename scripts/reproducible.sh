#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# reproducible.sh [CC]: build the last commit twice, in two folders, and compare the programs byte by
# byte. Without a compiler cache, which would give the first build's objects to the second.
set -eu
export LC_ALL=C CCACHE_DISABLE=1
unset MAKEFLAGS MAKELEVEL
cd "$(dirname "$0")/.."
cc=${1:-gcc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

git -c safe.directory='*' clone -q --no-hardlinks . "$work/a"
git clone -q --no-hardlinks "$work/a" "$work/another/folder"
for folder in "$work/a" "$work/another/folder"; do
    make -s -C "$folder" CC="$cc" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    sha256sum <"$folder/bench"
done
if ! cmp "$work/a/bench" "$work/another/folder/bench"; then
    echo "two builds of one commit differ  -> diffoscope says where; nothing may depend on path or time" >&2
    exit 1
fi
echo "two builds of $(git -C "$work/a" rev-parse --short=7 HEAD) are the same"
