# SPDX-License-Identifier: MIT
# Quality against cost, a panel a cost. x microseconds a token, or KiB in a panel whose name begins with
# "state"; y bits, low..high their interval; a series a family; kind 0 all points, kind 1 again those that
# no other point beats in both. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Quality against time and state"
load here."style.gp"
if (!exists("y_title")) y_title = "test loss (bits per token)"
x_title = ""
log_y = 0
one_y = 1
joined = 0
legend_kind = "points"
x_of(x) = log10(x) # the axis is linear, its ticks are powers of ten
load here."labels.gp"
is_state(text) = strstrt(text, "state") == 1
# Steps of ten microseconds, or of 16 KiB.
step_of(state) = state ? log10(16) : 1
word_of(d, state) = state ? (d < 0 ? sprintf("%g KiB", 16.0**d) : sprintf(d < 3 ? "%.0f KiB" : "%.0f MiB", 16.0**d / (d < 3 ? 1 : 1024))) \
    : d < 3 ? sprintf("%g us", 10.0**d) : d < 6 ? sprintf("%.0f ms", 10.0**(d - 3)) : sprintf("%.0f s", 10.0**(d - 6))
place_names = prepare
prepare = place_names.'; state = is_state(panel[r * n_columns + c + 1]); ' \
    .'set xlabel (state ? "state of the context" : "time per token") offset 0, dumb ? 0 : 0.4; ' \
    .'unset xtics; set xtics nomirror (" " x_from - 1); every = 1 + int((x_to - x_from) * 6 * cw / inner_w); ' \
    .'do for [d = -9:12:every] { at = d * step_of(state); if (at >= x_from && at <= x_to) { set xtics add (word_of(d, state) at) } }'
single = n_rows * n_columns == 1
if (!dumb) { panel_w = single ? 860 : 500; panel_h = single ? 460 : 370 }
load here."panels.gp"
