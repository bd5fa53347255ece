# SPDX-License-Identifier: MIT
# Training curves. x steps, y nats per token: kind 0 training, 1 validation, 2 the true source's
# loss on the validation text. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Training"
load here."style.gp"
x_title = "optimiser steps"
y_title = "loss (nats per token)"
log_y = 0
y_scale = 1
load here."lines.gp"
lines = 'for [s = 0:n_series - 1] data using (xs(s, 0)):"y"' \
    .' with lines lc rgb colour(style[s + 1]) dt dashes(style[s + 1], dash[s + 1]) lw 1.6'
draw = "plot ".lines \
    .', for [s = 0:n_series - 1] data using (xs(s, 1)):"y"' \
    .' with points lc rgb colour(style[s + 1]) pt marker(style[s + 1]) ps 0.9' \
    .', for [s = 0:n_series - 1] data using (xs(s, 2)):"y"' \
    .' with lines lc rgb 0x444444 dt 3 lw 1.2'
if (!dumb) { panel_w = 700; panel_h = 380 }
load here."panels.gp"
