# SPDX-License-Identifier: MIT
# A case over several runs, a panel a case. x number of the run by date, y ns with its interval
# low..high, label date and commit of the run; a series a machine. How to run it by hand: style.gp.
if (!exists("here")) here = "plots/"
if (!exists("title")) title = "History"
load here."style.gp"
stats data using "x" name "run" nooutput
n_runs = int(run_max) + 1
array tick[n_runs]
do for [i = 1:n_runs] { tick[i] = "" }
stats data using (tick[int(column("x")) + 1] = strcol("label"), 0) nooutput
x_title = ""
y_title = "time (ms)"
log_y = 0
free_y = 1
y_scale = 1e-6
set xrange [-0.5:n_runs - 0.5]
set xtics ("" 0)
step = 1 + (n_runs - 1) / (dumb ? 3 : 4)
do for [i = 1:n_runs:step] { set xtics add (tick[i] i - 1) }
key_form = "bar"; key_name = "95 % interval"; eval add_key
draw = 'plot for [s = 0:n_series - 1] data using (xs(s, 0)):(column("y") * y_scale)' \
    .' with linespoints lc rgb colour(s + 1) dt dashes(s + 1) lw 1.2 pt marker(s + 1) ps 0.9'
if (!dumb) { draw = draw.', for [s = 0:n_series - 1] data using (xs(s, 0)):(column("low") * y_scale):(0):((column("high") - column("low")) * y_scale) with vectors nohead lc rgb colour(s + 1) lw 1.2' }
panel_w = n_rows * n_columns == 1 ? 700 : 420
load here."panels.gp"
