#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# study_figures.sh BENCH TABLES: a figure of each task's training curves, TABLES/TASK.svg, from
# TABLES/curves.csv.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
bench=$(realpath "$1")
cd "$2"
if ! command -v gnuplot >/dev/null; then
    echo "left out: curves as figures: no gnuplot" >&2
    exit
fi
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# A model is called by its variant, perhaps with -CHOICE, and its seed.
awk -F, -v work="$work" '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    {
        split($at["checkpoint"], part, "/")
        file = work "/" $at["checkpoint"] ".train.csv"
        variant = part[2]
        sub("[.]seed[0-9]*[.]safetensors$", "", variant)
        sub("-.*", "", variant)
        if (!made[part[1]]++) system("mkdir " work "/" part[1])
        if (!begun[file]++)
            print "schema,variant,backend,threads,step,tokens,loss_nats,bits_per_token,grad_norm,lr,tokens_per_s,valid_nats,valid_floor_nats" >file
        print "bench-train/2.0," variant ",,," $at["step"] "," $at["tokens"] "," $at["train_nats"] ",,,,," \
            $at["valid_nats"] "," $at["valid_floor_nats"] >file
    }' curves.csv

describe() { # TASK
    awk -F, -v task="$1" '
    FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["task"] == task {
        print task ": " $at["layers"] " layers of width " $at["d_model"] ", segments of " $at["seq_tokens"] \
            ", " $at["tokens"] " tokens"
        exit
    }' books.csv gates.csv copy.csv
}

for folder in "$work"/*/; do
    task=$(basename "$folder")
    [ "$task" != long ] || continue # it is in that of `longer`
    "$bench" plot "$folder" --figure training -q --format csv </dev/null >/dev/null
    gnuplot -d -e "data='$folder/plots/training.csv'; out='$task.svg'; here='$top/plots/';
        title='Training'; what='$(describe "$task")'" "$top/plots/training.gp" 2>"$work/said" ||
        { echo "$task.svg: $(tail -n 1 "$work/said")" >&2; exit 1; }
done
