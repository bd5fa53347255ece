# SPDX-License-Identifier: MIT
# A grid of panels, row by row. The figure has set: title, x_title, y_title, log_y, `draw` (the plot
# command of panel r, c), and what it wants of: panel_w, panel_h, y_scale, slopes (z is an exponent
# to print), own_yrange, prepare (a command in front of each plot), y_titles (by row, with | between).
if (!exists("slopes")) slopes = 0
if (!exists("y_scale")) y_scale = 1
if (!exists("own_yrange")) own_yrange = 0
if (!exists("prepare")) prepare = ""
single = n_rows * n_columns == 1
if (!exists("panel_w")) panel_w = single ? 620 : n_columns == 1 ? 560 : n_columns == 2 ? 420 : n_columns == 3 ? 330 : 270
if (!exists("panel_h")) panel_h = single ? 360 : 260
across = dumb ? 1 : n_columns
down = n_rows * n_columns / across
if (dumb) { page_w = term_width } else { page_w = across * panel_w + 20; if (page_w < 420) { page_w = 420 } }
@legend_prepare
page_h = int(legend_h + down * (dumb ? 20 : panel_h))
inner_w = page_w / across - 10 * cw
top_h = slopes && !dumb ? 2.7 : 1.7
inner_h = panel_h - (2.9 + top_h) * ch
# 1, 2, 5 where decades alone would leave an axis without numbers.
log_ticks = 'set ytics (1 1); do for [d = -9:9] { set ytics add (10.0**d); ' \
    .'if (y_to / y_from < 200) { set ytics add (2 * 10.0**d, 5 * 10.0**d) } }'
@open_page
set format y "%g"
set multiplot
@legend_draw
set xlabel x_title offset 0, dumb ? 0 : 0.4
array slope[n_series]
scaled(k, what) = column("row") == k && column(what) > 0 ? column(what) * (exists("y_titles") && k > 0 ? 1 : y_scale) : NaN
do for [r = 0:n_rows - 1] {
    # Panels of one row are compared with each other: one scale. (stats obeys ranges.)
    if (!own_yrange) { set autoscale y }
    if (!own_yrange) {
        stats data using (scaled(r, "y")) name "mid" nooutput
        stats data using (scaled(r, "low")) name "low" nooutput
        stats data using (scaled(r, "high")) name "high" nooutput
        least = exists("low_min") && low_min < mid_min ? low_min : mid_min
        most = exists("high_max") && high_max > mid_max ? high_max : mid_max
        if (most <= least) { most = least * 1.1; least = least / 1.1 }
        if (log_y) { y_from = least / 1.3; y_to = most * 1.3 } else { y_from = least - 0.05 * (most - least); y_to = most + 0.08 * (most - least) }
    }
    do for [c = 0:n_columns - 1] {
        if (filled[r * n_columns + c + 1]) {
            i = dumb ? r * n_columns + c : r
            j = dumb ? 0 : c
            set lmargin at screen (j * (page_w - 2.0 * cw) / across + 9.5 * cw) / page_w
            set rmargin at screen ((j + 1) * (page_w - 2.0 * cw) / across - 0.5 * cw) / page_w
            set tmargin at screen 1 - (legend_h + i * (page_h - legend_h) / down + top_h * ch) / page_h
            set bmargin at screen 1 - (legend_h + (i + 1) * (page_h - legend_h) / down - 2.9 * ch) / page_h
            set title panel[r * n_columns + c + 1] offset 0, slopes && !dumb ? 0.2 : -0.6
            if (j == 0) { set ylabel (exists("y_titles") ? (r == 0 ? y_titles[1:strstrt(y_titles, "|") - 1] : y_titles[strstrt(y_titles, "|") + 1:]) : y_title) offset dumb ? 0 : 0.5, 0 } else { unset ylabel }
            if (slopes && !dumb) {
                do for [s = 1:n_series] { slope[s] = NaN }
                stats data using (column("row") == r && column("column") == c ? (slope[int(column("index")) + 1] = column("z"), 0) : NaN) nooutput
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
                set label 99 (n_slopes > 6 ? sprintf("slope  %.2f to %.2f", least_slope, most_slope) : "slope") at graph 0, graph (1 + 0.6 * ch / inner_h) left font small tc rgb 0x555555
                at = 0
                do for [s = 1:n_series] {
                    if (slope[s] == slope[s] && n_slopes <= 6) {
                        set label 100 + s sprintf("%.2f", slope[s]) at graph 0, graph (1 + 0.6 * ch / inner_h) left \
                            offset character (6 + 5 * at), 0 tc rgb colour(style[s]) font small
                        at = at + 1
                    }
                }
            }
            if (!own_yrange) { set yrange [y_from:y_to] }
            if (exists("ticks")) { eval ticks } else { if (log_y && !own_yrange) { @log_ticks } }
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
