# SPDX-License-Identifier: MIT
# Loss after each budget. x tokens, y the mean over seeds with its interval low..high. How to run it by
# hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Loss after each budget"
load here."style.gp"
x_title = "tokens trained on"
if (!exists("y_title")) y_title = "test loss (nats per token)"
log_y = 0
free_y = 1
set logscale x 2
set xtics nomirror (" 1" 1)
do for [p = 1:9] { set xtics add (sprintf(" %d", 2**p) 2**p) }
do for [p = 10:19] { set xtics add (sprintf(" %dKi", 2**(p - 10)) 2**p) }
do for [p = 20:30] { set xtics add (sprintf(" %dMi", 2**(p - 20)) 2**p) }
set autoscale xfix
set offsets graph 0.06, graph 0.06, 0, 0
y_scale = 1
load here."lines.gp"
load here."panels.gp"
