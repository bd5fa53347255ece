# SPDX-License-Identifier: MIT
# Variants in order of time, a panel a shape. x line of the bar, y ns with its interval low..high, label
# what the bar is; a series says what is known of it beside the first. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "Time of variants"
load here."style.gp"
inked(s) = s eq "fastest" ? 0x0072B2 : s eq "slower" ? 0xB4B4B4 : s eq "probably slower" ? 0xD2D2D2 : 0x56B4E9
do for [i = 1:n_series] { tint[i] = inked(name[i]) }
legend_kind = "box"
stats data using "low" name "interval" nooutput
if (exists("interval_records") && interval_records > 0) { key_form = "bar"; key_name = "95 % interval"; eval add_key }
longest_label = 0
n_bars = 0
larger(a, b) = a > b ? a : b
stats data using (longest_label = larger(longest_label, strlen(strcol("label"))), n_bars = larger(n_bars, int(column("x")) + 1), 0) nooutput
bar_h = dumb ? 1.0 : n_bars > 40 ? 15.0 : 19.0
left = (longest_label + 2) * (dumb ? 1.0 : 6.9)
n_filled = 0
do for [i = 1:|filled|] { n_filled = n_filled + filled[i] }
across = dumb ? 1 : n_columns
down = dumb ? n_filled : n_rows
block_h = n_bars * bar_h + (dumb ? 7 : 4.9 * ch)
page_w = dumb ? term_width : across == 1 ? left + 560 : across * (left + 330)
page_height(head) = head + down * block_h
load here."page.gp"
panel_w = 1.0 * page_w / across
panel_h = (page_h - head_h) / down
if (panel_h < 4.9 * ch + n_bars * 8.0 && !dumb || panel_w - left < 12 * cw) { printerr "too small"; exit status 4 }
is_here = 'column("row") == r && column("column") == c'
# Bars begin at 0. Where the longest would leave no room for the others, marks on a logarithmic axis.
scale_of = 'set autoscale; undefine end_*; stats data using ('.is_here.' ? column("y") : NaN) name "bar" nooutput; ' \
    .'most = bar_max; ' \
    .'stats data using ('.is_here.' ? column("high") : NaN) name "end" nooutput; ' \
    .'if (exists("end_max") && end_max > most) { most = end_max < 1.6 * bar_max ? end_max : 1.6 * bar_max }; ' \
    .'least = bar_min; wide = bar_max > 20 * bar_min; ' \
    .'size = wide ? bar_min : bar_max; unit = size >= 1e9 ? 1e9 : size >= 1e6 ? 1e6 : size >= 1e3 ? 1e3 : 1; ' \
    .'unit_name = unit == 1e9 ? "s" : unit == 1e6 ? "ms" : unit == 1e3 ? "us" : "ns"'
inner_w(unused) = panel_w - left - 1.5 * cw
digits(v) = sprintf(v >= 100 ? "%.0f" : v >= 10 ? "%.1f" : v >= 1 ? "%.2f" : "%.3f", v)
end_of(y, high) = (high > y && high <= most ? high : y) / unit
again(text, n) = n < 1 ? "" : n == 1 ? text : again(text, n / 2).again(text, n - n / 2)
share(y) = wide ? log(y / unit / from) / log(to / from) : y / unit / to
drawn = -1
do for [r = 0:n_rows - 1] {
    do for [c = 0:n_columns - 1] {
        if (filled[r * n_columns + c + 1]) {
            drawn = drawn + 1
            i = dumb ? drawn : r
            j = dumb ? 0 : c
            eval scale_of
            from = wide ? least / unit / 1.5 : 0
            # Behind the longest there is room for its number.
            to = wide ? most / unit * (most / least)**(8 * cw / inner_w(0)) : most / unit * (1 + 8 * cw / inner_w(0))
            unset logscale
            if (wide) { set logscale x }
            set xrange [from:to]
            set yrange [n_bars - 0.4:-0.6]
            set lmargin at screen (j * panel_w + left) / page_w
            set rmargin at screen ((j + 1) * panel_w - 1.5 * cw) / page_w
            set tmargin at screen 1 - (head_h + i * panel_h + (dumb ? 1 : 1.6 * ch)) / page_h
            set bmargin at screen 1 - (head_h + (i + 1) * panel_h - (dumb ? 3 : 3.1 * ch)) / page_h
            set label 1 panel[r * n_columns + c + 1] at graph 0, screen 1 - (head_h + i * panel_h + (dumb ? 0 : 0.9 * ch)) / page_h left front
            set xlabel "time of a call (".unit_name.")" offset 0, dumb ? 0 : 0.4
            set grid xtics noytics
            set border 1
            unset ytics
            if (wide) {
                unset xtics; set xtics nomirror (1 1)
                inner_h = inner_w(0); tick_words = tick_sets[tick_set(from, to, inner_w(0) / (4.5 * cw))]
                decades = 1 + int(5 * cw * log10(to / from) / inner_w(0)); do for [d = -12:12:decades] { do for [t in tick_words] { at = real(t) * 10.0**d; if (at >= from && at <= to) { set xtics add (sprintf("%g", at) at) } } }
            } else { set xtics nomirror autofreq nice(to / (inner_w(0) / (8 * cw))) }
            names = ', data using ('.is_here.' ? from : NaN):"x":(strcol("label")." ") with labels right offset '.(dumb ? "0" : "-0.3").', 0'
            values = ', data using ('.is_here.' ? end_of(column("y"), column("high")) : NaN):"x":(" ".digits(column("y") / unit)) with labels left offset wide ? 0.6 : 0.2, 0 font small'
            bars = wide ? 'data using ('.is_here.' && column("index") == s ? column("y") / unit : NaN):"x" with points pt 7 ps 1.1 lc rgb colour(s + 1)' \
                : 'data using ('.is_here.' && column("index") == s ? 0 : NaN):"x":(0):(column("y") / unit):(column("x") - 0.36):(column("x") + 0.36) with boxxyerror fc rgb colour(s + 1) fs solid 1.0 noborder'
            whiskers = ', data using ('.is_here.' && column("low") > 0 ? column("low") / unit : NaN):"x":((column("high") < most ? column("high") : most) / unit - column("low") / unit):(0) with vectors heads size screen 0.003, 90 lc rgb 0x333333 lw 1.2'
            text = 'data using ('.is_here.' ? from : NaN):"x":(again(sprintf("%d", column("index") + 1), int(share(column("y")) * (page_w - left - 4)))." ".digits(column("y") / unit)) with labels left'
            eval 'plot '.(dumb ? text.names : 'for [s = 0:n_series - 1] '.bars.whiskers.names.values)
            unset label 1
        }
    }
}
unset multiplot
unset output
