# SPDX-License-Identifier: MIT
# Quality against cost, both as differences from a baseline. Kind 0: x ratio of times, x / z .. x * z
# its interval, y difference in nats, low..high its interval, label what it is; a series a verdict.
# Kind 2: low..high the noise floor. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Quality against time, differences from the baseline or the control"
load here."style.gp"
x_title = "training time per token / that of the baseline or control"
y_title = "difference of test loss (nats)"
log_y = 0
legend_kind = "points"
free_y = 1
by_factor = 1
x_of(x) = x
if (has_kind(2)) { key_form = "band"; key_name = "noise floor"; eval add_key }
load here."labels.gp"
place_names = prepare
prepare = place_names.'; set arrow 150 from graph 0, first 0 to graph 1, first 0 nohead lc rgb 0x777777 lw 1; ' \
    .'set arrow 151 from first 1, graph 0 to first 1, graph 1 nohead lc rgb 0x777777 lw 1'
band = 'data using (column("row") == r && column("column") == c && column("kind") == 2 ? (x_from + x_to) / 2 : NaN)' \
    .':"y":(x_from):(x_to):"low":"high" with boxxyerror fc rgb 0xE4E4E4 fs solid 1.0 noborder, '
points = 'for [s = 0:n_series - 1] data using (xs(s, 0)):"y":(column("x") / column("z")):(column("x") * column("z")):"low":"high"' \
    .' with xyerrorbars lc rgb colour(s + 1) pt marker(s + 1) ps 0.9 lw 1.2' \
    .', for [s = 0:n_series - 1] data using (xs(s, 0)):"y" with points lc rgb colour(s + 1) pt marker(s + 1) ps 0.9'
draw = 'plot '.(dumb ? "" : band).points
if (!dumb) { panel_w = n_columns == 1 ? 700 : 440; panel_h = n_columns == 1 ? 420 : 280 }
load here."panels.gp"
