# SPDX-License-Identifier: MIT
# Roofline. Kind 0: x FLOP/byte, y GFLOP/s, a point a row; kind 1: y a ceiling in GFLOP/s; kind 2: y a
# bandwidth in GB/s. The ceilings stand in every panel. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Roofline"
load here."style.gp"
x_title = "useful FLOP / byte of operands"
y_title = "GFLOP/s"
log_y = 0
legend_kind = dumb ? "line" : "points"
set logscale xy
array ceiling[n_series] # NaN: a series of points
array bounds[n_series]  # 1 flop/s, 2 bytes/s
do for [i = 1:n_series] { ceiling[i] = NaN; bounds[i] = 0 }
stats data using (column("kind") > 0 ? (ceiling[int(column("index")) + 1] = column("y"), bounds[int(column("index")) + 1] = int(column("kind")), 0) : NaN) nooutput
do for [i = 1:n_series] { if (bounds[i] > 0) { listed[i] = 0 } }
stats data using (column("kind") == 1 ? column("y") : NaN) name "peak" nooutput
stats data using (column("kind") == 2 ? column("y") : NaN) name "read" nooutput
# The ceilings may stand alone: then nothing was met, and these are of no use.
alone = !has_kind(0)
stats data using (alone ? 1 : column("kind") == 0 ? column("x") : NaN) name "met" nooutput
stats data using (alone ? 1 : column("kind") == 0 ? column("y") : NaN) name "reached" nooutput
# Where the lowest bandwidth meets the peak is always in sight; decades without points are not.
ridge = peak_max / read_min
y_low = alone ? peak_max / 100 : reached_min / 2.5 < peak_max / 10 ? reached_min / 2.5 : peak_max / 10
y_high = peak_max * 1.6
x_low = alone ? y_low / read_max : met_min / 2 < ridge / 3 ? met_min / 2 : ridge / 3
x_high = alone ? 1024 : met_max * 2 > ridge * 3 ? met_max * 2 : ridge * 3
own_yrange = 1
set xrange [x_low:x_high]
set yrange [y_low:y_high]
y_from = y_low
y_to = y_high
# Along a bandwidth, between where it enters the panel and where it meets the peak. Hardly in sight
# it is left out.
enters(i) = x_low * ceiling[i] > y_low ? x_low : y_low / ceiling[i]
leaves(i) = peak_max / ceiling[i]
in_sight(i) = leaves(i) > 2.5 * enters(i)
roof(i, x) = bounds[i] == 1 ? (x * read_max >= ceiling[i] ? ceiling[i] : NaN) : bounds[i] == 2 && in_sight(i) ? (x * ceiling[i] <= peak_max ? x * ceiling[i] : NaN) : NaN
roof_dash(i) = bounds[i] == 1 ? 1 : 2
# The names of the ceilings stand at their right ends, further left above one that is close; those of
# bandwidths along the start of their lines, below it, or above it where the next is close below.
close_below(i, with) = sum [j = 1:n_series] (bounds[j] == bounds[i] && ceiling[j] < ceiling[i] && ceiling[j] * with > ceiling[i])
name_x(i) = x_high * (x_low / x_high)**(close_below(i, dumb ? 2.5 : 1.4) % 2 ? 0.3 : 0.02)
name_y(i) = ceiling[i] * enters(i) * (leaves(i) / enters(i))**0.04
prepare = log_ticks.'; slant = 180 / pi * atan2(inner_h / log(y_high / y_low), ' \
    .'inner_w / log(x_high / x_low)); ' \
    .'do for [i = 1:n_series] { if (bounds[i] == 1) { set label 200 + i sprintf("%s %.0f", ' \
    .'name[i], ceiling[i]) at name_x(i), ceiling[i] right offset 0, dumb ? 1 : 0.5 tc rgb 0x555555 front' \
    .' font small }; ' \
    .'if (bounds[i] == 2 && in_sight(i)) { set label 200 + i sprintf("%s %.0f GB/s", name[i][6:], ' \
    .'ceiling[i]) at name_y(i) / ceiling[i], name_y(i)' \
    .' left offset dumb ? 4 : 0.4, dumb ? 0 : close_below(i, 1.7) ? 0.7 : -0.8 rotate by slant tc rgb 0x555555 font small front } }'
set samples 500
draw = 'plot for [i = 1:n_series] roof(i, x) with lines lc rgb 0x777777 lw 1 dt roof_dash(i)' \
    .', for [s = 0:n_series - 1] data using (xs(s, 0)):"y"' \
    .' with points lc rgb colour(s + 1) pt marker(s + 1) ps 0.9'
panel_w = n_columns > 1 ? 440 : 700
panel_h = n_columns > 1 ? 330 : 420
load here."panels.gp"
