# SPDX-License-Identifier: MIT
# Latency against context length. x tokens, y ns with its interval low..high.
# How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Latency against context length"
load here."style.gp"
x_title = "context (tokens)"
y_title = "time (ms)"
log_y = 1
set logscale y
stats data using (column("x")) nooutput
if (STATS_min > 0) {
    eval doubling_x
    set autoscale xfix
    set offsets graph 0.06, graph 0.06, 0, 0
}
y_scale = 1e-6
load here."lines.gp"
load here."panels.gp"
