# SPDX-License-Identifier: MIT
# Contenders over texts, a block of cells a size. Kind 0: column x, line y, z the mean with low..high
# its spread, label the mean; a series says whether the floor was reached. Kind 1: y a line and its
# label; kind 2: x a column and its label. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "What was learnt, from none of it (0) to all (1)"
load here."style.gp"
stats data using (column("kind") == 1 ? column("y") : NaN) name "line" nooutput
stats data using (column("kind") == 2 ? column("x") : NaN) name "text" nooutput
n_lines = int(line_max) + 1
n_texts = int(text_max) + 1
longest_line = 0
longest_text = 0
longer(old, s) = strlen(s) > old ? strlen(s) : old
stats data using (column("kind") == 1 ? longest_line = longer(longest_line, strcol("label")) : longest_line, 0) nooutput
stats data using (column("kind") == 2 ? longest_text = longer(longest_text, strcol("label")) : longest_text, 0) nooutput
# A reached cell is blue; of the others, the greyer the further.
tint_cell(i, z) = name[i + 1] eq "reached" ? 0x7FB8D8 : (v = z < 0 ? 0 : z > 1 ? 1 : z, g = int(255 - 75 * v), g * 65536 + g * 256 + g)
do for [i = 1:n_series] { tint[i] = name[i] eq "reached" ? 0x7FB8D8 : 0xD4D4D4 }
cell_w = dumb ? (longest_text > 5 ? longest_text : 5) + 2 : (longest_text * cw + 14 > 84 ? longest_text * cw + 14 : 84)
cell_h = dumb ? 1 : 2.5 * ch
left = (longest_line + 2) * cw
block_h = n_lines * cell_h + 2.6 * ch
legend_kind = "box"
page_w = dumb ? term_width : left + n_texts * cell_w + 2 * cw < 420 ? 420 : left + n_texts * cell_w + 2 * cw
page_height(head) = head + n_rows * block_h + 0.6 * ch
load here."page.gp"
set lmargin at screen left / page_w
set rmargin at screen 1 - 2.0 * cw / page_w
set xrange [-0.5:n_texts - 0.5]
set yrange [n_lines - 0.5:-0.5]
unset xtics
unset ytics
unset border
set grid noxtics noytics
room_h = (page_h - head_h - 0.6 * ch) / n_rows
inner_h = room_h - 2.6 * ch
in(k) = column("row") == r && column("kind") == k
boxes = 'data using (in(0) ? column("x") : NaN):"y":(column("x") - 0.49):(column("x") + 0.49):(column("y") - 0.47):(column("y") + 0.47)' \
    .':(tint_cell(int(column("index")), column("z"))) with boxxyerror fs solid 1.0 border rgb 0xBBBBBB lw 0.5 lc rgb variable, '
spread = ', data using (in(0) && column("high") - column("low") > 0.005 ? column("x") : NaN):(column("y") + 0.22):(sprintf("%.2f..%.2f", column("low"), column("high"))) with labels font small tc rgb 0x333333'
means = 'data using (in(0) ? column("x") : NaN):(column("y") - '.(dumb ? "0" : "0.16").'):(strcol("label")) with labels'
margins = ', data using (in(1) ? -0.5 : NaN):"y":(strcol("label")." ") with labels right' \
    .', data using (in(2) ? column("x") : NaN):(-0.5):(strcol("label")) with labels offset 0, '.(dumb ? "1" : "0.6")
do for [r = 0:n_rows - 1] {
    set tmargin at screen 1 - (head_h + r * room_h + 2.3 * ch) / page_h
    set bmargin at screen 1 - (head_h + r * room_h + 2.3 * ch + inner_h) / page_h
    if (n_rows > 1) { set label 1 panel[r + 1] at graph 0, graph (1 + 1.6 * ch / inner_h) left }
    eval 'plot '.(dumb ? "" : boxes).means.(dumb ? "" : spread).margins
    unset label
}
unset multiplot
unset output
