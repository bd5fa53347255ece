#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# corpus.sh [enwik8|text8|wikitext103|all]...: fetch the standard texts for language models and
# write NAME.train, NAME.valid and NAME.test to corpora/ (CORPUS_DIR). Existing files are kept.
#
# enwik8 and text8 are 10^8 bytes each, split by position: nine tenths, a twentieth, a twentieth.
# WikiText-103 comes split; its raw form is used, as bytes. Archives are verified by SHA-256; one that
# does not match is discarded. CORPUS_URL=file:///some/folder (or http...) is a folder to fetch the
# archives from instead of their public sites; CORPUS_SHA256 is then the checksum of an archive that
# is packed differently.
set -eu

die() { echo "corpus.sh: $*" >&2; exit 1; }

top=$(cd "$(dirname "$0")/.." && pwd)
dir=${CORPUS_DIR:-$top/corpora}

# Archive, its site, its checksum.
describe() {
    case $1 in
    enwik8) archive=enwik8.zip home=http://mattmahoney.net/dc
        sha256=547994d9980ebed1288380d652999f38a14fe291a6247c157c3d33d4932534bc ;;
    text8) archive=text8.zip home=http://mattmahoney.net/dc
        sha256=a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232 ;;
    wikitext103) archive=wikitext-103-raw-v1.zip
        home=https://s3.amazonaws.com/research.metamind.io/wikitext
        sha256=91c00ae287f0d699e18605c84afc9e45c192bc6b7797ff8837e5474655a33794 ;;
    *) echo "corpus.sh: unknown text '$1'  -> enwik8, text8, wikitext103 or all" >&2
        exit 2 ;;
    esac
    home=${CORPUS_URL:-$home}
    sha256=${CORPUS_SHA256:-$sha256}
}

fetch() { # into $work
    curl --fail --silent --show-error --location --output "$work/$archive" "$home/$archive" ||
        die "cannot fetch $home/$archive  -> try again, or CORPUS_URL=URL of a folder that has it"
    local got
    got=$(sha256sum <"$work/$archive")
    got=${got%% *}
    [ "$got" = "$sha256" ] ||
        die "$archive has SHA-256 $got, not $sha256; nothing was kept  -> fetch it from" \
            "elsewhere: CORPUS_URL=URL"
    unzip -q -o "$work/$archive" -d "$work" || die "cannot unpack $archive"
}

split_bytes() { # TEXT NAME
    local size train valid
    [ -f "$1" ] || die "$archive holds no $(basename "$1")"
    size=$(stat -c %s "$1")
    train=$((size * 9 / 10)) valid=$((size / 20))
    head -c "$train" "$1" >"$work/$2.train"
    tail -c +$((train + 1)) "$1" | head -c "$valid" >"$work/$2.valid"
    tail -c +$((train + valid + 1)) "$1" >"$work/$2.test"
}

get() { # NAME
    local part
    describe "$1"
    if [ -f "$dir/$1.train" ] && [ -f "$dir/$1.valid" ] && [ -f "$dir/$1.test" ]; then
        echo "$dir/$1.{train,valid,test}: already here"
        return
    fi
    echo "corpus.sh: fetching $home/$archive" >&2
    fetch
    case $1 in
    wikitext103)
        for part in train valid test; do
            mv "$work/wikitext-103-raw/wiki.$part.raw" "$work/$1.$part" ||
                die "$archive holds no wiki.$part.raw"
        done ;;
    *) split_bytes "$work/$1" "$1" ;;
    esac
    for part in test valid train; do # train last: all three, or fetched again
        mv "$work/$1.$part" "$dir/$1.$part"
    done
    echo "$dir/$1.{train,valid,test}: bench train --corpus $1.train --valid $1.valid"
}

for tool in curl unzip sha256sum; do
    command -v "$tool" >/dev/null || die "needs $tool  -> apt-get install curl unzip"
done
names=()
for name in "${@:-enwik8}"; do
    case $name in
    all) names+=(enwik8 text8 wikitext103) ;;
    *) names+=("$name") ;;
    esac
done
for name in "${names[@]}"; do describe "$name"; done
mkdir -p "$dir"
work=$(mktemp -d "$dir/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
for name in "${names[@]}"; do get "$name"; done
