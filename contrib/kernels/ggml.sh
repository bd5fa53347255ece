#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ggml.sh [SOURCES]: build/kernels/ggml.so, ggml's flash attention as a kernel of bench, for this CPU. SOURCES
# is a folder with ggml/CMakeLists.txt (llama.cpp, or the vendor/llama.cpp of llama-cpp-python); without it the
# sources of the PyPI package llama-cpp-python are fetched. Needs cmake and a C++ compiler; takes minutes.
#
#     contrib/kernels/ggml.sh && ./bench judge build/kernels/ggml.so
set -eu
cd "$(dirname "$0")/../.."
out=build/kernels
mkdir -p $out/ggml
for program in cmake c++ pip; do
    command -v $program >/dev/null || { echo "ggml.sh: no $program  -> install it" >&2; exit 6; }
done
sources=${1:-}
if [ -z "$sources" ]; then
    ls $out/llama_cpp_python-*.tar.gz >/dev/null 2>&1 ||
        pip download -q --no-deps --no-binary :all: -d $out llama-cpp-python
    tar -xzf $out/llama_cpp_python-*.tar.gz -C $out
    sources=$(echo $out/llama_cpp_python-*/vendor/llama.cpp)
fi
[ -e "$sources/ggml/CMakeLists.txt" ] ||
    { echo "ggml.sh: $sources has no ggml/CMakeLists.txt  -> the folder of llama.cpp" >&2; exit 7; }
[ -e "$sources/ggml/ggml.pc.in" ] || touch "$sources/ggml/ggml.pc.in" # left out of the package
cmake -S "$sources/ggml" -B $out/ggml -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON >$out/ggml.log
cmake --build $out/ggml -j"$(nproc)" --target ggml-cpu >>$out/ggml.log
release=$(sed -nE 's/^set\(GGML_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)\).*/\2/p' "$sources/ggml/CMakeLists.txt" | paste -sd.)
cc -O2 -fPIC -c contrib/kernels/ggml.c -DGGML_RELEASE="\"$release\"" -I"$sources/ggml/include" \
    -Ivariants/backends/library -o $out/ggml.o
c++ -shared -fopenmp -o $out/ggml.so $out/ggml.o $out/ggml/src/libggml-cpu.a $out/ggml/src/libggml-base.a -lm
echo "$out/ggml.so: ggml $release"
