#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# deb.sh [BENCH [DIR]]: a Debian package of this program (build/release/bench, which make builds) in DIR
# (build/release). The libraries that it needs are found by
# dpkg-shlibdeps. The package is called bench-attention: Debian has another `bench`, whose program has
# the same name, so the two exclude each other.
set -eu
top=$(realpath "$(dirname "$0")/..")
bench=$(realpath "${1:-$top/build/release/bench}")
out=$(realpath "${2:-$top/build/release}")
cd "$top"
name="bench-attention"
version=$("$bench" --version | sed -nE '1s/^bench ([^ ]+).*/\1/p')
arch=$(dpkg --print-architecture)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
root=$tree/root
umask 022

mkdir -p "$root/DEBIAN" "$root/usr/share/doc/$name" "$tree/debian"
DESTDIR=$root PREFIX=/usr scripts/install.sh install "$bench" >/dev/null
strip --strip-unneeded "$root/usr/bin/bench"
gzip -9n "$root/usr/share/man/man1/bench.1"
cp LICENSE "$root/usr/share/doc/$name/copyright"
printf 'Source: %s\n\nPackage: %s\nArchitecture: any\n' "$name" "$name" >"$tree/debian/control"
depends=$(cd "$tree" && dpkg-shlibdeps -O root/usr/bin/bench 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
depends=${depends/libopenblas0/libopenblas0-openmp} # the build that it was linked with

cat >"$root/DEBIAN/control" <<END
Package: $name
Version: $version
Architecture: $arch
Maintainer: ${DEBEMAIL:-the authors of bench <root@localhost>}
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: $depends
Recommends: gnuplot-nox
Suggests: valgrind
Conflicts: bench
Section: science
Priority: optional
Description: compare attention variants on CPUs
 Runs published variants of transformer attention on CPUs and measures what
 each costs and what it buys: time, memory and perplexity, side by side.
 Every result is compared with a reference before it is timed.
END
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
package=$out/${name}_${version}_$arch.deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
