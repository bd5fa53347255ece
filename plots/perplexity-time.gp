# SPDX-License-Identifier: MIT
# Perplexity against time per token. x us, y perplexity, label the memory length; kind 0 all points,
# kind 1 again those that no other point beats in both. Where labels are
# the names of series there is no legend. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Perplexity against time per token"
load here."style.gp"
x_title = "time per token (us)"
if (!exists("y_title")) y_title = "perplexity"
log_y = 1
set logscale y
x_of(x) = x
load here."labels.gp"
load here."panels.gp"
