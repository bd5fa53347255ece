# SPDX-License-Identifier: MIT
# Perplexity against time per token. x us, y perplexity, label the memory length; kind 0 all points,
# kind 1 again those that no other point beats in both. With named=1 labels are the names of series,
# so that there is no legend. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Perplexity against time per token"
load here."style.gp"
x_title = "time per token (us)"
y_title = "perplexity"
log_y = 1
if (exists("named")) { do for [i = 1:n_series] { listed[i] = 0 } }
set logscale y
y_scale = 1
load here."lines.gp"
draw = "plot ".lines \
    .', for [s = 0:n_series - 1] data using (xs(s, 1)):"y"' \
    .' with points pt 6 ps 2 lw 1.2 lc rgb 0x444444' \
    .', for [s = 0:n_series - 1] data using (xs(s, 0)):"y":(strcol("label"))' \
    .' with labels offset 0, 0.9 tc rgb 0x333333'
load here."panels.gp"
