#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# variants_tables.sh WORK TABLES: the last part of variants.sh. From the tables of the folder WORK it
# writes models.csv, books.csv, copy.csv, speed.csv, machine.csv and figures into TABLES/variants, and
# TABLES/variants.md from these. The text of that page below "What follows from it" is
# written by hand and kept.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/scripts/study_common.sh"
page=$(realpath -m "$2/variants.md")
tables=$(realpath -m "$2/variants")
cd "$1"
shopt -s nullglob

# ---- tables ----------------------------------------------------------------------------------

# For each variant: its sizes on either task, and what was unequal or failed.
models_csv() {
    local file
    for file in */*.why; do
        [ ! -s "$file" ] || echo "$file,\"not trained: $(tr -d '"' <"$file")\""
    done >whys.csv
    awk "$csv_awk"'
    function note(v, text) {
        gsub("\"", "", text)
        if (text != "" && !((v, text) in noted)) {
            noted[v, text] = 1
            notes[v] = notes[v] (notes[v] != "" ? "; " : "") text
        }
    }
    FILENAME == "whys.csv" {
        fields($0, f)
        v = f[1]
        sub(".*/", "", v)
        sub("[.]seed.*", "", v)
        note(v, f[2])
        next
    }
    FNR == 1 { split("", at); header($0, at); next }
    { fields($0, f) }
    FILENAME == "list.csv" { order[++n] = f[at["variant"]]; memory[order[n]] = f[at["memory"]]; next }
    FILENAME ~ /sizes.csv$/ { note(f[1], f[2]); next }
    FILENAME == "runs.csv" {
        k = f[at["variant"]] SUBSEP f[at["task"]]
        size[k] = f[at["params"]] "," f[at["d_inner"]] "," f[at["steps"]] "," f[at["tokens"]]
        trained[f[at["variant"]]] = 1
        next
    }
    f[at["status"]] != "ok" { # one word suffices
        v = f[at["variant"]]
        k = v SUBSEP FILENAME
        sub("  -> .*", "", f[at["status_detail"]])
        if (!said[k]++)
            note(v, f[at["workload"]] " M=" f[at["mem_tokens"]] ": " f[at["status_detail"]])
    }
    END {
        print "variant,memory,params,d_inner,steps,tokens," \
            "copy_params,copy_d_inner,copy_steps,copy_tokens,remarks"
        for (i = 1; i <= n; i++) {
            v = order[i]
            if (!(v in trained) && notes[v] == "") note(v, "not run yet")
            line = v "," memory[v]
            for (j = 1; j <= 2; j++) {
                k = v SUBSEP (j == 1 ? "books" : "copy")
                line = line "," (k in size ? size[k] : ",,,")
            }
            print line ",\"" notes[v] "\""
        }
    }' whys.csv list.csv ./*.sizes.csv runs.csv perplexity.csv latency.csv
    rm whys.csv
}

# Time per token, the minimum of the rounds' medians because other load only adds to it, and their
# range; and bytes, which do not change from round to round.
speed_csv() {
    awk "$csv_awk"'
    function key() {
        return f[at["variant"]] "," f[at["backend"]] "," f[at["workload"]] "," \
            f[at["mem_kind"]] "," f[at["seq_tokens"]] "," f[at["mem_tokens"]]
    }
    FNR == 1 { split("", at); header($0, at); next }
    { fields($0, f) }
    f[at["status"]] != "ok" { next }
    FILENAME == "memory.csv" {
        bytes[key()] = f[at["weights_bytes"]] "," f[at["memory_state_bytes"]] "," \
            f[at["arena_peak_bytes"]]
        next
    }
    {
        k = key()
        if (!count[k]++) order[++n] = k
        ns = f[at["median_ns"]] / (f[at["seq_tokens"]] * f[at["batch_size"]])
        if (count[k] == 1 || ns < low[k]) low[k] = ns
        if (count[k] == 1 || ns > high[k]) high[k] = ns
    }
    END {
        print "variant,backend,workload,mem_kind,seq_tokens,mem_tokens,rounds,ns_per_token," \
            "slowest_ns_per_token,weights_bytes,memory_state_bytes,arena_peak_bytes"
        for (j = 1; j <= n; j++) {
            k = order[j]
            printf "%s,%d,%.1f,%.1f,%s\n", k, count[k], low[k], high[k], bytes[k]
        }
    }' memory.csv latency.csv
}

# What the times depend on, of the last sweep.
machine_csv() {
    awk "$csv_awk"'
    NR == 1 { header($0, at); next }
    { fields($0, f) }
    END {
        n = split("cpu_model isa hypervisor cores l1d_bytes l2_bytes l3_bytes compiler" \
            " compiler_flags openmp bench_version git_commit git_dirty", name, " ")
        for (i = 1; i <= n; i++) {
            names = names (i > 1 ? "," : "") name[i]
            gsub("\"", "", f[at[name[i]]])
            values = values (i > 1 ? "," : "") "\"" f[at[name[i]]] "\""
        }
        print names "\n" values
    }' env.csv
}

# ---- the page --------------------------------------------------------------------------------

# The numbers of the page's tables, for awk: about(task, mem, v) and the same without a range,
# mean(task, mem, v), us[workload, mem, v] and kib[mem, v], as text, "" if there is none.
# shellcheck disable=SC2016
cells_awk="$csv_awk"'
function mean(task, mem, v,   k) {
    k = task SUBSEP mem SUBSEP v
    return n_seeds[k] ? sprintf("%.3f", sum[k] / n_seeds[k]) : ""
}
function about(task, mem, v,   k) {
    k = task SUBSEP mem SUBSEP v
    return mean(task, mem, v) (n_seeds[k] > 1 ? sprintf(" (%.3f..%.3f)", low[k], high[k]) : "")
}
function digits(x) { return sprintf(x == 0 ? "%d" : x < 10 ? "%.2f" : x < 100 ? "%.1f" : "%.0f", x) }
FNR == 1 { split("", at); header($0, at); next }
{ fields($0, f); v = f[at["variant"]] }
FILENAME ~ /models.csv$/ {
    names[++n_names] = v
    params[v] = f[at["params"]]
    remarks[v] = f[at["remarks"]]
    next
}
FILENAME ~ /speed.csv$/ {
    us[f[at["workload"]], f[at["mem_tokens"]], v] = digits(f[at["ns_per_token"]] / 1000)
    if (f[at["workload"]] == "decode") {
        kib[f[at["mem_tokens"]], v] = digits(f[at["memory_state_bytes"]] / 1024)
        kind[v] = f[at["mem_kind"]]
    }
    next
}
FILENAME ~ /(books|copy).csv$/ {
    k = f[at["task"]] SUBSEP f[at["mem_tokens"]] SUBSEP v
    y = f[at[f[at["task"]] == "books" ? "bits_per_unit" : "ppl"]] + 0
    if (!n_seeds[k]++ || y < low[k]) low[k] = y
    if (n_seeds[k] == 1 || y > high[k]) high[k] = y
    sum[k] += y
}'
small=(models speed books copy)

main_table() {
    echo "| variant | parameters | books, bits per byte, M=0 | M=128 | M=512 | copy, ppl, M=0 | M=128 | \
segment, us per token, M=128 | M=512 | M=2048 | decode, us per token, M=128 | M=512 | M=2048 | \
state, KiB, M=128 | M=2048 | past |"
    echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    awk "$cells_awk"'
    END {
        for (i = 1; i <= n_names; i++) {
            v = names[i]
            line = "| " v " | " params[v]
            for (m = 0; m <= 512; m += m ? 384 : 128) line = line " | " about("books", m, v)
            for (m = 0; m <= 128; m += 128) line = line " | " about("copy", m, v)
            for (m = 128; m <= 2048; m *= 4) line = line " | " us["segment", m, v]
            for (m = 128; m <= 2048; m *= 4) line = line " | " us["decode", m, v]
            print line " | " kib[128, v] " | " kib[2048, v] " | " kind[v] " |"
        }
        for (i = 1; i <= n_names; i++) {
            text = remarks[names[i]]
            if (text == "") continue
            if (!(text in said)) order[++n] = text
            said[text] = said[text] (said[text] != "" ? ", " : "") names[i]
        }
        for (i = 1; i <= n; i++) print (i == 1 ? "\n" : "") "* " said[order[i]] ": " order[i]
    }' "${small[@]/%/.csv}"
}

# Of variants_claims.txt, VARIANT|BESIDE|CLAIM: a published claim about a variant, and its base.
claims_table() {
    echo "| published | variant / beside | bits per byte, M=0 | M=128 | M=512 | copy, ppl, M=128 | \
segment, us, M=512 | decode, us, M=2048 | state, KiB, M=2048 |"
    echo "|---|---|---|---|---|---|---|---|---|"
    awk "$cells_awk"'
    END {
        while ((getline line <claims) > 0) {
            split(line, c, "|")
            if (!(c[1] in params) || !(c[2] in params)) continue
            text = "| " c[3] " | " c[1] " / " c[2] " | "
            for (m = 0; m <= 512; m += m ? 384 : 128)
                text = text mean("books", m, c[1]) " / " mean("books", m, c[2]) " | "
            text = text mean("copy", 128, c[1]) " / " mean("copy", 128, c[2]) " | "
            text = text us["segment", 512, c[1]] " / " us["segment", 512, c[2]] " | "
            text = text us["decode", 2048, c[1]] " / " us["decode", 2048, c[2]] " | "
            print text kib[2048, c[1]] " / " kib[2048, c[2]] " |"
        }
    }' claims="$top/scripts/variants_claims.txt" "${small[@]/%/.csv}"
}

value() { # FILE COLUMN: the last one in it
    awk -v name="$2" "$csv_awk"'NR == 1 { header($0, at); next } { fields($0, f) }
        f[at[name]] != "" { x = f[at[name]] }
        END { print x }' "$1"
}

# How much slower the slowest round is than the fastest, at most, in all but a tenth of the rows.
rounds_spread() {
    awk "$csv_awk"'NR == 1 { header($0, at); next }
        { fields($0, f)
          print f[at["slowest_ns_per_token"]] / f[at["ns_per_token"]] - 1 }' \
        speed.csv | sort -g | awk '{ x[NR] = $1 } END { printf "%.0f %%", 100 * x[int(0.9 * NR + 0.5)] }'
}

floor() { # MEM: least perplexity of the copied text
    awk -v mem="$1" "$csv_awk"'NR == 1 { header($0, at); next }
        { fields($0, f); if (f[at["mem_tokens"]] == mem) x = f[at["ppl_floor"]] }
        END { printf "%.3f", x }' copy.csv
}

intro() {
    cat <<END
# What every variant costs and what it buys

Written by \`scripts/variants.sh tables\` from the tables in [variants](variants); only what stands below
the heading "What follows from it" is written by hand and kept.

**Equal.** Two layers of width 64, 4 heads. Every model has the same number of parameters within 1 %
(the feed-forward layer makes up for what all else takes), unless a remark says otherwise, and has seen
the same tokens in the same order: $(value models.csv tokens) bytes of novels ($(value models.csv steps) \
steps of 16 segments of 128, with a memory
of 128 where the variant has one), or $(value models.csv copy_tokens) symbols of which each repeats the one \
96 back with
probability 0.9. AdamW without decay, gradients clipped to 0.25, a short linear warm-up to 0.003, a
cosine to a tenth; no dropout. The last state is scored.

**Columns.** M is how many tokens of past precede a segment of 128. Bits per byte are on a novel
by an author who is not in the training text; the copied text has a floor of perplexity \
$(floor 0) with M=0 and
$(floor 128) with M=128. Where there are several seeds, the mean (least..most). Times are those of
one token of the model that learned the books, on one thread, backend $(value speed.csv backend): in \
segments of 128, and token by
token; the fastest of $(value speed.csv rounds) rounds over all variants, because what else a machine does only \
adds; the slowest
round takes at most $(rounds_spread) more in nine rows of ten. State is
what is kept of the past when tokens come one by one; a window that is run anew keeps nothing but the
tokens. "past" says how they are reached then.

Machine: $(value machine.csv cpu_model), $(value machine.csv isa), $(value machine.csv compiler). Program: bench \
$(value machine.csv bench_version) ($(value machine.csv git_commit)).

**Careful.** Small models, little text, one learning rate, one run of most: a difference smaller than the
ranges of those with several seeds says nothing, and none of it says who wins at a larger scale.
Variants with a memory carry it while they train; where the past is recomputed, training never looks
beyond its segment. Equal parameters are not equal arithmetic: what shares weights or has few gets a
wider feed-forward layer. Tables of positions are as long as the segments that they were trained on.
END
}

picture() { # NAME WORDS
    [ ! -f "$1.svg" ] || echo "
![$2](variants/$1.svg)"
}

write_page() {
    intro
    echo "
## All of them
"
    main_table
    picture cost "perplexity per byte against time per token; ringed: nothing else is better in both"
    picture decode "time of one more token against the length of the past"
    echo "
## What was published, and these numbers

Each row sets a variant beside one that lacks its idea. M=0 is the fair column where either of the two was
trained on nothing longer than a segment.
"
    claims_table
    echo
    if [ -f "$page" ]; then
        sed -n '/^## What follows from it/,$p' "$page"
    else
        echo "## What follows from it"
    fi
}

mkdir -p "$tables"
models_csv >"$tables/models.csv"
join_scores >new.csv
for task in books copy; do
    awk -F, -v task="$task" 'NR == 1 || $1 == task' new.csv >"$tables/$task.csv"
done
rm new.csv
speed_csv >"$tables/speed.csv"
machine_csv >"$tables/machine.csv"
"$top/scripts/variants_figures.sh" "$tables"
cd "$tables"
write_page >new.md
mv new.md "$page"
echo "wrote $page and $tables/{models,books,copy,speed,machine}.csv"
