# SPDX-License-Identifier: MIT
# The samples of a case in the order in which they were taken, a panel a case. x number from 1, y ns of a
# call: kind 0 undisturbed, 1 preempted; kind 2: from end to end the median and its interval
# low..high. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Samples"
load here."style.gp"
x_title = "block"
y_title = "time (ms)"
log_y = 0
free_y = 1
y_scale = 1e-6
do for [i = 1:n_series] { listed[i] = 0 } # the panel says it
key_form = "points"; key_name = "sample"; eval add_key
if (has_kind(1)) { key_form = "cross"; key_name = "preempted"; eval add_key }
key_form = "line"; key_name = "median"; eval add_key
key_form = "band"; key_name = "its 95 % interval"; eval add_key
band = 'for [s = 0:n_series - 1] data using (xs(s, 2)):(column("low") * y_scale):(column("high") * y_scale)' \
    .' with filledcurves fc rgb 0xDDDDDD fs solid 1.0 noborder, '
draw = 'plot '.(dumb ? "" : band) \
    .'for [s = 0:n_series - 1] data using (xs(s, 2)):(column("y") * y_scale)' \
    .' with lines lc rgb 0x444444 lw 1.2' \
    .', for [s = 0:n_series - 1] data using (xs(s, 0)):(column("y") * y_scale)' \
    .' with points lc rgb colour(s + 1) pt 7 ps 0.5' \
    .', for [s = 0:n_series - 1] data using (xs(s, 1)):(column("y") * y_scale)' \
    .' with points lc rgb colour(s + 1) pt 2 ps 0.6'
# (stats obeys ranges.)
prepare = 'set autoscale; ' \
    .'stats data using (column("row") == r && column("column") == c && column("kind") == 2 ? column("x") : NaN) name "block" nooutput; ' \
    .'set xrange [0.5:block_max]; every = block_max > 10 ? nice(block_max / 10.0) : 1; set xtics every; set yrange [y_from:y_to]'
load here."panels.gp"
