# SPDX-License-Identifier: MIT
# Memory by part, a stacked bar a row, a block of bars a shape. x number of the bar in its block, low
# and high where the part begins and ends (bytes), label of the bar. By hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Memory by part"
load here."style.gp"
array bars[n_rows]
array first[n_rows] # lines above the block
do for [i = 1:n_rows] { bars[i] = 0 }
most(i, x) = x > bars[i] ? x : bars[i]
label_longest = 0
longer(s) = strlen(s) > label_longest ? strlen(s) : label_longest
stats data using (bars[int(column("row")) + 1] = most(int(column("row")) + 1, column("x") + 1), label_longest = longer(strcol("label")), 0) nooutput
stats data using "high" name "all" nooutput
lines_above = 0
do for [i = 1:n_rows] { first[i] = lines_above + 1; lines_above = lines_above + bars[i] + 2 }
unit = all_max >= 2**30 ? 2**30 : all_max >= 2**20 ? 2**20 : 2**10
unit_name = unit == 2**30 ? "GiB" : unit == 2**20 ? "MiB" : "KiB"
left = (label_longest + 2) * cw
legend_kind = "box"
page_w = dumb ? term_width : left + 640
page_height(head) = head + (lines_above + 3.4) * ch
load here."page.gp"
set lmargin at screen left / page_w
set rmargin at screen 1 - 2.0 * cw / page_w
set tmargin at screen 1 - head_h / page_h
set bmargin at screen 3.4 * ch / page_h
bar_max = all_max / unit * 1.02
set xrange [0:bar_max]
set yrange [lines_above:0] # downwards
unset ytics
set grid noytics
set border 1
set xlabel "arena (".unit_name.")"
line(row, x) = first[int(row) + 1] + x + 0.5
at_line = '(line(column("row"), column("x")))'
do for [i = 1:n_rows] {
    set label 500 + i panel[i] at graph 0, first first[i] - 0.5 left offset 0.5, 0 font small
}
draw = 'plot for [s = 0:n_series - 1] data' \
    .' using (column("index") == s ? column("low") / unit : NaN):' \
    .at_line.':(column("low") / unit):(column("high") / unit):('.at_line.' - 0.36):(' \
    .at_line.' + 0.36) with boxxyerror fc rgb colour(s + 1)' \
    .' fs solid 1.0 border rgb 0x444444 lw 0.5'
# In a terminal a part is its number, as often as it is wide.
columns = page_w - left - 3
cell(bytes) = int(bytes / unit / bar_max * columns + 0.5)
again(text, n) = n < 1 ? "" : n == 1 ? text : again(text, n / 2).again(text, n - n / 2)
digits = 'plot for [s = 0:n_series - 1] data' \
    .' using (column("index") == s ? column("low") / unit : NaN):'.at_line \
    .':(again(sprintf("%d", (s + 1) % 10), cell(column("high")) - cell(column("low")))) with labels left'
names = ', data using (column("low") == 0 ? 0 : NaN):'.at_line.':(strcol("label")." ")' \
    .' with labels right offset -0.5, 0 font small'
eval (dumb ? digits : draw).names
unset multiplot
unset output
