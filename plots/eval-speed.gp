# SPDX-License-Identifier: MIT
# Time per predicted token against attention length. Kind 0: y seconds, low..high; below it, row 1,
# how much slower the sliding window is: kind 1 in time, 2 in useful FLOP, 3 as published.
# How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Time per predicted token"
load here."style.gp"
x_title = "attention length (tokens of past)"
y_title = "ms per token"
y_titles = "ms per token|slowdown of the window"
log_y = 1
set logscale y
y_scale = 1e3
load here."lines.gp"
if (has_kind(2)) { key_form = "thin"; key_name = "slowdown in arithmetic alone"; eval add_key }
lower = ', for [s = 0:n_series - 1] data using (xs(s, 1)):"y"' \
    .' with linespoints lc rgb colour(s + 1) dt dashes(s + 1) lw 1.6 pt marker(s + 1) ps 0.8' \
    .', for [s = 0:n_series - 1] data using (xs(s, 2)):"y"' \
    .' with lines lc rgb colour(s + 1) dt 1 lw 0.6' \
    .', for [s = 0:n_series - 1] data using (xs(s, 3)):"y"' \
    .' with linespoints pt marker(s + 1) ps 1.2 lw 1.2 dt dashes(s + 1) lc rgb colour(s + 1)'
draw = draw.lower
if (!dumb) { panel_w = n_columns > 1 ? 420 : 700; panel_h = 330 }
load here."panels.gp"
