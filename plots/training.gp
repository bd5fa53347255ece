# SPDX-License-Identifier: MIT
# Training curves. x steps, y the loss, low..high the least and the most of the seeds of a study: kind 0
# training, 1 validation, 2 the true source's loss on the validation text. The first losses, far above
# the others, are cut off. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Training"
load here."style.gp"
x_title = "optimiser steps"
if (!exists("y_title")) y_title = "loss (nats per token)"
log_y = 0
if (has_kind(0)) { key_form = "line"; key_name = "training"; eval add_key }
if (has_kind(1)) { key_form = "points"; key_name = "validation"; eval add_key }
if (has_kind(2)) { key_form = "dotted"; key_name = "validation, the true source"; eval add_key }
stats data using (column("high") > column("low") ? 1 : NaN) name "band" nooutput
seeds = exists("band_records") # several
if (seeds) { key_form = "band"; key_name = "least to most of the seeds"; eval add_key }
free_y = 1
own_yrange = 1
# Marks of the first step are whole. (stats obeys ranges.)
here_of(what, k) = column("row") == r && column("column") == c && (k < 0 || column("kind") == k) ? column(what) : NaN
prepare = 'set autoscale; undefine later_*; ' \
    .'stats data using (here_of("x", -1)) name "steps" nooutput; ' \
    .'stats data using (here_of("y", -1)) name "loss" nooutput; ' \
    .'stats data using (column("x") >= 0.1 * steps_max ? here_of("y", -1) : NaN) name "later" nooutput; ' \
    .'y_from = loss_min - 0.06 * (later_max - loss_min); y_to = later_max + 0.12 * (later_max - loss_min); ' \
    .'if (y_to <= y_from) { y_to = loss_max + 0.1 * abs(loss_max); y_from = loss_min - 0.1 * abs(loss_min) }; ' \
    .'room = steps_max > steps_min ? 0.02 * (steps_max - steps_min) : 1; ' \
    .'set xrange [steps_min - room:steps_max + room]; set yrange [y_from:y_to]; ' \
    .'every = steps_max > steps_min ? (steps_max - steps_min < 8 ? 1 : nice((steps_max - steps_min) / 6)) : 1; set xtics every'
bands = seeds && !dumb && n_series <= 8 ? 'for [s = 0:n_series - 1] data using (xs(s, 0)):"low":"high"' \
    .' with filledcurves fc rgb colour(s + 1) fs transparent solid 0.2 noborder, ' : ''
whiskers = seeds && !dumb ? ', for [s = 0:n_series - 1] data using (xs(s, 1)):"low":(0):(column("high") - column("low"))' \
    .' with vectors nohead lc rgb colour(s + 1) lw 1.2' : ''
draw = 'plot '.bands.'for [s = 0:n_series - 1] data using (xs(s, 0)):"y"' \
    .' with lines lc rgb colour(s + 1) dt dashes(s + 1) lw 1.6' \
    .', for [s = 0:n_series - 1] data using (xs(s, 1)):"y"' \
    .' with points lc rgb colour(s + 1) pt marker(s + 1) ps 0.9' \
    .', for [s = 0:n_series - 1] data using (xs(s, 2)):"y"' \
    .' with lines lc rgb 0x444444 dt 3 lw 1.2'.whiskers
if (!dumb && n_rows * n_columns == 1) { panel_w = 700; panel_h = 380 }
load here."panels.gp"
