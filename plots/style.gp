# SPDX-License-Identifier: MIT
# What all figures share: the table's form, colours, markers, dashes and sizes.
#
# Every script reads one CSV table, `data`, and draws it into `out` (.svg, .png, .pdf, or "" for the
# terminal, `term_width` characters wide):
#
#   bench plot RUN --format csv -o tables
#   gnuplot -e "data='tables/latency-seq.csv'; out='latency-seq.svg'" plots/latency-seq.gp
#
# May be set too: `title`; `what` and `where`, two remarks below it; size_w and size_h, the size of
# the page in pixels of 1/96 inch; `dpi` of a .png; `here`, the folder of the scripts, else plots/.
# Columns of the table:
#   row, column             place of the panel, from 0      panel   its title
#   index, series           number and name of the series
#   colour, marker, dash    how it is drawn, from 0; -1 is black, or a star
#   kind                    what the row means; each script says x, y, low, high, z, label likewise
#
# What all figures do in turn: this file; whatever the script wants; page.gp, which gives the page a
# size and draws title and legend; panels.gp loads it itself.

if (!exists("data")) { printerr "no table  -> gnuplot -e \"data='x.csv'; out='x.svg'\" SCRIPT"; exit status 2 }
if (!exists("here")) here = "plots/"
if (!exists("out")) out = ""
if (!exists("what")) what = ""
if (!exists("where")) where = ""
if (!exists("dpi")) dpi = 96
ends(with) = strlen(out) > strlen(with) && out[strlen(out) - strlen(with) + 1:] eq with
dumb = out eq ""
terminal = dumb ? "dumb" : ends(".png") ? "pngcairo" : ends(".pdf") ? "pdfcairo" : "svg"
sized = exists("size_w") && !dumb
# What the program tells from other failures: 3 and 4, see draw.c.
if (strstrt(" ".GPVAL_TERMINALS." ", " ".terminal." ") == 0) { printerr "no terminal ".terminal; exit status 3 }

set datafile separator comma
set datafile columnheaders
set encoding utf8

# Okabe and Ito's colours without the yellow, which white paper swallows, and grey.
array colours[8] = [0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7, 0xE69F00, 0x56B4E9, 0x000000, 0x7F7F7F]
array markers[12] = [7, 5, 9, 13, 11, 6, 4, 8, 12, 10, 15, 14]

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
array tint[n_series]
array mark[n_series]
array dash[n_series]
array listed[n_series] # named in the legend
do for [i = 1:n_series] { name[i] = ""; tint[i] = 0; mark[i] = 3; dash[i] = 1; listed[i] = 1 }
# Of series i, from 1. (A colour may not be an element of an array.)
colour(i) = tint[i]
marker(i) = mark[i]
dashes(i) = dash[i]
tint_of(i) = i < 0 ? 0x000000 : colours[int(i) % 8 + 1]
mark_of(i, m) = dumb ? 1 + (i - 1) % 26 : m < 0 ? 3 : markers[int(m) % 12 + 1]
learn(i) = (name[i] = strcol("series"), tint[i] = tint_of(column("colour")), mark[i] = mark_of(i, column("marker")), dash[i] = 1 + int(column("dash")) % 5, 0)
stats data using (learn(int(column("index")) + 1)) nooutput

array panel[n_rows * n_columns]
array filled[n_rows * n_columns]
do for [i = 1:|panel|] { panel[i] = ""; filled[i] = 0 }
place(unused) = int(column("row")) * n_columns + int(column("column")) + 1
stats data using (panel[place(0)] = strcol("panel"), filled[place(0)] = 1, 0) nooutput

# The row belongs to the panel and series that are being drawn, and means `k`.
here_is(s, k) = column("row") == r && column("column") == c && column("index") == s && column("kind") == k
xs(s, k) = here_is(s, k) ? column("x") : NaN

# What marks and lines mean besides series, listed after them; `form`: line, thin, dotted, dashes,
# points, ring, cross, band, bar. `eval add_key` reads key_form and key_name.
array key_forms[8]
array key_names[8]
n_keys = 0
add_key = 'if (!dumb) { n_keys = n_keys + 1; key_forms[n_keys] = key_form; key_names[n_keys] = key_name }'
kinds = ""
stats data using (kinds = strstrt(kinds, sprintf(" %d ", column("kind"))) ? kinds : kinds.sprintf(" %d ", column("kind")), 0) nooutput
has_kind(k) = strstrt(kinds, sprintf(" %d ", k)) > 0
legend_kind = "line"

# Lengths on a scale of twos. From version 6 on gnuplot names round numbers there, which are no lengths.
doubling_x = 'set logscale x 2; if (GPVAL_VERSION >= 6) { set xtics nomirror (" 1" 1); ' \
    .'do for [p = 1:40] { set xtics add (sprintf(" %d", 2**p) 2**p) } }'

# Ticks of a logarithmic axis: as many as have room. `span` is the room in lines of text.
array tick_sets[5] = ["1", "1 3", "1 2 5", "1 1.5 2 3 5 7", "1 1.2 1.5 2 2.5 3 4 5 6 8"]
array tick_gaps[5] = [1.0, 0.477, 0.301, 0.1249, 0.0791]
tick_set(from, to, span) = (k = 1, sum [i = 2:5] (tick_gaps[i] * span / log10(to / from) >= 1.5 ? (k = i, 0) : 0), k)
# A narrow one has ticks at equal steps, as a linear axis.
nice(x) = (d = 10.0**floor(log10(x)), x / d <= 2 ? 2 * d : x / d <= 5 ? 5 * d : 10 * d)
log_ticks = 'unset ytics; set ytics nomirror (1 1); if (log10(y_to / y_from) < 0.2) { ' \
    .'step = nice((y_to - y_from) / 8.0); do for [i = 0:20] { tick = (ceil(y_from / step) + i) * step; ' \
    .'if (tick <= y_to) { set ytics add (sprintf("%g", tick) tick) } } } else { ' \
    .'tick_words = tick_sets[tick_set(y_from, y_to, inner_h / ch)]; ' \
    .'do for [d = -9:12] { do for [t in tick_words] { tick = real(t) * 10.0**d; ' \
    .'if (tick >= y_from * 0.999 && tick <= y_to * 1.001) { set ytics add (sprintf("%g", tick) tick) } } } }'

set border 3 lc rgb 0x666666
set tics nomirror out scale 0.5
if (!dumb) { set grid back lc rgb 0xDDDDDD lt 1 lw 0.5 }
unset key
