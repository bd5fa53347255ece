# SPDX-License-Identifier: MIT
# Perplexity against the arena. x bytes, y perplexity, label the memory length; kind 0 all points,
# kind 1 again those that no other point beats in both. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Perplexity against memory"
load here."style.gp"
x_title = "arena (MiB)"
y_title = "perplexity"
log_y = 1
set logscale y
x_of(x) = x / 2.0**20
load here."labels.gp"
load here."panels.gp"
