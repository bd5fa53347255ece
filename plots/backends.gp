# SPDX-License-Identifier: MIT
# Backends beside each other, a panel a shape. x number of the group (a variant), y time / time of the
# base with its interval low..high, label of the group. The base itself, 1 everywhere, is no bar. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Backends, time relative to the base"
load here."style.gp"
stats data using "x" name "group" nooutput
n_groups = int(group_max) + 1
x_title = ""
base = -1
do for [s = 0:n_series - 1] { if (strstrt(name[s + 1], " (base)") > 0) { base = s } }
if (n_series == 1) { base = -1 }
y_title = "time / time of ".(base < 0 ? "the base" : substr(name[base + 1], 1, strstrt(name[base + 1], " (base)") - 1))
if (base >= 0) { listed[base + 1] = 0 }
n_bars = base < 0 ? n_series : n_series - 1
log_y = 1
one_y = 1
legend_kind = "box"
key_form = "bar"; key_name = "95 % interval"; eval add_key
set logscale y
wide = 0.84 / n_bars
centre(x, s) = x + (s - (base >= 0 && s > base) - 0.5 * (n_bars - 1)) * wide
set xrange [-0.5:n_groups - 0.5]
set grid noxtics
unset xtics
# One label for each group of a panel: that of its first bar.
seen = ""
is_first(x) = strstrt(seen, sprintf(" %d ", x)) ? 0 : (seen = seen.sprintf(" %d ", x), 1)
names = ', data using (column("row") == r && column("column") == c && is_first(column("x")) ? column("x") : NaN):(y_from):(strcol("label")) with labels offset 0, '.(dumb ? "-1" : "-0.8")
prepare = 'seen = ""; set style line 1 lc rgb 0x444444 lw 1'
is(s) = column("row") == r && column("column") == c && column("index") == s && s != base
draw = 'plot for [s = 0:n_series - 1] data using (is(s) ? centre(column("x"), s) : NaN):"y"' \
    .':(centre(column("x"), s) - wide / 2):(centre(column("x"), s) + wide / 2):(1):"y"' \
    .' with boxxyerror fc rgb colour(s + 1) fs solid 1.0 border rgb 0x444444 lw 0.5' \
    .', for [s = 0:n_series - 1] data using (is(s) && column("y") == 1 ? centre(column("x"), s) - wide / 2 : NaN):(1):(wide):(0)' \
    .' with vectors nohead lc rgb colour(s + 1) lw 4' \
    .', for [s = 0:n_series - 1] data using (is(s) ? centre(column("x"), s) : NaN):"low":(0)' \
    .':(column("high") - column("low"))' \
    .' with vectors nohead lc rgb 0x000000 lw 1.2, 1 ls 1'.names
# In a terminal a bar is a column of its number, from 1 to its end.
row_y(k) = y_from * (y_to / y_from)**(k / 15.0)
covers(y, k) = (log(row_y(k)) - log(y)) * log(row_y(k)) <= 0 || abs(log(row_y(k) / y)) < log(y_to / y_from) / 30
if (dumb) {
    draw = 'plot for [s = 0:n_series - 1] for [k = 0:15] data using (is(s) && covers(column("y"), k) ? centre(column("x"), s) : NaN):(row_y(k)):(sprintf("%d", s + 1)) with labels'.names
}
label_longest = 0
stats data using (label_longest = strlen(strcol("label")) > label_longest ? strlen(strcol("label")) : label_longest, 0) nooutput
group_w = n_bars * 10 + 18 > label_longest * cw + 8 ? n_bars * 10 + 18 : label_longest * cw + 8
panel_w = n_groups * group_w + 10 * cw > 330 ? n_groups * group_w + 10 * cw : 330
panel_h = 250
load here."panels.gp"
