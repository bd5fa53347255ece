# SPDX-License-Identifier: MIT
# scripts/state.py points >points.csv && gnuplot -e "data='points.csv'; out='state.svg'" state.gp
# How much of the way from blind to the floor of mqar, over the bytes of the state; bars: least and most of the seeds.
set datafile separator comma
set datafile columnheaders
set terminal svg size 860,520 font "sans,13" background rgb "white"
set output out
all = "rope window linear deltanet gla rwkv7"
colour(i) = i == 1 ? 0x000000 : i == 2 ? 0x7F7F7F : i == 3 ? 0x0072B2 : i == 4 ? 0xD55E00 : i == 5 ? 0x009E73 : 0xCC79A7
set logscale x 2
set xrange [0.7:64]
set yrange [-0.05:1.05]
set xlabel "state after 44 tokens, KiB"
set ylabel "way from blind (0) to the floor (1)"
set grid lc rgb 0xDDDDDD
set key outside right top
is(i) = strcol("series") eq word(all, i)
plot for [i = 1:6] data using (is(i) ? column("kib") : NaN):"way":"least":"most" with yerrorbars pt 7 ps 0.8 lc rgb colour(i) \
        title word(all, i), \
    for [i = 2:6] data using (is(i) ? column("kib") : NaN):"way" with lines lw 1.5 lc rgb colour(i) notitle
