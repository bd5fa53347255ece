# SPDX-License-Identifier: MIT
# Points with names that do not lie on each other, for figures with `y` over `x` of kind 0, label the
# name: `draw` gets them, `prepare` sets the x range of a panel and chooses a place for each name:
# beside its point, or further away with a line to it. x_of(x) is a point's place on the axis, which
# is linear. With by_factor=1 a point has an interval along x, from x / z to x * z.
# joined=0: the points of a series are not joined.
if (!exists("by_factor")) by_factor = 0
if (!exists("joined")) joined = 1
places = 40 # that are tried
array label_x[400]
array label_y[400]
array label_text[400]
array put_x[400]
array put_y[400]
array on_line_x[2000] # points on the lines between them
array on_line_y[2000]
text_w(i) = (strlen(label_text[i]) + 0.5) * (dumb ? 1.0 : 6.4)
text_h = dumb ? 1.0 : 12.0
# Place k: eight directions, in rings.
ring_of(k) = 1 + int(k) / 8
turn(k) = 2 * pi * word("2 0 6 1 3 5 7 4", int(k) % 8 + 1) / 8 + (ring_of(k) % 2 ? 0 : pi / 8)
try_x(i, k) = label_x[i] + cos(turn(k)) * ((dumb ? 1 : has_kind(1) ? 12 : 7) + text_w(i) / 2 + (ring_of(k) - 1) * 1.2 * text_h)
try_y(i, k) = label_y[i] + sin(turn(k)) * (text_h * (dumb ? 1 : has_kind(1) ? 1.2 : 0.95) + (ring_of(k) - 1) * 1.1 * text_h)
least(a, b) = a < b ? a : b
above_0(a) = a > 0 ? a : 0
# The area that two boxes share, each given by its middle, half its width and half its height.
shared(x, y, w, h, x2, y2, w2, h2) = above_0(least(x + w, x2 + w2) - (x - w > x2 - w2 ? x - w : x2 - w2)) * above_0(least(y + h, y2 + h2) - (y - h > y2 - h2 ? y - h : y2 - h2))
outside(x, y, w, h) = above_0(-(x - w)) + above_0(x + w - inner_w) + above_0(-(y - h)) + above_0(y + h - inner_h)
bad(i, x, y) = 8 * outside(x, y, text_w(i) / 2, text_h / 2) * text_h \
    + (i > 1 ? sum [j = 1:i - 1] shared(x, y, text_w(i) / 2, text_h / 2, put_x[j], put_y[j], text_w(j) / 2, text_h / 2) : 0) \
    + sum [j = 1:n_labels] shared(x, y, text_w(i) / 2, text_h / 2, label_x[j], label_y[j], 4.5, 4.5) \
    + 0.3 * (n_on_line > 0 ? sum [j = 1:n_on_line] shared(x, y, text_w(i) / 2, text_h / 2, on_line_x[j], on_line_y[j], 3, 3) : 0)
steps = 8
along(i, k) = (n_on_line < 2000 ? (n_on_line = n_on_line + 1, on_line_x[n_on_line] = label_x[i - 1] + (label_x[i] - label_x[i - 1]) * k / steps, on_line_y[n_on_line] = label_y[i - 1] + (label_y[i] - label_y[i - 1]) * k / steps) : 0, 0)
join(unused) = (joined && column("index") == last_index && n_labels <= 60 ? sum [k = 1:steps - 1] along(n_labels, k) : 0, last_index = column("index"), 0)
on_bar(k) = (n_on_line < 2000 ? (n_on_line = n_on_line + 1, on_line_x[n_on_line] = label_x[n_labels], on_line_y[n_on_line] = on_y(column("low") + (column("high") - column("low")) * k / 8.0)) : 0, 0)
on_side(k) = obstacle(on_x(x_of(column("x") * column("z")**(k / 6.0 - 1))), label_y[n_labels])
avoid_bar(unused) = (whiskers && (!log_y || column("low") > 0) && n_labels <= 60 ? sum [k = 0:8] on_bar(k) : 0, by_factor && column("z") > 1 && n_labels <= 60 ? sum [k = 0:12] (on_side(k), 0) : 0, 0)
obstacle(x, y) = (n_on_line < 2000 ? (n_on_line = n_on_line + 1, on_line_x[n_on_line] = x, on_line_y[n_on_line] = y) : 0, NaN)
keep(x, y) = (n_labels < 400 ? (n_labels = n_labels + 1, label_x[n_labels] = x, label_y[n_labels] = y, label_text[n_labels] = strcol("label")) : 0, join(0), avoid_bar(0))
on_x(x) = (x - x_from) / (x_to - x_from) * inner_w
on_y(y) = (log_y ? log(y / y_from) / log(y_to / y_from) : (y - y_from) / (y_to - y_from)) * inner_h
prepare = 'set autoscale x; set autoscale y; ' \
    .'stats data using (column("row") == r && column("column") == c && column("kind") == 0 ? x_of(column("x") / (by_factor ? column("z") : 1)) : NaN) name "x" nooutput; ' \
    .'least_x = x_min; ' \
    .'stats data using (column("row") == r && column("column") == c && column("kind") == 0 ? x_of(column("x") * (by_factor ? column("z") : 1)) : NaN) name "x" nooutput; ' \
    .'x_min = least_x; ' \
    .'wide = x_max > x_min ? x_max - x_min : abs(x_max) * 0.2; ' \
    .'x_from = x_min - 0.06 * wide; x_to = x_max + 0.08 * wide; ' \
    .'set xrange [x_from:x_to]; set yrange [y_from:y_to]; n_labels = 0; n_on_line = 0; last_index = -1; ' \
    .'stats data using (column("row") == r && column("column") == c && column("kind") == 0 ? (strlen(strcol("label")) > 0 && strcol("label") ne "\302\240" ? keep(on_x(x_of(column("x"))), on_y(column("y"))) : obstacle(on_x(x_of(column("x"))), on_y(column("y")))) : NaN) nooutput; ' \
    .'do for [i = 1:n_labels] { worst = 1e30; do for [k = 0:places - 1] { ' \
    .'if (worst > 0) { this = bad(i, try_x(i, k), try_y(i, k)) + 2 * (ring_of(k) - 1); ' \
    .'if (this < worst) { worst = this; put_x[i] = try_x(i, k); put_y[i] = try_y(i, k); at_ring = ring_of(k) } } }; ' \
    .'set label 200 + i label_text[i] at graph put_x[i] / inner_w, graph put_y[i] / inner_h center font small tc rgb 0x333333 front; ' \
    .'if (at_ring > 1) { set arrow 200 + i from graph label_x[i] / inner_w, graph label_y[i] / inner_h to graph put_x[i] / inner_w, graph (put_y[i] + (put_y[i] > label_y[i] ? -0.4 : 0.4) * text_h) / inner_h nohead lc rgb 0x999999 lw 0.5 } }'
stats data using (column("kind") == 0 && strcol("label") ne strcol("series") ? 1 : NaN) name "unnamed" nooutput
if (!exists("unnamed_records") && !dumb) { do for [i = 1:n_series] { listed[i] = 0 } }
stats data using (column("kind") == 0 ? column("low") : NaN) name "whisker" nooutput
whiskers = exists("whisker_records") && !dumb
if (whiskers) { key_form = "bar"; key_name = "95 % interval"; eval add_key }
if (has_kind(1)) { key_form = "ring"; key_name = "none is better in both"; eval add_key }
draw = 'plot for [s = 0:n_series - 1] data using (x_of(xs(s, 0))):"y"' \
    .(joined ? ' with linespoints lc rgb colour(s + 1) dt dashes(s + 1) lw 1.6 pt marker(s + 1) ps 0.8' \
             : ' with points lc rgb colour(s + 1) pt marker(s + 1) ps 0.8')
if (whiskers) { draw = draw.', for [s = 0:n_series - 1] data using (x_of(xs(s, 0))):"low":(0):(column("high") - column("low")) with vectors nohead lc rgb colour(s + 1) lw 1' }
if (!dumb) { draw = draw.', for [s = 0:n_series - 1] data using (x_of(xs(s, 1))):"y" with points pt 6 ps 2 lw 1.2 lc rgb 0x444444' }
