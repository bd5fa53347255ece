# SPDX-License-Identifier: MIT
# The page: its size, and on top of it title, remarks and legend, drawn once, outside the data. The
# figure has set page_w, and page_h as a function of the height of this head: page_height(head).
# Afterwards head_h is that height. Labels below 2000 are the figure's own.
if (sized) { page_w = size_w }
line_h = dumb ? 1.0 : 14.0 # of remarks
room = int((page_w - 2 * cw) / (dumb ? 1.0 : 6.0))
n_said = 0
array said[24]
do for [k = 1:2] {
    text = k == 1 ? what : where
    line = ""
    do for [i = 1:words(text)] {
        if (line ne "" && strlen(line) + 1 + strlen(word(text, i)) > room && n_said < 23) {
            n_said = n_said + 1
            said[n_said] = line
            line = ""
        }
        line = line eq "" ? word(text, i) : line." ".word(text, i)
    }
    if (line ne "") { n_said = n_said + 1; said[n_said] = line }
}

longest = 0
n_listed = n_keys
do for [i = 1:n_series] {
    n_listed = n_listed + listed[i]
    if (listed[i] && strlen(name[i]) > longest) { longest = strlen(name[i]) }
}
do for [i = 1:n_keys] { if (strlen(key_names[i]) > longest) { longest = strlen(key_names[i]) } }
sample_w = legend_kind ne "line" ? (dumb ? 2 : 3) * cw : (dumb ? 2 : 7) * cw
entry_w = sample_w + (longest + 3) * cw * (dumb ? 1 : 0.95)
per_line = int((page_w - 2 * cw) / entry_w)
if (per_line < 1) { per_line = 1 }
n_lines_of_legend = ceil(1.0 * n_listed / per_line)
# On a small page the remarks have no room; those who choose it have a caption of their own.
legend_h = n_lines_of_legend * ch + 0.5 * ch
if (sized && 1.9 * ch + n_said * line_h + legend_h > 0.4 * size_h) { n_said = 0 }
said_h = 1.9 * ch + n_said * line_h + (n_said > 0 ? 0.3 * ch : 0)
if (dumb) { said_h = 1 + n_said }
head_h = 1.0 * said_h + (dumb ? n_lines_of_legend + 1 : legend_h)
page_h = sized ? size_h : int(page_height(head_h))
if (sized && page_h < head_h + 8 * ch) { printerr "too small"; exit status 4 }

if (terminal eq "dumb") { set terminal dumb size page_w, page_h noenhanced }
if (terminal eq "svg") { set terminal svg size page_w, page_h noenhanced rounded font "DejaVu Sans,Verdana,sans-serif,12" background "white" }
if (terminal eq "pngcairo") { set terminal pngcairo size page_w * dpi / 96, page_h * dpi / 96 noenhanced font "DejaVu Sans,9" fontscale dpi / 96.0 linewidth dpi / 96.0 pointscale dpi / 96.0 background "white" }
if (terminal eq "pdfcairo") { set terminal pdfcairo size page_w / 96.0 in, page_h / 96.0 in noenhanced font "DejaVu Sans,9" fontscale 1 linewidth 1 background "white" }
if (!dumb) { set output out }
# Points are pixels in SVG.
big = terminal eq "svg" ? ",15" : ",11"
small = terminal eq "svg" ? ",11" : ",8"
set multiplot

at_x(px) = px / page_w
at_y(py) = 1 - py / page_h # from the top
set label 2001 title at screen at_x(cw), screen at_y(dumb ? 0.5 : 1.1 * ch) left front font big
do for [i = 1:n_said] {
    set label 2001 + i said[i] at screen at_x(cw), screen at_y((dumb ? 0.5 : 1.5 * ch) + (i - 0.1) * line_h) left front font small tc rgb 0x555555
}
# Widths of neighbours differ a little: gnuplot's SVG gives a line the dash of the one before it if
# their colours and widths are equal.
at = 0
do for [i = 1:n_series + n_keys] {
    if (i > n_series ? 1 : listed[i]) {
        px = cw + (at % per_line) * entry_w
        py = said_h + (at / per_line + (dumb ? 0.5 : 0.6)) * ch
        to = px + sample_w
        entry = i > n_series ? key_names[i - n_series] : name[i]
        form = i > n_series ? key_forms[i - n_series] : legend_kind
        # In a terminal one text: columns of two would be rounded apart.
        if (dumb) { entry = form eq "box" ? sprintf("%d %s", i, entry) : sprintf("%c %s", 64 + marker(i), entry) }
        set label 2100 + i entry at screen at_x(dumb ? px : to + cw), screen at_y(py) left
        if (!dumb) {
            if (form eq "line") { if (i > n_series) { set arrow 2000 + i from screen at_x(px), screen at_y(py) to screen at_x(to), screen at_y(py) nohead lc rgb 0x444444 lw 1.6 } else {
                set arrow 2000 + i from screen at_x(px), screen at_y(py) to screen at_x(to), screen at_y(py) nohead lc rgb colour(i) dt dashes(i) lw 1.6 + 0.01 * (i % 2)
                set label 2500 + i "" at screen at_x((px + to) / 2), screen at_y(py) point pt marker(i) lc rgb colour(i) ps 0.8 front } }
            if (form eq "points" && i <= n_series) { set label 2500 + i "" at screen at_x((px + to) / 2), screen at_y(py) point pt marker(i) lc rgb colour(i) ps 0.9 front }
            if (form eq "points" && i > n_series) { set label 2500 + i "" at screen at_x((px + to) / 2), screen at_y(py) point pt 7 lc rgb 0x444444 ps 0.9 front }
            if (form eq "ring") { set label 2500 + i "" at screen at_x((px + to) / 2), screen at_y(py) point pt 6 lc rgb 0x444444 ps 2 front }
            if (form eq "cross") { set label 2500 + i "" at screen at_x((px + to) / 2), screen at_y(py) point pt 2 lc rgb 0x444444 ps 0.9 front }
            if (form eq "thin") { set arrow 2000 + i from screen at_x(px), screen at_y(py) to screen at_x(to), screen at_y(py) nohead lc rgb 0x444444 lw 0.6 }
            if (form eq "dotted") { set arrow 2000 + i from screen at_x(px), screen at_y(py) to screen at_x(to), screen at_y(py) nohead lc rgb 0x444444 dt 3 lw 1.2 }
            if (form eq "dashes") { set arrow 2000 + i from screen at_x(px), screen at_y(py) to screen at_x(to), screen at_y(py) nohead lc rgb 0x444444 dt 2 lw 1 }
            if (form eq "bar") { set arrow 2000 + i from screen at_x((px + to) / 2), screen at_y(py - 0.4 * ch) to screen at_x((px + to) / 2), screen at_y(py + 0.4 * ch) nohead lc rgb 0x000000 lw 1.2 }
            if (form eq "box" || form eq "band") {
                inside = form eq "box" ? colour(i) : 0xDDDDDD
                edge = form eq "box" ? 0x444444 : 0xDDDDDD
                set object 2000 + i rectangle from screen at_x(px), screen at_y(py - 0.32 * ch) to screen at_x(to), screen at_y(py + 0.32 * ch) fc rgb inside fs solid 1.0 border rgb edge
            }
        }
        at = at + 1
    }
}
