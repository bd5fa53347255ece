# SPDX-License-Identifier: MIT
# gnuplot attention.gp, in this folder: attention.svg from attention.csv. Each head of each of three seeds is a small
# point, their mean the line.
set datafile separator comma
set datafile columnheaders
set terminal svg size 1000,700 font "sans,12" background rgb "white"
set output "attention.svg"
models = "'vanilla' 'rope' 'rope --ffn none'"
colour(i) = i == 1 ? 0x0072B2 : i == 2 ? 0xD55E00 : 0x009E73
columns = "keys90 rank90 values_rank90 jsd_before_bits"
names = "'keys that hold 90 % of the probability, of 64.5' 'rank of probabilities (90 % of energy, of 128)' 'rank of values (90 % of energy, of 64)' 'bits to the likest head of the layer before'"
set xrange [0.6:6.4]
set yrange [0:*]
set xlabel "layer"
set grid lc rgb 0xDDDDDD
set key outside bottom center horizontal
set multiplot layout 2,2
do for [p = 1:4] {
    set title word(names, p)
    plot for [i = 1:3] "attention.csv" using (strcol("model") eq word(models, i) ? column("layer") + 0.12 * (i - 2) : NaN):word(columns, p) \
            with points pt 7 ps 0.25 lc rgb colour(i) notitle, \
        for [i = 1:3] "attention.csv" using (strcol("model") eq word(models, i) ? column("layer") + 0.12 * (i - 2) : NaN):word(columns, p) \
            smooth unique with linespoints pt 6 ps 0.8 lw 1.5 lc rgb colour(i) title word(models, i)
}
unset multiplot
