# SPDX-License-Identifier: MIT
# Changes with their intervals, one line each. x change in %, low..high its interval, y number of the
# line, z threshold in %, label what changed; a series a verdict. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Changes with their 95 % intervals"
load here."style.gp"
label_longest = 0
longer(s) = strlen(s) > label_longest ? strlen(s) : label_longest
stats data using (label_longest = longer(strcol("label")), 0) nooutput
stats data using "y" name "line" nooutput
stats data using "low" name "least" nooutput
stats data using "high" name "most" nooutput
stats data using "z" name "same" nooutput
n_lines = int(line_max) + 1
left = (label_longest + 2) * cw
legend_kind = "points"
key_form = "band"; key_name = "counts as the same"; eval add_key
page_w = dumb ? term_width : left + 560
page_height(head) = head + (n_lines + 4.4) * ch
load here."page.gp"
set lmargin at screen left / page_w
set rmargin at screen 1 - 2.0 * cw / page_w
set tmargin at screen 1 - head_h / page_h
set bmargin at screen 3.4 * ch / page_h
times(pct) = 1 + pct / 100.0
limit = exists("same_max") ? same_max : 0
low = 0.95 * (times(least_min) < 1 / times(limit) ? times(least_min) : 1 / times(limit))
high = 1.05 * (times(most_max) > times(limit) ? times(most_max) : times(limit))
set logscale x
if (high / low > 4) {
    set xtics (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
} else {
    if (high / low > 1.3) { set xtics (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2) } else { set xtics (0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15) }
}
set xrange [low:high]
set yrange [n_lines + 0.2:-1.2]
unset ytics
set border 1
set xlabel "time, after / before"
band = 'data using (1):"y":(1 / times(column("z"))):(times(column("z"))):(column("y") - 0.5)' \
    .':(column("y") + 0.5) with boxxyerror fc rgb 0xE4E4E4 fs solid 1.0 noborder, '
points = 'for [s = 0:n_series - 1] data' \
    .' using (column("index") == s ? times(column("x")) : NaN):"y"' \
    .':(times(column("low"))):(times(column("high")))' \
    .' with xerrorbars lc rgb colour(s + 1) pt marker(s + 1) ps 0.8 lw 1.5, '
set arrow 900 from 1, graph 0 to 1, graph 1 nohead lc rgb 0x444444 lw 1
names = 'data using (low):"y":(strcol("label")." ") with labels right offset -0.5, 0 font small'
eval "plot ".(dumb ? "" : band).points.names
unset multiplot
unset output
