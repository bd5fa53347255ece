# SPDX-License-Identifier: MIT
# Points of any origin, for figures that are none of the program's. Kind 0: y over x with a bar from low to
# high, joined in order of x; kind 1: small points. x_title, y_title; log_x=1: x in powers of two, else x_step
# between ticks; free_y=1: each panel has its own scale. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Points"
load here."style.gp"
if (!exists("log_x")) log_x = 0
log_y = 0
if (log_x) { eval doubling_x }
if (exists("x_step")) { set xtics x_step }
stats data using (column("kind") == 0 ? column("low") : NaN) name "whisker" nooutput
whiskers = exists("whisker_records") ? whisker_records > 0 : 0
if (whiskers) { key_form = "bar"; key_name = bar_name; eval add_key }
if (has_kind(1)) { key_form = "points"; key_name = point_name; eval add_key }
set offsets graph 0.03, graph 0.03, 0, 0
draw = 'plot for [s = 0:n_series - 1] data using (xs(s, 1)):"y" with points lc rgb colour(s + 1) pt marker(s + 1) ps 0.3' \
    .(whiskers ? ', for [s = 0:n_series - 1] data using (xs(s, 0)):"low":(0):(column("high") - column("low")) with vectors nohead lc rgb colour(s + 1) lw 1' : '') \
    .', for [s = 0:n_series - 1] data using (xs(s, 0)):"y" with linespoints lc rgb colour(s + 1) dt dashes(s + 1) lw 1.6 pt marker(s + 1) ps 0.8'
load here."panels.gp"
