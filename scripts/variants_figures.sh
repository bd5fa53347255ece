#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# variants_figures.sh TABLES: cost.svg and decode.svg of variants.md, from the tables of the folder
# TABLES. FIGURE names the variants of the figure of decoding.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/scripts/study_common.sh"
tables=$(realpath "$1")
decoded=${FIGURE:-vanilla xl rope gqa mqa window strided compressive talking linear aan}
points=$(mktemp)
trap 'rm -f "$points"' EXIT

# Tables of plots/style.gp. `bench plot` puts models of other widths into panels of their own; here
# equal parameters make models comparable, so that they share one. A second panel enlarges its
# crowded corner. What recomputes its past is left out: it was trained on nothing longer than a segment.
cost_points() {
    awk "$csv_awk"'
    FNR == 1 { split("", at); header($0, at); next }
    { fields($0, f); v = f[at["variant"]] }
    FILENAME ~ /models.csv$/ {
        style[v] = places++
        recomputed[v] = f[at["memory"]] == "recomputed"
        next
    }
    recomputed[v] || f[at["mem_tokens"]] != 128 { next }
    FILENAME ~ /speed.csv$/ {
        if (f[at["workload"]] == "segment")
            x[v] = f[at["ns_per_token"]] / 1000
        next
    }
    {
        if (!scored[v]++) order[++n] = v
        log_y[v] += log(f[at["ppl"]])
    }
    END {
        print "row,column,panel,index,series,colour,marker,dash,kind,x,y,low,high,z,label"
        for (i = 1; i <= n; i++) y[order[i]] = log_y[order[i]] / scored[order[i]] / log(2)
        for (i = 1; i <= n; i++) {
            v = order[i]
            if (!(v in x)) continue
            best = 1
            for (j = 1; j <= n; j++) {
                w = order[j]
                if (w in x && x[w] <= x[v] && y[w] <= y[v] && (x[w] < x[v] || y[w] < y[v])) best = 0
            }
            crowded = x[v] <= 8 && y[v] <= 2.8
            for (kind = 0; kind <= best; kind++)
                for (row = 0; row <= crowded; row++)
                    printf "%d,0,%s,%d,%s,%d,%d,0,%d,%.6g,%.6g,,,,%s\n", row,
                        row ? "its corner below left" : "books",
                        m, v, style[v] % 8, style[v] % 12, kind, x[v], y[v], crowded && !row ? "\302\240" : v # an empty label would read the next line
            m++
        }
    }' "$tables/models.csv" "$tables/speed.csv" "$tables/books.csv"
}

decode_points() {
    awk -v wanted=" $decoded " "$csv_awk"'
    BEGIN { print "row,column,panel,index,series,colour,marker,dash,kind,x,y,low,high,z,label" }
    FNR == 1 { split("", at); header($0, at); next }
    { fields($0, f); v = f[at["variant"]] }
    f[at["workload"]] == "decode" && index(wanted, " " v " ") {
        if (!(v in series)) series[v] = n++
        printf "0,0,one token at a time,%d,%s,%d,%d,%d,0,%s,%s,%s,%s,,\n", series[v], v,
            series[v] % 8, series[v] % 12, series[v] < 8 ? series[v] % 5 : (series[v] + 1) % 5,
            f[at["mem_tokens"]], f[at["ns_per_token"]], f[at["ns_per_token"]],
            f[at["slowest_ns_per_token"]]
    }' "$tables/speed.csv"
}

machine() {
    awk "$csv_awk"'
    NR == 1 { header($0, at); next }
    { fields($0, f); print f[at["cpu_model"]] ", bench " f[at["bench_version"]] " " f[at["git_commit"]] }
    ' "$tables/machine.csv"
}

figure() { # NAME SCRIPT TITLE WHAT WIDTH HEIGHT [SETTING], the points on standard input
    cat >"$points"
    rm -f "$tables/$1.svg"
    if [ "$(wc -l <"$points")" -gt 1 ] && command -v gnuplot >/dev/null; then
        # gnuplot warns if there are no intervals to draw
        gnuplot -d -e "data='$points'; out='$tables/$1.svg'; here='$top/plots/'; title='$3'; what='$4';
            where='$(machine)'; panel_w=$5; panel_h=$6; ${7:-}" "$top/plots/$2.gp" 2>"$points.said" ||
            die 1 "$1.svg: $(tail -n 1 "$points.said")"
        rm -f "$points.said"
    else
        echo "left out: $1.svg: no points, or no gnuplot" >&2
    fi
}

sizes="2 layers of width 64, 4 heads, equal parameters, 1 thread, avx512"
cost_points | figure cost perplexity-time "Bits per byte against time per token" \
    "segments of 128 after 128 tokens of novels, $sizes; without models that recompute their past" \
    900 420 "named=1; y_title='bits per byte'"
decode_points | figure decode latency-mem "Time of one more token" \
    "fastest of the rounds; $sizes" 700 400
