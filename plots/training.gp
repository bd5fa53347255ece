# SPDX-License-Identifier: MIT
# Training curves. x steps, y nats per token: kind 0 training, 1 validation, 2 the true source's
# loss on the validation text. The first losses, far above the others, are cut off. How to run it by
# hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Training"
load here."style.gp"
x_title = "optimiser steps"
y_title = "loss (nats per token)"
log_y = 0
if (has_kind(0)) { key_form = "line"; key_name = "training"; eval add_key }
if (has_kind(1)) { key_form = "points"; key_name = "validation"; eval add_key }
if (has_kind(2)) { key_form = "dotted"; key_name = "validation, the true source"; eval add_key }
stats data using "x" name "steps" nooutput
stats data using "y" name "loss" nooutput
stats data using (column("x") >= 0.1 * steps_max ? column("y") : NaN) name "later" nooutput
y_from = loss_min - 0.06 * (later_max - loss_min)
y_to = later_max + 0.12 * (later_max - loss_min)
if (y_to <= y_from) { y_to = loss_max + 0.1 * abs(loss_max); y_from = loss_min - 0.1 * abs(loss_min) }
# Marks of the first step are whole.
room = steps_max > steps_min ? 0.02 * (steps_max - steps_min) : 1
set xrange [steps_min - room:steps_max + room]
own_yrange = 1
set yrange [y_from:y_to]
draw = 'plot for [s = 0:n_series - 1] data using (xs(s, 0)):"y"' \
    .' with lines lc rgb colour(s + 1) dt dashes(s + 1) lw 1.6' \
    .', for [s = 0:n_series - 1] data using (xs(s, 1)):"y"' \
    .' with points lc rgb colour(s + 1) pt marker(s + 1) ps 0.9' \
    .', for [s = 0:n_series - 1] data using (xs(s, 2)):"y"' \
    .' with lines lc rgb 0x444444 dt 3 lw 1.2'
if (!dumb) { panel_w = 700; panel_h = 380 }
load here."panels.gp"
