# SPDX-License-Identifier: MIT
# Backends beside each other, a panel a shape. x number of the group (a variant), y time / time of the
# base with its interval low..high, label of the group. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Backends, time relative to the base"
load here."style.gp"
stats data using "x" name "group" nooutput
label_longest = 0
n_groups = int(group_max) + 1
x_title = ""
y_title = "time / time of the base"
log_y = 1
legend_kind = "box"
set logscale y
wide = 0.84 / n_series
centre(x, s) = x + (s - 0.5 * (n_series - 1)) * wide
set xrange [-0.5:n_groups - 0.5]
set grid noxtics
unset xtics
is_base(unused) = column("row") == r && column("column") == c && strstrt(strcol("series"), " (base)") > 0
is(s) = column("row") == r && column("column") == c && column("index") == s
draw = 'plot for [s = 0:n_series - 1] data using (is(s) ? centre(column("x"), s) : NaN):"y"' \
    .':(centre(column("x"), s) - wide / 2):(centre(column("x"), s) + wide / 2):(1):"y"' \
    .' with boxxyerror fc rgb colour(style[s + 1]) fs solid 1.0 border rgb 0x444444 lw 0.5' \
    .', for [s = 0:n_series - 1] data using (is(s) ? centre(column("x"), s) : NaN):"low":(0)' \
    .':(column("high") - column("low"))' \
    .' with vectors nohead lc rgb 0x000000 lw 1.2, 1 lc rgb 0x444444 lw 1' \
    .', data using (is_base(0) ? column("x") : NaN):(y_from):(strcol("label"))' \
    .' with labels offset 0, -0.8'
if (dumb) { draw = 'plot for [s = 0:n_series - 1] data using (is(s) ? centre(column("x"), s) : NaN):"y":(sprintf("%d", s + 1)) with labels, 1, data using (is_base(0) ? column("x") : NaN):(y_from):(strcol("label")) with labels offset 0, -1' }
ticks = 'set ytics (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 20, 50, ' \
    .'100, 200)'
stats data using (label_longest = strlen(strcol("label")) > label_longest ? strlen(strcol("label")) : label_longest, 0) nooutput
group_w = n_series * 10 + 18 > label_longest * cw + 8 ? n_series * 10 + 18 : label_longest * cw + 8
panel_w = n_groups * group_w + 10 * cw > 330 ? n_groups * group_w + 10 * cw : 330
panel_h = 250
load here."panels.gp"
