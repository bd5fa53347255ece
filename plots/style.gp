# SPDX-License-Identifier: MIT
# What all figures share: the table's form, colours, markers, dashes, sizes and the legend.
#
# Every script reads one CSV table, `data`, and draws it into `out` (.svg, .png, or "" for the
# terminal, `term_width` characters wide):
#
#   bench plot RUN --format csv -o tables
#   gnuplot -e "data='tables/latency-seq.csv'; out='latency-seq.svg'" plots/latency-seq.gp
#
# `here` is the folder of the scripts, plots/ where it is not said. Columns of the table:
#   row, column     place of the panel, from 0          panel   its title
#   index, series   number and name of the series       style   its place in the program's list of
#   dash            0 for the first of its style, 1 ..          variants (backends, parts)
#   kind            what the row means; each script says x, y, low, high, z, label   likewise

if (!exists("data")) { printerr "no table  -> gnuplot -e \"data='x.csv'; out='x.svg'\" SCRIPT"; exit status 2 }
if (!exists("out")) out = ""
dumb = out eq ""
png = strlen(out) > 4 && out[strlen(out) - 3:] eq ".png"

set datafile separator comma
set datafile columnheaders
set encoding utf8

# Okabe and Ito's colours without the yellow, which white paper swallows, and grey. Eight colours,
# nine markers and five dashes: no two of the first 360 styles look the same, in colour or without.
array colours[8] = [0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7, 0xE69F00, 0x56B4E9, 0x000000, 0x7F7F7F]
array markers[9] = [7, 5, 9, 13, 11, 6, 4, 8, 12]
# From 1000 on: what is no series of the program, such as published numbers.
colour(i) = i >= 1000 ? 0x000000 : colours[int(i) % 8 + 1]
marker(i) = dumb ? 1 + int(i) % 26 : i >= 1000 ? 3 : markers[int(i) % 9 + 1]
dashes(i, k) = 1 + (int(i) + int(k)) % 5

small = png ? ",8" : ",11"
# Sizes are in pixels; in a terminal in characters.
cw = dumb ? 1.0 : 7.2
ch = dumb ? 1.0 : 17.0

stats data using "row" name "rows" nooutput
stats data using "column" name "columns" nooutput
stats data using "index" name "series" nooutput
n_rows = int(rows_max) + 1
n_columns = int(columns_max) + 1
n_series = int(series_max) + 1

array name[n_series]
array style[n_series]
array dash[n_series]
array listed[n_series] # named in the legend
do for [i = 1:n_series] { name[i] = ""; style[i] = 0; dash[i] = 0; listed[i] = 1 }
learn(i) = (name[i] = strcol("series"), style[i] = column("style"), dash[i] = column("dash"), 0)
stats data using (learn(int(column("index")) + 1)) nooutput

array panel[n_rows * n_columns]
array filled[n_rows * n_columns]
do for [i = 1:|panel|] { panel[i] = ""; filled[i] = 0 }
place(unused) = int(column("row")) * n_columns + int(column("column")) + 1
stats data using (panel[place(0)] = strcol("panel"), filled[place(0)] = 1, 0) nooutput

# The row belongs to the panel and series that are being drawn, and means `k`.
here_is(s, k) = column("row") == r && column("column") == c && column("index") == s && column("kind") == k
xs(s, k) = here_is(s, k) ? column("x") : NaN

# open_page(width, height) as a macro: sets the terminal.
open_page = 'if (dumb) { set terminal dumb' \
    .' size page_w, page_h noenhanced } else { if (png) { set terminal pngcairo' \
    .' size page_w, page_h noenhanced' \
    .' font "DejaVu Sans,9" background "white" } else { set terminal svg' \
    .' size page_w, page_h noenhanced rounded' \
    .' font "DejaVu Sans,Verdana,sans-serif,12" background "white" } }; ' \
    .'if (!dumb) { set output out }'

# The legend and the title above the panels: legend_h is their height.
longest = 0
do for [i = 1:n_series] { if (strlen(name[i]) > longest) { longest = strlen(name[i]) } }
entry_w = (longest + 8) * cw
legend_prepare = 'n_listed = 0; do for [i = 1:n_series] { n_listed = n_listed + listed[i] }; ' \
    .'per_line = int((page_w - 2 * cw) / entry_w); if (per_line < 1) { per_line = 1 }; ' \
    .'legend_h = (1.8 + ceil(1.0 * n_listed / per_line)) * ch'
legend_kind = "line"
legend_draw = 'load here."legend.gp"'
if (!exists("here")) here = "plots/"

set border 3 lc rgb 0x666666
set tics nomirror out scale 0.5
if (!dumb) { set grid back lc rgb 0xDDDDDD lt 1 lw 0.5 }
unset key
