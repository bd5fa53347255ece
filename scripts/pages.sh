#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# pages.sh [BENCH [FOLDER]]: write the generated parts of the pages: what the program lists, and the
# tasks of scripts/tasks.sh. FOLDER (default: this repository) gets the pages; a test compares those of
# an empty one with what is tracked.
set -eu
cd "$(dirname "$0")/.."
bench=$(realpath "${1:-bench}")
to=${2:-.}
[ -x "$bench" ] || { echo "pages.sh: $bench is no program  -> make, or name one" >&2; exit 2; }

# The lines between the marks of this name in a page become those of standard input.
put() {
    local page=$1 name=$2
    mkdir -p "$to/$(dirname "$page")"
    [ -e "$to/$page" ] || cp "$page" "$to/$page"
    awk -v begin="<!-- $name: written by scripts/pages.sh -->" '
        NR == FNR { text = text $0 "\n"; next }
        $0 == "<!-- end -->" { inside = 0 }
        !inside
        $0 == begin { inside = found = 1; printf "\n%s\n", text }
        END { exit !found }' - "$to/$page" >"$to/$page.new" ||
        { rm "$to/$page.new"; echo "pages.sh: $page has no part $name" >&2; exit 1; }
    mv "$to/$page.new" "$to/$page"
}

whole() {
    mkdir -p "$to/$(dirname "$1")"
    cat >"$to/$1.new"
    mv "$to/$1.new" "$to/$1"
}

"$bench" --version | awk 'NR == 1 { print "Version " $2 " ([changes](CHANGELOG.md)), [MIT licence](LICENSE)." }' |
    put README.md version
scripts/tasks.sh --list | sed 's/^/    /' | put README.md tasks
"$bench" list families --format jsonl | python3 -c '
import json, sys
print("| family | variants | such as | about |\n|---|---:|---|---|")
for row in map(json.loads, sys.stdin):
    names = row["variants"].split()
    print(f"""| {row["family"]} | {len(names)} | {", ".join(f"`{n}`" for n in names[:3])} | {row["about"]} |""")' |
    put README.md families
"$bench" list variants --format md --columns family,variant,alias,about,control,memory | put docs/variants.md variants
"$bench" list systems --format md | whole docs/systems.md
"$bench" list columns --format md | whole results/README.md
python3 - <<'EOF' | put results/reference/README.md provenance
import csv, glob, os
folders = {}
for path in sorted(glob.glob("results/reference/**/env.csv", recursive=True)):
    with open(path, encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            made = row["git_commit"][:7], "changed" if row["git_dirty"] == "1" else ""
            folders.setdefault(made, {})[os.path.relpath(os.path.dirname(path), "results/reference")] = None
print("| commit | | rows |\n|---|---|---|")
for (commit, changed), names in folders.items():
    print(f"| {commit} | {changed} | {', '.join(f'[{n}]({n})' for n in names)} |")
EOF
