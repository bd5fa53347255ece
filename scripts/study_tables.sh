#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# study_tables.sh BENCH WORK TABLES: the last part of study.sh. From runs.csv, perplexity.csv, the
# curves and the .cmd files of the folder WORK it writes books.csv, gates.csv, copy.csv, curves.csv,
# a figure of each task's curves and README.md into TABLES. The text of that README below "What
# follows from it" is written by hand and kept.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/scripts/study_common.sh"
bench=$1
tables=$(realpath -m "$3")
cd "$2"
shopt -s nullglob

# Markdown: mean of VALUE over seeds, with (min..max) if there are several, / BESIDE if given.
pivot() { # FILE TASK ROW COLUMN ONLY=N VALUE [BESIDE]
    awk -F, -v task="$2" -v row="$3" -v column="$4" -v only="${5%=*}" -v n="${5#*=}" -v value="$6" \
        -v beside="${7:-}" '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["task"] != task || $at[only] != n { next }
    {
        r = $at[row]; c = $at[column] + 0; v = $at[value] + 0; k = r SUBSEP c
        if (!(r in seen_row)) { seen_row[r] = 1; rows[++n_rows] = r }
        if (!(c in seen_col)) {
            seen_col[c] = 1
            for (i = ++n_cols; i > 1 && cols[i - 1] > c; i--) cols[i] = cols[i - 1]
            cols[i] = c
        }
        if (!count[k]++ || v < low[k]) low[k] = v
        if (count[k] == 1 || v > high[k]) high[k] = v
        sum[k] += v
        if (beside != "") extra[k] = $at[beside]
    }
    END {
        line = "| " row " |"; rule = "|---|"
        for (j = 1; j <= n_cols; j++) { line = line " " cols[j] " |"; rule = rule "---|" }
        print line; print rule
        for (i = 1; i <= n_rows; i++) {
            line = "| " rows[i] " |"
            for (j = 1; j <= n_cols; j++) {
                k = rows[i] SUBSEP cols[j]
                cell = count[k] ? sprintf("%.3f", sum[k] / count[k]) : ""
                if (count[k] > 1) cell = cell sprintf(" (%.3f..%.3f)", low[k], high[k])
                if (extra[k] != "") cell = cell sprintf(" / %.3f", extra[k])
                line = line " " cell " |"
            }
            print line
        }
    }' "$1"
}

models_table() { # TASK
    echo "| variant | gate | layers | d_model | d_inner | parameters | tokens seen | runs |"
    echo "|---|---|---|---|---|---|---|---|"
    awk "$csv_awk"'
    NR == 1 { header($0, at); next }
    {
        fields($0, f)
        if (f[at["task"]] != task) next
        line = sprintf("| %s | %s | %d | %d | %d | %d | %d |", f[at["variant"]], f[at["gate"]],
            f[at["layers"]], f[at["d_model"]], f[at["d_inner"]], f[at["params"]], f[at["tokens"]])
        if (!runs[line]++) order[++n] = line
    }
    END { for (i = 1; i <= n; i++) print order[i] " " runs[order[i]] " |" }' task="$1" runs.csv
}

commands() { # TASK...
    local task
    echo '```'
    for task in "$@"; do
        cat "$task"/*.safetensors.cmd "$task"/*.safetensors.{mem,seq,window,whole}.csv.cmd
    done
    echo '```'
}

scored() { # FILE TASK: bytes or symbols scored, the maximum of its rows
    awk -F, -v task="$2" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["task"] == task && $at["tokens_scored"] + 0 > n { n = $at["tokens_scored"] }
        END { print n + 0 }' "$tables/$1"
}

# Curves of trainings: the rows with a validation.
join_curves() {
    local files=(*/*.safetensors.train.csv)
    awk -F, 'BEGIN { print "checkpoint,step,tokens,train_nats,valid_nats,valid_floor_nats" }
        FNR == 1 {
            for (i = 1; i <= NF; i++) at[$i] = i
            checkpoint = FILENAME
            sub(/[.]train[.]csv$/, "", checkpoint)
            next
        }
        $at["valid_nats"] != "" {
            print checkpoint "," $at["step"] "," $at["tokens"] "," $at["loss_nats"] "," $at["valid_nats"] "," \
                $at["valid_floor_nats"]
        }' "${files[@]}"
}

curve_figure() { # TASK
    [ ! -f "$tables/$1.svg" ] || echo "
![training curves]($1.svg)"
}

trained() { grep -q "^$1," runs.csv; }

# Method and caveats, separate from the tables.
prose_head() {
    cat <<END
# A study of the variants as language models

Written by \`scripts/study.sh tables\` from the tables beside it; only what stands below the heading
"What follows from it" is written by hand and kept. Programs that trained:
$(awk "$csv_awk"'NR == 1 { header($0, at); next }
    { fields($0, f); print f[at["version"]] ", " f[at["backend"]] ", " f[at["threads"]] " threads" }' \
    runs.csv | sort -u | sed 's/^/* /')

**Equal.** Within a table, every model has the same layers, width and heads, the same number of
parameters within 1 % (the feed-forward layer makes up for what positions and gates take), sees the
same tokens in the same order, in batches of 16 segments of 128, and has the same optimiser and
learning rate: AdamW without decay, gradients clipped to 0.25, a short linear warm-up, a cosine to a
tenth. No dropout. The last state is scored, not the best one, so that all have seen as much.

**Not equal.** Variants with memory carry it from segment to segment while they train; where the past
is recomputed, training never looks beyond its segment. Equal parameters are not equal time: neither
arithmetic nor speed is the same, and no time of this study is a measurement of speed.

**Careful.** Seeds change the first weights and nothing else, so that a range says how much luck there
is in them, not how much the text matters. One run has no range: a difference smaller than the
ranges seen elsewhere says nothing. One learning rate for all favours whom it happens to suit. The
models are small and see less text than they could use; nothing here says who wins at a larger
scale. Bits per byte are on books by authors who are not in the training text.
END
}

books_section() {
    cat <<END

## Books

Ten novels to train on, one for validation, one to score: its first $(scored books.csv books) bytes. Bits per byte,
mean over runs (least..most).

$(models_table books)

By tokens of past at evaluation, in segments of 128; trained with a memory of 128:

$(pivot "$tables/books.csv" books variant mem_tokens seq_tokens=128 bits_per_unit)

By segment length at evaluation, with 256 tokens of past:

$(pivot "$tables/books.csv" books variant seq_tokens mem_tokens=256 bits_per_unit)

In segments of 32 by tokens of past: 96 and a segment are 128, as many as a model that is run anew for
every segment has seen at once while it learned. Beyond that its positions mean nothing to it.

$(pivot "$tables/books.csv" books variant mem_tokens seq_tokens=32 bits_per_unit)
$(curve_figure books)

$(commands books)
END
}

gates_section() {
    cat <<END

## Gates

The residual gates of one variant, on the same books. Bits per byte by tokens of past, segments of 128:

$(models_table gates)

$(pivot "$tables/gates.csv" gates gate mem_tokens seq_tokens=128 bits_per_unit)
$(curve_figure gates)

$(commands gates)
END
}

copy_section() { # LAG
    cat <<END

### $1 symbols back

$(models_table "copy$1")

$(pivot "$tables/copy.csv" "copy$1" variant mem_tokens seq_tokens=128 ppl ppl_floor)
$(curve_figure "copy$1")

$(commands "copy$1")
END
}

copy_intro() {
    cat <<END

## Copying

Each symbol repeats the one a known number of symbols back with probability 0.9 and is else one of 16
at random. Perplexity / the least that anybody can reach who sees so much, by tokens of past, in
segments of 128; trained with a memory as long as the distance. Distances beyond the clip of Shaw's
tables (16) look alike to it. A model that only trains inside a segment cannot learn what lies
beyond it.
END
}

long_section() {
    cat <<END

## A larger model

Bits per byte of the same novel, of its first bytes and of all, by tokens of past (segments of 128)
and by segment length (256 tokens of past). Its learning rates are its own: it is not to be compared
run by run with those above. Its second row goes on from the first where that had ended (copies of
its files, \`--resume\`), along a cosine of its own; that one is scored.

$(models_table long)
$(models_table longer | tail -n +3)

$(pivot "$tables/books.csv" longer tokens_scored mem_tokens seq_tokens=128 bits_per_unit)

$(pivot "$tables/books.csv" longer tokens_scored seq_tokens mem_tokens=256 bits_per_unit)
$(curve_figure longer)

$(commands long longer)
END
}

readme() {
    local task
    prose_head
    ! trained books || books_section
    ! trained gates || gates_section
    ! trained 'copy[0-9]*' || copy_intro
    while read -r task; do copy_section "${task#copy}"; done < <(cut -d, -f1 runs.csv |
        grep '^copy' | sort -u -V)
    ! trained longer || long_section
    echo
    if [ -f "$tables/README.md" ]; then
        sed -n '/^## What follows from it/,$p' "$tables/README.md"
    else
        echo "## What follows from it"
    fi
}

mkdir -p "$tables"
join_scores >new.csv
awk -F, 'NR == 1 || $1 == "books" || $1 ~ /^long/' new.csv >"$tables/books.csv"
awk -F, 'NR == 1 || $1 == "gates"' new.csv >"$tables/gates.csv"
awk -F, 'NR == 1 || $1 ~ /^copy/' new.csv >"$tables/copy.csv"
rm new.csv
join_curves >"$tables/curves.csv"
"$top/scripts/study_figures.sh" "$bench" "$tables"
readme >new.md
mv new.md "$tables/README.md"
echo "wrote $tables/{books,gates,copy,curves}.csv, figures and README.md"

