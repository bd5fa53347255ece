# SPDX-License-Identifier: MIT
# Speed-up over threads, and below it the efficiency, speed-up / threads. x threads; kind 0 measured,
# low..high, z the serial fraction of Amdahl's law, kind 1 that law's curve. How to run it by hand:
# style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Speed-up over threads"
load here."style.gp"
x_title = "threads"
y_title = "speed-up"
y_titles = "speed-up|efficiency"
log_y = 0
slopes = 1
slope_name = "serial fraction"
stats data using "x" name "threads" nooutput
set xrange [0.9:threads_max * 1.04]
if (threads_max <= 16) { set xtics 1 }
load here."lines.gp"
if (has_kind(1)) { key_form = "thin"; key_name = "Amdahl's law, fitted"; eval add_key }
key_form = "dotted"; key_name = "ideal"; eval add_key
ideal = ', (r % 2 == 0 ? x : 1) with lines lc rgb 0x444444 dt 3 lw 1.2'
fit = ', for [s = 0:n_series - 1] data using (xs(s, 1)):"y" with lines lc rgb colour(s + 1) dt 1 lw 0.6'
draw = draw.(dumb ? "" : fit.ideal)
panel_h = 240
load here."panels.gp"
