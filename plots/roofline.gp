# SPDX-License-Identifier: MIT
# Roofline. Kind 0: x FLOP/byte, y GFLOP/s, a point a row; kind 1: y a ceiling in GFLOP/s; kind 2: y a
# bandwidth in GB/s. The ceilings stand in every panel. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Roofline"
load here."style.gp"
x_title = "FLOP / byte moved at least"
y_title = "GFLOP/s"
log_y = 0
set logscale xy
do for [i = 1:n_series] { if (style[i] >= 1000) { listed[i] = 0 } }
stats data using (column("kind") == 1 ? column("y") : NaN) name "peak" nooutput
stats data using (column("kind") == 2 ? column("y") : NaN) name "read" nooutput
# The ceilings stand alone where nothing was measured below them: then these are 1 and the peak.
stats data using (column("kind") == 0 ? column("x") : 1) name "met" nooutput
stats data using (column("kind") == 0 ? column("y") : peak_max) name "reached" nooutput
array ceiling[n_series]
array label_x[n_series]
do for [i = 1:n_series] { ceiling[i] = NaN }
stats data using (column("kind") > 0 ? (ceiling[int(column("index")) + 1] = column("y"), 0) : NaN) nooutput
y_low = reached_min / 3 < peak_max / 100 ? reached_min / 3 : peak_max / 100
y_high = peak_max * 2
x_low = met_min < y_low / read_max ? met_min / 2 : y_low / read_max
x_high = met_max > 512 ? met_max * 2 : 1024
own_yrange = 1
set xrange [x_low:x_high]
set yrange [y_low:y_high]
is_flops(i) = style[i] >= 1000 && style[i] < 1003
is_read(i) = style[i] >= 1003
roof(i, x) = is_flops(i) ? (x * read_max >= ceiling[i] ? ceiling[i] : NaN) : is_read(i) ? (x * ceiling[i] <= peak_max ? x * ceiling[i] : NaN) : NaN
roof_dash(i) = is_flops(i) ? 1 : 2
# The names of the ceilings, each further along than the one before: they may lie close together.
at_x(i) = x_high * (x_low / x_high)**(0.02 + 0.22 * (1002 - style[i]))
at_y(i) = y_low * (peak_max / y_low)**(0.12 + 0.2 * (1006 - style[i]))
prepare = 'slant = 180 / pi * atan2(inner_h / log(y_high / y_low), ' \
    .'inner_w / log(x_high / x_low)); ' \
    .'do for [i = 1:n_series] { if (is_flops(i)) { set label 200 + i sprintf("%s %.0f", ' \
    .'name[i], ceiling[i]) at at_x(i), ceiling[i] right offset 0, 0.5 tc rgb 0x555555' \
    .' font small }; ' \
    .'if (is_read(i)) { set label 200 + i sprintf("%s %.0f GB/s", name[i], ' \
    .'ceiling[i]) at at_y(i) / ceiling[i], at_y(i)' \
    .' left offset dumb ? 4 : 0.4, dumb ? 0 : -0.6 rotate by slant tc rgb 0x555555 font small front } }'
set samples 500
draw = 'plot for [i = 1:n_series] roof(i, x) with lines lc rgb 0x777777 lw 1 dt roof_dash(i)' \
    .', for [s = 0:n_series - 1] data using (xs(s, 0)):"y"' \
    .' with points lc rgb colour(style[s + 1]) pt marker(style[s + 1]) ps 0.9'
panel_w = n_columns > 1 ? 440 : 620
panel_h = 330
load here."panels.gp"
