# SPDX-License-Identifier: MIT
# scripts/leaderboard.py points >points.csv && gnuplot -e "data='points.csv'; out='pareto.svg'" pareto.gp
# Bits per byte over time per token, and over the state; circles: none is better for less.
set datafile separator comma
set datafile columnheaders
set terminal svg size 1000,1500 font "sans,12" background rgb "white"
set output out
families = "full positions heads sparse compressed recurrent memory feed-forward norm architecture"
colour(i) = i == 0 ? 0x000000 : i == 1 ? 0x0072B2 : i == 2 ? 0xD55E00 : i == 3 ? 0x009E73 : i == 4 ? 0xCC79A7 : \
    i == 5 ? 0xE69F00 : i == 6 ? 0x56B4E9 : i == 7 ? 0x7F7F7F : i == 8 ? 0x8B4513 : 0x800080
base(n) = strstrt(" vanilla shaw xl gtrxl ", " ".n." ") > 0
set logscale x
set grid lc rgb 0xDDDDDD
set ylabel "bits per byte"
set key outside right top
set multiplot layout 3,1
do for [p = 0:2] {
    set title p == 0 ? "128 tokens after 2048 of context" : p == 1 ? "one token after 2048 of context" : \
        "what is kept of 2048 tokens (variants that run them again keep nothing, and are left out)"
    set xlabel p == 2 ? "KiB" : "microseconds per token"
    plot for [f = 0:9] data using (column("panel") == p && column("family") == f ? column("x") : NaN):"bits" \
            with points pt 7 ps 0.6 lc rgb colour(f) title word(families, f + 1), \
        data using (column("panel") == p && column("front") == 1 ? column("x") : NaN):"bits" with points pt 6 ps 1.3 lc rgb 0 notitle, \
        data using (column("panel") == p && (column("front") == 1 || base(strcol("variant"))) ? column("x") : NaN):"bits":"variant" \
            with labels left offset 0.8,0.5 font ",11" notitle
}
unset multiplot
