# SPDX-License-Identifier: MIT
# Perplexity against context length. x tokens, y perplexity with its interval low..high, z the floor
# of a generated text. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Perplexity against context length"
load here."style.gp"
x_title = "context (tokens)"
y_title = "perplexity"
log_y = 1
set logscale y
load here."lines.gp"
stats data using "z" name "floor" nooutput
if (exists("floor_records")) { key_form = "dotted"; key_name = "the true source"; eval add_key }
draw = draw \
    .', for [s = 0:n_series - 1] data using (xs(s, 0)):(column("z"))' \
    .' with lines lc rgb 0x444444 dt 3 lw 1.2'
load here."panels.gp"
