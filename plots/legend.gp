# SPDX-License-Identifier: MIT
# Title and legend on top of the page, drawn once, outside the data. Loaded by the figures, whose
# own labels have numbers below 1000.
unset label
unset arrow
set label 1 title at screen 0.5, screen 1 - 0.9 * ch / page_h center front
at = 0
do for [i = 1:n_series] {
    if (listed[i]) {
        px = (cw + (at % per_line) * entry_w) / page_w
        py = 1 - (2.0 + at / per_line) * ch / page_h
        if (legend_kind eq "line") {
            if (!dumb) {
                set arrow from screen px, screen py to screen px + 3.5 * cw / page_w, screen py \
                    nohead lc rgb colour(style[i]) dt dashes(style[i], dash[i]) lw 1.6
            }
            set label 1000 + i name[i] at screen px + 1.75 * cw / page_w, screen py left \
                point pt marker(style[i]) lc rgb colour(style[i]) ps 0.8 offset 2.6, 0
        } else {
            if (dumb) {
                set label 1000 + i sprintf("%d %s", i, name[i]) at screen px, screen py left
            } else {
                set object i rectangle from screen px, screen py - 0.32 * ch / page_h \
                    to screen px + 3 * cw / page_w, screen py + 0.32 * ch / page_h \
                    fc rgb colour(style[i]) fs solid 1.0 border rgb 0x444444
                set label 1000 + i name[i] at screen px + 4 * cw / page_w, screen py left
            }
        }
        at = at + 1
    }
}
