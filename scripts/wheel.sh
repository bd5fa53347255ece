#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# wheel.sh LIBRARY [DIR]: the Python package benchattn with this library inside, as a wheel in DIR (dist), and an sdist
# of the sources of library and package, which needs gcc and make. Nothing is uploaded. setuptools is this Python's, or what
# pip puts into a folder of its own: without either it says so.
set -eu
top=$(realpath "$(dirname "$0")/..")
[ -e "${1-}" ] || { echo "wheel.sh: no library ${1-}  -> make library; wheel.sh build/release/libbenchattn.so.1" >&2; exit 2; }
library=$(realpath "$1")
mkdir -p "${2:-$top/dist}"
out=$(realpath "${2:-$top/dist}")
python=${PYTHON:-python3}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

if ! "$python" -c 'import setuptools, wheel' 2>/dev/null; then
    "$python" -m pip install -q --disable-pip-version-check --root-user-action=ignore --target "$tree/tools" setuptools wheel >&2 || {
        echo "wheel.sh: no setuptools, and pip cannot install it  -> apt-get install python3-setuptools python3-wheel" >&2
        exit 3
    }
    export PYTHONPATH=$tree/tools
fi
mkdir "$tree/sources"
cd "$top"
cp -r contrib/wheel/. contrib/python/benchattn contrib/python/benchattn_adapters Makefile LICENSE "$tree/sources"
cp docs/library.md "$tree/sources/README.md"
mkdir "$tree/sources/variants"
cp -r variants/base variants/backends "$tree/sources/variants"
cd "$tree/sources"
rm -rf benchattn*/__pycache__
BENCHATTN=$library "$python" - "$out" >"$tree/log" 2>&1 <<'END' || { cat "$tree/log" >&2; exit 1; }
import sys
from setuptools import build_meta
to = sys.argv[1] # each replaces sys.argv
build_meta.build_sdist(to)
build_meta.build_wheel(to)
END
ls "$out"/benchattn-*
