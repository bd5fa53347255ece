# SPDX-License-Identifier: MIT
# A grid of panels, row by row. The figure has set: title, x_title, y_title, log_y, `draw` (the plot
# command of panel r, c), and what it wants of: panel_w, panel_h, y_scale, slopes (z is a number to
# print, named slope_name), own_yrange (the figure sets it), free_y (each panel has its own), one_y (all
# have one), prepare (a command in front of each plot), y_titles (by row, in turn, with | between; only
# the first is scaled).
if (!exists("slopes")) slopes = 0
if (!exists("slope_name")) slope_name = "slope"
if (!exists("y_scale")) y_scale = 1
if (!exists("own_yrange")) own_yrange = 0
if (!exists("free_y")) free_y = 0
if (!exists("one_y")) one_y = 0
if (!exists("prepare")) prepare = ""
if (!exists("y_titles")) y_titles = y_title
n_titles = 1 + (strstrt(y_titles, "|") > 0)
y_title_of(k) = n_titles == 1 ? y_titles : k % 2 == 0 ? y_titles[1:strstrt(y_titles, "|") - 1] : y_titles[strstrt(y_titles, "|") + 1:]
scale_of(k) = k % n_titles == 0 ? y_scale : 1
single = n_rows * n_columns == 1
if (!exists("panel_w")) panel_w = single ? 620 : n_columns == 1 ? 560 : n_columns == 2 ? 420 : n_columns == 3 ? 330 : 270
if (!exists("panel_h")) panel_h = single ? 360 : 260
across = dumb ? 1 : n_columns
n_filled = 0
do for [i = 1:|filled|] { n_filled = n_filled + filled[i] }
down = dumb ? n_filled : n_rows
page_w = dumb ? term_width : across * panel_w + 20 < 420 ? 420 : across * panel_w + 20
page_height(head) = head + down * (dumb ? 20 : panel_h)
load here."page.gp"
if (dumb) { panel_h = 20 }
if (sized) { panel_h = (page_h - head_h) / down }
inner_w = page_w / across - 10 * cw
titled = 0
do for [i = 1:|panel|] { titled = titled || strlen(panel[i]) > 0 }
top_h = slopes && !dumb ? 2.7 : titled ? 1.7 : 0.6
inner_h = panel_h - (3.2 + top_h) * ch
if (inner_h < 2.5 * ch || inner_w < 8 * cw) { printerr "too small"; exit status 4 }
set format y "%g"
y_fits = strlen(y_title) * cw < panel_h
set xlabel x_title offset 0, dumb ? 0 : 0.4
array slope[n_series]
in_row(k, l) = one_y || column("row") == k && (!free_y || column("column") == l)
scaled(k, l, what) = in_row(k, l) && (!log_y || column(what) > 0) ? column(what) * scale_of(k) : NaN
# One scale for the panels of a row, or of all rows, so that they can be compared. (stats obeys ranges.)
measure = 'set autoscale y; undefine mid_* low_* high_*; ' \
    .'stats data using (scaled(r, l, "y")) name "mid" nooutput; ' \
    .'stats data using (scaled(r, l, "low")) name "low" nooutput; ' \
    .'stats data using (scaled(r, l, "high")) name "high" nooutput; ' \
    .'least = exists("low_min") && low_min < mid_min ? low_min : mid_min; ' \
    .'most = exists("high_max") && high_max > mid_max ? high_max : mid_max; ' \
    .'if (most <= least) { most = most + abs(most) * 0.1; least = least - abs(least) * 0.1 }; ' \
    .'if (log_y) { pad = (most / least)**0.06 * 1.02; y_from = least / pad; y_to = most * pad } ' \
    .'else { y_from = least - 0.05 * (most - least); y_to = most + 0.08 * (most - least) }'
drawn = -1
do for [r = 0:n_rows - 1] {
    l = 0
    if (!own_yrange && !free_y) { eval measure }
    do for [c = 0:n_columns - 1] {
        if (filled[r * n_columns + c + 1]) {
            if (free_y) { l = c; eval measure }
            drawn = drawn + 1
            i = dumb ? drawn : r
            j = dumb ? 0 : c
            set lmargin at screen (j * (page_w - 2.0 * cw) / across + 9.5 * cw) / page_w
            set rmargin at screen ((j + 1) * (page_w - 2.0 * cw) / across - 0.5 * cw) / page_w
            set tmargin at screen 1 - (head_h + i * panel_h + top_h * ch) / page_h
            set bmargin at screen 1 - (head_h + (i + 1) * panel_h - 3.2 * ch) / page_h
            set title panel[r * n_columns + c + 1] offset 0, slopes && !dumb ? 0.2 : -0.6
            unset ylabel
            if (j == 0 && (y_fits || dumb || r == n_rows / 2)) {
                # An SVG's own label would be placed by the width that gnuplot guesses for the ticks.
                if (dumb) { set ylabel y_title_of(r) } else { set label 900 y_title_of(r) at screen 0.6 * ch / page_w, graph 0.5 center rotate by 90 }
            }
            if (slopes && !dumb) {
                do for [s = 1:n_series] { slope[s] = NaN }
                stats data using (column("row") == r && column("column") == c && column("kind") == 0 ? (slope[int(column("index")) + 1] = column("z"), 0) : NaN) nooutput
                n_slopes = 0
                least_slope = 1e9
                most_slope = -1e9
                do for [s = 1:n_series] {
                    if (slope[s] == slope[s]) {
                        n_slopes = n_slopes + 1
                        if (slope[s] < least_slope) { least_slope = slope[s] }
                        if (slope[s] > most_slope) { most_slope = slope[s] }
                    }
                }
                first_w = strlen(slope_name) + 1
                fits = n_slopes <= 8 && first_w + 5 * n_slopes <= inner_w / 6.2
                set label 1099 (n_slopes == 0 ? "" : fits ? slope_name : sprintf("%s  %.2f to %.2f", slope_name, least_slope, most_slope)) at graph 0, graph (1 + 0.6 * ch / inner_h) left font small tc rgb 0x555555
                at = 0
                do for [s = 1:n_series] {
                    if (slope[s] == slope[s] && fits) {
                        set label 1100 + s sprintf("%.2f", slope[s]) at graph (first_w + 5 * at) * 6.2 / inner_w, graph (1 + 0.6 * ch / inner_h) left \
                            tc rgb colour(s) font small
                        at = at + 1
                    }
                }
            }
            if (!own_yrange) { set yrange [y_from:y_to] }
            if (log_y && !own_yrange) { eval log_ticks }
            eval prepare
            eval draw
            if (!own_yrange) { set autoscale y }
            unset label
            unset arrow
            unset object
        }
    }
}
unset multiplot
unset output
